"""Hand rules for contractions (matrix products, convolutions) whose vector axis is an axis of the output.

The vector axis belongs to one operand, the rows to the other. A register tile of rows by vectors reuses each loaded vector
for all rows and each broadcast scalar for all vectors. The loop over rows is put inside the loop over vectors, and the
vector operand is packed into a panel [reduction][vectors] once per step of the outer loop, where enough rows read it again.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.codegen.kernel import Axis, Kernel, product_of
from tinyhost.codegen.tiles import accumulators, length, live_outer, main_reduce, try_opt, upcast
from tinyhost.helpers import prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt, OptOps, UOp

SHORT_LOOP = 12
PACK_REUSE = 4  # row tiles that must read a panel to pay for packing it
ROWS = {False: 6, True: 8}  # rows of a tile with 16 and with 32 vector registers


@dataclass(frozen=True)
class _Contraction:
    main: UOp
    operand: UOp  # what moves along the vector axis
    side: int  # its position in the product
    lane: UOp
    rows: tuple[UOp, ...]  # output RANGEs that only the other operand moves along


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
    steps = prod(length(k, r) for r in operand.ranges if r in k.root_axis and k.root_axis[r].reduce)
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
    rows = [r for r in _outputs(k, main) if r in moving.ranges and r not in still.ranges and length(k, r) > 1]
    near = [x for x in k.accesses if x.node in moving.toposort()]
    rows.sort(key=lambda r: (-min(length(k, r), 8), min((abs(x.stride(r) or 1 << 30) for x in near), default=0), r.arg[:-1]))
    return _Contraction(main, product.src[side], side, lane, tuple(rows)) if rows else None


def tile_contraction(k: Kernel) -> bool:
    """Tile, order and pack a contraction; whether the kernel is one."""
    c = _find(k)
    if c is None:
        return False
    wide = k.caps.vector_registers >= 32
    rows = live_outer(k, c.rows[0])
    height = 1 if rows is None else upcast(k, rows, min(ROWS[wide], accumulators(k)))
    cols = live_outer(k, c.lane)
    if cols is not None:
        upcast(k, cols, min(2 if height > 4 else 4 if wide or height < 4 else 3, accumulators(k) // height))
    _order(k, c)
    _pack(k, c)
    if _scatters(k, c):
        try_opt(k, Opt(OptOps.STAGE, 2, ()))
    return True


def _scatters(k: Kernel, c: _Contraction) -> bool:
    """Whether results would be stored one lane at a time."""
    return any(a.written and a.stride(c.lane) != 1 for a in k.accesses)


def _order(k: Kernel, c: _Contraction) -> None:
    """Outermost what the vector operand moves along, so that a panel of it serves all the other loops; rows innermost."""
    axes = k.sorted_axes
    loops = [a for a in axes if a.kind in (AxisType.WEAK, AxisType.LOOP, AxisType.REDUCE)]
    if len([a for a in loops if not a.reduce]) < 2:
        return

    packed = c.operand.ranges

    def place(a: Axis) -> int:
        if a.reduce:
            return 5 if a.root in c.main.src[1:] else 4
        return 3 if a.root is c.rows[0] else 1 if a.root is c.lane else 0 if a.root in packed else 2
    order = sorted(loops, key=lambda a: (place(a), axes.index(a)))
    if order[-1].reduce and (order[-1].length or 0) < SHORT_LOOP:
        # the longest reduction innermost: a loop of a few steps costs as much as what it holds
        longest = max((a for a in order if a.root in c.main.src[1:]), key=lambda a: a.length or 0)
        order = [a for a in order if a is not longest] + [longest]
    try_opt(k, Opt(OptOps.REORDER, None, tuple(axes.index(a) for a in order)))


def _pack(k: Kernel, c: _Contraction) -> None:
    operand = c.operand
    again = prod(a.length or 1 for a in k.output_axes if a.root not in operand.ranges and a.root in c.main.ranges)
    if again < PACK_REUSE:
        return
    axes = k.sorted_axes
    panel = [a for a in axes if a.root in operand.ranges and (a.reduce or a.kind in (AxisType.UPCAST, AxisType.LANE))]
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
