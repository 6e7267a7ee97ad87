"""Deep graphs: linear time, and kernels of bounded size."""
from __future__ import annotations

import numpy as np
import pytest

from tests.counting import calls
from tinyhost import Context, Device, GlobalCounters, Tensor
from tinyhost.device import caps_of


def chain(x: Tensor, n: int) -> Tensor:
    """``n`` element-wise ops that do not fold."""
    for i in range(n // 2):
        x = (x + float(i % 7)) * 0.75
    return x


def expected(value: float, n: int) -> float:
    x = np.float32(value)
    for i in range(n // 2):
        x = np.float32(np.float32(x + np.float32(i % 7)) * np.float32(0.75))
    return float(x)


def run(n: int) -> tuple[int, int]:
    """(Python calls, kernels) of a chain of ``n`` ops, from building it to the result, compiled anew."""
    x = Tensor(np.full(8, 0.5, np.float32)).realize()
    before = GlobalCounters.kernel_count
    out = x
    with Context(CACHELEVEL=0):
        def build() -> None:
            nonlocal out
            out = chain(x, n).realize()
        work = calls(build)
    kernels = GlobalCounters.kernel_count - before
    assert out.tolist() == [expected(0.5, n)] * 8
    return work, kernels


def test_a_thousand_ops():
    run(100)  # what is done once per process
    work, kernels = run(1000)
    assert kernels == -(-1000 // caps_of(Device.DEFAULT).max_kernel_ops)
    assert work < 550 * 1000


@pytest.mark.slow
def test_ten_thousand_ops():
    run(100)
    short, _ = run(2500)
    long, kernels = run(10_000)
    assert kernels == -(-10_000 // caps_of(Device.DEFAULT).max_kernel_ops)
    assert long < 4.4 * short


def test_depth_is_no_limit():
    x = y = Tensor(np.zeros(2, np.float32)).realize()
    for _ in range(3000):
        y = y.reshape(1, 2).reshape(2) + 1
    for _ in range(3000):
        x = x.detach().contiguous() if _ % 1000 == 0 else x + 1
    assert y.tolist() == [3000, 3000] and x.tolist() == [2997, 2997]


def test_a_wide_sum_of_products():
    xs = [Tensor(np.full(4, i, np.float32)).realize() for i in range(200)]
    total = xs[0] * 0
    for i, x in enumerate(xs):
        total = total + x * float(i)
    assert total.tolist() == [float(sum(i * i for i in range(200)))] * 4


def test_recurrence():
    w = Tensor(np.eye(4, dtype=np.float32) * 0.5).realize()
    h = Tensor(np.ones((1, 4), np.float32)).realize()
    for _ in range(60):
        h = (h @ w + 1).tanh()
    want = np.ones((1, 4))
    for _ in range(60):
        want = np.tanh(want * 0.5 + 1)
    np.testing.assert_allclose(h.numpy(), want, rtol=1e-5)
