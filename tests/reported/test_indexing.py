"""Indexing and writes in place as numpy has them, and the time at which lazy readers see a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, dtypes

pytestmark = pytest.mark.usefixtures("device")

BAD: list[tuple[Any, type[Exception]]] = [
    ([3], IndexError),
    ([-4], IndexError),
    (3, IndexError),
    (1.5, IndexError),
    ("a", IndexError),
    (3 + 1j, IndexError),
    ((0, 0, 0), IndexError),
    ({1}, IndexError),
    ([[0], [0, 1]], ValueError),
]


@pytest.mark.parametrize("index", [[2], [0, -1], [[0, 1], [2, 2]], [], np.array([1, 1])], ids=repr)
def test_lists_as_index(index: Any) -> None:
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    x, key = Tensor(a), np.array(index, dtype=np.int64) if len(index) == 0 else index
    for make in (lambda i: (slice(None), i), lambda i: (i, slice(None)), lambda i: (i, 0), lambda i: (i, i)):
        np.testing.assert_array_equal(x[make(index)].numpy(), a[make(key)])


@pytest.mark.parametrize("index, kind", BAD, ids=lambda v: repr(v)[:20])
def test_bad_indices_are_index_or_type_errors(index: Any, kind: Any) -> None:
    x = Tensor.ones(3, 3)
    with pytest.raises(kind):
        x[index].tolist()
    with pytest.raises(kind):
        x[:, index].tolist() if not isinstance(index, tuple) else x[index].tolist()
    with pytest.raises(kind):
        x[index] = 1.0


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_index_tensors_out_of_range_read_zero(dtype: str) -> None:
    wrong = [4, 3, 2] if dtype.startswith("u") else [4, -4, -1]
    right = [0.0, 0.0, 3.0]
    neighbours = [Tensor([7.0] * 3).realize() for _ in range(3)]
    x = Tensor([1.0, 2.0, 3.0]).realize()
    for _ in range(3):
        assert x[Tensor(wrong, dtype=dtype)].tolist() == right
        assert (x.reshape(3, 1) * 2)[Tensor(wrong, dtype=dtype), 0].tolist() == [0, 0, 6]
    assert neighbours[0].tolist() == [7] * 3


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "int64"])
def test_large_indices_of_narrow_dtypes(dtype: str) -> None:
    places = [128, 199, 255, 0]
    for x in (Tensor.arange(300), Tensor.arange(600).reshape(300, 2), Tensor.arange(300).realize()):
        got = x[Tensor(places, dtype=dtype)]
        np.testing.assert_array_equal(got.numpy(), x.numpy()[places])
    y = Tensor.zeros(300, dtype=dtypes.int32).contiguous().realize()
    y[Tensor(places, dtype=dtype)] = Tensor([1, 2, 3, 4], dtype=dtypes.int32)
    assert [y.tolist()[p] for p in places] == [1, 2, 3, 4] and y.sum().item() == 10


STARTS: dict[str, Callable[[np.ndarray[Any, Any]], Tensor]] = {
    "realized": lambda a: Tensor(a).realize(),
    "stored": lambda a: Tensor(a).contiguous().realize(),
    "lazy": lambda a: Tensor(a),
    "computed": lambda a: Tensor(a) + 0,
    "clone": lambda a: Tensor(a).clone(),
}
READERS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 10,
    "bitcast": lambda x: x.bitcast(dtypes.uint32) * 2 if isinstance(x, Tensor) else x.view(np.uint32) * 2,
    "sum": lambda x: x.sum(0),
    "transpose": lambda x: x.T * 1,
    "part": lambda x: x[1:] * 2,
    "two steps": lambda x: (x * 2).sum(1) + x[:, 0],
}
WRITES: dict[str, Callable[[Any], None]] = {
    "slice": lambda x: x.__setitem__(slice(0, 1), 9),
    "column": lambda x: x.__setitem__((slice(None), slice(1, 3)), 2),
    "all": lambda x: x.__setitem__(slice(None), 5),
    "in place": lambda x: x.__iadd__(3),
    "element": lambda x: x.__setitem__((1, 1), 0),
    "strided": lambda x: x.__setitem__((slice(None, None, 2), slice(None, None, -2)), 4),
    "rows": lambda x: x.__setitem__(([0, 2],), 8),
}


@pytest.mark.parametrize("order", ["reader first", "base first", "together"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("reader", READERS)
def test_lazy_readers_see_the_value_of_their_time(reader: str, write: str, order: str) -> None:
    a = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
    for start in STARTS:
        n, x = a.copy(), STARTS[start](a.copy())
        want, r = np.array(READERS[reader](n)), READERS[reader](x)
        WRITES[write](n)
        WRITES[write](x)
        if order == "together":
            Tensor.realize(r, x)
        pair = [(r, want), (x, n)]
        for t, w in pair if order != "base first" else reversed(pair):
            np.testing.assert_array_equal(t.numpy(), w, err_msg=start)


@pytest.mark.parametrize("start", STARTS)
def test_assign_to_a_view(start: str) -> None:
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    views: list[Callable[[Any], Any]] = [
        lambda x: x[:, 1:2],
        lambda x: x[1],
        lambda x: x.T[2:],
        lambda x: x[::2, ::-1],
        lambda x: x[:, None, 3],
    ]
    for view in views:
        n, x = a.copy(), STARTS[start](a.copy())
        value = -view(n).copy() - 1
        view(n)[...] = value
        view(x).assign(Tensor(np.ascontiguousarray(value)))
        np.testing.assert_array_equal(x.numpy(), n)


MIXED: list[tuple[Any, ...]] = [
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, 1], [1, 2]),
    ([0, 1], [1, 2], slice(None)),
    ([0, 1], 1, slice(None)),
    (slice(None), slice(0, 2), [3, 0]),
    ([[0], [1]], slice(None), [0, 2]),
    (None, [1, 0], slice(None), [1, 2]),
    (Ellipsis, [1, 3]),
    ([1, 0], Ellipsis, [0]),
    (slice(None, None, -1), [0, 2], slice(1, 3)),
]


@pytest.mark.parametrize("index", MIXED, ids=repr)
def test_slices_and_index_tensors_mix(index: tuple[Any, ...]) -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for convert in (lambda i: i, lambda i: Tensor(i, dtype=dtypes.int32) if isinstance(i, list) else i):
        key = tuple(convert(i) for i in index)
        n, x = a.copy(), Tensor(a).contiguous().realize()
        np.testing.assert_array_equal(x[key].numpy(), n[index])
        value = -np.arange(n[index].size, dtype=np.float32).reshape(n[index].shape) - 1
        n[index] = value
        x[key] = Tensor(value)
        if np.unique(np.arange(24).reshape(2, 3, 4)[index]).size == value.size:
            np.testing.assert_array_equal(x.numpy(), n)


@pytest.mark.parametrize(
    "rows",
    [slice(5, 1, -2), slice(None, None, -1), slice(4, None, -3), slice(1, 5, 2), slice(2, 2), slice(0, 4, -1)],
    ids=repr,
)
@pytest.mark.parametrize("columns", [slice(5, 0, -3), slice(None), slice(-1, -4, -1), 2], ids=repr)
def test_writes_with_steps(rows: slice, columns: Any) -> None:
    for value in (1.0, None):
        n = np.arange(36, dtype=np.float32).reshape(6, 6)
        x = Tensor(n.copy()).contiguous().realize()
        np.testing.assert_array_equal(x[rows, columns].numpy(), n[rows, columns])
        filled = (
            value
            if value is not None
            else -np.arange(n[rows, columns].size, dtype=np.float32).reshape(n[rows, columns].shape)
        )
        n[rows, columns] = filled
        x[rows, columns] = filled
        np.testing.assert_array_equal(x.numpy(), n)


def test_writes_of_what_reads_the_same_storage() -> None:
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    sources: list[Callable[[Any], Any]] = [
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.T[::-1] + 1,
        lambda x: x @ x,
        lambda x: x + x.sum(0),
    ]
    for source in sources:
        x, want = Tensor(a.copy()).contiguous().realize(), source(a).copy()
        x.assign(source(x)).realize()
        np.testing.assert_array_equal(x.numpy(), want)
        y = Tensor(a.copy()).contiguous().realize()
        n = a.copy()
        n[1:] = source(n)[:-1].copy()
        y[1:] = source(y)[:-1]
        np.testing.assert_array_equal(y.numpy(), n)


def test_state_that_is_updated_together() -> None:
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]):
        m, v = (Tensor([0.0]).contiguous().realize() for _ in range(2))
        g = Tensor([2.0]).realize()
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.99 * v + 0.01 * g * g)
        p = m / (v.sqrt() + 1e-8)
        for i in order:
            (m, v, p)[i].realize()
            np.testing.assert_allclose(v.item(), 0.04, rtol=1e-6)
        np.testing.assert_allclose([m.item(), v.item(), p.item()], [0.2, 0.04, 1.0], rtol=1e-5)
