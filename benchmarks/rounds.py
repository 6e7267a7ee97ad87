"""Timing that survives a noisy machine: contenders in alternating rounds, medians, ratios within one run.

Takes named functions that do the same work; gives the median seconds of each. Nothing here asserts: it prints.
"""
from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

REST = 0.1  # seconds before each run: the threads of a peer's pool keep spinning for some 30 ms after their work


def fair_numpy() -> None:
    """Start this program again without the variables that hold numpy's BLAS to an old kernel."""
    held = [v for v in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if v in os.environ]
    if held:
        env = {k: v for k, v in os.environ.items() if k not in held}
        os.execve(sys.executable, [sys.executable, *sys.argv], env)


def medians(contenders: dict[str, Callable[[], object]], rounds: int = 9, warmup: int = 2) -> dict[str, float]:
    """Median seconds of each contender; every round runs all of them in turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for i in range(rounds + warmup):
        for name, run in contenders.items():
            time.sleep(REST)
            start = time.perf_counter()
            run()
            if i >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def table(title: str, results: dict[str, float], work: float = 0.0, unit: str = "") -> None:
    """Print seconds, rate (``work`` per second in ``unit``) and the ratio to the first contender."""
    print(f"\n{title}")
    first = next(iter(results.values()))
    for name, seconds in results.items():
        rate = f" {work / seconds:9.1f} {unit}" if work else ""
        print(f"  {name:32s} {seconds * 1e3:9.3f} ms{rate}  x{seconds / first:5.2f}")
