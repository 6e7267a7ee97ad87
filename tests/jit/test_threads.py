"""Captures and replays in threads, and what an exception leaves."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tests.side_by_side import together
from tinyhost import Context, GlobalCounters, Tensor, TinyJit
from tinyhost.engine import program
from tinyhost.errors import JitError


def test_captures_in_several_threads_at_once():
    def work(k: int) -> None:
        total = Tensor.zeros(1).contiguous().realize()

        @TinyJit
        def f(x: Tensor) -> Tensor:
            total.assign(total + x)
            return (x * k).contiguous() + total
        want = 0
        for i in range(8):
            want += i
            assert f(arr(i)).item() == i * k + want
    together(*(lambda k=k: work(k) for k in range(3)))


def test_tensors_of_another_thread_are_no_part_of_a_capture():
    inside, go_on = threading.Event(), threading.Event()
    made: list[Tensor] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        y = x * 2
        inside.set()
        assert go_on.wait(20)
        return y

    def other() -> None:
        for _ in range(2):
            assert inside.wait(20)
            inside.clear()
            state = Tensor.zeros(2).contiguous().realize()
            state.assign(state + 1)
            made.append(state)
            made.append(arr(1, 2) + 1)
            go_on.set()

    def mine() -> None:
        for i in range(2):
            assert f(arr(i)).item() == 2 * i
            go_on.clear()
    together(mine, other)
    go_on.set()
    x = arr(4).realize()
    kernels = GlobalCounters.kernel_count
    assert f(x).item() == 8 and GlobalCounters.kernel_count == kernels + 1
    assert [t.tolist() for t in made] == [[1, 1], [2, 3]] * 2


def test_one_jit_is_called_by_two_threads_from_the_start():
    f = TinyJit(lambda x: (x * 3 + 1).contiguous())

    def work(k: int) -> None:
        kept = [(i, f(arr(i + k))) for i in range(15)]
        for i, t in kept:
            assert t.item() == 3 * (i + k) + 1
    together(lambda: work(0), lambda: work(100), lambda: work(1000))


def test_a_context_belongs_to_its_thread():
    f = TinyJit(lambda x: x + 1)
    for i in range(3):
        f(arr(i))

    def other() -> None:
        with Context(TRAINING=1), pytest.raises(JitError, match="TRAINING was 0 at capture and is 1 now"):
            f(arr(1))
    together(other)
    assert f(arr(1)).item() == 2


@pytest.mark.parametrize("at", [0, 1])
def test_an_exception_at_any_call(at: int):
    calls = [0]
    state = Tensor.zeros(1).contiguous().realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        calls[0] += 1
        state.assign(state + x)
        if calls[0] - 1 == at:
            raise ValueError("once")
        return state * 2
    done = 0
    for i in range(6):
        if i == at:
            with pytest.raises(ValueError, match="once"):
                f(arr(1))
        else:
            done = f(arr(1)).item()
    # a store that waits when the exception comes is still one
    assert done == 12 and state.item() == 6 and calls[0] == 3


def test_an_error_of_a_replay_leaves_the_capture():
    f = TinyJit(lambda x: x + 1)
    for i in range(3):
        f(arr(i))
    with pytest.raises(JitError):
        f(Tensor(3.0))
    with pytest.raises(JitError):
        f(arr(1, 2))
    assert f(arr(5)).item() == 6


def test_nested_use_in_an_exception():
    inner = TinyJit(lambda x: x + 1)

    @TinyJit
    def outer(x: Tensor) -> Tensor:
        try:
            return inner(x.clone()) * 2
        except JitError:
            return (x + 1) * 2
    assert [outer(arr(i)).item() for i in range(4)] == [2, 4, 6, 8]


def test_kernels_are_compiled_once_for_each_capture():
    calls: list[Any] = []

    @TinyJit(captures=2)
    def f(x: Tensor) -> Tensor:
        calls.append((x.shape, x.dtype, x.device))
        return (x * 2 + 1).sum()
    xs = [Tensor(np.ones(n, np.float32)).realize() for n in (3, 4, 5)]
    for _ in range(3):
        f(xs[0]), f(xs[1])
    assert len(calls) == 4
    before = program.counters.compiled
    for _ in range(3):
        f(xs[2])  # (3,) makes room
    assert len(calls) == 6 and program.counters.compiled > before
    before = program.counters.compiled
    assert f(xs[1]).item() == 12 and len(calls) == 6  # (4,) stayed
    for _ in range(3):
        assert f(xs[0]).item() == 9
    assert len(calls) == 8 and program.counters.compiled == before  # captured again, but compiled before
    assert f(xs[2]).item() == 15 and len(calls) == 9  # (5,) was used longest ago


def test_captures_for_each_dtype_and_device():
    calls: list[Any] = []

    @TinyJit(captures=3)
    def f(x: Tensor) -> Tensor:
        calls.append(x.dtype)
        return x + 1
    for i in range(4):
        assert f(arr(i)).tolist() == [i + 1]
        assert f(Tensor([i])).tolist() == [i + 1]
        out = f(Tensor(np.array([i], np.float32), device="PYTHON"))
        assert out.tolist() == [i + 1] and out.device == "PYTHON"
    assert len(calls) == 6
