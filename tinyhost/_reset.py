"""One call that forgets what a process collects while it runs.

Schedules, plans, loaded programs, counters, recorded events, random state, kept gradients' graphs and device choices
start anew. Live tensors keep their values, opened devices stay open, and what is on disk stays there.
"""
from __future__ import annotations

import time

from tinyhost import profiling
from tinyhost._tensor import history
from tinyhost.device import Device
from tinyhost.engine import diskcache, plan, program, schedule, search
from tinyhost.helpers import GlobalCounters
from tinyhost.rng import state


def reset() -> None:
    """Forget all that can be made again."""
    for part in (schedule, plan, program, search, diskcache):
        part.reset()
    GlobalCounters.reset()
    profiling.reset()
    history.clear()
    state.reseed(int(time.time()))
    Device.reset()
