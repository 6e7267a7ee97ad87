"""Machine code of workers, of hand-over between threads, of guarded calls and of the fault handler; Linux on x86-64.

``assemble(...)`` gives one piece of code and where these C functions start in it; ``packets`` adds ``participate`` and
the code of each kind of packet.

- ``worker(state)``: a thread's life, to the end of the process. It helps with one run after the other; with nothing to
  do it spins for a moment, then sleeps until PUT moves.
- ``reset(run, packets)``: makes a run ready: nothing is claimed, nothing has ended.
- ``hand_in(calls, count)``: puts calls for help into the rings of workers and wakes who sleeps. 0, and nothing done,
  when one of the rings is full; callers take turns.
- ``withdraw(calls, count, rests)``: takes back the calls that no worker has taken yet, and waits until the others have
  left; 0 when that takes longer than so many rests.
- ``guarded(state, function, count, arguments)``: calls a function on this thread; 0, or the signal that ended it.
- ``handler(signal, info, context)``: notes a fault in the state of the thread it happened in and lets that thread go
  on behind its call; so it does with the watchdog's signal, if the kernel that is meant still runs. Any other fault
  goes to the handler that was there before.

Numbers of system calls and layouts: Linux UAPI (unistd_64.h, futex.h, sigcontext.h, siginfo.h).
"""
from __future__ import annotations

