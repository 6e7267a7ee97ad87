"""Rows of the linalg extension: values against numpy, decompositions by what they must satisfy."""
from __future__ import annotations

import itertools
import math

import array_api_strict as sx
import numpy as np
import pytest

import tinyhost.array_api as xp

from .entries import entry
from .oracle import agree, compare, values

SECTION = "linalg extension"
MATRICES = [(3, 3), (2, 2, 2)]


def _regular(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return values(dtype, shape) + np.eye(shape[-1], dtype=dtype) * 0.5


def _symmetric(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    a = values(dtype, shape)
    return a + np.swapaxes(a, -1, -2)


def _positive(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    a = values(dtype, shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=dtype)


def _close(a, b, dtype: str) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol={"float32": 1e-4, "float64": 1e-10}[dtype],
                               atol={"float32": 1e-4, "float64": 1e-10}[dtype])


CASES = list(itertools.product(("float32", "float64"), MATRICES))


@entry(SECTION, "cholesky")
def _cholesky() -> None:
    for dtype, shape in CASES:
        for upper in (False, True):
            a = _positive(dtype, shape)
            _close(xp.linalg.cholesky(xp.asarray(a), upper=upper).numpy(), np.linalg.cholesky(a, upper=upper), dtype)


@entry(SECTION, "cross")
def _cross() -> None:
    compare("cross", values("float64", (2, 3)), values("float64", (2, 3), seed=1), module="linalg")
    compare("cross", values("int32", (3, 2)), values("int32", (3, 2), seed=1), axis=0 - 2, module="linalg")
    compare("cross", values("int16", (3,)), values("int16", (2, 3), seed=1), module="linalg")
    with pytest.raises(ValueError, match="three elements"):
        xp.linalg.cross(xp.zeros((2, 2)), xp.zeros((2, 2)))


@entry(SECTION, "det")
def _det() -> None:
    for dtype, shape in CASES:
        a = _regular(dtype, shape)
        _close(xp.linalg.det(xp.asarray(a)).numpy(), np.linalg.det(a), dtype)
    assert xp.linalg.det(xp.asarray([[1.0, 2.0], [2.0, 4.0]])).item() == 0
    assert xp.linalg.det(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).item() == -1


@entry(SECTION, "diagonal")
def _diagonal() -> None:
    for offset in (-1, 0, 2):
        compare("diagonal", values("int32", (2, 3, 4)), offset=offset, module="linalg")


@entry(SECTION, "eigh, eigvalsh")
def _eigh() -> None:
    for dtype, shape in CASES:
        a = _symmetric(dtype, shape)
        w, v = xp.linalg.eigh(xp.asarray(a))
        _close(w.numpy(), np.linalg.eigvalsh(a), dtype)
        _close(v.numpy() * w.numpy()[..., None, :], a @ v.numpy(), dtype)
        _close(np.swapaxes(v.numpy(), -1, -2) @ v.numpy(), np.broadcast_to(np.eye(shape[-1]), shape), dtype)
        _close(xp.linalg.eigvalsh(xp.asarray(a)).numpy(), np.linalg.eigvalsh(a), dtype)
    assert xp.linalg.eigh(xp.zeros((2, 2))).eigenvectors.numpy().tolist() in ([[1, 0], [0, 1]], [[0, 1], [1, 0]])


@entry(SECTION, "inv")
def _inv() -> None:
    for dtype, shape in CASES:
        a = _regular(dtype, shape)
        _close(xp.linalg.inv(xp.asarray(a)).numpy(), np.linalg.inv(a), dtype)


@entry(SECTION, "matmul, matrix_transpose, tensordot, vecdot")
def _again() -> None:
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(xp.linalg, name) is getattr(xp, name)


@entry(SECTION, "matrix_norm")
def _matrix_norm() -> None:
    for dtype, ord in itertools.product(("float32", "float64"), ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)):
        for keepdims in (False, True):
            a = values(dtype, (2, 3, 2))
            _close(xp.linalg.matrix_norm(xp.asarray(a), ord=ord, keepdims=keepdims).numpy(),
                   np.asarray(sx.linalg.matrix_norm(sx.asarray(a), ord=ord, keepdims=keepdims)), dtype)
    with pytest.raises(ValueError, match="unknown matrix norm 3"):
        xp.linalg.matrix_norm(xp.zeros((2, 2)), ord=3)


@entry(SECTION, "matrix_power")
def _matrix_power() -> None:
    for n in (0, 1, 2, 5, -1, -2):
        a = _regular("float64", (3, 3))
        _close(xp.linalg.matrix_power(xp.asarray(a), n).numpy(), np.linalg.matrix_power(a, n), "float64")


@entry(SECTION, "matrix_rank")
def _matrix_rank() -> None:
    for a in (np.eye(3), np.ones((3, 3)), np.zeros((2, 3)), values("float64", (2, 4, 3)), np.diag([1.0, 1e-3, 0])):
        for rtol in (None, 1e-2):
            got = xp.linalg.matrix_rank(xp.asarray(a), rtol=rtol)
            np.testing.assert_array_equal(got.numpy(), np.linalg.matrix_rank(a, rtol=rtol))


@entry(SECTION, "outer")
def _outer() -> None:
    compare("outer", values("int16", (3,)), values("float64", (2,)).astype("int32"), module="linalg")
    with pytest.raises(ValueError, match="outer needs vectors"):
        xp.linalg.outer(xp.zeros((1, 2)), xp.zeros(2))


@entry(SECTION, "pinv")
def _pinv() -> None:
    for shape in ((3, 2), (2, 3), (2, 3, 3)):
        a = values("float64", shape)
        _close(xp.linalg.pinv(xp.asarray(a)).numpy(), np.linalg.pinv(a), "float64")
    a = np.ones((2, 2))
    _close(xp.linalg.pinv(xp.asarray(a)).numpy(), np.linalg.pinv(a), "float64")


@entry(SECTION, "qr")
def _qr() -> None:
    for dtype, shape, mode in itertools.product(("float32", "float64"), ((3, 2), (2, 3), (2, 3, 3)),
                                                ("reduced", "complete")):
        a = values(dtype, shape)
        q, r = xp.linalg.qr(xp.asarray(a), mode=mode)
        want = np.linalg.qr(a, mode=mode)
        assert (q.shape, r.shape) == (want.Q.shape, want.R.shape)
        _close(q.numpy() @ r.numpy(), a, dtype)
        _close(np.swapaxes(q.numpy(), -1, -2) @ q.numpy(), np.broadcast_to(np.eye(q.shape[-1]), (
            *q.shape[:-2], q.shape[-1], q.shape[-1])), dtype)
        _close(np.tril(r.numpy(), -1), np.zeros(r.shape), dtype)


@entry(SECTION, "slogdet")
def _slogdet() -> None:
    for dtype, shape in CASES:
        a = _regular(dtype, shape)
        sign, log = xp.linalg.slogdet(xp.asarray(a))
        want = np.linalg.slogdet(a)
        _close(sign.numpy(), want.sign, dtype)
        _close(log.numpy(), want.logabsdet, dtype)
    sign, log = xp.linalg.slogdet(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    assert sign.item() == 0 and log.item() == -math.inf


@entry(SECTION, "solve")
def _solve() -> None:
    for dtype, (a, b) in itertools.product(("float32", "float64"), (
            ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 3)), ((2, 2, 2), (2, 1)), ((2, 2), (4, 2, 1)))):
        x, y = _regular(dtype, a), values(dtype, b, seed=1)
        _close(xp.linalg.solve(xp.asarray(x), xp.asarray(y)).numpy(),
               np.asarray(sx.linalg.solve(sx.asarray(x), sx.asarray(y))), dtype)
    singular = xp.linalg.solve(xp.zeros((2, 2)), xp.ones(2))
    assert not xp.any(xp.isfinite(singular)).item()


