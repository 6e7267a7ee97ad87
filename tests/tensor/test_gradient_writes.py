"""Gradients through writes in place, views, repeated backward and deep graphs, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tinyhost.errors import DTypeError, GradientError
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops

from .evaluator import evaluate

BASE = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 + 0.5
VALUE = np.array([[2.0, -1.0], [0.5, 3.0]], np.float32)

# Each writes into x, which is a computed or stored (3, 4) value; v is (2, 2). They work on both libraries.
WRITES: dict[str, Callable[[Any, Any], None]] = {
    "slice": lambda x, v: x.__setitem__((slice(0, 2), slice(1, 3)), v),
    "number": lambda x, v: x.__setitem__((slice(0, 2), slice(1, 3)), 7.0),
    "row": lambda x, v: x.__setitem__(1, v.reshape(4)),
    "broadcast row": lambda x, v: x.__setitem__((slice(None), slice(0, 2)), v[0]),
    "last column": lambda x, v: x.__setitem__((slice(0, 2), -1), v[:, 0]),
    "strided": lambda x, v: x.__setitem__((slice(0, 3, 2), slice(1, 4, 2)), v),
    "indexed rows": lambda x, v: x.__setitem__(([2, 0], slice(0, 2)), v),
    "pairs": lambda x, v: x.__setitem__(([0, 2], [1, 3]), v[1]),
    "twice": lambda x, v: (x.__setitem__((0, slice(0, 2)), v[0]), x.__setitem__((0, slice(1, 3)), v[1])),
    "read between": lambda x, v: (
        x.__setitem__((0, slice(0, 2)), v[0] * (x[1, 0:2] * 1)),
        x.__setitem__((1, slice(0, 2)), v[1]),
    ),
    "add in place": lambda x, v: x[0:2, 0:2].__iadd__(v),
    "scale in place": lambda x, v: x[0:2, 0:2].__imul__(v),
    "through a view": lambda x, v: x.reshape(4, 3)[0:2, 0:2].__imul__(v),
    "transposed view": lambda x, v: x.T[0:2, 0:2].__iadd__(v * v),
}


@pytest.mark.parametrize("start", ["computed", "stored"])
@pytest.mark.parametrize("write", WRITES)
def test_writes(write: str, start: str) -> None:
    tx, tv = torch.tensor(BASE, requires_grad=True), torch.tensor(VALUE, requires_grad=True)
    ty = tx * tx
    WRITES[write](ty, tv)
    weight = np.cos(BASE)
    (ty * ty * torch.tensor(weight)).sum().backward()

    x, v = Tensor(BASE, device="NPY"), Tensor(VALUE, device="NPY")
    y = x * x if start == "computed" else Tensor.empty(3, 4, device="NPY").assign(x * x)
    WRITES[write](y, v)
    grads = (y * y * Tensor(weight, device="NPY")).sum()._gradients([x.uop, v.uop], None)
    np.testing.assert_allclose(evaluate(grads[x.uop]), tx.grad, rtol=1e-5)
    want = np.zeros_like(VALUE) if tv.grad is None else tv.grad.numpy()
    got = evaluate(grads[v.uop]) if v.uop in grads else np.zeros_like(VALUE)
    np.testing.assert_allclose(got, want, rtol=1e-5)


BROADCASTS = [
    ((3, 1), (1, 4)),
    ((4,), (3, 4)),
    ((3, 4), ()),
    ((1, 1, 1), (3, 4)),
    ((2, 1, 4), (3, 1)),
    ((1,), (1,)),
    ((0, 4), (1, 4)),
]


@pytest.mark.parametrize("a, b", BROADCASTS, ids=repr)
def test_broadcasting(a: Any, b: Any) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, s) for s in (a, b)]
    torches = [torch.tensor(x, requires_grad=True) for x in arrays]
    ours = [Tensor(x, device="NPY") for x in arrays]
    (torches[0] * torches[1] / (torches[0] + torches[1])).sum().backward()
    (ours[0] * ours[1] / (ours[0] + ours[1])).sum().backward()
    for t, x in zip(torches, ours):
        assert x.grad.shape == tuple(t.shape)
        np.testing.assert_allclose(evaluate(x.grad.uop), t.grad, rtol=1e-12)


def test_what_has_no_gradient() -> None:
    x = Tensor([1.0, 2.0], device="NPY")
    for y in (
        x.detach(),
        x.cast("int32").float(),
        (x > 1).float(),
        x.bitcast("int32").bitcast("float32"),
        x.argmax().float(),
    ):
        with pytest.raises(
            GradientError, match="target 0 .* has no gradient: .* does not depend on it, or only through"
        ):
            y.sum().gradient(x)
    for bad in (Tensor([1], device="NPY"), Tensor([True], device="NPY")):
        with pytest.raises(DTypeError, match="only floats have gradients, got a tensor of dtypes"):
            bad.sum().backward()
        with pytest.raises(DTypeError, match="only float tensors have gradients, got dtypes.*: cast it first"):
            bad.is_param_()
    assert evaluate(x.trunc().sum().gradient(x)[0].uop).tolist() == [0, 0]


def test_gradients_through_narrow_floats_keep_their_dtype() -> None:
    x = Tensor(np.array([1.0, 2.0], np.float32), device="NPY")
    for dtype in ("float16", "bfloat16", "float64", "fp8e5m2"):
        (g,) = (x.cast(dtype) * 3).sum().gradient(x)
        assert g.dtype is x.dtype and evaluate(g.uop).tolist() == [3, 3]
        narrow = Tensor([1.0, 2.0], dtype=dtype, device="NPY")
        (g,) = (narrow.cast("float32") * 3).sum().gradient(narrow)
        assert g.dtype is narrow.dtype and evaluate(g.uop).tolist() == [3, 3]


def test_gradients_add_up_over_calls() -> None:
    x = Tensor([1.0, 2.0], device="NPY").is_param_()
    for i in range(3):
        (x * x).sum().backward()
        np.testing.assert_array_equal(evaluate(x.grad.uop), np.array([2, 4]) * (i + 1))
    loss = (x * 3).sum()
    loss.backward(gradient=Tensor(2.0))
    np.testing.assert_array_equal(evaluate(x.grad.uop), [12, 18])
    x.grad = None
    loss.backward()
    np.testing.assert_array_equal(evaluate(x.grad.uop), [3, 3])


def test_a_target_can_be_given_twice_and_can_be_the_output() -> None:
    x = Tensor([1.0, 2.0], device="NPY")
    y = (x * x).sum()
    a, b, c = y.gradient(x, x, y)
    np.testing.assert_array_equal(evaluate(a.uop), [2, 4])
    np.testing.assert_array_equal(evaluate(b.uop), [2, 4])
    assert a is not b and evaluate(c.uop) == 1


def test_contiguous_backward_of_second_order() -> None:
    x = Tensor(np.array([1.0, 2.0]), device="NPY")
    (g,) = (x.contiguous_backward() ** 3).sum().gradient(x)
    (h,) = g.sum().gradient(x)
    assert any(u.op is Ops.CONTIGUOUS for u in g.uop.toposort())
    np.testing.assert_allclose(evaluate(h.uop), [6, 12])


def test_a_chain_of_a_hundred_thousand() -> None:
    x = y = Tensor([1.0], device="NPY")
    for _ in range(100_000):
        y = y + 1e-9
    (g,) = y.sum().gradient(x)
    assert g.shape == (1,)
    y = x
    for _ in range(3_000):
        y = (y * 0.5).maximum(0.1)
    (g,) = y.sum().gradient(x)
    assert len(g.uop.toposort()) > 3_000
