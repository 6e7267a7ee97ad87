"""Machine code that runs packets: the interpreter of ``native.runs``, one copy for all threads.

``participate(run, state, ticks)`` walks the packets of a run from the first one; several threads do so at once and
take chunks as they come. It returns OVER when the run is over, FAILED when that is so after a fault, and SLICE_OVER
when ``ticks`` of the time stamp counter have passed: the caller looks after its own affairs and calls again. Workers
come with ``LEAD`` or ``HELP`` ticks: they leave at the end of the packets, whatever others still do, and count
themselves into RUN_LEFT. ``HELP`` is for those who share kernels of several chunks: what has one chunk and cannot start
yet they leave to others, since two threads that take turns at short kernels are slower than one.

Word 0 of a packet is where its code starts: going on to the next packet is one indirect jump. While packets run, rbx is
the state, r13 the run, r12 the packet and r14 the chunk; rsp is STACK of the state, and the frame begins there.

Order of memory accesses is x86's (Intel SDM 3A, 8.2): loads are not reordered with loads, nor stores with stores, and a
locked instruction waits for all stores in front of it. So everything a chunk wrote is visible to who sees it counted in
RUN_COMPLETED, and only where a store must be visible before a later load is an exchange or a locked addition needed.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhost_cpu.native import layout
from tinyhost_cpu.native.assembler import (
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
    resume_at,
    system_call,
)
from tinyhost_cpu.native.layout import (
    FAULT_ADDRESS,
    FAULT_CODE,
    FAULT_SIGNAL,
    NONE,
    NUMBER,
    PACKET_A,
    PACKET_B,
    PACKET_C,
    PACKET_CHUNK_AT,
    PACKET_CHUNKS,
    PACKET_CLAIMED,
    PACKET_COUNT,
    PACKET_NEED,
    PACKET_SCRATCH_AT,
    RUN_CANCELLED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_LEFT,
    RUN_LOG,
    RUN_LOGGED,
    RUN_WAITERS,
    SCRATCH,
)
from tinyhost_cpu.x86.encode import Reg
from tinyhost_cpu.x86.insns import X86Ops as X

CLOCK_MONOTONIC = 1  # time.h
HELP, LEAD = 1 << 62, (1 << 62) + 1  # ticks of workers, who need not look after anything else
OVER, SLICE_OVER, FAILED = range(3)
FAR = 20  # chunks; farther away is not looked for less often
LONG_NAP = 50_000_000  # ns in the kernel before a look at the time
# the frame
PACKET, RUN, WORKER, HELPER, DEADLINE, START, CHUNK, SHORT, LONG, FRAME = 0, 8, 16, 24, 32, 40, 48, 56, 72, 96
PACKET_SHIFT = RECORD_SHIFT = 6


def participate(a: Assembler, avx: bool, clock: int) -> None:
    """All of the code; each kind of packet starts at the label of its name.

    Args:
        avx: whether the processor has upper halves of vector registers.
        clock: address of clock_gettime.
    """
    _begin(a)
    _next(a)
    _execute(a)
    _copy(a)
    _store(a, "signal", 64)
    _timestamp(a)
    _store(a, "write", 32)
    _wait(a, avx)
    _poll(a, avx)
    _end(a)
    _count(a)
    _need(a)
    _fault(a, avx)
    _clock(a, clock)


def _begin(a: Assembler) -> None:
    a.label("participate")
    enter(a)
    a.put(X.SUB, RSP, FRAME)
    a.put(X.MOV, RBX, RSI)
    a.put(X.MOV, R13, RDI)
    a.put(X.MOV, R15, RDX)
    a.put(X.MOV, at(RSP, RUN), R13)
    for place, ticks, op in ((WORKER, HELP, X.SETAE), (HELPER, HELP, X.SETE)):
        a.number(RAX, ticks)
        a.put(X.CMP, R15, RAX)
        a.put(op, at(RSP, place, 8))
    for place, nanoseconds in ((SHORT, NAP), (LONG, LONG_NAP)):
        a.put(X.MOV, at(RSP, place), 0)
        a.put(X.MOV, at(RSP, place + 8), nanoseconds)
    _now(a)
    a.put(X.ADD, RAX, R15)
    a.put(X.MOV, at(RSP, DEADLINE), RAX)
    remember(a, "packet fault")
    a.put(X.LEA, R12, at(R13, layout.RUN_HEADER_BYTES, 0))
    a.put(X.JMP, at(R12))


def _now(a: Assembler) -> None:
    """rax = the time stamp counter; its tick is below a nanosecond on every processor with AVX2."""
    a.put(X.RDTSC)
    a.put(X.SHL, RDX, 32)
    a.put(X.OR, RAX, RDX)


def _check_time(a: Assembler) -> None:
    _now(a)
    a.put(X.CMP, RAX, at(RSP, DEADLINE))
    a.jump(X.JAE, "slice over")


def _next(a: Assembler) -> None:
    a.label("next")
    a.put(X.ADD, R12, layout.PACKET_BYTES)
    a.put(X.JMP, at(R12))


def _start_of(a: Assembler, kind: str) -> None:
    """Leave packets that are taken to those who took them; wait until the packet may start."""
    a.label(kind)
    a.put(X.MOV, RAX, at(R12, PACKET_CLAIMED))
    a.put(X.CMP, RAX, at(R12, PACKET_CHUNKS))
    a.jump(X.JAE, "next")
    a.put(X.MOV, RAX, at(R12, PACKET_NEED))
    a.put(X.CMP, at(R13, RUN_COMPLETED), RAX)
    a.jump(X.JB, "early")


def _claim(a: Assembler) -> None:
    """r14 = the number of a chunk that is now this thread's to do."""
    a.number(R14, 1)
    a.put(X.XADD, at(R12, PACKET_CLAIMED), R14, lock=True)
    a.put(X.CMP, R14, at(R12, PACKET_CHUNKS))
    a.jump(X.JAE, "next")
    a.put(X.MOV, at(RSP, PACKET), R12)


