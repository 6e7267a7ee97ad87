"""Pooling over windows and over all of space."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import filled
from tinyhost.io.onnx.ops.windows import Pairs, ceil_pairs, spatial, window_pads, windows
from tinyhost.io.onnx.registry import op
from tinyhost.tensor import Tensor


def _geometry(x: Tensor, kernel: list[int], strides: Any, dilations: Any, auto_pad: str, pads: Any,
              ceil_mode: int) -> tuple[list[int], list[int], Pairs, Pairs]:
    """(strides, dilations, padding given, padding with what ceil_mode needs)."""
    n = len(kernel)
    strides, dilations = spatial(strides, n), spatial(dilations, n)
    pairs = window_pads(auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    wide = ceil_pairs(x.shape[2:], kernel, strides, dilations, pairs) if ceil_mode else pairs
    return strides, dilations, pairs, wide


@op("MaxPool")
def max_pool(x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: list[int] | None = None,
             kernel_shape: list[int], pads: list[int] | None = None, storage_order: int = 0,
             strides: list[int] | None = None, ctx: Any) -> Any:
    """Largest of each window, and its place in the flattened input where asked."""
    strides, dilations, _, wide = _geometry(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    n = len(kernel_shape)
    axes = tuple(range(-n, 0))
    lowest = x.dtype.min
    view = windows(x, kernel_shape, strides, dilations, wide, lowest)
    best = view.max(axes)
    if not ctx.wants(1):
        return best
    space = x.shape[2:]
    total = math.prod(space)
    number = np.arange(total).reshape(space if not storage_order else space[::-1])
    number = number if not storage_order else number.transpose(tuple(range(n))[::-1])
    places = Tensor(np.ascontiguousarray(total - number).astype(np.int32), device=x.device).reshape((1, 1, *space))
    seen = windows(places, kernel_shape, strides, dilations, wide, 0)
    hit = view.eq(best.reshape((*best.shape, *(1,) * n)))
    first = total - hit.where(seen, 0).max(axes)
    plane = (Tensor.arange(x.shape[0] * x.shape[1]) * total).reshape((*x.shape[:2], *(1,) * n))
    return best, (first + plane).cast(dtypes.int64)


@op("AveragePool")
def average_pool(x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
                 dilations: list[int] | None = None, kernel_shape: list[int], pads: list[int] | None = None,
                 strides: list[int] | None = None) -> Tensor:
    """Mean of each window; padding counts only where asked."""
    strides, dilations, pairs, wide = _geometry(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    axes = tuple(range(-len(kernel_shape), 0))
    total = windows(x.float() if x.dtype is not dtypes.float64 else x, kernel_shape, strides, dilations, wide).sum(axes)
    if wide == pairs and (count_include_pad or not any(a or b for a, b in wide)):
        return (total / math.prod(kernel_shape)).cast(x.dtype)
    ones = filled((1, 1, *x.shape[2:]), 1.0, total.dtype)
    extra = wide
    if count_include_pad:  # the padding that is given counts, what ceil_mode adds does not
        ones = filled((1, 1, *(s + a + b for s, (a, b) in zip(x.shape[2:], pairs))), 1.0, total.dtype)
        extra = [(w[0] - p[0], w[1] - p[1]) for w, p in zip(wide, pairs)]
    return (total / windows(ones, kernel_shape, strides, dilations, extra).sum(axes)).cast(x.dtype)


@op("LpPool")
def lp_pool(x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: list[int] | None = None,
            kernel_shape: list[int], p: int = 2, pads: list[int] | None = None,
            strides: list[int] | None = None) -> Tensor:
    """p-norm of each window."""
    strides, dilations, _, wide = _geometry(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    powers = x.abs().pow(p)
    return windows(powers, kernel_shape, strides, dilations, wide).sum(tuple(range(-len(kernel_shape), 0))).pow(1 / p)


@op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    """Mean over space."""
    return x.mean(tuple(range(2, x.ndim)), keepdim=True)


@op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    """Largest over space."""
    return x.max(tuple(range(2, x.ndim)), keepdim=True)


@op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    """p-norm over space."""
    return x.abs().pow(p).sum(tuple(range(2, x.ndim)), keepdim=True).pow(1 / p)


@op("MaxUnpool", host="output_shape")
def max_unpool(x: Tensor, indices: Tensor, output_shape: Any = None, *, kernel_shape: list[int],
               pads: list[int] | None = None, strides: list[int] | None = None) -> Tensor:
    """Values put back where MaxPool found them, zeros elsewhere."""
    n = len(kernel_shape)
    steps = spatial(strides, n)
    pairs = window_pads("NOTSET", pads, x.shape[2:], kernel_shape, steps, [1] * n)
    least = tuple((i - 1) * s - a - b + k for i, s, (a, b), k in zip(x.shape[2:], steps, pairs, kernel_shape))
    lead = x.shape[:2]
    out = least if output_shape is None else tuple(int(v) for v in output_shape)[-n:]
    # the indices count through the tensor of least size
    place = indices.cast(dtypes.int32).flatten()
    inner = math.prod(least)
    coordinates, rest = [place // inner], place % inner
    for i in range(n):
        step = math.prod(least[i + 1:])
        coordinates.append(rest // step)
        rest = rest % step
    linear = coordinates[0]
    for c, extent in zip(coordinates[1:], out):
        linear = linear * extent + c
    flat = filled((math.prod(lead) * math.prod(out),), 0, x.dtype)
    return flat.scatter(0, linear, x.flatten()).reshape((*lead, *out))
