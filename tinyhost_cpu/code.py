"""Executable memory: each program's code is written once, then made executable and never writable again.

Takes position-independent code whose entry is its first byte; gives an address. No page is ever writable and
executable.
"""
from __future__ import annotations

import ctypes
import mmap

from tinyhost.env import PERF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mprotect.restype = ctypes.c_int


class Segment:
    """Sealed code; lives as long as this object. ``name`` is what perf and GDB call it with PERF=1."""

    def __init__(self, code: bytes, name: str = "generated_code") -> None:
        if not code:
            raise ValueError("a program without code cannot be loaded")
        size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._area.write(code)
        self._pin = ctypes.c_ubyte.from_buffer(self._area)
        self.address = ctypes.addressof(self._pin)
        if _libc.mprotect(self.address, len(self._area), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "mprotect(PROT_READ|PROT_EXEC) failed: this system forbids generated "
                                              "code; use "
                          "DEV=PYTHON, or allow executable mappings for this process")
        if PERF.value:
            from tinyhost_cpu.perf import announce
            announce(self, self.address, len(code), name)
