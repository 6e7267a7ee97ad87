"""Writes in place: views see them, lazy readers see the value of their own time, whatever is realized when."""
from __future__ import annotations

import numpy as np
import pytest

from tests.engine.inplace_programs import run
from tinyhost import GlobalCounters, Tensor


def ints(*values: int) -> Tensor:
    return Tensor(np.array(values, np.int32))


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed: int):
    run(seed, 12)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(12))
def test_many_random_programs(block: int):
    for seed in range(1000 + 500 * block, 1500 + 500 * block):
        run(seed, 8 + seed % 30)


@pytest.mark.parametrize("realized", [True, False])
def test_a_lazy_reader_sees_its_own_time(realized: bool):
    x = ints(1, 2, 3)
    if realized:
        x.realize()
    readers = []
    for i in range(5):
        readers.append(x * 10)
        x += 1
        if i == 2:
            x.realize()
    assert x.tolist() == [6, 7, 8]
    for k in (4, 3, 2, 1, 0):
        assert readers[k].tolist() == [10 * (k + 1), 10 * (k + 2), 10 * (k + 3)]


def test_a_lazy_copy_sees_its_own_time():
    x = ints(1, 2).realize()
    copy, view = x.clone(), x[1:]
    x.assign(ints(5, 6)).realize()
    assert copy.tolist() == [1, 2] and view.tolist() == [6]


def test_a_reader_of_a_reader():
    x = ints(1, 2).realize()
    a = x + 1
    b = a.sum() * a
    del a
    x.assign(x * 0).realize()
    assert b.tolist() == [10, 15]


def test_a_reader_between_two_writes():
    x = ints(0, 0).realize()
    x.assign(ints(5, 5))
    middle = x + 1
    x.assign(ints(7, 7))
    assert x.realize().tolist() == [7, 7] and middle.tolist() == [6, 6]


def test_old_and_new_value_in_one_expression():
    x = ints(1, 2, 3).realize()
    old = x * 2
    x += 1
    mixed = old + x
    del old
    assert mixed.tolist() == [4, 7, 10] and x.tolist() == [2, 3, 4]


def test_swap():
    x, y = ints(1, 2).realize(), ints(3, 4).realize()
    kept = x + 0
    x.assign(y)
    y.assign(kept)
    del kept
    Tensor.realize(x, y)
    assert x.tolist() == [3, 4] and y.tolist() == [1, 2]


def test_rotation_of_sums():
    x, y, z = ints(1).realize(), ints(10).realize(), ints(100).realize()
    a, b, c = x + y, y + z, z + x
    x.assign(a), y.assign(b), z.assign(c)
    del a, b, c
    assert (y.tolist(), x.tolist(), z.tolist()) == ([110], [11], [101])


@pytest.mark.parametrize("n", [1, 50, 300])
def test_chains_of_additions(n: int):
    x, y = ints(0, 1).realize(), ints(0, 1)
    for i in range(n):
        x += i
        y += i
    assert x.tolist() == y.tolist() == [n * (n - 1) // 2, n * (n - 1) // 2 + 1]


def test_views_alias_in_every_order():
    x = Tensor(np.arange(12, dtype=np.int32).reshape(3, 4)).realize()
    row, column, turned, flat, back = x[1], x[:, 2], x.transpose(), x.reshape(12), x.flip(1)
    row.assign(row * 0)
    column += 100
    flat[0] = -1
    want = np.arange(12).reshape(3, 4)
    want[1] = 0
    want[:, 2] += 100
    want[0, 0] = -1
    assert back.tolist() == want[:, ::-1].tolist() and turned.tolist() == want.T.tolist()
    assert row.tolist() == want[1].tolist()
    assert x.tolist() == want.tolist() and column.tolist() == want[:, 2].tolist()


def test_overlapping_writes():
    x = ints(0, 1, 2, 3, 4, 5).realize()
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[:-1] = x[1:]
    assert x.tolist() == [0, 1, 2, 3, 4, 4]
    x.assign(x.flip(0))
    assert x.tolist() == [4, 4, 3, 2, 1, 0]
    m = Tensor(np.arange(9, dtype=np.int32).reshape(3, 3)).realize()
    m.assign(m.transpose())
    assert m.tolist() == np.arange(9).reshape(3, 3).T.tolist()


def test_equal_expressions_do_not_share_writes():
    x = ints(1, 2).realize()
    a, b = x + 1, x + 1
    Tensor.realize(a, b)
    a += 10
    a.realize()
    assert b.tolist() == [2, 3] and a.tolist() == [12, 13]


def test_a_value_and_its_view_share_memory_however_they_are_realized():
    for first in range(3):
        x = ints(1, 2, 3, 4) * 2
        v = x.reshape(2, 2)
        [x, v, x + v.reshape(4)][first].realize()
        v += 1
        assert x.tolist() == [3, 5, 7, 9]


def test_writing_a_copy_from_the_host_needs_no_temporary():
    x = Tensor.zeros(1000, dtype="int32").realize()
    before = GlobalCounters.kernel_count
    x.assign(Tensor(np.arange(1000, dtype=np.int32))).realize()
    assert GlobalCounters.kernel_count - before == 1 and x.tolist() == list(range(1000))


def test_a_store_that_is_never_asked_for_does_not_run():
    x = Tensor.zeros(4).realize()
    before = GlobalCounters.kernel_count
    y = x.clone()
    y += 1
    del y
    assert x.tolist() == [0] * 4 and GlobalCounters.kernel_count == before


def test_detach_and_gradient_of_an_overwritten_leaf():
    w = Tensor(np.array([2.0, 3.0], np.float32)).is_param_()
    (w * w).sum().backward()
    w.assign(w.detach() - 1)
    assert w.tolist() == [1, 2] and w.grad.tolist() == [4, 6]
