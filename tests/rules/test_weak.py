"""Weak dtypes are committed as ``ops.md`` decides, and the committed kernel computes the same values."""
from __future__ import annotations

import random

import pytest
from rules.expressions import Expressions, sample_env, value

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import KernelInfo, ParamArg, UOp
from tinyhost.uop.rules import lower_weak, simplify
from tinyhost.uop.spec import spec_program, type_verify

R = UOp.range(8, 0)
BIG = UOp.range(1 << 33, 1)
W = UOp.variable("w", 0, 100, param=True)
WEAK_FLOAT = R.cast(dtypes.weakfloat) * 0.5


def leaf(dtype: DType, slot: int = -1) -> UOp:
    return UOp(Ops.PARAM, (), ParamArg(slot, dtype, name=f"x{dtype.name}", addrspace=AddrSpace.ALU))


def lowered(u: UOp) -> UOp:
    """``u`` committed, as a value: a weak root stands behind a CAST."""
    out = lower_weak(u)
    assert all(not s.dtype.is_weak or s.op is Ops.CONST for s in out.toposort() if s is not out)
    return out.src[0] if out.op is Ops.CAST and out.arg.is_weak else out


@pytest.mark.parametrize("u,dtype", [
    (leaf(dtypes.float16) + 1.0, dtypes.float16),
    (leaf(dtypes.int8) + W, dtypes.int8),
    (leaf(dtypes.float16) + WEAK_FLOAT, dtypes.float16),
    (leaf(dtypes.float64) * WEAK_FLOAT, dtypes.float64),
    (R + W, dtypes.int32),
    (R * (1 << 30), dtypes.int64),
    (BIG + 1, dtypes.int64),
    (WEAK_FLOAT, dtypes.float32),
    ((R < 3).where(1, 0), dtypes.int32),
    ((R < 3).where(UOp.const(1 << 40), UOp.const(0)), dtypes.int64),
    ((R < 3).where(leaf(dtypes.uint8), UOp.const(0)), dtypes.uint8),
    (UOp(Ops.SHL, (leaf(dtypes.uint8), R)), dtypes.uint8),
    (UOp(Ops.SHL, (UOp.const(1), leaf(dtypes.uint32))), dtypes.uint32),
    (UOp(Ops.MULACC, (leaf(dtypes.float16), UOp.const(2.0), UOp.const(1.0))), dtypes.float16),
    (leaf(dtypes.bool) + 1, dtypes.int32),
], ids=range(15))
def test_width(u: UOp, dtype: DType) -> None:
    out = lowered(u)
    assert out.dtype is dtype
    assert all(s.dtype is dtype for s in out.src[1 if out.op is Ops.WHERE else 0:])


@pytest.mark.parametrize("u,dtype", [
    (leaf(dtypes.uint8) < W, dtypes.uint8),
    (R < W, dtypes.int32),
    (BIG < W, dtypes.int64),
    (leaf(dtypes.float16).ne(WEAK_FLOAT), dtypes.float16),
    (WEAK_FLOAT < 1.0, dtypes.float32),
], ids=range(5))
def test_comparisons_have_one_width(u: UOp, dtype: DType) -> None:
    out = lowered(u)
    assert out.dtype is dtypes.bool and all(s.dtype is dtype for s in out.src)


def test_a_cast_is_a_floor_for_weak_float_math() -> None:
    double = lower_weak(WEAK_FLOAT.cast(dtypes.float64))
    assert double.op is Ops.MUL and all(s.dtype is dtypes.float64 for s in double.src)
    half = lower_weak(WEAK_FLOAT.cast(dtypes.float16))
    assert half.op is Ops.CAST and half.src[0].dtype is dtypes.float32
    assert lower_weak(leaf(dtypes.float64) + (WEAK_FLOAT + 0.1)).src[1].dtype is dtypes.float64


