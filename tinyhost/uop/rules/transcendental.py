"""EXP2, LOG2, SIN and POW as polynomials, for targets without such instructions.

Takes one node of float32 or float64 (narrower floats go through float32) and gives straight-line arithmetic on the
same dtype: no tables in memory, no branches, no conversions on the common path, so that vector code stays vector
code. Errors measured against exact values: float32 at most 2 ulp, float64 at most 4 ulp. NaN, infinities, zeros of
either sign and subnormal numbers come out as IEEE 754 wants them. Polynomial steps are MULACC, so they contract where
the target has a fused multiply-add. POW is exp2(y * log2(x)), evaluated in float64 for narrower types where the
target has float64.

Integers are read out of floats by adding 1.5 * 2**mantissa bits, which leaves the nearest integer in the low bits: no
conversion that could overflow. Coefficients are minimax (relative error) by the Remez exchange.
"""
from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import UPat
from tinyhost.uop.rules.build import add, and_, differs, fma, less, mul, or_, shl, shr, sub, where, xor
from tinyhost.uop.rules.common import literal


def _polynomial(x: UOp, coefficients: tuple[float, ...]) -> UOp:
    """Horner's rule, lowest power first in ``coefficients``."""
    dt = x.dtype
    total = UOp.const(coefficients[-1], dt)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, UOp.const(c, dt))
    return total


# *** float formats ***
@dataclass(frozen=True)
class Format:
    """Layout of one float type and the constants that its polynomials use."""

    dtype: DType
    bits: DType  # unsigned integer of the same width
    signed: DType
    mantissa: int
    bias: int
    exp2_range: tuple[float, float]  # outside, exp2 is 0 or infinite
    log2_e: float  # rounded to the type
    log2_e_rest: float  # what is missing
    exp2: tuple[float, ...]  # (2**f - 1) / f on [-1/2, 1/2]
    log2: tuple[float, ...]
    sin: tuple[float, ...]  # (sin(r) - r) / r**3 in r*r on [-pi/2, pi/2]
    pi_parts: tuple[float, ...]  # sum to pi; a whole number below pi_limit times any but the last is exact
    pi_limit: int

    @property
    def width(self) -> int:
        """Bits of the type."""
        return self.dtype.bitsize

    @property
    def rounder(self) -> float:
        """Adding it leaves the nearest integer in the low bits of the mantissa."""
        return 1.5 * 2.0**self.mantissa

    @property
    def rounder_bits(self) -> int:
        """Bit pattern of ``rounder``."""
        return (self.bias + self.mantissa << self.mantissa) + (1 << self.mantissa - 1)


# floor(pi * 2**190) and floor(2**1216 / pi)
_PI_BITS = 190
_PI = 0xc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74
_INVERSE_PI_BITS = 1216
_INVERSE_PI = int(
    "517cc1b727220a94fe13abe8fa9a6ee06db14acc9e21c820ff28b1d5ef5de2b0db92371d2126e9700324977504e8c90e7f0ef58e5894d39f"
    "74411afa975da24274ce38135a2fbf209cc8eb1cc1a99cfa4e422fc5defc941d8ffc4bffef02cc07f79788c5ad05368fb69b3f6793e584db"
    "a7a31fb34f2ff516ba93dd63f5f2f8bd9e839cfbc529497535fdafd88fc6ae842b0198237e3db5d5", 16)


def _split_pi(bits: tuple[int, ...]) -> tuple[float, ...]:
    """pi as a sum of numbers with so many bits each."""
    rest, out = _PI, []
    for count in bits:
        drop = max(rest.bit_length() - count, 0)
        out.append(math.ldexp(rest >> drop, drop - _PI_BITS))
        rest &= (1 << drop) - 1
    return tuple(out)


FLOAT32 = Format(
    dtypes.float32, dtypes.uint32, dtypes.int32, 23, 127, (-151.0, 129.0),
    log2_e=1.4426950216293335, log2_e_rest=1.925963033500011e-08,
    exp2=(0.6931472029183414, 0.24022647905596894, 0.05550332320971167, 0.009618437947000813, 0.0013398937342504382,
          0.00015353316005251768),
    log2=(1.4426950408299144, -0.7213473515075858, 0.4808982410851206, -0.36069664879059865, 0.2885674063242655,
          -0.23961741675080683, 0.20460066794326684, -0.19106269875637438, 0.18617463721880825, -0.1099492827120522),
    sin=(-0.1666665949320213, 0.008333064650247897, -0.00019809477952362445, 2.6054885755586623e-06),
    pi_parts=_split_pi((11, 11, 11, 24)), pi_limit=1 << 13)
