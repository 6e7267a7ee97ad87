"""Sums over a range that have a closed form.

Takes ranged REDUCE nodes (arg (op, 0), ranges from src[1]); gives arithmetic, or a gather, without the range. Counting
how often a condition on the range holds is what an arange, a mask or a one-hot encoding costs; selecting the one
element where the range equals an index is a gather. Floats are only collapsed where every partial sum is exact: no
value changes.
"""
from __future__ import annotations

from collections.abc import Callable
from math import frexp

from tinyhost.dtype import DType, dtypes, least_upper_dtype
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import (
    Terms,
    clauses,
    conjunction,
    from_linear,
    is_literal,
    linear,
    literal,
    logical_not,
    negated,
)
from tinyhost.uop.rules.free_ranges import put


def _independent(u: UOp, r: UOp) -> bool:
    return r not in u.ranges


def _without(u: UOp, r: UOp, value: UOp) -> UOp:
    """The reduce without range ``r`` over ``value``."""
    rest = tuple(s for s in u.src[1:] if s is not r)
    return UOp(Ops.REDUCE, (value, *rest), u.arg, u.tag) if rest else value


def _sums_exactly(x: UOp, most: int) -> bool:
    """Whether adding ``x`` up to ``most`` times is x * count, bit for bit."""
    dtype = x.dtype
    if not dtype.is_float:
        return dtype is not dtypes.bool
    v = literal(x)
    if v is None or v != v or abs(v) == float("inf") or v == 0 or dtype.is_weak:
        return False
    mantissa, exponent = frexp(abs(v))
    bits = 0
    while mantissa != int(mantissa):
        mantissa, bits = mantissa * 2, bits + 1
    # v = mantissa * 2**(exponent - bits): every multiple up to most * v must fit the significand and the exponent range
    digits, top = _FLOAT_FORMAT.get(dtype, (0, 0))
    return int(mantissa) * most <= 1 << digits and exponent - bits >= 2 - top and frexp(abs(v) * most)[1] < top


_FLOAT_FORMAT: dict[DType, tuple[int, int]] = {  # digits of the significand, highest power of two
    dtypes.float16: (11, 14), dtypes.bfloat16: (8, 126), dtypes.float32: (24, 126), dtypes.float64: (53, 1022)}


def _times(x: UOp, n: UOp) -> UOp:
    """x * n; a sum that may be empty is +0.0, never -0.0."""
    out = UOp(Ops.MUL, (x, n.cast(x.dtype)))
    return UOp(Ops.ADD, (out, UOp.const(0.0, x.dtype))) if x.dtype.is_float and n.vmin <= 0 and literal(x) < 0 else out


# *** the range does not matter ***
def reduce_of_invariant(u: UOp, x: UOp) -> UOp | None:
    """sum over r of x -> x * n; max over r of x -> x; bool sum or product of x -> x; for x without r"""
    op = u.arg[0]
    for r in u.src[1:]:
        if r.op is not Ops.RANGE or r.dtype is dtypes.void or not _independent(x, r) or r.vmax < 0:
            continue
        if any(r in s.ranges for s in u.src[1:] if s is not r):
            continue
        n = r.src[0]
        if (op is Ops.MAX or x.dtype is dtypes.bool) and n.vmin > 0:
            return _without(u, r, x)
        if op is Ops.ADD and _sums_exactly(x, int(n.vmax)):
            return _without(u, r, _times(x, n))
    return None


# *** sum over r of where(cond(r), x, 0) ***
def _split_choice(x: UOp) -> tuple[UOp, UOp] | None:
    """(cond, value) where x is value if cond else 0."""
    if x.op is Ops.WHERE:
        cond, a, b = x.src
        if literal(b) == 0 and not _is_minus_zero(b):
            return cond, a
        if literal(a) == 0 and not _is_minus_zero(a):
            return logical_not(cond), b
    if x.op is Ops.CAST and x.src[0].dtype is dtypes.bool and not is_literal(x):
        return x.src[0], UOp.const(1, x.dtype)
    return None


def _is_minus_zero(c: UOp) -> bool:
    return str(literal(c)) == "-0.0"


