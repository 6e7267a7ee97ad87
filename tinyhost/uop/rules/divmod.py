"""Floor division and remainder of index expressions.

Takes weakint FLOORDIV and FLOORMOD (exact integers: nothing wraps) and gives forms with fewer or cheaper divisions. A
numerator is read as a linear form, so the rules see through the order of its terms. ``c`` is a positive literal here;
a negative divisor is turned first. Strong integers wrap and get only the two rules that hold modulo 2**n.

Canonical: (x % (m*c)) // c is written (x // c) % m, and a constant inside a numerator lies in 0 .. c-1.
"""
from __future__ import annotations

from math import gcd

from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import Terms, from_linear, linear, linear_bounds, literal, scaled

_DIVMOD = (Ops.FLOORDIV, Ops.FLOORMOD)


def _const(v: int) -> UOp:
    return UOp(Ops.CONST, (), v)


def _div(x: UOp, c: int) -> UOp:
    return x if c == 1 else UOp(Ops.FLOORDIV, (x, _const(c)))


def _mod(x: UOp, c: int) -> UOp:
    return UOp(Ops.FLOORMOD, (x, _const(c)))


def _add(terms: Terms, x: UOp) -> int:
    """terms += x, taken apart if it is a sum or a product with a literal; gives its constant."""
    parts, const = linear(x)
    for t, q in parts.items():
        terms[t] = terms.get(t, 0) + q
    return const


def _multiple_of(atom: UOp) -> int:
    """A number that divides every value of ``atom``."""
    return (atom.arg.multiple_of or 1) if atom.op in GroupOp.Defines else 1


# *** x // c and x % c: one numerator, read as sum(k * t) + const ***
def _one_period(terms: Terms, const: int, c: int) -> int | None:
    """n where n*c <= sum < (n+1)*c for certain, else None."""
    lo, hi = linear_bounds(terms, const)
    return lo // c if lo // c == hi // c else None