def _skip(a: Assembler) -> None:
    """After a fault or a cancellation the chunk only counts."""
    a.put(X.MOV, RAX, at(R13, RUN_FAILED))
    a.put(X.OR, RAX, at(R13, RUN_CANCELLED))
    a.jump(X.JNE, "count")


def _execute(a: Assembler) -> None:
    _start_of(a, "execute")
    _claim(a)
    _skip(a)
    _log_start(a, "execute")
    a.put(X.MOV, R15, at(R12, PACKET_A))
    a.put(X.MOV, RSI, at(R12, PACKET_B))
    a.put(X.MOV, low(RCX), at(R12, PACKET_COUNT, 32))
    call_kernel(a, "packet", lambda: _patch(a))
    _log_end(a, "execute")
    a.jump(X.JMP, "count")


def _patch(a: Assembler) -> None:
    for place, name in ((PACKET_CHUNK_AT, "chunk"), (PACKET_SCRATCH_AT, "scratch")):
        a.put(X.MOVZX, low(RAX), at(R12, place, 16))
        a.put(X.CMP, low(RAX), NONE)
        a.jump(X.JE, f"no {name} word")
        if name == "scratch":
            a.put(X.MOV, RCX, at(RBX, SCRATCH))
        a.put(X.MOV, at(RSP, index=RAX, scale=8), R14 if name == "chunk" else RCX)
        a.label(f"no {name} word")


