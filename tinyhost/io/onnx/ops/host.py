"""Operators on numpy arrays: shape arithmetic, and strings.

These are taken when every input of a node is on the host already. Results that would be large are left to the
Tensor forms. Integers divide as in C and wrap as numpy does.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.io.onnx.call import HOST_LIMIT
from tinyhost.io.onnx.ops.shape import equal_sizes, expanded_shape, ints, positive_axes, shape_of, slices, target_shape
from tinyhost.io.onnx.registry import host_op
from tinyhost.io.onnx.types import STRING, Array, array_element, element


def _quotient(x: Array, y: Array) -> Array:
    """Integers truncate toward zero; division by zero is left to the device's rule."""
    if x.dtype.kind not in "iu":
        return np.asarray(x / y)
    out = np.asarray(x // np.where(y == 0, 1, y))
    wrong = (out < 0) & (out * y != x) if x.dtype.kind == "i" else np.zeros(out.shape, bool)
    return np.asarray(np.where(y == 0, 0, out + wrong), dtype=x.dtype)


_BINARY: dict[str, Any] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _quotient, "And": np.logical_and,
    "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal, "Greater": np.greater, "Less": np.less,
    "GreaterOrEqual": np.greater_equal, "LessOrEqual": np.less_equal,
}
_UNARY: dict[str, Any] = {"Neg": np.negative, "Abs": np.abs, "Not": np.logical_not, "Floor": np.floor,
                          "Ceil": np.ceil, "Sqrt": np.sqrt, "Round": np.rint, "Sign": np.sign}
_NUMPY = "fiub"


def _plain(*arrays: Array | None) -> bool:
    """Whether numpy computes with these as they are."""
    return all(a is None or a.dtype.kind in _NUMPY for a in arrays)


def _register_elementwise() -> None:
    def binary(fn: Any) -> Any:
        def run(x: Array, y: Array) -> Any:
            if not _plain(x, y) and fn is not np.equal:
                return NotImplemented
            return np.asarray(fn(x, y))
        return run

    def unary(fn: Any) -> Any:
        def run(x: Array) -> Any:
            return np.asarray(fn(x)) if _plain(x) else NotImplemented
        return run
    for name, fn in _BINARY.items():
        host_op(name, since=7)(binary(fn))
    for name, fn in _UNARY.items():
        host_op(name)(unary(fn))


_register_elementwise()


@host_op("Mod")
def mod(x: Array, y: Array, *, fmod: int = 0) -> Any:
    """Remainder."""
    if not _plain(x, y) or np.any(y == 0):
        return NotImplemented
    return np.asarray(np.fmod(x, y) if fmod else np.mod(x, y))


@host_op("Max", "Min", since=8)
def extreme(*values: Array, ctx: Any) -> Any:
    """Largest or smallest of the inputs."""
    if not _plain(*values):
        return NotImplemented
    fn = np.maximum if ctx.node.op == "Max" else np.minimum
    out = values[0]
    for v in values[1:]:
        out = fn(out, v)
    return out


@host_op("Where")
def where(condition: Array, x: Array, y: Array) -> Any:
    """A choice of elements."""
    return np.where(condition, x, y)


