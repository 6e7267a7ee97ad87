"""What may stand between the brackets of a tensor, brought to few kinds before axes are assigned.

Takes entries as users write them; gives ints, slices, None, Ellipsis, tensors and numpy arrays of integers or bools.
Lists, tuples, ranges and foreign arrays become numpy arrays, bools become 0-d arrays. Nothing is computed here.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError

_SEQUENCES = (list, tuple, range)


def normal_entries(indices: Any, tensor_class: type[Any]) -> list[Any]:
    """The entries of an index, each of a kind that ``parse_index`` knows or an array.

    Raises:
        DTypeError: a sequence holds neither integers nor bools.
    """
    entries = indices if isinstance(indices, tuple) else (indices,)
    return [_normal_entry(e, tensor_class) for e in entries]


def _normal_entry(e: Any, tensor_class: type[Any]) -> Any:
    if isinstance(e, tensor_class):
        return e
    if isinstance(e, _SEQUENCES) and any(isinstance(x, tensor_class) for x in e):
        first = next(x for x in e if isinstance(x, tensor_class))
        return first._stack([first.ufix(x) for x in e])
    if not isinstance(e, (bool, *_SEQUENCES)) and not hasattr(e, "__array__"):
        return e
    array = np.asarray(e)
    if array.size == 0 and not hasattr(e, "dtype"):
        array = array.astype(np.int32)  # numpy calls an empty list floats
    if array.dtype.kind in "iu":
        return int(array) if array.ndim == 0 else array
    if array.dtype.kind == "b":
        return array
    raise DTypeError(f"an index holds integers or bools, got {type(e).__name__} of {array.dtype}: cast it first")


def is_mask(e: Any) -> bool:
    """Whether an entry selects by bools."""
    return e.dtype == np.bool_ if isinstance(e, np.ndarray) else getattr(e, "dtype", None) is dtypes.bool


def axes_taken(e: Any) -> int:
    """How many axes of the indexed tensor an entry stands for."""
    if e is None or e is Ellipsis:
        return 0
    return int(e.ndim) if is_mask(e) else 1


def without_ellipsis(entries: list[Any], shape: tuple[Any, ...]) -> list[Any]:
    """The entries with an Ellipsis, or the end, filled up by whole axes.

    Raises:
        IndexError: two ellipses, too many indices, or a mask that does not have the extents of its axes.
    """
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("indices can only have a single ellipsis")
    if (taken := sum(map(axes_taken, entries))) > len(shape):
        raise IndexError(f"too many indices: {taken} for shape {shape} of {len(shape)} axes")
    at = dots[0] if dots else len(entries)
    out = [*entries[:at], *[slice(None)] * (len(shape) - taken), *entries[at + len(dots):]]
    axis = 0
    for e in out:
        if is_mask(e) and tuple(e.shape) != tuple(shape[axis:axis + e.ndim]):
            raise IndexError(f"a bool mask of shape {tuple(e.shape)} cannot select from axes {axis} to "
                             f"{axis + e.ndim - 1} of shape {shape}: the extents must be equal")
        axis += axes_taken(e)
    return out
