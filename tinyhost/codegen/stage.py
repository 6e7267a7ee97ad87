"""STAGE: panels of scratch memory. An operand of a reduction is copied into one in the order its loop reads it; a
tile of results is written to one as vectors and copied out in the order of the output.

Takes the small kernel after all splits, and what to stage; gives the kernel with a nest of its own that fills or
empties the panel wherever the ranges around it change. Conversions and gates of an operand are done while packing.
All panels of a kernel share one arena, the PARAM named ``SCRATCH``, and one dtype.
"""
from __future__ import annotations

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


def add_panels(sink: UOp, operands: list[tuple[UOp, list[UOp]]], results: bool) -> UOp:
    """The kernel with each operand read from a panel over its ranges, and with its results copied out of a tile."""
    tiles = [_tile_of(e) for e in sink.src if e.op is Ops.END] if results else []
    sizes = [panel_size(p) for _, p in operands] + [panel_size(t) for t in tiles]
    dtype = operands[0][0].dtype if operands else sink.src[0].src[0].src[1].dtype
    slot = 1 + max(u.arg.slot for u in sink.toposort() if u.op is Ops.PARAM)
    arena = UOp(Ops.PARAM, (), ParamArg(slot, dtype, sum(sizes), name=SCRATCH))
    offset = 0
    for (operand, panel), size in zip(operands, sizes):
        sink = _stage_operand(sink, operand, panel, arena, offset)
        offset += size
    if results:
        ends = []
        for e in sink.src:
            ends.append(_stage_result(sink, e, arena, offset) if e.op is Ops.END else e)
            offset += panel_size(_tile_of(e)) if e.op is Ops.END else 0
        sink = sink.replace(src=tuple(ends))
    return sink


def _fresh(sink: UOp) -> int:
    return 1 + max(u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE)


def _stage_operand(sink: UOp, operand: UOp, panel: list[UOp], arena: UOp, offset: int) -> UOp:
    fresh = _fresh(sink)
    swap = {
        r: UOp(Ops.RANGE, r.src, (fresh + i, r.arg[-1] if r.arg[-1] in _COPIED else AxisType.WEAK))
        for i, r in enumerate(panel)
    }
    packed = arena.index(_position([swap[r] for r in panel], offset)).store(_substituted(operand, swap))
    ready = arena.after(packed.end(*[swap[r] for r in panel]))
    return sink.substitute({operand: ready.index(_position(panel, offset))}, walk=True)


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
    """What goes through the tile: the value to store, or its reduction where the rest would read memory lane by lane."""
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


def _position(panel: list[UOp], offset: int) -> Any:
    """Row-major index over the ranges, from ``offset``."""
    at: Any = None
    step = 1
    for r in reversed(panel):
        term = r if step == 1 else r * step
        at = term if at is None else term + at
        step *= int(r.src[0].const_value)
    return at + offset if offset else at


def _substituted(u: UOp, swap: dict[UOp, UOp]) -> UOp:
    done: dict[UOp, UOp] = dict(swap)
    old = set(swap)
    for x in u.toposort(gate=lambda n: not old.isdisjoint(n.ranges)):
        if x not in done:
            done[x] = UOp(x.op, tuple([done.get(s, s) for s in x.src]), x.arg, x.tag)
    return done.get(u, u)