def _centred(terms: Terms, c: int) -> Terms:
    """Coefficients modulo c, nearest to zero."""
    return {t: (k + c // 2) % c - c // 2 for t, k in terms.items()}


def _small_rest(terms: Terms, const: int, c: int) -> tuple[int, Terms, Terms, int, int] | None:
    """(g, main / g, rest, const part of rest, n) with sum = g*(main/g + const//g) + rest, g | c, n*g <= rest <
    (n+1)*g."""
    for g in sorted({gcd(k, c) for k in terms.values()} - {1, c}, reverse=True):
        main = {t: k // g for t, k in terms.items() if k % g == 0}
        rest = {t: k for t, k in terms.items() if k % g}
        if rest and main and (n := _one_period(rest, const % g, g)) is not None:
            return g, main, rest, const % g, n
    return None


def div_by_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """(c*a + b) // c -> a + b // c; (g*a + k) // (g*m) -> (a + k//g) // m; (g*a + r) // (g*m) -> a // m where 0 <= r <
    g"""
    d = c.arg
    if u.dtype is not dtypes.weakint or type(d) is not int or d <= 1:
        return None
    terms, const = linear(x)
    out: Terms = {}
    rest: Terms = {}
    for t, k in terms.items():
        if k % d == 0:
            out[t] = k // d
        else:
            rest[t] = k
    out_const, const = divmod(const, d)
    changed = bool(out) or out_const != 0
    quotient = _quotient(rest, const, d)
    if quotient is None:
        if not changed:
            return None
        quotient = _div(from_linear(rest, const), d), 0
    inner, n = quotient
    if inner is not None:
        n += _add(out, inner)
    return from_linear(out, out_const + n)


def _quotient(rest: Terms, const: int, d: int) -> tuple[UOp | None, int] | None:
    """(node or nothing, literal) whose sum is (rest + const) // d, None when no rule shortens it; 0 <= const < d."""
    if not rest:
        return None, 0
    if (n := _one_period(rest, const, d)) is not None:
        return None, n
    if (g := gcd(d, *rest.values())) > 1:
        return _div(from_linear({t: k // g for t, k in rest.items()}, const // g), d // g), 0
    centred = _centred(rest, d)
    if centred != rest and (n := _one_period(centred, const, d)) is not None:
        return from_linear({t: (rest[t] - k) // d for t, k in centred.items()}, 0), n
    if (split := _small_rest(rest, const, d)) is not None:
        g, main, _, _, n = split
        return _div(from_linear(main, const // g + n), d // g), 0
    if len(rest) == 1 and (one := _quotient_of_one(*next(iter(rest.items())), const, d)) is not None:
        return one
    for t, k in rest.items():
        if (k * _multiple_of(t)) % d == 0 and (const or len(rest) > 1):
            others = {o: q for o, q in rest.items() if o is not t}
            return from_linear({_div(scaled(t, k), d): 1, _div(from_linear(others, const), d): 1}, 0), 0
    return None


def _quotient_of_one(t: UOp, k: int, const: int, d: int) -> tuple[UOp, int] | None:
    """(x//a + const) // d -> (x + const*a) // (a*d); (x % (m*d)) // d -> (x // d) % m"""
    if k != 1 or t.op not in _DIVMOD or t.src[1].op is not Ops.CONST:
        return None
    a = t.src[1].arg
    if t.op is Ops.FLOORDIV and a > 0:
        return _div(from_linear(*_shifted(t.src[0], const * a)), a * d), 0
    if t.op is Ops.FLOORMOD and const == 0 and a > 0 and a % d == 0:
        return _mod(_div(t.src[0], d), a // d), 0
    return None


def _shifted(x: UOp, by: int) -> tuple[Terms, int]:
    terms, const = linear(x)
    return terms, const + by


def mod_by_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """(k*t) % c -> (k%c * t) % c; (x % (m*c)) % c -> x % c; (g*a + k) % (g*m) -> g * ((a + k//g) % m) + k%g;
    (g*a + r) % (g*m) -> g * (a % m) + r where 0 <= r < g; x % c -> x - n*c where n*c <= x < (n+1)*c"""
    d = c.arg
    if u.dtype is not dtypes.weakint or type(d) is not int or d <= 1:
        return None
    given, given_const = linear(x)
    terms, const = _reduced(given, given_const, d)
    if not terms:
        return _const(const)
    if (n := _one_period(terms, const, d)) is not None:
        return from_linear(terms, const - n * d)
    if (g := gcd(d, *terms.values())) > 1:
        inner = _mod(from_linear({t: k // g for t, k in terms.items()}, const // g), d // g)
        return from_linear({inner: g}, const % g)
    centred = _centred(terms, d)
    if centred != terms and (n := _one_period(centred, const, d)) is not None:
        return from_linear(centred, const - n * d)
    if (split := _small_rest(terms, const, d)) is not None:
        g, main, rest, rest_const, n = split
        inner = _mod(from_linear(main, const // g + n), d // g)
        rest = dict(rest)
        rest[inner] = rest.get(inner, 0) + g
        return from_linear(rest, rest_const - n * g)
    if terms == given and const == given_const:
        return None
    return _mod(from_linear(terms, const), d)


def _reduced(terms: Terms, const: int, d: int) -> tuple[Terms, int]:
    """Coefficients and constant modulo d; a term whose own modulus is a multiple of d loses it."""
    work, out = list(terms.items()), {}  # type: ignore[var-annotated]
    while work:
        t, k = work.pop(0)
        if (k * _multiple_of(t)) % d == 0:
            continue
        if t.op is Ops.FLOORMOD and t.src[1].op is Ops.CONST and t.src[1].arg > 0 and (k * t.src[1].arg) % d == 0:
            inner, inner_const = linear(t.src[0])
            work += [(s, k * q) for s, q in inner.items()]
            const += k * inner_const
            continue
        out[t] = out.get(t, 0) + k
    return {t: k % d for t, k in out.items() if k % d}, const % d


def negative_divisor(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x // -c -> (-x) // c; x % -c -> -((-x) % c)"""
    d = c.arg
    if u.dtype is not dtypes.weakint or type(d) is not int or d >= 0:
        return None
    terms, const = linear(x)
    minus = from_linear({t: -k for t, k in terms.items()}, -const)
    return _div(minus, -d) if u.op is Ops.FLOORDIV else UOp(Ops.MUL, (_mod(minus, -d), _const(-1)))


# *** symbolic divisors ***
def _without_factor(t: UOp, d: UOp) -> UOp | None:
    """t / d where t is a product that contains d."""
    if t is d:
        return _const(1)
    if t.op is not Ops.MUL:
        return None
    factors = list(t.split_uop(Ops.MUL))
    if d not in factors:
        return None
    factors.remove(d)
    out = factors[0]
    for f in factors[1:]:
        out = UOp(Ops.MUL, (out, f))
    return out


def _is_below(terms: Terms, const: int, d: UOp) -> bool:
    """Whether 0 <= sum < d for certain."""
    lo, hi = linear_bounds(terms, const)
    if lo < 0:
        return False
    if hi < d.vmin:
        return True
    if const == 0 and len(terms) == 1:
        t, k = next(iter(terms.items()))
        return k == 1 and ((t.op is Ops.RANGE and t.src[0] is d) or (t.op is Ops.FLOORMOD and t.src[1] is d))
    return False


def symbolic_divisor(u: UOp, x: UOp, d: UOp) -> UOp | None:
    """(d*a + r) // d -> a + r // d; (d*a + r) % d -> r % d; r // d -> 0 and r % d -> r where 0 <= r < d; d > 0"""
    if d.op is Ops.CONST or u.dtype is not dtypes.weakint or d.vmin <= 0:
        return None
    terms, const = linear(x)
    out: Terms = {}
    out_const = 0
    rest: Terms = {}
    for t, k in terms.items():
        q = _without_factor(t, d)
        if q is None:
            rest[t] = k
        elif q.op is Ops.CONST:
            out_const += k * q.arg
        else:
            out[q] = out.get(q, 0) + k
    found = len(rest) < len(terms)
    if _is_below(rest, const, d):
        return from_linear(out, out_const) if u.op is Ops.FLOORDIV else from_linear(rest, const)
    if not found:
        return None
    inner = UOp(u.op, (from_linear(rest, const), d))
    if u.op is Ops.FLOORMOD:
        return inner
    out[inner] = out.get(inner, 0) + 1
    return from_linear(out, out_const)


# *** strong integers ***
def nested_div(u: UOp, inner: UOp, c: UOp) -> UOp | None:
    """(x // a) // b -> x // (a*b) for a, b > 0 and a*b in range; the same for C division"""
    a, b = literal(inner.src[1]), literal(c)
    if u.dtype is dtypes.weakint or inner.op is not u.op or inner.dtype is not u.dtype:
        return None
    if a is None or b is None or a <= 0 or b <= 0 or a * b > u.dtype.max:
        return None
    return UOp(u.op, (inner.src[0], UOp.const(a * b, u.dtype)))


def nested_mod(u: UOp, inner: UOp, c: UOp) -> UOp | None:
    """(x % (m*c)) % c -> x % c for m, c > 0; the same for C remainders"""
    a, b = literal(inner.src[1]), literal(c)
    if u.dtype is dtypes.weakint or inner.op is not u.op or inner.dtype is not u.dtype:
        return None
    return UOp(u.op, (inner.src[0], c)) if a and b and a > 0 and b > 0 and a <= u.dtype.max and a % b == 0 else None


# *** (x % c) + (x // c) * c -> x, inside a sum ***
def recombine(terms: Terms, const: int) -> int | None:
    """Join remainders and quotients of one numerator in place; the new constant, or None when nothing joined."""
    joined = False
    again = True
    while again:
        again = False
        for m in [t for t in terms if t.op is Ops.FLOORMOD and t.src[1].op is Ops.CONST]:
            if (add := _join(terms, m)) is not None:
                const += add
                joined = again = True
                break
    return const if joined else None


def _join(terms: Terms, m: UOp) -> int | None:
    """s*(x % c) + s*c*(x // c) -> s*x; s*(x % c) + s*c*((x // c) % k) -> s*(x % (c*k))"""
    s, c = terms[m], m.src[1].arg
    if c <= 0:
        return None
    for d, k in terms.items():
        if k != s * c or d.op not in _DIVMOD or d.src[1].op is not Ops.CONST:
            continue
        if d.op is Ops.FLOORDIV and d.src[1].arg == c and _congruent(d.src[0], m.src[0], c):
            del terms[d], terms[m]
            inner, inner_const = linear(d.src[0])
            for t, q in inner.items():
                terms[t] = terms.get(t, 0) + s * q
            return s * inner_const
        if d.op is Ops.FLOORMOD and (x := _quotient_source(d.src[0], m.src[0], c)) is not None:
            wide = _mod(x, c * d.src[1].arg)
            del terms[d], terms[m]
            terms[wide] = terms.get(wide, 0) + s
            return 0
    return None


def _congruent(x: UOp, y: UOp, c: int) -> bool:
    """Whether x - y is a multiple of c, term by term."""
    if x is y:
        return True
    (a, a_const), (b, b_const) = linear(x), linear(y)
    return (a_const - b_const) % c == 0 and all((a.get(t, 0) - b.get(t, 0)) % c == 0 for t in a.keys() | b.keys())


def _quotient_source(q: UOp, x: UOp, c: int) -> UOp | None:
    """The numerator of q, where q is numerator // c and the numerator agrees with x modulo c."""
    if q.op is Ops.FLOORDIV and q.src[1].op is Ops.CONST and q.src[1].arg == c and _congruent(q.src[0], x, c):
        return q.src[0]
    return None


_x, _c = UPat(name="x"), UPat(Ops.CONST, name="c")
# a leaf numerator is decided by its bounds alone
_NUMERATOR = UPat((Ops.ADD, Ops.MUL, Ops.FLOORDIV, Ops.FLOORMOD, Ops.PARAM, Ops.BUFFER), name="x")

pm_divmod = PatternMatcher([
    (UPat(Ops.FLOORDIV, src=(_NUMERATOR, _c), name="u"), div_by_literal),
    (UPat(Ops.FLOORMOD, src=(UPat(name="x"), _c), name="u"), mod_by_literal),
    (UPat(_DIVMOD, src=(_x, _c), name="u"), negative_divisor),
    (UPat(_DIVMOD, src=(_x, UPat(name="d")), name="u"), symbolic_divisor),
    *[(UPat(op, src=(UPat(op, name="inner"), UPat((Ops.CONST, Ops.CAST), name="c")), name="u"), nested_div)
      for op in (Ops.FLOORDIV, Ops.CDIV)],
    *[(UPat(op, src=(UPat(op, name="inner"), UPat((Ops.CONST, Ops.CAST), name="c")), name="u"), nested_mod)
      for op in (Ops.FLOORMOD, Ops.CMOD)],
])
