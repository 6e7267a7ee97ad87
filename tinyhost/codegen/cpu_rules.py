"""Hand rules for targets that run loops on vector units: what to vectorise, tile, unroll and thread.

Takes a ``Kernel`` without Opts; applies Opts. Each rule is a small cost model over strides and trip counts:
lane choice compares the instructions executed per axis; register tiles reuse loads across copies and stay below the
number of registers; threads split the outermost axis of every store once the work pays for waking them.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.codegen.contraction_rules import best_tile, block_reduction, packable, tile_contraction
from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.memory import UNUSED
from tinyhost.codegen.strides import Access
from tinyhost.codegen.tiles import accumulators, length, live_outer, main_reduce, try_opt, upcast
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop import Opt, OptOps, UOp

THREAD_WORK = 65536  # innermost steps per part that pay for waking a thread
PARTS = 4  # parts of a kernel for each thread
PANEL_ROWS = 512  # rows of a part of a contraction, which packs panels of its own, where threads have several
GATED_COST = 3  # instructions of an access under a condition
HORIZONTAL_COST = 12  # instructions that combine the lanes of one vector
ROW_BYTES = 1024  # bytes between steps of a sum from which whole rows are read
GATHER_COST = 3.0  # instructions per lane of an access that is not contiguous
_HEAVY = {
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


def optimise_cpu(k: Kernel) -> None:
    """Choose and apply Opts for a CPU."""
    if not k.output_axes and not k.reduce_axes:
        return
    if k.caps.vector_bytes:
        block_reduction(k)
    work = _work(k)
    if k.caps.vector_bytes:
        _choose_lanes(k, work)
    rows = tile_contraction(k)
    if not rows and not _stream(k):
        _tile(k, work)
    _unroll(k, work)
    _thread(k, work, rows)


# *** the cost model ***
def _work(k: Kernel) -> list[Work]:
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
            GATED_COST if access is not None and access.gate is not None and u.tag != UNUSED else _HEAVY.get(u.op, 1)
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
        if n is not None and w.access is not None and _is_gather(k, w.access, r):
            trips *= n * GATHER_COST
    return trips


def _is_gather(k: Kernel, access: Access, r: UOp) -> bool:
    """Whether vectors along ``r`` need one access per lane."""
    if r not in access.node.ranges:
        return False
    gated = access.gate is not None and r in access.gate.ranges and not k.caps.masked
    return gated or access.stride(r) not in (0, 1)


# *** lanes ***
def _lane_count(k: Kernel, axis: Axis) -> int:
    """Lanes for an axis: a full register of its widest values, or the largest power of two that fits the axis."""
    size = axis.length
    widest = k.widest(axis.root)
    if size is None or not widest or axis.kind not in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE):
        return 0
    n = k.caps.vector_bytes // widest
    while n > size:
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


def _choose_lanes(k: Kernel, work: list[Work]) -> None:
    """Make LANEs of the axes that together lower the cost most; no value may depend on two of them."""
    candidates = {a.root: n for a in k.sorted_axes if (n := _lane_count(k, a))}
    operands = {u: dict.fromkeys(u.ranges) for u in packable(k)}
    plain = _cost(k, work, {}, operands)
    apart = {(a, b) for a in candidates for b in candidates
             if a is not b and not any(a in u.ranges and b in u.ranges for u in k.nodes)}
    best, chosen = plain, {}
    for first in candidates:
        lanes = {first: candidates[first]}
        if apart:
            lanes = _with_more(k, work, lanes, candidates, apart, operands)
        cost = _cost(k, work, lanes, operands)
        if cost < best and cost < 0.98 * plain:
            best, chosen = cost, lanes
    for r, n in chosen.items():
        try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[r]), n))


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
    if w.access is None or not any(_is_gather(k, w.access, a.root) for a in lanes):
        return w.weight
    return w.weight * int(prod(a.length or 1 for a in lanes))


# *** threads ***
def _thread(k: Kernel, work: list[Work], rows: int) -> None:
    """Cut the outermost axis into parts: several a thread where there is enough work, since threads take one part
    after the other and a thread that was held up takes fewer. ``rows`` of a contraction share its panels, or 0."""
    threads = k.caps.threads
    if threads < 2:
        return
    total = max((w.weight * prod(_length_in_loops(k, r) for r in w.chain) for w in work), default=0.0)
    elements = max((prod(_length_of_root(k, r) for r in w.chain) for w in work), default=0)
    parts = int(max(elements, total) // THREAD_WORK)
    axes = [a for a in k.output_axes if a.length is not None and all(a.root in e.src[1:] for e in k.ends)]
    most = min(PARTS, rows // (PANEL_ROWS * threads)) if rows else PARTS
    for n in [*range(most * threads, threads, -threads), min(threads, parts)]:
        if 2 <= n <= parts and (fitting := [a for a in axes if (a.length or 0) >= n]):
            even = [a for a in fitting if (a.length or 0) % n == 0 or (a.length or 0) >= 8 * n]
            if even or n <= threads:
                axis = min(even or fitting, key=lambda a: a.ids)
                try_opt(k, Opt(OptOps.THREAD, k.number(axis), n))
                return


def _length_of_root(k: Kernel, r: UOp) -> int:
    size = r.src[0]
    return int(size.const_value) if size.is_const else max(int(size.vmax), 1)


def _length_in_loops(k: Kernel, r: UOp) -> int:
    """Iterations that are still loops."""
    return int(
        prod(
            a.length or 1
            for a in k.axes
            if a.root is r and a.kind not in (AxisType.LANE, AxisType.UPCAST, AxisType.UNROLL)
        )
    )
