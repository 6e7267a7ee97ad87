"""Rules that need one node and its literals: folding, neutral and absorbing elements, casts, selection, bool logic.

Takes nodes of any dtype, on tensors, kernels and programs alike. Integers wrap, so every integer rule holds modulo
2**n. No float rule changes a value: NaN, infinities and the sign of zero come out as they would have been computed.
Does not order operands or combine terms (``linear.py``).
"""
from __future__ import annotations

from typing import Any

from tinyhost.dtype import can_lossless_cast, dtypes, least_upper_dtype
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import semantics
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import (
    LITERAL_OPS,
    const_for,
    is_gated,
    is_invalid,
    is_literal,
    keep,
    literal,
    logical_not,
    negated,
)
from tinyhost.uop.rules.exponential import FOLD_EXPONENTIAL, natural_exponent

_LIT = UPat(LITERAL_OPS)
_FOLDABLE = GroupOp.ALU - {Ops.THREEFRY, Ops.WHERE}
_BOUNDED = (GroupOp.ALU - {Ops.THREEFRY, Ops.POW, Ops.RECIPROCAL, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT}) | {Ops.CAST}


# *** literals ***
def fold_literals(u: UOp) -> UOp | None:
    """op(c0, c1 ..) -> c"""
    if u.op is Ops.MUL and natural_exponent(u) is not None:
        return None  # rounded before EXP2, the product would cost digits
    values = []
    for s in u.src:
        if is_invalid(s):
            return s
        if (v := literal(s)) is None:
            return None
        values.append(v)
    dtype = u.dtype
    if u.op in GroupOp.Comparison:
        dtype = _compared_dtype(u)
    elif u.op in semantics.FLOAT_UNARY:
        dtype = u.src[0].dtype
    return const_for(u, semantics.evaluate(u.op, dtype, tuple(values)))


def _compared_dtype(u: UOp) -> Any:
    a, b = u.src[0].dtype, u.src[1].dtype
    if a is b:
        return a
    joint = least_upper_dtype(a, b)
    # literals that are weak keep their exact value: uint8 255 < 300
    return dtypes.weakint if joint.is_int and (a.is_weak or b.is_weak) else joint


def fold_bounds(u: UOp) -> UOp | None:
    """x -> c, where c is the only value x can have"""
    if u.dtype.is_float:
        return None
    lo, hi = u.bounds
    if lo != hi or (u.op is Ops.CAST and u.src[0].op is Ops.CONST) or is_gated(u):
        return None
    return const_for(u, bool(lo) if u.dtype is dtypes.bool else int(lo))


def literal_right(u: UOp) -> UOp | None:
    """c + x -> x + c"""
    a, b = u.src
    if not is_literal(a) or is_literal(b):
        return None
    if u.op is Ops.MAX and u.dtype.is_float:
        return None  # MAX gives its first operand on equal zeros
    return UOp(u.op, (b, a), None, u.tag)


# *** neutral and absorbing literals: x op c ***
def add_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x + 0 -> x; on floats only x + -0.0 -> x"""
    v = literal(c)
    if v is None or v != 0:
        return None
    if u.dtype.is_float and not (isinstance(v, float) and str(v) == "-0.0"):
        return None
    return keep(u, x)


def sub_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x - 0 -> x; on floats only x - +0.0 -> x"""
    v = literal(c)
    if v is None or v != 0 or u.dtype is dtypes.bool or (u.dtype.is_float and str(v) == "-0.0"):
        return None
    return keep(u, x)


def mul_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x * 1 -> x; integers x * 0 -> 0"""
    v = literal(c)
    if v == 1:
        return keep(u, x)
    return const_for(u, 0) if v == 0 and not u.dtype.is_float else None


def and_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x & 0 -> 0; x & -1 -> x; x & m -> x where m covers the bits of x"""
    v = literal(c)
    if v is None or u.dtype.is_float:
        return None
    if v == 0:
        return const_for(u, False if u.dtype is dtypes.bool else 0)
    if v is True or v == -1:
        return keep(u, x)
    return keep(u, x) if v & (v + 1) == 0 and 0 <= x.vmin and x.vmax <= v else None


