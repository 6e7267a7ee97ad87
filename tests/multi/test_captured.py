"""Captured functions of values on several devices: other shards, state in place, random numbers, pickles."""
from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, Variable, nn
from tinyhost.errors import JitError


def test_a_captured_function_takes_other_shards():
    d = names(3)

    @TinyJit
    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2 + y, (x - y).sum(0)
    kept = []
    for i in range(5):
        x = np.full((6, 2), i, np.float32) + np.arange(6, dtype=np.float32).reshape(6, 1)
        kept.append((x, f(Tensor(x).shard(d, 0).realize(), Tensor(x + 1).shard(d, 0).realize())))
    for x, (a, b) in kept:
        assert (a.numpy() == 3 * x + 1).all() and (b.numpy() == -6).all() and a.uop.axis == 0


def test_another_split_is_a_mismatch():
    d = names(2)
    f = TinyJit(lambda x: x + 1)
    x = np.ones((4, 4), np.float32)
    for _ in range(3):
        f(Tensor(x).shard(d, 0).realize())
    for other in (Tensor(x).shard(d, 1), Tensor(x).shard(d), Tensor(x), Tensor(x).shard(d, 1).realize().T):
        with pytest.raises(JitError, match=r"args mismatch in JIT: arg 0 was a tensor \(4, 4\)"):
            f(other.realize())


def test_state_on_several_devices_under_jit():
    d = names(2)
    total = Tensor.zeros(4).shard(d, 0).contiguous().realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total.sum()
    x = Tensor(np.arange(4, dtype=np.float32)).shard(d, 0).realize()
    assert [f(x).item() for _ in range(5)] == [6.0 * i for i in range(1, 6)] and total.tolist() == [0, 5, 10, 15]


@pytest.mark.parametrize("axis", [0, 1, None])
def test_writes_into_parts_of_state(axis: int | None):
    d, start = names(3), np.arange(24, dtype=np.int32).reshape(6, 4)
    table, count = Tensor(start.copy()).shard(d, axis).realize(), Tensor([0]).shard(d).realize()
    rows = table[2:4]  # a view that was taken before

    @TinyJit
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        before = table.sum()
        count.assign(count + 1)
        table[1:5] += x
        table[:, 0] = table[:, 3]
        return before, table.max(0)
    want = start.copy()
    for i in range(1, 6):
        before, top = f(Tensor(np.full((4, 4), i, np.int32)).shard(d, axis).realize())
        assert before.item() == want.sum()
        want[1:5] += i
        want[:, 0] = want[:, 3]
        assert (top.numpy() == want.max(0)).all() and (table.numpy() == want).all() and count.tolist() == [i]
        assert (rows.numpy() == want[2:4]).all()


def test_random_numbers_of_replays():
    """New ones in every call, those of one device; dropout masks too."""
    d, drawn = names(3), []
    for devices in (None, d):
        Tensor.manual_seed(7)

        @TinyJit
        def f(x: Tensor) -> tuple[Tensor, ...]:
            return Tensor.rand(5, device=x.device), Tensor.randn(2, 3, device=x.device) + x[0, 0], x.dropout(0.5), \
                x.rand_like()
        x = Tensor(np.ones((6, 40), np.float32))
        x = x if devices is None else x.shard(devices, 0)
        with Context(TRAINING=1):
            drawn.append([[t.numpy() for t in f(x.realize())] for _ in range(5)])
    for one, many in zip(*drawn, strict=True):
        for a, b in zip(one, many, strict=True):
            np.testing.assert_array_equal(a, b)
    firsts = [tuple(call[0]) for call in drawn[1]]
    assert len(set(firsts)) == 5


@pytest.mark.parametrize("count", [2, 5])
def test_one_capture_for_every_bound_size(count: int):
    v, d = Variable("n", 1, 8), names(count)
    data = np.arange(80, dtype=np.float32).reshape(10, 8)

    @TinyJit
    def f(x: Tensor, n: Any) -> tuple[Tensor, Tensor, Tensor]:
        part = x[:, :n]
        return (part * 2).sum(0).sum(), part.max(1), part.sum(1).shard(d)
    for n in (3, 8, 1, 5, 2):
        x = Tensor(data * n).shard(d, 0).realize()
        total, top, sums = f(x, v.bind(n))
        part = data[:, :n] * n
        assert total.item() == part.sum() * 2 and (top.numpy() == part.max(1)).all() and top.uop.axis == 0
        assert (sums.numpy() == part.sum(1)).all() and sums.uop.axis is None


