"""Replay of captured plans: one flat list of steps whose arguments stand, except those given and variables.

Takes a capture and the buffers that are given anew each time: first those the caller hands in, then those of results;
``run(buffers, var_vals)`` puts other buffers of the same sizes in their place and runs everything again. Steps of
devices with command queues become graphs; the others, and all of them where their lines are shown (DEBUG=2), with JIT=2
or where a given buffer is memory that the steps use otherwise, are launched one by one in order.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from tinyhost.device import Buffer, Device
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.arrange import Recorded, RecordedStep, Recording, arrange, arrange_recorded
from tinyhost.engine.capture import Capture
from tinyhost.engine.plan import Launch
from tinyhost.engine.realize import run_copy, run_launch
from tinyhost.env import DEBUG, HCQ2, JIT, PROFILE

if TYPE_CHECKING:
    from tinyhost.engine.graph import Graph
    from tinyhost.hcq.device import PeerGroup

Buffers: TypeAlias = Sequence[Buffer | MultiBuffer]
Part: TypeAlias = "Graph | list[RecordedStep]"


class Replay:
    """What a function ran, ready to run again.

    Attributes:
        used: storage other than what is given that the steps read or write.
        written: the part of ``used`` that they write; ``parts_written`` are its single buffers.
        written_given: numbers of given buffers that they write.
        recorded: the same as data: what ran, with numbers in the place of given buffers.
    """

    def __init__(self, capture: Capture, given: Sequence[Buffer | MultiBuffer]) -> None:
        self._set(arrange(capture, given))

    @classmethod
    def from_recorded(cls, recorded: Sequence[Recorded]) -> Replay:
        """A replay from its recorded form."""
        out = cls.__new__(cls)
        out._set(arrange_recorded(recorded))
        return out

    def _set(self, recording: Recording) -> None:
        self.steps = recording.steps
        self.used, self.written, self.written_given = recording.used, recording.written, recording.written_given
        self.recorded = recording.recorded
        self.parts_written = frozenset([part for b in self.written for part in parts_of(b)])
        self._standing = {part: part._opaque for b in self.used for part in parts_of(b)}
        self._graphs: dict[tuple[frozenset[str], int, bool], list[Part]] = {}

    def _prepare_writes(self, given: Sequence[Buffer | MultiBuffer]) -> None:
        """Move what is written out of memory that others look at; graphs from before have stale addresses then."""
        for b in self.parts_written:
            b.make_writable()
        for i in self.written_given:
            for b in parts_of(given[i]):
                b.make_writable()
        if [b for b, handle in self._standing.items() if b._opaque is not handle]:
            self._graphs.clear()
            self._standing = {b: b._opaque for b in self._standing}

    def run(self, given: Sequence[Buffer | MultiBuffer], var_vals: dict[str, int]) -> None:
        """Run everything on ``given``, with ``var_vals`` over the variables' values at capture."""
        self._prepare_writes(given)
        if DEBUG.value >= 2 or JIT.value == 2 or self._overlaps(given):
            _run_steps(self.steps, given, var_vals)
            return
        for part in self._parts(given, frozenset(var_vals)):
            if isinstance(part, list):
                _run_steps(part, given, var_vals)
            else:
                part.run(given, var_vals)

    def _overlaps(self, given: Sequence[Buffer | MultiBuffer]) -> bool:
        """Whether a given buffer is memory that the steps use by itself too; a graph does not know of their order."""
        standing = self._standing
        return any([part.base in standing for b in given for part in parts_of(b)])

    def _parts(self, given: Buffers, changing: frozenset[str]) -> list[Part]:
        """The steps in order: graphs, and lists of what the host launches."""
        key = changing, HCQ2.value, PROFILE.value > 0
        if key not in self._graphs:
            runs = groupby(self.steps, lambda s: _group_of(s, given))
            self._graphs[key] = [list(steps) if group is None else _graph(list(steps), group, changing, given)
                                 for group, steps in runs]
        return self._graphs[key]


def _graph(steps: list[RecordedStep], group: PeerGroup, changing: frozenset[str], given: Buffers) -> Graph:
    from tinyhost.engine.graph import Graph  # what devices without queues need not load
    return Graph(steps, changing, given, stamped=PROFILE.value > 0 and not group.measures)


def _group_of(step: RecordedStep, given: Buffers) -> PeerGroup | None:
    """The group of devices whose queues can run a step, or None."""
    if Device[step.args[0].base(given).device].queues is None:
        return None
    from tinyhost.engine.queueing import group_of
    return group_of(step, given)


def _run_steps(steps: Sequence[RecordedStep], given: Buffers, var_vals: dict[str, int]) -> None:
    """Launch steps one by one."""
    for step in steps:
        buffers = [a.buffer(given) for a in step.args]
        if isinstance(step.what, Launch):
            run_launch(step.what, [b.get_buf() for b in buffers], {**step.var_vals, **var_vals}, True)
        else:
            run_copy(buffers[0], buffers[1], True)
