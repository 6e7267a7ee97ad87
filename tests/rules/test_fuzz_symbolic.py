"""Fuzzes the symbolic rules: the value stays, bounds are sound, the result is stable and never dearer."""
from __future__ import annotations

import random

import pytest
from rules.expressions import Expressions, cost, sample_env, value

from tinyhost.uop import UOp
from tinyhost.uop.rules import simplify


def _check(e: UOp, leaves: list[UOp], rnd: random.Random, points: int) -> None:
    s = simplify(e)
    assert s.dtype is e.dtype
    assert cost(s) <= cost(e), f"dearer: {e.render(False)}\n-> {s.render(False)}"
    assert simplify(s) is s, f"not settled: {e.render(False)}\n-> {s.render(False)}\n-> {simplify(s).render(False)}"
    for _ in range(points):
        env = sample_env(leaves, rnd)
        want = value(e, env)
        at = {k.render(): v for k, v in env.items()}
        assert value(s, env) == want, f"{e.render(False)}\n-> {s.render(False)}\nat {at}"
        for u in (e, s):
            lo, hi = u.bounds
            assert lo <= want <= hi, f"bounds {lo} .. {hi} of {u.render(False)} do not hold {want}"


def _run(seed: int, count: int, points: int) -> None:
    for i in range(count):
        source = Expressions(seed * 100_003 + i)
        rnd = random.Random(seed + i)
        for _ in range(4):
            _check(source.draw(), source.leaves, rnd, points)


@pytest.mark.parametrize("seed", range(4))
def test_value_and_bounds(seed: int) -> None:
    _run(seed, 60, 12)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_value_and_bounds_soak(seed: int) -> None:
    _run(seed, 2000, 30)
