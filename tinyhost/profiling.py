"""Events of a run, and their recording: what the host did, what devices ran, how much memory they held.

Takes events from the floors above while PROFILE is set; gives them to a writer when the recording ends. Times are
integers, nanoseconds of ``time.perf_counter_ns`` (on Linux the system's CLOCK_MONOTONIC); those of a device with a
clock of its own are moved by its ``ProfileDeviceEvent``. Any number of threads may record. A recording keeps the
PROFILE_LIMIT latest records and counts those it dropped. Knows no device and no file format.
"""
from __future__ import annotations

import atexit
import contextvars
import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tinyhost.env import PROFILE, PROFILE_LIMIT, Context
from tinyhost.helpers import ansistrip

if TYPE_CHECKING:
    from tinyhost.events import ProfileEvent, ProfileGraphEntry, ProfileRangeEvent, TracingKey

HOST = "HOST"  # what a host range calls its device
# What takes a finished recording, "module:function": it stands on a floor above and is loaded when a recording ends.
WRITER = "tinyhost.viz.finish:finish"


class Recording:
    """Events in the order in which they were recorded; the latest ``limit``, with a count of those dropped."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = PROFILE_LIMIT.value if limit is None else limit
        self.start, self.dropped, self._held = perf_counter_ns(), 0, 0
        self.threads: dict[int, str] = {}
        self._events: deque[ProfileEvent] = deque()
        self._lock = threading.RLock()  # re-entrant: the collector may free buffers, which records, inside of it

    def add(self, event: ProfileEvent) -> None:
        """Append one event."""
        with self._lock:
            self._events.append(event)
            self._held += event.weight
            while self._held > self.limit and self._events:
                weight = self._events.popleft().weight
                self._held -= weight
                self.dropped += weight

    def thread(self) -> int:
        """The running thread's number, its name noted."""
        number = threading.get_native_id()
        if number not in self.threads:
            self.threads[number] = threading.current_thread().name
        return number

    @property
    def events(self) -> list[ProfileEvent]:
        """What is held now."""
        with self._lock:
            return list(self._events)

    def extend(self, other: Recording) -> None:
        """Append what another recording holds, with its threads and what it dropped."""
        with self._lock:
            self.threads.update(other.threads)
            self.dropped += other.dropped
            for event in other.events:
                self.add(event)

    def start_over(self) -> None:
        """Forget everything, whoever holds the lock."""
        self._lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._events.clear()
            self.threads.clear()
            self.dropped = self._held = 0


_process: Recording | None = None
_current: contextvars.ContextVar[Recording | None] = contextvars.ContextVar("recording", default=None)
_lock = threading.RLock()


def recording() -> Recording:
    """Where the running context records: the block's own recording, or the process's, which is written at exit."""
    return _current.get() or _process or _started()


@contextmanager
def recorded_in(own: Recording) -> Iterator[None]:
    """A block whose events, those of this thread and of the devices it uses, go to ``own``, PROFILE set or not."""
    token = _current.set(own)
    try:
        with Context(PROFILE=max(PROFILE.value, 1)):
            yield
    finally:
        _current.reset(token)


def _started() -> Recording:
    global _process
    with _lock:
        if _process is None:
            _process = Recording()
            atexit.register(_finish_process)
        return _process


def _in_child() -> None:
    """A forked child records what it does itself. Another thread of the parent may have held any lock."""
    global _lock
    _lock = threading.RLock()
    for r in (_process, _current.get()):
        if r is not None:
            r.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _finish_process() -> None:
    """At exit: hand the process's recording over, if anything was recorded."""
    if _process is not None and _process.events:
        writer()(_process)


def writer() -> Callable[..., Any]:
    """The function that takes a finished recording."""
    module, _, name = WRITER.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


class _Events(Sequence[Any]):
    """What the running context recorded so far; ``append`` records an event of one's own."""

    def __len__(self) -> int:
        return len(recording().events)

    def __getitem__(self, at: Any) -> Any:
        return recording().events[at]

    def append(self, event: ProfileEvent) -> None:
        recording().add(event)


cpu_events = _Events()


def reset() -> None:
    """Forget what the process recorded."""
    if _process is not None:
        _process.clear()


