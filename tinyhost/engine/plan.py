"""Plans: a LINEAR with every kernel compiled and every argument resolved, so that running it only looks up and
launches.

Takes the LINEAR of the scheduler; gives steps in order and the storage of its temporaries, in which those with
separate lifetimes share memory.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tinyhost.device import Program
from tinyhost.engine.arenas import Life, Place, Storage, View, arenas
from tinyhost.engine.program import Kernel, get_kernel, get_program, have_kernels
from tinyhost.engine.schedule import name_of
from tinyhost.env import DEV, NO_MEMORY_PLANNER, codegen_values
from tinyhost.ops import Ops
from tinyhost.uop import UOp


@dataclass(frozen=True)
class Arg:
    """One buffer argument: a parameter or temporary by number, perhaps a view of it.

    A parameter on several devices is a buffer for each: ``device`` says which.
    """

    temp: bool
    index: int
    view: View | None = None
    device: str | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel with its arguments."""

    kernel: Kernel
    program: Program
    device: str
    args: tuple[Arg, ...]

    @property
    def writes(self) -> tuple[int, ...]:
        """Positions in ``args`` that it writes."""
        info = self.kernel.info
        return tuple([info.globals.index(slot) for slot in info.outs])


@dataclass(frozen=True)
class Copy:
    """One copy, perhaps between devices."""

    dest: Arg
    src: Arg

    @property
    def args(self) -> tuple[Arg, ...]:
        """Both: destination, source."""
        return self.dest, self.src

    @property
    def writes(self) -> tuple[int, ...]:
        """Positions in ``args`` that it writes."""
        return (0,)


@dataclass
class Plan:
    """Steps in order, and where temporaries live."""

    steps: list[Launch | Copy] = field(default_factory=list)
    temps: list[Place] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)  # of each temporary
    storage: list[Storage] = field(default_factory=list)
    frees: dict[int, list[int]] = field(default_factory=dict)  # step -> storage that no later step uses
    drops: dict[int, list[int]] = field(default_factory=dict)  # step -> parameters that no later step uses
    written: tuple[int, ...] = ()  # parameters that the steps write
    linear: UOp | None = None  # what it is the plan of


class _Planner:
    def __init__(self) -> None:
        self.steps: list[Launch | Copy] = []
        self.numbers: dict[UOp, int] = {}  # temporary -> its number
        self.lives: list[Life] = []

    def arg(self, u: UOp) -> Arg:
        """The argument of a call, which is storage or a view of it."""
        views = []
        while u.op in (Ops.SHRINK, Ops.BITCAST, Ops.RESHAPE, Ops.AFTER):
            if u.op in (Ops.SHRINK, Ops.BITCAST):
                views.append(u)
            u = u.src[0]
        if u.op is Ops.PARAM:
            return Arg(False, u.arg.slot, _view_of(views), u.arg.device)
        if u.op is not Ops.BUFFER:
            raise RuntimeError(f"a call argument is storage or a view of it, got {u.op}")
        number = self.numbers.setdefault(u, len(self.lives))
        step = len(self.steps)
        if number == len(self.lives):
            self.lives.append(Life(u.arg.device, u.arg.size, u.arg.dtype, step, step))
        self.lives[number].last = step
        return Arg(True, number, _view_of(views))

    def add(self, call: UOp) -> None:
        """Append the step of one CALL."""
        body = call.src[0]
        storage = [a for a in call.src[1:] if not a.is_variable and not a.is_bound_var]
        args = tuple([self.arg(a) for a in storage])
        if body.op is Ops.COPY:
            self.steps.append(Copy(*args))
            for a in args:
                if a.temp:
                    self.lives[a.index].copied = True
        elif body.op is Ops.SINK:
            device = storage[0].device
            assert isinstance(device, str)
            kernel = get_kernel(body, device)
            used = tuple([args[slot] for slot in kernel.info.globals])  # simplification may have dropped arguments
            self.steps.append(Launch(kernel, get_program(kernel, device), device, used))
        else:
            raise RuntimeError(f"cannot run a call of {body.op}: a call's body is a kernel (SINK) or a COPY")

    def plan(self) -> Plan:
        """The finished plan."""
        temps, storage = arenas(self.lives)
        plan = Plan(self.steps, temps, self.lives, storage, written=self._written())
        last: dict[int, int] = {}
        for life, temp in zip(self.lives, temps):
            last[temp.storage] = max(life.last, last.get(temp.storage, 0))
        for number, step in last.items():
            plan.frees.setdefault(step, []).append(number)
        for slot, step in {a.index: i for i, s in enumerate(self.steps) for a in s.args if not a.temp}.items():
            plan.drops.setdefault(step, []).append(slot)
        return plan

    def _written(self) -> tuple[int, ...]:
        out: dict[int, None] = {}
        for step in self.steps:
            out.update((a.index, None) for a in [step.args[i] for i in step.writes] if not a.temp)
        return tuple(out)


def _kernel_calls(linear: UOp) -> list[tuple[UOp, str]]:
    """The kernels of a LINEAR, each with the device it runs on."""
    out = []
    for call in linear.src:
        body, device = call.src[0], call.src[1].device
        if body.op is Ops.SINK:
            assert isinstance(device, str), "a kernel runs on one device"
            out.append((body, device))
    return out


def _view_of(views: Sequence[UOp]) -> View | None:
    """(byte offset, elements, dtype) of nested contiguous views, innermost last."""
    if not views:
        return None
    offset = sum(int(v.marg[0][0]) * v.dtype.itemsize for v in views if v.op is Ops.SHRINK)
    return offset, int(views[0].shape[0]), views[0].dtype


_CAPACITY = 2048
_plans: "OrderedDict[tuple[Any, ...], Plan]" = OrderedDict()
_lock = Lock()
_dev_text: tuple[Any, str] = (None, "")


def reset() -> None:
    """Forget plans."""
    with _lock:
        _plans.clear()


def _dev() -> str:
    """DEV as text, computed once while it stays the same."""
    global _dev_text
    targets, text = _dev_text
    if targets is not DEV.value:
        text = str(DEV)
        _dev_text = DEV.value, text
    return text


def plan_of(linear: UOp) -> Plan:
    """The plan of ``linear``, compiled at first use."""
    key = (linear, _dev(), NO_MEMORY_PLANNER.value, codegen_values())
    plan = _plans.get(key)
    if plan is None:
        planner = _Planner()
        have_kernels(_kernel_calls(linear), name_of(linear))
        for call in linear.src:
            planner.add(call)
        plan = planner.plan()
        plan.linear = linear
        with _lock:
            _plans[key] = plan
            while len(_plans) > _CAPACITY:
                _plans.popitem(last=False)
    return plan
