"""Linear quantisation: one scale for all, for each slice of an axis, or for blocks along an axis."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.ops.casting import cast_value
from tinyhost.io.onnx.ops.nn import centered, convolved
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import BY_NAME, ElementType, Narrow, element, element_of
from tinyhost.tensor import Tensor


def _laid(v: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point laid out over ``x``.

    Raises:
        ValueError: its shape fits none of the three forms.
    """
    if v.numel() == 1:
        return v.reshape(())
    axis = axis + x.ndim if axis < 0 else axis
    if block:
        spread = v.repeat_interleave(block, dim=axis)
        return spread.shrink(tuple((0, s) for s in x.shape))
    if v.ndim != 1 or v.shape[0] != x.shape[axis]:
        raise ValueError(f"a scale of shape {v.shape} fits no axis {axis} of shape {x.shape}")
    return v.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))


_RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def _bounds(kind: ElementType) -> tuple[int, int]:
    assert kind.dtype is not None
    return _RANGES[kind.name] if kind.name in _RANGES else (int(kind.dtype.min), int(kind.dtype.max))


def quantized(ratio: Tensor, zero: Tensor | None, kind: ElementType) -> Any:
    """Rounded to even, moved by the zero point, kept within the type."""
    low, high = _bounds(kind)
    whole = ratio.round()
    whole = whole if zero is None else whole + zero.cast(whole.dtype)
    assert kind.dtype is not None
    kept = whole.clip(float(low), float(high)).cast(dtypes.int32).cast(kind.dtype)
    return kept if kind.native else Narrow(kept, kind)


@op("QuantizeLinear", raw=True)
def quantize_linear(x: Any, y_scale: Any, y_zero_point: Any = None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1, ctx: Any) -> Any:
    """``x / scale`` rounded, plus the zero point, kept within the type."""
    kind = element_of(y_zero_point) if y_zero_point is not None else \
        element(output_dtype) if output_dtype else BY_NAME["uint8"]
    data, scale = ctx.lift(x), ctx.lift(y_scale)
    zero = None if y_zero_point is None else ctx.lift(y_zero_point)
    wide = element(precision).dtype or dtypes.float32 if precision else dtypes.float32
    ratio = data.cast(wide) / _laid(scale, data, axis, block_size).cast(wide)
    zero = None if zero is None else _laid(zero, data, axis, block_size)
    if kind.name.startswith("float"):
        ratio = ratio if zero is None else ratio + zero.cast(ratio.dtype)
        return cast_value(ratio, kind, bool(saturate), "up", ctx)
    return quantized(ratio, zero, kind)


@op("DequantizeLinear", raw=True)
def dequantize_linear(x: Any, x_scale: Any, x_zero_point: Any = None, *, axis: int = 1, block_size: int = 0,
                      output_dtype: int = 0, ctx: Any) -> Tensor:
    """``(x - zero point) * scale``."""
    kind, data, scale = element_of(x), ctx.lift(x), ctx.lift(x_scale)
    out = (element(output_dtype).dtype if output_dtype else None) or scale.dtype
    wide = data.cast(dtypes.float32 if kind.name.startswith("float") else dtypes.int32)
    if x_zero_point is not None:
        wide = wide - _laid(ctx.lift(x_zero_point), data, axis, block_size).cast(wide.dtype)
    return (wide.cast(dtypes.float32) * _laid(scale, data, axis, block_size).cast(dtypes.float32)).cast(out)


def _vector(v: Tensor, axis: int, ndim: int) -> Tensor:
    """A scale of one number, or of a vector along ``axis``."""
    if v.ndim != 1 or v.shape[0] == 1:
        return v.reshape(()) if v.numel() == 1 else v
    return v.reshape(tuple(-1 if i == axis % ndim else 1 for i in range(ndim)))


@op("QLinearMatMul", raw=True)
def qlinear_matmul(a: Any, a_scale: Any, a_zero_point: Any, b: Any, b_scale: Any, b_zero_point: Any, y_scale: Any,
                   y_zero_point: Any, *, ctx: Any) -> Any:
    """Product of quantised matrices, quantised again."""
    x, w = ctx.lift(a), ctx.lift(b)
    acc = _centered_to(x, ctx.lift(a_zero_point), -2).matmul(_centered_to(w, ctx.lift(b_zero_point), -1),
                                                            dtype=dtypes.int32)
    scales = _vector(ctx.lift(a_scale).float(), -2, x.ndim) * _vector(ctx.lift(b_scale).float(), -1, w.ndim)
    ratio = acc.float() * (scales / _vector(ctx.lift(y_scale).float(), -2, acc.ndim))
    return quantized(ratio, _vector(ctx.lift(y_zero_point), -2, acc.ndim), _kind_of(y_zero_point))


def _centered_to(x: Tensor, zero: Tensor, axis: int) -> Tensor:
    """Without the zero point: a number, a vector along ``axis``, or one number for each row or column."""
    if zero.ndim > 1 and zero.numel() > 1:
        return x.cast(dtypes.int32) - zero.cast(dtypes.int32)
    return centered(x, zero, axis)


@op("QLinearConv", raw=True)
def qlinear_conv(x: Any, x_scale: Any, x_zero_point: Any, w: Any, w_scale: Any, w_zero_point: Any, y_scale: Any,
                 y_zero_point: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
                 group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
                 strides: list[int] | None = None, ctx: Any) -> Any:
    """Convolution of quantised values, quantised again; the bias is int32 at the product of the scales."""
    data, weight = ctx.lift(x), ctx.lift(w)
    bias = None if b is None else ctx.lift(b).cast(dtypes.int32)
    acc = convolved(centered(data, ctx.lift(x_zero_point)), centered(weight, ctx.lift(w_zero_point), 0), bias,
                    auto_pad, dilations, group, pads, strides, dtypes.int32)
    scales = ctx.lift(x_scale).float().reshape(()) * _vector(ctx.lift(w_scale).float(), 1, acc.ndim)
    ratio = acc.float() * (scales / ctx.lift(y_scale).float().reshape(()))
    return quantized(ratio, ctx.lift(y_zero_point).reshape(()), _kind_of(y_zero_point))


def _kind_of(zero: Any) -> ElementType:
    return element_of(np.asarray(zero) if not isinstance(zero, (Tensor, Narrow)) else zero)
