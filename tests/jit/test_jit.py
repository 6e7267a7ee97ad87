"""TinyJit: what a capture replays, what stays live, what is refused and with which words."""
from __future__ import annotations

import gc
import threading
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from tinyhost import Context, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from tinyhost.engine import program, schedule
from tinyhost.errors import JitError


def arr(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


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


# *** parts of buffers as inputs ***
def test_rows_of_a_table():
    table = Tensor(np.arange(24, dtype=np.float32).reshape(8, 3)).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return (x * 10).sum(1)
    for i in [*range(8), 2]:
        assert f(table[i:i + 1]).tolist() == [sum(table[i].tolist()) * 10]
    assert f(arr(1, 2, 3).reshape(1, 3)).tolist() == [60]  # a whole buffer after parts


def test_writing_to_a_part():
    table = Tensor(np.zeros((6, 2), np.float32)).realize()

    @TinyJit
    def f(row: Tensor, x: Tensor) -> Tensor:
        row.assign(row + x)
        return row * 1
    for i in range(6):
        row = table[i]
        assert f(row, arr(i, 1)).tolist() == [i, 1] and row.tolist() == [i, 1]
    assert f(table[5], arr(1, 1)).tolist() == [6, 2]
    assert table.tolist() == [[i, 1] for i in range(5)] + [[6, 2]]


def test_two_parts_of_one_buffer():
    x = Tensor(np.arange(8, dtype=np.float32)).realize()

    @TinyJit
    def f(a: Tensor, b: Tensor) -> Tensor:
        return a - b
    for _ in range(4):
        assert f(x[:4], x[4:]).tolist() == [-4.0] * 4
    with pytest.raises(JitError, match="duplicate inputs to JIT: arg 0 and arg 1 share memory, so a replay could not "
                                       r"tell them apart; pass a .clone\(\) of one"):
        f(x[:4], x[3:7])


# *** state ***
def test_state_written_inside_stays_live():
    total = Tensor.zeros(2)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 10
    for i in range(1, 7):
        assert f(arr(1, 2)).tolist() == [10 * i, 20 * i]
        assert total.tolist() == [i, 2 * i]
    total.assign(arr(100, 200))  # a write outside, not realized yet
    assert f(arr(1, 2)).tolist() == [1010, 2020] and total.tolist() == [101, 202]


def test_lazy_readers_outside_see_their_own_time():
    state = Tensor.zeros(1)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        state.assign(state + x)
        return state + 0
    readers = []
    for _ in range(5):
        readers.append(state * 10)
        f(arr(1))
    view = state.reshape(1, 1)
    f(arr(1))
    assert [r.item() for r in readers] == [0, 10, 20, 30, 40] and view.item() == 6


def test_lazy_readers_of_a_written_input():
    buf = Tensor.zeros(2).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        x += 1
        return x.sum()
    lazy = []
    for _ in range(4):
        lazy.append(buf * 1)
        f(buf)
    assert [v.tolist() for v in lazy] == [[i, i] for i in range(4)] and buf.tolist() == [4, 4]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: nn.optim.Adam(p, lr=0.05),
        lambda p: nn.optim.LAMB(p, lr=0.05),
    ],
)
def test_training_is_bit_equal_to_training_without(make: Any):
    def train(jit: bool) -> list[Any]:
        Tensor.manual_seed(4)
        lin, norm, out = nn.Linear(4, 8), nn.BatchNorm(8), nn.Linear(8, 1)
        layers = [lin, norm, out]
        opt = make(nn.state.get_parameters([lin, out]) + [norm.weight, norm.bias])

        def step(x: Tensor, y: Tensor) -> Tensor:
            opt.zero_grad()
            loss = (out(norm(lin(x)).relu().dropout(0.2)) - y).square().mean().backward()
            return loss.realize(*opt.schedule_step())
        run = TinyJit(step) if jit else step
        rng = np.random.default_rng(0)
        with Context(TRAINING=1):
            losses = [run(Tensor(rng.standard_normal((16, 4)).astype(np.float32)),
                          Tensor(rng.standard_normal((16, 1)).astype(np.float32))).item() for _ in range(7)]
        return [losses, {k: t.tolist() for k, t in nn.state.get_state_dict(layers).items()},
                {k: t.tolist() for k, t in nn.state.get_state_dict(opt).items()}, Tensor.rand(3).tolist()]
    assert train(True) == train(False)


