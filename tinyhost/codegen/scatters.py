"""Reductions over what an index picks become one pass that combines in place.

``out[i, k] = sum over j of (idx[j] == i ? x[j, k] : 0)``, the gradient of a look-up and what scatters are made of,
looks at every pair of i and j. Here the outputs are set first, then ``out[idx[j], k] += x[j, k]`` runs over j in order,
so the work is that of one look at each x. What is added, and to what, is the same; the order of each sum is that of j.
Products and maxima likewise.

Takes the lowered small kernel of one store; gives it with two nests, or as it was. The loop over j has an expression as
its length, which is what keeps Opts from cutting it: two of its steps may meet in one place.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.memory import UNUSED
from tinyhost.dtype import dtypes
from tinyhost.helpers import prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp
from tinyhost.uop.rules.common import clauses, conjunction, literal, logical_not, negated
from tinyhost.uop.rules.free_ranges import put

STEP = 6  # instructions of a step in place beside its arithmetic: the index, its bounds, waiting for the last store
_NEUTRAL = {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: None}


@dataclass(frozen=True)
class _Picked:
    """A reduction of the values whose index is the output's number along ``axis``."""

    axis: UOp
    at: UOp
    conditions: list[UOp]
    value: UOp
    neutral: UOp


def scatter_sums(sink: UOp, caps: Capabilities) -> UOp:
    """The kernel with a reduction of picked values as a pass that combines in place."""
    end = sink.src[0] if len(sink.src) == 1 else sink
    store = end.src[0] if end.op is Ops.END else sink
    if caps.grid or store.op is not Ops.STORE or len(store.src) != 2 or store.src[0].op is not Ops.INDEX:
        return sink
    place, value = store.src
    total, other = _parts(value)
    if total is None or place.src[0].op is not Ops.PARAM or _is_gated(place) or place.src[0] in value.toposort():
        return sink
    outputs = [r for r in end.src[1:] if r.op is Ops.RANGE]
    found = _picked(total, outputs)
    if found is None or not _pays(found, outputs, caps) or any(u.op is Ops.END for u in value.toposort()):
        return sink
    first = UOp(Ops.END, (UOp(Ops.STORE, (place, _start(total.arg[0], found.neutral, other))), *end.src[1:]))
    base, r = place.src[0].after(first), found.axis
    index = UOp(Ops.WHERE, (conjunction(found.conditions), put(place.src[1], r, found.at), UOp.invalid()))
    now = UOp(Ops.INDEX, (base, index), None, UNUSED)
    added = UOp(Ops.STORE, (UOp(Ops.INDEX, (base, index)), UOp(total.arg[0], (now, found.value))))
    inner = [s for s in end.src[1:] if s is not r]
    return sink.replace(src=(_with_own_ranges(added, list(total.src[1:]), inner, first),))