# *** the host ***
class cpu_profile(ContextDecorator):
    """A range of the host's time: ``with cpu_profile("load weights"): ...``, or a decorator. Nothing without PROFILE.

    The block gets the event, whose name and ``args`` it may change, or None when nothing is recorded.
    """

    def __init__(self, name: str | TracingKey, device: str = HOST, is_copy: bool = False,
                 category: str = "user") -> None:
        self._made = name, device, is_copy, category
        self._event: ProfileRangeEvent | None = None

    def _recreate_cm(self) -> cpu_profile:
        # each call of a decorated function has a range of its own
        name, device, is_copy, category = self._made
        return cpu_profile(name, device, is_copy, category)

    def __enter__(self) -> ProfileRangeEvent | None:
        if not PROFILE.value:
            return None
        from tinyhost.events import ProfileRangeEvent
        name, device, is_copy, category = self._made
        self._event = ProfileRangeEvent(device, name, 0, 0, is_copy, category, recording().thread())
        self._event.st = perf_counter_ns()
        return self._event

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if (event := self._event) is not None:
            event.en = perf_counter_ns()
            self._event = None
            if kind is not None:
                event.args["error"] = kind.__name__
            recording().add(event)


def profile_marker(name: str, key: Any = None, **args: Any) -> None:
    """Mark this moment of the running thread."""
    if PROFILE.value:
        from tinyhost.events import ProfilePointEvent
        r = recording()
        r.add(ProfilePointEvent(HOST, name, key, args, perf_counter_ns(), r.thread()))


# *** devices ***
def record_launch(device: str, name: str, seconds: float | None, global_size: tuple[int, ...], ops: int,
                  nbytes: int, is_copy: bool = False) -> None:
    """Note a launch or copy that ended just now and took ``seconds`` (None: not known, a moment)."""
    from tinyhost.events import ProfileKernelEvent
    end = perf_counter_ns()
    start = end - round((seconds or 0.0) * 1e9)
    recording().add(ProfileKernelEvent(device, ansistrip(name), start, end, global_size, ops, nbytes, is_copy))


def record_kernels(entries: Sequence[ProfileGraphEntry], sigs: Iterable[tuple[int, int, int, int]],
                   clock: str = "") -> None:
    """Note one run of a graph, whose kernels are measured by the device and not by the host.

    Call it while PROFILE is set, after the run. Nothing is copied but ``sigs``: ``entries`` belong to the graph,
    are the same for each of its runs, and must not change afterwards.

    Args:
        entries: the launches and copies, in order; each that ran is one kernel of the profile.
        sigs: (number in ``entries``, worker, start, end): one for each part of a launch that a worker ran, in any
            order; times in ns. Where a device has no workers, worker is 0 and each launch has one part.
        clock: "" where times are those of ``time.monotonic_ns``; else the name of the device whose clock they are, for
            which ``record_device`` told the difference.
    """
    from tinyhost.events import ProfileGraphEvent
    recording().add(ProfileGraphEvent(entries, tuple(sigs), clock))


def record_memory(device: str, nbytes: int) -> None:
    """Note that ``nbytes`` are allocated on a device now; call it under the lock that orders allocations."""
    from tinyhost.events import ProfileMemoryEvent
    recording().add(ProfileMemoryEvent(device, nbytes, perf_counter_ns()))


def record_program(device: str, name: str, lib: bytes, base: int | None = None) -> None:
    """Note that code was loaded on a device."""
    from tinyhost.events import ProfileProgramEvent
    recording().add(ProfileProgramEvent(device, name, lib, base, perf_counter_ns()))


def record_device(device: str, tdiff: int = 0, **props: Any) -> None:
    """Note how far a device's clock is behind the host's, in ns (``clock_offset``), and what else is known of it."""
    from tinyhost.events import ProfileDeviceEvent
    recording().add(ProfileDeviceEvent(device, tdiff, props))


def clock_offset(read: Callable[[], int], samples: int = 40) -> int:
    """The difference host minus device of two clocks, in ns; ``read`` synchronises and gives the device's time.

    The median over ``samples`` readings, each compared with the middle of the host's times around it.
    """
    found = []
    for _ in range(samples):
        before = perf_counter_ns()
        there = read()
        found.append((before + perf_counter_ns()) // 2 - there)
    return sorted(found)[len(found) // 2]
