"""The ``linalg`` extension: decompositions, solutions and norms of matrices in the last two axes.

Elimination with row exchanges gives solve, inv, det and slogdet; Jacobi rotations give svd, and with it eigh of a
shifted matrix, pinv, rank and the spectral norms. Loops run over columns, each step a few kernels for all matrices.
"""
from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from tinyhost.array_api._dtypes import finfo, result_type
from tinyhost.array_api._manipulation import axis_of, broadcast_arrays, broadcast_shapes
from tinyhost.array_api._products import matmul as matmul
from tinyhost.array_api._products import matrix_transpose as matrix_transpose
from tinyhost.array_api._products import tensordot as tensordot
from tinyhost.array_api._products import vecdot as vecdot
from tinyhost.array_api._statistical import sum as _sum
from tinyhost.dtype import DType, dtypes
from tinyhost.errors import ShapeError
from tinyhost.tensor import Tensor

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


class QRResult(NamedTuple):
    """Orthogonal and upper triangular factor."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """Left vectors, singular values in falling order, right vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EighResult(NamedTuple):
    """Eigenvalues in rising order and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the magnitude of determinants."""

    sign: Tensor
    logabsdet: Tensor


def _matrices(x: Tensor, what: str, square: bool = False) -> Tensor:
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(f"{what} needs {'square ' if square else ''}matrices in the last two axes, got {x.shape}")
    return x


def _identity(n: int, x: Tensor) -> Tensor:
    return Tensor.eye(n, dtype=x.dtype).to(x.device)


