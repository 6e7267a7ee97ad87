"""Sums over overlapping windows: which terms of a REDUCE over zero-padded views can differ from zero.

Takes REDUCE(ADD) whose source is a chain of movement ops and zero paddings; gives a ``Fold``: the value under the
chain, new reduction extents, and the place that each term reads. The gradient of a windowed view (``_pool``) is
such a sum: it runs over repetitions r of an axis of n elements and reads window (r*n + x) // m at offset (r*n + x)
% m, zero outside of (windows, offsets). Because window * m + offset fixes r, the sum runs over windows instead,
without a division:

    sum_r [z // m < K and z % m < O] f(z // m, z % m), z = r*n + x   ->   sum_k [0 <= x - d*k < O] f(k, x - d*k)

where (k*m + o) // n = f*k for all k < K, o < O, and (k*m + o) % n = d*k + o. Nothing is assumed that ranges do not
prove.
"""
from __future__ import annotations

from typing import NamedTuple

from tinyhost.schedule.indexing import Gate, Indexing, Indices, Shape, both, is_static, not_below
from tinyhost.schedule.linear_form import Form, LinearForms
from tinyhost.uop import GroupOp, Ops, UOp

_OUT, _TERM, _WINDOW, _OFFSET = 1 << 20, 2 << 20, 3 << 20, 4 << 20  # ids of stand-in ranges
Bound = tuple[UOp, int]  # 0 <= index < extent


class Fold(NamedTuple):
    """``value`` read at ``indices`` where all ``bounds`` hold, over stand-in ranges ``terms`` and ``outs``."""

    value: UOp
    sizes: Shape
    terms: Indices
    outs: Indices
    indices: Indices
    bounds: tuple[Bound, ...]

    def place(self, math: LinearForms, terms: Indices, outs: Indices) -> tuple[Indices, Gate]:
        """What the term ``terms`` of the result at ``outs`` reads, and where it is not zero."""
        new = {s: math.parse(i) for s, i in zip(self.terms + self.outs, terms + outs) if s.op is Ops.RANGE}
        gate: Gate = None
        for index, extent in self.bounds:
            form = math.replace(index, new)
            lo, hi = math.extent(form)
            i = math.build(form)
            gate = both(gate, not_below(i, 0) if lo < 0 else None)
            gate = both(gate, i < extent if hi >= extent else None)
        return tuple(math.build(math.replace(i, new)) for i in self.indices), gate


def find_fold(indexing: Indexing, u: UOp) -> Fold | None:
    """The fold of a REDUCE, None if it is an ordinary one."""
    if u.arg[0] is not Ops.ADD or not is_static(u.src[0].shape):
        return None
    chain, value = _zero_padded_chain(u.src[0])
    if not any(v.op is Ops.PAD for v in chain):
        return None
    outs = _stand_ins(u.shape, _OUT)
    terms = _stand_ins(u.src[0].shape[:u.arg[1]], _TERM)
    indices, bounds = _trace(indexing, chain, terms + outs)
    search = _Search(indexing.math, indices, bounds)
    new = tuple(search.by_windows(r) if r.op is Ops.RANGE else r for r in terms)
    if new == terms:
        return None
    sizes = tuple(r.vmax + 1 if r.op is Ops.RANGE else 1 for r in new)
    for v in reversed(chain):
        if v.op is Ops.CAST:
            value = value.cast(v.arg)
    return Fold(value, sizes, new, outs, search.indices, tuple(search.bounds))


def _stand_ins(shape: Shape, first: int) -> Indices:
    return tuple(UOp.const(0) if d == 1 else UOp.range(d, first + i) for i, d in enumerate(shape))


def _zero_padded_chain(u: UOp) -> tuple[list[UOp], UOp]:
    """Movement ops, casts and zero paddings (as their PAD) from ``u`` down, and the value under them."""
    chain: list[UOp] = []
    while True:
        if u.op is Ops.WHERE and _is_zero_padding(u):
            u = u.src[1]
        elif (u.op not in GroupOp.Movement and u.op is not Ops.CAST) or u.op is Ops.PAD:
            return chain, u
        chain.append(u)
        u = u.src[0]


