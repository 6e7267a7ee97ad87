"""Result dtypes of tensor operations, and how weak literals stay weak."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.errors import DTypeError
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops

from .evaluator import evaluate


def t(dtype: DType, *shape: int) -> Tensor:
    return Tensor.empty(*shape, device="NPY", dtype=dtype)


F, H, B, I, I8, U8, U, L = (dtypes.float32, dtypes.half, dtypes.bool, dtypes.int32, dtypes.int8, dtypes.uint8,
                            dtypes.uint32,
                            dtypes.int64)
WF, WI = dtypes.weakfloat, dtypes.weakint

RULES: list[tuple[str, Callable[[], Tensor], DType]] = [
    ("int / int", lambda: t(I) / t(I), F), ("bool / bool", lambda: t(B) / t(B), F), ("int / 2", lambda: t(I) / 2, F),
    ("int / 2.0", lambda: t(I) / 2.0, WF), ("half / int", lambda: t(H) / t(I), H), ("3 / int", lambda: 3 / t(I), F),
    ("int // int", lambda: t(I8) // t(U8), dtypes.int16), ("bool // bool", lambda: t(B) // t(B), dtypes.int32),
    ("int % int", lambda: t(I) % t(L), L), ("trunc div", lambda: t(I).div(t(I), rounding_mode="trunc"), I),
    ("fmod", lambda: t(I8).fmod(t(I)), I), ("int + 1.0", lambda: t(I) + 1.0, WF),
    ("bool * 1.5", lambda: t(B) * 1.5, WF),
    ("int + 1", lambda: t(I8) + 1, I8), ("half + 0.5", lambda: t(H) + 0.5, H), ("float + 1", lambda: t(F) + 1, F),
    ("float + True", lambda: t(F) + True, F), ("bool + 1", lambda: t(B) + 1, WI),
    ("bool + bool", lambda: t(B) + t(B), B),
    ("bool * bool", lambda: t(B) * t(B), B), ("-bool", lambda: -t(B), B), ("bool - bool", lambda: t(B) - t(B), B),
    ("half + float", lambda: t(H) + t(F), F), ("half + bf16", lambda: t(H) + t(dtypes.bfloat16), F),
    ("int8 + uint8", lambda: t(I8) + t(U8), dtypes.int16), ("int64 + uint64", lambda: t(L) + t(dtypes.uint64), WF),
    ("int < float", lambda: t(I) < t(F), B), ("any", lambda: t(F, 3).any(), B),
    ("logical_not", lambda: t(I).logical_not(), B),
    ("where(1, 2)", lambda: t(B).where(1, 2), WI), ("where(1.0, 2)", lambda: t(B).where(1.0, 2), WF),
    ("where(x, 1)", lambda: t(B).where(t(I8), 1), I8), ("where(int, 1.0)", lambda: t(B).where(t(I), 1.0), WF),
    ("one_hot", lambda: t(U8, 3).one_hot(4), WI), ("x << y", lambda: t(I8) << t(I), I),
    ("1 << u32", lambda: 1 << t(U), U),
    ("int ** 2", lambda: t(I8) ** 2, I8), ("int ** 2.0", lambda: t(I) ** 2.0, WF), ("float ** 2", lambda: t(F) ** 2, F),
    ("half ** 2.5", lambda: t(H) ** 2.5, H), ("int ** int", lambda: t(I) ** t(I), I),
    ("exp of int", lambda: t(I).exp(), F),
    ("sin of half", lambda: t(H).sin(), H), ("sqrt of bool", lambda: t(B).sqrt(), F),
    ("sqrt of weak", lambda: Tensor(2).sqrt(), WF),
    ("mean of int", lambda: t(I, 3).mean(), F), ("mean of half", lambda: t(H, 3).mean(), H),
    ("var of int", lambda: t(I, 3).var(), F),
    ("max", lambda: t(U8, 3).max(), U8), ("min of bool", lambda: t(B, 3).min(), B),
    ("prod", lambda: t(I8, 3).prod(), I8),
    ("sum of bool", lambda: t(B, 3).sum(), I), ("sum of int8", lambda: t(I8, 3).sum(), I),
    ("sum of uint8", lambda: t(U8, 3).sum(), U),
    ("sum of uint64", lambda: t(dtypes.uint64, 3).sum(), dtypes.uint64), ("sum of half", lambda: t(H, 3).sum(), H),
    ("sum dtype", lambda: t(H, 3).sum(dtype=F), F), ("cumsum", lambda: t(I8, 3).cumsum(), I),
    ("cumprod", lambda: t(I8, 3).cumprod(0), dtypes.int32),
    ("dot", lambda: t(I8, 3).dot(t(I8, 3)), I8), ("matmul of half and float", lambda: t(H, 2, 2) @ t(F, 2, 2), F),
    ("dot dtype", lambda: t(I8, 3).dot(t(I8, 3), dtype=I), I),
    ("conv of int8", lambda: t(I8, 1, 1, 3, 3).conv2d(t(I8, 1, 1, 2, 2)), I), ("argmax", lambda: t(F, 3).argmax(), I),
    ("cummax index", lambda: t(F, 3).cummax()[1], I), ("argsort", lambda: t(F, 3).argsort(), I),
    ("linspace", lambda: Tensor.linspace(0, 1, 3), F),
    ("arange", lambda: Tensor.arange(3), I), ("arange floats", lambda: Tensor.arange(0, 1, 0.5), F),
    ("arange large", lambda: Tensor.arange(2**31, 2**31 + 2), L), ("eye", lambda: Tensor.eye(2), F),
    ("zeros", lambda: Tensor.zeros(2), F),
    ("full int", lambda: Tensor.full((2,), 3), I), ("full weak", lambda: Tensor.full((2,), 3, buffer=False), WI),
    ("full bool", lambda: Tensor.full((2,), True), B), ("Tensor(1)", lambda: Tensor(1), WI),
    ("Tensor(1.0)", lambda: Tensor(1.0), WF),
    ("Tensor(True)", lambda: Tensor(True), B), ("Tensor(None)", lambda: Tensor(None), WF),
    ("Tensor(1, int8)", lambda: Tensor(1, dtype=I8), I8),
    ("list of ints", lambda: Tensor([1]), I), ("list of floats", lambda: Tensor([1, 2.0]), F),
    ("list of bools", lambda: Tensor([True]), B),
    ("mixed list", lambda: Tensor([True, 2]), I), ("large ints", lambda: Tensor([2**40]), L),
    ("empty list", lambda: Tensor([]), F),
    ("bytes", lambda: Tensor(b"ab"), U8), ("pad uint8 with 1.5", lambda: t(U8, 2).pad((1, 1), value=1.5), WF),
    ("pad int", lambda: t(I, 2).pad((1, 1)), I), ("maximum(int, 1.5)", lambda: t(I).maximum(1.5), WF),
    ("abs", lambda: t(I8).abs(), I8),
    ("sign", lambda: t(H).sign(), H), ("clip", lambda: t(H).clip(0, 1), H), ("round of int", lambda: t(I).round(), I),
    ("cat", lambda: t(I8, 2).cat(t(F, 2)), F), ("stack", lambda: t(I8, 2).stack(t(I, 2)), I),
    ("neg uint8", lambda: -t(U8), U8),
    ("bitcast", lambda: t(F, 2).bitcast("int16"), dtypes.int16), ("softmax of int", lambda: t(I, 3).softmax(), F),
    ("softmax dtype", lambda: t(H, 3).softmax(dtype=F), F), ("lerp", lambda: t(U8).lerp(t(U8), 0.5), U8),
    ("tril of half", lambda: t(H, 2, 2).tril(), H),
    ("scaled attention", lambda: t(H, 1, 2, 4).scaled_dot_product_attention(t(H, 1, 2, 4), t(H, 1, 2, 4)), H),
]


@pytest.mark.parametrize("make, want", [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_result_dtype(make: Callable[[], Tensor], want: DType) -> None:
    assert make().dtype is want


def test_weak_with_a_tensor_has_its_device() -> None:
    x = t(I, 3)
    assert (x + 1.0).device == "NPY" and (x + 1.0).dtype is WF
    assert Tensor(1).device is None and Tensor.arange(3).device is None


def test_default_dtypes_are_read_at_each_use() -> None:
    with Context(DEFAULT_FLOAT="HALF", DEFAULT_INT="INT64"):
        assert Tensor.ones(2, buffer=False).dtype is H and Tensor([1.0]).dtype is H
        assert Tensor.arange(2).dtype is L and (t(I) / t(I)).dtype is H


def test_a_literal_stays_weak_beside_a_strong_operand() -> None:
    for node in ((t(F) + 1).uop, (1 + t(F)).uop, (t(F) + 1.0).uop):
        literal = next(s for s in node.src if s.op is Ops.CONST)
        assert literal.dtype is WF and type(literal.arg).__name__ == "ConstFloat"
    assert (t(I8) + 1).uop.src[1].dtype is WI
    assert (t(H) < 2).uop.src[1].dtype is WF


def test_a_weak_expression_is_cast_to_the_join() -> None:
    with_device = t(B, 3) + 1  # weakint with a device
    assert with_device.dtype is WI
    total = with_device + t(H, 3)
    assert total.dtype is H and all(s.dtype is H for s in total.uop.src)


def test_integer_literals_wrap() -> None:
    x = Tensor([0, 200, 255], dtype="uint8", device="NPY")
    np.testing.assert_array_equal(evaluate((x + 300).uop), (np.array([0, 200, 255]) + 300) % 256)
    np.testing.assert_array_equal(evaluate((-x).uop), [0, 56, 1])


def test_power_of_integers() -> None:
    x = Tensor([-3, -1, 0, 1, 2], device="NPY")
    np.testing.assert_array_equal(evaluate((x ** Tensor([3, 7, 0, 100, 31], device="NPY")).uop),
                                  [-27, -1, 1, 1, -2**31])
    np.testing.assert_array_equal(evaluate((x ** Tensor([-1, -3, 5, -9, -1], device="NPY")).uop), [0, -1, 0, 1, 0])
    with pytest.raises(DTypeError, match=r"dtypes.int \*\* -2: an integer to a negative power"):
        x ** -2


def test_dtype_errors() -> None:
    with pytest.raises(DTypeError, match="shift operands must be int, got dtypes.float and"):
        t(F) << 1
    with pytest.raises(DTypeError, match="AND needs integers or bools, got dtypes.float"):
        t(F) & 1
    with pytest.raises(DTypeError, match="where cond must be bool, got dtypes.int"):
        t(I).where(1, 2)
    with pytest.raises(OverflowError, match=r"arange\(0, 300, 1\) does not fit dtypes.uchar"):
        Tensor.arange(300, dtype="uint8")
    with pytest.raises(DTypeError, match="a weak dtype has no bytes"):
        Tensor(1).bitcast("int8")
    with pytest.raises(RuntimeError, match="cannot create storage for weak dtype"):
        Tensor.empty(2, dtype=dtypes.weakint)
    with pytest.raises(DTypeError, match="only float tensors have gradients"):
        t(I).is_param_()


CASTS: list[tuple[Any, str, list[Any]]] = [
    ([-1.5, 0.0, 2.7, 300.7, np.nan], "uint8", [0, 0, 2, 255, 0]), ([-1, 300], "uint8", [255, 44]),
    ([0.0, 0.5, np.nan], "bool", [False, True, True]),
    ([3e9, -3e9, 1.9], "int32", [2**31 - 1, -2**31, 1]), ([1.00390625, 1.01171875], "bfloat16", [1.0, 1.015625]),
]


@pytest.mark.parametrize("values, dtype, want", CASTS)
def test_cast_values(values: Any, dtype: str, want: list[Any]) -> None:
    np.testing.assert_array_equal(evaluate(Tensor(values, device="NPY").cast(dtype).uop), want)
