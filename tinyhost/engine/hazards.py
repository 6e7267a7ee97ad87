"""What must be computed before stores overwrite it. Graphs of tensors only; nothing here runs or stores anything.

A state of storage is a BUFFER, or an AFTER over the state before it; a view of a state (movement ops, DETACH, BITCAST)
shows it. A store replaces a state: whoever reads the old one, except as a view, must have been computed by then.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop import UOp

VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST, Ops.UNSHARD}
STORED = frozenset({Ops.AFTER, Ops.CONTIGUOUS, Ops.COPY})  # what gets storage wherever it stands in a graph
NO_KERNEL = frozenset({Ops.AFTER, Ops.CALL, Ops.GETTUPLE, Ops.TUPLE}) | VIEWS  # what reads nothing itself


def is_storage(u: UOp) -> bool:
    """Whether a node is a buffer in memory."""
    return u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.GLOBAL


def under_views(u: UOp) -> UOp:
    """What a chain of views shows: a state of storage, or a value."""
    while u.op in VIEWS:
        u = u.src[0]
    return u


def overwritten(nodes: Iterable[UOp], has_content: Callable[[UOp], bool]) -> set[UOp]:
    """States that other nodes replace; a BUFFER counts where ``has_content``."""
    old = set()
    for u in nodes:
        if u.op is Ops.AFTER and not u.is_bound_var:
            before = under_views(u.src[0])
            if before.op is Ops.AFTER or (is_storage(before) and has_content(before)):
                old.add(before)
    return old


def readers(values: list[UOp], old: set[UOp], computed: set[UOp]) -> list[UOp]:
    """Those of ``values`` that read a state in ``old``, other than through nodes that are ``computed`` anyway.

    A view is no reader; storage that waits for a store of such a value is one.
    """
    reads: dict[UOp, bool] = {}
    for n in UOp.sink(*values).toposort(enter_calls=False):
        if n in old:
            reads[n] = True
        elif n in computed:
            reads[n] = False
        else:
            src = n.src
            if n.op is Ops.STORE or (n.op is Ops.AFTER and under_views(src[0]) in old):
                src = src[1:]  # what a store overwrites is not read
            reads[n] = any([reads.get(s, False) for s in src])
    return [u for u in values if (base := under_views(u)) not in old and not is_storage(base) and reads[base]]


class Conflicts:
    """Finds values that must be computed before others overwrite what they read, because no single kernel can read an
    old and a new state of one storage.

    Two bit sets a node, one bit for each replaced state: ``reads`` those that the kernel of the node would read,
    ``gone`` those that are overwritten before the node can be computed.

    Two stores may each read what the other one overwrites. Scheduling finds out (StateCycle) and starts again with
    ``apart``; then what a store writes is computed early wherever it reads any other state that is overwritten.
    """

    def __init__(self, old: Iterable[UOp], apart: bool = False) -> None:
        self.apart = apart
        self.bit = {u: 1 << i for i, u in enumerate(old)}
        self.reads: dict[UOp, int] = {}
        self.gone: dict[UOp, int] = {}

    def add(self, u: UOp) -> set[UOp]:
        """Enter a node whose sources are entered; the sources to compute early, before their inputs are overwritten."""
        reads = gone = late = 0
        for s in u.src:
            gone |= self.gone.get(s, 0)
        read = u.src
        if u.op is Ops.STORE:
            read = u.src[1:]
            if self.apart and (own := self.bit.get(under_views(u.src[0]), 0)):
                late = ~own
        early = {s for s in read if self.reads.get(s, 0) & (gone | late)} if u.op not in NO_KERNEL else set()
        for s in read:
            reads |= 0 if s in early else self.reads.get(s, 0)
        if u.op is Ops.AFTER:
            gone |= self.bit.get(under_views(u.src[0]), 0)
        self.gone[u] = gone
        self.reads[u] = self.bit.get(u, 0) if u.op in STORED or u.op is Ops.BUFFER else reads
        return early
