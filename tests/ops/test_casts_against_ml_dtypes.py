"""Casts among all types against another implementation: every value of 8 and 16 bits, and samples of wider types.

ml_dtypes (a package of numpy types with bfloat16 and fp8) rounds through float32, so wide sources are kept to values
that float32 holds; casts to integers differ by design (ours saturate, NaN gives 0), so those are computed in Python.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.tensor import Tensor

from .elementwise import Array, all_of, tensor

ml_dtypes = pytest.importorskip("ml_dtypes")
NAMES = {dtypes.bfloat16: "bfloat16", dtypes.fp8e4m3: "float8_e4m3fn", dtypes.fp8e5m2: "float8_e5m2",
         dtypes.fp8e4m3fnuz: "float8_e4m3fnuz", dtypes.fp8e5m2fnuz: "float8_e5m2fnuz"}
NARROW = (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)


def foreign(dtype: DType) -> Any:
    """The numpy type of the other implementation."""
    return np.dtype(getattr(ml_dtypes, NAMES[dtype])) if dtype in NAMES else np.dtype(dtype.fmt)


def codes(t: Tensor) -> Array:
    """The stored bits."""
    ints = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[t.dtype.itemsize]
    return t.contiguous().bitcast(ints).numpy()


def values(dtype: DType) -> Array:
    """All values of narrow types, in the carrier; for wider ones what float32 holds."""
    if dtype.itemsize == 1 or dtype in (dtypes.float16, dtypes.bfloat16):
        return all_of(dtype)
    if dtype in (dtypes.int16, dtypes.uint16):
        return np.arange(dtype.min, dtype.max + 1).astype(dtype.fmt)
    rng = np.random.default_rng(3)
    if dtype.is_int:
        return (rng.integers(0, 1 << 24, 4000) << rng.integers(0, 7, 4000)).astype(dtype.fmt)
    with np.errstate(all="ignore"):  # signalling NaN
        return rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32).astype(dtype.fmt)


def same(got: Array, want: Array) -> None:
    """Equal bits, or both NaN."""
    bits = want.view(got.dtype)
    nan = np.isnan(want.astype(np.float32))
    wrong = np.flatnonzero((got != bits) & ~nan)
    assert not wrong.size, f"{wrong.size} differ, first at {wrong[0]}: {got[wrong[0]]:#x} for {bits[wrong[0]]:#x}"


@pytest.mark.parametrize("target", NARROW, ids=str)
@pytest.mark.parametrize("source", [dt for dt in dtypes.all if dt is not dtypes.bool], ids=str)
def test_to_narrow_floats(source: DType, target: DType, dev: str) -> None:
    if source is target or (dev not in ("CPU", "CPU:CLANG") and source.itemsize != 4):
        pytest.skip("nothing to convert, or the same code as on CPU (tests/ops/test_casts.py covers every device)")
    x = values(source)
    cast = tensor(x, source).cast(target)
    with np.errstate(all="ignore"):
        want = x.astype(np.float32).astype(foreign(target))
    same(codes(cast), want)
    nan = np.isnan(want.astype(np.float32))
    assert np.array_equal(np.isnan(cast.float().numpy()), nan)


@pytest.mark.parametrize("source", NARROW, ids=str)
def test_narrow_floats_to_wide_ones(source: DType, dev: str) -> None:
    x = all_of(source)
    t = tensor(x, source)
    np.testing.assert_array_equal(t.float().numpy(), x.astype(np.float32))
    with np.errstate(all="ignore"):  # signalling NaN
        np.testing.assert_array_equal(t.double().numpy(), x.astype(np.float64))


@pytest.mark.parametrize("target", [dt for dt in dtypes.ints if dt.itemsize <= 4], ids=str)
@pytest.mark.parametrize("source", NARROW, ids=str)
def test_narrow_floats_to_integers(source: DType, target: DType, dev: str) -> None:
    """Toward zero, saturating; NaN gives 0."""
    x = all_of(source)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64).tolist()
    want = [0 if math.isnan(v) else int(min(max(v, target.min), target.max)) for v in exact]
    assert tensor(x, source).cast(target).tolist() == want


@pytest.mark.parametrize("target", dtypes.ints, ids=str)
@pytest.mark.parametrize("source", dtypes.ints, ids=str)
def test_integers_wrap(source: DType, target: DType, dev: str) -> None:
    x = values(source) if source.itemsize <= 2 else np.random.default_rng(4).integers(
        source.min, source.max, 3000, source.fmt, endpoint=True)
    np.testing.assert_array_equal(tensor(x, source).cast(target).numpy(), x.astype(target.fmt))


def test_rules_in_words(dev: str) -> None:
    """The document's rules of overflow, NaN and -0.0."""
    x = Tensor([1e9, -1e9, math.inf, -math.inf, math.nan, -0.0, 448.0, 464.0, 465.0, 1e-9])
    nan, inf = math.nan, math.inf
    want = {
        dtypes.fp8e4m3: [nan, nan, nan, nan, nan, -0.0, 448.0, 448.0, nan, 0.0],
        dtypes.fp8e5m2: [inf, -inf, inf, -inf, nan, -0.0, 448.0, 448.0, 448.0, 0.0],
        dtypes.fp8e4m3fnuz: [nan, nan, nan, nan, nan, 0.0, nan, nan, nan, 0.0],
        dtypes.fp8e5m2fnuz: [nan, nan, nan, nan, nan, 0.0, 448.0, 448.0, 448.0, 0.0],
        dtypes.float16: [inf, -inf, inf, -inf, nan, -0.0, 448.0, 464.0, 465.0, 0.0],
        dtypes.bfloat16: [1e9, -1e9, inf, -inf, nan, -0.0, 448.0, 464.0, 464.0, 1e-9]}
    for dtype, numbers in want.items():
        got = x.cast(dtype).float().numpy()
        np.testing.assert_allclose(got, np.array(numbers, np.float32), rtol=4e-3)
        assert np.signbit(got[5]) == (math.copysign(1, numbers[5]) < 0)
