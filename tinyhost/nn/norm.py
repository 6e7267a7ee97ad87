"""Layers that normalise: over the batch, over groups of channels, over trailing axes."""
from __future__ import annotations

from tinyhost.dtype import dtypes
from tinyhost.env import TRAINING
from tinyhost.errors import ShapeError
from tinyhost.helpers import prod
from tinyhost.tensor import Tensor


class BatchNorm:
    """Normalise each channel (axis 1) over batch and space; running statistics outside of training."""

    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
                 momentum: float = 0.1) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight = Tensor.ones(sz).is_param_() if affine else None
        self.bias = Tensor.zeros(sz).is_param_() if affine else None
        self.num_batches_tracked = Tensor.zeros(dtype=dtypes.long) if track_running_stats else None
        self.running_mean = Tensor.zeros(sz).is_param_(False) if track_running_stats else None
        self.running_var = Tensor.ones(sz).is_param_(False) if track_running_stats else None

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, variance) of each channel: running ones outside of training where they are tracked, else the
        batch's."""
        if self.running_mean is not None and self.running_var is not None and not TRAINING.value:
            return self.running_mean, self.running_var
        axes = tuple(i for i in range(x.ndim) if i != 1)
        mean = x.mean(axis=axes)
        centered = x - mean.detach().reshape((1, -1, *(1,) * (x.ndim - 2)))
        return mean, (centered * centered).mean(axis=axes)

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``; in training the running statistics take a step.

        Raises:
            ShapeError: one value a channel, in training: it has no variance.
        """
        mean, var = self.calc_stats(x)
        if TRAINING.value:
            self._track(x, mean.detach(), var.detach())
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())

    def _track(self, x: Tensor, mean: Tensor, var: Tensor) -> None:
        n = prod(x.shape) // x.shape[1]
        if n == 1:
            raise ShapeError(f"batch norm in training needs more than one value a channel, got shape {x.shape}: use a "
                             "larger batch, or Context(TRAINING=0)")
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        m, unbiased = self.momentum, n / (n - 1)
        self.running_mean.assign((1 - m) * self.running_mean + m * mean.cast(self.running_mean.dtype))
        self.running_var.assign((1 - m) * self.running_var + m * unbiased * var.cast(self.running_var.dtype))
        self.num_batches_tracked += 1


BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm:
    """Normalise groups of channels (axis 1) together with space, for each sample."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"num_groups={num_groups} must divide num_channels={num_channels}")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels).is_param_() if affine else None
        self.bias = Tensor.zeros(num_channels).is_param_() if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        x = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return x
        shape = (1, -1, *(1,) * (x.ndim - 2))
        return x * self.weight.reshape(shape) + self.bias.reshape(shape)


class InstanceNorm(GroupNorm):
    """Normalise each channel over space, for each sample."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class LayerNorm:
    """Normalise over the trailing ``normalized_shape`` axes."""

    def __init__(self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5,
                 elementwise_affine: bool = True) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.axis, self.eps = tuple(-1 - i for i in range(len(self.normalized_shape))), eps
        self.weight = Tensor.ones(*self.normalized_shape).is_param_() if elementwise_affine else None
        self.bias = Tensor.zeros(*self.normalized_shape).is_param_() if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``.

        Raises:
            ShapeError: the trailing axes are not ``normalized_shape``.
        """
        if tuple(x.shape[-len(self.normalized_shape):]) != self.normalized_shape:
            raise ShapeError(f"last dimensions of {x.shape} must match {self.normalized_shape}")
        x = x.layernorm(axis=self.axis, eps=self.eps)
        return x if self.weight is None or self.bias is None else x * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """Normalise over the channel axis of (N, C, H, W)."""

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """Divide by the root mean square of the last axis, computed in float32."""

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        self.eps = eps
        self.weight = Tensor.ones(dim).is_param_() if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        wide = x.float() if x.dtype.itemsize < 4 else x
        out = (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return out if self.weight is None else out * self.weight
