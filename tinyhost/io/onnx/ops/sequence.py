"""Sequences, which are lists, and optional values, which may be None."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.io.onnx.call import Call, scalar
from tinyhost.io.onnx.ops.control import stacked
from tinyhost.io.onnx.ops.shape import equal_sizes, ints
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Narrow, to_array


def _position(index: Any, length: int, end: int) -> int:
    """A place in a list, counted from the end where negative.

    Raises:
        IndexError: it is outside.
    """
    at = int(scalar(index))
    if not -length <= at < length + end:
        raise IndexError(f"position {at} is outside of a sequence of {length}")
    return at + length if at < 0 else at


@op("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> tuple[list[Any]]:
    """A sequence of nothing."""
    return ([],)


@op("SequenceConstruct", raw=True)
def sequence_construct(*values: Any) -> tuple[list[Any]]:
    """The inputs as a sequence."""
    return (list(values),)


@op("SequenceInsert", raw=True)
def sequence_insert(sequence: list[Any], value: Any, position: Any = None) -> tuple[list[Any]]:
    """With a value at a position, at the end by default."""
    at = len(sequence) if position is None else _position(position, len(sequence), 1)
    return ([*sequence[:at], value, *sequence[at:]],)


@op("SequenceErase", raw=True)
def sequence_erase(sequence: list[Any], position: Any = None) -> tuple[list[Any]]:
    """Without the value at a position, the last by default."""
    at = len(sequence) - 1 if position is None else _position(position, len(sequence), 0)
    return ([*sequence[:at], *sequence[at + 1:]],)


@op("SequenceAt", raw=True)
def sequence_at(sequence: list[Any], position: Any) -> tuple[Any]:
    """The value at a position."""
    return (sequence[_position(position, len(sequence), 0)],)


@op("SequenceLength", raw=True)
def sequence_length(sequence: list[Any]) -> Any:
    """Number of values."""
    return np.array(len(sequence), np.int64)


@op("ConcatFromSequence", raw=True)
def concat_from_sequence(sequence: list[Any], *, axis: int, new_axis: int = 0, ctx: Call) -> tuple[Any]:
    """The values one after the other, or along a new axis."""
    if not sequence:
        raise ValueError("cannot join an empty sequence: its element shape is not known")
    if new_axis:
        return (stacked(sequence, axis, ctx),)
    if all(isinstance(v, np.ndarray) for v in sequence):
        return (np.concatenate(sequence, axis=axis),)
    first, *rest = (ctx.lift(v) for v in sequence)
    return (first.cat(*rest, dim=axis),)


@op("SplitToSequence", raw=True)
def split_to_sequence(x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1, ctx: Call) -> tuple[list[Any]]:
    """Pieces along an axis: of one size, of given sizes, or single slices."""
    extent = x.shape[axis]
    if split is None:
        sizes = [1] * extent
    elif np.ndim(size := to_array(split)) == 0:
        step = int(size)
        sizes = equal_sizes(extent, -(-extent // step)) if extent % step == 0 else \
            [min(step, extent - i) for i in range(0, extent, step)]
    else:
        sizes, keepdims = ints(size), 1
    if isinstance(x, np.ndarray):
        parts: list[Any] = np.split(x, np.cumsum(sizes)[:-1], axis=axis)
        return ([p if keepdims else np.squeeze(p, axis) for p in parts],)
    data = ctx.lift(x)
    tensors = [p if keepdims else p.squeeze(axis) for p in data.split(sizes, dim=axis)]
    return ([Narrow(p, x.element) for p in tensors] if isinstance(x, Narrow) else list(tensors),)


@op("SequenceMap", raw=True)
def sequence_map(sequence: list[Any], *others: Any, body: Any, ctx: Call) -> tuple[list[Any], ...]:
    """The body for each value of the sequence; other sequences go along, tensors stay."""
    for o in others:
        if isinstance(o, list) and len(o) != len(sequence):
            raise ValueError(f"sequences of {len(sequence)} and {len(o)} values cannot go along")
    rows = [ctx.run(body, [v, *(o[i] if isinstance(o, list) else o for o in others)])
            for i, v in enumerate(sequence)]
    return tuple([r[k] for r in rows] for k in range(len(body.outputs)))


@op("Optional", raw=True)
def optional(value: Any = None, *, type: Any = None) -> tuple[Any]:
    """The value, or an empty optional."""
    return (value,)


@op("OptionalHasElement", raw=True)
def optional_has_element(value: Any = None) -> Any:
    """Whether the optional holds something."""
    return np.array(value is not None)


@op("OptionalGetElement", raw=True)
def optional_get_element(value: Any) -> tuple[Any]:
    """What the optional holds."""
    if value is None:
        raise ValueError("the optional is empty")
    return (value,)
