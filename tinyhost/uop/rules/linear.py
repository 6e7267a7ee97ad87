"""Sums, products, comparisons and maxima of integers as linear forms.

Takes weakint expressions (index math: exact, nothing wraps) and gives one canonical sum: atoms in a fixed order, each
with one coefficient, the constant last; products with literals are distributed over sums. Comparisons are brought to
``positive terms < negative terms + constant`` and lose what cannot matter. Strong integers wrap and get only the rules
that hold modulo 2**n. Floats are not touched.
"""
from __future__ import annotations

from math import gcd
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import (
    LITERAL_OPS,
    Terms,
    before,
    const_for,
    from_linear,
    linear,
    linear_bounds,
    literal,
    scaled,
)
from tinyhost.uop.rules.divmod import recombine

_DIVMOD = (Ops.FLOORDIV, Ops.FLOORMOD)


# *** sums ***
def _atom(t: UOp) -> UOp:
    return t.src[0] if t.op is Ops.MUL and t.src[1].op is Ops.CONST else t


def _is_canonical_sum(a: UOp, b: UOp) -> bool:
    """Whether a + b is in order already, given that ``a`` and ``b`` are; may say no too often."""
    if b.op is Ops.ADD or a.op is Ops.CONST:
        return False
    last = a.src[1] if a.op is Ops.ADD else a
    if last.op is Ops.CONST:
        return False
    if b.op is Ops.CONST:
        return bool(b.arg != 0)
    x, y = _atom(last), _atom(b)
    return x is not y and y.op not in _DIVMOD and before(x, y)


