"""The rule sets as a whole: what is exported, how rules are written down, depth, and cost per node."""
from __future__ import annotations

import importlib

import pytest

import tinyhost.uop.rules as rules
from tests.counting import calls
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite
from tinyhost.uop.rules import simplify, sym_valid, symbolic

THEMES = ("fold", "linear", "divmod", "invalid", "valid", "weak", "movement", "reduce_collapse")


def matchers() -> list[tuple[str, PatternMatcher]]:
    out = []
    for theme in THEMES:
        module = importlib.import_module(f"tinyhost.uop.rules.{theme}")
        out += [(f"{theme}.{n}", v) for n, v in vars(module).items() if isinstance(v, PatternMatcher)]
    return out


def test_exports_resolve() -> None:
    for name in rules.__all__:
        assert getattr(rules, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing': it has index_dtype"):
        rules.nothing  # noqa: B018


@pytest.mark.parametrize("name,pm", matchers(), ids=[n for n, _ in matchers()])
def test_every_rule_has_a_name_and_its_algebra(name: str, pm: PatternMatcher) -> None:
    for _, fn in pm.patterns:
        assert fn.__name__ != "<lambda>" and not fn.__closure__, f"{name}: {fn}"
        assert "->" in (fn.__doc__ or ""), f"{name}: {fn.__name__} does not say its algebra"


def test_depth_does_not_matter() -> None:
    x = UOp.param(0, dtypes.float32, 4).index(UOp.const(0))
    u = x
    for _ in range(20_000):
        u = UOp(Ops.SQRT, (UOp(Ops.ADD, (u, x)),))
    assert simplify(u) is u


def test_a_long_sum_of_distinct_scalars_is_put_in_order() -> None:
    scalars = [UOp.variable(f"v{i:03}", 0, 9) for i in range(200)]
    forward = backward = UOp.const(0)
    for a, b in zip(scalars, reversed(scalars)):
        forward, backward = forward + a, backward + b
    assert simplify(forward) is simplify(backward)


def test_a_long_conjunction_settles() -> None:
    cond = UOp.const(True)
    for i in range(40):
        cond = cond & (UOp.range(50, i) < 40)
    out = graph_rewrite(cond.where(UOp.range(50, 0), UOp.invalid()), sym_valid)
    assert graph_rewrite(out, sym_valid) is out and len(list(out.src[0].split_uop(Ops.AND))) == 40


def _index(k: int) -> UOp:
    r0, r1, r2, r3 = UOp.range(32 + k, 0), UOp.range(4, 1), UOp.range(3, 2), UOp.range(64, 3)
    return (r0 * 768 + r1 * 64 + r2 * 3 + r3) + (r0 * 12 + r1) % 7 + r2 // 2


def test_a_typical_index_is_cheap() -> None:
    """24 nodes: 230 us on a machine of 2026."""
    simplify(_index(0))
    assert max(calls(lambda k=k: simplify(_index(k))) for k in range(1, 30)) < 1500


def test_rules_that_undo_each_other_are_reported() -> None:
    from tinyhost.uop import UPat

    def swap(u: UOp) -> UOp:
        """a + b -> b + a"""
        return UOp(Ops.ADD, u.src[::-1])
    with pytest.raises(RuntimeError, match="infinite loop in graph_rewrite"):
        graph_rewrite(UOp.range(3, 0) + UOp.range(4, 1), symbolic + PatternMatcher([(UPat(Ops.ADD, name="u"), swap)]))