def _through_casts(s: UOp) -> UOp:
    """The integer under casts that keep its value."""
    while s.op is Ops.CAST and s.src[0].dtype.is_int and s.dtype.is_int and s.dtype.min <= s.src[0].vmin \
            and s.src[0].vmax <= s.dtype.max:
        s = s.src[0]
    return s


def _is_exact(s: UOp) -> bool:
    """Whether ``s`` is an integer that is index math, or no arithmetic, under casts that keep its value."""
    if not s.dtype.is_int:
        return False
    inner = _through_casts(s)
    return inner.dtype is dtypes.weakint or inner.op not in (Ops.ADD, Ops.MUL)


def _isolate(a: UOp, b: UOp, r: UOp) -> tuple[int, Terms, int] | None:
    """a - b as k*r + rest, with r alone in its term; None where r stands elsewhere."""
    if not (_is_exact(a) and _is_exact(b)) or not least_upper_dtype(a.dtype, b.dtype).is_int:
        return None
    terms, const = linear(_through_casts(a))
    others, other_const = linear(_through_casts(b))
    for t, k in others.items():
        terms[t] = terms.get(t, 0) - k
    k = terms.pop(r, 0)
    if k == 0 or any(not _independent(t, r) for t in terms):
        return None
    return k, {t: q for t, q in terms.items() if q}, const - other_const


def _weak(x: UOp) -> UOp:
    return x.cast(dtypes.weakint)


