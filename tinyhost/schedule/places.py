"""Places of a kernel that was written by hand: indices into views become indices into flat storage.

Takes the SINK of a kernel whose placeholders have shapes; gives one in which each INDEX that names an element stands
directly on its PARAM or BUFFER, as kernels of the scheduler do. Outside of padding a place reads 0.
"""
from __future__ import annotations

from tinyhost.schedule.indexing import Indexing
from tinyhost.uop import GroupOp, Ops, UOp


def flat_places(kernel: UOp) -> UOp:
    """``kernel`` with flat places."""
    new: dict[UOp, UOp] = {}
    indexing = Indexing()
    for u in kernel.toposort(enter_calls=False):
        src = tuple([new.get(s, s) for s in u.src])
        node = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if u.op is Ops.INDEX and u.shape == () and (u.src[0].op in GroupOp.Movement or u.src[0].op is Ops.INDEX):
            node = _flat_place(node, indexing)
        if node is not u:
            new[u] = node
    return new.get(kernel, kernel)


def _flat_place(place: UOp, indexing: Indexing) -> UOp:
    indices, gate, u = place.src[1:], None, place.src[0]
    while True:
        if u.op is Ops.INDEX:
            indices, u = (*u.src[1:], *indices), u.src[0]
        elif u.op in GroupOp.Movement:
            (indices, gate), u = indexing.through(u, indices, gate), u.src[0]
        else:
            break
    flat = indexing.flat(u.shape, indices) if indices else UOp.const(0)
    return u.index(flat if gate is None else gate.where(flat, UOp.invalid()))