@entry(SECTION, "svd, svdvals")
def _svd() -> None:
    for dtype, shape, full in itertools.product(("float32", "float64"), ((3, 2), (2, 3), (2, 3, 3)), (True, False)):
        a = values(dtype, shape)
        u, s, vh = xp.linalg.svd(xp.asarray(a), full_matrices=full)
        want = np.linalg.svd(a, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == (want.U.shape, want.S.shape, want.Vh.shape)
        _close(s.numpy(), want.S, dtype)
        k = s.shape[-1]
        _close((u.numpy()[..., :k] * s.numpy()[..., None, :]) @ vh.numpy()[..., :k, :], a, dtype)
        _close(xp.linalg.svdvals(xp.asarray(a)).numpy(), want.S, dtype)


@entry(SECTION, "trace")
def _trace() -> None:
    for offset in (-1, 0, 1):
        compare("trace", values("float64", (2, 3, 3)), offset=offset, module="linalg")
    agree(xp.linalg.trace(xp.asarray(values("int8", (3, 3)))), sx.linalg.trace(sx.asarray(values("int8", (3, 3)))),
          default=True)


@entry(SECTION, "vector_norm")
def _vector_norm() -> None:
    for ord, axis in itertools.product((0, 1, 2, 3, -1, 0.5, math.inf, -math.inf), (None, 0, (0, 1))):
        compare("vector_norm", values("float64", (3, 4)), ord=ord, axis=axis, module="linalg")
    compare("vector_norm", values("float32", (3, 4)), axis=1, keepdims=True, module="linalg")
