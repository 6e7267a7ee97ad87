"""The run of a single kernel: its packets and arguments in memory that the next launch uses again."""
from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from tinyhost_cpu.memory import allocate
from tinyhost_cpu.native.layout import PACKET_BYTES, RUN_HEADER_BYTES, WORD, execute_word, packet
from tinyhost_cpu.native.runs import Run

PACKETS_AT = RUN_HEADER_BYTES // 8
ARGUMENTS_AT = PACKETS_AT + 2 * PACKET_BYTES // 8


class Launch:
    """Memory of one launch at a time."""

    def __init__(self, handlers: Mapping[str, int]) -> None:
        self._execute, self._end = handlers["execute"], handlers["end"]
        self._room = 0
        self._make_room(32)

    def _make_room(self, count: int) -> None:
        self._memory = allocate(8 * (ARGUMENTS_AT + count))
        self._words = self._memory.view().cast("Q")
        self._room = count

    def fill(self, name: str, function: int, arguments: Sequence[int], chunks: int, places: tuple[int, int],
             width: int, scratch_bytes: int) -> Run:
        """A run of one kernel; ``places`` are those of chunk number and scratch address among the arguments."""
        count = len(arguments)
        if count > self._room:
            self._make_room(2 * count)
        start = self._memory.address
        kernel = packet(self._execute, chunks, 0, function, start + 8 * ARGUMENTS_AT, execute_word(count, *places))
        end = packet(self._end, need=chunks)
        self._words[PACKETS_AT:ARGUMENTS_AT] = array("Q", kernel + end)
        self._words[ARGUMENTS_AT:ARGUMENTS_AT + count] = array("Q", [word & WORD for word in arguments])
        return Run(start, 2, width, scratch_bytes, (name,), self)
