"""Programs over an axis of variable length agree with numpy for every length, run as written and replayed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, TinyJit, Variable

N = np.arange(60, dtype=np.float32).reshape(10, 6) / 7
W = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
LENGTHS = (3, 1, 10, 7, 2)


def softmax(a: Any, axis: int) -> Any:
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "add": (lambda x: x + 1, lambda a: a + 1),
    "sum over it": (lambda x: x.sum(0), lambda a: a.sum(0)),
    "sum of rows": (lambda x: x.sum(1), lambda a: a.sum(1)),
    "max": (lambda x: x.max(0), lambda a: a.max(0)),
    "mean": (lambda x: x.mean(0), lambda a: a.mean(0)),
    "product": (lambda x: x @ Tensor(W), lambda a: a @ W),
    "all pairs": (lambda x: x @ x.T, lambda a: a @ a.T),
    "product over it": (lambda x: x.T @ x, lambda a: a.T @ a),
    "softmax over it": (lambda x: x.softmax(0), lambda a: softmax(a, 0)),
    "softmax of rows": (lambda x: x.softmax(1), lambda a: softmax(a, 1)),
    "transpose": (lambda x: x.T.contiguous(), lambda a: a.T),
    "pad": (lambda x: x.pad(((2, 0), (1, 1))).contiguous(), lambda a: np.pad(a, ((2, 0), (1, 1)))),
    "reshape": (lambda x: x.reshape(x.shape[0], 2, 3).sum(2), lambda a: a.reshape(-1, 2, 3).sum(2)),
    "flip": (lambda x: x.flip(1).contiguous(), lambda a: a[:, ::-1]),
    "shrink": (lambda x: x[:, 1:4].contiguous(), lambda a: a[:, 1:4]),
    "expand": (lambda x: x.reshape(x.shape[0], 1, 6).expand(x.shape[0], 3, 6) * 1,
               lambda a: np.repeat(a[:, None], 3, 1)),
    "where": (lambda x: (x > 3).where(x, 0), lambda a: np.where(a > 3, a, 0)),
    "cat": (lambda x: x.cat(Tensor(W.T[:2].copy())), lambda a: np.concatenate([a, W.T[:2]])),
    "cat columns": (lambda x: x.cat(x, dim=1), lambda a: np.concatenate([a, a], 1)),
    "argmax": (lambda x: x.argmax(0), lambda a: a.argmax(0)),
    "cumsum": (lambda x: x.cumsum(1), lambda a: a.cumsum(1)),
    "less the mean": (lambda x: x - x.mean(0), lambda a: a - a.mean(0)),
    "sum of a sum": (lambda x: (x.sum(0) * x).sum(1), lambda a: (a.sum(0) * a).sum(1)),
    "std": (lambda x: x.std(1), lambda a: a.std(1, ddof=1)),
    "column": (lambda x: x[:, 2] * 1, lambda a: a[:, 2]),
    "row": (lambda x: x[0] * 1, lambda a: a[0]),
    "stack": (lambda x: x.stack(x * 2, dim=1), lambda a: np.stack([a, a * 2], 1)),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_length(name: str, jit: bool):
    run, ref = PROGRAMS[name]
    f = TinyJit(run) if jit else run
    for n in LENGTHS:
        out = f(Tensor(N).realize()[:Variable("n", 1, 10).bind(n)])
        got, want = out.numpy(), ref(N[:n])
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
