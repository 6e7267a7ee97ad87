"""Which axes become vector lanes: the ones whose vectors save most instructions.

Takes a ``Kernel`` and its ``Work``; applies LANE. Every candidate is a cost over strides and trip counts: contiguous
accesses cost one instruction per vector, others one per lane, unless the operand can be packed.
"""
from __future__ import annotations

import math

from tinyhost.codegen.blocks import SMALL_STEPS
from tinyhost.codegen.contraction_rules import best_tile, packable
from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.strides import Access
from tinyhost.codegen.tiles import length, main_reduce, try_opt
from tinyhost.codegen.work import Work, is_gather
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop import Opt, OptOps, UOp

HORIZONTAL_COST = 12  # instructions that combine the lanes of one vector
GATHER_COST = 3.0  # instructions per lane of an access that is not contiguous


# *** the cost model ***
def _cost(k: Kernel, work: list[Work], lanes: dict[UOp, int], operands: dict[UOp, dict[UOp, None]]) -> float:
    """Instructions executed when the axes in ``lanes`` (root: lanes) are vectors.

    An access of ``operands`` that is not contiguous can be packed once per step of its own ranges.
    """
    total = 0.0
    for w in work:
        direct = w.weight * _trips(k, w, w.chain, lanes)
        if w.access is not None and w.node in operands and any(r in w.chain for r in lanes):
            inside = {r: n for r, n in lanes.items() if r in w.chain}
            reads = _trips(k, Work(w.node, w.chain, 1.0, None), w.chain, inside)
            direct = min(direct, w.weight * _trips(k, w, operands[w.node], lanes) + reads)
        total += direct
    for u in k.reduces:
        if any(r in lanes for r in u.src[1:]):
            total += HORIZONTAL_COST * prod(length(k, r) for r in u.ranges)
    return total * _tile_factor(k, lanes)


def _tile_factor(k: Kernel, lanes: dict[UOp, int]) -> float:
    """How much slower than a full register tile a contraction runs with these lanes."""
    main = main_reduce(k)
    product = None if main is None else product_of(main)
    if main is None or product is None:
        return 1.0
    for r, n in lanes.items():
        if r in main.ranges and not k.root_axis[r].reduce:
            tile = best_tile(k, main, product, r, n)
            return 1.0 if tile is None or tile.row is None else tile.cycles / 0.5
    return 1.0


def _trips(k: Kernel, w: Work, around: dict[UOp, None], lanes: dict[UOp, int]) -> float:
    """How often a node runs inside the loops ``around``, one lane of a gather counting as a run."""
    trips = 1.0
    for r in around:
        size = length(k, r)
        n = lanes.get(r)
        trips *= size if n is None else ceildiv(size, n)
        if n is not None and w.access is not None and is_gather(k, w.access, r):
            trips *= gather_cost(k, w.access, r, n)
    return trips


def gather_cost(k: Kernel, access: Access, r: UOp, n: int) -> float:
    """Instructions for ``n`` lanes along ``r`` that are not contiguous."""
    step = access.stride(r) or 0
    if step == -1 and access.gate is None and not access.written and _turns(k, access, n):
        return 2  # read forwards, then reversed
    if (found := neighbours(k, access, r, n)) is not None:  # per vector a shuffle and a blend in each round
        return 1 + 1.5 * math.ceil(math.log2(found[1])) + (found[1] < n)
    if step in SMALL_STEPS and access.gate is None and not access.written and _turns(k, access, n):
        copies = max([length(k, x) for x in access.node.ranges if access.stride(x) == 1], default=1)
        return step * (1 + 1.5 * math.ceil(math.log2(step))) / min(copies, step) + 1
    if access.gate is not None and any(u.op is Ops.INDEX and r in u.ranges for u in access.node.src[1].toposort()):
        return n  # indices that were loaded as a vector are made safe as one, which leaves a plain load per lane
    return n * GATHER_COST


