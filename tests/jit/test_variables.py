"""Bound sizes and offsets through schedule, code, launch dimensions and replay."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Context, GlobalCounters, Tensor, TinyJit, Variable
from tinyhost.engine import program, schedule
from tinyhost.errors import JitError

X = np.arange(48, dtype=np.float32).reshape(8, 6)
DEVICES = ["CPU", "PYTHON::gpu"]


@pytest.mark.parametrize("device", DEVICES)
def test_both_ends_of_a_variable(device: str):
    with Context(DEV=device):
        x, n = Tensor(X).realize(), Variable("n", 1, 8)
        f = TinyJit(lambda x: ((x * 2 + 1).contiguous(), x.sum(0), x.max()))
        for i in (1, 8, 3, 8, 1, 2):
            rows, total, most = f(x[:n.bind(i)])
            assert rows.numpy().tolist() == (X[:i] * 2 + 1).tolist()
            assert total.tolist() == X[:i].sum(0).tolist() and most.item() == X[:i].max()


@pytest.mark.parametrize("device", DEVICES)
def test_two_variables_in_shape_and_offset(device: str):
    with Context(DEV=device):
        x = Tensor(X).realize()
        rows, start = Variable("rows", 1, 6), Variable("start", 0, 2)
        f = TinyJit(lambda w: (w + 1, w.sum()))
        for r, s in ((1, 0), (6, 2), (6, 0), (3, 1), (1, 2), (2, 2)):
            more, total = f(x[start.bind(s):start.bind(s) + rows.bind(r), 1:5])
            want = X[s:s + r, 1:5]
            assert more.numpy().tolist() == (want + 1).tolist() and total.item() == want.sum()


@pytest.mark.parametrize("device", DEVICES)
def test_launch_dimensions_follow(device: str):
    """A kernel over a variable axis runs as often as the value says: nothing behind is written."""
    with Context(DEV=device):
        out, n = Tensor(np.zeros(16, np.float32)).realize(), Variable("n", 1, 16)

        @TinyJit
        def f(x: Tensor, n: Any) -> None:
            out[:n].assign(x[:n] + 1)
        x = Tensor(np.full(16, 2, np.float32)).realize()
        for i in (4, 16, 1, 7):
            out.assign(Tensor.zeros(16)).realize()
            f(x, n.bind(i))
            assert out.tolist() == [3] * i + [0] * (16 - i)


@pytest.mark.parametrize("device", DEVICES)
def test_a_cache_that_is_written_at_an_offset(device: str):
    with Context(DEV=device):
        cache, pos = Tensor(np.zeros((8, 3), np.float32)).realize(), Variable("pos", 0, 7)

        @TinyJit
        def step(x: Tensor, pos: Any) -> Tensor:
            cache[pos:pos + 1].assign(x)
            return cache[:pos + 1].sum(0) * 2
        want = np.zeros((8, 3), np.float32)
        for i in range(8):
            want[i] = [i, 1, i * i]
            assert step(Tensor(want[i:i + 1].copy()), pos.bind(i)).tolist() == (want[:i + 1].sum(0) * 2).tolist()
        assert cache.tolist() == want.tolist()
        want[2] = 9
        step(Tensor(want[2:3].copy()), pos.bind(2))
        assert cache.tolist() == want.tolist()


def test_a_window_that_is_written_at_a_symbolic_offset_and_size():
    buf = Tensor(np.zeros(10, np.float32)).realize()
    at, n = Variable("at", 0, 6), Variable("n", 1, 4)

    @TinyJit
    def put(window: Tensor, x: Tensor) -> Tensor:
        window.assign(window + x)
        return window * 10
    want = np.zeros(10, np.float32)
    for a, k in ((0, 1), (6, 4), (3, 2), (0, 4), (6, 1)):
        want[a:a + k] += a + 1
        out = put(buf[at.bind(a):at.bind(a) + n.bind(k)], arr(a + 1))
        assert buf.tolist() == want.tolist() and out.numpy().tolist() == (want[a:a + k] * 10).tolist()


def test_nothing_is_scheduled_or_compiled_for_another_value():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x: (x * x).sum(1))
    x = Tensor(X).realize()
    for i in (2, 5):
        f(x[:n.bind(i)])
    before = schedule.counters.scheduled, program.counters.compiled
    outs = [f(x[:n.bind(i)]) for i in range(1, 9)]
    assert (schedule.counters.scheduled, program.counters.compiled) == before
    assert [o.numpy().tolist() for o in outs] == [(X[:i] ** 2).sum(1).tolist() for i in range(1, 9)]


def test_counted_work_follows():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x: (x + 1).contiguous())
    x = Tensor(X).realize()
    for i in (2, 5):
        f(x[:n.bind(i)])

    def ops(i: int) -> int:
        GlobalCounters.reset()
        f(x[:n.bind(i)])
        return GlobalCounters.global_ops
    assert ops(8) == 4 * ops(2) > 0


def test_a_result_fed_back_keeps_its_variable():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x: (x + 1).contiguous())
    for i in (3, 8, 1):
        x = Tensor(X).realize()[:n.bind(i)]
        for k in range(4):
            x = f(x)
            assert x.numpy().tolist() == (X[:i] + k + 1).tolist()


def test_results_of_several_values_are_kept():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x: {"y": x + 1, "t": x.T.contiguous(), "x": x})
    x = Tensor(X).realize()
    kept = [(i, f(x[:n.bind(i)])) for i in (1, 2, 8, 3, 5)]
    for i, out in kept:
        assert out["y"].numpy().tolist() == (X[:i] + 1).tolist() and out["t"].numpy().tolist() == X[:i].T.tolist()
        assert out["x"].numpy().tolist() == X[:i].tolist()


def test_a_result_by_a_multiple():
    n = Variable("n", 1, 4)
    f = TinyJit(lambda x: (x.cat(x) * 2, x.reshape(x.shape[0] * 6)))
    x = Tensor(X).realize()
    for i in (1, 4, 2, 3):
        twice, flat = f(x[:n.bind(i)])
        assert twice.numpy().tolist() == np.concatenate([X[:i]] * 2).__mul__(2).tolist()
        assert flat.numpy().tolist() == X[:i].reshape(-1).tolist()


def test_an_expression_of_a_variable_as_an_argument():
    n = Variable("n", 1, 4)
    f = TinyJit(lambda x, k: x[:k].sum(0))
    x = Tensor(X).realize()
    for i in (1, 4, 2, 3):
        assert f(x, n.bind(i) * 2).tolist() == X[:2 * i].sum(0).tolist()
    with pytest.raises(JitError, match="args mismatch in JIT: arg 1 was"):
        f(x, n.bind(2) * 2 + 1)
    with pytest.raises(JitError, match="args mismatch in JIT: arg 1 was"):
        f(x, 4)


def test_a_slice_with_a_variable_as_an_argument():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x, s: x[s].sum(0))
    x = Tensor(X).realize()
    for i in (1, 8, 2):
        assert f(x, slice(0, n.bind(i))).tolist() == X[:i].sum(0).tolist()


def test_values_out_of_range():
    n = Variable("n", 1, 8)
    f = TinyJit(lambda x: x.sum())
    x = Tensor(X).realize()
    for i in (1, 2, 3):
        f(x[:n.bind(i)])
    for wrong in (0, 9):
        with pytest.raises(AssertionError, match=rf"bind {wrong} not in range \[1, 8\] of variable 'n'"):
            f(x[:n.bind(wrong)])


def test_another_range_is_another_variable():
    f = TinyJit(lambda x: x.sum())
    x = Tensor(X).realize()
    for i in (1, 2, 3):
        f(x[:Variable("n", 1, 4).bind(i)])
    with pytest.raises(JitError, match=r"arg 0 was a tensor \(n, 6\) .* at capture and is another view now"):
        f(x[:Variable("n", 1, 8).bind(2)])


def test_one_value_in_one_call():
    n = Variable("n", 1, 8)
    x, y = Tensor(X).realize(), Tensor(X).realize()
    with pytest.raises(JitError, match="bind mismatch on 'n': the arguments bind it to 2 and 3; one call uses"):
        TinyJit(lambda x, k: x.sum())(x[:n.bind(2)], n.bind(3))

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x.sum() + (y[:n.bind(5)] * 1).contiguous().sum().realize()
    f(x[:n.bind(2)].contiguous())
    with pytest.raises(JitError, match="bind mismatch on 'n': the arguments bind it to 2, the captured function to 5; "
                                       "one call uses one value of a variable"):
        f(x[:n.bind(2)].contiguous())


def test_a_variable_in_a_closure_is_frozen():
    n, x = Variable("n", 1, 8), Tensor(X).realize()
    k = [2]
    f = TinyJit(lambda y: x[:n.bind(k[0])].sum() + y)
    for _ in range(3):
        assert f(arr(0)).item() == X[:2].sum()
    k[0] = 3
    assert f(arr(0)).item() == X[:2].sum()  # as the documentation says of closures


def test_symbolic_and_captures():
    n, calls = Variable("n", 1, 8), []

    @TinyJit(captures=2)
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x.sum(0) * 1
    x = Tensor(X).realize()
    for i in (1, 2, 3, 8, 5):
        assert f(x[:n.bind(i)]).tolist() == X[:i].sum(0).tolist()
        assert f(x[:, :n.bind(i % 6 + 1)]).numpy().tolist() == X[:, :i % 6 + 1].sum(0).tolist()
    assert len(calls) == 4
