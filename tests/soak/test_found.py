"""Small forms of programs that once failed."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Tensor, TinyJit
from tinyhost.uop.sharding import stored_axis

D = names(3)


def test_a_value_that_lost_its_split_is_split_again():
    x = Tensor(np.arange(36).reshape(6, 6)).shard(D, 1).realize()
    for y in (x.reshape(36).reshape(6, 6) & 7, (x.reshape(36) & 7).reshape(6, 6)):
        for moved in (y.to(D[0]).shard(D, 1), y.to(D[0]).shard(D, 1).clone()):
            assert stored_axis(moved.uop) == 1
            assert stored_axis(moved.realize().uop) == 1
            assert moved.tolist() == (np.arange(36).reshape(6, 6) & 7).tolist()


@pytest.mark.parametrize("jit", [False, True])
def test_an_argument_on_several_devices_that_only_one_of_them_reads(jit: bool):
    def f(x: Tensor) -> Tensor:
        return (x.to(D[1]).reshape(-1) + 1).reshape(6, 7).max(1)
    run = TinyJit(f) if jit else f
    for i in range(4):
        data = (np.arange(42) * i).reshape(6, 7).astype(np.uint8)
        assert run(Tensor(data).shard(D, 1).realize()).tolist() == (data + 1).max(1).tolist()


def test_values_of_no_width_are_copied_and_split():
    t = Tensor(np.array([0, 2, 1])).one_hot(3)
    want = np.eye(3)[[0, 2, 1]].tolist()
    split = Tensor(np.array([0, 2, 1])).shard(D, 0).one_hot(3)
    for moved in (t.to(D[1]), t.to(D), t.shard(D), t.shard(D, 1), split.shard(D), split.to(D[1])):
        assert moved.tolist() == want


@pytest.mark.parametrize("value", ["sign", "where", "index"])
def test_loops_under_a_value_of_no_width_are_not_merged(value: str):
    data = np.random.default_rng(1).integers(-7, 8, (6, 2, 3)).astype(np.int32)
    table = np.arange(50, 150, dtype=np.int32)
    total = Tensor(data).realize().repeat(2, 1, 1).sum((0, 1))  # a remainder in the index of one of two loops
    want = np.tile(data, (2, 1, 1)).sum((0, 1))
    if value == "sign":
        assert total.sign().tolist() == np.sign(want).tolist()
    elif value == "where":
        assert (total > 0).where(3, 4).tolist() == np.where(want > 0, 3, 4).tolist()
    else:
        assert Tensor(table).realize()[total % 100].tolist() == table[want % 100].tolist()


def test_a_lazy_reader_outside_of_a_state_that_is_lazy_too():
    """The capture computes the state first; the reader is of the time before the function, not a step of it."""
    s = Tensor(np.zeros(3, np.float32)).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        t = (s * 2).realize()
        s.assign(x)
        return t
    before, want = [], []
    for i in range(5):
        s += 1
        before.append(s + 3)
        want.append(10 * i + 4)
        f(Tensor(np.full(3, 10 * i + 10, np.float32)).realize())
    assert [b.tolist() for b in before] == [[w] * 3 for w in want]


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What ``work(0)``, ``work(1)``, ... give in threads that start together."""
    start, out = threading.Barrier(count), []

    def run(k: int) -> None:
        start.wait()
        out.append(work(k))
    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(out) == count
    return out


def test_a_store_that_several_threads_wait_for_runs_once():
    for _ in range(25):
        s = Tensor(np.zeros(64, np.float32)).realize()
        s += 1
        readers = [s + k for k in range(6)]
        assert at_once(6, lambda k: readers[k].numpy()[0] - k) == [1.0] * 6
        assert s.numpy()[0] == 1


def test_threads_draw_different_numbers():
    for seed in range(10):
        Tensor.manual_seed(seed)
        assert len({x.tobytes() for x in at_once(6, lambda k: Tensor.rand(8).numpy())}) == 6


def test_an_index_that_ends_the_range_of_the_sum_around_it() -> None:
    """Ranks inside of a selection: both loops have the same number, and only the outer one is selected from."""
    x = np.random.default_rng(0).integers(-5, 5, (10, 6)).astype(np.int32)
    sums = Tensor(x).sum(0)
    assert sums.topk(1, 0)[0].realize().tolist() == [x.sum(0).max()]
    assert sums.repeat(3).tolist() == np.tile(x.sum(0), 3).tolist()