FLOAT64 = Format(
    dtypes.float64, dtypes.uint64, dtypes.int64, 52, 1023, (-1077.0, 1025.0),
    log2_e=1.4426950408889634, log2_e_rest=2.0355273740931033e-17,
    exp2=(0.6931471805599453, 0.2402265069591013, 0.055504108664820084, 0.00961812910759412, 0.0013333558146774631,
          0.00015403530457111218, 1.525273349311264e-05, 1.3215435282708762e-06, 1.0178199579268284e-07,
          7.073783187345078e-09, 4.4347700679348633e-10),
    log2=(2.8853900817779268, 0.9617966939259898, 0.5770780163454704, 0.4121985858510759, 0.32059853392563337,
          0.2623344017756561, 0.2209118663214932, 0.21367078292339622),
    sin=(-0.16666666666666666, 0.008333333333333193, -0.00019841269841208494, 2.755731921100965e-06,
         -2.5052106860822808e-08, 1.6058939089693464e-10, -7.642975105270103e-13, 2.7209989481161718e-15),
    pi_parts=_split_pi((32, 32, 53)), pi_limit=1 << 20)
_FORMATS = {dtypes.float32: FLOAT32, dtypes.float64: FLOAT64}


def _round_to_int(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(bits that end in the nearest integer, that integer as a float); exact for magnitudes below 2**(mantissa-1)."""
    t = add(x, UOp.const(fmt.rounder, fmt.dtype))
    return UOp(Ops.BITCAST, (t,), fmt.bits), sub(t, UOp.const(fmt.rounder, fmt.dtype))


# *** exp2 ***
def _kept_within(x: UOp, low: float, high: float) -> UOp:
    """x, or the bound that it exceeds; NaN passes."""
    low_bound, high_bound = UOp.const(low, x.dtype), UOp.const(high, x.dtype)
    x = where(less(x, low_bound), low_bound, x)
    return where(less(high_bound, x), high_bound, x)


def _scaled_exp2(fraction: UOp, bits: UOp, fmt: Format) -> UOp:
    """2**n * 2**fraction, ``bits`` ending in n; 2**n in two factors, so that overflow and underflow are gradual."""
    dt = fmt.dtype
    value = fma(_polynomial(fraction, fmt.exp2), fraction, UOp.const(1.0, dt))
    # n + 2*bias, positive, as the sum of two biased exponents
    both = sub(bits, UOp.const(fmt.rounder_bits - 2 * fmt.bias, fmt.bits))
    first = shr(both, 1)
    for exponent in (first, sub(both, first)):
        value = mul(value, UOp(Ops.BITCAST, (shl(exponent, fmt.mantissa),), dt))
    return value


def exp2(x: UOp, fmt: Format) -> UOp:
    """2**x: 2**n * 2**f with n the nearest integer."""
    x = _kept_within(x, *fmt.exp2_range)
    bits, n = _round_to_int(x, fmt)
    return _scaled_exp2(sub(x, n), bits, fmt)


def exp(x: UOp, factor: float, fmt: Format) -> UOp:
    """2**(x * factor) for a factor of log2(e) or its negative, that is e**x or e**-x.

    The product contracts with the range reduction, as our own polynomials may: its rounding error, which grows with x,
    would be nearly all of the error of the result. What the factor lost when it was rounded comes in there too.
    """
    dt, sign = fmt.dtype, math.copysign(1.0, factor)
    x = _kept_within(x, *sorted(bound / factor for bound in fmt.exp2_range))
    bits, n = _round_to_int(mul(x, UOp.const(factor, dt)), fmt)
    fraction = fma(x, UOp.const(factor, dt), mul(n, UOp.const(-1.0, dt)))
    return _scaled_exp2(fma(x, UOp.const(sign * fmt.log2_e_rest, dt), fraction), bits, fmt)


def _natural_exponent(x: UOp, fmt: Format) -> tuple[UOp, float] | None:
    """(y, factor) where x is y * log2(e) or y * -log2(e)."""
    if x.op is not Ops.MUL:
        return None
    for y, c in (x.src, x.src[::-1]):
        factor = literal(c)
        if factor is not None and abs(factor := truncate[fmt.dtype](factor)) == fmt.log2_e and literal(y) is None:
            return y, factor
    return None


# *** log2 ***
def _mantissa_and_exponent(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(m - 1, e) with x = m * 2**e and m between sqrt(1/2) and sqrt(2), for positive finite x."""
    dt, ints = fmt.dtype, fmt.signed
    tiny = less(x, UOp.const(2.0 ** (1 - fmt.bias), dt))
    lift = fmt.mantissa + 1
    bits = UOp(Ops.BITCAST, (where(tiny, mul(x, UOp.const(2.0**lift, dt)), x),), ints)
    half = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0] if fmt is FLOAT64 else 0x3F3504F3
    # the integer part of (bits - bits(sqrt(1/2))) / 2**mantissa, kept in place
    exponent = and_(sub(bits, UOp.const(half, ints)), UOp.const(-(1 << fmt.mantissa), ints))
    m = UOp(Ops.BITCAST, (sub(bits, exponent),), dt)
    e = _exponent_to_float(exponent, fmt)
    return sub(m, UOp.const(1.0, dt)), add(e, where(tiny, UOp.const(-float(lift), dt), UOp.const(0.0, dt)))


