"""numpy and Python around tensors: copies, views, operands, numbers, containers."""
from __future__ import annotations

import array
import copy
import ctypes
import math
import operator
import pickle
import sys

import numpy as np
import pytest
import torch

from tinyhost import Tensor, dtypes
from tinyhost.dtype import _to_torch_dtype, storage_fmt

STORED = [dt for dt in dtypes.all if dt.fmt is not None]


def realized(data, dtype=None, device: str = "CPU") -> Tensor:
    return Tensor(data, device=device, dtype=dtype).contiguous().realize()


# *** in: data is copied when the tensor is made ***
@pytest.mark.parametrize("make", [
    lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, 1:], lambda a: np.asfortranarray(a)], ids=range(5))
@pytest.mark.parametrize("device", ["CPU", "PYTHON", "NPY"])
def test_later_changes_of_an_array_do_not_change_the_tensor(make, device: str) -> None:
    source = make(np.arange(6, dtype=np.float32).reshape(2, 3))
    want = source.copy()
    x = Tensor(source, device=device)
    y = x + 1 if device != "NPY" else x
    source[...] = -1
    np.testing.assert_array_equal(x.numpy(), want)
    np.testing.assert_array_equal(y.numpy(), want + (device != "NPY"))


def test_later_changes_of_other_memory_do_not_either() -> None:
    raw, scalar = bytearray(b"abcd"), np.array(3.0, np.float32)
    x, y, z = Tensor(raw), Tensor(memoryview(raw)), Tensor(scalar)
    raw[:] = b"xxxx"
    scalar[...] = 4
    assert x.tolist() == y.tolist() == [97, 98, 99, 100] and z.item() == 3
    constant = bytes([1, 2, 3])
    torch.from_dlpack(Tensor(constant, device="NPY"))[0] = 9
    assert constant == b"\1\2\3"
    words = array.array("h", [1, 2])
    t = Tensor(np.frombuffer(words, np.int16))
    words[0] = 9
    assert t.tolist() == [1, 2]
    source = torch.ones(2)
    u = Tensor(source)
    source[0] = 5
    assert u.tolist() == [1, 1]


def test_operands_and_assigned_arrays_are_copied() -> None:
    a = np.ones(2, np.float32)
    x = realized([1.0, 2.0])
    y = x + a
    x[0:1] = (b := np.array([7.0], np.float32))
    a[:], b[:] = 100, 100
    assert y.tolist() == [2, 3] and x.tolist() == [7, 2]


def test_from_blob_shares() -> None:
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    x = Tensor.from_blob(ctypes.addressof(memory), (2, 2), dtype=dtypes.float32, device="CPU")
    memory[0] = 9
    assert x.tolist() == [[9, 2], [3, 4]]
    x += 1
    x.realize()
    assert list(memory) == [10, 3, 4, 5]


# *** out ***
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_numpy_is_a_copy(dtype) -> None:
    x = realized([[0, 1], [2, 3]], dtype)
    a = x.numpy()
    assert a.flags.writeable and a.flags.c_contiguous and a.dtype == np.dtype(dtype.fmt or "f")
    a[...] = 1
    assert x.tolist() == ([[0, 1], [2, 3]] if dtype is not dtypes.bool else [[False, True], [True, True]])


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_data_shows_the_memory(dtype) -> None:
    x = realized([[0, 1], [2, 3]], dtype)
    view = x.data()
    assert view.readonly and view.nbytes == 4 * dtype.itemsize
    if dtype.fmt is None:
        assert view.format == "B" and bytes(view) == bytes(x.bitcast({1: "uint8", 2: "uint16"}[dtype.itemsize]).data())
    else:
        assert np.dtype(view.format) == np.dtype(dtype.fmt) and view.shape == (2, 2)
        assert np.asarray(view).tolist() == x.tolist()
    torch.from_dlpack(x).view(torch.uint8)[...] = 0
    assert not any(bytes(view)) and np.dtype(storage_fmt(dtype)).itemsize == dtype.itemsize
    with pytest.raises(TypeError):
        view[0, 0] = 1


def test_data_of_other_shapes() -> None:
    assert realized(5).data().tolist() == 5 and realized(5).data().shape == ()
    assert Tensor.empty(0, 2, device="CPU").data().shape == (0, 2)
    assert realized([[1, 2], [3, 4]]).T.data().tolist() == [[1, 3], [2, 4]]
    assert Tensor(2.5).data().tolist() == 2.5 and realized([1, 2, 3])[1:].data().tolist() == [2, 3]


def test_the_buffer_protocol_is_spelled_data() -> None:
    x = realized([1, 2])
    if sys.version_info >= (3, 12):
        assert memoryview(x.data()).tolist() == [1, 2]
    else:
        with pytest.raises(TypeError):
            memoryview(x)
    assert bytes(x.data()) == b"\1\0\0\0\2\0\0\0"


