"""Operators that move elements: shapes, slices, padding, constants.

Shapes, axes and bounds are inputs on the host; the data stays where it is. ``raw`` forms take elements of any type.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.io.onnx.call import filled, narrowed
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, array_element, element_of, from_array
from tinyhost.tensor import Tensor

RANK_LIMIT = 64  # axes of a tensor


def ints(a: Array | None) -> list[int]:
    """The numbers of a host input."""
    return [] if a is None else [int(v) for v in np.asarray(a).reshape(-1)]


def shape_of(a: Array) -> list[int]:
    """The extents that a host input asks for.

    Raises:
        ValueError: more axes than any tensor has.
    """
    if a.size > RANK_LIMIT:
        raise ValueError(f"a tensor of {a.size} axes is asked for, {RANK_LIMIT} are possible")
    return ints(a)


def positive_axes(axes: list[int], ndim: int) -> list[int]:
    """Axes counted from 0.

    Raises:
        ValueError: an axis is outside, or stands twice.
    """
    found = [a + ndim if a < 0 else a for a in axes]
    if any(not 0 <= a < ndim for a in found) or len(set(found)) != len(found):
        raise ValueError(f"axes {axes} must differ and lie within {-ndim} to {ndim - 1}")
    return found


@op("Identity", raw=True)
def identity(x: Any) -> tuple[Any]:
    """The value itself."""
    return (x,)


@op("Shape", raw=True)
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Array:
    """The extents from ``start`` to ``end``, on the host."""
    return np.array(x.shape[slice(start, end)], dtype=np.int64)


@op("Size", raw=True)
def size(x: Any) -> Array:
    """The number of elements, on the host."""
    return np.array(math.prod(x.shape), dtype=np.int64)


def target_shape(old: tuple[int, ...], asked: list[int], allowzero: int) -> tuple[int, ...]:
    """Extents of a Reshape: 0 keeps an extent unless ``allowzero``, -1 takes the rest.

    Raises:
        ValueError: the number of elements cannot be kept.
    """
    if not allowzero and any(s == 0 and i >= len(old) for i, s in enumerate(asked)):
        raise ValueError(f"cannot reshape {list(old)} to {asked}: a 0 keeps an extent, and there is none at its place")
    new = [old[i] if s == 0 and not allowzero else s for i, s in enumerate(asked)]
    if new.count(-1) > 1 or any(s < -1 for s in new):
        raise ValueError(f"cannot reshape {list(old)} to {asked}: at most one extent is -1, the others are not "
                         "negative")
    total = math.prod(old)
    if -1 in new:
        rest = math.prod(s for s in new if s != -1)
        if rest == 0 or total % rest:
            raise ValueError(f"cannot reshape {list(old)} to {asked}: {total} elements do not fill -1 evenly")
        new[new.index(-1)] = total // rest
    if math.prod(new) != total:
        raise ValueError(f"cannot reshape {list(old)} ({total} elements) to {asked} ({math.prod(new)} elements)")
    return tuple(new)


@op("Reshape")
def reshape_attribute(x: Tensor, *, shape: list[int] | None = None, consumed_inputs: Any = None) -> Tensor:
    """The elements under another shape (before opset 5)."""
    return x.reshape(target_shape(x.shape, shape or [], 0))


@op("Reshape", since=5, host="shape")
def reshape(x: Tensor, shape: Array, *, allowzero: int = 0) -> Tensor:
    """The elements under another shape."""
    return x.reshape(target_shape(x.shape, shape_of(shape), allowzero))


@op("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """A matrix: axes before ``axis`` by axes from it on."""
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis <= x.ndim:
        raise ValueError(f"axis {axis} is outside of shape {x.shape}")
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@op("Transpose")
def transpose(x: Tensor, *, perm: list[int] | None = None) -> Tensor:
    """The axes in another order, reversed by default."""
    return x.permute(tuple(range(x.ndim))[::-1] if perm is None else tuple(perm))


def _squeezed(x: Tensor, axes: list[int] | None) -> Tensor:
    if axes is None:
        return x.squeeze()
    chosen = positive_axes(axes, x.ndim)
    if bad := [a for a in chosen if x.shape[a] != 1]:
        raise ValueError(f"cannot squeeze axis {bad[0]} of shape {x.shape}: it is not 1")
    return x.reshape(tuple(s for i, s in enumerate(x.shape) if i not in chosen))


def _unsqueezed(x: Tensor, axes: list[int]) -> Tensor:
    ndim = x.ndim + len(axes)
    chosen, extents = positive_axes(axes, ndim), iter(x.shape)
    return x.reshape(tuple(1 if i in chosen else next(extents) for i in range(ndim)))


@op("Squeeze")
def squeeze_attribute(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    """Without the given axes of extent 1 (before opset 13)."""
    return _squeezed(x, axes)


@op("Squeeze", since=13, host="axes")
def squeeze(x: Tensor, axes: Array | None = None) -> Tensor:
    """Without the given axes of extent 1, all of them by default."""
    return _squeezed(x, None if axes is None else ints(axes))


@op("Unsqueeze")
def unsqueeze_attribute(x: Tensor, *, axes: list[int]) -> Tensor:
    """With new axes of extent 1 (before opset 13)."""
    return _unsqueezed(x, axes)


@op("Unsqueeze", since=13, host="axes")
def unsqueeze(x: Tensor, axes: Array) -> Tensor:
    """With new axes of extent 1."""
    return _unsqueezed(x, shape_of(axes))


@op("Concat")
def concat(first: Tensor, *rest: Tensor, axis: int = 1) -> Tensor:
    """The inputs one after the other along ``axis``."""
    return first.cat(*rest, dim=axis)


# *** pieces ***
def _pieces(x: Tensor, sizes: list[int], axis: int) -> tuple[Tensor, ...]:
    if any(s < 0 for s in sizes):
        raise ValueError(f"sizes {sizes} of a split must not be negative")
    return x.split(sizes, dim=axis)


def equal_sizes(extent: int, count: int, outputs: int | None = None) -> list[int]:
    """Sizes of ``count`` pieces, the last one smaller where it does not divide.

    Raises:
        ValueError: no number of pieces, or not that of the outputs.
    """
    if count < 1 or count != (outputs or count):
        raise ValueError(f"a split needs as many pieces as outputs, got {count}")
    step = -(-extent // count)
    return [max(0, min(step, extent - i * step)) for i in range(count)]


@op("Split", host="sizes")
def split_first(x: Tensor, sizes: Array | None = None, *, axis: int = 0, split: list[int] | None = None,
                ctx: Any) -> tuple[Tensor, ...]:
    """Pieces along ``axis``, whose sizes may be an input (before opset 2)."""
    return split_attribute(x, axis=axis, split=split if sizes is None else ints(sizes), ctx=ctx)


@op("Split", since=2)
def split_attribute(x: Tensor, *, axis: int = 0, split: list[int] | None = None, ctx: Any) -> tuple[Tensor, ...]:
    """Pieces along ``axis`` (before opset 13)."""
    return _pieces(x, split or equal_sizes(x.shape[axis], len(ctx.node.outputs)), axis)


@op("Split", since=13, host="split")
def split(x: Tensor, split: Array | None = None, *, axis: int = 0, num_outputs: int | None = None,
          ctx: Any) -> tuple[Tensor, ...]:
    """Pieces along ``axis``, of the given or of equal sizes."""
    count = len(ctx.node.outputs) if num_outputs is None else num_outputs
    sizes = ints(split) if split is not None else equal_sizes(x.shape[axis], count, len(ctx.node.outputs))
    return _pieces(x, sizes, axis)


def slices(extents: tuple[int, ...], starts: list[int], ends: list[int], axes: list[int] | None,
           steps: list[int] | None) -> tuple[slice, ...]:
    """Python slices of a Slice: negative bounds count from the end, others are cut to the extent.

    Raises:
        ValueError: the lists do not fit together, or a step is 0.
    """
    chosen = positive_axes(list(range(len(starts))) if axes is None else axes, len(extents))
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(chosen) == len(steps) or 0 in steps:
        raise ValueError(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit together")
    out = [slice(None)] * len(extents)
    for a, start, end, step in zip(chosen, starts, ends, steps):
        n = extents[a]
        start, end = start + n if start < 0 else start, end + n if end < 0 else end
        low, high = (0, n) if step > 0 else (0, n - 1)
        start = min(max(start, low), high)
        end = min(max(end, 0), n) if step > 0 else min(max(end, -1), n - 1)
        out[a] = slice(start, None if step < 0 and end < 0 else end, step)
    return tuple(out)


@op("Slice")
def slice_attributes(x: Tensor, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Tensor:
    """A box (before opset 10)."""
    return x[slices(x.shape, starts, ends, axes, None)]


@op("Slice", since=10, host="starts ends axes steps")
def slice_(x: Tensor, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Tensor:
    """A box, with steps."""
    return x[slices(x.shape, ints(starts), ints(ends), None if axes is None else ints(axes),
                    None if steps is None else ints(steps))]


# *** repetition ***
def expanded_shape(old: tuple[int, ...], asked: list[int]) -> tuple[int, ...]:
    """Extents of an Expand: both shapes broadcast.

    Raises:
        ValueError: they do not.
    """
    ndim = max(len(old), len(asked))
    have, want = (1,) * (ndim - len(old)) + tuple(old), [1] * (ndim - len(asked)) + asked
    if any(h != w and h != 1 and w != 1 for h, w in zip(have, want)) or min(want, default=0) < 0:
        raise ValueError(f"cannot expand {list(old)} to {asked}")
    return tuple(w if h == 1 else h for h, w in zip(have, want))


@op("Expand", host="shape")
def expand(x: Tensor, shape: Array) -> Tensor:
    """Broadcast to ``shape``, which may have extents of 1 itself."""
    new = expanded_shape(x.shape, shape_of(shape))
    if 0 in new and 0 not in x.shape:
        return x.reshape((1,) * (len(new) - x.ndim) + x.shape).shrink(
            tuple((0, 0) if n == 0 else None for n in new)).expand(new)
    return x.expand(new)


@op("Tile", host="tiles axis")
def tile_axis(x: Tensor, tiles: Array, axis: Array) -> Tensor:
    """The elements ``tiles`` times along one axis (before opset 6)."""
    (at,) = positive_axes(ints(axis), x.ndim)
    return tile(x, np.array([ints(tiles)[0] if i == at else 1 for i in range(x.ndim)]))


@op("Tile", since=6, host="repeats")
def tile(x: Tensor, repeats: Array) -> Tensor:
    """The elements side by side, ``repeats`` times along each axis."""
    counts = ints(repeats)
    if len(counts) != x.ndim:
        raise ValueError(f"Tile needs a count for each axis of shape {x.shape}, got {counts}")
    if 0 in counts or 0 in x.shape:
        return filled(tuple(s * c for s, c in zip(x.shape, counts)), 0, x.dtype)
    return x.repeat(tuple(counts)) if x.ndim else x


# *** padding ***
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _padded(x: Tensor, pads: list[int], axes: list[int], mode: str, value: Any) -> Tensor:
    if len(pads) != 2 * len(axes):
        raise ValueError(f"pads {pads} are not two for each of the axes {axes}")
    if mode not in _MODES:
        raise ValueError(f"mode is one of {sorted(_MODES)}, got {mode!r}")
    pairs = [(0, 0)] * x.ndim
    for i, a in enumerate(axes):
        pairs[a] = (pads[i], pads[i + len(axes)])
    if mode == "constant":
        return x.pad(tuple(pairs), value=value)
    for axis, (before, after) in enumerate(pairs):
        x = _padded_axis(x, axis, before, after, _MODES[mode])
    return x


def _padded_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Copies around one axis; more than one round of them where the axis is short."""
    def sides(a: int, b: int) -> tuple[tuple[int, int], ...]:
        return tuple((a, b) if i == axis else (0, 0) for i in range(x.ndim))
    if before < 0 or after < 0:
        x = x.pad(sides(min(before, 0), min(after, 0)))
        before, after = max(before, 0), max(after, 0)
    if (before + after) > 256 * max(1, x.shape[axis]):
        raise ValueError(f"cannot pad axis {axis} of shape {x.shape} by {before} and {after} copies of itself: use a "
                         "constant")
    while before or after:
        n = x.shape[axis]
        limit = n - 1 if mode == "reflect" else n if mode == "circular" else max(before, after)
        if limit < 1:
            raise ValueError(f"cannot pad axis {axis} of shape {x.shape} by {mode} copies")
        low, high = min(before, limit), min(after, limit)
        x = x.pad(sides(low, high), mode=mode)
        before, after = before - low, after - high
    return x


