"""EXP2, LOG2, SIN and what is made of them as polynomials, for targets without such instructions.

Takes one node of float32 or float64 (narrower floats go through float32) and gives straight-line arithmetic on the
same dtype: no tables in memory, no branches, no conversions on the common path, so that vector code stays vector
code. Errors measured against exact values are at most 2 ulp, with and without a fused multiply-add, for every finite
argument (``docs/accuracy.md``). NaN, infinities, zeros of either sign and subnormal numbers come out as IEEE 754 wants
them. Polynomial steps are MULACC, so they contract where the target has a fused multiply-add.

There is no op for e**x, log, log10, cos and tan: the mixin writes them in terms of EXP2, LOG2 and SIN, with the errors
that the formulas have when they are computed as written. ``NAMED_FUNCTIONS`` finds those formulas before their ops are
rewritten, on every target, and puts the function itself in their place.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.angle import reduced
from tinyhost.uop.rules.build import add, and_, bits, differs, fma, less, mul, or_, shl, shr, sub, where, xor
from tinyhost.uop.rules.common import literal
from tinyhost.uop.rules.double_word import fast_sum, split
from tinyhost.uop.rules.float_format import (
    FLOAT32,
    FORMATS,
    Format,
    kept_within,
    magnitude,
    polynomial,
    round_to_int,
)


# *** exponentials ***
def times_power_of_2(value: UOp, pattern: UOp, fmt: Format) -> UOp:
    """value * 2**n, ``pattern`` ending in n; 2**n in two factors, so that overflow and underflow are gradual."""
    # n + 2*bias, positive, as the sum of two biased exponents
    both = sub(pattern, UOp.const(fmt.rounder_bits - 2 * fmt.bias, fmt.bits))
    first = shr(both, 1)
    for exponent in (first, sub(both, first)):
        value = mul(value, bits(shl(exponent, fmt.mantissa), fmt.dtype))
    return value


def exp2_of_fraction(fraction: UOp, fmt: Format) -> UOp:
    """2**fraction for |fraction| up to 1/2."""
    return fma(polynomial(fraction, fmt.exp2), fraction, UOp.const(1.0, fmt.dtype))


def exp2(x: UOp, fmt: Format) -> UOp:
    """2**x: 2**n * 2**f with n the nearest integer."""
    x = kept_within(x, *fmt.exp2_range)
    pattern, n = round_to_int(x, fmt)
    return times_power_of_2(exp2_of_fraction(sub(x, n), fmt), pattern, fmt)


def exp(x: UOp, sign: float, fmt: Format) -> UOp:
    """e**(sign * x) for a sign of 1 or -1: 2**n * e**r with sign * r = x - sign*n*log(2), log(2) in two parts."""
    dt = fmt.dtype
    x = kept_within(x, *sorted(sign * bound / fmt.log2_e for bound in fmt.exp2_range))
    pattern, n = round_to_int(mul(x, UOp.const(sign * fmt.log2_e, dt)), fmt)
    high, low = (UOp.const(-sign * part, dt) for part in fmt.ln2)
    r = fma(n, low, fma(n, high, x))
    coefficients = (1.0, 1.0, *fmt.exp)
    value = polynomial(r, coefficients if sign > 0 else tuple(c * (-1) ** i for i, c in enumerate(coefficients)))
    return times_power_of_2(value, pattern, fmt)


# *** log2 ***
def mantissa_and_exponent(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(m - 1, e) with x = m * 2**e and m between sqrt(1/2) and sqrt(2), for positive finite x."""
    dt, ints = fmt.dtype, fmt.signed
    tiny = less(x, UOp.const(2.0 ** (1 - fmt.bias), dt))
    lift = fmt.mantissa + 1
    pattern = bits(where(tiny, mul(x, UOp.const(2.0**lift, dt)), x), ints)
    half = 0x3F3504F3 if fmt is FLOAT32 else 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
    # the integer part of (pattern - half) / 2**mantissa, kept in place
    exponent = and_(sub(pattern, UOp.const(half, ints)), UOp.const(-(1 << fmt.mantissa), ints))
    m = bits(sub(pattern, exponent), dt)
    e = _exponent_to_float(exponent, fmt)
    return sub(m, UOp.const(1.0, dt)), add(e, where(tiny, UOp.const(-float(lift), dt), UOp.const(0.0, dt)))


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


# (log(1 + f) - f) / f**2 between sqrt(1/2) and sqrt(2)
_LOG_BEND = (-0.49999988307869686, 0.3333332571630313, -0.2500158723897838, 0.2000197527746902, -0.16608967392539548,
             0.14181721568793437, -0.1324392690694066, 0.1290556098464266, -0.07620757092934001)
# (log((1 + s) / (1 - s)) / s - 2) / s**2 in s*s
_LOG_OF_RATIO = (0.6666666666666666, 0.4000000000000649, 0.2857142856900679, 0.22222222658747198, 0.18181774706500956,
                 0.15387132803644568, 0.13249167581135987, 0.13259994617044377)


