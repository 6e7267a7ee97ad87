"""The state of random numbers: one seed for the process, one key and one counter for each device.

Takes a device and a number of words; gives the device's key and the counter the words start at. The counter lives on
the device and is advanced by a store that the draw depends on, so a captured and replayed draw moves on by itself.
Key of a device: the low 32 bits of sha256 over its 4-byte big-endian index, then the seed; the index counts devices
in the order of their first use after seeding.
"""
from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.tensor import Tensor


class RandomState:
    """Seed, keys and counters."""

    def __init__(self) -> None:
        self.seed = int(time.time())
        self.keys: dict[str, Tensor] = {}
        self.counters: dict[str, Tensor] = {}
        self._lock = RLock()  # draws of several threads come one after the other

    def reseed(self, seed: int) -> None:
        """Start anew from ``seed``, on every device."""
        with self._lock:
            self.seed = seed
            self.keys.clear()
            self.counters.clear()

    def key_words(self, index: int) -> tuple[int, int]:
        """Key of the device that was the ``index``-th to be used."""
        from hashlib import sha256
        digest = sha256(index.to_bytes(4, "big")).digest()
        return int.from_bytes(digest, "big") & 0xFFFFFFFF, self.seed & 0xFFFFFFFF

    def draw(self, tensor: type[Any], device: str, words: int) -> tuple[Tensor, Tensor]:
        """Key and starting counter for ``words`` words on ``device``; the device's counter is advanced."""
        with self._lock:
            return self._draw(tensor, device, words)

    def _draw(self, tensor: type[Any], device: str, words: int) -> tuple[Tensor, Tensor]:
        if device not in self.keys:
            self.keys[device] = tensor(list(self.key_words(len(self.keys))), device=device, dtype="uint32")
            # storage of its own, so that each draw is a store into it
            self.counters[device] = tensor([0, 0], device=device, dtype="uint32").clone()
        counter = self.counters[device]
        low, high = counter._word(0)._add64(counter._word(1), words)
        counter.assign(low.stack(high))
        # the old value, computed from the new one, so that the draw depends on the store
        return self.keys[device], _subtracted(counter, words)


def _subtracted(counter: Tensor, n: int) -> Tensor:
    low, high = counter._word(0), counter._word(1)
    borrow = (low < low._const(n % 2**32, low.dtype)).cast(low.dtype)
    return (low - n % 2**32).stack(high - n // 2**32 - borrow)


state = RandomState()
