"""Windows: a copy of what a contraction reads, laid out by the sums of indices it is read at.

A convolution reads an image at ``y * step + tap``. Its window has one dimension for each such sum: every element is
copied once, with the padding that gates stood for, and the loops read it without a condition. Where the output steps
by ``s`` a dimension has ``s`` phases, each contiguous, so that neighbouring outputs read neighbouring elements.

Takes operands and conditions of the small kernel with groups of RANGEs; says whether they depend on each group only
through one weighted sum, and builds the nests that fill the window and the index that reads it.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import gcd
from typing import Any

from tinyhost.codegen.memory import gate_and_index
from tinyhost.codegen.strides import Linear, linear
from tinyhost.dtype import DType
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop import UOp
from tinyhost.uop.rules.free_ranges import exchange

PHASES_MOST = 16  # nests that fill a window, one for each combination of phases
BLOCKS_COPIED = 8  # blocks of a row that are copies rather than a loop
ROW_COPIES = 8  # elements copied per iteration where vectors are no use

Groups = tuple[tuple[UOp, ...], ...]


@dataclass(frozen=True)
class Side:
    """One dimension: ``sum(step * RANGE) - low`` lies in 0 .. extent - 1; it is ``phases`` rows, one after the other.

    The first RANGE is the one that moves along a phase.
    """

    ranges: tuple[UOp, ...]
    steps: tuple[int, ...]
    low: int
    extent: int
    phases: int

    @property
    def size(self) -> int:
        """Elements of one phase."""
        return int(ceildiv(self.extent, self.phases))


@dataclass(frozen=True)
class Window:
    """What is copied: an operand, or a condition as ones and zeros."""

    operand: UOp
    sides: tuple[Side, ...]

    @property
    def size(self) -> int:
        """Elements of the window."""
        return int(prod(s.size * s.phases for s in self.sides))

    def strides(self) -> tuple[list[int], list[int]]:
        """Elements per step of each dimension, and per phase; phases are outermost."""
        steps, phases, total = [], [], 1
        for s in reversed(self.sides):
            steps.append(total)
            total *= s.size
        for s in reversed(self.sides):
            phases.append(total)
            total *= s.phases
        return steps[::-1], phases[::-1]

    def stride(self, r: UOp) -> int | None:
        """Elements that reading moves per step of a RANGE; None where a phase ends between."""
        for s, step in zip(self.sides, self.strides()[0]):
            if r in s.ranges:
                c = s.steps[s.ranges.index(r)]
                return None if c % s.phases else c // s.phases * step
        return 0

    def read(self, values: dict[UOp, UOp]) -> Any:
        """The element that is read where the RANGEs have these values."""
        at: Any = UOp.const(0)
        for s, step, phase in zip(self.sides, *self.strides()):
            if s.phases == 1:
                at = _plus(at, _scaled(_sum(s, values, 0), step))
                continue
            rest = _sum(s, values, 1)
            at = _plus(at, _scaled(_plus(values[s.ranges[0]], _divided(Ops.FLOORDIV, rest, s.phases)), step))
            at = _plus(at, _scaled(_divided(Ops.FLOORMOD, rest, s.phases), phase))
        return at


# *** which windows there are ***
def overlaps(form: Linear, outputs: list[UOp], reduced: list[UOp]) -> bool:
    """Whether neighbouring results read common elements: steps of an output and of a sum reach over each other."""
    for o in outputs:
        for r in reduced:
            small, large = sorted((o, r), key=lambda x: abs(form.terms.get(x, 0)))
            step = abs(form.terms.get(small, 0))
            if step and step * (int(small.src[0].vmax) - 1) >= abs(form.terms[large]):
                return True
    return False


def sides_of(u: UOp, groups: Groups, memo: dict[UOp, Linear], like: tuple[Side, ...] = ()) -> tuple[Side, ...] | None:
    """The dimensions of a window over ``groups``; None where ``u`` depends on a group otherwise than through a weighted
    sum, the weights of which ``like`` gives if it is not empty.
    """
    inside = {r for g in groups for r in g}
    forms = forms_of(u, inside, (), memo)
    if forms is None or any(not inside.isdisjoint(f.opaque) for f in forms):
        return None
    out = []
    for i, g in enumerate(groups):
        steps = like[i].steps if like else _steps(g, forms)
        if steps is None or any(not _proportional(f, g, steps) for f in forms):
            return None
        lengths = [int(r.src[0].const_value) for r in g]
        low = sum(min(0, c * (n - 1)) for c, n in zip(steps, lengths))
        extent = 1 + sum(abs(c) * (n - 1) for c, n in zip(steps, lengths))
        out.append(Side(g, steps, low, extent, steps[0] if len(g) > 1 else 1))
    return tuple(out) if prod(s.phases for s in out) <= PHASES_MOST else None


def _steps(group: tuple[UOp, ...], forms: list[Linear]) -> tuple[int, ...] | None:
    """The weights of a group, without a common factor; one of them is 1 or -1."""
    for f in forms:
        terms = [f.terms.get(r, 0) for r in group]
        if any(terms):
            unit = gcd(*terms) * (-1 if terms[0] < 0 else 1)
            steps = tuple(t // unit for t in terms)
            return steps if all(steps) and any(abs(c) == 1 for c in steps) else None
    return None


def _proportional(f: Linear, group: tuple[UOp, ...], steps: tuple[int, ...]) -> bool:
    times = f.terms.get(group[0], 0) // steps[0]
    return all(f.terms.get(r, 0) == times * c for r, c in zip(group, steps))


def forms_of(
    u: UOp, inside: "set[UOp] | frozenset[UOp]", stops: tuple[UOp, ...], memo: dict[UOp, Linear]
) -> list[Linear] | None:
    """All index expressions and differences of compared ones under ``u``, not below ``stops``; None where something
    else depends on the RANGEs of ``inside``.
    """
    forms: list[Linear] = []
    stack, seen = [u], set(stops)
    while stack:
        x = stack.pop()
        if x in seen or inside.isdisjoint(x.ranges):
            continue
        seen.add(x)
        if x.op in GroupOp.Comparison and all(s.dtype.is_weak for s in x.src):
            forms.append(difference(x, memo))
        elif x.op is Ops.INDEX and len(x.src) == 2:
            gate, index = gate_and_index(x)
            forms.append(linear(index, memo))
            stack += [gate] if gate is not None else []
        elif x.op is Ops.RANGE or x.dtype.is_weak:
            return None
        else:
            stack += x.src[:1] if x.op is Ops.REDUCE else x.src
    return forms


def difference(u: UOp, memo: dict[UOp, Linear]) -> Linear:
    """Left minus right side of a comparison."""
    a, b = linear(u.src[0], memo), linear(u.src[1], memo)
    terms = {r: c for r in {**a.terms, **b.terms} if (c := a.terms.get(r, 0) - b.terms.get(r, 0))}
    return Linear(terms, a.const - b.const, a.opaque | b.opaque)


# *** filling ***
@dataclass
class Filling:
    """The nests that fill one window of an arena from ``offset``; ``fresh`` is the next free RANGE number."""

    window: Window
    value: UOp
    arena: UOp
    offset: int
    fresh: int
    lanes: int
    masked: bool
    memo: dict[UOp, Linear]

    def nests(self) -> list[UOp]:
        """ENDs that fill the window."""
        value, boxes = self._interior()
        whole = [(0, s.extent) for s in self.window.sides]
        zeros = [self._zeros()] if boxes != whole else []
        arena = self.arena.after(*zeros) if zeros else self.arena
        phases = product(*(range(s.phases) for s in self.window.sides))
        return [end for at in phases if (end := self._copy(arena, value, at, boxes)) is not None] or zeros

    def _range(self, size: int, kind: AxisType = AxisType.WEAK) -> UOp:
        if size == 1:
            return UOp.const(0)
        self.fresh += 1
        return UOp(Ops.RANGE, (UOp.const(size),), (self.fresh - 1, kind))

    @staticmethod
    def _end(store: UOp, ranges: list[UOp]) -> UOp:
        return store.end(*[r for r in ranges if r.op is Ops.RANGE])

    def _zeros(self) -> UOp:
        size = self.window.size
        at, ranges = self._row(size, self.lanes)
        zero = UOp.const(0, self.arena.dtype)
        return self._end(self.arena.index(_plus(at, UOp.const(self.offset))).store(zero), ranges)

    def _row(self, width: int, lanes: int) -> tuple[UOp, list[UOp]]:
        """An index over ``width`` elements, in vectors if ``lanes``, and its RANGEs."""
        n = 1 << (min(width, lanes).bit_length() - 1) if min(width, lanes) > 1 else 1
        if n == 1:
            copies = max(d for d in range(1, ROW_COPIES + 1) if width % d == 0)
            blocks, copy = self._range(width // copies), self._range(copies, AxisType.UPCAST)
            return _plus(_scaled(blocks, copies), copy), [blocks, copy]
        count = ceildiv(width, n)
        blocks = self._range(count, AxisType.UPCAST if count <= BLOCKS_COPIED else AxisType.WEAK)
        lane = self._range(n, AxisType.LANE)
        start: Any = _scaled(blocks, n)
        if width % n:
            last = UOp.const(width - n)
            start = UOp(Ops.WHERE, (start < last, start, last))
        return _plus(start, lane), [blocks, lane]

    def _copy(self, arena: UOp, value: UOp, phases: tuple[int, ...], boxes: list[tuple[int, int]]) -> UOp | None:
        """The nest for one combination of phases; None where it has no element."""
        write, ranges = UOp.const(self.offset), []
        swap: dict[UOp, UOp] = {}
        contiguous = self._contiguous(value)
        for s, phase, box, step, far in zip(self.window.sides, phases, boxes, *self.window.strides()):
            first = ceildiv(max(box[0] - phase, 0), s.phases)
            width = ceildiv(max(box[1] - phase, 0), s.phases) - first
            if width < 1:
                return None
            last = s is self.window.sides[-1]
            at, new = self._row(width, self.lanes if contiguous else 0) if last else (r := self._range(width), [r])
            ranges += new
            at = _plus(at, UOp.const(first))
            write = _plus(write, _plus(_scaled(at, step), UOp.const(phase * far)))
            swap |= _spread(s, _plus(_scaled(at, s.phases), UOp.const(phase + s.low)))
        return self._end(arena.index(write).store(exchange(value, swap)), ranges)

    def _contiguous(self, value: UOp) -> bool:
        """Whether a row of the window is read as vectors."""
        s = self.window.sides[-1]
        for x in value.toposort():
            if x.op is Ops.INDEX and len(x.src) == 2 and s.ranges[0] in x.ranges:
                gate, index = gate_and_index(x)
                step = linear(index, self.memo).terms.get(s.ranges[0], 0) // s.steps[0] * s.phases
                if step not in (0, 1, 2, 3, 4) or gate is not None and not self.masked and s.ranges[0] in gate.ranges:
                    return False
        return True

    def _interior(self) -> tuple[UOp, list[tuple[int, int]]]:
        """The value inside of a box, from and to along each dimension, outside of which it is 0."""
        boxes = [(0, s.extent) for s in self.window.sides]
        cond, inner = _guarded(self.value)
        if cond is None:
            return self.value, boxes
        rest: list[UOp] = []
        stack: list[tuple[UOp, bool]] = [(cond, True)]
        while stack:
            c, wanted = stack.pop()
            if c.op is Ops.AND and wanted:
                stack += [(s, True) for s in c.src]
            elif c.op is Ops.CMPNE and c.src[1].op is Ops.CONST and c.src[1].arg is True:
                stack.append((c.src[0], not wanted))
            elif c.op is not Ops.CMPLT or not self._bounded(difference(c, self.memo), wanted, boxes):
                rest.append(c if wanted else UOp(Ops.CMPNE, (c, UOp.const(True))))
        left = reduce(lambda a, b: UOp(Ops.AND, (a, b)), rest) if rest else None
        return _under(inner, cond, left), boxes

    def _bounded(self, d: Linear, below: bool, boxes: list[tuple[int, int]]) -> bool:
        """Narrow the box of the dimension along which ``d`` moves to ``d < 0``, or to its opposite."""
        moving = [i for i, s in enumerate(self.window.sides) if any(r in d.terms for r in s.ranges)]
        if len(moving) != 1 or d.opaque:
            return False
        s = self.window.sides[moving[0]]
        if set(d.terms) != set(s.ranges):
            return False
        times = d.terms[s.ranges[0]] // s.steps[0]
        const = d.const + times * s.low  # times * at + const < 0
        lo, hi = boxes[moving[0]]
        if below is (times > 0):  # at < edge
            edge = ceildiv(-const, times) if below else (const // -times) + 1
            boxes[moving[0]] = (lo, min(hi, edge))
        else:
            edge = (const // -times) + 1 if below else ceildiv(-const, times)
            boxes[moving[0]] = (max(lo, edge), hi)
        return True


def _guarded(value: UOp) -> tuple[UOp | None, UOp]:
    """(condition, value where it holds) of what is 0 elsewhere; (None, value) where nothing guards it."""
    if value.op is Ops.WHERE and value.src[2].is_const and value.src[2].const_value == 0:
        return value.src[0], value.src[1]
    if value.op is Ops.INDEX and len(value.src) == 2:
        return gate_and_index(value)[0], value
    return None, value


def _under(value: UOp, cond: UOp, rest: UOp | None) -> UOp:
    """``value`` where of a condition only ``rest`` is left to ask; 0 where that is false."""
    swap = {}
    for x in value.toposort():
        if x.op is Ops.INDEX and len(x.src) == 2:
            gate, index = gate_and_index(x)
            if gate is not None and gate is cond:
                swap[x] = UOp(Ops.INDEX, (x.src[0], index if rest is None else index.valid(rest)))
    value = value.substitute(swap, walk=True) if swap else value
    if rest is None or value.op is Ops.INDEX:
        return value
    return UOp(Ops.WHERE, (rest, value, UOp.const(0, value.dtype)))


def _spread(s: Side, total: UOp) -> dict[UOp, UOp]:
    """Values of a dimension's RANGEs whose sum is ``total``: one of weight 1 or -1 takes it all."""
    unit = next(i for i, c in enumerate(s.steps) if abs(c) == 1)
    return {r: _scaled(total, s.steps[i]) if i == unit else UOp.const(0) for i, r in enumerate(s.ranges)}


