"""Command graphs: captured steps as command queues that a group of devices runs without Python in between.

Takes steps in order; gives a ``Graph`` whose ``run`` puts the addresses and variables of one call into the encoded
queues and hands them in. Where a group does not wait for its devices, a run waits for the one before: queues are not
changed under a device that reads them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import RLock

from tinyhost.device import Buffer, Device, Program
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine.arrange import RecordedStep
from tinyhost.engine.plan import Launch
from tinyhost.engine.program import get_kernel, get_program
from tinyhost.engine.queueing import (
    Buffers,
    Given,
    QueueKey,
    before_names,
    behind_names,
    given_name,
    group_of,
    queue_names,
    queued,
)
from tinyhost.engine.realize import number
from tinyhost.env import HCQ2, PROFILE
from tinyhost.events import ProfileGraphEntry
from tinyhost.hcq.device import Queues, Submission, Timing
from tinyhost.hcq.signals import Point, Timeline
from tinyhost.hcq.stream import Linked, encode
from tinyhost.hcq.submit import CompiledPatcher, PythonPatcher, host_device
from tinyhost.helpers import GlobalCounters
from tinyhost.profiling import record_kernels
from tinyhost.uop import UOp


class Graph:
    """Steps of one group of devices, encoded.

    Args:
        changing: names of the variables that ``run`` gives.
        given: buffers like those that ``run`` gives.
        stamped: whether the queues write the times of each step; for a profile of a group that does not measure.
    """

    def __init__(self, steps: Sequence[RecordedStep], changing: frozenset[str], given: Buffers,
                 stamped: bool = False) -> None:
        group = group_of(steps[0], given)
        assert group is not None, "steps of a graph have queues"
        self._group = group
        self._stamps = [(group.signals.get(), group.signals.get()) for _ in steps] if stamped else []
        made = queued(steps, changing, given, [(start.address, end.address) for start, end in self._stamps])
        self._devices = {device: _queues_of(device) for device in made.devices}
        self._given = [(given_name(g), g, self._devices[g[1]]) for g in made.given]
        self._linked = [_link(self._devices[key[0]], key, queue) for key, queue in zip(made.keys, made.queues)]
        self._patch = CompiledPatcher(self._linked, _compile) if HCQ2.value else PythonPatcher(self._linked)
        self._work = [Submission(self._devices[device], name, linked)
                      for (device, name), linked in zip(made.keys, self._linked)]
        self._signals = [(Timeline(self._group.signals), n, queue_names(i)) for i, n in enumerate(made.signals) if n]
        self._ended: list[Point] = []
        self._lock = RLock()  # the queues are patched for one run at a time
        self._steps = _Steps(steps, made.order, given)

    def run(self, given: Buffers, var_vals: Mapping[str, int]) -> None:
        """Hand everything in, over the given buffers and the values of the changing variables.

        Raises:
            DeviceError: a device failed, now or before.
        """
        values = {name: queues.address_of(_part(given, g).get_buf()) for name, g, queues in self._given}
        values.update(var_vals)
        with self._lock, self._group.lock:
            self._advance(values)
            self._patch(values)
            timings = self._group.submit(self._work, PROFILE.value > 0)
            if not self._group.synchronous:
                for queues in self._devices.values():
                    queues.keep(self)
            if self._stamps:
                self._wait()
                self._steps.record_stamps([(a.timestamp, b.timestamp) for a, b in self._stamps], var_vals)
        if timings is not None:
            self._steps.record(timings, var_vals)
        self._steps.count(var_vals)

    def _wait(self) -> None:
        """Until the last run has ended."""
        for point in self._ended:
            point.wait()
        self._ended = []

    def _advance(self, values: dict[str, int]) -> None:
        """The signals of this run and their values, when the run before does not read the queues any more."""
        self._wait()
        for counter, count, (address, base) in self._signals:
            values[base] = counter.reserve(count)
            values[address] = counter.signal.address
        for device, queues in self._devices.items():
            timeline = queues.timeline
            _, before = before_names(device)
            address, behind = behind_names(device)
            values[before] = timeline.reserve()
            values[behind] = values[before] + 1
            values[address] = timeline.signal.address
            if not self._group.synchronous:
                self._ended.append(timeline.point(values[behind]))


class _Steps:
    """The steps of a graph as counters and profile see them; ``order`` are the numbers of each queue's steps."""

    def __init__(self, steps: Sequence[RecordedStep], order: Sequence[Sequence[int]], given: Buffers) -> None:
        self._order, self._var_vals = order, [s.var_vals for s in steps]
        self._entries = [_entry(s, given) for s in steps]
        # those with numbers are the same in each run
        self._symbolic = [i for i, e in enumerate(self._entries) if not _is_fixed(e)]
        fixed = [e for e in self._entries if _is_fixed(e)]
        self._ops, self._mem = sum(int(e.ops) for e in fixed), sum(int(e.nbytes) for e in fixed)

    def count(self, var_vals: Mapping[str, int]) -> None:
        """Add one run to the counters."""
        g = GlobalCounters
        g.kernel_count += len(self._entries)
        g.global_ops += self._ops
        g.global_mem += self._mem
        for i in self._symbolic:
            e, values = self._entries[i], {**self._var_vals[i], **var_vals}
            g.global_ops += number(e.ops, values)
            g.global_mem += number(e.nbytes, values)

    def record(self, timings: Sequence[Timing], var_vals: Mapping[str, int]) -> None:
        """Note one run in the profile, as its group measured it."""
        record_kernels(self._valued(var_vals), [(self._order[t.submission][t.command], t.worker, t.start, t.end)
                                                for t in timings])

    def record_stamps(self, times: Sequence[tuple[int, int]], var_vals: Mapping[str, int]) -> None:
        """The same with (start, end) of each step in the clock of its device."""
        entries = self._valued(var_vals)
        for device in dict.fromkeys([e.device for e in entries]):
            record_kernels(entries, [(i, 0, *times[i]) for i, e in enumerate(entries) if e.device == device], device)

    def _valued(self, var_vals: Mapping[str, int]) -> list[ProfileGraphEntry]:
        if not self._symbolic:
            return self._entries
        return [_valued(e, {**own, **var_vals}) for e, own in zip(self._entries, self._var_vals)]


