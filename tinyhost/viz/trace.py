"""Traces in the Chrome JSON format, which Perfetto and chrome://tracing open.

Takes a recording; gives one JSON object. The host is one process of the trace, with a track for each thread; each
device is another one, with a track for its launches, one for each worker, and a counter of allocated bytes. Ranges
of one track nest: one that would cut across another goes to a further track. Times are microseconds since the first
event, with three decimals.

Fields are those of "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
X complete events, i instants, C counters, M metadata.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from tinyhost.events import (
    ProfileDeviceEvent,
    ProfileEvent,
    ProfileKernelEvent,
    ProfileMemoryEvent,
    ProfilePointEvent,
    ProfileProgramEvent,
    ProfileRangeEvent,
    TracingKey,
    kernels_of,
)
from tinyhost.profiling import HOST, Recording

Event: TypeAlias = dict[str, Any]
Span: TypeAlias = tuple[int, int]  # start and end, ns
HOST_PID = 1
KERNELS = 1  # first track of launches on a device; 0 is what Linux calls the idle thread, which viewers know
WORKERS = 1000  # first track of workers
LANE = 1 << 23  # distance of a thread's further tracks: numbers of threads end at 2**22 (proc(5), pid_max)


def trace_of(recording: Recording) -> dict[str, Any]:
    """The whole trace as plain data, ready for JSON."""
    return {**header(recording), "traceEvents": list(trace_events(recording))}


def header(recording: Recording) -> dict[str, Any]:
    """The fields of a trace beside its events."""
    return {"displayTimeUnit": "ns", "otherData": _about(recording, recording.events)}


def trace_events(recording: Recording) -> Iterator[Event]:
    """The events of a trace, those of one counter in order of time, names of tracks last."""
    events = recording.events
    kernels = kernels_of(events)
    devices = sorted({k.device for k in kernels} | {e.device for e in events if isinstance(e, _OF_A_DEVICE)})
    body = _Body(events, kernels, {device: HOST_PID + 1 + i for i, device in enumerate(devices)})
    tracks = set()
    for event in body.all():
        if event["ph"] != "C":
            tracks.add((event["pid"], event["tid"]))
        yield event
    yield from _names(recording, body.pids, tracks)


_OF_A_DEVICE = (ProfileMemoryEvent, ProfileDeviceEvent, ProfileProgramEvent)


def _about(recording: Recording, events: Iterable[ProfileEvent]) -> dict[str, Any]:
    props = {e.device: e.props for e in events if isinstance(e, ProfileDeviceEvent)}
    about: dict[str, Any] = {"producer": "tinyhost", **({"devices": plain(props)} if props else {})}
    if recording.dropped:
        about["dropped"] = (f"{recording.dropped} records were dropped, the oldest ones; "
                            f"PROFILE_LIMIT={recording.limit} is the number kept")
    return about


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it; what it cannot is its text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and value - value != 0:  # JSON has no nan and no inf
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def rates(k: ProfileKernelEvent) -> dict[str, float]:
    """GFLOP/s and GB/s of a launch; nothing where its time is not known."""
    ns = k.en - k.st
    return {} if ns <= 0 else {"GFLOP/s": round(k.ops / ns, 3), "GB/s": round(k.nbytes / ns, 3)}


class _Body:
    """Everything of a trace but names."""

    def __init__(self, events: Sequence[ProfileEvent], kernels: Sequence[ProfileKernelEvent],
                 pids: dict[str, int]) -> None:
        self.events, self.kernels, self.pids = events, kernels, pids
        starts = [e.st for e in events if isinstance(e, ProfileRangeEvent)] + [k.st for k in kernels]
        moments = [e.ts for e in events if isinstance(e, (ProfilePointEvent, ProfileMemoryEvent, ProfileProgramEvent))]
        self.start = min([*starts, *moments], default=0)

    def all(self) -> Iterator[Event]:
        """All events, in no order."""
        yield from self.ranges()
        yield from self.launches()
        for e in self.events:
            if isinstance(e, ProfilePointEvent):
                args = {**e.arg, **({} if e.key is None else {"key": e.key})}
                yield self._event("i", e.name, "marker", HOST_PID, e.thread, e.ts, plain(args), s="t")
            elif isinstance(e, ProfileProgramEvent):
                args = {"bytes": len(e.lib), **({} if e.base is None else {"address": hex(e.base)})}
                yield self._event("i", f"load {e.name}", "program", self.pids[e.device], KERNELS, e.ts, args, s="p")
            elif isinstance(e, ProfileMemoryEvent):
                pid = self.pids[e.device]
                yield self._event("C", "allocated", "memory", pid, KERNELS, e.ts, {"bytes": e.nbytes})

    def ranges(self) -> Iterator[Event]:
        """What threads of the host did."""
        by_thread: dict[int, list[ProfileRangeEvent]] = defaultdict(list)
        for e in self.events:
            if isinstance(e, ProfileRangeEvent):
                by_thread[e.thread].append(e)
        for thread, ranges in by_thread.items():
            for e, lane in zip(ranges, nested([(e.st, e.en) for e in ranges])):
                args = dict(e.args) if e.device == HOST else {**e.args, "device": e.device}
                if isinstance(e.name, TracingKey):
                    args |= {"keys": e.name.keys, "result": e.name.ret}
                yield self._range(str(e.name), e.category, HOST_PID, thread + LANE * lane, (e.st, e.en), plain(args))

    def launches(self) -> Iterator[Event]:
        """What devices and their workers ran."""
        by_device: dict[str, list[ProfileKernelEvent]] = defaultdict(list)
        for k in self.kernels:
            by_device[k.device].append(k)
        for device, found in by_device.items():
            pid = self.pids[device]
            for k, lane in zip(found, apart([(k.st, k.en) for k in found])):
                args = {"global size": list(k.global_size), "bytes": k.nbytes, "flops": k.ops, **rates(k)}
                yield self._range(k.name, "copy" if k.is_copy else "kernel", pid, KERNELS + lane, (k.st, k.en), args)
            by_worker: dict[int, list[tuple[str, Span]]] = defaultdict(list)
            for k in found:
                for worker, st, en in k.parts:
                    by_worker[worker].append((k.name, (st, en)))
            for worker, parts in by_worker.items():
                for (name, span), lane in zip(parts, apart([span for _, span in parts])):
                    yield self._range(name, "part", pid, WORKERS + worker + LANE * lane, span, {})

    def _event(self, phase: str, name: str, category: str, pid: int, tid: int, ts: int, args: dict[str, Any],
               **more: Any) -> Event:
        return {"ph": phase, "name": name, "cat": category, "pid": pid, "tid": tid, "ts": (ts - self.start) / 1000,
                "args": args, **more}

    def _range(self, name: str, category: str, pid: int, tid: int, span: Span, args: dict[str, Any]) -> Event:
        return self._event("X", name, category, pid, tid, span[0], args, dur=max(span[1] - span[0], 0) / 1000)


# *** tracks ***
def nested(spans: Sequence[Span]) -> list[int]:
    """For each span the first track on which it nests: inside of what is open there, or behind it."""
    open_ends: list[list[int]] = []  # for each track the ends of what is open, outermost first
    out = [0] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1])):
        st, en = spans[i]
        lane = 0
        while lane < len(open_ends) and not _fits(open_ends[lane], st, en):
            lane += 1
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(en)
        out[i] = lane
    return out


def _fits(ends: list[int], st: int, en: int) -> bool:
    """Whether what is open when a span starts ends after it; what ended before is taken out."""
    while ends and ends[-1] <= st:
        ends.pop()
    return not ends or en <= ends[-1]


def apart(spans: Sequence[Span]) -> list[int]:
    """For each span the first track that is free; launches do not contain each other."""
    free: list[int] = []  # for each track when it is free again
    out = [0] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        st, en = spans[i]
        lane = next((n for n, end in enumerate(free) if end <= st), len(free))
        free[lane:lane + 1] = [en]
        out[i] = lane
    return out


# *** names ***
def _names(recording: Recording, pids: dict[str, int], tracks: Iterable[tuple[int, int]]) -> Iterator[Event]:
    for pid, name in [(HOST_PID, "host"), *((pid, device) for device, pid in pids.items())]:
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": KERNELS, "args": {"name": name}}
    for pid, tid in sorted(tracks):
        lane, number = divmod(tid, LANE)
        if pid == HOST_PID:
            name = recording.threads.get(number, f"thread {number}")
        elif number >= WORKERS:
            name = f"worker {number - WORKERS}"
        else:
            name = f"kernels ({number - KERNELS})" if number > KERNELS else "kernels"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid,
               "args": {"name": f"{name} ({lane})" if lane else name}}
