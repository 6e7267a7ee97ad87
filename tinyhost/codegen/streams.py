"""Which stores pass by the caches: outputs that are too large to stay in them.

Takes the kernel with its axes split; gives it with the tag ``STREAMED`` on stores of vectors whose lines are
written whole, one after the other. A plain store first reads the line that it overwrites and throws other lines out of
the caches, a streamed one does neither; below ``Capabilities.stream_bytes`` whoever reads the output next would have
found it there. Values are the same either way. A streamed place is a multiple of the vector's size from the start of
its storage; whether the storage itself is aligned, the renderer's code asks when it runs.
"""
from __future__ import annotations

import math

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.memory import STREAMED, storage_of, stored_in
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp


def mark_streams(sink: UOp, caps: Capabilities) -> UOp:
    """The kernel with its streamed stores marked."""
    if not caps.stream_bytes or not caps.vector_bytes:
        return sink
    large = [e.src[0] for e in sink.src if e.op is Ops.END and e.src[0].op is Ops.STORE and _is_large(e.src[0], caps)]
    if not large:
        return sink
    read = _storages_read(sink)
    marked = {u: u.replace(tag=STREAMED) for u in large if stored_in(u) not in read and _fills_lines(u, caps)}
    return sink.substitute(marked, walk=True) if marked else sink


def _is_large(store: UOp, caps: Capabilities) -> bool:
    """Whether an ungated store covers enough of a kernel's argument."""
    place = store.src[0]
    if place.op is not Ops.INDEX or len(place.src) != 2 or stored_in(store).op is not Ops.PARAM or len(store.src) != 2:
        return False
    index = place.src[1]
    if index.op is Ops.WHERE and index.src[2].is_invalid:
        return False
    lo, hi = index.bounds
    return bool((hi - lo + 1) * place.dtype.itemsize >= caps.stream_bytes)


def _storages_read(sink: UOp) -> set[UOp]:
    """Storages that some INDEX used as a value reads."""
    out = set()
    for u in sink.toposort():
        for s in u.src[1:] if u.op is Ops.STORE else u.src:
            if s.op is Ops.INDEX:
                out.add(storage_of(s.src[0]))
    return out


def _fills_lines(store: UOp, caps: Capabilities) -> bool:
    """Whether one iteration writes whole lines with vectors of 16 bytes and more at multiples of their size."""
    place = store.src[0]
    index, size = place.src[1], place.dtype.itemsize
    lane = next((r for r in index.ranges if r.arg[-1] is AxisType.LANE), None)
    if lane is None or not 16 <= (lanes := int(lane.src[0].const_value)) * size <= caps.vector_bytes:
        return False  # nothing narrower is stored past the caches
    steps = _steps(index)
    if steps.get(lane) != 1 or _factor(index, lane) % lanes:
        return False
    block = lanes
    copies = [r for r in index.ranges if r.arg[-1] is AxisType.UPCAST]
    for r in sorted(copies, key=lambda r: steps.get(r, 0)):
        if steps.get(r) == block:
            block *= int(r.src[0].const_value)
    return block * size >= caps.cacheline


def _steps(index: UOp) -> dict[UOp, int]:
    """Elements that the index moves for a step of each RANGE that stands in it as a term of a sum."""
    out: dict[UOp, int] = {}
    stack = [(index, 1)]
    while stack:
        u, c = stack.pop()
        if u.op is Ops.ADD:
            stack += [(s, c) for s in u.src]
        elif u.op is Ops.MUL and u.src[1].op is Ops.CONST:
            stack.append((u.src[0], c * u.src[1].arg))
        elif u.op is Ops.RANGE:
            out[u] = out.get(u, 0) + c
    return out


def _factor(index: UOp, lane: UOp) -> int:
    """A number that divides the index in its first lane, whatever the loops do."""
    factor: dict[UOp, int] = {}
    for u in index.toposort():
        known = [factor[s] for s in u.src]
        if u is lane:
            factor[u] = 0
        elif u.op is Ops.CONST and type(u.arg) is int:
            factor[u] = abs(u.arg)
        elif u.op is Ops.ADD or u.op is Ops.SUB:
            factor[u] = math.gcd(*known)
        elif u.op is Ops.MUL:
            factor[u] = known[0] * known[1]
        elif u.op is Ops.WHERE:
            factor[u] = math.gcd(*known[1:])
        else:
            factor[u] = 1
    return factor[index]
