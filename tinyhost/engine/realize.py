"""Execution: a LINEAR becomes a plan of launches and copies, and a plan runs on buffers.

``plan_of(linear)`` compiles every kernel and resolves every argument once; ``run(plan, params, var_vals)`` only looks up
buffers and launches. Temporaries live from their first to their last use, so the allocator's cache reuses their memory.
"""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Sequence

from tinyhost.device import Buffer, Program
from tinyhost.dtype import DType
from tinyhost.engine.capture import recorder
from tinyhost.engine.program import Kernel, get_kernel, get_program
from tinyhost.env import DEBUG, DEV, codegen_values
from tinyhost.helpers import GlobalCounters, ansilen, colored, time_to_str
from tinyhost.ops import Ops
from tinyhost.uop import UOp


@dataclass(frozen=True)
class Arg:
    """One buffer argument: a parameter or temporary by number, perhaps a view (bytes offset, elements, dtype)."""

    temp: bool
    index: int
    view: tuple[int, int, DType] | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel with its arguments."""

    kernel: Kernel
    program: Program
    device: str
    args: tuple[Arg, ...]


@dataclass(frozen=True)
class Copy:
    """One copy, perhaps between devices."""

    dest: Arg
    src: Arg


@dataclass
class Plan:
    """Steps in order, the temporaries they need, and after which step each temporary dies."""

    steps: list[Launch | Copy] = field(default_factory=list)
    temps: list[tuple[str, int, DType]] = field(default_factory=list)
    frees: dict[int, list[int]] = field(default_factory=dict)


class _Planner:
    def __init__(self) -> None:
        self.plan = Plan()
        self.temp_index: dict[UOp, int] = {}
        self.last_use: dict[int, int] = {}

    def arg(self, u: UOp, step: int) -> Arg:
        views = []
        while u.op in (Ops.SHRINK, Ops.BITCAST, Ops.RESHAPE, Ops.AFTER):
            if u.op in (Ops.SHRINK, Ops.BITCAST):
                views.append(u)
            u = u.src[0]
        if u.op is Ops.PARAM:
            return Arg(False, u.arg.slot, _view_of(views))
        if u.op is not Ops.BUFFER:
            raise RuntimeError(f"a call argument is storage or a view of it, got {u.op}")
        index = self.temp_index.setdefault(u, len(self.plan.temps))
        if index == len(self.plan.temps):
            self.plan.temps.append((u.arg.device, u.arg.size, u.arg.dtype))
        self.last_use[index] = step
        return Arg(True, index, _view_of(views))

    def add(self, call: UOp) -> None:
        step = len(self.plan.steps)
        body, args = call.src[0], [a for a in call.src[1:] if not a.is_variable and not a.is_bound_var]
        resolved = tuple(self.arg(a, step) for a in args)
        if body.op is Ops.COPY:
            self.plan.steps.append(Copy(*resolved))
            return
        if body.op is not Ops.SINK:
            raise RuntimeError(f"cannot run a call of {body.op}")
        device = args[0].device
        kernel = get_kernel(body, device)
        self.plan.steps.append(Launch(kernel, get_program(kernel, device), device, resolved))

    def finish(self) -> Plan:
        for index, step in self.last_use.items():
            self.plan.frees.setdefault(step, []).append(index)
        return self.plan


def _view_of(views: Sequence[UOp]) -> tuple[int, int, DType] | None:
    """(byte offset, elements, dtype) of nested contiguous views, innermost last."""
    if not views:
        return None
    offset = 0
    for v in views:
        if v.op is Ops.SHRINK:
            offset += int(v.marg[0][0]) * v.dtype.itemsize
    return offset, int(views[0].shape[0]), views[0].dtype


_plans: dict[tuple[UOp, Any], Plan] = {}


def reset() -> None:
    """Forget plans."""
    _plans.clear()


def plan_of(linear: UOp) -> Plan:
    """The plan of ``linear``, compiled at first use."""
    key = (linear, str(DEV), codegen_values())
    plan = _plans.get(key)
    if plan is None:
        planner = _Planner()
        for call in linear.src:
            planner.add(call)
        plan = _plans[key] = planner.finish()
        if len(_plans) > 4096:
            _plans.pop(next(iter(_plans)))
    return plan


def _buffer(arg: Arg, params: Sequence[Buffer], temps: list[Buffer | None], plan: Plan) -> Buffer:
    if arg.temp:
        buf = temps[arg.index]
        if buf is None:
            device, size, dtype = plan.temps[arg.index]
            buf = temps[arg.index] = Buffer(device, size, dtype)
    else:
        buf = params[arg.index]
    return buf if arg.view is None else buf.view(arg.view[1], arg.view[2], arg.view[0])


def run(plan: Plan, params: Sequence[Buffer], var_vals: dict[str, int], do_update_stats: bool = True,
        temps: list[Buffer | None] | None = None) -> None:
    """Execute ``plan`` on ``params``; ``temps`` keeps temporaries for a replay."""
    keep = temps is not None or recorder.active() is not None
    own: list[Buffer | None] = [None] * len(plan.temps) if temps is None else temps
    for i, step in enumerate(plan.steps):
        if isinstance(step, Copy):
            dest, src = _buffer(step.dest, params, own, plan), _buffer(step.src, params, own, plan)
            _run_copy(dest, src, do_update_stats)
        else:
            _run_launch(step, [_buffer(a, params, own, plan) for a in step.args], var_vals, do_update_stats)
        if not keep:
            for index in plan.frees.get(i, ()):
                own[index] = None
    if (active := recorder.active()) is not None:
        active.record(plan, list(params), own, dict(var_vals))


def _dims(size: tuple[Any, ...] | None, var_vals: dict[str, int]) -> tuple[int, ...] | None:
    if size is None:
        return None
    return tuple(d if isinstance(d, int) else d.sym_infer(var_vals) for d in size)


def _run_launch(step: Launch, bufs: list[Buffer], var_vals: dict[str, int], stats: bool) -> None:
    info = step.kernel.info
    wait = DEBUG.value >= 2
    seconds = step.program(*[b.get_buf() for b in bufs], global_size=_dims(info.global_size, var_vals) or (1, 1, 1),
                           local_size=_dims(info.local_size, var_vals), vals=info.vals(var_vals) if info.vars else (), wait=wait)
    if stats:
        est = info.estimates
        _count(step.device, info.name, len(bufs), _number(est.ops, var_vals), _number(est.mem, var_vals),
               _number(est.lds, var_vals), seconds)


def _number(x: Any, var_vals: dict[str, int]) -> int:
    return int(x) if isinstance(x, (int, float)) else int(x.sym_infer(var_vals))


def _run_copy(dest: Buffer, src: Buffer, stats: bool) -> None:
    start = time.perf_counter()
    dest.copy_from(src)
    if stats:
        name = colored(f"copy {dest.nbytes:10d}, {dest.device[:7]:>7s} <- {src.device[:7]:7s}", "yellow")
        _count(dest.device, name, 2, 0, dest.nbytes, dest.nbytes, time.perf_counter() - start)


def _count(device: str, name: str, nargs: int, ops: int, mem: int, lds: int, seconds: float | None) -> None:
    g = GlobalCounters
    g.kernel_count += 1
    g.global_ops += ops
    g.global_mem += mem
    if seconds is not None:
        g.time_sum_s += seconds
    if DEBUG.value >= 2:
        line = f"*** {device[:7]:7s} {g.kernel_count:4d} {name}{' ' * max(0, 46 - ansilen(name))} arg {nargs:2d} " \
               f"mem {g.mem_used / 1e9:6.2f} GB"
        if seconds is not None:
            rate = max(seconds, 1e-9)
            tm = colored(time_to_str(seconds, 9), "yellow") if seconds > 0.01 else time_to_str(seconds, 9)
            line += f" tm {tm}/{g.time_sum_s * 1e3:9.2f}ms ({ops / rate * 1e-9:7.0f} GFLOPS " \
                    f"{mem / rate * 1e-9:4.0f}|{lds / rate * 1e-9:<6.0f} GB/s)"
        print(line)
