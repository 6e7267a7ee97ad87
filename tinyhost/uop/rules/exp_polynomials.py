"""EXP2 and its relatives as straight-line arithmetic: e**x, e**x - 1, the logistic function, tanh and erf.

Each splits its argument into n*log(2) + r with a whole n, takes a polynomial of r and scales it by 2**n, which is built
out of bits: the sum that rounds to a whole number leaves n, and what else the exponent field needs, in its low bits.
Arguments are clamped first to where results still change, so no such field overflows; NaN passes every clamp.
"""
from __future__ import annotations

import math

from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, bits, fma, less, maximum, mul, or_, shl, sub, where
from tinyhost.uop.rules.float_format import FLOAT32, Format, kept_within, magnitude, nearest, polynomial


def _power_of_2(pattern: UOp, fmt: Format) -> UOp:
    """2**n where ``pattern`` ends in n + bias."""
    return bits(shl(pattern, fmt.mantissa), fmt.dtype)


def _scaled_twice(value: UOp, pattern: UOp, fmt: Format) -> UOp:
    """value * 2**(2*n) where ``pattern`` ends in n + bias; two factors make overflow and underflow gradual."""
    half = _power_of_2(pattern, fmt)
    return mul(mul(value, half), half)


def exp2_near(high: UOp, low: UOp | None, fmt: Format) -> UOp:
    """2**(high + low) for ``high`` within ``fmt.exp2_range``: 2**(2*n) * 2**f with |f| up to 1."""
    pattern, n = nearest(high, 0.5, fmt.bias, fmt)
    f = fma(n, UOp.const(-2.0, fmt.dtype), high)
    f = f if low is None else add(f, low)
    value = fma(polynomial(f, fmt.exp2), f, UOp.const(1.0, fmt.dtype))
    return _scaled_twice(value, pattern, fmt)


def exp2(x: UOp, fmt: Format) -> UOp:
    """2**x."""
    return exp2_near(kept_within(x, *fmt.exp2_range), None, fmt)


def _rest(x: UOp, n: UOp, step: float, fmt: Format) -> UOp:
    """x - n * step * log(2) for ``step`` a power of 2 or minus that, log(2) in two parts."""
    high, low = (UOp.const(-step * part, fmt.dtype) for part in fmt.ln2)
    return fma(n, low, fma(n, high, x))


def _short_rest(x: UOp, n: UOp, step: float, fmt: Format) -> UOp:
    """``_rest`` where its last digits count for small n only."""
    if fmt is not FLOAT32:
        return _rest(x, n, step, fmt)
    return fma(n, UOp.const(-step * math.log(2), fmt.dtype), x)  # log(2) is nearly a number of float32


def _exp_polynomial(r: UOp, coefficients: tuple[float, ...], sign: float) -> UOp:
    """e**(sign * r)."""
    return polynomial(r, tuple(c * sign**i for i, c in enumerate((1.0, 1.0, *coefficients))))


def exp(x: UOp, sign: float, fmt: Format) -> UOp:
    """e**(sign * x) for a sign of 1 or -1."""
    x = kept_within(x, *sorted(sign * bound / fmt.log2_e for bound in fmt.exp2_range))
    pattern, n = nearest(x, sign * fmt.log2_e / 2, fmt.bias, fmt)
    return _scaled_twice(_exp_polynomial(_rest(x, n, 2 * sign, fmt), fmt.exp_wide, sign), pattern, fmt)


def exp_up_to_zero(x: UOp, fmt: Format) -> UOp:
    """e**x for x up to 0: scaled well above the subnormal numbers, then down at once."""
    x = maximum(x, UOp.const(fmt.exp2_range[0] / fmt.log2_e, fmt.dtype))
    pattern, n = nearest(x, fmt.log2_e, fmt.raised, fmt)
    value = _exp_polynomial(_rest(x, n, 1.0, fmt), fmt.exp, 1.0)
    scaled = add(bits(value, fmt.bits), shl(pattern, fmt.mantissa))
    return mul(bits(scaled, fmt.dtype), UOp.const(2.0**-fmt.raised, fmt.dtype))


def half_exp(x: UOp, fmt: Format) -> UOp:
    """e**x / 2, finite as long as that is, for x from 0."""
    x = kept_within(x, 0.0, (fmt.exp2_range[1] + 0.25) / fmt.log2_e)
    pattern, n = nearest(x, fmt.log2_e, fmt.bias - 2, fmt)
    quarter = mul(_exp_polynomial(_rest(x, n, 1.0, fmt), fmt.exp, 1.0), _power_of_2(pattern, fmt))
    return add(quarter, quarter)


