"""Hand rules for targets that run loops on vector units: what to vectorise, tile, unroll and thread.

Takes a ``Kernel`` without Opts; applies Opts. Each rule is a small cost model over strides and trip counts:
lane choice compares the instructions executed per axis; register tiles reuse loads across copies and stay below the
number of registers; threads split the outermost axis of every store once the work pays for waking them.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.codegen.kernel import Axis, Kernel
from tinyhost.codegen.opt import apply_opt
from tinyhost.codegen.strides import Access
from tinyhost.errors import KernelOptError
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop import Opt, OptOps, UOp

THREAD_WORK = 65536  # innermost steps per thread that pay for waking it
GATHER_COST = 1.5  # instructions per lane of an access that is not contiguous
_HEAVY = {Ops.EXP2: 12, Ops.LOG2: 14, Ops.SIN: 20, Ops.POW: 30, Ops.SQRT: 6, Ops.RECIPROCAL: 4, Ops.FDIV: 4, Ops.CDIV: 8,
          Ops.CMOD: 10, Ops.FLOORDIV: 8, Ops.FLOORMOD: 10, Ops.THREEFRY: 120}
_COUNTED = GroupOp.ALU | {Ops.CAST, Ops.BITCAST, Ops.INDEX, Ops.STORE}


@dataclass
class _Work:
    """A node of the kernel as the cost model sees it."""

    node: UOp
    chain: dict[UOp, None]  # roots of the loops it runs in
    weight: float
    access: Access | None


def optimise_cpu(k: Kernel) -> None:
    """Choose and apply Opts for a CPU."""
    if not k.output_axes and not k.reduce_axes:
        return
    work = _work(k)
    if k.caps.vector_bytes:
        _choose_lanes(k, work)
    _tile(k, work)
    _unroll(k, work)
    _thread(k, work)


# *** the cost model ***
def _work(k: Kernel) -> list[_Work]:
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
        out.append(_Work(u, chain, float(_HEAVY.get(u.op, 1)), access))
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


def _length(k: Kernel, r: UOp) -> int:
    size = k.root_axis[r].size if r in k.root_axis else 1
    return size if isinstance(size, int) else max(int(size.vmax), 1)


def _cost(k: Kernel, work: list[_Work], lanes: dict[UOp, int]) -> float:
    """Instructions executed when the axes in ``lanes`` (root: lanes) are vectors."""
    total = 0.0
    for w in work:
        trips = w.weight
        for r in w.chain:
            trips *= _length(k, r)
        for r, n in lanes.items():
            if r in w.chain:
                size = _length(k, r)
                trips *= ceildiv(size, n) / size
                if w.access is not None and r in w.access.node.ranges:
                    gated = w.access.gate is not None and r in w.access.gate.ranges and not k.caps.masked
                    if w.access.stride(r) not in (0, 1) or gated:
                        trips *= n * GATHER_COST
        total += trips
    for u in k.reduces:
        if any(r in lanes for r in u.src[1:]):
            total += 8 * prod(_length(k, r) for r in u.ranges)
    return total


# *** lanes ***
def _widest(k: Kernel, r: UOp) -> int:
    """Bytes of the largest element among the values that move along a RANGE."""
    return max((u.dtype.itemsize for u in k.nodes if r in u.ranges and u.op is not Ops.RANGE and not u.dtype.is_weak
                and u.dtype.itemsize), default=0)


def _lane_count(k: Kernel, axis: Axis) -> int:
    """Lanes for an axis: a full register of its widest values, or the largest power of two that fits the axis."""
    size = axis.length
    widest = _widest(k, axis.root)
    if size is None or not widest or axis.kind not in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE):
        return 0
    n = k.caps.vector_bytes // widest
    while n > size:
        n //= 2
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


def _choose_lanes(k: Kernel, work: list[_Work]) -> None:
    """Make the axis a LANE that lowers the cost most; then others that share no value with it."""
    lanes: dict[UOp, int] = {}
    candidates = {a.root: n for a in k.sorted_axes if (n := _lane_count(k, a))}
    best = _cost(k, work, lanes)
    while candidates:
        costs = {r: _cost(k, work, {**lanes, r: n}) for r, n in candidates.items()}
        r = min(costs, key=lambda r: (costs[r], r.arg[:-1]))
        if costs[r] >= 0.98 * best:
            return
        best = costs[r]
        lanes[r] = candidates.pop(r)
        try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[r]), lanes[r]))
        candidates = {c: n for c, n in candidates.items() if not any(c in u.ranges and r in u.ranges for u in k.nodes)}


def try_opt(k: Kernel, opt: Opt) -> Axis | None:
    """Apply an Opt unless it is refused."""
    try:
        return apply_opt(k, opt)
    except KernelOptError:
        return None


# *** register tiles ***
def _main_reduce(k: Kernel, work: list[_Work]) -> UOp | None:
    """The reduction with the most work."""
    def trips(u: UOp) -> int:
        return int(prod(_length(k, r) for r in (*u.src[0].ranges, *u.src[1:])))
    return max(k.reduces, key=trips, default=None)


def _live_outer(k: Kernel, root: UOp) -> Axis | None:
    """The part of a root's axis that is still a loop over an output."""
    parts = [a for a in k.output_axes if a.root is root and a.length is not None]
    return max(parts, key=lambda a: a.length or 0, default=None)


