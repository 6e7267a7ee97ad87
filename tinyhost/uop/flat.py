"""A graph as one flat list and back: how a node is pickled at any depth.

Each entry is (op number, positions of the sources, arg, tag, contents); sources stand before their users and the
root is last. Contents are what the device floor wants kept of an allocated BUFFER, None elsewhere.
"""
from __future__ import annotations

from typing import Any

from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.services import registered, service

Entry = tuple[int, tuple[int, ...], Any, Any, Any]


def flatten(root: UOp) -> list[Entry]:
    """The graph under ``root`` as a list."""
    index: dict[UOp, int] = {}
    out: list[Entry] = []
    contents = registered("on_buffer_pickle")
    for i, u in enumerate(root.toposort()):
        index[u] = i
        kept = contents(u) if contents is not None and u.op is Ops.BUFFER else None
        out.append((u.op.value, tuple([index[s] for s in u.src]), u.arg, u.tag, kept))
    return out


def unflatten(flat: list[Entry]) -> UOp:
    """The root of the graph that ``flatten`` took apart."""
    nodes: list[UOp] = []
    for op, src, arg, tag, kept in flat:
        if kept is not None:
            nodes.append(service("on_buffer_unpickle")(arg, tag, kept))
        else:
            nodes.append(UOp(Ops(op), tuple([nodes[i] for i in src]), arg, tag))
    return nodes[-1]
