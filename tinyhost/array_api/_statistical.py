"""Reductions, running sums, and the utility functions.

Sums and products of integers are at least as wide as the default integer, those of floats keep their dtype. Means and
deviations are of floats; a deviation divides by the number of elements less ``correction``.
"""
from __future__ import annotations

import builtins
from typing import Any

from tinyhost.array_api._dtypes import result_type
from tinyhost.array_api._manipulation import axis_of, concat
from tinyhost.dtype import DType, dtypes, sum_acc_dtype
from tinyhost.errors import ShapeError
from tinyhost.tensor import Tensor

Axis = int | tuple[int, ...] | None


def _sum_dtype(x: Tensor, dtype: DType | None) -> DType:
    return dtype or (x.dtype if x.dtype.is_float else sum_acc_dtype(x.dtype))


def _demand_elements(x: Tensor, axis: Axis, what: str) -> None:
    axes = range(x.ndim) if axis is None else [axis_of(x, a) for a in ((axis,) if isinstance(axis, int) else axis)]
    if builtins.any(x.shape[a] == 0 for a in axes):
        raise ShapeError(f"{what} of no elements has no value: shape {x.shape}, axis {axis}")


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Sum; 0 of no elements."""
    wanted = _sum_dtype(x, dtype)
    return (x.sum(axis, keepdims) if dtype is None else x.sum(axis, keepdims, dtype=wanted)).cast(wanted)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Product; 1 of no elements."""
    return x.prod(axis, keepdims, dtype=_sum_dtype(x, dtype))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element; NaN wins."""
    _demand_elements(x, axis, "max")
    return x.max(axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element; NaN wins."""
    _demand_elements(x, axis, "min")
    return x.min(axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean; NaN of no elements."""
    return x.mean(axis, keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Variance."""
    return x.var(axis, keepdims, correction)  # type: ignore[arg-type]


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviation."""
    return x.std(axis, keepdims, correction)  # type: ignore[arg-type]


def _running_axis(x: Tensor, axis: int | None, what: str) -> int:
    if axis is None and x.ndim != 1:
        raise ShapeError(f"{what} needs an axis for shape {x.shape}")
    return axis_of(x, axis or 0)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: bool = False) -> Tensor:
    """Sums of all elements up to each; ``include_initial`` puts a 0 in front."""
    axis = _running_axis(x, axis, "cumulative_sum")
    wanted = _sum_dtype(x, dtype)
    return _with_initial(x.cast(wanted).cumsum(axis).cast(wanted), axis, 0, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: bool = False) -> Tensor:
    """Products of all elements up to each; ``include_initial`` puts a 1 in front."""
    axis = _running_axis(x, axis, "cumulative_prod")
    wanted = _sum_dtype(x, dtype)
    return _with_initial(x.cast(wanted).cumprod(axis).cast(wanted), axis, 1, include_initial)


def _with_initial(x: Tensor, axis: int, value: int, include: bool) -> Tensor:
    return x.pad(tuple((1, 0) if i == axis else None for i in range(x.ndim)), value=value) if include else x


# *** utility ***
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    return x.all(axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not zero."""
    return x.any(axis, keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Differences of neighbours, ``n`` times."""
    axis = axis_of(x, axis)
    ends: list[Any] = [prepend, x, append]
    parts = [p for p in ends if p is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        high, low = (x.shrink(tuple(b if i == axis else None for i in range(x.ndim)))
                     for b in ((1, size), (0, size - 1)))
        x = high != low if x.dtype is dtypes.bool else (high - low).cast(result_type(x))
    return x
