"""POW of floats by sums of two floats: at most 2 ulp where exponents are large, in either type."""
from __future__ import annotations

import mpmath
import numpy as np
import pytest
from evaluate_graph import evaluate_graph

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp, graph_rewrite
from tinyhost.uop.rules import double_word
from tinyhost.uop.rules.decompose import get_decompositions
from tinyhost.uop.semantics import carrier_np

Array = np.ndarray
OPS = GroupOp.ALU - {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW}
NO_DOUBLE = frozenset(dtypes.all) - {dtypes.float64}


def computed(a: Array, b: Array, dtype: DType, fused: bool) -> Array:
    x, y = UOp.param(0, dtype), UOp.param(1, dtype)
    there = NO_DOUBLE if dtype is dtypes.float32 else frozenset(dtypes.all)
    rules = get_decompositions(OPS if fused else OPS - {Ops.MULACC}, there)
    out = graph_rewrite(UOp(Ops.POW, (x, y)), rules)
    assert not any(u.op is Ops.POW or dtype is dtypes.float32 and u.dtype is dtypes.float64 for u in out.toposort())
    return np.asarray(evaluate_graph(out, {x: a, y: b}))


def worst(a: Array, b: Array, got: Array) -> float:
    """Largest error in ulp of the exact value."""
    most = 0.0
    with mpmath.workprec(200):
        for x, y, v in zip(a.tolist(), b.tolist(), got):
            exact = mpmath.mpf(x) ** mpmath.mpf(y)
            unit = float(np.spacing(got.dtype.type(min(float(exact), float(np.finfo(got.dtype).max)))))
            if np.isfinite(v):
                most = max(most, abs(float((mpmath.mpf(float(v)) - exact) / unit)))
            else:
                assert exact > float(np.finfo(got.dtype).max)
    return most


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_error(dtype: DType, fused: bool) -> None:
    rng, carrier, count = np.random.default_rng(1), carrier_np(dtype), 800
    top = 120 if dtype is dtypes.float32 else 1000
    # results over the whole range, bases near 1 with large exponents among them
    base = np.concatenate([np.exp2(rng.uniform(-20, 20, count)), 1 + rng.uniform(-1e-3, 1e-3, count)]).astype(carrier)
    exponent = (rng.uniform(-top, top, base.size) / np.log2(base.astype(np.float64))).astype(carrier)
    assert worst(base, exponent, computed(base, exponent, dtype, fused)) <= 2.0
    tiny = (np.finfo(carrier).tiny * rng.uniform(0, 1, 100)).astype(carrier)
    small = rng.uniform(-0.9, 0.9, 100).astype(carrier)
    assert worst(tiny, small, computed(tiny, small, dtype, fused)) <= 2.0


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_infinite_and_huge_exponents(dtype: DType) -> None:
    carrier = carrier_np(dtype)
    big = float(np.finfo(carrier).max)
    cases = [(-3.5, np.inf, np.inf), (-3.5, -np.inf, 0.0), (0.5, np.inf, 0.0), (1.0, np.inf, 1.0), (-1.0, np.inf, 1.0),
             (2.0, big, np.inf), (2.0, -big, 0.0), (np.nextafter(carrier.type(1), carrier.type(2)), big, np.inf),
             (np.nextafter(carrier.type(1), carrier.type(0)), big, 0.0), (0.0, -2.0, np.inf), (-0.0, 3.0, -0.0),
             (np.inf, -1.0, 0.0), (-np.inf, 3.0, -np.inf), (np.nan, 0.0, 1.0), (1.0, np.nan, 1.0), (-0.0, 0.5, 0.0),
             (-np.inf, 0.5, np.inf), (big, 2.0, np.inf), (big, -2.0, 0.0)]
    a, b, want = (np.array(v, carrier) for v in zip(*cases))
    for fused in (True, False):
        got = computed(a, b, dtype, fused)
        np.testing.assert_array_equal(got, want)
        assert np.array_equal(np.signbit(got), np.signbit(want))
    bad = computed(np.array([-2.0, np.nan, 2.0], carrier), np.array([0.5, 2.0, np.nan], carrier), dtype, True)
    assert np.isnan(bad).all()


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_products_keep_twice_the_digits(dtype: DType) -> None:
    x, y = UOp.param(0, dtype), UOp.param(1, dtype)
    rng, carrier = np.random.default_rng(2), carrier_np(dtype)
    a, b = (rng.standard_normal(2000).astype(carrier) for _ in range(2))
    high, low = (np.asarray(evaluate_graph(u, {x: a, y: b})) for u in double_word.product(x, y))
    with mpmath.workprec(200):
        errors = [abs(float(mpmath.mpf(float(p)) * mpmath.mpf(float(q)) - float(h) - mpmath.mpf(float(v))))
                  / abs(float(p) * float(q)) for p, q, h, v in zip(a, b, high, low)]
    assert np.array_equal(high, a * b) and max(errors) <= (0.0 if dtype is dtypes.float32 else 2.0**-103)
