"""Combination of one value a device into one that all have: naive, in a ring, or a part on each device.

Takes lanes of one shape; gives the combined value on each destination, the same bits everywhere.
- naive: every device gets all values and combines them in order; n - 1 copies of the whole value to each.
- ring: the value is cut in one chunk a device. Chunks travel around the ring, each device adds its own (n - 1 steps),
  then the finished chunks travel around once more. Each device sends and receives twice the value, whatever n is.
- all-to-all: each device combines one chunk of all, then sends it to all others: the same amount in two steps.

In two steps: ``allreduce`` names what is wanted, ``combine`` chooses the way once it is known who reads what of it.
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
    """``nodes``, one on each of ``devices``, combined with ``op``: the result on each device of ``onto``.

    Of several nodes this is ALLREDUCE(MSTACK(nodes)) on each, for ``combine``.
    """
    nodes = [UOp(Ops.CONTIGUOUS, (n,)) for n in nodes]
    if len(nodes) == 1:
        return [moved(nodes[0], d) for d in onto]
    if any(n.device != d for n, d in zip(nodes, devices)):  # literals, which are everywhere
        return [_naive(op, nodes, d) for d in onto]
    stack = UOp(Ops.MSTACK, tuple(nodes))
    return [UOp(Ops.ALLREDUCE, (stack,), (op, d)) for d in onto]


def combine(sink: UOp) -> UOp:
    """``sink`` with copies and ops in the place of each ALLREDUCE."""
    wanted: dict[tuple[UOp, Ops], list[UOp]] = {}
    order = list(sink.toposort(enter_calls=False))
    for u in order:
        if u.op is Ops.ALLREDUCE:
            wanted.setdefault((u.src[0], u.arg[0]), []).append(u)
    new: dict[UOp, UOp] = {}
    for u in order if wanted else ():
        if u.op is Ops.MSTACK:
            for op in (Ops.ADD, Ops.MUL, Ops.MAX):
                sums = wanted.get((u, op), [])
                results = _combined_on(op, [new.get(s, s) for s in u.src], [str(s.arg[1]) for s in sums])
                new.update(zip(sums, results))
        elif u.op is not Ops.ALLREDUCE:
            src = tuple([new.get(s, s) for s in u.src])
            if src != u.src:
                new[u] = UOp(u.op, src, u.arg, u.tag)
    return new.get(sink, sink)


def goes_in_chunks(size: int, count: int) -> bool:
    """Whether a value of ``size`` elements that ``count`` devices have and want is combined chunk by chunk."""
    large = size > RING_ALLREDUCE_THRESHOLD.value
    ring = RING.value >= 2 or (RING.value == 1 and large and count > 2)
    return size >= count and (ring or _all_to_all_goes(large))


def _all_to_all_goes(large: bool) -> bool:
    return ALL2ALL.value >= 2 or (ALL2ALL.value == 1 and large)


def _combined_on(op: Ops, nodes: Sequence[UOp], onto: Sequence[str]) -> list[UOp]:
    """The result on each device of ``onto``."""
    devices, shape = [str(n.device) for n in nodes], nodes[0].shape
    size = int(prod(shape)) if is_static(shape) else 0
    if set(devices) != set(onto) or not goes_in_chunks(size, len(nodes)):
        return [_naive(op, nodes, d) for d in onto]
    flat = [n._mop(Ops.RESHAPE, (size,)) for n in nodes]
    large = size > RING_ALLREDUCE_THRESHOLD.value
    each = (_all_to_all if _all_to_all_goes(large) else _ring)(op, flat, devices)
    return [each[devices.index(d)]._mop(Ops.RESHAPE, shape) for d in onto]


def _naive(op: Ops, nodes: Sequence[UOp], device: str) -> UOp:
    return _combined(op, [moved(n, device) for n in nodes])


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