def _copy(a: Assembler) -> None:
    """Chunks are equal shares of whole cache lines; the last ones may be shorter or empty."""
    _start_of(a, "copy")
    _claim(a)
    _skip(a)
    _log_start(a, "copy")
    a.put(X.MOV, RCX, at(R12, PACKET_CHUNKS))
    a.put(X.MOV, RAX, at(R12, PACKET_C))
    a.put(X.ADD, RAX, RCX)
    a.put(X.SUB, RAX, 1)
    a.number(RDX, 0)
    a.put(X.DIV, RCX)
    a.put(X.ADD, RAX, 63)
    a.put(X.AND, RAX, -64)  # the share
    a.put(X.IMUL, R14, RAX)  # where it starts
    a.put(X.MOV, RCX, at(R12, PACKET_C))
    a.put(X.SUB, RCX, R14)
    a.jump(X.JBE, "copied")
    a.put(X.CMP, RCX, RAX)
    a.put(X.CMOVA, RCX, RAX)
    a.put(X.MOV, RDI, at(R12, PACKET_A))
    a.put(X.ADD, RDI, R14)
    a.put(X.MOV, RSI, at(R12, PACKET_B))
    a.put(X.ADD, RSI, R14)
    a.repeat_move_bytes()
    a.label("copied")
    _log_end(a, "copy")
    a.jump(X.JMP, "count")


def _store(a: Assembler, kind: str, bits: int) -> None:
    """Store a value: what was counted before is visible before it, as stores are not reordered."""
    _start_of(a, kind)
    _claim(a)
    a.put(X.MOV, RCX, at(R12, PACKET_A))
    a.put(X.MOV, RAX, at(R12, PACKET_B))
    a.put(X.MOV, at(RCX, bits=bits), RAX if bits == 64 else low(RAX))
    a.jump(X.JMP, "count")


def _timestamp(a: Assembler) -> None:
    _start_of(a, "timestamp")
    _claim(a)
    _read_clock(a)
    a.put(X.MOV, RCX, at(R12, PACKET_A))
    a.put(X.MOV, at(RCX, 8), RAX)
    a.jump(X.JMP, "count")


def _wait(a: Assembler, avx: bool) -> None:
    def look() -> None:
        a.put(X.MOV, RAX, at(R12, PACKET_A))
        a.put(X.MOV, RAX, at(RAX))
        a.put(X.CMP, RAX, at(R12, PACKET_B))
        a.jump(X.JAE, "wait reached")
    _until(a, avx, "wait", look)


def _poll(a: Assembler, avx: bool) -> None:
    def look() -> None:
        a.put(X.MOV, RAX, at(R12, PACKET_A))
        a.put(X.MOV, low(RAX), at(RAX, bits=32))
        a.put(X.AND, low(RAX), at(R12, PACKET_C, 32))
        a.put(X.CMP, low(RAX), at(R12, PACKET_B, 32))
        a.jump(X.JE, "poll reached")
    _until(a, avx, "poll", look)


def _until(a: Assembler, avx: bool, kind: str, look: Callable[[], None]) -> None:
    """All but helpers look, the first one to see it claims: so the caller can leave in between."""
    _start_of(a, kind)
    a.put(X.CMP, at(RSP, HELPER, 8), 0)
    a.jump(X.JNE, "next")
    a.put(X.MOV, at(RSP, PACKET), R12)
    resume_at(a, kind + " fault")
    a.number(R15, 0)
    a.label(kind + " look")
    look()
    a.put(X.CMP, at(R12, PACKET_CLAIMED), 0)
    a.jump(X.JNE, kind + " passed")
    a.put(X.CMP, at(R13, RUN_CANCELLED), 0)
    a.jump(X.JNE, kind + " reached")
    rest(a, kind, kind + " look", lambda: nap(a, SHORT), _check_time)
    a.label(kind + " fault")
    _note_fault(a, kind, avx)
    a.label(kind + " reached")
    resume_at(a, "packet fault")
    _claim(a)
    a.jump(X.JMP, "count")
    a.label(kind + " passed")
    resume_at(a, "packet fault")
    a.jump(X.JMP, "next")


