"""Values of each dtype as numpy arrays: carriers, storage, rounding and conversion.

numpy has no bfloat16 or fp8: such arrays are float32 arrays whose values are of that type, and in memory the bits as
uint16 or uint8. Every conversion rounds once, to nearest even; the caller silences numpy's warnings where a function
says so. ``semantics`` is the face that other modules use.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost.dtype import DType, _fp8_tables, dtypes, storage_fmt

Array = Any  # numpy arrays and numpy scalars

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


def round_np(x: Array, dtype: DType) -> Array:
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
    return (lambda x: round_np(x, dst)) if src.is_float else lambda x: round_np(_int_to_wide_np(x), dst)


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
