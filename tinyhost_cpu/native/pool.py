"""Workers: threads of the host that run machine code, and calls of kernels on them and on the calling thread.

``Pool.run`` calls one function on several threads at once, the caller being the first; ``Pool.call`` on the caller
alone. A fault in generated code becomes a ``KernelFault`` that names the kernel, and the process goes on. The caller
waits in slices, so that Ctrl-C is seen; a kernel that does not end in time is an error that names it, and its worker
refuses further work. Workers block signals, belong to no Python thread and are gone in a forked child, which starts its
own.
"""
from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from tinyhost.errors import KernelFault
from tinyhost_cpu.memory import Memory, allocate
from tinyhost_cpu.native.layout import SLOTS
from tinyhost_cpu.native.states import SIGNALS, Faults, Ring, State
from tinyhost_cpu.portable import larger_arena

SLICE = 0.05  # seconds between looks at pending signals of Python
MIN_SPINS, MAX_SPINS = 16, 4096  # looks before sleeping; a few tens of nanoseconds each
STACK_BYTES = 1 << 18  # kernels keep at most 16 KiB on the stack
_libc = ctypes.CDLL(None, use_errno=True)


class _TimeSpec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64)]


class Worker:
    """One thread and its ring."""

    def __init__(self, pool: Pool, number: int) -> None:
        self.ring, self.number, self._pool = Ring(), number, pool
        self.arenas: list[Memory] = []
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}  # slots that nobody has seen done
        self._stuck = ""  # why nothing more can run here
        self._spins = MIN_SPINS
        self._thread = _start_thread(pool.faults.worker, self.ring.address)
        while not self.ring.thread:
            time.sleep(1e-5)
        pool.faults.add(self.ring.thread, self.ring)

    def hand_in(self, name: str, function: int, words: Any) -> int:
        """Enter a call; the value of DONE that says it is finished. The words must stay as they are until then."""
        if self._stuck:
            raise KernelFault(self._stuck)
        with self._lock:
            number = self.ring.put
            while number - SLOTS in self._names:  # somebody has still to read how that slot ended
                self._wait(number + 1 - SLOTS)
                time.sleep(1e-4)
            self._names[number] = name
            self.ring.fill(number, function, len(words), ctypes.addressof(words))
            self._pool.faults.publish(self.ring.address, number + 1)
        return number + 1

    def _wait(self, done: int) -> None:
        """Until DONE is ``done``."""
        pool = self._pool
        # on a busy machine spinning keeps the worker from a processor: more of it only while it pays
        if pool.faults.wait(self.ring.address, done, self._spins, None):
            self._spins = min(2 * self._spins, MAX_SPINS)
            return
        self._spins = max(self._spins // 2, MIN_SPINS)
        seen, since = self.ring.done, time.monotonic()
        while not pool.faults.wait(self.ring.address, done, 1, pool.slice):
            if self.ring.done != seen:
                seen, since = self.ring.done, time.monotonic()
            elif time.monotonic() - since > pool.timeout:
                self._stuck = (f"kernel {self._names.get(seen, '?')} did not end in {pool.timeout:g} s on worker "
                               f"{self.number}; it cannot be stopped and keeps its memory: start a new process")
                raise KernelFault(self._stuck)

    def finish(self, done: int) -> None:
        """Wait for the call in front of ``done``.

        Raises:
            KernelFault: it ended with a fault, or does not end.
        """
        self._wait(done)
        name = self._names.pop(done - 1)
        fault = self.ring.fault_of(done - 1)
        if fault is not None:
            raise KernelFault(f"kernel {name} ended with {fault}; what it wrote is not valid")

    def stop(self) -> None:
        """End the thread, after what it has to do."""
        if not self._stuck:
            self.hand_in("end", 0, (ctypes.c_uint64 * 1)())
            _libc.pthread_join(ctypes.c_uint64(self._thread), None)
            self._pool.faults.remove(self.ring.thread)


class _Caller(threading.local):
    """What belongs to the running thread: its state, entered in the table of faults while it lives, and an arena."""

    state: State | None = None
    arena: Memory | None = None

    def of(self, faults: Faults) -> State:
        """The state, made at first use."""
        if self.state is None:
            state, thread = State(), threading.get_native_id()
            faults.add(thread, state)
            weakref.finalize(state, faults.remove, thread).atexit = False
            self.state = state
        return self.state


class Pool:
    """Workers, as many as kernels asked for so far; ``timeout`` in seconds."""

    def __init__(self, timeout: float = 60.0) -> None:
        self.faults = Faults()
        self.timeout = timeout
        self._slice = _TimeSpec(0, int(SLICE * 1e9))
        self.slice = ctypes.addressof(self._slice)
        self._kept: list[Any] = []  # words of calls that never ended
        self._start()

    def _start(self) -> None:
        self.workers: list[Worker] = []
        self._lock = threading.Lock()
        self._caller = _Caller()

    def forget(self) -> None:
        """In a forked child: the threads of the parent are not here."""
        self.faults.clear()
        self._start()

    def scratch(self, core: int, size: int) -> int:
        """Address of at least ``size`` bytes that only the calling thread, or worker ``core``, uses."""
        if core == 0:
            own = self._caller
            if own.arena is None or own.arena.size < size:
                own.arena = allocate(size)
            return own.arena.address
        self._grow(core)
        with self._lock:
            return larger_arena(self.workers[core - 1].arenas, size)

    def call(self, name: str, function: int, words: Any) -> None:
        """Call ``function`` with the words on this thread.

        Raises:
            KernelFault: it did not return.
        """
        state = self._caller.of(self.faults)
        if self.faults.guarded(state.address, function, len(words), ctypes.addressof(words)):
            raise KernelFault(f"kernel {name} ended with {state.take_fault()}; what it wrote is not valid")

    def run(self, name: str, function: int, words: Sequence[Any]) -> None:
        """Call ``function`` once with each of ``words``, all at once: the first here, the others on workers.

        Raises:
            KernelFault: one of the calls ended with a fault, or does not end.
        """
        self._grow(len(words) - 1)
        errors: list[BaseException] = []
        handed: list[tuple[Worker, int]] = []
        try:
            for worker, w in zip(self.workers, words[1:]):
                handed.append((worker, worker.hand_in(name, function, w)))
            self.call(name, function, words[0])
        except BaseException as e:
            errors.append(e)
        for worker, done in handed:  # they read the words of this call
            errors += _ended(worker, done)
        if errors:
            if any(worker.ring.done < done for worker, done in handed):
                self._kept.append(words)
            raise errors[0]

    def _grow(self, count: int) -> None:
        if len(self.workers) >= count:
            return
        with self._lock:
            while len(self.workers) < count:
                self.workers.append(Worker(self, len(self.workers) + 1))

    def stop(self) -> None:
        """End all workers."""
        with self._lock:
            for worker in self.workers:
                worker.stop()
            self.workers = []


def _ended(worker: Worker, done: int) -> list[BaseException]:
    """Wait; the errors. An interrupt does not leave the wait, it is kept until the kernel has ended."""
    kept: list[BaseException] = []
    while True:
        try:
            worker.finish(done)
        except KeyboardInterrupt as e:
            kept.append(e)
            continue
        except KernelFault as e:
            kept.append(e)
        return kept


def _start_thread(function: int, argument: int) -> int:
    """A thread of the system that blocks all signals but those of faults."""
    attributes, thread = (ctypes.c_uint64 * 8)(), ctypes.c_uint64()  # pthread_attr_t has 56 bytes
    _libc.pthread_attr_init(attributes)
    _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - set(SIGNALS))
    try:
        error = _libc.pthread_create(ctypes.byref(thread), attributes, ctypes.c_void_p(function),
                                     ctypes.c_void_p(argument))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _libc.pthread_attr_destroy(attributes)
    if error:
        raise OSError(error, f"cannot start a worker thread: {os.strerror(error)}")
    return thread.value
