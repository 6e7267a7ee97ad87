"""Results that are, or show, arguments, state and each other: writes go where they go without TinyJit."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Tensor, TinyJit


def test_a_returned_argument_is_the_argument():
    f = TinyJit(lambda x, y: (y, {"x": x}, x + y))
    for i in range(5):
        x, y = arr(i).realize(), arr(2 * i).realize()
        same, more, total = f(x, y)
        assert same is y and more["x"] is x and total.item() == 3 * i
        same += 1
        assert y.item() == 2 * i + 1 and total.item() == 3 * i


def test_a_returned_view_of_an_argument_sees_its_writes():
    f = TinyJit(lambda x: (x[1:], x.reshape(3, 1), x.sum()))
    for i in range(5):
        x = arr(i, 1, 2).realize()
        tail, column, total = f(x)
        tail += 10
        assert x.tolist() == [i, 11, 12] and column.tolist() == [[i], [11], [12]] and total.item() == i + 3
        x.assign(arr(7, 8, 9))
        assert tail.tolist() == [8, 9]


def test_an_argument_that_is_a_part_of_a_buffer():
    table = Tensor(np.arange(12, dtype=np.float32).reshape(6, 2)).realize()
    f = TinyJit(lambda row: (row, row[1:], row.sum()))
    for i in range(6):
        row = table[i]
        same, last, total = f(row)
        assert same is row and total.item() == 4 * i + 1
        last += 100
        assert table[i].tolist() == [2 * i, 2 * i + 101]


def test_returned_state_is_the_state():
    state = Tensor.zeros(2).contiguous().realize()

    @TinyJit
    def f(x: Tensor) -> Any:
        state.assign(state + x)
        return state, state[1:], state * 2
    for i in range(6):
        whole, part, twice = f(arr(1, 1))
        assert whole is state
        part += 5
        assert whole.tolist() == [i + 1, 6 * (i + 1)] and twice.tolist() == [2 * (i + 1), 2 * (6 * i + 1)]


def test_results_returned_twice():
    def run(x: Tensor) -> Any:
        y = (x * 2).contiguous()
        return y, [y, y[1:]], y.reshape(2, 1), x * 3
    f = TinyJit(run)
    kept = []
    for i in range(6):
        y, (same, tail), column, other = f(arr(i, 1))
        assert y is same
        tail += 10
        y += 1
        assert column.tolist() == [[2 * i + 1], [13]] and other.tolist() == [3 * i, 3]
        kept.append((column, [[2 * i + 1], [13]]))
    for column, want in kept:
        assert column.tolist() == want


def test_views_whose_base_is_not_returned():
    f = TinyJit(lambda x: (lambda y: (y[:2], y[1:]))((x + 1).contiguous()))
    for i in range(5):
        head, tail = f(arr(i, 1, 2))
        head += 10
        assert head.tolist() == [i + 11, 12] and tail.tolist() == [12, 3]


def test_equal_values_that_are_no_views_of_each_other():
    f = TinyJit(lambda x: ((x + 1).contiguous(), (x + 1).contiguous()))
    for i in range(5):
        a, b = f(arr(i))
        a += 10
        assert a.item() == i + 11 and b.item() == i + 1


def test_the_same_result_fed_back():
    f = TinyJit(lambda x, y: (x + y, x - y))
    x, y, want = arr(3), arr(1), (3.0, 1.0)
    for _ in range(8):
        x, y = f(x, y)
        want = want[0] + want[1], want[0] - want[1]
        assert (x.item(), y.item()) == want


def test_results_held_for_some_calls():
    f = TinyJit(lambda x: (x * x).contiguous())
    held: list[tuple[int, Tensor]] = []
    for i in range(20):
        held.append((i, f(arr(i, i + 1))))
        if i % 3 == 2:
            del held[::2]
            gc.collect()
        for k, t in held:
            assert t.tolist() == [k * k, (k + 1) ** 2]


@pytest.mark.parametrize("export", ["numpy", "dlpack", "data", "view of dlpack"])
@pytest.mark.parametrize("what", ["result", "state", "argument"])
def test_exports_are_never_overwritten(export: str, what: str):
    state = arr(1, 2).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        state.assign(state + 1)
        x += 1
        return x * 2 + state
    taken = []
    for i in range(6):
        x = arr(i, i).realize()
        before = {"state": state, "argument": x}.get(what)
        shown = None if before is None else exported(before, export)
        out = f(x)
        if before is not None:
            taken.append((shown, [1 + i, 2 + i] if what == "state" else [i, i]))
        else:
            taken.append((exported(out, export), [2 * i + 4 + i, 2 * i + 5 + i]))
    assert state.tolist() == [7, 8]
    for array, want in taken:
        assert np.array(array).tolist() == want


def exported(t: Tensor, how: str) -> Any:
    if how == "numpy":
        return t.numpy()
    if how == "data":
        return t.data()
    return np.from_dlpack(t if how == "dlpack" else t.reshape(2, 1)).reshape(2)


def test_a_result_that_is_a_constant():
    f = TinyJit(lambda x: (x + 1, Tensor(3.0), Tensor.zeros(2)))
    for i in range(4):
        y, three, zeros = f(arr(i))
        assert (y.item(), three.item(), zeros.tolist()) == (i + 1, 3, [0, 0])
        zeros += 1
        assert zeros.tolist() == [1, 1]


def test_results_without_elements():
    f = TinyJit(lambda x: (x[:0], x + 1))
    for i in range(4):
        none, y = f(arr(i))
        assert none.shape == (0,) and none.tolist() == [] and y.item() == i + 1


def test_a_strided_result():
    f = TinyJit(lambda x: (x + 1).contiguous().reshape(2, 3).T[::2].flip(1))
    for i in range(5):
        data = np.arange(6, dtype=np.float32) + i
        assert f(Tensor(data)).tolist() == (data + 1).reshape(2, 3).T[::2, ::-1].tolist()
