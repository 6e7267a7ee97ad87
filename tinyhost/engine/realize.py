"""Execution: a plan runs on buffers.

``run(plan, params, var_vals)`` looks up buffers and launches. Storage of temporaries is made at the start of their
first step and given back after their last one; of parameters that nobody else refers to likewise.
"""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tinyhost.device import Buffer
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.capture import recorder
from tinyhost.engine.plan import Arg, Copy, Launch, Plan
from tinyhost.env import DEBUG, PROFILE
from tinyhost.helpers import GlobalCounters, ansilen, colored, printable, time_to_str
from tinyhost.profiling import cpu_profile, record_launch


class Bound:
    """A plan's arguments as buffers: given parameters, and storage of temporaries made at first use."""

    def __init__(self, plan: Plan, params: Sequence[Buffer | MultiBuffer]) -> None:
        self.plan = plan
        self.params: list[Buffer | MultiBuffer | None] = list(params)
        self.storage: list[Buffer | None] = [None] * len(plan.storage)

    def buffer(self, arg: Arg) -> Buffer:
        """The buffer of one argument."""
        buf = self._temp(arg.index) if arg.temp else self.param(arg)
        return buf if arg.view is None else buf.view(arg.view[1], arg.view[2], arg.view[0])

    def param(self, arg: Arg) -> Buffer:
        """The whole buffer of a parameter, that of one device where it has several."""
        buf = self.params[arg.index]
        if isinstance(buf, MultiBuffer):
            assert arg.device is not None
            return buf.lane(arg.device)
        assert buf is not None, "a parameter is there until its last step"
        return buf

    def done(self, step: int) -> None:
        """Let go of what no later step uses."""
        for index in self.plan.frees.get(step, ()):
            self.storage[index] = None
        for index in self.plan.drops.get(step, ()):
            self.params[index] = None

    def _temp(self, index: int) -> Buffer:
        temp = self.plan.temps[index]
        buf = self.storage[temp.storage]
        if buf is None:
            buf = self.storage[temp.storage] = Buffer(*self.plan.storage[temp.storage])
        return buf if temp.view is None else buf.view(temp.view[1], temp.view[2], temp.view[0])


def run(plan: Plan, params: list[Buffer | MultiBuffer], var_vals: dict[str, int],
        do_update_stats: bool = True) -> None:
    """Execute ``plan`` on ``params``, which are taken out of the list."""
    _make_writable(plan, params)
    bound = Bound(plan, params)
    capture = recorder.active()
    held = capture.known(params) if capture is not None else []
    params.clear()
    for i, step in enumerate(plan.steps):
        if isinstance(step, Copy):
            run_copy(bound.buffer(step.dest), bound.buffer(step.src), do_update_stats)
        else:
            run_launch(step, [bound.buffer(a).get_buf() for a in step.args], var_vals, do_update_stats)
        bound.done(i)
    if capture is not None:
        capture.record(plan, held, dict(var_vals))


def _make_writable(plan: Plan, params: Sequence[Buffer | MultiBuffer]) -> None:
    for i in plan.written:
        for b in parts_of(params[i]):
            b.make_writable()


def sizes(size: tuple[Any, ...] | None, var_vals: dict[str, int]) -> tuple[int, ...] | None:
    """Launch dimensions as numbers."""
    return None if size is None else tuple([d if isinstance(d, int) else d.sym_infer(var_vals) for d in size])


def run_launch(step: Launch, opaques: Sequence[Any], var_vals: dict[str, int], stats: bool) -> None:
    """Launch one kernel on the device's handles."""
    info = step.kernel.info
    profiled = PROFILE.value > 0
    seconds = step.program(*opaques, global_size=sizes(info.global_size, var_vals) or (1, 1, 1),
                           local_size=sizes(info.local_size, var_vals), vals=info.vals(var_vals) if info.vars else (),
                           wait=profiled or DEBUG.value >= 2)
    if stats:
        ops, mem = number(info.estimates.ops, var_vals), number(info.estimates.mem, var_vals)
        if profiled:
            size = sizes(info.global_size, var_vals) or ()
            record_launch(step.device, info.name, seconds, size, ops, mem)
        count(step.device, info.name, len(opaques), ops, mem, seconds)


def number(x: Any, var_vals: dict[str, int]) -> int:
    """An estimate, perhaps symbolic, as a number."""
    return int(x) if isinstance(x, (int, float)) else int(x.sym_infer(var_vals))


def run_copy(dest: Buffer, src: Buffer, stats: bool) -> None:
    """Copy between buffers of one size."""
    start = time.perf_counter()
    with cpu_profile("copy", is_copy=True, category="copy"):
        dest.copy_from(src)
    if stats:
        seconds = time.perf_counter() - start
        if PROFILE.value:
            name = f"copy {dest.nbytes}, {dest.device} <- {src.device}"
            record_launch(dest.device, name, seconds, (), 0, dest.nbytes, is_copy=True)
        name = colored(f"copy {dest.nbytes:10d}, {dest.device[:7]:>7s} <- {src.device[:7]:7s}", "yellow")
        count(dest.device, name, 2, 0, dest.nbytes, seconds)


def count(device: str, name: str, nargs: int, ops: int, mem: int, seconds: float | None) -> None:
    """Add one step to the counters; from DEBUG=2 on, print its line."""
    g = GlobalCounters
    g.kernel_count += 1
    g.global_ops += ops
    g.global_mem += mem
    if seconds is not None:
        g.time_sum_s += seconds
    if DEBUG.value >= 2:
        name = printable(name)
        line = f"*** {device[:7]:7s} {g.kernel_count:4d} {name}{' ' * max(0, 46 - ansilen(name))} arg {nargs:2d} " \
               f"mem {g.mem_used / 1e9:6.2f} GB"
        if seconds is not None:
            rate = max(seconds, 1e-9)
            tm = colored(time_to_str(seconds, 9), "yellow") if seconds > 0.01 else time_to_str(seconds, 9)
            line += f" tm {tm}/{g.time_sum_s * 1e3:9.2f}ms " \
                    f"({ops / rate * 1e-9:7.0f} GFLOPS {mem / rate * 1e-9:6.1f} GB/s)"
        print(line)
