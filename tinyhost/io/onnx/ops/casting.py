"""Casts between element types, those that no device has included.

Floats round once, to nearest even. To fp8 and float4 values saturate unless asked otherwise; integers of 4 and 2 bits
keep the low bits. Text is parsed and printed on the host.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import BY_NAME, STRING, Array, ElementType, Narrow, element, element_of, to_array, to_tensor
from tinyhost.tensor import Tensor


def cast_value(value: Any, kind: ElementType, saturate: bool, round_mode: str, ctx: Any) -> Any:
    """A tensor value as another element type."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _from_text(value, kind, saturate, round_mode, ctx)
    if kind is STRING:
        return _to_text(to_array(value))
    if kind.dtype is None:
        return to_array(value).astype(kind.array)
    x = ctx.lift(value)
    if isinstance(value, Narrow) and value.element is kind:
        return value
    if kind.native:
        return _saturated(x, kind) if saturate and kind.dtype in dtypes.fp8s and x.dtype is not kind.dtype else \
            x.cast(kind.dtype)
    return Narrow(_CARRIED[kind.name](x, kind, saturate, round_mode), kind)


def _from_text(text: Array, kind: ElementType, saturate: bool, round_mode: str, ctx: Any) -> Any:
    if kind is STRING:
        return text
    words = [str(t) for t in text.reshape(-1)]
    if kind.name.startswith(("float", "double", "bf")):
        array = np.array([float(t) for t in words], np.float64).reshape(text.shape)
    else:
        array = np.array([int(float(t)) if "." in t or "e" in t.lower() else int(t) for t in words])
        array = array.reshape(text.shape)
    if kind.dtype is not None and kind.dtype.fmt is not None and kind.native:
        return to_tensor(array.astype(kind.array), ctx.device)
    return cast_value(to_tensor(array.astype(np.float32), ctx.device), kind, saturate, round_mode, ctx)


def _to_text(array: Array) -> Array:
    flat = [str(v) if array.dtype.kind != "f" else _number_text(v) for v in array.reshape(-1)]
    return np.array(flat, dtype=object).reshape(array.shape)


def _number_text(v: Any) -> str:
    if np.isnan(v) or np.isinf(v):
        return "NaN" if np.isnan(v) else "INF" if v > 0 else "-INF"
    return str(v)


_FLOAT8_MAX = {"float8e4m3fn": 448.0, "float8e5m2": 57344.0, "float8e4m3fnuz": 240.0, "float8e5m2fnuz": 57344.0}


def _saturated(x: Tensor, kind: ElementType) -> Tensor:
    """A cast to fp8 whose overflow, infinities included, ends at the largest number; NaN stays."""
    assert kind.dtype is not None
    top = _FLOAT8_MAX[kind.name]
    wide = x if x.dtype.is_float else x.cast(dtypes.float32)
    kept = (wide > top).where(top, (wide < -top).where(-top, wide))
    return kept.cast(kind.dtype)


def _low_bits(x: Tensor, kind: ElementType, saturate: bool, round_mode: str) -> Tensor:
    """The low bits of an integer as one of 4 or 2 bits, in its carrier; floats round to it first."""
    bits, signed = int(kind.name[-1]), kind.name.startswith("int")
    whole = x.cast(dtypes.int32) if not x.dtype.is_float else x.round().cast(dtypes.int32)
    low = whole.bitwise_and((1 << bits) - 1)
    if signed:
        low = (low >= 1 << (bits - 1)).where(low - (1 << bits), low)
    assert kind.dtype is not None
    return low.cast(kind.dtype)


def _float4(x: Tensor, kind: ElementType, saturate: bool, round_mode: str) -> Tensor:
    """Values of float4e2m1 (0, 0.5, 1, 1.5, 2, 3, 4, 6), nearest even, in float32."""
    wide = x.cast(dtypes.float32)
    size = wide.abs()
    step = (size < 2).where(0.5, (size < 4).where(1.0, 2.0))
    rounded = ((size / step).round() * step).minimum(6.0)
    nan = wide.isnan()  # there is no NaN: it becomes -0
    return nan.where(0.0, rounded).copysign(nan.where(-1.0, wide))


def _exponent8(x: Tensor, kind: ElementType, saturate: bool, round_mode: str) -> Tensor:
    """Powers of two as float8e8m0 has them, in float32; NaN for negative values."""
    wide = x.cast(dtypes.float32)
    size = wide.abs()
    finite = size.isfinite() & (size > 0)
    safe = finite.where(size, 1.0)
    bits = safe.bitcast(dtypes.int32)
    mantissa, exponent = bits.bitwise_and(0x7FFFFF), (bits >> 23).cast(dtypes.int32)
    if round_mode == "up":
        step = mantissa > 0
    elif round_mode == "down":
        step = mantissa < 0
    elif round_mode == "nearest":
        step = mantissa >= 0x400000
    else:
        raise ValueError(f"round_mode is 'up', 'down' or 'nearest', got {round_mode!r}")
    raised = exponent + step.where(1, 0)
    top = 254
    over = raised > top
    if not saturate:
        powers = over.where(math.nan, _power_of_two(raised.minimum(top)))
    else:
        powers = _power_of_two(raised.minimum(top))
    powers = size.eq(0).where(2.0**-127 if saturate else math.nan, powers)
    infinite = math.nan if not saturate else 2.0**127
    powers = size.eq(math.inf).where(infinite, powers)
    return wide.isnan().where(math.nan, powers)


def _power_of_two(biased: Tensor) -> Tensor:
    """2**(biased - 127) as float32; 0 is the subnormal 2**-127."""
    bits = biased.eq(0).where(0x400000, biased << 23)
    return bits.cast(dtypes.int32).bitcast(dtypes.float32)


_CARRIED: dict[str, Any] = {"int4": _low_bits, "uint4": _low_bits, "int2": _low_bits, "uint2": _low_bits,
                            "float4e2m1": _float4, "float8e8m0": _exponent8}


@op("Cast", raw=True)
def cast_named(x: Any, *, to: str | int, ctx: Any) -> Any:
    """Cast by the name of a type (before opset 6)."""
    kind = element(to) if isinstance(to, int) else BY_NAME[str(to).lower()]
    return cast_value(x, kind, True, "up", ctx)


@op("Cast", since=6, raw=True)
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up", ctx: Any) -> Any:
    """Cast to an element type."""
    return cast_value(x, element(to), bool(saturate), round_mode, ctx)


@op("CastLike", raw=True)
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up", ctx: Any) -> Any:
    """Cast to the element type of ``like``."""
    return cast_value(x, element_of(like), bool(saturate), round_mode, ctx)


@op("BitCast", raw=True)
def bit_cast(x: Any, *, to: int, ctx: Any) -> Any:
    """The same bits as another element type of that width."""
    kind, old = element(to), element_of(x)
    if kind.array.itemsize != old.array.itemsize:
        raise ValueError(f"cannot read the bits of {old.name} as {kind.name}: the widths differ")
    if kind.native and old.native and kind.dtype is not None and dtypes.bool not in (kind.dtype, old.dtype):
        return ctx.lift(x).bitcast(kind.dtype)
    return to_array(x).view(kind.array)
