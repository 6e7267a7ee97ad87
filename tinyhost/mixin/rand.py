"""Random bits as nodes: pure functions of a key and a counter.

Takes uint32 pairs (low word first), gives uint32 words. Keys, counters and distributions, which have state, belong to
Tensor.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost.dtype import dtypes
from tinyhost.helpers import ceildiv
from tinyhost.mixin.op import OpMixin

if TYPE_CHECKING:
    from typing import Self

_CHUNK = 2**32 - 1  # words that one derived key counts


class RandMixin(OpMixin):
    """Threefry bits from a key and a counter."""

    __slots__ = ()

    def _word(self, i: int) -> Self:
        return self.shrink(((i, i + 1),)).reshape(())

    def _packed(self, high: Self) -> Self:
        """uint64 values with low words self."""
        return self.cast(dtypes.uint64) | (high.cast(dtypes.uint64) << 32)

    def _words(self) -> tuple[Self, Self]:
        """Low and high words of uint64 values."""
        return (self & 0xFFFFFFFF).cast(dtypes.uint32), (self >> 32).cast(dtypes.uint32)

    def _add64(self, high: Self, n: int) -> tuple[Self, Self]:
        """(self, high) + n with carry."""
        new = self + n % 2**32
        carry = (new < self._const(n % 2**32, dtypes.uint32)).cast(dtypes.uint32)
        return new, high + n // 2**32 + carry

    @classmethod
    def random_bits(cls, key: Self, counter: Self, num: int) -> Self:
        """``num`` random uint32 words for a key and a counter, both pairs of uint32.

        Each chunk of words counts from 0 under a key of its own: the cipher of the counter at its start.
        """
        device_key = key._word(0)._packed(key._word(1))
        low, high = counter._word(0), counter._word(1)
        words: list[Self] = []
        for start in range(0, num, _CHUNK):
            n = min(_CHUNK, num - start)
            at_low, at_high = low._add64(high, start) if start else (low, high)
            chunk_key = at_low._packed(at_high).threefry(device_key)
            half = ceildiv(n, 2)
            count: Self = cls._iota(half).cast(dtypes.uint64)
            lows, highs = (count | ((count + half) << 32)).threefry(chunk_key)._words()
            words.append(lows.cat(highs).shrink(((0, n),)))
        return words[0] if len(words) == 1 else words[0].cat(*words[1:])
