"""POW: x**y = 2**(y * log2(x)), the logarithm and the product as sums of two floats.

The product may be as large as the exponent range, so an error of the logarithm counts as often: it is computed to about
twice the digits of the type, and a result of any size is within 2 ulp. float32 goes through float64 where the target
has that type, which has digits enough for one plain product. Special cases are those of IEEE 754 (section 9.2.1).
Integer powers are the mixin's squarings.
"""
from __future__ import annotations

import math
from fractions import Fraction

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, differs, less, mul, or_, sub, where
from tinyhost.uop.rules.common import literal
from tinyhost.uop.rules.double_word import Pair, constant, fast_sum, product, scaled, times
from tinyhost.uop.rules.float_format import FORMATS, Format, kept_within, magnitude, polynomial, round_to_int
from tinyhost.uop.rules.transcendental import exp2_of_fraction, mantissa_and_exponent, times_power_of_2, work_dtype

_LOG2_E = Fraction(0xb8aa3b295c17f0bbbe87fed0691d3e88, 1 << 127)  # 1 / log(2)


def _pair(value: Fraction, dt: DType) -> Pair:
    """A rational number as a pair of literals."""
    high = truncate[dt](float(value))
    return constant(high, float(value - Fraction(high)), dt)


def _log2_pair(x: UOp, fmt: Format) -> Pair:
    """log2 of a positive finite number as a pair.

    log2(m) = 2/log(2) * atanh(s) with s = (m - 1) / (m + 1) and atanh(s) = s * (1 + s**2 * (1/3 + s**2 * (1/5 + ...))),
    the terms from 1/5 on in plain arithmetic.
    """
    dt = fmt.dtype
    f, e = mantissa_and_exponent(x, fmt)
    s = _quotient(f, fast_sum(UOp.const(2.0, dt), f))
    w = times(s, s)
    third = _pair(Fraction(1, 3), dt)
    tail = mul(w[0], polynomial(w[0], fmt.atanh))
    top, lost = fast_sum(third[0], tail)
    u = times(w, (top, add(lost, third[1])))
    one, lost = fast_sum(UOp.const(1.0, dt), u[0])
    high, low = times(times(s, (one, add(lost, u[1]))), _pair(2 * _LOG2_E, dt))
    total, lost = fast_sum(e, high)
    return total, add(lost, low)


def _quotient(a: UOp, b: Pair) -> Pair:
    """a / b."""
    q = UOp(Ops.FDIV, (a, b[0]))
    exact, lost = product(q, b[0])
    rest = sub(sub(sub(a, exact), lost), mul(q, b[1]))
    return q, UOp(Ops.FDIV, (rest, b[0]))


def _exp2_pair(high: UOp, low: UOp, fmt: Format) -> UOp:
    """2**(high + low)."""
    kept = kept_within(high, *fmt.exp2_range)
    pattern, n = round_to_int(kept, fmt)
    low = where(differs(kept, high), UOp.const(0.0, fmt.dtype), low)
    return times_power_of_2(exp2_of_fraction(add(sub(kept, n), low), fmt), pattern, fmt)


def _of_magnitude(size: UOp, y: UOp, fmt: Format) -> UOp:
    """size**y for size >= 0 or NaN, but for size = 1 and for y = 0."""
    dt = fmt.dtype
    most = 2.0 ** (fmt.mantissa + 12)  # beyond, every number but 1 over- or underflows
    y = kept_within(y, -most, most)
    high, low = scaled(_log2_pair(size, fmt), y)
    zero, infinity = UOp.const(0.0, dt), UOp.const(math.inf, dt)
    regular = and_(less(zero, size), less(size, infinity))
    pole = where(differs(size, zero), size, UOp.const(-math.inf, dt))  # log2 of 0, infinity and NaN
    return _exp2_pair(where(regular, high, mul(y, pole)), where(regular, low, zero), fmt)


def power(x: UOp, y: UOp, fmt: Format, narrow: bool = False) -> UOp:
    """x**y for floats; with ``narrow`` to the digits of float32 only, in float64."""
    dt, ints = fmt.dtype, fmt.bits

    def const(v: float) -> UOp:
        return UOp.const(v, dt)
    sign, size = magnitude(x, fmt)
    # 1**y and x**0 are 1, whatever the other
    value = UOp(Ops.EXP2, (mul(y, UOp(Ops.LOG2, (size,))),)) if narrow else _of_magnitude(size, y, fmt)
    value = where(and_(differs(size, const(1.0)), differs(y, const(0.0))), value, const(1.0))
    whole = UOp(Ops.TRUNC, (y,))
    half = mul(y, const(0.5))
    odd = and_(differs(UOp(Ops.TRUNC, (half,)), half), differs(differs(whole, y), UOp.const(True)))
    flip = where(odd, sign, UOp.const(0, ints))
    value = bits(or_(bits(value, ints), flip), dt)
    negative = and_(less(x, const(0.0)), less(const(-math.inf), x))
    return where(and_(negative, differs(whole, y)), const(math.nan), value)


# *** rules ***
def _power(u: UOp, x: UOp, y: UOp, wide: DType) -> UOp | None:
    dt = u.dtype
    if dt.is_int and not dt.is_weak:
        return x.cast(dt)._pow_int(y)
    own = work_dtype(dt)
    if own is None:
        return None
    exponent = literal(y)
    if exponent == 1.0:
        return x.cast(dt)
    if exponent == 2.0:
        return mul(x, x).cast(dt)
    work = own if own is dtypes.float64 else wide
    return power(x.cast(work), y.cast(work), FORMATS[work], work is not own).cast(dt)


def power_in_float64(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets with float64."""
    return _power(u, x, y, dtypes.float64)


def power_in_float32(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets without float64."""
    return _power(u, x, y, dtypes.float32)
