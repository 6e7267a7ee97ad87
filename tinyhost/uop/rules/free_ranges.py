"""Putting values in the place of RANGEs, only where the RANGEs are free.

A node that ends a RANGE (a REDUCE over it, an END) may stand inside of a value in which the same RANGE is free: the two
are different loops that share a number. ``substitute`` knows nodes only and would exchange both.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhost.uop.node import UOp

Special = Callable[[UOp, Callable[[UOp], UOp]], "UOp | None"]


def put(u: UOp, r: UOp, value: UOp, special: Special | None = None) -> UOp:
    """``u`` with ``value`` for the free ``r``.

    ``special(node, new)`` may say what a node becomes; ``new`` gives what its sources became.
    """
    done: dict[UOp, UOp] = {}

    def new(s: UOp) -> UOp:
        return done.get(s, s)
    for n in u.toposort(gate=lambda n: r in n.ranges):
        if n is r:
            done[n] = value
            continue
        if special is not None and (out := special(n, new)) is not None:
            done[n] = out
            continue
        src = tuple([new(s) for s in n.src])
        done[n] = n if src == n.src else UOp(n.op, src, n.arg, n.tag)
    return new(u)


def exchange(u: UOp, swap: dict[UOp, UOp]) -> UOp:
    """``u`` with values for several RANGEs at a time, each where it is free."""
    done: dict[UOp, UOp] = dict(swap)
    old = set(swap)
    for x in u.toposort(gate=lambda n: not old.isdisjoint(n.ranges)):
        if x not in done:
            done[x] = UOp(x.op, tuple([done.get(s, s) for s in x.src]), x.arg, x.tag)
    return done.get(u, u)
