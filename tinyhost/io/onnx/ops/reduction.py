"""Reductions, extremes and order."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import filled
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor

Reduction = Callable[[Tensor, Any, bool], Tensor]


def _log_sum(x: Tensor, axis: Any, keep: bool) -> Tensor:
    return x.sum(axis, keep).log()


def _log_sum_exp(x: Tensor, axis: Any, keep: bool) -> Tensor:
    return x.logsumexp(axis, keep)


def _mean(x: Tensor, axis: Any, keep: bool) -> Tensor:
    return x.mean(axis, keep) if x.dtype.is_float else x.cast(dtypes.float64).mean(axis, keep).trunc()


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": lambda x, axis, keep: x.sum(axis, keep), "ReduceMean": _mean,
    "ReduceProd": lambda x, axis, keep: x.prod(axis, keep),
    "ReduceMax": lambda x, axis, keep: x.max(axis, keep), "ReduceMin": lambda x, axis, keep: x.min(axis, keep),
    "ReduceL1": lambda x, axis, keep: x.abs().sum(axis, keep),
    "ReduceL2": lambda x, axis, keep: x.square().sum(axis, keep).sqrt(),
    "ReduceSumSquare": lambda x, axis, keep: x.square().sum(axis, keep),
    "ReduceLogSum": _log_sum, "ReduceLogSumExp": _log_sum_exp,
}
_WITH_INPUT = {"ReduceSum": 13}  # opset from which the axes are an input; 18 for the others


def _reduced(x: Tensor, axes: Any, keep: bool, fn: Reduction) -> Tensor:
    """A reduction, also over an axis without elements."""
    chosen = tuple(a + x.ndim if a < 0 else a for a in (range(x.ndim) if axes is None else axes))
    if any(not 0 <= a < x.ndim for a in chosen):
        raise ValueError(f"axes {list(axes)} are not all within shape {x.shape}")
    if not x.ndim:
        return fn(x.reshape((1,)), 0, False)
    if any(x.shape[a] == 0 for a in chosen):
        return _of_nothing(x, chosen, keep, fn)
    return fn(x, chosen, keep)


def _of_nothing(x: Tensor, axes: tuple[int, ...], keep: bool, fn: Reduction) -> Tensor:
    """The neutral element of a reduction: sums and norms 0, products 1, extremes the type's bounds."""
    name = next(n for n, f in _REDUCTIONS.items() if f is fn)
    shape = tuple(1 if i in axes else s for i, s in enumerate(x.shape) if keep or i not in axes)
    value: Any = {"ReduceProd": 1, "ReduceMax": x.dtype.min, "ReduceMin": x.dtype.max, "ReduceMean": float("nan"),
                  "ReduceLogSum": float("-inf"), "ReduceLogSumExp": float("-inf")}.get(name, 0)
    return filled(shape, value, x.dtype)


def _register(name: str, fn: Reduction) -> None:
    def by_attribute(x: Tensor, *, axes: list[int] | None = None, keepdims: int = 1) -> Tensor:
        return _reduced(x, axes, bool(keepdims), fn)

    def by_input(x: Tensor, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        if axes is None or axes.size == 0:
            if noop_with_empty_axes:
                return _elementwise(name, x)
            return _reduced(x, None, bool(keepdims), fn)
        return _reduced(x, [int(a) for a in axes.reshape(-1)], bool(keepdims), fn)
    op(name)(by_attribute)
    op(name, since=_WITH_INPUT.get(name, 18), host="axes")(by_input)


def _elementwise(name: str, x: Tensor) -> Tensor:
    """A reduction over no axes."""
    steps = {"ReduceL1": Tensor.abs, "ReduceL2": Tensor.abs, "ReduceSumSquare": Tensor.square,
             "ReduceLogSum": Tensor.log}
    return steps[name](x) if name in steps else x


for _name, _fn in _REDUCTIONS.items():
    _register(_name, _fn)


@op("ArgMax", "ArgMin")
def arg_extreme(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0, ctx: Any) -> Tensor:
    """Index of the extreme along ``axis``, of the first or the last of several."""
    find = Tensor.argmax if ctx.node.op == "ArgMax" else Tensor.argmin
    if not select_last_index:
        return find(x, axis, bool(keepdims)).cast(dtypes.int64)
    return (find(x.flip(axis), axis, bool(keepdims)) * -1 + (x.shape[axis] - 1)).cast(dtypes.int64)


@op("TopK")
def top_k_attribute(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements of ``axis`` and their indices (before opset 10)."""
    values, index = x.topk(k, axis)
    return values, index.cast(dtypes.int64)


@op("TopK", since=10, host="k")
def top_k(x: Tensor, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    """The ``k`` largest or smallest elements of ``axis``, in order, and their indices."""
    values, index = x.topk(int(k.reshape(()).item()), axis, bool(largest))
    return values, index.cast(dtypes.int64)


@op("NonZero", host="x")
def non_zero(x: Array) -> Array:
    """Indices of the elements that are not zero, one column for each; the data is read."""
    return np.array(np.nonzero(x) if x.ndim else np.nonzero(x.reshape(1)), dtype=np.int64)[:max(x.ndim, 0)]


@op("Unique", host="x")
def unique(x: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
    """The different elements (or slices along ``axis``), where they come first, the way back, and their numbers."""
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        first, inverse, counts = first[order], place[inverse], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)
