"""Reading and writing by index arrays: gather, scatter, one_hot, interpolate.

Takes an integer node beside the data. Every element of the result compares the indices with its own position, so
gradients are plain sums; code generation turns the sums back into addressed loads.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.mixin.sint import resolve
from tinyhost.mixin.sorting import SortMixin
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self


class SelectMixin(SortMixin):
    """gather, scatter, scatter_reduce, one_hot, interpolate."""

    __slots__ = ()

    def _index_like(self, dim: int, index: Self, what: str) -> tuple[int, Self]:
        """Checked axis and index of a gather or scatter; narrow indices are widened so that they compare."""
        dim = self._resolve_dim(dim)
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

    def one_hot(self, num_classes: int) -> Self:
        """1 at the position that self holds, else 0, along a new last axis."""
        if not self.dtype.is_int:
            raise DTypeError(f"one_hot needs integers, got {self.dtype}")
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

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """Self with ``src`` written at ``index`` along ``dim``: the last write stays, or all are added or multiplied.

        Raises:
            ValueError: unknown ``reduce``.
            DTypeError, ShapeError: index or source do not fit.
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"unknown reduce {reduce!r}: use None, 'add' or 'multiply', or scatter_reduce()")
        dim, index = self._index_like(dim, index, "scatter")
        if not isinstance(src, type(self)):
            src = self._const(src, self.dtype)._broadcast_to(index.shape)
        if src.dtype is not self.dtype:
            raise DTypeError(f"scatter source of {src.dtype} into {self.dtype}: cast one of them")
        if src.ndim != index.ndim or not all(resolve(i <= s) for i, s in zip(index.shape, src.shape)):
            raise ShapeError(f"scatter index {index.shape} must fit into the source {src.shape}")
        hit, value = self._scatter_hits(dim, index, src)
        if reduce == "add":
            return self + hit.where(value, 0)._reduce(Ops.ADD, -1)
        if reduce == "multiply":
            return self * hit.where(value, 1)._reduce(Ops.MUL, -1)
        number = (self._iota(hit.shape[-1]) + 1).cast(dtypes.int32)
        last = hit.where(number, 0).max(-1, keepdim=True)
        chosen = (hit & number.eq(last)).where(value, 0)._reduce(Ops.ADD, -1)
        return (last.squeeze(-1) > 0).where(chosen, self)

    def scatter_reduce(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
        """Self with all of ``src`` that falls on an element combined: sum, prod, mean, amax or amin.

        With ``include_self=False`` an element that something falls on forgets its own value.

        Raises:
            ValueError: unknown ``reduce``.
        """
        dim, index = self._index_like(dim, index, "scatter_reduce")
        hit, value = self._scatter_hits(dim, index, src)
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": self.dtype.min, "amin": self.dtype.max}.get(reduce)
        if neutral is None:
            raise ValueError(f"unknown reduce {reduce!r}: use 'sum', 'prod', 'mean', 'amax' or 'amin'")
        touched, given = hit.any(-1), hit.where(value, neutral)
        own = self if include_self else touched.where(neutral, self)
        if reduce == "prod":
            return given._reduce(Ops.MUL, -1) * own
        if reduce == "amax":
            return given._reduce(Ops.MAX, -1).maximum(own)
        if reduce == "amin":
            return given.min(-1).minimum(own)
        total = given._reduce(Ops.ADD, -1) + own
        if reduce == "sum":
            return total
        count = hit.cast(dtypes.int32).sum(-1) + (1 if include_self else touched.where(0, 1).cast(dtypes.int32))
        return total / count if self.dtype.is_float else total.div(count, rounding_mode="floor").cast(self.dtype)

    # *** resampling ***
    def interpolate(self, size: tuple[int, ...], mode: str = "linear", align_corners: bool = False) -> Self:
        """The last axes resampled to ``size``: "linear", "nearest" or "nearest-exact".

        Raises:
            ValueError: unknown mode, or ``align_corners`` with a mode that has no corners.
        """
        if mode not in ("linear", "nearest", "nearest-exact"):
            raise ValueError(f"unknown interpolation mode {mode!r}: use 'linear', 'nearest' or 'nearest-exact'")
        if align_corners and mode != "linear":
            raise ValueError(f"align_corners is for mode 'linear', not {mode!r}")
        if not 0 < len(size) <= self.ndim or not all(isinstance(s, int) and s > 0 for s in size):
            raise ShapeError(f"interpolate needs positive sizes of the last axes of {self.shape}, got {size}")
        x = self
        for axis, new in zip(range(self.ndim - len(size), self.ndim), size):
            x = x._resampled(axis, new, mode, align_corners)
        return x

    def _resampled(self, axis: int, new: int, mode: str, align_corners: bool) -> Self:
        old = self.shape[axis]
        place = self._iota(new).cast(dtypes.float32)
        if align_corners:
            where = place * ((old - 1) / (new - 1) if new > 1 else 0.0)
        elif mode == "nearest":
            where = (place * (old / new)).floor()
        elif mode == "nearest-exact":
            where = ((place + 0.5) * (old / new)).floor()
        else:
            where = ((place + 0.5) * (old / new) - 0.5).clip(0, old - 1)

        if mode != "linear":
            return self._taken_at(axis, where)
        low = where.floor()
        part = (where - low).reshape(tuple(new if k == axis else 1 for k in range(self.ndim)))
        return self._taken_at(axis, low).lerp(self._taken_at(axis, low + 1), part)

    def _taken_at(self, axis: int, places: Self) -> Self:
        """Elements of ``axis`` at 1-d float ``places``, kept within the axis."""
        n = places.shape[0]
        index = places.clip(0, self.shape[axis] - 1).cast(dtypes.int32)
        index = index.reshape(tuple(n if k == axis else 1 for k in range(self.ndim)))
        return self._taken(axis, index.expand(tuple(n if k == axis else s for k, s in enumerate(self.shape))))
