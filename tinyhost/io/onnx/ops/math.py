"""Arithmetic, comparison, logic and products of matrices.

Operands have one type already, so nothing is promoted; the schema's output type is applied by the runner.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor

_UNARY: dict[str, Any] = {
    "Abs": Tensor.abs, "Neg": Tensor.neg, "Exp": Tensor.exp, "Log": Tensor.log, "Sqrt": Tensor.sqrt,
    "Reciprocal": Tensor.reciprocal, "Floor": Tensor.floor, "Ceil": Tensor.ceil, "Round": Tensor.round,
    "Sign": Tensor.sign, "Sin": Tensor.sin, "Cos": Tensor.cos, "Tan": Tensor.tan, "Asin": Tensor.asin,
    "Acos": Tensor.acos, "Atan": Tensor.atan, "Sinh": Tensor.sinh, "Cosh": Tensor.cosh, "Tanh": Tensor.tanh,
    "Asinh": Tensor.asinh, "Acosh": Tensor.acosh, "Atanh": Tensor.atanh, "Erf": Tensor.erf,
    "Sigmoid": Tensor.sigmoid, "IsNaN": Tensor.isnan, "Not": Tensor.logical_not, "BitwiseNot": Tensor.bitwise_not,
}


def _register_unary(name: str, method: Any) -> None:
    def unary(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
        return method(x)
    op(name)(unary)


def _divided(x: Tensor, y: Tensor) -> Tensor:
    """The quotient; integers truncate."""
    return x.div(y, rounding_mode="trunc") if x.dtype.is_int else x / y


_BINARY = {
    "Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y, "Div": _divided,
    "And": lambda x, y: x & y, "Or": lambda x, y: x | y, "Xor": lambda x, y: x ^ y,
    "BitwiseAnd": lambda x, y: x & y, "BitwiseOr": lambda x, y: x | y, "BitwiseXor": lambda x, y: x ^ y,
    "Equal": lambda x, y: x.eq(y), "Greater": lambda x, y: x > y, "Less": lambda x, y: x < y,
    "GreaterOrEqual": lambda x, y: x >= y, "LessOrEqual": lambda x, y: x <= y,
}
_EXPLICIT = ("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "Pow")


def _register_binary(name: str, fn: Any) -> None:
    def binary(x: Tensor, y: Tensor) -> Tensor:
        return fn(x, y)

    def explicit(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int = 0,
                 consumed_inputs: Any = None) -> Tensor:
        """Before opset 7 ``y`` was laid along ``axis`` of ``x``."""
        if broadcast and axis is not None:
            axis = axis + x.ndim if axis < 0 else axis
            y = y.reshape((*y.shape, *(1,) * (x.ndim - axis - y.ndim)))
        return fn(x, y)
    if name in _EXPLICIT:
        op(name, since=1)(explicit)
        op(name, since=7)(binary)
    else:
        op(name)(binary)


def _power(x: Tensor, y: Tensor) -> Tensor:
    """``x ** y`` in the type of ``x``."""
    if x.dtype.is_int and y.dtype.is_int:
        return x.pow(y.cast(x.dtype))
    wide = x.cast(dtypes.float64) if x.dtype.is_int else x
    literal = y._literal()
    return wide.pow(float(literal) if literal is not None else y.cast(wide.dtype)).cast(x.dtype)


for _name, _method in _UNARY.items():
    _register_unary(_name, _method)
for _name, _function in {**_BINARY, "Pow": _power}.items():
    _register_binary(_name, _function)


@op("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """``x`` where positive, else ``slope * x``."""
    return (x < 0).where(x * slope, x)


@op("PRelu")
def prelu_channels(x: Tensor, slope: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    """Before opset 7 a vector of slopes lay along the channels."""
    return prelu(x, slope.reshape((-1, *(1,) * (x.ndim - 2))) if slope.ndim == 1 and x.ndim > 2 else slope)


@op("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Elements of ``x`` where the condition holds, else of ``y``."""
    return condition.where(x, y)


