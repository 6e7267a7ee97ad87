"""Leaves without storage have an identity: each gets its own gradient, and kernels do not see it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from tinyhost.errors import GradientError
from tinyhost.function import function
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.leaf import is_leaf, is_literal, without_identity

from .evaluator import evaluate

MAKERS: dict[str, Callable[[], Tensor]] = {
    "number": lambda: Tensor(3.0),
    "strong number": lambda: Tensor(3.0, dtype="float64"),
    "bool cast": lambda: Tensor(True).float(),
    "half": lambda: Tensor(3.0, dtype="float16"),
    "int cast": lambda: Tensor(3).float(),
    "arange": lambda: Tensor.arange(3.0),
    "int arange": lambda: Tensor.arange(3).double(),
    "linspace": lambda: Tensor.linspace(0, 1, 4),
    "eye": lambda: Tensor.eye(2),
    "full": lambda: Tensor.full((2, 2), 3.0, buffer=False),
    "zeros": lambda: Tensor.zeros(2, 2, buffer=False),
    "ones": lambda: Tensor.ones(3, buffer=False),
    "marked literal": lambda: Tensor.const(3.0).is_param_(),
    "list": lambda: Tensor([3.0, 3.0], device="NPY"),
    "storage": lambda: Tensor.ones(3, device="NPY"),
    "deep copy": lambda: copy.deepcopy(Tensor(3.0)),
    "pickle": lambda: pickle.loads(pickle.dumps(Tensor(3.0))),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_equal_leaves_have_gradients_of_their_own(maker: str) -> None:
    a, b = MAKERS[maker](), MAKERS[maker]()
    (a * 2 + b * 5 + a * 1.0).sum().backward()
    assert (evaluate(a.grad.uop) == 3).all() and (evaluate(b.grad.uop) == 5).all()
    assert a.grad.shape == a.shape


@pytest.mark.parametrize("value", [2.0, 3.0])
def test_numbers_of_the_program_are_no_leaf(value: float) -> None:
    a = Tensor(value)
    assert evaluate((a * value + value).gradient(a)[0].uop) == value
    assert evaluate((a**value).gradient(a)[0].uop) == value * value ** (value - 1)
    np.testing.assert_allclose(evaluate((value**a).gradient(a)[0].uop), value**value * np.log(value))


def test_a_leaf_shares_a_tie() -> None:
    a, b = Tensor(0.0), Tensor(0.0)
    ga, gb = a.maximum(b).gradient(a, b)
    assert evaluate(ga.uop) == evaluate(gb.uop) == 0.5
    assert evaluate(a.relu().gradient(a)[0].uop) == 0


def test_kernels_do_not_see_identities() -> None:
    x = Tensor([1.0, 2.0], device="PYTHON").realize()

    def schedule() -> UOp:
        return (x * Tensor(3.0) + Tensor.arange(2)).schedule_linear()

    assert schedule() is schedule()
    a = Tensor(3.0)
    assert is_leaf(a.uop) and not is_literal(a.uop) and is_literal(UOp.const(3.0))
    plain = without_identity((a * 2 + Tensor.arange(3)).uop)
    assert not any(u.tag for u in plain.toposort()) and without_identity(plain) is plain


def test_a_marked_leaf_keeps_its_place_in_graphs() -> None:
    a = Tensor(3.0)
    y = a * a
    y_grad = y.gradient(a.is_param_())[0]
    assert evaluate(y_grad.uop) == 6


def test_assignment_of_a_leaf() -> None:
    s, w = Tensor(3.0), Tensor([1.0, 2.0], device="NPY")
    w.assign(s)
    assert evaluate((w * w).sum().gradient(s)[0].uop) == 12


def test_functions_take_leaves_as_arguments() -> None:
    @function(allow_implicit=False)
    def f(x: Tensor, s: Tensor) -> Tensor:
        return x * s + 3.0 * x

    x, s = Tensor(np.array([1.0, 2.0], np.float16), device="NPY"), Tensor(3.0)
    out = f(x, s)
    assert out.dtype is x.dtype and evaluate(out.uop).tolist() == [6, 12]
    assert evaluate(out.sum().gradient(s)[0].uop) == 3
    assert f(x, Tensor(4.0)).uop.src[0].src[0] is out.uop.src[0].src[0]


def test_two_parameters_on_one_value_are_refused() -> None:
    x = Tensor([1.0, 2.0], device="NPY")
    a, b = (x + 1).is_param_(), (x + 1).is_param_()
    assert a.uop is b.uop and a.uop.op is Ops.ADD
    with pytest.raises(
        GradientError, match="two parameters are one value, <Tensor .*with .clone\\(\\) before it is used"
    ):
        (a * b).sum().backward()
    p = Tensor([1.0, 2.0], device="NPY").is_param_()
    alias = copy.copy(p)  # one parameter under two names
    (p * alias).sum().backward()
    assert evaluate(p.grad.uop).tolist() == evaluate(alias.grad.uop).tolist() == [2, 4]
