"""Identity for values without storage.

Equal literals are one node, so a gradient with respect to one of two ``Tensor(3.0)`` would be that of both, and of
every 3.0 in the program. A leaf that somebody may differentiate by gets a tag of its own; scheduling takes the tags
away, so that kernels of equal graphs stay equal. Storage (BUFFER, PARAM) has an identity already.
"""
from __future__ import annotations

import itertools

from tinyhost.ops import Ops
from tinyhost.uop.node import UOp

_numbers = itertools.count()


def with_identity(u: UOp) -> UOp:
    """The value of ``u`` as a node that no other value shares."""
    return u.rtag(("leaf", next(_numbers)))


def is_leaf(u: UOp) -> bool:
    """Whether ``u`` was given an identity."""
    return u.tag.__class__ is tuple and u.tag[0] == "leaf"


def is_literal(u: UOp) -> bool:
    """Whether a value is a number in the program, not a leaf."""
    base = u.base
    while base.op is Ops.CAST and base.tag is None:
        base = base.src[0]
    return base.op is Ops.CONST and base.tag is None


def without_identity(root: UOp) -> UOp:
    """The graph with its leaves as plain values."""
    new: dict[UOp, UOp] = {}
    for u in root.toposort(enter_calls=False):
        src = tuple([new.get(s, s) for s in u.src])
        if is_leaf(u):
            new[u] = UOp(u.op, src, u.arg)
        elif src != u.src:
            new[u] = UOp(u.op, src, u.arg, u.tag)
    return new.get(root, root)
