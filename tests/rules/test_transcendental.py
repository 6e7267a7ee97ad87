"""Accuracy of EXP2, LOG2 and SIN as polynomials, against float64, long double and exact arithmetic."""
import functools
import math

import mpmath
import numpy as np
import pytest
from evaluate_graph import evaluate_graph

from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp, graph_rewrite
from tinyhost.uop.rules.decompose import get_decompositions
from tinyhost.uop.rules.transcendental import named_functions, replace_formulas
from tinyhost.uop.semantics import carrier_np, evaluate_np

NAMED = named_functions(True)
NO_DOUBLE = frozenset(dtypes.all) - {dtypes.float64}
FUSED = GroupOp.ALU - {Ops.EXP2, Ops.LOG2, Ops.SIN}
DTYPES = {dtypes.float32: (2.0, np.uint32), dtypes.float64: (2.0, np.uint64)}
COUNT = 60000


def graph(op, dt, fused=True, wide=True):
    x, there = UOp.param(0, dt), frozenset(dtypes.all) if wide else NO_DOUBLE
    return x, graph_rewrite(UOp(op, (x,)), get_decompositions(FUSED if fused else FUSED - {Ops.MULACC}, there))


def compute(op, values, dt, fused=True, wide=True):
    x, out = graph(op, dt, fused, wide)
    return evaluate_graph(out, {x: values.astype(carrier_np(dt))})