def _end(a: Assembler) -> None:
    """The caller stays until the last chunk has ended; workers are not needed any more."""
    a.label("end")
    a.put(X.CMP, at(RSP, WORKER, 8), 0)
    a.jump(X.JNE, "worker leaves")
    a.put(X.MOV, RAX, at(R12, PACKET_NEED))
    a.put(X.CMP, at(R13, RUN_COMPLETED), RAX)
    a.jump(X.JB, "need")
    a.number(RCX, FAILED)
    a.number(RAX, OVER)
    a.put(X.CMP, at(R13, RUN_FAILED), 0)
    a.put(X.CMOVNE, RAX, RCX)
    a.jump(X.JMP, "leave")
    a.label("worker leaves")
    a.put(X.ADD, at(R13, RUN_LEFT), 1, lock=True)
    a.jump(X.JMP, "leave")
    a.label("slice over")
    a.number(RAX, SLICE_OVER)
    a.label("leave")
    forget(a)
    a.put(X.ADD, RSP, FRAME)
    leave(a)


def _count(a: Assembler) -> None:
    """A chunk has ended: count it, wake who sleeps, look at the time, and try the same packet again."""
    a.label("count")
    a.put(X.ADD, at(R13, RUN_COMPLETED), 1, lock=True)  # locked, so before the look at RUN_WAITERS
    a.put(X.CMP, at(R13, RUN_WAITERS, 32), 0)
    a.jump(X.JNE, "wake")
    a.label("counted")
    _check_time(a)
    a.put(X.JMP, at(R12))
    a.label("wake")
    a.number(RDX, (1 << 31) - 1)
    _futex(a, FUTEX_WAKE)
    a.jump(X.JMP, "counted")


def _futex(a: Assembler, operation: int) -> None:
    """futex on RUN_COMPLETED; rdx and r10 hold value and time-out."""
    a.put(X.LEA, RDI, at(R13, RUN_COMPLETED, 0))
    a.number(RSI, operation)
    system_call(a, FUTEX)


def _need(a: Assembler) -> None:
    """Wait until as many chunks have ended as the packet needs, then start it again."""
    def sleep() -> None:
        # locked, so before the look at RUN_COMPLETED: either this look sees the last chunk, or its end sees us
        a.put(X.ADD, at(R13, RUN_WAITERS, 32), 1, lock=True)
        a.put(X.MOV, RDX, at(R13, RUN_COMPLETED))
        a.put(X.CMP, RDX, RBP)
        a.jump(X.JAE, "no sleep")
        a.put(X.LEA, R10, at(RSP, LONG, 0))
        _futex(a, FUTEX_WAIT)  # compares the lower half of rdx
        a.label("no sleep")
        a.put(X.SUB, at(R13, RUN_WAITERS, 32), 1, lock=True)
    a.label("early")
    a.put(X.CMP, at(R12, PACKET_CHUNKS), 1)
    a.jump(X.JNE, "need")
    a.put(X.CMP, at(RSP, HELPER, 8), 0)
    a.jump(X.JNE, "next")
    a.label("need")
    a.put(X.MOV, RBP, at(R12, PACKET_NEED))
    a.put(X.MOV, R14, at(R13, RUN_COMPLETED))
    a.number(R15, 0)
    a.label("need look")
    a.put(X.MOV, RCX, RBP)
    a.put(X.MOV, RAX, at(R13, RUN_COMPLETED))
    a.put(X.SUB, RCX, RAX)
    a.jump(X.JBE, "needed")
    a.put(X.CMP, RAX, R14)
    a.put(X.MOV, R14, RAX)
    a.jump(X.JE, "no progress")
    a.number(R15, 0)  # while others get on, this thread stays awake: waking it would cost them time
    a.label("no progress")
    _keep_off(a)
    _check_time(a)
    rest(a, "need", "need look", sleep)
    a.label("needed")
    a.put(X.JMP, at(R12))


