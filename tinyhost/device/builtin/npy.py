"""NPY: host memory as numpy arrays. Holds data on its way in and out; runs no kernels."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tinyhost.capabilities import Capabilities
from tinyhost.device.base import Allocator, BufferSpec, Compiled
from tinyhost.specs import DeviceSpec
from tinyhost.target import Target


def capabilities(target: Target) -> Capabilities:
    """Host-visible storage without kernels."""
    return Capabilities(storage_only=True, host_visible=True)


def host_bytes(array: "np.ndarray[Any, Any]") -> memoryview:
    """The bytes of a contiguous array, writable if the array is."""
    return array.reshape(-1).view(np.uint8).data


class NpyAllocator(Allocator["np.ndarray[Any, Any]"]):
    """An opaque buffer is a one-dimensional contiguous array."""

    foreign = True

    def _alloc(self, size: int, options: BufferSpec) -> "np.ndarray[Any, Any]":
        if options.external_ptr is not None:
            return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(options.external_ptr))
        return np.zeros(size, dtype=np.uint8) if options.zero else np.empty(size, dtype=np.uint8)

    def _copyin(self, dest: "np.ndarray[Any, Any]", src: memoryview) -> None:
        host_bytes(dest)[:len(src)] = src

    def _copyout(self, dest: memoryview, src: "np.ndarray[Any, Any]") -> None:
        dest[:] = host_bytes(src)[:len(dest)]

    def _offset(self, buf: "np.ndarray[Any, Any]", size: int, offset: int) -> "np.ndarray[Any, Any]":
        return buf.reshape(-1).view(np.uint8)[offset:offset + size]

    def _as_buffer(self, src: "np.ndarray[Any, Any]") -> memoryview:
        return host_bytes(src)


class NpyDevice(Compiled):
    """The numpy device."""

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator = NpyAllocator(self)
