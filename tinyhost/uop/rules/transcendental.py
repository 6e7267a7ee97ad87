"""EXP2, LOG2, SIN and what is made of them as polynomials, for targets without such instructions.

Takes one node of float32 or float64 (narrower floats go through float32) and gives straight-line arithmetic on the
same dtype: no tables in memory, no branches, no conversions on the common path, so that vector code stays vector
code. Errors measured against exact values are at most 2 ulp, with and without a fused multiply-add, for every finite
argument (``docs/accuracy.md``). NaN, infinities, zeros of either sign and subnormal numbers come out as IEEE 754 wants
them. Polynomial steps are MULACC, so they contract where the target has a fused multiply-add.

There is no op for e**x, log, log10, cos and tan: the mixin writes them in terms of EXP2, LOG2 and SIN, with the errors
that the formulas have when they are computed as written. ``replace_formulas`` finds those formulas before their ops are
rewritten, on every target, and puts the function itself in their place. So it does with the longer formulas of
``FORMULAS``, which are right as they are written, but not as short.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rewrite import graph_rewrite
from tinyhost.uop.rules.angle import reduced
from tinyhost.uop.rules.build import add, and_, bits, differs, fma, mul, shl, shr, where, xor
from tinyhost.uop.rules.common import literal
from tinyhost.uop.rules.double_word import fast_sum
from tinyhost.uop.rules.exp_polynomials import (
    erf,
    exp,
    exp2,
    exp_up_to_zero,
    expm1,
    half_exp,
    sigmoid,
    tanh,
)
from tinyhost.uop.rules.float_format import FLOAT32, FORMATS, Format, magnitude, polynomial
from tinyhost.uop.rules.log_polynomials import log, log1p, log1p_up_to_one, log2, log10


# *** trigonometry ***
def _sine(r: UOp, count: UOp, sign: UOp, fmt: Format) -> UOp:
    """sin(count * pi/2 + r) for |r| up to pi/4, with the sign bit of ``sign`` changed."""
    one = UOp.const(1, fmt.bits)
    square = mul(r, r)
    of_even = fma(mul(r, square), polynomial(square, fmt.sin), r)
    of_odd = fma(square, polynomial(square, fmt.cos), UOp.const(1.0, fmt.dtype))
    value = where(differs(and_(count, one), UOp.const(0, fmt.bits)), of_odd, of_even)
    return bits(xor(bits(value, fmt.bits), xor(sign, shl(shr(count, 1), fmt.width - 1))), fmt.dtype)


def sin(x: UOp, fmt: Format, wide: bool) -> UOp:
    """sin(|x|) with the sign of x; ``wide`` says whether the target has float64."""
    sign, size = magnitude(x, fmt)
    r, _, count = reduced(size, fmt, wide)
    return _sine(r, count, sign, fmt)


def cos(x: UOp, fmt: Format, wide: bool) -> UOp:
    """sin(|x| + pi/2); the reduction is that of sin(x)."""
    _, size = magnitude(x, fmt)
    r, _, count = reduced(size, fmt, wide)
    return _sine(r, add(count, UOp.const(1, fmt.bits)), UOp.const(0, fmt.bits), fmt)


def tan(x: UOp, fmt: Format, wide: bool) -> UOp:
    """tan(k*pi/2 + r) = tan(r) for even k, else -1 / tan(r)."""
    dt = fmt.dtype
    sign, size = magnitude(x, fmt)
    r, rest, count = reduced(size, fmt, wide, with_rest=True)
    square = mul(r, r)
    bend = mul(mul(r, square), polynomial(square, fmt.tan))
    t = add(r, bend)
    # tan(r + rest) = tan(r) + rest * (1 + tan(r)**2)
    t, lost = fast_sum(r, fma(rest, fma(t, t, UOp.const(1.0, dt)), bend))
    odd = differs(and_(count, UOp.const(1, fmt.bits)), UOp.const(0, fmt.bits))
    q = UOp(Ops.FDIV, (UOp.const(-1.0, dt), t))
    t = where(odd, fma(mul(q, q), lost, q), t)  # -1 / (t + lost)
    return bits(xor(bits(t, fmt.bits), sign), dt)


# *** rules ***
def work_dtype(dtype: DType) -> DType | None:
    """The type in which a float function of ``dtype`` is computed, None for integers."""
    if dtype is dtypes.weakfloat:
        dtype = dtypes.default_float
    return dtype if dtype in FORMATS else dtypes.float32 if dtype.is_float else None


def _computed(fn: Callable[[UOp, Format], UOp], x: UOp) -> UOp | None:
    """``fn`` of a float, evaluated in float32 where it is narrow and in the default float where it is weak."""
    work = work_dtype(x.dtype)
    return fn(x.cast(work), FORMATS[work]).cast(x.dtype) if work is not None else None


def _exp2(x: UOp) -> UOp | None:
    return _computed(exp2, x)


def _log2(x: UOp) -> UOp | None:
    return _computed(log2, x)


def _sin(x: UOp) -> UOp | None:
    return _computed(lambda y, fmt: sin(y, fmt, False), x)


def _sin_wide(x: UOp) -> UOp | None:
    return _computed(lambda y, fmt: sin(y, fmt, True), x)


def unary_rules(wide: bool) -> dict[Ops, list[tuple[UPat, Callable[[UOp], UOp | None]]]]:
    """exp2, log2, sin -> polynomial, for targets with float64 (``wide``) or without."""
    fns = {Ops.EXP2: _exp2, Ops.LOG2: _log2, Ops.SIN: _sin_wide if wide else _sin}
    return {op: [(UPat(op, src=(UPat(name="x"),)), fn)] for op, fn in fns.items()}


def _factor(u: UOp, x: UOp, c: UOp) -> tuple[float, Callable[[float], float]] | None:
    """(a literal factor as it is in the type of ``u``, the rounding to that type), None where this is no formula."""
    work, factor = work_dtype(u.dtype), literal(c)
    if work is None or factor is None or literal(x) is not None or x.dtype is not u.dtype:
        return None
    rounded = truncate[work]
    return rounded(factor), rounded


def _natural_exponential(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """2**(x * log2(e)) -> e**x, likewise e**-x."""
    found = _factor(u, x, c)
    if found is None or abs(found[0]) != found[1](1 / math.log(2)):
        return None
    sign = math.copysign(1.0, found[0])
    if sign > 0 and _is_up_to_zero(x):
        return _computed(exp_up_to_zero, x)
    return _computed(lambda y, fmt: exp(y, sign, fmt), x)


def _is_up_to_zero(x: UOp) -> bool:
    """Whether x can be seen to be 0, negative or NaN."""
    return x.vmax <= 0 or _is_minus_magnitude(x) or _is_below_maximum(x)


def _is_minus_magnitude(x: UOp) -> bool:
    """Whether x is -|y|: y where y < 0, else -y, or the other way round; or the negated maximum of y and -y."""
    if x.op is Ops.MUL and literal(x.src[1]) == -1:
        y = x.src[0]
        if y.op is Ops.WHERE and literal(y.src[2]) == 0:
            y = y.src[1]
        return y.op is Ops.MAX and y.src[1].op is Ops.MUL and y.src[1].src[0] is y.src[0] \
            and literal(y.src[1].src[1]) == -1
    if x.op is not Ops.WHERE or x.src[0].op is not Ops.CMPLT:
        return False
    (a, b), yes, no = x.src[0].src, x.src[1], x.src[2]
    if literal(a) == 0:  # 0 < y
        yes, no, a, b = no, yes, b, a
    return literal(b) == 0 and yes is a and no.op is Ops.MUL and no.src[0] is a and literal(no.src[1]) == -1


def _is_below_maximum(x: UOp) -> bool:
    """Whether x is y - max(y), the maximum being over an axis of y, as in a softmax."""
    if x.op is not Ops.ADD or x.src[1].op is not Ops.MUL or literal(x.src[1].src[1]) != -1:
        return False
    top = x.src[1].src[0]
    if top.op is not Ops.REDUCE or top.arg[0] is not Ops.MAX:
        return False
    todo, seen = [(top.src[0], x.src[0])], set()
    while todo:
        pair = a, b = todo.pop()
        if a is b or pair in seen:
            continue
        seen.add(pair)
        if a.op is not b.op or a.op is Ops.RANGE and (a not in top.src[1:] or a.src[0] is not b.src[0]):
            return False
        if a.op is not Ops.RANGE:
            if a.arg != b.arg or len(a.src) != len(b.src):
                return False
            todo += zip(a.src, b.src)
    return True


def _logarithm_of_base(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """log2(x) * log(2) -> log(x), log2(x) * log10(2) -> log10(x)."""
    found = _factor(u, x, c)
    for fn, exact in ((log, math.log(2)), (log10, math.log10(2))):
        if found is not None and found[0] == found[1](exact):
            return _computed(fn, x)
    return None


def _argument_of_cos(u: UOp) -> UOp | None:
    """x where ``u`` is 1 - 2*sin(x/2)**2 as the mixin writes it: ADD(MUL(MUL(s, s), -2), 1)."""
    if u.op is not Ops.ADD or literal(u.src[1]) != 1.0 or u.src[0].op is not Ops.MUL:
        return None
    square, factor = u.src[0].src
    if literal(factor) != -2.0 or square.op is not Ops.MUL or square.src[0] is not square.src[1]:
        return None
    s = square.src[0]
    if s.op is not Ops.SIN or (half := s.src[0]).dtype is not u.dtype:
        return None
    if half.op is Ops.MUL and literal(half.src[1]) == 0.5:
        return half.src[0] if half.src[0].dtype is u.dtype else None
    return add(half, half)


def _cosine(u: UOp, wide: bool) -> UOp | None:
    """1 - 2*sin(x/2)**2 -> cos(x)."""
    x = _argument_of_cos(u)
    return _computed(lambda y, fmt: cos(y, fmt, wide), x) if x is not None else None


def _tangent(u: UOp, x: UOp, y: UOp, wide: bool) -> UOp | None:
    """sin(x) / cos(x) -> tan(x)."""
    if x.dtype is not u.dtype or _argument_of_cos(y) is not x:
        return None
    return _computed(lambda y, fmt: tan(y, fmt, wide), x)


def _cosine_narrow(u: UOp) -> UOp | None:
    return _cosine(u, False)


def _cosine_wide(u: UOp) -> UOp | None:
    return _cosine(u, True)


def _tangent_narrow(u: UOp, x: UOp, y: UOp) -> UOp | None:
    return _tangent(u, x, y, False)


def _tangent_wide(u: UOp, x: UOp, y: UOp) -> UOp | None:
    return _tangent(u, x, y, True)


# *** formulas of the mixin ***
_CORES = (Ops.EXP2, Ops.LOG2)  # what few other graphs have
Path = tuple[tuple[Ops, int], ...]
"""A way down in a graph: ops and numbers of their sources."""
Readers = dict[UOp, list[UOp]]
"""EXP2 and LOG2 nodes and who reads them."""


def _log1p(x: UOp, fmt: Format) -> UOp:
    """log(1 + x), of which log(1 + e**-|y|) needs a polynomial only."""
    if x.op is Ops.EXP2 and fmt is FLOAT32 and x.src[0].op is Ops.MUL:
        y, factor = x.src[0].src
        if isinstance(c := literal(factor), float) and c > 0 and _is_up_to_zero(y):
            return log1p_up_to_one(x)
    return log1p(x, fmt)


FORMULAS: dict[str, tuple[Callable[[UOp], UOp], Callable[[UOp, Format], UOp]]] = {
    "sigmoid": (lambda x: x.sigmoid(), sigmoid), "tanh": (lambda x: x.tanh(), tanh), "erf": (lambda x: x.erf(), erf),
    "expm1": (lambda x: x.expm1(), expm1), "log1p": (lambda x: x.log1p(), _log1p),
    "half_exp": (lambda x: x._half_exp(), half_exp)}
"""What the mixin writes for a function, and the function itself."""


@functools.cache
def _paths(op: Ops, dtype: DType) -> tuple[tuple[str, Path, Path], ...]:
    """The formulas whose last op is ``op``; the way from there to EXP2 or LOG2, and from that to the argument."""
    x = UOp.param(0, dtype)
    found = []
    for name, (formula, _) in FORMULAS.items():
        if (root := formula(x)).op is op:
            core = next(u for u in root.toposort() if u.op in _CORES)
            found.append((name, _path(root, core), _path(core, x)))
    return tuple(found)


def _path(root: UOp, leaf: UOp) -> Path:
    """A shortest way down from ``root`` to ``leaf``."""
    ways: dict[UOp, Path] = {root: ()}
    for u in (queue := [root]):
        for i, s in enumerate(u.src):
            if s not in ways:
                ways[s] = (*ways[u], (u.op, i))
                queue.append(s)
    return ways[leaf]


def _followed(u: UOp, path: Path) -> UOp | None:
    """The node at the end of a way down from ``u``, None where it is another one."""
    for op, i in path:
        if u.op is not op:
            return None
        u = u.src[i]
    return u


def _formula(u: UOp, ctx: Readers | None) -> UOp | None:
    """What the mixin wrote for a function of some x -> that function of x.

    Not where others read its exponential or logarithm too, as gradients do: it is there, so the formula is short.
    """
    if u.dtype not in FORMATS:
        return None
    for name, to_core, to_argument in _paths(u.op, u.dtype):
        core = _followed(u, to_core)
        x = _followed(core, to_argument) if core is not None and core.op in _CORES else None
        if core is None or x is None or x.dtype is not u.dtype or literal(x) is not None:
            continue
        formula, fn = FORMULAS[name]
        if formula(x) is u:
            readers = ctx.get(core, ()) if ctx is not None else ()
            return fn(x, FORMATS[u.dtype]) if len(readers) < 2 or u.toposort().keys() >= {*readers} else None
    return None


@functools.cache
def named_functions(wide: bool) -> PatternMatcher:
    """Formulas of EXP2, LOG2 and SIN -> the functions that they stand for; to be run users first.

    ``wide`` says whether the target has float64, in which angles of float32 are reduced.
    """
    natural = UPat(Ops.MUL, src=[UPat(name="x"), UPat.cvar("c")])
    quotient = UPat(Ops.FDIV, src=(UPat(Ops.SIN, src=(UPat(name="x"),)), UPat(Ops.ADD, name="y")), name="u")
    return PatternMatcher([
        (UPat(Ops.EXP2, src=(natural,), name="u"), _natural_exponential),
        (UPat(Ops.MUL, src=[UPat(Ops.LOG2, src=(UPat(name="x"),)), UPat.cvar("c")], name="u"), _logarithm_of_base),
        (quotient, _tangent_wide if wide else _tangent_narrow),
        (UPat(Ops.ADD, name="u"), _cosine_wide if wide else _cosine_narrow),
        (UPat(Ops.WHERE, name="u"), _formula),
        (UPat(Ops.MUL, src=(UPat(Ops.WHERE), UPat(Ops.RECIPROCAL)), name="u"), _formula)])


def replace_formulas(sink: UOp, wide: bool) -> UOp:
    """The kernel with the functions that its formulas stand for; ``wide`` says whether the target has float64."""
    readers: Readers = {}
    for u in sink.toposort():
        for s in u.src:
            if s.op in _CORES:
                readers.setdefault(s, []).append(u)
    return graph_rewrite(sink, named_functions(wide), ctx=readers, bottom_up=True, name="named functions")
