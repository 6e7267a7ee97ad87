"""Axes that change in the graph itself: PADTO makes one longer, with gates that keep the added steps from reading,
writing and counting; a reduction in parts has one axis over the parts and one inside of them.
"""
from __future__ import annotations

from tinyhost.codegen.kernel import Axis, Kernel
from tinyhost.codegen.loops import identity
from tinyhost.codegen.memory import gate_and_index
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp


def divide_axis(k: Kernel, axis: Axis, count: int, kind: AxisType) -> Axis:
    """Replace a reduce axis (not split) by one of ``kind`` over ``count`` equal parts, which is given back, and one
    inside of a part, if that has several steps.
    """
    old = axis.root
    size = (axis.length or 1) // count
    sizes = (count, size) if size > 1 else (count,)
    new = [UOp(Ops.RANGE, (UOp.const(n),), (*axis.ids, i, old.arg[-1])) for i, n in enumerate(sizes)]
    done: dict[UOp, UOp] = {old: new[0] * size + new[1] if size > 1 else new[0]}
    for u in k.nodes:
        if u in done:
            continue
        if u.op is Ops.REDUCE and old in u.src[1:]:
            ranges = [x for r in u.src[1:] for x in (new if r is old else (r,))]
            done[u] = UOp(Ops.REDUCE, (done[u.src[0]], *ranges), u.arg, u.tag)
            continue
        src = tuple([done[s] for s in u.src])
        done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
    k.sink = done[k.sink]
    k.look()
    parts = [Axis(r.arg[:-1], n, t, r, 1, True) for r, n, t in zip(new, sizes, (kind, axis.kind))]
    k.axes.remove(axis)
    k.axes += parts
    del k.root_axis[old]
    k.root_axis |= {a.root: a for a in parts}
    return parts[0]


def pad_axis(k: Kernel, axis: Axis, padded: int) -> None:
    """Give ``axis`` (not split) ``padded`` steps; the steps beyond its length have no effect."""
    old = axis.root
    new = UOp(Ops.RANGE, (UOp.const(padded), *old.src[1:]), old.arg)
    inside = UOp(Ops.CMPLT, (new, old.src[0]))
    done: dict[UOp, UOp] = {old: new}
    for u in k.nodes:
        if u in done:
            continue
        src = tuple([done[s] for s in u.src])
        if u.op is Ops.INDEX and len(src) == 2 and old in u.ranges:
            gate, idx = gate_and_index(UOp(Ops.INDEX, src))
            done[u] = UOp(Ops.INDEX, (src[0], idx.valid(inside if gate is None else UOp(Ops.AND, (gate, inside)))))
        elif u.op is Ops.REDUCE and old in u.src[1:]:
            value = UOp(Ops.WHERE, (inside, src[0], identity(u.arg[0], u.dtype)))
            done[u] = UOp(Ops.REDUCE, (value, *src[1:]), u.arg)
        else:
            done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
    k.sink = done[k.sink]
    axis.root, axis.size = new, padded
    k.look()
    k.root_axis = {a.root: a for a in k.axes if a.split is None or a.root not in k.root_axis} | {
        r: a for r, a in k.root_axis.items() if r is not old} | {new: axis}
