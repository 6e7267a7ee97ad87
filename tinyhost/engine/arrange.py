"""From what a capture recorded to one flat list of steps whose temporaries share memory over the whole capture.

Takes recorded plans and the buffers that are given anew in each replay; gives steps in order with every argument
resolved: a number of a given buffer, or memory that stands. Temporaries of plans, and storage that nothing outside of
the capture refers to any more, share arenas; whatever a tensor, a view, an export or another plan still refers to stays
where it is. Nothing is launched here.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tinyhost.device import Buffer
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.dtype import DType
from tinyhost.engine.arenas import Life, View, arenas
from tinyhost.engine.capture import Capture, Fresh
from tinyhost.engine.plan import Arg, Copy, Launch, Plan, plan_of

if TYPE_CHECKING:
    from tinyhost.uop import UOp


@dataclass(eq=False)
class Scratch:
    """Storage that has no content between replays and that nobody else sees, so it may lie anywhere.

    ``device`` is one name or several; equal only to itself.
    """

    device: str | tuple[str, ...]
    size: int
    dtype: DType


Param: TypeAlias = int | Buffer | MultiBuffer | Scratch  # number of a given buffer, storage that stands, or scratch
Recorded: TypeAlias = "tuple[UOp, list[Param], dict[str, int]]"  # LINEAR, its parameters, values of its variables


@dataclass(frozen=True)
class Operand:
    """One buffer argument of a step: the number of a given buffer, or memory that stands, perhaps a view of it.

    ``device`` says which part of a given MultiBuffer is meant (None: a single buffer). Memory is always a single Buffer
    that owns its memory or an arena.
    """

    source: int | Buffer
    view: View | None = None
    device: str | None = None

    def base(self, given: Sequence[Buffer | MultiBuffer]) -> Buffer:
        """The buffer it is, or is a view of, where these are given."""
        if isinstance(self.source, Buffer):
            return self.source
        buf = given[self.source]
        if isinstance(buf, MultiBuffer):
            assert self.device is not None, "an argument is one part of a buffer on several devices"
            return buf.lane(self.device)
        return buf

    def buffer(self, given: Sequence[Buffer | MultiBuffer]) -> Buffer:
        """The buffer itself, where these are given."""
        base = self.base(given)
        return base if self.view is None else base.view(self.view[1], self.view[2], self.view[0])


@dataclass(frozen=True)
class RecordedStep:
    """A launch or a copy with its arguments in order (of a copy: destination, source) and its variables at capture."""

    what: Launch | Copy
    args: tuple[Operand, ...]
    var_vals: dict[str, int]

    @property
    def writes(self) -> tuple[int, ...]:
        """Positions in ``args`` that the step writes; it may read them too."""
        return self.what.writes


@dataclass
class Recording:
    """What a capture runs, ready to be launched or encoded.

    Attributes:
        steps: everything in order.
        arenas: memory of temporaries; allocated, with no content before and after a run.
        used: storage that stands and that the steps read or write (owners of memory), without arenas.
        written: the part of ``used`` that they write.
        written_given: numbers of given buffers that they write.
        recorded: the same as picklable data.
    """

    steps: list[RecordedStep] = field(default_factory=list)
    arenas: list[Buffer] = field(default_factory=list)
    used: set[Buffer | MultiBuffer] = field(default_factory=set)
    written: set[Buffer | MultiBuffer] = field(default_factory=set)
    written_given: set[int] = field(default_factory=set)
    recorded: list[Recorded] = field(default_factory=list)


def arrange(capture: Capture, given: Sequence[Buffer | MultiBuffer]) -> Recording:
    """The recording of a capture over these given buffers.

    Storage to which something still refers now stays; call it when the captured function and all that it left to be
    collected are gone.
    """
    numbers = {id(b): i for i, b in enumerate(given)}
    scratch: dict[Fresh, Scratch] = {}
    return _arranged([(done.plan, [_param(p, numbers, scratch) for p in done.held], values)
                      for done, values in capture.items])


def arrange_recorded(recorded: Sequence[Recorded]) -> Recording:
    """A recording from its picklable form; kernels are compiled where no cache has them."""
    return _arranged([(plan_of(linear), params, values) for linear, params, values in recorded])


def _param(p: Buffer | MultiBuffer | Fresh, numbers: dict[int, int], scratch: dict[Fresh, Scratch]) -> Param:
    if isinstance(p, Fresh):
        if p.is_gone():
            return scratch.setdefault(p, Scratch(p.device, p.size, p.dtype))
        p = p.storage()
    return numbers.get(id(p), p)


_Run: TypeAlias = tuple[Plan, list[Param], dict[str, int]]
_Key: TypeAlias = tuple[object, object]  # (number of the plan, number of the temporary) or (scratch, device)
_Memory: TypeAlias = dict[_Key, tuple[Buffer, View | None]]


def _arranged(runs: Sequence[_Run]) -> Recording:
    lives = _lives(runs)
    places, storage = arenas(list(lives.values()))
    out = Recording(arenas=[Buffer(*s) for s in storage])
    memory = {key: (out.arenas[place.storage], place.view) for key, place in zip(lives, places)}
    for number, (plan, params, values) in enumerate(runs):
        for what in plan.steps:
            args = tuple([_operand(number, plan, params, a, memory) for a in what.args])
            out.steps.append(RecordedStep(what, args, values))
        assert plan.linear is not None, "plan_of says what a plan is of"
        out.recorded.append((plan.linear, params, values))
        _add_storage(out, plan, params)
    return out


def _add_storage(out: Recording, plan: Plan, params: list[Param]) -> None:
    for p in params:
        if isinstance(p, (Buffer, MultiBuffer)):
            out.used.add(p.base)
    for p in [params[i] for i in plan.written]:
        if isinstance(p, int):
            out.written_given.add(p)
        elif not isinstance(p, Scratch):
            out.written.add(p.base)


# *** what may move ***
def _key_of(number: int, params: list[Param], arg: Arg) -> _Key | None:
    """What an argument of plan ``number`` is, if it may move."""
    if arg.temp:
        return number, arg.index
    p = params[arg.index]
    return (p, arg.device) if isinstance(p, Scratch) else None


def _life_of(plan: Plan, params: list[Param], arg: Arg, step: int) -> Life:
    """Movable storage that step ``step`` is the first to use."""
    if arg.temp:
        return replace(plan.lives[arg.index], first=step, last=step, copied=False)
    p = params[arg.index]
    assert isinstance(p, Scratch) and arg.device is not None, "a parameter that may move is scratch on named devices"
    return Life(arg.device, p.size, p.dtype, step, step)


def _lives(runs: Sequence[_Run]) -> dict[_Key, Life]:
    """All movable storage, in the order of first use."""
    lives: dict[_Key, Life] = {}
    step = 0
    for number, (plan, params, _) in enumerate(runs):
        for what in plan.steps:
            for arg in what.args:
                if (key := _key_of(number, params, arg)) is not None:
                    life = lives.get(key)
                    if life is None:
                        life = lives[key] = _life_of(plan, params, arg, step)
                    life.last = step
                    life.copied = life.copied or isinstance(what, Copy)
            step += 1
    return lives


# *** where it lies ***
def _operand(number: int, plan: Plan, params: list[Param], arg: Arg, memory: _Memory) -> Operand:
    if (key := _key_of(number, params, arg)) is not None:
        buffer, part = memory[key]
        return Operand(buffer, arg.view if part is None else _within(part, arg.view))
    p = params[arg.index]
    if isinstance(p, int):
        return Operand(p, arg.view, arg.device)
    assert not isinstance(p, Scratch), "scratch may move"
    buffer = p if isinstance(p, Buffer) else p.lane(str(arg.device))
    if buffer.base is buffer:
        return Operand(buffer, arg.view)
    return Operand(buffer.base, _within((buffer.offset, buffer.size, buffer.dtype), arg.view))


def _within(part: View, view: View | None) -> View:
    """A view of a part of memory as a view of the memory."""
    return part if view is None else (part[0] + view[0], view[1], view[2])
