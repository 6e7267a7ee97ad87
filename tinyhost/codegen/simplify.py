"""Simplification of the small kernel: the symbolic rules, and sums over an index that pick one element."""
from __future__ import annotations

from functools import cache

from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite


@cache
def _rules() -> PatternMatcher:
    from tinyhost.uop.rules import symbolic
    from tinyhost.uop.rules.reduce_collapse import pm_reduce_collapse
    return symbolic + pm_reduce_collapse


def simplify_kernel(sink: UOp) -> UOp:
    """The kernel in canonical form."""
    return graph_rewrite(sink, _rules(), name="simplify kernel")


def has_reduce(sink: UOp) -> bool:
    """Whether anything is reduced."""
    return any(u.op is Ops.REDUCE for u in sink.toposort())
