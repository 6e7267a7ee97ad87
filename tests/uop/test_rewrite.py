"""Patterns and graph_rewrite in all their modes."""
from __future__ import annotations

import pytest

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import BottomUpGate, PatternMatcher, UOp, UPat, graph_rewrite
from tinyhost.uop.rewrite import RewriteLoopError

x, y = UOp.variable("x", 0, 100), UOp.variable("y", 0, 100)


class TestUPat:
    def test_names(self):
        assert UPat(Ops.ADD, src=(UPat.var("a"), UPat.var("b"))).match(UOp(Ops.ADD, (x, y)), {}) == [{"a": x, "b": y}]

    def test_a_name_twice_is_one_node(self):
        pat = UPat(Ops.ADD, src=(UPat.var("a"), UPat.var("a")))
        assert pat.match(UOp(Ops.ADD, (x, x)), {}) and not pat.match(UOp(Ops.ADD, (x, y)), {})

    def test_any_order(self):
        pat = UPat.var("a") + UPat.cvar("c")
        assert pat.match(UOp(Ops.ADD, (UOp.const(1), x)), {})[0]["a"] is x
        assert pat.match(UOp(Ops.ADD, (x, UOp.const(1))), {})[0]["a"] is x

    def test_order_is_kept_where_it_matters(self):
        pat = UPat.var("a") // UPat.cvar("c")
        assert not pat.match(UOp(Ops.FLOORDIV, (UOp.const(1), x)), {})

    def test_repeated_source(self):
        pat = UPat(Ops.STACK, src=UPat(Ops.CONST))
        assert pat.match(UOp.const((1, 2, 3)), {}) and not pat.match(UOp(Ops.STACK, (UOp.const(1), x)), {})

    def test_any_len(self):
        pat = UPat(Ops.SINK, src=(UPat(Ops.CONST),), allow_any_len=True)
        assert pat.match(UOp.sink(UOp.const(1), x), {}) and not pat.match(UOp.sink(x), {})

    def test_literals_by_value_and_kind(self):
        zero = UPat.const(0)
        assert all(zero.match(u, {}) for u in (UOp.const(0), UOp.const(0.0), UOp.const(0, dtypes.int8)))
        assert not zero.match(UOp.const(False), {})

    def test_dtype(self):
        assert UPat.var("a", dtypes.int32).match(UOp.const(1, dtypes.int32), {})
        assert not UPat.var("a", dtypes.int32).match(UOp.const(1, dtypes.int8), {})

    def test_alternatives(self):
        pat = UPat.any(UPat(Ops.CONST, name="k"), UPat(Ops.CAST, name="k"))
        assert pat.match(UOp.const(1), {}) and pat.match(UOp.const(1, dtypes.int8), {}) and not pat.match(x, {})

    def test_const_in_patterns(self):
        # the literal's arg, not its dtype, is what a pattern states
        assert UPat(Ops.CONST, arg=1.0).match(UOp(Ops.CONST, arg=1.0), {})


class TestPatternMatcher:
    def test_first_rule_wins(self):
        pm = PatternMatcher([(UPat(Ops.CONST, arg=1), lambda: UOp.const(10)), (UPat(Ops.CONST), lambda: UOp.const(20))])
        assert pm.rewrite(UOp.const(1)) is UOp.const(10) and pm.rewrite(UOp.const(2)) is UOp.const(20)

    def test_a_rule_that_declines_passes_on(self):
        pm = PatternMatcher([(UPat(Ops.CONST), lambda: None),
                             (UPat(Ops.CONST, name="c"), lambda c: c if c.arg == 1 else x)])
        assert pm.rewrite(UOp.const(1)) is None and pm.rewrite(UOp.const(2)) is x

    def test_sum(self):
        a = PatternMatcher([(UPat(Ops.CONST, arg=1), lambda: UOp.const(10))])
        b = PatternMatcher([(UPat(Ops.CONST, arg=2), lambda: UOp.const(20))])
        assert (a + b).rewrite(UOp.const(2)) is UOp.const(20) and (a + b) is (a + b)

    def test_ctx(self):
        pm = PatternMatcher([(UPat(Ops.CONST, name="c"), lambda ctx, c: ctx.append(c.arg))])
        seen: list[int] = []
        assert pm.rewrite(UOp.const(5), seen) is None and seen == [5]

    def test_long_source_lists(self):
        pm = PatternMatcher([(UPat(Ops.SINK, name="s"), lambda s: UOp.sink(*s.src[:1]))])
        assert len(pm.rewrite(UOp.sink(*[UOp.const(i) for i in range(9)])).src) == 1


