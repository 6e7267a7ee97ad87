"""Interval analysis: the smallest and largest value one node can have.

Takes a node whose sources already know their bounds (``s.vmin``, ``s.vmax``) and gives ``(vmin, vmax)`` as Python
numbers. The invariant is soundness: whatever the sources hold within their bounds, the value of the node as defined by
``tinyhost.uop.semantics`` lies within the result. Integers wrap, so an exact interval that leaves the range of the
dtype becomes the range of the dtype. A float interval other than the full range promises that the value is no NaN; the
bounds of a literal NaN are (nan, nan).

Does not walk the graph and caches nothing: the node does both.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinyhost.dtype import DType, Invalid, dtypes, least_upper_dtype
from tinyhost.ops import Ops

Interval = tuple[Any, Any]

_FULL: dict[DType, Interval] = {}


def full_range(dtype: DType) -> Interval:
    """All values of ``dtype``: its smallest and its largest; for floats the infinities, whether it has them or not."""
    if (r := _FULL.get(dtype)) is None:
        r = _FULL[dtype] = (-math.inf, math.inf) if dtype.is_float else (dtype.min, dtype.max)
    return r


def min_max(u: Any) -> Interval:
    """Bounds of ``u`` from the bounds of its sources."""
    rule = _RULES.get(u.op)
    return full_range(u.dtype) if rule is None else rule(u)


def _clip(lo: Any, hi: Any, dtype: DType) -> Interval:
    """The exact interval ``lo..hi``, or everything when a value in it would wrap."""
    full = full_range(dtype)
    return (lo, hi) if full[0] <= lo and hi <= full[1] else full


def _operand(s: Any, dtype: DType) -> Interval:
    """Bounds of ``s`` after its conversion to the dtype in which the operation runs."""
    return (s.vmin, s.vmax) if s.dtype is dtype else _clip(int(s.vmin), int(s.vmax), dtype)


# *** arithmetic ***
def _add(u: Any) -> Interval:
    a, b = u.src
    dtype = u.dtype
    if dtype is dtypes.bool:
        return bool(a.vmin or b.vmin), bool(a.vmax or b.vmax)
    if dtype.is_float:
        return full_range(dtype)
    return _clip(a.vmin + b.vmin, a.vmax + b.vmax, dtype)


def _sub(u: Any) -> Interval:
    a, b = u.src
    dtype = u.dtype
    if dtype.is_float or dtype is dtypes.bool:
        return full_range(dtype)
    return _clip(a.vmin - b.vmax, a.vmax - b.vmin, dtype)


def _neg(u: Any) -> Interval:
    a, dtype = u.src[0], u.dtype
    if dtype is dtypes.bool:
        return not a.vmax, not a.vmin
    return full_range(dtype) if dtype.is_float else _clip(-a.vmax, -a.vmin, dtype)


def _mul(u: Any) -> Interval:
    a, b = u.src
    dtype = u.dtype
    if dtype is dtypes.bool:
        return bool(a.vmin and b.vmin), bool(a.vmax and b.vmax)
    if dtype.is_float:
        return full_range(dtype)
    a0, a1, b0, b1 = a.vmin, a.vmax, b.vmin, b.vmax
    if a0 >= 0 and b0 >= 0:
        return _clip(a0 * b0, a1 * b1, dtype)
    corners = (a0 * b0, a0 * b1, a1 * b0, a1 * b1)
    return _clip(min(corners), max(corners), dtype)


def _max(u: Any) -> Interval:
    dtype = u.dtype
    if dtype.is_float:
        return full_range(dtype)
    if dtype is dtypes.bool:
        return _add(u)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    return max(a0, b0), max(a1, b1)


def _trunc(u: Any) -> Interval:
    return full_range(u.dtype) if u.dtype.is_float else (u.src[0].vmin, u.src[0].vmax)


# *** division: the divisor 0 gives 0 ***
def _c_quotient(x: int, y: int) -> int:
    return x // y if (x < 0) == (y < 0) else -(abs(x) // abs(y))


def _floor_quotient(x: int, y: int) -> int:
    return x // y


def _div(u: Any, quotient: Callable[[int, int], int]) -> Interval:
    dtype = u.dtype
    if dtype.is_float or dtype is dtypes.bool:
        return full_range(dtype)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if a0 > a1:
        return 0, 0
    if b0 <= 0 <= b1:
        return (0, 0) if b0 == b1 else full_range(dtype)
    if b0 > 0 and a0 >= 0:
        return a0 // b1, a1 // b0
    corners = [quotient(a, b) for a in (a0, a1) for b in (b0, b1)]
    return _clip(min(corners), max(corners), dtype)


def _cdiv(u: Any) -> Interval:
    return _div(u, _c_quotient)


def _floordiv(u: Any) -> Interval:
    return _div(u, _floor_quotient)


def _floormod(u: Any) -> Interval:
    dtype = u.dtype
    if dtype.is_float or dtype is dtypes.bool:
        return full_range(dtype)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if a0 > a1:
        return 0, 0
    if b0 == b1 and b0 != 0 and a0 // b0 == a1 // b0:
        return a0 % b0, a1 % b0
    if a0 >= 0 and b0 > 0:
        return (a0, a1) if a1 < b0 else (0, min(a1, b1 - 1))
    return min(b0 + 1, 0), max(b1 - 1, 0)


def _cmod(u: Any) -> Interval:
    dtype = u.dtype
    if dtype.is_float or dtype is dtypes.bool:
        return full_range(dtype)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if a0 > a1:
        return 0, 0
    most = max(abs(b0), abs(b1)) - 1
    if most < 0:
        return 0, 0
    if a0 >= 0 and a1 < b0:
        return a0, a1
    return 0 if a0 >= 0 else max(a0, -most), 0 if a1 <= 0 else min(a1, most)


# *** bits ***
def _shl(u: Any) -> Interval:
    x, count = u.src
    dtype = u.dtype
    c0, c1 = count.vmin, count.vmax
    if dtype.is_float or c0 < 0 or c1 >= dtype.bitsize:
        return full_range(dtype)
    corners = (x.vmin << c0, x.vmin << c1, x.vmax << c0, x.vmax << c1)
    return _clip(min(corners), max(corners), dtype)


def _shr(u: Any) -> Interval:
    x, count = u.src
    c0, c1 = count.vmin, count.vmax
    if u.dtype.is_float or c0 < 0:
        return full_range(u.dtype)
    c0, c1 = min(c0, 1024), min(c1, 1024)
    corners = (x.vmin >> c0, x.vmin >> c1, x.vmax >> c0, x.vmax >> c1)
    return min(corners), max(corners)


def _and(u: Any) -> Interval:
    dtype = u.dtype
    if dtype is dtypes.bool:
        return _mul(u)
    if dtype.is_float:
        return full_range(dtype)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if a0 >= 0:
        return 0, min(a1, b1) if b0 >= 0 else a1
    # a negative operand clears bits of the other one, or both are negative and so is the result
    return (0, b1) if b0 >= 0 else (full_range(dtype)[0], max(a1, b1))


def _or(u: Any) -> Interval:
    dtype = u.dtype
    if dtype is dtypes.bool:
        return _add(u)
    if dtype.is_float:
        return full_range(dtype)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if a0 < 0 or b0 < 0:
        return full_range(dtype)
    return max(a0, b0), (1 << max(a1, b1).bit_length()) - 1


def _xor(u: Any) -> Interval:
    dtype = u.dtype
    if dtype.is_float:
        return full_range(dtype)
    if dtype is dtypes.bool:
        return _cmpne(u)
    (a0, a1), (b0, b1) = _operand(u.src[0], dtype), _operand(u.src[1], dtype)
    if b0 == b1 == -1:
        return ~a1, ~a0
    full = full_range(dtype)
    if full[0] == 0 and b0 == b1 == full[1]:
        return b0 - a1, b0 - a0
    return full if a0 < 0 or b0 < 0 else (0, (1 << max(a1, b1).bit_length()) - 1)


# *** comparisons: exact on integers, by value on floats ***
def _compared(a: Any, b: Any) -> tuple[Interval, Interval] | None:
    """Bounds of both sides in the dtype in which they are compared; None where a conversion may round."""
    if a.dtype is not b.dtype:
        joint = least_upper_dtype(a.dtype, b.dtype)
        if joint.is_float:
            sides = tuple(_literal_at(s, joint) for s in (a, b))
            return None if None in sides else sides  # type: ignore[return-value]
    return (a.vmin, a.vmax), (b.vmin, b.vmax)


def _literal_at(s: Any, dtype: DType) -> Interval | None:
    if s.dtype is dtype:
        return s.vmin, s.vmax
    return None if s.op is not Ops.CONST or s.arg is Invalid else (dtype.const(s.arg),) * 2


def _is_nan(s: Any) -> bool:
    return bool(s.dtype.is_float and math.isnan(s.vmin))


def _cmplt(u: Any) -> Interval:
    if (sides := _compared(*u.src)) is None:
        return False, True
    (a0, a1), (b0, b1) = sides
    return bool(a1 < b0), bool(a0 < b1)


def _cmpne(u: Any) -> Interval:
    if (sides := _compared(*u.src)) is None:
        return False, True
    (a0, a1), (b0, b1) = sides
    if isinstance(a0, float) or isinstance(b0, float):
        # float() because literals compare by bits: -0.0 differs from 0.0 and NaN equals itself
        a0, a1, b0, b1 = float(a0), float(a1), float(b0), float(b1)
        if math.isnan(a0) or math.isnan(b0):
            return True, True
    return bool(a1 < b0 or b1 < a0), not a0 == a1 == b0 == b1


def _cmpeq(u: Any) -> Interval:
    lo, hi = _cmpne(u)
    return not hi, not lo


# *** selection and structure ***
def _is_invalid(s: Any) -> bool:
    return s.op is Ops.CONST and s.arg is Invalid


def _where(u: Any) -> Interval:
    cond, x, y = u.src
    dtype = u.dtype
    if dtype.is_float:
        return full_range(dtype)
    if cond.vmin == cond.vmax:
        x = y = x if cond.vmin else y
    if _is_invalid(x):
        x = y
    if _is_invalid(y):
        y = x
    (a0, a1), (b0, b1) = _operand(x, dtype), _operand(y, dtype)
    if dtype is dtypes.bool:
        return bool(a0 and b0), bool(a1 or b1)
    return min(a0, b0), max(a1, b1)


def _first(u: Any) -> Interval:
    return u.src[0].vmin, u.src[0].vmax


def _stack(u: Any) -> Interval:
    dtype = u.dtype
    if not u.src or any(_is_nan(s) or _is_invalid(s) for s in u.src):
        return full_range(dtype)
    bounds = [_operand(s, dtype) if not dtype.is_float or s.dtype is dtype else full_range(dtype) for s in u.src]
    return min(b[0] for b in bounds), max(b[1] for b in bounds)


def _const(u: Any) -> Interval:
    return full_range(u.dtype) if u.arg is Invalid else (u.arg, u.arg)


def _storage(u: Any) -> Interval:
    return full_range(u.dtype) if u.arg.vmin_vmax is None else u.arg.vmin_vmax


def _counter(u: Any) -> Interval:
    return full_range(u.dtype) if u.dtype is dtypes.void else (0, u.src[0].vmax - 1)


# *** conversions ***
def _cast(u: Any) -> Interval:
    x, dtype = u.src[0], u.dtype
    if _is_invalid(x):
        return full_range(dtype)
    if dtype.is_float:
        return _cast_to_float(x, dtype)
    lo, hi = x.vmin, x.vmax
    if dtype is dtypes.bool:
        return bool(lo > 0 or hi < 0 or _is_nan(x)), not lo == hi == 0
    if not x.dtype.is_float:
        return _clip(int(lo), int(hi), dtype)
    # float to integer truncates and saturates, NaN gives 0
    return (0, 0) if _is_nan(x) else (_saturate(lo, dtype), _saturate(hi, dtype))


def _saturate(x: float, dtype: DType) -> int:
    lo, hi = full_range(dtype)
    if math.isinf(x):
        return int(hi if x > 0 else lo)
    return int(min(max(math.trunc(x), lo), hi))


def _cast_to_float(x: Any, dtype: DType) -> Interval:
    """Rounding is monotonic, except that fp8 formats turn a large value into NaN."""
    lo, hi = x.vmin, x.vmax
    if dtype in dtypes.fp8s and not lo == hi or x.dtype.is_float and not (lo == hi or _is_nan(x)):
        return full_range(dtype)
    try:
        return dtype.const(float(lo)), dtype.const(float(hi))
    except OverflowError:  # a weakint beyond the range of a double
        return full_range(dtype)


_RULES: dict[Ops, Callable[[Any], Interval]] = {
    Ops.ADD: _add, Ops.SUB: _sub, Ops.NEG: _neg, Ops.MUL: _mul, Ops.MAX: _max, Ops.TRUNC: _trunc,
    Ops.CDIV: _cdiv, Ops.FLOORDIV: _floordiv, Ops.CMOD: _cmod, Ops.FLOORMOD: _floormod,
    Ops.SHL: _shl, Ops.SHR: _shr, Ops.AND: _and, Ops.OR: _or, Ops.XOR: _xor,
    Ops.CMPLT: _cmplt, Ops.CMPNE: _cmpne, Ops.CMPEQ: _cmpeq, Ops.WHERE: _where,
    Ops.AFTER: _first, Ops.INDEX: _first, Ops.RESHAPE: _first, Ops.PERMUTE: _first, Ops.EXPAND: _first,
    Ops.FLIP: _first, Ops.STACK: _stack, Ops.CONST: _const, Ops.PARAM: _storage, Ops.BUFFER: _storage,
    Ops.RANGE: _counter, Ops.SPECIAL: _counter, Ops.CAST: _cast,
}
