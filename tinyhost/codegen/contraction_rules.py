"""Hand rules for sums of products that are neither plain matrix products (``product_rules.py``) nor windows of images
(``window_rules.py``): gathers, conditions, other sums inside. Their vector axis is an axis of the output.

The vector axis belongs to one operand, the rows to the other. A register tile of rows by vectors reuses each loaded
vector for all rows and each broadcast scalar for all vectors. The loop over rows is put inside the loop over vectors,
and the vector operand is packed into a panel [reduction][vectors] once per step of the outer loop, where enough rows
read it again.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.tiles import accumulators, length, live_outer, main_reduce, try_opt
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt, OptOps, UOp

SHORT_LOOP = 12
PACK_REUSE = 4  # row tiles that must read a panel to pay for packing it
PANEL_READ = 0.3  # cycles a vector of a panel costs beyond the load, from the second-level cache
FAR = 4096  # bytes between two steps beyond which each is a page of its own
ROWS_MOST, COLS_MOST, TILE_MOST = 8, 4, 16


@dataclass(frozen=True)
class Tile:
    """Copies of a result: ``rows`` along one axis by ``cols`` vectors, and the cycles a multiply-add of it takes."""

    row: UOp | None
    rows: int
    cols: int
    cycles: float


@dataclass(frozen=True)
class _Contraction:
    main: UOp
    operand: UOp  # what moves along the vector axis
    side: int  # its position in the product
    lane: UOp
    tile: Tile


def block_reduction(k: Kernel) -> None:
    """Cut a reduction whose operands do not stay in the second-level cache into parts with their sums in the output."""
    main = main_reduce(k)
    if main is None or product_of(main) is None:
        return
    axes = [a for a in k.reduce_axes if a.root in main.src[1:]]
    steps = prod(a.length or 1 for a in axes)
    parts = -(-steps * 4 * k.caps.vector_bytes // k.caps.l2_bytes)
    if parts < 2:
        return
    for a in axes:
        size = a.length or 1
        amount = next((d for d in range(parts, size // 2 + 1) if size % d == 0), None)
        if amount is not None and try_opt(k, Opt(OptOps.GROUPTOP, k.reduce_axes.index(a), amount)) is not None:
            return


def packable(k: Kernel) -> list[UOp]:
    """Accesses that stand still along some output axis of a product's sum, so that a panel of them is read again."""
    main = main_reduce(k)
    product = None if main is None else product_of(main)
    if main is None or product is None:
        return []
    out = []
    for operand in product.src:
        if not _fits(k, main, operand):
            continue
        still = [r for r in _outputs(k, main) if r not in operand.ranges and length(k, r) >= 8 * PACK_REUSE]
        if still:
            out += [u for u in operand.toposort() if u.op is Ops.INDEX]
    return out


def _outputs(k: Kernel, main: UOp) -> list[UOp]:
    """Output RANGEs that a reduction depends on."""
    return [r for r in main.ranges if r in k.root_axis and not k.root_axis[r].reduce]


def _fits(k: Kernel, main: UOp, operand: UOp) -> bool:
    """Whether a panel of two vectors fits half of the second-level cache."""
    steps = prod(a.length or 1 for a in k.axes if a.reduce and a is not k.partial and a.root in operand.ranges)
    return bool(4 * k.caps.vector_bytes * steps <= k.caps.l2_bytes)


def _find(k: Kernel) -> _Contraction | None:
    main = main_reduce(k)
    product = None if main is None else product_of(main)
    if main is None or product is None:
        return None
    lane = next((a.root for a in k.of_kind(AxisType.LANE) if not a.reduce and a.root in main.ranges), None)
    a, b = product.src
    if lane is None or (lane in a.ranges) == (lane in b.ranges):
        return None
    side = 0 if lane in a.ranges else 1
    moving, still = (b, a) if side == 0 else (a, b)
    lanes = next(a.length or 1 for a in k.of_kind(AxisType.LANE) if a.root is lane)
    tile = best_tile(k, main, product, lane, lanes)
    return None if tile is None or tile.row is None else _Contraction(main, product.src[side], side, lane, tile)


