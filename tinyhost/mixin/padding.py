"""Padding, joining and cyclic moves.

Takes nodes; gives views joined by WHERE. ``pad`` with a value is ``WHERE(PAD(True), PAD(x), value)``, ``cat`` selects
each part by the mask of its box, so no values are added up.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, least_upper_dtype
from tinyhost.errors import ShapeError
from tinyhost.helpers import argfix
from tinyhost.mixin.arrange import ArrangeMixin
from tinyhost.mixin.elementwise import ElementwiseMixin
from tinyhost.mixin.movement import as_ints, is_zero, make_tuple
from tinyhost.mixin.sint import resolve, same_shape, smax, smin, ssimplify

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.mixin.sint import sint

Pads = tuple[tuple[Any, Any], ...]


def _is_pair(p: Any) -> bool:
    return p is None or (isinstance(p, (tuple, list)) and len(p) == 2)


def grouped_pads(padding: Sequence[Any], ndim: int) -> Pads:
    """(before, after) for each axis, from one pair or None for each axis, or from flat numbers of the last axis first.

    Raises:
        ShapeError: the padding does not fit the number of axes.
    """
    if not isinstance(padding, (tuple, list)):
        raise TypeError(f"padding is a tuple of numbers or pairs, got {padding!r}")
    flat = all(not isinstance(p, (tuple, list)) and p is not None for p in padding)
    if not flat:
        if len(padding) != ndim or not all(map(_is_pair, padding)):
            raise ShapeError(f"padding needs (before, after) or None for each of {ndim} axes, got {tuple(padding)}")
        return tuple((0, 0) if p is None else as_ints("a number of padding", p) for p in padding)
    if len(padding) % 2:
        raise ShapeError(f"flat padding needs an even number of values, got {tuple(padding)}")
    if len(padding) // 2 > ndim:
        raise ShapeError(f"flat padding {tuple(padding)} is for {len(padding) // 2} axes, there are {ndim}")
    padding = as_ints("a number of padding", padding)
    pairs = tuple((padding[i], padding[i + 1]) for i in range(0, len(padding), 2))[::-1]
    return ((0, 0),) * (ndim - len(pairs)) + pairs


class PadMixin(ElementwiseMixin, ArrangeMixin):
    """pad, cat, stack, roll, diag, meshgrid."""

    __slots__ = ()

    # *** padding ***
    def pad(self, padding: Sequence[Any], mode: str = "constant", value: Any = 0.0) -> Self:
        """More elements around self: ``value``, or copies of self's own.

        Args:
            padding: (before, after) or None for each axis, or flat numbers, last axis first. Negative ones shrink.
            mode: "constant", "reflect" (mirror without the edge), "replicate" (the edge), "circular".
            value: what "constant" fills in.

        Raises:
            ValueError: unknown mode.
            ShapeError: the padding does not fit the shape.
        """
        pads = grouped_pads(padding, self.ndim)
        if mode == "constant":
            return self._pad_constant(pads, value)
        if mode not in ("reflect", "replicate", "circular"):
            raise ValueError(f"unknown padding mode {mode!r}: use 'constant', 'reflect', 'replicate' or 'circular'")
        # what is cropped can still be mirrored, but does not come round
        x = self if mode == "reflect" else self._crop(pads)
        for axis, (before, after) in enumerate(pads):
            before, after = smax(before, 0), smax(after, 0)
            if not (is_zero(before) and is_zero(after)):
                x = x._pad_axis(axis, before, after, mode)
        return (x._crop(tuple((smin(b, 0), smin(a, 0)) for b, a in pads)) if mode == "reflect" else x)._fresh()

    def _crop(self, pads: Pads) -> Self:
        """What negative padding leaves."""
        if all(resolve(p >= 0) for pair in pads for p in pair):
            return self
        left = tuple(ssimplify(s + smin(b, 0) + smin(a, 0)) for s, (b, a) in zip(self.shape, pads))
        if any(isinstance(n, int) and n < 0 for n in left):
            raise ShapeError(f"padding {pads} takes away more than there is of shape {self.shape}")
        return self.shrink(tuple((-smin(b, 0), ssimplify(n - smin(b, 0))) for n, (b, _) in zip(left, pads)))

    def _pad_constant(self, pads: Pads, value: Any) -> Self:
        x = self._crop(pads)
        pads = tuple((smax(b, 0), smax(a, 0)) for b, a in pads)
        if all(is_zero(p) for pair in pads for p in pair):
            return x._fresh()
        if isinstance(value, float) and not self.dtype.is_float and value.is_integer():
            value = int(value)
        if 0 in x.shape:
            shape = tuple(ssimplify(s + b + a) for s, (b, a) in zip(x.shape, pads))
            return self._const(value, self.dtype)._broadcast_to(shape)
        return x._box_mask(pads).where(x._pad_box(pads), bool(value) if self.dtype is dtypes.bool else value)

    def _box_mask(self, pads: Pads) -> Self:
        """True where the box of self lies after padding."""
        return self._const(True)._broadcast_to(self.shape)._pad_box(pads)

    def _part(self, axis: int, start: sint, stop: sint) -> Self:
        return self.shrink(tuple((start, stop) if i == axis else None for i in range(self.ndim)))

    def _pad_axis(self, axis: int, before: sint, after: sint, mode: str) -> Self:
        size = self.shape[axis]
        limit = size - 1 if mode == "reflect" else size
        if mode != "replicate" and not (resolve(before <= limit) and resolve(after <= limit)):
            raise ShapeError(f"{mode} padding ({before}, {after}) of axis {axis} of {self.shape} is over {limit}")

        if mode == "circular":
            low, high = self._part(axis, size - before, size), self._part(axis, 0, after)
        elif mode == "reflect":
            low = self._part(axis, 1, before + 1).flip(axis)
            high = self._part(axis, size - 1 - after, size - 1).flip(axis)
        else:
            edges = self._part(axis, 0, 1), self._part(axis, size - 1, size)
            low, high = (edge.expand(tuple(n if i == axis else s for i, s in enumerate(self.shape)))
                         for edge, n in zip(edges, (before, after)))
        parts = [p for p in (low, self, high) if not is_zero(p.shape[axis])]
        return parts[0].cat(*parts[1:], dim=axis)

    def pad_to(self, shape: Any, *args: Any, value: Any = 0) -> Self:
        """Padded behind to the given shape; None keeps the axis."""
        new = argfix(shape, *args)
        if len(new) != self.ndim:
            raise ShapeError(f"pad_to needs an extent for each axis of shape {self.shape}, got {new}")
        pads = tuple((0, 0) if n is None else (0, ssimplify(n - s)) for s, n in zip(self.shape, new))
        return self.pad(pads, value=value)

    # *** joining ***
    def _at_joint_dtype(self, others: tuple[Self, ...]) -> list[Self]:
        items = [self, *others]
        dtype = least_upper_dtype(*(t.dtype for t in items))
        return [t.cast(dtype) for t in items]

    def _joined(self, what: str, args: tuple[Self, ...]) -> list[Self]:
        """Self and ``args``, which must be nodes too."""
        items: list[Self] = list(argfix(self, *args))
        for t in items:
            if not isinstance(t, PadMixin):
                raise TypeError(f"{what} joins tensors, got {type(t).__name__} {t!r}: give them one by one")
        return items

    def cat(self, *args: Self, dim: int = 0) -> Self:
        """Self and ``args`` one after the other along ``dim``.

        Raises:
            ShapeError: other axes differ.
        """
        items = self._joined("cat", args)
        first, *rest = items
        dim = first._resolve_dim(dim)
        others = [t.shape[:dim] + t.shape[dim + 1:] if t.ndim == first.ndim else None for t in (first, *rest)]
        if not all(o is not None and same_shape(o, others[0] or ()) for o in others):
            raise ShapeError(f"cat along axis {dim} needs equal other axes, got {[t.shape for t in (first, *rest)]}")
        items = [t for t in first._at_joint_dtype(tuple(rest)) if not is_zero(t.shape[dim])]
        if len(items) < 2:
            return (items[0] if items else first)._fresh()
        starts: list[sint] = [0]
        for t in items:
            starts.append(ssimplify(starts[-1] + t.shape[dim]))
        ends = [ssimplify(starts[-1] - stop) for stop in starts[1:]]
        pads = [tuple(edge if i == dim else (0, 0) for i in range(first.ndim)) for edge in zip(starts, ends)]
        out = items[-1]._pad_box(pads[-1])
        for t, p in zip(items[-2::-1], pads[-2::-1]):
            out = t._box_mask(p).where(t._pad_box(p), out)
        return out

    def stack(self, *args: Self, dim: int = 0) -> Self:
        """Self and ``args``, of one shape, along a new axis ``dim``.

        Raises:
            ShapeError: the shapes differ.
        """
        first, *rest = self._joined("stack", args)
        if not all(same_shape(t.shape, first.shape) for t in rest):
            raise ShapeError(f"stack needs equal shapes, got {[t.shape for t in (first, *rest)]}")
        dim = first._resolve_dim(dim, extra=True)
        return first._stack(first._at_joint_dtype(tuple(rest)))._move_from_front(dim)

    def hstack(self, *args: Self) -> Self:
        """Joined along axis 1, nodes of one axis along axis 0; 0-d ones count as 1-d."""
        items: list[Self] = [t.reshape((1,)) if t.ndim == 0 else t for t in self._joined("hstack", args)]
        return items[0].cat(*items[1:], dim=0 if items[0].ndim == 1 else 1)

    def vstack(self, *args: Self) -> Self:
        """Joined along axis 0; nodes of less than two axes are rows."""
        items: list[Self] = [t.reshape((1, t.numel())) if t.ndim < 2 else t for t in self._joined("vstack", args)]
        return items[0].cat(*items[1:], dim=0)

    def dstack(self, *args: Self) -> Self:
        """Joined along axis 2; axes missing behind are added, rows get one in front first."""
        rows: list[Self] = [t.reshape((1, t.numel())) if t.ndim < 2 else t for t in self._joined("dstack", args)]
        items = [t.unsqueeze(-1) if t.ndim == 2 else t for t in rows]
        return items[0].cat(*items[1:], dim=2)

    def meshgrid(self, *args: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Coordinates of the grid that the 1-d nodes span.

        Raises:
            ValueError: unknown indexing.
        """
        if indexing not in ("ij", "xy"):
            raise ValueError(f"unknown indexing {indexing!r}: use 'ij' or 'xy'")
        items = self._joined("meshgrid", args)
        if any(t.ndim > 1 for t in items):
            raise ShapeError(f"meshgrid takes 1-d coordinates, got shapes {[t.shape for t in items]}")
        if len(items) == 1:
            return tuple(items)
        order = (1, 0, *range(2, len(items))) if indexing == "xy" else tuple(range(len(items)))
        shape = tuple(items[i].numel() for i in order)
        out = []
        for i, t in enumerate(items):
            axis = order.index(i)
            out.append(t.reshape(tuple(s if k == axis else 1 for k, s in enumerate(shape))).expand(shape))
        return tuple(out)

    # *** moves ***
    def roll(self, shifts: int | tuple[int, ...], dims: int | tuple[int, ...] | None = None) -> Self:
        """Elements moved cyclically along ``dims``, or in the flattened node.

        Raises:
            ShapeError: different numbers of shifts and axes.
        """
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        axes = make_tuple(dims, 1)
        amounts = as_ints("a shift of roll", make_tuple(shifts, 1))
        if len(axes) != len(amounts):
            raise ShapeError(f"roll needs one shift for each axis, got shifts {amounts} for axes {axes}")
        x = self
        for axis, amount in zip((self._resolve_dim(a) for a in axes), amounts):
            size = x.shape[axis]
            if isinstance(size, int) and size == 0:
                continue
            start = ssimplify(-amount % size)
            if not is_zero(start):
                double = x.repeat(tuple(2 if i == axis else 1 for i in range(x.ndim)))
                x = double.shrink(tuple((start, start + size) if i == axis else None for i in range(x.ndim)))
        return x._fresh()

    def diag(self, diagonal: int = 0) -> Self:
        """The square matrix with self on a diagonal, counted upward from the main one; of a matrix that diagonal.

        Raises:
            ShapeError: self has neither one nor two axes.
        """
        if self.ndim == 2:
            return self.diagonal(diagonal)
        if self.ndim != 1:
            raise ShapeError(f"diag makes a matrix of 1-d nodes and reads 2-d ones, got shape {self.shape}: use "
                             "diagonal() for more axes")
        [diagonal] = as_ints("the number of a diagonal", (diagonal,))
        n = self.shape[0]
        rows = self.reshape((n, 1)).pad((None, (0, n)))
        square = rows.reshape((n * (n + 1),)).shrink(((0, n * n),)).reshape((n, n))
        below, right = max(0, -diagonal), max(0, diagonal)
        return square.pad(((below, right), (right, below))) if diagonal else square