def ulps(got, exact, dt):
    """Distance in units of the last place of the exact value."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(carrier_np(dt))
        assert (np.isnan(got) == np.isnan(rounded)).all()
        finite = np.isfinite(rounded) & np.isfinite(got)
        assert (got[~finite & ~np.isnan(got)] == rounded[~finite & ~np.isnan(got)]).all()
        unit = np.spacing(np.abs(rounded[finite])).astype(np.longdouble)
    return float((np.abs(got[finite].astype(np.longdouble) - exact[finite]) / unit).max(initial=0))


def exact_sin(values):
    with mpmath.workprec(1300):
        return np.array([np.longdouble(mpmath.nstr(mpmath.sin(mpmath.mpf(float(v))), 30)) if math.isfinite(v)
                         else np.longdouble("nan") for v in values])


def any_bits(dt, seed=0):
    return np.random.default_rng(seed).integers(0, 2**dt.bitsize, COUNT, dtype=DTYPES[dt][1]).view(carrier_np(dt))


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dt", DTYPES)
def test_exp2(dt, fused):
    rng = np.random.default_rng(1)
    span = (-160, 135) if dt is dtypes.float32 else (-1080, 1030)
    for values in (rng.uniform(*span, COUNT), rng.standard_normal(COUNT), any_bits(dt), np.arange(*span)):
        values = values.astype(carrier_np(dt))
        with np.errstate(all="ignore"):
            exact = np.exp2(values.astype(np.longdouble))
        assert ulps(compute(Ops.EXP2, values, dt, fused), exact, dt) <= DTYPES[dt][0]
    whole = np.arange(*span).astype(carrier_np(dt))
    with np.errstate(all="ignore"):
        exact = np.exp2(whole.astype(np.float64)).astype(whole.dtype)
        assert np.array_equal(compute(Ops.EXP2, whole, dt, fused), exact)


def named(formula, values, dt, fused=True, wide=True):
    """A formula of the mixin as code generation computes it."""
    x = UOp.param(0, dt)
    found = graph_rewrite(formula(x), named_functions(wide), bottom_up=True)
    assert wide or dt is dtypes.float64 or not any(u.dtype is dtypes.float64 for u in found.toposort())
    assert not any(u.op in (Ops.EXP2, Ops.LOG2, Ops.SIN) for u in found.toposort())
    out = graph_rewrite(found, get_decompositions(FUSED if fused else FUSED - {Ops.MULACC}))
    return evaluate_graph(out, {x: values.astype(carrier_np(dt))})


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dt", DTYPES)
def test_exp_is_reduced_by_itself(dt, sign, fused):
    """2**(x * log2(e)) is as exact as 2**x: the product is not rounded before the reduction."""
    factor = sign / math.log(2)
    rng, span = np.random.default_rng(4), (-104, 89) if dt is dtypes.float32 else (-746, 710)
    for formula in (lambda x: UOp(Ops.EXP2, (x * factor,)), lambda x: UOp(Ops.EXP2, (UOp.const(factor, dt) * x,))):
        for values in (rng.uniform(*span, COUNT), rng.standard_normal(COUNT), any_bits(dt), np.array([0.0, -0.0])):
            values = values.astype(carrier_np(dt))
            got = named(formula, values if sign > 0 else -values, dt, fused)
            with np.errstate(all="ignore"):
                assert ulps(got, np.exp(values.astype(np.longdouble)), dt) <= 2.0


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dt", DTYPES)
def test_logarithms_of_other_bases(dt, fused):
    rng = np.random.default_rng(6)
    for name in ("log", "log10"):
        for values in (np.abs(rng.standard_normal(COUNT)), 1 + rng.standard_normal(COUNT) * 1e-3, any_bits(dt)):
            values = values.astype(carrier_np(dt))
            with np.errstate(all="ignore"):
                exact = getattr(np, name)(values.astype(np.longdouble))
            assert ulps(named(lambda x: getattr(x, name)(), values, dt, fused), exact, dt) <= 2.0


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", ["cos", "tan"])
@pytest.mark.parametrize("dt, wide", [*((dt, True) for dt in DTYPES), (dtypes.float32, False)])
def test_cos_and_tan_near_multiples_of_a_quarter_turn(dt, wide, name, fused):
    k = np.random.default_rng(7).integers(1, 2**14, 400)
    near = (np.longdouble("1.57079632679489661923132169") * k).astype(carrier_np(dt))
    for values in (near, np.nextafter(near, near.dtype.type(0)), near * np.exp2(60), np.array([0.0, -0.0, 1e-30])):
        values = values.astype(carrier_np(dt))
        with mpmath.workprec(1300):
            exact = np.array([np.longdouble(mpmath.nstr(getattr(mpmath, name)(mpmath.mpf(float(v))), 30))
                              for v in values])
        got = named(lambda x: getattr(x, name)(), values, dt, fused, wide)
        assert ulps(got, exact, dt) <= 2.0
        assert name == "tan" or (np.abs(got) <= 1).all()


@pytest.mark.parametrize("dt", DTYPES)
def test_exp_of_a_literal_is_folded_exactly(dt):
    for v in (80.3, -80.3, 0.0, -0.0, 1.0, math.inf, -math.inf, 1000.0, math.nan):
        folded = UOp.const(v, dt).exp().simplify()
        assert folded.is_const, folded
        with np.errstate(all="ignore"):
            exact = np.exp(np.longdouble(carrier_np(dt).type(v))).astype(carrier_np(dt))
        assert np.array_equal(carrier_np(dt).type(folded.const_value), exact, equal_nan=True)


def test_formulas_of_other_constants_stay():
    x = UOp.param(0, dtypes.float32)
    half = UOp(Ops.SIN, (x * 0.5,))
    for u in (UOp(Ops.EXP2, (x * 1.4427,)), UOp(Ops.LOG2, (x,)) * 0.6931, half * half * -2 + 2, half * half * -3 + 1,
              UOp(Ops.FDIV, (UOp(Ops.SIN, (x * 2,)), x.cos()))):
        kept = [v for v in graph_rewrite(u, NAMED, bottom_up=True).toposort()
                if v.op in (Ops.EXP2, Ops.LOG2, Ops.SIN)]
        assert kept


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dt", DTYPES)
def test_log2(dt, fused):
    rng = np.random.default_rng(2)
    for values in (np.abs(rng.standard_normal(COUNT)), 1 + rng.standard_normal(COUNT) * 1e-3, any_bits(dt)):
        values = values.astype(carrier_np(dt))
        with np.errstate(all="ignore"):
            exact = np.log2(values.astype(np.longdouble))
        assert ulps(compute(Ops.LOG2, values, dt, fused), exact, dt) <= DTYPES[dt][0]
    powers = np.exp2(np.arange(-140, 120).astype(np.float64))
    assert np.array_equal(compute(Ops.LOG2, powers, dt, fused), np.arange(-140, 120))


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dt", DTYPES)
def test_sin(dt, fused, wide=True):
    rng = np.random.default_rng(3)
    most = 127 if dt is dtypes.float32 else 1023
    k = rng.integers(1, 2**13 if dt is dtypes.float32 else 2**20, 300)
    near = (np.longdouble("3.14159265358979323846264338") * k).astype(carrier_np(dt))
    for values in (rng.standard_normal(2000) * 3, near, np.nextafter(near, near.dtype.type(0)),
                   rng.uniform(-1e5, 1e5, 1000), rng.uniform(1, 2, 1000) * 2.0 ** rng.integers(5, most, 1000),
                   any_bits(dt)[:1000]):
        values = values.astype(carrier_np(dt))
        assert ulps(compute(Ops.SIN, values, dt, fused, wide), exact_sin(values), dt) <= DTYPES[dt][0]


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
def test_sin_on_a_target_without_float64(fused):
    test_sin(dtypes.float32, fused, wide=False)
    assert not any(u.dtype is dtypes.float64 for u in graph(Ops.SIN, dtypes.float32, fused, False)[1].toposort())


def test_the_hardest_arguments_of_sin():
    """Numbers closest to a multiple of pi (Muller, "Elementary Functions", table 11.1, for float64)."""
    hard = np.array([6381956970095103.0 * 2.0**797])
    assert ulps(compute(Ops.SIN, hard, dtypes.float64), exact_sin(hard), dtypes.float64) <= 2
    bits = np.arange(0x4B000000, 0x7F800000, 0x47357, dtype=np.uint32).view(np.float32)
    for wide in (True, False):
        assert ulps(compute(Ops.SIN, bits, dtypes.float32, wide=wide), exact_sin(bits), dtypes.float32) <= 2


@pytest.mark.parametrize("dt", [dtypes.float16, dtypes.bfloat16, *DTYPES])
def test_special_values(dt):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0])
    for op in (Ops.EXP2, Ops.LOG2, Ops.SIN):
        got = compute(op, values, dt)
        want = evaluate_np(op, dt, values.astype(carrier_np(dt)))
        nan = np.isnan(want)
        assert np.allclose(got[~nan], want[~nan], rtol=1e-6) and (np.isnan(got) == nan).all()
        assert np.array_equal(np.signbit(got[~nan]), np.signbit(want[~nan]))


@pytest.mark.parametrize("dt", DTYPES)
def test_subnormal_numbers(dt):
    least = {dtypes.float32: 2.0**-149, dtypes.float64: 2.0**-1074}[dt]
    values = np.array([1, -1, 3, 1000]) * least
    assert np.array_equal(compute(Ops.SIN, values, dt), values)
    assert np.array_equal(compute(Ops.EXP2, values, dt), np.ones(4))
    exact = np.log2(np.abs(values).astype(np.longdouble))
    assert ulps(compute(Ops.LOG2, np.abs(values), dt), exact, dt) <= 1


@pytest.mark.parametrize("dt", [dtypes.float16, dtypes.bfloat16])
def test_narrow_floats_go_through_float32(dt):
    values = np.linspace(0.01, 9, 500)
    from tinyhost.uop.semantics import cast_np
    rounded = cast_np(values, dtypes.float64, dt)
    for op in (Ops.EXP2, Ops.LOG2, Ops.SIN):
        assert np.array_equal(compute(op, rounded, dt), evaluate_np(op, dt, rounded))


@functools.cache
def exact_erf(v):
    return np.longdouble(mpmath.nstr(mpmath.erf(mpmath.mpf(v)), 25))


EXACT = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "expm1": np.expm1, "log1p": np.log1p,
         "_half_exp": lambda x: np.where(x < 0, 0.5, np.exp(x - np.log(np.longdouble(2)))),
         "erf": lambda x: np.copysign(np.array([exact_erf(float(v)) for v in x]), x)}
SPANS = {"sigmoid": [(-104, 40), (-4, 4)], "tanh": [(-10, 10), (-0.6, 0.6)], "expm1": [(-20, 88), (-1, 1)],
         "log1p": [(-0.999, 3), (-1e-3, 1e-3), (0, 1e30)], "_half_exp": [(0, 89)], "erf": [(-5, 5), (-0.5, 0.5)]}


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dt", DTYPES)
def test_formulas_of_the_mixin_become_functions(dt, name, fused):
    """The formula as the mixin writes it is found, and what replaces it is as exact as the documents say."""
    rng = np.random.default_rng(8)
    for span in SPANS[name]:
        values = rng.uniform(*span, COUNT if name != "erf" else 2000).astype(carrier_np(dt))
        got = named(lambda x: getattr(x, name)(), values, dt, fused)
        with np.errstate(all="ignore"):
            assert ulps(got, EXACT[name](values.astype(np.longdouble)), dt) <= 2.5


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "expm1", "log1p", "erf", "exp", "log", "exp2", "log2"])
@pytest.mark.parametrize("dt", DTYPES)
def test_ends_of_functions(dt, name):
    """Limits, signs of zeros, subnormal and huge numbers, NaN."""
    info = np.finfo(carrier_np(dt))
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny, info.max / 2,
                       info.smallest_subnormal, -info.smallest_subnormal, 3 * info.smallest_subnormal, -1.0, 1.0, -2.0])
    got = named(lambda x: getattr(x, name)(), values, dt) if name not in ("exp2", "log2") else \
        compute(Ops[name.upper()], values, dt)
    with np.errstate(all="ignore"):
        want = EXACT.get(name, getattr(np, name, None))(values.astype(np.longdouble)).astype(carrier_np(dt))
    number = ~np.isnan(want)
    assert (np.isnan(got) == ~number).all() and np.array_equal(np.isinf(got), np.isinf(want))
    assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])
    np.testing.assert_allclose(got[number], want[number], rtol=4 * info.eps, atol=0)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "erf", "log", "log1p", "expm1"])
def test_results_rise_where_polynomials_meet(name):
    """Over neighbours of the points where n changes, results fall by at most what two roundings may."""
    at = np.array([0.1733, 0.34657359, 0.5, 0.55, 1 / 3, 2 / 3, 1.0, 4 / 3, 3.5])
    values = np.sort((at[:, None] + np.arange(-500, 501) * 2.0**-24).ravel()).astype(np.float32)
    got = named(lambda x: getattr(x, name)(), values, dtypes.float32).astype(np.float64)
    assert (np.diff(got) >= -3 * np.spacing(np.abs(got[1:]).astype(np.float32))).all()


def test_exponentials_of_what_cannot_be_positive_are_shorter():
    """-|x|, and x less its maximum as in a softmax, need neither an upper bound nor two factors."""
    rows, i, j, k = UOp.param(0, dtypes.float32, 4096), *(UOp.range(64, n) for n in range(3))
    top = UOp(Ops.REDUCE, (rows.index(i * 64 + j), j), (Ops.MAX, 0))
    other = UOp(Ops.REDUCE, (rows.index(i * 64 + j + 1), j), (Ops.MAX, 0))
    x = UOp.param(1, dtypes.float32)
    def bounds(u):
        found = graph_rewrite(u.exp(), NAMED, bottom_up=True)
        return sum(v.op in (Ops.MAX, Ops.CMPLT) for v in found.toposort().keys() - u.toposort().keys())
    for u in (rows.index(i * 64 + k) - top, (x < 0).where(x, -x), (x > 0).where(-x, x), -x.abs()):
        assert bounds(u) == 1
    for u in (rows.index(i * 64 + k) - other, x, (x < 0).where(-x, x), (x < 1).where(x, -x), x.abs()):
        assert bounds(u) == 2
    values = np.concatenate([np.random.default_rng(9).uniform(-105, 0, COUNT), [0.0, -np.inf, np.nan, -1e-40]])
    values = values.astype(np.float32)
    found = graph_rewrite((x < 0).where(x, -x).exp(), NAMED, bottom_up=True)
    got = evaluate_graph(graph_rewrite(found, get_decompositions(FUSED)), {x: values})
    with np.errstate(all="ignore"):
        assert ulps(got, np.exp(values.astype(np.longdouble)), dtypes.float32) <= 1.5


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softplus"])
def test_a_formula_whose_exponential_has_other_readers_stays(name):
    """Gradients read it: computing the function as well would compute it twice."""
    x = UOp.param(0, dtypes.float32)
    y = getattr(x, name)()
    core = next(u for u in y.toposort() if u.op is Ops.EXP2)
    alone, shared = (replace_formulas(UOp.sink(*roots), True) for roots in ((y,), (y, core * 2.0)))
    shifts = [sum(u.op is Ops.SHL for u in sink.toposort()) for sink in (alone, shared)]
    assert shifts == [1, 1] and alone.src[0] is not y
    assert name == "softplus" or alone.src[0] is not shared.src[0]


def test_graphs_stay_small():
    sizes = {(op, dt): sum(u.op in GroupOp.ALU for u in graph(op, dt)[1].toposort())
             for op in (Ops.EXP2, Ops.LOG2, Ops.SIN) for dt in DTYPES}
    assert sizes[Ops.EXP2, dtypes.float32] <= 17 and sizes[Ops.LOG2, dtypes.float32] <= 31
    assert sizes[Ops.SIN, dtypes.float32] <= 90 and sizes[Ops.SIN, dtypes.float64] <= 170
