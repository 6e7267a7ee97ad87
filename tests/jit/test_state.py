"""State under TinyJit: parts of buffers as inputs, what is written inside, random numbers, weights."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Context, Tensor, TinyJit, nn
from tinyhost.errors import JitError


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
