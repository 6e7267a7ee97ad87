"""Layers: objects that hold parameters and map tensors to tensors.

Parameters are plain attributes, found by ``nn.state``. Initial values follow torch: uniform in +-1/sqrt(fan in). Layers that
behave differently in training read the context variable TRAINING.
"""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.env import TRAINING
from tinyhost.helpers import prod
from tinyhost.nn import optim, state
from tinyhost.tensor import Tensor

__all__ = ["BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Embedding", "LayerNorm", "LayerNorm2d", "Linear",
           "optim", "state"]


def _pair(x: int | tuple[int, ...], n: int = 2) -> tuple[int, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,) * n


def _uniform(shape: tuple[int, ...], fan_in: int) -> Tensor:
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    return Tensor.uniform(*shape, low=-bound, high=bound).is_param_()


class Linear:
    """``x @ weight.T + bias``: (..., in_features) to (..., out_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.weight = _uniform((out_features, in_features), in_features)
        self.bias = _uniform((out_features,), in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return x.linear(self.weight.transpose(), self.bias)


class Conv2d:
    """Convolution over the trailing axes: (N, in_channels, *spatial) to (N, out_channels, *spatial).

    ``padding`` is a number, one for each axis, or "same" (stride 1 only) or "valid".
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...], stride: Any = 1,
                 padding: int | tuple[int, ...] | str = 0, dilation: Any = 1, groups: int = 1, bias: bool = True) -> None:
        self.kernel_size = _pair(kernel_size)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}")
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = self._padding(padding)
        fan_in = in_channels // groups * prod(self.kernel_size)
        self.weight = _uniform((out_channels, in_channels // groups, *self.kernel_size), fan_in)
        self.bias = _uniform((out_channels,), fan_in) if bias else None

    def _padding(self, padding: int | tuple[int, ...] | str) -> Any:
        if not isinstance(padding, str):
            return padding
        if padding.lower() == "valid":
            return 0
        if padding.lower() != "same":
            raise ValueError(f"Invalid padding string {padding!r}, only 'same' and 'valid' are supported")
        if any(s != 1 for s in _pair(self.stride, len(self.kernel_size))):
            raise ValueError("padding='same' is not supported for strided convolutions")
        dilation = _pair(self.dilation, len(self.kernel_size))
        total = [d * (k - 1) for d, k in zip(dilation, self.kernel_size)]
        return tuple(p for t in reversed(total) for p in (t // 2, t - t // 2))

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


def Conv1d(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int | str = 0,
           dilation: int = 1, groups: int = 1, bias: bool = True) -> Conv2d:
    """Convolution over one trailing axis."""
    return Conv2d(in_channels, out_channels, (kernel_size,), stride, padding, dilation, groups, bias)


class BatchNorm:
    """Normalise each channel (axis 1) over batch and space; running statistics outside of training."""

    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
                 momentum: float = 0.1) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight = Tensor.ones(sz).is_param_() if affine else None
        self.bias = Tensor.zeros(sz).is_param_() if affine else None
        self.num_batches_tracked = Tensor.zeros(dtype=dtypes.long) if track_running_stats else None
        if track_running_stats:
            self.running_mean, self.running_var = Tensor.zeros(sz), Tensor.ones(sz)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, variance) of each channel: of the batch in training, running ones otherwise."""
        shape = [1, -1, *([1] * (x.ndim - 2))]
        if self.track_running_stats and not TRAINING.value:
            return self.running_mean, self.running_var
        axes = tuple(i for i in range(x.ndim) if i != 1)
        mean = x.mean(axis=axes)
        centered = x - mean.detach().reshape(shape)
        return mean, (centered * centered).mean(axis=axes)

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        mean, var = self.calc_stats(x)
        if self.track_running_stats and TRAINING.value:
            n = x.numel() / x.shape[1]
            m = self.momentum
            self.running_mean.assign((1 - m) * self.running_mean + m * mean.detach().cast(self.running_mean.dtype))
            self.running_var.assign((1 - m) * self.running_var + m * (n / (n - 1)) * var.detach().cast(self.running_var.dtype))
            assert self.num_batches_tracked is not None
            self.num_batches_tracked += 1
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())


BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """Normalise over the trailing ``normalized_shape`` axes."""

    def __init__(self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        self.normalized_shape = _pair(normalized_shape, 1)
        self.axis, self.eps = tuple(-1 - i for i in range(len(self.normalized_shape))), eps
        self.weight = Tensor.ones(*self.normalized_shape).is_param_() if elementwise_affine else None
        self.bias = Tensor.zeros(*self.normalized_shape).is_param_() if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        if tuple(x.shape[-len(self.normalized_shape):]) != self.normalized_shape:
            raise ValueError(f"last dimensions of {x.shape} must match {self.normalized_shape}")
        x = x.layernorm(axis=self.axis, eps=self.eps)
        return x if self.weight is None or self.bias is None else x * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """Normalise over the channel axis of (N, C, H, W)."""

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Embedding:
    """Rows of ``weight`` by index: integers of any shape to (*shape, embed_size)."""

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size).is_param_()

    def __call__(self, idx: Tensor) -> Tensor:
        """The rows at ``idx``."""
        if not dtypes.is_int(idx.dtype):
            raise TypeError(f"Expected integer dtype for index in embedding, got {idx.dtype}")
        return self.weight[idx]
