"""Resampling: Resize, Upsample, GridSample, and pictures decoded.

Resize works axis by axis. Where each result lies in the input is known on the host, so an axis is a choice of elements
and, for linear and cubic modes, their weights.
"""
from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import check_host_size
from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.ops.shape import positive_axes
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor


# *** where results lie ***
def _places(mode: str, old: int, new: int, scale: float, roi: tuple[float, float]) -> Array:
    """Coordinate in the input of each element of the resized axis."""
    check_host_size(new, "a resized axis")
    x, width = np.arange(new, dtype=np.float64), scale * old
    if mode == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners":
        return x * (old - 1) / (width - 1) if new > 1 else x * 0
    if mode == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if width > 1 else x * 0
    if mode == "half_pixel_symmetric":
        center = old / 2
        return center * (1 - new / width) + (x + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        return start * (old - 1) + x * (end - start) * (old - 1) / (width - 1) if new > 1 else \
            np.full(1, 0.5 * (start + end) * (old - 1))
    raise ValueError(f"unknown coordinate_transformation_mode {mode!r}")


def _nearest(mode: str, x: Array) -> Array:
    if mode == "round_prefer_floor":
        return np.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(x + 0.5)
    if mode not in ("floor", "ceil"):
        raise ValueError(f"unknown nearest_mode {mode!r}")
    return np.floor(x) if mode == "floor" else np.ceil(x)


def _linear_kernel(d: Array) -> Array:
    return np.clip(1 - np.abs(d), 0, 1)


def _cubic_kernel(a: float) -> Callable[[Array], Array]:
    def kernel(d: Array) -> Array:
        d = np.abs(d)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))
    return kernel


def _taps(x: Array, old: int, kernel: Callable[[Array], Array], radius: int, scale: float, antialias: bool,
          exclude_outside: bool) -> tuple[Array, Array]:
    """(index, weight) of the elements that make each result, (new, taps)."""
    stretch = min(scale, 1.0) if antialias else 1.0
    reach = math.ceil(radius / stretch)
    check_host_size(2 * reach * x.size, "a resized axis with antialias")
    taps = np.floor(x)[:, None] + np.arange(1 - reach, reach + 1)
    weights = kernel((taps - x[:, None]) * stretch)
    if exclude_outside:
        weights = np.where((taps < 0) | (taps >= old), 0, weights)
    if exclude_outside or antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(taps, 0, old - 1).astype(np.int32), weights


