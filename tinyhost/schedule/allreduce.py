"""Combination of one value a device into one that all have: naive, in a ring, or a part on each device.

Takes lanes of one shape; gives the combined value on each destination, the same bits everywhere.
- naive: every device gets all values and combines them in order; n - 1 copies of the whole value to each.
- ring: the value is cut in one chunk a device. Chunks travel around the ring, each device adds its own (n - 1 steps),
  then the finished chunks travel around once more. Each device sends and receives twice the value, whatever n is.
- all-to-all: each device combines one chunk of all, then sends it to all others: the same amount in two steps.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhost.env import ALL2ALL, RING, RING_ALLREDUCE_THRESHOLD
from tinyhost.helpers import prod
from tinyhost.schedule.indexing import is_static
from tinyhost.schedule.lanes import Span, cut, joined, moved
from tinyhost.uop import Ops, UOp

_GRAINS = (32, 16, 8, 4, 2, 1)  # chunks are multiples of the first that divides the value


def allreduce(op: Ops, nodes: Sequence[UOp], devices: Sequence[str], onto: Sequence[str]) -> list[UOp]:
    """``nodes``, one on each of ``devices``, combined with ``op``: the result on each device of ``onto``."""
    nodes = [UOp(Ops.CONTIGUOUS, (n,)) for n in nodes]
    shape = nodes[0].shape
    if len(nodes) == 1:
        return [moved(nodes[0], d) for d in onto]
    size = int(prod(shape)) if is_static(shape) else 0
    large = size > RING_ALLREDUCE_THRESHOLD.value
    if size >= len(nodes) and tuple(devices) == tuple(onto):
        flat = [n._mop(Ops.RESHAPE, (size,)) for n in nodes]
        if ALL2ALL.value >= 2 or (ALL2ALL.value == 1 and large):
            return [n._mop(Ops.RESHAPE, shape) for n in _all_to_all(op, flat, devices)]
        if RING.value >= 2 or (RING.value == 1 and large and len(nodes) > 2):
            return [n._mop(Ops.RESHAPE, shape) for n in _ring(op, flat, devices)]
    return [_combined(op, [moved(n, d) for n in nodes]) for d in onto]


def chunks(size: int, count: int) -> list[Span]:
    """The spans of at most ``count`` chunks of ``size`` elements; chunks without elements are left out."""
    grain = next(g for g in _GRAINS if size % g == 0)
    each, more = divmod(size // grain, count)
    lengths = [(each + (i < more)) * grain for i in range(count)]
    starts = [sum(lengths[:i]) for i in range(count)]
    return [(start, start + n) for start, n in zip(starts, lengths) if n]


def _combined(op: Ops, nodes: Sequence[UOp]) -> UOp:
    out = nodes[0]
    for n in nodes[1:]:
        out = UOp(op, (out, n))
    return out


def _ring(op: Ops, flat: Sequence[UOp], devices: Sequence[str]) -> list[UOp]:
    count = len(flat)
    received: list[list[UOp]] = [[] for _ in flat]
    for i, span in enumerate(chunks(flat[0].shape[0], count)):
        chunk = cut(flat[(i + 1) % count], 0, span)
        for step in range(2, count + 1):
            here = (i + step) % count
            chunk = UOp(op, (moved(chunk, devices[here]), cut(flat[here], 0, span)))
        chunk = UOp(Ops.CONTIGUOUS, (chunk,))  # on device i
        received[i].append(chunk)
        for step in range(1, count):
            here = (i + step) % count
            chunk = moved(chunk, devices[here])
            received[here].append(chunk)
    return [joined(parts, 0) for parts in received]


def _all_to_all(op: Ops, flat: Sequence[UOp], devices: Sequence[str]) -> list[UOp]:
    own = [UOp(Ops.CONTIGUOUS, (_combined(op, [moved(cut(n, 0, span), d) for n in flat]),))
           for span, d in zip(chunks(flat[0].shape[0], len(flat)), devices)]
    return [joined([moved(c, d) for c in own], 0) for d in devices]
