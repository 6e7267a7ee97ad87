"""Late decompositions: rewrite what a target lacks into what it has.

``get_decompositions(ops, dtypes)`` gives the matcher for a renderer that has the ALU ops ``ops``. It takes strong nodes
(weak ones are left alone: their width is not known yet) and keeps dtype and value, NaN, infinities and zeros included.

What listing an op promises: SHL, SHR, CDIV, CMOD and float-to-int CAST may be undefined outside their natural domain
(counts of the width or more, zero divisors, INT_MIN/-1, values that do not fit). The rules here keep operands inside
it; a guard is left out where bounds prove it. A guarded CDIV, CMOD or CAST carries the tag ``NATIVE``: it is the
machine's own instruction, its operands are in the domain. A renderer that lists FLOORDIV says that all of these are
total as ``semantics.py`` defines them, and gets no guards.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rules.common import NATIVE, literal
from tinyhost.uop.rules.power import power_in_float32, power_in_float64
from tinyhost.uop.rules.transcendental import unary_rules

Rules = list[tuple[UPat, Callable[..., Any]]]


# *** building nodes ***
def _const_like(x: UOp, value: Any) -> UOp:
    """A literal of x's dtype; operands broadcast, so it needs no shape."""
    return UOp.const(value, x.dtype)


def _whole(u: UOp, value: Any) -> UOp:
    """A literal that replaces all of ``u``."""
    return u.const_like(value)


def _alu(op: Ops, *src: UOp) -> UOp:
    return UOp(op, src)


def _not(x: UOp) -> UOp:
    return UOp(Ops.CMPNE, (x, UOp.const(True)))


def _strong_int(x: UOp) -> bool:
    return x.dtype.is_int and not x.dtype.is_weak


def _power_of_2(c: Any) -> int | None:
    """k where c is 2**k, else None."""
    return c.bit_length() - 1 if c.__class__ is int and c > 0 and c & (c - 1) == 0 else None


def _sign_mask(x: UOp) -> UOp:
    """-1 where x is negative, else 0."""
    return _alu(Ops.SHR, x, _const_like(x, x.dtype.bitsize - 1))


