"""The x86-64 back end: instruction table, encoder, selection, renderer. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost_cpu.x86.insns import X86Op, X86Ops
    from tinyhost_cpu.x86.operands import def_reg, imm
    from tinyhost_cpu.x86.registers import GPR, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP
    from tinyhost_cpu.x86.registers import XMM_REGS as XMM
    from tinyhost_cpu.x86.renderer import X86Compiler, X86Renderer

_HOMES = {
    "X86Op": "insns",
    "X86Ops": "insns",
    "def_reg": "operands",
    "imm": "operands",
    "X86Renderer": "renderer",
    "X86Compiler": "renderer",
    **dict.fromkeys(("GPR", "RAX", "RBP", "RBX", "RCX", "RDI", "RDX", "RSI", "RSP"), "registers"),
}

__all__ = [
    "GPR",
    "RAX",
    "RBP",
    "RBX",
    "RCX",
    "RDI",
    "RDX",
    "RSI",
    "RSP",
    "X86Compiler",
    "X86Op",
    "X86Ops",
    "X86Renderer",
    "XMM",
    "def_reg",
    "imm",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "XMM":
        value = importlib.import_module("tinyhost_cpu.x86.registers").XMM_REGS
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"tinyhost_cpu.x86.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
