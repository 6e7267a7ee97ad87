"""STAGE: panels of scratch memory. An operand of a reduction is copied into one in the order its loop reads it; a
tile of results is written to one as vectors and copied out in the order of the output.

Takes the small kernel after all splits, and what to stage; gives the kernel with a nest of its own that fills or
empties the panel wherever the ranges around it change. Conversions and gates of an operand are done while packing.
All panels of a kernel share one arena, the PARAM named ``SCRATCH``, and one dtype.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyhost.codegen.memory import gate_and_index
from tinyhost.codegen.strides import linear
from tinyhost.helpers import prod
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp

SCRATCH = "scratch"  # name of the PARAM that is the worker's arena
_COPIED = frozenset({AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE})


def panel_size(panel: list[UOp]) -> int:
    """Elements of a panel."""
    return int(prod(int(r.src[0].const_value) for r in panel))


@dataclass(frozen=True)
class Panel:
    """What is packed: an operand of the kernel, read at ``read`` instead; ``value`` over ``ranges`` is written to
    ``write``.
    """

    operand: UOp
    value: UOp
    ranges: tuple[UOp, ...]
    write: Any
    read: Any
    size: int


def flat_panel(sink: UOp, operand: UOp, axes: list[UOp]) -> Panel:
    """A panel over ranges of the kernel, outermost first."""
    fresh = _fresh(sink)
    swap = {
        r: UOp(Ops.RANGE, r.src, (fresh + i, r.arg[-1] if r.arg[-1] in _COPIED else AxisType.WEAK))
        for i, r in enumerate(axes)
    }
    new = [swap[r] for r in axes]
    return Panel(operand, _substituted(operand, swap), tuple(new), _position(new), _position(axes), panel_size(axes))


def window_panel(sink: UOp, operand: UOp, original: UOp, groups: list[dict[UOp, UOp]], lanes: int) -> Panel:
    """A panel over sums of indices, such as the rows and columns of a padded image.

    Each group maps RANGEs of ``original`` that it only depends on through their sum to their values in the kernel; the
    last group is packed in vectors of ``lanes`` if that is not 0.
    """
    fresh, swap, ranges = _fresh(sink), {}, []
    write: Any = UOp.const(0)
    read: Any = UOp.const(0)
    size = 1
    for i, group in enumerate(groups):
        extent = 1 + sum(int(r.src[0].const_value) - 1 for r in group)
        at: Any = UOp(Ops.RANGE, (UOp.const(extent),), (fresh + i, AxisType.WEAK))
        new = [at]
        if lanes and group is groups[-1]:
            blocks = UOp(Ops.RANGE, (UOp.const(-(-extent // lanes)),), at.arg)
            lane = UOp(Ops.RANGE, (UOp.const(lanes),), (fresh + i + 1, AxisType.LANE))
            last = UOp.const(extent - lanes)
            start = blocks * lanes
            at, new = UOp(Ops.WHERE, (start < last, start, last)) + lane, [blocks, lane]
        swap.update({r: at if j == 0 else UOp.const(0) for j, r in enumerate(group)})
        ranges += new
        where: Any = UOp.const(0)
        for value in group.values():
            where = where + value
        write, read, size = write * extent + at, read * extent + where, size * extent
    return Panel(operand, _substituted(original, swap), tuple(ranges), write, read, size)


def add_panels(sink: UOp, panels: list[Panel], results: bool) -> UOp:
    """The kernel with each operand read from its panel, and with its results copied out of a tile."""
    tiles = [_tile_of(e) for e in sink.src if e.op is Ops.END] if results else []
    total = sum(p.size for p in panels) + sum(map(panel_size, tiles))
    dtype = panels[0].operand.dtype if panels else sink.src[0].src[0].src[1].dtype
    slot = 1 + max(u.arg.slot for u in sink.toposort() if u.op is Ops.PARAM)
    arena = UOp(Ops.PARAM, (), ParamArg(slot, dtype, total, name=SCRATCH))
    offset = 0
    for p in panels:
        packed = arena.index(_plus(p.write, offset)).store(p.value).end(*p.ranges)
        sink = sink.substitute({p.operand: arena.after(packed).index(_plus(p.read, offset))}, walk=True)
        offset += p.size
    if results:
        ends = []
        for e in sink.src:
            ends.append(_stage_result(sink, e, arena, offset) if e.op is Ops.END else e)
            offset += panel_size(_tile_of(e)) if e.op is Ops.END else 0
        sink = sink.replace(src=tuple(ends))
    return sink


def _plus(at: Any, offset: int) -> Any:
    return at + offset if offset else at


def _fresh(sink: UOp) -> int:
    return 1 + max(int(u.arg[0]) for u in sink.toposort() if u.op is Ops.RANGE)


def _tile_of(end: UOp) -> list[UOp]:
    """Ranges of the copies that one iteration of a store's loops writes, the vector lane last."""
    copied = [r for r in end.src[1:] if r.op is Ops.RANGE and r.arg[-1] in _COPIED]
    return sorted(copied, key=lambda r: (r.arg[-1] is AxisType.LANE, r.arg[:-1]))


def _stage_result(sink: UOp, end: UOp, arena: UOp, offset: int) -> UOp:
    store, tile = end.src[0], _tile_of(end)
    fresh = _fresh(sink)
    cut = _cut(store.src[1], tile[-1])
    written = arena.index(_position(tile, offset)).store(cut)
    steps = linear(gate_and_index(store.src[0])[1], {}).terms
    order = sorted(tile, key=lambda r: (-steps.get(r, 0), r.arg[:-1]))
    kinds = [AxisType.WEAK] * (len(tile) - 1) + [AxisType.UPCAST]
    swap = {r: UOp(Ops.RANGE, r.src, (fresh + i, kind)) for i, (r, kind) in enumerate(zip(order, kinds))}
    copied = arena.after(written).index(_position([swap[r] for r in tile], offset))
    hole = UOp(Ops.PARAM, (), ParamArg(-1, cut.dtype, name="tile", addrspace=AddrSpace.ALU))
    rest_of_value = _substituted(store.src[1].substitute({cut: hole}, walk=True), swap)
    value = rest_of_value.substitute({hole: copied}, walk=True)
    place = _substituted(store.src[0], swap)
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


def _position(panel: list[UOp], offset: int = 0) -> Any:
    """Row-major index over the ranges, from ``offset``."""
    at: Any = None
    step = 1
    for r in reversed(panel):
        term = r if step == 1 else r * step
        at = term if at is None else term + at
        step *= int(r.src[0].const_value)
    return _plus(at, offset)


def _substituted(u: UOp, swap: dict[UOp, UOp]) -> UOp:
    done: dict[UOp, UOp] = dict(swap)
    old = set(swap)
    for x in u.toposort(gate=lambda n: not old.isdisjoint(n.ranges)):
        if x not in done:
            done[x] = UOp(x.op, tuple([done.get(s, s) for s in x.src]), x.arg, x.tag)
    return done.get(u, u)
