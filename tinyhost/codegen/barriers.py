"""Workgroup barriers: after writes to LOCAL memory that others read, and at the end of loops that write it again."""
from __future__ import annotations

from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import UOp


def uses_local_memory(sink: UOp) -> bool:
    """Whether the kernel has LOCAL buffers."""
    return any(u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.LOCAL for u in sink.toposort())


def add_barriers(sink: UOp) -> UOp:
    """The expanded kernel with its barriers."""
    nodes = list(sink.toposort())
    done: dict[UOp, UOp] = {}
    for u in nodes:
        src = tuple([done[s] for s in u.src])
        new = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if (
            u.op is Ops.AFTER
            and _storage(u) is not None
            and len(src) > 1
            and not any(s.op is Ops.BARRIER for s in src[1:])
        ):
            if any(_writes_local(s) for s in u.src[1:]):
                new = UOp(Ops.AFTER, (src[0], UOp(Ops.BARRIER, src[1:])))
        elif u.op is Ops.END:
            new = _end(u, src)
        done[u] = new
    return done[sink]


def _storage(u: UOp) -> UOp | None:
    """The LOCAL buffer under a place."""
    while u.op in (Ops.INDEX, Ops.SHRINK, Ops.AFTER):
        u = u.src[0]
    return u if u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.LOCAL else None


def _writes_local(u: UOp) -> bool:
    stack, seen = [u], set()
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        if x.op is Ops.STORE and _storage(x.src[0]) is not None:
            return True
        if x.op in (Ops.GROUP, Ops.END):
            stack += x.src[:1] if x.op is Ops.END else x.src
    return False


def _end(u: UOp, src: tuple[UOp, ...]) -> UOp:
    """The END of a loop that stores and loads one LOCAL buffer waits before it goes round."""
    body = u.src[0].toposort(gate=lambda x: not set(u.src[1:]).isdisjoint(x.ranges))
    stored = {_storage(x.src[0]) for x in body if x.op is Ops.STORE}
    loads = [x for x in body if x.op is Ops.LOAD and (b := _storage(x.src[0])) is not None and b in stored]
    if not loads:
        return u if src == u.src else UOp(Ops.END, src, u.arg, u.tag)
    return UOp(Ops.END, (UOp(Ops.BARRIER, (src[0],)), *src[1:]))
