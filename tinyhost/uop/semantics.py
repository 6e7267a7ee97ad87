"""What each ALU op, CAST and BITCAST computes: the one definition.

Takes values of one dtype and gives values of the result's dtype, through two faces of one table: Python numbers for
constant folding (``evaluate``, ``cast``, ``bitcast``) and numpy arrays for the reference device and for tests
(``evaluate_np``, ``cast_np``, ``bitcast_np``). Folding, bounds, the reference device and every compiled kernel agree
with it; the two faces agree bit for bit.

Integers wrap. Shift counts are unsigned; a count of the width or more gives 0, or the sign for SHR of a signed type.
x/0 and x%0 are 0 and INT_MIN/-1 is INT_MIN. MAX propagates NaN and gives its first operand when both are equal.
Comparisons with NaN are false except CMPNE. On bool, ADD is OR, MUL is AND, NEG is NOT. Float to int truncates and
saturates, NaN gives 0. Every float result is rounded once, to nearest even; MULACC is fused. EXP2, LOG2, SIN and POW
are computed in float64. numpy has no bfloat16 or fp8: such arrays are float32 arrays whose values are of that type.
"""
from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tinyhost.dtype import (
    ConstType,
    DType,
    Invalid,
    _fp8_tables,
    dtypes,
    from_storage_scalar,
    least_upper_float,
    storage_fmt,
    to_storage_scalar,
    truncate,
)
from tinyhost.errors import DTypeError
from tinyhost.ops import Ops

Array = Any  # numpy arrays and numpy scalars

FLOAT_UNARY = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL})
COMPARISON = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})


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


def _int_pow(a: int, b: int, modulus: int) -> int:
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


def _shl(width: int) -> Callable[[int, int], int]:
    return lambda x, count: x << count if 0 <= count < width else 0


def _shr(width: int) -> Callable[[int, int], int]:
    return lambda x, count: x >> count if 0 <= count < width else -(x < 0)


def _np_shl(x: Array, count: Array) -> Array:
    width = x.dtype.itemsize * 8
    out_of_range = (count < 0) | (count >= width)
    return np.where(out_of_range, np.zeros_like(x), x << np.where(out_of_range, 0, count).astype(x.dtype))


def _np_shr(x: Array, count: Array) -> Array:
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
        return float(np.power(np.float64(a), np.float64(b)))


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
    Ops.POW: Meaning(ints=None, floats=_pow, np_ints=_np_int_pow, np_floats=_np_wide(np.power)),
    Ops.MULACC: Meaning(lambda a, b, c: a * b + c, None, lambda a, b, c: (a and b) or c,
                        lambda a, b, c: a * b + c, _np_fma, lambda a, b, c: (a & b) | c),
}
"""Every ALU op but SHL and SHR (their second operand has its own dtype) and WHERE (it computes nothing)."""


# *** Python numbers ***
def _no_meaning(op: Ops, dtype: DType) -> DTypeError:
    return DTypeError(f"{op} of {dtype!r} has no meaning: "
                      f"{'it takes integers' if dtype.is_float or dtype is dtypes.bool else 'it takes floats'}; "
                      "cast the operands first")


def _scalar_where(dtype: DType) -> Callable[..., Any]:
    rounded = truncate[dtype]

    def where(cond: Any, x: Any, y: Any) -> Any:
        chosen = x if cond else y
        return chosen if chosen is Invalid else rounded(chosen)
    return where


def _scalar_mulacc(dtype: DType) -> Callable[..., Any]:
    carrier = carrier_np(dtype)

    def mulacc(*operands: float) -> Any:
        return evaluate_np(Ops.MULACC, dtype, *[np.asarray(truncate[dtype](x), carrier) for x in operands]).item()
    return mulacc


def _scalar_kind(op: Ops, dtype: DType) -> Callable[..., Any] | None:
    if op in (Ops.SHL, Ops.SHR):
        if not dtype.is_int:
            return None
        return (_shl if op is Ops.SHL else _shr)(dtype.bitsize)
    if op is Ops.POW and dtype.is_int:
        return lambda a, b: _int_pow(a, b, 1 << dtype.bitsize)
    meaning = MEANING.get(op)
    if meaning is None:
        return None
    return meaning.floats if dtype.is_float else meaning.ints if dtype.is_int else meaning.bools


def _make_scalar(op: Ops, dtype: DType) -> Callable[..., Any]:
    """The scalar face of one op on one dtype, operands brought to the dtype and result wrapped or rounded."""
    if op is Ops.WHERE:
        return _scalar_where(dtype)
    if op is Ops.MULACC and dtype.is_float:
        return _scalar_mulacc(dtype)
    compute = _scalar_kind(op, dtype)
    if compute is None:
        raise _no_meaning(op, dtype)
    enter: Callable[[Any], Any] = truncate[dtype]
    leave: Callable[[Any], Any] = bool if op in COMPARISON else enter
    if op in (Ops.SHL, Ops.SHR):
        return lambda x, count: leave(compute(enter(x), int(count)))
    if op in FLOAT_UNARY or op in (Ops.NEG, Ops.TRUNC):
        return lambda x: leave(compute(enter(x)))
    if op is Ops.MULACC:
        return lambda a, b, c: leave(compute(enter(a), enter(b), enter(c)))
    return lambda a, b: leave(compute(enter(a), enter(b)))


