"""Promotion: which type holds the values of several, and which casts lose nothing.

The order is a lattice: bool, weakint, the integers by width, weakfloat, fp8, the half types, float32, float64.
"""
from __future__ import annotations

import functools
from typing import Final

from tinyhost.dtype.types import DType, dtypes, to_dtype
from tinyhost.env import SUM_DTYPE
from tinyhost.errors import DTypeError

_PARENTS: Final[dict[DType, tuple[DType, ...]]] = {
    dtypes.bool: (dtypes.weakint,), dtypes.weakint: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,), dtypes.int16: (dtypes.int32,), dtypes.int32: (dtypes.int64,),
    dtypes.int64: (dtypes.weakfloat,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16), dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.uint32: (dtypes.int64, dtypes.uint64), dtypes.uint64: (dtypes.weakfloat,),
    dtypes.weakfloat: dtypes.fp8s, **{fp8: (dtypes.float16, dtypes.bfloat16) for fp8 in dtypes.fp8s},
    dtypes.float16: (dtypes.float32,), dtypes.bfloat16: (dtypes.float32,), dtypes.float32: (dtypes.float64,)}


@functools.cache
def _ancestors(dtype: DType) -> frozenset[DType]:
    return frozenset({dtype}).union(*[_ancestors(parent) for parent in _PARENTS.get(dtype, ())])


@functools.cache
def least_upper_dtype(*ds: DType) -> DType:
    """The smallest type that all of ``ds`` promote to.

    Raises:
        DTypeError: there is none (void takes part in no promotion).
    """
    if not ds:
        raise DTypeError("least_upper_dtype of nothing: give at least one dtype")
    common = frozenset.intersection(*[_ancestors(d) for d in ds])
    if not common:
        raise DTypeError(f"no common dtype of {', '.join(map(repr, ds))}: void takes part in no promotion")
    return min(common)


def least_upper_float(dtype: DType) -> DType:
    """The float type in which float math on ``dtype`` happens: itself, weakfloat for weakint, else via the default."""
    if dtype.is_float:
        return dtype
    return dtypes.weakfloat if dtype is dtypes.weakint else least_upper_dtype(dtype, dtypes.default_float)


def strong_dtype(dtype: DType) -> DType:
    """The default type of a weak one; others unchanged."""
    if not dtype.is_weak:
        return dtype
    return dtypes.default_int if dtype is dtypes.weakint else dtypes.default_float


def weak_dtype(dtype: DType) -> DType:
    """The weak type of the same kind: weakfloat, weakint, or bool and void as they are."""
    return dtypes.weakfloat if dtype.is_float else dtypes.weakint if dtype.is_int else dtype


@functools.cache
def can_lossless_cast(src: DType, dst: DType) -> bool:
    """Whether every value of ``src`` is a value of ``dst``."""
    if src is dst or src is dtypes.bool:
        return True
    if dst is dtypes.weakint:
        return src.is_int
    if src.is_weak or dst.is_weak:
        return False
    if dst.is_float:
        ints = {dtypes.float64: 32, dtypes.float32: 16, dtypes.float16: 8}.get(dst, 0)
        return src.bitsize <= ints if src.is_int else (
            src in {dtypes.float64: (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16, dtypes.float32),
                    dtypes.float32: (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16),
                    dtypes.float16: dtypes.fp8s}.get(dst, ()))
    return src.is_int and dst.is_int and bool(dst.min <= src.min and src.max <= dst.max)


def sum_acc_dtype(dtype: DType) -> DType:
    """The type in which a sum over ``dtype`` accumulates; floats are at least ``SUM_DTYPE``."""
    if dtype.is_unsigned:
        return least_upper_dtype(dtype, dtypes.uint32)
    if dtype.is_int or dtype is dtypes.bool:
        return least_upper_dtype(dtype, dtypes.int32)
    return least_upper_dtype(dtype, to_dtype(SUM_DTYPE.value or "float32"))
