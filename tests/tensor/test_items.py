"""Reading and writing items, against numpy; views see writes, lazily and realized."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops

from .evaluator import evaluate

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


def tensor(a: Any) -> Tensor:
    return Tensor(a, device="NPY")


READS = [
    1, -1, slice(None), slice(1, None), slice(None, -1), slice(0, 3, 2), slice(None, None, -1), slice(2, 0, -1),
    slice(5, 9),
    (1, 2), (1, 2, 3), (slice(None), 1), (..., 1), (1, ..., 2), None, (None, 1, None), (slice(None, None, 2),) * 3,
    (slice(None), slice(3, 0, -2)), (0, slice(None), slice(4, None, -3)), (slice(1, 1),), (..., slice(None, None, -2)),
    np.int64(1), (slice(-2, None), slice(-3, -1)), [0, 2], (slice(None), [0, -1]), ([0, 1], [1, 2]),
    ([[0], [1]], [1, 2]),
    (slice(None), [0, 1], [1, 2]), ([0, 1], slice(None), [1, 2]), (np.array([2, 0]), slice(1, 3)),
]


@pytest.mark.parametrize("index", READS, ids=repr)
def test_read_is_numpy(index: Any) -> None:
    want = X[index]
    got = tensor(X)[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(value(got), want)


def test_index_tensors() -> None:
    x = tensor(X)
    np.testing.assert_array_equal(value(x[tensor([2, 0, -1])]), X[[2, 0, -1]])
    np.testing.assert_array_equal(value(x[tensor([0, 1]), :, tensor([[4], [1]])]), X[[0, 1], :, [[4], [1]]])
    assert x[0, :, tensor([1, 2, 3])].shape == (4, 3)  # an int is a view first, as in torch


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_index_dtypes(dtype: str) -> None:
    big = np.arange(300, dtype=np.float32)
    index = np.array([0, 100, 127, 5], dtype=dtype)
    np.testing.assert_array_equal(value(tensor(big)[tensor(index)]), big[index])


def test_out_of_range_reads_zero() -> None:
    x = tensor(X[:, 0, 0])
    np.testing.assert_array_equal(value(x[tensor([0, 3, -4, 100, -1])]), [0, 0, 0, 0, X[2, 0, 0]])
    np.testing.assert_array_equal(value((x + 1)[tensor([3, 1])]), [0, X[1, 0, 0] + 1])


def test_read_errors() -> None:
    x = tensor(X)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 of size 3"):
        x[3]
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 0"):
        x[-4]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 of size 4"):
        x[:, [0, 7]]
    with pytest.raises(IndexError, match="too many indices: 4 for shape"):
        x[0, 0, 0, 0]
    with pytest.raises(IndexError, match="single ellipsis"):
        x[..., ...]
    with pytest.raises(IndexError, match="masked_select"):
        x[x > 1]
    with pytest.raises(IndexError, match="str 'a' is no index"):
        x["a"]
    with pytest.raises(ValueError, match="step cannot be 0"):
        x[::0]
    with pytest.raises(DTypeError, match="an index is an integer tensor, got dtypes.float"):
        x[tensor([1.0])]


WRITES: list[tuple[Any, Any]] = [
    (1, 7.0), (slice(1, None), 0.0), ((..., 2), 3.0), ((slice(None), 1), np.arange(5, dtype=np.float32)),
    ((slice(None, None, -1),), X * 2), ((slice(0, 3, 2),), 5.0), ((slice(None), slice(3, 0, -2)), 1.5),
    ((1, 2, 3), 9.0),
    ([0, 2], 4.0), ((slice(None), [3, 1]), X[:, :2]), (([0, 1], [1, 2]), np.arange(10, dtype=np.float32).reshape(2, 5)),
    ((0, None, slice(1, 3)), np.ones((1, 2, 5), np.float32)), (slice(1, 1), 3.0),
]


@pytest.mark.parametrize("stored", [False, True], ids=["lazy", "stored"])
@pytest.mark.parametrize("index, new", WRITES, ids=lambda w: repr(w)[:30])
def test_write_is_numpy(index: Any, new: Any, stored: bool) -> None:
    want = X.copy()
    want[index] = new
    x = tensor(X).clone() if stored else tensor(X) + 0
    flat = x.reshape(12, 5)
    x[index] = new if isinstance(new, float) else tensor(new)
    np.testing.assert_array_equal(value(x), want)
    np.testing.assert_array_equal(value(flat), want.reshape(12, 5))


def test_write_through_a_view() -> None:
    for x in (tensor(X).clone(), tensor(X) + 0):
        want = X.copy()
        view = x[1:]
        view[0, 1] = 100.0
        want[1:][0, 1] = 100.0
        np.testing.assert_array_equal(value(view), want[1:])
        np.testing.assert_array_equal(value(x), want)
        view[:, 2] += 1.0
        want[1:][:, 2] += 1.0
        np.testing.assert_array_equal(value(x), want)
        view[[1]] = 0.0
        want[1:][[1]] = 0.0
        np.testing.assert_array_equal(value(x), want)


def test_write_in_place_keeps_the_storage() -> None:
    x = Tensor.empty(3, 4, device="NPY")
    buffer = x.uop.buf_uop
    x[1:, 2] = 5.0
    x += 1.0
    assert x.uop.buf_uop is buffer and x.uop.op is Ops.AFTER


def test_overlapping_write_reads_the_old_values() -> None:
    x = tensor(X[0, 0]).clone()
    x[1:] = x[:-1]
    np.testing.assert_array_equal(value(x), [0, 0, 1, 2, 3])


def test_write_gradient() -> None:
    for x in (tensor([1.0, 2, 3, 4]), tensor([1.0, 2, 3, 4]).clone()):
        v = tensor([5.0, 6])
        start = x.uop
        y = x * 1 if start.op is not Ops.AFTER else x
        y[1:3] = v * 2
        gx, gv = (y * tensor([1.0, 10, 100, 1000])).sum()._gradients([start, v.uop], None)[start], None
        grads = (y * tensor([1.0, 10, 100, 1000])).sum()._gradients([start, v.uop], None)
        np.testing.assert_array_equal(evaluate(gx), [1, 0, 0, 1000])
        np.testing.assert_array_equal(evaluate(grads[v.uop]), [20, 200])
        assert gv is None


def test_last_write_stays() -> None:
    x = tensor(np.zeros(4, np.float32)).clone()
    x[tensor([1, 1, 9, 2])] = tensor([5.0, 6, 7, 8])
    np.testing.assert_array_equal(value(x), [0, 6, 8, 0])


def test_write_errors() -> None:
    x = Tensor.empty(3, 4, device="NPY")
    with pytest.raises(DTypeError, match="setitem dtype mismatch dtypes.float != dtypes.int"):
        x[0] = tensor(np.arange(4, dtype=np.int32))
    with pytest.raises(ShapeError, match=r"setitem shape mismatch \(4,\) != \(3,\)"):
        x[0] = tensor([1.0, 2, 3])
    with pytest.raises(RuntimeError, match="assign device mismatch NPY != PYTHON"):
        x.assign(Tensor.empty(3, 4, device="PYTHON"))
    with pytest.raises(DTypeError, match="assign dtype mismatch"):
        Tensor.empty(2, device="NPY", dtype="int32").assign(1.5)


def test_weak_values_fit_their_kind() -> None:
    x = Tensor.empty(2, device="NPY", dtype=dtypes.half)
    x.assign(1)
    np.testing.assert_array_equal(value(x), [1, 1])
    x[0] = 2.5
    np.testing.assert_array_equal(value(x), [2.5, 1])
    n = Tensor.empty(2, device="NPY", dtype=dtypes.uint8)
    n[:] = 7
    np.testing.assert_array_equal(value(n), [7, 7])


def test_iteration_and_length() -> None:
    x = tensor(X)
    assert len(x) == 3 and [r.shape for r in x] == [(4, 5)] * 3
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(Tensor(3))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        list(Tensor(3))