def or_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x | 0 -> x; x | -1 -> -1"""
    v = literal(c)
    if v is None or u.dtype.is_float:
        return None
    if v == 0:
        return keep(u, x)
    return const_for(u, v) if v is True or v == -1 else None


def xor_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x ^ 0 -> x; (x ^ c0) ^ c1 -> x ^ (c0 ^ c1); bool x ^ True -> NOT x"""
    v = literal(c)
    if v is None or u.dtype.is_float:
        return None
    if v == 0:
        return keep(u, x)
    return logical_not(x) if u.dtype is dtypes.bool and v is True else None


def shift_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x << 0 -> x; 0 <= x >> n -> 0 by bounds"""
    return keep(u, x) if literal(c) == 0 else None


def shift_of_zero(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """0 << x -> 0"""
    return const_for(u, 0) if literal(c) == 0 else None


def div_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x // 1 -> x; x // 0 -> 0; x // -1 -> -x"""
    v = literal(c)
    if v == 1:
        return keep(u, x)
    if v == 0:
        return const_for(u, 0)
    if v != -1 or x.dtype is not u.dtype or u.dtype.is_unsigned:  # a weak -1 is the largest number of an unsigned type
        return None
    return keep(u, UOp(Ops.MUL, (x, UOp.const(-1, x.dtype))))


def mod_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x % 1 -> 0; x % -1 -> 0; x % 0 -> 0"""
    v = literal(c)
    return const_for(u, 0) if v in (0, 1) or (v == -1 and not u.dtype.is_unsigned) else None


def fdiv_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x / 1.0 -> x"""
    return keep(u, x) if literal(c) == 1 else None


