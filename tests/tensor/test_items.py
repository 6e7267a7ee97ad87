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
    np.int64(1), np.array(2), range(2), (slice(None), range(0, 4, 3)), True, False, (slice(None), True), (None, False),
    [True, False, True], (slice(None), [True, False, True, True]), (X[:, :, 0] > 20, slice(1, 3)), X > 30, [],
    (slice(None), np.zeros((2, 0), np.int32)), (X[:, 0, 0] > 10, 1),
    (slice(-2, None), slice(-3, -1)), [0, 2], (slice(None), [0, -1]), ([0, 1], [1, 2]),
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


def test_places_of_results_are_those_of_torch() -> None:
    """Integers and 0-d tensors are applied first; numpy counts integers among the index arrays instead."""
    import torch
    i, one = torch.tensor([0, 2]), torch.tensor(1)
    t, j, first = torch.from_numpy(X), tensor(i.numpy()), tensor(np.array(1, np.int32))
    x = tensor(X)
    for got, want in ((x[0, :, j], t[0, :, i]), (x[j, 0, j], t[i, 0, i]), (x[:, j, 0], t[:, i, 0]),
                      (x[first, :, j], t[one, :, i]), (x[..., first], t[..., one]), (x[j, first], t[i, one]),
                      (x[[first, 0]], t[torch.tensor([1, 0])])):
        np.testing.assert_array_equal(value(got), want.numpy())


def test_masks_that_are_computed() -> None:
    a = X[0]
    x = Tensor(a)
    np.testing.assert_array_equal(x[x > 7].numpy(), a[a > 7])
    np.testing.assert_array_equal(x[x[:, 0] > 5, 1:].numpy(), a[a[:, 0] > 5, 1:])
    np.testing.assert_array_equal(x[:, x[0] > 2].numpy(), a[:, a[0] > 2])
    np.testing.assert_array_equal(x[Tensor(True)].numpy(), a[True])
    assert x[x > 99].shape == (0,) and x[:, Tensor(False)].shape == (4, 0, 5)
    [g] = (x[x > 7] * 2).sum().gradient(x)
    np.testing.assert_array_equal(g.numpy(), (a > 7) * 2)


def test_write_with_masks() -> None:
    for mask in (X > 20, (X > 20)[:, :, 0], np.array([True, False, True])):
        for given in (tensor(mask), mask, mask.tolist()):
            want, x = X.copy(), tensor(X).clone()
            want[mask] = -1
            x[given] = -1.0
            np.testing.assert_array_equal(value(x), want)
    want, x = X.copy(), Tensor(X).clone()
    many = np.arange(int((X > 20).sum()), dtype=np.float32)
    want[X > 20] = many
    x[x > 20] = Tensor(many)
    np.testing.assert_array_equal(x.numpy(), want)
    want[:, [True, False, True, False], 1:] = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    x[:, Tensor([True, False, True, False]), 1:] = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    np.testing.assert_array_equal(x.numpy(), want)
    x[x > 20] += 1.0
    want[want > 20] += 1
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("write", [
    lambda x: x.__setitem__(slice(1, None), x[:-1]), lambda x: x.__setitem__(slice(None), x[::-1]),
    lambda x: x.__setitem__(slice(None, None, 2), x[1::2]), lambda x: x.__setitem__(slice(None, None, -1), x),
    lambda x: x.__setitem__([3, 2, 1, 0], x[:4] + 0), lambda x: x.__iadd__(x[::-1]),
    lambda x: x.__setitem__([0, 5], x[[5, 0]]), lambda x: x.reshape(2, 3).__setitem__(0, x.reshape(2, 3)[1]),
], ids=["shift", "flip", "every other", "flip in place", "list", "add flipped", "swap", "rows"])
def test_writes_that_read_what_they_overwrite(write: Any) -> None:
    a = np.arange(6, dtype=np.float32)
    x, lazy = Tensor(a.copy()).clone(), Tensor(a.copy()) + 0
    for t in (x, x.realize() * 1, lazy):
        b = a.copy()
        write(b)
        write(t)
        np.testing.assert_array_equal(t.numpy(), b)


def test_transposed_sum_in_place() -> None:
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    x = Tensor(a.copy()).realize()
    x += x.T
    np.testing.assert_array_equal(x.numpy(), a + a.T)
    x.T[0] = x[0]
    want = a + a.T
    want.T[0] = want[0].copy()
    np.testing.assert_array_equal(x.numpy(), want)


def test_index_that_is_written() -> None:
    i = Tensor(np.array([1, 2, 0], np.int32)).realize()
    i[i] = Tensor(np.array([5, 6, 7], np.int32))
    assert i.tolist() == [7, 5, 6]


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
    with pytest.raises(IndexError, match=r"a bool mask of shape \(3, 5\) cannot select from axes 0 to 1 of shape"):
        x[np.ones((3, 5), bool)]
    with pytest.raises(IndexError, match="too many indices: 4 for shape"):
        x[np.ones((3, 4, 5), bool), 0]
    with pytest.raises(DTypeError, match="an index holds integers or bools, got list of float64"):
        x[[0.5, 1.0]]
    with pytest.raises(DTypeError, match="an index holds integers or bools, got list of <U1"):
        x[["a"]]
    with pytest.raises(IndexError, match="cannot broadcast"):
        x[[0, 1], [0, 1, 2]]
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


def test_last_write_stays_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many indices are sorted instead of compared with every place."""
    monkeypatch.setattr("tinyhost._tensor.items._COMPARISONS", 0)
    rng = np.random.default_rng(0)
    a, i = np.zeros((40, 3), np.float32), rng.integers(-40, 40, 90)
    v = rng.standard_normal((90, 3)).astype(np.float32)
    x = Tensor(a.copy())
    x[Tensor(i)] = Tensor(v)
    a[i] = v
    np.testing.assert_array_equal(x.numpy(), a)
    y = Tensor(np.zeros(5, np.float32))
    y[Tensor([1, 1, 7, -1, -9])] = Tensor([1.0, 2, 3, 4, 5])
    assert y.tolist() == [0, 2, 0, 0, 4]


def test_writes_in_a_jit() -> None:
    from tinyhost import TinyJit

    @TinyJit
    def step(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        x[x > 5] = 0.0
        return (x + 1).realize()
    for k in range(4):
        want = np.arange(8, dtype=np.float32)
        x, i = Tensor(want.copy()).realize(), Tensor(np.array([k, k + 1], np.int32)).realize()
        got = step(x, i, Tensor(np.array([9.0, 1 + k], np.float32)).realize()).numpy()
        want[[k, k + 1]] = [9, 1 + k]
        want[want > 5] = 0
        np.testing.assert_array_equal(got, want + 1)


def test_a_computed_mask_in_a_jit_is_an_error() -> None:
    from tinyhost import TinyJit
    from tinyhost.errors import JitError
    step = TinyJit(lambda x: x[x > 0].realize())
    with pytest.raises(JitError, match="while TinyJit captures"):
        for _ in range(3):
            step(Tensor(np.array([1.0, -1.0], np.float32)).realize())


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


def test_mask_write_errors() -> None:
    x = Tensor(X).clone()
    with pytest.raises(ShapeError, match=r"setitem of 2 values where the mask of shape \(3, 4, 5\) is true 59 times"):
        x[x > 0] = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"setitem shape mismatch"):
        x[X[:, 0, 0] >= 0, 0] = Tensor([1.0, 2.0, 3.0, 4.0])


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
