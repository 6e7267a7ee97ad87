"""Decompositions keep the value that ``semantics.py`` defines: all 8-bit operands, edges of wider types."""
import itertools

import numpy as np
import pytest
from evaluate_graph import evaluate_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp, graph_rewrite
from tinyhost.uop.rules.decompose import NATIVE, get_decompositions
from tinyhost.uop.semantics import carrier_np, cast_np, evaluate_np

LEAST = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.WHERE, Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.CDIV, Ops.CMOD,
                   Ops.SHL, Ops.SHR, Ops.SQRT, Ops.FDIV})
MACHINE = LEAST | {Ops.NEG, Ops.SUB, Ops.CMPEQ, Ops.MULACC, Ops.TRUNC}
INT_OPS = (Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR, Ops.MAX, Ops.CMPEQ, Ops.SUB, Ops.MUL)


def decomposed(u, ops=MACHINE, types=frozenset(dtypes.all)):
    out = graph_rewrite(u, get_decompositions(ops, types))
    missing = {n.op for n in out.toposort() if n.op in GroupOp.ALU and n.op not in ops}
    assert not missing and out.dtype is u.dtype
    return out


def alu_ops(u):
    return [n.op for n in u.toposort() if n.op in GroupOp.ALU]


def check_domain(root, leaves):
    """No instruction sees an operand outside its domain."""
    for u in root.toposort():
        if u.op in (Ops.CDIV, Ops.CMOD):
            x, y = (evaluate_graph(s, leaves) for s in u.src)
            assert (y != 0).all()
            if not u.dtype.is_unsigned:
                assert not ((x == u.dtype.min) & (y == -1)).any()
        elif u.op in (Ops.SHL, Ops.SHR):
            count = evaluate_graph(u.src[1], leaves)
            assert ((count >= 0) & (count < u.dtype.bitsize)).all()