def plane(cond: UOp, dtype: DType) -> UOp:
    """A condition as a number."""
    return UOp(Ops.WHERE, (cond, UOp.const(1, dtype), UOp.const(0, dtype)))


# *** weak integers ***
def _sum(s: Side, values: dict[UOp, UOp], first: int) -> UOp:
    out = UOp.const(-s.low)
    for r, c in zip(s.ranges[first:], s.steps[first:]):
        out = _plus(out, _scaled(values[r], c))
    return out


def _divided(op: Ops, x: UOp, n: int) -> UOp:
    if x.op is Ops.CONST:
        return UOp.const(x.arg // n if op is Ops.FLOORDIV else x.arg % n)
    return UOp(op, (x, UOp.const(n)))


def _scaled(x: UOp, c: int) -> UOp:
    return UOp.const(x.arg * c) if x.op is Ops.CONST else x if c == 1 else UOp(Ops.MUL, (x, UOp.const(c)))


def _plus(x: UOp, y: UOp) -> UOp:
    if x.op is Ops.CONST and y.op is Ops.CONST:
        return UOp.const(x.arg + y.arg)
    if x.op is Ops.CONST and x.arg == 0:
        return y
    return x if y.op is Ops.CONST and y.arg == 0 else UOp(Ops.ADD, (x, y))