@pytest.mark.parametrize("axis", ["one device", None, 1])
@pytest.mark.parametrize("realized", [False, True])
def test_writes_into_windows(axis: int | str | None, realized: bool):
    """Rows from a bound place on, of values that come from the host or lie there: a cache of keys."""
    v, d = Variable("at", 0, 5), names(2)

    def put(t: Tensor) -> Tensor:
        return t if isinstance(axis, str) else t.shard(d, axis)
    want = np.zeros((7, 4), np.float32)
    cache = put(Tensor(want.copy())).realize()

    @TinyJit
    def step(x: Tensor, at: Any) -> Tensor:
        cache[at:at + 2] = x
        return cache[:at + 2].sum()
    for i, at in enumerate((0, 2, 4, 5, 1)):
        rows = np.full((2, 4), i + 1, np.float32)
        want[at:at + 2] = rows
        x = put(Tensor(rows))
        if realized:
            assert step(x.realize(), v.bind(at)).item() == want[:at + 2].sum()
        else:
            cache[v.bind(at):v.bind(at) + 2] = x
        assert (cache.numpy() == want).all()


@pytest.mark.parametrize("axis", [0, 1, None])
def test_windows_of_the_split_axis(axis: int | None):
    v, n, d = Variable("at", 0, 5), Variable("n", 1, 7), names(3)
    data = np.arange(28, dtype=np.float32).reshape(7, 4)

    @TinyJit
    def f(x: Tensor, at: Any, n: Any) -> tuple[Tensor, ...]:
        return x[:n].sum(0), (x[at:at + 2] * 2).contiguous(), x[:n].max(0)
    for at, count in ((0, 3), (5, 7), (2, 1), (4, 6)):
        x = data * (at + 1)
        total, window, top = f(Tensor(x).shard(d, axis).realize(), v.bind(at), n.bind(count))
        assert (total.numpy() == x[:count].sum(0)).all() and (top.numpy() == x[:count].max(0)).all()
        assert (window.numpy() == x[at:at + 2] * 2).all()


def trained(devices: tuple[str, ...]) -> tuple[TinyJit[Any], list[Tensor]]:
    """A captured training step and its weights, after three calls."""
    w = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) % 5).shard(devices, 0).realize()
    b = Tensor(np.ones(3, np.float32)).shard(devices).realize()
    opt = nn.optim.SGD([w, b], lr=0.5, momentum=0.5)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = ((x @ w + b) * 2).sum().backward()
        return loss.realize(*opt.schedule_step())
    with Context(TRAINING=1):
        for i in range(3):
            step(batch(i, devices))
    return step, [w, b]


def batch(i: int, devices: tuple[str, ...]) -> Tensor:
    return Tensor((np.arange(24, dtype=np.float32).reshape(6, 4) + i) % 7 - 3).shard(devices, 0).realize()


@pytest.mark.parametrize("count", [2, 3])
def test_a_pickled_training_step_goes_on_alone(count: int):
    d = names(count)
    step, weights = trained(d)
    other = pickle.loads(pickle.dumps(step))
    with Context(TRAINING=1):
        for i in range(3, 6):  # each has weights of its own
            assert step(batch(i, d)).item() == other(batch(i, d)).item()
    again = pickle.loads(pickle.dumps((step, weights)))
    with Context(TRAINING=1):
        assert again[0](batch(9, d)).item() == step(batch(9, d)).item()
    for mine, theirs in zip(weights, again[1]):
        assert (mine.numpy() == theirs.numpy()).all() and mine.uop.axis == theirs.uop.axis and theirs.device == d


def test_a_pickled_step_in_another_process(tmp_path: Path):
    d = names(3)
    step, _ = trained(d)
    path = tmp_path / "step.pkl"
    path.write_bytes(pickle.dumps(step))
    code = textwrap.dedent(f"""
        import pickle
        import numpy as np
        from tinyhost import Context, Tensor
        step = pickle.load(open({str(path)!r}, "rb"))
        with Context(TRAINING=1):
            for i in range(3, 6):
                x = (np.arange(24, dtype=np.float32).reshape(6, 4) + i) % 7 - 3
                print(step(Tensor(x).shard({d!r}, 0).realize()).item())
    """)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with Context(TRAINING=1):
        want = [step(batch(i, d)).item() for i in range(3, 6)]
    assert [float(line) for line in ran.stdout.splitlines()] == want


def test_a_capture_of_other_devices_is_no_match():
    f = TinyJit(lambda x: x.sum(0))
    for _ in range(3):
        f(Tensor(np.ones((6, 2), np.float32)).shard(names(3), 0).realize())
    for d in (names(2), names(3)[::-1], names(4)[1:]):
        with pytest.raises(JitError, match=r"args mismatch in JIT: arg 0 was a tensor \(6, 2\)"):
            f(Tensor(np.ones((6, 2), np.float32)).shard(d, 0).realize())