@host_op("Cast", since=6)
def cast(x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Between numbers that numpy has; nothing that overflows."""
    kind = element(to)
    if kind is STRING or not _plain(x) or kind.array.kind not in _NUMPY:
        return NotImplemented
    if x.dtype.kind == "f" and kind.array.kind in "iu":
        info = np.iinfo(kind.array)
        if not np.all(np.isfinite(x)) or np.any(x < float(info.min)) or np.any(x >= float(info.max)):
            return NotImplemented
    return x.astype(kind.array)


# *** shapes ***
@host_op("Reshape", since=5)
def reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """Under another shape."""
    return x.reshape(target_shape(x.shape, shape_of(shape), allowzero))


@host_op("Flatten")
def flatten(x: Array, *, axis: int = 1) -> Array:
    """As a matrix."""
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@host_op("Transpose")
def transpose(x: Array, *, perm: list[int] | None = None) -> Array:
    """Axes in another order."""
    return x.transpose(perm)


@host_op("Squeeze", since=13)
def squeeze(x: Array, axes: Array | None = None) -> Array:
    """Without axes of extent 1."""
    return np.squeeze(x, None if axes is None else tuple(positive_axes(ints(axes), x.ndim)))


@host_op("Squeeze", since=1)
def squeeze_attribute(x: Array, *, axes: list[int] | None = None) -> Array:
    """Without axes of extent 1 (before opset 13)."""
    return squeeze(x, None if axes is None else np.array(axes))


@host_op("Unsqueeze", since=13)
def unsqueeze(x: Array, axes: Array) -> Array:
    """With new axes."""
    return np.expand_dims(x, tuple(positive_axes(shape_of(axes), x.ndim + axes.size)))


@host_op("Unsqueeze", since=1)
def unsqueeze_attribute(x: Array, *, axes: list[int]) -> Array:
    """With new axes (before opset 13)."""
    return unsqueeze(x, np.array(axes))


@host_op("Concat", since=4)
def concat(*values: Array, axis: int) -> Array:
    """One after the other."""
    return np.concatenate(values, axis=axis)


@host_op("Gather")
def gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    """Slices at indices."""
    return np.take(x, indices, axis=axis)


@host_op("Slice", since=10)
def slice_(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """A box."""
    return x[slices(x.shape, ints(starts), ints(ends), None if axes is None else ints(axes),
                    None if steps is None else ints(steps))]


@host_op("Slice", since=1)
def slice_attributes(x: Array, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Array:
    """A box (before opset 10)."""
    return x[slices(x.shape, starts, ends, axes, None)]


@host_op("Split", since=13)
def split(x: Array, split: Array | None = None, *, axis: int = 0, num_outputs: int | None = None, ctx: Any) -> Any:
    """Pieces."""
    count = len(ctx.node.outputs) if num_outputs is None else num_outputs
    sizes = ints(split) if split is not None else equal_sizes(x.shape[axis], count, len(ctx.node.outputs))
    if sum(sizes) != x.shape[axis] or min(sizes) < 0:
        raise ValueError(f"sizes {sizes} do not add up to {x.shape[axis]}")
    return list(np.split(x, np.cumsum(sizes)[:-1], axis=axis))


@host_op("Expand")
def expand(x: Array, shape: Array) -> Any:
    """Broadcast, while the result is small."""
    new = expanded_shape(x.shape, shape_of(shape))
    return np.broadcast_to(x, new).copy() if math.prod(new) <= HOST_LIMIT else NotImplemented


@host_op("Tile", since=6)
def tile(x: Array, repeats: Array) -> Any:
    """Side by side, while the result is small."""
    counts = ints(repeats)
    if len(counts) != x.ndim or x.size * math.prod(counts) > HOST_LIMIT or min(counts, default=0) < 0:
        return NotImplemented
    return np.tile(x, counts)


@host_op("ConstantOfShape")
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Any:
    """One integer at a small shape; larger ones and floats are left to the device."""
    extents = tuple(shape_of(shape))
    fill = np.zeros(1, np.float32) if value is None else value.reshape(1)
    if fill.dtype.kind not in "iub" or len(extents) > 1 or min(extents, default=0) < 0 \
            or math.prod(extents) > HOST_LIMIT:
        return NotImplemented
    return np.full(extents, fill[0], dtype=fill.dtype)


@host_op("Range")
def range_(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Any:
    """Numbers in order, while they are few."""
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    if start.dtype.kind not in "iu" or step == 0 or abs((last - first) / step) > 1024:
        return NotImplemented
    return np.arange(first, last, step, dtype=start.dtype)


# *** reductions ***
def _reduction(name: str, fn: Any) -> None:
    def run(x: Array, axes: Any, keepdims: int) -> Any:
        if x.dtype.kind not in "iu":
            return NotImplemented
        chosen = None if axes is None else tuple(positive_axes([int(a) for a in axes], x.ndim))
        if x.size == 0:
            return NotImplemented
        return np.asarray(fn(x, axis=chosen, keepdims=bool(keepdims)), dtype=x.dtype)

    def by_attribute(x: Array, *, axes: list[int] | None = None, keepdims: int = 1) -> Any:
        return run(x, axes, keepdims)

    def by_input(x: Array, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        if axes is None or axes.size == 0:
            return x if noop_with_empty_axes else run(x, None, keepdims)
        return run(x, axes.reshape(-1), keepdims)
    host_op(name)(by_attribute)
    host_op(name, since=13 if name == "ReduceSum" else 18)(by_input)


for _name, _fn in {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}.items():
    _reduction(_name, _fn)


@host_op("Unique", since=11)
def unique(x: Array, *, axis: int | None = None, sorted: int = 1) -> Any:
    """Left to the form that reads its data, strings included."""
    from tinyhost.io.onnx.ops.reduction import unique as form
    return form(x.astype(str).astype(object) if array_element(x) is STRING else x, axis=axis, sorted=sorted)
