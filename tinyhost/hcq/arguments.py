"""Memory for the arguments of kernels that are launched one by one: front to back, again and again.

Takes sizes; gives pieces of one buffer. What was given out since the last ``retire`` is in use until a point of the
device's timeline; a piece is given out again when that point is reached, and only then is the device waited for.
"""
from __future__ import annotations

from collections import deque

from tinyhost.errors import OutOfMemory
from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.signals import Point
from tinyhost.helpers import round_up


class ArgumentArena:
    """Pieces of ``memory``."""

    def __init__(self, memory: HostMemory) -> None:
        self.memory, self.size = memory, len(memory)
        # counted without wrapping: bytes before tail are free again, those from tail to head are in use
        self._head = self._tail = 0
        self._retired: deque[tuple[int, Point]] = deque()

    @property
    def used(self) -> int:
        """Bytes that may be in use, gaps between pieces included."""
        return self._head - self._tail

    def alloc(self, nbytes: int, align: int = 8) -> HostMemory:
        """``nbytes`` bytes at a multiple of ``align``.

        Raises:
            OutOfMemory: what was given out since the last ``retire`` leaves no room.
        """
        start = self._start(nbytes, align)
        while start + nbytes - self._tail > self.size:
            if not self._retired and self._head == self._tail:  # nothing is in use: begin anew at the front
                self._head = self._tail = round_up(self._head, self.size)
                start = self._start(nbytes, align)
                if start + nbytes - self._tail <= self.size:
                    break
            if not self._retired:
                raise OutOfMemory(f"cannot place {nbytes} bytes of arguments: {self._head - self._tail} of {self.size} "
                                  "bytes belong to work that was not submitted yet. Submit it in parts")
            end, point = self._retired.popleft()
            point.wait()
            self._tail = end
        self._head = start + nbytes
        return self.memory.part(start % self.size, nbytes)

    def retire(self, point: Point) -> None:
        """Everything given out so far is in use until ``point``."""
        if not self._retired or self._retired[-1][0] != self._head:
            self._retired.append((self._head, point))

    def _start(self, nbytes: int, align: int) -> int:
        """Where the next piece begins: here, or at the front of the next lap."""
        lap, position = divmod(self._head, self.size)
        base = self.memory.address
        at = round_up(base + position, align) - base
        if at + nbytes > self.size:
            lap, at = lap + 1, -base % align
        return int(lap * self.size + at)
