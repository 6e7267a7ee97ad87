"""Data types of the standard, their limits, and which type an operation has.

Types are those of ``tinyhost.dtypes``; bfloat16, float16 and fp8 take part beyond the standard. Mixed kinds (integers
with floats, uint64 with signed integers), which the standard leaves open, follow ``least_upper_dtype``.
"""
from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import Any

from tinyhost.dtype import DType, dtypes, least_upper_dtype, strong_dtype
from tinyhost.errors import DTypeError
from tinyhost.tensor import Tensor

bool = dtypes.bool
int8, int16, int32, int64 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
uint8, uint16, uint32, uint64 = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64
float32, float64 = dtypes.float32, dtypes.float64

KINDS = {
    "bool": (bool,), "signed integer": dtypes.sints, "unsigned integer": dtypes.uints, "integral": dtypes.ints,
    "real floating": dtypes.floats, "complex floating": (), "numeric": dtypes.ints + dtypes.floats}


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a float type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntInfo:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype(x: DType | Tensor) -> DType:
    return strong_dtype(x.dtype) if isinstance(x, Tensor) else x


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """``x`` with another dtype; with ``copy=False`` maybe ``x`` itself."""
    y = x.cast(dtype)
    if device is not None:
        y = y.to(device)
    return y.clone() if copy and y is x else y


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether promotion leads from one type to the other."""
    start = _dtype(from_)
    mixed = start.is_int and to.is_float or start is bool and to is not bool
    return not mixed and least_upper_dtype(start, to) is to


def finfo(type: DType | Tensor, /) -> FloatInfo:
    """Limits of a float type.

    Raises:
        DTypeError: it is none.
    """
    dtype = _dtype(type)
    if not dtype.is_float:
        raise DTypeError(f"finfo is for floats, got {dtype}: use iinfo for integers")
    exponent, mantissa = dtypes.finfo(dtype)
    bias = (1 << exponent - 1) - (0 if dtype in dtypes.fp8_fnuz else 1)
    largest = dtype.max if math.isfinite(dtype.max) else math.ldexp(2 - 2.0**-mantissa, bias)
    return FloatInfo(dtype.bitsize, 2.0**-mantissa, largest, -largest, math.ldexp(1.0, 1 - bias), dtype)


def iinfo(type: DType | Tensor, /) -> IntInfo:
    """Limits of an integer type.

    Raises:
        DTypeError: it is none.
    """
    dtype = _dtype(type)
    if not dtype.is_int:
        raise DTypeError(f"iinfo is for integers, got {dtype}: use finfo for floats")
    return IntInfo(dtype.bitsize, dtype.max, dtype.min, dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether a type is of a kind: a type, a name of ``KINDS``, or a tuple of these.

    Raises:
        ValueError: unknown name.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"unknown kind of dtype {kind!r}: the kinds are {', '.join(KINDS)}")
    return dtype in KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type of an operation over arrays, types and Python scalars; scalars only decide the kind.

    Raises:
        ValueError: no array or type is among them.
    """
    if not any(isinstance(x, (Tensor, DType)) for x in arrays_and_dtypes):
        raise ValueError(f"result_type needs an array or a dtype, got {arrays_and_dtypes}")
    return strong_dtype(least_upper_dtype(*[
        x if isinstance(x, DType) else x.dtype if isinstance(x, Tensor) else dtypes.from_py(x)
        for x in arrays_and_dtypes]))
