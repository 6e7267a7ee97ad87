"""Range reduction of angles: x as a whole number k of quarter turns (pi/2) and a rest r of at most half of one.

Two ways that are selected by size: Cody and Waite's with pi in parts for small numbers, and Payne and Hanek's with the
digits of 1/pi that count for large ones (M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM 18,
1983). Both take |x| and give r, right to about its last bit, what r lost when it was rounded, and bits that end in k
modulo 4. Payne and Hanek's needs x from 1 up, and 64-bit integers. float32 has a third way of Payne and Hanek's kind
for all sizes, where the target has float64: its digits make the products exact.
"""
from __future__ import annotations

import math

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, differs, fma, less, mul, or_, shl, shr, sub, where
from tinyhost.uop.rules.double_word import fast_sum, times
from tinyhost.uop.rules.float_format import FLOAT32, FLOAT64, PI, PI_BITS, Format, nearest, split_pi

# floor(2**1216 / pi)
_INVERSE_PI_BITS = 1216
_INVERSE_PI = int(
    "517cc1b727220a94fe13abe8fa9a6ee06db14acc9e21c820ff28b1d5ef5de2b0db92371d2126e9700324977504e8c90e7f0ef58e5894d39f"
    "74411afa975da24274ce38135a2fbf209cc8eb1cc1a99cfa4e422fc5defc941d8ffc4bffef02cc07f79788c5ad05368fb69b3f6793e584db"
    "a7a31fb34f2ff516ba93dd63f5f2f8bd9e839cfbc529497535fdafd88fc6ae842b0198237e3db5d5", 16)
_WIDE = dtypes.uint64


def reduced(x: UOp, fmt: Format, wide: bool, with_rest: bool = False) -> tuple[UOp, UOp, UOp]:
    """(r, what r lost when it was rounded, bits that end in k modulo 4) for x >= 0; r is NaN for infinities.

    Without ``with_rest`` the second may be 0. ``wide`` says whether the target has float64.
    """
    if wide and fmt is FLOAT32:
        return reduced_in_float64(x, with_rest)
    dt = fmt.dtype
    near, near_rest, near_count = cody_waite_reduction(x, fmt)
    far, far_rest, far_count = payne_hanek_reduction(x, fmt, with_rest)
    is_near = less(x, UOp.const(math.pi / 2 * (fmt.pi_limit - 1), dt))
    far = where(less(x, UOp.const(math.inf, dt)), far, UOp.const(math.nan, dt))
    return where(is_near, near, far), where(is_near, near_rest, far_rest), where(is_near, near_count, far_count)


# *** float32 in float64 ***
_STEP = 29  # bits of a part of 2/pi, whose product with a float32 is exact


def _two_over_pi(first: int, count: int) -> float:
    """The part of 2/pi from bit ``first`` behind the point on."""
    whole = _INVERSE_PI >> _INVERSE_PI_BITS - 1 - first - count
    return math.ldexp(whole & (1 << count) - 1, -first - count)


def reduced_in_float64(x: UOp, with_rest: bool) -> tuple[UOp, UOp, UOp]:
    """(r, what r lost when it was rounded, bits that end in k modulo 4) for a float32 x >= 0; r is NaN for infinities.

    x * 2/pi is a sum of three products with parts of 2/pi. The parts before them give multiples of 4, which are left
    out; the first two products are exact. Without ``with_rest`` the second result is 0.
    """
    dt, narrow = dtypes.float64, dtypes.float32
    x = x.cast(dt)
    limits = [less(x, UOp.const(2.0 ** (54 + _STEP * i), dt)) for i in range(3)]

    def chosen(place: int, width: int) -> UOp:
        parts = [UOp.const(_two_over_pi(_STEP * (i + place), width), dt) for i in range(4)]
        return where(limits[1], where(limits[0], *parts[:2]), where(limits[2], *parts[2:]))
    high, middle, low = mul(x, chosen(0, _STEP)), mul(x, chosen(1, _STEP)), mul(x, chosen(2, 53))
    fours = UOp.const(1.5 * 2.0**54, dt)
    high = sub(high, sub(add(high, fours), fours))
    pattern, k = nearest(add(add(high, middle), low), 1.0, 0, FLOAT64)
    turns = add(add(sub(high, k), middle), low)
    angle = mul(turns, UOp.const(math.pi / 2, dt))
    r = angle.cast(narrow)
    rest = sub(angle, r.cast(dt)).cast(narrow) if with_rest else UOp.const(0.0, narrow)
    return r, rest, UOp(Ops.CAST, (pattern,), dtypes.uint32)


# *** small numbers ***
def cody_waite_reduction(x: UOp, fmt: Format) -> tuple[UOp, UOp, UOp]:
    """(r, its rounding error, bits that end in k), for x below pi_limit * pi / 2."""
    dt = fmt.dtype
    pattern, k = nearest(x, 2 / math.pi, 0, fmt)
    *exact, last_exact, tail = (UOp.const(-part / 2, dt) for part in fmt.pi_parts)
    for part in exact:
        x = fma(k, part, x)
    # what the last exact product loses in the sum goes into the tail (Dekker), so r is rounded once
    product = mul(k, last_exact)
    r = add(x, product)
    lost = add(sub(x, r), product)
    return *fast_sum(r, fma(k, tail, lost)), pattern


