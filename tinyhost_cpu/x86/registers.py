"""The x86-64 register files: names, the allocator's view of them, and the calling convention.

The allocator numbers registers over all files: 0-15 general purpose, 16-47 vector, 48-55 opmask (``NUMBER``).
x86-64-v3 has the first 16 vector registers and no opmask registers; k0 is never allocated, as an operand it means no
mask. ``STACK_ARGS`` and ``LOCALS`` are the stack pointer seen from two places: the caller's arguments and the bottom of
this function's frame; the emitter knows how far they lie from rsp.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.renderer.isa.regalloc import MachineEnv, RegClass
from tinyhost.renderer.isa.registers import Register
from tinyhost_cpu.x86.insns import MASK, R8, R16, R32, R64, XMM, YMM, ZMM

_GPR_NAMES = (
    "RAX",
    "RCX",
    "RDX",
    "RBX",
    "RSP",
    "RBP",
    "RSI",
    "RDI",
    "R8",
    "R9",
    "R10",
    "R11",
    "R12",
    "R13",
    "R14",
    "R15",
)
GPR = tuple(Register(name, i, "gpr") for i, name in enumerate(_GPR_NAMES))
XMM_REGS = tuple(Register(f"XMM{i}", i, "vec") for i in range(32))
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8_, R9, R10, R11, R12, R13, R14, R15 = GPR
STACK_ARGS = Register("STACK_ARGS", 4, "gpr")
LOCALS = Register("LOCALS", 4, "gpr")

VEC_BASE, MASK_BASE = 16, 48  # numbers of the first vector and opmask register in the allocator's numbering
NUMBER = (*range(16), *range(32), *range(8))  # number in its file of each of the allocator's registers
GPR_CLASS, VEC_CLASS, MASK_CLASS = 0, 1, 2
ARGUMENTS = (7, 6, 2, 1, 8, 9)  # System V: rdi rsi rdx rcx r8 r9
CALLEE_SAVED = frozenset({3, 5, 12, 13, 14, 15})
_NAMES = (
    {i: r.name.lower() for i, r in enumerate(GPR)}
    | {VEC_BASE + i: r.name.lower() for i, r in enumerate(XMM_REGS)}
    | {MASK_BASE + i: f"k{i}" for i in range(8)}
)
_GPR_ORDER = RegClass("gpr", (0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15), swap=True)
ENV = MachineEnv(
    classes=(_GPR_ORDER, RegClass("vec", tuple(range(VEC_BASE, VEC_BASE + 16)))),
    callee_saved=CALLEE_SAVED,
    max_align=16,
    names=_NAMES,
)
ENV_V4 = MachineEnv(
    classes=(
        _GPR_ORDER,
        RegClass("vec", tuple(range(VEC_BASE, VEC_BASE + 32))),
        RegClass("mask", tuple(range(MASK_BASE + 1, MASK_BASE + 8))),
    ),
    callee_saved=CALLEE_SAVED,
    max_align=16,
    names=_NAMES,
)

_GPR_KIND = {1: R8, 2: R16, 4: R32, 8: R64}
_kinds: dict[tuple[object, ...], int] = {}


def value_kind(dtype: DType, lanes: int = 1) -> int:
    """Operand kind of a register that holds ``lanes`` elements of ``dtype``; 0 for void.

    A scalar bool is 0 or 1 in a whole 32-bit register, a bool with lanes an opmask register.
    """
    if dtype is dtypes.void:
        return 0
    if lanes > 1 or dtype.is_float:
        if dtype is dtypes.bool:
            return MASK
        size = dtype.itemsize * lanes
        return ZMM if size > 32 else YMM if size > 16 else XMM
    return R32 if dtype is dtypes.bool else _GPR_KIND[dtype.itemsize]


def kind_of(tail: tuple[object, ...]) -> int:
    """``value_kind`` of what follows the opcode in an INS arg."""
    kind = _kinds.get(tail)
    if kind is None:
        kind = _kinds[tail] = value_kind(*tail)  # type: ignore[arg-type]
    return kind
