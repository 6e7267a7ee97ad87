"""Memory that workers, callers and the fault handler share, byte by byte.

A *state* is one page; each worker has one, and each thread that calls kernels itself. A worker's is followed by its
ring: ``SLOTS`` slots of 32 bytes with function, number of arguments, address of the arguments (64-bit words, of which
at least ``REGISTER_ARGS`` are readable) and the signal that ended the call, 0 for none. What different threads write
lies in different cache lines.
"""
from __future__ import annotations

import ctypes
from typing import Any

PAGE = 4096
SLOT_BYTES = 32
SLOTS = 4096
REGISTER_ARGS = 6  # System V ABI, 3.2.3: rdi rsi rdx rcx r8 r9
ALT_STACK_BYTES = 1 << 16

PUT = 0  # u64: slots handed in; callers write, the worker sleeps on its lower half
PARKED = 64  # u32: 1 while the worker sleeps or is about to
DONE = 128  # u64: slots finished; the worker writes, callers sleep on its lower half
WAITERS = 192  # u32: callers that sleep on DONE or are about to
FAULT_SIGNAL = 256  # u64: signal of the last fault, 0 for none
FAULT_ADDRESS = 264  # u64: address that was accessed
FAULT_CODE = 272  # u64: address of the instruction
FAULT_SLOT = 280  # u64: DONE at that time
RESUME = 288  # u64: where the thread goes on after a fault; 0 while it runs no kernel
STACK = 296  # u64: its stack pointer then
MXCSR = 304  # u32: its control register then
TID = 312  # u64: a worker's thread id, 0 before it runs
ALT_STACK = 320  # stack_t of sigaltstack: pointer, flags, size
SLOTS_AT = PAGE

# The table of threads whose faults are ours.
HANDLERS = 0  # 64 u64: what handled a signal before, by number; 0 and 1 are the default and "ignore"
DEFAULT_ACTION = 512  # a zeroed struct of rt_sigaction: the default
COUNT = 640  # u64: pairs in use
PAIRS = 648  # (thread id, address of its state) each; thread id 0 is a gap
MAX_THREADS = 1024
TABLE_BYTES = PAIRS + 16 * MAX_THREADS


def argument_words(values: list[int]) -> Any:
    """Argument words of a call, negative ones as two's complement; at least as many as are loaded into registers."""
    size = max(len(values), REGISTER_ARGS)
    return (ctypes.c_uint64 * size)(*values)  # ctypes wraps
