"""Deep graphs: linear time, and kernels of bounded size."""
from __future__ import annotations

import time

import numpy as np
import pytest

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


def run(n: int) -> tuple[float, int]:
    """(seconds, kernels) of a chain of ``n`` ops, from building it to the result, compiled anew."""
    x = Tensor(np.full(8, 0.5, np.float32)).realize()
    before, start = GlobalCounters.kernel_count, time.process_time()
    with Context(CACHELEVEL=0):
        out = chain(x, n).realize()
    seconds, kernels = time.process_time() - start, GlobalCounters.kernel_count - before
    assert out.tolist() == [expected(0.5, n)] * 8
    return seconds, kernels


def test_a_thousand_ops():
    seconds, kernels = run(1000)
    limit = caps_of(Device.DEFAULT).max_kernel_ops
    print(f"\n1,000 ops: {seconds:.2f} s CPU, {kernels} kernels")
    assert kernels == -(-1000 // limit) and seconds <= 2


@pytest.mark.slow
def test_ten_thousand_ops():
    limit = caps_of(Device.DEFAULT).max_kernel_ops
    short, _ = run(2500)
    long, kernels = run(10_000)
    print(f"\n2,500 ops: {short:.2f} s CPU; 10,000 ops: {long:.2f} s CPU, {kernels} kernels")
    assert kernels == -(-10_000 // limit)
    assert long < 4 * 2 * short + 1  # linear, with room for noise


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
