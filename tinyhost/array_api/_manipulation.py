"""Shapes: joining, splitting, moving and repeating. Results may be views of their arguments."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyhost.array_api._dtypes import result_type
from tinyhost.errors import ShapeError
from tinyhost.mixin.sint import broadcast_shape
from tinyhost.tensor import Tensor


def axis_of(x: Tensor, axis: int, extra: int = 0) -> int:
    """Axis counted from 0, of ``x`` with ``extra`` axes more.

    Raises:
        ShapeError: there is none.
    """
    total = x.ndim + extra
    if not -total <= axis < total:
        raise ShapeError(f"axis {axis} does not exist in {total} axes (shape {x.shape})")
    return axis % total


def _tuple(axis: int | Sequence[int]) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all ``shapes`` broadcast to.

    Raises:
        ShapeError: there is none.
    """
    try:
        return tuple(broadcast_shape(*shapes)) if shapes else ()
    except IndexError as e:
        raise ShapeError(f"shapes {shapes} do not broadcast") from e


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """``x`` repeated along new axes and axes of one element."""
    return x.expand(tuple(shape)) if shape else x._fresh()


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All arrays at the shape that they broadcast to."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis, or flattened for None."""
    dtype = result_type(*arrays)
    parts = [x.cast(dtype).flatten() if axis is None else x.cast(dtype) for x in arrays]
    return parts[0].cat(*parts[1:], dim=0 if axis is None else axis_of(parts[0], axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """New axes of one element.

    Raises:
        ShapeError: no such place, or one twice.
    """
    axes = _tuple(axis)
    places = sorted(axis_of(x, a, len(axes)) for a in axes)
    if len(set(places)) != len(places):
        raise ShapeError(f"expand_dims at {axes} names a place twice")
    rest = iter(x.shape)
    return x.reshape(tuple(1 if i in places else next(rest) for i in range(x.ndim + len(places))))


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Axes reversed, all of them for None."""
    axes = tuple(range(x.ndim)) if axis is None else _tuple(axis)
    return x.flip(axes) if axes else x._fresh()


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Axes moved to other places."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Axes in another order.

    Raises:
        ShapeError: ``axes`` does not name each axis once.
    """
    order = tuple(axis_of(x, a) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute_dims of shape {x.shape} needs each of its axes once, got {tuple(axes)}")
    return x.permute(order) if order else x._fresh()


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element ``repeats`` times; an array of numbers is read to know the shape."""
    if axis is None:
        return repeat(x.flatten(), repeats, axis=0)
    axis = axis_of(x, axis)
    counts = repeats if isinstance(repeats, int) else np.broadcast_to(repeats.numpy(), (x.shape[axis],))
    index = np.repeat(np.arange(x.shape[axis], dtype=np.int32), counts)
    if not index.size:
        return x.shrink(tuple((0, 0) if i == axis else None for i in range(x.ndim)))
    return x[(slice(None),) * axis + (Tensor(index, device=x.device),)]


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    y = x.reshape(tuple(shape))
    return y.clone() if copy else y


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Elements moved along axes; what leaves at the end comes in at the front."""
    if axis is None:
        return x.flatten().roll(shift, 0).reshape(x.shape) if x.ndim else x._fresh()
    axes = _tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    for s, a in zip(shifts, axes, strict=True):
        x = x.roll(s, axis_of(x, a))
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without axes of one element.

    Raises:
        ShapeError: an axis is longer.
    """
    axes = {axis_of(x, a) for a in _tuple(axis)}
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze takes axes of one element away, got {axis} of shape {x.shape}")
    return x.reshape(tuple(s for i, s in enumerate(x.shape) if i not in axes))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    dtype = result_type(*arrays)
    parts = [x.cast(dtype) for x in arrays]
    return parts[0].stack(*parts[1:], dim=axis_of(parts[0], axis, 1))


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array repeated along axes."""
    counts = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    y = x.reshape((1,) * (len(counts) - x.ndim) + x.shape)
    if math.prod(counts) == 0:
        y = y.shrink(tuple((0, s if n else 0) for s, n in zip(y.shape, counts)))
        return y.repeat(tuple(n or 1 for n in counts))
    return y.repeat(counts) if counts else y


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The elements along an axis, without that axis."""
    axis = axis_of(x, axis)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))
