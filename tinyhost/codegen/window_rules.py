"""Hand rules for contractions that read one operand at sums of indices (convolutions), or along axes too short for
vectors.

The vector operand is an image, read in place or from a window (``windows.py``) that holds its padding; positions run as
one long axis where rows follow each other at a pitch, and the other operand is broadcast. Takes a ``Kernel`` without
Opts; applies STAGE, MERGE, LANE, UPCAST, REORDER and UNROLL, or nothing where vectors along an axis of the output do
as well.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.strides import Access
from tinyhost.codegen.tiles import accumulators, length, live_outer, try_opt
from tinyhost.codegen.windows import overlaps
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps, UOp

WASTE_MOST = 2.0  # steps computed for one that is wanted
ROWS_MOST, COLS_MOST = 14, 6
RATIO_MOST = 4  # strides and dilations of a window
CACHE_PART = 0.5  # of the second-level cache that a window may fill
LOAD_COST = 0.12  # of what a load takes that multiply-adds do not hide
FAR_COST = 0.15  # cycles that a vector from the second-level cache costs beyond its load
COPY_COST = 0.0015  # a larger tile costs registers and time to compile
WINDOW_COST = 0.003  # cycles per multiply-add for each dimension of a copy
APART_COST = 4  # times as often a window is filled that has no axis along the rows
CHANNELS_FEW = 8  # of an image, too few for the rows of a register tile
READ_AGAIN = 8  # multiply-adds of a vector's elements that pay for copying them into a window
PACKED_READS = 16  # vectors that read a packed element, below which all of the operand is packed at once
UNROLLED_MOST = 80  # multiply-adds of an unrolled inner loop
SHORT = 7  # steps of an inner loop that is unrolled whole


@dataclass(frozen=True)
class Plan:
    """What runs as the vector axis: ``merged`` from the outermost to the innermost, ``pitches`` between them."""

    side: int
    groups: tuple[tuple[UOp, ...], ...]  # of the window, () where the operand is read in place
    merged: tuple[UOp, ...]
    pitches: tuple[int, ...]
    row: UOp
    rows: int
    cols: int
    cost: float  # cycles per useful multiply-add of a vector


def window_contraction(k: Kernel) -> int:
    """Tile, order and stage a contraction of the kind above; how many rows of the result share its vector operand, 0
    if the kernel is none.
    """
    if sums := _taps(k):
        return sums
    plan = _best(k)
    return 0 if plan is None or not _apply(k, plan) else length(k, plan.row)


# *** sums along rows ***
@dataclass(frozen=True)
class _Taps:
    side: int
    image: Access
    groups: list[tuple[UOp, ...]]
    column: UOp  # what both operands are contiguous along
    tap: UOp
    row: UOp


def _taps(k: Kernel) -> int:
    """Sums over positions of an image of few channels times another operand, one for each tap (the gradient of a
    convolution's weights): vectors along the rows, copies for the taps and for the other operand's results; how many
    of these there are, 0 if the kernel is none of these.
    """
    found = _find_taps(k)
    if found is None:
        return 0
    batch = next((a for a in k.reduce_axes if (a.root,) in found.groups), None)
    if batch is not None:
        size = sum(a.dtype.itemsize * a.storage.arg.size * (1 if a is found.image else ROWS_MOST / length(k, found.row))
                   for a in k.accesses if not a.written)
        parts = next((n for n in range(1, (batch.length or 1) + 1) if (batch.length or 1) % n == 0
                      and size <= n * CACHE_PART * k.caps.l2_bytes), batch.length or 1)
        if parts > 1:
            try_opt(k, Opt(OptOps.GROUPTOP, k.reduce_axes.index(batch), parts))
            found = _find_taps(k)
    if found is None or not _window_of_taps(k, found):
        return 0
    lanes = _row_lanes(k, found.column)
    taps = length(k, found.tap)
    held = (k.caps.vector_registers - taps - 1) // (taps + 1)
    rows = max(n for n in range(1, max(held, 1) + 1) if length(k, found.row) % n == 0)
    try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[found.column]), lanes))
    try_opt(k, Opt(OptOps.UPCAST, k.number(k.root_axis[found.tap]), taps))
    if rows > 1:
        try_opt(k, Opt(OptOps.UPCAST, k.number(k.root_axis[found.row]), rows))
    return length(k, found.row)


def _find_taps(k: Kernel) -> _Taps | None:
    main = _main(k) if k.partial is None else next((u for u in k.reduces if product_of(u) is not None), None)
    if main is None or len(k.reduces) != 1 or any(a.length is None for a in k.axes):
        return None
    outputs = [r for r in k.ends[0].src[1:] if r in k.root_axis]
    summed = [r for r in main.src[1:] if k.partial is None or r is not k.partial.root]
    for side in (0, 1):
        (moving, image), (still, other) = _operand(k, main, side), _operand(k, main, 1 - side)
        if image is None or other is None or still is not other.node or other.gate is not None:
            continue
        columns = [r for r in summed if other.stride(r) == 1 and image.stride(r)]
        rows = [r for r in outputs if r in still.ranges and r not in moving.ranges]
        near = [r for r in outputs if r in moving.ranges and r not in still.ranges]
        if len(columns) != 1 or not rows or not near or not _row_lanes(k, columns[0]):
            continue
        groups = _groups(k, image, summed, near)
        taps = next((g[1:] for g in groups if g[0] is columns[0]), ())
        channels = prod(length(k, r) for r in near if all(r not in g[1:] for g in groups))
        if taps and channels < CHANNELS_FEW and 1 < length(k, taps[0]) <= SHORT:
            return _Taps(side, image, groups, columns[0], taps[0], max(rows, key=lambda r: length(k, r)))
    return None


def _row_lanes(k: Kernel, column: UOp) -> int:
    """Lanes that divide the steps of a row, at least a quarter of a register; else 0."""
    lanes = most = _lanes(k)
    while lanes and length(k, column) % lanes:
        lanes //= 2
    return lanes if 4 * lanes >= most and lanes > 1 else 0


def _window_of_taps(k: Kernel, t: _Taps) -> bool:
    """Copy the image where it has padding or its columns are not contiguous; False where that is refused."""
    if t.image.gate is None and t.image.stride(t.column) == 1:
        return True
    numbers = {a.root: i for i, a in reversed(list(enumerate(k.sorted_axes)))}
    groups = tuple(tuple(numbers[r] for r in g if r in numbers) for g in t.groups)
    try_opt(k, Opt(OptOps.STAGE, t.side, tuple(g for g in groups if g)))
    return bool(k.windows)


# *** what could be done ***
def _main(k: Kernel) -> UOp | None:
    """The innermost sum of products of a kernel with one store; None if there is none, or what it reads is written."""
    if len(k.ends) != 1 or len(k.sink.src) != 1 or k.in_place:
        return None
    products = [u for u in k.reduces if product_of(u) is not None]
    return max(products, key=lambda u: len(u.src[0].ranges), default=None)


def _best(k: Kernel) -> Plan | None:
    main = _main(k)
    if main is None or any(a.length is None for a in k.axes):
        return None
    return min((p for side in (0, 1) for p in _plans(k, main, side)), key=lambda p: p.cost, default=None)


def _operand(k: Kernel, main: UOp, side: int) -> tuple[UOp, Access | None]:
    """An operand of the product and the access that moves along most of its axes, None without a stride for each."""
    product = product_of(main)
    assert product is not None
    operand = product.src[side]
    inside = operand.toposort()
    accesses = [a for a in k.accesses if not a.written and a.node in inside]
    if not accesses or any(a.linear.opaque for a in accesses):
        return operand, None
    return operand, max(accesses, key=lambda a: len(a.linear.terms))


def _plans(k: Kernel, main: UOp, side: int) -> list[Plan]:
    """Ways to run the positions of one operand."""
    (moving, access), (still, _) = _operand(k, main, side), _operand(k, main, 1 - side)
    outputs = [r for r in k.ends[0].src[1:] if r in k.root_axis]
    positions = [r for r in outputs if r in moving.ranges and r not in still.ranges]
    rows = [r for r in outputs if r in still.ranges and r not in moving.ranges]
    store = next(a for a in k.accesses if a.written)
    if access is None or not rows or not positions or any(store.stride(r) is None for r in positions):
        return []
    positions.sort(key=lambda r: -(store.stride(r) or 0))
    if store.stride(positions[-1]) != 1:
        return []
    groups = _groups(k, access, positions, [r for r in access.node.ranges if k.root_axis[r].reduce])
    row = max(rows, key=lambda r: length(k, r))
    depths = range(1, len(positions) + 1)
    return [p for d in depths if (p := _plan(k, side, moving, access, groups, positions, d, row)) is not None]


def _groups(k: Kernel, access: Access, positions: list[UOp], others: list[UOp]) -> list[tuple[UOp, ...]]:
    """RANGEs of an access that its index adds up: a position with its taps, those of ``others`` that move along with
    it, and the rest alone; in the order of memory.
    """
    terms = access.linear.terms
    taps: dict[UOp, list[UOp]] = {p: [] for p in positions}
    alone = []
    for r in others:
        if r not in terms:
            continue
        near = [p for p in positions if overlaps(access.linear, [p], [r]) and _ratio(terms[p], terms[r]) <= RATIO_MOST]
        if near:
            taps[min(near, key=lambda p: _ratio(terms[p], terms[r]))].append(r)
        else:
            alone.append((r,))
    groups = [*alone, *((p, *t) for p, t in taps.items() if p in terms)]
    return sorted(groups, key=lambda g: (g[0] in taps, -abs(terms.get(g[0], 0))))


def _ratio(a: int, b: int) -> Fraction:
    return Fraction(max(abs(a), abs(b)), min(abs(a), abs(b)))


def _plan(k: Kernel, side: int, operand: UOp, access: Access, groups: list[tuple[UOp, ...]], positions: list[UOp],
          depth: int, row: UOp) -> Plan | None:
    """The plan that merges the innermost ``depth`` positions."""
    merged = tuple(positions[-depth:])
    terms = access.linear.terms
    pitches = tuple(terms.get(a, 0) for a in merged[:-1])
    copied = operand is not access.node or access.gate is not None and any(r in access.gate.ranges for r in merged)
    needed = [g for g in groups if g[0] in merged or k.root_axis[g[0]].reduce]
    apart = [(t,) for g in groups if g not in needed for t in g[1:]]  # taps of a position that stays a loop
    sizes = [_extent(k, g, terms) for g in (*apart, *needed)]
    staged: tuple[tuple[UOp, ...], ...] = ()
    if copied or terms.get(merged[-1]) != 1 or any(p < length(k, b) for p, b in zip(pitches, merged[1:])):
        staged = (*apart, *needed)
        pitches = tuple(int(prod(sizes[len(sizes) - depth + 1 + i:])) for i in range(depth - 1))
        plain = depth == 1 and access.gate is None and all(len(g) == 1 for g in staged)
        if length(k, row) < READ_AGAIN or plain:
            return None  # too little work for a copy, or no window: an operand of a matrix product
    elif depth == 1 and len(positions) == 1:
        return None  # a matrix product
    held = prod(sizes) * prod(_phases(g, terms) for g in needed)
    if held * operand.dtype.itemsize > CACHE_PART * k.caps.l2_bytes:
        return None
    span = 1 + sum((length(k, a) - 1) * p for a, p in zip(merged, (*pitches, 1)))
    return _tiled(k, Plan(side, staged, merged, pitches, row, 1, 1, 0.0), span)


def _phases(group: tuple[UOp, ...], terms: dict[UOp, int]) -> int:
    """Rows of a window along a group, each for one remainder by the output's step."""
    unit = min((abs(terms[r]) for r in group if terms.get(r)), default=1)
    return abs(terms.get(group[0], 0)) // unit if len(group) > 1 else 1


def _extent(k: Kernel, group: tuple[UOp, ...], terms: dict[UOp, int]) -> int:
    """Elements of one phase of a window along a group."""
    unit = min((abs(terms[r]) for r in group if terms.get(r)), default=1)
    if len(group) == 1:
        return length(k, group[0])
    whole = 1 + sum(abs(terms.get(r, 0)) // unit * (length(k, r) - 1) for r in group)
    return int(ceildiv(whole, _phases(group, terms)))


def _tiled(k: Kernel, plan: Plan, span: int) -> Plan | None:
    """The plan with the register tile that wastes least over ``span`` steps."""
    lanes = _lanes(k)
    if span < lanes:
        return None
    vectors, useful, size = ceildiv(span, lanes), prod(length(k, r) for r in plan.merged) / lanes, length(k, plan.row)
    best = None
    for rows in range(2, min(ROWS_MOST, size) + 1):
        for cols in range(1, min(COLS_MOST, vectors, accumulators(k) // rows) + 1):
            if rows * cols + cols + 1 > k.caps.vector_registers:
                break
            waste = ceildiv(vectors, cols) * cols / useful * ceildiv(size, rows) * rows / size
            if waste > WASTE_MOST:
                continue
            loads = (rows + 2 * cols) / 2  # a vector from anywhere lies in two lines
            cycles = max(rows * cols / 2, loads, 4.0) + LOAD_COST * loads
            copies = WINDOW_COST * len(plan.groups) * (1 if len(plan.merged) > 1 else APART_COST)
            cycles = cycles / (rows * cols) + FAR_COST / rows
            cost = round(cycles * waste + copies + COPY_COST * rows * cols, 4)
            if best is None or (cost, -rows) < (best.cost, -best.rows):
                best = replace(plan, rows=rows, cols=cols, cost=cost)
    return best


def _lanes(k: Kernel) -> int:
    """Lanes of the results' vectors."""
    return int(k.caps.vector_bytes // k.ends[0].src[0].src[1].dtype.itemsize)


# *** doing it ***
def _apply(k: Kernel, plan: Plan) -> bool:
    """Apply a plan; False, and the kernel as before, where an action is refused."""
    numbers = {a.root: i for i, a in reversed(list(enumerate(k.sorted_axes)))}
    if plan.groups:
        groups = tuple(tuple(numbers[r] for r in g if r in numbers) for g in plan.groups)
        if try_opt(k, Opt(OptOps.STAGE, plan.side, tuple(g for g in groups if g))) is None and not k.windows:
            return False
    axis = k.root_axis[plan.merged[-1]]
    for outer, pitch in zip(reversed(plan.merged[:-1]), reversed(plan.pitches)):
        made = try_opt(k, Opt(OptOps.MERGE, k.number(k.root_axis[outer]), (k.number(axis), pitch)))
        if made is None and not k.merges:
            k.windows.clear()
            k.applied.clear()
            return False
        if made is None:
            break
        axis = made
    try_opt(k, Opt(OptOps.LANE, k.number(axis), _lanes(k)))
    for root, copies in ((axis.root, plan.cols), (plan.row, plan.rows)):
        part = live_outer(k, root)
        if part is not None and copies > 1:
            try_opt(k, Opt(OptOps.UPCAST, k.number(part), copies))
    _order(k, plan, axis.root)
    _pack(k, plan, axis)
    _unroll(k, plan)
    return True


def _order(k: Kernel, plan: Plan, along: UOp) -> None:
    """Loops that the window does not cover outermost, then the rows, then positions, then the sums; of these the taps
    innermost, unless conditions stand around an inner sum.
    """
    axes = k.sorted_axes
    loops = [i for i, a in enumerate(axes) if a.kind in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE)]
    taps = {r for g in plan.groups for r in g[1:]}

    main = _main(k)
    inner = main.src[1:] if main is not None and len(k.reduces) > 1 else ()

    def place(i: int) -> tuple[int, int]:
        root = axes[i].root
        if axes[i].reduce:
            return (5 if root in inner else 4 if root in taps else 3), i
        return (2 if root is along else 1 if root is plan.row else 0), i
    try_opt(k, Opt(OptOps.REORDER, None, tuple(sorted(loops, key=place))))


def _pack(k: Kernel, plan: Plan, merged: Axis) -> None:
    """Pack the broadcast operand where each step of the innermost loop would read other lines for its rows."""
    main = _main(k)
    assert main is not None
    operand, access = _operand(k, main, 1 - plan.side)
    order = [a for a in k.order or () if a.reduce and a.root in operand.ranges]
    if access is None or not order:
        return
    line = k.caps.cacheline // access.dtype.itemsize
    if abs(access.stride(order[-1].root) or line) < line:
        return
    axes = k.sorted_axes
    rows = [a for a in axes if a.root is plan.row]
    inner = [a for a in rows if a.kind is AxisType.UPCAST]
    outer = [a for a in rows if a.kind is not AxisType.UPCAST]
    often = ceildiv(length(k, merged.root), _lanes(k)) >= PACKED_READS
    panel = [*order, *inner] if often else [*outer, *order, *inner]
    if operand.ranges.keys() - {a.root for a in panel} - ({a.root for a in outer}):
        return
    try_opt(k, Opt(OptOps.STAGE, 1 - plan.side, tuple(axes.index(a) for a in panel)))


def _unroll(k: Kernel, plan: Plan) -> None:
    """A short innermost loop whole."""
    last = next((a for a in reversed(k.order or ()) if a.reduce), None)
    steps = 1 if last is None or last.length is None else last.length
    if last is not None and 1 < steps <= SHORT and plan.rows * plan.cols * steps <= UNROLLED_MOST:
        try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 0))
