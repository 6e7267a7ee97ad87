"""Gradients beyond the op cases: structure, accumulation, stores, calls, errors, depth."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost.errors import DTypeError, ShapeError
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.gradient import compute_gradient

from .evaluator import evaluate


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


def leaf(data: Any) -> Tensor:
    return Tensor(data, device="NPY")


def test_backward_fills_and_adds() -> None:
    x, w = leaf([1.0, 2.0]).is_param_(), leaf([3.0, 4.0]).is_param_()
    still = leaf([1.0, 1.0])
    (x * w * still).sum().backward()
    np.testing.assert_array_equal(value(x.grad), [3, 4])
    np.testing.assert_array_equal(value(w.grad), [1, 2])
    assert still.grad is None
    (x * 2).sum().backward()
    np.testing.assert_array_equal(value(x.grad), [5, 6])


def test_gradient_argument() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    [g] = y.gradient(x, gradient=leaf([1.0, 10.0]))
    np.testing.assert_array_equal(value(g), [2, 40])


def test_inner_targets() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3
    z = (y * y).sum()
    gy, gx = z.gradient(y, x)
    np.testing.assert_array_equal(value(gy), [6, 12])
    np.testing.assert_array_equal(value(gx), [18, 36])


def test_second_order() -> None:
    x = leaf([0.5, -1.0])
    [g] = (x ** 3 + x.sin()).sum().gradient(x)
    [h] = g.sum().gradient(x)
    np.testing.assert_allclose(value(h), 6 * np.array([0.5, -1.0]) - np.sin([0.5, -1.0]), rtol=1e-5)


def test_detach_cuts() -> None:
    x = leaf([1.0, 2.0])
    [g] = (x * x.detach()).sum().gradient(x)
    np.testing.assert_array_equal(value(g), [1, 2])


def test_ties() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 0.0])
    gx, gy = x.maximum(y).sum().gradient(x, y)
    np.testing.assert_array_equal(value(gx), [0.5, 1])
    np.testing.assert_array_equal(value(gy), [0.5, 0])
    [g] = leaf([0.0]).relu().sum()._wrap(x.relu().sum().uop).gradient(x)
    np.testing.assert_array_equal(value(g), [1, 1])


def test_power_of_zero() -> None:
    x, e = leaf([0.0, 0.0, 2.0]), leaf([0.0, 2.0, 3.0])
    gx, ge = (x ** e).sum().gradient(x, e)
    np.testing.assert_array_equal(value(gx), [0, 0, 12])
    np.testing.assert_allclose(value(ge), [0, 0, 8 * np.log(2)], rtol=1e-6)


def test_large_arguments_have_finite_gradients() -> None:
    x = leaf([-1e4, -100.0, 0.0, 100.0, 1e4])
    for fn in (Tensor.sigmoid, Tensor.tanh, Tensor.softplus, Tensor.silu, Tensor.gelu, Tensor.elu, Tensor.mish,
               Tensor.logsigmoid):
        [g] = fn(x).sum().gradient(x)
        assert np.isfinite(value(g)).all(), fn.__name__


def test_broadcast_is_summed() -> None:
    x, y = leaf([[1.0], [2.0]]), leaf([1.0, 2.0, 3.0])
    gx, gy = (x + y).sum().gradient(x, y)
    assert gx.shape == (2, 1) and gy.shape == (3,)
    np.testing.assert_array_equal(value(gx), [[3], [3]])
    np.testing.assert_array_equal(value(gy), [2, 2, 2])


def test_narrow_gradients_accumulate_wide() -> None:
    x = Tensor(np.full((1,), 1.0, np.float16), device="NPY")
    [g] = (x.expand(5000) * Tensor(np.ones(5000, np.float16), device="NPY")).sum(dtype="float32").gradient(x)
    assert g.dtype is x.dtype and value(g) == 5000


def test_index_gradient_adds_up() -> None:
    x = leaf([[1.0, 2], [3, 4], [5, 6]])
    [g] = (x[Tensor([2, 0, 2, 7], device="NPY")] * leaf([[1.0], [10], [100], [1000]])).sum().gradient(x)
    np.testing.assert_array_equal(value(g), [[10, 10], [0, 0], [101, 101]])


def test_copy_moves_the_gradient_back() -> None:
    x = leaf([1.0, 2.0])
    w = Tensor([3.0, 4.0], device="PYTHON")
    [g] = (x.to("PYTHON") * w).sum().gradient(x)
    assert g.device == "NPY"


def test_contiguous_backward() -> None:
    x = leaf([1.0, 2.0])
    [g] = (x.contiguous_backward() * 2).sum().gradient(x)
    assert any(u.op is Ops.CONTIGUOUS for u in g.uop.toposort())


def test_assigned_values_have_gradients() -> None:
    v = leaf([1.0, 2.0])
    x = Tensor.empty(2, device="NPY").assign(v * 3)
    [g] = (x * x).sum().gradient(v)
    np.testing.assert_array_equal(value(g), [18, 36])


def test_errors() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"a tensor of shape \(2,\) needs a gradient= of that shape"):
        (x * 2).backward()
    with pytest.raises(ShapeError, match=r"gradient shape mismatch \(2,\) != \(3,\)"):
        (x * 2).gradient(x, gradient=leaf([1.0, 2, 3]))
    with pytest.raises(DTypeError, match="only floats have gradients, got a tensor of dtypes.int"):
        leaf([1]).sum().backward()
    with pytest.raises(DTypeError, match="got a target of dtypes.int"):
        x.sum().gradient(leaf([1]))
    with pytest.raises(RuntimeError, match="target 0 .* has no gradient"):
        x.sum().gradient(leaf([1.0]))
    with pytest.raises(RuntimeError, match="backward\\(\\) reached no parameter"):
        x.is_param_(False).sum().backward()
    with pytest.raises(RuntimeError, match="no gradient for Ops.MSELECT"):
        bad = UOp(Ops.MSELECT, (UOp(Ops.MSTACK, (x.uop, x.uop)),), 0)
        compute_gradient(bad, bad.const_like(1.0), {x.uop})


def test_unmarked_leaves_get_gradients_where_no_parameter_is_marked() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    kept = x * 2  # computed from another live tensor, so no leaf
    (kept * y).sum().backward()
    assert kept.grad is None
    np.testing.assert_allclose(evaluate(x.grad.uop), [6.0, 8.0])
    np.testing.assert_allclose(evaluate(y.grad.uop), [2.0, 4.0])


def test_marked_parameters_are_the_only_ones() -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0]).is_param_()
    (x * w).sum().backward()
    assert x.grad is None
    np.testing.assert_allclose(evaluate(w.grad.uop), [1.0, 2.0])