# *** axes of tensors ***
def _chosen(x: Tensor, axis: int, index: Array) -> Tensor:
    """Elements of an axis at host indices."""
    n, old = index.size, x.shape[axis]
    if n % old == 0 and np.array_equal(index, np.arange(n) // (n // old)):
        return x.repeat_interleave(n // old, dim=axis) if n > old else x
    return x[(*(slice(None),) * axis, Tensor(index.astype(np.int32), device=x.device))]


def _weighted(x: Tensor, axis: int, index: Array, weights: Array) -> Tensor:
    """Sum of weighted elements of an axis."""
    kind = np.float64 if x.dtype is dtypes.float64 else np.float32
    out = None
    for k in range(index.shape[1]):
        if not np.any(weights[:, k]):
            continue
        factor = Tensor(np.ascontiguousarray(weights[:, k]).astype(kind), device=x.device)
        part = _chosen(x, axis, index[:, k]) * factor.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
        out = part if out is None else out + part
    return x if out is None else out


def _sizes(x: Tensor, axes: list[int], scales: Array | None, sizes: Array | None,
           policy: str) -> tuple[list[int], list[float]]:
    """Extent and scale of each resized axis."""
    old = [x.shape[a] for a in axes]
    if (scales is None or scales.size == 0) == (sizes is None or sizes.size == 0):
        raise ValueError("Resize needs either scales or sizes")
    if scales is not None and scales.size:
        ratio = [float(s) for s in scales.reshape(-1)]
        if len(ratio) != len(axes) or min(ratio) <= 0:
            raise ValueError(f"scales {ratio} are not a positive number for each of the axes {axes}")
        return [math.floor(o * s) for o, s in zip(old, ratio)], ratio
    assert sizes is not None
    new = [int(s) for s in sizes.reshape(-1)]
    if len(new) != len(axes):
        raise ValueError(f"sizes {new} are not one for each of the axes {axes}")
    if policy == "stretch":
        return new, [n / o for n, o in zip(new, old)]
    pick: Any = {"not_larger": min, "not_smaller": max}.get(policy)
    if pick is None:
        raise ValueError(f"unknown keep_aspect_ratio_policy {policy!r}")
    scale = pick(n / o for n, o in zip(new, old))
    return [math.floor(o * scale + 0.5) for o in old], [scale] * len(axes)


def _resized(x: Tensor, axes: list[int], new: list[int], scales: list[float], rois: list[tuple[float, float]],
             mode: str, coordinates: str, nearest_mode: str, a: float, antialias: bool, exclude: bool,
             extrapolation: float) -> Tensor:
    kind, outside = x.dtype, None
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"unknown mode {mode!r}")
    y = x if mode == "nearest" or x.dtype in (dtypes.float32, dtypes.float64) else x.cast(dtypes.float32)
    kernel, radius = (_linear_kernel, 1) if mode == "linear" else (_cubic_kernel(a), 2)
    for axis, n, scale, roi in zip(axes, new, scales, rois):
        old = y.shape[axis]
        if n == old and scale == 1.0 and coordinates != "tf_crop_and_resize":
            continue
        at = _places(coordinates, old, n, scale, roi)
        if mode == "nearest":
            y = _chosen(y, axis, np.clip(_nearest(nearest_mode, at), 0, old - 1))
        else:
            y = _weighted(y, axis, *_taps(at, old, kernel, radius, scale, antialias, exclude))
        if coordinates == "tf_crop_and_resize":
            beyond = Tensor((at < 0) | (at > old - 1), device=x.device)
            beyond = beyond.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
            outside = beyond if outside is None else outside | beyond
    y = y if outside is None else outside.where(extrapolation, y)
    if kind.is_float:
        return y.cast(kind)
    return y if y.dtype is kind else y.round().clip(float(kind.min), float(kind.max)).cast(kind)


@op("Resize", since=11, host="roi scales sizes")
def resize(x: Tensor, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None, *,
           antialias: int = 0, axes: list[int] | None = None, coordinate_transformation_mode: str = "half_pixel",
           cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
           keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Tensor:
    """The axes resampled to new extents."""
    chosen = positive_axes(list(range(x.ndim)) if axes is None else axes, x.ndim)
    new, ratio = _sizes(x, chosen, scales, sizes, keep_aspect_ratio_policy)
    n = len(chosen)
    corners = [float(v) for v in roi.reshape(-1)] if roi is not None and roi.size == 2 * n else [0.0] * n + [1.0] * n
    return _resized(x, chosen, new, ratio, list(zip(corners[:n], corners[n:])), mode, coordinate_transformation_mode,
                    nearest_mode, cubic_coeff_a, bool(antialias), bool(exclude_outside), extrapolation_value)


def _upsampled(x: Tensor, scales: Sequence[float], mode: str) -> Tensor:
    axes = list(range(x.ndim))
    new, ratio = _sizes(x, axes, np.asarray(scales, np.float32), None, "stretch")
    return _resized(x, axes, new, ratio, [(0.0, 1.0)] * x.ndim, {"bilinear": "linear"}.get(mode, mode), "asymmetric",
                    "floor", -0.75, False, False, 0.0)


@op("Resize", "Upsample", since=9, host="scales")
def upsample(x: Tensor, scales: Array, *, mode: str = "nearest") -> Tensor:
    """The axes scaled (before opset 11)."""
    return _upsampled(x, scales.reshape(-1).tolist(), mode)


@op("Upsample")
def upsample_first(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
    """Height and width scaled (before opset 7)."""
    return _upsampled(x, [1.0, 1.0, height_scale, width_scale], mode)


@op("Upsample", since=7)
def upsample_attributes(x: Tensor, *, mode: str = "nearest", scales: list[float]) -> Tensor:
    """The axes scaled by an attribute (before opset 9)."""
    return _upsampled(x, scales, mode)


# *** grids ***
def _unnormalized(g: Tensor, extent: int, align: bool) -> Tensor:
    return (g + 1) * ((extent - 1) / 2) if align else ((g + 1) * extent - 1) * 0.5


def _reflected(x: Tensor, extent: int, align: bool) -> Tensor:
    """Coordinates mirrored at the borders until they lie within."""
    low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
    span = high - low
    if span <= 0:
        return x * 0
    away = (x - low).abs()
    turns = (away / span).floor()
    rest = away - turns * span
    odd = (turns * 0.5).floor().ne(turns * 0.5)
    return odd.where(span - rest, rest) + low


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Weights of the four taps around a fraction ``t``, for a = -0.75."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((d * (a + 2) - (a + 3)) * d) * d + 1

    def far(d: Tensor) -> Tensor:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _grid_taps(g: Tensor, extent: int, mode: str, padding: str, align: bool) -> list[tuple[Tensor, Tensor]]:
    """(index, weight) of the taps along one axis; weights outside are 0 for padding by zeros."""
    x = _unnormalized(g, extent, align)
    if mode != "cubic" and padding == "border":
        x = x.clip(0, extent - 1)
    elif mode != "cubic" and padding == "reflection":
        x = _reflected(x, extent, align).clip(0, extent - 1)
    raw: list[tuple[Tensor, Tensor | None]]
    if mode == "nearest":
        raw = [(x.round(), None)]
    else:
        low = x.floor()
        t = x - low
        weights = [1 - t, t] if mode == "linear" else _cubic_weights(t)
        first = 0 if mode == "linear" else -1
        raw = [(low + (first + k), w) for k, w in enumerate(weights)]
    out = []
    for at, w in raw:
        weight = at * 0 + 1 if w is None else w
        if padding == "zeros":
            weight = ((at >= 0) & (at <= extent - 1)).where(weight, 0)
        elif padding == "reflection" and mode == "cubic":
            at = _reflected(at, extent, align)
        out.append((at.clip(0, extent - 1).cast(dtypes.int32), weight))
    return out


@op("GridSample")
def grid_sample(x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Tensor:
    """``x`` at places of [-1, 1] that the grid gives, x first."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"unknown mode {mode!r} or padding_mode {padding_mode!r}")
    space, points = x.shape[2:], grid.shape[1:-1]
    taps = [_grid_taps(grid[..., len(space) - 1 - i], n, mode, padding_mode, bool(align_corners))
            for i, n in enumerate(space)]
    return _combined(x, taps, points)


def _combined(x: Tensor, taps: list[list[tuple[Tensor, Tensor]]], points: tuple[int, ...]) -> Tensor:
    """Sum over all combinations of taps; indices and weights are (N, *points)."""
    n, c = x.shape[:2]
    space, count = x.shape[2:], math.prod(points)
    flat = x.reshape((n, c, math.prod(space)))
    out = None
    for combination in product(*taps):
        place, weight = None, None
        for (index, w), extent in zip(combination, space):
            place = index if place is None else place * extent + index
            weight = w if weight is None else weight * w
        assert place is not None and weight is not None
        values = flat.gather(2, place.reshape((n, 1, count)).expand((n, c, count)))
        part = values * weight.reshape((n, 1, count)).cast(x.dtype)
        out = part if out is None else out + part
    assert out is not None
    return out.reshape((n, c, *points))


# *** pictures ***
@op("ImageDecoder", raw=True, host="encoded")
def image_decoder(encoded: Array, *, pixel_format: str = "RGB") -> Array:
    """A picture file as uint8 (height, width, channels); needs Pillow.

    Raises:
        OnnxUnsupported: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise OnnxUnsupported("ImageDecoder needs Pillow: pip install pillow") from error
    picture = Image.open(io.BytesIO(encoded.tobytes()))
    if pixel_format == "Grayscale":
        return np.array(picture.convert("L"))[..., None]
    rgb = np.array(picture.convert("RGB"))
    return np.ascontiguousarray(rgb[..., ::-1]) if pixel_format == "BGR" else rgb
