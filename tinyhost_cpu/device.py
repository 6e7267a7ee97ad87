"""The CPU device: host memory and machine code called in place, on as many threads as the kernel asks for.

Kernels are C functions of the System V ABI: storage addresses by slot, then scalars; ``core_id`` tells a thread its
part. Scratch memory of a kernel belongs to the thread that runs it and is kept for the next one.
"""
from __future__ import annotations

import ctypes
import math
import threading
import time
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.plugin.v1 import Compiled, DeviceSpec, Program, Target, TinyELF
from tinyhost_cpu import workers
from tinyhost_cpu.code import Segment
from tinyhost_cpu.memory import CPUAllocator, Memory, allocate

_CTYPES = {
    dtypes.bool: ctypes.c_bool, dtypes.int8: ctypes.c_int8, dtypes.uint8: ctypes.c_uint8, dtypes.int16: ctypes.c_int16,
    dtypes.uint16: ctypes.c_uint16, dtypes.int32: ctypes.c_int32, dtypes.uint32: ctypes.c_uint32,
    dtypes.int64: ctypes.c_int64, dtypes.uint64: ctypes.c_uint64, dtypes.float32: ctypes.c_float,
    dtypes.float64: ctypes.c_double}


class _Scratch(threading.local):
    """Memory of the running thread that one kernel after the other uses."""

    memory: Memory | None = None

    def address(self, size: int) -> int:
        """At least ``size`` bytes."""
        if self.memory is None or self.memory.size < size:
            self.memory = allocate(size)
        return self.memory.address


_scratch = _Scratch()


class CPUProgram(Program):
    """Loaded machine code."""

    dev: "CPUDevice"

    def __init__(self, dev: "CPUDevice", elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.segment = Segment(elf.lib)
        self._buffers = sum(name is None for name, _, _, _ in elf.signature)
        storage = sum(shape != () for _, _, _, shape in elf.signature)
        arenas = [(i, dtype.itemsize * math.prod(shape)) for i, (name, _, dtype, shape) in enumerate(elf.signature)
                  if name is not None and shape != ()]
        if len(arenas) > 1:
            raise ValueError(f"kernel {elf.name} asks for {len(arenas)} scratch arenas; a CPU kernel has one")
        self._scratch_at, self._scratch_bytes = arenas[0] if arenas else (-1, 0)
        scalars: list[Any] = [_CTYPES[dtype] for _, _, dtype, shape in elf.signature if shape == ()]
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * storage, *scalars)(self.segment.address)

    def __call__(self, *bufs: Memory, global_size: tuple[int, ...] = (1, 1, 1),
                 local_size: tuple[int, ...] | None = None, vals: tuple[int | None, ...] = (),
                 wait: bool = False) -> float | None:
        if len(bufs) != self._buffers:
            raise TypeError(f"kernel {self.elf.name} takes {self._buffers} buffers, got {len(bufs)}")
        start = time.perf_counter() if wait else 0.0
        addresses = [b.address for b in bufs]
        if None in vals and global_size[0] > 1:
            workers.workers.run(lambda core: self._run(addresses, vals, core), global_size[0])
        else:
            self._run(addresses, vals, 0)
        return time.perf_counter() - start if wait else None

    def _run(self, addresses: list[int], vals: tuple[int | None, ...], core: int) -> None:
        """The part of one thread; None among the scalars is its number."""
        if self._scratch_at >= 0:
            at = self._scratch_at
            addresses = [*addresses[:at], _scratch.address(self._scratch_bytes), *addresses[at:]]
        self._call(*addresses, *[core if v is None else v for v in vals])


class CPUDevice(Compiled):
    """The host processor."""

    program_class = CPUProgram  # type: ignore[assignment]

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator: Any = CPUAllocator(self)
