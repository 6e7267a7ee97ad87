"""Running reductions: how much they compute, and agreement with numpy over long axes, any axis and two levels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.helpers import GlobalCounters
from tinyhost.tensor import Tensor

SCANS: dict[str, Callable[[Tensor], Tensor]] = {
    "cumsum": lambda x: x.cumsum(0), "cumprod": lambda x: x.cumprod(0), "logcumsumexp": lambda x: x.logcumsumexp(0),
    "cummax": lambda x: x.cummax(0)[0], "cummin": lambda x: x.cummin(0)[0],
}


def operations(n: int, scan: Callable[[Tensor], Tensor]) -> int:
    """Arithmetic that a scan of ``n`` elements runs."""
    x = Tensor(np.linspace(0.9, 1.1, n).astype(np.float32)).realize()
    before = GlobalCounters.global_ops
    scan(x).realize()
    return GlobalCounters.global_ops - before


@pytest.mark.parametrize("scan", SCANS)
def test_work_grows_less_than_length_times_its_root(scan: str) -> None:
    """Four times the length costs at most nine times the work (a square would cost 16 times, n * sqrt(n) 8 times)."""
    few, more, many = (operations(n, SCANS[scan]) for n in (4096, 4 * 4096, 16 * 4096))
    assert more < 9 * few and many < 9 * more
    per_step = {"logcumsumexp": 60}.get(scan, 6)
    assert many < per_step * 16 * 4096 * 256  # the root of the length is 256


@pytest.mark.parametrize("n", [1, 63, 64, 65, 100, 127, 128, 129, 1000, 5000, 20000])
def test_lengths(n: int) -> None:
    a = np.random.default_rng(n).integers(-9, 9, n).astype(np.int32)
    np.testing.assert_array_equal(Tensor(a).cumsum(0).numpy(), a.cumsum())
    np.testing.assert_array_equal(Tensor(a).cummax(0)[0].numpy(), np.maximum.accumulate(a))
    np.testing.assert_array_equal(Tensor(a[:, None]).cumsum(0).numpy()[:, 0], a.cumsum())


@pytest.mark.parametrize("shape, axis", [
    ((3, 300), 1), ((300, 3), 0), ((2, 200, 3), 1), ((2, 3, 200), -1), ((5, 0), 0),
])
def test_axes(shape: tuple[int, ...], axis: int) -> None:
    a = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int64)
    np.testing.assert_array_equal(Tensor(a).cumsum(axis).numpy(), a.cumsum(axis))
    np.testing.assert_array_equal(Tensor(a).cumprod(axis).numpy(), a.cumprod(axis))


def test_gradients_of_a_long_scan() -> None:
    """The gradient of a running sum is the running sum from the other end."""
    w = np.random.default_rng(0).integers(-9, 9, 700).astype(np.float32)
    x = Tensor(np.ones(700, np.float32))
    [g] = (x.cumsum(0) * Tensor(w)).sum().gradient(x)
    np.testing.assert_array_equal(g.numpy(), w[::-1].cumsum()[::-1])
    [g] = (x.logcumsumexp(0) * Tensor(w)).sum().gradient(x)
    want = (w / np.arange(1, 701))[::-1].cumsum()[::-1]  # d log(sum of k ones) = 1 / k for each of them
    np.testing.assert_allclose(g.numpy(), want, rtol=1e-4, atol=1e-4)


def test_a_symbolic_axis() -> None:
    from tinyhost import Variable
    n = Variable("n", 1, 9).bind(4)
    x = Tensor(np.arange(9, dtype=np.float32))
    total: Any = x[:n].cumsum(0).sum()
    assert total.item() == 0 + 1 + 3 + 6


def test_axis_errors() -> None:
    with pytest.raises(IndexError, match=r"axis 2 is outside of -2 to 1 of \(2, 3\)"):
        Tensor.ones(2, 3).cumsum(2)
    with pytest.raises(IndexError, match="axis 1 is outside of -1 to 0"):
        Tensor(1.0).logcumsumexp(1)
