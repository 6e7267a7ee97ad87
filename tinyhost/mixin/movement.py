"""Movement methods: the same elements under another shape. No arithmetic on values happens here.

Takes a node and shapes, orders and pairs; gives movement nodes through the ``_mop`` hook. Extents may be symbolic.
Padding with a value has one form: ``WHERE(PAD(True), PAD(x), value)``. What PAD itself puts outside is "don't care",
and for bools it is False, which makes ``PAD(True)`` the mask of the box.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.errors import ShapeError
from tinyhost.helpers import argfix, ceildiv, prod
from tinyhost.mixin.einops import apply_rearrange
from tinyhost.mixin.hooks import Node
from tinyhost.mixin.sint import is_one, max_extent, resolve, same, same_shape, smax, sprod, ssimplify
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.mixin.sint import Shape, sint


def as_ints(what: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """``values`` as ints or symbolic integers; ``what`` names one of them.

    Raises:
        TypeError: one is something else.
    """
    out = []
    for v in values:
        if not isinstance(v, int) and not hasattr(v, "vmin"):
            if not hasattr(v, "__index__") or hasattr(v, "uop"):  # reading a tensor here would run kernels
                raise TypeError(f"{what} is an int, got {v!r} in {tuple(values)}")
            v = v.__index__()
        out.append(v)
    return tuple(out)


def check_extents(shape: Sequence[Any]) -> None:
    """An extent is an int or a symbolic integer.

    Raises:
        TypeError: it is something else.
    """
    as_ints("an extent of a shape", shape)


def make_tuple(x: Any, n: int) -> tuple[Any, ...]:
    """``x`` for each of ``n`` axes when it is one value, else ``x`` as a tuple."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,) * n


