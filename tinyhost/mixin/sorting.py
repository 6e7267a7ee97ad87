"""Order: argmax, sort, topk.

Takes a node and an axis; gives values and indices. Keys are integers in the order of the values, NaN last, so that a
comparison decides every pair. Short axes are sorted by counting ranks, long ones by a bitonic network; both are stable.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost.dtype import dtypes, strong_dtype
from tinyhost.errors import ShapeError
from tinyhost.mixin.scan import ScanMixin

if TYPE_CHECKING:
    from typing import Self

_RANK_LIMIT = 4096  # up to here n*n comparisons beat log(n)^2 kernels
_SIGNED = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64, 8: dtypes.int8}


class SortMixin(ScanMixin):
    """argmax, argmin, sort, argsort, topk."""

    __slots__ = ()

    # *** extremes ***
    def _first_where(self, hit: Self, axis: int, keepdim: bool) -> Self:
        n = hit.shape[axis]
        countdown = hit._numbered(axis).sub(n, reverse=True)
        return hit.where(countdown, 0).max(axis, keepdim).sub(n, reverse=True)

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Index of the largest element, the first of several; NaN is largest."""
        if axis is None:
            return self.flatten().argmax(0)
        axis = self._resolve_dim(axis)
        if self.ndim == 0:
            return self.const_like(0).cast(dtypes.int32)
        x = self.cast(strong_dtype(self.dtype))
        hit = x.eq(x.max(axis, keepdim=True))
        return x._first_where(hit | x.isnan() if x.dtype.is_float else hit, axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Index of the smallest element, the first of several; NaN is smallest."""
        x = self.cast(strong_dtype(self.dtype))
        return x._reversed_order().argmax(axis, keepdim)

    # *** sorting ***
    def _order_key(self) -> Self:
        """Integers (or bools) in the order of the values."""
        if not self.dtype.is_float:
            return self.cast(dtypes.int32) if self.dtype is dtypes.bool else self
        x = self.detach()
        if x.dtype.is_weak or x.dtype in dtypes.fp8s:
            x = x.cast(dtypes.float32)
        x = x.isnan().where(float("nan"), x.eq(0).where(0.0, x))  # one NaN, one zero
        signed = _SIGNED[x.dtype.bitsize]
        bits: Self = x.bitcast(signed)
        return bits.bitwise_xor((bits >> (signed.bitsize - 1)) & signed.max)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """Indices that sort ``dim``; equal elements keep their order."""
        dim = self._resolve_dim(dim)
        if self.ndim == 0 or self.shape[dim] in (0, 1):
            return self.const_like(0).cast(dtypes.default_int)
        key = self._order_key()
        key = (key._reversed_order() if descending else key).transpose(dim, -1)
        order = key._ranked_order() if key.shape[-1] <= _RANK_LIMIT else key._bitonic_order()
        return order.cast(dtypes.default_int).transpose(dim, -1)

    def _ranked_order(self) -> Self:
        """For each place of the last axis the index of the element that belongs there: ranks, then their inverse."""
        n, lead = self.shape[-1], self.shape[:-1]
        number = self._iota(n).cast(dtypes.int32)
        mine, other = self.reshape((*lead, n, 1)), self.reshape((*lead, 1, n))
        earlier = number.reshape((1, n)) < number.reshape((n, 1))
        rank = ((other < mine) | (other.eq(mine) & earlier)).cast(dtypes.int32).sum(-1).contiguous()
        placed = rank.reshape((*lead, 1, n)).eq(number.reshape((n, 1)))
        return placed.where(number.reshape((1, n)), 0).sum(-1)

    def _bitonic_order(self) -> Self:
        """The same by a bitonic network over pairs (key, index)."""
        n, lead = self.shape[-1], self.shape[:-1]
        stages = (n - 1).bit_length()
        size = 1 << stages
        keep = tuple(None for _ in lead)
        key = self.pad((*keep, (0, size - n)), value=self.dtype.max)
        index = self._iota(size).cast(dtypes.int32)._broadcast_to((*lead, size))
        for stage in range(stages):
            for distance in range(stage, -1, -1):
                key, index = key._bitonic_step(index, stage, distance)
        return index.shrink((*keep, (0, n)))

    def _bitonic_step(self, index: Self, stage: int, distance: int) -> tuple[Self, Self]:
        """Exchange elements ``2**distance`` apart; blocks of ``2**(stage + 1)`` alternate in direction."""
        lead, size = self.shape[:-1], self.shape[-1]
        half = 1 << distance
        shape = (*lead, size // (2 * half), 2, half)
        keep = tuple(None for _ in lead)

        def halves(x: Self) -> tuple[Self, Self]:
            y = x.reshape(shape)
            low, high = (y.shrink((*keep, None, (i, i + 1), None)) for i in (0, 1))
            return low, high
        (key_low, key_high), (index_low, index_high) = halves(self), halves(index)
        block = self._iota(size // (2 * half)).cast(dtypes.int32).reshape((-1, 1, 1))
        falling = ((block >> (stage - distance)) & 1).ne(0)
        above = (key_high < key_low) | (key_high.eq(key_low) & (index_high < index_low))
        swap = above.ne(falling)
        key = swap.where(key_high, key_low).cat(swap.where(key_low, key_high), dim=-2)
        new = swap.where(index_high, index_low).cat(swap.where(index_low, index_high), dim=-2)
        return key.reshape((*lead, size)).contiguous(), new.reshape((*lead, size)).contiguous()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """Sorted values along ``dim``, and the indices they had; equal elements keep their order."""
        dim = self._resolve_dim(dim)
        index = self.argsort(dim, descending)
        return (self if self.ndim == 0 else self._taken(dim, index)), index

    def _taken(self, dim: int, index: Self) -> Self:
        """Elements of ``dim`` at ``index``, which agrees with self in the other axes and is in range."""
        n = self.shape[dim]
        x = self.unsqueeze(-1).transpose(dim, -1)
        hit = index.unsqueeze(-1).eq(self._iota(n).cast(index.dtype))
        return hit.where(x, 0).cast(x.dtype).sum(-1, dtype=x.dtype) if x.dtype is not dtypes.bool else (hit & x).any(-1)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The ``k`` largest (or smallest) elements of ``dim``, in order, and their indices.

        Raises:
            ShapeError: the axis has fewer than ``k`` elements.
        """
        dim = self._resolve_dim(dim)
        if k < 0:
            raise ShapeError(f"topk of {k} elements: give a number that is not negative")
        if self.ndim and k > self.shape[dim]:
            raise ShapeError(f"topk of {k} elements, but axis {dim} of shape {self.shape} has {self.shape[dim]}")
        index = self.argsort(dim, largest)
        if self.ndim:
            index = index.shrink(tuple((0, k) if i == dim else None for i in range(self.ndim)))
        return (self._taken(dim, index) if self.ndim else self), index