@op("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    """Remainder with the sign of the divisor, or with ``fmod`` that of the dividend."""
    if x.dtype.is_float and fmod:
        return _float_remainder(x, y)
    return x.fmod(y) if fmod else x.mod(y)


def _float_remainder(x: Tensor, y: Tensor) -> Tensor:
    wide = dtypes.float32 if x.dtype.itemsize < 4 else x.dtype
    return x.cast(wide).fmod(y.cast(wide)).cast(x.dtype)


@op("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    """Shift by ``y`` bits, "LEFT" or "RIGHT"."""
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"direction is 'LEFT' or 'RIGHT', got {direction!r}")
    return x.lshift(y) if direction == "LEFT" else x.rshift(y)


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    """Where the value is infinite, with the chosen signs."""
    return x.isinf(bool(detect_positive), bool(detect_negative))


@op("Sum", "Mean")
def total(first: Tensor, *rest: Tensor, ctx: Any, consumed_inputs: Any = None) -> Tensor:
    """Sum or mean of the inputs."""
    out = first.usum(*rest)
    return out / (1 + len(rest)) if ctx.node.op == "Mean" else out


@op("Max")
def largest(first: Tensor, *rest: Tensor, consumed_inputs: Any = None) -> Tensor:
    """Largest of the inputs; NaN wins."""
    for t in rest:
        first = first.maximum(t)
    return first


@op("Min")
def smallest(first: Tensor, *rest: Tensor, consumed_inputs: Any = None) -> Tensor:
    """Smallest of the inputs; NaN wins."""
    for t in rest:
        first = first.minimum(t)
    return first


@op("Clip")
def clip_attributes(x: Tensor, *, min: float = -math.inf, max: float = math.inf, consumed_inputs: Any = None) -> Tensor:
    """The value kept within bounds that are attributes (before opset 11)."""
    return x.maximum(min).minimum(max)


@op("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """The value kept within ``low`` and ``high``; ``high`` wins."""
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


# *** running sums ***
def _running(x: Tensor, axis: int, exclusive: int, reverse: int, product: bool) -> Tensor:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is outside of shape {x.shape}")
    axis %= x.ndim
    x = x.flip(axis) if reverse else x
    out = (x.cumprod(axis) if product else x.cumsum(axis)).cast(x.dtype)
    if exclusive:
        n = x.shape[axis]
        out = out.shrink(tuple((0, n - 1) if i == axis else None for i in range(x.ndim)))
        out = out.pad(tuple((1, 0) if i == axis else None for i in range(x.ndim)), value=1 if product else 0)
    return out.flip(axis) if reverse else out


@op("CumSum", host="axis")
def cum_sum(x: Tensor, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Running sum along ``axis``."""
    return _running(x, int(axis.reshape(()).item()), exclusive, reverse, False)


@op("CumProd", host="axis")
def cum_prod(x: Tensor, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Running product along ``axis``."""
    return _running(x, int(axis.reshape(()).item()), exclusive, reverse, True)


# *** products ***
@op("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Matrix product over the last axes; leading ones broadcast."""
    return a.matmul(b)


@op("Gemm")
def gemm(a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0, broadcast: int = 1) -> Tensor:
    """``alpha * a @ b + beta * c`` with transposed operands where asked."""
    out = (a.transpose() if transA else a).matmul(b.transpose() if transB else b)
    if alpha != 1.0:
        out = (out * alpha).cast(out.dtype)
    return out if c is None else out + (c if beta == 1.0 else (c * beta).cast(c.dtype))


@op("Einsum")
def einsum(*operands: Tensor, equation: str) -> Tensor:
    """Einstein summation."""
    return Tensor.einsum(equation, *operands)


@op("Det", host="x")
def det(x: Array) -> Array:
    """Determinants of the matrices in the last two axes; computed on the host."""
    return np.asarray(np.linalg.det(x), dtype=x.dtype)