class MovementMixin(Node):
    """Reshape, permute, expand, pad, shrink, flip and what is made of them."""

    __slots__ = ()

    # *** extents ***
    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def max_shape(self) -> tuple[int, ...]:
        """Shape with each symbolic extent at its largest value."""
        return tuple(max_extent(s) for s in self.shape)

    def numel(self) -> sint:
        """Number of elements."""
        return sprod(self.shape)

    def max_numel(self) -> int:
        """Largest number of elements."""
        return int(prod(self.max_shape))

    def size(self, dim: int | None = None) -> sint | Shape:
        """The shape, or the extent of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def _resolve_dim(self, dim: int, extra: bool = False) -> int:
        """Axis number counted from 0; with ``extra`` the axis behind the last counts too."""
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"an axis is an int, got {dim!r}")
        total = self.ndim + extra
        if not -max(1, total) <= dim <= max(1, total) - 1:
            raise IndexError(f"axis {dim} is outside of {-max(1, total)} to {max(1, total) - 1} of {self.shape}")
        return dim + total if dim < 0 else dim

    # *** the six movement ops ***
    def reshape(self, shape: Any, *args: Any) -> Self:
        """Row-major reinterpretation; one extent may be -1, None keeps the extent of that axis.

        Raises:
            ShapeError: more than one -1, or the number of elements differs.
        """
        asked = argfix(shape, *args)
        new = as_ints("an extent of a shape", tuple(self.shape[i] if s is None else s for i, s in enumerate(asked)))
        given = new
        if (unknown := sum(isinstance(s, int) and s == -1 for s in new)) > 1:
            raise ShapeError(f"only one extent can be inferred (-1), got {new}")
        if unknown:
            rest = sprod(s for s in new if not (isinstance(s, int) and s == -1))
            if isinstance(rest, int) and rest == 0:
                raise ShapeError(f"cannot infer -1 in {new} for shape {self.shape}: the other extents multiply to 0")
            total = sprod(self.shape)
            new = tuple(ssimplify(total // rest) if isinstance(s, int) and s == -1 else s for s in given)
            if isinstance(total, int) and isinstance(rest, int) and rest > 0 and total % rest:
                raise ShapeError(f"cannot reshape {self.shape} ({total} elements) to {given}: {total} elements do not "
                                 f"divide by {rest}")
        if same_shape(new, self.shape):
            return self
        if any(isinstance(s, int) and s < 0 for s in new):
            raise ShapeError(f"cannot reshape {self.shape} to {given}: an extent is negative")
        if not same(old_size := sprod(self.shape), new_size := sprod(new)):
            raise ShapeError(f"cannot reshape {self.shape} ({old_size} elements) to {new} ({new_size} elements)")
        return self._mop(Ops.RESHAPE, new)

    def view(self, shape: Any, *args: Any) -> Self:
        """Same as ``reshape``."""
        return self.reshape(shape, *args)

    def permute(self, order: Any, *args: Any) -> Self:
        """Axes in a new order: axis i of the result is axis ``order[i]`` of self.

        Raises:
            RuntimeError: ``order`` is not a permutation of the axes.
        """
        axes = tuple(self._resolve_dim(x) for x in argfix(order, *args))
        if sorted(axes) != list(range(self.ndim)):
            raise RuntimeError(f"order {axes} is not a permutation of the {self.ndim} axes of shape {self.shape}")
        return self if axes == tuple(range(self.ndim)) else self._mop(Ops.PERMUTE, axes)

    def expand(self, shape: Any, *args: Any) -> Self:
        """Repeats axes of extent 1, and adds axes on the left; -1 or None keeps the extent.

        Raises:
            ShapeError: an axis that is not 1 would change.
        """
        asked = argfix(shape, *args)
        old: Shape = self.shape
        missing = len(asked) - len(old)
        if missing < 0:
            raise ShapeError(f"cannot expand {old} to {asked}: the result has fewer axes")
        aligned = (1,) * missing + old
        given = as_ints("an extent of a shape", tuple(-1 if n is None else n for n in asked))
        new = tuple(o if isinstance(n, int) and n == -1 else n for o, n in zip(aligned, given))
        grown = [i for i, (o, n) in enumerate(zip(aligned, new)) if i < missing or not same(o, n)]
        if not grown:
            return self
        if bad := [i for i in grown if not is_one(aligned[i])]:
            raise ShapeError(f"cannot expand {old} to {new}: axis {bad[0] - missing} is {aligned[bad[0]]}, not 1")
        kept = [i for i in range(len(new)) if i not in set(grown)]
        ret = self.reshape(tuple(aligned[i] for i in kept))._mop(Ops.EXPAND, tuple(new[i] for i in grown))
        place = {axis: i for i, axis in enumerate(grown + kept)}
        return ret.permute(tuple(place[i] for i in range(len(new))))

    def _broadcast_to(self, shape: Shape) -> Self:
        return self if same_shape(self.shape, shape) else self.expand(shape)

    def shrink(self, arg: Sequence[tuple[sint, sint] | None]) -> Self:
        """Sub-box from ``start`` to ``stop`` on each axis; None keeps the axis.

        Raises:
            ShapeError: a pair for each axis is missing, or a pair lies outside.
        """
        if len(arg) != self.ndim:
            raise ShapeError(f"shrink needs a pair for each axis of shape {self.shape}, got {tuple(arg)}")
        bounds = [None if a is None else as_ints("a bound of shrink", a) for a in arg]
        pairs = tuple((0, s) if a is None else (a[0], ssimplify(a[1] - a[0])) for s, a in zip(self.shape, bounds))
        if all(isinstance(o, int) and o == 0 and same(n, s) for (o, n), s in zip(pairs, self.shape)):
            return self
        for s, (o, n) in zip(self.shape, pairs):
            if not (resolve(o >= 0) and resolve(n >= 0) and resolve(s - o - n >= 0)):
                raise ShapeError(f"cannot shrink {self.shape} to {tuple(arg)}: {o} to {ssimplify(o + n)} is not in {s}")
        return self._mop(Ops.SHRINK, pairs)

    def _pad_box(self, pads: Sequence[tuple[sint, sint]]) -> Self:
        """Self in a larger box, ``before`` and ``after`` on each axis; what is outside must not be looked at."""
        pairs = tuple((b, ssimplify(s + b + a)) for s, (b, a) in zip(self.shape, pads))
        return self._mop(Ops.PAD, pairs)

    def flip(self, axis: Any, *args: Any) -> Self:
        """The given axes reversed.

        Raises:
            RuntimeError: an axis is given twice.
        """
        axes = tuple(self._resolve_dim(x) for x in argfix(axis, *args))
        if len(axes) != len(set(axes)):
            raise RuntimeError(f"an axis can be flipped only once, got {axes}")
        return self._mop(Ops.FLIP, tuple(i in axes for i in range(self.ndim))) if axes else self

    # *** axes ***
    @property
    def T(self) -> Self:
        """Self with all axes in reverse order."""
        return self.permute(tuple(range(self.ndim))[::-1])

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        dim0, dim1 = self._resolve_dim(dim0), self._resolve_dim(dim1)
        if order:
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.permute(tuple(order))

    def _move_to_front(self, dim: int) -> Self:
        return self.permute((dim, *(i for i in range(self.ndim) if i != dim)))

    def _move_from_front(self, dim: int) -> Self:
        return self.permute((*range(1, dim + 1), 0, *range(dim + 1, self.ndim)))

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Self:
        """Without the axes of extent 1, or without those of the given axes that are 1."""
        if dim is None:
            return self.reshape(tuple(s for s in self.shape if not is_one(s)))
        axes = {self._resolve_dim(d) for d in make_tuple(dim, 1)}
        return self.reshape(tuple(s for i, s in enumerate(self.shape) if not (i in axes and is_one(s))))

    def unsqueeze(self, dim: int | Sequence[int]) -> Self:
        """With a new axis of extent 1 at ``dim``; several are places in the result.

        Raises:
            ShapeError: a place is given twice.
        """
        if isinstance(dim, int):
            dim = self._resolve_dim(dim, extra=True)
            return self.reshape(self.shape[:dim] + (1,) + self.shape[dim:])
        rank = self.ndim + len(dim)
        if any(not -rank <= d < rank for d in dim) or len({d % rank for d in dim}) != len(dim):
            raise ShapeError(f"unsqueeze needs different places between {-rank} and {rank - 1}, got {tuple(dim)}")
        places, old = {d % rank for d in dim}, iter(self.shape)
        return self.reshape(tuple(1 if i in places else next(old) for i in range(rank)))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Axes ``start_dim`` to ``end_dim``, both included, merged into one."""
        start, end = self._resolve_dim(start_dim), self._resolve_dim(end_dim)
        if self.ndim and start > end:
            raise ShapeError(f"flatten from axis {start_dim} to {end_dim} of {self.shape}: the first comes after the "
                             "last")
        return self.reshape(self.shape[:start] + (sprod(self.shape[start:end + 1]),) + self.shape[end + 1:])

    def unflatten(self, dim: int, sizes: tuple[int, ...]) -> Self:
        """Axis ``dim`` split into ``sizes``."""
        dim = self._resolve_dim(dim)
        return self.reshape(self.shape[:dim] + tuple(sizes) + self.shape[dim + 1:])

    # *** boxes ***
    def shrink_to(self, shape: Any, *args: Any) -> Self:
        """The leading corner of the given shape; None keeps the axis."""
        new = argfix(shape, *args)
        if len(new) != self.ndim:
            raise ShapeError(f"shrink_to needs an extent for each axis of shape {self.shape}, got {new}")
        return self.shrink(tuple(None if n is None else (0, n) for n in new))

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Pieces along ``dim``: of one size (the last may be smaller), or of the given sizes.

        Raises:
            ShapeError: the sizes do not add up to the extent, or one is negative.
        """
        dim = self._resolve_dim(dim)
        extent = self.shape[dim]
        sizes = as_ints("a size of split", sizes) if isinstance(sizes, (list, tuple)) else \
            as_ints("a size of split", (sizes,))[0]
        if isinstance(sizes, int):
            if sizes <= 0:
                raise ShapeError(f"split needs a positive size, got {sizes}")
            sizes = [min(sizes, extent - i) for i in range(0, max(1, extent), max(1, sizes))]
        if any(resolve(s < 0, False) for s in sizes):
            raise ShapeError(f"split needs sizes that are not negative, got {list(sizes)}")
        if sum(sizes) != extent:
            raise ShapeError(f"sizes {list(sizes)} do not add up to {extent}, the extent of axis {dim} of {self.shape}")
        out, start = [], 0
        for s in sizes:
            out.append(self.shrink(tuple((start, start + s) if i == dim else None for i in range(self.ndim))))
            start += s
        return tuple(out)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """At most ``chunks`` pieces of equal size along ``dim``, the last may be smaller."""
        [chunks] = as_ints("a number of chunks", (chunks,))
        if chunks <= 0:
            raise ShapeError(f"chunk needs a positive number of chunks, got {chunks}")
        dim = self._resolve_dim(dim)
        extent = self.shape[dim]
        return list(self.split(ceildiv(extent, chunks) if extent else [0] * chunks, dim=dim))

    def repeat(self, repeats: Any, *args: Any) -> Self:
        """Self side by side ``repeats[i]`` times along each axis; missing axes are added on the left."""
        reps = as_ints("a count of repeat", argfix(repeats, *args))
        if len(reps) < self.ndim:
            raise ShapeError(f"repeat needs a count for each axis of shape {self.shape}, got {reps}")
        if any(isinstance(r, int) and r < 0 for r in reps):
            raise ShapeError(f"repeat needs counts that are not negative, got {reps}")
        base = (1,) * (len(reps) - self.ndim) + self.shape
        interleaved = tuple(x for s in base for x in (1, s))
        expanded = tuple(x for r, s in zip(reps, base) for x in (r, s))
        spread = self.reshape(interleaved).expand(expanded)
        return spread.reshape(tuple(ssimplify(r * s) for r, s in zip(reps, base)))._fresh()

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element ``repeats`` times in a row, along ``dim`` or in the flattened node."""
        x, dim = (self.flatten(), 0) if dim is None else (self, self._resolve_dim(dim))
        [repeats] = as_ints("a count of repeat_interleave", (repeats,))
        if resolve(repeats < 0, False):
            raise ShapeError(f"repeat_interleave needs a count that is not negative, got {repeats}")
        shape = x.shape
        x = x.reshape(shape[:dim + 1] + (1,) + shape[dim + 1:])
        x = x.expand(shape[:dim + 1] + (repeats,) + shape[dim + 1:])
        return x.reshape(shape[:dim] + (ssimplify(shape[dim] * repeats),) + shape[dim + 1:])._fresh()

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The diagonal of two axes as a new last axis; ``offset`` counts upward from the main one."""
        dim1, dim2 = self._resolve_dim(dim1), self._resolve_dim(dim2)
        [offset] = as_ints("the offset of a diagonal", (offset,))
        if dim1 == dim2:
            raise RuntimeError(f"the axes of a diagonal must differ, got {dim1} twice")
        x = self.permute((*(i for i in range(self.ndim) if i not in (dim1, dim2)), dim1, dim2))
        lead, (m, n) = x.shape[:-2], x.shape[-2:]
        row, column = max(0, -offset), max(0, offset)
        length = max(0, min(m - row, n - column))
        keep = (None,) * len(lead)
        if length == 0:
            return x.shrink((*keep, (0, 0), (0, 0))).reshape((*lead, 0))
        x = x.shrink((*keep, (row, row + length), (column, column + length)))
        # in rows of length + 1, element (i, i) of the flattened square falls on column 0 of row i
        flat = x.reshape((*lead, length * length))._pad_box((*((0, 0),) * len(lead), (0, length)))
        return flat.reshape((*lead, length, length + 1)).shrink((*keep, None, (0, 1))).reshape((*lead, length))

    def unfold(self, dim: int, size: Any, step: int) -> Self:
        """Windows of ``size`` every ``step`` elements of ``dim``; the window is a new last axis."""
        dim = self._resolve_dim(dim)
        size, step = as_ints("a size or step of unfold", (size, step))
        if size < 0 or step <= 0 or size > self.shape[dim]:
            raise ShapeError(f"cannot unfold axis {dim} of {self.shape}: size {size} must be at most {self.shape[dim]} "
                             f"and step {step} positive")
        order = (*(i for i in range(self.ndim) if i != dim), dim)
        pooled = self.permute(order)._pool((size,), step)
        last = pooled.ndim - 2
        return pooled.permute((*range(dim), last, *range(dim, last), last + 1))

    def _pool(self, k_: Shape, stride: int | tuple[int, ...] = 1, dilation: int | tuple[int, ...] = 1) -> Self:
        """Windows over the last axes: shape (..., *outputs, *k_), built by repetition, without copying by index."""
        n = len(k_)
        if self.ndim < n:
            raise ShapeError(f"cannot pool {n} axes of shape {self.shape}")
        s_, d_ = make_tuple(stride, n), make_tuple(dilation, n)
        if not len(k_) == len(s_) == len(d_):
            raise ShapeError(f"kernel {k_}, stride {s_} and dilation {d_} need one value for each pooled axis")
        lead, i_ = self.shape[:-n], self.shape[-n:]
        keep: tuple[None, ...] = (None,) * len(lead)
        if not all(resolve(d * (k - 1) + 1 <= i) for k, d, i in zip(k_, d_, i_)):
            raise ShapeError(f"kernel {k_} with dilation {d_} is larger than the input {self.shape}")
        o_ = tuple(ceildiv(i - d * (k - 1), s) for i, d, k, s in zip(i_, d_, k_, s_))
        if all(d == 1 and resolve(k <= s, False) for k, s, d in zip(k_, s_, d_)):
            return self._pool_disjoint(keep, k_, s_, o_)
        # a row that is longer by the dilation: window w of the flattened repetition starts w elements later
        f_ = tuple(smax(1, ceildiv(o * s - d, i)) for o, s, i, d in zip(o_, s_, i_, d_))
        x = self.repeat((*(1,) * len(lead), *(ceildiv(k * (i * f + d), i) for k, i, d, f in zip(k_, i_, d_, f_))))
        x = x.shrink((*keep, *((0, k * (i * f + d)) for k, i, d, f in zip(k_, i_, d_, f_))))
        x = x.reshape((*lead, *(v for k, i, d, f in zip(k_, i_, d_, f_) for v in (k, i * f + d))))
        x = x.shrink((*keep, *(v for k, o, s in zip(k_, o_, s_) for v in ((0, k), (0, o * s)))))
        x = x.reshape((*lead, *(v for k, o, s in zip(k_, o_, s_) for v in (k, o, s))))
        x = x.shrink((*keep, *(v for k, o in zip(k_, o_) for v in ((0, k), (0, o), (0, 1)))))
        x = x.reshape((*lead, *(v for k, o in zip(k_, o_) for v in (k, o))))
        m = len(lead)
        return x.permute((*range(m), *(m + 2 * i + 1 for i in range(n)), *(m + 2 * i for i in range(n))))

    def _pool_disjoint(self, keep: tuple[None, ...], k_: Shape, s_: Shape, o_: Shape) -> Self:
        """Windows that do not overlap: one reshape."""
        lead, i_ = self.shape[:len(keep)], self.shape[len(keep):]
        tail = tuple(smax(0, o * s - i) for o, s, i in zip(o_, s_, i_))
        x = self if all(is_zero(t) for t in tail) else self._pad_box((*((0, 0),) * len(lead), *((0, t) for t in tail)))
        x = x.shrink((*keep, *((0, o * s) for o, s in zip(o_, s_))))
        x = x.reshape((*lead, *(v for o, s in zip(o_, s_) for v in (o, s))))
        x = x.shrink((*keep, *(v for o, k in zip(o_, k_) for v in ((0, o), (0, k)))))
        m, n = len(lead), len(k_)
        return x.permute((*range(m), *(m + 2 * i for i in range(n)), *(m + 2 * i + 1 for i in range(n))))

    # *** einops ***
    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Einops-style axes: ``x.rearrange("b (h w) c -> b c h w", h=8)``.

        Raises:
            ShapeError: the formula does not fit the shape.
        """
        return apply_rearrange(self, formula, sizes)


def is_zero(x: sint) -> bool:
    """Whether an extent is known to be 0."""
    return x == 0 if isinstance(x, int) else x.vmin == x.vmax == 0
