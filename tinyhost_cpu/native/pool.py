"""Workers: threads of the host that run machine code, and calls of kernels on them and on the calling thread.

``Pool.call`` calls a kernel on the calling thread; ``Pool.execute`` runs packets there and on workers, and ``Pool.run``
a kernel of several chunks, as a run of one packet. A fault in generated code, or a kernel that does not end in time,
becomes a ``KernelFault`` that names the kernel, and the process goes on. The caller comes back to Python in slices, so
that Ctrl-C is seen. Workers block signals, belong to no Python thread and are gone in a forked child, which starts its
own.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from tinyhost.env import ContextVar
from tinyhost_cpu.cpus import available_cpus
from tinyhost_cpu.memory import Memory, allocate
from tinyhost_cpu.native.launch import Launch
from tinyhost_cpu.native.layout import NONE
from tinyhost_cpu.native.runs import FULL_RING_SLEEP, Execution, Record, Run, execute
from tinyhost_cpu.native.states import Faults, Ring, State, fault_of
from tinyhost_cpu.native.watchdog import Watchdog

CPU_TIMEOUT_MS = ContextVar("CPU_TIMEOUT_MS", 60_000, "milliseconds after which a CPU kernel that has not ended is "
                            "stopped; read once, before the first kernel", minimum=1)
STACK_BYTES = 1 << 18  # kernels keep at most 16 KiB on the stack
_libc = ctypes.CDLL(None, use_errno=True)


class Worker:
    """One thread and its ring, to the end of the process; ``number`` counts from 1."""

    def __init__(self, faults: Faults, number: int) -> None:
        self.ring = Ring(number)
        self._arenas: list[Memory] = []  # a kernel may still use an earlier one
        _start_thread(faults.worker, self.ring.address)
        while not self.ring.thread:
            time.sleep(1e-5)
        faults.add(self.ring.thread, self.ring)

    def need_scratch(self, size: int) -> None:
        """Provide memory for kernels; callers take turns."""
        if size and (not self._arenas or self._arenas[-1].size < size):
            self._arenas.append(allocate(max(size, 2 * self._arenas[-1].size if self._arenas else 0)))
            self.ring.set_scratch(self._arenas[-1].address)


class _Caller(threading.local):
    """What belongs to the running thread: its state, entered in the table of faults while it lives, scratch memory,
    and memory for launches."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.arena: Memory | None = None
        self.launches: list[Launch] = []

    def need_scratch(self, state: State, size: int) -> int:
        """Address of ``size`` bytes for kernels on this thread, 0 for none."""
        if size and (self.arena is None or self.arena.size < size):
            self.arena = allocate(size)
            state.set_scratch(self.arena.address)
        return 0 if self.arena is None else self.arena.address


