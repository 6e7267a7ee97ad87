"""Index arithmetic on linear forms: sums of integer multiples of atoms, with exact division and remainder.

Takes index expressions (weakint nodes) and gives index expressions in one canonical spelling: atoms by rank,
multiples as ``atom * c``, the constant last. An atom is a RANGE or anything that is no sum or multiple; its bounds
decide whether a quotient or remainder vanishes. Works for the index math that movement ops produce, where it is an
order of magnitude cheaper than general rewriting; what it cannot decide stays a FLOORDIV or FLOORMOD for the
symbolic rules.
"""
from __future__ import annotations

from math import gcd
from typing import Any, TypeAlias

from tinyhost.uop import Ops, UOp

Terms: TypeAlias = dict[UOp, int]
Form: TypeAlias = tuple[int, Terms]  # constant, multiple of each atom; multiples are never 0


def _rank(atom: UOp) -> tuple[Any, ...]:
    """Order of atoms in a sum: ranges by id, then everything else by content."""
    return (0, atom.arg[:-1]) if atom.op is Ops.RANGE else (1, atom.tuplize)


def _term_rank(term: tuple[UOp, int]) -> tuple[Any, ...]:
    return _rank(term[0])


def _add_into(into: Terms, terms: Terms, factor: int = 1) -> None:
    for atom, c in terms.items():
        total = into.get(atom, 0) + c * factor
        if total:
            into[atom] = total
        else:
            into.pop(atom, None)


