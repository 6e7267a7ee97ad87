"""MERGE: results of axes that run as one are written to the arena as they are computed, and copied out in the order of
the output, without the steps between the rows.

Takes a ``Kernel`` with merged axes and its rewritten nodes; gives the END of its store. What follows the sum (a bias,
an activation) is done while copying. The part of the arena holds what the loops from the outermost merged one inwards
compute.
"""
from __future__ import annotations

from typing import Any

from tinyhost.codegen.kernel import Axis, Kernel, leaves, results_of
from tinyhost.codegen.stage import placeholder
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp

_COPIED = frozenset({AxisType.UPCAST, AxisType.LANE})
BLOCKS_COPIED = 8  # vectors of a row that are copies rather than a loop


def merged_size(k: Kernel) -> int:
    """Elements of the results that the arena holds at one time."""
    return int(prod(a.length or 1 for a in _held(k)) * (_last(k).root.src[0].const_value))


def _last(k: Kernel) -> Axis:
    return k.merges[-1].axis


def _held(k: Kernel) -> list[Axis]:
    """Parts of other output axes that run inside of the merged one, outermost first."""
    order = k.order if k.order is not None else tuple(k.of_kind(AxisType.WEAK, AxisType.LOOP, AxisType.GLOBAL))
    loops = [p for a in order for p in leaves(a)]
    first = min((i for i, a in enumerate(loops) if a.root is _last(k).root), default=len(loops))
    roots = {r for r in k.ends[0].src[1:] if r in k.root_axis}
    return [a for a in k.sorted_axes if a.root in roots and (a.kind in _COPIED or a in loops[first:])]


def merged_end(k: Kernel, end: UOp, done: dict[UOp, UOp]) -> UOp:
    """The nest that computes, and behind it the one that copies out."""
    results, held = results_of(k), _held(k)
    last = _last(k)
    dtype = results.dtype
    at = _position(held, {a: a.range for a in held}, last, done[k.moved_by(last.root)])
    parts = [*(p.range for p in leaves(last) if p.length != 1), *(a.range for a in held)]
    computed = placeholder(dtype).index(at).store(done[results]).end(*parts)

    fresh = 1 + max(int(u.arg[0]) for u in (*k.nodes, *parts) if u.op is Ops.RANGE)
    copies = {a: UOp(Ops.RANGE, (UOp.const(a.length),), (fresh + i, AxisType.WEAK)) for i, a in enumerate(held)}
    rows, swap = _rows(k, fresh + len(held))
    for r in end.src[1:]:
        if r in k.root_axis:
            swap[r] = done[r].substitute({a.range: c for a, c in copies.items() if a.root is r}, walk=True)
    where = _merged_value(k, swap)
    element = placeholder(dtype).after(computed).index(_position(held, copies, last, where))
    store = end.src[0].substitute({**swap, results: element}, walk=True)
    outer = [p.range for r in end.src[1:] if r in k.root_axis for p in leaves(k.root_axis[r])
             if p.length != 1 and p not in held]
    return UOp(Ops.END, (store, *outer, *copies.values(), *rows))


def _position(held: list[Axis], ranges: dict[Axis, UOp], last: Axis, along: UOp) -> Any:
    """Row-major: the held axes, then the merged one."""
    at: Any = along
    step = int(last.root.src[0].const_value)
    for a in reversed(held):
        at = at + ranges[a] * step
        step *= a.length or 1
    return at


def _merged_value(k: Kernel, swap: dict[UOp, UOp]) -> UOp:
    """The step of the merged axis that computes an element."""
    value = dict(swap)
    for m in k.merges:
        value[m.axis.root] = value[m.outer] * m.pitch + value[m.inner]
    return value[_last(k).root]


def _rows(k: Kernel, fresh: int) -> tuple[list[UOp], dict[UOp, UOp]]:
    """RANGEs over the axes that were merged, outermost first, the innermost in vectors; and the values of the axes."""
    made = {m.axis.root for m in k.merges}
    roots = [r for m in reversed(k.merges) for r in (m.outer, m.inner) if r not in made]
    ranges, swap = [], {}
    for r in roots:
        ranges.append(UOp(Ops.RANGE, r.src, (fresh, AxisType.WEAK)))
        swap[r] = ranges[-1]
        fresh += 1
    inner = roots[-1] if len(roots) == 2 else k.moved_by(k.merges[0].inner)
    width = int(inner.src[0].const_value)
    lanes = _lanes(k, inner, width)
    if lanes > 1:
        count = ceildiv(width, lanes)
        kind = AxisType.UPCAST if count <= BLOCKS_COPIED else AxisType.WEAK
        blocks = UOp(Ops.RANGE, (UOp.const(count),), (fresh, kind)) if count > 1 else UOp.const(0)
        lane = UOp(Ops.RANGE, (UOp.const(lanes),), (fresh + 1, AxisType.LANE))
        start: Any = blocks * lanes
        if width % lanes:
            start = UOp(Ops.WHERE, (start < width - lanes, start, UOp.const(width - lanes)))
        ranges.remove(swap[inner])
        swap[inner] = start + lane
        ranges += [r for r in (blocks, lane) if r.op is Ops.RANGE]
    return ranges, swap


def _lanes(k: Kernel, inner: UOp, width: int) -> int:
    """Lanes along a row of the output; nothing may be stored twice where the output holds partial sums."""
    widest = k.widest(inner)
    lanes = k.caps.vector_bytes // widest if widest else 1
    while lanes > width or k.in_place and width % lanes:
        lanes //= 2
    written = [a for a in k.accesses if a.written]
    return lanes if all(a.stride(inner) == 1 for a in written) else 1