class Pool:
    """Workers, as many as runs asked for so far; one pool for the process.

    Attributes:
        handlers: address of the code for each kind of packet.
        timeout: seconds after which a kernel is ended.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.handlers = self.faults.handlers
        self._watchdog = Watchdog(self.faults, CPU_TIMEOUT_MS.value / 1000)
        self._start()

    def _start(self) -> None:
        self.workers: list[Worker] = []
        self._lock = threading.RLock()  # a signal handler may run kernels while its thread holds it
        self._caller = _Caller()
        self._cpus = available_cpus()

    @property
    def timeout(self) -> float:
        return self._watchdog.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._watchdog.set_timeout(seconds)

    def forget(self) -> None:
        """In a forked child: the threads of the parent are not here."""
        self.faults.clear()
        self._watchdog.forget()
        self._start()

    def _state(self) -> State:
        """The calling thread's state, made at first use."""
        own = self._caller
        if own.state is None:
            state, thread = State(), threading.get_native_id()
            self.faults.add(thread, state)
            weakref.finalize(state, self.faults.remove, thread).atexit = False
            self._watchdog.start()
            own.state = state
        return own.state

    def scratch(self, size: int) -> int:
        """Address of at least ``size`` bytes for a kernel that ``call`` is about to run."""
        return self._caller.need_scratch(self._state(), size)

    def call(self, name: str, function: int, words: Any) -> None:
        """Call ``function`` with the words on this thread.

        Raises:
            KernelFault: it did not return.
        """
        state = self._state()
        if self.faults.guarded(state.address, function, len(words), ctypes.addressof(words)):
            raise fault_of(f"kernel {name}", state.take_fault(), self.timeout)

    def run(self, name: str, function: int, arguments: Sequence[int], chunks: int, chunk_at: int = NONE,
            scratch_at: int = NONE, scratch_bytes: int = 0) -> None:
        """Call ``function`` once for each of ``chunks``, on as many threads as there are processors.

        Args:
            chunk_at: which of the arguments is the number of the chunk.
            scratch_at: which of them is the address of ``scratch_bytes`` bytes of memory of the thread.

        Raises:
            KernelFault: a call ended with a fault, or did not end.
        """
        spare = self._caller.launches
        launch = spare.pop() if spare else Launch(self.handlers)  # a signal handler's launch finds it taken
        run = launch.fill(name, function, arguments, chunks, (chunk_at, scratch_at), min(chunks, self._cpus),
                          scratch_bytes)
        try:
            self.execute((run,))
        finally:
            spare.append(launch)

    def execute(self, runs: Sequence[Run], log: bool = False) -> list[Record]:
        """Run packets; back when all have ended. The runs may wait for signals of each other.

        Raises:
            KernelFault: a packet ended with a fault, or does not end.
            KeyboardInterrupt: in the main thread; what had not started did not.
        """
        state, scratch = self._state(), 0
        places: list[Run] = []  # a place for each thread that may take part
        for run in runs:
            places += (run,) * run.width
            scratch = max(scratch, run.scratch_bytes)
        self._caller.need_scratch(state, scratch)
        execution = Execution(runs, self.faults, state, self.timeout)
        if len(places) > 1:  # the first place is the caller's
            execution.prepare(self._helpers(places[1:]), log)
            execute(execution, self._hand_in)
        else:
            execution.prepare((), log)
            execute(execution, None)
        return execution.records() if log else []

    def _helpers(self, places: Sequence[Run]) -> list[tuple[int, Run]]:
        """The ring of a worker for each of the places, with scratch memory."""
        with self._lock:
            workers = self._pick(len(places))
            for worker, run in zip(workers, places):
                worker.need_scratch(run.scratch_bytes)
            return [(worker.ring.address, run) for worker, run in zip(workers, places)]

    def _pick(self, count: int) -> list[Worker]:
        """Different workers: idle ones, new ones as long as there are processors for them, then busy ones."""
        picked = [worker for worker in self.workers if worker.ring.idle][:count]
        while len(picked) < count and len(self.workers) < max(count, self._cpus - 1):
            self.workers.append(Worker(self.faults, len(self.workers) + 1))
            picked.append(self.workers[-1])
        busy = (worker for worker in self.workers if worker not in picked)
        return picked + list(itertools.islice(busy, count - len(picked)))

    def _hand_in(self, execution: Execution) -> None:
        """All calls of an execution at once: every worker gets executions in the same order, so that none of those
        that wait for each other's signals stands behind another one here and before it there."""
        while True:
            with self._lock:
                if execution.hand_in() or len(execution.runs) == 1:  # a single run needs no help
                    return
            time.sleep(FULL_RING_SLEEP)


def _start_thread(function: int, argument: int) -> None:
    attributes, thread = (ctypes.c_uint64 * 8)(), ctypes.c_uint64()  # pthread_attr_t has 56 bytes
    _libc.pthread_attr_init(attributes)
    _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
    error = _libc.pthread_create(ctypes.byref(thread), attributes, ctypes.c_void_p(function),
                                 ctypes.c_void_p(argument))
    _libc.pthread_attr_destroy(attributes)
    if error:
        raise OSError(error, f"cannot start a worker thread: {os.strerror(error)}")
