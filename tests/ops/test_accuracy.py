"""Math functions stay within the error that ``docs/accuracy.md`` states, on a sample of arguments."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import FUNCTIONS, TYPES, Function, measure, sweep, ulp_errors
from tinyhost.codegen.lower import native_ops
from tinyhost.device import renderer_of
from tinyhost.env import Context
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor

BY_NAME = {f.name: f for f in FUNCTIONS}


def check(f: Function, dtype: type, bound: float, count: int, seed: int, every: int) -> None:
    errors, arguments, got = measure(f, dtype, count, seed, every)
    at = int(errors.argmax())
    where = [float(a[at]) for a in arguments]
    assert errors[at] <= bound, f"{f.name} of {where} is {got[at]!r}: {errors[at]:.2f} ulp off, {bound} allowed"


@pytest.mark.parametrize("name", BY_NAME)
def test_sample(name: str, dev: str) -> None:
    f = BY_NAME[name]
    for dtype, bound in zip(TYPES, f.bounds):
        check(f, dtype, bound, count=600, seed=1, every=61 if dtype is np.float16 else 1)


@pytest.mark.soak
@pytest.mark.parametrize("name", BY_NAME)
def test_all_halves_and_many_others(name: str, dev: str) -> None:
    f = BY_NAME[name]
    for dtype, bound in zip(TYPES, f.bounds):
        check(f, dtype, bound, count=20_000 if dtype is np.float64 else 1_000_000, seed=2, every=1)


def check_sweep(name: str, every: int) -> None:
    f = BY_NAME[name]
    worst, where, count = sweep(f, every)
    assert count > 1 << 20 and worst <= f.bounds[1], f"{name} of {where!r} is {worst} ulp off, {f.bounds[1]} allowed"


@pytest.mark.soak
@pytest.mark.parametrize("name", [f.name for f in FUNCTIONS if f.arity == 1])
def test_every_float32(name: str) -> None:
    check_sweep(name, 1)


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_one_float32_of_a_thousand(name: str) -> None:
    check_sweep(name, 1009)


@pytest.mark.parametrize("name", ["exp2", "log2", "sin"])
def test_polynomials_on_a_target_that_has_the_op(name: str) -> None:
    """TRANSCENDENTAL=2 on PYTHON: the polynomial's error, not numpy's."""
    f = BY_NAME[name]
    with Context(DEV="PYTHON"):
        native = measure(f, np.float32, 4000, 1)
        with Context(TRANSCENDENTAL=2):
            assert Ops[name.upper()] not in native_ops(renderer_of("PYTHON"))
            errors, _, got = measure(f, np.float32, 4000, 1)
    assert native[0].max() <= 0.5001 and 0.5001 < errors.max() <= f.bounds[1]
    assert not np.array_equal(got, native[2])


def test_document_states_the_bounds() -> None:
    text = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ") and "float16" not in line]
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert {r[0]: tuple(float(v) for v in r[1:4]) for r in rows} == {f.name: f.bounds for f in FUNCTIONS}


def test_errors_are_counted_in_last_places() -> None:
    one = np.array([1.0, 2.0, np.inf, np.nan], np.float32)
    high = np.array([1.0 + 2.0**-23, 2.0 - 2.0**-23, 1e39, 1.0])
    assert ulp_errors(one, high, np.zeros(4)).tolist() == [1.0, 1.0, 0.0, np.inf]


_ARC = {"asin": "arcsin", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}


def from_numpy(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name == "erf":
            return np.array([math.erf(v) for v in x], x.dtype)
        if name == "sigmoid":
            return np.exp(-np.logaddexp(0, -x.astype(np.float64))).astype(x.dtype)
        return getattr(np, _ARC.get(name, name))(x)


@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "tanh", "sinh", "cosh", "asin", "atan", "asinh", "acosh",
                                  "erf", "sin", "log", "sqrt"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_of_the_range(name: str, dtype: type, dev: str) -> None:
    """Zeros keep their sign; infinities, NaN and huge numbers come out as in numpy."""
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, info.max, info.smallest_subnormal, 1.0, -1.0, 88.0,
                  -88.0, 0.5, 0.625], dtype)
    got = getattr(Tensor(x), name)().numpy()
    want = from_numpy(name, x)
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])
    np.testing.assert_allclose(got, want, rtol=1e-5 if dtype is np.float32 else 1e-13, atol=0)
