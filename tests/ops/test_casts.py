"""Conversions between all types on every device, and bit casts: saturation, NaN, rounding once."""
from __future__ import annotations

import math

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes, storage_fmt
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import cast_np, from_storage_np, to_storage_np

from .elementwise import Array, all_of, check_numbers, compute, edges, mixed, numbers, tensor


def sample(dtype: DType, count: int = 901) -> Array:
    """Edges and numbers of every size; all values of 8 bits, and of half."""
    if dtype.itemsize == 1 or dtype is dtypes.float16:
        return all_of(dtype)
    x = np.concatenate([edges(dtype), mixed(dtype, count, 1)])
    return x if x.size % 2 else x[1:]


@pytest.mark.parametrize("source", dtypes.all, ids=str)
def test_every_pair_of_types(source: DType, dev: str, code: str) -> None:
    x = sample(source)
    t = tensor(x, source)
    targets = dtypes.all if code == "vector" or dev == "CPU" else dtypes.all[::2]
    for target in targets:
        if target is not source:
            got = compute(lambda u, dt=target: UOp(Ops.CAST, (u,), dt), t)
            try:
                check_numbers(got, np.asarray(cast_np(x, source, target)), x)
            except AssertionError as e:
                raise AssertionError(f"{source} to {target}: {e}") from None


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 17, 33])
def test_short_arrays(n: int, dev: str) -> None:
    """Conversions that change the width, at lane counts that fill no vector."""
    pairs = ((dtypes.float16, dtypes.float64), (dtypes.float16, dtypes.bfloat16), (dtypes.int8, dtypes.float64),
             (dtypes.float64, dtypes.float16), (dtypes.float64, dtypes.uint8), (dtypes.uint8, dtypes.int64),
             (dtypes.int64, dtypes.int8), (dtypes.float32, dtypes.uint64), (dtypes.uint64, dtypes.float32))
    for source, target in pairs if dev == "CPU" else pairs[n % 3::3]:
        x = mixed(source, 4 * n, n)[:n]
        got = compute(lambda u, dt=target: UOp(Ops.CAST, (u,), dt), tensor(x, source))
        check_numbers(got, np.asarray(cast_np(x, source, target)), x)


def test_float_to_int_saturates(dev: str) -> None:
    x = Tensor([math.nan, math.inf, -math.inf, 3e9, -3e9, 1e20, -1e20, 255.9, 256.0, -0.9, -1.0, 127.5, -128.9])
    top, bottom = 2**31 - 1, -(2**31)
    assert x.cast("int32").tolist() == [0, top, bottom, top, bottom, top, bottom, 255, 256, 0, -1, 127, -128]
    assert x.cast("uint8").tolist() == [0, 255, 0, 255, 0, 255, 0, 255, 255, 0, 0, 127, 0]
    assert x.cast("int8").tolist() == [0, 127, -128, 127, -128, 127, -128, 127, 127, 0, -1, 127, -128]
    assert x.cast("uint64").tolist() == [0, 2**64 - 1, 0, 3 * 10**9, 0, 2**64 - 1, 0, 255, 256, 0, 0, 127, 0]
    assert x.cast("bool").tolist() == [True] * 13


def test_int64_through_uint32(dev: str) -> None:
    assert Tensor([0x12345678ABCDEF01], dtype="int64").cast("uint32").cast("int64").item() == 2882400001


def test_int64_to_float32_rounds_once(dev: str) -> None:
    """2**24 + 1 + 2**-k ties and values that float64 cannot hold."""
    x = np.array([2**24 + 1, 2**25 + 2, 2**53 + 1, 2**62 + 2**38 + 1, 2**62 + 2**38, -(2**62) - 2**38 - 1, 2**63 - 1])
    check_numbers(Tensor(x).float().numpy(), x.astype(np.float32), x)
    u = np.array([2**63 + 2**39 + 1, 2**63 + 2**39, 2**64 - 1, 2**64 - 2**39], np.uint64)
    check_numbers(Tensor(u).float().numpy(), u.astype(np.float32), u)


@pytest.mark.parametrize("source", [dt for dt in dtypes.all if dt is not dtypes.bool], ids=str)
def test_bitcasts(source: DType, dev: str) -> None:
    x = sample(source)[:64]
    t = tensor(x, source)
    raw = np.ascontiguousarray(to_storage_np(x, source))
    for target in dtypes.all:
        if target.itemsize == source.itemsize and target is not dtypes.bool:
            want = np.asarray(from_storage_np(raw.view(storage_fmt(target)), target))
            check_numbers(numbers(t.bitcast(target)), want, x)
            inside = compute(lambda u, dt=target: UOp(Ops.BITCAST, (UOp(Ops.WHERE, (u.ne(u), u, u)),), dt), t)
            check_numbers(inside, want, x)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, *dtypes.fp8s], ids=str)
def test_storage_keeps_every_code(dtype: DType, dev: str) -> None:
    """Load, select and store: no code changes but that of NaN."""
    x = all_of(dtype)
    check_numbers(numbers(tensor(x, dtype).flip(0)), x[::-1], x[::-1])
