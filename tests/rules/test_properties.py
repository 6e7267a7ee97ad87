"""Each rule of ``fold`` and ``linear`` on all pairs of 8-bit values, wrap-around included, and on special floats.

A case is (name of the rule, expression of two leaves, what it must become or None for "something else"). The rewritten
expression is compared with the original on every pair.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.expressions import values

from tinyhost.dtype import DType, Invalid, dtypes
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import ParamArg, UOp, semantics
from tinyhost.uop.rules import simplify

Case = tuple[str, Callable[[UOp, UOp], UOp], Callable[[UOp, UOp], Any]]


def leaf(name: str, dtype: DType) -> UOp:
    return UOp(Ops.PARAM, (), ParamArg(-1, dtype, name=name, addrspace=AddrSpace.ALU))


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of values of an 8-bit type (or of bool)."""
    one = np.array([False, True]) if dtype is dtypes.bool else np.arange(dtype.min, dtype.max + 1).astype(
        semantics.carrier_np(dtype))
    return np.repeat(one, len(one)), np.tile(one, len(one))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal values; on floats NaN equals NaN and the sign of zero counts."""
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all())


def check(dtype: DType, build: Callable[[UOp, UOp], UOp], points: Any) -> tuple[UOp, UOp, UOp]:
    x, y = leaf("x", dtype), leaf("y", dtype)
    e = build(x, y)
    s = simplify(e)
    env = {x: points[0], y: points[1]}
    assert s.dtype is e.dtype
    assert simplify(s) is s
    assert same(values(e, env), values(s, env)), f"{e.render(False)} -> {s.render(False)}"
    return x, y, s


def k(v: Any) -> UOp:
    return UOp.const(v)


def at(x: UOp, v: int) -> UOp:
    return UOp.const(v, x.dtype)


def alu(op: Ops, *src: UOp) -> UOp:
    return UOp(op, src)


INT: list[Case] = [
    ("add_literal", lambda x, y: x + 0, lambda x, y: x),
    ("sub_literal", lambda x, y: alu(Ops.SUB, x, k(0)), lambda x, y: x),
    ("mul_literal", lambda x, y: x * 1, lambda x, y: x),
    ("mul_zero", lambda x, y: x * 0, lambda x, y: UOp.const(0, x.dtype)),
    ("literal_right", lambda x, y: 3 + x, None),
    ("and_zero", lambda x, y: x & 0, lambda x, y: UOp.const(0, x.dtype)),
    ("and_ones", lambda x, y: x & -1, lambda x, y: x),
    ("and_mask", lambda x, y: (x & 15) & 31, lambda x, y: x & 15),
    ("or_zero", lambda x, y: x | 0, lambda x, y: x),
    ("or_ones", lambda x, y: x | -1, lambda x, y: simplify(UOp.const(-1, x.dtype))),
    ("xor_zero", lambda x, y: x ^ 0, lambda x, y: x),
    ("xor_twice", lambda x, y: (x ^ 5) ^ 5, lambda x, y: x),
    ("shift_zero", lambda x, y: (x << 0) + (x >> 0), None),
    ("shift_of_zero", lambda x, y: alu(Ops.SHL, UOp.const(0, x.dtype), x), lambda x, y: UOp.const(0, x.dtype)),
    ("associate_shl", lambda x, y: (x << 2) << 3, None),
    ("associate_shl_out", lambda x, y: (x << 5) << 4, None),
    ("associate_shr", lambda x, y: (x >> 2) >> 3, None),
    ("associate_shr_out", lambda x, y: (x >> 7) >> 7, None),
    ("floordiv_one", lambda x, y: x // 1, lambda x, y: x),
    ("floordiv_zero", lambda x, y: x // 0, lambda x, y: UOp.const(0, x.dtype)),
    ("floordiv_minus_one", lambda x, y: x // -1, None),
    ("cdiv_minus_one", lambda x, y: alu(Ops.CDIV, x, k(-1)), None),
    ("mod_one", lambda x, y: x % 1, lambda x, y: UOp.const(0, x.dtype)),
    ("mod_minus_one", lambda x, y: x % -1, None),
    ("cmod_minus_one", lambda x, y: alu(Ops.CMOD, x, k(-1)), None),
    ("mod_zero", lambda x, y: x % 0, lambda x, y: UOp.const(0, x.dtype)),
    ("nested_div", lambda x, y: (x // 3) // 5, lambda x, y: UOp(Ops.FLOORDIV, (x, UOp.const(15, x.dtype)))),
    ("nested_div_wide", lambda x, y: (x // 30) // 50, None),
    ("nested_cdiv", lambda x, y: alu(Ops.CDIV, alu(Ops.CDIV, x, k(3)), k(5)), None),
    ("nested_mod", lambda x, y: (x % 12) % 4, None),
    ("nested_cmod", lambda x, y: alu(Ops.CMOD, alu(Ops.CMOD, x, k(12)), k(4)), None),
    ("self_mod", lambda x, y: x % x, lambda x, y: UOp.const(0, x.dtype)),
    ("self_div", lambda x, y: x // x, None),
    ("self_xor", lambda x, y: x ^ x, lambda x, y: UOp.const(0, x.dtype)),
    ("self_sub", lambda x, y: x - x, lambda x, y: UOp.const(0, x.dtype)),
    ("idempotent", lambda x, y: (x & x) | (x | x).maximum(x), lambda x, y: x),
    ("absorb_and", lambda x, y: (x & y) & y, lambda x, y: x & y),
    ("absorb_max", lambda x, y: x.maximum(y).maximum(x), lambda x, y: x.maximum(y)),
    ("self_less", lambda x, y: x < x, lambda x, y: k(False)),
    ("self_unequal", lambda x, y: x.ne(x), lambda x, y: k(False)),
    ("self_equal", lambda x, y: alu(Ops.CMPEQ, x, x), lambda x, y: k(True)),
    ("associate_add", lambda x, y: (x + 100) + 100, None),
    ("associate_mul", lambda x, y: (x * 100) * 3, None),
    ("associate_max", lambda x, y: x.maximum(7).maximum(9), None),
    ("combine_terms", lambda x, y: x * 100 + x * 50, None),
    ("combine_same", lambda x, y: x + x, None),
    ("combine_to_nothing", lambda x, y: x * 128 + x * 128, lambda x, y: UOp.const(0, x.dtype)),
    ("cancel_term", lambda x, y: (x + y) - x, lambda x, y: y),
    ("cancel_other", lambda x, y: (x + y) - y, lambda x, y: x),
    ("not_less", lambda x, y: (x < 5).logical_not(), None),
    ("not_less_low", lambda x, y: (x < -100).logical_not(), None),
    ("not_above", lambda x, y: (alu(Ops.CMPLT, k(5), x)).logical_not(), None),
    ("compare_shifted_ne", lambda x, y: (x + 100).ne(UOp.const(7, x.dtype)), None),
    ("compare_shifted_lt", lambda x, y: ((x & 15) + 10) < UOp.const(13, x.dtype), None),
    ("compare_wide_literal", lambda x, y: x < 300, lambda x, y: k(True)),
    ("max_by_bounds", lambda x, y: (x & 7).maximum(UOp.const(7, x.dtype)), lambda x, y: UOp.const(7, x.dtype)),
    ("where_same", lambda x, y: (x < y).where(x, x), lambda x, y: x),
    ("where_not", lambda x, y: (x < y).logical_not().where(x, y), lambda x, y: (x < y).where(y, x)),
    ("where_where", lambda x, y: (x < y).where((x < y).where(x, 3), y), None),
    ("where_where_else", lambda x, y: (x < y).where(x, (x < y).where(3, y)), None),
    ("where_and", lambda x, y: (x < y).where((y < 9).where(x, y), y), None),
    ("compare_choice", lambda x, y: (x < y).where(at(x, 3), at(x, 9)) < 5, lambda x, y: x < y),
    ("cast_of_choice", lambda x, y: (x < y).where(at(x, 3), at(x, -9)).cast(dtypes.int32), None),
    ("bool_as_number", lambda x, y: (x < y).cast(dtypes.int32).ne(0), lambda x, y: x < y),
    ("bool_not_one", lambda x, y: (x < y).cast(dtypes.int32).ne(1), lambda x, y: (x < y).logical_not()),
    ("bool_below_one", lambda x, y: (x < y).cast(dtypes.int32) < 1, lambda x, y: (x < y).logical_not()),
    ("number_above_bool", lambda x, y: alu(Ops.CMPLT, k(0), (x < y).cast(dtypes.int32)), lambda x, y: x < y),
    ("cast_widen_back", lambda x, y: x.cast(dtypes.int32).cast(x.dtype), lambda x, y: x),
    ("cast_float_back", lambda x, y: x.cast(dtypes.float32).cast(x.dtype), lambda x, y: x),
    ("cast_other_sign", lambda x, y: x.cast(dtypes.int16).cast(dtypes.float32).cast(dtypes.uint8), None),
    ("cast_sign_change", lambda x, y: x.cast(dtypes.uint8).cast(dtypes.int32), None),
    ("cast_narrow_twice", lambda x, y: (x.cast(dtypes.int32) * 1000).cast(dtypes.int16).cast(dtypes.int8), None),
    ("cast_bounded", lambda x, y: (x & 7).cast(dtypes.uint16).cast(dtypes.int32),
     lambda x, y: simplify(x & 7).cast(dtypes.int32)),
    ("pow", lambda x, y: alu(Ops.POW, x, k(2)) + alu(Ops.POW, x, k(1)) + alu(Ops.POW, x, k(0)), None),
    ("trunc", lambda x, y: alu(Ops.TRUNC, x), lambda x, y: x),
    ("bitcast_twice", lambda x, y: x.bitcast(dtypes.uint8).bitcast(dtypes.int8).bitcast(x.dtype), lambda x, y: x),
    ("mixed", lambda x, y: ((x + 3) * 7 - x * 7) % 5 + (y // 4) * 4 + y % 4, None),
]


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@pytest.mark.parametrize("case", INT, ids=lambda c: c[0])
def test_integers_exhaustively(case: Case, dtype: DType) -> None:
    _, build, want = case
    x, y, s = check(dtype, build, pairs(dtype))
    if want is not None:
        assert s is want(x, y), f"became {s.render(False)}"


BOOL: list[Case] = [
    ("add_is_or", lambda x, y: alu(Ops.ADD, x, y), lambda x, y: x | y),
    ("mul_is_and", lambda x, y: alu(Ops.MUL, x, y), lambda x, y: x & y),
    ("max_is_or", lambda x, y: alu(Ops.MAX, x, y), lambda x, y: x | y),
    ("and_true", lambda x, y: x & True, lambda x, y: x),
    ("and_false", lambda x, y: x & False, lambda x, y: k(False)),
    ("or_true", lambda x, y: x | True, lambda x, y: k(True)),
    ("xor_true", lambda x, y: x ^ True, lambda x, y: x.logical_not()),
    ("xor_self", lambda x, y: x ^ x, lambda x, y: k(False)),
    ("not_not", lambda x, y: x.logical_not().logical_not(), lambda x, y: x),
    ("equals_true", lambda x, y: alu(Ops.CMPEQ, x, k(True)), lambda x, y: x),
    ("equals_false", lambda x, y: alu(Ops.CMPEQ, x, k(False)), lambda x, y: x.logical_not()),
    ("unequal_false", lambda x, y: alu(Ops.CMPNE, x, k(False)), lambda x, y: x),
    ("less_true", lambda x, y: alu(Ops.CMPLT, x, k(True)), lambda x, y: x.logical_not()),
    ("less_false", lambda x, y: alu(Ops.CMPLT, x, k(False)), lambda x, y: k(False)),
    ("above_false", lambda x, y: alu(Ops.CMPLT, k(False), x), lambda x, y: x),
    ("complement_and", lambda x, y: x & x.logical_not(), lambda x, y: k(False)),
    ("complement_or", lambda x, y: x.logical_not() | x, lambda x, y: k(True)),
    ("where_literals", lambda x, y: x.where(k(True), k(False)), lambda x, y: x),
    ("where_literals_not", lambda x, y: x.where(k(False), k(True)), lambda x, y: x.logical_not()),
    ("where_and", lambda x, y: x.where(y, k(False)), lambda x, y: x & y),
    ("where_or", lambda x, y: x.where(k(True), y), lambda x, y: x | y),
    ("where_not_and", lambda x, y: x.where(k(False), y), lambda x, y: x.logical_not() & y),
    ("plus_number", lambda x, y: x + 1, None),
    ("to_number", lambda x, y: x.cast(dtypes.int8).cast(dtypes.float32).cast(dtypes.uint8),
     lambda x, y: x.cast(dtypes.uint8)),
]


@pytest.mark.parametrize("case", BOOL, ids=lambda c: c[0])
def test_bools_exhaustively(case: Case) -> None:
    _, build, want = case
    x, y, s = check(dtypes.bool, build, pairs(dtypes.bool))
    if want is not None:
        assert s is want(x, y), f"became {s.render(False)}"


FLOAT: list[Case] = [
    ("add_zero_stays", lambda x, y: x + 0.0, lambda x, y: alu(Ops.ADD, x, k(0.0))),
    ("add_minus_zero", lambda x, y: x + k(-0.0), lambda x, y: x),
    ("sub_zero", lambda x, y: alu(Ops.SUB, x, k(0.0)), lambda x, y: x),
    ("sub_minus_zero_stays", lambda x, y: alu(Ops.SUB, x, k(-0.0)), lambda x, y: alu(Ops.SUB, x, k(-0.0))),
    ("mul_one", lambda x, y: x * 1.0, lambda x, y: x),
    ("mul_zero_stays", lambda x, y: x * 0.0, lambda x, y: alu(Ops.MUL, x, k(0.0))),
    ("div_self_stays", lambda x, y: alu(Ops.FDIV, x, x), lambda x, y: alu(Ops.FDIV, x, x)),
    ("div_one", lambda x, y: alu(Ops.FDIV, x, k(1.0)), lambda x, y: x),
    ("sub_self_stays", lambda x, y: alu(Ops.SUB, x, x), lambda x, y: alu(Ops.SUB, x, x)),
    ("add_self_stays", lambda x, y: x + x, lambda x, y: alu(Ops.ADD, x, x)),
    ("no_reassociation", lambda x, y: (x + 1.0) + 2.0, lambda x, y: alu(Ops.ADD, alu(Ops.ADD, x, k(1.0)), k(2.0))),
    ("no_product_reassociation", lambda x, y: (x * 3.0) * 5.0,
     lambda x, y: alu(Ops.MUL, alu(Ops.MUL, x, k(3.0)), k(5.0))),
    ("no_distribution", lambda x, y: (x + y) * 3.0, lambda x, y: alu(Ops.MUL, alu(Ops.ADD, x, y), k(3.0))),
    ("max_self", lambda x, y: x.maximum(x), lambda x, y: x),
    ("max_literal_left", lambda x, y: alu(Ops.MAX, k(0.0), x), lambda x, y: alu(Ops.MAX, k(0.0), x)),
    ("literal_right", lambda x, y: alu(Ops.MUL, k(3.0), x), lambda x, y: alu(Ops.MUL, x, k(3.0))),
    ("self_less", lambda x, y: x < x, lambda x, y: k(False)),
    ("self_unequal_stays", lambda x, y: x.ne(x), lambda x, y: alu(Ops.CMPNE, x, x)),
    ("self_equal_stays", lambda x, y: alu(Ops.CMPEQ, x, x), lambda x, y: alu(Ops.CMPEQ, x, x)),
    ("below_infinity_stays", lambda x, y: x < float("inf"), lambda x, y: alu(Ops.CMPLT, x, k(float("inf")))),
    ("below_minus_infinity", lambda x, y: x < -float("inf"), lambda x, y: k(False)),
    ("unequal_nan", lambda x, y: x.ne(float("nan")), lambda x, y: k(True)),
    ("less_nan", lambda x, y: x < float("nan"), None),
    ("not_less_stays", lambda x, y: (x < 1.0).logical_not(), None),
    ("widen_back", lambda x, y: x.cast(dtypes.float64).cast(x.dtype), lambda x, y: x),
    ("to_int_through_wide", lambda x, y: x.cast(dtypes.float64).cast(dtypes.int8), lambda x, y: x.cast(dtypes.int8)),
    ("to_bool_through_wide", lambda x, y: x.cast(dtypes.float64).cast(dtypes.bool), lambda x, y: x.cast(dtypes.bool)),
    ("narrow_stays", lambda x, y: x.cast(dtypes.fp8e5m2).cast(x.dtype),
     lambda x, y: x.cast(dtypes.fp8e5m2).cast(x.dtype)),
    ("int_cast_stays", lambda x, y: x.cast(dtypes.int32).cast(x.dtype),
     lambda x, y: x.cast(dtypes.int32).cast(x.dtype)),
    ("pow_zero", lambda x, y: alu(Ops.POW, x, k(0.0)), None),
    ("pow_two", lambda x, y: alu(Ops.POW, x, k(2.0)), lambda x, y: alu(Ops.MUL, x, x)),
    ("pow_minus_one", lambda x, y: alu(Ops.POW, x, k(-1.0)), lambda x, y: alu(Ops.RECIPROCAL, x)),
    ("pow_half_stays", lambda x, y: alu(Ops.POW, x, k(0.5)), lambda x, y: alu(Ops.POW, x, k(0.5))),
    ("trunc_twice", lambda x, y: alu(Ops.TRUNC, alu(Ops.TRUNC, x)), lambda x, y: alu(Ops.TRUNC, x)),
    ("where_same", lambda x, y: (x < y).where(x, x), lambda x, y: x),
    ("where_not", lambda x, y: (x < y).logical_not().where(x, y), lambda x, y: (x < y).where(y, x)),
    ("fold_literals", lambda x, y: x + (k(0.1) + k(0.2)), None),
]


def specials(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of zeros, infinities, NaN, ordinary, smallest and largest values of a float type."""
    np_dtype = semantics.carrier_np(dtype)
    info = np.finfo(np_dtype)
    one = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 3.0, -7.25, 127.5, 128.0, 255.0, 300.0, -129.0, 0.1, np.inf,
                    -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal,
                    -info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg], np_dtype)
    return np.repeat(one, len(one)), np.tile(one, len(one))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16], ids=str)