from tinyhost_cpu.native import packets
from tinyhost_cpu.native.assembler import (
    R8,
    R9,
    R10,
    R12,
    R13,
    R14,
    R15,
    RAX,
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
from tinyhost_cpu.native.idioms import (
    FUTEX,
    FUTEX_WAIT,
    FUTEX_WAKE,
    NAP,
    call_kernel,
    enter,
    forget,
    leave,
    nap,
    recover,
    remember,
    rest,
    system_call,
)
from tinyhost_cpu.native.layout import (
    ALT_STACK,
    CALLS,
    COUNT,
    DEFAULT_ACTION,
    DONE,
    EMPTY_SLOT,
    EXPIRED,
    FAULT_ADDRESS,
    FAULT_CODE,
    FAULT_SIGNAL,
    HANDLERS,
    HELP_BYTES,
    HELP_LEADS,
    HELP_RING,
    HELP_RUN,
    HELP_SLOT,
    MASK,
    PACKET_BYTES,
    PACKET_CLAIMED,
    PAIRS,
    PARKED,
    PUT,
    RESUME,
    RUN_HEADER_BYTES,
    RUN_LEFT,
    RUN_STARTED,
    SLOTS,
    SLOTS_AT,
    STACK,
    TID,
)
from tinyhost_cpu.x86.insns import X86Ops as X

RT_SIGACTION, RT_SIGPROCMASK, SIGALTSTACK, GETTID = 13, 14, 131, 186
SIG_SETMASK = 2  # signal.h
IDLE_SPINS = 500  # looks at PUT before the worker sleeps: some ten microseconds
SI_ADDR = 16
GREG_RBX, GREG_RSP, GREG_RIP = (40 + 8 * i for i in (11, 15, 16))  # in ucontext_t


def assemble(table: int, avx: bool, clock: int, watchdog: int) -> tuple[bytes, dict[str, int]]:
    """Code, and the offset of each function.

    Args:
        table: address of the table of threads.
        avx: whether the processor has upper halves of vector registers to clear after a fault.
        clock: address of clock_gettime.
        watchdog: number of the signal that ends kernels.
    """
    a = Assembler()
    _worker(a)
    _reset(a)
    _hand_in(a)
    _withdraw(a)
    _guarded(a, avx)
    _handler(a, table, watchdog)
    packets.participate(a, avx, clock)
    return a.finish(), a.labels


def _futex_on_put(a: Assembler, operation: int) -> None:
    """futex on PUT of the state at rbx; rdx and r10 hold value and timeout."""
    a.put(X.LEA, RDI, at(RBX, PUT, 0))
    a.number(RSI, operation)
    system_call(a, FUTEX)


def _worker(a: Assembler) -> None:
    a.label("worker")
    a.put(X.SUB, RSP, 8)  # the stack is a multiple of 16
    a.put(X.MOV, RBX, RDI)
    a.put(X.LEA, RDI, at(RBX, ALT_STACK, 0))
    a.number(RSI, 0)
    system_call(a, SIGALTSTACK)
    a.number(RDI, SIG_SETMASK)
    a.put(X.LEA, RSI, at(RBX, MASK, 0))
    a.number(RDX, 0)
    a.number(R10, 8)
    system_call(a, RT_SIGPROCMASK)
    system_call(a, GETTID)
    a.put(X.MOV, at(RBX, TID), RAX)
    a.put(X.MOV, R12, at(RBX, DONE))
    a.label("idle")
    a.number(R14, IDLE_SPINS)
    a.label("spin")
    a.put(X.CMP, R12, at(RBX, PUT))
    a.jump(X.JNE, "work")
    a.put(X.PAUSE)
    a.put(X.SUB, R14, 1)
    a.jump(X.JNE, "spin")
    _park(a)
    a.jump(X.JMP, "idle")
    a.label("work")
    a.put(X.MOV, RAX, R12)
    a.put(X.AND, low(RAX), SLOTS - 1)
    a.number(RDI, EMPTY_SLOT)
    a.put(X.XCHG, at(RBX, SLOTS_AT, index=RAX, scale=8), RDI)  # from here on nobody can withdraw it
    a.put(X.TEST, RDI, RDI)
    a.jump(X.JE, "pass")
    a.put(X.MOV, RSI, RBX)
    a.number(RDX, packets.HELP)
    a.put(X.MOV, RAX, RDI)
    a.put(X.AND, RAX, HELP_LEADS)
    a.put(X.ADD, RDX, RAX)
    a.put(X.SUB, RDI, RAX)
    a.address(RAX, "participate")
    a.put(X.CALL, RAX)
    a.label("pass")
    a.put(X.ADD, R12, 1)
    a.put(X.MOV, at(RBX, DONE), R12)
    a.jump(X.JMP, "idle")


def _park(a: Assembler) -> None:
    """Sleep until PUT is not r12; ``hand_in`` sees PARKED, or the exchange here sees its PUT."""
    a.number(RAX, 1)
    a.put(X.XCHG, at(RBX, PARKED, 32), low(RAX))  # before the look at PUT
    a.put(X.CMP, R12, at(RBX, PUT))
    a.jump(X.JNE, "awake")
    a.put(X.MOV, RDX, R12)
    a.number(R10, 0)
    _futex_on_put(a, FUTEX_WAIT)
    a.label("awake")
    a.put(X.MOV, at(RBX, PARKED, 32), 0)


def _reset(a: Assembler) -> None:
    a.label("reset")
    a.number(RAX, 0)
    for place in range(0, RUN_HEADER_BYTES, 8):
        a.put(X.MOV, at(RDI, place), RAX)
    a.label("reset packet")
    a.put(X.TEST, RSI, RSI)
    a.jump(X.JE, "ready")
    a.put(X.MOV, at(RDI, RUN_HEADER_BYTES + PACKET_CLAIMED), RAX)
    a.put(X.ADD, RDI, PACKET_BYTES)
    a.put(X.SUB, RSI, 1)
    a.jump(X.JMP, "reset packet")
    a.label("ready")
    a.put(X.RET)


def _each_call(a: Assembler, name: str, end: str) -> None:
    """Loop over the calls from r12 to r13."""
    a.put(X.MOV, R14, R12)
    a.label(name)
    a.put(X.CMP, R14, R13)
    a.jump(X.JAE, end)


def _calls(a: Assembler) -> None:
    """From rdi and rsi: the first call, and behind the last."""
    a.put(X.MOV, R12, RDI)
    a.put(X.SHL, RSI, HELP_BYTES.bit_length() - 1)
    a.put(X.LEA, R13, at(RDI, 0, 0, index=RSI))


def _hand_in(a: Assembler) -> None:
    a.label("hand_in")
    enter(a)
    _calls(a)
    _each_call(a, "ring", "all have room")
    a.put(X.MOV, RBX, at(R14, HELP_RING))
    a.put(X.MOV, RAX, at(RBX, PUT))
    a.put(X.SUB, RAX, at(RBX, DONE))
    a.put(X.CMP, RAX, SLOTS)
    a.jump(X.JAE, "ring full")
    a.put(X.ADD, R14, HELP_BYTES)
    a.jump(X.JMP, "ring")
    a.label("ring full")
    a.number(RAX, 0)
    leave(a)
    a.label("all have room")
    _each_call(a, "call in", "all in")
    _put_call(a)
    a.put(X.ADD, R14, HELP_BYTES)
    a.jump(X.JMP, "call in")
    a.label("all in")
    a.number(RAX, 1)
    leave(a)


def _put_call(a: Assembler) -> None:
    """The call at r14 into its ring."""
    a.put(X.MOV, RBX, at(R14, HELP_RING))
    a.put(X.MOV, RCX, at(RBX, PUT))
    a.put(X.MOV, RAX, RCX)
    a.put(X.AND, low(RAX), SLOTS - 1)
    a.put(X.LEA, RDX, at(RBX, SLOTS_AT, 0, RAX, 8))
    a.put(X.MOV, RAX, at(R14, HELP_RUN))
    a.put(X.MOV, at(RDX), RAX)
    a.put(X.MOV, at(R14, HELP_SLOT), RDX)
    a.put(X.ADD, RCX, 1)
    a.put(X.XCHG, at(RBX, PUT), RCX)  # behind the store of the slot, before the look at PARKED
    a.put(X.CMP, at(RBX, PARKED, 32), 0)
    a.jump(X.JE, "wide awake")
    a.number(RDX, 1)
    _futex_on_put(a, FUTEX_WAKE)
    a.label("wide awake")


def _withdraw(a: Assembler) -> None:
    a.label("withdraw")
    enter(a)
    _calls(a)
    a.put(X.SUB, RSP, 32)
    a.put(X.MOV, at(RSP), 0)
    a.put(X.MOV, at(RSP, 8), NAP)
    a.put(X.MOV, at(RSP, 16), RDX)
    _each_call(a, "call back", "all back")
    a.put(X.MOV, RDX, at(R14, HELP_SLOT))
    a.put(X.TEST, RDX, RDX)
    a.jump(X.JE, "settled")
    a.put(X.MOV, at(R14, HELP_SLOT), 0)
    a.put(X.MOV, RAX, at(R14, HELP_RUN))
    a.put(X.MOV, RSI, RAX)
    a.put(X.AND, RSI, ~HELP_LEADS)
    a.number(RCX, EMPTY_SLOT)
    # who finds another's call in the slot came too late: the worker has passed it
    a.put(X.CMPXCHG, at(RDX), RCX, lock=True)
    a.jump(X.JE, "settled")
    a.put(X.ADD, at(RSI, RUN_STARTED), 1)
    a.label("settled")
    a.put(X.ADD, R14, HELP_BYTES)
    a.jump(X.JMP, "call back")
    a.label("all back")
    a.number(R15, 0)
    _each_call(a, "helpers", "all left")
    a.label("helper")
    a.put(X.MOV, RBX, at(R14, HELP_RUN))
    a.put(X.AND, RBX, ~HELP_LEADS)
    a.put(X.MOV, RAX, at(RBX, RUN_LEFT))
    a.put(X.CMP, RAX, at(RBX, RUN_STARTED))
    a.jump(X.JAE, "left")
    a.put(X.CMP, R15, at(RSP, 16))
    a.jump(X.JAE, "not all left")
    rest(a, "helper", "helper", lambda: nap(a, 0))
    a.label("left")
    a.put(X.ADD, R14, HELP_BYTES)
    a.jump(X.JMP, "helpers")
    a.label("all left")
    a.number(RAX, 1)
    a.label("withdrawn")
    a.put(X.ADD, RSP, 32)
    leave(a)
    a.label("not all left")
    a.number(RAX, 0)
    a.jump(X.JMP, "withdrawn")


def _guarded(a: Assembler, avx: bool) -> None:
    a.label("guarded")
    enter(a)
    a.put(X.MOV, RBX, RDI)
    a.put(X.MOV, R15, RSI)
    a.put(X.MOV, RSI, RCX)
    a.put(X.MOV, RCX, RDX)
    remember(a, "guarded fault")
    call_kernel(a, "guarded")
    a.number(RAX, 0)
    a.label("guarded end")
    forget(a)
    leave(a)
    a.label("guarded fault")
    recover(a, avx)
    a.put(X.MOV, RAX, at(RBX, FAULT_SIGNAL))
    a.jump(X.JMP, "guarded end")


def _handler(a: Assembler, table: int, watchdog: int) -> None:
    a.label("handler")
    a.number(R8, table)
    system_call(a, GETTID)
    a.put(X.MOV, R9, at(R8, COUNT))
    a.put(X.LEA, R10, at(R8, PAIRS, 0))
    a.label("search")
    a.put(X.TEST, R9, R9)
    a.jump(X.JE, "foreign")
    a.put(X.CMP, at(R10), RAX)
    a.jump(X.JE, "found")
    a.put(X.ADD, R10, 16)
    a.put(X.SUB, R9, 1)
    a.jump(X.JMP, "search")
    a.label("found")
    a.put(X.MOV, R10, at(R10, 8))
    a.put(X.CMP, at(R10, RESUME), 0)
    a.jump(X.JE, "foreign")
    a.put(X.CMP, RDI, watchdog)
    a.jump(X.JNE, "ours")
    # the watchdog names an odd number: nothing happens once that kernel has returned
    a.put(X.MOV, RAX, at(R10, CALLS))
    a.put(X.CMP, RAX, at(R10, EXPIRED))
    a.jump(X.JNE, "foreign")
    _divert(a)
    _chain(a, watchdog)


def _divert(a: Assembler) -> None:
    """Note the fault in the state at r10 and go on where that says."""
    a.label("ours")
    a.put(X.MOV, at(R10, FAULT_SIGNAL), RDI)
    for noted, source in ((FAULT_ADDRESS, at(RSI, SI_ADDR)), (FAULT_CODE, at(RDX, GREG_RIP))):
        a.put(X.MOV, RAX, source)
        a.put(X.MOV, at(R10, noted), RAX)
    for register, kept in ((GREG_RIP, RESUME), (GREG_RSP, STACK)):
        a.put(X.MOV, RAX, at(R10, kept))
        a.put(X.MOV, at(RDX, register), RAX)
    a.put(X.MOV, at(RDX, GREG_RBX), R10)
    a.put(X.RET)


def _chain(a: Assembler, watchdog: int) -> None:
    """The handler that was there before; without one the default action, but none for a watchdog's late signal."""
    a.label("foreign")
    a.put(X.MOV, RAX, at(R8, HANDLERS, index=RDI, scale=8))
    a.put(X.CMP, RAX, 1)
    a.jump(X.JA, "chain")
    a.put(X.CMP, RDI, watchdog)
    a.jump(X.JE, "too late")
    # with the default action the instruction faults again and ends the process
    a.put(X.LEA, RSI, at(R8, DEFAULT_ACTION, 0))
    a.number(RDX, 0)
    a.number(R10, 8)
    system_call(a, RT_SIGACTION)
    a.label("too late")
    a.put(X.RET)
    a.label("chain")
    a.put(X.JMP, RAX)