def _keep_off(a: Assembler) -> None:
    """Look the less often the more chunks are missing, rcx: each look takes the counter from who counts."""
    a.put(X.CMP, RCX, FAR)
    a.jump(X.JBE, "keep off")
    a.number(RCX, FAR)
    a.label("keep off")
    a.put(X.PAUSE)
    a.put(X.PAUSE)
    a.put(X.PAUSE)
    a.put(X.SUB, low(RCX), 1)
    a.jump(X.JNE, "keep off")


def _fault(a: Assembler, avx: bool) -> None:
    a.label("packet fault")
    _note_fault(a, "packet", avx)
    a.jump(X.JMP, "count")


def _note_fault(a: Assembler, kind: str, avx: bool) -> None:
    """Find back what this thread did, and tell it to all participants unless another fault came first."""
    recover(a, avx)
    a.put(X.MOV, R12, at(RSP, PACKET))
    a.put(X.MOV, R13, at(RSP, RUN))
    _position(a, RCX, 1)
    a.number(RAX, 0)
    a.put(X.CMPXCHG, at(R13, RUN_FAILED), RCX, lock=True)
    a.jump(X.JNE, kind + " later fault")
    for noted, source in ((layout.RUN_SIGNAL, FAULT_SIGNAL), (layout.RUN_ADDRESS, FAULT_ADDRESS),
                          (layout.RUN_CODE, FAULT_CODE)):
        a.put(X.MOV, RAX, at(RBX, source))
        a.put(X.MOV, at(R13, noted), RAX)
    a.label(kind + " later fault")


def _position(a: Assembler, register: Reg, first: int) -> None:
    """The place of the packet among those of the run; the first one's is ``first``."""
    a.put(X.MOV, register, R12)
    a.put(X.SUB, register, R13)
    a.put(X.SHR, register, PACKET_SHIFT)
    a.put(X.SUB, register, layout.RUN_HEADER_BYTES // layout.PACKET_BYTES - first)


def _log_start(a: Assembler, kind: str) -> None:
    a.put(X.CMP, at(R13, RUN_LOG), 0)
    a.jump(X.JE, kind + " not timed")
    _read_clock(a)
    a.put(X.MOV, at(RSP, START), RAX)
    a.put(X.MOV, at(RSP, CHUNK), R14)
    a.label(kind + " not timed")


def _log_end(a: Assembler, kind: str) -> None:
    a.put(X.CMP, at(R13, RUN_LOG), 0)
    a.jump(X.JE, kind + " not logged")
    _read_clock(a)
    a.number(RCX, 1)
    a.put(X.XADD, at(R13, RUN_LOGGED), RCX, lock=True)
    a.put(X.SHL, RCX, RECORD_SHIFT)
    a.put(X.ADD, RCX, at(R13, RUN_LOG))
    a.put(X.MOV, at(RCX, layout.RECORD_END), RAX)
    for place, source in ((layout.RECORD_CHUNK, at(RSP, CHUNK)), (layout.RECORD_PARTICIPANT, at(RBX, NUMBER)),
                          (layout.RECORD_START, at(RSP, START))):
        a.put(X.MOV, RAX, source)
        a.put(X.MOV, at(RCX, place), RAX)
    _position(a, RAX, 0)
    a.put(X.MOV, at(RCX, layout.RECORD_PACKET), RAX)
    a.label(kind + " not logged")


def _read_clock(a: Assembler) -> None:
    """rax = nanoseconds of CLOCK_MONOTONIC."""
    a.address(RAX, "clock")
    a.put(X.CALL, RAX)


def _clock(a: Assembler, clock: int) -> None:
    a.label("clock")
    a.put(X.SUB, RSP, 24)
    a.number(RDI, CLOCK_MONOTONIC)
    a.put(X.MOV, RSI, RSP)
    a.number(RAX, clock)
    a.put(X.CALL, RAX)
    a.put(X.IMUL, RAX, at(RSP), 1_000_000_000)
    a.put(X.ADD, RAX, at(RSP, 8))
    a.put(X.ADD, RSP, 24)
    a.put(X.RET)
