"""Commands that are in no graph: a copy, one kernel, a transfer, each a submission of its own.

Takes commands whose changing operands are variables, and values for these; gives the point of the timeline at which
they are done. Every submission waits for the device's work before it and numbers its own. Commands of one shape are
encoded once; several copies of the stream take turns, so that the host seldom waits for the device.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyhost.hcq import commands
from tinyhost.hcq.signals import Point
from tinyhost.hcq.stream import Linked, Stream, encode
from tinyhost.hcq.submit import PythonPatcher
from tinyhost.uop import UOp

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues

_TIMELINE, _BEFORE, _BEHIND = ".timeline", ".before", ".behind"


@dataclass(eq=False)
class _Copy:
    """A stream in memory, and when the device does not read it any more."""

    linked: Linked
    patch: PythonPatcher
    used: Point


class _Shape:
    """Encoded commands, as often in memory as their submissions overlap."""

    def __init__(self, stream: Stream, most: int) -> None:
        self.stream, self._most = stream, most
        self._copies: list[_Copy] = []
        self._next = 0

    def take(self, queues: Queues) -> _Copy:
        """A copy that no device reads."""
        copies = self._copies
        if len(copies) < self._most and all(not c.used.done for c in copies):
            memory = {name: queues.allocate(self.stream.nbytes(name))
                      for name in self.stream.regions if self.stream.nbytes(name)}
            linked = self.stream.link(memory)
            copies.append(_Copy(linked, PythonPatcher([linked]), queues.timeline.point(0)))
            self._next = len(copies) - 1
        else:
            self._next = next((i for i, c in enumerate(copies) if c.used.done), (self._next + 1) % len(copies))
        found = copies[self._next]
        found.used.wait()
        return found


class Immediate:
    """Runs commands on the queues of one device, at once."""

    def __init__(self, queues: Queues, copies: int = 16) -> None:
        self._queues, self._copies = queues, copies
        self._shapes: dict[Hashable, _Shape] = {}

    def run(self, queue: str, key: Hashable, build: Callable[[], Sequence[UOp]], values: Mapping[str, int],
            behind: Sequence[Point] = ()) -> Point:
        """Submit commands to a queue, behind all earlier work of the device.

        Args:
            key: equal for equal commands.
            build: the commands, called once for each key.
            values: of the variables in them.
            behind: points of other devices of the group that come first.

        Returns:
            The point at which they are done.
        """
        queues, timeline = self._queues, self._queues.timeline
        with queues.group.lock:
            shape = self._shapes.get((queue, key, len(behind)))
            if shape is None:
                shape = self._shapes[queue, key, len(behind)] = self._encoded(queue, build(), len(behind))
            copy = shape.take(queues)
            base = timeline.reserve()  # when nothing can fail any more: a number that nobody sets blocks the device
            copy.used = point = timeline.point(base + 1)
            copy.patch({**values, **_waits(behind), _TIMELINE: timeline.signal.address, _BEFORE: base,
                        _BEHIND: base + 1})
            self._submit(queue, copy.linked)
        return point

    def copy(self, queue: str, dest: int, src: int, nbytes: int, behind: Sequence[Point] = ()) -> Point:
        """Copy between two addresses on a queue."""
        return self.run(queue, "copy", _copy_commands, {".dest": dest, ".src": src, ".nbytes": nbytes}, behind)

    def _encoded(self, queue: str, items: Sequence[UOp], waits: int) -> _Shape:
        timeline, before, behind = map(commands.variable, (_TIMELINE, _BEFORE, _BEHIND))
        first = [commands.wait(timeline, before)]
        first += [commands.wait(commands.variable(f".signal{i}"), commands.variable(f".value{i}"))
                  for i in range(waits)]
        linear = commands.queue((self._queues.device,), queue, [*first, *items, commands.signal(timeline, behind)])
        return _Shape(encode(linear, self._queues.encoder(queue)), self._copies)

    def _submit(self, queue: str, linked: Linked) -> None:
        from tinyhost.hcq.device import Submission
        self._queues.group.submit([Submission(self._queues, queue, linked)])


def _copy_commands() -> list[UOp]:
    return [commands.copy(*map(commands.variable, (".dest", ".src", ".nbytes")))]


def _waits(points: Sequence[Point]) -> dict[str, int]:
    """Values of the waits for points; one of an earlier epoch has passed."""
    out = {}
    for i, p in enumerate(points):
        out[f".signal{i}"] = p.signal.address
        out[f".value{i}"] = 0 if p.timeline.epoch > p.epoch else p.value
    return out
