"""TinyJit: what a capture replays."""
from __future__ import annotations

import gc
import weakref
from collections import namedtuple
from typing import Any

import numpy as np

from tests.jit.inputs import arr
from tinyhost import Context, GlobalCounters, Tensor, TinyJit
from tinyhost.engine import program, schedule


def test_values_follow_the_inputs():
    @TinyJit
    def f(x: Tensor, y: Tensor) -> Tensor:
        return (x * 2 + y).sum(0)
    for i in range(6):
        x, y = np.full((3, 2), i, np.float32), np.arange(6, dtype=np.float32).reshape(3, 2) * i
        assert f(Tensor(x), Tensor(y)).tolist() == (x * 2 + y).sum(0).tolist()


def test_the_function_runs_twice_and_nothing_is_scheduled_after():
    calls = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return (x + 1).sum() * x
    for i in range(3):
        f(arr(i, 2))
    before, kernels = (schedule.counters.scheduled, program.counters.compiled), GlobalCounters.kernel_count
    inputs = [arr(i, 3).realize() for i in range(4)]
    copies = GlobalCounters.kernel_count - kernels
    outs = [f(x).tolist() for x in inputs]
    assert len(calls) == 2 and (schedule.counters.scheduled, program.counters.compiled) == before
    assert outs == [[(i + 5) * i, (i + 5) * 3] for i in range(4)]
    assert GlobalCounters.kernel_count - kernels - copies == 4 * len(f.captured.steps) > 0
    assert f.cnt == 7


def test_without_a_jit_it_is_the_function():
    calls = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x + len(calls)
    with Context(JIT=0):
        assert [f(arr(0)).item() for _ in range(4)] == [1, 2, 3, 4]
    assert f.captured is None


def test_reset():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + 1
    for _ in range(3):
        f(arr(1, 2))
    f.reset()
    assert f.captured is None and [f(arr(1, 2, i)).tolist() for i in range(4)] == [[2, 3, i + 1] for i in range(4)]


def test_nested_containers_of_arguments_and_results():
    Pair = namedtuple("Pair", "low high")

    @TinyJit
    def f(batch: dict[str, Any], *, scale: Tensor) -> Any:
        a, (b, c) = batch["a"], batch["bc"]
        return {"sum": a + b, "all": [Pair(b * scale, None), (c,)]}
    for i in range(4):
        out = f({"a": arr(i), "bc": [arr(2 * i), arr(3)]}, scale=arr(10))
        assert out["sum"].tolist() == [3 * i] and out["all"][0].low.tolist() == [20 * i] and out["all"][0].high is None
        assert isinstance(out["all"][0], Pair) and out["all"][1][0].tolist() == [3]


def test_no_result():
    state = Tensor.zeros(2)

    @TinyJit
    def f(x: Tensor) -> None:
        state.assign(state + x)
    for _ in range(5):
        assert f(arr(1, 2)) is None
    assert state.tolist() == [5, 10]


def test_a_result_that_is_an_input_is_the_input_of_its_call():
    @TinyJit
    def f(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, x.reshape(2, 1)[1:], x + 1
    for i in range(5):
        same, view, more = f(arr(i, i + 1))
        assert (same.tolist(), view.tolist(), more.tolist()) == ([i, i + 1], [[i + 1]], [i + 1, i + 2])


def test_results_are_tensors_of_their_own():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x * 2
    outs = []
    for i in range(5):
        out = f(arr(i, 1))
        kept = out.clone().realize()
        out += 100  # neither the next call nor the copy sees it
        assert out.tolist() == [2 * i + 100, 102] and kept.tolist() == [2 * i, 2]
        outs.append(kept)
    assert [o.tolist() for o in outs] == [[2 * i, 2] for i in range(5)]


# *** methods ***
class Scale:
    def __init__(self, k: float) -> None:
        self.k = k

    @TinyJit
    def by(self, x: Tensor) -> Tensor:
        """Doc."""
        return x * self.k


def test_a_method_has_a_capture_for_each_object():
    two, three = Scale(2), Scale(3)
    for i in range(5):
        assert two.by(arr(i)).item() == 2 * i and three.by(arr(i)).item() == 3 * i
    assert two.by is two.by and two.by is not three.by and Scale.by.captured is None
    ref = weakref.ref(two)
    del two
    gc.collect()
    assert ref() is None and len(Scale.by._methods) == 1


def test_it_looks_like_the_function():
    assert Scale.by.__name__ == "by" and Scale.by.__doc__ == "Doc."