class TestGraphRewrite:
    def test_top_down_sees_rewritten_sources(self):
        pm = PatternMatcher([(UPat(Ops.CONST, arg=1), lambda: UOp.const(2)),
                             (UPat(Ops.ADD, src=(UPat(Ops.CONST, arg=2), UPat(Ops.CONST, arg=2))), lambda: x)])
        assert graph_rewrite(UOp(Ops.ADD, (UOp.const(1), UOp.const(1))), pm) is x

    def test_bottom_up_sees_original_sources(self):
        seen = []
        pm = PatternMatcher([(UPat(Ops.ADD, name="a"), lambda a: seen.append(a.src[0].arg)),
                             (UPat(Ops.CONST, arg=1), lambda: UOp.const(2))])
        graph_rewrite(UOp(Ops.ADD, (UOp.const(1), x)), pm, bottom_up=True)
        assert seen[0] == 1

    def test_results_are_rewritten_again(self):
        pm = PatternMatcher([(UPat(Ops.CONST, name="c"), lambda c: UOp.const(c.arg + 1) if c.arg < 5 else None)])
        assert graph_rewrite(UOp.const(0), pm) is UOp.const(5)

    def test_walk_does_not_revisit_replacements(self):
        pm = PatternMatcher([(UPat(Ops.CONST, name="c"), lambda c: UOp.const(c.arg + 1))])
        assert graph_rewrite(UOp.const(0) + x, pm, walk=True) is UOp.const(1) + x

    def test_each_node_once(self):
        count = [0]
        pm = PatternMatcher([(UPat(Ops.BUFFER), lambda ctx: ctx.__setitem__(0, ctx[0] + 1))])
        u = x
        for _ in range(20):
            u = UOp(Ops.ADD, (u, u))
        graph_rewrite(u, pm, count)
        assert count == [1]

    def test_gate(self):
        def stop(s):
            raise BottomUpGate
        pm = PatternMatcher([(UPat(Ops.MUL, name="s"), stop), (UPat(Ops.CONST, arg=1), lambda: UOp.const(2))])
        kept = UOp(Ops.MUL, (x, UOp.const(1)))
        out = graph_rewrite(UOp(Ops.ADD, (kept, UOp.const(1))), pm, bottom_up=True)
        assert out is UOp(Ops.ADD, (kept, UOp.const(2)))

    def test_bodies_are_left_alone(self):
        pm = PatternMatcher([(UPat(Ops.CONST, arg=1), lambda: UOp.const(2))])
        call = UOp.sink(UOp.const(1)).call(UOp.const(1))
        out = graph_rewrite(call, pm)
        assert out.src[0] is call.src[0] and out.src[1] is UOp.const(2)
        assert graph_rewrite(call, pm, enter_calls=True).src[0] is UOp.sink(UOp.const(2))

    def test_rules_that_undo_each_other(self):
        pm = PatternMatcher([(UPat(Ops.CONST, arg=1), lambda: UOp.const(2)),
                             (UPat(Ops.CONST, arg=2), lambda: UOp.const(1))])
        with pytest.raises(RewriteLoopError, match="infinite loop in graph_rewrite"):
            graph_rewrite(UOp.const(1), pm)
        with pytest.raises(RewriteLoopError, match=r"_rewrite.py:\d+ \(.*test_rewrite.py:\d+\) keep rewriting CONST"):
            graph_rewrite(UOp.const(1), pm)
        with pytest.raises(RewriteLoopError, match="infinite loop in fixed_point_rewrite"):
            graph_rewrite(UOp.const(1), pm, bottom_up=True)

    def test_rules_that_grow(self):
        from tinyhost.env import Context
        pm = PatternMatcher([(UPat(Ops.CONST, name="c"), lambda c: UOp(Ops.ADD, (UOp.const(c.arg + 1), x)))])
        with Context(REWRITE_STACK_LIMIT=5000), pytest.raises(RewriteLoopError, match="stack too big"):
            graph_rewrite(UOp.const(1), pm, name="grow")


class TestSubstitute:
    def test_simple(self):
        assert (x + y).substitute({x: y}) is y + y

    def test_identity_returns_self(self):
        u = x + y
        assert u.substitute({}) is u and u.substitute({x: x}) is u

    def test_values_that_contain_keys(self):
        assert (x + 1).substitute({x: x + 2}, walk=True) is (x + 2) + 1

    def test_default_engine_follows_replacements(self):
        assert (x + 1).substitute({x: y, y: UOp.const(3)}) is UOp.const(3) + 1

    def test_bodies(self):
        call = UOp.sink(x).call(x)
        assert call.substitute({x: y}) is UOp.sink(x).call(y)
        assert call.substitute({x: y}, enter_calls=True) is UOp.sink(y).call(y)


