"""The state of random numbers: one seed for the process, one key and one counter for each device and thread.

Takes a device and a number of words; gives a key and the counter the words start at. The counter lives on the device
and is advanced by a store that the draw depends on, so a captured and replayed draw moves on by itself. A key is the
low 32 bits of sha256 over a 4-byte big-endian index, then the seed; the index counts devices in the order of their
first use after seeding, once for each thread that draws on them. Threads share no counter: a store into one would
overwrite what lazy draws of another thread still read.
"""
from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.tensor import Tensor


class _Stream:
    """Keys and counters of one thread, by device, since the seed ``number``."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.keys: dict[str, Tensor] = {}
        self.counters: dict[str, Tensor] = {}


class RandomState:
    """The seed, and a stream for each thread that draws."""

    def __init__(self) -> None:
        self.seed = int(time.time())
        self._number = self._used = 0  # of the seed; keys given out under it
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        self._own = threading.local()
        self._lock = threading.RLock()

    def reseed(self, seed: int) -> None:
        """Start anew from ``seed``, on every device and in every thread."""
        with self._lock:
            self.seed = seed
            self._number += 1
            self._used = 0
            for stream in self._streams:  # whoever captured them sees that they are gone
                stream.keys.clear()
                stream.counters.clear()

    def storage(self) -> list[Tensor]:
        """Keys and counters of all threads."""
        with self._lock:
            return [t for s in self._streams for t in (*s.keys.values(), *s.counters.values())]

    def key_words(self, index: int) -> tuple[int, int]:
        """The ``index``-th key under the seed."""
        from hashlib import sha256
        digest = sha256(index.to_bytes(4, "big")).digest()
        return int.from_bytes(digest, "big") & 0xFFFFFFFF, self.seed & 0xFFFFFFFF

    def counter(self, device: str) -> Tensor:
        """The running thread's counter on a device on which it drew."""
        stream: _Stream = self._own.stream
        return stream.counters[device]

    def draw(self, tensor: type[Any], device: str, words: int) -> tuple[Tensor, Tensor]:
        """Key and starting counter for ``words`` words on ``device``; the thread's counter there is advanced."""
        stream = self._stream(tensor, device)
        counter = stream.counters[device]
        low, high = counter._word(0)._add64(counter._word(1), words)
        counter.assign(low.stack(high))
        # the old value, computed from the new one, so that the draw depends on the store
        return stream.keys[device], _subtracted(counter, words)

    def _stream(self, tensor: type[Any], device: str) -> _Stream:
        """The running thread's stream, with a key and a counter for ``device``."""
        with self._lock:
            stream: _Stream | None = getattr(self._own, "stream", None)
            if stream is None or stream.number != self._number:
                stream = self._own.stream = _Stream(self._number)
                self._streams.add(stream)
            if device not in stream.keys:
                stream.keys[device] = tensor(list(self.key_words(self._used)), device=device, dtype="uint32")
                # storage of its own, so that each draw is a store into it
                stream.counters[device] = tensor([0, 0], device=device, dtype="uint32").clone()
                self._used += 1
            return stream


def _subtracted(counter: Tensor, n: int) -> Tensor:
    low, high = counter._word(0), counter._word(1)
    borrow = (low < low._const(n % 2**32, low.dtype)).cast(low.dtype)
    return (low - n % 2**32).stack(high - n // 2**32 - borrow)


state = RandomState()
