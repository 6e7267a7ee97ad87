"""Copies from one device's memory to another's.

Within a peer group the source's queue writes the other's memory (a push), behind all work of both, and the target's
timeline goes on behind it. Between groups the bytes go through the staging memory of both, which only the host sees
both of. Nothing is waited for by the host, except for slots, and for the source of a copy between groups.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost.hcq.signals import Point
from tinyhost.hcq.staging import Slot, queue_for_copies

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues


def transfer(dest_queues: Queues, dest: int, src_queues: Queues, src: int, nbytes: int) -> Point:
    """Copy ``nbytes`` from ``src`` of one device to ``dest`` of another (or the same); the point of the target's
    timeline at which they are there.
    """
    if dest_queues is src_queues:
        return dest_queues.immediate.copy(queue_for_copies(dest_queues), dest, src, nbytes)
    if dest_queues.group is src_queues.group:
        return _within(dest_queues, dest, src_queues, src, nbytes)
    return _between(dest_queues, dest, src_queues, src, nbytes)


def _within(dest_queues: Queues, dest: int, src_queues: Queues, src: int, nbytes: int) -> Point:
    """A push by the source, or where it cannot copy a pull by the target."""
    pusher, other = src_queues, dest_queues
    if src_queues.copying_queue is None:
        pusher, other = dest_queues, src_queues
    with pusher.group.lock:
        copied = pusher.immediate.copy(queue_for_copies(pusher), dest, src, nbytes, [other.timeline.point()])
        after = other.immediate.run(other.compute_queue, "nothing", list, {}, [copied])
    return after if other is dest_queues else copied


def _between(dest_queues: Queues, dest: int, src_queues: Queues, src: int, nbytes: int) -> Point:
    """Source to its staging memory, host, the target's staging memory, target; the source runs ahead of the host."""
    here, there = src_queues.staging, dest_queues.staging
    size = min(here.slot_bytes, there.slot_bytes)
    pull, push = queue_for_copies(src_queues), queue_for_copies(dest_queues)
    waiting: list[tuple[int, Slot]] = []
    point = dest_queues.timeline.point()

    def forward(at: int, slot: Slot) -> Point:
        assert slot.used is not None
        slot.used.wait()
        part = min(size, nbytes - at)
        target = there.take()
        target.memory.view[:part] = slot.memory.view[:part]
        target.used = dest_queues.immediate.copy(push, dest + at, target.memory.address, part)
        return target.used

    first, second = sorted((here, there), key=id)  # always in one order, so that two threads do not wait for each other
    with first.lock, second.lock:
        for at in range(0, nbytes, size):
            if len(waiting) == len(here):
                point = forward(*waiting.pop(0))
            slot = here.take()
            slot.used = src_queues.immediate.copy(pull, slot.memory.address, src + at, min(size, nbytes - at))
            waiting.append((at, slot))
        for at, slot in waiting:
            point = forward(at, slot)
    return point
