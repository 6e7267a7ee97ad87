"""Views on tensor graphs: two of a kind become one, one that changes nothing goes, one of a literal is a literal.

Takes RESHAPE, PERMUTE, EXPAND, PAD, SHRINK and FLIP (their operands spelled as ``shape.shape_of_operand`` reads them)
and gives equal views with fewer nodes. Never moves a view across arithmetic: which side of an operation a view stands
on is the scheduler's decision. Undecided symbolic dimensions leave a view alone.
"""
from __future__ import annotations

from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import is_literal

sint = Any


def _equal(a: sint, b: sint) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _same_shape(a: tuple[sint, ...], b: tuple[sint, ...]) -> bool:
    return len(a) == len(b) and all(map(_equal, a, b))


# *** nothing changes ***
def identity_view(u: UOp, x: UOp) -> UOp | None:
    """reshape(x, x.shape) -> x; permute(x, 0 1 ..) -> x; flip(x) of no axis -> x; expand(x) by no axis -> x;
    shrink(x) and pad(x) to all of x -> x"""
    op = u.op
    if op is Ops.PERMUTE:
        return x if u.arg == tuple(range(len(u.arg))) else None
    if op is Ops.FLIP:
        return x if not any(f and d != 1 for f, d in zip(u.arg, x.shape)) else None
    if op is Ops.EXPAND:
        return x if not u.marg else None
    if op is Ops.RESHAPE:
        return x if _same_shape(u.marg, x.shape) else None
    return x if all(_equal(o, 0) and _equal(n, d) for (o, n), d in zip(u.marg, x.shape)) else None


# *** two of a kind ***
def reshape_of_reshape(u: UOp, x: UOp) -> UOp:
    """reshape(reshape(x, s), t) -> reshape(x, t)"""
    return UOp(Ops.RESHAPE, (x.src[0], u.src[1]), None, u.tag)


def permute_of_permute(u: UOp, x: UOp) -> UOp:
    """permute(permute(x, p), q) -> permute(x, p[q])"""
    return UOp(Ops.PERMUTE, (x.src[0],), tuple(x.arg[i] for i in u.arg), u.tag)


def expand_of_expand(u: UOp, x: UOp) -> UOp:
    """expand(expand(x, a), b) -> expand(x, b + a)"""
    return UOp(Ops.EXPAND, (x.src[0], UOp.shape_operand((*u.marg, *x.marg))), None, u.tag)


def flip_of_flip(u: UOp, x: UOp) -> UOp:
    """flip(flip(x, a), b) -> flip(x, a ^ b)"""
    return UOp(Ops.FLIP, (x.src[0],), tuple(a is not b for a, b in zip(x.arg, u.arg)), u.tag)


def _literal_pairs(u: UOp) -> bool:
    return all(isinstance(v, int) for pair in u.marg for v in pair)


def shrink_of_shrink(u: UOp, x: UOp) -> UOp:
    """shrink(shrink(x, a), b) -> shrink(x, a + b)"""
    pairs = tuple((a + o, n) for (a, _), (o, n) in zip(x.marg, u.marg))
    return x.src[0]._mop(Ops.SHRINK, pairs)


def pad_of_pad(u: UOp, x: UOp) -> UOp:
    """pad(pad(x, a), b) -> pad(x, a + b)"""
    pairs = tuple((a + o, n) for (a, _), (o, n) in zip(x.marg, u.marg))
    return x.src[0]._mop(Ops.PAD, pairs)


def shrink_of_pad(u: UOp, x: UOp) -> UOp | None:
    """shrink(pad(x)) -> shrink(x) where the box taken lies inside of x"""
    if not (_literal_pairs(u) and _literal_pairs(x)):
        return None
    inner = x.src[0].shape
    pairs = []
    for (at, _), (o, n), d in zip(x.marg, u.marg, inner):
        if not isinstance(d, int) or o < at or o + n > at + d:
            return None
        pairs.append((o - at, n))
    return x.src[0]._mop(Ops.SHRINK, tuple(pairs))


# *** views of a literal ***
def view_of_literal(u: UOp, x: UOp) -> UOp | None:
    """reshape, permute, shrink, flip(expand(c, s)) -> expand(c, the new shape); reshape(c, s) -> expand(c, s)"""
    c = x.src[0] if x.op is Ops.EXPAND else x
    if not is_literal(c):
        return None
    return c._mop(Ops.EXPAND, u.shape)


def pad_of_bool_literal(u: UOp, x: UOp) -> UOp | None:
    """pad(False) -> False: outside of the box a bool is False"""
    c = x.src[0] if x.op is Ops.EXPAND else x
    if c.dtype is not dtypes.bool or not is_literal(c) or c.arg is not False:
        return None
    return c._mop(Ops.EXPAND, u.shape)


_x = UPat(name="x")
_VIEWS = (Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP)
_PAIR = ((Ops.RESHAPE, reshape_of_reshape), (Ops.EXPAND, expand_of_expand), (Ops.SHRINK, shrink_of_shrink),
         (Ops.PAD, pad_of_pad))

pm_movement = PatternMatcher([
    *[(UPat(op, src=(UPat(op, name="x"),), allow_any_len=True, name="u"), rule) for op, rule in _PAIR],
    (UPat(Ops.PERMUTE, src=(UPat(Ops.PERMUTE, name="x"),), name="u"), permute_of_permute),
    (UPat(Ops.FLIP, src=(UPat(Ops.FLIP, name="x"),), name="u"), flip_of_flip),
    (UPat(Ops.SHRINK, src=(UPat(Ops.PAD, name="x"),), allow_any_len=True, name="u"), shrink_of_pad),
    (UPat(_VIEWS, src=(_x,), allow_any_len=True, name="u"), identity_view),
    (UPat((Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP),
          src=(UPat((Ops.EXPAND, Ops.CONST, Ops.CAST), name="x"),), allow_any_len=True, name="u"), view_of_literal),
    (UPat(Ops.PAD, src=(UPat((Ops.EXPAND, Ops.CONST), name="x"),), allow_any_len=True, name="u"), pad_of_bool_literal),
])