@op("Pad")
def pad_first(x: Tensor, *, paddings: list[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """More elements around (before opset 2)."""
    return _padded(x, paddings, list(range(x.ndim)), mode, value)


@op("Pad", since=2)
def pad_attributes(x: Tensor, *, pads: list[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """More elements around (before opset 11)."""
    return _padded(x, pads, list(range(x.ndim)), mode, value)


@op("Pad", since=11, host="pads axes value")
def pad(x: Tensor, pads: Array, value: Array | None = None, axes: Array | None = None, *,
        mode: str = "constant") -> Tensor:
    """More elements around the given axes: a value, mirrored, edge or cyclic copies; negative pads cut."""
    chosen = list(range(x.ndim)) if axes is None else positive_axes(ints(axes), x.ndim)
    number = 0 if value is None or value.size == 0 else value.reshape(()).item()
    return _padded(x, ints(pads), chosen, mode, number)


@op("CenterCropPad", host="shape")
def center_crop_pad(x: Tensor, shape: Array, *, axes: list[int] | None = None) -> Tensor:
    """Cut or padded with zeros to ``shape``, around the middle."""
    chosen = positive_axes(list(range(x.ndim)) if axes is None else axes, x.ndim)
    pairs = [(0, 0)] * x.ndim
    for a, want in zip(chosen, ints(shape)):
        missing = want - x.shape[a]
        before = missing // 2 if missing >= 0 else -((-missing) // 2)
        pairs[a] = (before, missing - before)
    return x.pad(tuple(pairs))


# *** blocks ***
@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels laid out as blocks of space."""
    n, c, *space = x.shape
    k = len(space)
    blocks = [blocksize] * k
    inner = c // blocksize**k
    if mode == "DCR":
        y = x.reshape((n, *blocks, inner, *space))
        order = (0, k + 1, *(v for i in range(k) for v in (k + 2 + i, 1 + i)))
    else:
        y = x.reshape((n, inner, *blocks, *space))
        order = (0, 1, *(v for i in range(k) for v in (k + 2 + i, 2 + i)))
    return y.permute(order).reshape((n, inner, *(s * blocksize for s in space)))


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of space laid out as channels."""
    n, c, *space = x.shape
    k = len(space)
    y = x.reshape((n, c, *(v for s in space for v in (s // blocksize, blocksize))))
    inner, outer = tuple(3 + 2 * i for i in range(k)), tuple(2 + 2 * i for i in range(k))
    y = y.permute((0, *inner, 1, *outer) if mode == "DCR" else (0, 1, *inner, *outer))
    return y.reshape((n, c * blocksize**k, *(s // blocksize for s in space)))


# *** constants ***
@op("Constant")
def constant(*, value: Any = None, sparse_value: Any = None, value_int: Any = None, value_ints: Any = None,
             value_float: Any = None, value_floats: Any = None, value_string: Any = None,
             value_strings: Any = None, ctx: Any) -> Any:
    """The value of the node, where it could not be read while loading."""
    from tinyhost.io.onnx.model import _constant
    return from_array(_constant(ctx.node), ctx.device)


@op("ConstantOfShape", raw=True, host="shape")
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Any:
    """One value at a shape."""
    extents = tuple(shape_of(shape))
    if any(s < 0 for s in extents):
        raise ValueError(f"shape {list(extents)} has a negative extent")
    fill = np.zeros(1, np.float32) if value is None else value.reshape(1)
    kind = array_element(fill)
    if kind.dtype is None:
        return np.full(extents, fill[0], dtype=fill.dtype)
    number = float(fill[0]) if kind.dtype.is_float else fill.astype(object)[0]
    exact = number if kind.native else kind.dtype.const(float(fill[0]))
    return narrowed(filled(extents, exact, kind.dtype), kind.tensor_type)


@op("Range", host="start limit delta")
def range_(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Tensor:
    """``start``, ``start + delta`` ... before ``limit``."""
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    kind = array_element(start)
    assert kind.dtype is not None
    if step == 0:
        raise ValueError("Range needs a delta that is not 0")
    count = max(0, math.ceil((last - first) / step))
    if count == 0:
        return filled((0,), 0, kind.dtype)
    number = Tensor.arange(count)
    if kind.dtype.is_float:
        wide = Tensor.arange(count).float() * float(step) + float(first)
        return wide.cast(kind.dtype)
    return (number.cast(kind.dtype) * int(step) + int(first)).cast(kind.dtype)


@op("EyeLike", raw=True)
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    """Ones on diagonal ``k`` of a matrix of the shape of ``x``."""
    from tinyhost.io.onnx.types import element
    kind = element_of(x) if dtype is None else element(dtype)
    rows, columns = x.shape
    hit = (Tensor.arange(rows).reshape((rows, 1)) + k).eq(Tensor.arange(columns))
    return narrowed(hit.where(1, 0), kind.tensor_type)


@op("Trilu", host="k")
def trilu(x: Tensor, k: Array | None = None, *, upper: int = 1) -> Tensor:
    """The upper or lower triangle of the last two axes, 0 elsewhere."""
    offset = 0 if k is None else int(k.reshape(()).item())
    rows, columns = x.shape[-2:]
    limit = rows + columns
    offset = min(max(offset, -limit), limit)
    return x.triu(offset) if upper else x.tril(offset)


