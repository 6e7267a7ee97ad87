"""Quotients and remainders of loop indices become loops, or the two cases of an index that wraps once.

What a repetition, an upsampling or a reshape between kernels leaves behind is ``x[r // 4]`` or ``x[r % n]`` over one
long RANGE. With ``r = 4 * q + p`` the first is ``x[q]``: linear, so that vectors, strides and gates see what it is.

A rolled array is ``x[(r + c) % n]``: with at most one wrap that is ``x[r + c]`` or ``x[r + c - n]``, each contiguous.

Takes the simplified small kernel; gives it with such output RANGEs split, once for each divisor, and such loads in two
under their conditions. Reductions keep their ranges: the order of their steps is part of the result.
"""
from __future__ import annotations

from tinyhost.codegen.nests import ranges_of, split_ranges
from tinyhost.codegen.strides import linear
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp

_DIGITS = frozenset({Ops.FLOORDIV, Ops.FLOORMOD})


def split_digits(sink: UOp) -> UOp:
    """The kernel with RANGEs for the digits of its output RANGEs, and no contiguous index that wraps once."""
    return _unwrapped(_with_digits(sink))


def _with_digits(sink: UOp) -> UOp:
    while True:
        nodes = sink.toposort()
        if not any(u.op in _DIGITS for u in nodes):
            return sink
        reduced = {r for u in nodes if u.op is Ops.REDUCE for r in ranges_of(u)}
        outputs = {r for u in nodes if u.op is Ops.END for r in ranges_of(u)} - reduced
        divisors: dict[UOp, int] = {}
        for u in nodes:
            if u.op in _DIGITS and u.src[0] in outputs and u.src[1].op is Ops.CONST:
                r, m = u.src[0], int(u.src[1].arg)
                if r.src[0].is_const and 1 < m < r.src[0].const_value and r.src[0].const_value % m == 0:
                    divisors[r] = min(m, divisors.get(r, m))
        if not divisors:
            return sink
        sink = _split(sink, nodes, divisors)


def _split(sink: UOp, nodes: dict[UOp, None], divisors: dict[UOp, int]) -> UOp:
    def digit(u: UOp, new: UOp, parts: dict[UOp, tuple[UOp, UOp]]) -> UOp:
        split = u.op in _DIGITS and u.dtype is dtypes.weakint and u.src[0] in parts and u.src[1].op is Ops.CONST
        return _digit(u, *parts[u.src[0]], divisors[u.src[0]]) if split else new
    return split_ranges(sink, nodes, divisors, digit)


def _digit(u: UOp, q: UOp, p: UOp, m: int) -> UOp:
    """``(m*q + p) // n`` and ``(m*q + p) % n``."""
    n = int(u.src[1].arg)
    if n == m:
        return q if u.op is Ops.FLOORDIV else p
    if n % m:
        return UOp(u.op, (q * m + p, u.src[1]))
    high = UOp(u.op, (q, UOp.const(n // m)))
    return high if u.op is Ops.FLOORDIV else high * m + p


# *** indices that wrap ***
def _unwrapped(sink: UOp) -> UOp:
    nodes = sink.toposort()
    if not any(u.op is Ops.FLOORMOD for u in nodes):
        return sink
    written = {u.src[0] for u in nodes if u.op is Ops.STORE}
    done: dict[UOp, UOp] = {}
    for u in nodes:
        src = tuple([done.get(s, s) for s in u.src])
        new = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if new.op is Ops.INDEX and len(new.src) == 2 and u not in written:
            new = _two_loads(new)
        if new is not u:
            done[u] = new
    return done.get(sink, sink)


def _two_loads(u: UOp) -> UOp:
    """The load before and behind the wrap of its index, if there is one and it is contiguous on both sides."""
    index = u.src[1]
    mods = [m for m in index.toposort() if m.op is Ops.FLOORMOD]
    if len(mods) != 1 or index.op is Ops.WHERE or mods[0].src[1].op is not Ops.CONST:
        return u
    x, n = mods[0].src[0], int(mods[0].src[1].arg)
    lo, hi = x.bounds
    straight = index.substitute({mods[0]: x}, walk=True)
    form = linear(straight, {})
    if lo < 0 or not n <= hi < 2 * n or form.opaque or all(form.terms.get(r) != 1 for r in x.ranges):
        return u
    before = UOp(Ops.CMPLT, (x, UOp.const(n)))
    behind = UOp(Ops.CMPLT, (UOp.const(n - 1), x))
    wrapped = index.substitute({mods[0]: x - n}, walk=True)
    loads = [UOp(Ops.INDEX, (u.src[0], i.valid(c)), u.arg, u.tag) for i, c in ((straight, before), (wrapped, behind))]
    return UOp(Ops.WHERE, (before, *loads))
