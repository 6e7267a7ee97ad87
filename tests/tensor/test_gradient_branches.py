"""Gradients behind branches: what was not taken has gradient 0, whatever the poles of that branch are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.ops import Ops
from tinyhost.tensor import Tensor

from .evaluator import evaluate

X = [-1.0, 0.0, 4.0]
Fn = Callable[[Tensor], Tensor]


def gradient(fn: Fn, data: Any, dtype: str = "float64") -> list[Any]:
    x = Tensor(np.array(data, dtype), device="NPY")
    (g,) = fn(x).sum().gradient(x)
    return evaluate(g.uop).tolist()


POLES: dict[str, tuple[Fn, float]] = {  # the branch, and its derivative at 4
    "sqrt": (lambda x: x.sqrt(), 0.25),
    "log": (lambda x: x.log(), 0.25),
    "reciprocal": (lambda x: 1 / x, -1 / 16),
    "rsqrt": (lambda x: x.rsqrt(), -1 / 16),
    "division": (lambda x: x / x, 0.0),
    "power": (lambda x: x**0.5, 0.25),
    "negative power": (lambda x: x**-1.5, -1.5 * 4**-2.5),
    "x log x": (lambda x: x * x.log(), np.log(4) + 1),
    "log of log": (lambda x: (x.log() + 2).log(), 0.25 / (np.log(4) + 2)),
    "log2": (lambda x: x.log2(), 0.25 / np.log(2)),
    "sqrt of a view": (lambda x: x.reshape(3, 1).sqrt().permute(1, 0).reshape(3), 0.25),
    "sqrt of a sum": (lambda x: x.reshape(3, 1).expand(3, 2).sum(1).sqrt(), 2 / (2 * np.sqrt(8))),
    "contiguous": (lambda x: x.sqrt().contiguous(), 0.25),
    "twice": (lambda x: x.sqrt() * x.sqrt(), 1.0),
}
GUARDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "where": lambda x, y: (x > 0).where(y, 0.0),
    "else": lambda x, y: (x <= 0).where(0.0, y),
    "other value": lambda x, y: (x > 0).where(y, x * 0),
    "nested": lambda x, y: (x > -9).where((x > 0).where(y, 1.0), 2.0),
    "two guards": lambda x, y: (x > 0).where(y, 0.0) * 0.5 + (x > 1).where(y, 0.0) * 0.5,
    "masked_fill": lambda x, y: y.masked_fill(x <= 0, 0.0),
    "masked rows": lambda x, y: (x > 0).reshape(3, 1).where(y.reshape(3, 1).expand(3, 2), 0.0) * 0.5,
    "slice": lambda x, y: y[2:],
    "then scaled": lambda x, y: (x > 0).where(y, 0.0) * 3 / 3,
}


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("pole", POLES)
def test_what_was_not_taken_has_no_gradient(pole: str, guard: str, dtype: str) -> None:
    fn, at_four = POLES[pole]
    got = gradient(lambda x: GUARDS[guard](x, fn(x)), X, dtype)
    np.testing.assert_allclose(got, [0, 0, at_four], rtol=1e-12 if dtype == "float64" else 5e-3)


def test_large_values() -> None:
    assert gradient(lambda x: (x < 80).where(x.exp(), 0.0), [0.0, 1e4]) == [1, 0]
    np.testing.assert_allclose(gradient(lambda x: (x < 80).where(x.exp() * 2 + 1, x), [0.0, 1e4]), [2, 1])
    assert gradient(lambda x: (x < 1e9).where(x.sin(), 0.0), [0.0, np.inf]) == [1, 0]


def test_max_is_a_branch() -> None:
    assert gradient(lambda x: x.log().maximum(-3.0), [0.0, 4.0]) == [0, 0.25]
    assert gradient(lambda x: x.sqrt().relu(), [0.0, 4.0]) == [0, 0.25]
    assert gradient(lambda x: x.log().max(), [0.0, 4.0]) == [0, 0.25]


def test_guards_of_rows_and_columns() -> None:
    rows = [[0.0, 1.0], [1.0, 2.0]]
    assert gradient(lambda x: (x.min(1) > 0).where(x.log().sum(1), 0.0), rows) == [[0, 0], [1, 0.5]]
    assert gradient(
        lambda x: (x.min(1, keepdim=True) > 0).where(x.sqrt() @ x.ones_like(), 0.0), [[0.0, 1.0], [4.0, 1.0]]
    ) == [[0, 0], [0.5, 1.0]]

    def normalised(x: Tensor) -> Tensor:
        std = (x - x.mean(0)).square().mean(0).sqrt()
        return (std > 0).where((x - x.mean(0)) / std, 0.0) * Tensor(np.eye(3, 2), device="NPY")

    got = np.array(gradient(normalised, [[1.0, 1.0], [1.0, 2.0], [1.0, 6.0]]))
    assert np.isfinite(got).all() and (got[:, 0] == 0).all() and (got[:, 1] != 0).all()


def test_a_pole_that_was_reached_shows() -> None:
    assert gradient(lambda x: x.sqrt(), [0.0, 4.0]) == [np.inf, 0.25]
    assert gradient(lambda x: (x >= 0).where(x.sqrt(), 0.0), [0.0, 4.0]) == [np.inf, 0.25]
    assert np.isnan(gradient(lambda x: (x > 0).where(x.sqrt(), 0.0) + x.sqrt(), X)[0])


def test_no_masks_where_there_is_no_pole() -> None:
    x, w = Tensor(np.ones((2, 3)), device="NPY"), Tensor(np.ones((3, 3)), device="NPY")
    for g in ((x @ w).relu() @ w).sum().gradient(x, w):
        assert sum(u.op is Ops.WHERE for u in g.uop.toposort()) <= 2


def test_ties_and_nan_of_maximum_match_torch() -> None:
    import torch

    a, b = np.array([1.0, 1.0, np.nan, 2.0]), np.array([1.0, 2.0, 0.0, np.nan])
    ta, tb = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    torch.maximum(ta, tb).sum().backward()
    x, y = Tensor(a, device="NPY"), Tensor(b, device="NPY")
    gx, gy = x.maximum(y).sum().gradient(x, y)
    np.testing.assert_array_equal(evaluate(gx.uop), ta.grad)
    np.testing.assert_array_equal(evaluate(gy.uop), tb.grad)
