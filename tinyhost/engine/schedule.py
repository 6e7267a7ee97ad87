"""Schedules by graph: equal graphs over different buffers share one LINEAR, in this process and on disk.

Takes a SINK in which every BUFFER is a PARAM; gives the LINEAR of kernels and copies that ``tinyhost.schedule`` makes
of it.
"""
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock
from weakref import WeakKeyDictionary

from tinyhost.device import caps_of
from tinyhost.engine import codec, diskcache
from tinyhost.engine.version import code_version
from tinyhost.env import DEBUG, SCACHE, codegen_values
from tinyhost.ops import Ops
from tinyhost.profiling import cpu_profile
from tinyhost.uop import UOp

_CAPACITY = 2048
_linears: "OrderedDict[tuple[UOp, object], UOp]" = OrderedDict()
_names: WeakKeyDictionary[UOp, str] = WeakKeyDictionary()  # schedules on the disk, by their LINEAR
_lock = RLock()


@dataclass
class ScheduleCounters:
    """How many graphs this process scheduled itself, and how many it found in a cache."""

    scheduled: int = 0
    reused: int = 0


counters = ScheduleCounters()


def reset() -> None:
    """Forget schedules."""
    with _lock:
        _linears.clear()
    counters.scheduled = counters.reused = 0


def _disk_key(sink: UOp) -> str:
    places = {u.device for u in sink.toposort(enter_calls=False) if u.op in (Ops.PARAM, Ops.COPY)}
    devices = sorted({d for p in places if p is not None for d in (p if isinstance(p, tuple) else (p,))})
    return f"{sink.key.hex()}|{[(d, caps_of(d).text) for d in devices]}|{codegen_values()}|{code_version()}"


def get_linear(sink: UOp) -> UOp:
    """The schedule of ``sink``."""
    key = (sink, codegen_values())
    if not SCACHE.value:
        return _make(sink)
    with _lock:
        linear = _linears.get(key)
        if linear is not None:
            _linears.move_to_end(key)
            counters.reused += 1
            return linear
    linear = _through_disk(sink) if diskcache.enabled(2) else _make(sink)
    with _lock:
        _linears[key] = linear
        while len(_linears) > _CAPACITY:
            _linears.popitem(last=False)
    return linear


def _make(sink: UOp) -> UOp:
    counters.scheduled += 1
    from tinyhost.schedule import create_linear  # a process with a warm disk cache needs no scheduler
    with cpu_profile("schedule", category="schedule"):
        linear = create_linear(sink, caps_of)
    if DEBUG.value >= 1:
        print(f"scheduled {len(linear.src)} kernels and copies from {len(sink.toposort())} nodes")
    return linear


def name_of(linear: UOp) -> str | None:
    """The name of a schedule that the disk cache holds, None for others."""
    return _names.get(linear)


def _through_disk(sink: UOp) -> UOp:
    disk_key = _disk_key(sink)
    data = diskcache.get("schedule", disk_key, level=2)
    if data is not None:
        try:
            linear: UOp = codec.decode(data)
            _names[linear] = disk_key
            return linear
        except ValueError:
            diskcache.damaged("schedule", disk_key)
    linear = _make(sink)
    try:
        payload = codec.encode(linear)
    except TypeError:
        return linear  # a graph with Python functions inside lives in memory only
    diskcache.put("schedule", disk_key, payload, level=2)
    _names[linear] = disk_key
    return linear
