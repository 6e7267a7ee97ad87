"""64-bit integers as two uint32: what each op on them computes, as expressions.

Takes and gives ``Long``, a pair of nodes, low word first, in two's complement; signedness is an argument where it
matters. Operands must be in the domain that ``decompose`` leaves (shift counts below 64, no division by 0, no
INT_MIN / -1). Products and quotients are schoolbook and Knuth's in digits of 16 bits (Warren, "Hacker's Delight", 2nd
edition, sections 8-2 and 9-5). Nothing here is a rule or knows graphs.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, differs, less, mul, or_, shl, shr, sub, where, xor
from tinyhost.uop.rules.common import NATIVE

U32, I32, F32, F64 = dtypes.uint32, dtypes.int32, dtypes.float32, dtypes.float64


class Long(NamedTuple):
    """A 64-bit integer: two uint32 nodes."""

    low: UOp
    high: UOp


def word(v: int) -> UOp:
    """A uint32 literal."""
    return UOp.const(v & 0xFFFFFFFF, U32)


def constant(v: int) -> Long:
    """A literal, wrapped."""
    return Long(word(v), word(v >> 32))


def _bit(condition: UOp) -> UOp:
    """1 where a condition holds, else 0."""
    return UOp(Ops.CAST, (condition,), U32)


def _signed(x: UOp) -> UOp:
    return UOp(Ops.CAST, (x,), I32)


def sign_words(x: UOp) -> UOp:
    """All bits of a word set where its top bit is, else none."""
    return UOp(Ops.CAST, (shr(_signed(x), 31),), U32)


# *** sums, bits, comparisons ***
def plus(a: Long, b: Long) -> Long:
    """a + b."""
    low = add(a.low, b.low)
    return Long(low, add(add(a.high, b.high), _bit(less(low, a.low))))


def minus(a: Long, b: Long) -> Long:
    """a - b."""
    return Long(sub(a.low, b.low), sub(sub(a.high, b.high), _bit(less(a.low, b.low))))


def negated_where(x: Long, mask: UOp) -> Long:
    """-x where the word ``mask`` has all bits set, x where it has none."""
    return minus(Long(xor(x.low, mask), xor(x.high, mask)), Long(mask, mask))


def bitwise(op: Ops, a: Long, b: Long) -> Long:
    """AND, OR or XOR."""
    return Long(UOp(op, (a.low, b.low)), UOp(op, (a.high, b.high)))


def select(c: UOp, a: Long, b: Long) -> Long:
    """a where c, else b."""
    return Long(where(c, a.low, b.low), where(c, a.high, b.high))


def less_than(a: Long, b: Long, unsigned: bool) -> UOp:
    """a < b."""
    top = (a.high, b.high) if unsigned else (_signed(a.high), _signed(b.high))
    return where(differs(a.high, b.high), less(*top), less(a.low, b.low))


def unequal(a: Long, b: Long) -> UOp:
    """a != b."""
    return differs(or_(xor(a.low, b.low), xor(a.high, b.high)), word(0))


# *** shifts ***
def shifted_left(x: Long, count: int) -> Long:
    """x << count for a literal count below 64."""
    if count == 0:
        return x
    if count >= 32:
        return Long(word(0), shl(x.low, count - 32) if count > 32 else x.low)
    return Long(shl(x.low, count), or_(shl(x.high, count), shr(x.low, 32 - count)))


def shifted_right(x: Long, count: int, unsigned: bool) -> Long:
    """x >> count for a literal count below 64."""
    if count == 0:
        return x
    fill = word(0) if unsigned else sign_words(x.high)
    high = shr(x.high, count & 31) if unsigned else UOp(Ops.CAST, (shr(_signed(x.high), count & 31),), U32)
    if count >= 32:
        return Long(high if count > 32 else x.high, fill)
    return Long(or_(shr(x.low, count), shl(x.high, 32 - count)), high)


def _shift(op: Ops, x: UOp, count: UOp) -> UOp:
    return UOp(op, (x, count))


def shift_left(x: Long, count: UOp) -> Long:
    """x << count for a uint32 count below 64."""
    small = and_(count, word(31))
    low = _shift(Ops.SHL, x.low, small)
    carried = _shift(Ops.SHR, shr(x.low, 1), sub(word(31), small))
    big = less(word(31), count)
    return Long(where(big, word(0), low), where(big, low, or_(_shift(Ops.SHL, x.high, small), carried)))


def shift_right(x: Long, count: UOp, unsigned: bool) -> Long:
    """x >> count for a uint32 count below 64."""
    small = and_(count, word(31))
    if unsigned:
        high, fill = _shift(Ops.SHR, x.high, small), word(0)
    else:
        high = UOp(Ops.CAST, (UOp(Ops.SHR, (_signed(x.high), small)),), U32)
        fill = sign_words(x.high)
    carried = _shift(Ops.SHL, shl(x.high, 1), sub(word(31), small))
    big = less(word(31), count)
    return Long(where(big, high, or_(_shift(Ops.SHR, x.low, small), carried)), where(big, fill, high))


# *** products and quotients ***
def wide_product(a: UOp, b: UOp) -> Long:
    """All 64 bits of the product of two words."""
    (a1, a0), (b1, b0) = ((shr(v, 16), and_(v, word(0xFFFF))) for v in (a, b))
    middle = add(mul(a1, b0), shr(mul(a0, b0), 16))
    other = add(mul(a0, b1), and_(middle, word(0xFFFF)))
    return Long(mul(a, b), add(add(mul(a1, b1), shr(middle, 16)), shr(other, 16)))


def times(a: Long, b: Long) -> Long:
    """a * b."""
    low = wide_product(a.low, b.low)
    return Long(low.low, add(low.high, add(mul(a.low, b.high), mul(a.high, b.low))))


def _quotient(a: UOp, b: UOp) -> UOp:
    """a // b of words; b is not 0. The tag of the machine's own instruction keeps decompositions away."""
    return UOp(Ops.CDIV, (a, b), tag=NATIVE)