def pow_literal(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x ** 0 -> 1; x ** 1 -> x; x ** 2 -> x * x; floats x ** -1 -> 1 / x"""
    v = literal(c)
    if v == 0:
        return const_for(u, 1)
    if v == 1:
        return keep(u, x)
    if v == 2:
        x = keep(u, x)
        return UOp(Ops.MUL, (x, x))
    return UOp(Ops.RECIPROCAL, (keep(u, x),)) if v == -1 and u.dtype.is_float else None


# *** twice the same operand ***
def idempotent(u: UOp, x: UOp) -> UOp | None:
    """x & x -> x; x | x -> x; max(x, x) -> x; bool x + x -> x, x * x -> x"""
    return x if u.op in GroupOp.Idempotent or u.dtype is dtypes.bool else None


def self_difference(u: UOp, x: UOp) -> UOp | None:
    """x ^ x -> 0; integers x - x -> 0"""
    return None if u.dtype.is_float else const_for(u, False if u.dtype is dtypes.bool else 0)


def self_comparison(u: UOp, x: UOp) -> UOp | None:
    """x < x -> False; x != x -> False and x == x -> True where x is no float"""
    if u.op is Ops.CMPLT:
        return const_for(u, False)
    return None if x.dtype.is_float else const_for(u, u.op is Ops.CMPEQ)


def self_division(u: UOp, x: UOp) -> UOp | None:
    """x % x -> 0; x // x -> 1 where x is not 0"""
    if u.op in (Ops.FLOORMOD, Ops.CMOD):
        return const_for(u, 0)
    return const_for(u, 1) if x.vmin > 0 or x.vmax < 0 else None


def absorb(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """(x & y) & y -> x & y; (x | y) | y -> x | y; max(max(x, y), y) -> max(x, y)"""
    inner = u.src[0]
    return inner if y in inner.src and not (u.op is Ops.MAX and u.dtype.is_float) else None


def complement(u: UOp, a: UOp, b: UOp) -> UOp | None:
    """bool: x & NOT x -> False; x | NOT x -> True"""
    if u.dtype is not dtypes.bool or (negated(b) is not a and negated(a) is not b):
        return None
    return const_for(u, u.op is Ops.OR)


def bool_arithmetic(u: UOp) -> UOp | None:
    """bool: x + y -> x | y; x * y -> x & y; max(x, y) -> x | y"""
    if u.dtype is not dtypes.bool:
        return None
    return UOp(Ops.AND if u.op is Ops.MUL else Ops.OR, u.src, None, u.tag)


def bool_comparison(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """bool: NOT NOT x -> x; x != False -> x; x == True -> x; x == False -> NOT x; x < True -> NOT x"""
    v = literal(c)
    if x.dtype is not dtypes.bool or not isinstance(v, bool):
        return None
    if u.op is Ops.CMPNE and v is True:
        return None if (inner := negated(x)) is None else keep(u, inner)
    if u.op is Ops.CMPLT:
        return keep(u, logical_not(x)) if v else None  # x < False is False by bounds
    return keep(u, x if (u.op is Ops.CMPNE) is not v else logical_not(x))


def compare_bool_as_number(u: UOp, b: UOp, c: UOp) -> UOp | None:
    """int(b) != 0 -> b; int(b) != 1 -> NOT b; int(b) < 1 -> NOT b"""
    if b.dtype is not dtypes.bool or is_invalid(b):
        return None
    v = literal(c)
    if u.op is Ops.CMPLT:
        return keep(u, logical_not(b)) if v == 1 else None
    if v not in (0, 1):
        return None
    return keep(u, b if (v == 0) is (u.op is Ops.CMPNE) else logical_not(b))


def number_above_bool(u: UOp, c: UOp, b: UOp) -> UOp | None:
    """0 < int(b) -> b; False < b -> b"""
    return keep(u, b) if b.dtype is dtypes.bool and literal(c) == 0 and not is_invalid(b) else None


# *** nested operations with literals: integers, modulo 2**n ***
def associate_literals(u: UOp, inner: UOp, c: UOp) -> UOp | None:
    """(x op c0) op c1 -> x op (c0 op c1) for + * & | ^ max, not on floats"""
    dtype = u.dtype
    if dtype.is_float or inner.dtype is not dtype or inner.op is not u.op:
        return None
    a, b = literal(inner.src[1]), literal(c)
    if a is None or b is None or u.tag is not None or inner.src[0].dtype is not dtype:
        return None
    return keep(u, UOp(u.op, (inner.src[0], UOp.const(semantics.evaluate(u.op, dtype, (a, b)), dtype))))


def associate_shifts(u: UOp, inner: UOp, c: UOp) -> UOp | None:
    """(x << c0) << c1 -> x << (c0 + c1); the same for >>"""
    a, b = literal(inner.src[1]), literal(c)
    if a is None or b is None or a < 0 or b < 0 or inner.op is not u.op:
        return None
    return UOp(u.op, (inner.src[0], UOp(Ops.CONST, (), a + b)))


# *** conversions ***
def cast_to_same(u: UOp, x: UOp) -> UOp | None:
    """cast(x, its own dtype) -> x; cast(Invalid) -> Invalid"""
    return x if x.dtype is u.arg or is_invalid(x) else None


def cast_of_literal(u: UOp, x: UOp) -> UOp | None:
    """cast(c) -> the one literal of that value: cast(int8, 300) -> int8 44, cast(float, 3) -> float 3.0"""
    v = literal(x)
    return None if v is None else UOp.cconst(semantics.cast(v, x.dtype, u.arg), u.arg)


def cast_of_cast(u: UOp, inner: UOp) -> UOp | None:
    """cast(cast(x, mid), end) -> cast(x, end) where mid holds every value of x"""
    x = inner.src[0]
    src, mid, end = x.dtype, inner.arg, u.arg
    if x.op is Ops.CONST:
        return None
    if src.is_float and not mid.is_float:
        return None
    exact = can_lossless_cast(src, mid) or (mid.is_int and src.is_int and mid.min <= x.vmin and x.vmax <= mid.max)
    if exact and mid.is_float and not src.is_float and not end.is_float and end is not dtypes.bool:
        exact = can_lossless_cast(src, end)  # a float saturates where an integer would wrap
    if not exact:  # integer truncation in two steps
        exact = src.is_int and mid.is_int and end.is_int and end.bitsize <= min(mid.bitsize, src.bitsize)
    return x.cast(end) if exact else None


def cast_of_choice(u: UOp, w: UOp) -> UOp | None:
    """cast(where(b, c0, c1)) -> where(b, cast(c0), cast(c1)) for literals; cast(where(b, x, Invalid)) too"""
    cond, x, y = w.src
    if not (is_literal(x) and is_literal(y)) and not is_invalid(y):
        return None
    return UOp(Ops.WHERE, (cond, x.cast(u.arg), y if is_invalid(y) else y.cast(u.arg)))


def trunc_of_integer(u: UOp, x: UOp) -> UOp | None:
    """trunc(x) -> x for integers; trunc(trunc(x)) -> trunc(x)"""
    return x if not x.dtype.is_float or x.op is Ops.TRUNC else None


def bitcast_folds(u: UOp, x: UOp) -> UOp | None:
    """bitcast(x, its own dtype) -> x; bitcast(bitcast(x)) -> bitcast(x); bitcast(c) -> c"""
    if x.dtype is u.arg:
        return x
    if x.op is Ops.BITCAST and x.dtype.itemsize == u.arg.itemsize == x.src[0].dtype.itemsize:
        return x.src[0].bitcast(u.arg)
    if x.op is not Ops.CAST or x.dtype.is_weak or x.dtype.itemsize != u.arg.itemsize:
        return None
    v = literal(x)  # a NaN literal has no payload to keep
    return UOp.cconst(semantics.bitcast(v, x.dtype, u.arg), u.arg) if v is not None and v == v else None


# *** selection ***
def where_of_literal(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(True, x, y) -> x; where(False, x, y) -> y"""
    lo, hi = c.bounds
    if lo != hi or is_invalid(c):
        return None
    return keep(u, x if lo else y)


def where_of_same(u: UOp, c: UOp, x: UOp) -> UOp:
    """where(c, x, x) -> x"""
    return keep(u, x)


def where_of_bools(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """bool: where(c, True, False) -> c; where(c, False, True) -> NOT c; where(c, x, False) -> c & x; where(c, True, y)
    -> c | y"""
    if u.dtype is not dtypes.bool:
        return None
    a, b = (None if is_invalid(s) else s.arg if s.op is Ops.CONST else None for s in (x, y))
    if is_invalid(x) or is_invalid(y):
        return None
    if a is True:
        return keep(u, c if b is False else UOp(Ops.OR, (c, y)))
    if b is False:
        return keep(u, UOp(Ops.AND, (c, x)))
    if a is False:
        return keep(u, logical_not(c) if b is True else UOp(Ops.AND, (logical_not(c), y)))
    return None


def where_of_not(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(NOT c, x, y) -> where(c, y, x), except where y is Invalid: a gate keeps its form"""
    inner = negated(c)
    return None if inner is None or is_invalid(y) else UOp(Ops.WHERE, (inner, y, x))


def where_of_where(u: UOp, c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(c, where(c, x, _), y) -> where(c, x, y); where(a, where(b, x, y), y) -> where(a & b, x, y)"""
    if y.op is Ops.WHERE and y.src[0] is c:  # where(c, x, where(c, _, y)) -> where(c, x, y)
        return keep(u, UOp(Ops.WHERE, (c, x, y.src[2])))
    if x.op is not Ops.WHERE:
        return None
    if x.src[0] is c:
        return keep(u, UOp(Ops.WHERE, (c, x.src[1], y)))
    if x.src[2] is y:
        return keep(u, UOp(Ops.WHERE, (UOp(Ops.AND, (c, x.src[0])), x.src[1], y)))
    return None


def compare_choice_of_literals(u: UOp, w: UOp, c: UOp) -> UOp | None:
    """where(b, c0, c1) < c2 -> where(b, c0 < c2, c1 < c2); the same for != and =="""
    cond, x, y = w.src
    if not (is_literal(x) and is_literal(y) and is_literal(c)):
        return None
    return UOp(Ops.WHERE, (cond, UOp(u.op, (x, c)), UOp(u.op, (y, c))))


# *** structure ***
def range_of_one(u: UOp) -> UOp | None:
    """range(1) -> 0"""
    return UOp.const(0, u.dtype) if u.bounds == (0, 0) else None


def end_of_literals(u: UOp) -> UOp | None:
    """end(x, 0, r) -> end(x, r): a loop that runs once is no loop"""
    rest = tuple(s for s in u.src[1:] if not is_literal(s))
    if len(rest) == len(u.src) - 1 or any(s.dtype is dtypes.void for s in rest):
        return None
    return u.src[0] if not rest else UOp(u.op, (u.src[0], *rest), u.arg, u.tag)


def reduce_of_literals(u: UOp) -> UOp | None:
    """reduce(x, 0, r) -> reduce(x, r)"""
    return end_of_literals(u) if u.arg[1] == 0 else None


def after_of_nothing(u: UOp) -> UOp | None:
    """after(x) -> x; holes and literals among the dependencies go"""
    rest = tuple(s for s in u.src[1:] if s.op is not Ops.NOOP and not is_literal(s))
    if len(rest) == len(u.src) - 1:
        return u.src[0] if not rest else None
    return UOp(Ops.AFTER, (u.src[0], *rest), u.arg, u.tag) if rest else u.src[0]


def group_of_one(u: UOp) -> UOp | None:
    """group(x) -> x; holes go"""
    rest = tuple(s for s in u.src if s.op is not Ops.NOOP)
    if len(rest) == 1:
        return rest[0]
    return UOp(Ops.GROUP, rest) if rest and len(rest) < len(u.src) else None


_x, _y, _c = UPat(name="x"), UPat(name="y"), UPat(LITERAL_OPS, name="c")
_CAST_OF_BOOL = UPat(Ops.CAST, src=(UPat(name="b"),))
_COMMUTATIVE = GroupOp.Commutative
_INT_ASSOCIATIVE = (Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.MAX)

pm_literals = PatternMatcher([
    (UPat(_FOLDABLE, src=_LIT, name="u"), fold_literals),
    FOLD_EXPONENTIAL,
    (UPat(_BOUNDED, name="u"), fold_bounds),
    (UPat(_COMMUTATIVE, src=(UPat(LITERAL_OPS), UPat()), name="u"), literal_right),
])

pm_identities = PatternMatcher([
    (UPat((Ops.ADD, Ops.MUL, Ops.MAX), name="u"), bool_arithmetic),
    (UPat(Ops.ADD, src=(_x, _c), name="u"), add_literal),
    (UPat(Ops.SUB, src=(_x, _c), name="u"), sub_literal),
    (UPat(Ops.MUL, src=(_x, _c), name="u"), mul_literal),
    (UPat(Ops.AND, src=(_x, _c), name="u"), and_literal),
    (UPat(Ops.OR, src=(_x, _c), name="u"), or_literal),
    (UPat(Ops.XOR, src=(_x, _c), name="u"), xor_literal),
    (UPat((Ops.SHL, Ops.SHR), src=(_x, _c), name="u"), shift_literal),
    (UPat((Ops.SHL, Ops.SHR, Ops.FLOORDIV, Ops.CDIV, Ops.FLOORMOD, Ops.CMOD), src=(_c, _x), name="u"), shift_of_zero),
    (UPat((Ops.FLOORDIV, Ops.CDIV), src=(_x, _c), name="u"), div_literal),
    (UPat((Ops.FLOORMOD, Ops.CMOD), src=(_x, _c), name="u"), mod_literal),
    (UPat(Ops.FDIV, src=(_x, _c), name="u"), fdiv_literal),
    (UPat(Ops.POW, src=(_x, _c), name="u"), pow_literal),
    (UPat((Ops.AND, Ops.OR, Ops.MAX), src=(_x, _x), name="u"), idempotent),
    (UPat((Ops.XOR, Ops.SUB), src=(_x, _x), name="u"), self_difference),
    (UPat(GroupOp.Comparison, src=(_x, _x), name="u"), self_comparison),
    (UPat((Ops.FLOORMOD, Ops.CMOD, Ops.FLOORDIV, Ops.CDIV), src=(_x, _x), name="u"), self_division),
    *[(UPat(op, src=(UPat(op, name="x"), _y), name="u"), absorb) for op in (Ops.AND, Ops.OR, Ops.MAX)],
    (UPat((Ops.AND, Ops.OR), src=(UPat(name="a"), UPat(Ops.CMPNE, name="b")), name="u"), complement),
    (UPat((Ops.AND, Ops.OR), src=(UPat(Ops.CMPNE, name="a"), UPat(name="b")), name="u"), complement),
    (UPat(GroupOp.Comparison, src=(_x, UPat(Ops.CONST, name="c")), name="u"), bool_comparison),
    (UPat(GroupOp.Comparison, src=(_CAST_OF_BOOL, _c), name="u"), compare_bool_as_number),
    (UPat(Ops.CMPLT, src=(_c, _CAST_OF_BOOL), name="u"), number_above_bool),
    (UPat(Ops.CMPLT, src=(UPat(Ops.CONST, name="c"), UPat(name="b", dtype=dtypes.bool)), name="u"), number_above_bool),
    *[(UPat(op, src=(UPat(op, name="inner"), _c), name="u"), associate_literals) for op in _INT_ASSOCIATIVE],
    *[(UPat(op, src=(UPat(op, name="inner"), _c), name="u"), associate_shifts) for op in (Ops.SHL, Ops.SHR)],
])

pm_conversions = PatternMatcher([
    (UPat(Ops.CAST, src=(_x,), name="u"), cast_to_same),
    (UPat(Ops.CAST, src=(UPat(LITERAL_OPS, name="x"),), name="u"), cast_of_literal),
    (UPat(Ops.CAST, src=(UPat(Ops.CAST, name="inner"),), name="u"), cast_of_cast),
    (UPat(Ops.CAST, src=(UPat(Ops.WHERE, name="w"),), name="u"), cast_of_choice),
    (UPat(Ops.TRUNC, src=(_x,), name="u"), trunc_of_integer),
    (UPat(Ops.BITCAST, src=(_x,), name="u"), bitcast_folds),
])

pm_selection = PatternMatcher([
    (UPat(Ops.WHERE, src=(UPat(name="c"), _x, _y), name="u"), where_of_literal),
    (UPat(Ops.WHERE, src=(UPat(name="c"), _x, _x), name="u"), where_of_same),
    (UPat(Ops.WHERE, src=(UPat(name="c"), _x, _y), name="u"), where_of_bools),
    (UPat(Ops.WHERE, src=(UPat(Ops.CMPNE, name="c"), _x, _y), name="u"), where_of_not),
    (UPat(Ops.WHERE, src=(UPat(name="c"), UPat(Ops.WHERE, name="x"), _y), name="u"), where_of_where),
    (UPat(Ops.WHERE, src=(UPat(name="c"), _x, UPat(Ops.WHERE, name="y")), name="u"), where_of_where),
    (UPat(GroupOp.Comparison, src=(UPat(Ops.WHERE, name="w"), _c), name="u"), compare_choice_of_literals),
])

pm_structure = PatternMatcher([
    (UPat((Ops.RANGE, Ops.SPECIAL), src=(UPat((Ops.CONST, Ops.CAST)),), name="u"), range_of_one),
    (UPat(Ops.END, name="u"), end_of_literals),
    (UPat(Ops.REDUCE, name="u"), reduce_of_literals),
    (UPat(Ops.AFTER, name="u"), after_of_nothing),
    (UPat(Ops.GROUP, name="u"), group_of_one),
])

pm_fold = pm_literals + pm_identities + pm_conversions + pm_selection + pm_structure
