"""Long sums of floats keep their digits: along every axis, for lengths that divide well and for primes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost import Context, Tensor, dtypes
from tinyhost.capabilities import Capabilities
from tinyhost.schedule.split import split_reduce
from tinyhost.uop import Ops, UOp

SHAPES = [  # shape, axes, kernels
    ((100_000,), (0,), 2), ((1_000_003,), (0,), 2), ((10_000_000,), (0,), 2), ((3, 100_003), (1,), 2),
    ((100_003, 3), (0,), 2), ((1_000_000, 2), (0,), 3), ((40, 50, 60, 4), (0, 1, 2), 2), ((7, 300, 301), (1, 2), 2),
    ((300, 7, 301), (0, 2), 2), ((300, 301, 3), (0, 1), 2), ((200, 500, 5), (0, 1, 2), 2),
]


@pytest.mark.parametrize("shape, axes, kernels", SHAPES)
def test_long_sums(shape: tuple[int, ...], axes: tuple[int, ...], kernels: int):
    rng = np.random.default_rng(3)
    for data in (np.full(shape, 0.1, np.float32), rng.random(shape, dtype=np.float32)):
        t = Tensor(data).realize()
        assert len(t.sum(axes).schedule_linear().src) == kernels
        want = data.sum(axes, dtype=np.float64)
        assert (np.abs(t.sum(axes).numpy() - want) / np.abs(want)).max() <= 2e-6


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
def test_other_floats(dtype: Any):
    t = Tensor(np.full((2, 65_536), 0.25, np.float32)).cast(dtype).realize()
    assert t.sum(1, dtype=dtypes.float32).tolist() == [16384.0, 16384.0]
    assert (t * 2 - 0.25).mean(1).tolist() == [0.25, 0.25]


def test_gradients_of_long_sums():
    t = Tensor(np.ones((100_003, 2), np.float32)).realize()
    (g,) = (t.sum(0) ** 2).sum().gradient(t)
    assert (g.numpy() == 2 * 100_003).all()


def test_products_and_integers_are_left_alone():
    a, b = UOp.param(0, dtypes.float32, (4, 65_536), "CPU"), UOp.param(1, dtypes.float32, (8, 65_536), "CPU")
    product = (a.reshape(4, 1, 65_536) * b.reshape(1, 8, 65_536)).sum(2)
    whole = UOp.param(2, dtypes.int32, (40_000, 64), "CPU").sum(0)
    for u in (product, whole):
        reduce = next(n for n in u.toposort() if n.op is Ops.REDUCE)
        assert split_reduce(reduce, Capabilities(threads=2)) is reduce
    with Context(SPLIT_REDUCEOP=0):
        assert len(Tensor(np.ones(100_000, np.float32)).realize().sum().schedule_linear().src) == 1
