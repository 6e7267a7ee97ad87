"""Matrix factorisations.

Takes matrices in the last two axes; gives orthogonal factors. QR applies Householder reflections one column at a
time, SVD one-sided Jacobi rotations to disjoint pairs of columns, so both are exact to rounding and need no pivots.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tinyhost.dtype import dtypes
from tinyhost.errors import ShapeError
from tinyhost.mixin.functional import FunctionalMixin
from tinyhost.mixin.indexing import IndexMixin

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType

M = TypeVar("M", bound="LinalgMixin")

_SWEEPS = 10  # Jacobi converges quadratically; float32 needs five to eight


class LinalgMixin(FunctionalMixin, IndexMixin):
    """qr and svd."""

    __slots__ = ()

    def _identity_like(self, n: int) -> Self:
        return self.eye(n, dtype=self.dtype).expand((*self.shape[:-2], n, n))

    def qr(self) -> tuple[Self, Self]:
        """Orthogonal (m, m) and upper triangular (m, n) factors of matrices (m, n).

        Raises:
            ShapeError: less than two axes.
        """
        if self.ndim < 2:
            raise ShapeError(f"qr needs a matrix, got shape {self.shape}")
        x = self._factor_operand()
        r, reflections = x._triangular()
        return x._reflected_identity(reflections, x.shape[-2]).cast(self._out_dtype()), r.cast(self._out_dtype())

    def _factor_operand(self) -> Self:
        """Self in the dtype that factorisations compute in: float32 for integers and narrow floats."""
        return self if self.dtype is dtypes.float64 else self.cast(dtypes.float32)

    def _out_dtype(self) -> DType:
        return self.dtype if self.dtype.is_float and not self.dtype.is_weak else dtypes.default_float

    def _triangular(self) -> tuple[Self, list[tuple[Self, Self]]]:
        """R, and the reflections (vector, factor) that lead from self to it."""
        m, n = self.shape[-2:]
        r, reflections = self, []
        for i in range(min(m - 1, n)):
            v, scale = r._householder(i)
            r = r._reflected(v, scale)
            reflections.append((v, scale))
        return r.triu(), reflections

    def _reflected(self, v: Self, scale: Self) -> Self:
        return (self - v @ (v.transpose(-2, -1) @ self) * scale).contiguous()

    def _reflected_identity(self, reflections: list[tuple[Self, Self]], columns: int) -> Self:
        """The leading ``columns`` of Q, the product of all reflections: the last meets the identity first."""
        m = self.shape[-2]
        q = self._identity_like(m)[..., :columns]
        for v, scale in reversed(reflections):
            q = q._reflected(v, scale)
        return q

    def _householder(self, i: int) -> tuple[Self, Self]:
        """Vector (m, 1) and factor of the reflection that clears column ``i`` below the diagonal."""
        m = self.shape[-2]
        number = self._iota(m).reshape((m, 1))
        column = (number >= i).where(self[..., i:i + 1], 0)
        head = self[..., i:i + 1, i:i + 1]
        norm = column.square().sum(-2, keepdim=True).sqrt()
        v = column + number.eq(i).where((head < 0).where(-norm, norm), 0)
        length = v.square().sum(-2, keepdim=True)
        return v, length.eq(0).where(0, 2 / length)

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """(U, S, V^T) with self = U S V^T and S descending; U and V are square unless ``full_matrices`` is false.

        Gradients are those of the first min(m, n) columns; where singular values coincide, the factors have none.

        Raises:
            ShapeError: less than two axes.
        """
        if self.ndim < 2:
            raise ShapeError(f"svd needs a matrix, got shape {self.shape}")
        if self.shape[-2] < self.shape[-1]:
            u, s, vt = self.transpose(-2, -1).svd(full_matrices)
            return vt.transpose(-2, -1), s, u.transpose(-2, -1)
        if self.dtype not in (dtypes.float32, dtypes.float64):
            u, s, vt = self._factor_operand().svd(full_matrices)
            return u.cast(self._out_dtype()), s.cast(self._out_dtype()), vt.cast(self._out_dtype())
        m, n = self.shape[-2:]
        scaled, s, v = self.detach()._svd_values()
        basis = scaled.contiguous()._completed(m if full_matrices else n)
        u, s, v = self._svd_slopes(basis[..., :n], s.contiguous(), v.contiguous())
        return (u.cat(basis[..., n:], dim=-1) if full_matrices and m > n else u), s, v.transpose(-2, -1)

    def _completed(self, columns: int) -> Self:
        """Orthonormal columns, the first of them those of self where they are not zero."""
        n = self.shape[-1]
        r, reflections = self._triangular()
        flip = (r.diagonal(0, -2, -1) < 0).where(-1.0, self._const(1.0, self.dtype))
        flip = flip.pad((0, columns - n), value=1.0).unsqueeze(-2)
        return (self._reflected_identity(reflections, columns) * flip).contiguous()

    def _svd_values(self) -> tuple[Self, Self, Self]:
        """Thin factors (m, n), (n,) and V (n, n) of tall matrices; columns of U for zero values are zero."""
        n = self.shape[-1]
        a, v = self._jacobi()
        s = a.square().sum(-2).sqrt()
        if a.shape[-1] > n:  # the column that made n even: last whatever happens
            s = v[..., n, :].ne(0).where(-1, s)
        s, order = s.sort(-1, descending=True)

        def sorted_columns(x: Self) -> Self:
            index = order.unsqueeze(-2).expand((*x.shape[:-1], order.shape[-1]))
            return x.gather(-1, index)[..., :n]
        s, a, v = s[..., :n], sorted_columns(a), sorted_columns(v)[..., :n, :]
        return a * s.eq(0).where(0, 1 / s).unsqueeze(-2), s, v

    def _svd_slopes(self, u: Self, s: Self, v: Self) -> tuple[Self, Self, Self]:
        """The factors of self with the derivatives of first-order perturbation theory (Giles 2008, section 3.2).

        They are sums of a value and of terms that are linear in a change of self, which is zero but has a slope.
        """
        change = self - self.detach()
        core = u.transpose(-2, -1) @ change @ v
        column, row = s.unsqueeze(-2), s.unsqueeze(-1)
        gap = column.square() - row.square()
        weight = gap.eq(0).where(0, 1 / gap)
        inverse = s.eq(0).where(0, 1 / s).unsqueeze(-2)
        left = u @ (weight * (core * column + row * core.transpose(-2, -1)))
        right = v @ (weight * (row * core + core.transpose(-2, -1) * column))
        outside = change @ v - u @ core
        return u + left + outside * inverse, s + core.diagonal(0, -2, -1), v + right

    def _jacobi(self) -> tuple[Self, Self]:
        """(A V, V) with orthogonal columns of A V; columns come in pairs, so an odd number gets a zero column."""
        n = self.shape[-1]
        half = (n + 1) // 2
        a = self.pad((0, 2 * half - n)).contiguous()
        v = self._identity_like(2 * half)
        for _ in range(_SWEEPS * max(1, 2 * half - 1)):
            a_low, a_high, v_low, v_high = a[..., :half], a[..., half:], v[..., :half], v[..., half:]
            c, s = a_low._rotation(a_high)
            a = _next_round(a_low * c - a_high * s, a_low * s + a_high * c).contiguous()
            v = _next_round(v_low * c - v_high * s, v_low * s + v_high * c).contiguous()
        return a, v

    def _rotation(self, other: Self) -> tuple[Self, Self]:
        """Cosine and sine that make each column of self orthogonal to that of ``other``."""
        gamma = (self * other).sum(-2, keepdim=True)
        zeta = (other.square().sum(-2, keepdim=True) - self.square().sum(-2, keepdim=True)) / (gamma * 2)
        t = (zeta < 0).where(-1.0, self._const(1.0, self.dtype)) / (zeta.abs() + (zeta.square() + 1).sqrt())
        c = (t.square() + 1).rsqrt()
        still = gamma.eq(0)
        return still.where(1, c), still.where(0, c * t)


def _next_round(low: M, high: M) -> M:
    """Columns in the order of the next round of a tournament in which everyone meets everyone; the first stays."""
    half = low.shape[-1]
    if half == 1:
        return low.cat(high, dim=-1)
    top = low[..., :1].cat(high[..., :1], low[..., 1:half - 1], dim=-1)
    bottom = high[..., 1:].cat(low[..., half - 1:], dim=-1)
    return top.cat(bottom, dim=-1)

