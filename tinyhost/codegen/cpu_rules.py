"""Hand rules for targets that run loops on vector units: what to tile and unroll, and in which order to decide.

Takes a ``Kernel`` without Opts; applies Opts. Each rule is a small cost model over strides and trip counts: lanes come
first (``lane_rules.py``), then contractions (``contraction_rules.py``) or the register tiles below, which reuse loads
across copies and stay below the number of registers; threads last (``thread_rules.py``).
"""
from __future__ import annotations

from tinyhost.codegen.contraction_rules import block_reduction, tile_contraction
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.lane_rules import choose_lanes
from tinyhost.codegen.thread_rules import split_over_threads
from tinyhost.codegen.tiles import accumulators, length, live_outer, main_reduce, try_opt, upcast
from tinyhost.codegen.work import Work, is_gather, work_of
from tinyhost.helpers import prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps, UOp

ROW_BYTES = 1024  # bytes between steps of a sum from which whole rows are read


def optimise_cpu(k: Kernel) -> None:
    """Choose and apply Opts for a CPU."""
    if not k.output_axes and not k.reduce_axes:
        return
    if k.caps.vector_bytes:
        block_reduction(k)
    work = work_of(k)
    if k.caps.vector_bytes:
        choose_lanes(k, work)
    rows = tile_contraction(k)
    if not rows and not _stream(k):
        _tile(k, work)
    _unroll(k, work)
    split_over_threads(k, work, rows)


# *** register tiles ***
def _tile(k: Kernel, work: list[Work]) -> None:
    """Copies for kernels that are no contraction with a vectorised output axis."""
    main = main_reduce(k)
    if main is None:
        _tile_elementwise(k, work)
        return
    body = [
        w
        for w in work
        if w.access is not None and not w.access.written and any(r in w.node.ranges for r in main.src[1:])
    ]
    tiles = _tile_axes(k, main, body)
    if not tiles:
        _tile_reduction(k, main, body)
        return
    tiles.sort(key=lambda r: (-min(length(k, r), 4), r.arg[:-1]))
    used = 1
    for r in tiles[:2]:
        if (axis := live_outer(k, r)) is not None:
            used *= upcast(k, axis, max(1, min(4, accumulators(k) // used)))


def _tile_axes(k: Kernel, main: UOp, body: list[Work]) -> list[UOp]:
    """Output RANGEs along which one load of the reduction stands still while another moves."""
    out = []
    for r in main.ranges:
        if r not in k.root_axis or k.root_axis[r].reduce:
            continue
        moving = [w for w in body if r in w.node.ranges]
        if moving and len(moving) < len(body):
            out.append(r)
    return out


def _stream(k: Kernel) -> bool:
    """Sums over an axis that memory is not contiguous along, for vectors of outputs: read whole rows, a few at a time.

    The output holds the sums so far; without that, each step would touch another page for a few vectors.
    """
    main = main_reduce(k)
    lane = next((a for a in k.of_kind(AxisType.LANE) if not a.reduce), None)
    if main is None or lane is None or lane.root not in main.ranges or len(k.reduce_axes) != 1 or k.partial is not None:
        return False
    axis = k.reduce_axes[0]
    loads = [a for a in k.accesses if not a.written and lane.root in a.node.ranges]
    row = min((abs(k.stride(a, axis) or 0) * a.dtype.itemsize for a in loads), default=0)
    steps = next((n for n in (8, 4) if (axis.length or 0) % n == 0), 0)
    if row < ROW_BYTES or not steps or (axis.length or 0) < 4 * steps:
        return False
    if try_opt(k, Opt(OptOps.GROUPTOP, 0, (axis.length or 0) // steps)) is None:
        return False
    try_opt(k, Opt(OptOps.UNROLL, 0, 0))
    return True


def _tile_reduction(k: Kernel, main: UOp, body: list[Work]) -> None:
    """No reuse to gain: copies along a vectorised output axis keep several accumulators in flight."""
    lane = next((a for a in k.of_kind(AxisType.LANE) if not a.reduce and a.root in main.ranges), None)
    if lane is not None and (axis := live_outer(k, lane.root)) is not None:
        upcast(k, axis, 4)


def _tile_elementwise(k: Kernel, work: list[Work]) -> None:
    """A few vectors per iteration, fewer when an element needs many instructions."""
    lane = next(iter(k.of_kind(AxisType.LANE)), None)
    if lane is None:
        return
    axis = live_outer(k, lane.root)
    cost = sum(w.weight for w in work if lane.root in w.node.ranges)
    if axis is not None and (want := 4 if cost <= 8 else 2 if cost <= 24 else 1) > 1:
        upcast(k, axis, want)


# *** unrolling ***
def _unroll(k: Kernel, work: list[Work]) -> None:
    """Short reduction loops are unrolled whole, long ones until an iteration has some independent work."""
    copies = int(prod(a.length or 1 for a in k.of_kind(AxisType.UPCAST)))
    for owner in k.reduces:
        inner = [
            a for a in k.reduce_axes if a.kind is AxisType.REDUCE and a.root in owner.src[1:] and a.length is not None
        ]
        if not inner or any(u is not owner and u in owner.src[0].toposort() for u in k.reduces):
            continue
        cost = sum(_instructions(k, w) for w in work if any(a.root in w.node.ranges for a in inner)) * copies
        last = inner[-1]
        size = last.length or 1
        if any(a.root is last.root for a in k.of_kind(AxisType.UNROLL)):
            continue
        if size <= 4 and cost * size <= 96:
            try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 0))
            continue
        for t in (8, 4, 2):
            lane = any(a.reduce and a.root is last.root for a in k.of_kind(AxisType.LANE))
            if size >= 2 * t and (size % t == 0 or lane and size >= 8 * t) and cost * t <= 40:
                try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), t))
                break


def _instructions(k: Kernel, w: Work) -> float:
    """What a node costs in one iteration, a gather counting once per lane."""
    lanes = [a for a in k.of_kind(AxisType.LANE) if a.root in w.node.ranges]
    if w.access is None or not any(is_gather(k, w.access, a.root) for a in lanes):
        return w.weight
    return w.weight * int(prod(a.length or 1 for a in lanes))
