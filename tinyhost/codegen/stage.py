"""STAGE: panels of scratch memory. An operand of a reduction is copied into one in the order its loop reads it; a
tile of results is written to one as vectors and copied out in the order of the output.

Takes the small kernel after all splits, and what to stage; gives the kernel with a nest of its own that fills or
empties the panel wherever the ranges around it change. Conversions and gates of an operand are done while packing.
All panels of a kernel share one arena, the PARAM named ``SCRATCH``, and one dtype.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.kernel import ARENA
from tinyhost.codegen.memory import gate_and_index
from tinyhost.codegen.strides import Linear, linear
from tinyhost.codegen.windows import Filling, Window, plane
from tinyhost.dtype import DType, dtypes
from tinyhost.helpers import prod
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp
from tinyhost.uop.rules.free_ranges import exchange

SCRATCH = ARENA
_LANES = frozenset({AxisType.LANE})
_COPIED = _LANES | {AxisType.UPCAST, AxisType.UNROLL}


def panel_size(panel: list[UOp]) -> int:
    """Elements of a panel."""
    return int(prod(int(r.src[0].const_value) for r in panel))


Fill = Callable[[int, UOp, int], list[UOp]]  # nests from the first free RANGE number, the arena, a place in it


@dataclass(frozen=True)
class Panel:
    """What is packed: ``operand`` of the kernel becomes ``value`` of what lies in the panel at ``read``."""

    operand: UOp
    fill: Fill
    read: Any
    size: int
    value: Callable[[UOp], UOp] = field(default=lambda element: element)


def flat_panel(operand: UOp, axes: list[UOp], caps: Capabilities, turns: bool = False) -> Panel:
    """A panel over ranges of the kernel, outermost first; filled in the order of the operand's memory.

    ``turns``: vectors across memory are made of squares that are transposed in registers.
    """
    def fill(fresh: int, arena: UOp, offset: int) -> list[UOp]:
        at, ranges = _filling(operand, axes, fresh, caps, turns)
        write = _position([at[r] for r in axes], offset, [_size(r) for r in axes])
        return [arena.index(write).store(exchange(operand, at)).end(*ranges)]
    return Panel(operand, fill, _position(axes), panel_size(axes))


def _filling(operand: UOp, axes: list[UOp], fresh: int, caps: Capabilities,
             turns: bool) -> tuple[dict[UOp, UOp], list[UOp]]:
    """Values for the ranges of a panel while it is filled, and the RANGEs that make them.

    Far steps are outer loops. Copies along memory become vectors where the kernel has none along it; where its vectors
    lie across memory, as many copies along it as there are lanes make squares.
    """
    reads = [u for u in operand.toposort() if u.op is Ops.INDEX and len(u.src) == 2]
    forms = [linear(gate_and_index(u)[1], {}) for u in reads]
    far = {r: max((abs(f.terms.get(r, 0)) if r not in f.opaque else 1 << 40 for f in forms), default=0) for r in axes}
    last = axes[-1]
    vector = last.arg[-1] is AxisType.UPCAST and not any(r.arg[-1] is AxisType.LANE for r in axes) and _size(last) > 1
    vector = vector and all(f.terms.get(last) == 1 and last not in f.opaque for f in forms)
    square = _along(axes, forms) if turns and last.arg[-1] is AxisType.LANE and far[last] > 1 else None
    at, ranges = {}, []
    for r in sorted(axes, key=lambda r: (r.arg[-1] in (_COPIED if square is None else _LANES), -far[r])):
        if r is square or r is last and vector:
            lanes = min(1 << (_size(r).bit_length() - 1), caps.vector_bytes // operand.dtype.itemsize)
            count, kinds = ((_size(last), (AxisType.WEAK, AxisType.UPCAST)) if r is square else
                            (lanes, (AxisType.UPCAST, AxisType.LANE)))
            at[r], blocks = _in_blocks(r, count, fresh, kinds)
            ranges += blocks
            fresh += 2
            continue
        copied = r.arg[-1] in (_COPIED if square is None else _LANES)
        at[r] = UOp(Ops.RANGE, r.src, (fresh, r.arg[-1] if copied else AxisType.WEAK))
        ranges.append(at[r])
        fresh += 1
    return at, ranges


def _along(axes: list[UOp], forms: list[Linear]) -> UOp | None:
    """The range of a panel that its operand is contiguous along, if it has as many steps as a vector has lanes."""
    return next((r for r in axes[:-1] if _size(r) >= _size(axes[-1])
                 and all(f.terms.get(r) == 1 and r not in f.opaque for f in forms)), None)


def _size(r: UOp) -> int:
    return int(r.src[0].const_value)


def window_panel(operand: UOp, window: Window, values: dict[UOp, UOp], dtype: DType, caps: Capabilities) -> Panel:
    """A window as a panel, its RANGEs having ``values`` in the kernel; a condition becomes ones and zeros of
    ``dtype``.
    """
    condition = operand.dtype is dtypes.bool
    value = plane(window.operand, dtype) if condition else window.operand
    lanes = caps.vector_bytes // dtype.itemsize

    def fill(fresh: int, arena: UOp, offset: int) -> list[UOp]:
        return Filling(window, value, arena, offset, fresh, lanes, caps.masked, {}).nests()

    def holds(element: UOp) -> UOp:
        return UOp(Ops.CMPNE, (element, UOp.const(0, dtype)))
    read = window.read(values)
    return Panel(operand, fill, read, window.size, holds) if condition else Panel(operand, fill, read, window.size)


def add_panels(sink: UOp, panels: list[Panel], results: bool, dtype: DType, held: int = 0) -> UOp:
    """The kernel with each operand read from its panel, and with its results copied out of a tile.

    ``held`` elements at the start of the arena are in use already, through ``placeholder``.
    """
    tiles = [_tile_of(e) for e in sink.src if e.op is Ops.END] if results else []
    total = held + sum(p.size for p in panels) + sum(map(panel_size, tiles))
    slot = 1 + max(u.arg.slot for u in sink.toposort() if u.op is Ops.PARAM)
    arena = UOp(Ops.PARAM, (), ParamArg(slot, dtype, total, name=SCRATCH))
    if held:
        sink = sink.substitute({placeholder(dtype): arena}, walk=True)
    offset = held
    for p in panels:
        packed = p.fill(fresh_range(sink), arena, offset)
        read = p.value(arena.after(*packed).index(_plus(p.read, offset)))
        sink = sink.substitute({p.operand: read}, walk=True)
        offset += p.size
    if results:
        ends = []
        for e in sink.src:
            ends.append(_stage_result(sink, e, arena, offset) if e.op is Ops.END else e)
            offset += panel_size(_tile_of(e)) if e.op is Ops.END else 0
        sink = sink.replace(src=tuple(ends))
    return sink


def placeholder(dtype: DType) -> UOp:
    """Stands for the arena until its size is known."""
    return UOp(Ops.PARAM, (), ParamArg(-1, dtype, 0, name=SCRATCH))


def _plus(at: Any, offset: int) -> Any:
    return at + offset if offset else at


def fresh_range(sink: UOp) -> int:
    """The first RANGE number that is free."""
    return 1 + max(int(u.arg[0]) for u in sink.toposort() if u.op is Ops.RANGE)


def _tile_of(end: UOp) -> list[UOp]:
    """Ranges of the copies that one iteration of a store's loops writes, the vector lane last."""
    copied = [r for r in end.src[1:] if r.op is Ops.RANGE and r.arg[-1] in _COPIED]
    return sorted(copied, key=lambda r: (r.arg[-1] is AxisType.LANE, r.arg[:-1]))