def _exponent_to_float(exponent: UOp, fmt: Format) -> UOp:
    """A small integer that stands ``mantissa`` bits up, as a float."""
    dt = fmt.dtype
    if fmt is FLOAT32:
        return UOp(Ops.CAST, (shr(exponent, fmt.mantissa),), dt)
    # 64-bit vectors have no conversion: put the biased value into the mantissa of 2**52
    raised = add(exponent, UOp.const(2048 << fmt.mantissa, fmt.signed))
    biased = shr(UOp(Ops.BITCAST, (raised,), fmt.bits), fmt.mantissa)
    in_mantissa = or_(biased, UOp.const(fmt.bias + fmt.mantissa << fmt.mantissa, fmt.bits))
    return sub(UOp(Ops.BITCAST, (in_mantissa,), dt), UOp.const(2.0**52 + 2048.0, dt))


def log2(x: UOp, fmt: Format) -> UOp:
    """log2(x) = e + log2(m); the second term is a polynomial in m-1, in (m-1)/(m+1) for float64."""
    dt = fmt.dtype
    f, e = _mantissa_and_exponent(x, fmt)
    if fmt is FLOAT64:
        s = UOp(Ops.FDIV, (f, add(f, UOp.const(2.0, dt))))
        value = fma(s, _polynomial(mul(s, s), fmt.log2), e)
    else:
        value = fma(f, _polynomial(f, fmt.log2), e)
    zero = UOp.const(0.0, dt)
    value = where(less(x, UOp.const(math.inf, dt)), value, x)
    special = where(differs(x, zero), UOp.const(math.nan, dt), UOp.const(-math.inf, dt))
    return where(less(zero, x), value, special)


