"""Memory of the CPU device: addresses the generated code reads and writes.

Allocations of 2 MiB and more start on a 2 MiB boundary and ask for huge pages (touching fresh memory in 4 KiB pages
costs several times more); smaller ones are aligned to a cache line. Freed memory is kept for reuse by size.
"""
from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from tinyhost.plugin.v1 import BufferSpec, LRUAllocator

HUGE = 2 << 20
CACHE_LINE = 64


class Memory:
    """``size`` bytes at ``address``; ``owner`` keeps them alive."""

    __slots__ = ("address", "size", "owner")

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.address, self.size, self.owner = address, size, owner

    def view(self) -> memoryview:
        """The bytes."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.address)).cast("B")


def allocate(size: int) -> Memory:
    """New memory of at least one byte.

    Raises:
        MemoryError: the system has none.
    """
    try:
        return _huge(size) if size >= HUGE else _small(size)
    except (OSError, ValueError, OverflowError) as e:
        raise MemoryError(f"{size} bytes: {e}") from e


def _huge(size: int) -> Memory:
    # private: a forked child gets its own copy, and the system gives huge pages, which shared memory rarely gets
    area = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    start = ctypes.addressof(ctypes.c_ubyte.from_buffer(area))
    return Memory(-(-start // HUGE) * HUGE, size, area)


def _small(size: int) -> Memory:
    area = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = area.ctypes.data
    return Memory(-(-start // CACHE_LINE) * CACHE_LINE, size, area)


class CPUAllocator(LRUAllocator[Memory]):
    """An opaque buffer is a Memory."""

    foreign = True

    def _alloc(self, size: int, options: BufferSpec) -> Memory:
        if options.external_ptr is not None:
            return Memory(options.external_ptr, size, None)
        memory = allocate(size)
        if options.zero:
            ctypes.memset(memory.address, 0, size)
        return memory

    def _copyin(self, dest: Memory, src: memoryview) -> None:
        np.frombuffer(dest.view(), dtype=np.uint8)[:len(src)] = np.frombuffer(src, dtype=np.uint8)

    def _copyout(self, dest: memoryview, src: Memory) -> None:
        np.frombuffer(dest, dtype=np.uint8)[:] = np.frombuffer(src.view(), dtype=np.uint8)[:len(dest)]

    def _offset(self, buf: Memory, size: int, offset: int) -> Memory:
        return Memory(buf.address + offset, size, buf)

    def _as_buffer(self, src: Memory) -> memoryview:
        return src.view()
