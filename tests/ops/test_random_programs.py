"""Random programs give on every device, bit for bit, what their definition says."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.env import Context

from .elementwise import check_numbers, numbers
from .random_programs import program


def run(first: int, last: int) -> None:
    for seed in range(first, last):
        with Context(NOOPT=int(seed % 7 == 0)):
            for v in program(seed):
                try:
                    check_numbers(numbers(v.node), np.ascontiguousarray(v.array))
                except Exception as e:
                    raise AssertionError(f"random program {seed}, a {v.dtype} of {v.array.size}: {e}") from e


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(5))
def test_sample(block: int, dev: str) -> None:
    run(20 * block, 20 * block + (20 if dev != "CPU:CLANG" else 7))


@pytest.mark.soak
@pytest.mark.parametrize("block", range(100))
def test_many(block: int, dev: str) -> None:
    run(1000 + 100 * block, 1100 + 100 * block)
