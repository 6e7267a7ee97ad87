"""Activation functions. Parameters and defaults are those of the operator pages."""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.registry import op
from tinyhost.tensor import Tensor


@op("Relu")
def relu(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    """``max(x, 0)``."""
    return x.relu()


@op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01, consumed_inputs: Any = None) -> Tensor:
    """``x`` where positive, else ``alpha * x``."""
    return x.leaky_relu(alpha)


@op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """``x`` above ``alpha``, else 0."""
    return (x > alpha).where(x, 0)


@op("Elu")
def elu(x: Tensor, *, alpha: float = 1.0, consumed_inputs: Any = None) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    return x.elu(alpha)


@op("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    return x.celu(alpha)


@op("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875,
         consumed_inputs: Any = None) -> Tensor:
    """Scaled exponential linear unit."""
    return x.selu(alpha, gamma)


@op("Softplus")
def softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))``."""
    return x.softplus()


@op("Softsign")
def softsign(x: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return x.softsign()


@op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Any = None) -> Tensor:
    """``alpha * x + beta`` kept within 0 and 1."""
    return x.hardsigmoid(alpha, beta)


@op("HardSwish")
def hard_swish(x: Tensor) -> Tensor:
    """``x * hardsigmoid(x)`` with slope 1/6."""
    return x.hardswish()


@op("Mish")
def mish(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return x.mish()


@op("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """``x * sigmoid(alpha * x)``."""
    return x * (x * alpha).sigmoid()


@op("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit, exact or by tanh."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is 'none' or 'tanh', got {approximate!r}")
    return x.gelu(approximate)


@op("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """``x`` moved by ``bias`` toward 0 outside of ``lambd``, 0 inside."""
    wide = x if x.dtype.is_float else x.cast(dtypes.float32)
    low, high = wide < -lambd, wide > lambd
    return low.where(wide + bias, high.where(wide - bias, 0)).cast(x.dtype)


# *** softmax ***
def _flat_rows(x: Tensor, axis: int, fn: Any) -> Tensor:
    """``fn`` over rows of the matrix that folds the axes before and from ``axis`` on (before opset 13)."""
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis <= x.ndim:
        raise ValueError(f"axis {axis} is outside of shape {x.shape}")
    rows = math.prod(x.shape[:axis])
    return fn(x.reshape((rows, -1)), -1).reshape(x.shape)


def _hard(x: Tensor, axis: int) -> Tensor:
    n = x.shape[axis]
    first = x.argmax(axis, keepdim=True)
    axis %= x.ndim
    number = Tensor.arange(n).reshape(tuple(n if i == axis else 1 for i in range(x.ndim)))
    return first.eq(number).where(1, 0).cast(x.dtype)


_ROWS = {"Softmax": lambda x, axis: x.softmax(axis), "LogSoftmax": lambda x, axis: x.log_softmax(axis),
         "Hardmax": _hard}


@op("Softmax", "LogSoftmax", "Hardmax")
def flat_softmax(x: Tensor, *, axis: int = 1, ctx: Any) -> Tensor:
    """Softmax and relatives over all axes from ``axis`` on."""
    return _flat_rows(x, axis, _ROWS[ctx.node.op])


@op("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(x: Tensor, *, axis: int = -1, ctx: Any) -> Tensor:
    """Softmax and relatives along one axis."""
    return _ROWS[ctx.node.op](x, axis)
