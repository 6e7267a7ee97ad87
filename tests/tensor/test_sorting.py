"""Order beyond short axes: long sorts are stable and exact, places in sorted sequences, selections of unknown size."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tinyhost.helpers import GlobalCounters
from tinyhost.tensor import Tensor

Array = np.ndarray[Any, Any]


def sample(dtype: str, shape: Any) -> Array:
    rng = np.random.default_rng(7)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(0 if dtype[0] == "u" else -50, 50, shape).astype(dtype)


@pytest.mark.parametrize("dtype, descending", [
    ("float32", False), ("float32", True), ("int64", False), ("uint8", True),
])
def test_long_sorts_are_stable(dtype: str, descending: bool) -> None:
    a = sample(dtype, 2600)
    if dtype == "float32":
        a[[5, 700, 2000]] = np.nan
        a[9], a[1000], a[3], a[2500] = np.inf, -np.inf, -0.0, 0.0
    values, order = Tensor(a).sort(0, descending=descending)
    want = torch.from_numpy(a).sort(dim=0, descending=descending, stable=True)
    np.testing.assert_array_equal(order.numpy(), want.indices.numpy())
    np.testing.assert_array_equal(values.numpy(), want.values.numpy())


def test_long_sorts_of_rows_and_columns() -> None:
    a = sample("int32", (3, 2500))
    np.testing.assert_array_equal(Tensor(a).argsort(1).numpy(), np.argsort(a, 1, kind="stable"))
    np.testing.assert_array_equal(Tensor(a.T.copy()).argsort(0).numpy(), np.argsort(a.T, 0, kind="stable"))


def test_a_long_sort_is_not_quadratic() -> None:
    x = Tensor(sample("float32", 1 << 14)).realize()
    before = GlobalCounters.global_ops
    x.argsort().realize()
    assert GlobalCounters.global_ops - before < (1 << 14) ** 2


@pytest.mark.soak
@pytest.mark.parametrize("n", [1 << 17, (1 << 17) + 1, 1 << 20])
def test_very_long_sorts(n: int) -> None:
    a = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    values, order = Tensor(a).sort()
    np.testing.assert_array_equal(order.numpy(), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(values.numpy(), np.sort(a))


def test_topk_of_a_long_axis() -> None:
    a = np.random.default_rng(1).permutation(3000).astype(np.int32)
    values, places = Tensor(a).topk(5)
    assert values.tolist() == [2999, 2998, 2997, 2996, 2995] and (a[places.numpy()] == values.numpy()).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(n: int, right: bool) -> None:
    rng = np.random.default_rng(n)
    edges, wanted = np.sort(rng.integers(0, 20, n)).astype(np.int32), rng.integers(-1, 22, (3, 5)).astype(np.int32)
    side: Any = "right" if right else "left"
    np.testing.assert_array_equal(Tensor(edges).searchsorted(Tensor(wanted), right).numpy(),
                                  np.searchsorted(edges, wanted, side))
    assert Tensor(edges).searchsorted(5, right).item() == np.searchsorted(edges, 5, side)


def test_searchsorted_puts_nan_last() -> None:
    edges = np.array([1.0, 2.0, np.nan, np.nan], np.float32)
    got = Tensor(edges).searchsorted(Tensor([np.nan, 3.0, 0.0]))
    assert got.tolist() == np.searchsorted(edges, np.array([np.nan, 3.0, 0.0], np.float32)).tolist() == [2, 2, 0]


# *** sizes that depend on the data ***
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (0, 3), (700,)])
def test_nonzero_and_where(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(3).integers(0, 2, shape).astype(np.float32)
    want = torch.from_numpy(np.array(a)).nonzero().numpy()
    got = Tensor(a).nonzero()
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    for mine, theirs in zip((Tensor(a) > 0).where(), torch.where(torch.from_numpy(np.array(a)) > 0), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_masked_select() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = Tensor(a)
    np.testing.assert_array_equal(x.masked_select(x > 4).numpy(), a[a > 4])
    np.testing.assert_array_equal(x.masked_select(Tensor([True, False, True, False])).numpy(), a[:, ::2].ravel())
    assert x.masked_select(x > 99).shape == (0,)
    assert x.masked_select(x > 9, size=1).tolist() == [10]
    assert Tensor.zeros(0).masked_select(Tensor.zeros(0) > 0, size=2, fill_value=7).tolist() == [7, 7]
    [g] = x.masked_select(x > 4).sum().gradient(x)
    np.testing.assert_array_equal(g.numpy(), a > 4)


def test_selecting_costs_about_the_length() -> None:
    x = Tensor(np.arange(1 << 14, dtype=np.float32)).realize()
    before = GlobalCounters.global_ops
    assert x.masked_select(x >= 8192).shape == (8192,)
    assert GlobalCounters.global_ops - before < 300 * (1 << 14)


@pytest.mark.parametrize("values", [
    [[3, 1, 3], [2, 1, 1]], [5], [], [1.5, float("nan"), 1.5, float("nan")], [True, False, True],
], ids=["integers", "one", "none", "nan", "bools"])
def test_unique(values: Any) -> None:
    a = np.array(values, np.float32) if not values else np.array(values)
    want = torch.unique(torch.from_numpy(a), return_inverse=True, return_counts=True)
    for mine, theirs in zip(Tensor(a).unique(return_inverse=True, return_counts=True), want, strict=True):
        assert mine.shape == tuple(theirs.shape)
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    np.testing.assert_array_equal(Tensor(a).unique().numpy(), want[0].numpy())


@pytest.mark.parametrize("repeats", [[1, 0, 2], [0, 0, 0], [3]])
def test_repeat_interleave_by_tensor(repeats: list[int]) -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x, t = Tensor(a), torch.from_numpy(a).requires_grad_()
    want = t.repeat_interleave(torch.tensor(repeats), 0)
    got = x.repeat_interleave(Tensor(repeats), 0)
    (want * want).sum().backward()
    [g] = (got * got).sum().gradient(x)
    assert got.shape == tuple(want.shape)
    np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
    np.testing.assert_array_equal(g.numpy(), t.grad.numpy())
    assert x.repeat_interleave(Tensor([1, 0, 2]), 0, output_size=3).numpy().tolist() == a[[0, 2, 2]].tolist()


# *** bits ***
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_selections_keep_the_bits(dtype: str) -> None:
    """-0.0, infinities and denormals come out as they went in."""
    tiny = np.finfo(dtype).smallest_subnormal
    a = np.array([-0.0, 0.0, np.inf, -np.inf, tiny, -tiny, 1.0], dtype)
    order = np.array([0, 6, 5, 4, 3, 2, 1, 0], np.int32)
    x, i, rows = Tensor(a), Tensor(order), Tensor(np.stack([a, -a]))

    def same(got: Tensor, want: Array) -> None:
        assert got.numpy().tobytes() == want.astype(dtype).tobytes()
    same(x[i], a[order])
    same(x.gather(0, i), a[order])
    same(x.index_select(0, i), a[order])
    same(rows.gather(1, Tensor(np.stack([order, order]))), np.stack([a[order], -a[order]]))
    same(x.masked_select(x.isnan().logical_not()), a)
    same(x.sort()[0], np.array([-np.inf, -tiny, -0.0, 0.0, tiny, 1.0, np.inf]))
    same(x.topk(4)[0], np.array([np.inf, 1.0, tiny, -0.0]))
    same(Tensor(np.ones(7, dtype)).scatter(0, Tensor(order[1:]), Tensor(a)), _scattered(a, order))
    y = Tensor(np.ones(7, dtype))
    y[Tensor(order[1:])] = x
    same(y, _scattered(a, order))


def _scattered(a: Array, order: Array) -> Array:
    out = np.ones(7, a.dtype)
    out[order[1:]] = a
    return out


def test_gradient_at_minus_zero() -> None:
    x = Tensor(np.array([-0.0, 0.0, 2.0], np.float32))
    [g] = (x.gather(0, Tensor([0, 0, 2])) * Tensor([1.0, 2.0, 4.0])).sum().gradient(x)
    assert g.tolist() == [3, 0, 4]
