"""Capturing a call, and replaying a capture on the arguments of another.

``capture`` runs the function while everything it launches is recorded, and fills a Captured; ``replayed`` launches what
was recorded and gives the result of that call. Which capture belongs to a call is decided elsewhere.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tinyhost._tensor import history
from tinyhost._tensor.registry import touched
from tinyhost.device import Buffer
from tinyhost.device.buffer import from_buffer
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.capture import Capture, Fresh, recorder
from tinyhost.engine.replay import Replay
from tinyhost.errors import JitError
from tinyhost.jit.arguments import Inputs
from tinyhost.jit.captured import Captured
from tinyhost.jit.results import Output, Result, outputs_of, result_of
from tinyhost.jit.state import Before, State
from tinyhost.realization import computing, is_settled, settle
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp

Run = Callable[[Callable[[], None]], tuple[Any, list[Tensor]]]


def capture(captured: Captured, inputs: Inputs, run: Run) -> Any:
    """Record a call of ``run`` into ``captured``; its result. ``run`` calls what it is given before it realizes.

    Nothing is captured where the function gave state its first storage: the next call is the first of its kind.

    Raises:
        JitError: nothing ran, or what ran cannot be replayed.
    """
    captured.demands, captured.texts = inputs.demands, inputs.texts()
    with _parts_on_their_own(inputs) as nodes:
        recorded = _recorded(inputs, run)
    if not isinstance(recorded, _Recorded):
        return recorded
    recording, outputs, result, state = recorded
    history.forget_made(recording.made)  # replays give values without a past, and it would hold what is in between
    slots = {u: UOp.new_buffer(u.arg.device, u.arg.size, u.arg.dtype) for u in nodes}
    result = result.moved(slots | {u: o.slot for u, o in outputs.items()})
    captured.inputs, captured.bound, captured.result = list(slots.values()), inputs.bound, result
    captured.outputs = list(outputs.values())
    captured.replay = Replay(recording, [*inputs.buffers, *(o.buffer for o in captured.outputs)])
    captured.state = state(captured.replay)
    now = {slot: inputs.flat(i) for i, slot in enumerate(captured.inputs)} | {o.slot: u for u, o in outputs.items()}
    own = result.tensors_over(now, inputs.tensors)
    results = {id(t) for t in own}
    for u, o in outputs.items():
        o.follow(u, results)
    return result.filled(own)


@contextmanager
def _parts_on_their_own(inputs: Inputs) -> Iterator[list[UOp]]:
    """The BUFFER of each input.

    A part of a buffer stands on one of its own meanwhile, so that a replay may take another part.
    """
    views = {i: t.uop for i, (_, t) in enumerate(inputs.tensors) if inputs.is_part(i)}
    nodes = [from_buffer(b) if i in views else inputs.flat(i) for i, b in enumerate(inputs.buffers)]
    for i, view in views.items():
        inputs.tensors[i][1].uop = nodes[i].reshape(view.shape)
    try:
        yield nodes
    finally:
        for i, view in views.items():
            t = inputs.tensors[i][1]
            written = t.uop is not nodes[i].reshape(view.shape)
            t.uop = t.uop.substitute({nodes[i]: view.reshape((view.max_numel(),))}, walk=True) if written else view


class _Recorded(NamedTuple):
    """What was recorded, the memory that it made for the result, the result, and what makes the state."""

    recording: Capture
    outputs: dict[UOp, Output]
    result: Result
    state: Callable[[Replay], State]


def _recorded(inputs: Inputs, run: Run) -> Any:
    """Call ``run``: what it recorded, or its result where that cannot be replayed.

    Nothing else refers to what the function made when this returns, so that it is scratch of the capture.
    """
    before = Before(inputs.buffers)
    recording = recorder.start(before.roots)
    try:
        with touched() as mine:
            ret, tensors = run(lambda: before.carry(recording, mine(), False))
            if not before.is_settled(recording, mine()):
                return ret
            before.carry(recording, mine(), True)
        if not recording.items:
            raise JitError("didn't JIT anything! The function ran no kernel while it was captured: realize its result "
                           "inside, or make it depend on its arguments")
        before.check_dropped(recording)
        _check_values(recording, inputs)
        moved, grads = before.moved(recording, mine()), before.changed_grads(recording, mine())
        tensors = [*moved, *tensors]
        outputs = _outputs(recording, [t.uop for t in tensors])
        result = result_of(ret, tensors, {id(t) for t in moved}, inputs.tensors, set(outputs))
        given = {id(b.base) for b in inputs.buffers}
        shown = [b for b in result.storage() if id(b) not in given]
        leaves, carried = recording.leaves, before.carried
        return _Recorded(recording, outputs, result,
                         lambda replay: State({*replay.used, *shown}, leaves, grads, carried))
    finally:
        recorder.stop()
        before.done()


def _check_values(recording: Capture, inputs: Inputs) -> None:
    """Demand that the function did not bind a variable of its arguments to another value."""
    for _, values in recording.items:
        for name, value in values.items():
            if inputs.var_vals.get(name, value) != value:
                raise JitError(f"bind mismatch on {name!r}: the arguments bind it to {inputs.var_vals[name]}, the "
                               f"captured function to {value}; one call uses one value of a variable")


def _outputs(recording: Capture, nodes: list[UOp]) -> dict[UOp, Output]:
    """Memory that recorded steps made and filled, and that the result shows."""
    written = [bound.held[i] for bound, _ in recording.items for i in bound.plan.written]
    fresh = [p for p in written if isinstance(p, Fresh)]
    ids = {id(p) for p in written}
    outputs = outputs_of(nodes, [u for r in nodes for u in r.toposort() if u.op is Ops.BUFFER and recording.made(u)])
    return {u: o for u, o in outputs.items()
            if id(o.buffer) in ids or any(p.is_of(o.buffer) for p in fresh)}


def replayed(captured: Captured, replay: Replay, inputs: Inputs) -> Any:
    """Run a capture on other arguments that meet its demands; the result of that call."""
    with computing:  # no other thread reads or writes what is settled now
        given, nodes = _prepared(captured, replay, inputs)
        stores = bool(replay.written) or any([i < len(inputs.buffers) for i in replay.written_given])
        if stores:
            replay.run(given, inputs.var_vals)
    if not stores:  # nobody else sees its results yet: threads do this side by side
        replay.run(given, inputs.var_vals)
    if captured.state is not None and captured.state.grads:
        captured.state.leave()
    now = {slot: inputs.flat(i) for i, slot in enumerate(captured.inputs)}
    for o, node in zip(captured.outputs, nodes):
        now[o.slot] = node
    for name, bound in captured.bound.items():
        now[bound] = inputs.bound[name]
    return captured.result.filled(captured.result.tensors_over(now, inputs.tensors))


def _prepared(captured: Captured, replay: Replay, inputs: Inputs) -> tuple[list[Buffer | MultiBuffer], list[UOp]]:
    """Settle what a replay uses: the buffers to run it on, and the nodes of its outputs."""
    outputs, state = captured.outputs, captured.state
    if state is not None:
        state.bring()
    if not is_settled():
        storage = [b.base for b in inputs.buffers]
        written = replay.written | {storage[i] for i in replay.written_given if i < len(storage)}
        settle({*replay.used, *storage, *(o.buffer for o in outputs)}, written)
    given = inputs.buffers
    if replay.parts_written:
        given = [_apart(inputs.tensors[i][0], b, i in replay.written_given, replay) for i, b in enumerate(given)]
    nodes = [o.renew() for o in outputs]
    return [*given, *[o.buffer for o in outputs]], nodes


def _apart(path: str, buffer: Buffer | MultiBuffer, written: bool, replay: Replay) -> Buffer | MultiBuffer:
    """An input in memory that the captured steps do not write as their state: a copy where they do."""
    if not any([part.base in replay.parts_written for part in parts_of(buffer)]):
        return buffer
    if written:
        raise JitError(f"{path} is memory that the captured function writes as its own state too, so a replay could "
                       "not tell them apart; pass a .clone()")
    copies = [Buffer(p.device, p.size, p.dtype).allocate().copy_from(p) for p in parts_of(buffer)]
    return MultiBuffer(copies) if isinstance(buffer, MultiBuffer) else copies[0]
