"""Replay of captured plans: one flat list of launches whose arguments stand, except those given and variables.

Takes a capture and the buffers that are given anew each time: first those the caller hands in, then those of results;
``run(buffers, var_vals)`` puts other buffers of the same sizes in their place and launches everything again.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyhost.device import Buffer
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.capture import Capture
from tinyhost.engine.plan import Arg, Copy, Launch, View, plan_of
from tinyhost.engine.realize import Bound, number, run_copy, run_launch
from tinyhost.env import DEBUG
from tinyhost.helpers import GlobalCounters

if TYPE_CHECKING:
    from tinyhost.uop import UOp


Recorded: TypeAlias = "tuple[UOp, list[int | Buffer | MultiBuffer], dict[str, int]]"  # LINEAR, parameters, variables


@dataclass
class _Step:
    """A launch (opaque handles) or a copy (two buffers), the values of its variables at capture."""

    what: Launch | Copy
    args: list[Any]
    var_vals: dict[str, int]
    fixed: tuple[Any, ...] | None  # (global size, local size, scalars) of a launch that no variable changes


@dataclass
class _Place:
    """An argument of a step: position ``at`` in ``args``, as a handle or as a buffer."""

    args: list[Any]
    at: int
    as_handle: bool

    def fill(self, buffer: Buffer) -> None:
        """Put a buffer there."""
        self.args[self.at] = buffer.get_buf() if self.as_handle else buffer


class Replay:
    """What a function ran, ready to run again.

    Attributes:
        used: storage other than what is given that the steps read or write.
        written: the part of ``used`` that they write; ``parts_written`` are its single buffers.
        written_given: numbers of given buffers that they write.
        recorded: the same as data: what ran, with numbers in the place of given buffers.
    """

    def __init__(self, capture: Capture, given: Sequence[Buffer | MultiBuffer]) -> None:
        self._number = {id(b): i for i, b in enumerate(given)}
        self._given: list[tuple[_Place, Arg, int, View | None]] = []
        self._fixed: list[tuple[_Place, Buffer]] = []  # launch arguments that stand
        bounds = [bound for bound, _ in capture.items]
        self.steps = [self._step(bound, step, values) for bound, values in capture.items for step in bound.plan.steps]
        params = [b for bound in bounds for b in bound.params]
        written = [bound.params[i] for bound in bounds for i in bound.plan.written]
        self.used = {b.base for b in params if id(b) not in self._number}
        self.written = {b.base for b in written if id(b) not in self._number}
        self.parts_written = frozenset(part for b in self.written for part in parts_of(b))
        self.written_given = {i for b in written if (i := self._number.get(id(b))) is not None}
        self.recorded: list[Recorded] = [
            (bound.plan.linear, [self._number.get(id(b), b) for b in bound.params], values)  # type: ignore[misc]
            for bound, values in capture.items]
        # handles are valid while their buffers live, and stay where they are
        self._temporaries = [b for bound in bounds for b in bound.storage]
        self._handles = {part: part._opaque for b in self.used for part in parts_of(b)}
        fixed = [s for s in self.steps if isinstance(s.what, Launch) and s.fixed is not None]
        self._ops, self._mem = (sum(number(getattr(s.what.kernel.info.estimates, f), s.var_vals) for s in fixed)  # type: ignore
                                for f in ("ops", "mem"))

    @classmethod
    def from_recorded(cls, recorded: Sequence[Recorded], given: Sequence[Buffer | MultiBuffer]) -> Replay:
        """A replay from its recorded form, over these given buffers."""
        items = [(Bound(plan_of(linear), [given[p] if isinstance(p, int) else p for p in params]), values)
                 for linear, params, values in recorded]
        return cls(Capture(items=items), given)

    def _step(self, bound: Bound, step: Launch | Copy, var_vals: dict[str, int]) -> _Step:
        launch = isinstance(step, Launch)
        places = step.args if isinstance(step, Launch) else (step.dest, step.src)
        args: list[Any] = []
        for at, a in enumerate(places):
            place = _Place(args, at, launch)
            if (which := self._which(bound, a)) is not None:
                self._given.append((place, a, which, a.view))
                args.append(None)
                continue
            buffer = bound.buffer(a)
            args.append(buffer.get_buf() if launch else buffer)
            if launch:
                self._fixed.append((place, buffer))
        fixed = None
        if isinstance(step, Launch):
            info = step.kernel.info
            symbolic = [d for d in (*info.global_size, *(info.local_size or ())) if not isinstance(d, int)]
            if not symbolic and len(info.runtimevars) == len(info.vars):
                fixed = info.global_size, info.local_size, info.vals({}) if info.vars else ()
        return _Step(step, args, var_vals, fixed)

    def _which(self, bound: Bound, arg: Arg) -> int | None:
        return None if arg.temp else self._number.get(id(bound.params[arg.index]))

    def _prepare_writes(self, given: Sequence[Buffer | MultiBuffer]) -> None:
        """Move what is written out of memory that others look at; handles from before are stale then."""
        for b in self.parts_written:
            b.make_writable()
        for i in self.written_given:
            for b in parts_of(given[i]):
                b.make_writable()
        if [b for b, handle in self._handles.items() if b._opaque is not handle]:
            for place, buffer in self._fixed:
                place.fill(buffer)
            self._handles = {b: b._opaque for b in self._handles}

    def run(self, given: Sequence[Buffer | MultiBuffer], var_vals: dict[str, int]) -> None:
        """Launch everything on ``given``, with ``var_vals`` over the variables' values at capture."""
        self._prepare_writes(given)
        for place, arg, which, view in self._given:
            buf = given[which]
            if isinstance(buf, MultiBuffer):
                assert arg.device is not None
                buf = buf.lane(arg.device)
            place.fill(buf if view is None else buf.view(view[1], view[2], view[0]))
        shown = DEBUG.value >= 2
        for step in self.steps:
            what = step.what
            if step.fixed is not None and not shown:
                global_size, local_size, scalars = step.fixed
                what.program(*step.args, global_size=global_size, local_size=local_size, vals=scalars)  # type: ignore
                GlobalCounters.kernel_count += 1
            elif isinstance(what, Launch):
                run_launch(what, step.args, {**step.var_vals, **var_vals}, True)
            else:
                run_copy(step.args[0], step.args[1], True)
        if not shown:
            GlobalCounters.global_ops += self._ops
            GlobalCounters.global_mem += self._mem
