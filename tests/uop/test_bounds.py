"""Bounds are sound for every op on 8-bit types, exhaustively, and exact where the table says so."""
from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tinyhost.dtype import DType, Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop import ParamArg, UOp, semantics

INT_BINARY = sorted(GroupOp.Binary - {Ops.THREEFRY, Ops.FDIV, Ops.POW})


def scalar(lo: int, hi: int, dtype: DType = dtypes.weakint, name: str = "v") -> UOp:
    return UOp(Ops.PARAM, (), ParamArg(-1, dtype, None, (lo, hi), name=name, addrspace=AddrSpace.ALU))


def intervals(dtype: DType, rnd: random.Random, count: int) -> list[tuple[int, int]]:
    lo, hi = dtype.min, dtype.max
    fixed = [(lo, hi), (lo, lo), (hi, hi), (0, 0), (1, 1), (0, 3), (max(lo, -1), 1), (max(lo, -7), 0), (2, 9)]
    ends = [sorted((rnd.randint(lo, hi), rnd.randint(lo, hi))) for _ in range(count)]
    return fixed + [(a, b) for a, b in ends]


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@pytest.mark.parametrize("op", INT_BINARY, ids=lambda o: o.name)
def test_binary_is_sound(op: Ops, dtype: DType) -> None:
    rnd = random.Random(int(op))
    carrier = semantics.carrier_np(dtype)
    boxes = intervals(dtype, rnd, 12)
    for a in boxes:
        for b in boxes:
            u = UOp(op, (scalar(*a, dtype, "a"), scalar(*b, dtype, "b")))
            lo, hi = u.bounds
            x = np.arange(a[0], a[1] + 1).astype(carrier)[:, None]
            y = np.arange(b[0], b[1] + 1).astype(carrier)[None, :]
            out = semantics.evaluate_np(op, dtype, x, y)
            got = (out.min(), out.max())
            assert lo <= got[0] and got[1] <= hi, f"{op} of {a} and {b}: {lo} .. {hi}, values {got}"


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ],
                         ids=lambda o: o.name)
def test_bool_is_sound(op: Ops) -> None:
    boxes = [(False, False), (True, True), (False, True)]
    for a in boxes:
        for b in boxes:
            u = UOp(op, (scalar(*a, dtypes.bool, "a"), scalar(*b, dtypes.bool, "b")))
            got = {semantics.evaluate(op, dtypes.bool, (x, y)) for x in set(a) for y in set(b)}
            assert u.bounds == (min(got), max(got)), f"{op} of {a} and {b}"


@pytest.mark.parametrize("dst", [dtypes.int8, dtypes.uint8, dtypes.bool, dtypes.int32, dtypes.weakint, dtypes.float32,
                                 dtypes.float16, dtypes.fp8e4m3], ids=str)
@pytest.mark.parametrize("src", [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.bool], ids=str)
def test_cast_is_sound(src: DType, dst: DType) -> None:
    boxes = [(src.min, src.max), (0, 1), (-3, -1), (200, 255)]
    for lo, hi in [b for b in boxes if src.min <= b[0] and b[1] <= src.max]:
        u = UOp(Ops.CAST, (scalar(lo, hi, src),), dst)
        values = [semantics.cast(v, src, dst) for v in range(int(lo), int(hi) + 1)]
        full = u.bounds == (-math.inf, math.inf)  # which does not exclude NaN
        assert full or all(u.vmin <= v <= u.vmax for v in values), f"{src} {lo} .. {hi} to {dst}: {u.bounds}"


def test_cast_from_float() -> None:
    x = UOp(Ops.PARAM, (), ParamArg(-1, dtypes.float32, addrspace=AddrSpace.ALU))
    assert x.cast(dtypes.int8).bounds == (-128, 127)
    assert x.cast(dtypes.bool).bounds == (False, True)
    assert UOp.const(300.7).cast(dtypes.uint8).bounds == (255, 255)
    assert UOp.const(float("nan")).cast(dtypes.int32).bounds == (0, 0)
    assert UOp.const(float("nan")).cast(dtypes.bool).bounds == (True, True)
    assert UOp.const(float("-inf")).cast(dtypes.int16).bounds == (-32768, -32768)


