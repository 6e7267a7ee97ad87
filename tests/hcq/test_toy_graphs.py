"""Captured functions on the toy: command graphs over its queues, in whatever order these happen to run."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.hcq import machine as hw
from tests.hcq.machine import Fault
from tests.hcq.toy import Toys
from tests.hcq.toy import site as site
from tests.hcq.toy import toys as toys
from tinyhost.env import Context
from tinyhost.events import ProfileGraphEvent
from tinyhost.hcq import commands
from tinyhost.hcq.signals import LIMIT
from tinyhost.hcq.stream import several
from tinyhost.jit import TinyJit
from tinyhost.profiling import Recording, recorded_in
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp


@pytest.mark.parametrize("hcq2", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_one_device(toys: Toys, seed: int, hcq2: int):
    plant = toys(seed=seed)
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((16, 16)).astype(np.float32)
    u = Tensor(w, device="TOY").realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        for _ in range(3):
            x = (x @ u).relu() + x.sum(1, keepdim=True)
        return x.realize()
    with Context(HCQ2=hcq2):
        for _ in range(6):
            x = rng.standard_normal((4, 16)).astype(np.float32)
            y, expected = f(Tensor(x, device="TOY").realize()), x
            for _ in range(3):
                expected = np.maximum(expected @ w, 0) + expected.sum(1, keepdims=True)
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-3, atol=1e-3)
            before = plant.machine().counts.get(hw.BARRIER, 0)
    assert before > 0, "graphs have barriers; kernels launched one by one have none"


def check_peers(toys: Toys, seed: int, hcq2: int) -> None:
    toys(seed=seed, timeline_start=LIMIT - 10 - seed % 30, kinds=("BOTH",) if seed % 3 == 1 else ("COMPUTE", "COPY"))
    state = [Tensor(np.full((8, 8), i + 1, np.float32), device=d).realize() for i, d in enumerate(("TOY", "TOY:1"))]
    model = [np.full((8, 8), i + 1, np.float32) for i in range(2)]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        a, b = state
        c, d = b.to("TOY") * 0.5 + a, a.to("TOY:1") - x.to("TOY:1")
        a.assign(c)
        b.assign(d)
        Tensor.realize(a, b)
        return (a + x).realize()
    with Context(HCQ2=hcq2):
        for i in range(10):
            x = np.full((8, 8), i, np.float32)
            y = f(Tensor(x, device="TOY").realize())
            model = [model[1] * 0.5 + model[0], model[0] - x]
            if i % 3 == 1:
                np.testing.assert_allclose(y.numpy(), model[0] + x, rtol=1e-5)
    for t, m in zip(state, model):
        np.testing.assert_allclose(t.numpy(), m, rtol=1e-5)


@pytest.mark.parametrize("hcq2", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_peers(toys: Toys, seed: int, hcq2: int):
    """Two devices that exchange values with kernels and copies, again and again, without waiting for results."""
    check_peers(toys, seed, hcq2)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(12))
def test_many_peers(toys: Toys, part: int):
    for seed in range(part * 15, part * 15 + 15):
        check_peers(toys, seed, seed % 2)


@pytest.mark.parametrize("kinds", [("COMPUTE", "COPY"), ("COMPUTE",)], ids="-".join)
@pytest.mark.parametrize("other", ["TOY:1", "TOY:2", "PYTHON"])
def test_what_a_graph_cannot_hold(toys: Toys, other: str, kinds: tuple[str, ...]):
    """Copies between groups, or where no queue copies, and kernels of devices without queues, run between graphs."""
    toys(seed=4, kinds=kinds)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        y = (x * 2).contiguous().to(other) + 1
        z = (y.contiguous() * y.sum()).to("TOY") - x
        return z.realize()
    for i in range(6):
        x = np.arange(6, dtype=np.float32) + i
        y = f(Tensor(x, device="TOY").realize())
        np.testing.assert_allclose(y.numpy(), (x * 2 + 1) * (x * 2 + 1).sum() - x, rtol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_sizes_that_vary(toys: Toys, seed: int):
    toys(seed=seed)
    x = np.arange(160, dtype=np.float32).reshape(16, 10)
    t = Tensor(x, device="TOY").realize()

    @TinyJit
    def f(t: Tensor, n: UOp) -> Tensor:
        return (t[:n] * 2).sum(0).realize()
    v = UOp.variable("n", 1, 16)
    for n in (3, 7, 7, 1, 16, 9):
        np.testing.assert_allclose(f(t, v.bind(n)).numpy(), (x[:n] * 2).sum(0))


@pytest.mark.parametrize("seed", range(3))
def test_a_graph_that_is_dropped_while_it_runs(toys: Toys, seed: int):
    """Its streams and signals stay mapped until the device has run them."""
    toys(seed=seed)
    x = Tensor(np.ones((4, 4), np.float32), device="TOY").realize()

    def run() -> Tensor:
        f = TinyJit(lambda t: (((t + 1) @ t) * 2).sum(0, keepdim=True).expand(4, 4).contiguous().realize())
        for _ in range(4):
            y = f(x)
        return y
    y = run()
    gc.collect()
    np.testing.assert_allclose(y.numpy(), np.full((4, 4), 64.0))


# *** the machine finds what it is there to find ***
def _ping_pong() -> None:
    """A graph with dependencies within and between the queues of two devices."""
    @TinyJit
    def f(x: Tensor) -> Tensor:
        y = ((x * 5).contiguous() - x * 4 + 1).contiguous()
        z = (y.to("TOY:1") * 2).contiguous() + y.sum().to("TOY:1")
        return (z.to("TOY") + (y * 3).contiguous()).realize()
    for i in range(5):
        x = np.full((4, 4), i, np.float32)
        y = f(Tensor(x, device="TOY").realize()).numpy()
        np.testing.assert_allclose(y, (x + 1) * 2 + (x + 1).sum() + (x + 1) * 3)


def _nothing(*operands: commands.Word) -> UOp:
    return several([])


def _only_timelines(signal: commands.Word, value: commands.Word) -> UOp:
    """A wait, unless it is for another queue of the graph."""
    between = isinstance(signal, UOp) and signal.is_variable and str(signal.arg.name).startswith(".queue")
    return several([]) if between else _wait(signal, value)


def _only_queues(signal: commands.Word, value: commands.Word) -> UOp:
    """A wait, unless it is for what a device did before."""
    before = isinstance(signal, UOp) and signal.is_variable and str(signal.arg.name).startswith(".timeline.")
    return several([]) if before else _wait(signal, value)


_wait = commands.wait


@pytest.mark.parametrize("name, broken", [("barrier", _nothing), ("wait", _only_timelines), ("wait", _only_queues)],
                         ids=["barriers", "waits between queues", "waits for timelines"])
@pytest.mark.parametrize("seed", range(2))
def test_commands_that_are_left_out(toys: Toys, monkeypatch: pytest.MonkeyPatch, seed: int, name: str, broken: Any):
    toys(seed=seed)
    _ping_pong()
    toys(seed=seed)
    monkeypatch.setattr(commands, name, broken)
    with pytest.raises(Fault, match="with no barrier or wait between|nothing can go on|was changed while|were changed"):
        _ping_pong()


@pytest.mark.parametrize("hcq2", [0, 1])
def test_profiles_come_from_timestamps(toys: Toys, hcq2: int):
    """The machine's clock counts its steps: each launch has a start and an end, and one that waits for another begins
    when that has ended."""
    toys(seed=3)
    u = Tensor(np.ones((8, 8), np.float32), device="TOY").realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        first = (x @ u).contiguous()
        return (first + first.to("TOY:1").relu().to("TOY")).realize()
    with Context(HCQ2=hcq2):
        for i in range(4):
            f(Tensor(np.full((8, 8), i, np.float32), device="TOY").realize())
        own = Recording()
        with recorded_in(own):
            y = f(Tensor(np.full((8, 8), 3, np.float32), device="TOY").realize())
    assert (y.numpy() == 48).all()
    graph, = [e for e in own.events if isinstance(e, ProfileGraphEvent) and e.clock == "TOY"]
    other, = [e for e in own.events if isinstance(e, ProfileGraphEvent) and e.clock == "TOY:1"]
    assert {e.device for e in graph.entries} == {"TOY", "TOY:1"}
    times = {number: (start, end) for e in (graph, other) for number, _, start, end in e.sigs}
    assert sorted(times) == list(range(len(graph.entries))) and all(start < end for start, end in times.values())
    in_order = [times[i] for i in range(len(times))]  # each step of this function needs the one before
    assert all(end <= start for (_, end), (start, _) in zip(in_order, in_order[1:]))
