"""Indexing, searching, sorting and sets.

Indices are of the default integer. Functions whose shape depends on the data (nonzero, unique_*) read it.
"""
from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tinyhost.array_api._dtypes import result_type
from tinyhost.array_api._elementwise import select
from tinyhost.array_api._manipulation import axis_of
from tinyhost.dtype import dtypes
from tinyhost.errors import ShapeError
from tinyhost.mixin.sint import broadcast_shape
from tinyhost.tensor import Tensor


# *** indexing ***
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Elements of an axis at ``indices``; the axis may be left out for one axis.

    Raises:
        ShapeError: no axis is given and there is more than one.
    """
    if axis is None and x.ndim != 1:
        raise ShapeError(f"take needs an axis for shape {x.shape}")
    axis = axis_of(x, axis or 0)
    return x[(slice(None),) * axis + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """``out[i][j] = x[i][indices[i][j]]`` for axis 1, and so on; the other axes broadcast."""
    axis = axis_of(x, axis)
    rest = broadcast_shape(*[s[:axis] + (1,) + s[axis + 1:] for s in (x.shape, indices.shape)])
    x, indices = (v.expand((*rest[:axis], v.shape[axis], *rest[axis + 1:])) for v in (x, indices))
    return x.gather(axis, (indices < 0).where(indices + x.shape[axis], indices))


# *** searching ***
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the largest element, the first of several."""
    return _kept(x.argmax(axis, keepdims), x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element, the first of several."""
    return _kept(x.argmin(axis, keepdims), x, axis, keepdims)


def _kept(index: Tensor, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    index = index.cast(dtypes.default_int)
    return index.reshape((1,) * x.ndim) if axis is None and keepdims else index


def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return (x != 0).cast(dtypes.default_int).sum(axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Coordinates of the elements that are not zero, an array for each axis.

    Raises:
        ShapeError: ``x`` has no axes.
    """
    if not x.ndim:
        raise ShapeError("nonzero needs an array with axes, got a 0-d one")
    rows = x.nonzero()
    return tuple(rows[:, i].cast(dtypes.default_int) for i in range(x.ndim))


def searchsorted(x1: Tensor, x2: Any, /, *, side: Literal["left", "right"] = "left",
                 sorter: Tensor | None = None) -> Tensor:
    """Where ``x2`` would stand in the sorted ``x1``: how many elements are smaller, or not larger for "right".

    Raises:
        ValueError: unknown ``side``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"unknown side {side!r}: use 'left' or 'right'")
    row = x1 if sorter is None else take(x1, sorter)
    dtype = result_type(x1, x2)
    value = (x2 if isinstance(x2, Tensor) else x1.ufix(x2)).cast(dtype).unsqueeze(-1)
    row = row.cast(dtype)
    before = row < value if side == "left" else row <= value
    return before.cast(dtypes.default_int).sum(-1)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """``x1`` where the condition holds, else ``x2``."""
    dtype = result_type(x1, x2)
    a, b = (v if isinstance(v, Tensor) else condition.ufix(v) for v in (x1, x2))
    return select(condition, a.cast(dtype), b.cast(dtype))


# *** sorting ***
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Indices that sort an axis; equal elements keep their order."""
    return x.argsort(axis_of(x, axis), descending).cast(dtypes.default_int)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Elements of an axis in order."""
    return x.sort(axis_of(x, axis), descending)[0]


# *** sets ***
class UniqueAll(NamedTuple):
    """Values, where each occurs first, which value each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Values, and which value each element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in order; each NaN is distinct."""
    flat = x.flatten()
    if not flat.shape[0]:
        none = flat.cast(dtypes.default_int)
        return UniqueAll(flat, none, none.reshape(x.shape), none)
    order = flat.argsort(0).cast(dtypes.default_int).realize()
    values = flat[order].realize()
    first = Tensor([True], device=x.device).cat(values[1:] != values[:-1]).realize()
    number = first.cast(dtypes.default_int).cumsum(0) - 1
    starts = first.nonzero()[:, 0].cast(dtypes.default_int).realize()
    ends = starts[1:].cat(Tensor([flat.shape[0]], device=x.device, dtype=dtypes.default_int))
    inverse = number[order.argsort(0)].reshape(x.shape)
    return UniqueAll(values[starts], order[starts], inverse, ends - starts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1`` occurs in ``x2``."""
    dtype = result_type(x1, x2)
    a = x1 if isinstance(x1, Tensor) else x2.ufix(x1)
    b = x2 if isinstance(x2, Tensor) else a.ufix(x2)
    found = (a.cast(dtype).unsqueeze(-1) == b.cast(dtype).flatten()).any(-1)
    return found.logical_not() if invert else found
