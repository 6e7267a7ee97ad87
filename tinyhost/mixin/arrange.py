"""Further names for moving axes and cutting out parts, as torch and numpy have them, and ``as_strided``.

Takes a node and axis numbers; gives what ``reshape``, ``permute``, ``shrink`` and windows make of it. Extents of
``as_strided`` and ``rot90`` are ints.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.errors import ShapeError
from tinyhost.helpers import argfix
from tinyhost.mixin.movement import MovementMixin, as_ints, make_tuple
from tinyhost.mixin.sint import resolve, ssimplify

if TYPE_CHECKING:
    from typing import Self


class ArrangeMixin(MovementMixin):
    """movedim, swapaxes, narrow, select, tile, rot90, as_strided and their aliases."""

    __slots__ = ()

    # *** axes ***
    @property
    def mT(self) -> Self:
        """The last two axes exchanged.

        Raises:
            ShapeError: there are less than two axes.
        """
        if self.ndim < 2:
            raise ShapeError(f"mT exchanges the last two axes, but the shape is {self.shape}")
        return self.transpose(-2, -1)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """Axes ``source`` moved to ``destination``; the others keep their order.

        Raises:
            ShapeError: different numbers of axes, or an axis twice.
        """
        old, new = make_tuple(source, 1), make_tuple(destination, 1)
        if len(old) != len(new):
            raise ShapeError(f"movedim needs as many sources as destinations, got {old} and {new}")
        old, new = (tuple(self._resolve_dim(a) for a in axes) for axes in (old, new))
        if len(set(old)) != len(old) or len(set(new)) != len(new):
            raise ShapeError(f"movedim moves each axis once and to a place of its own, got {old} to {new}")
        order = [i for i in range(self.ndim) if i not in old]
        for place, axis in sorted(zip(new, old)):
            order.insert(place, axis)
        return self.permute(tuple(order)) if self.ndim else self

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """Same as ``movedim``."""
        return self.movedim(source, destination)

    def swapaxes(self, axis0: int, axis1: int) -> Self:
        """Same as ``transpose``."""
        return self.transpose(axis0, axis1)

    def swapdims(self, dim0: int, dim1: int) -> Self:
        """Same as ``transpose``."""
        return self.transpose(dim0, dim1)

    def ravel(self) -> Self:
        """Same as ``flatten``."""
        return self.flatten()

    # *** parts ***
    def narrow(self, dim: int, start: int, length: int) -> Self:
        """``length`` elements of ``dim`` from ``start`` on, which counts from the end when negative.

        Raises:
            ShapeError: the part lies outside.
        """
        dim = self._existing_dim(dim, "narrow")
        start, length = as_ints("a start or length of narrow", (start, length))
        size = self.shape[dim]
        first = start + size if resolve(start < 0, False) else start
        if not (resolve(first >= 0) and resolve(length >= 0) and resolve(first + length <= size)):
            raise ShapeError(f"narrow to {length} elements from {start} on is outside of axis {dim} of {self.shape}")
        return self.shrink(tuple((first, ssimplify(first + length)) if i == dim else None for i in range(self.ndim)))

    def select(self, dim: int, index: int) -> Self:
        """Element ``index`` of ``dim``, without that axis.

        Raises:
            IndexError: the index is out of bounds.
        """
        dim = self._existing_dim(dim, "select")
        [index] = as_ints("the index of select", (index,))
        size = self.shape[dim]
        if not (resolve(index >= -size) and resolve(index < size)):
            raise IndexError(f"index {index} is out of bounds for axis {dim} of size {size}")
        return self.narrow(dim, index, 1).squeeze(dim)

    def _existing_dim(self, dim: int, what: str) -> int:
        if self.ndim == 0:
            raise ShapeError(f"{what} takes an axis, but a 0-d node has none")
        return self._resolve_dim(dim)

    # *** repetition ***
    def tile(self, repeats: Any, *args: Any) -> Self:
        """Like ``repeat``, where missing counts on the left are 1."""
        reps = argfix(repeats, *args)
        return self.repeat((1,) * (self.ndim - len(reps)) + reps)

    def broadcast_to(self, shape: Any, *args: Any) -> Self:
        """Same as ``expand``."""
        return self.expand(shape, *args)

    def expand_as(self, other: Self) -> Self:
        """Expanded to the shape of ``other``."""
        return self.expand(other.shape)

    # *** turns ***
    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Self:
        """Turned ``k`` times by a quarter in the plane of two axes, from the first towards the second.

        Raises:
            ShapeError: the axes are not two different ones.
        """
        axes = tuple(self._resolve_dim(d) for d in dims)
        if len(axes) != 2 or axes[0] == axes[1] or self.ndim < 2:
            raise ShapeError(f"rot90 turns in the plane of two different axes, got {tuple(dims)} for {self.shape}")
        quarter = as_ints("the number of quarter turns", (k,))[0] % 4
        if quarter == 2:
            return self.flip(axes)
        turned = self.flip(axes[1]) if quarter == 1 else self.flip(axes[0]) if quarter == 3 else self
        return turned.transpose(*axes) if quarter else self

    def fliplr(self) -> Self:
        """Axis 1 reversed."""
        return self.flip(1)

    def flipud(self) -> Self:
        """Axis 0 reversed."""
        return self.flip(0)

    # *** strides ***
    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Self:
        """Element ``[i, j, ...]`` is element ``storage_offset + i * stride[0] + j * stride[1] + ...`` of self in
        row-major order, whatever self is a view of. Where elements repeat, the result is a copy.

        Raises:
            ShapeError: the elements reach outside of self, or a number is negative.
        """
        sizes, strides = (
            as_ints(f"{what} of as_strided", make_tuple(n, 1)) for what, n in (("an extent", size),
                                                                               ("a stride", stride))
        )
        [storage_offset] = as_ints("the offset of as_strided", (storage_offset,))
        if len(sizes) != len(strides):
            raise ShapeError(f"as_strided needs a stride for each extent, got size {sizes} and stride {strides}")
        if any(n < 0 for n in (*sizes, *strides, storage_offset)):
            raise ShapeError(f"as_strided needs numbers that are not negative, got size {sizes}, stride {strides} and "
                             f"offset {storage_offset}")
        flat = self.reshape((self.numel(),))
        span = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
        if 0 in sizes:
            return flat.shrink(((0, 0),)).reshape(sizes)
        if storage_offset + span > self.numel():
            raise ShapeError(f"as_strided with size {sizes}, stride {strides} and offset {storage_offset} reads "
                             f"element {storage_offset + span - 1} of the {self.numel()} elements of {self.shape}")
        return flat.shrink(((storage_offset, storage_offset + span),))._windows_of_strides(sizes, strides)

    def _windows_of_strides(self, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Self:
        """From the 1-d span that the strides cover: windows of what the smaller strides cover, axis by axis."""
        order = [i for i in sorted(range(len(sizes)), key=lambda i: -strides[i]) if strides[i] and sizes[i] > 1]
        x, span = self, self.shape[0]
        for i in order:
            span -= (sizes[i] - 1) * strides[i]
            x = x._pool((span,), strides[i])
        x = x.reshape(tuple(sizes[i] for i in order) + (1,) * (len(sizes) - len(order)))
        axes = order + [i for i in range(len(sizes)) if i not in order]
        return x.permute(tuple(axes.index(i) for i in range(len(sizes)))).expand(sizes)
