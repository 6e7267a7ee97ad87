"""Sums with a closed form: the collapsed value equals the sum, element by element, bit for bit on floats."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
from rules.expressions import value

from tinyhost.dtype import DType, Invalid, dtypes
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp, graph_rewrite, semantics
from tinyhost.uop.rules import pm_reduce_collapse, sym_valid

IDENTITY = {Ops.ADD: 0, Ops.MUL: 1}


def brute(u: UOp, env: dict[UOp, Any]) -> Any:
    """The sum of a REDUCE, one element after the other."""
    ranges = u.src[1:]
    total = semantics.cast(u.dtype.min if u.arg[0] is Ops.MAX else IDENTITY[u.arg[0]], dtypes.weakint, u.dtype) \
        if u.arg[0] is not Ops.MAX or not u.dtype.is_float else -math.inf
    for at in itertools.product(*[range(value(r.src[0], env)) for r in ranges]):
        total = semantics.evaluate(u.arg[0], u.dtype, (total, value(u.src[0], {**env, **dict(zip(ranges, at))})))
    return total


def collapse(u: UOp) -> UOp:
    return graph_rewrite(u, sym_valid + pm_reduce_collapse)


R = UOp.range(10, 7, AxisType.REDUCE)
G = UOp.range(6, 0)
N = UOp.variable("n", 0, 12)
S = UOp.range(N, 8, AxisType.REDUCE)
I32 = UOp.variable("i", -3, 14, dtypes.int32)


def c(v: Any, dtype: DType = dtypes.int32) -> UOp:
    return UOp.const(v, dtype)


CASES: list[tuple[str, Callable[[], UOp]]] = [
    ("arange", lambda: (R < G).where(c(1), c(0)).reduce(R, arg=Ops.ADD)),
    ("arange_cast", lambda: (R < G).cast(dtypes.int32).reduce(R, arg=Ops.ADD)),
    ("arange_down", lambda: (G < R).where(c(3), c(0)).reduce(R, arg=Ops.ADD)),
    ("arange_scaled", lambda: (R * 3 < G * 2 + 1).where(c(5), c(0)).reduce(R, arg=Ops.ADD)),
    ("arange_negative", lambda: (G * 4 < R * 3).where(c(5), c(0)).reduce(R, arg=Ops.ADD)),
    ("other_arm", lambda: (R < G).where(c(0), c(7)).reduce(R, arg=Ops.ADD)),
    ("window", lambda: ((G <= R) & (R < G + 3)).where(c(2), c(0)).reduce(R, arg=Ops.ADD)),
    ("window_and_other", lambda: ((R < G + 3) & (G < 4)).where(c(2), c(0)).reduce(R, arg=Ops.ADD)),
    ("symbolic_end", lambda: (S < G + 2).where(c(2), c(0)).reduce(S, arg=Ops.ADD)),
    ("strong_limit", lambda: (R.cast(dtypes.int32) < I32).where(c(2), c(0)).reduce(R, arg=Ops.ADD)),
    ("not_strong_limit", lambda: (R.cast(dtypes.int32) < I32).logical_not().where(c(2), c(0)).reduce(R, arg=Ops.ADD)),
    ("float_steps", lambda: (R < G).where(c(0.5, dtypes.float32), c(0.0, dtypes.float32)).reduce(R, arg=Ops.ADD)),
    ("float_negative", lambda: (R < G).where(c(-0.5, dtypes.float32), c(0.0, dtypes.float32)).reduce(R, arg=Ops.ADD)),
    ("wraps", lambda: (R < G).where(c(100, dtypes.uint8), c(0, dtypes.uint8)).reduce(R, arg=Ops.ADD)),
    ("invariant", lambda: G.cast(dtypes.int8).reduce(R, arg=Ops.ADD)),
    ("invariant_max", lambda: G.cast(dtypes.float32).reduce(R, arg=Ops.MAX)),
    ("two_ranges", lambda: (R < G).where(c(1), c(0)).reduce(R, UOp.range(3, 9, AxisType.REDUCE), arg=Ops.ADD)),
    ("one_hot", lambda: R.eq(G + 2).where(R.cast(dtypes.int32) * 7 + 1, c(0)).reduce(R, arg=Ops.ADD)),
    ("one_hot_outside", lambda: R.eq(G * 3).where(R.cast(dtypes.int32) + 1, c(0)).reduce(R, arg=Ops.ADD)),
    ("one_hot_ne", lambda: R.ne(G).where(c(0), R.cast(dtypes.int32) + 1).reduce(R, arg=Ops.ADD)),
    ("one_hot_loaded", lambda: R.cast(dtypes.int32).eq(I32).where(R.cast(dtypes.int32) * 7 + 1, c(0))
     .reduce(R, arg=Ops.ADD)),
    ("one_hot_and", lambda: (R.eq(G) & (R < 3)).where(R.cast(dtypes.int32) * 7 + 1, c(0)).reduce(R, arg=Ops.ADD)),
    ("one_hot_float", lambda: R.eq(G).where(R.cast(dtypes.float32) * -0.0, c(0.0, dtypes.float32))
     .reduce(R, arg=Ops.ADD)),
    ("factor", lambda: ((R < G).where(c(1), c(0)) * G.cast(dtypes.int32)).reduce(R, arg=Ops.ADD)),
    ("sum_of_two", lambda: ((R < G).where(c(1), c(0)) + G.cast(dtypes.int32)).reduce(R, arg=Ops.ADD)),
]


@pytest.mark.parametrize("name,build", CASES, ids=[n for n, _ in CASES])
def test_collapses_to_the_same_value(name: str, build: Callable[[], UOp]) -> None:
    u = build()
    s = collapse(u)
    assert s.dtype is u.dtype
    assert not any(x.op is Ops.REDUCE for x in s.toposort()), s.render(False)
    for g, n, i in itertools.product(range(6), range(13) if N in u.toposort() else (0,),
                                     range(-3, 15) if I32 in u.toposort() else (0,)):
        env = {G: g, N: n, I32: i}
        want, got = brute(u, env), value(s, env)
        assert got == want and math.copysign(1, got) == math.copysign(1, want), f"{s.render(False)} at {g, n, i}"


@pytest.mark.parametrize("build", [
    lambda: (R < G).where(c(0.1, dtypes.float32), c(0.0, dtypes.float32)).reduce(R, arg=Ops.ADD),
    lambda: G.cast(dtypes.float32).reduce(R, arg=Ops.ADD),
    lambda: (R * R < G).where(c(1), c(0)).reduce(R, arg=Ops.ADD),
    lambda: (R.cast(dtypes.int32) * I32 < 3).where(c(1), c(0)).reduce(R, arg=Ops.ADD),
    lambda: ((R.cast(dtypes.float32) * 0.5) < G.cast(dtypes.float32)).where(c(1), c(0)).reduce(R, arg=Ops.ADD),
], ids=["inexact_float", "float_invariant", "quadratic", "strong_product", "float_condition"])
def test_stays(build: Callable[[], UOp]) -> None:
    assert any(x.op is Ops.REDUCE for x in collapse(build()).toposort())


def test_gather_reads_only_where_the_index_is_inside() -> None:
    table, picks = UOp.param(0, dtypes.float32, 10), UOp.param(1, dtypes.int32, 6)
    i = picks.index(G)
    u = i.eq(R.cast(dtypes.int32)).where(table.index(R), c(0.0, dtypes.float32)).reduce(R, arg=Ops.ADD)
    s = collapse(u)
    reads = [x for x in s.toposort() if x.op is Ops.INDEX and x.src[0] is table]
    assert len(reads) == 1 and not any(x.op is Ops.REDUCE for x in s.toposort())
    gate = reads[0].src[1]
    assert gate.op is Ops.WHERE and gate.src[2].arg is Invalid
    assert i in gate.src[0].toposort(), "the gate checks the loaded index"
    assert not any(x is R for x in s.toposort())
