"""What a gate implies: WHERE(cond, idx, Invalid) is only used where cond holds.

Takes gated index expressions; gives the same with an index that may rely on its condition (a division that the bounds
under the condition decide is gone) and with a condition without clauses that the others imply. A clause is read as a
bound on a linear form; the form is replaced by a variable with that bound, the expression simplified, the form put
back. A result is kept only where it has fewer operations other than sums and products.

Does not move arithmetic across a gate: a loaded index may overflow where its gate is false.
"""
from __future__ import annotations

from math import gcd
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop.info import ParamArg
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rewrite import graph_rewrite, substitute
from tinyhost.uop.rules.common import (
    Terms,
    clauses,
    conjunction,
    from_linear,
    in_order,
    is_invalid,
    linear,
    linear_bounds,
    negated,
    scaled,
)
from tinyhost.uop.rules.rulesets import sym, symbolic

Form = tuple[tuple[UOp, int], ...]  # terms of a linear form, the first coefficient positive
MAX_CLAUSES = 12  # every clause is held against all others
_COSTLY = frozenset({Ops.FLOORDIV, Ops.FLOORMOD, Ops.MAX, Ops.WHERE, Ops.CDIV, Ops.CMOD, *GroupOp.Comparison})


def _costly(u: UOp) -> int:
    return sum(1 for x in u.toposort() if x.op in _COSTLY)


