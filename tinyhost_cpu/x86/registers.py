"""The x86-64 register files: names, the allocator's view of them, and the calling convention.

The allocator numbers registers over all files: 0-15 general purpose, 16-31 vector. ``STACK_ARGS`` and ``LOCALS`` are
the stack pointer seen from two places: the caller's arguments and the bottom of this function's frame; the emitter
knows how far they lie from rsp.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.renderer.isa.regalloc import MachineEnv, RegClass
from tinyhost.renderer.isa.registers import Register
from tinyhost_cpu.x86.insns import R8, R16, R32, R64, XMM, YMM

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
XMM_REGS = tuple(Register(f"XMM{i}", i, "vec") for i in range(16))
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8_, R9, R10, R11, R12, R13, R14, R15 = GPR
STACK_ARGS = Register("STACK_ARGS", 4, "gpr")
LOCALS = Register("LOCALS", 4, "gpr")

VEC_BASE = 16  # number of the first vector register in the allocator's numbering
GPR_CLASS, VEC_CLASS = 0, 1
ARGUMENTS = (7, 6, 2, 1, 8, 9)  # System V: rdi rsi rdx rcx r8 r9
CALLEE_SAVED = frozenset({3, 5, 12, 13, 14, 15})
ENV = MachineEnv(
    classes=(
        RegClass("gpr", (0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15), swap=True),
        RegClass("vec", tuple(range(VEC_BASE, VEC_BASE + 16))),
    ),
    callee_saved=CALLEE_SAVED,
    max_align=16,
    names={i: r.name.lower() for i, r in enumerate(GPR)}
    | {VEC_BASE + i: r.name.lower() for i, r in enumerate(XMM_REGS)},
)

_GPR_KIND = {1: R8, 2: R16, 4: R32, 8: R64}
_kinds: dict[tuple[object, ...], int] = {}


def value_kind(dtype: DType, lanes: int = 1) -> int:
    """Operand kind of a register that holds ``lanes`` elements of ``dtype``; 0 for void.

    A scalar bool is 0 or 1 in a whole 32-bit register.
    """
    if dtype is dtypes.void:
        return 0
    if lanes > 1 or dtype.is_float:
        return YMM if dtype.itemsize * lanes > 16 else XMM
    return R32 if dtype is dtypes.bool else _GPR_KIND[dtype.itemsize]


def kind_of(tail: tuple[object, ...]) -> int:
    """``value_kind`` of what follows the opcode in an INS arg."""
    kind = _kinds.get(tail)
    if kind is None:
        kind = _kinds[tail] = value_kind(*tail)  # type: ignore[arg-type]
    return kind
