"""Hand rules for targets that run loops on vector units: what to tile and unroll, and in which order to decide.

Takes a ``Kernel`` without Opts; applies Opts. Each rule is a small cost model over strides and trip counts: lanes come
first (``lane_rules.py``), then contractions (``contraction_rules.py``) or the register tiles below, which reuse loads
across copies and stay below the number of registers; threads last (``thread_rules.py``).
"""
from __future__ import annotations

from tinyhost.codegen.blocks import SMALL_STEPS
from tinyhost.codegen.contraction_rules import block_reduction, tile_contraction
from tinyhost.codegen.kernel import Axis, Kernel
from tinyhost.codegen.lane_rules import choose_lanes, gather_cost, neighbours
from tinyhost.codegen.product_rules import multiply
from tinyhost.codegen.thread_rules import split_over_threads
from tinyhost.codegen.tiles import accumulators, length, live_outer, main_reduce, try_opt, upcast
from tinyhost.codegen.window_rules import window_contraction
from tinyhost.codegen.work import Work, is_gather, work_of
from tinyhost.helpers import prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps, UOp

WINDOW = 16  # outputs and terms of a window that is written out whole
_WINDOWED = frozenset({AxisType.WEAK, AxisType.LOOP, AxisType.LANE})
ROW_BYTES = 1024  # bytes between steps of a sum from which whole rows are read


def optimise_cpu(k: Kernel) -> None:
    """Choose and apply Opts for a CPU."""
    if not k.output_axes and not k.reduce_axes:
        return
    if k.caps.vector_bytes and (rows := window_contraction(k)):
        split_over_threads(k, work_of(k), rows)
        return
    if k.caps.vector_bytes and multiply(k):
        return
    if k.caps.vector_bytes:
        block_reduction(k)
    work = work_of(k)
    if k.caps.vector_bytes:
        choose_lanes(k, work)
    rows = tile_contraction(k)
    if not rows and not _stream(k) and not _turn(k) and not _window(k):
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


def _turn(k: Kernel) -> bool:
    """Copies along the axis that is contiguous in an access whose lanes lie apart, to be turned in registers.

    Whole lines are written, and the rows that are read go on in the innermost loop.
    """
    lane = next((a for a in k.of_kind(AxisType.LANE) if not a.reduce), None)
    if lane is None or k.reduces:
        return False
    lanes = lane.length or 1
    found = [f for a in k.accesses if (f := neighbours(k, a, lane.root, lanes)) is not None]
    axis, copies = max(found, key=lambda f: f[1], default=(lane, 0))
    if not copies or try_opt(k, Opt(OptOps.UPCAST, k.number(axis), copies)) is None:
        return False
    written = min(a.dtype.itemsize for a in k.accesses if a.written) * lanes
    outer = live_outer(k, lane.root)
    if outer is not None and written < k.caps.cacheline:
        upcast(k, outer, min(k.caps.cacheline // written, k.caps.max_tile // copies))
    loops = [a for a in k.sorted_axes if a.kind in (AxisType.WEAK, AxisType.LOOP)]
    inner = [a for a in loops if a.root is axis.root]
    if inner and len(inner) < len(loops):
        order = (*(a for a in loops if a.root is not axis.root), *inner)
        try_opt(k, Opt(OptOps.REORDER, None, tuple(k.number(a) for a in order)))
    return True


def _window(k: Kernel) -> bool:
    """Short sums whose terms move with a short output axis, such as the blocks of a running sum: all outputs of the
    window at once, so that each element is read once.
    """
    main = main_reduce(k)
    if main is None or len(main.src) != 2 or not any(a.root in main.ranges for a in k.of_kind(AxisType.LANE)):
        return False
    step = k.root_axis[main.src[1]]
    moving = [a for a in k.accesses if not a.written and step.root in a.node.ranges]
    for r in main.ranges:
        axis = k.root_axis.get(r)
        if axis is None or axis.reduce or axis.split is not None or axis.kind not in _WINDOWED:
            continue
        together = all(a.stride(r) == a.stride(step.root) is not None for a in moving)
        if together and 2 <= (axis.length or 0) <= WINDOW and 2 <= (step.length or 0) <= WINDOW:
            if axis.kind is not AxisType.LANE and try_opt(k, Opt(OptOps.UPCAST, k.number(axis), 0)) is None:
                return False
            return try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(step), 0)) is not None
    return False


def _tile_reduction(k: Kernel, main: UOp, body: list[Work]) -> None:
    """No reuse to gain: copies along a vectorised output axis keep several accumulators in flight."""
    lane = next((a for a in k.of_kind(AxisType.LANE) if not a.reduce and a.root in main.ranges), None)
    if lane is not None and (axis := live_outer(k, lane.root)) is not None:
        turned = any(is_gather(k, w.access, lane.root) for w in body if w.access is not None)
        upcast(k, axis, 2 if turned else 4)


def _tile_elementwise(k: Kernel, work: list[Work]) -> None:
    """A few vectors per iteration, fewer when an element needs many instructions."""
    for lane in k.of_kind(AxisType.LANE):
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
        if not inner or any(_nested(u, owner) for u in k.reduces):
            continue
        cost = sum(_instructions(k, w) for w in work if any(a.root in w.node.ranges for a in inner)) * copies
        last = inner[-1]
        size = last.length or 1
        if any(a.root is last.root for a in k.of_kind(AxisType.UNROLL)):
            continue
        if size <= 4 and cost * size <= 96 or size in SMALL_STEPS and _fills(k, last):
            try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 0))
            continue
        for t in (8, 4, 2):
            lane = any(a.reduce and a.root is last.root for a in k.of_kind(AxisType.LANE))
            if size >= 2 * t and (size % t == 0 or lane and size >= 8 * t) and cost * t <= 40:
                try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), t))
                break


def _nested(u: UOp, owner: UOp) -> bool:
    """Whether ``u`` is reduced again in each step of ``owner``, which may also read numbers from before its loop."""
    return u is not owner and not u.ranges.keys().isdisjoint(owner.src[1:]) and u in owner.src[0].toposort()


def _fills(k: Kernel, axis: Axis) -> bool:
    """Whether the steps of a reduction are all elements between two vector lanes of an access."""
    lanes = [a.root for a in k.of_kind(AxisType.LANE)]
    return any(a.stride(axis.root) == 1 and a.stride(r) == axis.length for a in k.accesses for r in lanes)


def _instructions(k: Kernel, w: Work) -> float:
    """What a node costs in one iteration, an access whose lanes lie apart being several."""
    cost = w.weight
    for a in k.of_kind(AxisType.LANE):
        if w.access is not None and a.root in w.node.ranges and is_gather(k, w.access, a.root):
            cost *= gather_cost(k, w.access, a.root, a.length or 1)
    return cost