def test_array_protocol() -> None:
    x = realized([1.0, 2.0])
    a = np.asarray(x)
    a[0] = 9
    assert x.tolist() == [1, 2] and np.array(x, dtype=np.int8).tolist() == [1, 2]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64 and np.array([x, x]).shape == (2, 2)
    view = np.asarray(x, copy=False)
    torch.from_dlpack(x)[1] = 7
    assert view.tolist() == [1, 7] and not view.flags.writeable
    assert np.asarray(x, copy=True).flags.writeable
    for bad in (lambda: np.asarray(x, dtype=np.int32, copy=False), lambda: np.asarray(x[::-1], copy=False),
                lambda: np.asarray(x.bfloat16(), copy=False), lambda: np.asarray(Tensor(1.0), copy=False)):
        with pytest.raises(ValueError, match="without a copy"):
            bad()
    assert np.asarray(x.bfloat16()).dtype == np.float32


# *** numpy as the other operand ***
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.eq,
          operator.ne, operator.floordiv, operator.mod, operator.pow]


@pytest.mark.parametrize("f", BINARY, ids=lambda f: f.__name__)
def test_an_array_on_either_side_makes_a_tensor(f) -> None:
    a, b = np.array([1.0, 2.0, 3.0], np.float32), np.array([3.0, 2.0, 1.0], np.float32)
    x, y = realized(a), realized(b)
    for got in (f(x, b), f(a, y), f(x, y)):
        assert isinstance(got, Tensor)
        np.testing.assert_allclose(got.numpy(), f(a, b), rtol=1e-6)


def test_matmul_and_bits_with_arrays() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (a @ realized(a.T)).tolist() == (a @ a.T).tolist() == (realized(a) @ a.T).tolist()
    i = np.array([6, 3])
    for f in (operator.and_, operator.or_, operator.xor):
        assert f(i, realized(i)).tolist() == f(i, i).tolist()


def test_ufuncs_make_tensors_or_say_why_not() -> None:
    x = realized([1.0, 4.0])
    for name in ("sqrt", "exp", "log", "sin", "tanh", "floor", "negative", "absolute", "square", "isnan", "rint"):
        got = getattr(np, name)(x)
        assert isinstance(got, Tensor)
        np.testing.assert_allclose(got.numpy(), getattr(np, name)(x.numpy()), rtol=1e-6)
    for name in ("add", "maximum", "power", "less", "arctan2" if hasattr(Tensor, "arctan2") else "divide"):
        assert isinstance(getattr(np, name)(np.array([1.0, 2.0], np.float32), x), Tensor)
    with pytest.raises(TypeError, match="numpy.add with out has no counterpart for a Tensor"):
        np.add(np.zeros(2, np.float32), x, out=np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="numpy.add.reduce has no counterpart"):
        np.add.reduce(x)
    with pytest.raises(TypeError, match="numpy.gcd has no counterpart"):
        np.gcd(realized([4]), 2)
    a = np.zeros(2, np.float32)
    with pytest.raises(TypeError, match="out"):
        a += x


def test_other_functions_of_numpy_work_on_copies() -> None:
    x, y = realized([[1.0, 2.0], [3.0, 4.0]]), realized([[5.0, 6.0]])
    assert np.mean(x) == 2.5 and np.sum(x, axis=0).tolist() == [4, 6] and np.shape(x) == (2, 2) and np.ndim(x) == 2
    assert np.concatenate([x, y]).tolist() == [[1, 2], [3, 4], [5, 6]] and np.allclose(x, x.numpy())
    assert isinstance(np.linalg.inv(x), np.ndarray) and np.where(x > 2, x, 0).tolist() == [[0, 0], [3, 4]]
    for call in (lambda: np.copyto(x, 0), lambda: np.fill_diagonal(x, 0), lambda: np.sum(y, axis=0, out=x[0])):
        with pytest.raises(TypeError, match="would write into a copy of a Tensor"):
            call()


@pytest.mark.parametrize("scalar", [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8])
def test_numpy_scalars_are_weak_as_python_ones(scalar) -> None:
    python = scalar(2).item()
    for dtype in (dtypes.half, dtypes.float32, dtypes.bfloat16, dtypes.int8, dtypes.uint64):
        x = realized([1, 2, 3], dtype)
        for f in (operator.add, operator.mul, operator.sub, operator.lt):
            assert f(x, scalar(2)).dtype is f(x, python).dtype and f(x, scalar(2)).tolist() == f(x, python).tolist()
            assert f(scalar(2), x).dtype is f(python, x).dtype and f(scalar(2), x).tolist() == f(python, x).tolist()
    assert (x > 0).where(scalar(1), x).dtype is (x > 0).where(scalar(1).item(), x).dtype


