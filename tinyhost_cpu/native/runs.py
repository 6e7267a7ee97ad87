"""Runs of packets on the calling thread and on workers.

``Run`` names packets in memory (see ``native.layout``); ``Runner.execute`` runs some at once and returns when all of
their packets have ended. The calling thread takes part in each run, one after the other; workers are helpers that may
come late or never: nothing ever waits for a thread to wake up. A fault in a packet becomes a ``KernelFault``, Ctrl-C
cancels what has not started; in either case signals are set before the exception leaves, so that nobody waits for
them in vain.

The owner of the memory resets nothing, but must not touch it, nor run it a second time, before ``execute`` is back.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinyhost.errors import KernelFault
from tinyhost_cpu.native import layout
from tinyhost_cpu.native.idioms import SPINS
from tinyhost_cpu.native.packets import FAILED
from tinyhost_cpu.native.states import Fault, Faults, State, fault_of

SLICE_TICKS = 150_000_000  # of the time stamp counter, between looks at pending signals of Python: 30 to 75 ms
PATIENCE = 2000  # rests while helpers leave, between such looks
FULL_RING_SLEEP = 1e-3  # seconds


@dataclass(frozen=True)
class Run:
    """Packets in memory.

    Attributes:
        address: of the header; a multiple of 64.
        packets: how many there are, the one of kind "end" included; its need is the number of chunks of the others.
        width: threads that may take part, the caller included.
        scratch_bytes: how much memory of its own each of them needs for kernels.
        names: of the packets, for errors; kernels at least.
        owner: keeps the memory alive.
    """

    address: int
    packets: int
    width: int
    scratch_bytes: int
    names: Sequence[str]
    owner: Any = None

    def word(self, place: int) -> int:
        """A u64 of the header."""
        return ctypes.c_uint64.from_address(self.address + place).value

    def set_word(self, place: int, value: int) -> None:
        """Write a u64 of the header."""
        ctypes.c_uint64.from_address(self.address + place).value = value

    def packet_word(self, number: int, place: int) -> int:
        """A u64 of a packet."""
        return self.word(layout.RUN_HEADER_BYTES + number * layout.PACKET_BYTES + place)

    @property
    def chunks(self) -> int:
        """All chunks of the run."""
        return self.packet_word(self.packets - 1, layout.PACKET_NEED)


class Record(NamedTuple):
    """One chunk of an execute or copy: which, on which worker (0: a calling thread), from when to when in ns of
    CLOCK_MONOTONIC."""

    run: int
    packet: int
    chunk: int
    participant: int
    start: int
    end: int


class Execution:
    """Some runs under way, led by one thread with its ``state``; ``timeout`` in seconds is that of kernels."""

    __slots__ = ("runs", "_faults", "_state", "_timeout", "_calls", "_count", "_logs", "_failed", "_seen", "_since")

    def __init__(self, runs: Sequence[Run], faults: Faults, state: State, timeout: float) -> None:
        self.runs, self._faults, self._state, self._timeout = runs, faults, state, timeout
        self._calls: Any = None
        self._count = 0
        self._logs: list[Any] = []
        self._failed, self._seen, self._since = False, -1, 0.0

    def prepare(self, helpers: Sequence[tuple[int, Run]], log: bool) -> None:
        """Reset the runs and address calls for help with them to workers, given by their rings."""
        for run in self.runs:
            self._faults.reset(run.address, run.packets)
            if log:
                memory = (ctypes.c_uint64 * (layout.RECORD_BYTES // 8 * max(run.chunks, 1)))()
                run.set_word(layout.RUN_LOG, ctypes.addressof(memory))
                self._logs.append(memory)
        if helpers:
            words: list[int] = []
            led = self.runs[0]  # by this thread; the first worker for another one leads that
            for ring, run in helpers:
                words += (ring, run.address + (0 if run is led else layout.HELP_LEADS), 0, 0)
                led = run
            self._calls, self._count = (ctypes.c_uint64 * len(words))(*words), len(helpers)

    def hand_in(self) -> bool:
        """Call for help; False when a worker has too much to do already."""
        return bool(self._faults.hand_in(self._calls, self._count))

    def finish(self) -> None:
        """Take part until all runs are over and no helper touches their memory. May be left by an exception and called
        again."""
        for run in self.runs:
            while code := self._faults.participate(run.address, self._state.address, SLICE_TICKS):
                if code == FAILED:
                    self._failed = True
                    break
                self._check_progress()
        if self._count and not self._faults.withdraw(self._calls, self._count, SPINS):
            while not self._faults.wait_for_helpers(self._calls, self._count, PATIENCE):
                pass  # a look at pending signals

    def cancel(self) -> None:
        """What has not started does not, and nothing is waited for."""
        for run in self.runs:
            run.set_word(layout.RUN_CANCELLED, 1)

    def _check_progress(self) -> None:
        completed = sum(run.word(layout.RUN_COMPLETED) for run in self.runs)
        now = time.monotonic()
        if completed != self._seen:
            self._seen, self._since = completed, now
        elif now - self._since > 2 * self._timeout:  # twice: an endless kernel has its own error
            raise KernelFault("; ".join(self._waits()) + f" in {2 * self._timeout:g} s")

    def _waits(self) -> list[str]:
        """What the runs wait for, in words."""
        out = []
        handlers = {self._faults.handlers[kind]: kind for kind in ("wait", "poll")}
        for run in self.runs:
            for i in range(run.packets):
                kind = handlers.get(run.packet_word(i, layout.PACKET_HANDLER))
                if run.packet_word(i, layout.PACKET_CLAIMED) == 0:
                    if kind is not None:
                        address, value = run.packet_word(i, layout.PACKET_A), run.packet_word(i, layout.PACKET_B)
                        what = "signal" if kind == "wait" else "word"
                        out.append(f"packet {i}: the {what} at {address:#x} did not reach {value}")
                    break
        return out or ["a run made no progress"]

    def failure(self) -> KernelFault | None:
        """The error of the first run that failed."""
        for run in self.runs if self._failed else ():
            if failed := run.word(layout.RUN_FAILED):
                fault = Fault(*[run.word(at) for at in (layout.RUN_SIGNAL, layout.RUN_ADDRESS, layout.RUN_CODE)])
                return fault_of(self._what(run, failed - 1), fault, self._timeout)
        return None

    def _what(self, run: Run, number: int) -> str:
        """A packet in words."""
        name = run.names[number] if number < len(run.names) else ""
        if name and run.packet_word(number, layout.PACKET_HANDLER) == self._faults.handlers["execute"]:
            return f"kernel {name}"
        return f"packet {number} ({name})" if name else f"packet {number}"

    def records(self) -> list[Record]:
        """What the log says, in order of starts."""
        out = []
        size = layout.RECORD_BYTES // 8
        for number, (run, log) in enumerate(zip(self.runs, self._logs)):
            for i in range(run.word(layout.RUN_LOGGED)):
                out.append(Record(number, *log[i * size:i * size + 5]))
        return sorted(out, key=lambda r: r.start)


def execute(execution: Execution, hand_in: Callable[[Execution], None] | None) -> None:
    """Run an execution to its end, whatever exceptions signal handlers of Python raise meanwhile.

    Args:
        hand_in: hands in the calls for help, None where there are none.

    Raises:
        KernelFault: a packet ended with a fault, or does not end.
        KeyboardInterrupt, or what another signal handler raised: in the main thread, when the rest is cancelled.
    """
    interrupt: BaseException | None = None
    while True:
        try:
            if interrupt is not None:
                execution.cancel()
            elif hand_in is not None:
                hand_in(execution)
            execution.finish()
            break
        except BaseException as e:
            interrupt = interrupt or e
    if interrupt is not None:
        raise interrupt
    if (failure := execution.failure()) is not None:
        raise failure
