"""The CPU device: host memory and machine code called in place, on as many threads as the kernel asks for.

Kernels are C functions of the System V ABI: storage addresses by slot, then scalars; ``core_id`` tells a thread its
part. Scratch memory of a kernel belongs to the thread that runs it and is kept for the next one.
"""
from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from tinyhost.plugin.v1 import Compiled, DeviceSpec, Program, Target, TinyELF
from tinyhost_cpu.code import Segment
from tinyhost_cpu.memory import CPUAllocator, Memory
from tinyhost_cpu.native.layout import NONE, argument_words
from tinyhost_cpu.workers import pool

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues

T = TypeVar("T")


class CPUProgram(Program):
    """Loaded machine code."""

    dev: "CPUDevice"

    def __init__(self, dev: "CPUDevice", elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.segment = Segment(elf.lib, elf.name)
        self._buffers = sum(name is None for name, _, _, _ in elf.signature)
        arenas = [(i, dtype.itemsize * math.prod(shape)) for i, (name, _, dtype, shape) in enumerate(elf.signature)
                  if name is not None and shape != ()]
        if len(arenas) > 1:
            raise ValueError(f"kernel {elf.name} asks for {len(arenas)} scratch arenas; a CPU kernel has one")
        if floats := [name for name, _, dtype, shape in elf.signature if shape == () and dtype.is_float]:
            raise ValueError(f"kernel {elf.name} takes float scalars {floats}; a CPU kernel takes integers")
        self.scratch_at, self.scratch_bytes = arenas[0] if arenas else (-1, 0)

    def __call__(self, *bufs: Memory, global_size: tuple[int, ...] = (1, 1, 1),
                 local_size: tuple[int, ...] | None = None, vals: tuple[int | None, ...] = (),
                 wait: bool = False) -> float | None:
        if len(bufs) != self._buffers:
            raise TypeError(f"kernel {self.elf.name} takes {self._buffers} buffers, got {len(bufs)}")
        workers = pool()  # starting them is not the kernel's time
        start = time.perf_counter() if wait else 0.0
        addresses = [b.address for b in bufs]
        words = self.arranged(addresses, [0 if v is None else v for v in vals])
        if None in vals and global_size[0] > 1:
            workers.run(self.elf.name, self.segment.address, words, global_size[0],
                        len(words) - len(vals) + vals.index(None), self.scratch_at if self.scratch_at >= 0 else NONE,
                        self.scratch_bytes)
        else:
            if self.scratch_at >= 0:
                words[self.scratch_at] = workers.scratch(self.scratch_bytes)
            workers.call(self.elf.name, self.segment.address, argument_words(words))
        return time.perf_counter() - start if wait else None

    def arranged(self, buffers: Sequence[T | int], scalars: Sequence[T | int]) -> list[T | int]:
        """Arguments in order; at ``scratch_at``, if that is not -1, the place of the thread's scratch memory is 0."""
        if (at := self.scratch_at) >= 0:
            return [*buffers[:at], 0, *buffers[at:], *scalars]
        return [*buffers, *scalars]


class CPUDevice(Compiled):
    """The host processor."""

    program_class = CPUProgram  # type: ignore[assignment]

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator: Any = CPUAllocator(self)

    @cached_property
    def queues(self) -> "Queues | None":  # type: ignore[override]
        """Runs captured graphs without Python between the kernels."""
        from tinyhost_cpu.queue import queues_of  # what no eager launch needs
        return queues_of(self.name)
