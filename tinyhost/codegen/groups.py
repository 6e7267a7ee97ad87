"""Reductions that a workgroup does together.

Takes REDUCEs over GROUP_REDUCE ranges; gives a store of each thread's partial result to LOCAL memory, a barrier, and a
loop over the partial results that every thread of the group runs. Stores to global memory are left to the group's first
thread.
"""
from __future__ import annotations

from typing import Any

from tinyhost.codegen.memory import gate_and_index
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp

_OWN_PLACE = frozenset({AxisType.LOCAL, AxisType.WARP, AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE})


def group_reductions(sink: UOp) -> UOp:
    """The kernel with LOCAL memory in place of GROUP_REDUCE reductions."""
    nodes = list(sink.toposort())
    groups = {r for u in nodes if u.op is Ops.REDUCE for r in u.src[1:] if _is_group(r)}
    if not groups:
        return sink
    first = UOp.const(True)
    for r in sorted(groups, key=lambda r: r.arg[:-1]):
        first = UOp(Ops.AND, (first, UOp(Ops.CMPEQ, (r, UOp.const(0))))) if first.op is not Ops.CONST else UOp(
            Ops.CMPEQ, (r, UOp.const(0)))
    fresh = 1 + max(u.arg[0] for u in nodes if u.op is Ops.RANGE)
    slot = 0
    done: dict[UOp, UOp] = {}
    for u in nodes:
        src = tuple([done[s] for s in u.src])
        new = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if u.op is Ops.REDUCE and any(_is_group(r) for r in u.src[1:]):
            new = _through_memory(new, slot, fresh)
            slot, fresh = slot + 1, fresh + len(u.src)
        elif u.op is Ops.STORE and _is_global(u.src[0]):
            gate, idx = gate_and_index(src[0])
            both = first if gate is None else UOp(Ops.AND, (gate, first))
            new = UOp(Ops.STORE, (UOp(Ops.INDEX, (src[0].src[0], idx.valid(both))), *src[1:]))
        done[u] = new
    return done[sink]


def _is_group(r: UOp) -> bool:
    return r.op is Ops.RANGE and r.arg[-1] is AxisType.GROUP_REDUCE


def _is_global(place: UOp) -> bool:
    u = place
    while u.op in (Ops.INDEX, Ops.AFTER):
        u = u.src[0]
    return u.op is Ops.PARAM and place.op is Ops.INDEX and len(place.src) == 2


def _through_memory(u: UOp, slot: int, fresh: int) -> UOp:
    value = u.src[0]
    groups = [r for r in u.src[1:] if _is_group(r)]
    own = [r for r in value.ranges if r not in groups and (r.arg[-1] in _OWN_PLACE or _is_group(r))]
    index: Any = UOp.const(0)
    size = 1
    swap: dict[UOp, UOp] = {}
    for i, r in enumerate([*sorted(own, key=lambda r: r.arg[:-1]), *groups]):
        n = int(r.src[0].const_value)
        index, size = index * n + r if size > 1 else r, size * n
        if r in groups:
            swap[r] = UOp(Ops.RANGE, r.src, (fresh + i, AxisType.REDUCE))
    buffer = UOp(Ops.BUFFER, (), ParamArg(slot, u.dtype, size, addrspace=AddrSpace.LOCAL))
    ready = buffer.after(UOp(Ops.BARRIER, (buffer.index(index).store(value),)))
    loads = ready.index(index.substitute(swap, walk=True))
    return UOp(Ops.REDUCE, (loads, *swap.values()), u.arg)