def test_batchnorm_counts_every_call():
    norm = nn.BatchNorm(2)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return norm(x).sum()
    with Context(TRAINING=1):
        for i in range(6):
            f(Tensor(np.array([[i, 1], [i + 2, 5]], np.float32)))
    assert norm.num_batches_tracked.item() == 6
    want = np.zeros(2)
    for i in range(6):
        want = 0.9 * want + 0.1 * np.array([i + 1, 3])
    np.testing.assert_allclose(norm.running_mean.numpy(), want, rtol=1e-5)


def test_random_numbers_move_on():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return Tensor.rand(4) + x
    Tensor.manual_seed(9)
    ours = [f(arr(0, 0, 0, 0)).tolist() for _ in range(6)]
    ours.append(Tensor.rand(4).tolist())
    Tensor.manual_seed(9)
    assert ours == [(Tensor.rand(4) + arr(0, 0, 0, 0)).tolist() for _ in range(6)] + [Tensor.rand(4).tolist()]


def test_lazy_random_numbers_outside_keep_their_place():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return Tensor.rand(2) + x
    Tensor.manual_seed(1)
    lazy, ran = [], []
    for _ in range(5):
        lazy.append(Tensor.rand(2))
        ran.append(f(arr(0, 0)).tolist())
    Tensor.manual_seed(1)
    want = [Tensor.rand(2).tolist() for _ in range(10)]
    assert ran == want[1::2] and [t.tolist() for t in lazy] == want[::2]


def test_loaded_weights_are_used_where_the_storage_stays():
    lin = nn.Linear(2, 1)
    f = TinyJit(lin.__call__)
    for _ in range(3):
        f(arr(1, 2).reshape(1, 2))
    lin.weight.assign(Tensor([[5.0, 7.0]]))
    lin.bias.assign(Tensor([1.0]))
    assert f(arr(1, 2).reshape(1, 2)).tolist() == [[20.0]]


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


# *** symbolic ***
def test_variables():
    x = Tensor(np.arange(10, dtype=np.float32)).realize()
    v = Variable("n", 1, 10)

    @TinyJit
    def f(x: Tensor, n: Any) -> Tensor:
        return x[:n].sum()
    assert [f(x, v.bind(i)).item() for i in range(1, 11)] == [sum(range(i)) for i in range(1, 11)]
    with pytest.raises(JitError, match="args mismatch in JIT: arg 1 was variable n at capture and is variable m now"):
        f(x, Variable("m", 1, 10).bind(3))


def test_a_result_of_symbolic_shape():
    v = Variable("n", 1, 8)
    x = Tensor(np.arange(8, dtype=np.float32)).realize()

    @TinyJit
    def f(x: Tensor, n: Any) -> Tensor:
        return x[:n] * 2
    for i in range(1, 6):
        out = f(x, v.bind(i))
        assert out.shape[0] is v.bind(i) or int(out.shape[0]) == i
        assert out.pad_to(8).shrink(((0, i),)).tolist() == [2.0 * k for k in range(i)]


# *** what is refused ***
def captured() -> TinyJit[Any]:
    @TinyJit
    def f(x: Tensor, k: Any = 1, *, flag: bool = False) -> Tensor:
        return x * 2 if isinstance(k, object) else x
    for _ in range(3):
        f(arr(1, 2), 1, flag=False)
    return f