def _stage_result(sink: UOp, end: UOp, arena: UOp, offset: int) -> UOp:
    store, tile = end.src[0], _tile_of(end)
    fresh = fresh_range(sink)
    cut = _cut(store.src[1], tile[-1])
    written = arena.index(_position(tile, offset)).store(cut)
    steps = linear(gate_and_index(store.src[0])[1], {}).terms
    order = sorted(tile, key=lambda r: (-steps.get(r, 0), r.arg[:-1]))
    kinds = [AxisType.WEAK] * (len(tile) - 1) + [AxisType.UPCAST]
    swap = {r: UOp(Ops.RANGE, r.src, (fresh + i, kind)) for i, (r, kind) in enumerate(zip(order, kinds))}
    copied = arena.after(written).index(_position([swap[r] for r in tile], offset))
    hole = UOp(Ops.PARAM, (), ParamArg(-1, cut.dtype, name="tile", addrspace=AddrSpace.ALU))
    rest_of_value = exchange(store.src[1].substitute({cut: hole}, walk=True), swap)
    value = rest_of_value.substitute({hole: copied}, walk=True)
    place = exchange(store.src[0], swap)
    rest = [r for r in end.src[1:] if r not in swap]
    return UOp(Ops.END, (UOp(Ops.STORE, (place, value)), *rest, *swap.values()))


def _cut(value: UOp, lane: UOp) -> UOp:
    """What goes through the tile: the value to store, or its reduction where the rest reads memory lane by lane."""
    outside = value.toposort(gate=lambda u: u.op is not Ops.REDUCE)
    tops = dict.fromkeys(s for u in outside for s in u.src if s.op is Ops.REDUCE and lane in s.ranges)
    if value.op is Ops.REDUCE or not tops:
        return value
    main = max(tops, key=_work)
    reads = [
        u
        for u in value.toposort(gate=lambda u: u is not main)
        if u.op is Ops.INDEX and len(u.src) == 2 and lane in u.ranges
    ]
    direct = all(linear(gate_and_index(u)[1], {}).terms.get(lane) == 1 for u in reads)
    return value if direct else main


def _work(u: UOp) -> int:
    """Steps of the innermost loop below a reduction."""
    return max(int(prod(int(r.src[0].vmax) for r in x.ranges)) for x in u.toposort())


def _position(panel: list[UOp], offset: int = 0, sizes: list[int] | None = None) -> Any:
    """Row-major index over the ranges, or over values of these ``sizes``, from ``offset``."""
    at: Any = None
    step = 1
    for r, size in zip(reversed(panel), reversed(sizes or [_size(r) for r in panel])):
        term = r if step == 1 else r * step
        at = term if at is None else term + at
        step *= size
    return _plus(at, offset)


def _in_blocks(r: UOp, count: int, fresh: int, kinds: tuple[AxisType, AxisType]) -> tuple[UOp, list[UOp]]:
    """The index of ``r`` over blocks of ``count`` steps, the last of which may start earlier; the two new RANGEs."""
    blocks = UOp(Ops.RANGE, (UOp.const(-(-_size(r) // count)),), (fresh, kinds[0]))
    inside = UOp(Ops.RANGE, (UOp.const(count),), (fresh + 1, kinds[1]))
    start, end = blocks * count, UOp.const(_size(r) - count)
    return (UOp(Ops.WHERE, (start < end, start, end)) if _size(r) % count else start) + inside, [blocks, inside]
