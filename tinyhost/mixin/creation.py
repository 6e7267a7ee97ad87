"""Literals and sequences that need no storage.

Takes shapes, numbers and dtypes; gives deviceless nodes made of CONST and of the index sequence hook. What needs a
buffer or a device (``empty``, ``full``, ``rand``) belongs to the classes.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, to_dtype
from tinyhost.errors import ShapeError
from tinyhost.helpers import ceildiv
from tinyhost.mixin.elementwise import ElementwiseMixin
from tinyhost.mixin.movement import MovementMixin, as_ints

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType, DTypeLike
    from tinyhost.mixin.sint import Shape


def _exact_float(dtype: DType) -> DType:
    """The float in which to count: narrow ones do not hold large counts."""
    return dtype if dtype.is_float and dtype.bitsize >= 32 and not dtype.is_weak else dtypes.float32


class CreationMixin(ElementwiseMixin, MovementMixin):
    """arange, linspace, eye, triangles."""

    __slots__ = ()

    @classmethod
    def arange(cls, start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None) -> Self:
        """``start``, ``start + step``, ... below ``stop``; one argument counts from 0.

        With an integer dtype float numbers lose their fraction.

        Raises:
            ValueError: ``step`` is 0, or a number is not finite.
            OverflowError: a value does not fit the dtype.
        """
        if stop is None:
            start, stop = 0, start
        for x in (start, stop, step):
            if not isinstance(x, (int, float)) and not hasattr(x, "vmin"):
                raise TypeError(f"arange counts numbers, got {x!r} of type {type(x).__name__}")
            if isinstance(x, float) and not math.isfinite(x):
                raise ValueError(f"arange needs finite numbers, got arange({start}, {stop}, {step})")
        if step == 0:
            raise ValueError("arange needs a step that is not 0")
        is_float = any(isinstance(x, float) for x in (start, stop, step))
        size = max(0, math.ceil((stop - start) / step) if is_float else ceildiv(stop - start, step))
        last = start + (size - 1) * step if size else start
        if dtype is None:
            ints = dtypes.default_int
            fits = is_float or (ints.min <= min(start, last) and max(start, last) <= ints.max)
            dt = dtypes.default_float if is_float else ints if fits else dtypes.int64
            if not is_float and not (dt.min <= min(start, last) and max(start, last) <= dt.max):
                raise OverflowError(f"arange({start}, {stop}, {step}) fits no dtype: the widest holds {dt.min} to "
                                    f"{dt.max}")
        else:
            dt = to_dtype(dtype)
            if not (dt.min <= min(start, last) and max(start, last) <= dt.max):
                raise OverflowError(f"arange({start}, {stop}, {step}) does not fit {dt}: it holds {dt.min} to {dt.max}")
        if size == 0:
            return cls._const(0, dt).reshape((1,)).shrink(((0, 0),))
        count = cls._iota(size)
        if is_float or dt.is_float:
            places: Self = count.cast(_exact_float(dt)) * float(step) + float(start)
            return places.cast(dt)
        numbers: Self = count * step + start
        return numbers.cast(dt)

    @classmethod
    def linspace(cls, start: int | float, stop: int | float, steps: int, dtype: DTypeLike | None = None) -> Self:
        """``steps`` numbers from ``start`` to ``stop``, both included; the halves count from their own end.

        With an integer dtype the numbers, computed in float64 as in torch, lose their fraction.

        Raises:
            ValueError: negative ``steps``, bool as dtype, or a number that is not finite.
            OverflowError: an end does not fit the dtype.
        """
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        if not isinstance(steps, int):
            raise TypeError(f"linspace needs an int as number of steps, got {steps!r}")
        if steps < 0:
            raise ValueError(f"linspace needs a number of steps that is not negative, got {steps}")
        if dt is dtypes.bool:
            raise ValueError("linspace with bool dtype is not supported: use a number")
        for x in (start, stop):
            if not isinstance(x, (int, float)):
                raise TypeError(f"linspace counts between numbers, got {x!r} of type {type(x).__name__}")
            if not math.isfinite(x):
                raise ValueError(f"linspace needs finite numbers, got linspace({start}, {stop}, {steps})")
        if dt.is_int and not dt.min <= min(start, stop) <= max(start, stop) <= dt.max:
            raise OverflowError(f"linspace({start}, {stop}, {steps}) does not fit {dt}: it holds {dt.min} to {dt.max}")
        if steps == 0:
            return cls._const(0, dt).reshape((1,)).shrink(((0, 0),))
        if steps == 1:
            return cls._const(start if dt.is_float else int(start), dt).reshape((1,))
        math_dtype = _exact_float(dt) if dt.is_float else dtypes.float64
        step = (stop - start) / (steps - 1)
        count = cls._iota(steps)
        from_start: Self = count.cast(math_dtype) * step + float(start)
        from_stop = cls._iota(steps).sub(steps - 1).cast(math_dtype) * step + float(stop)
        return (count < steps // 2).where(from_start, from_stop).cast(dt)

    @classmethod
    def eye(cls, n: int, m: int | None = None, dtype: DTypeLike | None = None) -> Self:
        """Matrix of ones on the main diagonal, zeros elsewhere.

        Raises:
            ValueError: a negative extent.
        """
        n, columns = as_ints("an extent of eye", (n, n if m is None else m))
        if n < 0 or columns < 0:
            raise ValueError(f"eye needs extents that are not negative, got {n} and {columns}")
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        if n == 0 or columns == 0:
            return cls._const(0, dt).reshape((1, 1)).expand((n or 1, columns or 1)).shrink(((0, n), (0, columns)))
        return cls._iota(n).reshape((n, 1)).eq(cls._iota(columns)).cast(dt)

    def _numbered(self, axis: int, ndim: int | None = None) -> Self:
        """0, 1 ... along ``axis`` of self as int32, with extent 1 on the other axes."""
        rank = self.ndim if ndim is None else ndim
        number = self._iota(self.shape[axis]).cast(dtypes.int32)
        return number.reshape(tuple(-1 if i == axis else 1 for i in range(rank)))

    @classmethod
    def _tri(cls, shape: Shape, diagonal: Any = 0) -> Self:
        """Bool matrix of the last two extents, true at and above the given diagonal."""
        row = cls._iota(shape[-2]).reshape((shape[-2], 1))
        mask: Self = row + diagonal <= cls._iota(shape[-1])
        return mask

    def _need_matrix(self, what: str) -> None:
        if self.ndim < 2:
            raise ShapeError(f"{what} takes the last two axes, but the shape is {self.shape}: add one with unsqueeze")

    def triu(self, diagonal: Any = 0) -> Self:
        """Self on and above the diagonal of the last two axes, 0 below.

        Raises:
            ShapeError: there are less than two axes.
        """
        self._need_matrix("triu")
        [diagonal] = as_ints("the diagonal of triu", (diagonal,))
        if 0 in self.shape[-2:]:
            return self
        return self._tri(self.shape, diagonal).where(self, 0).cast(self.dtype)

    def tril(self, diagonal: Any = 0) -> Self:
        """Self on and below the diagonal of the last two axes, 0 above.

        Raises:
            ShapeError: there are less than two axes.
        """
        self._need_matrix("tril")
        [diagonal] = as_ints("the diagonal of tril", (diagonal,))
        if 0 in self.shape[-2:]:
            return self
        return self._tri(self.shape, diagonal + 1).where(0, self).cast(self.dtype)
