"""Selections whose size depends on the data.

``size`` fixes the number of results (missing ones are filled); without it the data is counted first, which runs
kernels.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost._tensor.read import ReadTensor
from tinyhost.dtype import dtypes
from tinyhost.helpers import prod
from tinyhost.mixin.sint import broadcast_shape

if TYPE_CHECKING:
    from typing import Self


class DynamicTensor(ReadTensor):
    """masked_select and nonzero."""

    __slots__ = ()

    def _true_places(self, size: int | None) -> tuple[Self, Self]:
        """Flat positions of the true elements of a bool tensor in order, and which of them exist."""
        flat = self.flatten()
        number = flat.cast(dtypes.int32).cumsum(0)
        if size is None:
            size = int(number.max().item()) if flat.shape[0] else 0
        want = (self._iota(size) + 1).cast(dtypes.int32)
        hit = flat & number.eq(want.reshape((size, 1)))
        places = hit.where(self._iota(flat.shape[0]).cast(dtypes.int32), 0).sum(1)
        return places, want <= number.max()

    def masked_select(self, mask: Any, size: int | None = None, fill_value: Any = 0) -> Self:
        """The elements where ``mask`` is true, in order.

        Args:
            size: number of results; the first elements are kept, missing ones are ``fill_value``.
        """
        mask = self.ufix(mask).cast(dtypes.bool)
        x, where = self._broadcast_both(mask)
        places, exists = where._true_places(size)
        if places.shape[0] == 0:
            return self._const(0, self.dtype)._broadcast_to((0,))
        picked = x.flatten().index(places)
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
        if count == 0 or not self.ndim:
            return self._const(0, dtypes.int32)._broadcast_to((count, self.ndim))
        axes = [(places // prod(self.shape[i + 1:])) % s for i, s in enumerate(self.shape)]
        rows = axes[0].stack(*axes[1:], dim=1)
        return rows if size is None else exists.reshape((count, 1)).where(rows, fill_value)