# *** decompositions ***
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular factor of positive definite matrices, or its transpose; NaN for others."""
    a = _matrices(x, "cholesky", square=True)
    n = a.shape[-1]
    number = Tensor.arange(n)
    out = a.zeros_like().contiguous()
    for k in range(n):
        row = out[..., k:k + 1, :]
        column = a[..., :, k:k + 1] - (out * row).sum(-1, keepdim=True)
        column = column / column[..., k:k + 1, :].sqrt()
        here = (number >= k).reshape((n, 1)) & (number == k)
        out = here.where(column, out).contiguous()
    return out.mT if upper else out


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Orthogonal times upper triangular.

    Raises:
        ValueError: unknown mode.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"unknown mode {mode!r}: use 'reduced' or 'complete'")
    q, r = _matrices(x, "qr").qr()
    k = min(x.shape[-2:])
    return QRResult(q[..., :k], r[..., :k, :]) if mode == "reduced" else QRResult(q, r)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition."""
    return SVDResult(*_matrices(x, "svd").svd(full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values in falling order."""
    return svd(x, full_matrices=False).S


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    a = _matrices(x, "eigh", square=True)
    # shifted by a bound of all eigenvalues the matrix is positive semidefinite: its singular vectors are eigenvectors
    shift = a.abs().sum(-1).max(-1, keepdim=True)
    _, s, vt = (a + _identity(a.shape[-1], a) * shift.unsqueeze(-1)).svd()
    return EighResult((s - shift).flip(-1), vt.mT.flip(-1))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices in rising order."""
    return eigh(x).eigenvalues


# *** elimination ***
def _eliminated(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``a`` turned into the identity: the solution for the columns ``b``, the pivots and the sign of the exchanges."""
    n = a.shape[-1]
    number = Tensor.arange(n).cast(dtypes.int32)
    column_number = number.reshape((n, 1))
    work = a.cat(b, dim=-1).contiguous()
    pivots, flips = [], []
    for k in range(n):
        size = (number < k).where(-1.0, work[..., :, k].abs())
        best = size.argmax(-1, keepdim=True)
        swapped = (number == k).where(best, (number == best).where(k, number.expand(best.shape[:-1] + (n,))))
        index = swapped.cast(dtypes.int32).unsqueeze(-1).expand(work.shape)
        work = work.gather(-2, index).contiguous()
        pivot = work[..., k:k + 1, k:k + 1]
        row = work[..., k:k + 1, :] / pivot
        work = (column_number == k).where(row, work - work[..., :, k:k + 1] * row).contiguous()
        pivots.append(pivot.reshape(pivot.shape[:-2]))
        flips.append((best.squeeze(-1) != k).where(-1.0, 1.0))
    sign = flips[0].stack(*flips[1:], dim=-1).prod(-1).cast(a.dtype)
    return work[..., n:], pivots[0].stack(*pivots[1:], dim=-1), sign


def _pivots(x: Tensor) -> tuple[Tensor, Tensor]:
    """Pivots of elimination, which stop at the first zero, and the sign of the row exchanges."""
    _, pivots, sign = _eliminated(x, x[..., :0])
    return pivots.isnan().where(0.0, pivots), sign


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of ``x1 @ y = x2``; ``x2`` is one vector or matrices of columns."""
    dtype = result_type(x1, x2)
    a = _matrices(x1, "solve", square=True).cast(dtype)
    b = (x2.unsqueeze(-1) if x2.ndim == 1 else x2).cast(dtype)
    if not a.shape[-1]:
        return x2.cast(dtype)._fresh()
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = _eliminated(a.expand((*lead, *a.shape[-2:])), b.expand((*lead, *b.shape[-2:])))[0]
    return y.squeeze(-1) if x2.ndim == 1 else y


def inv(x: Tensor, /) -> Tensor:
    """The inverse of matrices; infinite or NaN where there is none."""
    _matrices(x, "inv", square=True)
    return solve(x, _identity(x.shape[-1], x))


def det(x: Tensor, /) -> Tensor:
    """Determinant."""
    if not _matrices(x, "det", square=True).shape[-1]:
        return x.sum((-2, -1)) + 1
    pivots, sign = _pivots(x)
    return pivots.prod(-1) * sign


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign of the determinant and logarithm of its magnitude: 0 and -inf for singular matrices."""
    if not _matrices(x, "slogdet", square=True).shape[-1]:
        return SlogdetResult(x.sum((-2, -1)) + 1, x.sum((-2, -1)))
    pivots, sign = _pivots(x)
    return SlogdetResult(pivots.sign().prod(-1) * sign, pivots.abs().log().sum(-1))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """``x @ x @ ...``, ``n`` times; of the inverse for a negative ``n``."""
    base = inv(x) if n < 0 else _matrices(x, "matrix_power", square=True)
    out = _identity(x.shape[-1], x).expand(x.shape)
    for bit in bin(abs(n))[2:]:
        out = matmul(out, out)
        out = matmul(out, base) if bit == "1" else out
    return out


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudo-inverse; singular values of at most ``rtol`` times the largest count as 0."""
    u, s, vt = svd(x, full_matrices=False)
    small = s <= _cutoff(x, s, rtol)
    factor = small.where(0.0, 1 / small.where(1.0, s))
    return matmul(vt.mT * factor.unsqueeze(-2), u.mT)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Number of singular values above ``rtol`` times the largest."""
    s = svdvals(x)
    return (s > _cutoff(x, s, rtol)).cast(dtypes.default_int).sum(-1)


def _cutoff(x: Tensor, s: Tensor, rtol: Any) -> Tensor:
    scale = max(x.shape[-2:]) * finfo(x).eps if rtol is None else rtol
    limit = s.max(-1, keepdim=True)
    return limit * (scale.unsqueeze(-1) if isinstance(scale, Tensor) and scale.ndim else scale)


# *** parts and products ***
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonal of the last two axes."""
    return _matrices(x, "diagonal").diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Sum of a diagonal."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors.

    Raises:
        ShapeError: they are no vectors.
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer needs vectors, got {x1.shape} and {x2.shape}")
    dtype = result_type(x1, x2)
    return x1.cast(dtype).unsqueeze(1) * x2.cast(dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross product of vectors of three elements along an axis.

    Raises:
        ShapeError: an axis has not three elements.
    """
    dtype = result_type(x1, x2)
    a, b = broadcast_arrays(x1.cast(dtype), x2.cast(dtype))
    axis = axis_of(a, axis)
    if x1.shape[axis - a.ndim] != 3 or x2.shape[axis - a.ndim] != 3:
        raise ShapeError(f"cross needs three elements along axis {axis}, got {x1.shape} and {x2.shape}")
    p, q = ([v[(slice(None),) * axis + (i,)] for i in range(3)] for v in (a, b))
    parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]
    return parts[0].stack(*parts[1:], dim=axis)


# *** norms ***
def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: float = 2) -> Tensor:
    """Norm of vectors along axes; ``ord`` may be any number or an infinity."""
    size = x.abs()
    if ord == math.inf:
        return size.max(axis, keepdims)
    if ord == -math.inf:
        return size.min(axis, keepdims)
    if ord == 0:
        return (x != 0).cast(x.dtype).sum(axis, keepdims)
    if ord == 1:
        return size.sum(axis, keepdims)
    if ord == 2:
        return size.square().sum(axis, keepdims).sqrt()
    return size.pow(float(ord)).sum(axis, keepdims).pow(1.0 / ord)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Raises:
        ValueError: another ``ord``.
    """
    _matrices(x, "matrix_norm")
    if ord == "fro":
        out = x.square().sum((-2, -1)).sqrt()
    elif ord in (1, -1, math.inf, -math.inf):
        sums = x.abs().sum(-2 if abs(ord) == 1 else -1)
        out = sums.max(-1) if ord > 0 else sums.min(-1)
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        out = s.sum(-1) if ord == "nuc" else s.max(-1) if ord > 0 else s.min(-1)
    else:
        raise ValueError(f"unknown matrix norm {ord!r}: use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return out.unsqueeze(-1).unsqueeze(-1) if keepdims else out
