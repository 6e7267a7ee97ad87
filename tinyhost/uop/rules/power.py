"""POW: x**y = 2**(y * log2(x)), the logarithm and the product as sums of two floats.

The product may be as large as the exponent range, so an error of the logarithm counts as often: it is computed to about
twice the digits of the type, and a result of any size is within 2 ulp. float32 goes through float64 where the target
has that type, which has digits enough for one plain product. Special cases are those of IEEE 754 (section 9.2.1).
Integer powers are the mixin's squarings.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, differs, fma, less, mul, or_, shl, sub, where
from tinyhost.uop.rules.common import literal
from tinyhost.uop.rules.double_word import Pair, constant, fast_sum, product, scaled, times
from tinyhost.uop.rules.exp_polynomials import exp2_near
from tinyhost.uop.rules.float_format import (
    FLOAT32,
    FLOAT64,
    FORMATS,
    Format,
    kept_within,
    magnitude,
    nearest,
    polynomial,
)
from tinyhost.uop.rules.log_polynomials import TWO_THIRDS, mantissa_and_exponent
from tinyhost.uop.rules.transcendental import work_dtype

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
    low = where(differs(kept, high), UOp.const(0.0, fmt.dtype), low)
    return exp2_near(kept, low, fmt)


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


# *** float32 by way of float64 ***
# log2(1 + f) / f on [-1/3, 1/3] and (2**f - 1) / f on [-1/2, 1/2], to the digits of float32 and those of an exponent
_LOG2 = (1.442695040892574, -0.7213475204691215, 0.4808983438032464, -0.36067375189598366, 0.28853945837830536,
         -0.24044998226403957, 0.20607533338768746, -0.18030246448507722, 0.16090236011104309, -0.1450145457695729,
         0.123473540704568, -0.11172364764172267, 0.1578102988955057, -0.15058814554660063)
_EXP2 = (0.6931471807048115, 0.2402265106702232, 0.055504103653184624, 0.009618038057067969, 0.0013333935390775022,
         0.0001546678226875528, 1.5196129149425585e-05)


def _of_narrow_magnitude(size: UOp, y: UOp) -> UOp:
    """size**y in float32 for size >= 0 or NaN, but for size = 1 and for y = 0; between, in float64."""
    fmt, dt = FLOAT64, dtypes.float64
    f, e = mantissa_and_exponent(size, FLOAT32, TWO_THIRDS)
    # log2 of 0, infinity and NaN
    e = where(less(size, UOp.const(math.inf, dtypes.float32)), e, size)
    e = where(differs(size, UOp.const(0.0, dtypes.float32)), e, UOp.const(-math.inf, dtypes.float32))
    f, e, y = f.cast(dt), e.cast(dt), y.cast(dt)
    product = mul(fma(f, polynomial(f, _LOG2), e), y)
    product = kept_within(product, -1000.0, 1000.0)  # beyond, float32 is 0 or infinite
    pattern, n = nearest(product, 1.0, 0, fmt)
    rest = sub(product, n)
    value = fma(polynomial(rest, _EXP2), rest, UOp.const(1.0, dt))
    return bits(add(bits(value, fmt.bits), shl(pattern, fmt.mantissa)), dt).cast(dtypes.float32)


# *** special cases ***
def _is_whole_and_odd(y: UOp) -> tuple[UOp, UOp]:
    """Whether a float is a whole number, and an odd one."""
    exponent = literal(y)
    if exponent is not None:
        whole = math.isfinite(exponent) and exponent == int(exponent) or math.isinf(exponent)
        return UOp.const(whole), UOp.const(whole and math.isfinite(exponent) and int(exponent) % 2 == 1)
    whole, half = UOp(Ops.TRUNC, (y,)), mul(y, UOp.const(0.5, y.dtype))
    is_whole = differs(differs(whole, y), UOp.const(True))
    return is_whole, and_(differs(UOp(Ops.TRUNC, (half,)), half), is_whole)


def power(x: UOp, y: UOp, of_magnitude: Callable[[UOp, UOp], UOp], fmt: Format) -> UOp:
    """x**y, where ``of_magnitude`` is |x|**y but for |x| = 1 and y = 0."""
    dt, ints = fmt.dtype, fmt.bits

    def const(v: float) -> UOp:
        return UOp.const(v, dt)
    sign, size = magnitude(x, fmt)
    # 1**y and x**0 are 1, whatever the other
    value = where(and_(differs(size, const(1.0)), differs(y, const(0.0))), of_magnitude(size, y), const(1.0))
    whole, odd = _is_whole_and_odd(y)
    if literal(odd) is not False:
        value = bits(or_(bits(value, ints), where(odd, sign, UOp.const(0, ints))), dt)
    if literal(whole) is True:
        return value
    negative = and_(less(x, const(0.0)), less(const(-math.inf), x))
    return where(and_(negative, differs(whole, UOp.const(True))), const(math.nan), value)


# *** rules ***
def _square_root(x: UOp, fmt: Format) -> UOp:
    """x**0.5, which differs from a square root for -0.0 and minus infinity."""
    dt = fmt.dtype
    infinite = differs(x, UOp.const(-math.inf, dt))
    return where(infinite, UOp(Ops.SQRT, (add(x, UOp.const(0.0, dt)),)), UOp.const(math.inf, dt))


def _power(u: UOp, x: UOp, y: UOp, wide: DType) -> UOp | None:
    dt = u.dtype
    if dt.is_int and not dt.is_weak:
        return x.cast(dt)._pow_int(y)
    own = work_dtype(dt)
    if own is None:
        return None
    fmt, exponent = FORMATS[own], literal(y)
    if exponent == 1.0:
        return x.cast(dt)
    if exponent == 2.0:
        return mul(x, x).cast(dt)
    x, y = x.cast(own), UOp.const(exponent, own) if isinstance(exponent, float) else y.cast(own)
    if exponent == 0.5:
        return _square_root(x, fmt).cast(dt)
    if own is dtypes.float32 and wide is dtypes.float64:
        return power(x, y, _of_narrow_magnitude, fmt).cast(dt)
    return power(x, y, lambda size, y: _of_magnitude(size, y, fmt), fmt).cast(dt)


def power_in_float64(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets with float64."""
    return _power(u, x, y, dtypes.float64)


def power_in_float32(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets without float64."""
    return _power(u, x, y, dtypes.float32)
