"""State that is replaced instead of written: inside it is carried over or an error, outside it is noticed."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Tensor, TinyJit, nn
from tinyhost.errors import JitError


def counted(run: Any) -> tuple[TinyJit[Any], list[int]]:
    calls: list[int] = []

    def fxn(*args: Any) -> Any:
        calls.append(1)
        return run(*args)
    return TinyJit(fxn), calls


# *** outside ***
def test_a_closure_that_is_written_in_place_stays_live():
    w = arr(1, 2).realize()
    f, calls = counted(lambda x: x * w)
    for i in range(6):
        assert f(arr(1, 1)).tolist() == [1 + i, 2 + i]
        w.assign(w + 1)
    assert len(calls) == 2


@pytest.mark.parametrize("realized", [False, True])
def test_a_closure_that_is_replaced_is_captured_anew(realized: bool):
    w = arr(1, 2).realize()
    f, calls = counted(lambda x: x * w)
    for _ in range(3):
        f(arr(1, 1))
    w.replace(arr(5, 6).realize() if realized else arr(4, 5) + 1)
    for _ in range(3):
        assert f(arr(1, 2)).tolist() == [5, 12]
    assert len(calls) == 4
    w.assign(arr(7, 8))
    assert f(arr(1, 2)).tolist() == [7, 16] and len(calls) == 4


def test_a_module_whose_weights_are_exchanged():
    lin = nn.Linear(2, 1, bias=False)
    f, calls = counted(lin.__call__)
    for _ in range(3):
        f(arr(1, 2).reshape(1, 2))
    lin.weight = Tensor([[3.0, 4.0]]).realize()
    gc.collect()
    for _ in range(3):
        assert f(arr(1, 2).reshape(1, 2)).tolist() == [[11.0]]
    assert len(calls) == 4


@pytest.mark.parametrize("how", ["assign", "replace", "load_state_dict"])
def test_loaded_weights(how: str):
    lin = nn.Linear(2, 1)
    f, _ = counted(lin.__call__)
    for _ in range(3):
        f(arr(1, 2).reshape(1, 2))
    weights = {"weight": Tensor([[5.0, 7.0]]), "bias": Tensor([1.0])}
    if how == "load_state_dict":
        nn.state.load_state_dict(lin, weights, verbose=False)
    else:
        for name, t in weights.items():
            getattr(getattr(lin, name), how)(t)
    for _ in range(3):
        assert f(arr(1, 2).reshape(1, 2)).tolist() == [[20.0]]


def test_another_tensor_over_the_state_may_go():
    w = arr(1, 2).realize()
    view = w.reshape(2, 1)
    f, calls = counted(lambda x: x * w)
    for _ in range(3):
        f(arr(1, 1))
    del view
    gc.collect()
    assert f(arr(1, 1)).tolist() == [1, 2] and len(calls) == 2


def test_a_seed_between_calls():
    f, _ = counted(lambda x: Tensor.rand(3) + x)
    for _ in range(4):
        f(arr(0))
    Tensor.manual_seed(11)
    ours = [f(arr(0)).tolist() for _ in range(4)]
    Tensor.manual_seed(11)
    assert ours == [Tensor.rand(3).tolist() for _ in range(4)]


def test_a_seed_inside():
    def run(x: Tensor) -> Tensor:
        Tensor.manual_seed(5)
        return Tensor.rand(3) + Tensor.rand(3) + x
    f, _ = counted(run)
    want = run(arr(0)).tolist()
    assert [f(arr(0)).tolist() for _ in range(5)] == [want] * 5


def test_dropout_moves_on():
    from tinyhost import Context
    with Context(TRAINING=1):
        Tensor.manual_seed(3)
        f, _ = counted(lambda x: x.dropout(0.5))
        ours = [f(Tensor(np.ones(32, np.float32))).tolist() for _ in range(6)]
        Tensor.manual_seed(3)
        assert ours == [Tensor(np.ones(32, np.float32)).dropout(0.5).tolist() for _ in range(6)]
    assert len(set(map(tuple, ours))) == 6


# *** inside ***
def test_state_that_is_replaced_inside_is_carried_over():
    h, other = arr(1, 1).realize(), arr(10, 20).realize()

    def run(x: Tensor) -> Tensor:
        h.replace(h * 2 + x)
        return h + other
    f, calls = counted(run)
    want = np.array([1, 1], np.float32)
    for i in range(7):
        want = want * 2 + i
        assert f(arr(i, i)).tolist() == (want + [10, 20]).tolist() and h.tolist() == want.tolist()
    assert len(calls) == 2


def test_two_states_that_change_places():
    a, b = arr(1).realize(), arr(2).realize()

    def run(x: Tensor) -> Tensor:
        old = Tensor(a.uop)
        a.replace(b)
        b.replace(old)
        return a * 10 + b + x
    f, calls = counted(run)
    assert [f(arr(0)).item() for _ in range(6)] == [21, 12, 21, 12, 21, 12]
    assert a.item() == 1 and b.item() == 2 and len(calls) == 2


def test_state_that_is_replaced_without_being_read():
    last = arr(0).realize()

    def run(x: Tensor) -> Tensor:
        last.replace(x * 3)
        return x + 1
    f, _ = counted(run)
    for i in range(6):
        assert f(arr(i)).item() == i + 1 and last.item() == 3 * i


def test_state_of_another_kind():
    h = arr(1, 2).realize()

    def run(x: Tensor) -> Tensor:
        h.replace((h + x).cast("float16"))
        return x + 1
    f, _ = counted(run)
    f(arr(1, 1))
    h.replace(arr(1, 2).realize())
    with pytest.raises(JitError, match=r"state of shape \(2,\), dtypes.float on \w+ was replaced by one of shape "
                                       r"\(2,\), dtypes.half on \w+ inside a captured function"):
        f(arr(1, 1))


class Holder:
    def __init__(self) -> None:
        self.h = arr(1, 1).realize()


@pytest.mark.parametrize("lazy", [False, True])
def test_an_attribute_that_is_read_and_bound_again_is_an_error(lazy: bool):
    o = Holder()

    def run(x: Tensor) -> Tensor:
        o.h = o.h * 2 + x
        return (o.h + 1) if lazy else (o.h.realize() + 1)
    f, _ = counted(run)
    assert f(arr(1, 1)).tolist() == [4, 4]
    with pytest.raises(JitError, match=r"state of shape \(2,\) that the captured function reads was dropped by it, so "
                                       r"the next call would read something else: write state in place with assign\(\)"
                                       ", or return it and pass it as an argument"):
        f(arr(1, 1))
    g = TinyJit(lambda h, x: (h * 2 + x).contiguous())
    h, want = arr(1, 1), 1
    for _ in range(5):
        h, want = g(h, arr(1, 1)), 2 * want + 1
        assert h.tolist() == [want, want]


def test_data_that_is_taken_from_a_list_is_an_error():
    queue = [arr(i).realize() for i in range(5)]
    f, _ = counted(lambda x: queue.pop(0) + x)
    f(arr(1))
    with pytest.raises(JitError, match="was dropped by it"):
        f(arr(1))


def test_an_argument_that_is_replaced_inside():
    def run(x: Tensor) -> Tensor:
        x.replace(x + 1)
        return x * 2
    f, calls = counted(run)
    for i in range(6):
        x = arr(i).realize()
        assert f(x).item() == 2 * i + 2 and x.item() == i + 1
    assert len(calls) == 2


def test_what_is_left_lazy_shows_the_last_call():
    left: dict[str, Tensor] = {}

    def run(x: Tensor) -> Tensor:
        left["twice"] = x * 2
        left["view"] = (x + 5).reshape(1, -1)
        return x + 1
    f, _ = counted(run)
    for i in range(6):
        assert f(arr(i)).item() == i + 1
        assert left["twice"].item() == 2 * i and left["view"].tolist() == [[i + 5]]


def test_a_failed_capture_of_changed_state_is_tried_again():
    w, fail = arr(1).realize(), [False]

    def run(x: Tensor) -> Tensor:
        if fail[0]:
            raise KeyError("inside")
        return x * w
    f, _ = counted(run)
    for _ in range(3):
        f(arr(2))
    w.replace(arr(3).realize())
    fail[0] = True
    for _ in range(2):
        with pytest.raises(KeyError):
            f(arr(2))
    fail[0] = False
    assert [f(arr(2)).item() for _ in range(3)] == [6, 6, 6]


# *** state without storage, equal graphs ***
@pytest.mark.parametrize("how", ["assign", "replace", "iadd"])
def test_a_number_in_a_closure_that_is_exchanged(how: str):
    k = Tensor(2.0)
    f, calls = counted(lambda x: x * k)
    for _ in range(4):
        assert f(arr(3)).item() == 6
    assert len(calls) == 2
    if how == "iadd":
        k += 3
    else:
        getattr(k, how)(Tensor(5.0))
    for _ in range(4):
        assert f(arr(3)).item() == 15
    unused = Tensor(1.0)
    before = len(calls)
    unused += 1
    assert f(arr(1)).item() == 5 and len(calls) == before


def test_a_counter_that_is_set_to_a_number_between_calls():
    total = Tensor.zeros(1)

    def run(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 10
    f, _ = counted(run)
    for _ in range(4):
        total.replace(Tensor.zeros(1))
        assert [f(arr(i)).item() for i in (1, 2, 3, 4)] == [10, 30, 60, 100] and total.item() == 10


def test_a_value_that_waits_outside_is_not_what_the_function_computes():
    w = arr(1, 2).realize()
    f, calls = counted(lambda x: (w * 3).contiguous() + x)
    waiting = [w * 3]
    for i in range(5):
        assert f(arr(0, 0)).tolist() == [3 * (1 + i), 3 * (2 + i)]
        waiting.append(w * 3)
        w += 1
    assert [t.tolist() for t in waiting] == [[3, 6], *([3 * (1 + i), 3 * (2 + i)] for i in range(5))]
    assert len(calls) == 2


def test_a_returned_state_that_is_replaced_is_the_state():
    s = arr(0).realize()

    def run(x: Tensor) -> Tensor:
        s.replace(x + 1)
        return s
    f, _ = counted(run)
    kept = []
    for i in range(5):
        kept.append(f(arr(i)))
        assert kept[-1] is s or i == 0 and s.item() == 1
        view = s.reshape(1, 1)
        f(arr(i + 10))
        assert s.item() == i + 11 and view.item() == i + 1


def test_a_view_of_state_that_is_replaced_keeps_its_value():
    s = arr(1, 2).realize()

    def run(x: Tensor) -> Tensor:
        s.replace(s * 2 + x)
        return x + 1
    f, _ = counted(run)
    views = []
    for i in range(5):
        views.append((s[1:], s.tolist()[1:]))
        f(arr(i, i))
    assert [v.tolist() for v, _ in views] == [want for _, want in views]


def test_a_reader_of_a_write_that_waits():
    s, other = arr(1, 1).realize(), arr(0, 0).realize()

    def run(x: Tensor) -> Tensor:
        s.assign(s + x)
        return s * 1
    f, _ = counted(run)
    for i in range(5):
        s[:1].assign(arr(7))
        other.assign(s * 2)
        want = [14, 2 * s.tolist()[1]] if i % 2 else None
        f(arr(1, 1))
        assert other.tolist()[0] == 14 and (want is None or other.tolist() == want)