_SCALAR: dict[tuple[Ops, DType], Callable[..., Any]] = {}


def evaluate(op: Ops, dtype: DType, operands: tuple[ConstType, ...]) -> Any:
    """``op`` on Python numbers of ``dtype`` (for WHERE: of the arms; for shifts: of the first operand).

    Operands are brought to ``dtype`` first, so literals need not be rounded or wrapped. An Invalid operand makes the
    result Invalid, except in the arm of a WHERE that is not taken.

    Raises:
        DTypeError: the op takes no operands of that dtype.
    """
    for x in operands:
        if x is Invalid and (op is not Ops.WHERE or operands[0] is Invalid):
            return Invalid
    fn = _SCALAR.get((op, dtype))
    if fn is None:
        if op in FLOAT_UNARY and not dtype.is_float:
            # depends on the default float, which may change
            return _make_scalar(op, least_upper_float(dtype))(*operands)
        fn = _SCALAR[op, dtype] = _make_scalar(op, dtype)
    return fn(*operands)


def cast(value: ConstType, src: DType, dst: DType) -> Any:
    """``value`` of type ``src`` converted to ``dst``; Invalid stays."""
    if value is Invalid:
        return value
    if not src.is_weak:
        value = truncate[src](value)
    return truncate[dst](value)


def bitcast(value: ConstType, src: DType, dst: DType) -> Any:
    """The value of type ``dst`` that has the bytes of ``value``; Invalid stays.

    Raises:
        DTypeError: the types differ in size, or one of them is weak or void.
    """
    if value is Invalid:
        return value
    fmts = storage_fmt(src), storage_fmt(dst)
    if fmts[0] is None or fmts[1] is None or src.itemsize != dst.itemsize:
        raise DTypeError(f"cannot bitcast one {src!r} ({src.itemsize} bytes) to {dst!r} ({dst.itemsize} bytes): "
                         "one number needs a type of its own size")
    raw = struct.pack(f"<{fmts[0]}", to_storage_scalar(value, src))  # type: ignore[arg-type]
    return from_storage_scalar(struct.unpack(f"<{fmts[1]}", raw)[0], dst)


# *** arrays ***
_NP_CARRIER: dict[DType, np.dtype[Any]] = {
    **{dt: np.dtype(dt.fmt) for dt in dtypes.all if dt.fmt is not None},
    **{dt: np.dtype(np.float32) for dt in (*dtypes.fp8s, dtypes.bfloat16)},
    dtypes.weakint: np.dtype(np.int64), dtypes.weakfloat: np.dtype(np.float64)}


def carrier_np(dtype: DType) -> np.dtype[Any]:
    """The numpy dtype whose arrays hold values of ``dtype``: float32 for bfloat16 and fp8, 64 bits for weak types."""
    return _NP_CARRIER[dtype]


def _encode_fp8(x: Array, dtype: DType) -> Array:
    """uint8 codes of float arrays."""
    fnuz = dtype in dtypes.fp8_fnuz
    edges = np.array(_fp8_tables(dtype)[1])
    magnitude = np.abs(x.astype(np.float64))
    code = np.searchsorted(edges, magnitude, "left")
    tie = magnitude == edges[np.minimum(code, len(edges) - 1)]
    code = np.where(tie, code + (code & 1), code)
    sign = np.where(np.signbit(x), 0x80, 0)
    over, nan = code >= len(edges), np.isnan(x)
    if fnuz:
        return np.where(over | nan, 0x80, np.where(code == 0, 0, code | sign)).astype(np.uint8)
    code = np.where(nan, 0x7F, np.where(over, 0x7C if dtype is dtypes.fp8e5m2 else 0x7F, code))
    return (code | sign).astype(np.uint8)


def _decode_fp8(codes: Array, dtype: DType) -> Array:
    return np.array(_fp8_tables(dtype)[0], np.float32)[codes]


def _sticky_bits(x: Array) -> Array:
    """float64 arrays cut to 12 mantissa bits, the last of which is set where anything was lost.

    Rounding the result to 10 mantissa bits or fewer, through float32, is one rounding of ``x``.
    """
    bits = np.asarray(x).view(np.uint64)
    mask = np.uint64((1 << 40) - 1)
    return ((bits | (bits & mask) + mask) & ~mask).view(np.float64)


def _round_bf16(x: Array) -> Array:
    """float32 arrays of bfloat16 values from float32 or float64 arrays."""
    if x.dtype == np.float64:
        x = _sticky_bits(x).astype(np.float32)
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32))


def _round_np(x: Array, dtype: DType) -> Array:
    """Float arrays rounded to a float type, in its carrier."""
    if dtype is dtypes.bfloat16:
        return _round_bf16(x)
    return _decode_fp8(_encode_fp8(x, dtype), dtype) if dtype in dtypes.fp8s else x.astype(carrier_np(dtype))


