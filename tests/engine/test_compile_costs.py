"""What scheduling and compiling cost, counted in nodes, rules, kernels and calls: the same on a busy machine."""
from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.counting import calls
from tinyhost import Context, Tensor, nn
from tinyhost.engine import plan, program, schedule
from tinyhost.engine.collector import collector_paused
from tinyhost.uop import node
from tinyhost.uop.pattern import forget_match_stats, match_stats

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fresh():
    """No cached schedule, plan or program, in memory or on disk."""
    forget()
    with Context(CACHELEVEL=0, DEV="CPU", PARALLEL=0):
        yield


def forget() -> None:
    for part in (schedule, plan, program):
        part.reset()


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], int]:
    """How many nodes a function creates."""
    count = 0

    class Counted(node._NodeRef):
        __slots__ = ()

        def __init__(self, *args: Any) -> None:
            nonlocal count
            count += 1
    monkeypatch.setattr(node, "_NodeRef", Counted)

    def run(fn: Callable[[], Any]) -> int:
        nonlocal count
        count = 0
        fn()
        return count
    return run


def chain(n: int) -> Tensor:
    y = Tensor(np.ones(1000, np.float32)).realize()
    for i in range(n):
        y = y + float(i % 7) if i % 2 else y * 0.5
    return y


def wide(n: int) -> Tensor:
    """n independent small computations in one sum."""
    x = Tensor(np.ones(16, np.float32)).realize()
    parts = [x * float(i) for i in range(n)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2])] + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]


def layers(n: int) -> Tensor:
    """n layers of a small net."""
    net = [nn.Linear(8, 8) for _ in range(n)]
    Tensor.realize(*[p for layer in net for p in (layer.weight, layer.bias)])
    x = Tensor(np.ones((4, 8), np.float32)).realize()
    for layer in net:
        x = layer(x).relu()
    return x


@pytest.mark.parametrize("graph, small, large", [(chain, 100, 1000), (wide, 100, 1000), (layers, 10, 100)])
def test_nodes_and_calls_grow_as_the_graph(graph: Callable[[int], Tensor], small: int, large: int,
                                           created: Callable[[Callable[[], Any]], int]):
    for measure in (created, calls):
        graph(small).realize()  # tables of rules fill at first use
        costs = []
        for n in (small, large):
            tensor = graph(n)
            forget()
            costs.append(measure(tensor.realize))
        assert costs[1] <= 1.2 * large / small * costs[0], f"{measure}: {costs}"


def test_a_node_of_a_kernel_costs_few_nodes_and_rules(created: Callable[[Callable[[], Any]], int]):
    n = 1000
    chain(n).realize()
    forget()
    tensor = chain(n)
    assert created(tensor.realize) <= 6 * n
    forget()
    forget_match_stats()
    tensor = chain(n)
    with Context(TRACK_MATCH_STATS=1):
        tensor.realize()
    assert sum(stats.tries for _, stats in match_stats()) <= 8 * n
    forget_match_stats()


def test_equal_layers_share_kernels():
    counts = []
    for n in (4, 12):
        x = layers(n)
        forget()
        x.realize()
        counts.append(program.counters.compiled)
    assert counts[0] == counts[1] <= 3


def test_the_step_of_equal_layers_shares_kernels():
    counts = []
    for n in (4, 12):
        net = [nn.Linear(8, 8) for _ in range(n)]
        parameters = nn.state.get_parameters(net)
        opt = nn.optim.SGD(parameters, lr=0.1)
        Tensor.realize(*parameters)
        x = Tensor(np.ones((4, 8), np.float32)).realize()
        forget()
        with Context(TRAINING=1):
            for layer in net:
                x = layer(x).relu()
            opt.zero_grad()
            x.sum().backward()
            opt.step()
        counts.append(program.counters.compiled)
    assert counts[1] <= counts[0] + 1


EAGER = """
import numpy as np
from tests.counting import calls
from tinyhost import Tensor
from tinyhost.engine import program, schedule
a = Tensor(np.ones(16, np.float32)).realize()
for _ in range(3):
    (a + 1).realize()
compiled, scheduled = program.counters.compiled, schedule.counters.scheduled
print(min(calls(lambda: (a + 1).realize()) for _ in range(5)))
assert (program.counters.compiled, schedule.counters.scheduled) == (compiled, scheduled)
"""


def test_an_eager_operation_is_few_calls():
    """In a process of its own: what other tests leave behind, plugins among it, is asked in each operation."""
    env = {**os.environ, "DEV": "CPU"}
    done = subprocess.run([sys.executable, "-c", EAGER], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 310


# *** the collector of cycles ***
def test_no_collection_while_kernels_are_made():
    seen: list[bool] = []
    gc.callbacks.append(lambda phase, info: seen.append(gc.isenabled()))
    try:
        tensor = chain(500)
        assert gc.isenabled()
        seen.clear()
        gc.disable()  # so that what is seen comes from the block
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()  # it was off before
        gc.enable()
        with collector_paused(), collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled()
        with pytest.raises(ZeroDivisionError), collector_paused():
            raise ZeroDivisionError
        assert gc.isenabled()
        tensor.realize()
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.callbacks.pop()


def test_passes_leave_no_cycles():
    tensor = layers(3)
    gc.collect()
    gc.disable()
    try:
        tensor.realize()
        assert gc.collect() < 50
    finally:
        gc.enable()
