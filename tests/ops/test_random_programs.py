"""Random programs give on every device, bit for bit, what their definition says."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinyhost.env import Context

from .elementwise import check_numbers, numbers
from .random_programs import Value, matrix_program, program

MAKERS = {"rows": program, "matrices": matrix_program}


def run(make: Callable[[int], list[Value]], first: int, last: int) -> None:
    for seed in range(first, last):
        with Context(NOOPT=int(seed % 7 == 0)):
            for v in make(seed):
                try:
                    check_numbers(numbers(v.node), np.ascontiguousarray(v.array))
                except Exception as e:
                    raise AssertionError(f"{make.__name__}({seed}), a {v.dtype} of {v.array.size}: {e}") from e


@pytest.mark.fuzz
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("block", range(4))
def test_sample(make: str, block: int, dev: str) -> None:
    run(MAKERS[make], 20 * block, 20 * block + (20 if dev != "CPU:CLANG" else 7))


@pytest.mark.soak
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("block", range(50))
def test_many(make: str, block: int, dev: str) -> None:
    run(MAKERS[make], 1000 + 100 * block, 1100 + 100 * block)
