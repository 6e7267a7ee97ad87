"""Calls of kernels on Python threads, for hosts without workers of generated code.

The interface is ``native.pool.Pool``'s: ``call`` on this thread, ``run`` on several at once, ``scratch`` for a kernel's
arena. Generated code holds no Python lock, so threads around it run in parallel. Faults end the process.
"""
from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from tinyhost_cpu.memory import Memory, allocate

Task = tuple[Callable[[], None], "_Join"]


class _Join:
    """Counts finished parts of one launch and keeps the first failure."""

    def __init__(self, parts: int) -> None:
        self._left = parts
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.failure: BaseException | None = None

    def finish(self, failure: BaseException | None) -> None:
        with self._lock:
            self._left -= 1
            self.failure = self.failure or failure
            if self._left == 0:
                self._done.set()

    def wait(self) -> None:
        # in slices, so that Ctrl-C is seen
        while not self._done.wait(0.05):
            pass
        if self.failure is not None:
            raise self.failure


class _Scratch(threading.local):
    memory: Memory | None = None


class PortablePool:
    """Python threads, as many as kernels asked for so far."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked child: the threads of the parent are not here."""
        self._queues: list[SimpleQueue[Task]] = []
        self._arenas: list[list[Memory]] = []
        self._lock = threading.Lock()
        self._own = _Scratch()

    def stop(self) -> None:
        """Nothing to do: the threads end with the process."""

    def scratch(self, core: int, size: int) -> int:
        """Address of at least ``size`` bytes that only the calling thread, or worker ``core``, uses."""
        if core == 0:
            if self._own.memory is None or self._own.memory.size < size:
                self._own.memory = allocate(size)
            return self._own.memory.address
        with self._lock:
            while len(self._arenas) < core:
                self._arenas.append([])
            return larger_arena(self._arenas[core - 1], size)

    def call(self, name: str, function: int, words: Any) -> None:
        """Call ``function`` with the words on this thread."""
        _prototype(len(words))(function)(*words)

    def run(self, name: str, function: int, words: Sequence[Any]) -> None:
        """Call ``function`` once with each of ``words``, all at once: the first here."""
        with self._lock:
            while len(self._queues) < len(words) - 1:
                queue: SimpleQueue[Task] = SimpleQueue()
                thread = f"tinyhost-cpu-{len(self._queues) + 1}"
                threading.Thread(target=_serve, args=(queue,), name=thread, daemon=True).start()
                self._queues.append(queue)
        join = _Join(len(words) - 1)
        for queue, w in zip(self._queues, words[1:]):
            queue.put((functools.partial(self.call, name, function, w), join))
        try:
            self.call(name, function, words[0])
        finally:
            join.wait()


def larger_arena(arenas: list[Memory], size: int) -> int:
    """Address of the last arena, after a larger one is made if need be; work under way may still use earlier ones."""
    if not arenas or arenas[-1].size < size:
        arenas.append(allocate(max(size, 2 * arenas[-1].size if arenas else 0)))
    return arenas[-1].address


@functools.cache
def _prototype(count: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * count)


def _serve(queue: SimpleQueue[Task]) -> None:
    while True:
        part, join = queue.get()
        failure: BaseException | None = None
        try:
            part()
        except BaseException as e:  # handed to the caller by wait()
            failure = e
        join.finish(failure)