def _pays(found: _Picked, outputs: list[UOp], caps: Capabilities) -> bool:
    """Whether a step in place costs less than comparing one index with all outputs, in vectors and on all threads."""
    lanes = max(1, caps.vector_bytes // found.value.dtype.itemsize)
    inner = prod(int(r.src[0].vmax) for r in outputs if r is not found.axis) / lanes
    return bool(found.axis.src[0].const_value * inner / caps.threads > STEP + 3 * max(inner, 1))


def _parts(value: UOp) -> tuple[UOp | None, UOp | None]:
    """(a REDUCE, what else is combined with it by its own op)."""
    if value.op is Ops.REDUCE:
        return value, None
    for total, other in (value.src, value.src[::-1]) if value.op in _NEUTRAL else ():
        if total.op is Ops.REDUCE and total.arg[0] is value.op and total not in other.toposort():
            return total, other
    return None, None


def _start(op: Ops, neutral: UOp, other: UOp | None) -> UOp:
    """What an output is before anything is combined with it; a sum of nothing is +0, which makes +0 of -0."""
    if other is None:
        return neutral
    return UOp(op, (other, neutral)) if op is not Ops.MUL else other


def _picked(total: UOp, outputs: list[UOp]) -> _Picked | None:
    op, x = total.arg[0], total.src[0]
    if op not in _NEUTRAL or x.op is not Ops.WHERE or x.dtype is dtypes.bool:
        return None
    if any(not s.src[0].is_const or s.arg[-1] is not AxisType.REDUCE for s in total.src[1:]):
        return None
    cond, a, b = x.src
    for c, yes, no in ((cond, a, b), (logical_not(cond), b, a)):
        if not _is_neutral(op, no, yes):
            continue
        terms = clauses(c)
        for i, term in enumerate(terms):
            found = _equality(term, outputs)
            if found is None or not any(s in found[1].ranges for s in total.src[1:]) or found[0] in found[1].ranges:
                continue
            r, at = found
            inside = [UOp(Ops.CMPLT, (UOp.const(-1), at)), UOp(Ops.CMPLT, (at, r.src[0]))]
            safe = UOp(Ops.WHERE, (conjunction(inside), at, UOp.invalid()))
            others = [_at(t, r, at, safe) for t in terms[:i] + terms[i + 1:]]
            return _Picked(r, at, [*inside, *others], _at(yes, r, at, safe), no)
    return None


def _is_neutral(op: Ops, no: UOp, yes: UOp) -> bool:
    """Whether a reduction of ``yes`` and ``no`` values is that of the ``yes`` values and one ``no``."""
    known = literal(no)
    if known is None:
        return False
    if op is Ops.MAX:
        return bool(known == no.dtype.min or no.dtype.is_int and yes.vmin >= known)
    return bool(known == _NEUTRAL[op]) and str(known) != "-0.0"


def _at(u: UOp, r: UOp, at: UOp, safe: UOp) -> UOp:
    """``u`` where the output's number is ``at``; what it reads by that number is gated."""
    def gated(n: UOp, new: Callable[[UOp], UOp]) -> UOp | None:
        if n.op is not Ops.INDEX or not any(r in s.ranges for s in n.src[1:]):
            return None
        return UOp(Ops.INDEX, (new(n.src[0]), *[put(s, r, safe) for s in n.src[1:]]), n.arg, n.tag)
    return put(u, r, at, gated)


def _equality(c: UOp, outputs: list[UOp]) -> tuple[UOp, UOp] | None:
    """(RANGE, index) of a clause that holds where an output RANGE equals an index."""
    ne = negated(c)
    cmp = ne if ne is not None and ne.op is Ops.CMPNE else c if c.op is Ops.CMPEQ else None
    if cmp is None:
        return None
    for side, other in (cmp.src, cmp.src[::-1]):
        r = side.src[0] if side.op is Ops.CAST and side.dtype.is_int else side
        if r in outputs and other.dtype.is_int and r.src[0].is_const:
            return r, other.cast(dtypes.weakint)
    return None


def _is_gated(place: UOp) -> bool:
    return len(place.src) != 2 or place.src[1].op is Ops.WHERE and place.src[1].src[2].is_invalid


def _with_own_ranges(store: UOp, ordered: list[UOp], inner: list[UOp], first: UOp) -> UOp:
    """``store`` in loops of its own: the ``ordered`` ones outermost, uncut, then the ``inner`` ones."""
    top = 1 + max(u.arg[0] for u in (*store.toposort(), *first.toposort()) if u.op is Ops.RANGE)
    swap = {}
    for i, s in enumerate((*ordered, *inner)):
        bound = UOp(Ops.WHERE, (UOp.const(True), s.src[0], s.src[0])) if s in ordered else s.src[0]
        swap[s] = UOp(Ops.RANGE, (bound,), (top + i, AxisType.WEAK))
    done: dict[UOp, UOp] = dict(swap)
    for u in store.toposort(gate=lambda u: u is not first):
        if u not in done:
            done[u] = u if u is first else UOp(u.op, tuple([done.get(s, s) for s in u.src]), u.arg, u.tag)
    return UOp(Ops.END, (done[store], *swap.values()))
