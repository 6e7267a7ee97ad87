"""How long the inner loops of math functions are, and that no lane is computed by itself."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.codegen import kernels as K
from tests.codegen.test_hand_rules import inner_loops, program
from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp

# arithmetic instructions for each vector of 16 float32; loads and stores not counted
MOST: dict[str, int] = {
    "exp2": 16, "exp": 17, "log2": 29, "log": 28, "log10": 30, "log1p": 31, "expm1": 20, "sin": 94, "cos": 94,
    "tan": 110, "tanh": 23, "sigmoid": 16, "silu": 17, "gelu": 20, "erf": 27, "softplus": 29, "sinh": 33, "cosh": 21,
    "atan": 25, "asin": 33, "sqrt": 1, "rsqrt": 2, "reciprocal": 1, "square root as a power": 4, "power": 110,
    "softmax": 15}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square root as a power": lambda x: x**0.5, "power": lambda x: x**2.7}


def body_of(name: str) -> list[UOp]:
    """Arithmetic of the innermost loop of an element-wise kernel of 4,096 float32."""
    i, x, y = K.out(0, 4096), K.buf(1, 4096), K.buf(0, 4096)
    value = FUNCTIONS.get(name, lambda x: getattr(x, name)())(x.index(i))
    _, uops = program((K.kernel(y.index(i).store(value).end(i)), []), "x86-64-v4")
    return max(inner_loops(uops), key=len)


def instructions(body: list[UOp]) -> list[UOp]:
    return [u for u in body if u.op in GroupOp.ALU or u.op is Ops.CAST and not u.is_const]


@pytest.mark.parametrize("name", [n for n in MOST if n != "softmax"])
def test_a_function_is_a_straight_line_of_vectors(name: str) -> None:
    body = body_of(name)
    numbers = [u for u in instructions(body) if u.dtype.is_float or u.dtype is dtypes.bool or u.shape]
    assert all(u.shape for u in numbers), [u.op for u in numbers if not u.shape]
    elements = sum(u.src[0].shape[0] for u in body if u.op is Ops.STORE)
    assert elements % 8 == 0 and len(numbers) * 16 / elements <= MOST[name]
    assert not [u for u in body if u.op is Ops.STACK and len(set(u.src)) > 1]


def test_the_exponentials_of_a_softmax_have_one_clamp_and_one_factor() -> None:
    """The largest element is subtracted: nothing overflows."""
    rows, columns = 4, 1024
    i, (j, k) = K.out(0, rows), (K.red(n, columns) for n in (1, 2))
    x, y = K.buf(1, rows * columns), K.buf(0, rows)
    top = UOp(Ops.REDUCE, (x.index(i * columns + j), j), (Ops.MAX, 0))
    total = UOp(Ops.REDUCE, ((x.index(i * columns + k) - top).exp(), k), (Ops.ADD, 0))
    _, uops = program((K.kernel(y.index(i).store(total).end(i)), []), "x86-64-v4")
    body = next(b for b in inner_loops(uops) if any(u.op is Ops.MULACC for u in b))
    sums = [u for u in body if u.op is Ops.STORE]
    assert len([u for u in instructions(body) if u.shape]) / len(sums) <= MOST["softmax"]