def _log_bend(f: UOp, fmt: Format) -> UOp:
    """log(1 + f) - f; float64: log(1 + f) = f - (f*f/2 - s*(f*f/2 + R(s*s))) with s = f / (2 + f)."""
    if fmt is FLOAT32:
        return mul(mul(f, f), polynomial(f, _LOG_BEND))
    s = UOp(Ops.FDIV, (f, add(f, UOp.const(2.0, fmt.dtype))))
    half_square = mul(mul(f, UOp.const(0.5, fmt.dtype)), f)
    z = mul(s, s)
    return sub(mul(s, fma(z, polynomial(z, _LOG_OF_RATIO), half_square)), half_square)


def _natural(f: UOp, e: UOp, fmt: Format) -> UOp:
    """e * log(2) + log(1 + f): the leading f is added exactly to a product that is exact."""
    high, low = (UOp.const(part, fmt.dtype) for part in fmt.ln2)
    total, lost = fast_sum(mul(e, high), f)
    return add(total, add(lost, fma(e, low, _log_bend(f, fmt))))


def _to_base(f: UOp, e: UOp, base: Base, fmt: Format) -> UOp:
    """(e * log(2) + log(1 + f)) / log(base): leading parts of half a mantissa make exact products."""
    unit, unit_rest, inverse, inverse_rest = (UOp.const(c, fmt.dtype) for c in base)
    bend = _log_bend(f, fmt)
    high, _ = split(add(f, bend))
    low = add(sub(f, high), bend)
    total, lost = fast_sum(mul(e, unit), mul(high, inverse))
    rest = fma(e, unit_rest, fma(add(low, high), inverse_rest, mul(low, inverse)))
    return add(total, add(lost, rest))


Base = tuple[float, float, float, float]
"""log(2) / log(base) and 1 / log(base), each as a number of few bits and the rest."""
# the first numbers times a whole one of 11 bits, the third times half a mantissa, are exact
_BASE_2: dict[DType, Base] = {
    dtypes.float32: (1.0, 0.0, 1.44287109375, -0.00017605286103659264),
    dtypes.float64: (1.0, 0.0, 1.4426950514316559, -1.0542692476429138e-08)}
_BASE_10: dict[DType, Base] = {
    dtypes.float32: (0.301025390625, 4.605038981195214e-06, 0.434326171875, -3.168997174817235e-05),
    dtypes.float64: (0.3010299950838089, 5.801722962879576e-10, 0.4342944845557213, -2.6524694553078553e-09)}


def _logarithm(x: UOp, value: UOp) -> UOp:
    """``value``, but what a logarithm is outside the positive finite numbers."""
    dt = x.dtype
    zero = UOp.const(0.0, dt)
    value = where(less(x, UOp.const(math.inf, dt)), value, x)
    special = where(differs(x, zero), UOp.const(math.nan, dt), UOp.const(-math.inf, dt))
    return where(less(zero, x), value, special)


def log2(x: UOp, fmt: Format) -> UOp:
    """log2(x) = e + log2(m) with m near 1."""
    return _logarithm(x, _to_base(*mantissa_and_exponent(x, fmt), _BASE_2[fmt.dtype], fmt))


def log10(x: UOp, fmt: Format) -> UOp:
    """log10(x) = e * log10(2) + log10(m) with m near 1."""
    return _logarithm(x, _to_base(*mantissa_and_exponent(x, fmt), _BASE_10[fmt.dtype], fmt))


def log(x: UOp, fmt: Format) -> UOp:
    """log(x) = e * log(2) + log(m) with m near 1."""
    return _logarithm(x, _natural(*mantissa_and_exponent(x, fmt), fmt))


# *** trigonometry ***
def _sine(r: UOp, count: UOp, sign: UOp, fmt: Format) -> UOp:
    """sin(count * pi/2 + r) for |r| up to pi/4, with the sign bit of ``sign`` changed."""
    one = UOp.const(1, fmt.bits)
    square = mul(r, r)
    of_even = fma(mul(r, square), polynomial(square, fmt.sin), r)
    of_odd = fma(square, polynomial(square, fmt.cos), UOp.const(1.0, fmt.dtype))
    value = where(differs(and_(count, one), UOp.const(0, fmt.bits)), of_odd, of_even)
    return bits(xor(bits(value, fmt.bits), xor(sign, shl(shr(count, 1), fmt.width - 1))), fmt.dtype)


def sin(x: UOp, fmt: Format) -> UOp:
    """sin(|x|) with the sign of x."""
    sign, size = magnitude(x, fmt)
    r, _, count = reduced(size, fmt)
    return _sine(r, count, sign, fmt)


def cos(x: UOp, fmt: Format) -> UOp:
    """sin(|x| + pi/2); the reduction is that of sin(x)."""
    _, size = magnitude(x, fmt)
    r, _, count = reduced(size, fmt)
    return _sine(r, add(count, UOp.const(1, fmt.bits)), UOp.const(0, fmt.bits), fmt)