def neighbours(k: Kernel, access: Access, r: UOp, n: int) -> tuple[Axis, int] | None:
    """The output axis along which an ungated access whose ``n`` lanes along ``r`` lie apart is contiguous, and how
    many copies along it are turned in registers: ``n`` rows of a square, or all elements between two lanes.
    """
    step = access.stride(r) or 0
    if access.gate is not None or step in (0, 1) or not _turns(k, access, n):
        return None
    for x in access.node.ranges:
        axis = k.root_axis.get(x)
        if axis is None or axis.reduce or access.stride(x) != 1:
            continue
        size = axis.length or 0
        if size >= n and not access.written and not (k.in_place and size % n):
            return axis, n
        if size == step and step in SMALL_STEPS:
            return axis, step
    return None


def _turns(k: Kernel, access: Access, n: int) -> bool:
    """Whether lanes of a vector of ``n`` elements change places in a few instructions."""
    size = access.dtype.itemsize
    return n <= k.caps.max_tile and k.renderer.supports(Ops.INDEX, access.dtype, n) and (size >= 4 or n * size <= 16)


# *** lanes ***
def _lane_count(k: Kernel, axis: Axis) -> int:
    """Lanes for an axis: a full register of its widest values, or the largest power of two that fits the axis."""
    size = axis.length
    widest = k.widest(axis.root)
    if size is None or not widest or axis.kind not in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE):
        return 0
    n = k.caps.vector_bytes // widest
    while n > 2 and (n > size or not _vectorises(k, axis.root, n)):
        n //= 2
    if axis.reduce and size % n:
        n = min(n, k.caps.vector_bytes // 4)  # the last block is masked by int32 lane numbers
    if k.in_place and not axis.reduce:
        while n > 1 and size % n:
            n //= 2
    return n if n >= 2 and _vectorises(k, axis.root, n) else 0


def _vectorises(k: Kernel, r: UOp, n: int) -> bool:
    """Whether the arithmetic along ``r`` mostly exists in vectors of ``n`` lanes."""
    r_nodes = [u for u in k.nodes if r in u.ranges and (u.op in GroupOp.ALU) and not u.dtype.is_weak
               and not u.src[-1].dtype.is_weak]
    lacking = sum(not k.renderer.supports(u.op, u.src[-1].dtype, n) for u in r_nodes if u.op in k.renderer.code_for_op)
    return 2 * lacking <= len(r_nodes)


def choose_lanes(k: Kernel, work: list[Work]) -> None:
    """Make LANEs of the axes that together lower the cost most; no value may depend on two of them."""
    candidates = {a.root: n for a in k.sorted_axes if (n := _lane_count(k, a))}
    operands = {u: dict.fromkeys(u.ranges) for u in packable(k)}
    plain = _cost(k, work, {}, operands)
    apart = {(a, b) for a in candidates for b in candidates
             if a is not b and not any(a in u.ranges and b in u.ranges for u in k.nodes)}
    best, chosen = plain, {}
    for first, count in [(r, n) for r, most in candidates.items() for n in _counts(k, r, most)]:
        lanes = {first: count}
        if apart:
            lanes = _with_more(k, work, lanes, candidates, apart, operands)
        cost = _cost(k, work, lanes, operands)
        if cost < best and cost < 0.98 * plain:
            best, chosen = cost, lanes
    for r, n in chosen.items():
        try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[r]), n))


def _counts(k: Kernel, r: UOp, most: int) -> list[int]:
    """Lanes to try for ``r``: all that a register holds, and what 16 bytes hold where narrow elements are turned."""
    sizes = {a.dtype.itemsize for a in k.accesses if a.stride(r) not in (0, 1) and a.dtype.itemsize < 4}
    return [most, *sorted({16 // size for size in sizes if 16 // size < most}, reverse=True)]


def _with_more(
    k: Kernel,
    work: list[Work],
    lanes: dict[UOp, int],
    candidates: dict[UOp, int],
    apart: set[tuple[UOp, UOp]],
    operands: dict[UOp, dict[UOp, None]],
) -> dict[UOp, int]:
    """``lanes`` and every further axis that shares no value with them and lowers the cost."""
    for r, n in candidates.items():
        if all((r, x) in apart for x in lanes):
            more = {**lanes, r: n}
            if _cost(k, work, more, operands) < _cost(k, work, lanes, operands):
                lanes = more
    return lanes
