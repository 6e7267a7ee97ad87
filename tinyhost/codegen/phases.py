"""Loops that step through remainders become loops over quotients and remainders.

The gradient of a convolution with a stride reads element ``(y + tap) // s`` where ``(y + tap) % s`` is 0. With
``y = s * q + p`` both are linear in ``q``, and what a remainder ``p`` reads is decided outside of the loop over ``q``.
"""
from __future__ import annotations

from tinyhost.codegen.nests import ranges_of, split_ranges
from tinyhost.codegen.strides import Linear, linear
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp

PHASES_MOST = 4  # remainders that are loops of their own
_DIVIDING = frozenset({Ops.FLOORMOD, Ops.FLOORDIV})


def split_phases(sink: UOp) -> UOp:
    """The kernel with the output RANGEs split whose remainders, together with other RANGEs, decide what is read."""
    nodes = sink.toposort()
    if not any(u.op is Ops.FLOORMOD for u in nodes):
        return sink
    memo: dict[UOp, Linear] = {}
    counts: dict[UOp, int] = {}
    outputs = {r for u in nodes if u.op is Ops.END for r in ranges_of(u)}
    for u in nodes:
        if u.op is Ops.FLOORMOD and u.src[1].op is Ops.CONST and u.dtype is dtypes.weakint:
            form, m = linear(u.src[0], memo), int(u.src[1].arg)
            if 1 < m <= PHASES_MOST and not form.opaque and len(form.terms) > 1:
                counts |= {r: m for r, c in form.terms.items() if r in outputs and _divides(m, r) and c % m}
    return _split(sink, nodes, counts) if counts else sink


def _divides(m: int, r: UOp) -> bool:
    return bool(r.src[0].is_const and r.src[0].const_value % m == 0 and r.src[0].const_value > m)


def _split(sink: UOp, nodes: dict[UOp, None], counts: dict[UOp, int]) -> UOp:
    memo: dict[UOp, Linear] = {}
    return split_ranges(sink, nodes, counts,
                        lambda u, new, parts: _divided(new, memo) if new is not u and new.op in _DIVIDING else new)


def _divided(u: UOp, memo: dict[UOp, Linear]) -> UOp:
    """``(m*a + b) // m`` is ``a + b // m``, and its remainder is ``b % m``."""
    if u.src[1].op is not Ops.CONST:
        return u
    form, m = linear(u.src[0], memo), int(u.src[1].arg)
    if form.opaque or all(c % m for c in form.terms.values()):
        return u
    rest = _sum({r: c for r, c in form.terms.items() if c % m}, form.const % m)
    small = UOp(u.op, (rest, u.src[1]))
    if u.op is Ops.FLOORMOD:
        return small
    return _sum({r: c // m for r, c in form.terms.items() if c % m == 0}, form.const // m) + small


def _sum(terms: dict[UOp, int], const: int) -> UOp:
    out = UOp.const(const)
    for r, c in terms.items():
        term = r if c == 1 else r * c
        out = term if out.op is Ops.CONST and out.arg == 0 else out + term
    return out
