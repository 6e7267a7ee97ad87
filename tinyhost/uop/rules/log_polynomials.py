"""LOG2 and its relatives as straight-line arithmetic: log, log10, log(1 + x).

x = m * 2**e with m near 1 and f = m - 1; the logarithm of m is a polynomial of f in float32, and of f / (2 + f) in
float64. Subnormal numbers are lifted first.
"""
from __future__ import annotations

import math

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, differs, fma, less, maximum, mul, or_, shr, sub, where
from tinyhost.uop.rules.double_word import fast_sum, split
from tinyhost.uop.rules.float_format import FLOAT32, Format, magnitude, polynomial

# bits of the least m: sqrt(1/2), and 2/3 for the polynomials of float32, whose f is then within 1/3
_SQRT_HALF = {dtypes.float32: 0x3F3504F3, dtypes.float64: 0x3FE6A09E667F3BCD}
TWO_THIRDS = 0x3F2AAAAB


def mantissa_and_exponent(x: UOp, fmt: Format, least: int | None = None) -> tuple[UOp, UOp]:
    """(m - 1, e) with x = m * 2**e for positive finite x; m is between sqrt(1/2) and sqrt(2), or from that of the bits
    ``least`` to its double.
    """
    dt = fmt.dtype
    tiny = less(x, UOp.const(2.0 ** (1 - fmt.bias), dt))
    lift = fmt.mantissa + 1
    f, exponent = _fraction(where(tiny, mul(x, UOp.const(2.0**lift, dt)), x), least or _SQRT_HALF[dt], fmt)
    e = _exponent_to_float(exponent, fmt)
    return f, add(e, where(tiny, UOp.const(-float(lift), dt), UOp.const(0.0, dt)))


def _fraction(x: UOp, least: int, fmt: Format) -> tuple[UOp, UOp]:
    """(m - 1, e in its place among the bits) of a positive normal number."""
    ints = fmt.signed
    pattern = bits(x, ints)
    exponent = and_(sub(pattern, UOp.const(least, ints)), UOp.const(-(1 << fmt.mantissa), ints))
    return sub(bits(sub(pattern, exponent), fmt.dtype), UOp.const(1.0, fmt.dtype)), exponent


def _exponent_to_float(exponent: UOp, fmt: Format) -> UOp:
    """A small integer that stands ``mantissa`` bits up, as a float."""
    dt = fmt.dtype
    if fmt is FLOAT32:
        return UOp(Ops.CAST, (shr(exponent, fmt.mantissa),), dt)
    # 64-bit vectors have no conversion: put the biased value into the mantissa of 2**52
    raised = add(exponent, UOp.const(2048 << fmt.mantissa, fmt.signed))
    biased = shr(bits(raised, fmt.bits), fmt.mantissa)
    in_mantissa = or_(biased, UOp.const(fmt.bias + fmt.mantissa << fmt.mantissa, fmt.bits))
    return sub(bits(in_mantissa, dt), UOp.const(2.0**52 + 2048.0, dt))


# *** float32: polynomials of f, by the Remez exchange on [-1/3, 1/3] ***
# (log(1 + f) - f) / f**2
_LOG = (-0.49999934434890747, 0.33333197236061096, -0.2500782012939453, 0.20011167228221893, -0.1641596406698227,
        0.13995836675167084, -0.15388551354408264, 0.14026232063770294)
# log(1 + f) / log(base) is c*f + f*p(f), c being the first
_LOG2 = (1.4426950216293335, 3.087770394927247e-08, -0.7213475704193115, 0.4808957278728485, -0.360668808221817,
         0.288718581199646, -0.24069994688034058, 0.2016984224319458, -0.1752624660730362, 0.20323842763900757,
         -0.18783308565616608)
_LOG10 = (0.4342944920063019, -7.229574716660636e-09, -0.21714724600315094, 0.1447640359401703, -0.10857212543487549,
          0.08691295981407166, -0.07245790213346481, 0.060717277228832245, -0.05275925621390343, 0.06118086352944374,
          -0.056543391197919846)
# log10(2) as a number of few bits, whose product with an exponent is exact, and the rest
_LOG10_OF_2 = (0.301025390625, 4.605038981195214e-06)


def _log_of_fraction(f: UOp) -> UOp:
    """log(1 + f)."""
    return fma(mul(f, f), polynomial(f, _LOG), f)


def _to_base_of_fraction(f: UOp, coefficients: tuple[float, ...]) -> UOp:
    """log(1 + f) / log(base)."""
    first, *rest = coefficients
    return fma(f, UOp.const(first, f.dtype), mul(f, polynomial(f, tuple(rest))))


def _with_exponent(value: UOp, e: UOp, unit: tuple[float, float]) -> UOp:
    """value + e * unit, a sum of two numbers of which the first times e is exact."""
    high, low = (UOp.const(part, value.dtype) for part in unit)
    return fma(e, high, fma(e, low, value))


# *** float64: log(1 + f) = f - (f*f/2 - s*(f*f/2 + R(s*s))) with s = f / (2 + f) ***
# (log((1 + s) / (1 - s)) / s - 2) / s**2 in s*s
_LOG_OF_RATIO = (0.6666666666666666, 0.4000000000000649, 0.2857142856900679, 0.22222222658747198, 0.18181774706500956,
                 0.15387132803644568, 0.13249167581135987, 0.13259994617044377)
