"""Reading and writing items of tensors.

Integers and slices are views. Integer tensors gather: their elements count from the end when negative and read 0 when
out of range; several of them broadcast together. A bool mask of k axes is the k integer tensors of its true places,
found by running kernels. Results of integer tensors stand where the indexed axes stood if those are neighbours, else
in front; integers and 0-d tensors are applied before, as in torch. Writing through a view is a store into the storage
below it; of several writes to one element the last one stays.
"""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhost._tensor.core import canonical_device, store_in_new_buffer
from tinyhost._tensor.selectors import axes_taken, is_mask, normal_entries, without_ellipsis
from tinyhost._tensor.storage import StorageTensor
from tinyhost._tensor.views import move_family, root_of, storage_of
from tinyhost.dtype import Invalid, dtypes
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import prod
from tinyhost.mixin.indexing import AxisIndex, parse_index
from tinyhost.mixin.sint import broadcast_shape, is_one

if TYPE_CHECKING:
    from typing import Self

_COMPARISONS = 1 << 27  # more than so many pairs of index and place: sort the indices instead


class ItemTensor(StorageTensor):
    """``x[i]`` and ``x[i] = v``."""

    __slots__ = ()

    if TYPE_CHECKING:
        def nonzero(self, size: int | None = None, fill_value: Any = 0) -> Self: ...

    def _is_selector(self, e: Any) -> bool:
        return isinstance(e, (ItemTensor, np.ndarray))

    def _listed(self, indices: Any) -> list[Any]:
        return without_ellipsis(normal_entries(indices, ItemTensor), self.shape)

    def __getitem__(self, indices: Any) -> Self:
        x, listed = self._without_masks(self._listed(indices))
        entries = parse_index(x.shape, tuple(listed), x._is_selector)
        sliced = x._sliced(entries)
        kept = [e for e in entries if e.kind != "one"]
        nodes = {i: e.node for i, e in enumerate(kept) if e.kind == "node"}
        return sliced._gathered(nodes) if nodes else sliced

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """All elements of ``dim``, each without that axis."""
        dim = self._existing_dim(dim, "unbind")
        return tuple(self.select(dim, i) for i in range(self.shape[dim]))

    def view_as(self, other: Self) -> Self:
        """Reshaped to the shape of ``other``."""
        return self.reshape(other.shape)

    # *** masks ***
    def _without_masks(self, listed: list[Any]) -> tuple[Self, list[Any]]:
        """Self and the entries with masks as integer indices; a 0-d mask indexes an axis of its own."""
        if not any(map(is_mask, listed)):
            return self, listed
        x = self
        if any(is_mask(e) and e.ndim == 0 for e in listed):
            opened = [[None] if is_mask(e) and e.ndim == 0 else [slice(None)] * axes_taken(e) for e in listed]
            x = self[tuple(i for part in opened for i in part)]
        out: list[Any] = []
        for e in listed:
            out += self._places(e) if is_mask(e) else [e]
        return x, out

    def _places(self, mask: Any) -> list[Any]:
        """Coordinates of the true elements of a mask, one index for each of its axes."""
        if isinstance(mask, ItemTensor):
            rows = (mask if mask.ndim else mask.reshape((1,))).nonzero()
            return [rows.select(1, i) for i in range(rows.shape[1])]
        return list(np.nonzero(np.atleast_1d(mask)))

    # *** gathering ***
    def _selector(self, node: Any, axis: int) -> tuple[Self, Self | None]:
        """An index of ``axis`` as non-negative integers, and where it is in range (None: everywhere)."""
        size = self.shape[axis]
        if not isinstance(node, ItemTensor):
            if isinstance(size, int):
                return self._known_selector(node, size, axis), None
            node = type(self)(node)
        index: Self = node
        if not index.dtype.is_int:
            raise DTypeError(f"an index is an integer tensor, got {index.dtype} for axis {axis}: cast it to int32")
        if index.device is not None and self.device is not None and index.device != self.device:
            raise RuntimeError(f"index on {index.device} for a tensor on {self.device}: move it with .to()")
        wide = index.dtype if index.dtype.bitsize in (32, 64) else dtypes.int32
        index = index.cast(dtypes.int64 if wide is dtypes.uint32 else wide)
        if index.dtype.is_unsigned:
            return index.cast(dtypes.int64), index < size
        index = (index < 0).where(index + size, index)
        return index, (index >= 0) & (index < size)

    def _known_selector(self, array: Any, size: int, axis: int) -> Self:
        """Python integers, checked against the axis."""
        if array.size and not (-size <= array.min() and array.max() < size):
            bad = array[(array < -size) | (array >= size)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for axis {axis} of size {size}")
        device = None if self.device is None else canonical_device(self.device)
        signed = array.astype(np.int64)
        counted = np.where(signed < 0, signed + size, signed)
        return type(self)(counted.astype(np.int32 if size <= 2**31 else np.int64), device=device)

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
        order = _result_order(nodes, self.ndim, linear.ndim)
        x = self.permute((*axes, *rest))
        x = x.reshape((prod(x.shape[:len(axes)]), *x.shape[len(axes):]))
        if 0 in x.shape or 0 in linear.shape:
            return self._const(0, self.dtype)._broadcast_to((*linear.shape, *x.shape[1:])).permute(order)._fresh()
        if valid is None:
            return x.index(linear).permute(order)
        gated = valid.where(linear, linear._const(Invalid))
        inside = valid.reshape((*valid.shape, *(1,) * len(rest)))
        return inside.where(x.index(gated), x._const(0, x.dtype)).permute(order)

    # *** writing ***
    def __setitem__(self, indices: Any, v: Any) -> None:
        listed = self._listed(indices)
        masks = [e for e in listed if is_mask(e)]
        if len(masks) == 1 and masks[0].ndim and sum(isinstance(e, (ItemTensor, np.ndarray)) for e in listed) == 1:
            self._write_masked(listed, masks[0], v)
            return
        x, listed = self._without_masks(listed)
        x._write_items(parse_index(x.shape, tuple(listed), x._is_selector), v)

    def _write_items(self, entries: list[AxisIndex], v: Any) -> None:
        entries = self._with_tensors(entries)
        self._prepare_write()
        boxes = [replace(e, kind="slice", node=None) if e.kind == "node" else e for e in entries]
        region = self._sliced(boxes)
        nodes = {i: e.node for i, e in enumerate(e for e in entries if e.kind != "one") if e.kind == "node"}
        if nodes:
            nodes = {i: self._apart(node) for i, node in nodes.items()}
            self._write_box(boxes, region._with_rows(nodes, v, self), reads_in_place=True)
            return
        if isinstance(v, ItemTensor) and v.uop is region.uop:
            return  # x[i] += 1 has stored already
        self._write_box(boxes, self._value_for(v, region.shape, "setitem"))

    def _prepare_write(self) -> None:
        self._own_storage()
        if storage_of(self.uop) is None and self.uop is not root_of(self.uop):
            root = root_of(self.uop)
            move_family(self, root, store_in_new_buffer(root, canonical_device(root.device)))

    def _apart(self, value: Self) -> Self:
        """A value that a write to self does not change while it is being read."""
        if storage_of(self.uop) is None or root_of(self.uop) not in value.uop.toposort(enter_calls=False):
            return value
        return self._wrap(value.uop.contiguous())

    def _with_tensors(self, entries: list[AxisIndex]) -> list[AxisIndex]:
        """The entries with arrays as tensors, checked against their axes."""
        axis, out = -1, []
        for e in entries:
            axis += e.kind != "new"
            if e.kind == "node" and not isinstance(e.node, ItemTensor):
                e = replace(e, node=self._known_selector(e.node, e.length, axis))
            out.append(e)
        return out

    def _write_masked(self, listed: list[Any], mask: Any, v: Any) -> None:
        """Write where one mask among ints and slices is true: one value for all of it, or one for each true element."""
        where: Any = mask if isinstance(mask, ItemTensor) else type(self)(mask, device=self.device)
        if where.device is not None and self.device is not None and where.device != self.device:
            raise RuntimeError(f"mask on {where.device} for a tensor on {self.device}: move it with .to()")
        self._prepare_write()
        opened = [[slice(None)] * mask.ndim if e is mask else [e] for e in listed]
        boxes = parse_index(self.shape, tuple(i for part in opened for i in part), self._is_selector)
        region = self._sliced(boxes)
        at = next(i for i, e in enumerate(listed) if e is mask)
        before = sum(1 for e in listed[:at] if e is None or isinstance(e, slice))
        lead, tail = region.shape[:before], region.shape[before + mask.ndim:]
        where = self._apart(where)
        given = v.shape if isinstance(v, ItemTensor) else np.shape(v)
        if len(given) <= len(tail) or is_one(given[len(given) - len(tail) - 1]):
            value = self._apart(self._value_for(v, (*lead, 1, *tail), "setitem"))
            value = value.reshape((*lead, *(1,) * mask.ndim, *tail))
        else:
            count, have = _count_of(mask), given[len(given) - len(tail) - 1]
            if count != have:
                raise ShapeError(f"setitem of {have} values where the mask of shape {mask.shape} is true {count} times")
            if count == 0:
                return
            value = self._apart(self._value_for(v, (*lead, count, *tail), "setitem"))._spread_where(where, before)
        gate: Self = where.reshape((*(1,) * before, *mask.shape, *(1,) * len(tail)))
        self._write_box(boxes, gate.where(value, region), reads_in_place=True)

    def _spread_where(self, mask: Self, axis: int) -> Self:
        """The elements of ``axis`` one after the other at the true places of a mask, whose axes stand for it then."""
        number = mask.flatten().cast(dtypes.int32).cumsum(0).sub(1).maximum(0).reshape(mask.shape)
        value = self._move_to_front(axis).index(number)
        order = range(mask.ndim, mask.ndim + axis)
        return value.permute((*order, *range(mask.ndim), *range(mask.ndim + axis, value.ndim)))

    def _write_box(self, entries: list[AxisIndex], value: Self, reads_in_place: bool = False) -> None:
        """Write what integers and slices select; every view of the same value sees it.

        ``reads_in_place`` promises that each element of ``value`` reads self at its own place only.
        """
        if storage_of(self.uop) is None:
            move_family(self, self.uop, self._with_box(entries, value).uop)
            return
        place = self.uop
        value = value if reads_in_place else self._apart(value)
        if any(abs(e.step) != 1 for e in entries):
            value = self._with_box(entries, value)
        else:
            place = self._sliced(entries).uop
        self._store(place, value.uop)

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

    def _with_rows(self, nodes: dict[int, Any], v: Any, base: Self) -> Self:
        """Self, a part of ``base``, with ``v`` written at indices of some axes."""
        linear, valid = self._linear_selector(nodes)
        axes, rest = list(nodes), [i for i in range(self.ndim) if i not in nodes]
        order = _result_order(nodes, self.ndim, linear.ndim)
        x = self.permute((*axes, *rest))
        moved = (*linear.shape, *(self.shape[i] for i in rest))
        value = base._apart(self._value_for(v, tuple(moved[i] for i in order), "setitem"))
        value = value.permute(tuple(order.index(i) for i in range(len(order))))
        rows, count = prod(x.shape[:len(axes)]), linear.numel()
        if 0 in (rows, count, *value.shape):
            return self
        last = _last_writes(linear, valid, rows)
        chosen = value.reshape((count, *moved[linear.ndim:])).index((last > 0).where(last - 1, last._const(Invalid)))
        hit = (last > 0).reshape((rows, *(1,) * len(rest)))
        new: Self = hit.where(chosen, x.reshape((rows, *x.shape[len(axes):]))).reshape(x.shape)
        back = (*axes, *rest)
        return new.permute(tuple(back.index(i) for i in range(len(back))))


def _count_of(mask: Any) -> int:
    """How often a mask is true; of a tensor by running kernels."""
    return int(mask.sum()) if isinstance(mask, np.ndarray) else int(mask.cast(dtypes.int32).sum().item())


def _last_writes(linear: Any, valid: Any, rows: int) -> Any:
    """For each of ``rows`` places the number, from 1, of the last index that names it; 0 where none does."""
    count = linear.numel()
    place = (linear if valid is None else valid.where(linear, -1)).reshape((count,))
    if isinstance(count, int) and isinstance(rows, int) and count * rows > _COMPARISONS:
        return _last_of_sorted(place, count, rows)
    hit = place.reshape((count, 1)).eq(linear._iota(rows).cast(place.dtype))
    number = (linear._iota(count) + 1).cast(dtypes.int32).reshape((count, 1))
    return hit.where(number, 0)._largest(0)


def _last_of_sorted(place: Any, count: int, rows: int) -> Any:
    """The same by a stable sort: of equal places the last one written stands last."""
    order = place.argsort(0).contiguous()
    ordered = place.index(order).contiguous()
    wanted = place._iota(rows).cast(place.dtype)
    end = ordered.searchsorted(wanted, right=True)
    before = (end - 1).maximum(0)
    found = (end > 0) & ordered.index(before).eq(wanted)
    return found.where(order.index(before) + 1, 0)


def _result_order(nodes: dict[int, Any], rank: int, selected: int) -> tuple[int, ...]:
    """Order that moves the axes of an index result from the front to where the indexed axes stood, if they adjoin.

    0-d indices take their axes away before that.
    """
    left = [i for i in range(rank) if i not in nodes or nodes[i].ndim]
    axes = [left.index(i) for i in nodes if nodes[i].ndim]
    rest = len(left) - len(axes)
    if not axes or axes != list(range(axes[0], axes[0] + len(axes))):
        return tuple(range(selected + rest))
    before = axes[0]
    return (*range(selected, selected + before), *range(selected), *range(selected + before, selected + rest))
