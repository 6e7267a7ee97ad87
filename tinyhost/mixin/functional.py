"""Layers without parameters of their own: softmax, norms, losses, attention.

Takes nodes, gives graphs of the mixins below. Losses follow torch: a ``reduction`` of "mean", "sum" or "none".
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tinyhost.dtype import dtypes, least_upper_dtype, sum_acc_dtype, to_dtype
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.mixin.movement import make_tuple
from tinyhost.mixin.resampling import ResampleMixin
from tinyhost.mixin.sint import is_one, same, same_shape, sprod

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike

ReductionStr: TypeAlias = Literal["mean", "sum", "none"]


class FunctionalMixin(ResampleMixin):
    """softmax to scaled_dot_product_attention."""

    __slots__ = ()

    def sequential(self, ll: list[Callable[[Self], Self]]) -> Self:
        """Self through each function in turn.

        Raises:
            TypeError: an element cannot be called.
        """
        if bad := [i for i, f in enumerate(ll) if not callable(f)]:
            raise TypeError(f"sequential needs functions or layers, elements {bad} are {[ll[i] for i in bad]!r}")
        out = self
        for f in ll:
            out = f(out)
        return out

    def allclose(self, other: Self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Whether all elements are close; see ``isclose``."""
        return self.isclose(other, rtol, atol, equal_nan).all()

    # *** softmax ***
    def _exponentials(self, axis: int | tuple[int, ...], dtype: DTypeLike | None) -> tuple[Self, Self, Self]:
        x = self if dtype is None else self.cast(to_dtype(dtype))
        x = x._float_operand()
        centered = x - x._largest(axis, keepdim=True).detach()
        e = centered.exp()
        return centered, e, e.sum(axis, keepdim=True)

    def softmax(self, axis: Any = -1, dtype: DTypeLike | None = None) -> Self:
        """``exp(self)`` scaled to sum 1 along ``axis``."""
        _, e, total = self._exponentials(axis, dtype)
        return e * total.reciprocal()  # one division for a row

    def softmin(self, axis: Any = -1, dtype: DTypeLike | None = None) -> Self:
        """``softmax`` of the negated values."""
        return self.neg().softmax(axis, dtype)

    def log_softmax(self, axis: Any = -1, dtype: DTypeLike | None = None) -> Self:
        """Logarithm of ``softmax``."""
        centered, _, total = self._exponentials(axis, dtype)
        return centered - total.log()

    # *** norms ***
    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Self divided by its p-norm along ``dim``, which counts as at least ``eps``."""
        magnitude = self.abs()
        norm = magnitude._largest(dim, keepdim=True) if p == math.inf else \
            self.ne(0).sum(dim, keepdim=True).cast(self.dtype) if p == 0 else \
            magnitude.pow(float(p)).sum(dim, keepdim=True).pow(1 / p) if p != 2 else \
            self.square().sum(dim, keepdim=True).sqrt()
        return self / norm.clip(min_=eps)

    def layernorm(self, axis: int | tuple[int, ...] = -1, eps: float = 1e-05) -> Self:
        """Mean 0 and variance 1 along ``axis``."""
        centered = self - self.mean(axis, keepdim=True)
        return centered * ((centered * centered).mean(axis, keepdim=True) + eps).rsqrt()

    def batchnorm(self, weight: Self | None, bias: Self | None, mean: Self, invstd: Self,
                  axis: int | tuple[int, ...] = 1) -> Self:
        """``(self - mean) * invstd * weight + bias`` with statistics and parameters along ``axis``."""
        axes = {self._resolve_dim(a) for a in make_tuple(axis, 1)}
        shape = tuple(s if i in axes else 1 for i, s in enumerate(self.shape))
        own = tuple(s for i, s in enumerate(self.shape) if i in axes)
        for name, t in {"weight": weight, "bias": bias, "mean": mean}.items():
            if t is not None and not same(sprod(t.shape), sprod(own)):
                raise ShapeError(f"batchnorm of {self.shape} along axis {axis} needs a {name} of shape {own}, got "
                                 f"{t.shape}")
        x = self - mean.reshape(shape)
        if weight is not None:
            x = x * weight.reshape(shape)
        ret = x * (invstd.reshape(shape) if len(invstd.shape) == len(axes) else invstd)
        return ret if bias is None else ret + bias.reshape(shape)

    # *** losses ***
    def _reduced(self, reduction: ReductionStr) -> Self:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"unknown reduction {reduction!r}: use 'mean', 'sum' or 'none'")
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    def binary_crossentropy(self, Y: Self, reduction: ReductionStr = "mean") -> Self:
        """Cross entropy of probabilities self and targets ``Y``; a logarithm counts as -100 at least."""
        certain, impossible = self.log().clip(min_=-100), (1 - self).log().clip(min_=-100)
        return (-Y * certain - (1 - Y) * impossible)._reduced(reduction)

    def binary_crossentropy_logits(self, Y: Self, reduction: ReductionStr = "mean",
                                   pos_weight: Self | None = None) -> Self:
        """Cross entropy of logits self and targets ``Y``; ``pos_weight`` scales the positive class."""
        positive = Y * (-self).softplus()
        if pos_weight is not None:
            positive = positive * pos_weight
        return (positive + (1 - Y) * self.softplus())._reduced(reduction)

    def sparse_categorical_crossentropy(self, Y: Self, ignore_index: int = -1, label_smoothing: float = 0.0,
                                        reduction: ReductionStr = "mean") -> Self:
        """Cross entropy of logits along the last axis and class numbers ``Y``; a class out of range counts 0.

        Raises:
            ValueError: ``label_smoothing`` is no fraction.
            ShapeError, DTypeError: ``Y`` is no class number for each row.
        """
        _check_smoothing(label_smoothing)
        _check_classes("sparse_categorical_crossentropy", self.shape, Y, -1)
        log_probs = self.log_softmax()
        counted = Y.ne(ignore_index)
        target = Y.unsqueeze(-1).eq(self._iota(self.shape[-1]).cast(dtypes.int32)) & counted.unsqueeze(-1)
        picked = target.where(log_probs, 0).sum(-1)
        smooth = counted.where(log_probs.mean(-1), 0)
        loss = -(picked * (1 - label_smoothing) + smooth * label_smoothing) if label_smoothing else -picked
        if reduction == "mean":
            return loss.sum() / counted.cast(loss.dtype).sum()
        return loss._reduced(reduction)

    def cross_entropy(self, Y: Self, reduction: ReductionStr = "mean", label_smoothing: float = 0.0) -> Self:
        """Cross entropy of logits along axis 1 and targets ``Y``: class numbers, or probabilities of self's shape.

        Raises:
            ValueError: ``label_smoothing`` is no fraction.
            ShapeError, DTypeError: the targets have neither form.
        """
        _check_smoothing(label_smoothing)
        dim = 0 if self.ndim == 1 else 1
        if same_shape(self.shape, Y.shape):
            target = Y
        elif same_shape(self.shape[:dim] + self.shape[dim + 1:], Y.shape):
            _check_classes("cross_entropy", self.shape, Y, dim)
            index = Y if Y.dtype.bitsize in (32, 64) else Y.cast(dtypes.int32)
            target = index.unsqueeze(dim).eq(self._numbered(dim)).cast(self.dtype)
        else:
            raise ShapeError(f"cross_entropy of {self.shape} needs targets of that shape or without axis {dim}, "
                             f"got {Y.shape}")
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / int(self.shape[dim])
        ret = -(self.log_softmax(dim) * target).sum(dim)
        return ret._reduced(reduction)

    def nll_loss(self, Y: Self, weight: Self | None = None, ignore_index: int | None = None,
                 reduction: ReductionStr = "mean") -> Self:
        """Negative log likelihood of log probabilities along axis 1 and class numbers ``Y``; means weigh by ``weight``.

        Raises:
            ShapeError, DTypeError: the targets or weights do not fit.
        """
        dim = 0 if self.ndim == 1 else 1
        _check_classes("nll_loss", self.shape, Y, dim)
        if weight is not None and not same_shape(weight.shape, self.shape[dim:dim + 1]):
            raise ShapeError(f"nll_loss of {self.shape} needs a weight for each class, shape "
                             f"{self.shape[dim:dim + 1]}, got {weight.shape}")
        index = Y if Y.dtype.bitsize in (32, 64) else Y.cast(dtypes.int32)
        number = self._numbered(dim)
        hit = index.unsqueeze(dim).eq(number)
        scale = self._const(1.0, self.dtype)._broadcast_to(Y.shape) if weight is None else \
            hit.where(weight.reshape(number.shape), 0).sum(dim)
        if ignore_index is not None:
            scale = index.ne(ignore_index).where(scale, 0)
        loss = -hit.where(self, 0).sum(dim) * scale
        return loss.sum() / scale.sum() if reduction == "mean" else loss._reduced(reduction)

    # *** attention ***
    def scaled_dot_product_attention(self, key: Self, value: Self, attn_mask: Self | None = None,
                                     dropout_p: float = 0.0, is_causal: bool = False, enable_gqa: bool = False) -> Self:
        """Attention of queries self: ``softmax(q k^T / sqrt(d) + mask) v`` over (..., heads, tokens, d).

        A query that may look at nothing gets zeros.

        Args:
            attn_mask: bool (true takes part) or floats that are added; it broadcasts to (..., queries, keys).
            dropout_p: share of the weights that dropout clears, in training.
            is_causal: query number i looks at keys up to number i.
            enable_gqa: repeat the heads of ``key`` and ``value`` up to those of self.

        Raises:
            ValueError: both ``is_causal`` and a mask.
            ShapeError: sizes of heads or numbers of tokens differ, a mask that does not fit, or numbers of heads that
                are no multiple.
        """
        if is_causal and attn_mask is not None:
            raise ValueError("give attn_mask or is_causal=True, not both")
        _check_attention(self.shape, key.shape, value.shape, attn_mask)
        if enable_gqa:
            key, value = self._repeated_heads(key), self._repeated_heads(value)
        acc = sum_acc_dtype(least_upper_dtype(self.dtype, key.dtype))
        scores = self.matmul(key.transpose(-2, -1), dtype=acc) / math.sqrt(self.shape[-1])
        if is_causal:
            attn_mask = self._tri(scores.shape, 1).logical_not()
        if attn_mask is not None:
            scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype is dtypes.bool else scores + attn_mask
        weights = scores.softmax(-1)
        if attn_mask is not None and not is_causal:
            weights = scores._largest(-1, keepdim=True).eq(-math.inf).where(0, weights)
        weights = weights.cast(self.dtype)
        return (weights.dropout(dropout_p) if dropout_p else weights) @ value

    def _repeated_heads(self, x: Self) -> Self:
        """Keys or values with as many heads (axis -3) as the queries self."""
        if self.ndim < 3 or x.ndim < 3 or self.shape[-3] % x.shape[-3]:
            raise ShapeError(f"enable_gqa repeats heads, axis -3: those of the query {self.shape} must be a multiple "
                             f"of those of {x.shape}")
        return x.repeat_interleave(int(self.shape[-3] // x.shape[-3]), dim=-3)


def _check_classes(what: str, shape: tuple[Any, ...], target: Any, dim: int) -> None:
    """Class numbers: integers of the shape without axis ``dim``."""
    dim = dim % max(len(shape), 1)
    wanted = shape[:dim] + shape[dim + 1:]
    if not shape or not same_shape(wanted, target.shape):
        raise ShapeError(f"{what} of {shape} needs targets without axis {dim}, shape {wanted}, got {target.shape}")
    if not target.dtype.is_int:
        raise DTypeError(f"{what} needs class numbers, integers, as targets of shape {target.shape}, got "
                         f"{target.dtype}: cast them")


def _check_attention(query: tuple[Any, ...], key: tuple[Any, ...], value: tuple[Any, ...], mask: Any) -> None:
    """(..., tokens, head size) each, and a mask that broadcasts to (..., queries, keys)."""
    if min(len(query), len(key), len(value)) < 2:
        raise ShapeError(f"attention needs axes of tokens and of the head, got query {query}, key {key}, value {value}")
    if not same(query[-1], key[-1]):
        raise ShapeError(f"query {query} and key {key} need the same head size")
    if not same(key[-2], value[-2]):
        raise ShapeError(f"key {key} and value {value} need the same number of tokens, axis -2")
    tail = (query[-2], key[-2])
    if mask is not None and not all(is_one(m) or same(m, s) for m, s in zip(mask.shape[::-1], tail[::-1])):
        raise ShapeError(f"attn_mask {mask.shape} must broadcast to (..., queries, keys) = (..., {tail[0]}, {tail[1]})")


def _check_smoothing(label_smoothing: float) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must lie between 0 and 1, got {label_smoothing}")