@pytest.mark.parametrize("ops", [LEAST, MACHINE], ids=["least", "machine"])
@pytest.mark.parametrize("dt", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("op", INT_OPS)
def test_every_8_bit_pair(ops, dt, op):
    x, y = UOp.param(0, dt), UOp.param(1, dt)
    numbers = np.arange(dt.min, dt.max + 1).astype(carrier_np(dt))
    a, b = np.meshgrid(numbers, numbers, indexing="ij")
    out = decomposed(UOp(op, (x, y)), ops)
    assert np.array_equal(evaluate_graph(out, {x: a, y: b}), evaluate_np(op, dt, a, b))
    check_domain(out, {x: a, y: b})


@pytest.mark.parametrize("dt", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("op", INT_OPS)
def test_every_8_bit_number_and_literal(dt, op):
    x = UOp.param(0, dt)
    numbers = np.arange(dt.min, dt.max + 1).astype(carrier_np(dt))
    for c in range(dt.min, dt.max + 1):
        out = decomposed(UOp(op, (x, UOp.const(c, dt))))
        got = np.broadcast_to(evaluate_graph(out, {x: numbers}), numbers.shape)
        assert np.array_equal(got, evaluate_np(op, dt, numbers, np.full_like(numbers, c))), c
        check_domain(out, {x: numbers})


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_wide_division_by_literals(data):
    dt = data.draw(st.sampled_from([dtypes.int16, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64]))
    op = data.draw(st.sampled_from([Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD]))
    c = data.draw(st.integers(1, 1000) | st.integers(dt.min, dt.max))
    number = st.integers(dt.min, dt.max)
    lo, hi = sorted((data.draw(number), data.draw(number | st.integers(0, 4000))))
    x = UOp.variable("x", lo, hi, dt)
    middle = (lo + hi) // 2
    multiples = [n // c * c for n in (lo, hi, 0, c, -c, middle)] if c else []
    near = {v + d for v in multiples for d in (-1, 0, 1)} | {lo, hi, middle}
    numbers = np.array(sorted(v for v in near if lo <= v <= hi), carrier_np(dt))
    wide = data.draw(st.booleans())
    types = frozenset(dtypes.all) if wide else frozenset(dtypes.all) - {dtypes.int64}
    out = decomposed(UOp(op, (x, UOp.const(c, dt))), MACHINE, types)
    got = np.broadcast_to(evaluate_graph(out, {x: numbers}), numbers.shape)
    assert np.array_equal(got, evaluate_np(op, dt, numbers, np.full_like(numbers, c)))
    assert wide or dt is dtypes.int64 or not any(u.dtype is dtypes.int64 for u in out.toposort())


# *** what bounds buy ***
def test_bounds_remove_guards():
    x, y = UOp.variable("x", 0, 1000, dtypes.int32), UOp.variable("y", 1, 9, dtypes.int32)
    any_int = UOp.param(0, dtypes.int32)
    assert alu_ops(decomposed(UOp(Ops.FLOORDIV, (x, y)))) == [Ops.CDIV]
    assert alu_ops(decomposed(UOp(Ops.FLOORMOD, (x, y)))) == [Ops.CMOD]
    assert decomposed(UOp(Ops.CDIV, (any_int, y))).op is Ops.CDIV
    assert alu_ops(decomposed(UOp(Ops.SHL, (any_int, y)))) == [Ops.SHL]
    guarded = decomposed(UOp(Ops.CDIV, (any_int, UOp.param(1, dtypes.int32))))
    assert guarded.op is Ops.WHERE and [u.tag for u in guarded.toposort() if u.op is Ops.CDIV] == [NATIVE]
    # no zero, but perhaps INT_MIN / -1
    only_minus_one = decomposed(UOp(Ops.CDIV, (any_int, UOp.variable("z", -3, -1, dtypes.int32))))
    assert Ops.WHERE in alu_ops(only_minus_one)
    assert alu_ops(decomposed(UOp(Ops.CDIV, (x, UOp.variable("z", -3, -1, dtypes.int32))))) == [Ops.CDIV]


def test_division_by_literals_is_cheap():
    x = UOp.variable("x", 0, 1000, dtypes.int32)
    half = UOp.const(8, dtypes.int32)
    assert alu_ops(decomposed(UOp(Ops.FLOORDIV, (x, half)))) == [Ops.SHR]
    assert alu_ops(decomposed(UOp(Ops.CDIV, (x, half)))) == [Ops.SHR]
    assert alu_ops(decomposed(UOp(Ops.FLOORMOD, (x, half)))) == [Ops.AND]
    seventh = decomposed(UOp(Ops.FLOORDIV, (x, UOp.const(7, dtypes.int32))))
    assert alu_ops(seventh) == [Ops.MUL, Ops.SHR] and all(u.dtype is not dtypes.int64 for u in seventh.toposort())


def test_shapes_of_the_result():
    x, y = UOp.param(0, dtypes.int32), UOp.param(1, dtypes.float32)
    assert decomposed(UOp(Ops.MUL, (x, UOp.const(8, dtypes.int32)))).op is Ops.SHL
    assert decomposed(UOp(Ops.MUL, (UOp.const(-1.0), y))).op is Ops.NEG
    negated = UOp(Ops.MUL, (UOp.param(2, dtypes.float32), UOp.const(-1.0, dtypes.float32)))
    assert decomposed(UOp(Ops.ADD, (y, negated))).op is Ops.SUB
    different = UOp(Ops.CMPNE, (UOp(Ops.CMPNE, (x, UOp.const(3))), UOp.const(True)))
    assert decomposed(different).op is Ops.CMPEQ
    flag = UOp.param(3, dtypes.bool)
    assert decomposed(UOp(Ops.MUL, (flag, UOp.param(4, dtypes.bool)))).op is Ops.AND
    assert decomposed(UOp(Ops.MAX, (flag, UOp.param(4, dtypes.bool)))).op is Ops.OR
    assert decomposed(UOp(Ops.CAST, (y,), dtypes.bool)).op is Ops.CMPNE


def test_weak_nodes_are_left_alone():
    i = UOp.range(10, 0)
    for op in (Ops.FLOORDIV, Ops.FLOORMOD, Ops.MUL, Ops.CDIV):
        u = UOp(op, (i, UOp.const(4)))
        assert graph_rewrite(u, get_decompositions(MACHINE)) is u


def test_a_total_target_gets_no_guards():
    x, y = UOp.param(0, dtypes.int32), UOp.param(1, dtypes.int32)
    pm = get_decompositions(GroupOp.ALU)
    for op in (Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.FLOORDIV):
        assert graph_rewrite(UOp(op, (x, y)), pm).op is op
    to_int = UOp(Ops.CAST, (UOp.param(2, dtypes.float32),), dtypes.int32)
    assert graph_rewrite(to_int, pm) is to_int


def test_decomposing_twice_changes_nothing():
    pm = get_decompositions(MACHINE)
    x, y, f = UOp.param(0, dtypes.int32), UOp.param(1, dtypes.int32), UOp.param(2, dtypes.float32)
    for u in (UOp(Ops.FLOORDIV, (x, y)), UOp(Ops.CAST, (f,), dtypes.int8), UOp(Ops.SIN, (f,)), UOp(Ops.POW, (f, f)),
              UOp(Ops.SHR, (x, y)), UOp(Ops.MAX, (f, UOp(Ops.EXP2, (f,))))):
        once = graph_rewrite(u, pm)
        assert graph_rewrite(once, pm) is once


# *** floats ***
EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, np.nan, np.inf, -np.inf, 1e-40, 3e38] + [
    s * (2.0**k + d) for k in range(70) for d in (-1, -0.5, 0, 0.5, 1) for s in (1, -1)]


def edges(dt):
    with np.errstate(all="ignore"):
        return cast_np(np.array(EDGES), dtypes.float64, dt)


@pytest.mark.parametrize("src", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.fp8e5m2])
def test_float_to_int(src):
    x, values = UOp.param(0, src), edges(src)
    for dst in (*dtypes.ints, dtypes.bool):
        out = decomposed(UOp(Ops.CAST, (x,), dst), LEAST)
        assert np.array_equal(evaluate_graph(out, {x: values}), cast_np(values, src, dst)), dst
        for u in out.toposort():
            if u.op is Ops.CAST and u.src[0].dtype.is_float and u.dtype.is_int and not u.is_const:
                inner = evaluate_graph(u.src[0], {x: values}).astype(np.float64)
                assert ((inner > u.dtype.min - 1.0) | (inner == u.dtype.min)).all()
                assert (inner < u.dtype.max + 1.0).all()


def test_conversions_that_surely_fit_have_no_guard():
    small = UOp(Ops.CAST, (UOp.variable("i", 0, 100, dtypes.int32),), dtypes.float32)
    back = UOp(Ops.CAST, (small,), dtypes.int32)
    assert graph_rewrite(back, get_decompositions(MACHINE)) is back


def bit_equal(a, b):
    nan = np.isnan(a) & np.isnan(b)
    return np.array_equal(a[~nan], b[~nan]) and np.array_equal(np.signbit(a[~nan]), np.signbit(b[~nan]))


@pytest.mark.parametrize("dt", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.fp8e4m3])
def test_float_operations(dt):
    x, y, values = UOp.param(0, dt), UOp.param(1, dt), edges(dt)
    a, b = np.meshgrid(values, values)
    for op in (Ops.MAX, Ops.SUB, Ops.CMPEQ):
        got = evaluate_graph(decomposed(UOp(op, (x, y)), LEAST), {x: a, y: b})
        assert bit_equal(got, evaluate_np(op, dt, a, b)), op
    for op in (Ops.TRUNC, Ops.NEG, Ops.RECIPROCAL):
        got = evaluate_graph(decomposed(UOp(op, (x,)), LEAST), {x: values})
        assert bit_equal(got, evaluate_np(op, dt, values)), op
    for c in (0.0, 1.0, np.nan, dt.min):
        got = evaluate_graph(decomposed(UOp(Ops.MAX, (x, UOp.const(c, dt)))), {x: values})
        assert bit_equal(got, evaluate_np(Ops.MAX, dt, values, np.full_like(values, c)))


