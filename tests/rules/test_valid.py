"""Gated indices: the index under its gate keeps its value where the gate holds, and the gate keeps its truth."""
from __future__ import annotations

import random

import pytest
from rules.expressions import Expressions, cost, sample_env, value

from tinyhost.dtype import Invalid
from tinyhost.ops import Ops
from tinyhost.uop import UOp, graph_rewrite
from tinyhost.uop.rules import simplify_valid, sym_valid, symbolic, uop_given_valid

R0, R1, R2, R3 = UOp.range(32, 0), UOp.range(3, 1), UOp.range(28, 2), UOp.range(28, 3)


def gated(cond: UOp, index: UOp) -> UOp:
    return graph_rewrite(cond.where(index, UOp.invalid()), sym_valid)


@pytest.mark.parametrize("cond,index,text", [
    (R0 < 8, R0 // 8 * 100 + R0 % 8, "(r0 if r0<8 else Invalid)"),
    ((R0 < 8) & (R0 < 16) & (R0 * 2 < 14), R0, "(r0 if r0<7 else Invalid)"),
    ((R0 >= 4) & (R0 < 8), R0 // 4 * 10 + R0, "(r0+10 if (3<r0)&(r0<8) else Invalid)"),
    (R0.eq(5), R0 // 4 * 10 + R0, "(15 if (r0!=5)!=True else Invalid)"),
    (R0 * 4 + R1 < 8, (R0 * 4 + R1) // 8 * 100 + R0 * 4 + R1, "(r0*4+r1 if r0<2 else Invalid)"),
    ((R2 + R1 - 1 >= 0) & (R2 + R1 - 1 < 28), (R2 + R1 - 1) // 28 * 9 + (R2 + R1 - 1) % 28,
     "(r1+r2+-1 if (0<r1+r2)&(r1+r2<29) else Invalid)"),
    ((R2 + R3 < 20) & (R2 + R3 < 15), R2 + R3, "(r2+r3 if r2+r3<15 else Invalid)"),
    ((R2 * 28 + R3 < 700) & (R2 < 10), R2 * 28 + R3, "(r2*28+r3 if r2<10 else Invalid)"),
    (R0 < 5, (R0 < 7).where(R0, 3) + 1, "(r0+1 if r0<5 else Invalid)"),
    (R0 < 32, R0 // 4, "r0//4"),
], ids=range(10))
def test_index_relies_on_its_gate(cond: UOp, index: UOp, text: str) -> None:
    assert gated(cond, index).render(simplify=False).strip("()") == text.strip("()")


def test_contradicting_clauses_leave_nothing() -> None:
    assert gated((R0 >= 9) & (R0 < 8), R0).arg is Invalid
    assert gated((R2 + R3 < 5) & (R2 + R3 >= 7), R0).arg is Invalid
    assert simplify_valid([R0 < 3, (R0 < 8).logical_not()]) is None
    assert uop_given_valid((R0 < 3) & (R0 < 8).logical_not(), R0 // 4) is None


def test_equal_clauses_do_not_remove_each_other() -> None:
    kept = simplify_valid([graph_rewrite(R0 < 3, symbolic), graph_rewrite(R0 * 2 < 6, symbolic)])
    assert kept == [graph_rewrite(R0 < 3, symbolic)]


def test_gates_float_outward_and_merge() -> None:
    inner = (R0 < 5).where(R0, UOp.invalid())
    out = graph_rewrite((R2 < 9).where(inner * 4 + R1, UOp.invalid()), sym_valid)
    assert out.op is Ops.WHERE and out.src[2].arg is Invalid
    assert not any(x is not out and x.op is Ops.WHERE for x in out.toposort())
    assert {c.render(False) for c in out.src[0].split_uop(Ops.AND)} == {"(r0<5)", "(r2<9)"}


def test_a_gate_over_a_literal_survives_folding() -> None:
    out = graph_rewrite((R0 < 5).where(UOp.const(0), UOp.invalid()) * 0 + 3, sym_valid)
    assert out.render(False) == "(3 if r0<5 else Invalid)"


def test_memory_of_nowhere() -> None:
    from tinyhost.dtype import dtypes
    p = UOp.param(0, dtypes.float32, 10)
    assert graph_rewrite(p.index(UOp.invalid()).load(), sym_valid) is UOp.const(0.0, dtypes.float32)
    assert graph_rewrite(p.index(UOp.invalid()).store(UOp.const(1.0)), sym_valid).op is Ops.NOOP
    assert graph_rewrite(p.index(R0).store(UOp.invalid()), sym_valid).op is Ops.NOOP
    assert graph_rewrite(p.index(R0).store(p.index(R0)), sym_valid).op is Ops.NOOP
    assert graph_rewrite(p.index(R0).store(p.index(R0).load()), sym_valid).op is Ops.NOOP
    assert graph_rewrite(p.index(R0).store(p.index(R0 + 1)), sym_valid).op is Ops.STORE
    gated_store = graph_rewrite(p.index(R0).store((R0 < 10).where(UOp.const(1.0), UOp.invalid())), sym_valid)
    assert gated_store.src[0].src[1].render(False) == "(r0 if r0<10 else Invalid)"


def _fuzz(seed: int, count: int, points: int) -> None:
    for i in range(count):
        source = Expressions(seed * 7919 + i)
        rnd = random.Random(seed * 31 + i)
        index = source.integer(3)
        cond = source.boolean(2)
        for _ in range(rnd.choice((0, 1, 2))):
            cond = cond & source.boolean(2)
        before = cond.where(index, UOp.invalid())
        after = graph_rewrite(before, sym_valid)
        text = f"{before.render(False)}\n-> {after.render(False)}"
        assert graph_rewrite(after, sym_valid) is after, f"not settled: {text}"
        assert cost(after) <= cost(before) + 1, f"dearer: {text}"
        for _ in range(points):
            env = sample_env(source.leaves, rnd)
            assert value(after, env) == value(before, env), f"{text}\nat {({k.render(): v for k, v in env.items()})}"


@pytest.mark.parametrize("seed", range(3))
def test_gated_expressions(seed: int) -> None:
    _fuzz(seed, 60, 25)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_gated_expressions_soak(seed: int) -> None:
    _fuzz(seed, 3000, 40)
