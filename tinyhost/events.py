"""Events of a run, as plain records: ranges and moments of the host, launches, memory, devices, code, graphs.

``profiling`` records them; it loads this file with the first one, so that a program that records nothing does not pay
for it. Times are integers, nanoseconds of the host's clock or of that of a device (``clock``).
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyhost.helpers import ansistrip


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
