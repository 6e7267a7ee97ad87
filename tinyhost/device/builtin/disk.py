"""DISK: files as storage. ``DISK:/path`` names the file; bytes are mapped, so nothing is read before it is used.

A tensor on DISK is read-only when its file is; writing a new file creates it at full size first.
"""
from __future__ import annotations

import mmap
import os

from tinyhost.capabilities import Capabilities
from tinyhost.device.base import Allocator, BufferSpec, Compiled
from tinyhost.specs import DeviceSpec
from tinyhost.target import Target


def capabilities(target: Target) -> Capabilities:
    """Host-visible storage without kernels."""
    return Capabilities(storage_only=True, host_visible=True)


class DiskAllocator(Allocator[memoryview]):
    """An opaque buffer is a view of the mapped file."""

    dev: "DiskDevice"

    def _alloc(self, size: int, options: BufferSpec) -> memoryview:
        return self.dev.map(size)[:size]

    def _copyin(self, dest: memoryview, src: memoryview) -> None:
        if dest.readonly:
            raise PermissionError(f"{self.dev.path} is mapped read-only: check the file's permissions")
        dest[:len(src)] = src

    def _copyout(self, dest: memoryview, src: memoryview) -> None:
        dest[:] = src[:len(dest)]

    def _offset(self, buf: memoryview, size: int, offset: int) -> memoryview:
        return buf[offset:offset + size]

    def _as_buffer(self, src: memoryview) -> memoryview:
        return src


class DiskDevice(Compiled):
    """One file."""

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.path = name.partition(":")[2]
        if not self.path:
            raise ValueError(f"{name} names no file: write {name}:/path/to/file")
        self.allocator = DiskAllocator(self)
        self._map: memoryview | None = None

    def map(self, size: int) -> memoryview:
        """The file's bytes, at least ``size`` of them; a new or shorter writable file is extended."""
        if self._map is not None and len(self._map) >= size:
            return self._map
        exists = os.path.exists(self.path)
        writable = not exists or os.access(self.path, os.W_OK)
        fd = os.open(self.path, (os.O_RDWR | os.O_CREAT) if writable else os.O_RDONLY, 0o644)
        try:
            have = os.fstat(fd).st_size
            if have < size:
                if exists and have > 0:
                    raise ValueError(f"{self.path} has {have} bytes, {size} were asked for: the file is too short")
                os.truncate(fd, size)
                have = size
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._map = memoryview(mmap.mmap(fd, have, access=access)) if have else memoryview(bytearray())
        finally:
            os.close(fd)
        return self._map
