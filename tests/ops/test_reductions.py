"""Reductions on every device: exact ones bit for bit, float sums against float64, lengths that fill no vector."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes, sum_acc_dtype
from tinyhost.tensor import Tensor
from tinyhost.uop.semantics import carrier_np

from .elementwise import check_numbers, mixed, numbers, random_bits, tensor

LENGTHS = (1, 2, 3, 7, 8, 9, 31, 33, 100, 257, 1031)
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_integers_wrap_and_compare(dtype: DType, dev: str, code: str) -> None:
    wide = carrier_np(sum_acc_dtype(dtype))
    for n in LENGTHS if dev == "CPU" else LENGTHS[1::5]:
        x = random_bits(dtype, n, n)
        t = tensor(x, dtype)
        assert t.max().item() == x.max() and t.min().item() == x.min(), n
        total = t.sum()
        assert total.dtype is sum_acc_dtype(dtype) and total.item() == x.sum(dtype=wide), n
        assert t.argmax().item() == x.argmax() and t.argmin().item() == x.argmin(), n
    x = random_bits(dtype, 5 * 37, 3).reshape(5, 37)
    t = tensor(x, dtype)
    check_numbers(t.sum(0).numpy(), x.sum(0, dtype=wide))
    check_numbers(t.sum(1).numpy(), x.sum(1, dtype=wide))
    check_numbers(t.max(0).numpy(), x.max(0))
    check_numbers(t.max(1).numpy(), x.max(1))
    with np.errstate(over="ignore"):
        check_numbers(t.prod(1).numpy(), x.prod(1, dtype=x.dtype))
    check_numbers(t.cumsum(1).numpy().astype(wide), np.cumsum(x, 1, dtype=carrier_np(t.cumsum(1).dtype)).astype(wide))


def test_bools(dev: str, code: str) -> None:
    for n in LENGTHS[::2]:
        x = np.zeros(n, np.bool_)
        for at in {0, n // 2, n - 1}:
            x[at] = True
            t = Tensor(x)
            assert t.any().item() is True and t.all().item() is bool(x.all()) and t.sum().item() == x.sum(), (n, at)
            assert t.max().item() is True and t.min().item() is bool(x.all())
        assert Tensor(~x).all().item() is bool((~x).all())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_sums(dtype: DType, dev: str, code: str) -> None:
    """At least float32 inside; the error is below that of adding in a row."""
    eps = {dtypes.float16: 2.0**-11, dtypes.bfloat16: 2.0**-8, dtypes.float32: 0.0, dtypes.float64: 0.0}[dtype]
    inner = 2.0**-53 if dtype is dtypes.float64 else 2.0**-24
    for n in LENGTHS if dev == "CPU" else LENGTHS[1::5]:
        x = np.random.default_rng(n).standard_normal(n).astype(carrier_np(dtype))
        t = tensor(x, dtype)
        x = numbers(t).astype(np.float64)
        allowed = n * inner * np.abs(x).sum() + eps * abs(x.sum())
        assert abs(t.sum().double().item() - x.sum()) <= allowed + 1e-12, n
        assert abs(t.mean().double().item() - x.mean()) <= (allowed + eps) / n + 1e-7 * abs(x.mean()), n
        assert t.max().double().item() == x.max() and t.min().double().item() == x.min()


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_sums_of_special_numbers(dtype: DType, dev: str, code: str) -> None:
    for values, want in (([1.0, np.inf], np.inf), ([np.inf, -np.inf], np.nan), ([np.nan, 1.0], np.nan),
                         ([-np.inf] * 9, -np.inf), ([0.0] * 40, 0.0)):
        x = np.resize(np.array(values), max(len(values), 21)).astype(carrier_np(dtype))
        got = tensor(x, dtype).sum().item()
        assert got == want or np.isnan(got) and np.isnan(want), values


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sorting_and_arguments(dtype: DType, dev: str) -> None:
    x = mixed(dtype, 63, 9)
    x = x[~np.isnan(x)]
    t = tensor(x, dtype)
    assert np.array_equal(numbers(t.sort()[0]), np.sort(x)) and t.argmax().item() == x.argmax()
    ties = np.array([1.0, 3.0, 3.0, -2.0, 3.0, -2.0], carrier_np(dtype))
    assert tensor(ties, dtype).argmax().item() == 1 and tensor(ties, dtype).argmin().item() == 3
    assert numbers(tensor(ties, dtype).topk(3)[0]).tolist() == [3.0, 3.0, 3.0]
