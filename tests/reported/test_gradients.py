"""Gradients of whole programs, run: leaves, branches, assignments, pools, values that were not used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tinyhost import Tensor

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tensor(3.0),
        lambda: Tensor(3.0, dtype="float64"),
        lambda: Tensor(3.0).is_param_(),
        lambda: Tensor([3.0]),
        lambda: Tensor.full((2,), 3.0),
        lambda: Tensor.full((2,), 3.0, buffer=False),
        lambda: Tensor([3.0]).realize(),
        lambda: Tensor([3.0]).is_param_().realize(),
        lambda: Tensor.arange(3.0),
        lambda: Tensor.ones(2, 2) * 3,
    ],
)
def test_equal_values_have_gradients_of_their_own(make: Callable[[], Tensor]) -> None:
    a, b = make(), make()
    (a + b * 2).sum().backward()
    assert np.unique(a.grad.numpy()).tolist() == [1] and np.unique(b.grad.numpy()).tolist() == [2]
    (b * 3.0).sum().backward()
    assert np.unique(a.grad.numpy()).tolist() == [1] and np.unique(b.grad.numpy()).tolist() == [5]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "rsqrt", "reciprocal"])
def test_the_branch_that_was_not_taken_has_no_gradient(name: str, dtype: str) -> None:
    data = np.array([-1.0, 0.0, 4.0, 0.25], dtype)
    t = torch.tensor(data[2:], requires_grad=True)
    (torch.reciprocal(t) if name == "reciprocal" else getattr(t, name)()).sum().backward()
    for guard in (
        lambda x, y: (x > 0).where(y, 0.0),
        lambda x, y: (x <= 0).where(0.0, y),
        lambda x, y: (x > 0).where(y, x),
        lambda x, y: y.masked_fill(x <= 0, 1.0),
    ):
        x = Tensor(data)
        guard(x, getattr(x, name)()).sum().backward()
        got = x.grad.numpy()
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got[2:], t.grad, rtol=2e-3)


def test_division_behind_a_guard() -> None:
    x, y = Tensor([1.0, 0.0, 2.0]), Tensor([1.0, 0.0, 0.0])
    (y.ne(0)).where(x / y, 0.0).sum().backward()
    assert x.grad.tolist() == [1, 0, 0] and y.grad.tolist() == [-1, 0, 0]


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), slice(None, None, 2)),
        (slice(None, None, -1), slice(0, 3)),
        (slice(0, 2), [4, 0, 2]),
        (slice(None), slice(4, None, -2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("start", ["stored", "lazy", "computed"])
def test_values_assigned_to_parts(start: str, index: tuple[object, ...]) -> None:
    v = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    zeros = Tensor.zeros(2, 5)
    t = zeros.contiguous().realize() if start == "stored" else zeros if start == "lazy" else zeros * 1
    t[index] = v
    (t * t).sum().backward()
    np.testing.assert_array_equal(v.grad.numpy(), 2 * np.array([[1, 2, 3], [4, 5, 6]]))


def test_assign_to_a_strided_view() -> None:
    v, t = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Tensor.zeros(2, 5).contiguous().realize()
    t[:, ::2].assign(v)
    (t * t).sum().backward()
    assert v.grad.tolist() == [[2, 4, 6], [8, 10, 12]]


@pytest.mark.parametrize(
    "kernel, stride, padding", [((1, 3), (1, 2), 0), ((2, 2), 2, 1), ((3, 2), (2, 1), (1, 1)), ((2, 3), (3, 2), 0)]
)
@pytest.mark.parametrize("include", [True, False])
def test_average_pools_with_ceil_mode(kernel: tuple[int, int], stride: object, padding: object, include: bool) -> None:
    data = np.random.default_rng(0).standard_normal((1, 2, 5, 4)).astype(np.float32)
    t, x = torch.tensor(data, requires_grad=True), Tensor(data)
    want = torch.nn.functional.avg_pool2d(t, kernel, stride, padding, ceil_mode=True, count_include_pad=include)
    got = x.avg_pool2d(kernel, stride=stride, padding=padding, ceil_mode=True, count_include_pad=include)
    assert got.shape == tuple(want.shape)
    (want * want).sum().backward()
    (got * got).sum().backward()
    np.testing.assert_allclose(got.numpy(), want.detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), t.grad, rtol=1e-5, atol=1e-6)


def test_what_was_not_used_has_no_gradient() -> None:
    a, b, c = Tensor([1.0]), Tensor([1.0]), Tensor([1.0]).is_param_(False)
    (a * 2 * c).sum().backward()
    assert a.grad.tolist() == [2] and b.grad is None and c.grad is None
    b.sum().backward()
    assert b.grad.tolist() == [1] and a.grad.tolist() == [2]


def test_each_result_of_one_backward_can_be_read_first() -> None:
    """Realizing one gradient must not make another one stand on memory that nobody filled."""
    for first in (0, 1):
        a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        out = a.call(b, fxn=a.as_param(0) * b.as_param(1) + a.as_param(0))
        grads = out.sum().gradient(a, b)
        want = [[4, 5], [1, 2]]
        assert grads[first].tolist() == want[first] and grads[1 - first].tolist() == want[1 - first]
        assert (a.tolist(), b.tolist()) == ([1, 2], [3, 4])