class LinearForms:
    """Memo of parsed and built expressions; one object serves one scheduling call."""

    def __init__(self) -> None:
        self.forms: dict[UOp, Form] = {}
        self.bounds: dict[UOp, tuple[int, int]] = {}
        self.consts: dict[int, UOp] = {}

    def const(self, value: int) -> UOp:
        """The literal ``value``."""
        node = self.consts.get(value)
        if node is None:
            node = self.consts[value] = UOp(Ops.CONST, (), value)
        return node

    # *** reading and writing ***
    def parse(self, u: UOp) -> Form:
        """The linear form of an expression; treat the result as read-only."""
        form = self.forms.get(u)
        if form is None:
            form = self.forms[u] = self._parse(u)
        return form

    def _parse(self, u: UOp) -> Form:
        if u.op is Ops.RANGE:
            return 0, {u: 1}
        const, terms = 0, Terms()
        stack = [(u, 1)]
        while stack:
            x, factor = stack.pop()
            if x.op is Ops.CONST:
                const += x.arg * factor
            elif x.op is Ops.ADD:
                stack += ((x.src[1], factor), (x.src[0], factor))
            elif x.op is Ops.MUL and x.src[1].op is Ops.CONST:
                stack.append((x.src[0], factor * x.src[1].arg))
            else:
                _add_into(terms, {x: factor})
        return const, terms

    def build(self, form: Form) -> UOp:
        """The expression of a linear form."""
        const, terms = self._recombine(form)
        if not terms:
            return self.const(const)
        items = list(terms.items())
        if len(items) > 1:
            items.sort(key=_term_rank)
        out: UOp | None = None
        for atom, c in items:
            term = atom if c == 1 else UOp(Ops.MUL, (atom, self.const(c)))
            out = term if out is None else UOp(Ops.ADD, (out, term))
        assert out is not None
        if const:
            out = UOp(Ops.ADD, (out, self.const(const)))
        if out not in self.forms:
            self.forms[out] = (const, terms)
        return out

    def _recombine(self, form: Form) -> Form:
        """(x % d)*c + (x // d)*(c*d) -> x*c"""
        const, terms = form
        mods = [a for a in terms if a.op is Ops.FLOORMOD and a.src[1].op is Ops.CONST]
        if not mods:
            return form
        terms = dict(terms)
        changed = False
        while mods:
            mod = mods.pop()
            c, d = terms.get(mod, 0), mod.src[1].arg
            if not c:
                continue
            x = self.parse(mod.src[0])
            (q_const, q_terms), _ = self.divmod(x, d)
            if q_terms and all(terms.get(a) == k * c * d for a, k in q_terms.items()):
                del terms[mod]
                _add_into(terms, q_terms, -c * d)
                _add_into(terms, x[1], c)
                const += c * x[0] - c * d * q_const
                changed = True
                mods = [a for a in terms if a.op is Ops.FLOORMOD and a.src[1].op is Ops.CONST]
        return (const, terms) if changed else form

    def range_of(self, atom: UOp) -> tuple[int, int]:
        """Smallest and largest value of an atom."""
        b = self.bounds.get(atom)
        if b is None:
            b = self.bounds[atom] = atom.bounds
        return b

    def extent(self, form: Form) -> tuple[int, int]:
        """Smallest and largest value of a form."""
        lo = hi = form[0]
        for atom, c in form[1].items():
            a, b = self.range_of(atom)
            lo, hi = (lo + c * a, hi + c * b) if c > 0 else (lo + c * b, hi + c * a)
        return lo, hi

    def replace(self, u: UOp, new: dict[UOp, Form]) -> Form:
        """``u`` with atoms exchanged for forms, quotients and remainders worked out again."""
        if u in new:
            return new[u]
        const, terms = self.parse(u)
        total: Terms = {}
        for atom, c in terms.items():
            form = new.get(atom)
            if form is None and atom.op in (Ops.FLOORDIV, Ops.FLOORMOD) and atom.src[1].op is Ops.CONST:
                form = self.divmod(self.replace(atom.src[0], new), atom.src[1].arg)[atom.op is Ops.FLOORMOD]
            if form is None:
                _add_into(total, {atom: c})
            else:
                const += form[0] * c
                _add_into(total, form[1], c)
        return const, total

    # *** arithmetic ***
    def shift(self, u: UOp, offset: int) -> UOp:
        """``u + offset``"""
        const, terms = self.parse(u)
        return self.build((const + offset, terms))

    def mirror(self, u: UOp, last: int) -> UOp:
        """``last - u``"""
        const, terms = self.parse(u)
        return self.build((last - const, {a: -c for a, c in terms.items()}))

    def dot(self, indices: tuple[UOp, ...], strides: tuple[int, ...]) -> Form:
        """Sum of ``index * stride``."""
        const, terms = 0, Terms()
        for u, stride in zip(indices, strides):
            c, t = self.parse(u)
            const += c * stride
            if t:
                _add_into(terms, t, stride)
        return const, terms

    def divmod(self, form: Form, d: int) -> tuple[Form, Form]:
        """Quotient and remainder (Python semantics) by a positive constant."""
        if d == 1:
            return form, (0, {})
        whole, rest = self._one_period(form, d, False)
        if rest is not None:
            return whole, rest
        balanced, rest = self._one_period(form, d, True)
        if rest is not None:
            return balanced, rest
        left: Form = (form[0] - d * whole[0], {})
        _add_into(left[1], form[1])
        _add_into(left[1], whole[1], -d)
        inner_q, inner_r = self._undecided(left, d)
        total = dict(whole[1])
        _add_into(total, inner_q[1])
        return (whole[0] + inner_q[0], total), inner_r

    def _one_period(self, form: Form, d: int, balanced: bool) -> tuple[Form, Form | None]:
        """Move multiples of ``d`` to the quotient; the remainder is known when the rest stays inside one period."""
        q_const, lo = divmod(form[0], d)
        r_const = hi = lo
        q_terms: Terms = {}
        r_terms: Terms = {}
        for atom, c in form[1].items():
            q, r = divmod(c, d)
            if balanced and 2 * r > d:
                q, r = q + 1, r - d
            if q:
                q_terms[atom] = q
            if r:
                r_terms[atom] = r
                a, b = self.range_of(atom)
                lo, hi = (lo + r * a, hi + r * b) if r > 0 else (lo + r * b, hi + r * a)
        period = lo // d
        if hi // d == period:
            return (q_const + period, q_terms), (r_const - period * d, r_terms)
        return (q_const, q_terms), None

    def _undecided(self, form: Form, d: int) -> tuple[Form, Form]:
        """Quotient and remainder of a form that spans several periods and has no multiple of ``d`` left in it."""
        const, terms = form
        for g in sorted({gcd(c, d) for c in terms.values()}, reverse=True):
            if g == 1:
                break
            fine = (const % g, {a: c for a, c in terms.items() if c % g})
            lo, hi = self.extent(fine)
            if 0 <= lo and hi < g:
                # (g*x + y) // (g*d) -> x // d and (g*x + y) % (g*d) -> g*(x % d) + y with 0 <= y < g
                coarse = (const // g, {a: c // g for a, c in terms.items() if not c % g})
                q, r = self.divmod(coarse, d // g)
                scaled = dict(fine[1])
                _add_into(scaled, r[1], g)
                return q, (r[0] * g + fine[0], scaled)
        if const == 0 and len(terms) == 1:
            ((atom, c),) = terms.items()
            if c == 1 and (nested := self._nested(atom, d)) is not None:
                return nested
        x, by = self.build(form), self.const(d)
        return (0, {UOp(Ops.FLOORDIV, (x, by)): 1}), (0, {UOp(Ops.FLOORMOD, (x, by)): 1})

    def _nested(self, atom: UOp, d: int) -> tuple[Form, Form] | None:
        """Quotient and remainder of a quotient or a remainder."""
        if atom.op not in (Ops.FLOORDIV, Ops.FLOORMOD) or atom.src[1].op is not Ops.CONST:
            return None
        e, inner = atom.src[1].arg, self.parse(atom.src[0])
        if atom.op is Ops.FLOORDIV and e > 0:
            # (x // e) // d -> x // (e*d)
            return self.divmod(inner, e * d)[0], (0, {UOp(Ops.FLOORMOD, (atom, self.const(d))): 1})
        if atom.op is Ops.FLOORMOD and e > 0 and e % d == 0:
            # (x % e) // d -> (x // d) % (e // d) and (x % e) % d -> x % d where d divides e
            q, r = self.divmod(inner, d)
            return self.divmod(q, e // d)[1], r
        return None
