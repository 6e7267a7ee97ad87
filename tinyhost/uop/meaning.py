"""The meaning of each ALU op: one table of functions on Python numbers and on numpy arrays.

An entry computes on exact operands of one kind (integers, floats, bools) and leaves wrapping and rounding to
``semantics``, whose docstring states the rules; SHL and SHR, whose second operand has its own dtype, are functions
beside the table, and WHERE computes nothing. EXP2, LOG2, SIN and POW are computed in float64.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tinyhost.ops import Ops

Array = Any  # numpy arrays and numpy scalars


# *** integers ***
def _cdiv(a: int, b: int) -> int:
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _cmod(a: int, b: int) -> int:
    return a - _cdiv(a, b) * b if b else 0


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _floormod(a: int, b: int) -> int:
    return a % b if b else 0


def int_pow(a: int, b: int, modulus: int) -> int:
    """Wrapping power; a negative exponent gives 1/a**-b, truncated."""
    if b >= 0:
        return pow(a, b, modulus)
    return a if abs(a) == 1 and b & 1 else 1 if abs(a) == 1 else 0


def _np_cdiv(a: Array, b: Array) -> Array:
    return np.where(b == 0, np.zeros_like(a), np.floor_divide(a - np.fmod(a, b), b))


def _np_int_pow(a: Array, b: Array) -> Array:
    unit = (a == 1) | (a + 1 == 0) if a.dtype.kind == "i" else a == 1
    out, base, left = np.ones_like(a), a, np.where(unit, b & 1, np.maximum(b, 0))
    while left.any():
        out = np.where(left & 1, out * base, out)
        base, left = base * base, left >> 1
    return np.where((b < 0) & ~unit, np.zeros_like(a), out)


def shl(width: int) -> Callable[[int, int], int]:
    return lambda x, count: x << count if 0 <= count < width else 0


def shr(width: int) -> Callable[[int, int], int]:
    return lambda x, count: x >> count if 0 <= count < width else -(x < 0)


def np_shl(x: Array, count: Array) -> Array:
    width = x.dtype.itemsize * 8
    out_of_range = (count < 0) | (count >= width)
    return np.where(out_of_range, np.zeros_like(x), x << np.where(out_of_range, 0, count).astype(x.dtype))


def np_shr(x: Array, count: Array) -> Array:
    width = x.dtype.itemsize * 8
    out_of_range = (count < 0) | (count >= width)
    shifted = x >> np.where(out_of_range, width - 1, count).astype(x.dtype)
    return shifted if x.dtype.kind == "i" else np.where(out_of_range, np.zeros_like(x), shifted)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(counter: Any, key: Any) -> Any:
    """Threefry-2x32, 20 rounds, of uint64 values that pack two words, low word first; ints and uint64 arrays alike."""
    mask = 0xFFFFFFFF if isinstance(counter, int) else np.uint64(0xFFFFFFFF)
    half = 32 if isinstance(counter, int) else np.uint64(32)
    number: Callable[[int], Any] = int if isinstance(counter, int) else np.uint64
    k0, k1 = key & mask, key >> half
    keys = (k0, k1, k0 ^ k1 ^ number(0x1BD11BDA))
    x0, x1 = (counter & mask) + k0 & mask, (counter >> half) + k1 & mask
    for group in range(5):
        for r in _ROTATIONS[group & 1]:
            x0 = x0 + x1 & mask
            x1 = (x1 << number(r) | x1 >> number(32 - r)) & mask ^ x0
        x0 = x0 + keys[(group + 1) % 3] & mask
        x1 = x1 + keys[(group + 2) % 3] + number(group + 1) & mask
    return x1 << half | x0


# *** floats ***
def _fdiv(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _reciprocal(x: float) -> float:
    return 1.0 / x if x else math.copysign(math.inf, x)


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else x if x == 0.0 else math.nan


def _exp2(x: float) -> float:
    return math.inf if x >= 1024.0 else float(np.exp2(x))


def _log2(x: float) -> float:
    return float(np.log2(x)) if x > 0.0 else -math.inf if x == 0.0 else math.nan


def _sin(x: float) -> float:
    return math.nan if math.isinf(x) else float(np.sin(x))


def _trunc(x: float) -> float:
    return math.copysign(math.trunc(x), x) if math.isfinite(x) else x


def _max(a: float, b: float) -> float:
    return b if a < b or math.isnan(b) else a


def _pow(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(_np_pow(np.array([a, 1.0]), np.array([b, 1.0]))[0])


def _np_pow(a: Array, b: Array) -> Array:
    # a lone exponent of 0.5 would make numpy take a square root, which differs for -0.0 and -inf
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return np.power(np.broadcast_to(a, shape), np.array(np.broadcast_to(b, shape), order="C"))


def _np_max(a: Array, b: Array) -> Array:
    return np.where((a < b) | (b != b), b, a)


def _np_wide(f: Callable[..., Array]) -> Callable[..., Array]:
    """``f`` computed in float64; the caller rounds."""
    return lambda *xs: f(*[x.astype(np.float64) for x in xs])


def _add_odd(a: Array, b: Array) -> Array:
    """a+b of float64 arrays rounded to odd: a later rounding to fewer bits is then the only one that shows."""
    total = a + b
    b_part = total - a
    error = (a - (total - b_part)) + (b - b_part)
    bits = np.asarray(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(total) & (bits & 1 == 0)
    away = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, bits + away, bits).view(np.float64)


def _split(x: Array) -> tuple[Array, Array]:
    """High and low half of float64 mantissas (Veltkamp)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _fma_exact(a: float, b: float, c: float) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        return a * b + c if c == 0.0 else 0.0
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _np_fma64(a: Array, b: Array, c: Array) -> Array:
    """Fused multiply-add of float64 arrays (Boldo and Melquiond, "Emulation of FMA", 2008)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    (a1, a0), (b1, b0) = _split(a), _split(b)
    low = a0 * b0 - (((product - a1 * b1) - a0 * b1) - a1 * b0)
    t = c + low
    low_part = t - c
    t_low = (c - (t - low_part)) + (low - low_part)
    u = product + t
    t_part = u - product
    u_low = (product - (u - t_part)) + (t - t_part)
    out = np.array(u + _add_odd(t_low, u_low))
    plain = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c) | (a == 0) | (b == 0)
    out = np.where(plain, product + c, out)
    # the error-free steps need room above and below: elsewhere exact rationals
    size = np.abs(product)
    risky = ~plain & ((size > 2.0**1000) | (size < 2.0**-900) | (np.abs(c) > 2.0**1000) | (np.abs(a) > 2.0**990)
                      | (np.abs(b) > 2.0**990))
    for place in zip(*np.nonzero(np.atleast_1d(risky))):
        operands = [float(np.atleast_1d(x)[place]) for x in (a, b, c)]
        np.atleast_1d(out)[place] = _fma_exact(*operands)
    return out


def _np_fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float64:
        return _np_fma64(a, b, c)
    # products of narrower floats are exact in float64
    return _add_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


# *** the table ***
class Meaning(NamedTuple):
    """One op: on Python ints (before wrapping), floats (before rounding) and bools, and on arrays of each kind.

    A missing entry means the op does not take that kind of operand.
    """

    ints: Callable[..., int] | None = None
    floats: Callable[..., float] | None = None
    bools: Callable[..., bool] | None = None
    np_ints: Callable[..., Array] | None = None
    np_floats: Callable[..., Array] | None = None
    np_bools: Callable[..., Array] | None = None


def _float_only(scalar: Callable[..., float], array: Callable[..., Array]) -> Meaning:
    return Meaning(floats=scalar, np_floats=array)


def _int_only(scalar: Callable[..., int], array: Callable[..., Array]) -> Meaning:
    return Meaning(ints=scalar, np_ints=array)


def _compare(scalar: Callable[[Any, Any], bool], floats: Callable[..., bool], array: Callable[..., Array]) -> Meaning:
    # floats by float's own methods: == of a ConstFloat is that of literals, not of IEEE
    return Meaning(scalar, floats, scalar, array, array, array)


MEANING: dict[Ops, Meaning] = {
    Ops.EXP2: _float_only(_exp2, _np_wide(np.exp2)),
    Ops.LOG2: _float_only(_log2, _np_wide(np.log2)),
    Ops.SIN: _float_only(_sin, _np_wide(np.sin)),
    Ops.SQRT: _float_only(_sqrt, np.sqrt),
    Ops.RECIPROCAL: _float_only(_reciprocal, lambda x: x.dtype.type(1) / x),
    Ops.NEG: Meaning(lambda x: -x, lambda x: -x, lambda x: not x, np.negative, np.negative, np.logical_not),
    Ops.TRUNC: Meaning(lambda x: x, _trunc, lambda x: x, lambda x: x, np.trunc, lambda x: x),
    Ops.ADD: Meaning(lambda a, b: a + b, lambda a, b: a + b, lambda a, b: a or b, np.add, np.add, np.logical_or),
    Ops.SUB: Meaning(lambda a, b: a - b, lambda a, b: a - b, lambda a, b: a or not b,
                     np.subtract, np.subtract, lambda a, b: a | ~b),
    Ops.MUL: Meaning(lambda a, b: a * b, lambda a, b: a * b, lambda a, b: a and b,
                     np.multiply, np.multiply, np.logical_and),
    Ops.MAX: Meaning(lambda a, b: max(a, b), _max, lambda a, b: a or b, np.maximum, _np_max, np.logical_or),
    Ops.FDIV: _float_only(_fdiv, np.divide),
    Ops.CDIV: _int_only(_cdiv, _np_cdiv),
    Ops.CMOD: _int_only(_cmod, np.fmod),
    Ops.FLOORDIV: _int_only(_floordiv, np.floor_divide),
    Ops.FLOORMOD: _int_only(_floormod, np.remainder),
    Ops.XOR: Meaning(lambda a, b: a ^ b, None, lambda a, b: a ^ b, np.bitwise_xor, None, np.logical_xor),
    Ops.OR: Meaning(lambda a, b: a | b, None, lambda a, b: a | b, np.bitwise_or, None, np.logical_or),
    Ops.AND: Meaning(lambda a, b: a & b, None, lambda a, b: a & b, np.bitwise_and, None, np.logical_and),
    Ops.CMPLT: _compare(lambda a, b: a < b, float.__lt__, np.less),
    Ops.CMPNE: _compare(lambda a, b: a != b, float.__ne__, np.not_equal),
    Ops.CMPEQ: _compare(lambda a, b: a == b, float.__eq__, np.equal),
    Ops.THREEFRY: _int_only(_threefry, _threefry),
    Ops.POW: Meaning(ints=None, floats=_pow, np_ints=_np_int_pow, np_floats=_np_wide(_np_pow)),
    Ops.MULACC: Meaning(lambda a, b, c: a * b + c, None, lambda a, b, c: (a and b) or c,
                        lambda a, b, c: a * b + c, _np_fma, lambda a, b, c: (a & b) | c),
}
"""Every ALU op but SHL and SHR (their second operand has its own dtype) and WHERE (it computes nothing)."""
