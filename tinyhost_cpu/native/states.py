"""States of threads and rings of workers in memory, and the table by which the fault handler finds them.

``State`` is the page of one thread; ``Ring`` the state of a worker with its slots. ``Faults`` owns the table and the
generated code, installs the handler, and turns what it noted into an error that names the kernel.
"""
from __future__ import annotations

import ctypes
import mmap
import signal
import threading
from dataclasses import dataclass

from tinyhost_cpu.code import Segment
from tinyhost_cpu.native import layout
from tinyhost_cpu.native.code import assemble
from tinyhost_cpu.native.layout import PAGE, SLOT_BYTES, SLOTS, SLOTS_AT
from tinyhost_cpu.x86.caps import host_features

SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
SA_SIGINFO, SA_ONSTACK = 0x4, 0x08000000  # asm/signal.h


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
    """What ended a kernel; address and code are 0 when a later fault took their place."""

    signal: int
    address: int
    code: int

    def __str__(self) -> str:
        name = signal.Signals(self.signal).name
        if not self.code:
            return name
        where = f" at address {self.address:#x}" if self.signal in (signal.SIGSEGV, signal.SIGBUS) else ""
        return f"{name}{where}, instruction at {self.code:#x}"


class State(Area):
    """The state of a thread that calls kernels itself."""

    def __init__(self, size: int = PAGE) -> None:
        super().__init__(size)

    def take_fault(self) -> Fault:
        """The last fault of this thread."""
        return Fault(*[self.words[at // 8] for at in (layout.FAULT_SIGNAL, layout.FAULT_ADDRESS, layout.FAULT_CODE)])


def keep_for_good(owner: object) -> None:
    """Never free ``owner``: a worker that did not end still uses its memory while the interpreter shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


class Ring(State):
    """The state and the slots of a worker; never freed."""

    def __init__(self) -> None:
        super().__init__(SLOTS_AT + SLOTS * SLOT_BYTES)
        self._alt_stack = Area(layout.ALT_STACK_BYTES)
        self.words[layout.ALT_STACK // 8] = self._alt_stack.address
        self.words[layout.ALT_STACK // 8 + 2] = layout.ALT_STACK_BYTES
        keep_for_good(self)

    @property
    def thread(self) -> int:
        """Id of the worker's thread for the kernel, 0 before it runs."""
        return self.words[layout.TID // 8]

    @property
    def done(self) -> int:
        """Slots finished."""
        return self.words[layout.DONE // 8]

    @property
    def put(self) -> int:
        """Slots handed in."""
        return self.words[layout.PUT // 8]

    def fill(self, number: int, function: int, count: int, arguments: int) -> None:
        """Write slot ``number``; nobody reads it before PUT is behind it."""
        at = (SLOTS_AT + number % SLOTS * SLOT_BYTES) // 8
        self.words[at], self.words[at + 1], self.words[at + 2], self.words[at + 3] = function, count, arguments, 0

    def fault_of(self, number: int) -> Fault | None:
        """What ended slot ``number``, None when it ended well. Valid until the slot is filled again."""
        ended_by = self.words[(SLOTS_AT + number % SLOTS * SLOT_BYTES) // 8 + 3]
        if not ended_by:
            return None
        return self.take_fault() if self.words[layout.FAULT_SLOT // 8] == number else Fault(ended_by, 0, 0)


class _SigAction(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]


class Faults:
    """The generated code, and the threads whose faults it catches. One for the process, never freed."""

    def __init__(self) -> None:
        self._table = Area(-(-layout.TABLE_BYTES // PAGE) * PAGE)
        code, at = assemble(self._table.address, "avx" in host_features())
        self._code = Segment(code)
        self._lock = threading.Lock()
        start = self._code.address
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self.worker = start + at["worker"]
        self.publish = ctypes.CFUNCTYPE(None, pointer, word)(start + at["publish"])
        self.wait = ctypes.CFUNCTYPE(word, pointer, word, word, pointer)(start + at["wait"])
        self.guarded = ctypes.CFUNCTYPE(word, pointer, pointer, word, pointer)(start + at["guarded"])
        self._install(start + at["handler"])
        keep_for_good(self)

    def _install(self, handler: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        action = _SigAction(handler=handler, flags=SA_SIGINFO | SA_ONSTACK)
        for number in SIGNALS:
            before = _SigAction()
            if libc.sigaction(number, None, ctypes.byref(before)):
                raise OSError(ctypes.get_errno(), f"cannot read the handler of {number.name}")
            self._table.words[layout.HANDLERS // 8 + number] = before.handler or 0
            if libc.sigaction(number, ctypes.byref(action), None):
                raise OSError(ctypes.get_errno(), f"cannot install a handler for {number.name}")

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

    def remove(self, thread: int) -> None:
        """Forget a thread that ends."""
        words = self._table.words
        with self._lock:
            for i in range(words[layout.COUNT // 8]):
                if words[layout.PAIRS // 8 + 2 * i] == thread:
                    words[layout.PAIRS // 8 + 2 * i] = 0

    def clear(self) -> None:
        """Forget all threads: a forked child has only the one that runs."""
        self._lock = threading.Lock()
        self._table.words[layout.COUNT // 8] = 0