# *** division that rounds down ***
def floordiv(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """FLOORDIV as a shift, or as CDIV of numbers whose quotient needs no correction, or corrected."""
    if not _strong_int(u):
        return None
    x, y = x.cast(u.dtype), y.cast(u.dtype)
    c = literal(y)
    if c == 0:
        return _whole(u, 0)
    if (k := _power_of_2(c)) is not None:
        return x if k == 0 else _alu(Ops.SHR, x, _const_like(x, k))
    if x.vmin >= 0 and y.vmin >= 0:
        return _alu(Ops.CDIV, x, y)
    if c is not None and c > 0:
        # ~(~x / c) where x is negative
        mask = _sign_mask(x)
        return _alu(Ops.XOR, _alu(Ops.CDIV, _alu(Ops.XOR, x, mask), y), mask)
    quotient, rest = _alu(Ops.CDIV, x, y), _alu(Ops.CMOD, x, y)
    return _alu(Ops.ADD, quotient, _alu(Ops.WHERE, _signs_differ(rest, y), _const_like(x, -1), _const_like(x, 0)))


def floormod(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """FLOORMOD as a mask, or as CMOD, plus the divisor where the signs of rest and divisor differ."""
    if not _strong_int(u):
        return None
    x, y = x.cast(u.dtype), y.cast(u.dtype)
    c = literal(y)
    if c == 0:
        return _whole(u, 0)
    if (k := _power_of_2(c)) is not None:
        return _alu(Ops.AND, x, _const_like(x, (1 << k) - 1)) if k else _whole(u, 0)
    rest = _alu(Ops.CMOD, x, y)
    if x.vmin >= 0 and y.vmin >= 0:
        return rest
    if c is not None and c > 0:
        return _alu(Ops.ADD, rest, _alu(Ops.AND, _sign_mask(rest), y))
    return _alu(Ops.ADD, rest, _alu(Ops.WHERE, _signs_differ(rest, y), y, _const_like(x, 0)))


def _signs_differ(rest: UOp, y: UOp) -> UOp:
    """Whether a rest other than 0 has another sign than the divisor."""
    zero = _const_like(y, 0)
    return _alu(Ops.AND, _alu(Ops.CMPNE, rest, zero), _alu(Ops.CMPLT, _alu(Ops.XOR, rest, y), zero))


# *** division that truncates ***
def _reciprocal_factor(c: int, limit: int) -> tuple[int, int]:
    """(factor, shift) with n*factor >> shift == n//c for all n from 0 to ``limit``, the smallest shift."""
    shift = c.bit_length() - 1
    while (-(1 << shift) % c) * limit >= 1 << shift:
        shift += 1
    return -(-(1 << shift) // c), shift


def _multiply_shift(x: UOp, c: int, wide: bool) -> UOp | None:
    """x / c for a literal c > 2 as a multiplication and a shift, None where the product does not fit."""
    dt = x.dtype
    limit = max(x.vmax, -x.vmin)  # products are never negative where x is unsigned, so signed types hold them
    factor, shift = _reciprocal_factor(c, limit)
    needed = factor * limit
    work = next((t for t in (dt, dtypes.int32, dtypes.int64) if needed <= t.max and t.bitsize >= dt.bitsize), None)
    if work is None or (work is dtypes.int64 and work is not dt and not wide):
        return None
    product = _alu(Ops.MUL, x.cast(work), UOp.const(factor, work))
    quotient = _alu(Ops.SHR, product, UOp.const(shift, work)).cast(dt)
    # the shift rounds down; one more where x is negative
    return _alu(Ops.SUB, quotient, _sign_mask(x)) if x.vmin < 0 else quotient


def _divide_by_literal(x: UOp, c: int, wide: bool) -> UOp | None:
    """x / c for a literal c other than 0, None where the division instruction is as good as anything."""
    if c == 1:
        return x
    if c == -1:
        return _alu(Ops.MUL, x, _const_like(x, -1))
    if c == x.dtype.min:
        return _alu(Ops.CMPNE, x, _const_like(x, c)).where(_const_like(x, 0), _const_like(x, 1))
    if c < 0:
        return _alu(Ops.MUL, _alu(Ops.CDIV, x, _const_like(x, -c)), _const_like(x, -1))
    if (k := _power_of_2(c)) is None:
        return _multiply_shift(x, c, wide)
    if x.vmin < 0:
        x = _alu(Ops.ADD, x, _alu(Ops.AND, _sign_mask(x), _const_like(x, c - 1)))
    return _alu(Ops.SHR, x, _const_like(x, k))


def _guarded(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """CDIV or CMOD with operands inside the domain of the instruction, None where they are already."""
    dt = u.dtype
    nonzero = y.vmin > 0 or y.vmax < 0
    fits = dt.is_unsigned or x.vmin > dt.min or y.vmin > -1 or y.vmax < -1
    if nonzero and fits:
        return None
    one, zero = _const_like(y, 1), _const_like(y, 0)
    if fits:
        inside = _alu(Ops.CMPNE, y, zero)
    elif nonzero:
        inside = _alu(Ops.CMPNE, y, _const_like(y, -1))
    else:
        # neither 0 nor -1: y+1 is above 1 without its sign
        unsigned = dtypes.uints[dtypes.sints.index(dt)]
        inside = _alu(Ops.CMPLT, UOp.const(1, unsigned), _alu(Ops.ADD, y, one).cast(unsigned))
    # x/0 is 0 and x/-1 is -x, both of which are x*y; the rests are 0
    outside = _alu(Ops.MUL, x, y) if u.op is Ops.CDIV and not fits else zero
    native = UOp(u.op, (x, _alu(Ops.WHERE, inside, y, one)), tag=NATIVE)
    return _alu(Ops.WHERE, inside, native, outside)


def _cdiv(u: UOp, x: UOp, y: UOp, wide: bool) -> UOp | None:
    if u.tag == NATIVE or not _strong_int(u):
        return None
    x, y = x.cast(u.dtype), y.cast(u.dtype)
    c = literal(y)
    if c is None:
        return _guarded(u, x, y)
    return _whole(u, 0) if c == 0 else _divide_by_literal(x, c, wide)


def _cmod(u: UOp, x: UOp, y: UOp, wide: bool) -> UOp | None:
    if u.tag == NATIVE or not _strong_int(u):
        return None
    x, y = x.cast(u.dtype), y.cast(u.dtype)
    c = literal(y)
    if c is None:
        return _guarded(u, x, y)
    if abs(c) <= 1:
        return _whole(u, 0)
    if x.vmin >= 0 and (k := _power_of_2(c)) is not None:
        return _alu(Ops.AND, x, _const_like(x, (1 << k) - 1))
    if c == u.dtype.min or (quotient := _divide_by_literal(x, abs(c), wide)) is None:
        return None
    return _alu(Ops.SUB, x, _alu(Ops.MUL, quotient, _const_like(x, abs(c))))


def cdiv(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """CDIV by a literal as multiplication and shift, else guarded."""
    return _cdiv(u, x, y, False)


def cdiv_wide(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """As ``cdiv``, where the target has int64 multiplication."""
    return _cdiv(u, x, y, True)


def cmod(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """CMOD by a literal as x - x/c*c, else guarded."""
    return _cmod(u, x, y, False)


def cmod_wide(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """As ``cmod``, where the target has int64 multiplication."""
    return _cmod(u, x, y, True)


# *** shifts ***
def _count_inside(x: UOp, count: UOp) -> UOp | None:
    """Whether the count is below the width, None where bounds prove it."""
    width = x.dtype.bitsize
    if count.vmin >= 0 and count.vmax < width:
        return None
    if count.dtype is dtypes.weakint and count.is_const:  # a literal has no width to be unsigned in
        return UOp.const(False)
    if count.dtype in dtypes.sints and count.vmin < 0:
        count = UOp(Ops.CAST, (count,), dtypes.uints[dtypes.sints.index(count.dtype)])
    # a type whose largest value is below the width cannot get here
    return _alu(Ops.CMPLT, count, _const_like(count, width))


def _masked(x: UOp, count: UOp) -> UOp:
    return _alu(Ops.AND, count, _const_like(count, x.dtype.bitsize - 1))


def shift_left(u: UOp, x: UOp, count: UOp) -> UOp | None:
    """SHL with counts of the width or more: 0."""
    if not _strong_int(x) or (inside := _count_inside(x, count)) is None:
        return None
    return _alu(Ops.WHERE, inside, _alu(Ops.SHL, x, _masked(x, count)), _const_like(x, 0))


def shift_right(u: UOp, x: UOp, count: UOp) -> UOp | None:
    """SHR with counts of the width or more: 0 if unsigned, else the sign."""
    if not _strong_int(x) or (inside := _count_inside(x, count)) is None:
        return None
    if x.dtype.is_unsigned:
        return _alu(Ops.WHERE, inside, _alu(Ops.SHR, x, _masked(x, count)), _const_like(x, 0))
    most = _alu(Ops.WHERE, inside, count, _const_like(count, x.dtype.bitsize - 1))
    return _alu(Ops.SHR, x, _masked(x, most))


def multiply_to_shift(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x * 2**k -> x << k."""
    if not _strong_int(u) or (k := _power_of_2(literal(c))) is None or k == 0 or k >= u.dtype.bitsize:
        return None
    x = x.cast(u.dtype)
    return _alu(Ops.SHL, x, _const_like(x, k))


# *** sums, products and comparisons ***
def _signed_arithmetic(u: UOp) -> bool:
    return u.dtype is not dtypes.bool and not u.dtype.is_weak


def multiply_to_negate(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x * -1 -> -x."""
    return UOp(Ops.NEG, (x.cast(u.dtype),)) if literal(c) == -1 and _signed_arithmetic(u) else None


def negate_to_multiply(u: UOp, x: UOp) -> UOp:
    """-x -> x * -1."""
    return _alu(Ops.MUL, x, _const_like(x, -1))


def add_to_subtract(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """x + -y -> x - y."""
    return UOp(Ops.SUB, (x, y)) if _signed_arithmetic(u) else None


def add_product_to_subtract(u: UOp, x: UOp, y: UOp, c: UOp) -> UOp | None:
    """x + y * -1 -> x - y."""
    return UOp(Ops.SUB, (x, y)) if literal(c) == -1 and _signed_arithmetic(u) else None


def subtract_to_add(u: UOp, x: UOp, y: UOp) -> UOp:
    """x - y -> x + y * -1."""
    return _alu(Ops.ADD, x, _alu(Ops.MUL, y, _const_like(y, -1)))


def bool_arithmetic(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """On bool, ADD and MAX are OR, MUL is AND, x - y is x or not y."""
    if u.dtype is not dtypes.bool:
        return None
    return _alu(Ops.AND if u.op is Ops.MUL else Ops.OR, x, _not(y) if u.op is Ops.SUB else y)


def bool_negation(u: UOp, x: UOp) -> UOp | None:
    """On bool, -x is not x."""
    return _not(x) if x.dtype is dtypes.bool else None


def maximum(u: UOp, x: UOp, y: UOp) -> UOp:
    """max(x, y) -> y where x < y or y is NaN, else x."""
    dt = u.dtype
    takes_y = _alu(Ops.CMPLT, x, y)
    c = literal(y)
    if dt.is_float and (c is None or math.isnan(c)):
        takes_y = _alu(Ops.OR, takes_y, _alu(Ops.CMPNE, y, y))
    return _alu(Ops.WHERE, takes_y, y, x)


def equal(u: UOp, x: UOp, y: UOp) -> UOp:
    """x == y -> not x != y."""
    return _not(_alu(Ops.CMPNE, x, y))


def not_different(u: UOp, x: UOp, y: UOp) -> UOp:
    """not x != y -> x == y."""
    return UOp(Ops.CMPEQ, (x, y))


def divide_to_reciprocal(u: UOp, x: UOp, y: UOp) -> UOp:
    """x / y -> x * (1/y), for targets that have no division: it rounds twice."""
    return _alu(Ops.MUL, x, UOp(Ops.RECIPROCAL, (y,)))


def reciprocal_to_divide(u: UOp, x: UOp) -> UOp:
    """1/x as a division."""
    x = x.cast(u.dtype)
    return _alu(Ops.FDIV, _const_like(x, 1.0), x)


def multiply_add(u: UOp, x: UOp, y: UOp, z: UOp) -> UOp:
    """x*y + z in two steps."""
    return _alu(Ops.ADD, _alu(Ops.MUL, x, y), z)


_TRUNC_INTS = {dtypes.float16: (dtypes.int16, dtypes.uint16), dtypes.float32: (dtypes.int32, dtypes.uint32),
               dtypes.float64: (dtypes.int64, dtypes.uint64), dtypes.bfloat16: (dtypes.int16, dtypes.uint16)}


def truncate(u: UOp, x: UOp) -> UOp | None:
    """TRUNC through integers where a fraction is possible, with the sign put back for -0.0."""
    dt = x.dtype
    if not dt.is_float:
        return x
    if dt not in _TRUNC_INTS:
        wide = dtypes.default_float if dt.is_weak else dtypes.float32
        return UOp(Ops.TRUNC, (x.cast(wide),)).cast(dt)
    ints, bits = _TRUNC_INTS[dt]
    sign = UOp.const(1 << dt.bitsize - 1, bits)
    pattern = UOp(Ops.BITCAST, (x,), bits)
    size = UOp(Ops.BITCAST, (_alu(Ops.AND, pattern, UOp.const((1 << dt.bitsize - 1) - 1, bits)),), dt)
    has_fraction = _alu(Ops.CMPLT, size, _const_like(x, 2.0 ** dtypes.finfo(dt)[1]))
    inside = _alu(Ops.WHERE, has_fraction, size, _const_like(x, 0.0))
    whole = UOp(Ops.CAST, (UOp(Ops.CAST, (inside,), ints, NATIVE),), dt)
    signed = _alu(Ops.OR, UOp(Ops.BITCAST, (whole,), bits), _alu(Ops.AND, pattern, sign))
    return _alu(Ops.WHERE, has_fraction, UOp(Ops.BITCAST, (signed,), dt), x)


# *** casts ***
def cast_to_bool(u: UOp, x: UOp) -> UOp | None:
    """A number as truth value -> x != 0."""
    if u.dtype is not dtypes.bool or x.dtype is dtypes.bool or x.is_const:
        return None
    return _alu(Ops.CMPNE, x, _const_like(x, 0))


def saturating_cast(u: UOp, x: UOp) -> UOp | None:
    """Float to int: out of range gives the nearest bound, NaN gives 0."""
    src, dst = x.dtype, u.dtype
    if u.tag == NATIVE or not _strong_int(u) or not src.is_float or literal(x) is not None:
        return None
    if src.is_weak:
        return UOp(Ops.CAST, (x.cast(dtypes.default_float),), dst)
    if src in (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s):
        return UOp(Ops.CAST, (x.cast(dtypes.float32),), dst)
    if x.vmin > dst.min - 1 and x.vmax < dst.max + 1:
        return None
    if dst.bitsize < 32 or (dst.bitsize == 32 and src is dtypes.float64):
        return _clamped_cast(x, dst)
    return _selected_cast(x, dst)


def _clamped_cast(x: UOp, dst: DType) -> UOp:
    """Both bounds are floats: clamp, then convert to a type that holds them."""
    x = _alu(Ops.WHERE, _alu(Ops.CMPNE, x, x), _const_like(x, 0.0), x)
    high = _const_like(x, float(dst.max))
    x = _alu(Ops.MAX, x, _const_like(x, float(dst.min)))
    x = _alu(Ops.WHERE, _alu(Ops.CMPLT, x, high), x, high)
    wide = dtypes.int64 if dst is dtypes.uint32 else dtypes.int32
    return UOp(Ops.CAST, (x,), wide, NATIVE).cast(dst)


def _selected_cast(x: UOp, dst: DType) -> UOp:
    """The upper bound is no float: convert 0 instead of NaN and of what is beyond, then select."""
    limit = float(dst.max)  # rounded up to a power of 2
    below = _alu(Ops.CMPLT, x, _const_like(x, limit))  # false for NaN
    beyond = _alu(Ops.CMPLT, _const_like(x, limit * (1 - 2.0 ** -(dtypes.finfo(x.dtype)[1] + 1))), x)
    kept = _alu(Ops.WHERE, below, _alu(Ops.MAX, x, _const_like(x, float(dst.min))), _const_like(x, 0.0))
    return _alu(Ops.WHERE, beyond, UOp.const(dst.max, dst), UOp(Ops.CAST, (kept,), dst, NATIVE))


# *** threefry ***
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(u: UOp, x: UOp, key: UOp) -> UOp:
    """Threefry-2x32 of 20 rounds on two uint32 packed into each uint64, low word first (Salmon et al., SC 2011)."""
    word, wide = dtypes.uint32, dtypes.uint64
    half = UOp.const(32, wide)
    (x0, x1), (k0, k1) = ((v.cast(word), _alu(Ops.SHR, v, half).cast(word)) for v in (x, key))
    keys = (k0, k1, _alu(Ops.XOR, _alu(Ops.XOR, k0, k1), UOp.const(0x1BD11BDA, word)))
    x0, x1 = _alu(Ops.ADD, x0, k0), _alu(Ops.ADD, x1, k1)
    for group in range(5):
        for r in _ROTATIONS[group & 1]:
            x0 = _alu(Ops.ADD, x0, x1)
            left, right = _alu(Ops.SHL, x1, UOp.const(r, word)), _alu(Ops.SHR, x1, UOp.const(32 - r, word))
            x1 = _alu(Ops.XOR, _alu(Ops.OR, left, right), x0)
        x0 = _alu(Ops.ADD, x0, keys[(group + 1) % 3])
        x1 = _alu(Ops.ADD, x1, _alu(Ops.ADD, keys[(group + 2) % 3], UOp.const(group + 1, word)))
    return _alu(Ops.OR, _alu(Ops.SHL, x1.cast(wide), half), x0.cast(wide))


# *** selection ***
_X, _Y = UPat(name="x"), UPat(name="y")


def _op(op: Ops, *src: UPat) -> UPat:
    return UPat(op, src=src, name="u")


def _not_pattern(x: UPat) -> UPat:
    return UPat(Ops.CMPNE, src=(x, UPat(Ops.CONST, arg=True)), name="u")


def _missing_rules(ops: frozenset[Ops], has_float64: bool) -> Rules:
    """Rules for ops that are not there."""
    power = power_in_float64 if has_float64 else power_in_float32
    rules: dict[Ops, Rules] = {
        **unary_rules(has_float64),
        Ops.POW: [(_op(Ops.POW, _X, _Y), power)],
        Ops.THREEFRY: [(_op(Ops.THREEFRY, _X, UPat(name="key")), threefry)],
        Ops.FLOORDIV: [(_op(Ops.FLOORDIV, _X, _Y), floordiv)],
        Ops.FLOORMOD: [(_op(Ops.FLOORMOD, _X, _Y), floormod)],
        Ops.MAX: [(_op(Ops.MAX, _X, _Y), maximum)],
        Ops.CMPEQ: [(_op(Ops.CMPEQ, _X, _Y), equal)],
        Ops.TRUNC: [(_op(Ops.TRUNC, _X), truncate)],
        Ops.FDIV: [(_op(Ops.FDIV, _X, _Y), divide_to_reciprocal)],
        Ops.MULACC: [(_op(Ops.MULACC, _X, _Y, UPat(name="z")), multiply_add)],
        Ops.NEG: [(_op(Ops.NEG, _X), negate_to_multiply)],
        Ops.SUB: [(_op(Ops.SUB, _X, _Y), subtract_to_add)]}
    if Ops.FDIV in ops:
        rules[Ops.RECIPROCAL] = [(_op(Ops.RECIPROCAL, _X), reciprocal_to_divide)]
    return [rule for op, some in rules.items() if op not in ops for rule in some]


def _better_rules(ops: frozenset[Ops]) -> Rules:
    """Rules for ops that say the same with less."""
    rules: Rules = []
    any_order = UPat.cvar("c")
    if Ops.CMPEQ in ops:
        # not x != y -> x == y; on bool the inner CMPNE may itself be a NOT
        rules.append((_not_pattern(UPat(Ops.CMPNE, src=(_X, _Y))), not_different))
    if Ops.NEG in ops:
        rules.append((UPat(Ops.MUL, src=[_X, any_order], name="u"), multiply_to_negate))
    if Ops.SUB in ops:
        rules.append((UPat(Ops.ADD, src=[_X, UPat(Ops.NEG, src=(_Y,))], name="u"), add_to_subtract))
        rules.append((UPat(Ops.ADD, src=[_X, UPat(Ops.MUL, src=[_Y, any_order])], name="u"), add_product_to_subtract))
    if Ops.SHL in ops:
        rules.append((UPat(Ops.MUL, src=[_X, any_order], name="u"), multiply_to_shift))
    return rules


def _domain_rules(wide: bool) -> Rules:
    """Guards, and divisions by literals."""
    return [(_op(Ops.CDIV, _X, _Y), cdiv_wide if wide else cdiv), (_op(Ops.CMOD, _X, _Y), cmod_wide if wide else cmod),
            (_op(Ops.SHL, _X, UPat(name="count")), shift_left), (_op(Ops.SHR, _X, UPat(name="count")), shift_right),
            (_op(Ops.CAST, _X), cast_to_bool), (_op(Ops.CAST, _X), saturating_cast)]


@functools.cache
def get_decompositions(ops: frozenset[Ops], dtypes_there: frozenset[DType] = frozenset(dtypes.all)) -> PatternMatcher:
    """The rules for a renderer with ALU ops ``ops`` on a target whose types are ``dtypes_there``.

    CMPLT, CMPNE, WHERE, ADD, MUL, AND, OR, XOR, CDIV, CMOD, SHL, SHR, SQRT and one of RECIPROCAL and FDIV are taken
    for granted.
    """
    rules: Rules = [(_op(op, _X, _Y), bool_arithmetic) for op in (Ops.ADD, Ops.MUL, Ops.MAX, Ops.SUB)]
    rules.append((_op(Ops.NEG, _X), bool_negation))
    rules += _better_rules(ops) + _missing_rules(ops, dtypes.float64 in dtypes_there)
    if Ops.FLOORDIV not in ops:
        rules += _domain_rules(dtypes.int64 in dtypes_there)
    return PatternMatcher(rules)