def best_tile(k: Kernel, main: UOp, product: UOp, lane: UOp, lanes: int) -> Tile | None:
    """The register tile that takes fewest cycles per useful multiply-add, for a vector axis of one operand.

    Two multiply-adds and two loads of a register start per cycle, and a sum needs eight in flight.
    """
    a, b = product.src
    if (lane in a.ranges) == (lane in b.ranges):
        return None
    moving, still = (b, a) if lane in a.ranges else (a, b)
    near = [x for x in k.accesses if x.node in moving.toposort()]
    budget = min(accumulators(k), TILE_MOST)
    blocks = ceildiv(length(k, lane), lanes)
    most_cols = min(COLS_MOST, blocks, _panel_cols(k, still, lane, lanes))
    best = Tile(None, 1, 1, 4.0)
    score: tuple[float, int] = (4.0, 0)
    for row in _outputs(k, main):
        if row not in moving.ranges or row in still.ranges or length(k, row) < 2:
            continue
        far = min((abs(x.stride(row) or 1 << 30) for x in near), default=0)
        for rows in range(1, min(ROWS_MOST, length(k, row)) + 1):
            for cols in range(1, min(most_cols, budget // rows) + 1):
                waste = ceildiv(length(k, row), rows) * rows / length(k, row) * ceildiv(blocks, cols) * cols / blocks
                if waste > 1 and k.in_place:
                    continue
                cycles = max(rows * cols / 2, (rows + cols) / 2, 4.0) / (rows * cols) * waste
                # a tall tile reads the panel less often; among equals, small strides of the broadcast operand
                cost = (round(cycles + PANEL_READ / rows, 3), far)
                if cost < score:
                    best, score = Tile(row, rows, cols, cycles), cost
    return best


def _panel_cols(k: Kernel, operand: UOp, lane: UOp, lanes: int) -> int:
    """Vectors per row of a tile whose panel fits half of the second-level cache; one that need not be packed has no
    limit.
    """
    accesses = [a for a in k.accesses if a.node in operand.toposort()]
    if all(a.stride(lane) in (0, 1) and a.gate is None for a in accesses):
        return COLS_MOST
    steps = prod(a.length or 1 for a in k.axes if a.reduce and a is not k.partial and a.root in operand.ranges)
    return max(1, int(k.caps.l2_bytes // (2 * steps * lanes * operand.dtype.itemsize)))


def tile_contraction(k: Kernel) -> int:
    """Tile, order and pack a contraction; how many rows of the result share its vector operand, 0 if it is none."""
    c = _find(k)
    if c is None:
        return 0
    for root, copies in ((c.tile.row, c.tile.rows), (c.lane, c.tile.cols)):
        axis = live_outer(k, root) if root is not None else None
        if axis is not None and copies > 1:
            try_opt(k, Opt(OptOps.UPCAST, k.number(axis), copies))
    _order(k, c)
    _pack(k, c)
    if _scatters(k, c):
        try_opt(k, Opt(OptOps.STAGE, 2, ()))
    return int(prod(length(k, r) for r in _outputs(k, c.main) if r not in c.operand.ranges))


def _scatters(k: Kernel, c: _Contraction) -> bool:
    """Whether results would be stored one lane at a time."""
    return any(a.written and a.stride(c.lane) != 1 for a in k.accesses)


def _order(k: Kernel, c: _Contraction) -> None:
    """Outermost what the vector operand moves along, so that a panel of it serves all the other loops; rows
    innermost.
    """
    axes = k.sorted_axes
    loops = [a for a in axes if a.kind in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE)]
    if len([a for a in loops if not a.reduce]) < 2 and k.partial is None:
        return

    packed = c.operand.ranges

    def place(a: Axis) -> int:
        if a is k.partial:
            return -1
        if a.reduce:
            return 6 if a.root in c.main.src[1:] else 5
        return 4 if a.root is c.tile.row else 2 if a.root is c.lane else 1 if a.root in packed else 3
    order = sorted(loops, key=lambda a: (place(a), axes.index(a)))
    if order[-1].reduce and (order[-1].length or 0) < SHORT_LOOP:
        # a long loop innermost: one of a few steps costs as much as what it holds
        near = [x for x in k.accesses if x.node in c.main.src[0].toposort()]
        long = [
            a
            for a in order
            if a.root in c.main.src[1:]
            and a is not k.partial
            and (a.length or 0) >= SHORT_LOOP
            and all(
                abs(k.stride(x, a) or 0) * x.dtype.itemsize <= FAR for x in near if x.node not in c.operand.toposort()
            )
        ]
        if long:
            order = [a for a in order if a is not long[-1]] + [long[-1]]
    try_opt(k, Opt(OptOps.REORDER, None, tuple(axes.index(a) for a in order)))


def _pack(k: Kernel, c: _Contraction) -> None:
    operand = c.operand
    again = prod(a.length or 1 for a in k.output_axes if a.root not in operand.ranges and a.root in c.main.ranges)
    if again < PACK_REUSE:
        return
    axes = k.sorted_axes
    panel = [a for a in axes if a.root in operand.ranges and a is not k.partial
             and (a.reduce or a.kind in (AxisType.UPCAST, AxisType.LANE))]
    size = operand.dtype.itemsize
    for a in panel:
        size *= a.length or 1
    if 2 * size > k.caps.l2_bytes or _is_panel(k, c, operand):
        return
    order = list(k.order or axes)
    reduced = sorted((a for a in panel if a.reduce and a.kind is not AxisType.LANE), key=order.index)
    inner = [a for a in panel if not a.reduce and a.kind is not AxisType.LANE]
    lane = [a for a in panel if a.kind is AxisType.LANE]
    try_opt(k, Opt(OptOps.STAGE, c.side, tuple(axes.index(a) for a in (*reduced, *inner, *lane))))


def _is_panel(k: Kernel, c: _Contraction, operand: UOp) -> bool:
    """Whether the operand lies in memory as a panel would: a plain load, contiguous over one block of vectors."""
    if operand.op is not Ops.INDEX:
        return False
    access = next((a for a in k.accesses if a.node is operand), None)
    block = 1
    for a in k.axes:
        if a.root is c.lane and a.kind in (AxisType.LANE, AxisType.UPCAST):
            block *= a.length or 1
    return access is not None and access.gate is None and access.stride(c.lane) == 1 and length(k, c.lane) <= block
