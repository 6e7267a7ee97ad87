"""What every file of rules uses: reading literals, building replacements of the same type, sums as linear forms.

Takes nodes, gives nodes and Python numbers; holds no rules. A replacement of a node must have its dtype and its shape:
``keep`` sees to that.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinyhost.dtype import ConstFloat, Invalid, dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.semantics import cast as cast_value

LITERAL_OPS = (Ops.CONST, Ops.CAST)
NATIVE = "native"
"""Tag of a CDIV, CMOD or CAST that is the machine's own instruction: its operands are in the domain."""


def literal(u: UOp) -> Any:
    """The value of a literal (wrapped or rounded to its dtype), None for any other node and for Invalid."""
    if u.op is Ops.CONST:
        v = u.arg
        # ConstFloat compares by bits; rules want numbers
        return None if v is Invalid else float(v) if v.__class__ is ConstFloat else v
    if u.op is Ops.CAST and (c := u.src[0]).op is Ops.CONST and c.arg is not Invalid:
        return cast_value(c.arg, c.dtype, u.arg)
    return None


def is_literal(u: UOp) -> bool:
    """Whether ``u`` is a literal other than Invalid."""
    return (u.op is Ops.CONST and u.arg is not Invalid) or (
        u.op is Ops.CAST and u.src[0].op is Ops.CONST and u.src[0].arg is not Invalid)


def is_invalid(u: UOp) -> bool:
    """Whether ``u`` is the literal Invalid."""
    return u.op is Ops.CONST and u.arg is Invalid


def is_gated(u: UOp) -> bool:
    """Whether ``u`` is WHERE(cond, x, Invalid)."""
    return u.op is Ops.WHERE and (y := u.src[2]).op is Ops.CONST and y.arg is Invalid


def keep(u: UOp, r: UOp) -> UOp:
    """``r`` with the dtype and the shape of ``u``, which it replaces."""
    if r.dtype is not u.dtype and not is_invalid(r):
        r = r.cast(u.dtype)
    shape = u._shape
    return r if not shape or r._shape == shape else r.expand(shape)


def const_for(u: UOp, value: Any) -> UOp:
    """The literal that replaces ``u``."""
    return UOp(Ops.CONST, (), value) if value is Invalid else u.const_like(value)


def logical_not(c: UOp) -> UOp:
    """NOT of a bool node, without stacking two of them."""
    if c.op is Ops.CMPNE and c.src[1].op is Ops.CONST and c.src[1].arg is True:
        return c.src[0]
    return UOp(Ops.CMPNE, (c, UOp(Ops.CONST, (), True)))


def negated(c: UOp) -> UOp | None:
    """x where ``c`` is NOT x."""
    if c.op is Ops.CMPNE and c.src[1].op is Ops.CONST and c.src[1].arg is True and c.src[0].dtype is dtypes.bool:
        return c.src[0]
    return None


def clauses(cond: UOp) -> list[UOp]:
    """The conditions that a nested AND joins, left to right, each once."""
    if cond.op is not Ops.AND:
        return [cond]
    return list(dict.fromkeys(cond.split_uop(Ops.AND)))


def conjunction(conds: Iterable[UOp]) -> UOp:
    """AND of conditions; True when there are none."""
    out: UOp | None = None
    for c in conds:
        out = c if out is None else UOp(Ops.AND, (out, c))
    return UOp(Ops.CONST, (), True) if out is None else out


# *** sums of weakint terms ***
Terms = dict[UOp, int]


def linear(u: UOp) -> tuple[Terms, int]:
    """``u`` as (atom -> coefficient, constant): sums and products with a literal are taken apart."""
    terms: Terms = {}
    const = 0
    stack = [(u, 1)]
    while stack:
        x, k = stack.pop()
        op = x.op
        if op is Ops.ADD:
            a, b = x.src
            stack.append((b, k))
            stack.append((a, k))
        elif op is Ops.MUL and x.src[1].op is Ops.CONST and type(x.src[1].arg) is int:
            stack.append((x.src[0], k * x.src[1].arg))
        elif op is Ops.CONST and x.arg is not Invalid:
            const += k * x.arg
        else:
            terms[x] = terms.get(x, 0) + k
    return terms, const


def rank(u: UOp) -> tuple[Any, ...]:
    """Order of terms in a sum and of factors in a product: cheap parts first, the hash of the graph on ties."""
    op = u.op
    if op is Ops.RANGE:
        return 0, u.arg[:-1]
    if op is Ops.PARAM or op is Ops.BUFFER:
        return 1, (u.arg.slot, u.arg.name or "")
    return 2, (op._value_,)


def before(a: UOp, b: UOp) -> bool:
    """Whether ``a`` stands left of ``b`` in a sum or product."""
    ra, rb = rank(a), rank(b)
    return ra < rb if ra != rb else a.key < b.key


def in_order(nodes: Iterable[UOp]) -> list[UOp]:
    """The nodes sorted by ``rank``."""
    items = list(nodes)
    if len(items) < 2:
        return items
    ranks = {u: rank(u) for u in items}
    if len(set(ranks.values())) == len(items):
        return sorted(items, key=ranks.__getitem__)
    return sorted(items, key=lambda u: (ranks[u], u.key))


def scaled(atom: UOp, k: int) -> UOp:
    """atom * k."""
    return atom if k == 1 else UOp(Ops.MUL, (atom, UOp(Ops.CONST, (), k)))


def from_linear(terms: Terms, const: int) -> UOp:
    """The canonical sum: terms in order, the constant last; a zero is left out."""
    out: UOp | None = None
    for atom in in_order(terms):
        if k := terms[atom]:
            t = atom if k == 1 else UOp(Ops.MUL, (atom, UOp(Ops.CONST, (), k)))
            out = t if out is None else UOp(Ops.ADD, (out, t))
    if out is None:
        return UOp(Ops.CONST, (), const)
    return out if const == 0 else UOp(Ops.ADD, (out, UOp(Ops.CONST, (), const)))


def linear_bounds(terms: Terms, const: int) -> tuple[int, int]:
    """Interval of a linear form; exact when the terms are independent."""
    lo = hi = const
    for atom, k in terms.items():
        a, b = atom.bounds
        if k >= 0:
            lo, hi = lo + a * k, hi + b * k
        else:
            lo, hi = lo + b * k, hi + a * k
    return lo, hi
