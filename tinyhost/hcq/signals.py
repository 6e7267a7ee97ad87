"""Signals: 16 bytes that devices and host see, and timelines: a device's work numbered in order.

A signal is a u64 value and, 8 bytes behind it, a u64 timestamp of the device's clock. Whoever waits wants the value to
be at least a number; a timeline hands such numbers out. Its values stay below 2^31, because some devices compare in 32
bits: when they run out it waits until its device is idle, and goes on from 0 in a second signal, so that a value that
another device waits for in the first one stays reached. Nothing here tells a device to set a signal.
"""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from threading import RLock
from typing import NoReturn

from tinyhost.env import HCQDEV_WAIT_TIMEOUT_MS
from tinyhost.errors import DeviceError, DeviceTimeout
from tinyhost.hcq.mmio import MMIO, HostMemory

SIGNAL_BYTES = 16
LIMIT = 1 << 31
ALWAYS = (1 << 64) - 1  # a signal with this value has every value that anyone waits for
_SPIN_SECONDS = 2e-4  # how long a wait asks again at once
_SLEEP_SECONDS = 5e-5

OnWait = Callable[[], None]


def wait_until(read: Callable[[], int], enough: Callable[[int], bool], on_wait: OnWait | None, timeout_ms: int | None,
               describe: Callable[[int], str]) -> None:
    """Return when ``enough(read())``; each change of what is read begins the time anew.

    Raises:
        DeviceTimeout: nothing changed for ``timeout_ms`` (HCQDEV_WAIT_TIMEOUT_MS when None).
    """
    seen = read()
    if enough(seen):
        return
    limit = (HCQDEV_WAIT_TIMEOUT_MS.value if timeout_ms is None else timeout_ms) / 1000
    first = start = time.monotonic()
    while not enough(seen):
        if on_wait is not None:
            on_wait()
        now, clock = read(), time.monotonic()
        if now != seen:
            seen, start = now, clock
        elif clock - start > limit:
            raise DeviceTimeout(f"waited {clock - first:.1f} s {describe(now)}, and nothing changed for "
                                f"{limit * 1000:.0f} ms: the device hangs, or a kernel takes longer. Set "
                                "HCQDEV_WAIT_TIMEOUT_MS to wait longer")
        if clock - first > _SPIN_SECONDS:
            time.sleep(_SLEEP_SECONDS)


class Signal:
    """A u64 that a device or the host sets and all can wait for.

    Attributes:
        address: as devices see it.
        memory: the 16 bytes.
    """

    __slots__ = ("address", "memory", "_words", "_on_wait")

    def __init__(self, memory: HostMemory, value: int = 0, on_wait: OnWait | None = None) -> None:
        if memory.address % SIGNAL_BYTES or len(memory) != SIGNAL_BYTES:
            raise ValueError(f"a signal is {SIGNAL_BYTES} bytes at a multiple of {SIGNAL_BYTES}, not {len(memory)} "
                             f"bytes at {memory.address:#x}")
        self.memory, self.address = memory, memory.address
        self._words: MMIO = memory.mmio(64)
        self._on_wait = on_wait
        self.value = value

    @property
    def value(self) -> int:
        """What was last set."""
        return int(self._words[0])

    @value.setter
    def value(self, new: int) -> None:
        self._words[0] = new

    @property
    def timestamp(self) -> int:
        """The device's clock at the last timestamp command."""
        return int(self._words[1])

    def wait(self, value: int, timeout_ms: int | None = None) -> None:
        """Return when the value is at least ``value``; each change of it begins the time anew.

        Raises:
            DeviceTimeout: nothing changed for ``timeout_ms`` (HCQDEV_WAIT_TIMEOUT_MS when None).
        """
        wait_until(lambda: self.value, lambda now: now >= value, self._on_wait, timeout_ms,
                   lambda now: f"for a signal to become {value}; it is {now}")

    def __repr__(self) -> str:
        return f"<Signal at {self.address:#x}, value {self.value}>"


class SignalPool:
    """Signals of one peer group, cut out of memory that all its devices see.

    Args:
        allocate: memory of so many bytes, at a multiple of 16.
        on_wait: called again and again while the host waits; may raise what it finds wrong with a device.
    """

    signal_class: type[Signal] = Signal

    def __init__(self, allocate: Callable[[int], HostMemory], on_wait: OnWait | None = None,
                 chunk_bytes: int = 4096) -> None:
        self._allocate, self._on_wait, self._chunk = allocate, on_wait, chunk_bytes
        self._free: list[HostMemory] = []
        self._all: list[HostMemory] = []  # devices know addresses in it, whoever holds a signal
        self._lock = RLock()  # re-entrant: the collector may give signals back inside of a locked block
        self._sentinel: Signal | None = None

    def get(self, value: int = 0) -> Signal:
        """A signal of one's own."""
        with self._lock:
            if not self._free:
                memory = self._allocate(self._chunk)
                self._all.append(memory)
                self._free = [memory.part(at, SIGNAL_BYTES)
                              for at in reversed(range(0, self._chunk - SIGNAL_BYTES + 1, SIGNAL_BYTES))]
            memory = self._free.pop()
        memory.mmio(64)[1] = 0
        return self.signal_class(memory, value, self._on_wait)

    def put(self, signal: Signal) -> None:
        """Give a signal back that nobody waits for or sets any more."""
        with self._lock:
            self._free.append(signal.memory)

    @property
    def sentinel(self) -> Signal:
        """A signal that has every value: waits for it always pass. It is never set."""
        with self._lock:
            if self._sentinel is None:
                self._sentinel = self.get(ALWAYS)
            return self._sentinel