def to_storage_np(x: Array, dtype: DType) -> Array:
    """Values as they lie in memory: uint16 bits for bfloat16, uint8 codes for fp8, else the array itself."""
    if dtype is dtypes.bfloat16:
        return (np.asarray(x, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return _encode_fp8(x, dtype) if dtype in dtypes.fp8s else x


def from_storage_np(x: Array, dtype: DType) -> Array:
    """Values from what lies in memory, the inverse of ``to_storage_np``."""
    if dtype is dtypes.bfloat16:
        return (np.asarray(x, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _decode_fp8(x, dtype) if dtype in dtypes.fp8s else x


def _float_to_int_np(x: Array, dtype: DType) -> Array:
    wide, target = x.astype(np.float64), carrier_np(dtype)
    low, high = wide <= float(dtype.min), wide >= float(dtype.max)
    if dtype is dtypes.weakint:
        low, high = wide < -(2.0**63), wide >= 2.0**63
    inside = np.where(low | high | np.isnan(wide), 0.0, wide).astype(target)
    info = np.iinfo(target)
    return np.where(low, target.type(info.min), np.where(high, target.type(info.max), inside))


def _int_to_wide_np(x: Array) -> Array:
    """Integer arrays as float64 rounded to odd."""
    out = x.astype(np.float64)
    if x.dtype.itemsize < 8:
        return out
    cut = x.dtype.type(11)
    sticky = (x & x.dtype.type(0x7FF) != 0).astype(x.dtype)
    odd = (x >> cut | sticky) << cut
    return np.where(np.abs(out) >= 2.0**53, odd.astype(np.float64), out)


@functools.cache
def cast_function(src: DType, dst: DType) -> Callable[[Array], Array]:
    """CAST from ``src`` to ``dst`` on arrays; the caller silences numpy's warnings."""
    if dst is dtypes.bool:
        return lambda x: x != 0
    if not dst.is_float:
        target = carrier_np(dst)
        return (lambda x: _float_to_int_np(x, dst)) if src.is_float else lambda x: x.astype(target)
    if dst in (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.weakfloat):
        carrier = carrier_np(dst)
        return lambda x: x.astype(carrier)
    return (lambda x: _round_np(x, dst)) if src.is_float else lambda x: _round_np(_int_to_wide_np(x), dst)


def cast_np(x: Array, src: DType, dst: DType) -> Array:
    """Arrays of ``src`` values converted to ``dst``, in the carriers of both."""
    with np.errstate(all="ignore"):
        return cast_function(src, dst)(np.asarray(x))


def bitcast_np(x: Array, src: DType, dst: DType) -> Array:
    """Arrays with the same bytes read as ``dst``; the last axis grows or shrinks if the sizes differ."""
    raw = np.ascontiguousarray(to_storage_np(np.asarray(x), src)).reshape(np.shape(x))
    if dst is dtypes.bool:
        return raw.view(np.uint8) != 0
    return from_storage_np(raw.view(np.dtype(storage_fmt(dst))), dst)


def _where_np(cond: Array, x: Array, y: Array) -> Array:
    return np.where(cond, x, y)


@functools.cache
def array_function(op: Ops, dtype: DType) -> Callable[..., Array]:
    """``op`` on arrays of ``dtype``, as ``evaluate_np``; the caller silences numpy's warnings.

    Raises:
        DTypeError: the op takes no operands of that dtype, or is a float op on another type.
    """
    if op is Ops.WHERE:
        return _where_np
    if op in (Ops.SHL, Ops.SHR):
        if not dtype.is_int:
            raise _no_meaning(op, dtype)
        return _np_shl if op is Ops.SHL else _np_shr
    meaning = MEANING[op]
    compute = meaning.np_floats if dtype.is_float else meaning.np_ints if dtype.is_int else meaning.np_bools
    if compute is None:
        raise _no_meaning(op, dtype)
    if not dtype.is_float or op in COMPARISON or (compute in _EXACT and dtype in _IEEE):
        return compute
    return lambda *xs: _round_np(compute(*xs), dtype)


# numpy rounds these itself, to the type of the operands
_EXACT = frozenset({np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.negative, np.trunc})
_IEEE = frozenset({dtypes.float16, dtypes.float32, dtypes.float64, dtypes.weakfloat})


def evaluate_np(op: Ops, dtype: DType, *arrays: Array) -> Array:
    """``op`` on arrays (or numpy scalars) of ``dtype``, broadcast against each other, in the dtype's carrier.

    WHERE takes a bool array first and its arms in ``dtype``; the count of a shift is of any integer dtype.

    Raises:
        DTypeError: the op takes no operands of that dtype.
    """
    with np.errstate(all="ignore"):
        if op in FLOAT_UNARY and not dtype.is_float:
            wide = least_upper_float(dtype)
            arrays, dtype = tuple(cast_np(x, dtype, wide) for x in arrays), wide
        return array_function(op, dtype)(*arrays)
