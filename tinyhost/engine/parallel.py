"""Jobs shared with forked helper processes, as the kernels of a schedule that are in no cache.

Each helper begins with a share of its own and sends back what it made, as bytes, one job after the other. The calling
process does its own share, then takes jobs from the ends of the shares that are left. Nothing depends on a helper: a
job that one cannot do, or did not do because it died or hangs, is done here, where errors surface as ever.

Helpers are forks, so they have the caller's graphs, settings, plugins and rules without a copy; they touch no device,
run no kernel, write no file and leave by ``_exit``. A fork is only taken in a process with one Python thread (another
one may hold a lock that the helper needs) and of moderate size (its page tables are copied).
"""
from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, TypeVar

from tinyhost.env import PARALLEL

J = TypeVar("J")
JOBS_EACH = 8  # jobs that are worth a helper
MOST_HELPERS = 3
MOST_PAGES = 1 << 20  # resident; copying the tables of 4 GiB costs about 50 ms


def helpers_for(jobs: int) -> int:
    """How many helpers to fork for so many jobs."""
    wanted = min(_spare(), MOST_HELPERS) if PARALLEL.value < 0 else PARALLEL.value
    count = min(wanted, jobs // JOBS_EACH)
    return count if count > 0 and _may_fork() else 0


def _spare() -> int:
    """Processors that nobody used in the last minute, this process left out."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors - max(1, round(os.getloadavg()[0]))


def _may_fork() -> bool:
    if not sys.platform.startswith("linux") or threading.active_count() > 1:
        return False
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) < MOST_PAGES


def share(jobs: Sequence[J], here: Callable[[J], None], there: Callable[[J], bytes],
          taken: Callable[[J, bytes], None], helpers: int) -> None:
    """Do all ``jobs``: ``here`` in this process, or ``there`` in a helper, whose bytes are ``taken`` in this one.

    What ``here`` and ``taken`` raise, Ctrl-C included, ends the helpers at once.
    """
    team: list[_Helper[J]] = []
    mine = list(jobs[::helpers + 1])
    try:
        for i in range(1, helpers + 1):
            try:
                team.append(_Helper(jobs[i::helpers + 1], there))
            except OSError:  # no more processes or memory
                mine += jobs[i::helpers + 1]
        for job in mine:
            here(job)
            for helper in team:
                helper.collect(here, taken)
        for helper in team:
            helper.collect(here, taken)
            while helper.left:  # what it is at, too: waiting would be no faster
                here(helper.left.pop())
                helper.collect(here, taken)
    finally:
        for helper in team:
            helper.end()


class _Helper(Generic[J]):
    """One forked process, seen from its parent: ``left`` are the jobs it has not sent yet, the first that it is at."""

    def __init__(self, jobs: Sequence[J], there: Callable[[J], bytes]) -> None:
        self.left = deque(jobs)
        self._buffer = bytearray()
        self._pid, self._fd = _forked(jobs, there)
        os.set_blocking(self._fd, False)

    def collect(self, here: Callable[[J], None], taken: Callable[[J, bytes], None]) -> None:
        """Take what has arrived; empty bytes are a job for this process."""
        self._read()
        while self.left and self._has_whole():
            end = 4 + int.from_bytes(self._buffer[:4], "little")
            job, data = self.left.popleft(), bytes(self._buffer[4:end])
            del self._buffer[:end]
            if data:
                taken(job, data)
            else:
                here(job)

    def _has_whole(self) -> bool:
        return len(self._buffer) >= 4 and len(self._buffer) >= 4 + int.from_bytes(self._buffer[:4], "little")

    def _read(self) -> None:
        try:
            while data := os.read(self._fd, 1 << 16):
                self._buffer += data
        except BlockingIOError:  # no more has arrived
            pass

    def end(self) -> None:
        """Stop the process, whatever it does, and forget it."""
        os.close(self._fd)
        try:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):  # the program waits for all its children itself
            pass


def _forked(jobs: Sequence[J], there: Callable[[J], bytes]) -> tuple[int, int]:
    """(process id, pipe to read from) of a new helper."""
    read, write = os.pipe()
    # no signal between the fork and the moment the helper ignores Ctrl-C, which its whole group gets
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside native threads, which hold no lock
            pid = os.fork()
        if pid == 0:
            _work(jobs, there, write)
    except OSError:
        os.close(read)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(write)
    return pid, read


def _work(jobs: Sequence[J], there: Callable[[J], bytes], fd: int) -> NoReturn:
    """A helper's life."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for job in jobs:
            try:
                data = there(job)
            except Exception:  # empty bytes: the parent does the job itself, and meets the error where it can be told
                data = b""
            rest = memoryview(len(data).to_bytes(4, "little") + data)
            while rest:
                rest = rest[os.write(fd, rest):]
    finally:
        os._exit(0)
