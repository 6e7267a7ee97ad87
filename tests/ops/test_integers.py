"""Integers of 16 to 64 bits on every device: edges and random pairs through every binary op, any shift count."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import evaluate_np

from .elementwise import Array, apply, check_numbers, compute, edges, mixed, pairs, tensor
from .test_exhaustive8 import BINARY, LATE

WIDE = [dt for dt in dtypes.ints if dt.itemsize > 1]
LITERALS = (0, 1, -1, 2, 3, -3, 7, 10, 64, 100, 1000, 32767, 65535, 10**6, 2**31 - 1, -(2**31), 2**40 + 1, 2**63)


def operands(dtype: DType) -> tuple[Array, Array]:
    """Every pair of edges, then random ones; the number of pairs is odd."""
    x, y = pairs(edges(dtype))
    x, y = np.concatenate([x, mixed(dtype, 3000, 1)]), np.concatenate([y, mixed(dtype, 3000, 2)])
    return (x[1:], y[1:]) if x.size % 2 == 0 else (x, y)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("op", BINARY, ids=str)
def test_pairs(op: Ops, dtype: DType, dev: str, code: str) -> None:
    x, y = operands(dtype)
    with Context(SPEC=0 if op in LATE else 1):
        got = apply(op, tensor(x, dtype), tensor(y, dtype))
    check_numbers(got, np.asarray(evaluate_np(op, dtype, x, y)), x, y)


@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR], ids=str)
def test_shift_counts_of_other_types(op: Ops, dtype: DType, dev: str, code: str) -> None:
    x = mixed(dtype, 501, 3)
    for counts in (dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.uint64) if dev == "CPU" else (dtypes.int32,):
        y = mixed(counts, 501, 4)
        y[::2] = np.resize([0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 127], y[::2].size)
        if counts.itemsize > 1:
            y[1::10] = 256
        check_numbers(apply(op, tensor(x, dtype), tensor(y, counts)), np.asarray(evaluate_np(op, dtype, x, y)), x, y)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("op", [Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD, Ops.MUL, Ops.SHL, Ops.SHR], ids=str)
def test_literals(op: Ops, dtype: DType, dev: str) -> None:
    """Division by a literal is a multiplication, and so on."""
    x = np.concatenate([edges(dtype), mixed(dtype, 300, 5)])
    t = tensor(x, dtype)
    numbers = [c for c in LITERALS if dtype.min <= c <= dtype.max]
    for c in numbers if dev in ("CPU", "PYTHON") else numbers[1::4]:
        want = np.asarray(evaluate_np(op, dtype, x, np.full_like(x, c)))
        check_numbers(compute(lambda u, v=c: UOp(op, (u, UOp.const(v, dtype))), t), want, x)


@pytest.mark.parametrize("dtype", [dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint32], ids=str)
def test_power(dtype: DType, dev: str) -> None:
    x, y = mixed(dtype, 201, 6), np.resize(np.arange(-3 if dtype.min < 0 else 0, 9), 201).astype(dtype.fmt)
    got = apply(Ops.POW, tensor(x, dtype), tensor(y, dtype))
    check_numbers(got, np.asarray(evaluate_np(Ops.POW, dtype, x, y)), x, y)


def test_threefry(dev: str, code: str) -> None:
    x, y = mixed(dtypes.uint64, 331, 7), mixed(dtypes.uint64, 331, 8)
    got = apply(Ops.THREEFRY, tensor(x, dtypes.uint64), tensor(y, dtypes.uint64))
    check_numbers(got, np.asarray(evaluate_np(Ops.THREEFRY, dtypes.uint64, x, y)), x, y)


@pytest.mark.parametrize("count", [32, 100])
def test_literal_counts_outside_of_the_width(count: int, dev: str) -> None:
    x = Tensor(np.array([1, -2, 2**31 - 1], np.int32)).realize()
    assert (x << count).tolist() == [0, 0, 0]
    assert (x >> count).tolist() == [0, -1, 0]
