"""Operators of detectors: non-maximum suppression, RoiAlign, deformable convolution."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import check_host_size, filled
from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.ops.windows import explicit_pads, spatial
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor


# *** non-maximum suppression ***
def _corners(boxes: Array, centered: bool) -> Array:
    """Boxes as (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2."""
    if centered:
        cx, cy, w, h = boxes.T
        return np.stack([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], 1)
    a, b = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], 1)


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union of a box with others."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    inner = np.prod(np.clip(high - low, 0, None), 1)
    area = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], 1) - inner
    return np.where(area > 0, inner / np.where(area > 0, area, 1), 0)


def _kept(boxes: Array, scores: Array, most: int, iou: float, least: float | None) -> list[int]:
    order = [int(i) for i in np.argsort(-scores, kind="stable") if least is None or scores[i] > least]
    kept: list[int] = []
    for i in order:
        if len(kept) >= most:
            break
        if not kept or not np.any(_overlap(boxes[i], boxes[kept]) > iou):
            kept.append(i)
    return kept


@op("NonMaxSuppression", raw=True,
    host="boxes scores max_output_boxes_per_class iou_threshold score_threshold")
def non_max_suppression(boxes: Array, scores: Array, max_output_boxes_per_class: Array | None = None,
                        iou_threshold: Array | None = None, score_threshold: Array | None = None, *,
                        center_point_box: int = 0) -> Array:
    """(batch, class, box) of the boxes that no better one of their class overlaps; computed on the host."""
    most = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.reshape(()))
    iou = 0.0 if iou_threshold is None else float(iou_threshold.reshape(()))
    least = None if score_threshold is None else float(score_threshold.reshape(()))
    rows = [(b, c, i) for b in range(scores.shape[0]) for c in range(scores.shape[1])
            for i in _kept(_corners(boxes[b], bool(center_point_box)), scores[b, c], most, iou, least)]
    return np.array(rows, np.int64).reshape(-1, 3)


# *** regions ***
def _samples(start: float, size: float, bins: int, ratio: int, extent: int) -> tuple[Array, Array, int]:
    """(index (bins*s, 2), weight (bins*s, 2), s) of the samples of one axis of a region."""
    step = size / bins
    s = ratio if ratio > 0 else max(1, int(np.ceil(step)))
    check_host_size(bins * s * 2 + bins * extent, "RoiAlign")
    at = start + (np.arange(bins)[:, None] + (np.arange(s) + 0.5) / s).reshape(-1) * step
    inside = (at >= -1) & (at <= extent)
    at = np.clip(at, 0, extent - 1)
    low = np.minimum(np.floor(at), max(extent - 1, 0)).astype(np.int64)
    part = np.where(low >= extent - 1, 0, at - low)
    index = np.stack([low, np.minimum(low + 1, extent - 1)], 1)
    return index, np.stack([1 - part, part], 1) * inside[:, None], s


def _matrix(index: Array, weight: Array, bins: int, s: int, extent: int) -> Array:
    """Mean over the samples of each bin, as a (bins, extent) matrix."""
    out = np.zeros((bins, extent))
    for k in range(2):
        np.add.at(out, (np.arange(bins * s) // s, index[:, k]), weight[:, k] / s)
    return out


def _largest(x: Array, ys: Any, xs: Any, bins: tuple[int, int]) -> Array:
    """Largest weighted corner of the samples of each bin."""
    best = None
    for i in range(2):
        for j in range(2):
            values = x[:, ys[0][:, i]][:, :, xs[0][:, j]] * (ys[1][:, i][:, None] * xs[1][:, j])
            best = values if best is None else np.maximum(best, values)
    assert best is not None
    shaped = best.reshape(x.shape[0], bins[0], ys[2], bins[1], xs[2])
    return shaped.max((2, 4))


@op("RoiAlign", host="rois batch_indices")
def roi_align(x: Tensor, rois: Array, batch_indices: Array, *, coordinate_transformation_mode: str | None = None,
              mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0, ctx: Any) -> Tensor:
    """Regions of ``x`` at one size, by bilinear samples; the regions are read."""
    height, width = x.shape[2:]
    mode_of_opset = "half_pixel" if ctx.opset >= 16 else "output_half_pixel"
    half = (coordinate_transformation_mode or mode_of_opset) == "half_pixel"
    axes = []
    for roi in rois.astype(np.float64):
        x1, y1, x2, y2 = roi * spatial_scale - (0.5 if half else 0)
        h, w = (y2 - y1, x2 - x1) if half else (max(y2 - y1, 1.0), max(x2 - x1, 1.0))
        axes.append((_samples(y1, h, output_height, sampling_ratio, height),
                     _samples(x1, w, output_width, sampling_ratio, width)))
    if mode == "max":
        data = x.numpy()
        parts = [_largest(data[b], ys, xs, (output_height, output_width)) for b, (ys, xs) in zip(batch_indices, axes)]
        return Tensor(np.stack(parts).astype(data.dtype), device=x.device)
    kind = np.float64 if x.dtype is dtypes.float64 else np.float32
    rows = np.stack([_matrix(*ys[:2], output_height, ys[2], height) for ys, _ in axes]).astype(kind)
    columns = np.stack([_matrix(*xs[:2], output_width, xs[2], width) for _, xs in axes]).astype(kind)
    chosen = x[batch_indices.astype(int).tolist()]
    down = Tensor(rows, device=x.device).unsqueeze(1).matmul(chosen.cast(dtypes.float64 if kind is np.float64 else
                                                                        dtypes.float32))
    return down.matmul(Tensor(columns, device=x.device).unsqueeze(1).transpose(-2, -1)).cast(x.dtype)


@op("MaxRoiPool", host="rois")
def max_roi_pool(x: Tensor, rois: Array, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Tensor:
    """Largest element of each bin of each region (batch, x1, y1, x2, y2), rounded to whole elements."""
    height, width = x.shape[2:]
    rows = []
    for roi in rois.astype(np.float64):
        x1, y1, x2, y2 = (int(v) for v in np.floor(roi[1:] * spatial_scale + 0.5))
        ys, xs = _bins(y1, y2, pooled_shape[0], height), _bins(x1, x2, pooled_shape[1], width)
        plane = x[int(roi[0])]
        cells = [plane[:, a:b, c:d].max((1, 2)) if b > a and d > c else plane[:, 0, 0] * 0
                 for a, b in ys for c, d in xs]
        rows.append(cells[0].stack(*cells[1:], dim=1).reshape((x.shape[1], *pooled_shape)))
    return rows[0].stack(*rows[1:]) if rows else filled((0, x.shape[1], *pooled_shape), 0, x.dtype)


def _bins(first: int, last: int, count: int, extent: int) -> list[tuple[int, int]]:
    """Bounds of the bins of one axis of a region, within the axis."""
    check_host_size(count, "MaxRoiPool")
    step = max(last - first + 1, 1) / count
    edges = [(int(np.floor(i * step)) + first, int(np.ceil((i + 1) * step)) + first) for i in range(count)]
    return [(min(max(a, 0), extent), min(max(b, 0), extent)) for a, b in edges]


# *** deformable convolution ***
def _bilinear(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """(N, C, H, W) at places (N, P) given by row and column; zero outside."""
    n, c, h, w = x.shape
    count = y.shape[1]
    flat, out = x.reshape((n, c, h * w)), None
    for dy in range(2):
        for dz in range(2):
            row, column = y.floor() + dy, z.floor() + dz
            weight = (1 - (y - row).abs()) * (1 - (z - column).abs())
            inside = (row >= 0) & (row <= h - 1) & (column >= 0) & (column <= w - 1)
            place = row.clip(0, h - 1) * w + column.clip(0, w - 1)
            index = place.cast(dtypes.int32).reshape((n, 1, count)).expand((n, c, count))
            part = flat.gather(2, index) * inside.where(weight, 0).reshape((n, 1, count))
            out = part if out is None else out + part
    assert out is not None
    return out


@op("DeformConv")
def deform_conv(x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
                dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
                offset_group: int = 1, pads: list[int] | None = None, strides: list[int] | None = None) -> Tensor:
    """Convolution whose taps are moved by ``offset`` and scaled by ``mask``; two spatial axes."""
    if x.ndim != 4:
        raise OnnxUnsupported(f"DeformConv of {x.ndim - 2} spatial axes is not supported: 2 are")
    n, c = x.shape[:2]
    kh, kw = w.shape[2:]
    oh, ow = offset.shape[2:]
    strides, dilations = spatial(strides, 2), spatial(dilations, 2)
    (top, _), (left, _) = explicit_pads(pads, 2)
    moves = offset.reshape((n, offset_group, kh, kw, 2, oh, ow))
    row = Tensor.arange(oh).reshape((oh, 1)) * strides[0] - top
    row = row + Tensor.arange(kh).reshape((kh, 1, 1, 1)) * dilations[0]
    column = Tensor.arange(ow) * strides[1] - left + Tensor.arange(kw).reshape((kw, 1, 1)) * dilations[1]
    ys, zs = moves[:, :, :, :, 0] + row, moves[:, :, :, :, 1] + column
    count, per = kh * kw * oh * ow, c // offset_group
    columns = _bilinear(x.reshape((n * offset_group, per, *x.shape[2:])), ys.reshape((n * offset_group, count)),
                        zs.reshape((n * offset_group, count)))
    if mask is not None:
        columns = columns * mask.reshape((n * offset_group, 1, count))
    columns = columns.reshape((n, group, 1, c // group * kh * kw, oh * ow))
    weight = w.reshape((1, group, w.shape[0] // group, c // group * kh * kw, 1))
    out = (columns * weight).sum(3).reshape((n, w.shape[0], oh, ow))
    return out if b is None else out + b.reshape((1, -1, 1, 1))
