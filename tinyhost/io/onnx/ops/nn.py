"""Convolutions, in floats and in integers, and what is laid out by them."""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.ops.shape import ints
from tinyhost.io.onnx.ops.windows import explicit_pads, flat_pads, spatial, window_pads
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor


def convolved(x: Tensor, w: Tensor, bias: Tensor | None, auto_pad: str, dilations: list[int] | None, group: int,
              pads: list[int] | None, strides: list[int] | None, dtype: Any = None) -> Tensor:
    """Cross-correlation with the attributes of Conv."""
    n = w.ndim - 2
    strides, dilations = spatial(strides, n), spatial(dilations, n)
    pairs = window_pads(auto_pad, pads, x.shape[2:], w.shape[2:], strides, dilations)
    return x.conv2d(w, bias, group, tuple(strides), tuple(dilations), flat_pads(pairs), dtype=dtype)


@op("Conv")
def conv(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
         group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
         strides: list[int] | None = None) -> Tensor:
    """Convolution over any number of spatial axes.

    Raises:
        ValueError: ``kernel_shape`` is not that of the weight.
    """
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise ValueError(f"kernel_shape {kernel_shape} is not that of the weight {w.shape}")
    return convolved(x, w, b, auto_pad, dilations, group, pads, strides)


def centered(x: Tensor, zero: Tensor | None, axis: int | None = None) -> Tensor:
    """Quantised values without their zero point, as int32; a vector of them lies along ``axis``."""
    wide = x.cast(dtypes.int32)
    if zero is None:
        return wide
    if axis is not None and zero.ndim == 1 and zero.shape[0] > 1:
        zero = zero.reshape(tuple(-1 if i == axis % x.ndim else 1 for i in range(x.ndim)))
    elif zero.numel() == 1:
        zero = zero.reshape(())
    return wide - zero.cast(dtypes.int32)


@op("ConvInteger")
def conv_integer(x: Tensor, w: Tensor, x_zero_point: Tensor | None = None, w_zero_point: Tensor | None = None, *,
                 auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
                 kernel_shape: list[int] | None = None, pads: list[int] | None = None,
                 strides: list[int] | None = None) -> Tensor:
    """Convolution of quantised values, exact in int32."""
    return convolved(centered(x, x_zero_point), centered(w, w_zero_point, 0), None, auto_pad, dilations, group, pads,
                     strides, dtypes.int32)


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero_point: Tensor | None = None,
                   b_zero_point: Tensor | None = None) -> Tensor:
    """Product of matrices of quantised values, exact in int32."""
    return centered(a, a_zero_point, -2).matmul(centered(b, b_zero_point, -1), dtype=dtypes.int32)


@op("ConvTranspose")
def conv_transpose(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
                   dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
                   output_padding: list[int] | None = None, output_shape: list[int] | None = None,
                   pads: list[int] | None = None, strides: list[int] | None = None) -> Tensor:
    """Transposed convolution; ``output_shape`` decides the padding where it is given."""
    n = w.ndim - 2
    strides, dilations = spatial(strides, n), spatial(dilations, n)
    extra = list(output_padding) if output_padding else [0] * n
    full = [(i - 1) * s + (k - 1) * d + 1 + e
            for i, s, k, d, e in zip(x.shape[2:], strides, w.shape[2:], dilations, extra)]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [i * s for i, s in zip(x.shape[2:], strides)]
    if output_shape is None:
        pairs = explicit_pads(pads if auto_pad in ("NOTSET", "") else None, n)
    else:
        totals = [max(0, f - o) for f, o in zip(full, output_shape[-n:])]
        grow = [max(0, o - f) for f, o in zip(full, output_shape[-n:])]
        extra = [e + g for e, g in zip(extra, grow)]
        pairs = [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in totals]
        # without SAME the padding behind is the larger half only where auto_pad says so
    return x.conv_transpose2d(w, b, group, tuple(strides), tuple(dilations), flat_pads(pairs), tuple(extra))


@op("Col2Im", host="image_shape block_shape")
def col2im(x: Tensor, image_shape: Array, block_shape: Array, *, dilations: list[int] | None = None,
           pads: list[int] | None = None, strides: list[int] | None = None) -> Tensor:
    """Columns of blocks added up where they lie in the image."""
    image, block = ints(image_shape), ints(block_shape)
    n = len(image)
    strides, dilations = spatial(strides, n), spatial(dilations, n)
    pairs = explicit_pads(pads, n)
    counts = [(s + a + b - d * (k - 1) - 1) // st + 1
              for s, (a, b), d, k, st in zip(image, pairs, dilations, block, strides)]
    channels = x.shape[1] // math.prod(block)
    blocks = x.reshape((x.shape[0], channels, *block, *counts))
    for i in range(n):  # one axis of blocks after the other becomes an axis of the image
        blocks = _overlapped(blocks, 2 + i, 2 + n, counts[i], block[i], strides[i], dilations[i],
                             image[i] + sum(pairs[i]))
    return blocks.shrink((None, None, *((a, a + s) for s, (a, _) in zip(image, pairs))))


def _overlapped(x: Tensor, k_axis: int, c_axis: int, count: int, kernel: int, stride: int, dilation: int,
                extent: int) -> Tensor:
    """Axes (kernel, count) added up into one of ``extent``, which takes the kernel's place."""
    place = Tensor.arange(kernel).reshape((kernel, 1)) * dilation + Tensor.arange(count).reshape((1, count)) * stride
    hit = place.unsqueeze(0).eq(Tensor.arange(extent).reshape((extent, 1, 1))).cast(x.dtype)
    order = (k_axis, c_axis, *(i for i in range(x.ndim) if i not in (k_axis, c_axis)))
    moved = x.permute(order)
    rest = moved.shape[2:]
    out = hit.reshape((extent, kernel * count)).matmul(moved.reshape((kernel * count, math.prod(rest))))
    out = out.reshape((extent, *rest))
    return out.permute((*range(1, k_axis + 1), 0, *range(k_axis + 1, out.ndim)))
