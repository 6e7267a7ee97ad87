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
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from tinyhost.env import PROFILE, PROFILE_LIMIT, Context
from tinyhost.helpers import ansistrip

HOST = "HOST"  # what a host range calls its device
# What takes a finished recording, "module:function": it stands on a floor above and is loaded when a recording ends.
WRITER = "tinyhost.viz.finish:finish"


@dataclass(frozen=True, slots=True)
class TracingKey:
    """A name to show, and what it belongs to: ``keys`` find related events, ``ret`` is what came out."""

    display_name: str
    keys: tuple[Any, ...] = ()
    ret: Any = None

    def __str__(self) -> str:
        return self.display_name


class ProfileEvent:
    """Root of all events."""

    __slots__ = ()

    @property
    def weight(self) -> int:
        """How many records it counts as."""
        return 1


@dataclass(slots=True)
class ProfileRangeEvent(ProfileEvent):
    """Something that took from ``st`` to ``en`` on a thread of the host; ``category`` is the phase it belongs to."""

    device: str
    name: str | TracingKey
    st: int
    en: int = 0
    is_copy: bool = False
    category: str = "user"
    thread: int = 0
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfilePointEvent(ProfileEvent):
    """Something that happened at ``ts`` on a thread of the host."""

    device: str
    name: str
    key: Any
    arg: dict[str, Any]
    ts: int
    thread: int = 0


@dataclass(frozen=True, slots=True)
class ProfileKernelEvent(ProfileEvent):
    """One launch or copy on a device, from ``st`` to ``en``; ``parts`` are (worker, start, end) where workers share it.

    Attributes:
        ops: floating-point and integer operations.
        nbytes: bytes moved.
        clock: "" for the host's clock, else the device whose ``ProfileDeviceEvent`` says how far its own is off.
    """

    device: str
    name: str
    st: int
    en: int
    global_size: tuple[int, ...] = ()
    ops: int = 0
    nbytes: int = 0
    is_copy: bool = False
    clock: str = ""
    parts: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileMemoryEvent(ProfileEvent):
    """``nbytes`` are allocated on a device from ``ts`` on."""

    device: str
    nbytes: int
    ts: int


@dataclass(frozen=True, slots=True)
class ProfileDeviceEvent(ProfileEvent):
    """A device whose clock is ``tdiff`` ns behind the host's: host time = device time + tdiff."""

    device: str
    tdiff: int = 0
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileProgramEvent(ProfileEvent):
    """Code was loaded: ``lib`` at address ``base`` (None where the device does not say)."""

    device: str
    name: str
    lib: bytes
    base: int | None
    ts: int


@dataclass(frozen=True, slots=True)
class ProfileGraphEntry:
    """One launch or copy of a graph, the same in each run of it; its name may hold colours."""

    device: str
    name: str
    global_size: tuple[int, ...] = ()
    ops: int = 0
    nbytes: int = 0
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class ProfileGraphEvent(ProfileEvent):
    """One run of a graph.

    Attributes:
        sigs: (number of the entry, worker, start, end) of each part of a launch.
    """

    entries: Sequence[ProfileGraphEntry]
    sigs: Sequence[tuple[int, int, int, int]]
    clock: str = ""

    @property
    def weight(self) -> int:
        """A graph counts as what it ran."""
        return max(len(self.sigs), 1)


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


class _Events(Sequence[ProfileEvent]):
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
        r = recording()
        r.add(ProfilePointEvent(HOST, name, key, args, perf_counter_ns(), r.thread()))


# *** devices ***
def record_launch(device: str, name: str, seconds: float | None, global_size: tuple[int, ...], ops: int,
                  nbytes: int, is_copy: bool = False) -> None:
    """Note a launch or copy that ended just now and took ``seconds`` (None: not known, a moment)."""
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
    recording().add(ProfileGraphEvent(entries, tuple(sigs), clock))


def record_memory(device: str, nbytes: int) -> None:
    """Note that ``nbytes`` are allocated on a device now; call it under the lock that orders allocations."""
    recording().add(ProfileMemoryEvent(device, nbytes, perf_counter_ns()))


def record_program(device: str, name: str, lib: bytes, base: int | None = None) -> None:
    """Note that code was loaded on a device."""
    recording().add(ProfileProgramEvent(device, name, lib, base, perf_counter_ns()))


def record_device(device: str, tdiff: int = 0, **props: Any) -> None:
    """Note how far a device's clock is behind the host's, in ns (``clock_offset``), and what else is known of it."""
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


def kernels_of(events: Iterable[ProfileEvent]) -> list[ProfileKernelEvent]:
    """Every launch and copy, those of graphs among them, in the host's clock, by start."""
    events = list(events)
    offset = {e.device: e.tdiff for e in events if isinstance(e, ProfileDeviceEvent)}
    found = [e for e in events if isinstance(e, ProfileKernelEvent)]
    for e in events:
        if isinstance(e, ProfileGraphEvent):
            found += _launches(e)
    return sorted((_moved(k, offset.get(k.clock, 0)) for k in found), key=lambda k: (k.st, k.en))


def _launches(event: ProfileGraphEvent) -> list[ProfileKernelEvent]:
    """The launches of one run of a graph, from first to last part."""
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for number, worker, start, end in event.sigs:
        parts.setdefault(number, []).append((worker, start, end))
    out = []
    for number, pieces in sorted(parts.items()):
        e = event.entries[number]
        out.append(ProfileKernelEvent(e.device, ansistrip(e.name), min(p[1] for p in pieces), max(p[2] for p in pieces),
                                      e.global_size, e.ops, e.nbytes, e.is_copy, event.clock, tuple(pieces)))
    return out


def _moved(k: ProfileKernelEvent, tdiff: int) -> ProfileKernelEvent:
    if not tdiff:
        return k
    parts = tuple([(w, s + tdiff, e + tdiff) for w, s, e in k.parts])
    return ProfileKernelEvent(k.device, k.name, k.st + tdiff, k.en + tdiff, k.global_size, k.ops, k.nbytes, k.is_copy,
                              "", parts)
