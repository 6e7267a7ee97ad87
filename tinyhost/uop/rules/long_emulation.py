"""int64 and uint64 on targets that lack them: values are two uint32, memory is an array of words.

``emulate_longs`` takes the small kernel after decomposition (so divisors, counts and casts are in their domain) and
gives one without 64-bit integers: element i of storage is words 2*i and 2*i + 1, low word first. Index math stays
weak: an index read from memory is its low word, which every index inside storage of fewer than 2**31 elements is; in
comparisons and as a value it keeps all 64 bits. What each op computes is in ``long_arithmetic``. A sum is a few sums of
shorter digits, a maximum is that of the high words and then of the low words beside it, a product of up to 64 factors
is written out. Not covered, and an error: longer products, and the bits of a float64.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules import long_arithmetic as longs
from tinyhost.uop.rules.build import add, and_, differs, mul, shr, where
from tinyhost.uop.rules.long_arithmetic import Long, word

LONGS = frozenset(dtypes.int64s)
_PLACES = frozenset({Ops.INDEX, Ops.AFTER})
_U32, _I32 = dtypes.uint32, dtypes.int32
_MOST_FACTORS = 64  # of a product over an axis


def uses_longs(sink: UOp) -> bool:
    """Whether a kernel has 64-bit integers."""
    return any(u.dtype in LONGS for u in sink.toposort() if u.op is not Ops.SINK)


def _fits_int32(u: UOp) -> bool:
    low, high = u.bounds
    return bool(low >= _I32.min and high <= _I32.max)


def _cannot(what: str) -> DTypeError:
    return DTypeError(f"{what} has no emulation with 32-bit integers: cast to a type that the target has first, or run "
                      "where int64 exists (see EMULATED_DTYPES)")


class _Emulation:
    """One kernel on its way: what each node became, and the words of 64-bit values."""

    def __init__(self) -> None:
        self.new: dict[UOp, UOp] = {}
        self.words: dict[UOp, Long] = {}

    def run(self, sink: UOp) -> UOp:
        """The kernel without 64-bit integers."""
        self.axes = 1 + max((u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE), default=0)
        for u in sink.toposort():
            self.visit(u)
        return self.new[sink]

    # *** operands ***
    def long(self, u: UOp) -> Long:
        """A node as two words; a narrower integer is extended.

        Raises:
            DTypeError: it has no emulation.
        """
        if u in self.words:
            return self.words[u]
        if u.is_const:
            return longs.constant(int(u.const_value))
        if u.dtype is dtypes.weakint:
            if not _fits_int32(u):
                raise _cannot(f"index math of {u.op} with values from {u.vmin} to {u.vmax}")
            return longs.from_int(UOp(Ops.CAST, (self.new[u],), _I32))
        if u.dtype in LONGS or not (u.dtype.is_int or u.dtype is dtypes.bool):
            raise _cannot(f"{u.op} of {u.dtype}")
        return longs.from_int(self.new[u])

    def is_place(self, u: UOp) -> bool:
        """Whether ``u`` is storage or an element of it."""
        while u.op in _PLACES:
            u = u.src[0]
        return u.op in GroupOp.Defines and u.arg.addrspace is not AddrSpace.ALU

    def rebuilt(self, u: UOp) -> UOp:
        """``u`` over what its sources became."""
        src = tuple([self.new[s] for s in u.src])
        return u if src == u.src else UOp(u.op, src, u.arg, u.tag)

    # *** nodes ***
    def visit(self, u: UOp) -> None:
        """Set what ``u`` becomes; its sources are done."""
        if u.op in GroupOp.Defines and u.dtype in LONGS:
            self.define(u)
        elif u.op is Ops.STORE and u.src[0].dtype in LONGS:
            self.store(u)
        elif u.op in GroupOp.Comparison and any(self.is_long(s) for s in u.src):
            a, b = map(self.long, u.src)
            self.new[u] = self.compared(u, a, b)
        elif u.op in (Ops.CAST, Ops.BITCAST) and self.is_long(u.src[0]) and u.dtype not in LONGS:
            self.from_long(u)
        elif u.dtype in LONGS and not u.is_const:
            self.value(u)
        else:
            self.new[u] = self.rebuilt(u)
            if u.dtype is dtypes.weakint and not u.is_const and not _fits_int32(u):
                self.wide_index(u)

    def is_long(self, u: UOp) -> bool:
        """Whether a value needs 64 bits: by its type, or index math that came from such a type."""
        return u.dtype in LONGS or u in self.words

    def define(self, u: UOp) -> None:
        """Storage of words; a scalar argument must fit one."""
        if u.arg.addrspace is not AddrSpace.ALU:
            self.new[u] = u.replace(arg=replace(u.arg, dtype=_U32, size=2 * (u.arg.size or 1)))
        elif _fits_int32(u):
            self.new[u] = u.replace(arg=replace(u.arg, dtype=_I32))
            self.words[u] = longs.from_int(self.new[u])
        else:
            raise _cannot(f"the variable {u.arg.name!r} of {u.dtype} with values from {u.vmin} to {u.vmax}")

    def store(self, u: UOp) -> None:
        place, value = self.long(u.src[0]), self.long(u.src[1])
        gate = tuple(self.new[s] for s in u.src[2:])
        self.new[u] = UOp(Ops.GROUP, tuple(UOp(Ops.STORE, (p, v, *gate)) for p, v in zip(place, value)))

    def compared(self, u: UOp, a: Long, b: Long) -> UOp:
        if u.op is Ops.CMPLT:
            return longs.less_than(a, b, any(s.dtype is dtypes.uint64 for s in u.src))
        unequal = longs.unequal(a, b)
        return unequal if u.op is Ops.CMPNE else differs(unequal, UOp.const(True))

    def from_long(self, u: UOp) -> None:
        """CAST to another type."""
        x, unsigned, dt = self.long(u.src[0]), u.src[0].dtype is dtypes.uint64, u.dtype
        if u.op is Ops.BITCAST:
            raise _cannot(f"BITCAST of {u.src[0].dtype} to {dt}")
        if dt is dtypes.weakint:
            self.words[u] = x
            self.new[u] = UOp(Ops.CAST, (UOp(Ops.CAST, (x.low,), _I32),), dt)
        elif dt is dtypes.bool:
            self.new[u] = longs.unequal(x, longs.constant(0))
        elif dt.is_int:
            self.new[u] = longs.to_int(x, dt)
        else:
            work = dtypes.default_float if dt.is_weak else dt
            value = longs.to_double(x, unsigned) if work is dtypes.float64 else longs.to_single(
                x, unsigned, work is not dtypes.float32)
            self.new[u] = value.cast(work).cast(dt)

    def wide_index(self, u: UOp) -> None:
        """The words of index math beyond 32 bits, where it may be a value."""
        if u.op in longs.BINARY and all(s in self.words or s.is_const or _fits_int32(s) for s in u.src):
            self.words[u] = longs.BINARY[u.op](self.long(u.src[0]), self.long(u.src[1]), False)

    # *** values ***
    def value(self, u: UOp) -> None:
        """A 64-bit value."""
        if self.is_place(u) and u.op is Ops.AFTER:
            self.new[u] = self.rebuilt(u)
            return
        handler = _HANDLERS.get(u.op)
        if handler is not None:
            self.words[u] = handler(self, u)
        elif u.op in longs.BINARY:
            self.words[u] = longs.BINARY[u.op](self.long(u.src[0]), self.long(u.src[1]), u.dtype.is_unsigned)
        else:
            raise _cannot(f"{u.op} of {u.dtype}")
        self.new[u] = self.words[u].low  # only its words are asked for

    def element(self, u: UOp) -> Long:
        """INDEX: an element of storage is two words."""
        if len(u.src) != 2:
            raise _cannot(f"INDEX of {u.dtype} with {len(u.src) - 1} indices")
        base, index = self.new[u.src[0]], self.new[u.src[1]]
        return Long(*[UOp(Ops.INDEX, (base, _word_index(index, i))) for i in (0, 1)])

    def load(self, u: UOp) -> Long:
        place = self.long(u.src[0])
        if len(u.src) == 1:
            return Long(*[UOp(Ops.LOAD, (p,), u.arg) for p in place])
        gate = self.new[u.src[2]]
        return Long(*[UOp(Ops.LOAD, (p, alt, gate), u.arg) for p, alt in zip(place, self.long(u.src[1]))])

    def cast(self, u: UOp) -> Long:
        x = u.src[0]
        if x.dtype.is_float:
            wide = dtypes.default_float if x.dtype.is_weak else dtypes.float32 if x.dtype.itemsize < 4 else x.dtype
            return longs.from_float(self.new[x].cast(wide), u.dtype.is_unsigned)
        return self.long(x)

    def bitcast(self, u: UOp) -> Long:
        if u.src[0].dtype not in LONGS:
            raise _cannot(f"BITCAST of {u.src[0].dtype} to {u.dtype}")
        return self.long(u.src[0])

    def where(self, u: UOp) -> Long:
        return longs.select(self.new[u.src[0]], self.long(u.src[1]), self.long(u.src[2]))

    def shift(self, u: UOp) -> Long:
        x, unsigned = self.long(u.src[0]), u.dtype.is_unsigned
        left = u.op is Ops.SHL
        if u.src[1].is_const:
            count = int(u.src[1].const_value)
            return longs.shifted_left(x, count) if left else longs.shifted_right(x, count, unsigned)
        low = self.long(u.src[1]).low
        return longs.shift_left(x, low) if left else longs.shift_right(x, low, unsigned)

    def multiply_add(self, u: UOp) -> Long:
        a, b, c = map(self.long, u.src)
        return longs.plus(longs.times(a, b), c)

    # *** reductions ***
    def reduce(self, u: UOp) -> Long:
        op = u.arg[0]
        if op is Ops.ADD:
            return self.summed(u)
        if op is Ops.MAX:
            return self.largest(u)
        fixed = all(r.op is Ops.RANGE and r.src[0].is_const for r in u.src[1:])
        if op is Ops.MUL and fixed and _trips(u) <= _MOST_FACTORS:
            return self.multiplied(u)
        raise _cannot(f"a reduction of {u.dtype} by {op}")

    def summed(self, u: UOp) -> Long:
        """The sum of the low words as sums of digits that cannot overflow, that of the high words modulo 2**32."""
        x, ranges = self.long(u.src[0]), tuple(self.new[r] for r in u.src[1:])
        count = _trips(u)
        digit = next((d for d in (16, 8, 4) if count <= 1 << 32 - d), None)
        if digit is None:
            raise _cannot(f"a sum of {count} numbers of {u.dtype}")

        def over(value: UOp) -> UOp:
            return UOp(Ops.REDUCE, (value, *ranges), u.arg)
        total = Long(word(0), over(x.high))
        for shift in range(0, 32, digit):
            part = over(and_(shr(x.low, shift) if shift else x.low, word((1 << digit) - 1)))
            total = longs.plus(longs.shifted_left(Long(part, word(0)), shift), total)
        return total

    def largest(self, u: UOp) -> Long:
        """The largest high word, then the largest low word beside it, in a second loop."""
        x, unsigned = self.long(u.src[0]), u.dtype.is_unsigned
        ranges = tuple(self.new[r] for r in u.src[1:])
        high = x.high if unsigned else UOp(Ops.CAST, (x.high,), _I32)
        top = UOp(Ops.REDUCE, (high, *ranges), u.arg)
        again = {r: self.fresh_range(r) for r in ranges}
        beside = where(differs(high.substitute(again), top), word(0), x.low.substitute(again))
        low = UOp(Ops.REDUCE, (beside, *again.values()), u.arg)
        return Long(low, top if unsigned else UOp(Ops.CAST, (top,), _U32))

    def multiplied(self, u: UOp) -> Long:
        """The product, written out: its words carry into each other, so it is no reduction of words."""
        x, ranges = self.long(u.src[0]), [self.new[r] for r in u.src[1:]]
        total = longs.constant(1)
        for indices in itertools.product(*[range(int(r.vmax) + 1) for r in ranges]):
            here = {r: UOp.const(i) for r, i in zip(ranges, indices)}
            total = longs.times(total, Long(x.low.substitute(here), x.high.substitute(here)))
        return total

    def fresh_range(self, r: UOp) -> UOp:
        """A range like ``r`` with a number of its own."""
        self.axes += 1
        return r.replace(arg=(self.axes - 1, *r.arg[1:-1], AxisType.REDUCE))


def _trips(reduction: UOp) -> int:
    """How many numbers a reduction takes, at most."""
    return math.prod(int(r.vmax) + 1 for r in reduction.src[1:])


def _word_index(index: UOp, which: int) -> UOp:
    """The index of a word of the element ``index``; no element stays none."""
    if index.op is Ops.WHERE and index.src[2].is_const and index.src[2].is_invalid:
        return where(index.src[0], _word_index(index.src[1], which), index.src[2])
    doubled = mul(index, UOp.const(2))
    return add(doubled, UOp.const(which)) if which else doubled


_HANDLERS: dict[Ops, Callable[[Any, UOp], Long]] = {
    Ops.INDEX: _Emulation.element, Ops.LOAD: _Emulation.load, Ops.CAST: _Emulation.cast,
    Ops.BITCAST: _Emulation.bitcast, Ops.WHERE: _Emulation.where, Ops.SHL: _Emulation.shift,
    Ops.SHR: _Emulation.shift, Ops.MULACC: _Emulation.multiply_add, Ops.REDUCE: _Emulation.reduce,
    Ops.NEG: lambda e, u: longs.minus(longs.constant(0), e.long(u.src[0])),
    Ops.TRUNC: lambda e, u: e.long(u.src[0])}


def emulate_longs(sink: UOp) -> UOp:
    """``sink`` without int64 and uint64; what needs no change keeps its identity.

    Raises:
        DTypeError: something has no emulation.
    """
    return _Emulation().run(sink) if uses_longs(sink) else sink
