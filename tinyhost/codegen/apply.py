"""The splits of a ``Kernel`` substituted into its graph, in one pass.

Each original RANGE becomes an expression over the RANGEs of its parts. A REDUCE over a RANGE with a TAIL becomes the
reduction of the whole blocks combined with one more block that starts so that it ends at the end, its repeated part
replaced by the identity. Parts of a REDUCE that become copies or lanes of their own stand in a second REDUCE around the
loops: one accumulator per copy, combined after the loop.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyhost.codegen.kernel import Axis, Cover, Kernel, has_tail, leaves
from tinyhost.codegen.loops import identity
from tinyhost.codegen.memory import gate_and_index
from tinyhost.codegen.merged import merged_end, merged_size
from tinyhost.codegen.stage import Panel, add_panels, flat_panel, window_panel
from tinyhost.dtype import dtypes
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp
from tinyhost.uop.rules.free_ranges import exchange

Build = Callable[[UOp], UOp]
SEPARATE_ACCUMULATORS = 8  # unrolled parts of a reduction get accumulators of their own up to this many per REDUCE


def rewrite(k: Kernel) -> UOp:
    """The kernel after its Opts."""
    expr = {r: value_of(a) for r, a in k.root_axis.items() if not has_tail(a)}
    for m in k.merges:
        inner, value = k.moved_by(m.inner), expr.pop(m.axis.root, None)
        expr |= {k.moved_by(m.outer): UOp.const(0), **({} if value is None else {inner: value})}
    expr = {r: e for r, e in expr.items() if e is not r}
    done: dict[UOp, UOp] = dict(expr)
    tile = _tile(k)
    for u in k.nodes:
        if u in done:
            continue
        new = tuple([done[s] for s in u.src])
        if u.op is Ops.REDUCE and (any(a.split or a.root is not a.range for a in _roots(k, u))):
            done[u] = _reduce(k, u, new[0], tile)
        elif u.op is Ops.END and (k.partial is not None or any(r in expr for r in u.src[1:])):
            if k.merges:
                done[u] = merged_end(k, u, done)
            else:
                parts = [p for r in u.src[1:] if r in k.root_axis for p in leaves(k.root_axis[r])]
                done[u] = UOp(Ops.END, (new[0], *[p.range for p in parts if p.length != 1]))
            if k.partial is not None:
                done[u] = _accumulated(done[u], k.partial.range, _fresh(k))
        elif u is k.sink:
            done[u] = UOp(Ops.SINK, new, k.info(), u.tag)
        else:
            done[u] = u if new == u.src else UOp(u.op, new, u.arg, u.tag)
    return _with_panels(k, done[k.sink], done)


def _with_panels(k: Kernel, sink: UOp, done: dict[UOp, UOp]) -> UOp:
    """The kernel after its STAGE actions; windows come before the conditions that they contain."""
    panels: list[Panel] = []
    for operand, axes in k.staged:
        ranges = [p.range for a in axes for p in leaves(a) if p.length != 1]
        lanes = int(ranges[-1].src[0].const_value)
        turns = operand.dtype.itemsize >= 4 and k.renderer.supports(Ops.INDEX, operand.dtype, lanes)
        panels.append(flat_panel(done[operand], ranges, k.caps, turns))
    staged = [o for o, _ in k.staged] + [w.operand for w in k.windows]
    dtype = next((o.dtype for o in staged if o.dtype is not dtypes.bool), None)
    if dtype is None and not k.merges and not k.staged_results:
        return sink
    dtype = dtype or k.ends[0].src[0].src[1].dtype
    for w in k.windows:
        mine = {r for s in w.sides for r in s.ranges}
        outside = {r: done[r] for r in w.operand.ranges if r not in mine and done[r] is not r}
        original = w.operand.substitute(outside, walk=True) if outside else w.operand
        values = {r: done[r] for r in mine}
        panels.append(window_panel(done[w.operand], replace(w, operand=original), values, dtype, k.caps))
    return add_panels(sink, panels, k.staged_results, dtype, merged_size(k) if k.merges else 0)


def _accumulated(end: UOp, part: UOp, fresh: list[UOp]) -> UOp:
    """The store of a partial sum: the sum so far, which is 0 in the first part, plus this one; only where all of
    ``fresh`` hold.
    """
    place, value = end.src[0].src
    gate, index = gate_and_index(place)
    later = UOp(Ops.CMPLT, (UOp.const(0), part))
    for cond in fresh:
        gate = cond if gate is None else UOp(Ops.AND, (gate, cond))
    so_far = UOp(Ops.INDEX, (place.src[0], index.valid(later if gate is None else UOp(Ops.AND, (gate, later)))))
    if gate is not None:
        place = UOp(Ops.INDEX, (place.src[0], index.valid(gate)), place.arg, place.tag)
    return UOp(Ops.END, (UOp(Ops.STORE, (place, UOp(Ops.ADD, (so_far, value)))), part, *end.src[1:]))


def _fresh(k: Kernel) -> list[UOp]:
    """For each axis of the output whose last block starts earlier: whether an element is not of the block before.

    Results of merged axes are copied out, each once.
    """
    out = []
    stack = [a for a in k.root_axis.values() if not a.reduce and all(a is not m.axis for m in k.merges)]
    while stack:
        a = stack.pop()
        if (s := a.split) is not None:
            if s.cover is Cover.CLAMP:
                before = UOp(Ops.ADD, (_scaled(value_of(s.outer), s.amount), UOp.const(-1)))
                out.append(UOp(Ops.CMPLT, (before, value_of(a))))
            stack += [s.outer, s.inner]
    return out


def _roots(k: Kernel, u: UOp) -> list[Axis]:
    return [k.root_axis[r] for r in u.src[1:] if r in k.root_axis]


def _tile(k: Kernel) -> int:
    """Copies of each result: the product of the UPCAST axes."""
    out = 1
    for a in k.axes:
        if a.kind is AxisType.UPCAST and a.length is not None:
            out *= a.length
    return out


# *** trees of splits ***
def value_of(axis: Axis) -> UOp:
    """The index of an axis as an expression over its parts."""
    order, stack = [], [axis]
    while stack:
        a = stack.pop()
        order.append(a)
        if a.split is not None:
            stack += [a.split.outer, a.split.inner]
    value: dict[int, UOp] = {}
    for a in reversed(order):
        if a.split is None:
            value[id(a)] = a.range if a.length != 1 else UOp.const(0)
            continue
        s = a.split
        start = _scaled(value[id(s.outer)], s.amount)
        if s.cover is Cover.CLAMP:
            last = UOp.const(s.total - s.amount)
            start = UOp(Ops.WHERE, (start < last, start, last))
        value[id(a)] = _plus(start, value[id(s.inner)])
    return value[id(axis)]


def _scaled(x: UOp, c: int) -> UOp:
    return UOp.const(x.arg * c) if x.op is Ops.CONST else x if c == 1 else UOp(Ops.MUL, (x, UOp.const(c)))


def _plus(x: UOp, y: UOp) -> UOp:
    if x.op is Ops.CONST and x.arg == 0:
        return y
    return x if y.op is Ops.CONST and y.arg == 0 else UOp(Ops.ADD, (x, y))


# *** reductions ***
def _reduce(k: Kernel, u: UOp, value: UOp, tile: int) -> UOp:
    op = u.arg[0]
    inner, apart = _parts(op, value, [(a, a.root) for a in _roots(k, u)], tile)
    groups = [r for r in apart if r.arg[-1] is AxisType.GROUP_REDUCE]
    copies = [r for r in apart if r.arg[-1] is not AxisType.GROUP_REDUCE]
    out = UOp(Ops.REDUCE, (inner, *copies), u.arg) if copies else inner
    return UOp(Ops.REDUCE, (out, *groups), u.arg) if groups else out


def _parts(op: Ops, value: UOp, axes: list[tuple[Axis, UOp]], tile: int) -> tuple[UOp, list[UOp]]:
    """``value`` reduced over the loops of ``axes``, and the ranges that are left for a reduction around it.

    Each axis comes with the node that stands for it in ``value``.
    """
    for i, (a, node) in enumerate(axes):
        if a.split is not None and a.split.cover is Cover.TAIL:
            return _with_tail(op, value, axes[:i] + axes[i + 1:], a, node, tile)
        if a.split is not None and has_tail(a):  # the tail is further out
            s = a.split
            outer = _stand_in(s.outer)
            value = exchange(value, {node: _plus(_scaled(outer, s.amount), value_of(s.inner))})
            parts = [(p, p.range) for p in leaves(s.inner)]
            return _parts(op, value, [*axes[:i], *axes[i + 1:], (s.outer, outer), *parts], tile)
    loops, unrolled, apart = [], [], []
    for a, node in axes:
        for part in leaves(a):
            if part.kind is AxisType.UNROLL:
                unrolled.append(part)
            elif part.kind in (AxisType.LANE, AxisType.GROUP_REDUCE):
                apart.append(part.range)
            elif part.length != 1 and part.kind is not AxisType.LOOP:
                loops.append(part.range)
        value = exchange(value, {node: value_of(a)})
    copies = tile
    for part in unrolled:
        copies *= part.length or 1
    (apart if copies <= SEPARATE_ACCUMULATORS or not loops else loops).extend([p.range for p in unrolled])
    return (UOp(Ops.REDUCE, (value, *loops), (op, 0)) if loops else value), apart


def _with_tail(
    op: Ops, value: UOp, others: list[tuple[Axis, UOp]], a: Axis, node: UOp, tile: int
) -> tuple[UOp, list[UOp]]:
    s = a.split
    assert s is not None
    inner = value_of(s.inner)
    outer_node = _stand_in(s.outer)
    blocks = exchange(value, {node: _plus(_scaled(outer_node, s.amount), inner)})
    last = exchange(value, {node: _plus(UOp.const(s.total - s.amount), inner)})
    again = s.amount - s.total % s.amount
    fresh = UOp(Ops.WHERE, (inner < again, identity(op, value.dtype), last))
    whole, apart = _parts(op, blocks, [*others, (s.outer, outer_node)], tile)
    rest, more = _parts(op, fresh, others, tile)
    mine = dict.fromkeys(p.range for p in leaves(s.inner))
    left, right = {**dict.fromkeys(apart), **mine}, {**dict.fromkeys(more), **mine}
    whole, rest = _closed(op, whole, left, right), _closed(op, rest, right, left)
    return UOp(op, (whole, rest)), [r for r in left if r in right]


def _closed(op: Ops, value: UOp, mine: dict[UOp, None], theirs: dict[UOp, None]) -> UOp:
    """``value`` reduced over the ranges that the other operand does not have."""
    alone = [r for r in mine if r not in theirs]
    for kind in (False, True):  # what a workgroup combines is a reduction of its own
        ranges = [r for r in alone if (r.arg[-1] is AxisType.GROUP_REDUCE) is kind]
        value = UOp(Ops.REDUCE, (value, *ranges), (op, 0)) if ranges else value
    return value


def _stand_in(axis: Axis) -> UOp:
    """A node for an axis that may be split itself."""
    return axis.range if axis.split is None else UOp(Ops.RANGE, (UOp.const(axis.size),), (*axis.ids, -1, axis.kind))
