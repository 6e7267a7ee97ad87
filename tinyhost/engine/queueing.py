"""Steps as command queues: which queue runs each step, what it waits for, and the commands.

Takes recorded steps in order; gives one queue of commands for each (device, queue).
Steps of one queue start in order, with a barrier only where one needs what an earlier one did; steps of different
queues meet through signals. Each queue begins behind everything its devices did before, and each device's main queue
ends with a signal on the device's timeline when all its queues have ended.

Addresses of given buffers, signals and values that change with each run are variables, named by the functions below.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyhost.device import Buffer, Device
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine.arrange import Operand, RecordedStep
from tinyhost.engine.plan import Copy, Launch
from tinyhost.hcq import commands
from tinyhost.hcq.dependencies import DepsTracker
from tinyhost.hcq.device import PeerGroup
from tinyhost.uop import UOp

Given = tuple[int, str]  # number of a buffer that is given anew with each run, and its device
Buffers = Sequence[Buffer | MultiBuffer]
Stamps = Sequence[tuple[int, int]]  # addresses of two signals for each step
QueueKey = tuple[str, str]  # device, queue


# *** variables of a run, (name of an address, name of a value) ***
def given_name(given: Given) -> str:
    """Address of a given buffer."""
    return f".given{given[0]}.{given[1]}"


def queue_names(queue: int) -> tuple[str, str]:
    """Signal of a queue, and what is added to its values."""
    return f".queue{queue}", f".queue{queue}.base"


def before_names(device: str) -> tuple[str, str]:
    """Timeline of a device, and its value when everything in front of the run has ended."""
    return f".timeline.{device}", f".before.{device}"


def behind_names(device: str) -> tuple[str, str]:
    """Timeline of a device, and its value when the run has ended."""
    return f".timeline.{device}", f".behind.{device}"


def queue_of(step: RecordedStep, given: Buffers) -> QueueKey | None:
    """The queue that can run a step; None where only the host can."""
    devices = [a.base(given).device for a in step.args]
    queues = [Device[d].queues for d in devices]
    first = queues[0]
    if first is None or any([q is None or q.group is not first.group for q in queues]):
        return None
    if isinstance(step.what, Launch):
        return step.what.device, first.compute_queue
    source = queues[1]
    assert source is not None
    # a copy is pushed by the copy queue of its source; without one, its target pulls
    pushes = source.copy_queue is not None or first.copying_queue is None
    name = source.copying_queue if pushes else first.copying_queue
    return None if name is None else (devices[pushes], name)


def group_of(step: RecordedStep, given: Buffers) -> PeerGroup | None:
    """The devices whose queues can run a step, or None."""
    key = queue_of(step, given)
    queues = None if key is None else Device[key[0]].queues
    return None if queues is None else queues.group


# *** order ***
@dataclass
class _Placed:
    """Step ``number`` in its queue: the steps of its own and of other queues that must have ended before it starts,
    the newest of each."""

    step: RecordedStep
    number: int
    queue: int
    after: dict[int, int]  # queue -> number of a step in it
    signal: int = 0  # the value of its queue's signal when it has ended, 0: nobody asks


def _place_of(arg: Operand, given: Buffers) -> tuple[Hashable, int, int]:
    """(memory, first byte in it, byte behind) of an argument."""
    base = arg.base(given)
    memory = id(base) if isinstance(arg.source, Buffer) else (arg.source, base.device)
    if arg.view is None:
        return memory, 0, base.nbytes
    offset, size, dtype = arg.view
    return memory, offset, offset + size * dtype.itemsize


def _placed(steps: Sequence[RecordedStep], numbers: Mapping[QueueKey, int], given: Buffers) -> list[list[_Placed]]:
    """The steps of each queue, with what each waits for."""
    tracker = DepsTracker[tuple[int, int]]()
    queues = [list[_Placed]() for _ in numbers]
    for number, step in enumerate(steps):
        key = queue_of(step, given)
        assert key is not None
        q = numbers[key]
        token, after = (q, len(queues[q])), dict[int, int]()
        for i, arg in enumerate(step.args):
            for other, n in tracker.access(*_place_of(arg, given), i in step.writes, token):
                if (other, n) != token:
                    after[other] = max(after.get(other, -1), n)
        queues[q].append(_Placed(step, number, q, after))
    return queues


def _number_signals(queues: Sequence[Sequence[_Placed]], also: Iterable[int]) -> list[int]:
    """Give a value to each step that another queue waits for, and to the last ones of queues in ``also``; how many
    each queue has."""
    asked = {(other, n) for queue in queues for p in queue for other, n in p.after.items() if other != p.queue}
    asked |= {(q, len(queues[q]) - 1) for q in also}
    counts = [0] * len(queues)
    for q, n in sorted(asked):
        counts[q] += 1
        queues[q][n].signal = counts[q]
    return counts


# *** commands ***
def _signal(queue: int, value: int) -> tuple[UOp, UOp]:
    address, base = map(commands.variable, queue_names(queue))
    return address, base + value


def _address(arg: Operand, given: Buffers) -> commands.Word:
    offset = 0 if arg.view is None else arg.view[0]
    base = arg.base(given)
    if isinstance(arg.source, int):
        return commands.variable(given_name((arg.source, base.device))) + offset
    queues = Device[base.device].queues
    assert queues is not None
    return queues.address_of(base.get_buf()) + offset


def _value(x: Any, var_vals: Mapping[str, int], changing: frozenset[str]) -> commands.Word:
    """A launch dimension or scalar: a number, or an expression of the variables that a run gives."""
    if isinstance(x, int):
        return x
    assert isinstance(x, UOp)
    free = x.variables()
    if any([v.expr in changing for v in free]):
        return x.substitute({v: v.const_like(var_vals[v.expr]) for v in free if v.expr not in changing})
    return int(x.sym_infer(dict(var_vals)))


def _command(step: RecordedStep, changing: frozenset[str], given: Buffers) -> UOp:
    addresses = [_address(a, given) for a in step.args]
    if isinstance(step.what, Copy):
        return commands.copy(addresses[0], addresses[1], step.args[0].buffer(given).nbytes)
    info = step.what.kernel.info
    chunks = info.runtimevars
    scalars = [0 if v.arg.name in chunks else _value(v, step.var_vals, changing) for v in info.vars]
    global_size, local_size = [[_value(d, step.var_vals, changing) for d in size or ()]
                               for size in (info.global_size, info.local_size)]
    return commands.execute(step.what.program, addresses, global_size, local_size, scalars,
                            next(iter(chunks.values()), -1))


def _commands(queue: Sequence[_Placed], queues: Sequence[Sequence[_Placed]], changing: frozenset[str],
              given: Buffers, stamps: Stamps) -> list[UOp]:
    """The steps of one queue with the barriers, waits and signals around them."""
    out: list[UOp] = []
    ordered, seen = 0, dict[int, int]()  # steps behind the last barrier; values of other queues waited for
    for n, p in enumerate(queue):
        for other, needed in sorted(p.after.items()):
            if other == p.queue:
                if needed >= ordered:
                    out.append(commands.barrier())
                    ordered = n
            elif (value := queues[other][needed].signal) > seen.get(other, 0):
                out.append(commands.wait(*_signal(other, value)))
                seen[other] = value
        command = _command(p.step, changing, given)
        if stamps:
            start, end = map(commands.timestamp, stamps[p.number])
            out += [start, command, end]
        else:
            out.append(command)
        if p.signal:
            out.append(commands.signal(*_signal(p.queue, p.signal)))
    return out


@dataclass(frozen=True)
class Queued:
    """Steps as commands.

    Attributes:
        keys: the queues, (device, queue) each.
        queues: their commands.
        signals: how many values each queue gives to its own signal.
        devices: all whose memory is used, in order of appearance.
        given: the given buffers that the steps use.
        order: for each queue, the numbers of its steps.
    """

    keys: tuple[QueueKey, ...]
    queues: tuple[UOp, ...]
    signals: tuple[int, ...]
    devices: tuple[str, ...]
    given: tuple[Given, ...]
    order: tuple[tuple[int, ...], ...]


def queued(steps: Sequence[RecordedStep], changing: frozenset[str], given: Buffers, stamps: Stamps = ()) -> Queued:
    """The commands of ``steps``, which all have a queue; variables in ``changing`` stay symbolic.

    With ``stamps``, signals for each step, their timestamps become its start and end.
    """
    users = _users(steps, given)
    keys = list(dict.fromkeys([key for of_device in users.values() for key in of_device]))
    main = {device: max(i for i, (d, _) in enumerate(keys) if d == device) for device in users}
    # a device's end waits for all that use its memory: it may be read by the host or given away then
    others = {device: [i for i, key in enumerate(keys) if i != main[device] and key in users[device]]
              for device in users}
    placed = _placed(steps, {key: i for i, key in enumerate(keys)}, given)
    signals = _number_signals(placed, [i for numbers in others.values() for i in numbers])
    out = []
    for i, (device, name) in enumerate(keys):
        items = [commands.wait(*map(commands.variable, before_names(d))) for d in users]
        items += _commands(placed[i], placed, changing, given, stamps)
        if main[device] == i:
            items += [commands.wait(*_signal(o, signals[o])) for o in others[device]]
            items.append(commands.signal(*map(commands.variable, behind_names(device))))
        out.append(commands.queue((device,), name, items))
    used = dict.fromkeys([(a.source, a.base(given).device) for s in steps for a in s.args if isinstance(a.source, int)])
    return Queued(tuple(keys), tuple(out), tuple(signals), tuple(users), tuple(used),
                  tuple([tuple([p.number for p in queue]) for queue in placed]))


def _users(steps: Sequence[RecordedStep], given: Buffers) -> dict[str, dict[QueueKey, None]]:
    """For each device, the queues that use its memory and its own; one that only lends memory has an empty queue."""
    out: dict[str, dict[QueueKey, None]] = {}
    for step in steps:
        key = queue_of(step, given)
        assert key is not None
        for device in [key[0], *[a.base(given).device for a in step.args]]:
            out.setdefault(device, {})[key] = None
    for device, keys in out.items():
        if all([d != device for d, _ in keys]):
            queues = Device[device].queues
            assert queues is not None
            keys[device, queues.compute_queue] = None
    return out
