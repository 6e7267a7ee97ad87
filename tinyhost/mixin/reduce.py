"""Reductions over axes and statistics made of them.

Takes a node and axes; gives a REDUCE through the ``_rop`` hook, always over leading axes that are longer than 1, and
reshapes the result where axes are kept. Sums accumulate in a wider dtype where the input's is narrow.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyhost.dtype import dtypes, strong_dtype, sum_acc_dtype, to_dtype
from tinyhost.errors import ShapeError
from tinyhost.mixin.activation import ActivationMixin
from tinyhost.mixin.movement import MovementMixin
from tinyhost.mixin.sint import is_one, sprod
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike

Axes: TypeAlias = int | Sequence[int] | None


class ReduceMixin(ActivationMixin, MovementMixin):
    """sum, prod, max, min, any, all, mean, var, std."""

    __slots__ = ()

    def _axes(self, axis: Axes) -> tuple[int, ...]:
        """Axis numbers to reduce, ascending, each once; None means all."""
        if axis is None:
            return tuple(range(self.ndim))
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"a reduction takes an axis, several of them or None, got {axis!r}")
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        if self.ndim == 0:
            for a in axes:
                self._resolve_dim(a)
            return ()
        numbers = sorted(self._resolve_dim(a) for a in axes)
        if len(set(numbers)) != len(numbers):
            raise ShapeError(f"an axis stands twice in {axes} for shape {self.shape}: name each axis once")
        return tuple(numbers)

    def _reduce(self, op: Ops, axis: Axes = None, keepdim: bool = False) -> Self:
        """Reduction by ``op``; weak input is made strong first, since a sum of literals is no literal."""
        x = self.cast(strong_dtype(self.dtype)) if self.dtype.is_weak else self
        shape, axes = x.shape, x._axes(axis)
        ones = [i for i in axes if is_one(shape[i])]
        wide = len(axes) - len(ones)
        if wide:
            order = [i for i in axes if i not in ones] + [i for i in range(len(shape)) if i not in axes]
            if ones:
                kept = [i for i in range(len(shape)) if i not in ones]
                x = x.reshape(tuple(shape[i] for i in kept))
                order = [kept.index(i) for i in order]
            if order != list(range(len(order))):
                x = x._mop(Ops.PERMUTE, tuple(order))
            x = x._rop(op, tuple(range(wide)))
        else:
            x = x._fresh()
        if wide and not keepdim:
            return x
        return x.reshape(tuple(1 if i in axes else s for i, s in enumerate(shape) if keepdim or i not in axes))

    def sum(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """Sum in the accumulation dtype of the input; narrow floats are rounded back to their own dtype.

        With ``dtype`` the input is cast to it, summed in it and stays in it.
        """
        x = self.cast(sum_acc_dtype(self.dtype) if dtype is None else to_dtype(dtype))
        ret = x._reduce(Ops.ADD, axis, keepdim)
        narrow = dtype is None and self.dtype in (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)
        return ret.cast(self.dtype) if narrow else ret

    def prod(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """Product in the input's own dtype, or in ``dtype``."""
        return (self if dtype is None else self.cast(to_dtype(dtype)))._reduce(Ops.MUL, axis, keepdim)

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Largest element; NaN wins.

        Raises:
            ShapeError: there is none, because an axis is empty.
        """
        self._check_elements("max", axis)
        return self._largest(axis, keepdim)

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Smallest element; NaN wins.

        Raises:
            ShapeError: there is none, because an axis is empty.
        """
        self._check_elements("min", axis)
        x = self.cast(strong_dtype(self.dtype)) if self.dtype.is_weak else self
        return x._reversed_order()._largest(axis, keepdim)._reversed_order()

    def _largest(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """``max``, with the lowest value of the dtype for that of an empty axis."""
        return self._reduce(Ops.MAX, axis, keepdim)

    def _check_elements(self, what: str, axis: Axes) -> None:
        axes = self._axes(axis)
        if any(isinstance(n := self.shape[a], int) and n == 0 for a in axes):
            raise ShapeError(f"{what} over axes {axes} of shape {self.shape} has no elements to choose from: check for "
                             "an empty axis first, or pad it with the value it should give")

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether some element is not zero."""
        return self.cast(dtypes.bool)._reduce(Ops.MAX, axis, keepdim)

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether no element is zero."""
        return self.cast(dtypes.bool)._reduce(Ops.MUL, axis, keepdim)

    # *** statistics ***
    def _count(self, axis: Axes) -> Any:
        return sprod(self.shape[i] for i in self._axes(axis))

    def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Arithmetic mean: float32 for integers and bools, else in the input's dtype."""
        out = self.dtype if self.dtype.is_float else dtypes.float32
        total = self.cast(sum_acc_dtype(out)).sum(axis, keepdim)
        return total.div(self._count(axis)).cast(strong_dtype(out))

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """Variance, divided by the number of elements less ``correction``."""
        centered = self - self.mean(axis, keepdim=True)
        count = self._count(axis)
        divisor = max(0, count - correction) if isinstance(count, int) else (count - correction).maximum(0)
        out = self.dtype if self.dtype.is_float else dtypes.float32
        return (centered * centered).cast(sum_acc_dtype(out)).sum(axis, keepdim).div(divisor).cast(strong_dtype(out))

    def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """Variance and mean."""
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """Standard deviation: the square root of ``var``."""
        return self.var(axis, keepdim, correction).sqrt()

    def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """Standard deviation and mean."""
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)
