"""Reading and writing items of tensors.

Integers and slices are views. Integer tensors gather: their elements count from the end when negative and read 0 when
out of range; several of them broadcast together. Results of integer tensors stand where the indexed axes stood if
those are neighbours, else in front, as in torch. Writing through a view is a store into the storage below it.
"""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import canonical_device, store_in_new_buffer
from tinyhost._tensor.storage import StorageTensor
from tinyhost._tensor.views import move_family, root_of, storage_of
from tinyhost.dtype import Invalid, dtypes
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.mixin.indexing import AxisIndex, parse_index
from tinyhost.mixin.sint import broadcast_shape

if TYPE_CHECKING:
    from typing import Self

_ARRAYS = (list, tuple)


class ItemTensor(StorageTensor):
    """``x[i]`` and ``x[i] = v``."""

    __slots__ = ()

    def _is_selector(self, e: Any) -> bool:
        return isinstance(e, (ItemTensor, *_ARRAYS)) or (hasattr(e, "__array__") and getattr(e, "ndim", 0) > 0)

    def _parsed(self, indices: Any) -> list[AxisIndex]:
        if isinstance(indices, list):
            indices = (indices,)
        return parse_index(self.shape, indices, self._is_selector)

    def __getitem__(self, indices: Any) -> Self:
        entries = self._parsed(indices)
        x = self._sliced(entries)
        if not any(e.kind == "node" for e in entries):
            return x
        kept = [e for e in entries if e.kind != "one"]
        return x._gathered({i: e.node for i, e in enumerate(kept) if e.kind == "node"})

    # *** gathering ***
    def _selector(self, node: Any, axis: int) -> tuple[Self, Self | None]:
        """An index of ``axis`` as non-negative integers, and where it is in range (None: everywhere)."""
        size = self.shape[axis]
        if not isinstance(node, ItemTensor):
            known = type(self)(node)
            if known.dtype.is_int and isinstance(size, int):
                return self._known_selector(node, size, axis), None
            node = known
        index: Self = node
        if index.dtype is dtypes.bool:
            raise IndexError(f"a bool mask for axis {axis} has a result of unknown size: use masked_select or where")
        if not index.dtype.is_int:
            raise DTypeError(f"an index is an integer tensor, got {index.dtype} for axis {axis}: cast it to int32")
        if index.device is not None and self.device is not None and index.device != self.device:
            raise RuntimeError(f"index on {index.device} for a tensor on {self.device}: move it with .to()")
        wide = index.dtype if index.dtype.bitsize in (32, 64) else dtypes.int32
        index = index.cast(dtypes.int64 if wide is dtypes.uint32 else wide)
        if index.dtype.is_unsigned:
            return index, index < size
        index = (index < 0).where(index + size, index)
        return index, (index >= 0) & (index < size)

    def _known_selector(self, values: Any, size: int, axis: int) -> Self:
        """Python integers, checked against the axis."""
        import numpy as np
        array = np.asarray(values)
        if array.size and not (-size <= array.min() and array.max() < size):
            bad = array[(array < -size) | (array >= size)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for axis {axis} of size {size}")
        device = None if self.device is None else canonical_device(self.device)
        return type(self)(np.where(array < 0, array + size, array).astype(np.int32), device=device)

    def _linear_selector(self, nodes: dict[int, Any]) -> tuple[Self, Self | None]:
        """Indices of several axes as one index into the flattened axes."""
        selectors = [self._selector(node, axis) for axis, node in nodes.items()]
        extents = [self.shape[axis] for axis in nodes]
        huge = not all(isinstance(s, int) for s in extents) or prod(extents) > dtypes.int32.max
        linear: Self | None = None
        valid: Self | None = None
        for i, (index, inside) in enumerate(selectors):
            term = (index.cast(dtypes.int64) if huge else index) * prod(extents[i + 1:])
            linear = term if linear is None else linear + term
            if inside is not None:
                valid = inside if valid is None else valid & inside
        assert linear is not None
        shape = broadcast_shape(*(s.shape for s, _ in selectors))
        return linear._broadcast_to(shape), None if valid is None else valid._broadcast_to(shape)

    def _gathered(self, nodes: dict[int, Any]) -> Self:
        linear, valid = self._linear_selector(nodes)
        axes = list(nodes)
        rest = [i for i in range(self.ndim) if i not in nodes]
        x = self.permute((*axes, *rest))
        x = x.reshape((prod(x.shape[:len(axes)]), *x.shape[len(axes):]))
        if valid is None:
            out = x.index(linear)
        else:
            gated = valid.where(linear, linear._const(Invalid))
            out = valid.reshape((*valid.shape, *(1,) * len(rest))).where(x.index(gated), x._const(0, x.dtype))
        return out.permute(_result_order(axes, linear.ndim, len(rest)))

    # *** writing ***
    def __setitem__(self, indices: Any, v: Any) -> None:
        entries = self._with_tensors(self._parsed(indices))
        self._own_storage()
        if storage_of(self.uop) is None and self.uop is not root_of(self.uop):
            root = root_of(self.uop)
            move_family(self, root, store_in_new_buffer(root, canonical_device(root.device)))
        boxes = [replace(e, kind="slice", node=None) if e.kind == "node" else e for e in entries]
        region = self._sliced(boxes)
        nodes = {i: e.node for i, e in enumerate(e for e in entries if e.kind != "one") if e.kind == "node"}
        if nodes:
            self._write_box(boxes, region._with_rows(nodes, v), reads_in_place=True)
            return
        if isinstance(v, ItemTensor) and v.uop is region.uop:
            return  # x[i] += 1 has stored already
        self._write_box(boxes, self._value_for(v, region.shape, "setitem"))

    def _with_tensors(self, entries: list[AxisIndex]) -> list[AxisIndex]:
        """The entries with lists and arrays as tensors, checked against their axes."""
        axis, out = -1, []
        for e in entries:
            axis += e.kind != "new"
            if e.kind == "node" and not isinstance(e.node, ItemTensor):
                e = replace(e, node=self._known_selector(e.node, e.length, axis))
            out.append(e)
        return out

    def _write_box(self, entries: list[AxisIndex], value: Self, reads_in_place: bool = False) -> None:
        """Write what integers and slices select; every view of the same value sees it.

        ``reads_in_place`` promises that each element of ``value`` reads self at its own place only.
        """
        if storage_of(self.uop) is None:
            move_family(self, self.uop, self._with_box(entries, value).uop)
            return
        place = self.uop
        if any(abs(e.step) != 1 for e in entries):
            value, reads_in_place = self._with_box(entries, value), True
        else:
            place = self._sliced(entries).uop
        stored = value.uop
        if not reads_in_place and root_of(place) in stored.toposort(enter_calls=False):
            stored = stored.contiguous()  # what is read must not be half overwritten
        self._store(place, stored)

    def _with_box(self, entries: list[AxisIndex], value: Self) -> Self:
        """Self with ``value`` where the entries select: the value spread out and padded, and the mask of that."""
        axes = [e for e in entries if e.kind != "new"]
        value = value.reshape(tuple(e.length for e in axes))
        flipped = tuple(i for i, e in enumerate(axes) if e.step < 0)
        value = value.flip(flipped) if flipped else value
        mask = self._const(True)._broadcast_to(value.shape)
        return mask._spread_over(axes, self.shape).where(value._spread_over(axes, self.shape), self)

    def _spread_over(self, axes: list[AxisIndex], shape: tuple[Any, ...]) -> Self:
        """Element k of each axis at ``start + k * step`` of a larger box; what is between must not be looked at."""
        if 0 in self.shape:
            return self._const(0, self.dtype)._broadcast_to(shape)
        strides = [abs(e.step) for e in axes]
        x = self
        if any(s > 1 for s in strides):
            x = x.reshape(tuple(v for e in axes for v in (e.length, 1)))
            x = x._pad_box(tuple(v for s in strides for v in ((0, 0), (0, s - 1))))
            x = x.reshape(tuple(e.length * s for e, s in zip(axes, strides)))
            x = x.shrink(tuple((0, e.length * s - s + 1) for e, s in zip(axes, strides)))
        lows = [e.start if e.step > 0 else e.start + (e.length - 1) * e.step for e in axes]
        return x._pad_box(tuple((low, s - low - n) for low, s, n in zip(lows, shape, x.shape)))

    def _with_rows(self, nodes: dict[int, Any], v: Any) -> Self:
        """Self with ``v`` written at indices of some axes: of several writes to a place the last one stays."""
        linear, valid = self._linear_selector(nodes)
        axes, rest = list(nodes), [i for i in range(self.ndim) if i not in nodes]
        order = _result_order(axes, linear.ndim, len(rest))
        x = self.permute((*axes, *rest))
        moved = (*linear.shape, *(self.shape[i] for i in rest))
        value = self._value_for(v, tuple(moved[i] for i in order), "setitem")
        value = value.permute(tuple(order.index(i) for i in range(len(order))))
        rows, count = prod(x.shape[:len(axes)]), linear.numel()
        place = linear if valid is None else valid.where(linear, -1)
        hit = place.reshape((count, 1)).eq(self._iota(rows).cast(place.dtype))
        number = (self._iota(count) + 1).cast(dtypes.int32).reshape((count, 1))
        last = hit.where(number, 0).max(0).reshape((rows, *(1,) * len(rest)))
        chosen = value.reshape((count, *moved[linear.ndim:])).index(
            (last.flatten() > 0).where(last.flatten() - 1, last._const(Invalid)))
        new = (last > 0).where(chosen, x.reshape((rows, *x.shape[len(axes):]))).reshape(x.shape)
        back = (*axes, *rest)
        return new.permute(tuple(back.index(i) for i in range(len(back))))


def _result_order(axes: list[int], selected: int, rest: int) -> tuple[int, ...]:
    """Order that moves the axes of an index result from the front to where the indexed axes stood, if they adjoin."""
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return tuple(range(selected + rest))
    before = axes[0]
    return (*range(selected, selected + before), *range(selected), *range(selected + before, selected + rest))
