"""Loops of the expanded kernel: reductions become accumulators, ENDs close one RANGE each, shared loops are one loop.

A REDUCE over loop ranges keeps one REG accumulator per copy of its result: stored with the identity before the loop,
loaded, combined and stored in it, loaded after its END. REDUCEs over the same ranges update in the same loop.
Unrolled ranges of a REDUCE that also loops are combined in order inside the body; a REDUCE over unrolled or LANE
ranges alone is a tree over values. Products that are summed contract to MULACC where the target has it.

Stores of the kernel that end in the same ranges share those loops. What two closers may share was decided before
(``nests.py``); the nesting is ``Values.rank``.
"""
from __future__ import annotations

from typing import Any

from tinyhost.codegen.linear_form import Lin, atom, literal
from tinyhost.codegen.memory import Memory
from tinyhost.codegen.values import Entry
from tinyhost.dtype import DType, dtypes, strong_dtype
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp
from tinyhost.uop.semantics import evaluate

UNROLLED = frozenset({AxisType.UPCAST, AxisType.UNROLL})
_COPIED = UNROLLED | {AxisType.LANE}


def is_loop(r: UOp) -> bool:
    """Whether a range of the small kernel becomes a loop rather than copies or lanes."""
    return r.op is Ops.RANGE and r.arg[-1] not in _COPIED


def identity(op: Ops, dtype: DType) -> UOp:
    """The literal that changes nothing under a reduction."""
    if op is Ops.MAX:
        return UOp.const(dtype.min, dtype)
    return UOp.const(0 if op is Ops.ADD else 1, dtype)


