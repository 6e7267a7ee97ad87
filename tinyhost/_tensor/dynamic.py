"""Selections whose size depends on the data.

``size`` fixes the number of results (missing ones are filled); without it the data is counted first, which runs
kernels. True places are found by bisecting a running count, so the work is about the length of the data.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost._tensor.read import ReadTensor
from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import prod
from tinyhost.mixin.sint import broadcast_shape

if TYPE_CHECKING:
    from typing import Self


class DynamicTensor(ReadTensor):
    """masked_select, nonzero, where with one argument, unique, repeat_interleave by tensors."""

    __slots__ = ()

    def _true_places(self, size: int | None) -> tuple[Self, Self]:
        """Flat positions of the true elements of a bool tensor in order, and which of them exist."""
        if size is not None and size < 0:
            raise ShapeError(f"a selection has a size that is not negative, got {size}")
        flat = self.flatten()
        n = flat.shape[0]
        if n == 0:
            empty = self._const(0, dtypes.int32)._broadcast_to((size or 0,))
            return empty, empty.cast(dtypes.bool)
        number = flat.cast(dtypes.int32).cumsum(0).contiguous()
        total = number.shrink(((n - 1, n),))
        if size is None:
            number.realize()
            size = int(total.item())
        want = (self._iota(size) + 1).cast(dtypes.int32)
        return number.searchsorted(want), want <= total

    def masked_select(self, mask: Any, size: int | None = None, fill_value: Any = 0) -> Self:
        """The elements where ``mask`` is true, in order.

        Args:
            size: number of results; the first elements are kept, missing ones are ``fill_value``.

        Raises:
            DTypeError: the mask is made of numbers.
        """
        mask = self.ufix(mask)
        if mask.dtype is not dtypes.bool:
            raise DTypeError(f"masked_select needs a bool mask, got {mask.dtype}: compare it with something")
        x, where = self._broadcast_both(mask)
        places, exists = where._true_places(size)
        if 0 in (*places.shape, *x.shape):
            return self._const(fill_value, self.dtype)._broadcast_to(places.shape)
        picked = x.flatten().index(places if size is None else exists.where(places, 0))
        return picked if size is None else exists.where(picked, fill_value).cast(self.dtype)

    def _broadcast_both(self, other: Self) -> tuple[Self, Self]:
        shape = broadcast_shape(self.shape, other.shape)
        return self._broadcast_to(shape), other._broadcast_to(shape)

    def nonzero(self, size: int | None = None, fill_value: Any = 0) -> Self:
        """Coordinates of the elements that are not zero, one row for each, in order.

        Args:
            size: number of rows; missing ones are ``fill_value``.
        """
        places, exists = self.ne(0)._true_places(size)
        count = places.shape[0]
        if count == 0 or not self.ndim or 0 in self.shape:
            return self._const(fill_value, dtypes.int32)._broadcast_to((count, self.ndim))
        axes = [(places // prod(self.shape[i + 1:])) % s for i, s in enumerate(self.shape)]
        rows: Self = axes[0].stack(*axes[1:], dim=1)
        return rows if size is None else exists.reshape((count, 1)).where(rows, fill_value)

    def where(self, x: Any = None, y: Any = None) -> Any:
        """``x`` where self is true, else ``y``; without both the coordinates of the true elements, one for each axis.

        Raises:
            TypeError: only one of them is given.
        """
        if x is None and y is None:
            rows = (self if self.ndim else self.reshape((1,))).nonzero()
            return tuple(rows.select(1, i) for i in range(rows.shape[1]))
        if x is None or y is None:
            raise TypeError("where takes two values, or none for the coordinates of the true elements; got one")
        return super().where(x, y)

    # *** distinct values ***
    def unique(self, return_inverse: bool = False, return_counts: bool = False) -> Any:
        """The distinct values in order; with them the place of each element among them, and how often each stands.

        Each NaN is distinct.
        """
        flat = self.flatten()
        n = flat.shape[0]
        if n == 0:
            values, none = flat, self._const(0, dtypes.int32)
            parts = (none._broadcast_to(self.shape), none._broadcast_to((0,)))
        else:
            ordered, order = flat.sort(0)
            ordered = ordered.contiguous()
            change = ordered.shrink(((1, n),)).ne(ordered.shrink(((0, n - 1),)))
            first = self._const(True)._broadcast_to((1,)).cat(change)
            places = first._true_places(None)[0]
            number = first.cast(dtypes.int32).cumsum(0).sub(1)
            values = ordered.index(places)
            ends = places.shrink(((1, places.shape[0]),)).cat(self._const(n, dtypes.int32)._broadcast_to((1,)))
            parts = (number.index(order.argsort(0)).reshape(self.shape), ends - places)
        wanted = tuple(p for p, asked in zip(parts, (return_inverse, return_counts)) if asked)
        return (values, *wanted) if wanted else values

    # *** repetition ***
    def repeat_interleave(self, repeats: Any, dim: int | None = None, output_size: int | None = None) -> Self:
        """Each element ``repeats`` times in a row, along ``dim`` or in the flattened tensor.

        Args:
            repeats: a number, or one for each element of ``dim`` as a list or an integer tensor.
            output_size: the sum of a tensor of repeats, if known: nothing has to run then.

        Raises:
            DTypeError: the repeats are not integers.
            ShapeError: they are not one for each element.
        """
        if not isinstance(repeats, (list, tuple, DynamicTensor)) and not getattr(repeats, "ndim", 0):
            return super().repeat_interleave(repeats, dim)
        x, axis = (self.flatten(), 0) if dim is None else (self, self._resolve_dim(dim))
        times: Self = self.ufix(repeats)
        if not times.dtype.is_int:
            raise DTypeError(f"repeat_interleave needs integer repeats, got {times.dtype}")
        if times.ndim > 1 or times.numel() not in (1, x.shape[axis]):
            raise ShapeError(f"repeat_interleave needs one number or {x.shape[axis]}, one for each element of axis "
                             f"{axis}, got shape {times.shape}")
        n = x.shape[axis]
        ends = times.cast(dtypes.int32).reshape((-1,))._broadcast_to((n,)).cumsum(0).contiguous()
        if output_size is None:
            output_size = int(ends.realize().shrink(((n - 1, n),)).item()) if n else 0
        return x.index_select(axis, ends.searchsorted(self._iota(output_size).cast(dtypes.int32), right=True))
