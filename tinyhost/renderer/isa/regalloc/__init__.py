"""Register allocation: virtual registers of a linear instruction list -> physical registers, moves and spill slots.

``run(function, env)`` allocates; ``check(function, env, allocation)`` proves an allocation right without sharing code
with the allocator. Both know no instruction set and import nothing but the standard library.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.checker import CheckError, check
from tinyhost.renderer.isa.regalloc.listing import listing
from tinyhost.renderer.isa.regalloc.run import run
from tinyhost.renderer.isa.regalloc.types import (
    COPY_SIGNATURE,
    DEF,
    NO_OPERANDS,
    USE,
    Allocation,
    AllocationError,
    Constraint,
    Edit,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    OperandSpec,
    RegClass,
    Signature,
    SpillSlot,
    Timing,
    VReg,
    define,
    use,
)

__all__ = [
    "Allocation", "AllocationError", "COPY_SIGNATURE", "CheckError", "Constraint", "DEF", "Edit", "EditKind",
    "Function", "Inst", "Kind", "MachineEnv", "NO_OPERANDS", "OperandSpec", "RegClass", "Signature", "SpillSlot",
    "Timing", "USE", "VReg", "check", "define", "listing", "run", "use",
]