class ErrorState:
    """What is wrong with a device. It stays: work after a fault would compute with what was never written.

    Attributes:
        error: the first thing that went wrong. It is never raised itself, so that it keeps no frames alive.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.error: DeviceError | None = None

    def check(self) -> None:
        """Raise the error that happened, if one did."""
        if self.error is not None:
            raise type(self.error)(str(self.error))

    def fail(self, error: DeviceError) -> NoReturn:
        """Remember an error, and raise it; the first one stays."""
        if self.error is None:
            self.error = type(error)(f"{error}. {self.device} takes no more work in this process: save what other "
                                     "devices hold, and start anew")
        raise type(self.error)(str(self.error)) from error


class Timeline:
    """Numbers for work in order, and the signal that shows how much of it is done.

    Its signals go back to the pool with it: whoever drops it makes sure that no device uses them (``Queues.keep``).

    Attributes:
        signal: the present signal. It changes when the numbers wrap.
        value: the last number that was handed out.
        epoch: how often the numbers wrapped.
    """

    def __init__(self, pool: SignalPool, errors: ErrorState | None = None, start: int = 0) -> None:
        self.errors = ErrorState("the device") if errors is None else errors
        self.value, self.epoch = start, 0
        self._pool = pool
        self.signal = pool.get(start)
        self._mine = [self.signal]  # and the shadow, once there is one
        self.lock = RLock()
        weakref.finalize(self, _give_back, pool, self._mine).atexit = False

    def reserve(self, n: int = 1) -> int:
        """A base: ``base + 1`` to ``base + n`` are the caller's, and everything before is done at ``base``.

        Raises:
            DeviceError: the device has failed, or does not become idle when the numbers wrap.
            ValueError: more numbers than there are.
        """
        self.errors.check()
        if not 0 <= n < LIMIT:
            raise ValueError(f"a timeline has {LIMIT - 1} numbers, cannot reserve {n} at once")
        with self.lock:
            if self.value + n >= LIMIT:
                self._wrap()
            base = self.value
            self.value = base + n
        return base

    def _wrap(self) -> None:
        self.wait()
        if len(self._mine) == 1:
            self._mine.append(self._pool.get())
        fresh = self._mine[self.signal is self._mine[0]]
        fresh.value = 0
        self.signal = fresh
        self.value, self.epoch = 0, self.epoch + 1

    def wait(self, value: int | None = None, timeout_ms: int | None = None) -> None:
        """Return when the device has reached ``value``, by default everything that was reserved.

        Raises:
            DeviceError: it failed; so does every later use.
        """
        self.point(value).wait(timeout_ms)

    def point(self, value: int | None = None) -> Point:
        """A number of now that can be asked for after the numbers wrapped; by default the last one."""
        with self.lock:
            return Point(self, self.signal, self.epoch, self.value if value is None else value)


def _give_back(pool: SignalPool, signals: list[Signal]) -> None:
    for s in signals:
        pool.put(s)


class Point:
    """A place in a timeline: all work up to ``value`` of one epoch."""

    __slots__ = ("timeline", "signal", "epoch", "value")

    def __init__(self, timeline: Timeline, signal: Signal, epoch: int, value: int) -> None:
        self.timeline, self.signal, self.epoch, self.value = timeline, signal, epoch, value

    @property
    def done(self) -> bool:
        """Whether the device has reached it. An earlier epoch is done: numbers wrap when the device is idle."""
        return self.timeline.epoch > self.epoch or self.signal.value >= self.value

    def wait(self, timeout_ms: int | None = None) -> None:
        """Return when the device has reached it.

        Raises:
            DeviceError: it failed; so does every later use.
        """
        self.timeline.errors.check()
        if self.timeline.epoch > self.epoch:
            return
        try:
            self.signal.wait(self.value, timeout_ms)
        except DeviceError as e:
            self.timeline.errors.fail(e)


def wait_all(points: Sequence[Point]) -> None:
    """Return when all are reached."""
    for p in points:
        p.wait()
