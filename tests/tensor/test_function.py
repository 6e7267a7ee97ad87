"""Functions and calls: bodies over parameters, their gradients, their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost import TinyJit
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

    with pytest.raises(
        DeviceUsageError, match="read while ALLOW_DEVICE_USAGE=0, as in a function that is being traced"
    ):
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


# *** run, not only traced ***
def random(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype(np.float32))


@pytest.mark.parametrize(
    "options",
    [{}, {"precompile": True}, {"precompile_backward": True}, {"precompile": True, "precompile_backward": True}],
    ids=repr,
)
def test_options_change_no_value(options: dict[str, bool]) -> None:
    def plain(x: Tensor, w: Tensor, s: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        h = (x @ w).exp() * s
        return h.sum(1), {"h": h, "top": h.max()}

    called = function(plain, **options)
    for rows in (1, 3, 2):
        inputs = random(rows, 4), random(4, 4), Tensor(3.0)
        outs = []
        for fn in (plain, called):
            y, rest = fn(*inputs)
            outs.append(
                [y, rest["h"], rest["top"], *(y.sum() + rest["h"].square().mean() + rest["top"]).gradient(*inputs)]
            )
        for a, b in zip(*outs):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_functions_in_functions() -> None:
    @function
    def inner(x: Tensor, w: Tensor) -> Tensor:
        return (x @ w).relu()

    @function(precompile=True)
    def outer(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return inner(inner(x, a), b) + inner(x, b)

    inputs = random(2, 3), random(3, 3) - 1, random(3, 3) - 1.0
    got = outer(*inputs).square().sum().gradient(*inputs)
    x, a, b = inputs
    want = (((x @ a).relu() @ b).relu() + (x @ b).relu()).square().sum().gradient(*inputs)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-5, atol=1e-6)


def test_second_order_through_calls() -> None:
    cube, x = function(lambda x: x**3), Tensor([1.0, 2.0])
    [g] = cube(x).sum().gradient(x)
    [h] = g.sum().gradient(x)
    assert h.tolist() == [6, 12]


def test_calls_in_a_captured_function() -> None:
    w = Tensor([1.0, 2.0]).is_param_().realize()
    scaled_exp = function(lambda x, s: x * s + x.exp(), precompile=True)

    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        w.grad = None
        loss = scaled_exp(x * w, Tensor(2.0)).sum()
        loss.backward()
        return loss.realize(), w.grad.realize()

    for i in range(4):
        loss, grad = step(Tensor([float(i), 1.0]).realize())
        xw = np.array([i, 2.0])
        np.testing.assert_allclose(loss.item(), (2 * xw + np.exp(xw)).sum(), rtol=1e-5)
        np.testing.assert_allclose(grad.numpy(), np.array([i, 1.0]) * (2 + np.exp(xw)), rtol=1e-5)


def test_symbolic_arguments_run() -> None:
    f, data = function(lambda x, s: x * s), Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    for i in (2, 3, 4, 1):
        n = UOp.variable("n", 1, 4).bind(i)
        out = f(data[:n], Tensor(2.0))
        assert out.sum().item() == i * (i + 1)
        assert f(data[:n], Tensor(2.0)).sum().gradient(data)[0].tolist() == [2.0] * i + [0.0] * (4 - i)


def test_each_gradient_can_be_realized_first() -> None:
    f = function(lambda a, b: (a * b + a, b * 3))
    for first in (0, 1):
        a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        grads, want = f(a, b)[0].sum().gradient(a, b), [[4, 5], [1, 2]]
        assert grads[first].tolist() == want[first] and grads[1 - first].tolist() == want[1 - first]
        assert a.tolist() == [1, 2] and b.tolist() == [3, 4]


def test_a_waiting_write_of_an_argument_that_a_result_does_not_need() -> None:
    f = function(lambda a, w: (a * 2, w * 3))
    w, a = Tensor([1.0, 2.0]).contiguous().realize(), Tensor([1.0, 1.0])
    w.assign(Tensor([5.0, 6.0]))
    out = f(a, w)
    assert out[0].tolist() == [2, 2] and w.tolist() == [5, 6] and out[1].tolist() == [15, 18]
    w += 5.0
    old = w * 1
    w += 5.0
    out = f(old, w)
    assert (
        out[0].tolist() == [20, 22]
        and out[1].tolist() == [45, 48]
        and (old.tolist(), w.tolist()) == ([10, 11], [15, 16])
    )


def test_a_custom_kernel_runs_with_its_gradient() -> None:
    def kernel(out: UOp, x: UOp) -> UOp:
        i = UOp.range(2, 0)
        return out[i].store(x[i] * 2).end(i).sink()

    def backward(grad: UOp, call: UOp) -> tuple[None, UOp]:
        return None, grad * 2

    x = Tensor([1.0, 2.0]).realize()
    out, _ = Tensor.empty(2).custom_kernel(x, fxn=kernel, grad_fxn=backward)
    [g] = (out * Tensor([1.0, 10.0])).sum().gradient(x)
    assert out.tolist() == [2, 4] and g.tolist() == [2, 20]


def test_a_custom_gradient_must_fit() -> None:
    f = function(lambda x, y: x * y, grad_fxn=lambda grad, call: (grad,))
    x, y = Tensor([1.0]), Tensor([2.0])
    with pytest.raises(RuntimeError, match="grad_fxn of .* returned 1 gradients for 2 arguments: return one for each"):
        f(x, y).sum().gradient(x)
    seen: list[UOp] = []

    def doubled(grad: UOp, call: UOp) -> tuple[UOp, UOp]:
        seen.append(call)
        return grad * call.src[2] * 2, grad * call.src[1] * 2

    g = function(lambda x, y: x * y, grad_fxn=doubled)
    gx, gy = g(x, y).sum().gradient(x, y)
    assert gx.tolist() == [4] and gy.tolist() == [2] and seen[0].op is Ops.FUNCTION