def _tile(k: Kernel, work: list[_Work]) -> None:
    main = _main_reduce(k, work)
    budget = max(1, min(k.caps.vector_registers - 4, k.caps.max_tile))
    if main is None:
        _tile_elementwise(k, work)
        return
    body = [w for w in work if w.access is not None and not w.access.written and any(r in w.node.ranges for r in main.src[1:])]
    lanes = {a.root: a for a in k.of_kind(AxisType.LANE)}
    tiles = _tile_axes(k, main, body)
    if not tiles:
        _tile_reduction(k, main, body)
        return
    lane_root = next((r for r in tiles if r in lanes), None)
    rows = [r for r in tiles if r is not lane_root]
    rows.sort(key=lambda r: (-min(_length(k, r), 8), r.arg[:-1]))
    wide = k.caps.vector_registers >= 32
    used = 1
    if rows and (axis := _live_outer(k, rows[0])) is not None:
        want = 4 if lane_root is None else 8 if wide else 6
        used *= _upcast(k, axis, min(want, budget))
    second = lane_root if lane_root is not None else rows[1] if len(rows) > 1 else None
    if second is not None and (axis := _live_outer(k, second)) is not None:
        want = 2 if used >= 6 else 4 if used >= 2 and not (used > 3 and not wide) else 4
        used *= _upcast(k, axis, max(1, min(want, budget // used)))


def _tile_axes(k: Kernel, main: UOp, body: list[_Work]) -> list[UOp]:
    """Output RANGEs along which one load of the reduction stands still while another moves."""
    out = []
    for r in main.ranges:
        if r not in k.root_axis or k.root_axis[r].reduce:
            continue
        moving = [w for w in body if r in w.node.ranges]
        if moving and len(moving) < len(body):
            out.append(r)
    return out


def _tile_reduction(k: Kernel, main: UOp, body: list[_Work]) -> None:
    """No reuse to gain: copies along a vectorised output axis keep several accumulators in flight."""
    lane = next((a for a in k.of_kind(AxisType.LANE) if not a.reduce and a.root in main.ranges), None)
    if lane is not None and (axis := _live_outer(k, lane.root)) is not None:
        _upcast(k, axis, 4)


def _tile_elementwise(k: Kernel, work: list[_Work]) -> None:
    """A few vectors per iteration, fewer when an element needs many instructions."""
    lane = next(iter(k.of_kind(AxisType.LANE)), None)
    if lane is None:
        return
    axis = _live_outer(k, lane.root)
    cost = sum(w.weight for w in work if lane.root in w.node.ranges)
    if axis is not None and (want := 4 if cost <= 8 else 2 if cost <= 24 else 1) > 1:
        _upcast(k, axis, want)


def _upcast(k: Kernel, axis: Axis, want: int) -> int:
    """UPCAST by the amount near ``want`` that wastes least; the number of copies made."""
    size = axis.length or 1
    best, score = 1, 0.0
    for t in range(min(want, size), max(1, want // 3), -1):
        waste = ceildiv(size, t) * t / size
        if waste > 1 and k.in_place:
            continue
        s = t / (t + 2) / waste
        if s > score * 1.001:
            best, score = t, s
    if best < 2 or try_opt(k, Opt(OptOps.UPCAST, k.number(axis), best)) is None:
        return 1
    return best


# *** unrolling ***
def _unroll(k: Kernel, work: list[_Work]) -> None:
    """Short reduction loops are unrolled whole, long ones until an iteration has some independent work."""
    copies = int(prod(a.length or 1 for a in k.of_kind(AxisType.UPCAST)))
    for owner in k.reduces:
        inner = [a for a in k.reduce_axes if a.kind is AxisType.REDUCE and a.root in owner.src[1:] and a.length is not None]
        if not inner:
            continue
        cost = sum(w.weight for w in work if any(a.root in w.node.ranges for a in inner)) * copies
        last = inner[-1]
        size = last.length or 1
        if size <= 4 and cost * size <= 96:
            try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 0))
            continue
        for t in (8, 4, 2):
            lane = any(a.reduce and a.root is last.root for a in k.of_kind(AxisType.LANE))
            if size >= 2 * t and (size % t == 0 or lane and size >= 8 * t) and cost * t <= 40:
                try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), t))
                break


# *** threads ***
def _thread(k: Kernel, work: list[_Work]) -> None:
    if k.caps.threads < 2:
        return
    total = max((w.weight * prod(_length_in_loops(k, r) for r in w.chain) for w in work), default=0.0)
    elements = max((prod(_length_of_root(k, r) for r in w.chain) for w in work), default=0)
    threads = int(min(k.caps.threads, max(elements, total) // THREAD_WORK))
    if threads < 2:
        return
    axes = [a for a in k.output_axes if a.length is not None and all(a.root in e.src[1:] for e in k.ends)]
    axes = [a for a in axes if (a.length or 0) >= threads]
    if not axes:
        return
    even = [a for a in axes if (a.length or 0) % threads == 0 or (a.length or 0) >= 8 * threads]
    axis = min(even or axes, key=lambda a: a.ids)
    try_opt(k, Opt(OptOps.THREAD, k.number(axis), threads))


def _length_of_root(k: Kernel, r: UOp) -> int:
    size = r.src[0]
    return int(size.const_value) if size.is_const else max(int(size.vmax), 1)


def _length_in_loops(k: Kernel, r: UOp) -> int:
    """Iterations that are still loops."""
    return int(prod(a.length or 1 for a in k.axes if a.root is r and a.kind not in (AxisType.LANE, AxisType.UPCAST, AxisType.UNROLL)))
