"""Devices: storage (Buffer, allocators), loaded programs, the registry of opened devices, and the built-in ones.

Names load on first use: building graphs needs the registry and Buffer, not what opens devices.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.device.base import Allocator as Allocator
    from tinyhost.device.base import BufferSpec as BufferSpec
    from tinyhost.device.base import Compiled as Compiled
    from tinyhost.device.base import LRUAllocator as LRUAllocator
    from tinyhost.device.base import Program as Program
    from tinyhost.device.base import TinyELF as TinyELF
    from tinyhost.device.buffer import Buffer as Buffer
    from tinyhost.device.buffer import host_buffer as host_buffer
    from tinyhost.device.registry import Device as Device
    from tinyhost.device.selection import caps_of as caps_of
    from tinyhost.device.selection import renderer_of as renderer_of

_HOME = {
    "Allocator": "base", "BufferSpec": "base", "Compiled": "base", "LRUAllocator": "base", "Program": "base",
    "TinyELF": "base", "Buffer": "buffer", "host_buffer": "buffer", "Device": "registry", "caps_of": "selection",
    "renderer_of": "selection"}
__all__ = ["Allocator", "Buffer", "BufferSpec", "Compiled", "Device", "LRUAllocator", "Program", "TinyELF", "caps_of",
           "host_buffer", "renderer_of"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