def tan(x: UOp, fmt: Format) -> UOp:
    """tan(k*pi/2 + r) = tan(r) for even k, else -1 / tan(r)."""
    dt = fmt.dtype
    sign, size = magnitude(x, fmt)
    r, rest, count = reduced(size, fmt, with_rest=True)
    square = mul(r, r)
    bend = mul(mul(r, square), polynomial(square, fmt.tan))
    t = add(r, bend)
    # tan(r + rest) = tan(r) + rest * (1 + tan(r)**2)
    t, lost = fast_sum(r, fma(rest, fma(t, t, UOp.const(1.0, dt)), bend))
    odd = differs(and_(count, UOp.const(1, fmt.bits)), UOp.const(0, fmt.bits))
    q = UOp(Ops.FDIV, (UOp.const(-1.0, dt), t))
    t = where(odd, fma(mul(q, q), lost, q), t)  # -1 / (t + lost)
    return bits(xor(bits(t, fmt.bits), sign), dt)


# *** rules ***
def work_dtype(dtype: DType) -> DType | None:
    """The type in which a float function of ``dtype`` is computed, None for integers."""
    if dtype is dtypes.weakfloat:
        dtype = dtypes.default_float
    return dtype if dtype in FORMATS else dtypes.float32 if dtype.is_float else None


def _computed(fn: Callable[[UOp, Format], UOp], x: UOp) -> UOp | None:
    """``fn`` of a float, evaluated in float32 where it is narrow and in the default float where it is weak."""
    work = work_dtype(x.dtype)
    return fn(x.cast(work), FORMATS[work]).cast(x.dtype) if work is not None else None


_UNARY: dict[Ops, Callable[[UOp, Format], UOp]] = {Ops.EXP2: exp2, Ops.LOG2: log2, Ops.SIN: sin}


def _unary(u: UOp, x: UOp) -> UOp | None:
    return _computed(_UNARY[u.op], x)


# exp2, log2, sin -> polynomial
UNARY_RULES = {op: [(UPat(op, src=(UPat(name="x"),), name="u"), _unary)] for op in (Ops.EXP2, Ops.LOG2, Ops.SIN)}


def _factor(u: UOp, x: UOp, c: UOp) -> tuple[float, Callable[[float], float]] | None:
    """(a literal factor as it is in the type of ``u``, the rounding to that type), None where this is no formula."""
    work, factor = work_dtype(u.dtype), literal(c)
    if work is None or factor is None or literal(x) is not None or x.dtype is not u.dtype:
        return None
    rounded = truncate[work]
    return rounded(factor), rounded


def _natural_exponential(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """2**(x * log2(e)) -> e**x, likewise e**-x."""
    found = _factor(u, x, c)
    if found is None or abs(found[0]) != found[1](1 / math.log(2)):
        return None
    sign = math.copysign(1.0, found[0])
    return _computed(lambda y, fmt: exp(y, sign, fmt), x)


def _logarithm_of_base(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """log2(x) * log(2) -> log(x), log2(x) * log10(2) -> log10(x)."""
    found = _factor(u, x, c)
    for fn, exact in ((log, math.log(2)), (log10, math.log10(2))):
        if found is not None and found[0] == found[1](exact):
            return _computed(fn, x)
    return None


def _argument_of_cos(u: UOp) -> UOp | None:
    """x where ``u`` is 1 - 2*sin(x/2)**2 as the mixin writes it: ADD(MUL(MUL(s, s), -2), 1)."""
    if u.op is not Ops.ADD or literal(u.src[1]) != 1.0 or u.src[0].op is not Ops.MUL:
        return None
    square, factor = u.src[0].src
    if literal(factor) != -2.0 or square.op is not Ops.MUL or square.src[0] is not square.src[1]:
        return None
    s = square.src[0]
    if s.op is not Ops.SIN or (half := s.src[0]).dtype is not u.dtype:
        return None
    if half.op is Ops.MUL and literal(half.src[1]) == 0.5:
        return half.src[0] if half.src[0].dtype is u.dtype else None
    return add(half, half)


def _cosine(u: UOp) -> UOp | None:
    """1 - 2*sin(x/2)**2 -> cos(x)."""
    x = _argument_of_cos(u)
    return _computed(cos, x) if x is not None else None


def _tangent(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """sin(x) / cos(x) -> tan(x)."""
    return _computed(tan, x) if x.dtype is u.dtype and _argument_of_cos(y) is x else None


NAMED_FUNCTIONS = PatternMatcher([
    (UPat(Ops.EXP2, src=(UPat(Ops.MUL, src=[UPat(name="x"), UPat.cvar("c")]),), name="u"), _natural_exponential),
    (UPat(Ops.MUL, src=[UPat(Ops.LOG2, src=(UPat(name="x"),)), UPat.cvar("c")], name="u"), _logarithm_of_base),
    (UPat(Ops.FDIV, src=(UPat(Ops.SIN, src=(UPat(name="x"),)), UPat(Ops.ADD, name="y")), name="u"), _tangent),
    (UPat(Ops.ADD, name="u"), _cosine)])
"""Formulas of EXP2, LOG2 and SIN -> the functions that they stand for; to be run users first."""
