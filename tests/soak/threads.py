"""Eight threads and their random programs: ``python -m tests.soak.threads THREADS PROGRAMS SECONDS FIRST PATIENCE``.

Prints how many programs ran. Every thread runs programs of its own seeds, checked against numpy, in a setting of its
own, next to expressions over tensors that all threads share and race to realize. When no program was finished for
PATIENCE seconds, the stacks of all threads are printed and the process ends.
"""
from __future__ import annotations

import faulthandler
import sys
import threading
import time
from typing import Any

import numpy as np

from tests.soak.drawing import grow
from tests.soak.running import Run, Setting, as_numpy, difference, expected, runs_nothing, settings_of
from tinyhost import Tensor, TinyJit

WEIGHTS = [np.arange(24, dtype=np.float32).reshape(4, 6) - 9, np.arange(30, dtype=np.float32).reshape(6, 5) % 4]


class Worker(threading.Thread):
    """Runs programs until it is time; keeps the first failure."""

    def __init__(self, number: int, programs: int, until: float, first: int, patience: int,
                 shared: list[Tensor]) -> None:
        super().__init__(name=f"worker {number}")
        self.number, self.programs, self.until, self.first = number, programs, until, first
        self.patience, self.shared = patience, shared
        self.done = 0
        self.failure: BaseException | None = None
        self.layers = TinyJit(self.layer)

    def run(self) -> None:
        try:
            while self.done < self.programs or time.monotonic() < self.until:
                self.one(self.first + self.number + 8 * self.done)
                self.done += 1
                faulthandler.dump_traceback_later(self.patience, exit=True)  # starts anew
        except BaseException as e:
            self.failure = e

    def one(self, seed: int) -> None:
        """A program, and the shared weights."""
        program, settings = grow(seed), settings_of(seed)
        self.check(program, settings[seed // 8 % len(settings)])
        x = np.random.default_rng(seed).integers(-4, 5, (3, 4)).astype(np.float32)
        got = self.layers(Tensor(x)).numpy()
        want = np.maximum(x @ WEIGHTS[0], 0) @ WEIGHTS[1] + self.number
        assert (got == want).all(), f"weights shared by threads: {got} and {want}"

    def layer(self, x: Tensor) -> Tensor:
        """Two layers whose weights are shared."""
        return (x @ self.shared[0]).relu() @ self.shared[1] + self.number

    def check(self, program: Any, setting: Setting) -> None:
        try:
            got = Run(program, setting, seeded=False).run()
        except Exception as e:
            if runs_nothing(e):
                return
            raise AssertionError(f"{program}\n{setting}") from e
        text = difference(got, expected(program), as_numpy)
        assert text is None, f"{program}\n{setting}\n{text}"


def main(threads: int, programs: int, seconds: int, first: int, patience: int) -> int:
    """How many programs ran; raises what a worker raised."""
    shared = [Tensor(w) * 1 for w in WEIGHTS]  # not realized
    until = time.monotonic() + seconds
    faulthandler.dump_traceback_later(patience, exit=True)
    workers = [Worker(i, programs, until, first, patience, shared) for i in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    faulthandler.cancel_dump_traceback_later()
    for w in workers:
        if w.failure is not None:
            raise w.failure
    return sum(w.done for w in workers)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
