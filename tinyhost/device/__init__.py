"""Devices: storage (Buffer, allocators), loaded programs, the registry of opened devices, and the built-in ones."""
from tinyhost.device.base import (Allocator, BufferSpec, Compiled, LRUAllocator, Program, TinyELF)
from tinyhost.device.buffer import Buffer, host_buffer
from tinyhost.device.registry import Device, caps_of, renderer_of

__all__ = ["Allocator", "Buffer", "BufferSpec", "Compiled", "Device", "LRUAllocator", "Program", "TinyELF", "caps_of",
           "host_buffer", "renderer_of"]
