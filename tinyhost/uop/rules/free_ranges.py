"""Putting a value in the place of a RANGE, only where the RANGE is free.

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
