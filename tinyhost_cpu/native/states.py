"""States of threads and rings of workers in memory, and the table by which the fault handler finds them.

``State`` is the page of one thread; ``Ring`` the state of a worker with its slots. ``Faults`` owns the table and the
generated code, installs the handler, and ends kernels of threads in the table; ``fault_of`` turns what the handler
noted into an error that names the kernel.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
import weakref
from dataclasses import dataclass

from tinyhost.errors import KernelFault
from tinyhost_cpu.code import Segment
from tinyhost_cpu.native import layout
from tinyhost_cpu.native.code import assemble
from tinyhost_cpu.native.layout import PAGE, SLOT_BYTES, SLOTS, SLOTS_AT
from tinyhost_cpu.x86.caps import host_features

SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
WATCHDOG = signal.SIGRTMAX - 3  # ends a kernel that does not end by itself; one of those nobody has a meaning for
SA_SIGINFO, SA_ONSTACK, SA_RESTART = 0x4, 0x08000000, 0x10000000  # asm/signal.h
TGKILL = 234  # Linux UAPI, unistd_64.h
_libc = ctypes.CDLL(None, use_errno=True)


class Area:
    """Zeroed memory at a fixed address."""

    def __init__(self, size: int) -> None:
        # private: a forked child must not write to the rings of its parent
        self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._pin = ctypes.c_ubyte.from_buffer(self._map)
        self.address = ctypes.addressof(self._pin)
        self.words = memoryview(self._map).cast("Q")


@dataclass(frozen=True)
class Fault:
    """What ended a kernel: the signal, the address that was accessed, the address of the instruction."""

    signal: int
    address: int
    code: int

    @property
    def expired(self) -> bool:
        """Whether the watchdog ended it."""
        return self.signal == WATCHDOG

    def __str__(self) -> str:
        where = f" at address {self.address:#x}" if self.signal in (signal.SIGSEGV, signal.SIGBUS) else ""
        return f"{signal.Signals(self.signal).name}{where}, instruction at {self.code:#x}"


def fault_of(what: str, fault: Fault, timeout: float) -> KernelFault:
    """The error for a kernel, or what else a packet does, that ended with a fault."""
    if fault.expired:
        return KernelFault(f"{what} did not end in {timeout:g} s and was stopped at {fault.code:#x}; what it wrote is "
                           "not valid; CPU_TIMEOUT_MS gives kernels more time")
    return KernelFault(f"{what} ended with {fault}; what it wrote is not valid")


class State(Area):
    """The state of a thread that runs kernels."""

    def __init__(self, size: int = PAGE) -> None:
        super().__init__(size)

    def take_fault(self) -> Fault:
        """The last fault of this thread."""
        return Fault(*[self.words[at // 8] for at in (layout.FAULT_SIGNAL, layout.FAULT_ADDRESS, layout.FAULT_CODE)])

    @property
    def calls(self) -> int:
        """Entries into kernels and returns from them; odd while one runs."""
        return self.words[layout.CALLS // 8]

    def expire(self, calls: int) -> None:
        """The watchdog's signal shall end the kernel that was entered as ``calls``."""
        self.words[layout.EXPIRED // 8] = calls

    def set_scratch(self, address: int) -> None:
        """Memory that only this thread uses."""
        self.words[layout.SCRATCH // 8] = address


def keep_for_good(owner: object) -> None:
    """Never free ``owner``: workers and signal handlers use its memory until the process has ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


class Ring(State):
    """The state and the slots of worker ``number``; never freed."""

    def __init__(self, number: int) -> None:
        super().__init__(SLOTS_AT + SLOTS * SLOT_BYTES)
        self._alt_stack = Area(layout.ALT_STACK_BYTES)
        self.words[layout.ALT_STACK // 8] = self._alt_stack.address
        self.words[layout.ALT_STACK // 8 + 2] = layout.ALT_STACK_BYTES
        self.words[layout.NUMBER // 8] = number
        self.words[layout.MASK // 8] = layout.WORD & ~sum(1 << number - 1 for number in (*SIGNALS, WATCHDOG))
        keep_for_good(self)

    @property
    def thread(self) -> int:
        """Id of the worker's thread for the kernel, 0 before it runs."""
        return self.words[layout.TID // 8]

    @property
    def idle(self) -> bool:
        """Whether the worker has passed all its slots."""
        return self.words[layout.PUT // 8] == self.words[layout.DONE // 8]


class _SigAction(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]


class Faults:
    """The generated code, and the threads whose faults it catches. One for the process, never freed."""

    def __init__(self) -> None:
        self._table = Area(-(-layout.TABLE_BYTES // PAGE) * PAGE)
        clock = ctypes.cast(_libc.clock_gettime, ctypes.c_void_p).value
        assert clock is not None
        code, at = assemble(self._table.address, "avx" in host_features(), clock, WATCHDOG)
        self._code = Segment(code, "tinyhost_workers")
        self._lock = threading.RLock()  # the end of a state, at any time, removes its thread
        self._states: dict[int, weakref.ref[State]] = {}
        start = self._code.address
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self.worker = start + at["worker"]
        self.handlers = {kind: start + at[kind] for kind in layout.KINDS}
        # what takes a moment only holds Python's lock: getting it back may take its other threads' time slice
        self.reset = ctypes.PYFUNCTYPE(None, word, word)(start + at["reset"])
        self.hand_in = ctypes.PYFUNCTYPE(word, pointer, word)(start + at["hand_in"])
        self.withdraw = ctypes.PYFUNCTYPE(word, pointer, word, word)(start + at["withdraw"])
        self.wait_for_helpers = ctypes.CFUNCTYPE(word, pointer, word, word)(start + at["withdraw"])
        self.participate = ctypes.CFUNCTYPE(word, word, word, word)(start + at["participate"])
        self.guarded = ctypes.CFUNCTYPE(word, pointer, pointer, word, pointer)(start + at["guarded"])
        self._install(start + at["handler"])
        keep_for_good(self)

    def _install(self, handler: int) -> None:
        action = _SigAction(handler=handler, flags=SA_SIGINFO | SA_ONSTACK | SA_RESTART)
        for number in (*SIGNALS, WATCHDOG):
            before = _SigAction()
            if _libc.sigaction(int(number), None, ctypes.byref(before)):
                raise OSError(ctypes.get_errno(), f"cannot read the handler of signal {number:d}")
            self._table.words[layout.HANDLERS // 8 + number] = before.handler or 0
            if _libc.sigaction(int(number), ctypes.byref(action), None):
                raise OSError(ctypes.get_errno(), f"cannot install a handler for signal {number:d}")

    def add(self, thread: int, state: State) -> None:
        """Catch faults of the thread with that id of the kernel.

        Raises:
            RuntimeError: there are too many threads.
        """
        words = self._table.words
        with self._lock:
            pairs = words[layout.COUNT // 8]
            free = next((i for i in range(pairs) if not words[layout.PAIRS // 8 + 2 * i]), pairs)
            if free == layout.MAX_THREADS:
                raise RuntimeError(f"{free} threads run kernels already; end some of them")
            words[layout.PAIRS // 8 + 2 * free + 1] = state.address
            words[layout.PAIRS // 8 + 2 * free] = thread
            words[layout.COUNT // 8] = max(pairs, free + 1)
            self._states[thread] = weakref.ref(state)

    def remove(self, thread: int) -> None:
        """Forget a thread that ends."""
        words = self._table.words
        with self._lock:
            self._states.pop(thread, None)
            for i in range(words[layout.COUNT // 8]):
                if words[layout.PAIRS // 8 + 2 * i] == thread:
                    words[layout.PAIRS // 8 + 2 * i] = 0

    def clear(self) -> None:
        """Forget all threads: a forked child has only the one that runs."""
        self._lock = threading.RLock()  # the end of a state, at any time, removes its thread
        self._states = {}
        self._table.words[layout.COUNT // 8] = 0

    def running(self) -> dict[int, int]:
        """The threads in whose kernel the time passes: thread id to CALLS."""
        with self._lock:
            states = [(thread, state()) for thread, state in self._states.copy().items()]
            return {thread: state.calls for thread, state in states if state is not None and state.calls & 1}

    def end(self, thread: int, calls: int) -> None:
        """End the kernel that a thread entered as ``calls``, if it still runs."""
        with self._lock:  # the thread stays as long as it is in the table
            state = self._states[thread]() if thread in self._states else None
            if state is not None and state.calls == calls:
                state.expire(calls)
                _libc.syscall(TGKILL, os.getpid(), thread, WATCHDOG)