def test_a_cast_to_another_kind_converts_after_the_math() -> None:
    out = lower_weak((R * 3).cast(dtypes.float32))
    assert out.op is Ops.CAST and out.src[0].dtype is dtypes.int32
    twice = lower_weak(WEAK_FLOAT.cast(dtypes.weakint).cast(dtypes.weakfloat).cast(dtypes.float32))
    assert any(s.op is Ops.CAST and s.dtype.is_int for s in twice.toposort()), "the truncation stays"


def test_a_shift_count_beyond_the_width_is_not_wrapped() -> None:
    out = lower_weak(UOp(Ops.SHR, (leaf(dtypes.int8), UOp.const(300))))
    x = leaf(dtypes.int8)
    assert value(out, {x: -5}) == -1 and value(out, {x: 5}) == 0


def test_memory() -> None:
    p, q = UOp.param(0, dtypes.float16, 1 << 10), UOp.param(1, dtypes.float32, 1 << 34)
    gate = R < 5
    st = p.index(R * 4).store(UOp.const(1.5))
    assert lower_weak(st).src[1] is UOp.const(1.5, dtypes.float16)
    assert lower_weak(p.index(R * 4)).src[1].dtype is dtypes.int32
    assert lower_weak(q.index(BIG * 2)).src[1].dtype is dtypes.int64
    load = lower_weak(p.index(R).load(UOp.const(0.0), gate))
    assert load.src[1] is UOp.const(0.0, dtypes.float16)
    narrow = lower_weak(p.index(BIG.valid(BIG < 10))).src[1]
    assert narrow.op is Ops.WHERE and narrow.src[1].dtype is dtypes.int32
    wide = lower_weak(q.index((BIG * 2).valid(gate))).src[1]
    assert wide.src[1].dtype is dtypes.int64
    small = lower_weak(p.index(leaf(dtypes.uint8)))
    assert small.src[1].dtype is dtypes.int32


def test_loops_keep_their_ranges() -> None:
    p = UOp.param(0, dtypes.float32, 64)
    k = UOp.range(W, 3, AxisType.REDUCE)
    sink = p.index(R).store(p.index(R * 8 + k).load().reduce(k, arg=Ops.ADD)).end(R).sink(arg=KernelInfo())
    out = lower_weak(sink)
    ranges = [u for u in out.toposort() if u.op is Ops.RANGE]
    assert {u.arg for u in ranges} == {R.arg, k.arg} and all(u.dtype is dtypes.int32 for u in ranges)
    assert out.src[0].src[1] in ranges
    scalar = next(u for u in out.toposort() if u.op is Ops.PARAM and u.arg.name == "w")
    assert scalar.dtype is dtypes.int32 and scalar.arg.vmin_vmax == (0, 100)


@pytest.mark.parametrize("seed", range(30))
def test_committed_index_math_has_the_same_value(seed: int) -> None:
    source, rnd = Expressions(seed), random.Random(seed)
    for _ in range(4):
        e = source.draw()
        strong = lowered(e)
        swap = {}
        for u in source.leaves:
            low = lower_weak(u)
            swap[u] = low.src[0] if low.op is Ops.CAST else low
        for _ in range(8):
            env = sample_env(source.leaves, rnd)
            low = {swap[u]: v for u, v in env.items()}
            assert value(strong, low) == value(e, env), f"{e.render(False)} -> {strong.render(False)}"


def test_a_lowered_program_passes_the_spec() -> None:
    p, n = UOp.param(0, dtypes.float32, 64), UOp.variable("n", 1, 8, param=True)
    r = UOp.range(n, 0)
    v = (r < 3).where(r.cast(dtypes.float32), UOp.const(0.5)) * 2.0
    type_verify(lower_weak(p.index(r * 8).store(v).end(r).sink(arg=KernelInfo())), spec_program)


def test_folding_after_lowering_settles() -> None:
    out = lower_weak(UOp.param(0, dtypes.float32, 64).index(R * 4 + 1).sink())
    assert simplify(simplify(out)) is simplify(out)
