"""Numbers where frameworks often go wrong: conversions, NaN, integer division, folding against running, wide arguments.

Each value is computed three ways, which must agree: from realized data, from literals that fold, and one at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, dtypes

pytestmark = pytest.mark.usefixtures("device")
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SPECIAL = [
    math.nan,
    math.inf,
    -math.inf,
    -1.0,
    -0.9,
    0.5,
    127.5,
    128.0,
    255.0,
    256.0,
    300.0,
    65504.0,
    65536.0,
    -70000.0,
    3e9,
    -3e9,
    1e19,
    -1e19,
    1e30,
]


def same(a: Any, b: Any) -> bool:
    return bool(
        np.array_equal(np.array(a, dtype=object).astype(float), np.array(b, dtype=object).astype(float), equal_nan=True)
    )


def three_ways(values: list[Any], source: str, fn: Any) -> list[Any]:
    """``fn`` over the values at once, one by one, and on literals; all the same."""
    together = fn(Tensor(values, dtype=source).realize()).tolist()
    alone = [fn(Tensor([v], dtype=source).realize()).tolist()[0] for v in values[:6]]
    folded = [fn(Tensor(v, dtype=source)).item() for v in values[:6]]
    assert same(together[:6], alone) and same(alone, folded), (together, alone, folded)
    return together


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", INTS)
def test_floats_become_integers_in_one_way(source: str, target: str) -> None:
    """NaN gives 0, all else truncates and saturates."""
    values = [v for v in SPECIAL if source != "float16" or not 65504 < abs(v) < math.inf]
    info = np.iinfo(target)
    want = [
        0
        if math.isnan(v)
        else info.max
        if v == math.inf
        else info.min
        if v == -math.inf
        else min(max(int(np.dtype(source).type(v)), info.min), info.max)
        for v in values
    ]
    assert three_ways(values, source, lambda x: x.cast(target)) == want


@pytest.mark.parametrize("source, target", [("float32", "float16"), ("float64", "float16"), ("float64", "float32")])
def test_what_a_narrow_float_does_not_hold_is_infinite(source: str, target: str) -> None:
    values = [65504.0, 65519.9, 65520.0, 65536.0, -70000.0, *((1e39, -1e39) if source == "float64" else ()), 1e-8]
    with np.errstate(over="ignore"):
        want = np.array(values, source).astype(target).tolist()
    assert same(three_ways(values, source, lambda x: x.cast(target)), want)
    assert same(Tensor(values, dtype=source).realize().cast(target).cast(source).tolist(), want)


def test_bfloat16_rounds_and_overflows() -> None:
    values = [1.00390625, 1.01171875, 3.4e38, -3.39e38, math.inf]
    got = three_ways(values, "float32", lambda x: x.cast("bfloat16").float())
    assert same(got, [1.0, 1.015625, math.inf, -3.3895313892515355e38, math.inf])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_maximum_and_minimum_keep_nan_on_both_sides(dtype: str) -> None:
    a, b = [math.nan, 1.0, 2.0, -math.inf, math.nan], [1.0, math.nan, 3.0, 5.0, math.nan]
    x, y = Tensor(a, dtype=dtype).realize(), Tensor(b, dtype=dtype).realize()
    for got, want in (
        (x.maximum(y), np.maximum(a, b)),
        (y.maximum(x), np.maximum(a, b)),
        (x.minimum(y), np.minimum(a, b)),
        (x.maximum(1.5), np.maximum(a, 1.5)),
        (x.minimum(1.5), np.minimum(a, 1.5)),
    ):
        np.testing.assert_array_equal(got.numpy(), want)
    for got, want in ((x.max(), np.max(a)), (x.min(), np.min(a)), (x[2:4].max(), 2.0), (x[2:4].min(), -math.inf)):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", INTS)
def test_floor_division_and_remainder_are_exact(dtype: str) -> None:
    info = np.iinfo(dtype)
    edge = [info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1]
    xs = sorted(
        {
            v
            for v in (*range(0, 120), *range(-60, 0), 640, 641, 642, -641, 110, 2**31 - 2, 2**53 + 1, 2**62 + 3, *edge)
            if info.min <= v <= info.max
        }
    )
    x = Tensor(xs, dtype=dtype).realize()
    for d in (1, 2, 3, 5, 7, 10, 55, 127, 641, 65537, 2**31 - 1, -1, -3, -55):
        if not info.min <= d <= info.max or (d == -1 and info.min < 0):
            continue
        want = [v // d for v in xs], [v % d for v in xs]
        by_number, divisor = (x // d, x % d), Tensor([d], dtype=dtype).realize()
        assert (by_number[0].tolist(), by_number[1].tolist()) == want, d
        assert ((x // divisor).tolist(), (x % divisor).tolist()) == want, d
        assert (Tensor(xs[-1], dtype=dtype) // Tensor(d, dtype=dtype)).item() == xs[-1] // d


@pytest.mark.parametrize("dtype", INTS)
def test_arithmetic_wraps_whether_it_folds_or_runs(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = [info.max, info.min, info.max - 1, 7, 0, 100]
    for fn in (lambda x: x + 1, lambda x: x - 1, lambda x: x * 2, lambda x: -x, lambda x: x * x, lambda x: x << 1):
        with np.errstate(over="ignore"):
            want = fn(np.array(values, dtype)).astype(dtype).tolist()
        assert three_ways(values, dtype, fn) == want


@pytest.mark.parametrize("factor, offset, divisor", [(48, 241, 16), (6, 5, 4), (-4, 3, 2), (16, -17, 8), (9, 2, 3)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "int16"])
def test_division_of_scaled_numbers(dtype: str, factor: int, offset: int, divisor: int) -> None:
    xs = [-10, -3, -1, 0, 1, 3, 12]
    x = Tensor(xs, dtype=dtype).realize()
    assert ((x * factor + offset) // divisor).tolist() == [(v * factor + offset) // divisor for v in xs]
    assert ((x * factor + offset) % divisor).tolist() == [(v * factor + offset) % divisor for v in xs]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trigonometry_of_large_arguments(dtype: str) -> None:
    values = np.array([39800.0, 1e6, -1e6, 1e8, 12345.678, -0.0], dtype)
    x = Tensor(values).realize()
    tolerance = 1e-9 if dtype == "float64" else 3e-7
    for name in ("sin", "cos"):
        want = getattr(np, name)(values.astype(np.float64))
        np.testing.assert_allclose(getattr(x, name)().numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, most", [("float32", 1e30), ("float64", 1e150), ("float16", 200.0)])
def test_inverse_hyperbolics_do_not_cancel(dtype: str, most: float) -> None:
    values = np.array([-most, -150.0, -30.0, -1e-3, 1e-3, 30.0, most], dtype)
    got = Tensor(values).realize().asinh().numpy()
    np.testing.assert_allclose(got, np.arcsinh(values.astype(np.float64)), rtol=1e-2 if dtype == "float16" else 1e-5)
    assert (np.sign(got) == np.sign(values)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers(dtype: str) -> None:
    bases = [-2.0, 0.0, -2.0, 2.0, 0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -8.0]
    exponents = [-2.3, 0.0, 3.0, 2000.0, -1.0, -1.0, math.nan, math.inf, 0.0, -1.0, 1 / 3]
    with np.errstate(all="ignore"):
        want = np.power(np.array(bases, dtype), np.array(exponents, dtype))
    x, e = Tensor(bases, dtype=dtype).realize(), Tensor(exponents, dtype=dtype).realize()
    np.testing.assert_allclose((x**e).numpy(), want, rtol=1e-6)
    for i, (b, p) in enumerate(zip(bases, exponents)):
        np.testing.assert_allclose(
            (Tensor([b], dtype=dtype).realize() ** p).item(), want[i], rtol=1e-6, err_msg=f"{b} ** {p}"
        )
        np.testing.assert_allclose(
            (b ** Tensor([p], dtype=dtype).realize()).item(), want[i], rtol=1e-6, err_msg=f"{b} ** {p}"
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_of_narrow_floats_do_not_overflow(dtype: str) -> None:
    assert Tensor.full((70000,), 1.0, dtype=dtype).contiguous().realize().mean().item() == 1.0
    assert Tensor([1, 2, 3], dtype=dtype).realize().mean().item() == 2.0
    x = Tensor.full((4, 300), 300.0, dtype=dtype).contiguous().realize()
    want = float(x[0, 0].item())
    assert x.mean(1).tolist() == [want] * 4 and x.mean().dtype is x.dtype
    assert x.var().item() == 0


@pytest.mark.parametrize("dtype", INTS)
def test_comparison_with_a_number_the_dtype_does_not_hold(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = [info.min, 1, info.max]
    x = Tensor(values, dtype=dtype).realize()
    for number in (info.min - 1, info.max + 1, -1, 300, 0.5):
        for op in ("__lt__", "__gt__", "__le__", "__ge__", "__eq__", "__ne__"):
            want = [
                bool(getattr(float(v), op)(float(number))) if isinstance(number, float) else getattr(v, op)(number)
                for v in values
            ]
            try:
                got = getattr(x, op)(number).tolist()
            except (OverflowError, ValueError, TypeError) as e:
                assert str(number) in str(e) and dtype[-2:].strip("t") in str(e)
            else:
                assert got == want, (op, number)


def test_sums_of_bools_count() -> None:
    x = Tensor([[True, True, False], [True, False, False]]).realize()
    for got, want in ((x.sum(), 3), (x.sum(0), [2, 1, 0]), (x.sum(1), [2, 1]), (x.cumsum(1), [[1, 2, 2], [1, 1, 1]])):
        assert got.tolist() == want and dtypes.is_int(got.dtype)
    np.testing.assert_allclose(x.mean().item(), 0.5)
    assert x.prod().item() == 0 and x.any().item() is True and x.all().item() is False


@pytest.mark.parametrize("shape", [(5, 3, 4), (1, 7, 1), (16, 33, 9)])
def test_products_agree_with_numpy_closely(shape: tuple[int, int, int]) -> None:
    n, k, m = shape
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, k)).astype(np.float32), rng.standard_normal((k, m)).astype(np.float32)
    np.testing.assert_allclose((Tensor(x) @ Tensor(w)).numpy(), x @ w, rtol=1e-5, atol=1e-5)