# *** sin ***
def cody_waite_reduction(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(r, bits whose lowest is the parity of k) with x = k*pi + r, for x below pi_limit * pi."""
    bits, k = _round_to_int(mul(x, UOp.const(1 / math.pi, fmt.dtype)), fmt)
    *exact, last_exact, tail = (UOp.const(-part, fmt.dtype) for part in fmt.pi_parts)
    for part in exact:
        x = fma(k, part, x)
    # what the last exact product loses in the sum goes into the tail (Dekker), so r is rounded once
    product = mul(k, last_exact)
    r = add(x, product)
    lost = add(sub(x, r), product)
    return add(r, fma(k, tail, lost)), bits


def _words(first_bit: int, width: int, step: int, count: int) -> list[int]:
    """Numbers of ``width`` bits cut out of 1/pi every ``step`` bits; bit i of 1/pi has weight 2**-i."""
    whole = _INVERSE_PI >> _INVERSE_PI_BITS - (first_bit + (count - 1) * step + width - 1)
    return [whole >> step * (count - 1 - i) & (1 << width) - 1 for i in range(count)]


def _narrow(choices: list[UOp], index: UOp, bit: int, keep: int) -> list[UOp]:
    """``keep`` neighbours of ``choices``, from ``bit`` on where that bit of the index is set."""
    taken = differs(and_(index, UOp.const(bit, index.dtype)), UOp.const(0, index.dtype))
    stride = len(choices) - keep
    return [where(taken, choices[i + stride], choices[i]) for i in range(keep)]


def _window(high: UOp, low: UOp, count: UOp) -> UOp:
    """The upper word of ``high:low`` shifted left by ``count`` bits."""
    rest = UOp(Ops.SHR, (shr(low, 1), sub(UOp.const(63, low.dtype), count)))
    return or_(UOp(Ops.SHL, (high, count)), rest)


def _mul_high(a: UOp, b: UOp) -> UOp:
    """Upper 64 bits of the product of two uint64."""
    mask = UOp.const(0xFFFFFFFF, dtypes.uint64)
    (a1, a0), (b1, b0) = ((shr(v, 32), and_(v, mask)) for v in (a, b))
    middle = add(mul(a1, b0), shr(mul(a0, b0), 32))
    other = add(mul(a0, b1), and_(middle, mask))
    return add(add(mul(a1, b1), shr(middle, 32)), shr(other, 32))


def _payne_hanek32(bits: UOp, exponent: UOp) -> tuple[UOp, UOp]:
    """(upper, lower 32) bits of |x|/pi modulo 2, the top bit of ``upper`` of weight 1."""
    wide = dtypes.uint64
    words = [UOp.const(w, wide) for w in _words(-23, 64, 32, 6)]
    words = _narrow(words, exponent, 64, 4)
    w = _narrow(words, exponent, 32, 3)
    count = UOp(Ops.CAST, (and_(exponent, UOp.const(31, exponent.dtype)),), wide)
    upper, lower = _window(w[0], w[2], count), shr(UOp(Ops.SHL, (w[2], count)), 32)
    whole = UOp(Ops.CAST, (or_(and_(bits, UOp.const(0x7FFFFF, bits.dtype)), UOp.const(0x800000, bits.dtype)),), wide)
    return add(mul(whole, upper), shr(mul(whole, lower), 32)), UOp.const(0, wide)


def _payne_hanek64(bits: UOp, exponent: UOp) -> tuple[UOp, UOp]:
    """(upper, lower 64) bits of |x|/pi modulo 2, the top bit of ``upper`` of weight 1."""
    wide = dtypes.uint64
    w = [UOp.const(v, wide) for v in _words(-52, 64, 64, 19)]
    for bit, keep in ((512, 11), (256, 7), (128, 5), (64, 4)):
        w = _narrow(w, exponent, bit, keep)
    count = and_(exponent, UOp.const(63, wide))
    a, b, c = (_window(w[i], w[i + 1], count) for i in range(3))
    whole = or_(and_(bits, UOp.const((1 << 52) - 1, wide)), UOp.const(1 << 52, wide))
    middle = mul(whole, b)
    lower = add(middle, _mul_high(whole, c))
    carry = UOp(Ops.CAST, (less(lower, middle),), wide)
    return add(add(mul(whole, a), _mul_high(whole, b)), carry), lower


def payne_hanek_reduction(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(r, bits whose lowest is the parity of k) with x = k*pi + r, for x from 1 up to the largest finite number.

    M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM 18, 1983.
    """
    dt, wide = fmt.dtype, dtypes.uint64
    bits = UOp(Ops.BITCAST, (x,), fmt.bits)
    exponent = sub(shr(bits, fmt.mantissa), UOp.const(fmt.bias, fmt.bits))
    upper, lower = (_payne_hanek32 if fmt is FLOAT32 else _payne_hanek64)(bits, exponent)
    parity = shr(add(upper, UOp.const(1 << 62, wide)), 63)
    doubled = shl(upper, 1)
    if fmt is FLOAT32:
        return _fixed_times_pi(doubled), UOp(Ops.CAST, (parity,), fmt.bits)
    turn = UOp(Ops.CAST, (UOp(Ops.BITCAST, (or_(doubled, shr(lower, 63)),), dtypes.int64),), dt)
    below = UOp(Ops.BITCAST, (shr(shl(lower, 1), 1),), dtypes.int64)
    turn = fma(UOp(Ops.CAST, (below,), dt), UOp.const(2.0**-63, dt), turn)
    # pi * 2**-64 in two parts
    high, low = (math.ldexp(p, -64) for p in _split_pi((53, 53)))
    return fma(turn, UOp.const(high, dt), mul(turn, UOp.const(low, dt))), parity


def _fixed_times_pi(turn: UOp) -> UOp:
    """pi times a fraction of 64 bits, signed, as float32 with one rounding."""
    ints, wide = dtypes.int64, dtypes.uint64
    pi = _PI >> _PI_BITS - 29
    high = shr(UOp(Ops.BITCAST, (turn,), ints), 32)
    low = shr(mul(and_(turn, UOp.const(0xFFFFFFFF, wide)), UOp.const(pi, wide)), 32)
    product = add(mul(high, UOp.const(pi, ints)), UOp(Ops.BITCAST, (low,), ints))
    return mul(UOp(Ops.CAST, (product,), dtypes.float32), UOp.const(2.0**-61, dtypes.float32))


def sin(x: UOp, fmt: Format) -> UOp:
    """sin(|x|) reduced by multiples of pi, with the sign of x and one change for each odd multiple."""
    dt, ints = fmt.dtype, fmt.bits
    sign = 1 << fmt.width - 1
    bits = UOp(Ops.BITCAST, (x,), ints)
    size = UOp(Ops.BITCAST, (and_(bits, UOp.const(sign - 1, ints)),), dt)
    near, near_parity = cody_waite_reduction(size, fmt)
    far, far_parity = payne_hanek_reduction(size, fmt)
    is_near = less(size, UOp.const(math.pi * (fmt.pi_limit - 1), dt))
    far = where(less(size, UOp.const(math.inf, dt)), far, UOp.const(math.nan, dt))
    r = where(is_near, near, far)
    parity = where(is_near, near_parity, far_parity)
    square = mul(r, r)
    value = fma(mul(r, square), _polynomial(square, fmt.sin), r)
    flip = xor(and_(bits, UOp.const(sign, ints)), shl(parity, fmt.width - 1))
    return UOp(Ops.BITCAST, (xor(UOp(Ops.BITCAST, (value,), ints), flip),), dt)


# *** pow ***
def power(x: UOp, y: UOp, fmt: Format) -> UOp:
    """x**y for floats, with the special cases of IEEE 754 (section 9.2.1)."""
    dt, ints = fmt.dtype, fmt.bits

    def const(v: float) -> UOp:
        return UOp.const(v, dt)
    sign = UOp.const(1 << fmt.width - 1, ints)
    bits = UOp(Ops.BITCAST, (x,), ints)
    size = UOp(Ops.BITCAST, (and_(bits, UOp.const((1 << fmt.width - 1) - 1, ints)),), dt)
    value = UOp(Ops.EXP2, (mul(y, UOp(Ops.LOG2, (size,))),))
    # 1**y and x**0 are 1, whatever the other
    value = where(and_(differs(size, const(1.0)), differs(y, const(0.0))), value, const(1.0))
    whole = UOp(Ops.TRUNC, (y,))
    half = mul(y, const(0.5))
    odd = and_(differs(UOp(Ops.TRUNC, (half,)), half), differs(differs(whole, y), UOp.const(True)))
    flip = where(odd, and_(bits, sign), UOp.const(0, ints))
    value = UOp(Ops.BITCAST, (or_(UOp(Ops.BITCAST, (value,), ints), flip),), dt)
    negative = and_(less(x, const(0.0)), less(const(-math.inf), x))
    return where(and_(negative, differs(whole, y)), const(math.nan), value)


# *** rules ***
def _through(x: UOp, op: Ops) -> UOp:
    """A unary op of a narrow float, evaluated in float32."""
    return UOp(op, (x.cast(dtypes.float32),)).cast(x.dtype)


def _unary(u: UOp, x: UOp) -> UOp | None:
    fmt = _FORMATS.get(x.dtype)
    if fmt is None:
        return _through(x, u.op) if x.dtype.is_float and not x.dtype.is_weak else None
    if u.op is Ops.EXP2 and (natural := _natural_exponent(x, fmt)) is not None:
        return exp(*natural, fmt)
    return {Ops.EXP2: exp2, Ops.LOG2: log2, Ops.SIN: sin}[u.op](x, fmt)


def _power(u: UOp, x: UOp, y: UOp, wide: DType) -> UOp | None:
    dt = u.dtype
    if dt.is_int and not dt.is_weak:
        return x.cast(dt)._pow_int(y)
    if not dt.is_float or dt.is_weak:
        return None
    exponent = literal(y)
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return mul(x, x)
    work = dt if dt is dtypes.float64 else wide
    return power(x.cast(work), y.cast(work), _FORMATS[work]).cast(dt)


def power_in_float64(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets with float64."""
    return _power(u, x, y, dtypes.float64)


def power_in_float32(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """POW for targets without float64."""
    return _power(u, x, y, dtypes.float32)


# exp2, log2, sin -> polynomial
UNARY_RULES = {op: [(UPat(op, src=(UPat(name="x"),), name="u"), _unary)] for op in (Ops.EXP2, Ops.LOG2, Ops.SIN)}
