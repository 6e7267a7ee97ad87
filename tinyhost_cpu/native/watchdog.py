"""The watchdog: ends kernels that do not end by themselves.

Now and then it looks at the numbers of all threads that are in a kernel. One that is in the same call for the whole
time-out gets a signal, whose handler makes the call end with a fault, on that thread, so that it stays of use.
"""
from __future__ import annotations

import threading
import time

from tinyhost_cpu.native.states import Faults

LOOKS = 4  # per time-out; a kernel is ended after the time-out and at most one look


class Watchdog:
    """One daemon thread, from the first kernel on; ``timeout`` in seconds."""

    def __init__(self, faults: Faults, timeout: float) -> None:
        self._faults, self.timeout = faults, timeout
        self.forget()

    def forget(self) -> None:
        """In a forked child: the thread of the parent is not here."""
        self._changed = threading.Event()
        self._lock = threading.RLock()  # a signal handler may run the first kernel
        self._started = False

    def set_timeout(self, seconds: float) -> None:
        """For kernels that run now, too."""
        self.timeout = seconds
        self._changed.set()

    def start(self) -> None:
        """Watch, unless it does so already."""
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._watch, name="tinyhost-cpu-watchdog", daemon=True).start()

    def _watch(self) -> None:
        seen: dict[int, tuple[int, float]] = {}  # thread: its call, since when
        while True:
            self._changed.wait(self.timeout / LOOKS)
            self._changed.clear()
            now = time.monotonic()
            running = self._faults.running()
            seen = {thread: seen[thread] if seen.get(thread, (0, 0.0))[0] == call else (call, now)
                    for thread, call in running.items()}
            for thread, (call, since) in seen.items():
                if now - since >= self.timeout:
                    self._faults.end(thread, call)
