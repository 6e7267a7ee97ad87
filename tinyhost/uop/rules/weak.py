"""Commits weak dtypes to widths, inside kernels.

Takes a kernel whose literals and index math are weak (width not decided) and gives one where weak dtypes survive only
on literals under a CAST. Sources come first: a decided node that was weak stands as CAST(weak, strong), and its
consumer takes the strong node at the width it needs:

- beside a strong operand: the dtype of the node; in a comparison the joint dtype of both sides; in a WHERE that of the
  arms
- without one: int32 where the bounds of the node and of its operands fit, else int64; the default float
- STORE and LOAD's alternative: the dtype of the memory; an index: int32 unless its bounds need int64

Weak float math under a CAST or beside a strong float runs at the join of that float and the default: a CAST is a floor.
Weak integer math never overflows the width its bounds chose, so it needs no floor.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from tinyhost.dtype import DType, dtypes, least_upper_dtype
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rewrite import graph_rewrite
from tinyhost.uop.rules.common import is_gated, is_invalid

_INT32 = (dtypes.int32.min, dtypes.int32.max)
_SHIFTS = (Ops.SHL, Ops.SHR)


def index_dtype(*nodes: UOp) -> DType:
    """int32 where the bounds of all nodes fit, else int64."""
    for u in nodes:
        lo, hi = u.bounds
        if lo < _INT32[0] or hi > _INT32[1]:
            return dtypes.int64
    return dtypes.int32


def _strong(s: UOp) -> UOp:
    """The decided node behind CAST(weak, x)."""
    return s.src[0] if s.op is Ops.CAST and s.arg.is_weak else s


def _at(s: UOp, dtype: DType) -> UOp:
    """``s`` as an operand of ``dtype``."""
    if is_invalid(s):
        return s
    return UOp.cconst(s.arg, dtype) if s.op is Ops.CONST else _strong(s).cast(dtype)


def _width(u: UOp, operands: tuple[UOp, ...], joint: DType) -> DType:
    """Width of a node all of whose operands are weak (or bool)."""
    if joint.is_float:
        out = dtypes.default_float
    else:
        out = index_dtype(*([u, *operands] if u.dtype.is_int else operands))
    for s in operands:
        x = _strong(s)
        if not x.dtype.is_weak and x.dtype is not dtypes.bool and not (joint.is_float and not x.dtype.is_float):
            out = least_upper_dtype(out, x.dtype)
    return dtypes.int64 if out.is_weak else out  # uint64 beside signed operands joins to a weak float


# *** leaves ***
def lower_counter(u: UOp) -> UOp | None:
    """range(n), weak -> cast(weak, range(int32 n))"""
    if u.dtype is not dtypes.weakint:
        return None
    dtype = index_dtype(u.src[0])
    bound = _at(u.src[0], dtype)
    return UOp(u.op, (bound, *map(_strong, u.src[1:])), u.arg, u.tag).cast(dtypes.weakint)


def lower_scalar(u: UOp) -> UOp | None:
    """Variable n, weak -> cast(weak, int32 Variable n)"""
    if u.arg.dtype is not dtypes.weakint:
        return None
    return UOp(u.op, (), replace(u.arg, dtype=index_dtype(u)), u.tag).cast(dtypes.weakint)


# *** arithmetic ***
def lower_alu(u: UOp) -> UOp | None:
    """op(strong, weak) -> op at the strong dtype; op(weak, weak) -> cast(weak, op at the width of its bounds)"""
    first = 1 if u.op is Ops.WHERE else 0
    operands = u.src[first:]
    if not any(s.dtype.is_weak for s in operands):
        return None
    if u.op in _SHIFTS:
        return _lower_shift(u)
    compares = u.op in GroupOp.Comparison
    valued = tuple(s for s in operands if not is_invalid(s))
    joint = least_upper_dtype(*[s.dtype for s in valued]) if compares else u.dtype
    dtype = _width(u, valued, joint) if joint.is_weak else joint
    out = UOp(u.op, (*u.src[:first], *[_at(s, dtype) for s in operands]), u.arg, u.tag)
    return out.cast(joint) if joint.is_weak and not compares else out


def _lower_shift(u: UOp) -> UOp:
    x, count = u.src
    joint = least_upper_dtype(x.dtype, count.dtype) if x.dtype.is_weak else x.dtype
    dtype = _width(u, (x,), joint) if joint.is_weak else joint
    if count.op is Ops.CONST and not is_invalid(count):  # any count beyond the width means the same
        amount = UOp.cconst(count.arg if 0 <= count.arg < dtype.bitsize else dtype.bitsize, dtype)
    else:
        amount = _at(count, dtype) if count.dtype.is_weak else count
    out = UOp(u.op, (_at(x, dtype), amount), u.arg, u.tag)
    return out.cast(x.dtype) if joint.is_weak else out


def lower_stack(u: UOp) -> UOp | None:
    """stack(weak ..) -> cast(weak, stack at the width of its bounds); stack(strong, weak) -> stack at the strong
    dtype"""
    if not any(s.dtype.is_weak for s in u.src):
        return None
    dtype = _width(u, u.src, u.dtype) if u.dtype.is_weak else u.dtype
    out = UOp(Ops.STACK, tuple(_at(s, dtype) for s in u.src), u.arg, u.tag)
    return out.cast(u.dtype) if u.dtype.is_weak else out


def lower_cast(u: UOp, x: UOp) -> UOp | None:
    """cast(dt, cast(weak, x)) -> cast(dt, x); cast(weak float, cast(weak int, x)) -> cast(weak float, default float of
    x)"""
    if not x.arg.is_weak or x.src[0].dtype.is_weak:
        return None
    inner = x.src[0]
    if not u.arg.is_weak:
        return inner.cast(u.arg)
    if u.arg is x.arg:
        return x
    return inner.cast(dtypes.default_float if u.arg.is_float else index_dtype(u)).cast(u.arg)


def lower_bitcast(u: UOp, x: UOp) -> UOp | None:
    """bitcast(cast(weak, x)) -> bitcast(x at the default width)"""
    if not x.dtype.is_weak:
        return None
    return _at(x, dtypes.default_float if x.dtype.is_float else dtypes.default_int).bitcast(u.arg)


def lower_passthrough(u: UOp, x: UOp) -> UOp | None:
    """after(cast(weak, x), deps) -> cast(weak, after(x, deps)); the same for reduce"""
    if not x.arg.is_weak:
        return None
    return UOp(u.op, (x.src[0], *map(_strong, u.src[1:])), u.arg, u.tag).cast(x.arg)


def strip_ranges(u: UOp) -> UOp | None:
    """end(x, cast(weak, r)) -> end(x, r)"""
    src = (u.src[0], *[_strong(s) for s in u.src[1:]])
    return UOp(u.op, src, u.arg, u.tag) if any(a is not b for a, b in zip(src, u.src)) else None


# *** memory ***
def _index(s: UOp, numel: int | None) -> UOp:
    """An index at int32 or int64."""
    if is_invalid(s):
        return s
    if s.op is Ops.CONST:
        return UOp.cconst(s.arg, index_dtype(s))
    x = _strong(s)
    if x.dtype is dtypes.int64 and is_gated(x) and numel is not None and numel <= 1 << 31:
        return UOp(Ops.WHERE, (x.src[0], x.src[1].cast(dtypes.int32), x.src[2]))
    if x.dtype in (dtypes.int32, dtypes.int64):
        return x
    wide = x.dtype in (dtypes.uint32, dtypes.uint64)
    return x.cast(dtypes.int64 if wide else dtypes.int32)


def _numel(place: UOp) -> int | None:
    while place.op in (Ops.AFTER, Ops.CAST, Ops.BITCAST):
        place = place.src[0]
    return place.arg.size if place.op in GroupOp.Defines else None


def lower_index(u: UOp) -> UOp | None:
    """x[weak i] -> x[int32 i], int64 where the bounds of i need it"""
    if u.src[0]._addrspace is AddrSpace.ALU:  # a lane of a vector
        return None
    last = 2 if u.op is Ops.SHRINK else len(u.src)
    numel = _numel(u.src[0])
    src = (u.src[0], *[_index(s, numel) for s in u.src[1:last]], *u.src[last:])
    return UOp(u.op, src, u.arg, u.tag) if any(a is not b for a, b in zip(src, u.src)) else None


def lower_load(u: UOp) -> UOp | None:
    """load(place, weak alt, gate) -> load(place, alt at the dtype of the memory, gate)"""
    if len(u.src) < 2 or not u.src[1].dtype.is_weak:
        return None
    return UOp(Ops.LOAD, (u.src[0], _at(u.src[1], u.dtype), *u.src[2:]), u.arg, u.tag)


def lower_store(u: UOp) -> UOp | None:
    """store(place, weak v) -> store(place, v at the dtype of the memory)"""
    place, v = _strong(u.src[0]), u.src[1]
    if place is u.src[0] and not v.dtype.is_weak:
        return None
    return UOp(Ops.STORE, (place, _at(v, place.dtype) if v.dtype.is_weak else v, *u.src[2:]), u.arg, u.tag)


def lower_operands(u: UOp) -> UOp | None:
    """custom(weak x) -> custom(x at the default width)"""
    if not any(s.dtype.is_weak for s in u.src):
        return None
    return UOp(u.op, tuple(_at_default(s) if s.dtype.is_weak else s for s in u.src), u.arg, u.tag)


def _at_default(s: UOp) -> UOp:
    return _at(s, dtypes.default_float if s.dtype.is_float else index_dtype(s))


_WEAK = UPat(Ops.CAST, dtype=dtypes.weaks, name="x")

pm_lower_weak = PatternMatcher([
    (UPat((Ops.RANGE, Ops.SPECIAL), name="u"), lower_counter),
    (UPat(GroupOp.Defines, name="u"), lower_scalar),
    (UPat(GroupOp.ALU, name="u"), lower_alu),
    (UPat(Ops.STACK, name="u"), lower_stack),
    (UPat(Ops.CAST, src=(UPat(Ops.CAST, name="x"),), name="u"), lower_cast),
    (UPat(Ops.BITCAST, src=(UPat(name="x"),), name="u"), lower_bitcast),
    (UPat((Ops.AFTER, Ops.REDUCE), src=(_WEAK,), allow_any_len=True, name="u"), lower_passthrough),
    (UPat((Ops.END, Ops.REDUCE, Ops.STAGE), name="u"), strip_ranges),
    (UPat((Ops.INDEX, Ops.SHRINK), name="u"), lower_index),
    (UPat(Ops.LOAD, name="u"), lower_load),
    (UPat(Ops.STORE, name="u"), lower_store),
    (UPat((Ops.CUSTOM, Ops.CUSTOMI), name="u"), lower_operands),
])


# *** floors: consumers first ***
def _is_weak_float_math(s: UOp) -> bool:
    return s.dtype is dtypes.weakfloat and s.op in GroupOp.ALU


def floor_of_cast(u: UOp, x: UOp) -> UOp | None:
    """cast(dt, weak float math) -> cast(dt, the math at the join of dt and the default float)"""
    if not u.arg.is_float or u.arg.is_weak or not _is_weak_float_math(x):
        return None
    at = least_upper_dtype(u.arg, dtypes.default_float)
    first = 1 if x.op is Ops.WHERE else 0
    src = (*x.src[:first], *[s if is_invalid(s) else s.cast(at) for s in x.src[first:]])
    return UOp(x.op, src, x.arg, x.tag).cast(u.arg)


def floor_of_operand(u: UOp) -> UOp | None:
    """op(strong float, weak float math) -> op(strong float, cast(its dtype, the math)); the same for a stored value"""
    dtype = u.src[0].dtype if u.op is Ops.STORE else u.dtype
    if u.op in GroupOp.Comparison:
        dtype = least_upper_dtype(*[s.dtype for s in u.src])
    if not dtype.is_float or dtype.is_weak or not any(map(_is_weak_float_math, u.src)):
        return None
    return UOp(u.op, tuple(s.cast(dtype) if _is_weak_float_math(s) else s for s in u.src), u.arg, u.tag)


pm_weak_floor = PatternMatcher([
    (UPat(Ops.CAST, src=(UPat(GroupOp.ALU, name="x"),), name="u"), floor_of_cast),
    (UPat(GroupOp.ALU | {Ops.STORE}, name="u"), floor_of_operand),
])


def lower_weak(sink: UOp, name: str = "lower weak") -> UOp:
    """The kernel with every weak dtype committed; weak dtypes survive only on literals under a CAST."""
    floors: Any = pm_weak_floor if any(map(_is_weak_float_math, sink.toposort())) else None
    return graph_rewrite(sink, pm_lower_weak, bpm=floors, name=name)
