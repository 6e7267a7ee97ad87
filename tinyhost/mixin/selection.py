"""Reading and writing by index arrays: gather, scatter, one_hot, index_select.

Takes an integer node beside the data. Every element of the result compares the indices with its own position, so
gradients are plain sums; code generation turns the sums back into addressed loads. Indices out of range read 0 and
write nothing.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.mixin.movement import as_ints
from tinyhost.mixin.sint import broadcast_shape, resolve
from tinyhost.mixin.sorting import SortMixin
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self


class SelectMixin(SortMixin):
    """gather, index_select, take_along_dim, scatter, scatter_reduce, one_hot."""

    __slots__ = ()

    def _index_like(self, dim: int, index: Self, what: str) -> tuple[int, Self]:
        """Checked axis and index of a gather or scatter; narrow indices are widened so that they compare."""
        dim, index = self._resolve_dim(dim), self.ufix(index)
        if not index.dtype.is_int:
            raise DTypeError(f"{what} needs an integer index, got {index.dtype}")
        if index.ndim != self.ndim:
            raise ShapeError(f"{what} needs an index of {self.ndim} axes, got shape {index.shape} for {self.shape}")
        if not all(resolve(i <= s) for d, (s, i) in enumerate(zip(self.shape, index.shape)) if d != dim):
            raise ShapeError(f"{what} index {index.shape} must fit into {self.shape} outside of axis {dim}")
        return dim, index if index.dtype.bitsize in (32, 64) else index.cast(dtypes.int32)

    def gather(self, dim: int, index: Self) -> Self:
        """``out[i][j] = self[index[i][j]][j]`` for dim 0, and so on; an index out of range reads 0."""
        dim, index = self._index_like(dim, index, "gather")
        x = self.shrink(tuple(None if i == dim else (0, s) for i, s in enumerate(index.shape)))
        return x._taken(dim, index)

    def index_select(self, dim: int, index: Self) -> Self:
        """The elements of ``dim`` that a 1-d index names, in its order.

        Raises:
            DTypeError: the index is not made of integers.
            ShapeError: it has more than one axis.
        """
        dim, index = self._resolve_dim(dim), self.ufix(index)
        if not index.dtype.is_int:
            raise DTypeError(f"index_select needs an integer index, got {index.dtype}: cast it to int32")
        if index.ndim > 1:
            raise ShapeError(f"index_select needs a 1-d index, got shape {index.shape}: use gather or x[..., index]")
        if self.ndim == 0:
            return self.reshape((1,)).index_select(0, index).reshape(())
        shape = tuple(index.numel() if i == dim else s for i, s in enumerate(self.shape))
        wide = index if index.dtype.bitsize in (32, 64) else index.cast(dtypes.int32)
        spread = wide.reshape(tuple(-1 if i == dim else 1 for i in range(self.ndim))).expand(shape)
        return self._taken(dim, spread)

    def take_along_dim(self, indices: Self, dim: int | None = None) -> Self:
        """Like ``gather`` over axes that broadcast; without ``dim`` elements of the flattened node."""
        if dim is None:
            return self.flatten().gather(0, indices.flatten())
        if indices.ndim != self.ndim:
            raise ShapeError(f"take_along_dim needs {self.ndim} axes of indices, got shape {indices.shape} for "
                             f"{self.shape}")
        dim = self._resolve_dim(dim)
        mine = tuple(1 if i == dim else s for i, s in enumerate(self.shape))
        common = broadcast_shape(mine, tuple(1 if i == dim else s for i, s in enumerate(indices.shape)))
        x = self.expand(tuple(s if i == dim else c for i, (s, c) in enumerate(zip(self.shape, common))))
        index = indices.expand(tuple(s if i == dim else c for i, (s, c) in enumerate(zip(indices.shape, common))))
        return x.gather(dim, index)

    def one_hot(self, num_classes: int) -> Self:
        """1 at the position that self holds, else 0, along a new last axis."""
        if not self.dtype.is_int:
            raise DTypeError(f"one_hot needs integers, got {self.dtype}")
        [num_classes] = as_ints("a number of classes", (num_classes,))
        if num_classes < 0:
            raise ShapeError(f"one_hot needs a number of classes that is not negative, got {num_classes}")
        x = self if self.dtype.bitsize in (32, 64) else self.cast(dtypes.int32)
        return x.unsqueeze(-1).eq(self._iota(num_classes).cast(x.dtype)).where(1, 0)

    # *** scatter ***
    def _scatter_hits(self, dim: int, index: Self, src: Self) -> tuple[Self, Self]:
        """(hits, values) of self's shape with a last axis that runs over the index along ``dim``."""
        box = tuple((0, s) for s in index.shape)
        src = src.shrink(box).unsqueeze(-1).transpose(dim, -1)
        hit = index.unsqueeze(-1).transpose(dim, -1).eq(self._numbered(dim, self.ndim + 1).cast(index.dtype))
        src = src._broadcast_to(hit.shape)
        whole = (*self.shape[:dim], hit.shape[dim], *self.shape[dim + 1:], hit.shape[-1])
        pads = tuple((0, s - n) for s, n in zip(whole, hit.shape))
        return hit.pad(pads, value=False), src.pad(pads)

    def _scatter_source(self, dim: int, index: Self, src: Any, what: str) -> tuple[int, Self, Self]:
        """Checked axis, index and source of a scatter.

        Raises:
            DTypeError, ShapeError: index or source do not fit.
        """
        dim, index = self._index_like(dim, index, what)
        if isinstance(src, (bool, int, float)):
            src = self._const(src, self.dtype)._broadcast_to(index.shape)
        src = self.ufix(src)
        if src.dtype is not self.dtype:
            raise DTypeError(f"{what} source of {src.dtype} into {self.dtype}: cast one of them")
        if src.ndim != index.ndim or not all(resolve(i <= s) for i, s in zip(index.shape, src.shape)):
            raise ShapeError(f"{what} index {index.shape} must fit into the source {src.shape}")
        return dim, index, src

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """Self with ``src`` written at ``index`` along ``dim``: the last write stays, or all are added or multiplied.

        Raises:
            ValueError: unknown ``reduce``.
            DTypeError, ShapeError: index or source do not fit.
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"unknown reduce {reduce!r}: use None, 'add' or 'multiply', or scatter_reduce()")
        dim, index, src = self._scatter_source(dim, index, src, "scatter")
        if self.ndim == 0:
            return self.reshape((1,)).scatter(0, index.reshape((1,)), src.reshape((1,)), reduce).reshape(())
        if 0 in index.shape:
            return self._fresh()
        if reduce is not None:
            return self._scatter_combined(dim, index, src, "sum" if reduce == "add" else "prod", True)
        hit, value = self._scatter_hits(dim, index, src)
        number = (self._iota(hit.shape[-1]) + 1).cast(dtypes.int32)
        last = hit.where(number, 0)._largest(-1, keepdim=True)
        return (last.squeeze(-1) > 0).where(value._where_hit(hit & number.eq(last)), self)

    def scatter_reduce(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
        """Self with all of ``src`` that falls on an element combined: sum, prod, mean, amax or amin.

        With ``include_self=False`` an element that something falls on forgets its own value. Integer means are rounded
        down; a sum of bools is their "or", a product their "and".

        Raises:
            ValueError: unknown ``reduce``.
            DTypeError, ShapeError: index or source do not fit, or a mean of bools is asked for.
        """
        if reduce not in ("sum", "prod", "mean", "amax", "amin"):
            raise ValueError(f"unknown reduce {reduce!r}: use 'sum', 'prod', 'mean', 'amax' or 'amin'")
        dim, index, src = self._scatter_source(dim, index, src, "scatter_reduce")
        if reduce == "mean" and self.dtype is dtypes.bool:
            raise DTypeError("scatter_reduce 'mean' of bools is not defined: cast them to a number")
        if self.ndim == 0:
            row = self.reshape((1,)).scatter_reduce(0, index.reshape((1,)), src.reshape((1,)), reduce, include_self)
            return row.reshape(())
        if 0 in index.shape:
            return self._fresh()
        return self._scatter_combined(dim, index, src, reduce, include_self)

    def _scatter_combined(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool) -> Self:
        hit, value = self._scatter_hits(dim, index, src)
        if self.dtype is dtypes.bool:
            reduce = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": self.dtype.min, "amin": self.dtype.max}[reduce]
        literal = self._const(neutral, self.dtype)
        touched, given = hit.any(-1), hit.where(value, literal)
        own = self if include_self else touched.where(literal, self)
        if reduce == "prod":
            return given._reduce(Ops.MUL, -1) * own
        if reduce == "amax":
            return given._reduce(Ops.MAX, -1).maximum(own)
        if reduce == "amin":
            return given._reversed_order()._largest(-1)._reversed_order().minimum(own)
        total = given._reduce(Ops.ADD, -1) + own
        if reduce == "sum":
            return total
        count = hit.cast(dtypes.int32).sum(-1) + (1 if include_self else touched.where(0, 1).cast(dtypes.int32))
        return total / count if self.dtype.is_float else total.div(count, rounding_mode="floor").cast(self.dtype)
