"""DISK: files as storage. ``DISK:/path`` names the file; bytes are read when they are used, straight into their
destination.

A file that does not exist, or is empty, is created at the size that is asked for. A file is open while buffers on it
live, and opened again when the path holds another one than before, so a file that was replaced is read anew and one
that shrank is an error, never a fault.
"""
from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import NoReturn

from tinyhost.capabilities import Capabilities
from tinyhost.device.base import Allocator, BufferSpec, Compiled
from tinyhost.specs import DeviceSpec
from tinyhost.target import Target


def capabilities(target: Target) -> Capabilities:
    """Storage without kernels."""
    return Capabilities(storage_only=True)


class _File:
    """An open file; closed when the last buffer on it is gone."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        exists = os.path.exists(path)
        self.writable = not exists or os.access(path, os.W_OK)
        self.fd = os.open(path, (os.O_RDWR | os.O_CREAT) if self.writable else os.O_RDONLY, 0o644)
        if os.fstat(self.fd).st_size == 0 and self.writable and size:
            os.truncate(self.fd, size)

    def __del__(self) -> None:
        if hasattr(self, "fd"):  # opening may have failed
            os.close(self.fd)

    def stands_at(self, path: str) -> bool:
        """Whether the path still names this file."""
        try:
            there, here = os.stat(path), os.fstat(self.fd)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        return os.fstat(self.fd).st_size

    def too_short(self, needed: int) -> NoReturn:
        raise ValueError(f"{self.path} has {self.size} bytes, {needed} are needed: the file is truncated, or shrank "
                         "while it was in use")


@dataclass(frozen=True)
class Extent:
    """``size`` bytes from byte ``start`` of an open file."""

    file: _File
    start: int
    size: int


class DiskAllocator(Allocator[Extent]):
    """An opaque buffer is an Extent."""

    dev: "DiskDevice"
    counted = False

    def _alloc(self, size: int, options: BufferSpec) -> Extent:
        return Extent(self.dev.open(size), 0, size)

    def _copyin(self, dest: Extent, src: memoryview) -> None:
        if not dest.file.writable:
            raise PermissionError(f"{dest.file.path} is read-only for this process: check the file's permissions")
        done = 0
        while done < len(src):
            done += os.pwrite(dest.file.fd, src[done:], dest.start + done)

    def _copyout(self, dest: memoryview, src: Extent) -> None:
        done = 0
        while done < len(dest):  # one call reads at most 2 GiB
            got = os.preadv(src.file.fd, [dest[done:]], src.start + done)
            if got == 0:
                src.file.too_short(src.start + len(dest))
            done += got

    def _offset(self, buf: Extent, size: int, offset: int) -> Extent:
        return Extent(buf.file, buf.start + offset, size)


class DiskDevice(Compiled):
    """One path."""

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.path = name.partition(":")[2]
        if not self.path:
            raise ValueError(f"{name} names no file: write {name}:/path/to/file")
        self.allocator = DiskAllocator(self)
        self._file: weakref.ref[_File] | None = None  # its buffers keep it open

    def open(self, size: int) -> _File:
        """The file with at least ``size`` bytes.

        Raises:
            ValueError: it is shorter.
        """
        file = None if self._file is None else self._file()
        if file is None or not file.stands_at(self.path):
            file = _File(self.path, size)
            self._file = weakref.ref(file)
        if file.size < size:
            file.too_short(size)
        return file