class Loops(Memory):
    """RANGE, REDUCE, END, AFTER and SINK."""

    # *** ranges ***
    def range(self, u: UOp) -> None:
        kind = u.arg[-1]
        if kind in UNROLLED:
            size = int(u.src[0].const_value)
            self.mask[u] = 1 << self._bit(u, size)
            self.out[u] = [literal(i) for i in range(size)]
        elif kind is AxisType.LANE:
            self.leaf(u, Lin({u: 1}, 0))
        elif u.src[0].op is Ops.NOOP:
            self.leaf(u, self.strong_range(u))
        else:
            self.leaf(u, atom(self.strong_range(u)))

    def strong_range(self, u: UOp) -> UOp:
        """The loop RANGE with a strong bound."""
        r = self.strong_ranges.get(u)
        if r is None:
            bound = u.src[0]
            strong = bound if bound.op is Ops.NOOP else self.bound_node(self.out[bound][0])
            deps = tuple(x for d in u.src[1:] for x in self.effects(d))
            r = self.strong_ranges[u] = UOp(Ops.RANGE, (strong, *deps), u.arg)
            self.rank[r] = self.small_rank.get(u.arg[:-1], len(self.small_rank))
        return r

    def bound_node(self, entry: Entry) -> UOp:
        """A loop bound as a strong scalar."""
        return self.ints.node(entry) if isinstance(entry, Lin) else entry


    # *** the plan ***
    def plan_loops(self, sink: UOp) -> None:
        """Find the REDUCEs that share a loop, and the ENDs that only the SINK sees."""
        by_ranges: dict[frozenset[UOp], list[UOp]] = {}
        used: set[UOp] = set()
        copied: list[UOp] = []
        for u in sink.toposort():
            if u.op is Ops.RANGE and u.arg[-1] in _COPIED:
                copied.append(u)
            elif u.op is Ops.REDUCE:
                loops = frozenset([r for r in u.src[1:] if is_loop(r)])
                if loops:
                    self.groups[u] = by_ranges.setdefault(loops, [])
                    self.groups[u].append(u)
            elif u is not sink:
                used.update([s for s in u.src if s.op is Ops.END])
        self.order_copies(copied)
        self.deferred = {u: None for u in sink.src if u.op is Ops.END and u not in used}

    def order_copies(self, copied: list[UOp]) -> None:
        """Copies along the axis of the vector lane change fastest: a broadcast scalar is used by all vectors, then
        dead.
        """
        lanes = {r.arg[0] for r in copied if r.arg[-1] is AxisType.LANE}
        for r in sorted(
            (r for r in copied if r.arg[-1] is not AxisType.LANE), key=lambda r: (r.arg[0] in lanes, r.arg[:-1])
        ):
            self._bit(r, int(r.src[0].const_value))

    def reduce_sources(self, u: UOp) -> tuple[UOp, ...]:
        """Sources of ``u`` and of all REDUCEs in its loop."""
        group = self.groups.get(u)
        return u.src if group is None else tuple([s for m in group for s in m.src])

    # *** reductions ***
    def reduce(self, u: UOp) -> None:
        group = self.groups.get(u)
        if group is None:
            self._reduce_values(u)
            return
        loops = self.loops_of([r for r in group[0].src[1:] if is_loop(r)])
        copies = [(m, self._copies_of(m)) for m in group]
        outer = self._outer(copies, loops)
        started = [[self._start(m, vals, outer, loops) for vals in entries] for m, entries in copies]
        updates = self._updates([(m.arg[0], acc) for (m, _), accs in zip(copies, started) for acc in accs])
        done = self.close(updates, loops)
        for (m, _), accs in zip(copies, started):
            op = m.arg[0]
            lanes = any(r.arg[-1] is AxisType.LANE for r in m.src[1:])
            out = [acc.result(self, done) for acc in accs]
            self.out[m] = [self.vectors.horizontal(op, x) for x in out] if lanes else out

    def _copies_of(self, m: UOp) -> list[list[UOp]]:
        """For each copy of the result, the values to combine; sets the mask of ``m``."""
        value, ended = m.src[0], 0
        for r in m.src[1:]:
            ended |= self.mask[r]
        full = self.mask[value]
        own = self.mask[m] = full & ~ended
        dt = self._strong(m.dtype)
        lists: list[list[UOp]] = [[] for _ in range(self.copies(own))]
        times = 1
        for i, (_, n) in enumerate(self.bits):
            if (ended & ~full) >> i & 1:
                times *= n  # the value does not change along this range
        lane = next((r for r in m.src[1:] if r.arg[-1] is AxisType.LANE), None)
        width = 1 if lane is None else int(lane.src[0].const_value)
        for at, entry in zip(self.project(full, own), self.out[value]):
            x = self.vectors.splat(self.value(entry, dt), width)
            lists[at] += [x] * times
        return lists

    @staticmethod
    def _strong(dtype: DType) -> DType:
        return strong_dtype(dtype)

    def _reduce_values(self, u: UOp) -> None:
        op = u.arg[0]
        lanes = any(r.arg[-1] is AxisType.LANE for r in u.src[1:])
        out = []
        for vals in self._copies_of(u):
            x = self._tree(op, vals)
            out.append(self.vectors.horizontal(op, x) if lanes else x)
        self.out[u] = out

    def _tree(self, op: Ops, vals: list[UOp]) -> UOp:
        """Combine pairwise; the order is fixed, so results do not depend on anything but the kernel."""
        while len(vals) > 1:
            pairs = [self.combine(op, a, b) for a, b in zip(vals[::2], vals[1::2])]
            vals = pairs + vals[2 * len(pairs):]
        return vals[0]

    def combine(self, op: Ops, acc: UOp, x: UOp) -> UOp:
        """One step of a reduction."""
        if acc.dtype is dtypes.bool:
            return self.logic(op, (acc, x))
        if op is Ops.ADD and x.op is Ops.WHERE and _is_zero(x.src[2]) and x.src[1].op is Ops.MUL and acc.op is Ops.LOAD:
            # acc + (c ? a*b : 0) -> c ? acc + a*b : acc; a sum that starts at +0 is never -0
            return self.alu(Ops.WHERE, (x.src[0], self.combine(op, acc, x.src[1]), acc))
        if op is Ops.ADD and x.op is Ops.MUL and x.dtype.is_float and self.renderer.caps.fma and \
                self.vectors.native(Ops.MULACC, x.dtype, max(self.vectors.width(x), self.vectors.width(acc))):
            return self.alu(Ops.MULACC, (*x.src, acc))
        if x.is_const and acc.is_const and not x.dtype.is_float:
            return UOp.const(evaluate(op, x.dtype, (acc.const_value, x.const_value)), x.dtype)
        return self.alu(op, (acc, x))

    def _outer(self, copies: list[tuple[UOp, list[list[UOp]]]], loops: list[UOp]) -> tuple[UOp, ...]:
        """The innermost loop around the reduction's own loops."""
        open_ranges: dict[UOp, None] = {}
        for _, lists in copies:
            for vals in lists:
                for v in vals:
                    open_ranges.update(v.ranges)
        for r in loops:
            open_ranges.update(r.src[0].ranges)
        around = [r for r in open_ranges if r not in loops and r in self.rank]
        return (max(around, key=self.rank.__getitem__),) if around else ()

    def _start(self, m: UOp, vals: list[UOp], outer: tuple[UOp, ...], loops: list[UOp]) -> "Accumulator":
        op, dt = m.arg[0], vals[0].dtype
        width = max(self.vectors.width(v) for v in vals)
        slot, self.accumulators = self.accumulators, self.accumulators + 1
        acc = Accumulator(UOp(Ops.BUFFER, (), ParamArg(slot, dt, width, addrspace=AddrSpace.REG)), width)
        init = UOp(Ops.STORE, (acc.place(acc.buffer.after(*outer)), self.vectors.splat(identity(op, dt), width)))
        inside = acc.place(acc.buffer.after(init, *loops))
        acc.inside, acc.values = inside, vals
        return acc

    def _updates(self, started: list[tuple[Ops, "Accumulator"]]) -> list[UOp]:
        """One iteration of all accumulators: a step of each, then the next step of each, so that what a step reads
        is used by all and then dead.
        """
        inside = {acc: acc.inside for _, acc in started}
        updates: dict[Accumulator, UOp] = {}
        for i in range(max(len(acc.values) for _, acc in started)):
            step = []
            for op, acc in started:
                if i < len(acc.values):
                    place = inside[acc]
                    x = UOp(Ops.LOAD, (place,))
                    x = self.vectors.mark_width(x, acc.width) if acc.width > 1 else x
                    updates[acc] = UOp(Ops.STORE, (place, self.combine(op, x, acc.values[i])))
                    step.append(updates[acc])
            group = UOp(Ops.GROUP, tuple(step))
            inside = {acc: acc.place(acc.buffer.after(group)) for _, acc in started}
        return list(updates.values())

    # *** closing loops ***
    def loops_of(self, ranges: list[UOp]) -> list[UOp]:
        """The strong RANGEs of loop ranges, outermost first."""
        found = [self.strong_range(r) for r in ranges]
        return sorted(found, key=self.rank.__getitem__)

    def close(self, effects: list[UOp], loops: list[UOp]) -> UOp:
        """One END per loop around ``effects``."""
        body = effects[0] if len(effects) == 1 else UOp(Ops.GROUP, tuple(effects))
        for r in reversed(loops):
            body = UOp(Ops.END, (body, r))
        return body

    def effects(self, u: UOp) -> list[UOp]:
        """All effects that the copies of ``u`` have; a range is the loop itself."""
        if u.op is Ops.RANGE:
            return [self.strong_ranges[u]] if u in self.strong_ranges else []
        out: list[UOp] = []
        for e in self.out[u]:
            if e.__class__ is not UOp or e.op is Ops.NOOP or e.op is Ops.CONST:
                continue
            out += e.src if e.op is Ops.GROUP else (e,)
        return list(dict.fromkeys(out))

    def end(self, u: UOp) -> None:
        self.mask[u] = 0
        effects, ranges = self.effects(u.src[0]), u.src[1:]
        if ranges and ranges[0].op is Ops.RANGE and ranges[0].src[0].op is Ops.NOOP:
            body = effects[0] if len(effects) == 1 else UOp(Ops.GROUP, tuple(effects))
            self.out[u] = [UOp(Ops.END, (body, self.strong_ranges[ranges[0]], *(self.out[c][0] for c in ranges[1:])))]
            return
        loops = self.loops_of([r for r in ranges if is_loop(r)])
        if u in self.deferred:
            self.deferred[u] = (effects, loops)
            self.out[u] = [UOp(Ops.NOOP)]
        else:
            self.out[u] = [self.close(effects, loops)] if effects else [UOp(Ops.NOOP)]

    def close_shared(self, pending: list[tuple[list[UOp], list[UOp]]]) -> list[UOp]:
        """Close the kernel's own loops, innermost first; effects in the same loop share its END."""
        items = [(effects, set(loops)) for effects, loops in pending if effects]
        ranges = sorted({r for _, loops in items for r in loops}, key=self.rank.__getitem__, reverse=True)
        for r in ranges:
            inside = [it for it in items if r in it[1]]
            body = [e for effects, _ in inside for e in effects]
            around = set().union(*[loops for _, loops in inside]) - {r}
            at = items.index(inside[-1])
            items[at] = ([self.close(body, [r])], around)
            items = [it for i, it in enumerate(items) if i == at or not any(it is x for x in inside)]
        return [e for effects, _ in items for e in effects]

    # *** order and roots ***
    def after(self, u: UOp) -> None:
        deps = [x for d in u.src[1:] for x in self.effects(d)]
        base = u.src[0]
        self.mask[u] = self.mask[base]
        self.out[u] = [self._after(e, deps) for e in self.out[base]]

    def _after(self, entry: Any, deps: list[UOp]) -> UOp:
        if not deps:
            return entry  # type: ignore[no-any-return]
        node = self._any(entry)
        out = UOp(Ops.AFTER, (node, *deps))
        return self.vectors.mark_width(out, self.vectors.width(node)) if self.vectors.is_vector(node) else out

    def group(self, u: UOp) -> None:
        effects = list(dict.fromkeys([x for s in u.src for x in self.effects(s)]))
        self.leaf(u, UOp(Ops.GROUP, tuple(effects)))

    def barrier(self, u: UOp) -> None:
        self.leaf(u, UOp(Ops.BARRIER, tuple(dict.fromkeys([x for s in u.src for x in self.effects(s)]))))

    def sink(self, u: UOp) -> None:
        pending = [self.deferred[s] for s in u.src if self.deferred.get(s) is not None]
        effects = self.close_shared([p for p in pending if p is not None])
        effects += [x for s in u.src if s not in self.deferred for x in self.effects(s)]
        self.leaf(u, UOp(Ops.SINK, tuple(dict.fromkeys(effects)), u.arg, u.tag))


def _is_zero(u: UOp) -> bool:
    return u.is_const and u.const_value == 0


class Accumulator:
    """One REG buffer of a reduction."""

    __slots__ = ("buffer", "width", "inside", "values")

    def __init__(self, buffer: UOp, width: int) -> None:
        self.buffer, self.width = buffer, width
        self.inside: UOp = buffer
        self.values: list[UOp] = []

    def place(self, base: UOp) -> UOp:
        """All lanes of the accumulator as a place."""
        zero = UOp.const(0, dtypes.int32)
        if self.width == 1:
            return UOp(Ops.INDEX, (base, zero))
        return UOp(Ops.SHRINK, (base, zero, UOp(Ops.CONST, (), self.width)))

    def result(self, x: Loops, done: UOp) -> UOp:
        """The value after the loop."""
        node = UOp(Ops.LOAD, (self.place(self.buffer.after(done)),))
        return x.vectors.mark_width(node, self.width) if self.width > 1 else node
