"""Functions and calls: bodies over parameters, their gradients, their errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost.errors import DeviceUsageError
from tinyhost.function import function
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp

from .evaluator import evaluate


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


def leaf(data: Any) -> Tensor:
    return Tensor(data, device="NPY")


@function
def scaled(x: Tensor, w: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return x @ w, {"total": x.sum(), "top": w.max()}


def test_results_keep_their_nest() -> None:
    x, w = leaf([[1.0, 2]]), leaf([[3.0], [4.0]])
    y, rest = scaled(x, w)
    assert value(y) == [[11]] and value(rest["total"]) == 3 and value(rest["top"]) == 4
    assert y.uop.op is Ops.GETTUPLE and y.uop.src[0].op is Ops.FUNCTION


def test_equal_calls_share_a_body() -> None:
    a, _ = scaled(leaf([[1.0, 2]]), leaf([[3.0], [4.0]]))
    b, _ = scaled(leaf([[5.0, 6]]), leaf([[7.0], [8.0]]))
    assert a.uop.src[0].src[0] is b.uop.src[0].src[0] and a.uop is not b.uop


class Layer:
    def __init__(self) -> None:
        self.weight = leaf([[1.0, 2], [3, 4]]).is_param_()

    @function(allow_implicit=False)
    def __call__(self, x: Tensor) -> Tensor:
        return (x @ self.weight).relu()


def test_gradients_through_calls() -> None:
    layer, x = Layer(), leaf([[1.0, -1.0], [2.0, 0.5]])
    got = layer(layer(x)).sum().gradient(x, layer.weight)
    want = ((x @ layer.weight).relu() @ layer.weight).relu().sum().gradient(x, layer.weight)
    for g, w in zip(got, want):
        assert g.shape == w.shape
        np.testing.assert_allclose(value(g), value(w))


def test_unused_results_and_arguments() -> None:
    @function
    def f(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return a * 2, b.exp()
    a, b, c = leaf([1.0]), leaf([0.0]), leaf([5.0])
    first, _ = f(a, b, c)
    assert len(first.uop.src[0].src) == 3
    [g] = first.sum().gradient(a)
    assert value(g) == [2]


def test_an_argument_made_from_another() -> None:
    @function
    def f(a: Tensor, b: Tensor) -> Tensor:
        return b * 2
    a = leaf([1.0, 2.0])
    out = f(a, a + 1)
    np.testing.assert_array_equal(value(out), [4, 6])
    np.testing.assert_array_equal(value(out.sum().gradient(a)[0]), [2, 2])


def test_precompiled_backward_reads_the_forward_result() -> None:
    @function(precompile=True)
    def f(x: Tensor) -> Tensor:
        return x.exp()
    x = leaf([0.0, 1.0])
    y = f(x)
    [g] = y.sum().gradient(x)
    np.testing.assert_allclose(value(g), np.exp([0, 1]), rtol=1e-6)
    calls = [u for u in g.uop.toposort(enter_calls=False) if u.op is Ops.FUNCTION]
    backward = next(u for u in calls if u.arg.name.endswith("_backward"))
    assert any(a is y.uop for a in backward.src[1:])


def test_custom_gradient() -> None:
    def straight_through(grad: UOp, call: UOp) -> tuple[UOp, None]:
        return grad * 10, None

    @function(grad_fxn=straight_through)
    def f(x: Tensor, y: Tensor) -> Tensor:
        return (x * y).round()
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    [g] = f(x, y).sum().gradient(x)
    np.testing.assert_array_equal(value(g), [10, 10])


def test_implicit_inputs() -> None:
    hidden = Tensor.empty(2, device="NPY")

    @function(allow_implicit=False)
    def f(x: Tensor) -> Tensor:
        return x + hidden

    @function
    def g(x: Tensor) -> Tensor:
        return x + hidden
    with pytest.raises(RuntimeError, match=r"f has 1 implicit buffer\(s\), but allow_implicit=False"):
        f(leaf([1.0, 2.0]))
    assert len(g(leaf([1.0, 2.0])).uop.src[0].src) == 3


def test_storage_made_inside_is_an_argument() -> None:
    @function(allow_implicit=False)
    def f(x: Tensor) -> Tensor:
        return x + Tensor.ones(2, device="NPY")
    np.testing.assert_array_equal(value(f(leaf([1.0, 2.0]))), [2, 3])


def test_nothing_runs_while_tracing() -> None:
    @function
    def f(x: Tensor) -> Tensor:
        return x * x.sum().item()
    with pytest.raises(DeviceUsageError,
                       match="read while ALLOW_DEVICE_USAGE=0, as in a function that is being traced"):
        f(Tensor([1.0, 2.0], device="PYTHON") + 1)


def test_symbolic_arguments() -> None:
    n = UOp.variable("n", 1, 4).bind(3)
    x = leaf([1.0, 2, 3, 4])[:n]

    @function
    def f(x: Tensor) -> Tensor:
        return x.sum() * 2
    out = f(x)
    assert value(out) == 12
    [g] = out.gradient(x)
    np.testing.assert_array_equal(value(g), [2, 2, 2])


def test_call() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    body = a.as_param(0) * b.as_param(1) + a.as_param(0)
    out = a.call(b, fxn=body)
    np.testing.assert_array_equal(value(out), [4, 10])
    ga, gb = out.sum().gradient(a, b)
    np.testing.assert_array_equal(value(ga), [4, 5])
    np.testing.assert_array_equal(value(gb), [1, 2])


def test_call_errors() -> None:
    scalar = Tensor(1.0, dtype="float32").as_param(0)
    with pytest.raises(TypeError, match=r"arg 0 shape mismatch: expected scalar, got \(2,\)"):
        Tensor.ones(2).call(fxn=scalar * 2)
    two = leaf([1.0, 2.0]).as_param(0)
    with pytest.raises(TypeError, match=r"arg 0 shape mismatch: expected size 2, got \(3,\)"):
        leaf([1.0, 2, 3]).call(fxn=two)
    with pytest.raises(TypeError, match="arg 0 dtype mismatch: expected dtypes.float, got dtypes.int"):
        leaf([1, 2]).call(fxn=two)
    with pytest.raises(TypeError, match="expected 2 args, got 1"):
        leaf([1.0, 2]).call(fxn=two + leaf([1.0, 2]).as_param(1))
    with pytest.raises(TypeError, match="a traced function returns tensors"):
        function(lambda x: 3)(leaf([1.0]))


def test_custom_kernel_gradient_needs_grad_fxn() -> None:
    def kernel(out: UOp, x: UOp) -> UOp:
        i = UOp.range(2, 0)
        return out[i].store(x[i] * 2).end(i).sink()
    x = leaf([1.0, 2.0])
    out, _ = Tensor.empty(2, device="NPY").custom_kernel(x, fxn=kernel)
    assert out.uop.op is Ops.AFTER and out.uop.src[1].op is Ops.CALL
    with pytest.raises(RuntimeError, match="opaque body and no grad_fxn"):
        out.sum().gradient(x)


def test_custom_kernel_gradient() -> None:
    def kernel(out: UOp, x: UOp) -> UOp:
        i = UOp.range(2, 0)
        return out[i].store(x[i] * 2).end(i).sink()

    def backward(grad: UOp, call: UOp) -> tuple[None, UOp]:
        return None, grad * 2
    x = leaf([1.0, 2.0])
    out, _ = Tensor.empty(2, device="NPY").custom_kernel(x, fxn=kernel, grad_fxn=backward)
    [g] = (out * leaf([1.0, 10.0])).sum().gradient(x)
    np.testing.assert_array_equal(value(g), [2, 20])