def _normalising_shift(x: UOp) -> UOp:
    """The number of leading zeros of a word that is not 0."""
    count = word(0)
    for step in (16, 8, 4, 2, 1):
        short = less(x, word(1 << 32 - step))
        count = add(count, where(short, word(step), word(0)))
        x = where(short, shl(x, step), x)
    return count


def _digit(high: UOp, next_digit: UOp, divisor: UOp) -> UOp:
    """The 16-bit digit (high * 2**16 + next_digit) // divisor, divisor normalised and above high."""
    d1, d0 = shr(divisor, 16), and_(divisor, word(0xFFFF))
    q = _quotient(high, d1)
    rest = sub(high, mul(q, d1))
    for _ in range(2):  # the estimate is at most 2 too large
        too_large = and_(less(rest, word(0x10000)), or_(less(word(0xFFFF), q), less(
            or_(shl(rest, 16), next_digit), mul(q, d0))))
        q = where(too_large, sub(q, word(1)), q)
        rest = where(too_large, add(rest, d1), rest)
    return q


def _divided_words(x: Long, divisor: UOp) -> UOp:
    """x // divisor for a normalised word above x.high: the quotient fits a word."""
    n1, n0 = shr(x.low, 16), and_(x.low, word(0xFFFF))
    q1 = _digit(x.high, n1, divisor)
    rest = sub(or_(shl(x.high, 16), n1), mul(q1, divisor))
    return or_(shl(q1, 16), _digit(rest, n0, divisor))


def unsigned_quotient(a: Long, b: Long) -> Long:
    """a // b of unsigned numbers; b is not 0."""
    short = differs(differs(b.high, word(0)), UOp.const(True))  # the divisor is one word
    divisor = where(short, b.low, b.high)
    shift = _normalising_shift(where(differs(divisor, word(0)), divisor, word(1)))
    top = shift_left(b, shift)
    normalised = where(short, top.low, top.high)
    # one word: both words of the quotient; two: its only word, from half of a, then shifted back
    first = where(short, _quotient(a.high, where(short, b.low, word(1))), word(0))
    rest = sub(a.high, mul(first, b.low))
    half = shifted_right(a, 1, True)
    dividend = select(short, shift_left(Long(a.low, rest), shift), half)
    q = _divided_words(dividend, normalised)
    # (q << shift) >> 31, less 1 unless 0
    estimate = shift_right(shift_left(Long(q, word(0)), shift), word(31), True).low
    estimate = where(differs(estimate, word(0)), sub(estimate, word(1)), estimate)
    left = minus(a, times(Long(estimate, word(0)), b))
    estimate = where(less_than(left, b, True), estimate, add(estimate, word(1)))
    return Long(where(short, q, estimate), first)


