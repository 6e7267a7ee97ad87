"""Invalid, the value of nowhere: it poisons what it touches, and a gate WHERE(cond, x, Invalid) floats outward.

Takes index expressions and data; gives the same with at most one gate, outermost, where a LOAD or STORE can use it.
A gated value may be anything where its condition is false, so a selection that never takes it drops the gate.
These rules stand before the folding rules: ``0 * gate`` must become a gate over 0, not 0.
"""
from __future__ import annotations

from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import clauses, conjunction, is_gated, is_invalid, logical_not, negated

_OPERATORS = GroupOp.Unary | GroupOp.Binary | {Ops.MULACC, Ops.CAST, Ops.BITCAST}


def poison(u: UOp) -> UOp | None:
    """op(x, Invalid) -> Invalid"""
    for s in u.src:
        if is_invalid(s):
            return s
    return None


def float_gate(u: UOp) -> UOp | None:
    """op(where(c, x, Invalid), y) -> where(c, op(x, y), Invalid)"""
    conds: list[UOp] = []
    src = []
    for s in u.src:
        if is_gated(s):
            conds += clauses(s.src[0])
            src.append(s.src[1])
        else:
            src.append(s)
    if not conds:
        return None
    gate = conjunction(dict.fromkeys(conds))
    return UOp(Ops.WHERE, (gate, UOp(u.op, tuple(src), u.arg, u.tag), UOp.invalid()))


def gate_to_right(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(c, Invalid, y) -> where(NOT c, y, Invalid)"""
    if not is_invalid(x):
        return None
    return x if is_invalid(y) else UOp(Ops.WHERE, (logical_not(c), y, x))


def gate_of_condition(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(where(g, b, Invalid), x, y) -> where(g, where(b, x, y), Invalid); where(Invalid, x, y) -> Invalid"""
    if is_invalid(c):
        return c
    if not is_gated(c):
        return None
    return UOp(Ops.WHERE, (c.src[0], UOp(Ops.WHERE, (c.src[1], x, y)), UOp.invalid()))


def gate_never_taken(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(c & d, where(c, x, Invalid), y) -> where(c & d, x, y); where(c, x, where(NOT c, y, Invalid)) -> where(c,
    x, y)"""
    if is_gated(x) and not is_invalid(y) and set(clauses(x.src[0])) <= set(clauses(c)):
        return UOp(Ops.WHERE, (c, x.src[1], y))
    if is_gated(y) and (negated(y.src[0]) is c or negated(c) is y.src[0]):
        return UOp(Ops.WHERE, (c, x, y.src[1]))
    return None


def merge_gates(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(a, where(b, x, Invalid), Invalid) -> where(a & b, x, Invalid), each condition once"""
    if not is_invalid(y) or not is_gated(x):
        return None
    return UOp(Ops.WHERE, (conjunction(dict.fromkeys(clauses(c) + clauses(x.src[0]))), x.src[1], y))


def load_of_nowhere(u: UOp, place: UOp) -> UOp | None:
    """load(x[Invalid]) -> 0; load(x[Invalid], alt, gate) -> alt"""
    if not any(is_invalid(i) for i in place.src[1:]):
        return None
    return u.src[1] if len(u.src) > 1 else u.const_like(0)


def store_to_nowhere(u: UOp, place: UOp) -> UOp | None:
    """store(x[Invalid], v) -> nothing; store(x[i], Invalid) -> nothing"""
    if any(is_invalid(i) for i in place.src[1:]) or is_invalid(u.src[1]):
        return UOp(Ops.NOOP)
    return None


def store_of_gated(u: UOp, place: UOp, v: UOp) -> UOp | None:
    """store(x[i], where(c, v, Invalid)) -> store(x[where(c, i, Invalid)], v)"""
    if not is_gated(v) or len(place.src) != 2 or len(u.src) != 2 or place.src[1]._shape:
        return None
    index = UOp(Ops.WHERE, (v.src[0], place.src[1], UOp.invalid()))
    return UOp(Ops.STORE, (UOp(Ops.INDEX, (place.src[0], index), place.arg, place.tag), v.src[1]), u.arg, u.tag)


def store_of_itself(u: UOp, place: UOp) -> UOp | None:
    """store(x[i], x[i]) -> nothing"""
    v = u.src[1]
    return UOp(Ops.NOOP) if v is place or (v.op is Ops.LOAD and v.src == (place,)) else None


_c, _x, _y = UPat(name="c"), UPat(name="x"), UPat(name="y")

pm_invalid = PatternMatcher([
    (UPat(_OPERATORS - {Ops.CAST}, name="u", early_reject={Ops.CONST}), poison),
    (UPat(_OPERATORS, name="u", early_reject={Ops.WHERE}), float_gate),
    (UPat(Ops.WHERE, src=(_c, UPat(Ops.CONST, name="x"), _y), name="u"), gate_to_right),
    (UPat(Ops.WHERE, src=(UPat((Ops.WHERE, Ops.CONST), name="c"), _x, _y), name="u"), gate_of_condition),
    (UPat(Ops.WHERE, src=(_c, UPat(Ops.WHERE, name="x"), _y), name="u"), merge_gates),
    (UPat(Ops.WHERE, src=(_c, UPat(Ops.WHERE, name="x"), _y), name="u"), gate_never_taken),
    (UPat(Ops.WHERE, src=(_c, _x, UPat(Ops.WHERE, name="y")), name="u"), gate_never_taken),
])

pm_memory_of_nowhere = PatternMatcher([
    (UPat(Ops.LOAD, src=(UPat(Ops.INDEX, name="place"),), allow_any_len=True, name="u"), load_of_nowhere),
    (UPat(Ops.STORE, src=(UPat(Ops.INDEX, name="place"), UPat()), allow_any_len=True, name="u"), store_to_nowhere),
    (UPat(Ops.STORE, src=(UPat(Ops.INDEX, name="place"), UPat(Ops.WHERE, name="v")), allow_any_len=True, name="u"),
     store_of_gated),
    (UPat(Ops.STORE, src=(UPat(Ops.INDEX, name="place"), UPat((Ops.INDEX, Ops.LOAD))), allow_any_len=True, name="u"),
     store_of_itself),
])
