"""What a kernel costs: its nodes with the loops each runs in and the instructions each takes.

Takes a ``Kernel`` without Opts; gives a list of ``Work`` that the rules for lanes, tiles and threads read. Instructions
are counted, not timed: no target is asked.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.memory import UNUSED
from tinyhost.codegen.strides import Access
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp

GATED_COST = 3  # instructions of an access under a condition
HEAVY = {
    Ops.EXP2: 12,
    Ops.LOG2: 14,
    Ops.SIN: 20,
    Ops.POW: 30,
    Ops.SQRT: 6,
    Ops.RECIPROCAL: 4,
    Ops.FDIV: 4,
    Ops.CDIV: 8,
    Ops.CMOD: 10,
    Ops.FLOORDIV: 8,
    Ops.FLOORMOD: 10,
    Ops.THREEFRY: 120,
}
_COUNTED = GroupOp.ALU | {Ops.CAST, Ops.BITCAST, Ops.INDEX, Ops.STORE}


@dataclass
class Work:
    """A node of the kernel as the cost model sees it."""

    node: UOp
    chain: dict[UOp, None]  # roots of the loops it runs in
    weight: float
    access: Access | None


def work_of(k: Kernel) -> list[Work]:
    """Nodes that cost something, with the loops around each."""
    around = _loops_around(k)
    by_node = {a.node: a for a in k.accesses}
    index_math = _index_math(k)
    out = []
    for u in k.nodes:
        if u.op not in _COUNTED or u in index_math:
            continue
        access = by_node.get(u.src[0]) if u.op is Ops.STORE else by_node.get(u)
        if u.op is Ops.INDEX and (access is None or access.written):
            continue
        chain: dict[UOp, None] = {}
        for r in u.ranges:
            chain.update(around.get(r, {r: None}))
        weight = (
            GATED_COST if access is not None and access.gate is not None and u.tag != UNUSED else HEAVY.get(u.op, 1)
        )
        out.append(Work(u, chain, float(weight), access))
    return out


def _index_math(k: Kernel) -> set[UOp]:
    """Nodes that only compute addresses or gates."""
    values: set[UOp] = set()
    stack = [s for u in k.nodes if u.op is Ops.STORE for s in u.src[1:]]
    while stack:
        u = stack.pop()
        if u not in values:
            values.add(u)
            if u.op is not Ops.INDEX:
                stack += u.src
    return {u for u in k.nodes if u not in values and u.op is not Ops.STORE}


def _loops_around(k: Kernel) -> dict[UOp, dict[UOp, None]]:
    """For each root RANGE, itself and the loops it stands in: those of its store that come before it."""
    out: dict[UOp, dict[UOp, None]] = {}
    for e in k.ends:
        order = [r for r in sorted((r for r in e.src[1:] if r in k.root_axis), key=lambda r: r.arg[:-1])]
        for i, r in enumerate(order):
            out[r] = dict.fromkeys(order[:i + 1])
    for u in reversed(k.reduces):
        body: dict[UOp, None] = {}
        for r in u.src[0].ranges:
            if r not in u.src[1:]:
                body.update(out.get(r, {r: None}))
        for r in sorted((r for r in u.src[1:] if r in k.root_axis), key=lambda r: r.arg[:-1]):
            body = {**body, r: None}
            out[r] = body
    return out


def is_gather(k: Kernel, access: Access, r: UOp) -> bool:
    """Whether vectors along ``r`` need one access per lane."""
    if r not in access.node.ranges:
        return False
    gated = access.gate is not None and r in access.gate.ranges and not k.caps.masked
    return gated or access.stride(r) not in (0, 1)
