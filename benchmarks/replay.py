"""Cost of a captured call: around the launches, and for each kernel.

    python benchmarks/replay.py

Prints the median microseconds of single calls, contenders in alternating rounds; kernels have 16 elements, so hardly
anything but the call itself is measured. "no launch" is the call without its launches, and "a dict copy" a yardstick of
the machine.
"""
from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable

from rounds import REST

from tinyhost import Device, GlobalCounters, Tensor, TinyJit
from tinyhost.engine.replay import Replay

ROUNDS, CALLS = 9, 200  # and calls in a round


def chain(kernels: int, devices: tuple[str, ...] = ()) -> Callable[[], object]:
    """A captured chain of so many kernels on one tensor, perhaps split over devices."""
    @TinyJit
    def f(x: Tensor) -> Tensor:
        for _ in range(kernels):
            x = (x + 1).contiguous()
        return x.realize()
    x = Tensor.empty(16).contiguous()
    x = (x.shard(devices, 0) if devices else x).realize()
    for _ in range(4):
        f(x)
    return lambda: f(x)


def weighted(count: int) -> Callable[[], object]:
    """A captured sum with so many tensors of state."""
    weights = [Tensor.empty(16).contiguous().realize() for _ in range(count)]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        for w in weights:
            x = x + w
        return x.realize()
    x = Tensor.empty(16).contiguous().realize()
    for _ in range(4):
        f(x)
    return lambda: f(x)


class NoLaunch:
    """A block in which captures launch nothing."""

    def __enter__(self) -> None:
        self._run = Replay.run
        Replay.run = lambda self, given, var_vals: None  # type: ignore[method-assign]

    def __exit__(self, *exc: object) -> None:
        Replay.run = self._run  # type: ignore[method-assign]


def one_round(call: Callable[[], object]) -> list[float]:
    """Seconds of each call of a round."""
    now, times = time.perf_counter, []
    for _ in range(CALLS):
        start = now()
        call()
        times.append(now() - start)
    return times


def kernels_of(call: Callable[[], object]) -> int:
    """How many kernels a call counts."""
    before = GlobalCounters.kernel_count
    call()
    return GlobalCounters.kernel_count - before


def main() -> None:
    """Measure and print."""
    two = tuple(Device.canonicalize(f"{Device.DEFAULT}:{i}") for i in range(2))
    calls = {"1 kernel": chain(1), "1 kernel, 100 tensors of state": weighted(100), "50 kernels": chain(50),
             "300 kernels": chain(300), "25 kernels on each of 2 devices": chain(25, two)}
    counts = {name: kernels_of(call) for name, call in calls.items()}
    bare = "1 kernel, no launch"
    calls |= {bare: calls["1 kernel"], "a dict copy": {i: i for i in range(50)}.copy}
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            time.sleep(REST)
            with NoLaunch() if name == bare else contextlib.nullcontext():
                times[name] += one_round(call)
    for name, taken in times.items():
        counted = f"{counts[name]:4d} kernels a call" if name in counts else ""
        print(f"  {name:34s} {statistics.median(taken) * 1e6:9.1f} us  {counted}")


if __name__ == "__main__":
    main()
