"""What a captured training step spends outside of kernels: wall time minus the kernel time of the busiest worker.

Prints for the network of examples/train_mnist.py at several batch sizes: the median wall time of a step, the median of
the busiest worker's kernel time in it, what is left in percent, and how many kernels and workers there are. Steps that
are recorded, which costs time behind the kernels, take turns with steps whose wall time counts.
"""
from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from networks import digits_step

from tinyhost import Tensor
from tinyhost.events import kernels_of
from tinyhost.profiling import Recording, recorded_in


def training_step(batch: int) -> Any:
    """A captured step and its arguments."""
    rng = np.random.default_rng(0)
    x = Tensor(rng.random((batch, 1, 28, 28), dtype=np.float32)).clone().realize()
    y = Tensor(rng.integers(0, 10, batch).astype(np.int32)).clone().realize()
    return digits_step()[1], (x, y)


def measure(batch: int, rounds: int) -> tuple[float, float, float, int, int]:
    """(median wall time, median kernel time of the busiest worker, share of the rest, kernels, workers)."""
    step, args = training_step(batch)
    for _ in range(4):
        step(*args)
    walls, busiest = [], []
    kernels = workers = 0
    for _ in range(rounds):
        start = time.perf_counter_ns()
        step(*args)
        walls.append(time.perf_counter_ns() - start)
        own = Recording()
        with recorded_in(own):
            step(*args)
        times: dict[int, int] = {}
        launches = kernels_of(own.events)
        for k in launches:
            for worker, st, en in k.parts or ((0, k.st, k.en),):
                times[worker] = times.get(worker, 0) + en - st
        busiest.append(max(times.values()))
        kernels, workers = len(launches), max(workers, len(times))
    rest = statistics.median([(wall - busy) / wall for wall, busy in zip(walls, busiest)])  # neighbours share the noise
    return statistics.median(walls) / 1e6, statistics.median(busiest) / 1e6, rest, kernels, workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, nargs="*", default=[32, 128, 512])
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args()
    print(f"{'batch':>6} {'wall ms':>9} {'busiest ms':>11} {'rest':>7} {'kernels':>8} {'workers':>8}")
    for batch in args.batch:
        wall, busy, rest, kernels, workers = measure(batch, args.rounds)
        print(f"{batch:6d} {wall:9.2f} {busy:11.2f} {rest:7.2%} {kernels:8d} {workers:8d}")


if __name__ == "__main__":
    main()