def test_division_where_only_reciprocals_exist():
    ops = LEAST - {Ops.FDIV} | {Ops.RECIPROCAL}
    x, y = UOp.param(0, dtypes.float32), UOp.param(1, dtypes.float32)
    out = graph_rewrite(UOp(Ops.FDIV, (x, y)), get_decompositions(ops))
    assert alu_ops(out) == [Ops.RECIPROCAL, Ops.MUL]


def test_threefry():
    x, key = UOp.param(0, dtypes.uint64), UOp.param(1, dtypes.uint64)
    a, b = np.random.default_rng(0).integers(0, 2**64, (2, 1000), dtype=np.uint64)
    out = decomposed(UOp(Ops.THREEFRY, (x, key)), LEAST)
    assert np.array_equal(evaluate_graph(out, {x: a, key: b}), evaluate_np(Ops.THREEFRY, dtypes.uint64, a, b))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-3, 7.0, 1.5, -2.5]


@pytest.mark.parametrize("dt", [dtypes.float16, dtypes.float32, dtypes.float64])
def test_power_of_special_values(dt):
    x, y = UOp.param(0, dt), UOp.param(1, dt)
    a, b = (v.astype(carrier_np(dt)) for v in np.meshgrid(SPECIAL, SPECIAL))
    got = evaluate_graph(decomposed(UOp(Ops.POW, (x, y)), LEAST), {x: a, y: b})
    want = evaluate_np(Ops.POW, dt, a, b)
    close = np.isclose(got, want, rtol=1e-12 if dt is dtypes.float64 else 2.0 ** -(dtypes.finfo(dt)[1]), equal_nan=True)
    assert close.all() and (np.isnan(want) | (np.signbit(got) == np.signbit(want))).all()


def test_power_is_exact_for_integers():
    x, y = UOp.param(0, dtypes.float32), UOp.param(1, dtypes.float32)
    out = decomposed(UOp(Ops.POW, (x, y)))
    for a, b in itertools.product(range(1, 12), range(-3, 6)):
        got = evaluate_graph(out, {x: np.array([a], np.float32), y: np.array([b], np.float32)})
        assert got[0] == np.float32(float(a) ** b)
    assert decomposed(UOp(Ops.POW, (x, UOp.const(2.0)))).op is Ops.MUL
    assert decomposed(UOp(Ops.POW, (x, UOp.const(1.0)))) is x


def test_integer_power():
    x, y = UOp.param(0, dtypes.int32), UOp.param(1, dtypes.int32)
    a, b = np.meshgrid(np.arange(-5, 6, dtype=np.int32), np.arange(-3, 34, dtype=np.int32))
    got = evaluate_graph(decomposed(UOp(Ops.POW, (x, y))), {x: a, y: b})
    assert np.array_equal(got, evaluate_np(Ops.POW, dtypes.int32, a, b))
