"""What a value costs when it is computed where it is read: buffers, operations, pending reductions.

Takes the prepared graph and which nodes have storage; gives ``Facts`` for each node. A value reads ``leaves`` (at
most ``MANY`` - 1 are told apart), costs ``cost`` operations an element, and has a ``pending`` reduction when
computing one element means running a whole REDUCE over memory. What is read through an EXPAND or inside a REDUCE is
assumed stored when it has a pending reduction, because ``fuse.py`` stores it then.
"""
from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from tinyhost.helpers import prod
from tinyhost.schedule.graph import extent_of
from tinyhost.schedule.storage import region_of
from tinyhost.uop import GroupOp, Ops, UOp

MANY = 4  # leaves from which on they are only "many"
COST_LIMIT = 1 << 16

_WEIGHT = {
    Ops.EXP2: 10, Ops.LOG2: 10, Ops.SIN: 12, Ops.SQRT: 4, Ops.RECIPROCAL: 4, Ops.FDIV: 4, Ops.POW: 24, Ops.THREEFRY: 80,
    Ops.FLOORDIV: 4, Ops.FLOORMOD: 4, Ops.CDIV: 4, Ops.CMOD: 4, Ops.BITCAST: 0}
_STORED = frozenset({Ops.CONTIGUOUS, Ops.COPY, Ops.PARAM, Ops.BUFFER, Ops.AFTER})


class Facts(NamedTuple):
    """Leaves (None: many), operations for one element, and whether a reduction is pending."""

    leaves: frozenset[UOp] | None
    cost: int
    pending: bool


NOTHING = Facts(frozenset(), 0, False)


def const_state(state: UOp) -> UOp | None:
    """The literal that fills a whole buffer as of an AFTER, None if it holds anything else."""
    if state.op is not Ops.AFTER or len(state.src) != 2 or state.src[1].op is not Ops.STORE:
        return None
    target, value = state.src[1].src[:2]
    fill = value
    while fill.op is Ops.RESHAPE or fill.op is Ops.EXPAND:
        fill = fill.src[0]
    if not fill.is_const or target is not state.src[0]:
        return None
    region = region_of(target)
    return fill if region is not None and region.whole else None


def elements(u: UOp) -> int:
    """Number of elements, symbolic extents at their largest."""
    return int(prod(extent_of(d) for d in u.shape))


def facts_of(u: UOp, known: dict[UOp, Facts], stored: Container[UOp]) -> Facts:
    """Facts of ``u`` from those of its sources; a node in ``stored`` is a leaf for its users."""
    op = u.op
    if op in _STORED:
        return _leaf(u) if op is not Ops.PARAM or u.arg.size is not None else NOTHING
    if op in GroupOp.Movement:
        src = u.src[0]
        f = _used(src, known, stored)
        return _leaf(src) if f.pending and op is Ops.EXPAND else f
    if op is Ops.REDUCE:
        f = _used(u.src[0], known, stored)
        if f.pending:
            f = _leaf(u.src[0])
        return Facts(f.leaves, min(f.cost + 2, COST_LIMIT), f.leaves is None or bool(f.leaves))
    if op in GroupOp.Elementwise or op is Ops.STACK or op is Ops.INDEX:
        return _combine(u, known, stored)
    return NOTHING


def _leaf(u: UOp) -> Facts:
    return NOTHING if u.op is Ops.AFTER and const_state(u) is not None else Facts(frozenset((u,)), 0, False)


def _used(u: UOp, known: dict[UOp, Facts], stored: Container[UOp]) -> Facts:
    return Facts(frozenset((u,)), 0, False) if u in stored else known[u]


def _combine(u: UOp, known: dict[UOp, Facts], stored: Container[UOp]) -> Facts:
    leaves: frozenset[UOp] | None = frozenset()
    cost, pending = _WEIGHT.get(u.op, 1), False
    shape = u.shape
    for i, s in enumerate(u.src):
        f = _used(s, known, stored)
        if f.pending:
            gathered = u.op is Ops.INDEX and i == 0
            if gathered or (u.op in GroupOp.ALU and s.shape != shape and elements(s) != elements(u)):
                f = _leaf(s)
            else:
                pending = True
        cost += f.cost
        if leaves is not None:
            leaves = None if f.leaves is None else leaves | f.leaves if f.leaves else leaves
            if leaves is not None and len(leaves) >= MANY:
                leaves = None
    return Facts(leaves, min(cost, COST_LIMIT), pending)
