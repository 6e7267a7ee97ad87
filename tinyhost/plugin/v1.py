"""The plugin API, version 1: everything a backend may import from the core.

The module's name is the version; an author types no number. Members are only added, with defaults; the day each one
came stands in docs/plugin-api-changelog.md. Names are imported when they are first used, so a spec module that
takes `DeviceSpec` from here loads nothing heavy.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyhost.specs import (
    DRY,
    HOST,
    REFERENCE,
    STORAGE,
    DeviceSpec,
    EnvVar,
    InterfaceSpec,
    ProbeResult,
    RendererSpec,
    Tier,
)
from tinyhost.target import Target

if TYPE_CHECKING:
    from tinyhost.capabilities import Capabilities as Capabilities
    from tinyhost.device.base import Allocator as Allocator
    from tinyhost.device.base import BufferSpec as BufferSpec
    from tinyhost.device.base import Compiled as Compiled
    from tinyhost.device.base import LRUAllocator as LRUAllocator
    from tinyhost.device.base import Program as Program
    from tinyhost.device.base import TinyELF as TinyELF
    from tinyhost.device.buffer import Buffer as Buffer
    from tinyhost.hcq.device import PeerGroup as PeerGroup
    from tinyhost.hcq.device import Queues as Queues
    from tinyhost.renderer.base import Compiler as Compiler
    from tinyhost.renderer.base import Renderer as Renderer

_LAZY = {
    "Capabilities": "tinyhost.capabilities:Capabilities",
    "Compiled": "tinyhost.device.base:Compiled",
    "Allocator": "tinyhost.device.base:Allocator",
    "LRUAllocator": "tinyhost.device.base:LRUAllocator",
    "Program": "tinyhost.device.base:Program",
    "TinyELF": "tinyhost.device.base:TinyELF",
    "Buffer": "tinyhost.device.buffer:Buffer",
    "BufferSpec": "tinyhost.device.base:BufferSpec",
    "Renderer": "tinyhost.renderer.base:Renderer",
    "Compiler": "tinyhost.renderer.base:Compiler",
    "CStyleRenderer": "tinyhost.renderer.cstyle:CStyleRenderer",
    "ContextVar": "tinyhost.env:ContextVar",
    "Context": "tinyhost.env:Context",
    "getenv": "tinyhost.env:getenv",
    "UOp": "tinyhost.uop:UOp",
    "Ops": "tinyhost.ops:Ops",
    "GroupOp": "tinyhost.ops:GroupOp",
    "AddrSpace": "tinyhost.ops:AddrSpace",
    "AxisType": "tinyhost.ops:AxisType",
    "UPat": "tinyhost.uop:UPat",
    "PatternMatcher": "tinyhost.uop:PatternMatcher",
    "graph_rewrite": "tinyhost.uop:graph_rewrite",
    "dtypes": "tinyhost.dtype:dtypes",
    "DType": "tinyhost.dtype:DType",
    "CompileError": "tinyhost.errors:CompileError",
    "DeviceUnavailable": "tinyhost.errors:DeviceUnavailable",
    "RendererUnavailable": "tinyhost.errors:RendererUnavailable",
    "OutOfMemory": "tinyhost.errors:OutOfMemory",
    "DeviceError": "tinyhost.errors:DeviceError",
    "hookimpl": "tinyhost.plugin.hookimpl:hookimpl",
    # command queues
    "ArgumentArena": "tinyhost.hcq.arguments:ArgumentArena",
    "Encoder": "tinyhost.hcq.stream:Encoder",
    "Encoding": "tinyhost.hcq.stream:Encoding",
    "Execute": "tinyhost.hcq.commands:Execute",
    "HCQAllocator": "tinyhost.hcq.memory:HCQAllocator",
    "HostMemory": "tinyhost.hcq.mmio:HostMemory",
    "MMIO": "tinyhost.hcq.mmio:MMIO",
    "PeerGroup": "tinyhost.hcq.device:PeerGroup",
    "Queues": "tinyhost.hcq.device:Queues",
    "Ring": "tinyhost.hcq.rings:Ring",
    "Signal": "tinyhost.hcq.signals:Signal",
    "SignalPool": "tinyhost.hcq.signals:SignalPool",
    "Submission": "tinyhost.hcq.device:Submission",
    "Timeline": "tinyhost.hcq.signals:Timeline",
    "Timing": "tinyhost.hcq.device:Timing",
    "packet": "tinyhost.hcq.stream:packet",
    "several": "tinyhost.hcq.stream:several",
    "low": "tinyhost.hcq.words:low",
    "high": "tinyhost.hcq.words:high",
    "queue_commands": "tinyhost.hcq.commands:",  # the module
}

__all__ = ["DRY", "HOST", "REFERENCE", "STORAGE", "DeviceSpec", "EnvVar", "InterfaceSpec", "ProbeResult",
           "RendererSpec", "Target", "Tier"]
__all__ += list(_LAZY)


def __getattr__(name: str) -> Any:
    try:
        module, _, attribute = _LAZY[name].partition(":")
    except KeyError:
        raise AttributeError(f"the plugin API v1 has no member {name!r}; it offers "
                             + ", ".join(sorted(__all__))) from None
    home = importlib.import_module(module)
    value = globals()[name] = getattr(home, attribute) if attribute else home
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