@pytest.mark.parametrize("op,a,b,want", [
    (Ops.FLOORDIV, (0, 31), (4, 4), (0, 7)),
    (Ops.FLOORDIV, (-3, 5), (2, 2), (-2, 2)),
    (Ops.FLOORDIV, (10, 20), (2, 5), (2, 10)),
    (Ops.FLOORDIV, (10, 20), (-5, -2), (-10, -2)),
    (Ops.FLOORDIV, (10, 20), (0, 0), (0, 0)),
    (Ops.FLOORMOD, (0, 31), (4, 4), (0, 3)),
    (Ops.FLOORMOD, (5, 6), (4, 4), (1, 2)),
    (Ops.FLOORMOD, (0, 2), (4, 9), (0, 2)),
    (Ops.FLOORMOD, (-7, 31), (4, 4), (0, 3)),
    (Ops.FLOORMOD, (-7, 31), (-4, -4), (-3, 0)),
    (Ops.CMOD, (-2, 1), (4, 4), (-2, 1)),
    (Ops.CMOD, (-20, 20), (4, 4), (-3, 3)),
    (Ops.CDIV, (-7, 7), (2, 2), (-3, 3)),
    (Ops.MUL, (-3, 4), (-5, 2), (-20, 15)),
    (Ops.SHL, (-3, 4), (2, 2), (-12, 16)),
    (Ops.SHR, (-3, 4), (1, 1), (-2, 2)),
    (Ops.AND, (-3, 100), (15, 15), (0, 15)),
    (Ops.AND, (0, 9), (15, 15), (0, 9)),
    (Ops.XOR, (-3, 4), (-1, -1), (-5, 2)),
    (Ops.MAX, (-3, 4), (0, 2), (0, 4)),
    (Ops.CMPLT, (0, 3), (4, 9), (True, True)),
    (Ops.CMPLT, (4, 9), (0, 4), (False, False)),
    (Ops.CMPNE, (0, 3), (4, 9), (True, True)),
    (Ops.CMPNE, (3, 3), (3, 3), (False, False)),
    (Ops.CMPEQ, (0, 3), (3, 9), (False, True)),
], ids=lambda v: getattr(v, "name", str(v)))
def test_exact_intervals(op: Ops, a: tuple[int, int], b: tuple[int, int], want: tuple[int, int]) -> None:
    assert UOp(op, (scalar(*a, name="a"), scalar(*b, name="b"))).bounds == want


def test_wrap_around_gives_the_whole_range() -> None:
    x = scalar(0, 200, dtypes.uint8)
    assert (x + x).bounds == (0, 255)
    assert (scalar(-128, -128, dtypes.int8, "m").alu(Ops.CDIV, scalar(-1, -1, dtypes.int8, "o"))).bounds == (-128, 127)
    assert x.alu(Ops.AND, UOp.const(0x1FF)).bounds == (0, 200)
    assert UOp(Ops.AND, (scalar(-5, 7, dtypes.int8), UOp.const(0xFF))).bounds == (-128, 127), "0xFF is -1 here"


def test_weak_literals_compare_exactly_with_strong_operands() -> None:
    x = scalar(0, 255, dtypes.uint8)
    assert (x < 300).bounds == (True, True)
    assert x.ne(300).bounds == (True, True)
    i = scalar(0, 1 << 40, dtypes.int64)
    assert i.cast(dtypes.float32).alu(Ops.CMPLT, UOp.const(0.5)).bounds == (False, True)


def test_structure() -> None:
    r = UOp.range(5, 0)
    assert r.bounds == (0, 4) and UOp.range(0, 0).bounds == (0, -1)
    assert UOp(Ops.FLOORDIV, (UOp.range(0, 0), UOp.const(3))).bounds == (0, 0)
    assert UOp(Ops.RANGE, (UOp(Ops.NOOP),), (0, AxisType.WEAK)).bounds == (False, True)
    assert UOp.const((1, 5, 3)).bounds == (1, 5)
    assert (r < 3).where(r, UOp.const(9)).bounds == (0, 9)
    assert (r < 3).where(r, UOp.invalid()).bounds == (0, 4), "where the gate is closed there is no value"
    assert (r < 9).where(r, UOp.const(9)).bounds == (0, 4)
    assert UOp.invalid().bounds == (False, True)
    assert UOp(Ops.CONST, (), Invalid).cast(dtypes.int8).bounds == (-128, 127)


def test_floats_promise_nothing_but_literals() -> None:
    x = UOp(Ops.PARAM, (), ParamArg(-1, dtypes.float32, addrspace=AddrSpace.ALU))
    assert (x * 0.0).bounds == (-math.inf, math.inf)
    assert x.ne(x.cast(dtypes.float32)).bounds == (False, True)
    assert x.ne(float("nan")).bounds == (True, True)
    fp8 = UOp(Ops.PARAM, (), ParamArg(-1, dtypes.fp8e4m3, addrspace=AddrSpace.ALU))
    assert (fp8 < 448.0).bounds == (False, True), "a NaN is below nothing"
    assert UOp.const(0.0).alu(Ops.CMPNE, UOp.const(-0.0)).bounds == (False, False)
    stack = UOp(Ops.STACK, (UOp.const(float("nan")), UOp.const(1.0)))
    assert stack.bounds == (-math.inf, math.inf)


def test_a_deep_graph_has_bounds() -> None:
    u = UOp.range(2, 0)
    for _ in range(100_000):
        u = UOp(Ops.ADD, (u, UOp.const(1)))
    assert u.bounds == (100_000, 100_001)