def test_numpy_scalars_that_are_no_operands() -> None:
    with pytest.raises(TypeError, match="a numpy scalar of type complex64 is no operand"):
        realized([1.0]) + np.complex64(1)
    assert (realized([True, False]) & np.bool_(True)).tolist() == [True, False]


# *** Python numbers and containers ***
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_item_and_tolist(dtype) -> None:
    kind = bool if dtype is dtypes.bool else float if dtype.is_float else int
    x = realized([[1, 0], [1, 1]], dtype)
    assert x.tolist() == [[kind(1), kind(0)], [kind(1), kind(1)]] and type(x[0, 0].item()) is kind
    if not dtype.is_float:
        edge = Tensor([dtype.min, dtype.max], dtype=dtype, device="CPU")
        assert edge.tolist() == [dtype.min, dtype.max] and edge[1].item() == dtype.max


def test_numbers() -> None:
    assert int(realized([[3.9]])) == 3 and float(realized(2)) == 2.0 and complex(realized(1.5)) == 1.5 + 0j
    assert int(realized(True)) == 1 and range(5)[realized(2)] == 2 and math.sqrt(realized(4.0)) == 2
    for kind in (int, float, complex):
        with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) needs a tensor of one element, got shape \(2,\)"):
            kind(realized([1, 2]))
    for bad in (realized([1]), realized(1.0), realized(True)):
        with pytest.raises(TypeError, match="only an integer tensor can be an index"):
            operator.index(bad)
    with pytest.raises(ValueError, match="NaN"):
        int(realized(math.nan))


def test_containers() -> None:
    x = realized([[1, 2], [3, 4]])
    assert len(x) == 2 and [r.tolist() for r in x] == [[1, 2], [3, 4]] and 3 in x and 7 not in x
    assert np.array([3, 4]) in x and realized([9, 9]) not in x and len(realized([[]])) == 1
    a, b = x
    assert a.tolist() == [1, 2] and [*map(int, b)] == [3, 4] and not list(Tensor.empty(0, 3, device="CPU"))
    for f in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            f(realized(1))


def test_size_is_a_number_and_a_method() -> None:
    x = realized([[1, 2, 3], [4, 5, 6]])
    assert x.size == 6 and x.size() == (2, 3) and x.size(1) == 3 and x.size(-1) == 3 and x.size + 1 == 7
    assert realized(1).size == 1 and realized([]).size == 0


# *** copies and pickles ***
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_pickles_and_copies_of_every_dtype(dtype) -> None:
    x = realized([[0, 1], [1, 1]], dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), pickle.loads(pickle.dumps(x.T)).T):
        assert y.dtype is dtype and y.shape == (2, 2) and y.tolist() == x.tolist() and y.device == x.device
    copy.copy(x).assign(x.zeros_like())
    assert not any(sum(x.tolist(), []))


def test_pickles_of_values_views_and_imports() -> None:
    x = realized([1.0, 2.0, 3.0])
    for make in (lambda: x + 1, lambda: x[1:], lambda: x.flip(0), lambda: Tensor(3), lambda: Tensor([1, 2]),
                 lambda: Tensor.empty(0, 2, device="CPU"), lambda: Tensor.from_dlpack(torch.ones(3))):
        y = make()
        for got in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y)):
            assert got.tolist() == y.tolist() and got.dtype is y.dtype
    source = torch.zeros(2)
    kept = copy.deepcopy(Tensor.from_dlpack(source, device="CPU")).realize()
    thawed = pickle.loads(pickle.dumps(Tensor.from_dlpack(source, device="CPU")))
    source[0] = 1
    assert kept.tolist() == [0, 0] and thawed.tolist() == [0, 0]


def test_numbers_that_a_dtype_does_not_hold_are_infinite() -> None:
    assert Tensor([1e39, -1e39, 1.0], dtype=dtypes.float32).tolist() == [math.inf, -math.inf, 1.0]
    assert Tensor([1e5], dtype=dtypes.half).tolist() == [math.inf]


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_tensors_of_torch_are_copied_with_their_dtype(dtype) -> None:
    source = torch.tensor([[0, 1, 2], [3, 4, 1]]).to(_to_torch_dtype(dtype))
    for given in (source, source.T, source[:, ::2], source[0, 0], source[:0]):
        x = Tensor(given, device="CPU")
        want = given.to(torch.float64).tolist()
        assert x.dtype is dtype and x.shape == given.shape and x.tolist() == want
    x = Tensor(source, device="CPU", dtype=dtypes.float32)
    before = source.to(torch.float64).tolist()
    source.view(torch.uint8)[...] = 0
    assert x.tolist() == before and x.dtype is dtypes.float32


def test_tensors_of_torch_that_it_does_not_share() -> None:
    with pytest.raises(RuntimeError, match="requires grad"):
        Tensor(torch.ones(2, requires_grad=True))
