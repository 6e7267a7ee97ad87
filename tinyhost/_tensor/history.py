"""Where realized values came from, so that gradients flow through a value that was realized, read or printed.

A value that depends on a parameter keeps its graph beside the buffer it was computed into, as long as that buffer lives
and nothing the graph reads has been overwritten: a gradient is that of the values of the time, or an error, never a
mixture.
Knows graphs only; realization tells it what was computed and what was written.
"""
from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping
from threading import RLock

from tinyhost.ops import Ops
from tinyhost.uop import UOp

# BUFFER -> its graph and the storage that one reads
_graphs: weakref.WeakKeyDictionary[UOp, tuple[UOp, frozenset[UOp]]] = weakref.WeakKeyDictionary()
_lock = RLock()


def remember(computed: Mapping[UOp, UOp], params: Collection[UOp], written: Collection[UOp]) -> None:
    """Keep the graphs of ``computed`` (graph -> view of its new buffer) that depend on ``params`` (BUFFERs) through
    differentiable ops and read nothing that was ``written`` meanwhile."""
    fresh = {u: view for u, view in computed.items() if u.op is not Ops.AFTER and view.base.op is Ops.BUFFER}
    if not fresh or not (params or _graphs):
        return
    reads: dict[UOp, frozenset[UOp]] = {}
    needed: dict[UOp, bool] = {}
    for u in UOp.sink(*fresh).toposort(enter_calls=False):
        if u.op is Ops.BUFFER:
            needed[u] = u in params or u in _graphs
        else:
            needed[u] = u.op is not Ops.DETACH and any(needed.get(s, False) for s in u.src)
    for u, view in fresh.items():
        if not needed[u]:
            continue
        reads[u] = frozenset(b for b in u.toposort(enter_calls=False) if b.op is Ops.BUFFER)
        if reads[u].isdisjoint(written):
            with _lock:
                _graphs[view.base] = (u, reads[u])


def forget(written: Iterable[UOp]) -> None:
    """Drop the graphs that read storage which now holds something else."""
    gone = frozenset(written)
    if not gone or not _graphs:
        return
    with _lock:
        for buffer, (_, reads) in list(_graphs.items()):
            if buffer in gone or not reads.isdisjoint(gone):
                del _graphs[buffer]


def clear() -> None:
    """Drop all graphs: gradients stop at realized values."""
    with _lock:
        _graphs.clear()


def readers_known() -> frozenset[UOp]:
    """All storage that some kept graph reads."""
    with _lock:
        return frozenset().union(*(reads for _, reads in _graphs.values()))


def unrealized(root: UOp) -> tuple[UOp, dict[UOp, UOp]]:
    """``root`` with realized values exchanged for the graphs they came from, and what undoes it in a graph over it."""
    back: dict[UOp, UOp] = {}
    while True:
        known = {b: _graphs[b][0] for b in root.toposort(enter_calls=False) if b in _graphs}
        if not known:
            return root, back
        back.update({graph: buffer.view_as(graph.shape) for buffer, graph in known.items()})
        root = root.substitute({b: graph.reshape((b.arg.size,)) for b, graph in known.items()}, walk=True)
