"""Lists of packets in memory for tests of runs: commands in order, with barriers, become a ``Run``."""
from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

from tinyhost_cpu.code import Segment
from tinyhost_cpu.memory import allocate
from tinyhost_cpu.native.layout import (
    NONE,
    PACKET_BYTES,
    RUN_HEADER_BYTES,
    argument_words,
    execute_word,
    packet,
)
from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.native.runs import Run


class Packets:
    """Packets under construction; ``chunks`` counts what has been added."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.chunks = self.need = 0
        self.words: list[int] = []
        self.names: list[str] = []
        self.scratch = 0
        self.kept: list[Any] = []

    def barrier(self) -> Packets:
        """What follows starts after all that is there."""
        self.need = self.chunks
        return self

    def add(self, kind: str, a: int = 0, b: int = 0, c: int = 0, chunks: int = 1, name: str = "") -> Packets:
        """A packet that starts after the last barrier."""
        self.words += packet(self.pool.handlers[kind], chunks, self.need, a, b, c, len(self.names))
        self.chunks += chunks
        self.names.append(name or kind)
        return self

    def execute(self, code: Segment, arguments: Sequence[int], chunks: int = 1, chunk_at: int = NONE,
                scratch_at: int = NONE, scratch: int = 0, name: str = "kernel") -> Packets:
        """A kernel."""
        words = argument_words(list(arguments))
        self.kept += [words, code]
        self.scratch = max(self.scratch, scratch)
        return self.add("execute", code.address, ctypes.addressof(words),
                        execute_word(len(arguments), chunk_at, scratch_at), chunks, name)

    def alone(self, kind: str, *operands: int) -> Packets:
        """A packet between two barriers."""
        self.barrier().add(kind, *operands)
        return self.barrier()

    def run(self, width: int = 1) -> Run:
        """The run; nothing may be added later."""
        words = [*self.words, *packet(self.pool.handlers["end"], need=self.chunks)]
        memory = allocate(RUN_HEADER_BYTES + PACKET_BYTES + 8 * len(self.words))
        ctypes.memset(memory.address, 0, memory.size)
        memory.view().cast("Q")[RUN_HEADER_BYTES // 8:RUN_HEADER_BYTES // 8 + len(words)] = array("Q", words)
        return Run(memory.address, len(words) * 8 // PACKET_BYTES, width, self.scratch, self.names,
                   (memory, self.kept))
