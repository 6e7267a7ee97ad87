"""Gradients of windowed views in narrow floats: the casts around their sums leave no reduction out."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost import Tensor, dtypes
from tinyhost.ops import Ops


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32])
@pytest.mark.parametrize("op", [Ops.MAX, Ops.ADD])
def test_windows_of_narrow_floats(dtype, op):
    values, weights = np.array([0.5, 1.5, -1, 2, 0.25], np.float32), np.arange(1, 6).astype(np.float32)
    x, w = Tensor(values).cast(dtype).realize(), Tensor(weights).cast(dtype).realize()
    windows = x.pad((2, 0), value=-np.inf if op is Ops.MAX else 0)._pool((3,))
    (grad,) = (windows._reduce(op, -1) * w).sum().gradient(x)
    want = np.zeros(5, np.float32)
    for i in range(5):
        window = range(max(0, i - 2), i + 1)
        best = max(window, key=lambda j: values[j])
        for j in window:
            want[j] += weights[i] if op is Ops.ADD or j == best else 0
    assert grad.numpy().astype(np.float32).tolist() == want.tolist()