def _is_zero_padding(u: UOp) -> bool:
    """WHERE(PAD(True), PAD(x), 0) with equal boxes."""
    mask, padded, zero = u.src
    if mask.op is not Ops.PAD or padded.op is not Ops.PAD or mask.src[1:] != padded.src[1:]:
        return False
    return mask.shape == padded.shape and _literal(mask.src[0]) is True and _literal(zero) == 0


def _literal(u: UOp) -> object:
    base = u.base
    return base.const_value if base.is_const else None


def _trace(indexing: Indexing, chain: list[UOp], indices: Indices) -> tuple[Indices, list[Bound]]:
    """The place in the value under the chain, and where each padding lets it through."""
    bounds: list[Bound] = []
    for v in chain:
        if v.op is Ops.CAST:
            continue
        indices, _ = indexing.through(v, indices, None)
        if v.op is Ops.PAD:
            bounds += [(i, d) for i, d, n in zip(indices, v.src[0].shape, v.shape) if d != n]
    return indices, bounds


class _Search:
    """Exchanges repetitions for windows in a place and its bounds."""

    def __init__(self, math: LinearForms, indices: Indices, bounds: list[Bound]) -> None:
        self.math, self.indices, self.bounds = math, indices, bounds

    def by_windows(self, r: UOp) -> UOp:
        """A range over windows in place of the repetitions ``r``, or ``r`` where that cannot be proven."""
        for z, m in self._quotients(r):
            window = self._solve(r, z, m)
            if window is not None:
                return window
        return r

    def _quotients(self, r: UOp) -> list[tuple[UOp, int]]:
        """(z, m) of every z // m and z % m in which ``r`` occurs."""
        found: dict[tuple[UOp, int], None] = {}
        for e in (*self.indices, *(i for i, _ in self.bounds)):
            for u in e.toposort():
                if u.op in (Ops.FLOORDIV, Ops.FLOORMOD) and u.src[1].op is Ops.CONST:
                    if r in self.math.parse(u.src[0])[1]:
                        found[u.src[0], u.src[1].arg] = None
        return list(found)

    def _solve(self, r: UOp, z: UOp, m: int) -> UOp | None:
        math = self.math
        const, terms = math.parse(z)
        n = terms[r]
        rest: Form = (const, {a: c for a, c in terms.items() if a is not r})
        lo, hi = math.extent(rest)
        if n <= 0 or lo < 0 or hi >= n:
            return None
        quotient, remainder = (UOp(op, (z, math.const(m))) for op in (Ops.FLOORDIV, Ops.FLOORMOD))
        windows, offsets = z.vmax // m + 1, m
        for index, extent in self.bounds:
            if index is z:
                windows = min(windows, -(-extent // m))
            elif index is quotient:
                windows = min(windows, extent)
            elif index is remainder:
                offsets = min(offsets, extent)
        if windows > r.vmax + 1:
            return None
        k, o = UOp.range(windows, _WINDOW + r.arg[0]), UOp.range(offsets, _OFFSET + r.arg[0])
        (f_const, f_terms), (d_const, d_terms) = math.divmod((0, {k: m, o: 1}), n)
        if f_terms.keys() != {k} or f_terms[k] < 1 or d_terms.get(o) != 1 or d_terms.keys() - {k, o}:
            return None
        if f_const < 0 or f_const + f_terms[k] * (windows - 1) > r.vmax:
            return None
        offset: Form = (rest[0] - d_const, dict(rest[1]))
        if d := d_terms.get(k, 0):
            offset[1][k] = -d
        new: dict[UOp, Form] = {quotient: (0, {k: 1}), remainder: offset, r: (f_const, f_terms)}
        kept = [(math.build(math.replace(i, new)), d) for i, d in self.bounds if i not in (z, quotient, remainder)]
        self.bounds = [(math.build(offset), offsets), *kept]
        self.indices = tuple(math.build(math.replace(i, new)) for i in self.indices)
        return k
