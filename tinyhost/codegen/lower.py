"""Decomposition: ops and dtypes that the target lacks, rewritten on the small kernel; single integer ops afterwards."""
from __future__ import annotations

from functools import lru_cache
from typing import Callable

from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite


def decompositions(renderer: Renderer) -> PatternMatcher:
    """The rules for what the renderer's target lacks."""
    return _decompositions(frozenset(renderer.code_for_op), renderer.caps.dtypes)


@lru_cache(32)
def _decompositions(ops: frozenset[Ops], dtypes: frozenset[DType]) -> PatternMatcher:
    from tinyhost.uop.rules.decompose import get_decompositions
    return get_decompositions(ops, dtypes)


def lower_values(sink: UOp, renderer: Renderer) -> UOp:
    """The small kernel with only ops of the target; weak index math is left as it is."""
    if renderer.pre_matcher is not None:
        sink = graph_rewrite(sink, renderer.pre_matcher, ctx=renderer, name="renderer's early rules")
    return graph_rewrite(sink, decompositions(renderer), name="decompositions")


def lower_scalar(renderer: Renderer) -> Callable[[UOp], UOp]:
    """A function that lowers one strong integer op."""
    native = frozenset(renderer.code_for_op)
    if Ops.FLOORDIV in native:
        return lambda u: u

    def lower(u: UOp) -> UOp:
        return graph_rewrite(u, decompositions(renderer), name="decompositions of index math")
    return lower


