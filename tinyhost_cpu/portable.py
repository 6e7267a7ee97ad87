"""Calls of kernels on Python threads, for hosts without workers of generated code.

The interface is ``native.pool.Pool``'s without packets: ``call`` on this thread, ``run`` on several at once,
``scratch`` for a kernel's arena. Generated code holds no Python lock, so threads around it run in parallel. Faults end
the process.
"""
from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from tinyhost_cpu.memory import Memory, allocate
from tinyhost_cpu.native.layout import NONE, argument_words

Task = tuple[Callable[[], None], "_Join"]


class _Join:
    """Counts finished parts of one launch and keeps the first failure."""

    def __init__(self, parts: int) -> None:
        self._left = parts
        self._lock = threading.Lock()
        self._done = threading.Event()
        if not parts:
            self._done.set()
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
        self._lock = threading.Lock()
        self._own = _Scratch()

    def scratch(self, size: int) -> int:
        """Address of at least ``size`` bytes that only the calling thread uses."""
        if self._own.memory is None or self._own.memory.size < size:
            self._own.memory = allocate(size)
        return self._own.memory.address

    def call(self, name: str, function: int, words: Any) -> None:
        """Call ``function`` with the words on this thread."""
        _prototype(len(words))(function)(*words)

    def run(self, name: str, function: int, arguments: Sequence[int], chunks: int, chunk_at: int = NONE,
            scratch_at: int = NONE, scratch_bytes: int = 0) -> None:
        """Call ``function`` once for each of ``chunks``, all at once: the first here.

        Args:
            chunk_at: which of the arguments is the number of the chunk.
            scratch_at: which of them is the address of ``scratch_bytes`` bytes of memory of the thread.
        """
        def part(chunk: int) -> None:
            words = list(arguments)
            if chunk_at != NONE:
                words[chunk_at] = chunk
            if scratch_at != NONE:
                words[scratch_at] = self.scratch(scratch_bytes)
            self.call(name, function, argument_words(words))
        self._need_threads(chunks - 1)
        join = _Join(chunks - 1)
        for chunk, queue in enumerate(self._queues[:chunks - 1], 1):
            queue.put((functools.partial(part, chunk), join))
        try:
            part(0)
        finally:
            join.wait()

    def _need_threads(self, count: int) -> None:
        with self._lock:
            while len(self._queues) < count:
                queue: SimpleQueue[Task] = SimpleQueue()
                thread = f"tinyhost-cpu-{len(self._queues) + 1}"
                threading.Thread(target=_serve, args=(queue,), name=thread, daemon=True).start()
                self._queues.append(queue)


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