# *** clauses as bounds ***
def _form(terms: Terms) -> tuple[Form, int]:
    """(form, factor) with terms = factor * form; the factor may be negative."""
    g = gcd(*terms.values())
    order = in_order(terms)
    if terms[order[0]] < 0:
        g = -g
    return tuple((t, terms[t] // g) for t in order), g


def _less(a: UOp, b: UOp, limit: int) -> tuple[Form, int | None, int | None] | None:
    """The bound on a form that a < b + limit states."""
    terms, const = linear(a)
    others, other_const = linear(b)
    for t, k in others.items():
        terms[t] = terms.get(t, 0) - k
    terms = {t: k for t, k in terms.items() if k}
    if not terms:
        return None
    form, g = _form(terms)
    top = other_const + limit - const - 1  # g * form <= top
    return (form, None, top // g) if g > 0 else (form, -(top // -g), None)


def parse_clause(c: UOp) -> list[tuple[Form, int | None, int | None]]:
    """Bounds (form, lowest or None, highest or None) that a true clause states on weakint forms; [] when it states
    none."""
    inner = negated(c)
    cmp = c if inner is None else inner
    if cmp.op not in (Ops.CMPLT, Ops.CMPNE) or any(s.dtype is not dtypes.weakint for s in cmp.src):
        return []
    a, b = cmp.src
    if cmp.op is Ops.CMPLT:
        found = _less(a, b, 0) if inner is None else _less(b, a, 1)
        return [found] if found is not None else []
    if inner is None:
        return []
    return [f for f in (_less(a, b, 1), _less(b, a, 1)) if f is not None]


def parse_valid(conds: list[UOp]) -> dict[Form, tuple[int, int]] | None:
    """Bounds of all forms that ``conds`` speak of; None when they contradict each other or the bounds of their
    terms."""
    out: dict[Form, tuple[int, int]] = {}
    for c in conds:
        for form, low, high in parse_clause(c):
            lo, hi = out.get(form) or linear_bounds(dict(form), 0)
            lo, hi = lo if low is None else max(lo, low), hi if high is None else min(hi, high)
            if lo > hi:
                return None
            out[form] = (lo, hi)
    return out


# *** an expression under clauses ***
def _bounded(number: int, lo: int, hi: int) -> UOp:
    if lo == hi:
        return UOp(Ops.CONST, (), lo)
    return UOp(Ops.PARAM, (), ParamArg(-2 - number, dtypes.weakint, None, (lo, hi), name=f"_valid{number}",
                                       addrspace=AddrSpace.ALU))


def _take_form(ctx: tuple[Form, UOp], u: UOp) -> UOp | None:
    """q*form + rest -> q*variable + rest, in a sum"""
    if u.dtype is not dtypes.weakint:
        return None
    form, var = ctx
    terms, const = linear(u)
    q, odd = divmod(terms.get(form[0][0], 0), form[0][1])
    if q == 0 or odd or any(terms.get(t) != k * q for t, k in form):
        return None
    for t, _ in form:
        del terms[t]
    return UOp(Ops.ADD, (from_linear(terms, const), scaled(var, q)))


_pm_take_form = PatternMatcher([(UPat(Ops.ADD, name="u"), _take_form)])


def _substitutions(conds: list[UOp]) -> dict[UOp, UOp]:
    """The clauses themselves are True, what they negate is False."""
    out = {}
    for c in conds:
        out[c] = UOp(Ops.CONST, (), True)
        if (inner := negated(c)) is not None:
            out[inner] = UOp(Ops.CONST, (), False)
    return out


def uop_given_valid(valid: UOp, u: UOp) -> UOp | None:
    """``u`` simplified where ``valid`` holds; None where ``valid`` can never hold."""
    return given(clauses(valid), u)


def given(conds: list[UOp], u: UOp) -> UOp | None:
    """``u`` simplified where all of ``conds`` hold; None where they contradict each other."""
    bounds = parse_valid(conds)
    if bounds is None:
        return None
    before = _costly(u)
    if before == 0:
        return u
    back: dict[UOp, UOp] = {}
    atoms: dict[UOp, UOp] = _substitutions(conds)
    out = u
    for i, (form, (lo, hi)) in enumerate(bounds.items()):
        var = _bounded(i, lo, hi)
        if var.op is not Ops.CONST:
            back[var] = from_linear(dict(form), 0)
        if len(form) == 1:
            atoms[form[0][0]] = var
        else:
            out = graph_rewrite(out, _pm_take_form, (form, var), name="take form")
    out = graph_rewrite(substitute(out, atoms), symbolic, name="given")
    if out is u or (not back and out.op is not Ops.CONST and _costly(out) >= before):
        return u
    out = graph_rewrite(substitute(out, back), symbolic, name="given back")
    return out if _costly(out) < before else u


def simplify_valid(conds: list[UOp]) -> list[UOp] | None:
    """The clauses without those that the others imply; None where they contradict each other."""
    if parse_valid(conds) is None:
        return None
    if len(conds) > MAX_CLAUSES:
        return conds
    i = 0
    while i < len(conds) and len(conds) > 1:
        others = conds[:i] + conds[i + 1:]
        if _share_leaves(conds[i], others):
            new = given(others, conds[i])
            if new is None or (new.op is Ops.CONST and new.arg is False):
                return None
            if new.op is Ops.CONST:
                conds = others
                continue
            if new is not conds[i]:
                conds = [*conds[:i], *clauses(new), *conds[i + 1:]]
        i += 1
    return list(dict.fromkeys(conds))


def _share_leaves(c: UOp, others: list[UOp]) -> bool:
    mine = {x for x in c.toposort() if x.op in GroupOp.Irreducible and x.op is not Ops.CONST}
    return any(x in mine for o in others for x in o.toposort())


# *** rules ***
def simplify_gated(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(c, x, Invalid) -> where(c', x', Invalid), x' simplified under c, c' without implied clauses"""
    if not is_invalid(y) or not x.dtype.is_int:
        return None
    conds: Any = clauses(c)
    if len(conds) > 1:
        conds = simplify_valid(conds)
    index = None if conds is None else given(conds, x)
    if index is None:
        return y
    if index is x and len(conds) == len(clauses(c)) and all(a is b for a, b in zip(conds, clauses(c))):
        return None
    return index if not conds else UOp(Ops.WHERE, (conjunction(conds), index, y))


def simplify_and(u: UOp) -> UOp | None:
    """a & b -> a where a implies b; a & b -> False where they exclude each other"""
    conds = clauses(u)
    if sum(1 for c in conds if parse_clause(c)) < 2:
        return None
    new = simplify_valid(list(conds))
    if new is None:
        return UOp(Ops.CONST, (), False) if not u._shape else None
    return None if new == conds else conjunction(new)


pm_valid = PatternMatcher([
    (UPat(Ops.WHERE, src=(UPat(name="c"), UPat(name="x"), UPat(Ops.CONST, name="y")), name="u"), simplify_gated),
    (UPat(Ops.AND, src=(UPat((Ops.CMPLT, Ops.CMPNE, Ops.AND)), UPat((Ops.CMPLT, Ops.CMPNE))), name="u"), simplify_and),
])

sym_valid = sym + pm_valid