def sigmoid(x: UOp, fmt: Format) -> UOp:
    """1 / (1 + e**-x) as 2**-k / (2**-k + 2**(n-k) * e**r), so that the division underflows gradually."""
    dt, k = fmt.dtype, fmt.raised
    x = kept_within(x, fmt.exp2_range[0] / fmt.log2_e, fmt.mantissa + 8.0)
    pattern, n = nearest(x, -fmt.log2_e, fmt.bias - k, fmt)
    value = _exp_polynomial(_rest(x, n, -1.0, fmt), fmt.exp, -1.0)
    one = UOp.const(2.0**-k, dt)
    return UOp(Ops.FDIV, (one, fma(value, _power_of_2(pattern, fmt), one)))


def _expm1_polynomial(r: UOp, fmt: Format) -> UOp:
    """e**r - 1 for |r| up to log(2)/2, to its own last place."""
    return fma(mul(r, r), polynomial(r, fmt.exp), r)


def expm1(x: UOp, fmt: Format) -> UOp:
    """e**x - 1 as 2 * (2**(n-1) * (e**r - 1) + (2**(n-1) - 1/2))."""
    dt = fmt.dtype
    _, size = magnitude(x, fmt)
    y = kept_within(x, -(fmt.mantissa + 3) / fmt.log2_e, (fmt.bias + 1.25) / fmt.log2_e)
    pattern, n = nearest(y, fmt.log2_e, fmt.bias - 1, fmt)
    scale = _power_of_2(pattern, fmt)
    half = fma(scale, _expm1_polynomial(_rest(y, n, 1.0, fmt), fmt), sub(scale, UOp.const(0.5, dt)))
    # halves of subnormal numbers, and -0.0, would be lost
    return where(less(size, UOp.const(2.0**-fmt.width, dt)), x, add(half, half))


def tanh(x: UOp, fmt: Format) -> UOp:
    """c - c**2 / (1 + w) for w = (e**2|x| - 1) / 2, where c is 1, or w for small numbers, with the sign of x."""
    dt = fmt.dtype
    sign, size = magnitude(x, fmt)
    top = UOp.const((fmt.mantissa + 4) / fmt.log2_e / 2, dt)  # 1 from there
    a = where(less(top, size), top, size)
    pattern, n = nearest(a, 2 * fmt.log2_e, fmt.bias - 1, fmt)
    r = _short_rest(a, n, 0.5, fmt)
    coefficients = tuple(c * 2.0 ** (i + 2) for i, c in enumerate(fmt.exp))
    scale = _power_of_2(pattern, fmt)
    w = fma(scale, fma(mul(r, r), polynomial(r, coefficients), add(r, r)), sub(scale, UOp.const(0.5, dt)))
    c = where(less(a, UOp.const(0.55, dt)), w, UOp.const(1.0, dt))
    value = fma(c, UOp(Ops.FDIV, (c, sub(UOp.const(-1.0, dt), w))), c)
    return bits(or_(bits(value, fmt.bits), sign), dt)


def erf(x: UOp, fmt: Format) -> UOp:
    """1 - e**-p for p = -log(1 - erf|x|), a polynomial of |x|, with the sign of x: small results keep their digits."""
    dt = fmt.dtype
    sign, size = magnitude(x, fmt)
    top = UOp.const(fmt.erf_top, dt)  # 1 from there
    a = where(less(top, size), top, size)
    first, *rest = fmt.erf
    p = fma(a, UOp.const(first, dt), mul(a, polynomial(a, tuple(rest))))
    pattern, n = nearest(p, -fmt.log2_e, fmt.bias, fmt)
    r = _short_rest(p, n, -1.0, fmt)  # e**-p is 2**n * e**-r
    coefficients = tuple(c * (-1.0) ** (i + 1) for i, c in enumerate(fmt.exp))
    below = fma(mul(r, r), polynomial(r, coefficients), r)  # 1 - e**-r
    scale = _power_of_2(pattern, fmt)
    value = fma(scale, below, sub(UOp.const(1.0, dt), scale))
    return bits(or_(bits(value, fmt.bits), sign), dt)