def quotient(a: Long, b: Long, unsigned: bool) -> Long:
    """a / b toward zero."""
    if unsigned:
        return unsigned_quotient(a, b)
    sa, sb = sign_words(a.high), sign_words(b.high)
    return negated_where(unsigned_quotient(negated_where(a, sa), negated_where(b, sb)), xor(sa, sb))


def remainder(a: Long, b: Long, unsigned: bool) -> Long:
    """The rest of that division, with the sign of a."""
    return minus(a, times(quotient(a, b, unsigned), b))


# *** conversions ***
def from_int(x: UOp) -> Long:
    """A bool or an integer of at most 32 bits."""
    low = UOp(Ops.CAST, (x,), U32)
    return Long(low, word(0) if x.dtype is dtypes.bool or x.dtype.is_unsigned else sign_words(low))


def to_int(x: Long, dtype: DType) -> UOp:
    """An integer of at most 32 bits, wrapped."""
    return x.low if dtype is U32 else UOp(Ops.CAST, (x.low,), dtype)


def from_float(x: UOp, unsigned: bool) -> Long:
    """A float32 or float64 whose whole part fits, toward zero."""
    dt = x.dtype
    negative = less(x, UOp.const(0.0, dt))
    size = where(negative, mul(x, UOp.const(-1.0, dt)), x)
    high = UOp(Ops.CAST, (mul(size, UOp.const(2.0**-32, dt)),), U32, NATIVE)
    rest = sub(size, mul(UOp(Ops.CAST, (high,), dt), UOp.const(2.0**32, dt)))
    magnitude = Long(UOp(Ops.CAST, (rest,), U32, NATIVE), high)
    return magnitude if unsigned else negated_where(magnitude, where(negative, word(-1), word(0)))


def to_double(x: Long, unsigned: bool) -> UOp:
    """float64, rounded once: both words are exact."""
    high = UOp(Ops.CAST, (x.high if unsigned else _signed(x.high),), F64)
    return add(mul(high, UOp.const(2.0**32, F64)), UOp(Ops.CAST, (x.low,), F64))


def to_single(x: Long, unsigned: bool, to_odd: bool) -> UOp:
    """float32, rounded to nearest; ``to_odd``: with a last bit that keeps a later rounding right."""
    sign = word(0) if unsigned else sign_words(x.high)
    x = negated_where(x, sign)
    scale = UOp.const(2.0**32, F32)
    empty = differs(differs(x.high, word(0)), UOp.const(True))
    x = Long(where(empty, word(0), x.low), where(empty, x.low, x.high))
    scale = where(empty, UOp.const(1.0, F32), scale)
    for step in (16, 8, 4):  # leave enough bits in the upper word
        short = less(x.high, word(1 << 32 - step))
        x = select(short, shifted_left(x, step), x)
        scale = where(short, mul(scale, UOp.const(2.0**-step, F32)), scale)
    top = or_(x.high, _bit(differs(x.low, word(0))))
    if to_odd:
        top = or_(shr(top, 8), _bit(differs(and_(top, word(0xFF)), word(0))))
        scale = mul(scale, UOp.const(256.0, F32))
    value = mul(UOp(Ops.CAST, (top,), F32), scale)
    return value if unsigned else where(differs(sign, word(0)), mul(value, UOp.const(-1.0, F32)), value)


BINARY: dict[Ops, Callable[[Long, Long, bool], Long]] = {
    Ops.ADD: lambda a, b, unsigned: plus(a, b), Ops.SUB: lambda a, b, unsigned: minus(a, b),
    Ops.MUL: lambda a, b, unsigned: times(a, b), Ops.CDIV: quotient, Ops.CMOD: remainder,
    Ops.MAX: lambda a, b, unsigned: select(less_than(a, b, unsigned), b, a),
    Ops.AND: lambda a, b, unsigned: bitwise(Ops.AND, a, b), Ops.OR: lambda a, b, unsigned: bitwise(Ops.OR, a, b),
    Ops.XOR: lambda a, b, unsigned: bitwise(Ops.XOR, a, b)}
"""Ops of two operands of the result's type; the last argument says whether that is unsigned."""
