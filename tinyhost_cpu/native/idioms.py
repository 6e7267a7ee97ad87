"""Pieces of machine code that the functions of this folder share: calls of the system, frames, kernels, waiting.

Each appends to an ``Assembler``. rbx is the state of the running thread (see ``layout``) wherever one is spoken of.
Numbers and layouts: Linux UAPI (unistd_64.h, futex.h), System V ABI.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhost_cpu.native.assembler import (
    R8,
    R9,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    RSI,
    RSP,
    Assembler,
    at,
    low,
)
from tinyhost_cpu.native.layout import CALLS, MXCSR, REGISTER_ARGS, RESUME, STACK
from tinyhost_cpu.x86.insns import X86Ops as X

SCHED_YIELD, NANOSLEEP, FUTEX = 24, 35, 202
FUTEX_WAIT, FUTEX_WAKE = 128, 129  # both private to the process
SAVED = (RBX, RBP, R12, R13, R14, R15)  # System V ABI, 3.2.1
ARGUMENTS = (RDI, RSI, RDX, RCX, R8, R9)
SPINS, YIELDS = 200, 50  # looks at what is waited for: the first at once, these after others could run, then after naps
NAP = 50_000  # ns between looks at words that nobody wakes us for


def system_call(a: Assembler, number: int) -> None:
    """Changes rax, rcx and r11 only."""
    a.number(RAX, number)
    a.put(X.SYSCALL)


def enter(a: Assembler) -> None:
    """Save the caller's registers; the stack becomes a multiple of 16."""
    for register in SAVED:
        a.put(X.PUSH, register)
    a.put(X.SUB, RSP, 8)


def leave(a: Assembler) -> None:
    """Undo ``enter`` and return."""
    a.put(X.ADD, RSP, 8)
    for register in reversed(SAVED):
        a.put(X.POP, register)
    a.put(X.RET)


def remember(a: Assembler, resume: str) -> None:
    """Note in the state at rbx how this thread goes on after a fault."""
    a.put(X.MOV, at(RBX, STACK), RSP)
    a.put(X.STMXCSR, at(RBX, MXCSR, 32))
    resume_at(a, resume)


def resume_at(a: Assembler, label: str) -> None:
    """Where to go on after a fault from now on."""
    a.address(RAX, label)
    a.put(X.MOV, at(RBX, RESUME), RAX)


def forget(a: Assembler) -> None:
    """Faults of this thread are no longer ours."""
    a.number(RCX, 0)
    a.put(X.MOV, at(RBX, RESUME), RCX)


def recover(a: Assembler, avx: bool) -> None:
    """After a fault: rbx and rsp are right; vector state is whatever the kernel left, CALLS may say that it runs."""
    if avx:
        a.put(X.VZEROUPPER)
    a.put(X.LDMXCSR, at(RBX, MXCSR, 32))
    a.put(X.MOV, RAX, at(RBX, CALLS))
    a.put(X.ADD, RAX, 1)
    a.put(X.AND, RAX, -2)
    a.put(X.MOV, at(RBX, CALLS), RAX)


def call_kernel(a: Assembler, name: str, patch: Callable[[], None] = lambda: None) -> None:
    """Call r15 with the rcx words at rsi, as ``patch`` changes them in their copy at rsp; rsp is STACK behind it."""
    a.put(X.MOV, RAX, RCX)
    a.put(X.CMP, RAX, REGISTER_ARGS)
    a.jump(X.JAE, name + " many")
    a.number(RAX, REGISTER_ARGS)
    a.label(name + " many")
    a.put(X.ADD, RAX, 1)
    a.put(X.AND, RAX, -2)  # the stack stays a multiple of 16
    a.put(X.SHL, RAX, 3)
    a.put(X.SUB, RSP, RAX)
    a.put(X.TEST, RCX, RCX)
    a.jump(X.JE, name + " copied")
    a.label(name + " word")
    a.put(X.MOV, RAX, at(RSI, -8, index=RCX, scale=8))
    a.put(X.MOV, at(RSP, -8, index=RCX, scale=8), RAX)
    a.put(X.SUB, RCX, 1)
    a.jump(X.JNE, name + " word")
    a.label(name + " copied")
    patch()
    for i, register in enumerate(ARGUMENTS):
        a.put(X.MOV, register, at(RSP, 8 * i))
    a.put(X.ADD, RSP, 8 * REGISTER_ARGS)  # the words behind them are the stack arguments
    # the watchdog compares: the same odd number twice is a kernel that runs all the while
    a.put(X.ADD, at(RBX, CALLS), 1)
    a.put(X.CALL, R15)
    a.put(X.ADD, at(RBX, CALLS), 1)
    a.put(X.MOV, RSP, at(RBX, STACK))


def rest(a: Assembler, name: str, again: str, sleep: Callable[[], None],
         look_up: Callable[[Assembler], None] = lambda a: None) -> None:
    """Let time pass, r15 counts how often before, then jump to ``again``; ``sleep`` is what to do after many.

    ``look_up`` is done whenever that took more than a moment.
    """
    a.put(X.ADD, low(R15), 1)
    a.put(X.CMP, low(R15), SPINS)
    a.jump(X.JA, name + " yield")
    a.put(X.PAUSE)
    a.jump(X.JMP, again)
    a.label(name + " yield")
    a.put(X.CMP, low(R15), SPINS + YIELDS)
    a.jump(X.JA, name + " sleep")
    system_call(a, SCHED_YIELD)
    a.jump(X.JMP, name + " rested")
    a.label(name + " sleep")
    sleep()
    a.label(name + " rested")
    look_up(a)
    a.jump(X.JMP, again)


def nap(a: Assembler, place: int) -> None:
    """Sleep as long as the timespec at this place of the stack says."""
    a.put(X.LEA, RDI, at(RSP, place, 0))
    a.number(RSI, 0)
    system_call(a, NANOSLEEP)
