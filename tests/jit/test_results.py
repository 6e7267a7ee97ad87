"""Results of a captured function: each keeps its value as long as something shows it, and memory is used again."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import GlobalCounters, Tensor, TinyJit
from tinyhost.device.buffer import buffer_of


def plus_one(**kwargs: Any) -> TinyJit[Tensor]:
    return TinyJit(lambda x: (x + 1).realize(), **kwargs)


def test_two_results_are_two_values():
    f = plus_one()
    a, b = arr(1.5).realize(), arr(2.5).realize()
    for _ in range(3):
        f(a)
    first, second = f(a), f(b)
    assert (first == second).tolist() == [False] and first.tolist() == [2.5] and second.tolist() == [3.5]


def test_a_list_of_results_of_all_calls():
    f = plus_one()
    kept = [f(arr(i, -i)) for i in range(12)]
    assert [t.tolist() for t in kept] == [[i + 1, 1 - i] for i in range(12)]


SHOWN = {
    "view": lambda t: t[1:],
    "reshaped": lambda t: t.reshape(3, 1),
    "detached": lambda t: t.detach(),
    "bitcast": lambda t: t.bitcast("int32").bitcast("float32"),
    "lazy": lambda t: t * 1,
    "lazy view of lazy": lambda t: (t + 0).flip(0),
    "transposed": lambda t: t.reshape(3, 1).expand(3, 2).permute(1, 0),
}


@pytest.mark.parametrize("what", SHOWN)
def test_what_is_left_of_a_result_keeps_its_value(what: str):
    f = plus_one()
    show = SHOWN[what]
    kept = [show(f(arr(i, 2 * i, 3))) for i in range(7)]
    for i, t in enumerate(kept):
        assert (t.numpy() == show(arr(i + 1, 2 * i + 1, 4)).numpy()).all()


def test_exports_keep_their_value():
    f = plus_one()
    views = []
    for i in range(6):
        t = f(arr(i, 1))
        views.append((t.data(), t.numpy(), i))
    for data, array, i in views:
        assert data.tolist() == array.tolist() == [i + 1, 2]


def test_nested_results_that_share_memory():
    @TinyJit
    def f(x: Tensor) -> Any:
        y = (x * 2).contiguous()
        return {"y": y, "parts": (y[0], [y[1:], y]), "sum": y.sum(), "x": x}
    kept = [f(arr(i, 1, i * i)) for i in range(6)]
    for i, out in enumerate(kept):
        want = [2 * i, 2, 2 * i * i]
        assert out["y"].tolist() == want and out["parts"][0].item() == want[0]
        assert out["parts"][1][0].tolist() == want[1:] and out["parts"][1][1].tolist() == want
        assert out["sum"].item() == sum(want) and out["x"].tolist() == [i, 1, i * i]


def test_memory_of_dropped_results_is_used_again():
    f = plus_one()
    x = arr(*range(1000)).realize()
    homes = set()
    for _ in range(3):
        f(x)
    gc.collect()
    used = GlobalCounters.mem_used
    for _ in range(20):
        homes.add(id(buffer_of(f(x).uop.base)))
    assert len(homes) == 1 and GlobalCounters.mem_used == used


def test_feeding_a_result_back_alternates_between_two_buffers():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return (x + x.flip(0)).contiguous()
    x = arr(1, 2, 3).realize()
    want = np.array([1, 2, 3], np.float32)
    homes = []
    for _ in range(10):
        x, want = f(x), want + want[::-1]
        homes.append(id(buffer_of(x.uop.base)))
        assert x.tolist() == want.tolist()
    assert len(set(homes[3:])) == 2


def test_kept_results_free_their_memory_when_they_go():
    f = plus_one()
    x = arr(*range(4096)).realize()
    for _ in range(3):
        f(x)
    gc.collect()
    used = GlobalCounters.mem_used
    kept = [f(x) for _ in range(10)]
    assert GlobalCounters.mem_used >= used + 8 * 16384
    del kept
    gc.collect()
    assert GlobalCounters.mem_used <= used + 16384


def test_writing_to_a_result_leaves_later_calls_alone():
    f = plus_one()
    kept = []
    for i in range(6):
        out = f(arr(i, 0))
        out += 10
        kept.append(out)
    assert [t.tolist() for t in kept] == [[i + 11, 11] for i in range(6)]


def test_a_gradient_that_is_returned_and_held():
    w = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)).is_param_().realize()

    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        w.grad = None
        loss = ((x @ w) ** 2).sum()
        loss.backward()
        return loss.realize(), w.grad.realize()
    kept = []
    for i in range(6):
        data = np.array([[1, i], [2, 1]], np.float32)
        out = step(Tensor(data))
        kept.append((data, *out))
        assert (w.grad.numpy() == out[1].numpy()).all()  # the attribute follows
    for data, loss, grad in kept:
        product = data @ w.numpy()
        assert loss.item() == (product ** 2).sum() and (grad.numpy() == 2 * data.T @ product).all()


def test_an_attribute_that_holds_a_result_follows():
    class Model:
        last: Tensor | None = None
        lazy: Tensor | None = None
    m = Model()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        m.last = (x * 3).contiguous()
        m.lazy = m.last + 1
        return m.last
    kept = []
    for i in range(6):
        kept.append(f(arr(i, 1)))
        assert m.last is not None and m.lazy is not None
        assert m.last.tolist() == [3 * i, 3]
    assert [k.tolist() for k in kept] == [[3 * i, 3] for i in range(6)]
    assert m.lazy.tolist() == [16, 4]


def test_state_that_is_returned_is_the_state():
    state = Tensor.zeros(2).contiguous()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return state.assign(state + x)
    kept = [f(arr(1, 2)) for _ in range(5)]
    assert state.tolist() == [5, 10] and kept[-1].tolist() == [5, 10]


def test_lazy_state_that_is_created_before_and_written_inside():
    state = Tensor.full((2,), 7.0)
    out: list[Tensor] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        state[0:1].assign(x)
        return state
    for i in range(5):
        out.append(f(arr(i)))
        assert state.tolist() == [i, 7]


def test_state_as_an_argument_of_a_replay():
    state = arr(1, 1).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        state.assign(state + x)
        return x * 10
    for i in range(3):
        assert f(arr(i, 1)).tolist() == [10 * i, 10]
    before = state.tolist()
    assert f(state).tolist() == [10 * v for v in before] and state.tolist() == [2 * v for v in before]


# *** several captures ***
def test_a_capture_for_each_shape():
    calls = []

    @TinyJit(captures=3)
    def f(x: Tensor, k: int = 1) -> Tensor:
        calls.append(x.shape)
        return (x * k).sum(0) + x
    for i in range(5):
        for n in (1, 2, 3):
            data = np.arange(n, dtype=np.float32) + i
            assert f(Tensor(data)).tolist() == (data.sum() + data).tolist()
    assert len(calls) == 6
    assert f(arr(1, 2), 5).tolist() == [16, 17] and len(calls) == 7  # makes room: (1,) was used longest ago
    f(arr(1, 2, 3))
    assert len(calls) == 7
    f(arr(1))
    assert len(calls) == 8


def test_captures_must_be_positive():
    with pytest.raises(ValueError, match="TinyJit needs at least one capture, got captures=0"):
        TinyJit(lambda x: x, captures=0)