MISMATCH = {
    "shape": (
        lambda f: f(arr(1, 2, 3), 1, flag=False),
        r"args mismatch in JIT: arg 0 was a tensor \(2,\) dtypes.float on \w+ at capture and is a tensor \(3,\) "
        r"dtypes.float on \w+ now: call with the same, or use a second TinyJit",
    ),
    "dtype": (lambda f: f(Tensor([1, 2]), 1, flag=False), r"is a tensor \(2,\) dtypes.int on"),
    "device": (
        lambda f: f(Tensor(np.ones(2, np.float32), device="NPY"), 1, flag=False),
        r"is a tensor \(2,\) dtypes.float on NPY now",
    ),
    "value": (lambda f: f(arr(1, 2), 2, flag=False), "args mismatch in JIT: arg 1 was 1 at capture and is 2 now"),
    "kind of value": (lambda f: f(arr(1, 2), 1.0, flag=False), "arg 1 was 1 at capture and is 1.0 now"),
    "bool for int": (lambda f: f(arr(1, 2), True, flag=False), "arg 1 was 1 at capture and is True now"),
    "keyword": (lambda f: f(arr(1, 2), 1, flag=True), "flag was False at capture and is True now"),
    "fewer": (
        lambda f: f(arr(1, 2)),
        "args mismatch in JIT: captured with arg 0, arg 1, flag, TRAINING, called with arg 0, TRAINING; call with "
        "the same arguments, or use a second TinyJit",
    ),
    "tensor for value": (lambda f: f(arr(1, 2), arr(1), flag=False), r"arg 1 was 1 at capture and is a tensor \(1,\)"),
    "object": (lambda f: f(arr(1, 2), object(), flag=False), "arg 1 was 1 at capture and is <object object at"),
    "array": (lambda f: f(arr(1, 2), np.ones(1), flag=False), r"arg 1 was 1 at capture and is array\(\[1.\]\) now"),
}


@pytest.mark.parametrize("name", MISMATCH)
def test_mismatch(name: str):
    call, text = MISMATCH[name]
    f = captured()
    with pytest.raises(JitError, match=text):
        call(f)
    assert f(arr(3, 4), 1, flag=False).tolist() == [6, 8]  # an error leaves the capture alone


def test_training_must_stay():
    f = captured()
    with Context(TRAINING=1), pytest.raises(JitError, match="TRAINING was 0 at capture and is 1 now"):
        f(arr(1, 2), 1, flag=False)


def test_nan_is_the_same_value_and_an_object_is_known_again():
    thing = object()

    @TinyJit
    def f(x: Tensor, k: float, thing: Any) -> Tensor:
        return x + 1
    for i in range(4):
        assert f(arr(i), float("nan"), thing).item() == i + 1
    with pytest.raises(JitError, match="arg 1 was nan at capture and is 0.0 now"):
        f(arr(1), 0.0, thing)


@pytest.mark.parametrize("make, why", [
    (lambda: Tensor(3.0), r"arg 0 of shape \(\) is a constant"),
    (lambda: Tensor.arange(4), r"arg 0 of shape \(4,\) is a constant"),
    (lambda: Tensor(np.ones((2, 3), np.float32)).realize().T,
     r"arg 0 of shape \(3, 2\) is a view that is no single block of its buffer"),
    (lambda: Tensor(np.ones(6, np.float32)).realize()[::2], r"arg 0 of shape \(3,\) is a view"),
    (lambda: Tensor(np.ones(1, np.float32)).realize().expand(4), r"arg 0 of shape \(4,\) is a view"),
])
def test_inputs_must_be_buffers(make: Any, why: str):
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + 1
    with pytest.raises(JitError, match=r"JIT inputs must be real buffers; use .clone\(\): " + why):
        f(make())
    assert f(make().clone()).shape == make().shape


def test_duplicate_inputs():
    @TinyJit
    def f(x: Tensor, y: Tensor) -> Tensor:
        return x + y
    x = arr(1, 2)
    with pytest.raises(JitError, match=r"duplicate inputs to JIT: arg 0 and arg 1 share memory, .* pass a .clone\(\) "
                                       "of one"):
        f(x, x)
    a, b = arr(1, 2).realize(), arr(5, 6).realize()
    same, other = a + 1, a + 1  # equal values end in one buffer
    with pytest.raises(JitError, match="duplicate inputs to JIT"):
        f(same, other)
    assert f(same, other.clone()).tolist() == [4, 6] and f(a, b).tolist() == [6, 8]


