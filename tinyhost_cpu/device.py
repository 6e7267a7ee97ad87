"""The CPU device: host memory and machine code called in place, on as many threads as the kernel asks for.

Kernels are C functions of the System V ABI: storage addresses by slot, then scalars; ``core_id`` tells a thread its
part. Scratch memory of a kernel belongs to the thread that runs it and is kept for the next one.
"""
from __future__ import annotations

import math
import time
from typing import Any

from tinyhost.plugin.v1 import Compiled, DeviceSpec, Program, Target, TinyELF
from tinyhost_cpu.code import Segment
from tinyhost_cpu.memory import CPUAllocator, Memory
from tinyhost_cpu.native.layout import argument_words
from tinyhost_cpu.workers import pool


class CPUProgram(Program):
    """Loaded machine code."""

    dev: "CPUDevice"

    def __init__(self, dev: "CPUDevice", elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.segment = Segment(elf.lib)
        self._buffers = sum(name is None for name, _, _, _ in elf.signature)
        arenas = [(i, dtype.itemsize * math.prod(shape)) for i, (name, _, dtype, shape) in enumerate(elf.signature)
                  if name is not None and shape != ()]
        if len(arenas) > 1:
            raise ValueError(f"kernel {elf.name} asks for {len(arenas)} scratch arenas; a CPU kernel has one")
        if floats := [name for name, _, dtype, shape in elf.signature if shape == () and dtype.is_float]:
            raise ValueError(f"kernel {elf.name} takes float scalars {floats}; a CPU kernel takes integers")
        self._scratch_at, self._scratch_bytes = arenas[0] if arenas else (-1, 0)

    def __call__(self, *bufs: Memory, global_size: tuple[int, ...] = (1, 1, 1),
                 local_size: tuple[int, ...] | None = None, vals: tuple[int | None, ...] = (),
                 wait: bool = False) -> float | None:
        if len(bufs) != self._buffers:
            raise TypeError(f"kernel {self.elf.name} takes {self._buffers} buffers, got {len(bufs)}")
        start = time.perf_counter() if wait else 0.0
        addresses = [b.address for b in bufs]
        if None in vals and global_size[0] > 1:
            words = [self._words(addresses, vals, core) for core in range(global_size[0])]
            pool().run(self.elf.name, self.segment.address, words)
        else:
            pool().call(self.elf.name, self.segment.address, self._words(addresses, vals, 0))
        return time.perf_counter() - start if wait else None

    def _words(self, addresses: list[int], vals: tuple[int | None, ...], core: int) -> Any:
        """Arguments of one thread's part; None among the scalars is its number."""
        if (at := self._scratch_at) >= 0:
            addresses = [*addresses[:at], pool().scratch(core, self._scratch_bytes), *addresses[at:]]
        return argument_words([*addresses, *[core if v is None else v for v in vals]])


class CPUDevice(Compiled):
    """The host processor."""

    program_class = CPUProgram  # type: ignore[assignment]

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator: Any = CPUAllocator(self)