# *** large numbers ***
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
    mask = UOp.const(0xFFFFFFFF, _WIDE)
    (a1, a0), (b1, b0) = ((shr(v, 32), and_(v, mask)) for v in (a, b))
    middle = add(mul(a1, b0), shr(mul(a0, b0), 32))
    other = add(mul(a0, b1), and_(middle, mask))
    return add(add(mul(a1, b1), shr(middle, 32)), shr(other, 32))


def _payne_hanek32(pattern: UOp, exponent: UOp) -> tuple[UOp, UOp]:
    """(upper, lower 32) bits of |x|/pi modulo 2, the top bit of ``upper`` of weight 1."""
    words = [UOp.const(w, _WIDE) for w in _words(-23, 64, 32, 6)]
    words = _narrow(words, exponent, 64, 4)
    w = _narrow(words, exponent, 32, 3)
    count = UOp(Ops.CAST, (and_(exponent, UOp.const(31, exponent.dtype)),), _WIDE)
    upper, lower = _window(w[0], w[2], count), shr(UOp(Ops.SHL, (w[2], count)), 32)
    mantissa = or_(and_(pattern, UOp.const(0x7FFFFF, pattern.dtype)), UOp.const(0x800000, pattern.dtype))
    whole = UOp(Ops.CAST, (mantissa,), _WIDE)
    return add(mul(whole, upper), shr(mul(whole, lower), 32)), UOp.const(0, _WIDE)


def _payne_hanek64(pattern: UOp, exponent: UOp) -> tuple[UOp, UOp]:
    """(upper, lower 64) bits of |x|/pi modulo 2, the top bit of ``upper`` of weight 1."""
    w = [UOp.const(v, _WIDE) for v in _words(-52, 64, 64, 19)]
    for bit, keep in ((512, 11), (256, 7), (128, 5), (64, 4)):
        w = _narrow(w, exponent, bit, keep)
    count = and_(exponent, UOp.const(63, _WIDE))
    a, b, c = (_window(w[i], w[i + 1], count) for i in range(3))
    whole = or_(and_(pattern, UOp.const((1 << 52) - 1, _WIDE)), UOp.const(1 << 52, _WIDE))
    middle = mul(whole, b)
    lower = add(middle, _mul_high(whole, c))
    carry = UOp(Ops.CAST, (less(lower, middle),), _WIDE)
    return add(add(mul(whole, a), _mul_high(whole, b)), carry), lower


def payne_hanek_reduction(x: UOp, fmt: Format, with_rest: bool = False) -> tuple[UOp, UOp, UOp]:
    """(r, its rounding error or 0, k modulo 4), for x from 1 up to the largest finite number."""
    pattern = bits(x, fmt.bits)
    exponent = sub(shr(pattern, fmt.mantissa), UOp.const(fmt.bias, fmt.bits))
    upper, lower = (_payne_hanek32 if fmt is FLOAT32 else _payne_hanek64)(pattern, exponent)
    count = shr(add(upper, UOp.const(1 << 61, _WIDE)), 62)
    # the nearest whole number is gone with the top two bits: a signed fraction is left
    fraction = bits(or_(shl(upper, 2), shr(lower, 62)), dtypes.int64)
    if fmt is FLOAT32:
        return *_quarter_turns32(fraction, with_rest), UOp(Ops.CAST, (count,), fmt.bits)
    below = bits(shr(shl(lower, 2), 1), dtypes.int64)
    return *_quarter_turns64(fraction, below), count


def _two_floats(x: UOp, low_bits: int, dt: DType) -> tuple[UOp, UOp]:
    """An int64 as the sum of two floats; the upper one is exact, as it leaves out ``low_bits``."""
    high = UOp(Ops.CAST, (shr(x, low_bits),), dt)
    low = UOp(Ops.CAST, (and_(x, UOp.const((1 << low_bits) - 1, x.dtype)),), dt)
    return mul(high, UOp.const(2.0**low_bits, dt)), low


def _quarter_turns32(fraction: UOp, with_rest: bool) -> tuple[UOp, UOp]:
    """pi / 2 times a signed fraction of 64 bits, as two float32, the second 0 unless asked for."""
    ints, dt = dtypes.int64, dtypes.float32
    pi = PI >> PI_BITS - 29
    high = shr(fraction, 32)
    low = shr(mul(and_(bits(fraction, _WIDE), UOp.const(0xFFFFFFFF, _WIDE)), UOp.const(pi, _WIDE)), 32)
    product = add(mul(high, UOp.const(pi, ints)), bits(low, ints))
    scale = UOp.const(2.0**-62, dt)
    if not with_rest:
        return mul(UOp(Ops.CAST, (product,), dt), scale), UOp.const(0.0, dt)
    r, rest = fast_sum(*_two_floats(product, 39, dt))
    return mul(r, scale), mul(rest, scale)


def _quarter_turns64(fraction: UOp, below: UOp) -> tuple[UOp, UOp]:
    """pi / 2 times a signed fraction of 64 + 63 bits, as two float64."""
    dt = dtypes.float64
    high, low = _two_floats(fraction, 12, dt)
    low = fma(UOp(Ops.CAST, (below,), dt), UOp.const(2.0**-63, dt), low)
    pi = tuple(UOp.const(math.ldexp(p, -65), dt) for p in split_pi((53, 53)))
    r, rest = times(fast_sum(high, low), (pi[0], pi[1]))
    return fast_sum(r, rest)
