"""Random programs give the same whatever the JIT, the planner, the caches, the submission and the devices."""
from __future__ import annotations

import pytest

from tests.soak.running import check

SAMPLE = 12
BLOCK = 20


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_random_programs(seed: int):
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(100))
def test_many_random_programs(block: int):
    for seed in range(1000 + block * BLOCK, 1000 + (block + 1) * BLOCK):
        check(seed)
