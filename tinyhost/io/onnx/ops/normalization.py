"""Normalisation over batches, channels, groups and trailing axes. Statistics are taken in float32 at least."""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.io.onnx.call import filled
from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import element
from tinyhost.tensor import Tensor


def _channels(v: Tensor, ndim: int) -> Tensor:
    """A vector along axis 1."""
    return v.reshape((1, -1, *(1,) * (ndim - 2)))


def _normalized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x with mean 0 and variance 1, mean, 1/deviation) over ``axes``."""
    mean = x.mean(axes, keepdim=True)
    centered = x - mean
    inverse = ((centered * centered).mean(axes, keepdim=True) + epsilon).rsqrt()
    return centered * inverse, mean, inverse


def _stash(x: Tensor, code: int) -> DType:
    """The type of the statistics."""
    kind = element(code).dtype
    return kind if kind is not None and x.dtype is not dtypes.float64 else x.dtype


def _batch_norm(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
    wide = dtypes.float64 if dtypes.float64 in (x.dtype, mean.dtype) else dtypes.float32
    factor = scale.cast(wide) * (var.cast(wide) + epsilon).rsqrt()
    shift = bias.cast(wide) - mean.cast(wide) * factor
    return (x.cast(wide) * _channels(factor, x.ndim) + _channels(shift, x.ndim)).cast(x.dtype)


@op("BatchNormalization")
def batch_normalization(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
                        momentum: float = 0.9, spatial: int = 1, is_test: int = 0, consumed_inputs: Any = None,
                        training_mode: int = 0) -> Any:
    """Normalised by running statistics; in training mode by those of the batch, with the new running ones.

    Raises:
        OnnxUnsupported: statistics for each place (``spatial=0``, before opset 9).
    """
    if not spatial:
        raise OnnxUnsupported("BatchNormalization with spatial=0 is not supported")
    if not training_mode:
        return _batch_norm(x, scale, bias, mean, var, epsilon)
    axes = (0, *range(2, x.ndim))
    now, spread = x.mean(axes), x.var(axes, correction=0)
    y = _batch_norm(x, scale, bias, now, spread, epsilon)
    return (y, mean * momentum + now.cast(mean.dtype) * (1 - momentum),
            var * momentum + spread.cast(var.dtype) * (1 - momentum))


@op("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5,
                           consumed_inputs: Any = None) -> Tensor:
    """Each channel of each example normalised over space."""
    y = _normalized(x, tuple(range(2, x.ndim)), epsilon)[0]
    return y * _channels(scale, x.ndim) + _channels(bias, x.ndim)


def _groups(x: Tensor, groups: int, epsilon: float) -> Tensor:
    rows = x.reshape((x.shape[0], groups, -1))
    return _normalized(rows, (2,), epsilon)[0].reshape(x.shape)


@op("GroupNormalization", since=18)
def group_normalization_18(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5,
                           num_groups: int) -> Tensor:
    """Groups of channels normalised; scale and bias for each group (before opset 21)."""
    per = x.shape[1] // num_groups
    y = _groups(x, num_groups, epsilon)
    return y * _channels(scale.repeat_interleave(per), x.ndim) + _channels(bias.repeat_interleave(per), x.ndim)


@op("GroupNormalization", since=21)
def group_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int,
                        stash_type: int = 1) -> Tensor:
    """Groups of channels normalised; scale and bias for each channel."""
    wide = _stash(x, stash_type)
    y = _groups(x.cast(wide), num_groups, epsilon).cast(x.dtype)
    return y * _channels(scale, x.ndim) + _channels(bias, x.ndim)


@op("LayerNormalization")
def layer_normalization(x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1,
                        epsilon: float = 1e-5, stash_type: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised over the axes from ``axis`` on; also gives mean and inverse deviation."""
    axis = axis + x.ndim if axis < 0 else axis
    wide = _stash(x, stash_type)
    y, mean, inverse = _normalized(x.cast(wide), tuple(range(axis, x.ndim)), epsilon)
    y = y.cast(x.dtype) * scale
    return y if bias is None else y + bias, mean, inverse


@op("RMSNormalization")
def rms_normalization(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
                      stash_type: int = 1) -> Tensor:
    """Divided by the root mean square over the axes from ``axis`` on."""
    axis = axis + x.ndim if axis < 0 else axis
    wide = x.cast(_stash(x, stash_type))
    y = wide * (wide.square().mean(tuple(range(axis, x.ndim)), keepdim=True) + epsilon).rsqrt()
    return (y.cast(scale.dtype) * scale).cast(scale.dtype)


@op("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    """Mean 0 and variance 1 over ``axes``."""
    chosen = tuple(a % x.ndim for a in (axes if axes is not None else [0, 2, 3]))
    mean = x.mean(chosen, keepdim=True)
    deviation = (x.square().mean(chosen, keepdim=True) - mean.square()).sqrt()
    return (x - mean) / (deviation + 1e-9)


@op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divided by the p-norm along ``axis``; 0 where that is 0."""
    norm = x.abs().sum(axis, keepdim=True) if p == 1 else x.square().sum(axis, keepdim=True).sqrt()
    zero = norm.eq(0)
    return zero.where(0, x / zero.where(1, norm))


@op("LRN")
def local_response(x: Tensor, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
    """Divided by a power of the sum of squares over neighbouring channels."""
    low = (size - 1) // 2
    pads = tuple((low, size - 1 - low) if i == 1 else (0, 0) for i in range(x.ndim))
    squares = x.square().pad(pads).unfold(1, size, 1).sum(-1)
    return x / (squares * (alpha / size) + bias).pow(beta)


@op("Dropout")
def dropout_attributes(x: Tensor, *, ratio: float = 0.5, is_test: int = 0, consumed_inputs: Any = None,
                       ctx: Any) -> Any:
    """The input itself (before opset 12 dropout acts in training only)."""
    mask = filled(x.shape, True, dtypes.bool)
    return (x, mask) if ctx.wants(1) else x


@op("Dropout", since=12, host="ratio training_mode")
def dropout(x: Tensor, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, ctx: Any) -> Any:
    """The input itself; in training mode elements are dropped and the rest scaled."""
    p = 0.5 if ratio is None else float(ratio.reshape(()))
    mask = filled(x.shape, True, dtypes.bool)
    if training_mode is not None and bool(training_mode.reshape(())) and p > 0:
        if not p < 1 or math.isnan(p):
            raise ValueError(f"ratio of Dropout lies in [0, 1), got {p}")
        mask = Tensor.rand(*x.shape, device=x.device) >= p
        x = (mask.where(x, 0) * (1 / (1 - p))).cast(x.dtype)
    return (x, mask) if ctx.wants(1) else x