class TestRuleCalls:
    """A rule gets the nodes its pattern names, however deep they stand, whatever the shape of its function."""

    deep = UOp(Ops.MUL, (UOp(Ops.ADD, (x, y)), x))

    def seen(self, pattern: UPat, fn) -> object:
        out: list[object] = []
        PatternMatcher([(pattern, fn)]).rewrite(self.deep, out)
        return out

    def test_the_node_itself(self):
        pm = PatternMatcher([(UPat(Ops.MUL, name="u"), lambda u: u.src[1])])
        assert pm.rewrite(self.deep) is x

    def test_sources_in_any_parameter_order(self):
        pat = UPat(Ops.MUL, src=(UPat(Ops.ADD, name="a"), UPat(name="b")), name="u")
        assert self.seen(pat, lambda b, ctx, u, a: ctx.append((a, b, u))) == [(self.deep.src[0], x, self.deep)]
        assert self.seen(pat, lambda u, a, b: None) == []

    def test_names_below_the_sources(self):
        pat = UPat(Ops.MUL, src=(UPat(Ops.ADD, src=(UPat(name="a"), UPat(name="c"))), UPat(name="b")))
        assert self.seen(pat, lambda ctx, a, b, c: ctx.append((a, b, c))) == [(x, x, y)]

    def test_one_name_at_two_depths_is_one_node(self):
        same = UPat(Ops.MUL, src=(UPat(Ops.ADD, src=(UPat(name="a"), UPat())), UPat(name="a")))
        other = UPat(Ops.MUL, src=(UPat(Ops.ADD, src=(UPat(), UPat(name="a"))), UPat(name="a")))
        assert self.seen(same, lambda ctx, a: ctx.append(a)) == [x]
        assert self.seen(other, lambda ctx, a: ctx.append(a)) == []

    def test_functions_with_defaults_and_keywords(self):
        pat = UPat(Ops.MUL, src=(UPat(name="a"), UPat(name="b")), name="u")
        assert PatternMatcher([(pat, lambda a, b, u, k=3: UOp.const(k))]).rewrite(self.deep) is UOp.const(3)
        assert PatternMatcher([(pat, lambda **named: named["b"])]).rewrite(self.deep) is x

    def test_dtype_arg_and_tag_are_still_checked(self):
        for pat in (UPat(Ops.MUL, dtypes.int32, name="u"), UPat(Ops.MUL, arg=1, name="u"),
                    UPat(Ops.MUL, tag=1, name="u"), UPat(Ops.MUL, src=(UPat(Ops.ADD, dtypes.int8), UPat()), name="u"),
                    UPat(Ops.MUL, src=(UPat(Ops.ADD, src=(UPat(Ops.CONST), UPat())), UPat()), name="u")):
            assert self.seen(pat, lambda ctx, u: ctx.append(u)) == [], pat
        assert len(self.seen(UPat(Ops.MUL, dtypes.weakint, name="u"), lambda ctx, u: ctx.append(u))) == 1

    def test_every_source_alike_and_long_lists(self):
        pm = PatternMatcher([(UPat(Ops.STACK, src=UPat(Ops.CONST, name="c"), name="u"), lambda u, c: c)])
        assert pm.rewrite(UOp.const((1, 1))) is UOp.const(1) and pm.rewrite(UOp.const((1, 2))) is None
        long = PatternMatcher([(UPat(Ops.STACK, src=(UPat(Ops.CONST, name="c"),), allow_any_len=True), lambda c: c)])
        assert long.rewrite(UOp.const((7, 1, 2, 3, 4, 5))) is UOp.const(7)
        assert long.rewrite(UOp(Ops.STACK, (x,) * 6)) is None


class TestHelpers:
    def test_casted_and_after(self):
        f = UOp.param(0, dtypes.float32, 4)
        cast, state = f.cast(dtypes.int8), f.after(UOp(Ops.NOOP))
        pat = UPat(Ops.PARAM, name="x")
        assert pat.or_casted().match(f, {}) == pat.or_casted().match(cast, {}) == [{"x": f}]
        assert pat.or_casted("c").match(cast, {}) == [{"x": f, "c": cast}]
        assert pat.or_casted("c").match(f, {}) == [{"c": f}]
        assert pat.or_after().match(state, {}) == [{"x": f}] and not pat.or_after().match(cast, {})

    def test_statistics_of_rules(self, capsys):
        from tinyhost.env import Context
        from tinyhost.uop.pattern import forget_match_stats, match_stats, print_match_stats

        def one_to_two(c):
            return UOp.const(2)
        pm = PatternMatcher([(UPat(Ops.CONST, arg=1, name="c"), one_to_two)])
        assert pm.rewrite(UOp.const(1)) is UOp.const(2)  # used before anyone counted
        with Context(TRACK_MATCH_STATS=1):
            assert pm.rewrite(UOp.const(1)) is UOp.const(2) and pm.rewrite(UOp.const(5)) is None
        (stats,) = [s for place, s in match_stats() if place.endswith("one_to_two")]
        assert (stats.tries, stats.hits) == (2, 1) and stats.seconds > 0
        print_match_stats()
        assert "1 /        2" in capsys.readouterr().err
        forget_match_stats()
        assert match_stats() == [] and (stats.tries, stats.hits, stats.seconds) == (0, 0, 0)
