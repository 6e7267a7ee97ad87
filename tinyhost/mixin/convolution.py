"""Convolution and pooling over windows.

Takes (batch, channels, *spatial) nodes; gives reductions over windows that ``_pool`` makes by repetition, for any
number of spatial axes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes
from tinyhost.env import WINO
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import ceildiv, flatten, prod
from tinyhost.mixin import winograd
from tinyhost.mixin.contraction import ContractionMixin
from tinyhost.mixin.movement import as_ints, make_tuple
from tinyhost.mixin.sint import same, same_shape

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike


def spatial_padding(padding: int | Sequence[int], dims: int) -> list[int]:
    """(before, after) of each spatial axis, flat, last axis first, from one value, one for each axis, or all of them.

    Raises:
        ShapeError: the number of values fits neither.
        TypeError: a value is no int.
    """
    if not isinstance(padding, (int, list, tuple)):
        raise TypeError(f"padding is an int or several, got {padding!r}")
    if not isinstance(padding, int) and len(padding) not in (2 * dims, dims):
        raise ShapeError(f"padding needs 1, {dims} or {2 * dims} values for {dims} spatial axes, got {tuple(padding)}")
    if isinstance(padding, int):
        return [padding] * 2 * dims
    padding = as_ints("padding", padding)
    return list(padding) if len(padding) == 2 * dims else [p for p in padding for _ in range(2)][::-1]


def _check_windows(what: str, kernel: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any]) -> None:
    """Windows have positive extents and move.

    Raises:
        ShapeError: a kernel, stride or dilation below 1.
        TypeError: one that is no int.
    """
    for name, values in (("kernel", kernel), ("stride", stride), ("dilation", dilation)):
        if any(isinstance(v, int) and v < 1 for v in as_ints(f"a {name} of {what}", values)):
            raise ShapeError(f"{what} needs a {name} of at least 1 along each axis, got {tuple(values)}")


def _check_bias(what: str, bias: Any, channels: Any) -> None:
    if bias is not None and (bias.ndim != 1 or not same(bias.shape[0], channels)):
        raise ShapeError(f"{what} needs a bias of shape ({channels},), one for each output channel, got {bias.shape}")


class ConvolutionMixin(ContractionMixin):
    """conv2d, conv_transpose2d, pooling and its inverse."""

    __slots__ = ()

    # *** convolution ***
    def conv2d(self, weight: Self, bias: Self | None = None, groups: int = 1, stride: Any = 1, dilation: Any = 1,
               padding: int | Sequence[int] = 0, dtype: DTypeLike | None = None) -> Self:
        """Cross-correlation with ``weight`` of shape (out channels, in channels / groups, *kernel).

        Integers are summed in int32. The context variable WINO chooses Winograd's transforms where they apply.

        Args:
            padding: one number, one for each spatial axis, or (before, after) of each, the last axis first.

        Raises:
            ShapeError: channels, groups and shapes do not fit.
        """
        (out, per_group), kernel = weight.shape[:2], weight.shape[2:]
        if groups < 1 or self.ndim != weight.ndim or groups * per_group != self.shape[1] or out % groups:
            raise ShapeError(f"conv of input {self.shape} with weight {weight.shape} and {groups} groups: the input "
                             f"needs {groups * per_group} channels and {weight.ndim} axes, and groups divide {out}")
        n = len(kernel)
        _check_bias("conv", bias, out)
        strides, dilations = make_tuple(stride, n), make_tuple(dilation, n)
        _check_windows("conv", kernel, strides, dilations)
        padded = self.pad(spatial_padding(padding, n))
        if WINO.value and winograd.fits(kernel, strides, dilations, self.dtype.is_float):
            ret: Self = winograd.winograd(padded, weight, groups, dtype)
        else:
            wanted = dtypes.int32 if dtype is None and not self.dtype.is_float else dtype
            ret = padded._window_products(weight, groups, strides, dilations, wanted)
        return ret if bias is None else ret + bias.reshape((1, -1, *(1,) * n))

    def _window_products(self, weight: Self, groups: int, stride: tuple[int, ...], dilation: tuple[int, ...],
                         dtype: DTypeLike | None) -> Self:
        """Each window of self times the kernel, summed over channels and window."""
        batch, (out, per_group), kernel = self.shape[0], weight.shape[:2], weight.shape[2:]
        n = len(kernel)
        x = self._pool(kernel, stride, dilation)
        window = x.shape[2:2 + n]
        # (batch, group, 1, in, *window, *kernel) -> (batch, group, 1, in, *kernel, *window): what a gradient keeps of
        # the products is read along the window
        x = x.reshape((batch, groups, 1, per_group, *window, *kernel))
        x = x.permute((0, 1, 2, 3, *range(4 + n, 4 + 2 * n), *range(4, 4 + n)))
        w = weight.reshape((1, groups, out // groups, per_group, *kernel, *(1,) * n))
        return x._product_sum(w, tuple(range(3, 4 + n)), dtype).reshape((batch, out, *window))

    def conv_transpose2d(self, weight: Self, bias: Self | None = None, groups: int = 1, stride: Any = 1,
                         dilation: Any = 1, padding: Any = 0, output_padding: Any = 0) -> Self:
        """Transposed convolution with ``weight`` of shape (in channels, out channels / groups, *kernel).

        Args:
            padding: how many rows are cut from each end of the result: as in ``conv2d``, whose adjoint this is.
            output_padding: rows added at the far end, for sizes that ``conv2d`` rounds down.

        Raises:
            ShapeError: channels, groups and shapes do not fit.
        """
        kernel = weight.shape[2:]
        n = len(kernel)
        channels = weight.shape[0]
        if self.ndim != weight.ndim or groups < 1 or channels % groups or not same(self.shape[1], channels):
            raise ShapeError(f"conv_transpose of input {self.shape} with weight {weight.shape} and {groups} groups: "
                             f"the input needs {weight.ndim} axes and {channels} channels, a multiple of groups")
        _check_windows("conv_transpose", kernel, make_tuple(stride, n), make_tuple(dilation, n))
        if any(e < 0 for e in make_tuple(output_padding, n)):
            raise ShapeError(f"conv_transpose needs an output_padding that is not negative, got {output_padding}")
        w = weight.reshape((groups, weight.shape[0] // groups, weight.shape[1], *kernel))
        w = w.transpose(1, 2).flip(tuple(range(3, 3 + n)))
        w = w.reshape((w.shape[0] * w.shape[1], *w.shape[2:]))
        strides, dilations, extra = (make_tuple(v, n) for v in (stride, dilation, output_padding))
        x = self._spread(strides) if any(s > 1 for s in strides) else self
        pads = spatial_padding(padding, n)
        edges = flatten(((k - 1) * d - low, (k - 1) * d - high + e) for k, d, low, high, e in
                        zip(reversed(kernel), reversed(dilations), pads[::2], pads[1::2], reversed(extra)))
        return x.conv2d(w, bias, groups, 1, dilation, tuple(edges))

    def image_conv2d(self, weight: Self, bias: Self | None = None, groups: int = 1, stride: Any = 1, dilation: Any = 1,
                     padding: Any = 0, dtype: DTypeLike | None = None) -> Self:
        """Same as ``conv2d``: how a device lays out its operands is no matter of the graph."""
        return self.conv2d(weight, bias, groups, stride, dilation, padding, dtype)

    def _spread(self, strides: tuple[int, ...]) -> Self:
        """``stride - 1`` zeros between spatial neighbours."""
        lead, space = self.shape[:2], self.shape[2:]
        x = self.reshape((*lead, *(v for k in space for v in (k, 1))))
        x = x.pad((None, None, *(v for s in strides for v in (None, (0, s - 1)))))
        x = x.reshape((*lead, *(k * s for k, s in zip(space, strides))))
        return x.shrink((None, None, *((0, k * s - (s - 1)) for k, s in zip(space, strides))))

    # *** pooling ***
    def _ceil_padding(self, k_: Sequence[int], s_: Sequence[int], d_: Sequence[int], pads: Sequence[int]) -> list[int]:
        """Padding that lets the last partial window count."""
        out = list(pads)
        for i, (k, s, d, size) in enumerate(zip(k_, s_, d_, self.shape[-len(k_):])):
            at = 2 * (len(k_) - 1 - i)
            full = size + pads[at] + pads[at + 1]
            count = ceildiv(full - d * (k - 1) - 1, s) + 1
            if s * (count - 1) >= size + pads[at]:  # a window must not start behind the input
                count -= 1
            out[at + 1] += max(0, s * (count - 1) + d * (k - 1) + 1 - full)
        return out

    def _pool_geometry(self, kernel_size: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool) -> Any:
        k_ = make_tuple(kernel_size, 2)
        n = len(k_)
        if n > self.ndim:
            raise ShapeError(f"pool of kernel {k_} needs {n} axes, got shape {self.shape}")
        s_, d_ = make_tuple(k_ if stride is None else stride, n), make_tuple(dilation, n)
        _check_windows("pool", k_, s_, d_)
        pads = spatial_padding(padding, n)
        return k_, s_, d_, pads, self._ceil_padding(k_, s_, d_, pads) if ceil_mode else pads

    def avg_pool2d(self, kernel_size: tuple[int, ...] = (2, 2), stride: Any = None, dilation: Any = 1,
                   padding: int | tuple[int, ...] = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Self:
        """Mean of windows over the last axes, whose number is that of ``kernel_size``."""
        k_, s_, d_, pads, wide = self._pool_geometry(kernel_size, stride, dilation, padding, ceil_mode)
        axes = tuple(range(-len(k_), 0))

        def windows(x: Self, p: Sequence[int]) -> Self:
            return x.pad(p)._pool(k_, s_, d_)
        if count_include_pad and not ceil_mode:
            return windows(self, pads).mean(axes)
        counted = self._const(1.0)._broadcast_to(self.shape)
        if count_include_pad:  # the given padding counts, what ceil_mode adds does not
            counted = self._const(1.0)._broadcast_to(self.pad(pads).shape)
            extra = [w - p for w, p in zip(wide, pads)]
            count = windows(counted, extra)
        else:
            count = windows(counted, wide)
        return windows(self, wide).sum(axes) / count.sum(axes)

    def max_pool2d(self, kernel_size: tuple[int, ...] = (2, 2), stride: Any = None, dilation: Any = 1,
                   padding: int | tuple[int, ...] = 0, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        """Largest of windows over the last axes, and with ``return_indices`` their flat positions in those axes."""
        k_, s_, d_, _, pads = self._pool_geometry(kernel_size, stride, dilation, padding, ceil_mode)
        axes = tuple(range(-len(k_), 0))
        windows = self.pad(pads, value=self.dtype.min)._pool(k_, s_, d_)
        best = windows.max(axes)
        if not return_indices:
            return best
        space = self.shape[-len(k_):]
        size = prod(space)
        countdown = (size - self._iota(size)).cast(dtypes.int32).reshape(space)
        places = countdown.pad(pads, value=0)._pool(k_, s_, d_)
        hit = windows.eq(best.reshape((*best.shape, *(1,) * len(k_))))
        if self.dtype.is_float:
            hit = hit | windows.isnan()
        return best, size - hit.where(places, 0).max(axes)

    def max_unpool2d(self, indices: Self, kernel_size: tuple[int, ...] = (2, 2), stride: Any = None, dilation: Any = 1,
                     padding: int | tuple[int, ...] = 0, output_size: Any = None) -> Self:
        """Values put back where ``max_pool2d(return_indices=True)`` found them, zeros elsewhere.

        Args:
            output_size: the extents that were pooled, where several pool to the same; leading axes may stand before.

        Raises:
            ShapeError, DTypeError: indices are no integers of self's shape, or a size for too few axes.
        """
        if not same_shape(self.shape, indices.shape):
            raise ShapeError(f"max_unpool2d needs an index for each value, shape {self.shape}, got {indices.shape}")
        if not indices.dtype.is_int:
            raise DTypeError(f"max_unpool2d needs integer indices, got {indices.dtype}")
        k_, s_, d_, pads, _ = self._pool_geometry(kernel_size, stride, dilation, padding, False)
        n = len(k_)
        lead, space = self.shape[:-n], self.shape[-n:]
        if output_size is None:
            low, high = pads[::2][::-1], pads[1::2][::-1]
            output_size = tuple((i - 1) * s - a - b + d * (k - 1) + 1
                                for i, s, a, b, d, k in zip(space, s_, low, high, d_, k_))
        if len(tuple(output_size)) < n:
            raise ShapeError(f"max_unpool2d over {n} axes needs an output_size of as many, got {output_size}")
        out = tuple(output_size)[-n:]
        flat = indices.reshape((*lead, prod(space), 1))
        hit = flat.eq(self._iota(prod(out)).cast(indices.dtype))
        values = self.reshape((*lead, prod(space), 1))
        # a place that overlapping windows found twice gets its value once
        number = (self._iota(prod(space)) + 1).cast(dtypes.int32).reshape((prod(space), 1))
        last = hit.where(number, 0).max(-2, keepdim=True)
        return (hit & number.eq(last)).where(values, 0).sum(-2, dtype=self.dtype).reshape((*lead, *out))

