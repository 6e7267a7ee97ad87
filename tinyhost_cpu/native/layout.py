"""Memory that workers, callers and the fault handler share, byte by byte.

A *state* is one page; each worker has one, and each thread that runs kernels itself. A worker's is followed by its
ring: ``SLOTS`` words, each the HELP_RUN of a call for help. A *run* is a header and packets of 64 bytes behind it,
64-byte aligned; all its participants walk the packets in order. What different threads write lies in different cache
lines where it is written often.
"""
from __future__ import annotations

import ctypes
from typing import Any

PAGE = 4096
SLOT_BYTES = 8
SLOTS = 4096
EMPTY_SLOT = 0  # taken or withdrawn
REGISTER_ARGS = 6  # System V ABI, 3.2.3: rdi rsi rdx rcx r8 r9
ALT_STACK_BYTES = 1 << 16

# A state.
PUT = 0  # u64: slots handed in; callers write, the worker sleeps on its lower half
PARKED = 64  # u32: 1 while the worker sleeps or is about to
DONE = 128  # u64: slots the worker has passed
CALLS = 256  # u64: entries into kernels and returns from them; odd while one runs
SCRATCH = 264  # u64: this thread's own memory for kernels that ask for some
NUMBER = 272  # u64: number of the worker, 0 for a thread that calls
FAULT_SIGNAL = 280  # u64: signal of the last fault, 0 for none
FAULT_ADDRESS = 288  # u64: address that was accessed
FAULT_CODE = 296  # u64: address of the instruction
RESUME = 304  # u64: where the thread goes on after a fault; 0 while it runs nothing of ours
STACK = 312  # u64: its stack pointer then
MXCSR = 320  # u32: its control register then
TID = 328  # u64: a worker's thread id, 0 before it runs
ALT_STACK = 336  # stack_t of sigaltstack: pointer, flags, size
MASK = 360  # u64: the signals a worker blocks; bit n - 1 is signal n
EXPIRED = 384  # u64: value of CALLS whose kernel shall end; the watchdog writes
SLOTS_AT = PAGE

# A run: its header.
RUN_COMPLETED = 0  # u64: chunks that have ended, of all packets; participants sleep on its lower half
RUN_WAITERS = 64  # u32: participants that sleep on it or are about to
RUN_LEFT = 72  # u64: helpers that are through with the run; their last access to it
RUN_STARTED = 80  # u64: helpers that could no longer be called off; the caller counts
RUN_FAILED = 128  # u64: number of the packet of the first fault, plus 1; 0 for none
RUN_SIGNAL = 136  # u64: its signal
RUN_ADDRESS = 144  # u64: the address that was accessed
RUN_CODE = 152  # u64: the address of the instruction
RUN_LOG = 160  # u64: address of the log, 0 for none; it has a record for each chunk of an execute or copy
RUN_CANCELLED = 192  # u64: not 0: kernels and copies that have not started do not, nothing is waited for
RUN_LOGGED = 200  # u64: records written
RUN_HEADER_BYTES = 256  # packets follow

# A packet. A fault, or RUN_CANCELLED, makes the others skip what they would execute or copy; they count it as ended.
PACKET_HANDLER = 0  # u64: address of the code for its kind, from ``Pool.handlers``
PACKET_CLAIMED = 8  # u64: chunks taken, maybe more than there are; 0 before each run
PACKET_CHUNKS = 16  # u64: parts that participants may take, at least 1; 1 for all but execute and copy
PACKET_NEED = 24  # u64: RUN_COMPLETED from which on it may start
PACKET_A = 32  # u64: execute: function; copy: destination; else the address of the word it is about
PACKET_B = 40  # u64: execute: address of the arguments; copy: source; wait, signal, write, poll: value
PACKET_C = 48  # u64: execute: see below; copy: bytes; poll: mask
PACKET_COUNT = 48  # u32: execute: number of argument words
PACKET_CHUNK_AT = 52  # u16: execute: place among them of the chunk's number, NONE for none
PACKET_SCRATCH_AT = 54  # u16: execute: place of the participant's scratch address, NONE for none
PACKET_NUMBER = 56  # u64: free for the owner
PACKET_BYTES = 64
NONE = 0xFFFF
KINDS = ("execute", "copy", "signal", "timestamp", "write", "wait", "poll", "end")

# A record of the log, in u64.
RECORD_PACKET, RECORD_CHUNK, RECORD_PARTICIPANT, RECORD_START, RECORD_END = 0, 8, 16, 24, 32  # ns of CLOCK_MONOTONIC
RECORD_BYTES = 64

# A call for help with a run, in u64.
HELP_RING = 0  # state of the worker
HELP_RUN = 8  # address of the run, plus HELP_LEADS where the worker takes all that comes: the caller comes later
HELP_LEADS = 1
HELP_SLOT = 16  # address of the slot while the call stands, 0 before and after
HELP_BYTES = 32

# The table of threads whose faults are ours.
HANDLERS = 0  # 64 u64: what handled a signal before, by number; 0 and 1 are the default and "ignore"
DEFAULT_ACTION = 512  # a zeroed struct of rt_sigaction: the default
COUNT = 640  # u64: pairs in use
PAIRS = 648  # (thread id, address of its state) each; thread id 0 is a gap
MAX_THREADS = 1024
TABLE_BYTES = PAIRS + 16 * MAX_THREADS

WORD = (1 << 64) - 1


def argument_words(values: list[int]) -> Any:
    """Argument words of a call, negative ones as two's complement."""
    return (ctypes.c_uint64 * max(len(values), REGISTER_ARGS))(*values)  # ctypes wraps


def execute_word(count: int, chunk_at: int = NONE, scratch_at: int = NONE) -> int:
    """PACKET_C of an execute packet."""
    return count | chunk_at << 32 | scratch_at << 48


def packet(handler: int, chunks: int = 1, need: int = 0, a: int = 0, b: int = 0, c: int = 0,
           number: int = 0) -> tuple[int, ...]:
    """The words of a packet that nobody has claimed."""
    return handler, 0, chunks, need, a & WORD, b & WORD, c & WORD, number
