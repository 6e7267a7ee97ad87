"""Schedules of random graphs compute what the graphs say."""
from __future__ import annotations

import pytest
from schedule.helpers import check
from schedule.random_graphs import Grower

from tinyhost.capabilities import Capabilities
from tinyhost.errors import ScheduleError

TIGHT = Capabilities(max_kernel_ops=6, max_kernel_buffers=4)


def run(seed: int, steps: int, caps: Capabilities) -> bool:
    """Whether the graph had an order of execution at all."""
    try:
        check(*Grower(seed, steps).sink(), caps=caps, seed=seed)
    except ScheduleError as e:
        if "cycle detected" in str(e) or "reads" in str(e):
            return False
        raise
    return True


@pytest.mark.parametrize("block", range(10))
def test_random_graphs(block: int) -> None:
    done = sum(run(seed, 6 + seed % 14, Capabilities()) for seed in range(block * 40, block * 40 + 40))
    assert done >= 20


@pytest.mark.parametrize("block", range(4))
def test_random_graphs_within_tight_limits(block: int) -> None:
    done = sum(run(seed, 6 + seed % 14, TIGHT) for seed in range(1000 + block * 40, 1000 + block * 40 + 40))
    assert done >= 20
