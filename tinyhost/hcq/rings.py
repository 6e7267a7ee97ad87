"""A ring of words: the host writes packets at its front, the device reads them at its back.

Takes packets; waits until the device has made room, writes the words, and gives the count to tell the device, which is
the caller's business (a register, a doorbell). Counts are of all words ever written; a device that counts positions in
the ring is translated. Where a filler is given no packet straddles the end: the rest is filled and the packet begins
at the front.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.signals import OnWait, wait_until


class Ring:
    """``len(memory)`` bytes of ``bits``-bit words.

    Args:
        consumed: how many words the device has read, since the start or, with ``wraps``, modulo the size.
        filler: so many words that the device skips.
        on_wait: called while the host waits for room.

    Attributes:
        size: words in the ring.
        produced: words written since the start, fillers included.
    """

    def __init__(self, memory: HostMemory, bits: int, consumed: Callable[[], int], wraps: bool = False,
                 filler: Callable[[int], Sequence[int]] | None = None, on_wait: OnWait | None = None) -> None:
        self._words = memory.mmio(bits)
        self.size, self.produced = len(self._words), 0
        self._read, self._wraps, self._filler, self._on_wait = consumed, wraps, filler, on_wait
        # where positions are all the device tells, a full ring would look like an empty one
        self.capacity = self.size - 1 if wraps else self.size

    @property
    def position(self) -> int:
        """Index in the ring of the next word."""
        return self.produced % self.size

    @property
    def consumed(self) -> int:
        """Words that the device has read since the start."""
        read = self._read()
        return self.produced - (self.produced - read) % self.size if self._wraps else read

    @property
    def room(self) -> int:
        """Words that can be written now."""
        return self.capacity - (self.produced - self.consumed)

    def write(self, packet: Sequence[int]) -> int:
        """Write a packet when there is room; the index of its first word. ``produced`` is what the device is told.

        Raises:
            ValueError: the packet is longer than the ring.
            DeviceTimeout: the device makes no room.
        """
        if len(packet) > self.capacity:
            raise ValueError(f"a packet of {len(packet)} words does not fit a ring of {self.capacity}: make the ring "
                             "longer, or put the packet into memory and refer to it")
        left = self.size - self.position
        if self._filler is not None and left < len(packet):
            self._put(self._filler(left))
        start = self.position
        self._put(packet)
        return start

    def _put(self, words: Sequence[int]) -> None:
        need = self.produced + len(words) - self.capacity
        wait_until(lambda: self.consumed, lambda now: now >= need, self._on_wait, None,
                   lambda now: f"for room for {len(words)} words in a ring of {self.capacity}; the device has read "
                               f"{now} of {self.produced}")
        start, first = self.position, min(len(words), self.size - self.position)
        self._words[start:start + first] = words[:first]
        self._words[0:len(words) - first] = words[first:]
        self.produced += len(words)
