"""Float arithmetic on devices, bit for bit: + - * / sqrt and what is made of comparisons, for every float type.

Operands are random bit patterns (subnormals, NaN, infinities, both zeros) and edges; all NaNs count as one. Types that
a target lacks are emulated, and round as the definition says all the same.
"""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.ops import GroupOp, Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import carrier_np, evaluate_np

from .elementwise import all_of, apply, check_numbers, compute, edges, mixed, numbers, pairs, random_bits, tensor
from .test_exhaustive8 import LATE

IEEE = (dtypes.float16, dtypes.float32, dtypes.float64)
NARROW = (dtypes.bfloat16, *dtypes.fp8s)
BINARY = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)
UNARY = (Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.NEG)


def check(op: Ops, dtype: DType, *operands: np.ndarray) -> None:
    with Context(SPEC=0 if op in LATE else 1):
        got = apply(op, *[tensor(x, dtype) for x in operands])
    check_numbers(got, np.asarray(evaluate_np(op, dtype, *operands)), *operands)


# *** arithmetic ***
@pytest.mark.parametrize("dtype", [*IEEE, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("op", BINARY, ids=str)
def test_binary(op: Ops, dtype: DType, dev: str, code: str) -> None:
    count = 10007  # a prime: no vector divides it
    x, y = pairs(edges(dtype))
    x, y = np.concatenate([x, mixed(dtype, count, 1)]), np.concatenate([y, mixed(dtype, count, 2)])
    check(op, dtype, x, y)


@pytest.mark.parametrize("dtype", [*IEEE, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("op", UNARY, ids=str)
def test_unary(op: Ops, dtype: DType, dev: str, code: str) -> None:
    check(op, dtype, all_of(dtype) if dtype.itemsize == 2 else np.concatenate([edges(dtype), mixed(dtype, 10007, 3)]))


@pytest.mark.parametrize("dtype", dtypes.fp8s, ids=str)
@pytest.mark.parametrize("op", [op for op in BINARY if op not in LATE], ids=str)
def test_every_pair_of_fp8(op: Ops, dtype: DType, dev: str) -> None:
    check(op, dtype, *pairs(all_of(dtype)))


@pytest.mark.parametrize("dtype", IEEE, ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.FDIV, Ops.SQRT], ids=str)
def test_lengths_around_vectors(op: Ops, dtype: DType, dev: str) -> None:
    lengths = [*range(1, 20), 31, 33, 63, 65, 127, 129] if dev in ("CPU", "PYTHON") else [1, 2, 3, 5, 7, 17, 33]
    for n in lengths:
        check(op, dtype, *[random_bits(dtype, n, 100 + n + i) for i in range(1 if op is Ops.SQRT else 2)])


@pytest.mark.parametrize("dtype", IEEE, ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.SQRT], ids=str)
def test_big_vectors(op: Ops, dtype: DType, dev: str) -> None:
    """Enough for every worker thread."""
    n = 300_001 if dev.startswith("CPU") else 70_001
    check(op, dtype, *[random_bits(dtype, n, 7 + i) for i in range(1 if op is Ops.SQRT else 2)])


@pytest.mark.soak
@pytest.mark.parametrize("dtype", IEEE, ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.SQRT], ids=str)
def test_many_random_patterns(op: Ops, dtype: DType, dev: str, code: str) -> None:
    for seed in range(20):
        check(op, dtype, *[random_bits(dtype, 1_000_003, 50 * seed + i) for i in range(1 if op is Ops.SQRT else 2)])


@pytest.mark.parametrize("dtype", [*IEEE, *NARROW], ids=str)
def test_tensor_operators(dtype: DType, dev: str) -> None:
    """What users write: x - y, x / y, -x, with literals too."""
    x, y = mixed(dtype, 1501, 4), mixed(dtype, 1501, 5)
    a, b = tensor(x, dtype), tensor(y, dtype)
    three = np.full_like(x, 3.0)
    for got, op, operands in ((a + b, Ops.ADD, (x, y)), (a - b, Ops.SUB, (x, y)), (a * b, Ops.MUL, (x, y)),
                              (a / b, Ops.FDIV, (x, y)), (a / 3, Ops.FDIV, (x, three)), (3 / a, Ops.FDIV, (three, x)),
                              (a - 3, Ops.SUB, (x, three)), (3 - a, Ops.SUB, (three, x)), (-a, Ops.NEG, (x,)),
                              (a.maximum(b), Ops.MAX, (x, y)), (a.sqrt(), Ops.SQRT, (x,))):
        assert got.dtype is dtype
        check_numbers(numbers(got), np.asarray(evaluate_np(op, dtype, *operands)), *operands)


# *** NaN ***
SPECIAL = np.array([np.nan, 1.0, 2.0, -1.0, 0.0, -0.0, np.inf, -np.inf])
_COMPARE = {"<": lambda x: x < 1, ">": lambda x: x > 1, "!=": lambda x: x != 1, "==": lambda x: x == 1,
            "<=": lambda x: x <= 1, ">=": lambda x: x >= 1}


@pytest.mark.parametrize("sign", _COMPARE)
def test_where_nan_cond(sign: str, dev: str, code: str) -> None:
    """The mask of a comparison selects among values of any width; NaN is true for != only."""
    cond, x = _COMPARE[sign], np.tile(SPECIAL, 5)
    for compared in IEEE:
        t = tensor(x.astype(carrier_np(compared)), compared)
        assert cond(t).numpy().tolist() == cond(x).tolist()
        for width in (np.float32, np.float64, np.int8, np.int16):
            a, b = np.arange(x.size).astype(width), -np.arange(x.size).astype(width) - width(1)
            got = cond(t).where(Tensor(a), Tensor(b)).numpy()
            assert got.dtype == width and np.array_equal(got, np.where(cond(x), a, b)), (compared, width)


@pytest.mark.parametrize("compared", NARROW, ids=str)
def test_comparisons_of_emulated_types(compared: DType, dev: str) -> None:
    t = tensor(SPECIAL.astype(np.float32), compared)
    x = numbers(t)  # e4m3 has no infinity
    for sign, cond in _COMPARE.items():
        assert cond(t).numpy().tolist() == cond(x).tolist(), sign
        chosen = cond(t).where(Tensor(1.5), Tensor(-1.0)).numpy()
        assert chosen.tolist() == np.where(cond(x), 1.5, -1.0).tolist(), sign


@pytest.mark.parametrize("dtype", [*IEEE, dtypes.bfloat16, dtypes.fp8e5m2], ids=str)
def test_max_and_min_keep_nan(dtype: DType, dev: str, code: str) -> None:
    x, y = pairs(edges(dtype))
    a, b = tensor(x, dtype), tensor(y, dtype)
    nan = np.isnan(x) | np.isnan(y)
    for got in (numbers(a.maximum(b)), numbers(a.minimum(b))):
        assert np.array_equal(np.isnan(got), nan)
    got = numbers(a.minimum(b))
    assert np.array_equal(got[~nan], np.minimum(x, y)[~nan])
    for tail in range(1, 40, 6):  # wherever the NaN stands in a reduction
        values = np.arange(37, dtype=x.dtype)
        values[tail - 1] = np.nan
        assert np.isnan(tensor(values, dtype).max().float().item()), tail
        assert np.isnan(tensor(values, dtype).min().float().item()), tail


def test_half_gate_of_half_values(dev: str) -> None:
    t = Tensor(np.array([-1.0, 1.0], np.float16))
    assert (t > 0).where(Tensor.ones(2, dtype="half"), Tensor.zeros(2, dtype="half")).tolist() == [0.0, 1.0]


def test_narrow_gate_of_wide_values(dev: str) -> None:
    gate = Tensor(np.array([1, 2, 5, 9], np.float32)) < 3.0
    wide = gate.where(Tensor(np.array([10, 20, 30, 40.0])), Tensor(np.array([50, 60, 70, 80.0])))
    assert wide.dtype is dtypes.float64 and wide.tolist() == [10, 20, 70, 80]


# *** nothing rewrites a value ***
@pytest.mark.parametrize("dtype", IEEE, ids=str)
def test_identities_of_reals_are_not_used(dtype: DType, dev: str) -> None:
    x = np.concatenate([edges(dtype), mixed(dtype, 200, 6)])
    t = tensor(x, dtype)
    zero, one = x.dtype.type(0), x.dtype.type(1)
    with np.errstate(all="ignore"):
        for got, want in ((t * 0, x * zero), (t + 0.0, x + zero), (t - t, x - x), (t / t, x / x), (t * 1, x),
                          (t / 1, x), (t * -1, -x), (t + t, x + x), ((t + 1) - 1, (x + one) - one),
                          (t * 3 / 3, x * 3 / 3), ((t * t).sqrt(), np.sqrt(x * x)), (t != t, x != x),
                          (t.isnan(), np.isnan(x))):
            check_numbers(numbers(got), np.asarray(want), x)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL], ids=str)
def test_a_chain_rounds_at_each_step(op: Ops, dev: str, code: str) -> None:
    """x*y+z outside of a reduction is two roundings, never a fused multiply-add."""
    x, y, z = (random_bits(dtypes.float32, 20011, s) for s in (1, 2, 3))
    a, b, c = (tensor(v, dtypes.float32) for v in (x, y, z))
    got = compute(lambda u, v, w: UOp(Ops.ADD, (UOp(op, (u, v)), w)), a, b, c)
    inner = np.asarray(evaluate_np(op, dtypes.float32, x, y))
    check_numbers(got, np.asarray(evaluate_np(Ops.ADD, dtypes.float32, inner, z)), x, y, z)
    assert op in GroupOp.Binary
