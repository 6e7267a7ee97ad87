"""Replay of captured plans: one flat list of launches whose arguments stand, except inputs and variables.

Takes a capture and the buffers that were its inputs; ``run(inputs, var_vals)`` puts other buffers of the same sizes in
their place and launches everything again.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinyhost.device import Buffer
from tinyhost.engine.capture import Capture
from tinyhost.engine.plan import Arg, Copy, Launch, View
from tinyhost.engine.realize import Bound, number, run_copy, run_launch
from tinyhost.env import DEBUG
from tinyhost.helpers import GlobalCounters


@dataclass
class _Step:
    """A launch (opaque handles) or a copy (two buffers), the values of its variables at capture."""

    what: Launch | Copy
    args: list[Any]
    var_vals: dict[str, int]
    fixed: tuple[Any, ...] | None  # (global size, local size, scalars) of a launch that no variable changes


class Replay:
    """What a function ran, ready to run again."""

    def __init__(self, capture: Capture, inputs: Sequence[Buffer]) -> None:
        self._number = {id(b): i for i, b in enumerate(inputs)}
        self._inputs: list[tuple[list[Any], int, int, View | None, bool]] = []  # list, position, input, view, as handle
        self._kept = [bound for bound, _ in capture.items]  # handles are valid while their buffers live
        self.steps = [self._step(bound, step, values) for bound, values in capture.items for step in bound.plan.steps]
        written = [bound.params[i] for bound, _ in capture.items for i in bound.plan.written]
        self.written = {b.base for b in written if id(b) not in self._number}  # memory other than that of inputs
        self.written_inputs = {i for b in written if (i := self._number.get(id(b))) is not None}
        self.used = {b.base for bound, _ in capture.items for b in bound.params if id(b) not in self._number}
        fixed = [s for s in self.steps if isinstance(s.what, Launch) and s.fixed is not None]
        self._ops, self._mem = (sum(number(getattr(s.what.kernel.info.estimates, f), s.var_vals) for s in fixed)  # type: ignore
                                for f in ("ops", "mem"))

    def _step(self, bound: Bound, step: Launch | Copy, var_vals: dict[str, int]) -> _Step:
        launch = isinstance(step, Launch)
        places = step.args if isinstance(step, Launch) else (step.dest, step.src)
        buffers = [bound.buffer(a) for a in places]
        args = [b.get_buf() for b in buffers] if launch else list(buffers)
        for position, a in enumerate(places):
            if (which := self._input(bound, a)) is not None:
                self._inputs.append((args, position, which, a.view, launch))
        fixed = None
        if isinstance(step, Launch):
            info = step.kernel.info
            symbolic = [d for d in (*info.global_size, *(info.local_size or ())) if not isinstance(d, int)]
            if not symbolic and len(info.runtimevars) == len(info.vars):
                fixed = info.global_size, info.local_size, info.vals({}) if info.vars else ()
        return _Step(step, args, var_vals, fixed)

    def _input(self, bound: Bound, arg: Arg) -> int | None:
        return None if arg.temp else self._number.get(id(bound.params[arg.index]))

    def run(self, inputs: Sequence[Buffer], var_vals: dict[str, int]) -> None:
        """Launch everything on ``inputs``, with ``var_vals`` over the variables' values at capture."""
        for args, position, which, view, as_handle in self._inputs:
            buf = inputs[which] if view is None else inputs[which].view(view[1], view[2], view[0])
            args[position] = buf.get_buf() if as_handle else buf
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
