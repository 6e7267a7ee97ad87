"""Reading and writing items of tensors.

Integers and slices are views. Integer tensors gather: their elements count from the end when negative and read 0 when out
of range; several of them broadcast together. Results of integer tensors stand where the indexed axes stood if those are
neighbours, else in front, as in torch. Writing through a view is a store into the storage below it.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import canonical_device, is_stored, store_in_new_buffer
from tinyhost._tensor.storage import StorageTensor, move_views
from tinyhost.dtype import Invalid, dtypes, strong_dtype
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.mixin.indexing import AxisIndex, parse_index
from tinyhost.mixin.sint import broadcast_shape
from tinyhost.ops import Ops
from tinyhost.uop import UOp

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
        entries = self._parsed(indices)
        if self.dtype.is_weak:
            self.uop = store_in_new_buffer(self.uop, canonical_device(self.device))
        if any(e.kind == "node" for e in entries) or any(abs(e.step) != 1 for e in entries):
            self._write_where(entries, v)
            return
        region = self._sliced(entries)
        if isinstance(v, ItemTensor) and v.uop is region.uop:
            return  # x[i] += 1 has stored already
        value = self._value_for(v, region.shape, "setitem")
        if is_stored(self.uop):
            self._store_region(region.uop, value)
        elif self.uop is self.uop.base:
            self._replace_base(self._with_box(entries, value))
        else:
            self._own_base()
            self._store_region(self._sliced(entries).uop, value)

    def _store_region(self, region: UOp, value: Self) -> None:
        base = self.uop.base
        stored = value.uop
        if base in stored.toposort(enter_calls=False):  # what is read must not be half overwritten
            stored = stored.contiguous() if stored.op is not Ops.CONTIGUOUS else stored
        move_views(base, base.after(region.store(stored)))

    def _own_base(self) -> None:
        """Give the value that self is a view of storage of its own, seen by every view of it."""
        base = self.uop.base
        move_views(base, store_in_new_buffer(base, canonical_device(base.device)))

    def _replace_base(self, new: Self) -> None:
        """Let self and all views of it stand for the new value."""
        move_views(self.uop, new.uop)

    def _with_box(self, entries: list[AxisIndex], value: Self) -> Self:
        """Self with ``value`` in the box of the entries, which are integers and slices of step 1."""
        axes = [e for e in entries if e.kind != "new"]
        flipped = tuple(i for i, e in enumerate(axes) if e.step < 0)
        lows = [e.start if e.step > 0 else e.start - e.length + 1 for e in axes]
        box = tuple((low, s - low - e.length) for low, e, s in zip(lows, axes, self.shape))
        value = value.reshape(tuple(e.length for e in axes))
        value = value.flip(flipped) if flipped else value
        mask = self._const(True)._broadcast_to(value.shape)._pad_box(box)
        return mask.where(value._pad_box(box), self)

    def _write_where(self, entries: list[AxisIndex], v: Any) -> None:
        """Write through integer tensors or strided slices: every element looks up what is written to it."""
        numbers = type(self)._iota(self.numel()).cast(dtypes.int32).reshape(self.shape)
        places = numbers._sliced(entries)
        kept = [e for e in entries if e.kind != "one"]
        nodes = {i: e.node for i, e in enumerate(kept) if e.kind == "node"}
        places = places._gathered(nodes) if nodes else places
        value = self._value_for(v, places.shape, "setitem").flatten()
        flat = places.flatten()
        if nodes:  # an index out of range writes nowhere
            _, valid = numbers._sliced(entries)._linear_selector(nodes)
            if valid is not None:
                axes, rest = list(nodes), places.ndim - valid.ndim
                inside = valid.reshape((*valid.shape, *(1,) * rest)).permute(_result_order(axes, valid.ndim, rest))
                flat = inside._broadcast_to(places.shape).flatten().where(flat, -1)
        new = self._scattered(flat, value)
        if is_stored(self.uop):
            self._store(new)
        elif self.uop is self.uop.base:
            self._replace_base(new)
        else:
            self._own_base()
            self._store(new)

    def _scattered(self, flat: Self, value: Self) -> Self:
        """Self with ``value[k]`` at flat position ``flat[k]``; of several the last one stays."""
        count = flat.shape[0]
        hit = flat.reshape((count, 1)).eq(self._iota(self.numel()).cast(dtypes.int32))
        order = (self._iota(count) + 1).cast(dtypes.int32).reshape((count, 1))
        last = hit.where(order, 0).max(0)
        inside = last > 0
        chosen = value.index(inside.where(last - 1, last._const(Invalid)))
        old = self.flatten()
        return inside.where(chosen.cast(strong_dtype(self.dtype)), old).reshape(self.shape)


def _result_order(axes: list[int], selected: int, rest: int) -> tuple[int, ...]:
    """Order that moves the axes of an index result from the front to where the indexed axes stood, if they adjoin."""
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return tuple(range(selected + rest))
    before = axes[0]
    return (*range(selected, selected + before), *range(selected), *range(selected + before, selected + rest))
