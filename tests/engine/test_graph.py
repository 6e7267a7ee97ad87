"""Command graphs: which steps wait for which, what runs may change between them, and that nothing else changes."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.side_by_side import together
from tinyhost import Context, Device, Tensor, TinyJit, UOp, Variable
from tinyhost.engine.graph import Graph
from tinyhost.engine.queueing import Queued, queued
from tinyhost.engine.replay import Replay
from tinyhost.errors import KernelFault
from tinyhost.hcq.commands import Execute
from tinyhost.helpers import GlobalCounters

pytestmark = pytest.mark.skipif(Device["CPU"].queues is None, reason="the device has no command queues")


def captured(fn: Callable[..., Any], *args: Any) -> tuple[TinyJit[Any], Replay]:
    """A function after three calls, and what it replays."""
    jit = TinyJit(fn)
    for _ in range(3):
        jit(*args)
    assert jit.captured is not None
    return jit, jit.captured


def buffer(n: int, device: str = "CPU") -> Tensor:
    return Tensor(np.arange(n, dtype=np.int32)).to(device).clone().realize()


def queues_of(replay: Replay, given: Sequence[Tensor]) -> Queued:
    """The commands of a replay that has no results of its own."""
    return queued(replay.steps, frozenset(), [t.uop.base.buffer for t in given])


def names(queue: UOp) -> list[str]:
    return ["execute" if isinstance(c.arg, Execute) else c.arg for c in queue.src]


def graphs(replay: Replay) -> list[Graph]:
    return [part for parts in replay._graphs.values() for part in parts if isinstance(part, Graph)]


# *** order ***
def test_steps_wait_only_for_what_they_need() -> None:
    a, b, c = buffer(16), buffer(16), buffer(16)

    def independent() -> None:
        a.assign(a + 1).realize()
        b.assign(b * 2).realize()
        c.assign(c - 1).realize()

    def chain() -> None:
        a.assign(a + 1).realize()
        b.assign(a * 2).realize()
        c.assign(c - 1).realize()
        a.assign(b + c).realize()
    assert names(queues_of(captured(independent)[1], ()).queues[0]) == ["wait", *["execute"] * 3, "signal"]
    assert names(queues_of(captured(chain)[1], ()).queues[0]) == \
        ["wait", "execute", "barrier", "execute", "execute", "barrier", "execute", "signal"]


def test_memory_of_temporaries_is_ordered_by_bytes() -> None:
    """Temporaries that share bytes of the arena wait for each other, those beside them do not."""
    x = buffer(4096)

    def step(x: Tensor) -> Tensor:
        for i in range(6):
            x = (x + i).contiguous()
        return x.realize()
    jit, replay = captured(step, x)
    result = jit(x)
    given = [x.uop.base.buffer, result.uop.base.buffer]
    commands = names(queued(replay.steps, frozenset(), given).queues[0])
    assert commands.count("execute") == 6 and commands.count("barrier") == 5
    arena, = {a.source for s in replay.steps for a in s.args if not isinstance(a.source, int)}
    assert arena.nbytes == 2 * 4096 * 4


def test_devices_meet_through_signals() -> None:
    a, b, c = buffer(16, "CPU:1"), buffer(16, "CPU"), buffer(16, "CPU:1")

    def step() -> None:
        b.assign(b + 1).realize()
        a.assign(a + b.to("CPU:1")).realize()
        c.assign(c + 1).realize()
    made = queues_of(captured(step)[1], ())
    lists = {key[0]: names(q) for key, q in zip(made.keys, made.queues)}
    # each begins behind the timelines of both; the copy is pulled by its target when the sum is there
    assert lists["CPU"] == ["wait", "wait", "execute", "signal", "wait", "signal"]
    assert lists["CPU:1"][:4] == ["wait", "wait", "wait", "copy"] and lists["CPU:1"][-1] == "signal"
    assert lists["CPU:1"].count("wait") == 3 and made.signals == (1, 1)


def test_memory_of_a_device_that_runs_nothing() -> None:
    x = buffer(16, "CPU:1")
    jit, replay = captured(lambda x: (x.to("CPU") + 1).contiguous().realize(), x)
    made = queues_of(replay, [x, jit(x)])
    assert dict(zip([device for device, _ in made.keys], map(names, made.queues))) == {
        "CPU": ["wait", "wait", "copy", "barrier", "execute", "signal", "signal"],
        "CPU:1": ["wait", "wait", "wait", "signal"]}  # its end waits for whoever reads its memory
    assert (jit(x).numpy() == np.arange(16) + 1).all()


# *** what runs change ***
@pytest.mark.parametrize("compiled", [0, 1])
def test_inputs_results_and_sizes_change(compiled: int) -> None:
    with Context(HCQ2=compiled):
        n = Variable("n", 1, 8)
        jit = TinyJit(lambda x, y: (x * 2 + y.sum(), x.shrink(((0, 4),)).contiguous()))
        for i in (3, 5, 8, 1):
            x, y = buffer(16) + i, buffer(8) * i
            x, y = x.clone().realize(), y.clone().realize()
            total, part = jit(x, y[:n.bind(i)])
            assert (total.numpy() == x.numpy() * 2 + y.numpy()[:i].sum()).all()
            assert (part.numpy() == x.numpy()[:4]).all()
        assert jit.captured is not None and len(graphs(jit.captured)) == 1


def test_a_graph_counts_as_its_steps_do() -> None:
    x = buffer(16)
    jit, _ = captured(lambda x: [(x + i).contiguous().realize() for i in range(5)], x)
    seen = []
    for level in (1, 2):
        GlobalCounters.reset()
        with Context(JIT=level):
            jit(x)
        seen.append((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem))
    assert seen[0] == seen[1] and seen[0][0] == 5


def test_an_input_that_is_state_too_keeps_the_order() -> None:
    weight = buffer(16)

    def step(x: Tensor) -> Tensor:
        first = (x + 1).contiguous().realize()
        return (first + weight).realize()
    jit, replay = captured(step, buffer(16))
    built = len(graphs(replay))
    assert (jit(weight).numpy() == 2 * np.arange(16) + 1).all()
    assert len(graphs(replay)) == built


def test_state_that_moved_is_found() -> None:
    state, x = buffer(16), buffer(16)

    def step(x: Tensor) -> Tensor:
        state.assign(state + x)
        return (state * 1).realize(state)
    jit, _ = captured(step, x)
    seen = state.data()  # from now on the memory is somebody's, and the state goes on elsewhere
    before = np.array(seen)
    assert (jit(x).numpy() == before + np.arange(16)).all()
    assert (np.array(seen) == before).all()
    assert (jit(x).numpy() == before + 2 * np.arange(16)).all()


def test_threads_replay_side_by_side() -> None:
    def work(k: int) -> None:
        x = buffer(1000)
        jit = TinyJit(lambda x: ((x + k).contiguous() * 2).realize())
        for _ in range(40):
            assert (jit(x).numpy() == (np.arange(1000) + k) * 2).all()
    together(*[functools.partial(work, k) for k in range(4)])


def test_a_fault_names_the_kernel_and_the_graph_goes_on() -> None:
    x = buffer(16)
    jit, replay = captured(lambda x: (x + 1).contiguous().realize(), x)
    good = jit(x).numpy()
    graph, = graphs(replay)
    program = next(s.what.program for s in replay.steps)
    patched = graph._patch

    def broken(values: dict[str, int]) -> None:
        patched({k: 8 if k.startswith(".given") else v for k, v in values.items()})
    graph._patch = broken  # type: ignore[assignment,method-assign]
    with pytest.raises(KernelFault, match=f"kernel {program.elf.name} ended with SIGSEGV"):
        jit(x)
    graph._patch = patched  # type: ignore[method-assign]
    assert (jit(x).numpy() == good).all()