def _interval(cond: UOp, r: UOp) -> tuple[UOp | None, UOp | None] | None:
    """(lowest, end) of the r for which a clause holds; None on one side where it sets no bound, None where unknown."""
    inner = negated(cond)
    cmp = cond if inner is None else inner
    if cmp.op is not Ops.CMPLT:
        return None
    a, b = cmp.src if inner is None else cmp.src[::-1]
    split = _isolate(a, b, r)
    if split is None:
        return None
    k, rest, const = split
    rest_node = from_linear({_weak(t): q for t, q in rest.items()}, const)
    one = UOp.const(1)
    # k*r + rest < 0, or <= 0 where the clause was negated
    limit = rest_node * -1 if inner is None else rest_node * -1 + one
    if k > 0:  # r < ceil(limit / k)
        return None, -((limit * -1) // k) if k != 1 else limit
    # -|k| * r < limit, that is r > -limit / |k|
    low = (limit * -1) // -k + one
    return low, None


def sum_of_condition(u: UOp, x: UOp) -> UOp | None:
    """sum over r < n of where(a <= r & r < b, x, 0) -> x * max(0, min(b, n) - max(a, 0)), for a, b, x without r"""
    if u.arg[0] is not Ops.ADD or (choice := _split_choice(x)) is None:
        return None
    cond, value = choice
    for r in u.src[1:]:
        if r.op is not Ops.RANGE or r.dtype is not dtypes.weakint or not _independent(value, r) or r.vmax < 0:
            continue
        if not _sums_exactly(value, int(r.src[0].vmax)) or _independent(cond, r):
            continue
        count = _count(cond, r)
        if count is not None:
            others, n = count
            v = _times(value, n)
            if others:
                v = UOp(Ops.WHERE, (conjunction(others), v, v.const_like(0)))
            return _without(u, r, v)
    return None


def _count(cond: UOp, r: UOp) -> tuple[list[UOp], UOp] | None:
    """(clauses without r, number of r for which the others hold)."""
    low: UOp = UOp.const(0)
    end: UOp = r.src[0].cast(dtypes.weakint)
    others = []
    for c in clauses(cond):
        if _independent(c, r):
            others.append(c)
            continue
        if (bounds := _interval(c, r)) is None:
            return None
        if bounds[0] is not None:
            low = low.maximum(bounds[0])
        if bounds[1] is not None:
            end = end.minimum(bounds[1])
    return others, (end - low).maximum(0)


# *** sum over r of where(r == i, f(r), 0) ***
def _selected(c: UOp, r: UOp) -> UOp | None:
    """i where the clause is r == i."""
    ne = negated(c)
    cmp = ne if ne is not None and ne.op is Ops.CMPNE else c if c.op is Ops.CMPEQ else None
    if cmp is None:
        return None
    split = _isolate(cmp.src[0], cmp.src[1], r)
    if split is None or split[0] not in (1, -1):
        return None
    k, rest, const = split
    return from_linear({_weak(t): -q * k for t, q in rest.items()}, -const * k)


def sum_of_selected(u: UOp, x: UOp) -> UOp | None:
    """sum over r < n of where(r == i, f(r), 0) -> where(0 <= i & i < n, f(i), 0): a gather; floats add 0.0 to clear
    -0.0"""
    if u.arg[0] is not Ops.ADD or (choice := _split_choice(x)) is None:
        return None
    cond, value = choice
    for r in u.src[1:]:
        if r.op is not Ops.RANGE or r.dtype is not dtypes.weakint or _independent(cond, r):
            continue
        conds = clauses(cond)
        for i, c in enumerate(conds):
            if (at := _selected(c, r)) is None or any(r in s.ranges for s in u.src[1:] if s is not r):
                continue
            return _without(u, r, _gather(value, conds[:i] + conds[i + 1:], r, at))
    return None


def _gather(value: UOp, others: list[UOp], r: UOp, at: UOp) -> UOp:
    inside = [UOp(Ops.CMPLT, (UOp.const(-1), at)), UOp(Ops.CMPLT, (at, _weak(r.src[0])))]
    # an index that may lie outside of the range must not be read there, neither by the value nor by the other clauses
    in_range = UOp(Ops.WHERE, (conjunction(inside), at, UOp.invalid()))
    gate = conjunction([*inside, *[_gated_substitute(c, r, at, in_range) for c in others]])
    picked = _gated_substitute(value, r, at, UOp(Ops.WHERE, (gate, at, UOp.invalid())))
    if value.dtype.is_float:
        picked = UOp(Ops.ADD, (picked, picked.const_like(0.0)))
    return UOp(Ops.WHERE, (gate, picked, picked.const_like(0)))


def _gated_substitute(value: UOp, r: UOp, at: UOp, safe: UOp) -> UOp:
    """``value`` at r = at, with every memory index that depends on r gated."""
    def gated(u: UOp, new: Callable[[UOp], UOp]) -> UOp | None:
        if u.op is not Ops.INDEX or not any(r in s.ranges for s in u.src[1:]):
            return None
        return UOp(Ops.INDEX, (new(u.src[0]), *[put(s, r, safe) for s in u.src[1:]]), u.arg, u.tag)
    return put(value, r, at, gated)


# *** factors ***
def hoist_factor(u: UOp, x: UOp) -> UOp | None:
    """integers: sum over r of x * c -> (sum over r of x) * c, for c without r"""
    if u.arg[0] is not Ops.ADD or not u.dtype.is_int or any(s.dtype is not u.dtype for s in x.src):
        return None
    for i in (1, 0):
        c = x.src[i]
        if all(_independent(c, r) for r in u.src[1:] if r.op is Ops.RANGE):
            return UOp(Ops.MUL, (UOp(Ops.REDUCE, (x.src[1 - i], *u.src[1:]), u.arg, u.tag), c))
    return None


def split_sum(u: UOp, x: UOp) -> UOp | None:
    """integers: sum over r of (x + y) -> sum of x + sum of y, where one of them has a closed form"""
    if u.arg[0] is not Ops.ADD or not u.dtype.is_int or any(s.dtype is not u.dtype for s in x.src):
        return None
    if not any(all(_independent(s, r) for r in u.src[1:] if r.op is Ops.RANGE) for s in x.src):
        return None
    return UOp(Ops.ADD, tuple(UOp(Ops.REDUCE, (s, *u.src[1:]), u.arg, u.tag) for s in x.src))


_R = UPat(Ops.REDUCE, src=(UPat(name="x"), UPat()), allow_any_len=True, name="u")
_R_CHOICE = UPat(Ops.REDUCE, src=(UPat((Ops.WHERE, Ops.CAST), name="x"), UPat()), allow_any_len=True, name="u")

pm_reduce_collapse = PatternMatcher([
    (_R, reduce_of_invariant),
    (_R_CHOICE, sum_of_condition),
    (_R_CHOICE, sum_of_selected),
    (UPat(Ops.REDUCE, src=(UPat(Ops.MUL, name="x"), UPat()), allow_any_len=True, name="u"), hoist_factor),
    (UPat(Ops.REDUCE, src=(UPat(Ops.ADD, name="x"), UPat()), allow_any_len=True, name="u"), split_sum),
])
