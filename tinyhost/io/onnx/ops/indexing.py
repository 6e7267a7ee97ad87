"""Reading and writing at indices.

Indices on the host are checked against their axis; those on a device count from the end where negative, and what is
out of range reads 0.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import filled
from tinyhost.io.onnx.ops.shape import ints, positive_axes
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, to_array
from tinyhost.tensor import Tensor


def wrapped(index: Tensor, extent: int) -> Tensor:
    """Indices with negative ones counted from the end."""
    index = index.cast(dtypes.int64 if extent > dtypes.int32.max else dtypes.int32)
    return (index < 0).where(index + extent, index)


def checked(index: Any, extent: int, axis: int) -> None:
    """Raises:
        IndexError: an index on the host is outside of its axis.
    """
    if isinstance(index, np.ndarray) and index.size and (index.min() < -extent or index.max() >= extent):
        bad = index[(index < -extent) | (index >= extent)].reshape(-1)[0]
        raise IndexError(f"index {bad} is out of bounds for axis {axis} of extent {extent}")


@op("Gather", raw=True)
def gather(x: Any, indices: Any, *, axis: int = 0, ctx: Any) -> Any:
    """Slices of ``x`` at ``indices`` along ``axis``."""
    ndim = len(x.shape)
    (axis,) = positive_axes([axis], ndim)
    checked(indices, x.shape[axis], axis)
    if isinstance(x, np.ndarray) and x.dtype == object:
        return np.take(x, to_array(indices), axis=axis)
    data = ctx.lift(x)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])
    if 0 in shape:
        return filled(shape, 0, data.dtype)
    # a place that changes from call to call, or in a loop, must not be part of the kernel
    if isinstance(indices, np.ndarray) and indices.size == 1 and ctx.is_constant(indices):
        at = int(indices.reshape(())) % x.shape[axis]
        return data.shrink(tuple((at, at + 1) if i == axis else None for i in range(ndim))).reshape(shape)
    return data[(*(slice(None),) * axis, ctx.lift(indices).cast(dtypes.int32))]


@op("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """``x`` at ``indices`` along ``axis``, the other coordinates kept."""
    (axis,) = positive_axes([axis], x.ndim)
    return x.gather(axis, wrapped(indices, x.shape[axis]))


def _linear(indices: Tensor, extents: tuple[int, ...]) -> Tensor:
    """Rows of coordinates as positions in the flattened axes."""
    out = None
    for i, extent in enumerate(extents):
        place = wrapped(indices[..., i], extent) * math.prod(extents[i + 1:])
        out = place if out is None else out + place
    assert out is not None
    return out


@op("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Slices of ``x`` at rows of coordinates, for each element of the leading ``batch_dims`` axes."""
    depth, lead = indices.shape[-1], x.shape[:batch_dims]
    rest = x.shape[batch_dims + depth:]
    batch, width = math.prod(lead), math.prod(x.shape[batch_dims:batch_dims + depth])
    rows = indices.reshape((batch, -1, depth))
    place = _linear(rows, x.shape[batch_dims:batch_dims + depth])
    if batch > 1:
        place = place + (Tensor.arange(batch) * width).reshape((batch, 1))
    flat = x.reshape((batch * width, *rest))
    return flat[place.flatten()].reshape((*indices.shape[:-1], *rest))


_COMBINE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scattered(x: Tensor, axis: int, index: Tensor, src: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return x.scatter(axis, index, src)
    if reduction not in _COMBINE:
        raise ValueError(f"reduction is 'none' or one of {sorted(_COMBINE)}, got {reduction!r}")
    return x.scatter_reduce(axis, index, src, _COMBINE[reduction])


@op("ScatterElements", "Scatter")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    """``x`` with ``updates`` written, or combined, at ``indices`` along ``axis``."""
    (axis,) = positive_axes([axis], x.ndim)
    if 0 in indices.shape:
        return x
    return _scattered(x, axis, wrapped(indices, x.shape[axis]), updates, reduction)


@op("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """``x`` with slices written, or combined, at rows of coordinates."""
    depth = indices.shape[-1]
    rest = x.shape[depth:]
    if 0 in indices.shape:
        return x
    rows, inner = math.prod(x.shape[:depth]), math.prod(rest)
    place = _linear(indices, x.shape[:depth]).reshape((-1, 1))
    count = place.shape[0]
    flat = _scattered(x.reshape((rows, inner)), 0, place.expand((count, inner)), updates.reshape((count, inner)),
                      reduction)
    return flat.reshape(x.shape)


@op("OneHot", host="depth")
def one_hot(indices: Tensor, depth: Array, values: Tensor, *, axis: int = -1) -> Tensor:
    """The on value at the index along a new axis, the off value elsewhere."""
    n = int(depth.reshape(()).item())
    axis = axis + indices.ndim + 1 if axis < 0 else axis
    index = indices.cast(dtypes.int64)
    index = (index < 0).where(index + n, index).unsqueeze(axis)
    number = Tensor.arange(n).cast(dtypes.int64).reshape(tuple(n if i == axis else 1 for i in range(indices.ndim + 1)))
    return index.eq(number).where(values[1], values[0])


@op("Compress", host="condition")
def compress(x: Tensor, condition: Array, *, axis: int | None = None) -> Tensor:
    """Slices along ``axis`` (of the flattened input by default) where the condition holds."""
    data = x.flatten() if axis is None else x
    (at,) = positive_axes([axis or 0], data.ndim)
    places = np.flatnonzero(condition[:data.shape[at]])
    if not places.size:
        return filled(tuple(0 if i == at else s for i, s in enumerate(data.shape)), 0, x.dtype)
    return data[(*(slice(None),) * at, places.tolist())]


@op("ReverseSequence", host="sequence_lens")
def reverse_sequence(x: Tensor, sequence_lens: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first ``sequence_lens[b]`` steps of each batch entry in reverse order."""
    lens, steps = ints(sequence_lens), x.shape[time_axis]
    if len(lens) != x.shape[batch_axis] or any(not 0 <= n <= steps for n in lens):
        raise ValueError(f"sequence_lens {lens} do not fit shape {x.shape}")
    order = np.array([[n - 1 - t if t < n else t for n in lens] for t in range(steps)], np.int32)
    order = order if time_axis < batch_axis else order.T
    index = Tensor(np.ascontiguousarray(order), device=x.device)
    low, high = sorted((time_axis, batch_axis))
    index = index.reshape(tuple(s if i in (low, high) else 1 for i, s in enumerate(x.shape))).expand(x.shape)
    return x.gather(time_axis, index)


@op("TensorScatter", host="write_indices")
def tensor_scatter(past: Tensor, update: Tensor, write_indices: Array | None = None, *, axis: int = -2,
                   mode: str = "linear") -> Tensor:
    """A cache with ``update`` written along ``axis`` from each batch entry's index on."""
    (axis,) = positive_axes([axis], past.ndim)
    starts = [0] * past.shape[0] if write_indices is None else ints(write_indices)
    room, length = past.shape[axis], update.shape[axis]
    if mode not in ("linear", "circular") or (mode == "linear" and any(not 0 <= s <= room - length for s in starts)):
        raise ValueError(f"cannot write {length} steps at {starts} of {room} in mode {mode!r}")
    places = np.array([[(s + t) % room for t in range(length)] for s in starts], np.int32)
    shape = tuple(past.shape[0] if i == 0 else length if i == axis else 1 for i in range(past.ndim))
    index = Tensor(places, device=past.device).reshape(shape).expand(update.shape)
    return past.scatter(axis, index, update)