@pytest.mark.parametrize("value, name", [(3, "int"), ([1.0, "x"], "float, str"), ({"k": np.ones(1)}, "ndarray")])
def test_results_must_be_tensors(value: Any, name: str):
    @TinyJit
    def f(x: Tensor) -> Any:
        return value

    with pytest.raises(JitError, match=f"a captured function returns Tensors, containers of them or None, got {name}: "
                                       "a Python value would be "
                                       "frozen at capture; return a Tensor and read it outside"):
        f(arr(1))


def test_nothing_to_capture():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x
    f(arr(1))
    with pytest.raises(JitError, match="didn't JIT anything! The function ran no kernel while it was captured: "
                                       "realize its result inside, or make it depend on its arguments"):
        f(arr(1))


def test_reading_while_capturing():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x * x.sum().item()
    assert f(arr(1, 2)).tolist() == [3, 6]
    with pytest.raises(JitError, match=r"cannot read the data of <Tensor \(\) .*> while TinyJit captures: the value "
                                       "would be frozen at capture; return the tensor and read it outside"):
        f(arr(1, 2))
    assert Tensor([1]).item() == 1  # the failed capture is over


def test_jit_inside_of_jit():
    @TinyJit
    def inner(x: Tensor) -> Tensor:
        return x + 1

    @TinyJit
    def outer(x: Tensor) -> Tensor:
        return inner(x.clone()) * 2
    assert outer(arr(1)).item() == 4
    with pytest.raises(JitError, match="having TinyJit inside another TinyJit is not supported: the outer one "
                                       "captures both, so call the plain function inside"):
        outer(arr(1))


def test_an_exception_ends_the_capture():
    fail = [False]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        if fail[0]:
            raise KeyError("inside")
        return x[0:1] + 1
    table = Tensor(np.arange(4, dtype=np.float32)).realize()
    f(table[1:3])
    fail[0] = True
    part = table[1:3]
    with pytest.raises(KeyError, match="inside"):
        f(part)
    fail[0] = False
    assert part.tolist() == [1, 2] and [f(table[i:i + 2]).item() for i in range(3)] == [1, 2, 3]


# *** resources ***
def test_replays_allocate_nothing():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return ((x @ x.transpose()).sum(0, keepdim=True) * x.transpose()).sum()
    x = Tensor(np.ones((16, 16), np.float32)).realize()
    for _ in range(3):
        f(x)
    gc.collect()
    used = GlobalCounters.mem_used
    for _ in range(5):
        f(x)
    assert GlobalCounters.mem_used == used


def test_a_dropped_jit_frees_its_memory():
    x = Tensor(np.ones((64, 64), np.float32)).realize()
    gc.collect()
    used = GlobalCounters.mem_used

    def make() -> None:
        f = TinyJit(lambda t: (t @ t).softmax() @ t)
        for _ in range(3):
            f(x)
        assert GlobalCounters.mem_used > used
    make()
    gc.collect()
    assert GlobalCounters.mem_used == used


def test_one_jit_from_several_threads():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return (x * 3).sum()
    for _ in range(2):
        f(arr(1, 2))
    wrong = []

    def work(k: int) -> None:
        for i in range(20):
            f(arr(k, i))  # results are shared memory, so only the calls must not disturb each other
        with lock:
            if f(arr(k, 1)).item() != 3 * (k + 1):
                wrong.append(k)
    lock = threading.Lock()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f(arr(5, 6)).item() == 33


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.float16, dtypes.int64, dtypes.bool])
def test_dtypes(dtype: Any):
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x.flip(0).contiguous()
    for i in range(4):
        values = [i % 2, 1, 0]
        assert f(Tensor(values).cast(dtype)).tolist() == [dtype.const(v) for v in reversed(values)]