def _entry(step: RecordedStep, given: Buffers) -> ProfileGraphEntry:
    """A step for the profile; its numbers may be symbolic."""
    what = step.what
    if isinstance(what, Launch):
        info = what.kernel.info
        return ProfileGraphEntry(what.device, info.name, info.global_size, info.estimates.ops, info.estimates.mem)
    dest, src = [a.buffer(given) for a in step.args]
    name = f"copy {dest.nbytes}, {dest.device} <- {src.device}"
    return ProfileGraphEntry(dest.device, name, nbytes=dest.nbytes, is_copy=True)


def _is_fixed(e: ProfileGraphEntry) -> bool:
    return not any([isinstance(x, UOp) for x in (*e.global_size, e.ops, e.nbytes)])


def _valued(e: ProfileGraphEntry, values: dict[str, int]) -> ProfileGraphEntry:
    size = tuple([number(d, values) for d in e.global_size])
    return replace(e, global_size=size, ops=number(e.ops, values), nbytes=number(e.nbytes, values))


def _compile(kernel: UOp) -> Program:
    """A kernel for the host that patches queues."""
    device = host_device()
    return get_program(get_kernel(kernel, device), device)


def _part(given: Buffers, which: Given) -> Buffer:
    buffer = given[which[0]]
    return buffer.lane(which[1]) if isinstance(buffer, MultiBuffer) else buffer


def _queues_of(device: str) -> Queues:
    queues = Device[device].queues
    assert queues is not None, f"{device} has no command queues"
    return queues


def _link(queues: Queues, key: QueueKey, queue: UOp) -> Linked:
    stream = encode(queue, queues.encoder(key[1]))
    memory = {region: queues.allocate(max(stream.nbytes(region), 1)) for region in ("commands", "arguments")}
    return stream.link(memory, {})
