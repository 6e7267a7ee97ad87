"""Products of matrices and vectors. Results have the joint dtype of their arguments."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhost.array_api._dtypes import result_type
from tinyhost.array_api._manipulation import axis_of, broadcast_arrays
from tinyhost.errors import ShapeError
from tinyhost.tensor import Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix product over the last two axes; the others broadcast.

    Raises:
        ShapeError: an argument has no axes, or the inner extents differ.
    """
    if not x1.ndim or not x2.ndim or x1.shape[-1] != x2.shape[-min(2, x2.ndim)]:
        raise ShapeError(f"matmul of {x1.shape} and {x2.shape}: the last axis of the first must be as long as the "
                         "second to last of the other")
    dtype = result_type(x1, x2)
    return x1.cast(dtype).matmul(x2.cast(dtype), dtype=dtype).cast(dtype)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Products summed over pairs of axes: the last of ``x1`` with the first of ``x2`` for a number.

    Raises:
        ShapeError: the axes of a pair are of different lengths.
    """
    if isinstance(axes, int):
        first, second = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        first, second = [axis_of(x1, a) for a in axes[0]], [axis_of(x2, a) for a in axes[1]]
    if len(first) != len(second) or any(x1.shape[a] != x2.shape[b] for a, b in zip(first, second)):
        raise ShapeError(f"tensordot over axes {first} of {x1.shape} and {second} of {x2.shape}: pairs must agree")
    dtype = result_type(x1, x2)
    rest1, rest2 = ([i for i in range(x.ndim) if i not in used] for x, used in ((x1, first), (x2, second)))
    inner = 1
    for a in first:
        inner *= x1.shape[a]
    rows, columns = tuple(x1.shape[i] for i in rest1), tuple(x2.shape[i] for i in rest2)
    left = x1.cast(dtype).permute((*rest1, *first)) if x1.ndim else x1.cast(dtype)
    right = x2.cast(dtype).permute((*second, *rest2)) if x2.ndim else x2.cast(dtype)
    size1, size2 = _count(rows), _count(columns)
    product = left.reshape((size1, 1, inner)) * right.reshape((inner, size2)).transpose(0, 1).reshape((1, size2, inner))
    return product.sum(-1, dtype=dtype).cast(dtype).reshape((*rows, *columns))


def _count(shape: tuple[int, ...]) -> int:
    out = 1
    for s in shape:
        out *= s
    return out


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Products summed over an axis, which counts from the end.

    Raises:
        ShapeError: the axis is not negative, does not exist, or differs in length.
    """
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim) or x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot over axis {axis} of {x1.shape} and {x2.shape}: it counts from the end and must be as "
                         "long in both")
    dtype = result_type(x1, x2)
    a, b = broadcast_arrays(x1.cast(dtype), x2.cast(dtype))
    return (a * b).sum(axis, dtype=dtype).cast(dtype)
