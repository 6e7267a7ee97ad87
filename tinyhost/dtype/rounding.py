"""Rounding a Python number to a type, and the number that stands for it in memory.

Every rounding is one rounding, to nearest even. Integers wrap; a float given for an integer type truncates and
saturates, NaN gives 0. bfloat16 and fp8, which ``struct`` does not know, are stored as the integer of their bits.
"""
from __future__ import annotations

import ctypes
import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Callable

from tinyhost.dtype.literals import PyConst
from tinyhost.dtype.types import DType, dtypes, truncate


def _int_to_float(x: int) -> float:
    """``x`` as a float that keeps every later rounding to fewer bits right (the last bit is sticky)."""
    shift = x.bit_length() - 53
    if shift > 0:
        head = x >> shift
        x = (head | (head << shift != x)) << shift
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _float(x: PyConst) -> float:
    return float(x) if isinstance(x, float) else _int_to_float(x)


def _round_double(x: PyConst) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _round_float(x: PyConst) -> float:
    value: float = ctypes.c_float(x if isinstance(x, float) else _int_to_float(x)).value
    return value


_HALF, _FLOAT, _UINT = struct.Struct("<e"), struct.Struct("<f"), struct.Struct("<I")


def float_to_fp16(x: PyConst) -> float:
    """The value of ``x`` rounded to float16; overflow gives an infinity."""
    x = _float(x)
    try:
        value: float = _HALF.unpack(_HALF.pack(x))[0]
        return value
    except OverflowError:
        return math.copysign(math.inf, x)


def float_to_bf16(x: PyConst) -> float:
    """The value of ``x`` rounded to bfloat16; overflow gives an infinity, NaN and infinities stay."""
    x = _float(x)
    if x == 0.0 or x - x != 0.0:
        return x
    # one rounding, straight to 8 significant bits or to multiples of the smallest subnormal
    step = math.ldexp(1.0, max(math.frexp(x)[1] - 8, -133))
    value = round(x / step) * step if abs(x) > step / 4 else math.copysign(0.0, x)
    if value == 0.0:
        return math.copysign(0.0, x)
    return math.copysign(math.inf, x) if abs(value) >= 2.0**128 else value


@functools.cache
def _fp8_tables(dtype: DType) -> tuple[tuple[float, ...], list[float]]:
    """(value of each code, upper edges of the codes from 0): ``edges[i]`` is half way between codes i and i+1."""
    _, mant = dtypes.finfo(dtype)
    fnuz = dtype in dtypes.fp8_fnuz
    bias = (1 << 6 - mant) - (0 if fnuz else 1)
    ladder = [math.ldexp((code & (1 << mant) - 1) + (1 << mant if code >> mant else 0),
                         max(code >> mant, 1) - bias - mant) for code in range(129)]
    top = 0x7F if fnuz else 0x7E if mant == 3 else 0x7B  # largest finite code
    edges = [(ladder[i] + ladder[i + 1]) / 2 for i in range(top + 1)]
    positive = ladder[:top + 1] + [math.inf] * (mant == 2 and not fnuz)
    positive += [math.nan] * (128 - len(positive))
    values = positive + [-v for v in positive]
    if fnuz:
        values[0x80] = math.nan
    return tuple(values), edges


def float_to_fp8(x: PyConst, dtype: DType) -> int:
    """The code of ``x`` in an fp8 type, rounded to nearest even.

    Overflow gives NaN in e4m3 and the fnuz types and infinity in e5m2. The fnuz types have one zero and one NaN.
    """
    x = _float(x)
    fnuz = dtype in dtypes.fp8_fnuz
    sign = 0x80 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x80 if fnuz else sign | 0x7F
    edges = _fp8_tables(dtype)[1]
    magnitude = abs(x)
    code = bisect_left(edges, magnitude)
    if code < len(edges) and magnitude == edges[code]:
        code += code & 1
    if code >= len(edges):
        return 0x80 if fnuz else sign | (0x7C if dtype is dtypes.fp8e5m2 else 0x7F)
    return code if fnuz and code == 0 else sign | code


def fp8_to_float(x: int, dtype: DType) -> float:
    """The value of an fp8 code."""
    return _fp8_tables(dtype)[0][x]


def float_to_int(x: float, dtype: DType) -> int:
    """``x`` as an integer type: toward zero, saturating; NaN gives 0."""
    if math.isnan(x):
        return 0
    if x >= dtype.max:
        return dtype.max  # type: ignore[no-any-return]
    return dtype.min if x <= dtype.min else int(x)


def _int_wrapper(dtype: DType) -> Callable[[PyConst], int]:
    mask, half = (1 << dtype.bitsize) - 1, 0 if dtype.is_unsigned else 1 << dtype.bitsize - 1

    def unsigned(x: PyConst) -> int:
        return float_to_int(x, dtype) if isinstance(x, float) else x & mask

    def signed(x: PyConst) -> int:
        return float_to_int(x, dtype) if isinstance(x, float) else ((x + half) & mask) - half
    return signed if half else unsigned


def _fp8_rounder(dtype: DType) -> Callable[[PyConst], float]:
    return lambda x: fp8_to_float(float_to_fp8(x, dtype), dtype)


def _weakint(x: PyConst) -> int:
    return float_to_int(x, dtypes.weakint) if isinstance(x, float) else int(x)


truncate.update({
    dtypes.bool: bool, dtypes.weakint: _weakint, dtypes.weakfloat: _round_double,
    **{dt: _int_wrapper(dt) for dt in dtypes.ints}, **{dt: _fp8_rounder(dt) for dt in dtypes.fp8s},
    dtypes.float16: float_to_fp16, dtypes.bfloat16: float_to_bf16, dtypes.float32: _round_float,
    dtypes.float64: _round_double})


# *** storage ***
def storage_fmt(dtype: DType) -> str | None:
    """``struct`` code of the stored form: the type's own, H for bfloat16, B for fp8, None for void and weak types."""
    return "H" if dtype is dtypes.bfloat16 else "B" if dtype in dtypes.fp8s else dtype.fmt


def to_storage_scalar(x: PyConst, dtype: DType) -> PyConst:
    """``x`` as the number that ``struct.pack(storage_fmt(dtype), ...)`` takes."""
    if dtype is dtypes.bfloat16:
        bits: int = _UINT.unpack(_FLOAT.pack(float_to_bf16(x)))[0]
        return bits >> 16
    return float_to_fp8(x, dtype) if dtype in dtypes.fp8s else truncate[dtype](x)


def from_storage_scalar(x: PyConst, dtype: DType) -> PyConst:
    """The value of what ``struct.unpack(storage_fmt(dtype), ...)`` gave."""
    if dtype is dtypes.bfloat16:
        value: float = _FLOAT.unpack(_UINT.pack(int(x) << 16))[0]
        return value
    return fp8_to_float(int(x), dtype) if dtype in dtypes.fp8s else x
