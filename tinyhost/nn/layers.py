"""Layers with weights that mix elements: linear maps, convolutions, embeddings, the LSTM cell."""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.tensor import Tensor


def _tuple(x: int | tuple[int, ...], n: int = 2) -> tuple[int, ...]:
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


class _Convolution:
    """What both directions of convolution share: geometry and parameters."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...], stride: Any,
                 padding: Any, dilation: Any, groups: int) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}")
        self.kernel_size = _tuple(kernel_size)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = self._padding(padding) if isinstance(padding, str) else padding

    def _padding(self, padding: str) -> Any:
        if padding.lower() == "valid":
            return 0
        if padding.lower() != "same":
            raise ValueError(f"Invalid padding string {padding!r}, only 'same' and 'valid' are supported")
        n = len(self.kernel_size)
        if any(s != 1 for s in _tuple(self.stride, n)):
            raise ValueError(f"padding='same' is not supported for strided convolutions, got stride={self.stride}")
        total = [d * (k - 1) for d, k in zip(_tuple(self.dilation, n), self.kernel_size)]
        return tuple(p for t in reversed(total) for p in (t // 2, t - t // 2))


class Conv2d(_Convolution):
    """Convolution over the trailing axes: (N, in_channels, *spatial) to (N, out_channels, *spatial).

    The number of spatial axes is that of ``kernel_size`` (2 for a number). ``padding`` is a number, one for each axis,
    or "same" (stride 1 only) or "valid".
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: Any = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        fan_in = in_channels // groups * prod(self.kernel_size)
        self.weight = _uniform((out_channels, in_channels // groups, *self.kernel_size), fan_in)
        self.bias = _uniform((out_channels,), fan_in) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class ConvTranspose2d(_Convolution):
    """Transposed convolution: the gradient of ``Conv2d`` with respect to its input, as a layer."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...], stride: Any = 1,
                 padding: int | tuple[int, ...] = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self.output_padding = output_padding
        fan_in = out_channels // groups * prod(self.kernel_size)  # torch's convention
        self.weight = _uniform((in_channels, out_channels // groups, *self.kernel_size), fan_in)
        self.bias = _uniform((out_channels,), fan_in) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's value at ``x``."""
        return x.conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding,
                                  self.output_padding)


def Conv1d(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int | str = 0,
           dilation: int = 1, groups: int = 1, bias: bool = True) -> Conv2d:
    """Convolution over one trailing axis."""
    return Conv2d(in_channels, out_channels, (kernel_size,), stride, padding, dilation, groups, bias)


def ConvTranspose1d(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
                    output_padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = True) -> ConvTranspose2d:
    """Transposed convolution over one trailing axis."""
    kernel = (kernel_size,)
    return ConvTranspose2d(in_channels, out_channels, kernel, stride, padding, output_padding, dilation, groups, bias)


class Embedding:
    """Rows of ``weight`` by index: integers of any shape to (*shape, embed_size)."""

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size).is_param_()

    def __call__(self, idx: Tensor) -> Tensor:
        """The rows at ``idx``; an index out of range gives zeros.

        Raises:
            DTypeError: ``idx`` holds no integers.
        """
        if not dtypes.is_int(idx.dtype):
            raise DTypeError(f"Expected integer dtype for index in embedding, got {idx.dtype}")
        return self.weight[idx]


class LSTMCell:
    """One step of an LSTM: ``(x, (h, c))`` to the next ``(h, c)``; gates in torch's order (input, forget, cell,
    output)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self.weight_ih = _uniform((4 * hidden_size, input_size), hidden_size)
        self.weight_hh = _uniform((4 * hidden_size, hidden_size), hidden_size)
        self.bias_ih = _uniform((4 * hidden_size,), hidden_size) if bias else None
        self.bias_hh = _uniform((4 * hidden_size,), hidden_size) if bias else None

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The state after ``x`` of shape (N, input_size); without ``hc`` from a state of zeros."""
        if hc is None:
            zeros = Tensor.zeros(x.shape[0], self.weight_hh.shape[1], dtype=x.dtype, device=x.device, buffer=False)
            hc = zeros, zeros
        h, c = hc
        gates = x.linear(self.weight_ih.transpose(), self.bias_ih) + h.linear(self.weight_hh.transpose(), self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=1)
        new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * new_c.tanh(), new_c
