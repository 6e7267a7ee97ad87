"""Simplification of the small kernel: the symbolic rules, sums over an index that pick one element, gates out of
loops.
"""
from __future__ import annotations

from functools import cache

from tinyhost.codegen.kernel import product_of
from tinyhost.codegen.memory import UNUSED, gate_and_index
from tinyhost.codegen.phases import split_phases
from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite


@cache
def _rules() -> PatternMatcher:
    from tinyhost.uop.rules import symbolic
    from tinyhost.uop.rules.reduce_collapse import pm_reduce_collapse
    rules: PatternMatcher = symbolic + pm_reduce_collapse
    return rules


def simplify_kernel(sink: UOp) -> UOp:
    """The kernel in canonical form."""
    sink = graph_rewrite(sink, _rules(), name="simplify kernel")
    parts = split_phases(sink)
    return sink if parts is sink else graph_rewrite(parts, _rules(), name="simplify phases")


def hoist_gates(sink: UOp) -> UOp:
    """Conditions on summed products taken out of the loops they do not depend on.

    sum over a, b of (c(a) ? x : 0) -> sum over a of (c(a) ? sum over b of x : 0): the inner loop is multiply-adds
    alone.
    """
    done: dict[UOp, UOp] = {}
    nodes = sink.toposort()
    if not any(_gated_product(u) for u in nodes):
        return sink
    for u in nodes:
        src = tuple([done[s] for s in u.src])
        new = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        done[u] = _hoisted(new) if _gated_product(new) else new
    return done[sink]


def _gated_product(u: UOp) -> bool:
    """Whether ``u`` sums products under a condition that some of its ranges do not change."""
    if u.op is not Ops.REDUCE or u.src[0].op is not Ops.WHERE or product_of(u) is None:
        return False
    moving = u.src[0].src[0].ranges
    return any(r not in moving for r in u.src[1:])


def _hoisted(u: UOp) -> UOp:
    cond, product, zero = u.src[0].src
    product = _unguarded(product, cond)
    outer = [r for r in u.src[1:] if r in cond.ranges]
    inner = UOp(Ops.REDUCE, (product, *[r for r in u.src[1:] if r not in outer]), u.arg)
    value = UOp(Ops.WHERE, (cond, inner, zero))
    return UOp(Ops.REDUCE, (value, *outer), u.arg) if outer else value


def _unguarded(product: UOp, cond: UOp) -> UOp:
    """The product with its loads under ``cond`` marked: what they give where it is false is not used."""
    swap = {x: UOp(Ops.INDEX, x.src, x.arg, UNUSED) for x in product.toposort()
            if x.op is Ops.INDEX and len(x.src) == 2 and gate_and_index(x)[0] is cond}
    return product.substitute(swap, walk=True) if swap else product