Base = tuple[float, float, float, float]
"""log(2) / log(base) and 1 / log(base), each as a number of few bits and the rest."""
# the first numbers times a whole one of 11 bits, the third times half a mantissa, are exact
_BASE_2: Base = (1.0, 0.0, 1.4426950514316559, -1.0542692476429138e-08)
_BASE_10: Base = (0.3010299950838089, 5.801722962879576e-10, 0.4342944845557213, -2.6524694553078553e-09)


def _bend(f: UOp) -> UOp:
    """log(1 + f) - f."""
    dt = f.dtype
    s = UOp(Ops.FDIV, (f, add(f, UOp.const(2.0, dt))))
    half_square = mul(mul(f, UOp.const(0.5, dt)), f)
    z = mul(s, s)
    return sub(mul(s, fma(z, polynomial(z, _LOG_OF_RATIO), half_square)), half_square)


def _natural(f: UOp, lost: UOp | None, e: UOp, fmt: Format) -> UOp:
    """e * log(2) + log(1 + f) + lost: the leading f is added exactly to a product that is exact."""
    high, low = (UOp.const(part, fmt.dtype) for part in fmt.ln2)
    total, rest = fast_sum(mul(e, high), f)
    bend = _bend(f) if lost is None else add(_bend(f), lost)
    return add(total, add(rest, fma(e, low, bend)))


def _to_base(f: UOp, e: UOp, base: Base) -> UOp:
    """(e * log(2) + log(1 + f)) / log(base): leading parts of half a mantissa make exact products."""
    unit, unit_rest, inverse, inverse_rest = (UOp.const(c, f.dtype) for c in base)
    bend = _bend(f)
    high, _ = split(add(f, bend))
    low = add(sub(f, high), bend)
    total, lost = fast_sum(mul(e, unit), mul(high, inverse))
    rest = fma(e, unit_rest, fma(add(low, high), inverse_rest, mul(low, inverse)))
    return add(total, add(lost, rest))


# *** functions ***
def _everywhere(x: UOp, value: UOp) -> UOp:
    """``value``, but what a logarithm is where x is not positive and finite."""
    dt = x.dtype
    zero = UOp.const(0.0, dt)
    value = where(less(x, UOp.const(math.inf, dt)), value, x)
    special = where(differs(x, zero), UOp.const(math.nan, dt), UOp.const(-math.inf, dt))
    return where(less(zero, x), value, special)


def log2(x: UOp, fmt: Format) -> UOp:
    """Logarithm to base 2."""
    if fmt is not FLOAT32:
        return _everywhere(x, _to_base(*mantissa_and_exponent(x, fmt), _BASE_2))
    f, e = mantissa_and_exponent(x, fmt, TWO_THIRDS)
    return _everywhere(x, add(_to_base_of_fraction(f, _LOG2), e))


def log10(x: UOp, fmt: Format) -> UOp:
    """Logarithm to base 10."""
    if fmt is not FLOAT32:
        return _everywhere(x, _to_base(*mantissa_and_exponent(x, fmt), _BASE_10))
    f, e = mantissa_and_exponent(x, fmt, TWO_THIRDS)
    return _everywhere(x, _with_exponent(_to_base_of_fraction(f, _LOG10), e, _LOG10_OF_2))


def log(x: UOp, fmt: Format) -> UOp:
    """Natural logarithm."""
    if fmt is not FLOAT32:
        f, e = mantissa_and_exponent(x, fmt)
        return _everywhere(x, _natural(f, None, e, fmt))
    f, e = mantissa_and_exponent(x, fmt, TWO_THIRDS)
    return _everywhere(x, _with_exponent(_log_of_fraction(f), e, fmt.ln2))


def log1p(x: UOp, fmt: Format) -> UOp:
    """log(1 + x): what the sum lost when it was rounded joins the fraction of the rounded sum."""
    dt = fmt.dtype
    sign, _ = magnitude(x, fmt)
    one = UOp.const(1.0, dt)
    total = add(x, one)
    # beyond 2**mantissa the difference is off by up to 1, which counts no more
    lost = sub(x, sub(total, one))
    f, exponent = _fraction(total, TWO_THIRDS if fmt is FLOAT32 else _SQRT_HALF[dt], fmt)
    e = _exponent_to_float(exponent, fmt)
    biased = sub(UOp.const(fmt.bias << fmt.mantissa, fmt.signed), exponent)
    scale = bits(maximum(biased, UOp.const(0, fmt.signed)), dt)  # 2**-e, or 0 where nothing can count
    if fmt is FLOAT32:
        value = _with_exponent(_log_of_fraction(fma(lost, scale, f)), e, fmt.ln2)
    else:
        lost = mul(lost, scale)
        value = _natural(f, sub(lost, mul(lost, f)), e, fmt)  # the slope of the logarithm there is about 1 - f
    # zero keeps its sign, which is that of x everywhere
    value = bits(or_(bits(value, fmt.bits), sign), dt)
    return _everywhere(total, value)


# (log(1 + x) - x) / x**2 on [0, 1]
_LOG1P = (-0.4999993145465851, 0.33330464363098145, -0.24958018958568573, 0.19692102074623108, -0.15344880521297455,
          0.10661128163337708, -0.05745723098516464, 0.020086241886019707, -0.003290468594059348)


def log1p_up_to_one(x: UOp) -> UOp:
    """log(1 + x) for a float32 x between 0 and 1, or NaN."""
    return fma(mul(x, x), polynomial(x, _LOG1P), x)
