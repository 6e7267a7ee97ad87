"""Hand rules for matrix products: one sum of products of two operands that are read directly, with constant strides.

Takes a ``Kernel`` without Opts; tries each axis of the output as the vector axis, asks ``product_costs.py`` for the
best plan and applies it as Opts, or leaves the kernel alone: windows of images, gathers and sums inside of sums have
rules of their own.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.product_costs import LONG_BLOCK, Order, Plan, Shape, Side, best_plan, dot_cycles, dot_tile
from tinyhost.codegen.strides import Access
from tinyhost.codegen.thread_rules import split_product
from tinyhost.codegen.tiles import length, live_outer, try_opt
from tinyhost.codegen.windows import overlaps
from tinyhost.helpers import prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt, OptOps, UOp

SHORTEST, LONGEST = 16, 64  # steps of a block of a sum whose results so far are in the output


@dataclass(frozen=True)
class Product:
    """One way to see a kernel as a product: ``lane`` moves along operand ``side``, ``row`` along the other."""

    main: UOp
    side: int
    lane: UOp
    row: UOp
    both: list[UOp]  # axes of both operands
    accesses: tuple[Access, Access]
    cut: UOp  # the innermost axis of the sum
    shape: Shape

    @property
    def moving(self) -> Access:
        """The vector operand."""
        return self.accesses[self.side]

    @property
    def still(self) -> Access:
        """The operand that is broadcast."""
        return self.accesses[1 - self.side]


def multiply(k: Kernel) -> bool:
    """Tile, order, pack and thread a matrix product; False if the kernel is none, or is better summed along vectors."""
    views = list(_views(k))
    found = [(p, plan) for p in views if (plan := best_plan(p.shape, k.caps)) is not None]
    if not found:
        return False
    p, plan = min(found, key=lambda f: f[1].cycles)
    dot = min(views, key=lambda v: dot_cycles(v.shape, k.caps))
    return _dot(k, dot) if dot_cycles(dot.shape, k.caps) < plan.cycles else _apply(k, p, plan)


# *** what the kernel is ***
def _views(k: Kernel) -> Iterator[Product]:
    """Ways to see the kernel as a product."""
    if len(k.reduces) != 1 or len(k.ends) != 1 or len(k.sink.src) != 1 or any(a.length is None for a in k.axes):
        return
    main = k.reduces[0]
    product = product_of(main)
    stores = [a for a in k.accesses if a.written]
    if product is None or main.src[0] is not product or len(stores) != 1 or stores[0].linear.opaque:
        return
    accesses = tuple(_operand(k, u) for u in product.src)
    a, b = accesses
    outputs = tuple(r for r in k.ends[0].src[1:] if r in k.root_axis and length(k, r) > 1)
    if a is None or b is None or any(r not in main.ranges and r not in stores[0].node.ranges for r in outputs):
        return
    for side in (0, 1):
        moving, still = (a, b) if side == 0 else (b, a)
        lanes = [r for r in outputs if r in moving.node.ranges and r not in still.node.ranges]
        rows = [r for r in outputs if r in still.node.ranges and r not in moving.node.ranges]
        both = [r for r in outputs if r not in lanes and r not in rows]
        for lane in lanes:
            count = _lanes(k, main, lane)
            for row in rows if count else ():
                cut = min(main.src[1:], key=lambda r: abs(still.stride(r) or 0) or 1 << 40)
                shape = _shape(k, main, moving, still, stores[0], lane, row, lanes, rows, both, count)
                shape = replace(shape, cuts=_cuts(k, main, stores[0], length(k, cut)))
                yield Product(main, side, lane, row, both, (a, b), cut, shape)


def _operand(k: Kernel, operand: UOp) -> Access | None:
    """The one access that an operand of the product reads, None where it is no plain load."""
    inside = operand.toposort()
    found = [a for a in k.accesses if not a.written and a.node in inside]
    if len(found) != 1 or found[0].gate is not None or found[0].linear.opaque:
        return None
    outputs, reduced = ([r for r in k.root_axis if k.root_axis[r].reduce is kind] for kind in (False, True))
    return None if overlaps(found[0].linear, outputs, reduced) else found[0]


def _lanes(k: Kernel, main: UOp, lane: UOp) -> int:
    """Lanes of a vector along an axis, 0 where the arithmetic of the sum has no vectors of two or more."""
    widest = k.widest(lane)
    n = k.caps.vector_bytes // widest if widest else 0
    even = k.in_place and k.partial is None
    while n > 1 and (n > length(k, lane) or even and length(k, lane) % n
                     or not all(k.renderer.supports(op, main.dtype, n) for op in (Ops.ADD, Ops.MUL))):
        n //= 2
    return n if n > 1 else 0


def _shape(k: Kernel, main: UOp, moving: Access, still: Access, store: Access, lane: UOp, row: UOp, lanes: list[UOp],
           rows: list[UOp], both: list[UOp], count: int) -> Shape:
    steps = [r for r in main.src[1:]]

    def side(access: Access, across: UOp) -> Side:
        size = access.dtype.itemsize
        along = min((abs(s) for r in steps if (s := access.stride(r) or 0)), default=0)
        return Side(size, abs(access.stride(across) or 0) * size, along * size)
    size = store.dtype.itemsize
    return Shape(
        int(prod(length(k, r) for r in rows)),
        int(prod(length(k, r) for r in lanes)),
        int(prod(length(k, r) for r in steps)),
        int(prod(length(k, r) for r in both)),
        count,
        side(moving, lane),
        side(still, row),
        abs(store.stride(row) or 0) * size,
        store.stride(lane) == 1,
        k.in_place,
    )


def _cuts(k: Kernel, main: UOp, store: Access, steps: int) -> tuple[int, ...]:
    """Parts of an axis of the sum, where the output can hold the sums so far."""
    sums = k.ends[0].src[0].src[1] is main and main.dtype is store.dtype and not k.in_place
    if not sums or k.caps.grid:
        return ()
    blocks = [n for n in range(steps // 2, SHORTEST - 1, -1) if steps % n == 0]
    short, long = [n for n in blocks if n <= LONGEST], [n for n in blocks if LONG_BLOCK <= n <= 2 * LONG_BLOCK]
    return tuple(steps // n for n in (*long[:1], *short[:1], *short[-1:]))


# *** doing it ***
def _dot(k: Kernel, p: Product) -> bool:
    """Vectors along the sum, for a tile of results; what is read again stays in, what is larger goes around."""
    step = next(r for r in p.main.src[1:] if p.still.stride(r) == 1)
    lanes = min(_lanes(k, p.main, step), k.caps.vector_bytes // 4)
    if lanes < 2 or try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[step]), lanes)) is None:
        return False
    rows, cols = dot_tile(p.shape, k.caps)
    _copy(k, (p.row, rows), (p.lane, cols))
    order = Order.ROWS if p.shape.rows > p.shape.columns else Order.COLUMNS
    split_product(k, p.both, p.lane, p.row, p.shape, Plan(order, rows, cols, 1, False, False, 0.0))
    _order(k, p, order)
    return True


def _apply(k: Kernel, p: Product, plan: Plan) -> bool:
    if plan.parts > 1:
        axis = k.root_axis[p.cut]
        if try_opt(k, Opt(OptOps.GROUPTOP, k.reduce_axes.index(axis), plan.parts)) is None:
            return False
        new = next(v for v in _views(k) if v.lane is p.lane and v.row is p.row)  # the action rewrote the graph
        p = replace(new, shape=p.shape)
    if try_opt(k, Opt(OptOps.LANE, k.number(k.root_axis[p.lane]), p.shape.lanes)) is None:
        return False
    _copy(k, (p.row, plan.rows), (p.lane, plan.cols))
    split_product(k, p.both, p.lane, p.row, p.shape, plan)
    _order(k, p, plan.order)
    if plan.pack_moving:
        _pack(k, p, p.side, plan.order is Order.ROWS)
    if plan.pack_still:
        _pack(k, p, 1 - p.side, plan.order is Order.COLUMNS)
    if not p.shape.contiguous:
        try_opt(k, Opt(OptOps.STAGE, 2, ()))
    return True


def _copy(k: Kernel, *tile: tuple[UOp, int]) -> None:
    """Copies of the results along each axis."""
    for root, copies in tile:
        axis = live_outer(k, root)
        if axis is not None and copies > 1:
            try_opt(k, Opt(OptOps.UPCAST, k.number(axis), copies))


def _order(k: Kernel, p: Product, order: Order) -> None:
    """Loops of both operands outermost, then columns and rows as the plan says, the sum innermost."""
    axes = k.sorted_axes
    loops = [a for a in axes if a.kind in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE, AxisType.THREAD)]
    columns, rows = (6, 4) if order is Order.ROWS else (4, 6)

    def place(a: Axis) -> int:
        if a is k.partial:
            return 1 if order is Order.STREAM else 5
        if a.kind is AxisType.THREAD:
            return 0
        if a.reduce:
            return 7
        return 2 if a.root in p.both else columns if a.root in p.moving.node.ranges else rows

    def near(a: Axis) -> int:
        return -abs(k.stride(p.still, a) or 0) if a.reduce else 0
    found = sorted(loops, key=lambda a: (place(a), near(a), axes.index(a)))
    if len(found) > 1:
        try_opt(k, Opt(OptOps.REORDER, None, tuple(axes.index(a) for a in found)))


def _pack(k: Kernel, p: Product, side: int, whole: bool) -> None:
    """Stage an operand: all steps of the sum for one tile, or for all tiles (``whole``)."""
    operand, axes = p.accesses[side].node, k.sorted_axes
    mine = [a for a in axes if a.root in operand.ranges and a.root not in p.both and a is not k.partial]
    tiles = [a for a in mine if whole and not a.reduce and a.kind in (AxisType.WEAK, AxisType.LOOP)]
    steps = [a for a in mine if a.kind is AxisType.REDUCE]
    if k.order is not None:
        steps.sort(key=k.order.index)
    copies = [a for a in mine if a.kind is AxisType.UPCAST]
    lanes = [a for a in mine if a.kind is AxisType.LANE]
    try_opt(k, Opt(OptOps.STAGE, side, tuple(axes.index(a) for a in (*tiles, *steps, *copies, *lanes))))
