"""Item access: integers, slices, None, Ellipsis and nodes.

Takes what stands between the brackets; gives views for the first four and INDEX for nodes. Integers and slices are
Python's, checked where the extent is known. Which elements an integer tensor selects is decided by the class.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyhost.helpers import ceildiv
from tinyhost.mixin.movement import MovementMixin
from tinyhost.mixin.sint import resolve, ssimplify

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.mixin.sint import Shape


@dataclass(frozen=True)
class AxisIndex:
    """What one entry does: ``kind`` is "new" (None), "one" (an integer), "slice" or "node".

    ``start`` is the first element and ``length`` how many there are, ``step`` apart. ``node`` selects instead of them.
    """

    kind: str
    start: Any = 0
    length: Any = 1
    step: int = 1
    node: Any = None


def _slice(index: slice, size: Any, axis: int) -> AxisIndex:
    if index.step == 0:
        raise ValueError("slice step cannot be 0")
    bounds = (index.start, index.stop, index.step)
    if isinstance(size, int) and all(b is None or not hasattr(b, "vmin") for b in bounds):
        numbers = range(*index.indices(size))
        return AxisIndex("slice", numbers.start, len(numbers), numbers.step) if numbers else AxisIndex("slice", 0, 0)
    start, stop = 0 if index.start is None else index.start, size if index.stop is None else index.stop
    if index.step not in (None, 1):
        raise IndexError(f"slice {index} of axis {axis} has symbolic bounds: only step 1 is possible")
    start, stop = (ssimplify(b + size) if resolve(b < 0, False) else b for b in (start, stop))
    return AxisIndex("slice", start, ssimplify(stop - start))


def _integer(index: Any, size: Any, axis: int) -> AxisIndex:
    if not (resolve(index >= -size, True) and resolve(index < size, True)):
        raise IndexError(f"index {index} is out of bounds for axis {axis} of size {size}")
    return AxisIndex("one", ssimplify(index + size) if resolve(index < 0, False) else index)


def parse_index(shape: Shape, indices: Any, is_node: Any) -> list[AxisIndex]:
    """One entry for each axis and each new axis, left to right; missing axes are whole.

    Args:
        shape: of the indexed value.
        indices: what stands between the brackets.
        is_node: says whether an entry selects by node.

    Raises:
        IndexError: too many indices, two ellipses, an integer out of bounds, or an entry of another type.
    """
    entries = list(indices) if isinstance(indices, tuple) else [indices]
    if (dots := sum(e is Ellipsis for e in entries)) > 1:
        raise IndexError("indices can only have a single ellipsis")
    taken = sum(e is not None and e is not Ellipsis for e in entries)
    if taken > len(shape):
        raise IndexError(f"too many indices: {taken} for shape {shape} of {len(shape)} axes")
    at = next((i for i, e in enumerate(entries) if e is Ellipsis), len(entries))
    entries[at:at + dots] = [slice(None)] * (len(shape) - taken)
    out, axis = [], 0
    for e in entries:
        if e is None:
            out.append(AxisIndex("new"))
            continue
        out.append(_entry(e, shape[axis], axis, is_node))
        axis += 1
    return out


def _entry(e: Any, size: Any, axis: int, is_node: Any) -> AxisIndex:
    if isinstance(e, slice):
        return _slice(e, size, axis)
    if is_node(e):
        return AxisIndex("node", 0, size, 1, e)
    if isinstance(e, bool):
        raise IndexError(f"a bool is no index, got {e} for axis {axis}: use masked_select or where")
    if hasattr(e, "vmin"):
        return _integer(e, size, axis)
    if hasattr(e, "__index__"):
        return _integer(e.__index__(), size, axis)
    raise IndexError(f"{type(e).__name__} {e!r} is no index for axis {axis}: use ints, slices, None, ..., int tensors")


class IndexMixin(MovementMixin):
    """``x[...]`` over views and the ``index`` hook."""

    __slots__ = ()

    def _sliced(self, entries: list[AxisIndex]) -> Self:
        """Self with integers, slices and new axes applied; axes with nodes stay whole."""
        axes = [e for e in entries if e.kind != "new"]
        x = self._strided(axes)
        shape = iter(x.shape)
        out = []
        for e in entries:
            if e.kind == "new":
                out.append(1)
                continue
            extent = next(shape)
            if e.kind != "one":
                out.append(extent)
        return x.reshape(tuple(out))

    def _strided(self, axes: list[AxisIndex]) -> Self:
        box = []
        for e, s in zip(axes, self.shape):
            stride = abs(e.step)
            if stride == 1:
                low = e.start if e.step > 0 else e.start - e.length + 1
                box.append((low, ssimplify(low + e.length)))
            else:  # as much of the last stride as there is
                low = e.start if e.step > 0 else e.start + (e.length - 1) * e.step
                box.append((low, min(low + e.length * stride, s)))
        x = self.shrink(tuple(box))
        if all(abs(e.step) == 1 for e in axes):
            return x.flip(tuple(i for i, e in enumerate(axes) if e.step < 0)) if any(e.step < 0 for e in axes) else x
        lengths = [ceildiv(s, abs(e.step)) if abs(e.step) > 1 else s for e, s in zip(axes, x.shape)]
        short = tuple((0, n * abs(e.step) - s if abs(e.step) > 1 else 0) for e, n, s in zip(axes, lengths, x.shape))
        x = x._pad_box(short) if any(a for _, a in short) else x
        x = x.reshape(tuple(v for e, n in zip(axes, lengths) for v in (n, abs(e.step))))
        x = x.shrink(tuple(v for e in axes for v in (None, (0, 1)))).reshape(tuple(lengths))
        return x.flip(tuple(i for i, e in enumerate(axes) if e.step < 0)) if any(e.step < 0 for e in axes) else x

    def __getitem__(self, indices: Any) -> Self:
        def is_node(e: Any) -> bool:
            return e.__class__ is self.__class__
        entries = parse_index(self.shape, indices, is_node)
        if not any(e.kind == "node" for e in entries):
            return self._sliced(entries)
        # beside nodes, integers are nodes too: a place in storage is one INDEX
        entries = [AxisIndex("node", 0, s, 1, self.ufix(e.start)) if e.kind == "one" else e
                   for e, s in zip(entries, self._extents_of(entries))]
        x = self._sliced(entries)
        chosen = [i for i, e in enumerate(entries) if e.kind == "node"]
        x = x.permute((*chosen, *(i for i in range(x.ndim) if i not in chosen)))
        return x.index(*(entries[i].node for i in chosen))

    def _extents_of(self, entries: list[AxisIndex]) -> list[Any]:
        shape = iter(self.shape)
        return [1 if e.kind == "new" else next(shape) for e in entries]
