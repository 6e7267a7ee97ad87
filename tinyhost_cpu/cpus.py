"""How many processors this process may use."""
from __future__ import annotations

import os


def available_cpus() -> int:
    """Processors this process may use: affinity and cgroup quota, at least one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as f:
            quota, period = f.read().split()
    except (OSError, ValueError):  # no cgroup v2 here, or no limit file: affinity alone decides
        return max(1, count)
    return max(1, count if quota == "max" else min(count, -(-int(quota) // int(period))))
