"""Threads that run one kernel side by side, each with its core number. The caller is core 0.

Generated code holds no Python lock, so Python threads around it run in parallel. A forked child starts its own workers.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

Task = tuple[Callable[[int], None], int, "_Join"]


class _Join:
    """Counts finished parts of one launch and keeps the first failure."""

    def __init__(self, parts: int) -> None:
        self._left = parts
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.failure: BaseException | None = None

    def finish(self, failure: BaseException | None) -> None:
        with self._lock:
            self._left -= 1
            self.failure = self.failure or failure
            if self._left == 0:
                self._done.set()

    def wait(self) -> None:
        # in slices, so that Ctrl-C is seen
        while not self._done.wait(0.05):
            pass
        if self.failure is not None:
            raise self.failure


class Workers:
    """A pool that grows to the number of threads a kernel asks for."""

    def __init__(self) -> None:
        self._queues: list["SimpleQueue[Task]"] = []
        self._lock = threading.Lock()

    def _grow(self, count: int) -> None:
        with self._lock:
            while len(self._queues) < count:
                queue: "SimpleQueue[Task]" = SimpleQueue()
                name = f"tinyhost-cpu-{len(self._queues) + 1}"
                threading.Thread(target=_serve, args=(queue,), name=name, daemon=True).start()
                self._queues.append(queue)

    def run(self, part: Callable[[int], None], count: int) -> None:
        """Call ``part(0)`` to ``part(count - 1)`` at once and wait for all."""
        if len(self._queues) < count - 1:
            self._grow(count - 1)
        join = _Join(count - 1)
        for core in range(1, count):
            self._queues[core - 1].put((part, core, join))
        try:
            part(0)
        finally:
            join.wait()


def _serve(queue: "SimpleQueue[Task]") -> None:
    while True:
        part, core, join = queue.get()
        failure: BaseException | None = None
        try:
            part(core)
        except BaseException as e:  # handed to the caller by wait()
            failure = e
        join.finish(failure)


workers = Workers()


def _start_over() -> None:
    global workers
    workers = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


def available_cpus() -> int:
    """Processors this process may use: affinity and cgroup quota, at least one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as f:
            quota, period = f.read().split()
    except (OSError, ValueError):  # no cgroup v2 here, or no limit file: affinity alone decides
        return max(1, count)
    return max(1, count if quota == "max" else min(count, -(-int(quota) // int(period))))
