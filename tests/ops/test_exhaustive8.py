"""Every pair of 8-bit integers through every binary op: definition, folding, reference device and kernels agree.

Kernels read both operands from memory, so nothing folds. SUB and NEG stand in no tensor graph (rewrites make them), so
their kernels are built with graph checks off.
"""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp
from tinyhost.uop.rules import simplify
from tinyhost.uop.semantics import cast, cast_np, evaluate, evaluate_np

from .elementwise import all_of, apply, check_numbers, compute, pairs, tensor

BINARY = [Ops.ADD, Ops.MUL, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.MAX, Ops.CMOD, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.XOR,
          Ops.OR, Ops.AND, Ops.SUB, Ops.FLOORDIV, Ops.FLOORMOD]
ON_BOOLS = [Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.XOR, Ops.OR, Ops.AND, Ops.SUB]
LATE = {Ops.SUB, Ops.NEG}
INT8S = (dtypes.int8, dtypes.uint8)
LITERALS = (0, 1, -1, 2, 3, 7, 8, 10, 100, 127, -128, -127, 255, 128)


def check(op: Ops, dtype: DType) -> None:
    x, y = pairs(all_of(dtype))
    with Context(SPEC=0 if op in LATE else 1):
        got = apply(op, tensor(x, dtype), tensor(y, dtype))
    check_numbers(got, np.asarray(evaluate_np(op, dtype, x, y)), x, y)


# *** the definition and folding ***
@pytest.mark.parametrize("dtype", INT8S, ids=str)
@pytest.mark.parametrize("op", BINARY, ids=str)
def test_both_faces_of_the_definition(op: Ops, dtype: DType) -> None:
    x, y = pairs(all_of(dtype))
    want = [evaluate(op, dtype, pair) for pair in zip(x.tolist(), y.tolist())]
    assert np.asarray(evaluate_np(op, dtype, x, y)).tolist() == want


def folded(op: Ops, dtype: DType, *operands: int) -> object:
    return simplify(UOp(op, tuple(UOp.const(v, dtype) for v in operands))).const_value


@pytest.mark.parametrize("dtype", INT8S, ids=str)
@pytest.mark.parametrize("op", [op for op in BINARY if op is not Ops.SUB], ids=str)
def test_folding_of_a_sample(op: Ops, dtype: DType) -> None:
    for x in range(dtype.min, dtype.max + 1, 5):
        for y in range(dtype.min, dtype.max + 1, 3):
            assert folded(op, dtype, x, y) == evaluate(op, dtype, (x, y)), (x, y)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", INT8S, ids=str)
@pytest.mark.parametrize("op", [op for op in BINARY if op is not Ops.SUB], ids=str)
def test_folding_of_every_pair(op: Ops, dtype: DType) -> None:
    for x in range(dtype.min, dtype.max + 1):
        for y in range(dtype.min, dtype.max + 1):
            assert folded(op, dtype, x, y) == evaluate(op, dtype, (x, y)), (x, y)


# *** kernels ***
@pytest.mark.parametrize("dtype", INT8S, ids=str)
@pytest.mark.parametrize("op", BINARY, ids=str)
def test_every_pair_on_devices(op: Ops, dtype: DType, dev: str, code: str) -> None:
    check(op, dtype)


@pytest.mark.parametrize("op", ON_BOOLS, ids=str)
def test_bools_on_devices(op: Ops, dev: str, code: str) -> None:
    x, y = (np.tile(v, 37) for v in pairs(all_of(dtypes.bool)))
    with Context(SPEC=0 if op in LATE else 1):
        got = apply(op, tensor(x, dtypes.bool), tensor(y, dtypes.bool))
    check_numbers(got, np.asarray(evaluate_np(op, dtypes.bool, x, y)), x, y)


@pytest.mark.parametrize("dtype", [*INT8S, dtypes.bool], ids=str)
def test_negation_on_devices(dtype: DType, dev: str, code: str) -> None:
    x = all_of(dtype)
    with Context(SPEC=0):
        check_numbers(apply(Ops.NEG, tensor(x, dtype)), np.asarray(evaluate_np(Ops.NEG, dtype, x)), x)


@pytest.mark.parametrize("source", [*INT8S, dtypes.bool], ids=str)
def test_casts_of_every_value_on_devices(source: DType, dev: str, code: str) -> None:
    x = all_of(source)
    t = tensor(x, source)
    for target in dtypes.all:
        want = np.asarray(cast_np(x, source, target))
        assert str(want.tolist()) == str([cast(v, source, target) for v in x.tolist()])  # nan prints alike
        if target is not source:
            check_numbers(compute(lambda u, dt=target: UOp(Ops.CAST, (u,), dt), t), want, x)


@pytest.mark.parametrize("dtype", INT8S, ids=str)
@pytest.mark.parametrize("op", [op for op in BINARY if op not in LATE], ids=str)
def test_every_value_with_literals_on_devices(op: Ops, dtype: DType, dev: str) -> None:
    """Division, remainder and shifts by literals have code of their own."""
    numbers = [c for c in LITERALS if dtype.min <= c <= dtype.max]
    if dev not in ("CPU", "PYTHON"):
        numbers = numbers[::3]
    x = all_of(dtype)
    t = tensor(x, dtype)
    for c in numbers:
        y = np.full_like(x, c)
        got = compute(lambda u, v=c: UOp(op, (u, UOp.const(v, dtype))), t)
        check_numbers(got, np.asarray(evaluate_np(op, dtype, x, y)), x)
        if op not in GroupOp.Commutative:
            got = compute(lambda u, v=c: UOp(op, (UOp.const(v, dtype), u)), t)
            check_numbers(got, np.asarray(evaluate_np(op, dtype, y, x)), x)
