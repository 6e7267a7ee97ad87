"""Gathers on devices: index types, negative indices, and indices out of range, which read 0 and never touch memory."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.tensor import Tensor

WIDTHS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_)


@pytest.mark.parametrize("index_dtype", dtypes.ints, ids=str)
def test_fancy_indexing_index_dtypes(index_dtype: DType, dev: str) -> None:
    x = Tensor([10, 20, 30, 40])
    assert x[Tensor([1, 2, 3, 0], dtype=index_dtype)].tolist() == [20, 30, 40, 10]


@pytest.mark.parametrize("value_type", WIDTHS)
def test_gathers_of_every_width(value_type: type, dev: str, code: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2 if value_type is np.bool_ else 100, 50).astype(value_type)
    i = rng.integers(-50, 50, 203)
    for index in (i.astype(np.int8), i.astype(np.int32), i.astype(np.int64)):
        got = Tensor(x)[Tensor(index)].numpy()
        assert got.dtype == x.dtype and np.array_equal(got, x[i])


@pytest.mark.parametrize("index_dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_out_of_range_reads_zero(index_dtype: type, dev: str, code: str) -> None:
    info = np.iinfo(index_dtype)
    wanted = [0, 4, 5, -1, -5, -6, 100, -100, info.max, info.min, info.max - 1, 3]
    i = np.array([v for v in wanted if info.min <= v <= info.max], index_dtype)
    x = np.arange(1.0, 6.0, dtype=np.float32)
    want = [x[int(v)] if -5 <= int(v) < 5 else 0.0 for v in i]
    assert Tensor(x)[Tensor(i)].tolist() == want
    assert (Tensor(x) * 2)[Tensor(i)].tolist() == [2 * v for v in want]


def test_out_of_range_in_one_of_two_axes(dev: str, code: str) -> None:
    x = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
    i, j = np.array([0, 2, 3, -1, -4, 1, 2**31 - 1]), np.array([3, 4, 0, -4, 0, -5, 1])
    want = [x[a, b] if -3 <= a < 3 and -4 <= b < 4 else 0 for a, b in zip(i, j)]
    assert Tensor(x)[Tensor(i), Tensor(j)].tolist() == want
    assert Tensor(x)[Tensor(i.astype(np.int32))].tolist() == [x[a].tolist() if -3 <= a < 3 else [0] * 4 for a in i]


def test_gather_and_scatter_out_of_range(dev: str) -> None:
    x = Tensor([[1.0, 2.0, 3.0]])
    assert x.gather(1, Tensor([[2, 3, -1, 0]])).tolist() == [[3.0, 0.0, 0.0, 1.0]]
    assert Tensor.zeros(1, 3).scatter(1, Tensor([[1, 3, -1]]), Tensor([[7.0, 8.0, 9.0]])).tolist() == [[0.0, 7.0, 0.0]]


def test_an_index_that_is_computed(dev: str, code: str) -> None:
    i = Tensor(np.arange(64, dtype=np.int32))
    x = np.random.default_rng(2).standard_normal(64).astype(np.float32)
    assert np.array_equal(Tensor(x)[(i * 7 + 3) % 64].numpy(), x[(np.arange(64) * 7 + 3) % 64])
    assert np.array_equal(Tensor(x)[Tensor(x).argsort()].numpy(), np.sort(x))


def test_one_hot_of_narrow_types(dev: str) -> None:
    labels = np.array([3, 0, 255, 9], np.uint8)
    want = (labels[:, None] == np.arange(10)).astype(np.int32)
    assert np.array_equal(Tensor(labels).one_hot(10).numpy(), want)
    table = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    got = Tensor(table)[Tensor(labels)].numpy()
    assert np.array_equal(got, np.where((labels < 10)[:, None], table[np.minimum(labels, 9)], 0))


def test_indices_of_unknown_size_through_views(dev: str, code: str) -> None:
    """Quotients of an int64 index: nothing bounds it, so it cannot be made positive by adding something."""
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    i = np.array([2, 0, -1, 5, 1], np.int64)
    inside = (-3 <= i) & (i < 3)
    for moved, want in ((Tensor(x).roll(1, 0), np.roll(x, 1, 0)),
                        (Tensor(x).repeat(2, 1)[1:4], np.tile(x, (2, 1))[1:4]),
                        (Tensor(x).reshape(4, 3).flip(0)[:3], x.reshape(4, 3)[::-1][:3])):
        rows = want[np.where(inside, i, 0)]
        assert np.array_equal(moved[Tensor(i)].numpy(), np.where(inside[:, None], rows, 0))
