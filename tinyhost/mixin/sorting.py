"""Order: argmax, sort, topk, searchsorted.

Takes a node and an axis; gives values and indices. Keys are integers in the order of the values, NaN last, so that a
comparison decides every pair. Short axes are sorted by counting ranks, long ones by merging sorted blocks; both are
stable.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, least_upper_dtype, strong_dtype
from tinyhost.errors import ShapeError
from tinyhost.helpers import ceildiv, prod
from tinyhost.mixin.movement import as_ints
from tinyhost.mixin.scan import ScanMixin
from tinyhost.mixin.sint import broadcast_shape

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType

_RANK_LIMIT = 2048  # up to here n*n comparisons beat the kernels of merging
_BLOCK = 256  # sorted by n*n comparisons before merging
_SIGNED = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64, 8: dtypes.int8}


class SortMixin(ScanMixin):
    """argmax, argmin, sort, argsort, topk, searchsorted, bucketize."""

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
        order = key._ranked_order() if key.shape[-1] <= _RANK_LIMIT else key._merged_order()
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

    def _merged_order(self) -> Self:
        """The same by ranks in short blocks, and merging pairs of sorted blocks until one is left."""
        n, lead = self.shape[-1], self.shape[:-1]
        size = _BLOCK << (ceildiv(n, _BLOCK) - 1).bit_length()
        key = self.pad((*(None for _ in lead), (0, size - n)), value=self.dtype.max)
        blocks = key.reshape((prod(lead) * size // _BLOCK, _BLOCK)).contiguous()
        inside = blocks._ranked_order()
        dtype = _place_dtype(prod(lead) * size)
        start = (self._iota(blocks.shape[0]).cast(dtype) * _BLOCK).reshape((-1, 1))
        order = (inside.cast(dtype) + start).flatten().contiguous()
        flat = blocks.flatten()
        length = _BLOCK
        while length < size:
            place = flat.index(order).contiguous()._merge_places(length, dtype).contiguous()
            order, length = order.index(place).contiguous(), 2 * length
        local: Self = order.reshape((prod(lead), size)) - (self._iota(prod(lead)).cast(dtype) * size).reshape((-1, 1))
        return local.reshape((*lead, size)).shrink((*(None for _ in lead), (0, n)))

    def _merge_places(self, length: int, dtype: DType) -> Self:
        """Self holds pairs of sorted runs of ``length`` one after the other: where each element of the merged pairs is.

        Output ``k`` of a pair takes ``left`` elements of the first run before it, the most for which the last of them
        does not come after element ``k - left`` of the second run.
        """
        total = self.shape[0]
        number = self._iota(total).cast(dtype)
        k, base = number % (2 * length), number - number % (2 * length)
        left = k * 0
        for bit in range(length.bit_length() - 1, -1, -1):
            probe = left + (1 << bit)
            possible = (probe <= k) & (probe <= length)
            other = (k - probe).clip(0, length - 1)
            mine = self.index(base + probe.minimum(length) - 1)
            passes = possible & ((k - probe >= length) | (mine <= self.index(base + length + other)))
            left = passes.where(probe, left)
        right = k - left
        first = self.index(base + left.minimum(length - 1))
        second = self.index(base + length + right.minimum(length - 1))
        from_first = (left < length) & ((right >= length) | (first <= second))
        return from_first.where(base + left, base + length + right)

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """Sorted values along ``dim``, and the indices they had; equal elements keep their order."""
        dim = self._resolve_dim(dim)
        index = self.argsort(dim, descending)
        return (self if self.ndim == 0 else self._taken(dim, index)), index

    def _taken(self, dim: int, index: Self) -> Self:
        """Elements of ``dim`` at ``index``, which agrees with self in the other axes; 0 where it is out of range."""
        n = self.shape[dim]
        x = self.unsqueeze(-1).transpose(dim, -1)
        hit = index.unsqueeze(-1).eq(self._iota(n).cast(index.dtype))
        return x._where_hit(hit)

    def _where_hit(self, hit: Self) -> Self:
        """The element of the last axis that ``hit`` marks, of which there is at most one; 0 where there is none.

        A sum of zeros is +0, so a hit on -0.0 is put right: ``-(0 - y)`` is -0.0 for y = 0, and its derivative is 1.
        """
        if self.dtype is dtypes.bool:
            return (hit & self).any(-1)
        y = hit.where(self, 0).cast(self.dtype).sum(-1, dtype=self.dtype)
        if not self.dtype.is_float or self.dtype.bitsize not in _SIGNED or self.dtype in dtypes.fp8s:
            return y
        signed = _SIGNED[self.dtype.bitsize]
        minus = self.detach().bitcast(signed).eq(signed.min)
        return hit.where(minus.cast(dtypes.int32), 0).sum(-1).ne(0).where(y.sub(0, reverse=True).neg(), y)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The ``k`` largest (or smallest) elements of ``dim``, in order, and their indices.

        Raises:
            ShapeError: the axis has fewer than ``k`` elements.
        """
        dim = self._resolve_dim(dim)
        [k] = as_ints("the number of elements for topk", (k,))
        if k < 0:
            raise ShapeError(f"topk of {k} elements: give a number that is not negative")
        if self.ndim and k > self.shape[dim]:
            raise ShapeError(f"topk of {k} elements, but axis {dim} of shape {self.shape} has {self.shape[dim]}")
        index = self.argsort(dim, largest)
        if self.ndim:
            index = index.shrink(tuple((0, k) if i == dim else None for i in range(self.ndim)))
        return (self._taken(dim, index) if self.ndim else self), index

    # *** places in sorted sequences ***
    def searchsorted(self, values: Any, right: bool = False) -> Self:
        """For each of ``values`` how many elements of self, sorted along its last axis, come before it, as int32.

        Args:
            values: of any shape for 1-d self, else with self's leading axes; a number gives a 0-d result.
            right: whether elements equal to a value come before it. NaN is largest.

        Raises:
            ShapeError: the leading axes differ.
        """
        value: Self = self.ufix(values)
        if self.ndim == 0:
            raise ShapeError("searchsorted needs a sorted sequence, but self is 0-d")
        lead, n = self.shape[:-1], self.shape[-1]
        if lead and value.shape[:-1] != lead:
            raise ShapeError(f"searchsorted in sequences of shape {self.shape} needs values with leading axes {lead}, "
                             f"got shape {value.shape}")
        dtype = self._common_dtype(value)
        keys = self.cast(dtype)._order_key().contiguous().flatten()
        wanted = value.cast(dtype)._order_key()
        rows = prod(lead)
        start = (self._iota(rows).cast(_place_dtype(rows * n)) * n).reshape((*lead, *(1,) * (value.ndim - len(lead))))
        return keys._bisected(wanted, start, n, right).cast(dtypes.int32)

    def _common_dtype(self, value: Self) -> DType:
        return strong_dtype(least_upper_dtype(self.dtype, value.dtype))

    def _bisected(self, wanted: Self, start: Self, n: int, right: bool) -> Self:
        """Steps of halving size through the ``n`` sorted keys from ``start`` on, as far as keys come before."""
        place = start.mul(0)._broadcast_to(broadcast_shape(start.shape, wanted.shape))
        if 0 in (n, *wanted.shape):
            return place
        for bit in range(n.bit_length() - 1, -1, -1):
            probe = place + (1 << bit)
            key = self.index(start + probe.minimum(n) - 1)
            passes = (key <= wanted if right else key < wanted) & (probe <= n)
            place = passes.where(probe, place)
        return place

    def bucketize(self, boundaries: Any, right: bool = False) -> Self:
        """For each element in which of the intervals between the sorted 1-d ``boundaries`` it lies, as int32.

        Raises:
            ShapeError: the boundaries are not 1-d.
        """
        edges: Self = self.ufix(boundaries)
        if edges.ndim != 1:
            raise ShapeError(f"bucketize needs 1-d boundaries, got shape {edges.shape}")
        return edges.searchsorted(self, right)


def _place_dtype(size: int) -> DType:
    return dtypes.int32 if size <= dtypes.int32.max else dtypes.int64