def canonical_sum(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """x*c0 + x*c1 -> x*(c0+c1); (x + c0) + c1 -> x + (c0+c1); y + x -> x + y in canonical order; x%c + (x//c)*c -> x"""
    if u.dtype is not dtypes.weakint or _is_canonical_sum(a, b):
        return None
    terms, const = linear(u)
    if len(terms) > 1 and any(t.op is Ops.FLOORMOD for t in terms):
        joined = recombine(terms, const)
        const = const if joined is None else joined
    return from_linear(terms, const)


def combine_terms(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """strong integers: x*c0 + x*c1 -> x*(c0+c1), modulo 2**n; x + x -> x*2"""
    dtype = u.dtype
    if not dtype.is_int or dtype is dtypes.weakint or a.dtype is not dtype or b.dtype is not dtype:
        return None
    (x, p), (y, q) = _coefficient(a), _coefficient(b)
    return UOp(Ops.MUL, (x, UOp.const(_wrap(p + q, dtype), dtype))) if x is y else None


def cancel_term(u: UOp, inner: UOp, b: UOp) -> UOp | None:
    """strong integers: (y + x*c0) + x*c1 -> y + x*(c0+c1); (x*c0 + y) + x*c1 -> x*(c0+c1) + y"""
    dtype = u.dtype
    if not dtype.is_int or dtype is dtypes.weakint or any(s.dtype is not dtype for s in (*inner.src, b)):
        return None
    y, q = _coefficient(b)
    for i in (1, 0):
        x, p = _coefficient(inner.src[i])
        if x is y:
            return UOp(Ops.ADD, (inner.src[1 - i], UOp(Ops.MUL, (x, UOp.const(_wrap(p + q, dtype), dtype)))))
    return None


def _coefficient(t: UOp) -> tuple[UOp, int]:
    if t.op is Ops.MUL and t.src[0].dtype is t.dtype and (c := literal(t.src[1])) is not None:
        return t.src[0], c
    return t, 1


def _wrap(v: int, dtype: Any) -> int:
    v &= (1 << dtype.bitsize) - 1
    return v if v <= dtype.max else v - (1 << dtype.bitsize)


# *** products and negation ***
def distribute(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """(x + y) * c -> x*c + y*c; (x * c0) * c1 -> x * (c0*c1)"""
    if u.dtype is not dtypes.weakint or type(c.arg) is not int:
        return None
    terms, const = linear(x)
    return from_linear({t: k * c.arg for t, k in terms.items()}, const * c.arg)


def order_product(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """(x * c) * y -> (x * y) * c; (x * z) * y -> (x * y) * z in canonical order; y * x -> x * y"""
    if u.dtype is not dtypes.weakint or a.op is Ops.CONST or b.op is Ops.CONST:
        return None
    if a.op is not Ops.MUL and b.op is not Ops.MUL:
        return None if a is b or before(a, b) else UOp(Ops.MUL, (b, a))
    factors, k = [], 1
    for f in u.split_uop(Ops.MUL):
        if f.op is Ops.CONST and type(f.arg) is int:
            k *= f.arg
        else:
            factors.append(f)
    out: UOp | None = None
    for f in _in_order(factors):
        out = f if out is None else UOp(Ops.MUL, (out, f))
    assert out is not None
    return scaled(out, k)


def _in_order(factors: list[UOp]) -> list[UOp]:
    out: list[UOp] = []
    for f in factors:
        i = len(out)
        while i and f is not out[i - 1] and before(f, out[i - 1]):
            i -= 1
        out.insert(i, f)
    return out


def difference(u: UOp) -> UOp | None:
    """weakint: x - y -> x + y * -1"""
    if u.dtype is not dtypes.weakint:
        return None
    a, b = u.src
    return UOp(Ops.ADD, (a, UOp(Ops.MUL, (b, UOp(Ops.CONST, (), -1)))))


def negation(u: UOp) -> UOp | None:
    """weakint: -x -> x * -1"""
    return UOp(Ops.MUL, (u.src[0], UOp(Ops.CONST, (), -1))) if u.dtype is dtypes.weakint else None


def complement_is_linear(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """weakint: x ^ -1 -> x * -1 - 1"""
    if u.dtype is not dtypes.weakint or c.arg != -1:
        return None
    terms, const = linear(x)
    return from_linear({t: -k for t, k in terms.items()}, -const - 1)


# *** comparisons: sum < limit ***
def _drop_small_rest(terms: Terms, limit: int) -> tuple[Terms, int] | None:
    """g*q + r < limit as q < limit', where 0 <= r < g and r cannot matter."""
    for g in sorted({abs(k) for k in terms.values()} - {1}, reverse=True):
        main = {t: k // g for t, k in terms.items() if k % g == 0}
        rest = {t: k for t, k in terms.items() if k % g}
        lo, hi = linear_bounds(rest, 0)
        if hi - lo >= g:
            continue
        k, m = divmod(limit - lo, g)
        if m == 0:
            return main, k
        if hi - lo < m:
            return main, k + 1
    return None


def _less_than(terms: Terms, limit: int) -> UOp | bool:
    """sum(terms) < limit, as short as the rules make it."""
    lo, hi = linear_bounds(terms, 0)
    if hi < limit or lo >= limit:
        return hi < limit
    g = gcd(*terms.values())
    if g > 1:
        terms, limit = {t: k // g for t, k in terms.items()}, -(-limit // g)
    if (shorter := _drop_small_rest(terms, limit)) is not None:
        return _less_than(*shorter)
    left = {t: k for t, k in terms.items() if k > 0}
    right = {t: -k for t, k in terms.items() if k < 0}
    if len(terms) == 1 and (one := _less_than_of_quotient(left, right, limit)) is not None:
        return one
    if not left:  # -x < c is -c < x
        return UOp(Ops.CMPLT, (UOp(Ops.CONST, (), -limit), from_linear(right, 0)))
    return UOp(Ops.CMPLT, (from_linear(left, 0), from_linear(right, limit)))


def _less_than_of_quotient(left: Terms, right: Terms, limit: int) -> UOp | bool | None:
    """x // d < c -> x < c*d; c < x // d -> (c+1)*d - 1 < x, for d > 0"""
    t, k = next(iter((left or right).items()))
    if k != 1 or t.op is not Ops.FLOORDIV or t.src[1].op is not Ops.CONST or t.src[1].arg <= 0:
        return None
    d = t.src[1].arg
    terms, const = linear(t.src[0])
    if left:
        return _less_than(terms, limit * d - const)
    # -limit < x // d, that is (1 - limit)*d - 1 < x
    return _less_than({s: -q for s, q in terms.items()}, const - (1 - limit) * d + 1)


def _difference(a: UOp, b: UOp) -> tuple[Terms, int]:
    """(terms, limit): a compares with b as the sum of the terms does with the limit."""
    terms, const = linear(a)
    others, limit = linear(b)
    for t, k in others.items():
        terms[t] = terms.get(t, 0) - k
    return {t: k for t, k in terms.items() if k}, limit - const


def compare_sums(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """a + x < b + x -> a < b; x + c0 < c1 -> x < c1 - c0; g*x < c -> x < ceil(c/g); 4*q + r < 4*c -> q < c;
    -x < c -> -c < x; x // d < c -> x < c*d"""
    if a.dtype is not dtypes.weakint or b.dtype is not dtypes.weakint:
        return None
    terms, limit = _difference(a, b)
    if not terms:
        return const_for(u, 0 < limit)
    out = _less_than(terms, limit)
    return const_for(u, out) if isinstance(out, bool) else out


def compare_unequal_sums(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """a + x != b + x -> a != b; x + c0 != c1 -> x != c1 - c0; g*x != c -> x != c/g, or True where g does not divide
    c"""
    if a.dtype is not dtypes.weakint or b.dtype is not dtypes.weakint:
        return None
    terms, limit = _difference(a, b)
    if not terms:
        return const_for(u, limit != 0)
    lo, hi = linear_bounds(terms, 0)
    g = gcd(*terms.values())
    if not lo <= limit <= hi or limit % g:
        return const_for(u, True)
    left = {t: k // g for t, k in terms.items() if k > 0}
    right = {t: -k // g for t, k in terms.items() if k < 0}
    limit //= g
    if not left:
        left, right, limit = right, left, -limit
    x, y = from_linear(left, 0), from_linear(right, limit)
    if right and limit == 0 and not before(x, y):
        x, y = y, x
    return UOp(u.op, (x, y))


def not_less_than(u: UOp, lt: UOp) -> UOp | None:
    """integers: NOT (x < c) -> c - 1 < x; NOT (c < x) -> x < c + 1"""
    a, b = lt.src
    if u.src[1].arg is not True or a.dtype is not b.dtype or not a.dtype.is_int:
        return None
    if (v := literal(b)) is not None:
        return UOp(Ops.CMPLT, (UOp.const(v - 1, b.dtype), a)) if v > b.dtype.min else const_for(u, True)
    if (v := literal(a)) is not None:
        return UOp(Ops.CMPLT, (b, UOp.const(v + 1, a.dtype))) if v < a.dtype.max else const_for(u, True)
    if a.dtype is dtypes.weakint:  # NOT (x < y) -> y < x + 1
        return UOp(Ops.CMPLT, (b, UOp(Ops.ADD, (a, UOp(Ops.CONST, (), 1)))))
    return None


def compare_shifted(u: UOp, inner: UOp, c: UOp) -> UOp | None:
    """strong integers: x + c0 != c1 -> x != c1 - c0, modulo 2**n; x + c0 < c1 -> x < c1 - c0 where nothing wraps"""
    dtype = inner.dtype
    if not dtype.is_int or dtype is dtypes.weakint or inner.src[0].dtype is not dtype or c.dtype is not dtype:
        return None
    k, limit, x = literal(inner.src[1]), literal(c), inner.src[0]
    if k is None or limit is None:
        return None
    if u.op is not Ops.CMPLT:
        return UOp(u.op, (x, UOp.const(_wrap(limit - k, dtype), dtype)))
    if x.vmin + k < dtype.min or x.vmax + k > dtype.max or not dtype.min <= limit - k <= dtype.max:
        return None
    return UOp(Ops.CMPLT, (x, UOp.const(limit - k, dtype)))


# *** maxima ***
def max_by_bounds(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """integers: max(x, y) -> x where x >= y for certain"""
    dtype = u.dtype
    if not dtype.is_int or a.dtype is not dtype or b.dtype is not dtype:
        return None
    if dtype is not dtypes.weakint:
        return a if a.vmin >= b.vmax else b if b.vmin >= a.vmax else None
    terms, const = linear(a)
    others, other_const = linear(b)
    for t, k in others.items():
        terms[t] = terms.get(t, 0) - k
    lo, hi = linear_bounds(terms, const - other_const)
    return a if lo >= 0 else b if hi <= 0 else None


def order_max(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """weakint: max(y, x) -> max(x, y) in canonical order"""
    if u.dtype is not dtypes.weakint or b.op is Ops.CONST or a is b or before(a, b):
        return None
    return UOp(Ops.MAX, (b, a))


_a, _b, _c = UPat(name="a"), UPat(name="b"), UPat(Ops.CONST, name="c")

pm_linear = PatternMatcher([
    (UPat(Ops.ADD, src=(_a, _b), name="u"), canonical_sum),
    (UPat(Ops.ADD, src=(_a, _b), name="u"), combine_terms),
    (UPat(Ops.ADD, src=(UPat(Ops.ADD, name="inner"), _b), name="u"), cancel_term),
    (UPat(Ops.MUL, src=(UPat((Ops.ADD, Ops.MUL), name="x"), _c), name="u"), distribute),
    (UPat(Ops.MUL, src=(_a, _b), name="u"), order_product),
    (UPat(Ops.SUB, name="u"), difference),
    (UPat(Ops.NEG, name="u"), negation),
    (UPat(Ops.XOR, src=(UPat(name="x"), _c), name="u"), complement_is_linear),
    (UPat(Ops.CMPLT, src=(_a, _b), name="u"), compare_sums),
    (UPat((Ops.CMPNE,), src=(_a, _b), name="u"), compare_unequal_sums),
    (UPat(Ops.CMPNE, src=(UPat(Ops.CMPLT, name="lt"), UPat(Ops.CONST)), name="u"), not_less_than),
    (UPat((Ops.CMPLT, Ops.CMPNE), src=(UPat(Ops.ADD, name="inner"), UPat(LITERAL_OPS, name="c")), name="u"),
     compare_shifted),
    (UPat(Ops.MAX, src=(_a, _b), name="u"), max_by_bounds),
    (UPat(Ops.MAX, src=(_a, _b), name="u"), order_max),
])
