"""Copies between host and device through memory that both see.

Takes host bytes and a device address; copies part by part through the slots of one buffer, so that the device copies
one part while the host copies the next. A slot belongs to the device until a point of its timeline, and is used again
when that is reached.
"""
from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from tinyhost.errors import DeviceError
from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.signals import Point

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues

_ALIGN = 64


class Slot:
    """One part of the staging memory; free from ``used`` on."""

    def __init__(self, memory: HostMemory) -> None:
        self.memory = memory
        self.used: Point | None = None


class Staging:
    """``slots`` equal parts of ``memory``, taken in turn.

    Attributes:
        slot_bytes: size of one.
        lock: held by a copy from its first slot to its last.
    """

    def __init__(self, memory: HostMemory, slots: int) -> None:
        self.slot_bytes = len(memory) // slots // _ALIGN * _ALIGN
        if slots < 1 or not self.slot_bytes:
            raise ValueError(f"{len(memory)} bytes of staging memory make no {slots} slots of {_ALIGN} bytes or more")
        self._slots = [Slot(memory.part(i * self.slot_bytes, self.slot_bytes)) for i in range(slots)]
        self._next = 0
        self.lock = RLock()

    def __len__(self) -> int:
        return len(self._slots)

    def take(self) -> Slot:
        """The next slot, when the device does not use it any more."""
        slot = self._slots[self._next]
        self._next = (self._next + 1) % len(self._slots)
        if slot.used is not None:
            slot.used.wait()
            slot.used = None
        return slot


def queue_for_copies(queues: Queues) -> str:
    """The queue of a device that copies.

    Raises:
        DeviceError: it has none.
    """
    if queues.copying_queue is None:
        raise DeviceError(f"{queues.device} has no queue that copies, and the host does not see its memory: its "
                          "allocator must define _as_buffer, or its queues take copy commands")
    return queues.copying_queue


def copy_in(queues: Queues, dest: int, src: memoryview) -> Point | None:
    """Host bytes to the device's memory at ``dest``; ``src`` may be reused at once. When the device is done."""
    name, staging, point = queue_for_copies(queues), queues.staging, None
    with staging.lock:
        for at in range(0, len(src), staging.slot_bytes):
            part, slot = src[at:at + staging.slot_bytes], staging.take()
            slot.memory.view[:len(part)] = part
            slot.used = point = queues.immediate.copy(name, dest + at, slot.memory.address, len(part))
    return point


def copy_out(queues: Queues, dest: memoryview, src: int) -> None:
    """The device's memory at ``src`` to host bytes, complete when this returns."""
    name, staging = queue_for_copies(queues), queues.staging
    size, waiting = staging.slot_bytes, list[tuple[int, Slot]]()
    with staging.lock:
        for at in range(0, len(dest), size):
            if len(waiting) == len(staging):
                _take_out(dest, size, *waiting.pop(0))
            slot = staging.take()
            slot.used = queues.immediate.copy(name, slot.memory.address, src + at, min(size, len(dest) - at))
            waiting.append((at, slot))
        for at, slot in waiting:
            _take_out(dest, size, at, slot)


def _take_out(dest: memoryview, size: int, at: int, slot: Slot) -> None:
    assert slot.used is not None
    slot.used.wait()
    part = min(size, len(dest) - at)
    dest[at:at + part] = slot.memory.view[:part]
