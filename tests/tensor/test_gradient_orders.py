"""First and second derivatives against torch in float64, and random programs against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tinyhost.tensor import Tensor

from .evaluator import evaluate

Fn = Callable[[Any], Any]

# Each works on tensors of both libraries; the argument is (3, 4), positive and away from ties and poles.
FUNCTIONS: dict[str, Fn] = {
    "add": lambda x: x + x * 2,
    "mul": lambda x: x * x * x,
    "div": lambda x: 1 / x + x / (x + 1),
    "pow int": lambda x: x**3,
    "pow float": lambda x: x**1.7,
    "pow self": lambda x: x**x,
    "pow of number": lambda x: 2**x,
    "negative power": lambda x: x**-2,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "log2": lambda x: x.log2(),
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: x.rsqrt(),
    "sin": lambda x: x.sin() * x.cos(),
    "tan": lambda x: (x / 4).tan(),
    "asin": lambda x: (x / 4).asin(),
    "atan": lambda x: x.atan(),
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "tanh": lambda x: x.tanh(),
    "asinh": lambda x: x.asinh(),
    "atanh": lambda x: (x / 4).atanh(),
    "erf": lambda x: x.erf(),
    "sigmoid": lambda x: x.sigmoid(),
    "reciprocal": lambda x: x.reciprocal(),
    "abs": lambda x: (x - 1).abs() * x,
    "square": lambda x: x.square(),
    "maximum": lambda x: (x * x).maximum(2 * x - x * 0.5),
    "where": lambda x: (
        (x > 1).where(x * x * x, x.exp()) if isinstance(x, Tensor) else torch.where(x > 1, x**3, x.exp())
    ),
    "sum": lambda x: x.sum(1) * x.sum(1),
    "mean": lambda x: x.mean(0) ** 3,
    "prod": lambda x: x.prod(1),
    "max": lambda x: _max(x) * x.sum(1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(0),
    "softmax": lambda x: x.softmax(1) * x,
    "log_softmax": lambda x: x.log_softmax(1) * x,
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1) * x,
    "matmul": lambda x: x @ x.T @ x,
    "reshape": lambda x: x.reshape(4, 3) @ x,
    "permute": lambda x: x.permute(1, 0) @ x,
    "flip": lambda x: x.flip((0,)) * x,
    "slice": lambda x: x[1:, ::2] * x[:2, 1::2],
    "expand": lambda x: x[:, :1].expand(3, 4) * x,
    "gather": lambda x: x[:, [0, 0, 3]] ** 2,
    "triu": lambda x: x.triu() @ x.T,
}


def _max(x: Any) -> Any:
    return x.max(1) if isinstance(x, Tensor) else x.amax(1)


def _data() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).uniform(0.5, 2.0, (3, 4))


def _weights(shape: Any) -> np.ndarray[Any, Any]:
    return np.cos(np.arange(int(np.prod(shape))) + 0.3).reshape(shape)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_order(name: str) -> None:
    fn, data = FUNCTIONS[name], _data()
    t = torch.tensor(data, requires_grad=True)
    out = fn(t)
    weight = _weights(out.shape)
    (want,) = torch.autograd.grad((out * torch.tensor(weight)).sum(), t, create_graph=True)
    inner = _weights(data.shape)
    want2 = torch.autograd.grad((want * torch.tensor(inner)).sum(), t)[0] if want.requires_grad else torch.zeros_like(t)

    x = Tensor(data, device="NPY")
    (g,) = (fn(x) * Tensor(weight, device="NPY")).sum().gradient(x)
    np.testing.assert_allclose(evaluate(g.uop), want.detach().numpy(), rtol=1e-9, atol=1e-9)
    second = (g * Tensor(inner, device="NPY")).sum()._gradients([x.uop], None)
    got2 = evaluate(second[x.uop]) if x.uop in second else np.zeros(data.shape)
    np.testing.assert_allclose(got2, want2.numpy(), rtol=1e-8, atol=1e-8)


def test_third_order() -> None:
    x = Tensor(_data(), device="NPY")
    g = x.exp() * x
    for _ in range(3):
        (g,) = g.sum().gradient(x)
    np.testing.assert_allclose(evaluate(g.uop), (_data() + 3) * np.exp(_data()), rtol=1e-12)


def test_second_order_where_the_first_is_zero() -> None:
    """At the minimum of a squared residual the gradient is 0, the curvature is not, also behind a branch."""
    x = Tensor(np.array([4.0, -1.0]), device="NPY")
    residual = (x > 0).where(x.sqrt() - 2, 0)
    (g,) = (residual * residual).sum().gradient(x)
    (h,) = g.sum().gradient(x)
    np.testing.assert_array_equal(evaluate(g.uop), [0, 0])
    np.testing.assert_allclose(evaluate(h.uop), [2 / 16, 0])


# *** random programs ***
def _random_program(rng: np.random.Generator) -> Fn:
    """A chain of smooth steps, each of which keeps a (3, 4) value of moderate size."""
    steps: list[Fn] = [
        lambda x: x.sin() + x,
        lambda x: (x * x + 1).sqrt(),
        lambda x: (x * x + 0.5).log(),
        lambda x: (x * 0.3).exp(),
        lambda x: x.softmax(1) * 2,
        lambda x: x - x.mean(0),
        lambda x: x / (x.abs().sum(1, keepdim=True) + 1),
        lambda x: x.reshape(4, 3).T + x,
        lambda x: x.flip(0) * x,
        lambda x: x.pad(((1, 0), (0, 1)))[:3, 1:] + x * 0.5,
        lambda x: x[:, [3, 0, 0, 1]] + x,
        lambda x: (x @ x.T).tanh() @ x,
        lambda x: x.cumsum(0).sigmoid() + x,
        lambda x: (x > 0.1).where(x * 2, x.exp()),
        lambda x: x.maximum(x.roll(1, 1)),
        lambda x: (x * 0.5).erf() + x,
        lambda x: x[0:1].expand(3, 4) * x,
        lambda x: x.stack(x * 2).sum(0) * 0.4,
        lambda x: x.cat(x, dim=0)[1:4],
        lambda x: (x + 3).rsqrt() + x,
        lambda x: 1 / (x * x + 1),
        lambda x: x.sort(1)[0] + x * 0.2,
    ]
    chosen = [steps[i] for i in rng.integers(len(steps), size=rng.integers(2, 6))]

    def program(x: Any) -> Any:
        for step in chosen:
            x = step(x)
        return (x * x).sum()

    return program


def _check_by_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program, data, h = _random_program(rng), rng.uniform(-1.5, 1.5, (3, 4)), 1e-6
    x = Tensor(data, device="NPY")
    (g,) = program(x).gradient(x)
    got = evaluate(g.uop)
    direction = rng.standard_normal((3, 4))
    ahead, behind = (float(evaluate(program(Tensor(data + s * h * direction, device="NPY")).uop)) for s in (1, -1))
    np.testing.assert_allclose(
        (got * direction).sum(), (ahead - behind) / (2 * h), rtol=2e-5, atol=2e-5, err_msg=f"seed {seed}"
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed: int) -> None:
    _check_by_differences(seed)


@pytest.mark.soak
@pytest.mark.parametrize("start", range(100, 1100, 100))
def test_many_random_programs(start: int) -> None:
    for seed in range(start, start + 100):
        _check_by_differences(seed)


# *** what the libraries spell differently ***
_F = torch.nn.functional
_GATHERED, _PLACES = [[0, 0, 3]] * 3, [[0, 2, 3]] * 3
_KERNEL = np.array([[1.0, -2.0], [0.5, 3.0]]).reshape(1, 1, 2, 2)
PAIRS: dict[str, tuple[Fn, Fn]] = {
    "sort": (lambda x: x.sort(1)[0] * x, lambda x: x.sort(1)[0] * x),
    "topk": (lambda x: x.topk(2, 1)[0] ** 2, lambda x: x.topk(2, 1)[0] ** 2),
    "gather": (
        lambda x: x.gather(1, Tensor(_GATHERED, device="NPY")) ** 2,
        lambda x: x.gather(1, torch.tensor(_GATHERED)) ** 2,
    ),
    "scatter": (
        lambda x: x.scatter(1, Tensor(_PLACES, device="NPY"), x[:, :3] * 2) ** 2,
        lambda x: x.scatter(1, torch.tensor(_PLACES), x[:, :3] * 2) ** 2,
    ),
    "cumprod": (lambda x: x.cumprod(1) * x, lambda x: x.cumprod(1) * x),
    "pad": (lambda x: x.pad(((1, 1), (0, 2))) ** 2, lambda x: _F.pad(x, (0, 2, 1, 1)) ** 2),
    "roll": (lambda x: x.roll(1, 1) * x, lambda x: torch.roll(x, 1, 1) * x),
    "convolution": (
        lambda x: x.reshape(1, 1, 3, 4).conv2d(Tensor(_KERNEL, device="NPY")) ** 2,
        lambda x: _F.conv2d(x.reshape(1, 1, 3, 4), torch.tensor(_KERNEL)) ** 2,
    ),
    "max pool": (
        lambda x: x.reshape(1, 1, 3, 4).max_pool2d(2) ** 2,
        lambda x: _F.max_pool2d(x.reshape(1, 1, 3, 4), 2) ** 2,
    ),
    "layer norm": (lambda x: x.layernorm(1) * x, lambda x: _F.layer_norm(x, (4,)) * x),
}


@pytest.mark.parametrize("name", PAIRS)
def test_second_order_of_composites(name: str) -> None:
    ours, theirs = PAIRS[name]
    t, x = torch.tensor(_data(), requires_grad=True), Tensor(_data(), device="NPY")
    want_out = theirs(t)
    weight, inner = _weights(want_out.shape), _weights((3, 4))
    (want,) = torch.autograd.grad((want_out * torch.tensor(weight)).sum(), t, create_graph=True)
    (want2,) = torch.autograd.grad((want * torch.tensor(inner)).sum(), t)
    (g,) = (ours(x) * Tensor(weight, device="NPY")).sum().gradient(x)
    (h,) = (g * Tensor(inner, device="NPY")).sum().gradient(x)
    np.testing.assert_allclose(evaluate(g.uop), want.detach().numpy(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(evaluate(h.uop), want2.numpy(), rtol=1e-5, atol=1e-5)
