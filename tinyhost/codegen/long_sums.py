"""Sums of many numbers as sums of shorter sums, so that rounding errors do not grow with the length.

An accumulator that takes K numbers one after the other is off by up to K ulp. Here the loops of a long float sum become
two REDUCEs: the inner one takes at most ``BLOCK`` steps from 0, the outer one, nested again if it is long, adds what it
gives, and the bound is BLOCK ulp a level. The outer accumulator is touched once a block, so it costs next to nothing,
in registers or not. Ordered like the loops; integers, float64 and short sums stay as they are.

Takes the kernel with its axes split and its panels in place: what is staged is found by its node, which this changes.
"""
from __future__ import annotations

from tinyhost.codegen.loops import is_loop
from tinyhost.codegen.nests import place_of
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import KernelInfo, UOp
from tinyhost.uop.rules.free_ranges import put

BLOCK = 256  # steps of the inner sum
LONG = 512  # steps from which a sum is nested


def nest_long_sums(sink: UOp) -> UOp:
    """The kernel with its long float sums nested."""
    done: dict[UOp, UOp] = {}
    info = sink.arg
    wanted = info.loop_order if isinstance(info, KernelInfo) and info.loop_order is not None else ()
    place = {ids: i for i, ids in enumerate(wanted)}
    for u in sink.toposort():
        src = tuple([done.get(s, s) for s in u.src])
        new = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if u.op is Ops.REDUCE and (loops := [r for r in new.src[1:] if is_loop(r)]):
            loops.sort(key=lambda r: (len(place) if (at := place_of(r.arg[:-1], place)) is None else at, r.arg[:-1]))
            new = nested_sum(u.arg[0], new.src[0], loops, [r for r in new.src[1:] if not is_loop(r)])
        if new is not u:
            done[u] = new
    return done.get(sink, sink)


def nested_sum(op: Ops, value: UOp, loops: list[UOp], unrolled: list[UOp]) -> UOp:
    """``value`` reduced over ``loops``, outermost first, whose steps each take the ``unrolled`` copies too."""
    plain = UOp(Ops.REDUCE, (value, *loops, *unrolled), (op, 0))
    if op is not Ops.ADD or not value.dtype.is_float or value.dtype.itemsize > 4:
        return plain
    if not all(r.src[0].is_const and r.arg[-1] is not AxisType.GROUP_REDUCE for r in loops):
        return plain
    ordered = list(loops)
    inner: list[UOp] = []
    steps = 1
    for r in unrolled:
        steps *= _length(r) if r.arg[-1] is not AxisType.LANE else 1
    while ordered and steps * _length(ordered[-1]) <= BLOCK:
        inner.append(ordered.pop())
        steps *= _length(inner[-1])
    total = steps
    for r in ordered:
        total *= _length(r)
    if total <= LONG:
        return plain
    block = BLOCK // steps
    if block < 4:
        return _two(op, value, ordered, [*inner, *unrolled])
    long = ordered.pop()
    return _cut(op, value, ordered, long, block, [*inner, *unrolled])


def _length(r: UOp) -> int:
    return int(r.src[0].const_value)


def _two(op: Ops, value: UOp, outer: list[UOp], inner: list[UOp]) -> UOp:
    short = UOp(Ops.REDUCE, (value, *inner), (op, 0)) if inner else value
    return nested_sum(op, short, outer, []) if outer else short


def _cut(op: Ops, value: UOp, outer: list[UOp], long: UOp, block: int, inner: list[UOp]) -> UOp:
    """The sum with ``long`` in blocks of about ``block`` steps; what is left over is a sum of its own."""
    size = _length(long)
    if size < 2 * block:
        return _two(op, value, outer, [long, *inner])
    block = next((b for b in range(block, block // 4, -1) if size % b == 0), block)
    *ids, kind = long.arg
    blocks = UOp(Ops.RANGE, (UOp.const(size // block),), (*ids, 0, kind))
    steps = UOp(Ops.RANGE, (UOp.const(block),), (*ids, 1, kind))
    whole = _two(op, put(value, long, blocks * block + steps), [*outer, blocks], [steps, *inner])
    if not (rest := size % block):
        return whole
    last = UOp(Ops.RANGE, (UOp.const(rest),), (*ids, 2, kind))
    left = put(value, long, last + (size - rest))
    return UOp(op, (whole, _two(op, left, outer, [last, *inner])))
