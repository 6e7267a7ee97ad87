"""Machine code of a worker, of guarded calls and of the fault handler, for Linux on x86-64.

``assemble(table)`` gives one piece of code and where these C functions start in it:

- ``worker(state)``: a thread's life. It runs one slot after the other; with nothing to do it spins for a moment, then
  sleeps until PUT moves. A slot without a function ends it.
- ``publish(state, put)``: moves PUT and wakes the worker if it sleeps.
- ``wait(state, done, spins, timeout)``: 1 when DONE has come to ``done``, 0 when neither spinning nor one sleep of at
  most ``timeout`` (a timespec; none: no sleep) saw that.
- ``guarded(state, function, count, arguments)``: calls a function on this thread; 0, or the signal that ended it.
- ``handler(signal, info, context)``: notes a fault in the state of the thread it happened in and lets that thread go
  on behind its call. Any other fault goes to the handler that was there before.

Numbers of system calls and layouts: Linux UAPI (unistd_64.h, futex.h, sigcontext.h, siginfo.h).
"""
from __future__ import annotations

from tinyhost_cpu.native.assembler import (
    R8,
    R9,
    R10,
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
from tinyhost_cpu.native.layout import (
    ALT_STACK,
    COUNT,
    DEFAULT_ACTION,
    DONE,
    FAULT_ADDRESS,
    FAULT_CODE,
    FAULT_SIGNAL,
    FAULT_SLOT,
    HANDLERS,
    MXCSR,
    PAIRS,
    PARKED,
    PUT,
    REGISTER_ARGS,
    RESUME,
    SLOTS,
    SLOTS_AT,
    STACK,
    TID,
    WAITERS,
)
from tinyhost_cpu.x86.insns import X86Ops as X

RT_SIGACTION, SIGALTSTACK, GETTID, FUTEX = 13, 131, 186, 202
FUTEX_WAIT, FUTEX_WAKE = 128, 129  # both private to the process
SPINS = 500  # looks at PUT before the worker sleeps: some ten microseconds
SAVED = (RBX, RBP, R12, R13, R14, R15)  # System V ABI, 3.2.1
ARGUMENTS = (RDI, RSI, RDX, RCX, R8, R9)
SI_ADDR = 16
GREG_RBX, GREG_RSP, GREG_RIP = (40 + 8 * i for i in (11, 15, 16))  # in ucontext_t


def assemble(table: int, avx: bool) -> tuple[bytes, dict[str, int]]:
    """Code, and the offset of each function.

    Args:
        table: address of the table of threads.
        avx: whether the processor has upper halves of vector registers to clear after a fault.
    """
    a = Assembler()
    _worker(a, avx)
    _publish(a)
    _wait(a)
    _guarded(a, avx)
    _handler(a, table)
    return a.finish(), a.labels


def _system_call(a: Assembler, number: int) -> None:
    a.number(RAX, number)
    a.put(X.SYSCALL)


def _futex(a: Assembler, word: int, operation: int) -> None:
    """futex on a word of the state at rbx; rdx and r10 hold value and timeout."""
    a.put(X.LEA, RDI, at(RBX, word, 0))
    a.number(RSI, operation)
    _system_call(a, FUTEX)


def _enter(a: Assembler) -> None:
    """Save the caller's registers; rbx becomes the state, the stack a multiple of 16."""
    for register in SAVED:
        a.put(X.PUSH, register)
    a.put(X.SUB, RSP, 8)
    a.put(X.MOV, RBX, RDI)


def _leave(a: Assembler) -> None:
    a.put(X.ADD, RSP, 8)
    for register in reversed(SAVED):
        a.put(X.POP, register)
    a.put(X.RET)


def _remember(a: Assembler, resume: str) -> None:
    """Note how this thread goes on after a fault."""
    a.put(X.MOV, at(RBX, STACK), RSP)
    a.put(X.STMXCSR, at(RBX, MXCSR, 32))
    a.address(RAX, resume)
    a.put(X.MOV, at(RBX, RESUME), RAX)


def _recover(a: Assembler, avx: bool) -> None:
    """After a fault: rbx and rsp are right; vector state is whatever the kernel left."""
    if avx:
        a.put(X.VZEROUPPER)
    a.put(X.LDMXCSR, at(RBX, MXCSR, 32))


def _call(a: Assembler, name: str) -> None:
    """Call r14 with the r15 words at rbp."""
    a.put(X.MOV, RCX, R15)
    a.put(X.SUB, RCX, REGISTER_ARGS)
    a.jump(X.JLE, name + " registers")
    a.put(X.MOV, RAX, RCX)
    a.put(X.AND, low(RAX), 1)
    a.put(X.SHL, RAX, 3)
    a.put(X.SUB, RSP, RAX)  # an odd number of words on the stack needs one more
    a.label(name + " push")
    a.put(X.MOV, RAX, at(RBP, 8 * (REGISTER_ARGS - 1), index=RCX, scale=8))
    a.put(X.PUSH, RAX)
    a.put(X.SUB, RCX, 1)
    a.jump(X.JNE, name + " push")
    a.label(name + " registers")
    for i, register in enumerate(ARGUMENTS):
        a.put(X.MOV, register, at(RBP, 8 * i))
    a.put(X.CALL, R14)


def _worker(a: Assembler, avx: bool) -> None:
    a.label("worker")
    _enter(a)
    a.put(X.LEA, RDI, at(RBX, ALT_STACK, 0))
    a.number(RSI, 0)
    _system_call(a, SIGALTSTACK)
    _remember(a, "worker fault")
    _system_call(a, GETTID)
    a.put(X.MOV, at(RBX, TID), RAX)
    a.put(X.MOV, R12, at(RBX, DONE))
    a.label("next")
    a.number(RCX, SPINS)
    a.label("spin")
    a.put(X.CMP, R12, at(RBX, PUT))
    a.jump(X.JNE, "work")
    a.put(X.PAUSE)
    a.put(X.SUB, low(RCX), 1)
    a.jump(X.JNE, "spin")
    _park(a)
    a.jump(X.JMP, "next")
    a.label("work")
    _find_slot(a)
    a.put(X.MOV, R14, at(R13))
    a.put(X.MOV, R15, at(R13, 8))
    a.put(X.MOV, RBP, at(R13, 16))
    a.put(X.TEST, R14, R14)
    a.jump(X.JE, "end")
    _call(a, "slot")
    a.label("behind")
    a.put(X.MOV, RSP, at(RBX, STACK))
    _finish_slot(a, "next")
    a.jump(X.JMP, "next")
    a.label("worker fault")
    _recover(a, avx)
    a.put(X.MOV, R12, at(RBX, DONE))
    _find_slot(a)
    a.put(X.MOV, RAX, at(RBX, FAULT_SIGNAL))
    a.put(X.MOV, at(R13, 24), RAX)
    a.jump(X.JMP, "behind")
    a.label("end")
    _finish_slot(a, "gone")
    a.label("gone")
    _leave(a)


def _find_slot(a: Assembler) -> None:
    """r13 = address of slot r12."""
    a.put(X.MOV, RAX, R12)
    a.put(X.AND, low(RAX), SLOTS - 1)
    a.put(X.SHL, RAX, 5)
    a.put(X.LEA, R13, at(RBX, SLOTS_AT, 0, RAX))


def _park(a: Assembler) -> None:
    """Sleep until PUT is not r12; ``publish`` sees PARKED, or the exchange here sees its PUT."""
    a.number(RAX, 1)
    a.put(X.XCHG, at(RBX, PARKED, 32), low(RAX))
    a.put(X.CMP, R12, at(RBX, PUT))
    a.jump(X.JNE, "awake")
    a.put(X.MOV, RDX, R12)
    a.number(R10, 0)
    _futex(a, PUT, FUTEX_WAIT)
    a.label("awake")
    a.number(RAX, 0)
    a.put(X.XCHG, at(RBX, PARKED, 32), low(RAX))


def _finish_slot(a: Assembler, then: str) -> None:
    """Count the slot r12 as done and wake who waits; jumps to ``then`` where nobody does."""
    a.put(X.ADD, R12, 1)
    a.put(X.MOV, RAX, R12)
    a.put(X.XCHG, at(RBX, DONE), RAX)  # before the look at WAITERS
    a.put(X.CMP, at(RBX, WAITERS, 32), 0)
    a.jump(X.JE, then)
    a.number(RDX, (1 << 31) - 1)
    _futex(a, DONE, FUTEX_WAKE)


def _publish(a: Assembler) -> None:
    a.label("publish")
    _enter(a)
    a.put(X.XCHG, at(RBX, PUT), RSI)  # before the look at PARKED
    a.put(X.CMP, at(RBX, PARKED, 32), 0)
    a.jump(X.JE, "published")
    a.number(RDX, 1)
    _futex(a, PUT, FUTEX_WAKE)
    a.label("published")
    _leave(a)


def _wait(a: Assembler) -> None:
    a.label("wait")
    _enter(a)
    a.put(X.MOV, R12, RSI)
    a.put(X.MOV, R13, RCX)
    a.label("look")
    a.put(X.MOV, RAX, at(RBX, DONE))
    a.put(X.CMP, RAX, R12)
    a.jump(X.JAE, "reached")
    a.put(X.PAUSE)
    a.put(X.SUB, RDX, 1)
    a.jump(X.JG, "look")
    a.put(X.TEST, R13, R13)
    a.jump(X.JE, "not yet")
    a.put(X.ADD, at(RBX, WAITERS, 32), 1, lock=True)
    a.put(X.MOV, RDX, at(RBX, DONE))
    a.put(X.CMP, RDX, R12)
    a.jump(X.JAE, "no sleep")
    a.put(X.MOV, R10, R13)
    _futex(a, DONE, FUTEX_WAIT)  # compares the lower half of rdx
    a.label("no sleep")
    a.put(X.SUB, at(RBX, WAITERS, 32), 1, lock=True)
    a.put(X.CMP, at(RBX, DONE), R12)
    a.jump(X.JAE, "reached")
    a.label("not yet")
    a.number(RAX, 0)
    _leave(a)
    a.label("reached")
    a.number(RAX, 1)
    _leave(a)


def _guarded(a: Assembler, avx: bool) -> None:
    a.label("guarded")
    _enter(a)
    a.put(X.MOV, R14, RSI)
    a.put(X.MOV, R15, RDX)
    a.put(X.MOV, RBP, RCX)
    _remember(a, "guarded fault")
    _call(a, "call")
    a.number(RAX, 0)
    a.label("out")
    a.put(X.MOV, RSP, at(RBX, STACK))
    a.number(RCX, 0)
    a.put(X.MOV, at(RBX, RESUME), RCX)
    _leave(a)
    a.label("guarded fault")
    _recover(a, avx)
    a.put(X.MOV, RAX, at(RBX, FAULT_SIGNAL))
    a.jump(X.JMP, "out")


def _handler(a: Assembler, table: int) -> None:
    a.label("handler")
    a.number(R8, table)
    _system_call(a, GETTID)
    a.put(X.MOV, R9, at(R8, COUNT))
    a.put(X.LEA, R10, at(R8, PAIRS, 0))
    a.label("search")
    a.put(X.TEST, R9, R9)
    a.jump(X.JE, "foreign")
    a.put(X.CMP, at(R10), RAX)
    a.jump(X.JE, "ours")
    a.put(X.ADD, R10, 16)
    a.put(X.SUB, R9, 1)
    a.jump(X.JMP, "search")
    a.label("ours")
    a.put(X.MOV, R10, at(R10, 8))
    a.put(X.CMP, at(R10, RESUME), 0)
    a.jump(X.JE, "foreign")
    a.put(X.MOV, at(R10, FAULT_SIGNAL), RDI)
    for noted, source in ((FAULT_ADDRESS, at(RSI, SI_ADDR)), (FAULT_CODE, at(RDX, GREG_RIP)),
                          (FAULT_SLOT, at(R10, DONE))):
        a.put(X.MOV, RAX, source)
        a.put(X.MOV, at(R10, noted), RAX)
    for register, kept in ((GREG_RIP, RESUME), (GREG_RSP, STACK)):
        a.put(X.MOV, RAX, at(R10, kept))
        a.put(X.MOV, at(RDX, register), RAX)
    a.put(X.MOV, at(RDX, GREG_RBX), R10)
    a.put(X.RET)
    a.label("foreign")
    a.put(X.MOV, RAX, at(R8, HANDLERS, index=RDI, scale=8))
    a.put(X.CMP, RAX, 1)
    a.jump(X.JA, "chain")
    # no handler before: with the default action the instruction faults again and ends the process
    a.put(X.LEA, RSI, at(R8, DEFAULT_ACTION, 0))
    a.number(RDX, 0)
    a.number(R10, 8)
    _system_call(a, RT_SIGACTION)
    a.put(X.RET)
    a.label("chain")
    a.put(X.JMP, RAX)
