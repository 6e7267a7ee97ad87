"""Resampling of trailing axes to another size.

Takes a node and the new sizes of its last axes; gives, one axis after the other, elements taken at computed places and
mixed by weights that are constants of the sizes. Places are those of torch (``align_corners`` and not), so are edges.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, truncate
from tinyhost.errors import ShapeError
from tinyhost.mixin.convolution import ConvolutionMixin
from tinyhost.mixin.movement import as_ints

if TYPE_CHECKING:
    from typing import Self

_ALIASES = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_MODES = ("linear", "cubic", "nearest", "nearest-exact")
_CUBIC = -0.75  # the free coefficient of Keys' cubic kernel, as torch and ONNX have it


class ResampleMixin(ConvolutionMixin):
    """interpolate."""

    __slots__ = ()

    def interpolate(self, size: tuple[int, ...] | int, mode: str = "linear", align_corners: bool = False) -> Self:
        """The last axes resampled to ``size``.

        Args:
            size: new extents of as many trailing axes; a number stands for one axis.
            mode: "linear" ("bilinear", "trilinear"), "cubic" ("bicubic"), "nearest" or "nearest-exact"; all work on
                any number of axes.
            align_corners: the first and last elements keep their places; an axis resampled to 1 takes the first.

        Raises:
            ValueError: unknown mode, or ``align_corners`` with a mode that has no corners.
            TypeError: a size that is no int.
            ShapeError: sizes that are not positive, more of them than axes, or an axis without elements.
        """
        mode = _ALIASES.get(mode, mode)
        if mode not in _MODES:
            raise ValueError(f"unknown interpolation mode {mode!r}: use {', '.join(map(repr, _MODES))}")
        if align_corners and mode not in ("linear", "cubic"):
            raise ValueError(f"align_corners is for modes 'linear' and 'cubic', not {mode!r}")
        sizes = as_ints("a size of interpolate", (size,) if isinstance(size, int) else size)
        if not 0 < len(sizes) <= self.ndim or not all(isinstance(s, int) and s > 0 for s in sizes):
            raise ShapeError(f"interpolate needs positive sizes of the last axes of {self.shape}, got {size}")
        if 0 in self.shape[-len(sizes):]:
            raise ShapeError(f"interpolate cannot make {sizes} of the empty axes of {self.shape}")
        x = self if self.dtype.is_float or mode.startswith("nearest") else self.cast(dtypes.float32)
        for axis, new in zip(range(self.ndim - len(sizes), self.ndim), sizes):
            if new != self.shape[axis]:  # every mode keeps an axis of the same size
                x = x._resampled(axis, new, mode, align_corners)
        x = x._fresh() if x is self else x
        return x if x.dtype is self.dtype else x.round().cast(self.dtype)

    def _resampled(self, axis: int, new: int, mode: str, align_corners: bool) -> Self:
        old = self.shape[axis]
        if mode.startswith("nearest"):
            return self._at_places(axis, self._nearest_places(old, new, mode == "nearest-exact"))
        place = self._iota(new).cast(dtypes.float32)
        if align_corners:
            place = place * ((old - 1) / (new - 1) if new > 1 else 0.0)
        else:
            place = (place + 0.5) * (old / new) - 0.5
        return self._linear_mix(axis, place) if mode == "linear" else self._cubic_mix(axis, place)

    def _linear_mix(self, axis: int, place: Self) -> Self:
        """Both neighbours of each place, weighted by nearness; beyond the ends the end itself."""
        place = place.clip(0, self.shape[axis] - 1)
        low = place.floor()
        part = self._along(axis, (place - low).cast(self.dtype))
        left, right = (self._at_floats(axis, low + i) for i in (0, 1))
        return left + (right - left) * part

    def _cubic_mix(self, axis: int, place: Self) -> Self:
        """Four neighbours of each place, weighted by the cubic kernel; beyond the ends the end repeats."""
        low = place.floor()
        part = place - low
        terms = [self._at_floats(axis, low + (i - 1)) * self._along(axis, w.cast(self.dtype))
                 for i, w in enumerate((_far(part + 1), _near(part), _near(1 - part), _far(2 - part)))]
        return terms[0].usum(*terms[1:])

    def _along(self, axis: int, values: Self) -> Self:
        return values.reshape(tuple(values.shape[0] if k == axis else 1 for k in range(self.ndim)))

    def _at_floats(self, axis: int, places: Self) -> Self:
        return self._at_places(axis, places.clip(0, self.shape[axis] - 1).cast(dtypes.int32))

    def _nearest_places(self, old: int, new: int, centered: bool) -> Self:
        """Where each of ``new`` elements is taken from: floor(i * scale), or of (i + 1/2) * scale.

        Both are rounded as torch rounds them: the scale to float32, then the product; or (i + 1/2) * scale - 1/2, which
        it takes in one step, and then the sum with 1/2.
        """
        if not centered:
            place = self._iota(new).cast(dtypes.float32) * (old / new)
        else:
            significand, exponent = math.frexp(truncate[dtypes.float32](old / new))
            shift = max(24 - exponent, 0)  # scale = factor / 2**shift
            factor = int(significand * 2.0**(exponent + shift))
            double = ((self._iota(new) * 2 + 1).cast(dtypes.int64) * factor - (1 << shift)).maximum(0)
            place = double.cast(dtypes.float32) * 2.0**-(shift + 1) + 0.5
        return place.floor().clip(0, old - 1).cast(dtypes.int32)

    def _at_places(self, axis: int, places: Self) -> Self:
        """Elements of ``axis`` at 1-d integers within it."""
        shape = tuple(places.shape[0] if k == axis else s for k, s in enumerate(self.shape))
        return self._taken(axis, self._along(axis, places).expand(shape))


def _near(t: Any) -> Any:
    """The cubic kernel at distances up to 1."""
    return ((t * (_CUBIC + 2) - (_CUBIC + 3)) * t) * t + 1


def _far(t: Any) -> Any:
    """The cubic kernel at distances from 1 to 2."""
    return ((t * _CUBIC - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC
