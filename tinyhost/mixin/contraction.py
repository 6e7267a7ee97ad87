"""Products of matrices and tensors.

Takes nodes; gives a broadcast multiply and a sum, which scheduling fuses. Operands are widened to the accumulation
dtype before they are multiplied, so that narrow products are exact; the result returns to the operands' joint dtype.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import least_upper_dtype, strong_dtype, sum_acc_dtype, to_dtype
from tinyhost.errors import ShapeError
from tinyhost.helpers import argfix
from tinyhost.mixin.selection import SelectMixin
from tinyhost.mixin.sint import is_one, same

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType, DTypeLike


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def accumulation(dtype: DType, wanted: DTypeLike | None) -> tuple[DType, DType]:
    """(dtype of products and sum, dtype of the result) of a contraction of ``dtype`` values."""
    if wanted is not None:
        return to_dtype(wanted), to_dtype(wanted)
    return sum_acc_dtype(dtype), strong_dtype(dtype)


class ContractionMixin(SelectMixin):
    """dot, matmul, linear, einsum."""

    __slots__ = ()

    def _product_sum(self, other: Self, axis: Any, dtype: DTypeLike | None, keepdim: bool = False) -> Self:
        """Sum of products over ``axis``, narrow operands widened first."""
        acc, out = accumulation(least_upper_dtype(self.dtype, other.dtype), dtype)
        return (self.cast(acc) * other.cast(acc)).sum(axis, keepdim, dtype=acc).cast(out)

    def dot(self, w: Self, dtype: DTypeLike | None = None) -> Self:
        """Matrix product over the last axis of self and the last but one of ``w``; leading axes broadcast.

        Raises:
            ShapeError: a 0-d operand, or contracted axes of different extent.
        """
        n1, n2 = self.ndim, w.ndim
        if not n1 or not n2:
            raise ShapeError(f"dot needs operands of one axis or more, got shapes {self.shape} and {w.shape}: use *")
        if not same(inner := self.shape[-1], other := w.shape[-min(n2, 2)]):
            raise ShapeError(f"cannot dot {self.shape} and {w.shape}: contracted extents {inner} and {other} differ")
        ones = (1,) * min(n1 - 1, n2 - 1, 1)
        x = self.reshape((*self.shape[:-1], *ones, inner))
        w = w.reshape((*w.shape[:-2], *ones, *w.shape[-min(n2, 2):])).transpose(-1, -min(n2, 2))
        return x._product_sum(w, -1, dtype)

    def matmul(self, x: Self, reverse: bool = False, dtype: DTypeLike | None = None) -> Self:
        """``self @ x``."""
        return x.dot(self, dtype) if reverse else self.dot(x, dtype)

    def image_dot(self, w: Self, dtype: DTypeLike | None = None) -> Self:
        """Same as ``dot``: how a device lays out its operands is no matter of the graph."""
        return self.dot(w, dtype)

    def __matmul__(self, x: Any) -> Self:
        return self.dot(self.ufix(x))

    def __rmatmul__(self, x: Any) -> Self:
        return self.ufix(x).dot(self)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """``self @ weight + bias``; a 1-d weight multiplies element by element."""
        if dtype is not None:
            dt = to_dtype(dtype)
            return self.cast(dt).linear(weight.cast(dt), None if bias is None else bias.cast(dt))
        x = self * weight if weight.ndim == 1 else self.dot(weight)
        return x if bias is None else x + bias

    @classmethod
    def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = None) -> Self:
        """Einstein summation: ``Tensor.einsum("bij,bjk->bik", a, b)``; "..." stands for any leading axes.

        Raises:
            ShapeError: the formula does not fit the operands.
            TypeError: an operand is no tensor.
        """
        items: list[Any] = list(argfix(*operands))
        if not isinstance(formula, str) or (bad := [t for t in items if not isinstance(t, cls)]):
            what = f"operands {bad!r}" if isinstance(formula, str) else f"the formula {formula!r}"
            raise TypeError(f"einsum needs a formula and then {cls.__name__}s, got {what}")
        inputs, output = _einsum_terms(formula, [t.ndim for t in items])
        extents: dict[str, Any] = {}
        for term, t in zip(inputs, items):
            for letter, s in zip(term, t.shape):
                if letter in extents and not is_one(extents[letter]) and not is_one(s) and not same(extents[letter], s):
                    raise ShapeError(f"einsum {formula!r}: axis {letter} is {extents[letter]} and {s}")
                if letter not in extents or is_one(extents[letter]):
                    extents[letter] = s
        letters = sorted(extents)
        aligned = [_aligned(t, term, letters) for term, t in zip(inputs, items)]
        summed = [letter for letter in letters if letter not in output]
        axes = tuple(letters.index(letter) for letter in summed)
        joint = least_upper_dtype(*(t.dtype for t in items))
        acc, out = accumulation(joint, dtype) if axes or dtype is not None else (joint, strong_dtype(joint))
        ret = aligned[0].cast(acc)
        for t in aligned[1:]:
            ret = ret * t.cast(acc)
        ret = ret._broadcast_to(tuple(extents[letter] for letter in letters))
        ret = (ret.sum(axes, dtype=acc) if axes else ret).cast(out)
        kept = [letter for letter in letters if letter in output]
        final: Self = ret.permute(tuple(kept.index(letter) for letter in output))
        return final

    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-07) -> Self:
        """Iterated odd polynomial of the normalised matrix, which drives its singular values toward 1.

        Raises:
            ShapeError: less than two axes.
        """
        if self.ndim < 2:
            raise ShapeError(f"newton_schulz needs a matrix, got shape {self.shape}")
        g = self / (self.square().sum((-2, -1), keepdim=True).sqrt() + eps)
        tall = self.shape[-2] > self.shape[-1]
        g = g.transpose(-2, -1) if tall else g
        for _ in range(steps):
            gram = g @ g.transpose(-2, -1)
            power, total = g, g * params[0]
            for p in params[1:]:
                power = gram @ power
                total = total + power * p
            g = total
        return g.transpose(-2, -1) if tall else g


def _einsum_terms(formula: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result, ellipses spelled out."""
    text = formula.replace(" ", "")
    lhs, arrow, rhs = text.partition("->")
    terms = lhs.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum {formula!r} describes {len(terms)} operands, got {len(ranks)}")
    letters = "".join(t.replace("...", "") for t in (*terms, rhs))
    if any(t.count("...") > 1 for t in (*terms, rhs)) or not all(c.isalpha() for c in letters):
        raise ShapeError(f"einsum {formula!r}: axes are letters, with at most one '...' in a term")
    free = [c for c in _LETTERS if c not in text]
    hidden = [n - len(t.replace("...", "")) if "..." in t else 0 for t, n in zip(terms, ranks)]
    if min(hidden, default=0) < 0:
        raise ShapeError(f"einsum {formula!r} has more axes than an operand: ranks {list(ranks)}")
    dots = free[:max(hidden, default=0)]
    terms = [t.replace("...", "".join(dots[len(dots) - h:])) for t, h in zip(terms, hidden)]
    for t, n in zip(terms, ranks):
        if len(t) != n:
            raise ShapeError(f"einsum {formula!r}: term {t!r} has {len(t)} axes, the operand {n}")
    if arrow:
        rhs = rhs.replace("...", "".join(dots))
    else:
        joined = "".join(terms)
        rhs = "".join(dots) + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    if bad := sorted(c for c in set(rhs) if not any(c in t for t in terms) or rhs.count(c) > 1):
        raise ShapeError(f"einsum {formula!r}: axes {bad} of the result stand in no operand, or stand twice")
    return terms, rhs


def _aligned(t: Any, term: str, letters: list[str]) -> Any:
    """The operand with one axis for each letter, in order; a repeated letter takes the diagonal."""
    while doubled := next((c for c in term if term.count(c) > 1), None):
        first = term.index(doubled)
        second = term.index(doubled, first + 1)
        t = t.diagonal(0, first, second)
        term = "".join(c for i, c in enumerate(term) if i not in (first, second)) + doubled
    order = sorted(range(len(term)), key=term.__getitem__)
    t = t.permute(tuple(order))
    return t.reshape(tuple(t.shape[sorted(term).index(c)] if c in term else 1 for c in letters))

