"""The CPU device: host memory and machine code called in place, on as many threads as the kernel asks for.

Kernels are C functions of the System V ABI: storage addresses by slot, then scalars; ``core_id`` tells a thread its part.
"""
from __future__ import annotations

import ctypes
import time
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.plugin.v1 import Compiled, DeviceSpec, Program, Target, TinyELF
from tinyhost_cpu import workers
from tinyhost_cpu.code import Segment
from tinyhost_cpu.memory import CPUAllocator, Memory

_CTYPES = {
    dtypes.bool: ctypes.c_bool, dtypes.int8: ctypes.c_int8, dtypes.uint8: ctypes.c_uint8, dtypes.int16: ctypes.c_int16,
    dtypes.uint16: ctypes.c_uint16, dtypes.int32: ctypes.c_int32, dtypes.uint32: ctypes.c_uint32,
    dtypes.int64: ctypes.c_int64, dtypes.uint64: ctypes.c_uint64, dtypes.float32: ctypes.c_float,
    dtypes.float64: ctypes.c_double}


class CPUProgram(Program):
    """Loaded machine code."""

    dev: "CPUDevice"

    def __init__(self, dev: "CPUDevice", elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.segment = Segment(elf.lib)
        kinds = [ctypes.c_void_p if name is None else _CTYPES[dtype] for name, _, dtype, _ in elf.signature]
        self._buffers = sum(name is None for name, _, _, _ in elf.signature)
        self._call = ctypes.CFUNCTYPE(None, *kinds)(self.segment.address)

    def __call__(self, *bufs: Memory, global_size: tuple[int, ...] = (1, 1, 1), local_size: tuple[int, ...] | None = None,
                 vals: tuple[int | None, ...] = (), wait: bool = False) -> float | None:
        if len(bufs) != self._buffers:
            raise TypeError(f"kernel {self.elf.name} takes {self._buffers} buffers, got {len(bufs)}")
        start = time.perf_counter() if wait else 0.0
        addresses = [b.address for b in bufs]
        call = self._call
        if None in vals:
            at = vals.index(None)

            def part(core: int) -> None:
                call(*addresses, *vals[:at], core, *vals[at + 1:])
            if global_size[0] == 1:
                part(0)
            else:
                workers.workers.run(part, global_size[0])
        else:
            call(*addresses, *vals)
        return time.perf_counter() - start if wait else None


class CPUDevice(Compiled):
    """The host processor."""

    program_class = CPUProgram  # type: ignore[assignment]

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator: Any = CPUAllocator(self)
