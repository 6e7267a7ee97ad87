"""Loop nests of the small kernel: each RANGE gets one closer, and loops get an order.

A closer is a REDUCE or an END. Two closers may share a RANGE when neither needs the other's result and they close the
same ranges (REDUCEs), or share the outer part of their nests (ENDs). Otherwise the later one gets RANGEs of its own
here, so that a softmax (a maximum, then a sum over the same axis) becomes loops one after the other.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.codegen.rows import own_places
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import KernelInfo, UOp

_CLOSERS = frozenset({Ops.REDUCE, Ops.END})
_OUTER = {AxisType.GLOBAL: 0, AxisType.THREAD: 0, AxisType.WARP: 1, AxisType.LOCAL: 1, AxisType.GROUP_REDUCE: 1}


def ranges_of(u: UOp) -> list[UOp]:
    """The RANGEs a closer ends."""
    return [r for r in u.src[1:] if r.op is Ops.RANGE]


def one_closer_each(sink: UOp) -> UOp:
    """The kernel in which no RANGE is closed twice, except by closers that share one loop."""
    sink = own_places(sink)
    closed: dict[UOp, int] = {}
    order = list(sink.toposort())
    top = -1
    for u in order:
        if u.op in _CLOSERS:
            for r in ranges_of(u):
                closed[r] = closed.get(r, 0) + 1
        elif u.op is Ops.RANGE:
            top = max(top, u.arg[0])
    if all(n == 1 for n in closed.values()):
        return sink
    return _Renamer(top + 1).run(sink, order)


class _Renamer:
    def __init__(self, fresh: int) -> None:
        self.fresh = fresh
        self.new: dict[UOp, UOp] = {}
        self.below: dict[UOp, int] = {}  # closers under each node, as bits
        self.owners: dict[UOp, list[tuple[frozenset[UOp], int, Ops]]] = {}
        self.count = 0

    def run(self, sink: UOp, order: list[UOp]) -> UOp:
        new, below = self.new, self.below
        for u in order:
            mask = 0
            for s in u.src:
                mask |= below[s]
            for s in u.src:
                if new[s] is not s:
                    v = UOp(u.op, tuple([new[x] for x in u.src]), u.arg, u.tag)
                    break
            else:
                v = u
            if u.op in _CLOSERS:
                v, mask = self._claim(v, mask)
            new[u], below[u] = v, mask
        return new[sink]

    def _claim(self, u: UOp, mask: int) -> tuple[UOp, int]:
        """Give ``u`` its ranges, renaming those it cannot share."""
        mine = frozenset(ranges_of(u))
        taken = [r for r in mine if not self._may_share(r, mine, mask, u.op)]
        if taken:
            u = self._rename(u, taken)
            mine = frozenset(ranges_of(u))
        bit, self.count = 1 << self.count, self.count + 1
        for r in mine:
            self.owners.setdefault(r, []).append((mine, bit, u.op))
        return u, mask | bit

    def _may_share(self, r: UOp, mine: frozenset[UOp], mask: int, op: Ops) -> bool:
        for theirs, bit, their_op in self.owners.get(r, ()):
            if mask & bit or their_op is not op:
                return False
            if op is Ops.REDUCE and theirs != mine:
                return False
            if op is Ops.END and not _share_outer(theirs, mine):
                return False
        return True

    def _rename(self, u: UOp, taken: list[UOp]) -> UOp:
        """``u`` with new RANGEs in place of ``taken``."""
        swap: dict[UOp, UOp] = {}
        for r in sorted(taken, key=lambda r: r.arg[:-1]):
            swap[r] = UOp(Ops.RANGE, r.src, (self.fresh, r.arg[-1]))
            self.fresh += 1
        old = set(swap)
        body = u.src[0].toposort(gate=lambda x: not old.isdisjoint(x.ranges))
        done: dict[UOp, UOp] = dict(swap)
        for x in body:
            if x not in done:
                done[x] = UOp(x.op, tuple([done.get(s, s) for s in x.src]), x.arg, x.tag)
        return UOp(u.op, tuple([done.get(s, s) for s in u.src]), u.arg, u.tag)


def _share_outer(a: frozenset[UOp], b: frozenset[UOp]) -> bool:
    """Whether what two nests share is the outer part of both."""
    shared = a & b
    last = max(r.arg[:-1] for r in shared)
    return all(r.arg[:-1] > last for r in (a | b) - shared)


def loop_order(sink: UOp) -> list[UOp]:
    """RANGEs of the kernel, outermost first.

    Axes named by ``KernelInfo.loop_order`` come first and in that order; then the ranges of stores by id, then those of
    reductions, the ones around others first.
    """
    info: Any = sink.arg
    wanted = info.loop_order if isinstance(info, KernelInfo) and info.loop_order is not None else ()
    place = {ids: i for i, ids in enumerate(wanted)}
    ends: dict[UOp, None] = {}
    reduces: list[list[UOp]] = []
    for u in sink.toposort():
        if u.op is Ops.END:
            ends.update(dict.fromkeys(ranges_of(u)))
        elif u.op is Ops.REDUCE:
            reduces.append(sorted(ranges_of(u), key=lambda r: r.arg[:-1]))
    order = dict.fromkeys(sorted(ends, key=lambda r: (_OUTER.get(r.arg[-1], 2), r.arg[:-1])))
    for rs in reversed(reduces):  # sources come first in a toposort, so the last REDUCE is an outermost one
        order.update(dict.fromkeys(rs))
    found = {r: at for r in order if (at := place_of(r.arg[:-1], place)) is not None}
    listed = sorted(found, key=lambda r: (found[r], r.arg[:-1]))
    return listed + [r for r in order if r not in found]


def place_of(ids: tuple[int, ...], place: dict[tuple[int, ...], int]) -> int | None:
    """The place of an axis in a loop order: its own, or that of the axis it was cut from."""
    while ids and ids not in place:
        ids = ids[:-1]
    return place[ids] if ids else None


Parts = dict[UOp, tuple[UOp, UOp]]


def split_ranges(sink: UOp, nodes: dict[UOp, None], divisors: dict[UOp, int],
                 special: Callable[[UOp, UOp, Parts], UOp]) -> UOp:
    """The kernel with RANGEs as a quotient and a remainder by their divisors, which divide them.

    ``special(node, new, parts)`` says what becomes of a node whose sources are exchanged in ``new``; ``parts`` has
    quotient and remainder of each RANGE.
    """
    done: dict[UOp, UOp] = {}
    parts: Parts = {}
    for r, m in divisors.items():
        *ids, kind = r.arg
        q = UOp(Ops.RANGE, (UOp.const(r.src[0].const_value // m),), (*ids, 0, kind))
        p = UOp(Ops.RANGE, (UOp.const(m),), (*ids, 1, kind))
        parts[r], done[r] = (q, p), q * m + p
    for u in nodes:
        if u in done:
            continue
        if u.op is Ops.END:
            ranges = [x for r in u.src[1:] for x in parts.get(r, (done[r],))]
            done[u] = UOp(Ops.END, (done[u.src[0]], *ranges), u.arg, u.tag)
            continue
        src = tuple([done[s] for s in u.src])
        done[u] = special(u, u if src == u.src else UOp(u.op, src, u.arg, u.tag), parts)
    return done[sink]
