"""NULL: schedules and compiles, computes nothing. Its memory has a size and no bytes."""
from __future__ import annotations

from typing import Any

from tinyhost.device.base import Allocator, BufferSpec, Compiled, Program
from tinyhost.env import NULL_ALLOW_COPYOUT
from tinyhost.specs import DeviceSpec
from tinyhost.target import Target


class NullAllocator(Allocator[int]):
    """An opaque buffer is its size."""

    def _alloc(self, size: int, options: BufferSpec) -> int:
        return size

    def _copyin(self, dest: int, src: memoryview) -> None:
        """Nothing is kept."""

    def _copyout(self, dest: memoryview, src: int) -> None:
        if not NULL_ALLOW_COPYOUT.value:
            raise RuntimeError("no copyout on NULL: it computes nothing, so there is nothing to read; use another "
                               "device, or set NULL_ALLOW_COPYOUT=1 to read zeros")
        dest[:] = bytes(len(dest))

    def _offset(self, buf: int, size: int, offset: int) -> int:
        return size


class NullProgram(Program):
    """Checks its arguments and does nothing."""

    def __call__(self, *bufs: Any, global_size: tuple[int, ...] = (1, 1, 1), local_size: tuple[int, ...] | None = None,
                 vals: tuple[int | None, ...] = (), wait: bool = False) -> float | None:
        expected = sum(name is None for name, _, _, _ in self.elf.signature)
        if len(bufs) != expected:
            raise TypeError(f"kernel {self.elf.name} takes {expected} buffers, got {len(bufs)}")
        return 1e-6 if wait else None


class NullDevice(Compiled):
    """The null device."""

    program_class = NullProgram

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator = NullAllocator(self)