@pytest.mark.parametrize("case", FLOAT, ids=lambda c: c[0])
def test_floats_keep_every_bit(case: Case, dtype: DType) -> None:
    _, build, want = case
    x, y, s = check(dtype, build, specials(dtype))
    if want is not None:
        assert s is want(x, y), f"became {s.render(False)}"


def test_literals_fold_like_their_definition() -> None:
    two, three = UOp.const(200, dtypes.uint8), UOp.const(100, dtypes.uint8)
    assert simplify(UOp(Ops.ADD, (two, three))) is UOp.const(44, dtypes.uint8)
    assert simplify(UOp.const(300).cast(dtypes.uint8).cast(dtypes.int32)) is UOp.const(44, dtypes.int32)
    assert simplify(UOp(Ops.RECIPROCAL, (UOp.const(0.0, dtypes.float32),))) is UOp.const(float("inf"), dtypes.float32)
    lowest, minus_one = UOp.const(-128, dtypes.int8), UOp.const(-1, dtypes.int8)
    assert simplify(UOp(Ops.CDIV, (lowest, minus_one))) is lowest
    assert simplify(UOp(Ops.ADD, (UOp.const(3), UOp.invalid()))).arg is Invalid


# *** random expressions of strong integers: every rule together, on all pairs ***
_OPS = (Ops.ADD, Ops.MUL, Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL,
        Ops.SHR, Ops.WHERE)


@st.composite
def _expression(draw: Any, dtype: DType) -> Callable[[UOp, UOp], UOp]:
    step = st.tuples(st.sampled_from(_OPS), st.integers(0, 7), st.integers(0, 7), st.integers(-130, 260))
    steps = draw(st.lists(step, min_size=1, max_size=6))

    def build(x: UOp, y: UOp) -> UOp:
        pool = [x, y]
        for op, i, j, c in steps:
            a = pool[i % len(pool)]
            b = UOp.const(int(semantics.cast(c, dtypes.weakint, dtype)), dtype) if j < 4 else pool[j % len(pool)]
            if op in (Ops.SHL, Ops.SHR):
                b = UOp.const(abs(c) % 10)
            pool.append((a < b).where(b, a) if op is Ops.WHERE else UOp(op, (a, b)))
        return pool[-1]
    return build


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_integers_exhaustively(dtype: DType, data: Any) -> None:
    build = data.draw(_expression(dtype))
    check(dtype, build, pairs(dtype))
