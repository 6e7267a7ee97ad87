"""What a program says it computes and moves: counted against the loops it stands for."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.env import Context
from tinyhost.helpers import GlobalCounters
from tinyhost.tensor import Tensor


def counted(t: Tensor) -> tuple[int, int]:
    """(operations, bytes) of the kernels that compute ``t``."""
    GlobalCounters.reset()
    t.realize()
    return GlobalCounters.global_ops, GlobalCounters.global_mem


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_rows_that_threads_share_unevenly_are_counted_once(threads: int) -> None:
    with Context(DEV="CPU", NUM_CPU_THREADS=threads):
        x = Tensor(np.ones((7, 100_000), np.float32)).realize()
        ops, mem = counted(x.max(1))
    assert 700_000 * 0.99 <= ops <= 700_000 * 1.01
    assert mem == 4 * (700_000 + 7)


def test_a_product_counts_two_operations_per_step() -> None:
    with Context(DEV="CPU"):
        a, b = Tensor(np.ones((96, 64), np.float32)).realize(), Tensor(np.ones((64, 80), np.float32)).realize()
        ops, mem = counted(a @ b)
    assert 2 * 96 * 64 * 80 <= ops <= 1.05 * 2 * 96 * 64 * 80
    assert mem == 4 * (96 * 64 + 64 * 80 + 96 * 80)
