"""Keccak, the sponge behind SHA-3 and SHAKE (FIPS 202), on rows of bytes.

Takes nodes whose last axis is the message; gives digests of uint8. The state is 5 x 5 lanes of uint64; every row of a
batch goes through the permutation side by side.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes
from tinyhost.errors import ShapeError
from tinyhost.helpers import ceildiv, prod
from tinyhost.mixin.functional import FunctionalMixin
from tinyhost.mixin.indexing import IndexMixin

if TYPE_CHECKING:
    from typing import Self

# rate in bytes and domain suffix (FIPS 202, sections 6.1 and 6.2)
_CONFIGS = {"sha3_224": (144, 0x06), "sha3_256": (136, 0x06), "sha3_384": (104, 0x06), "sha3_512": (72, 0x06),
            "shake_128": (168, 0x1F), "shake_256": (136, 0x1F)}


def _round_constants() -> list[int]:
    """FIPS 202, algorithm 5: bits of a linear feedback shift register at positions 2^j - 1."""
    out, lfsr = [], 1
    for _ in range(24):
        constant = 0
        for j in range(7):
            if lfsr & 1:
                constant |= 1 << ((1 << j) - 1)
            lfsr = (lfsr << 1) ^ (0x171 if lfsr & 0x80 else 0)
        out.append(constant)
    return out


def _offsets() -> list[list[int]]:
    """FIPS 202, algorithm 2: rotation of lane (x, y), as ``[y][x]``."""
    out = [[0] * 5 for _ in range(5)]
    x, y = 1, 0
    for t in range(24):
        out[y][x] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return out


class HashMixin(FunctionalMixin, IndexMixin):
    """keccak and hash."""

    __slots__ = ()

    def keccak(self, cfg: str | tuple[int, int] = "sha3_256") -> Self:
        """Digest of each row of bytes along the last axis.

        Args:
            cfg: a name, "sha3_256" and so on or "shake_128", "shake_256", or (rate in bytes, suffix byte). The digest
                has half as many bytes as the state has beyond the rate.

        Raises:
            ValueError: unknown name, or a rate that is no multiple of 8 below 200.
            ShapeError: no axis of bytes.
        """
        if isinstance(cfg, str) and cfg not in _CONFIGS:
            raise ValueError(f"unknown keccak configuration {cfg!r}: use {', '.join(_CONFIGS)} or (rate, suffix)")
        rate, suffix = _CONFIGS[cfg] if isinstance(cfg, str) else cfg
        if not 0 < rate < 200 or rate % 8:
            raise ValueError(f"keccak needs a rate in bytes that is a multiple of 8 between 8 and 192, got {rate}")
        if self.ndim == 0:
            raise ShapeError("keccak needs rows of bytes, got a 0-d tensor: reshape it to (1,)")
        message = self if self.dtype is dtypes.uint8 else self.bitcast(dtypes.uint8)
        lead, length = message.shape[:-1], message.shape[-1]
        blocks = length // rate + 1
        data = message.reshape((prod(lead), length)).pad((None, (0, blocks * rate - length)))
        number = self._iota(blocks * rate)
        end = number.eq(length).where(suffix, 0) + number.eq(blocks * rate - 1).where(0x80, 0)
        data = data ^ end.cast(dtypes.uint8)
        lanes = data.bitcast(dtypes.uint64).reshape((prod(lead), blocks, rate // 8))
        state = self._const(0, dtypes.uint64)._broadcast_to((prod(lead), 25))
        for i in range(blocks):
            block = lanes[:, i].pad((None, (0, 25 - rate // 8)))
            state = (state ^ block)._keccak_permutation()
        size = (200 - rate) // 2
        return state.bitcast(dtypes.uint8)[:, :size].reshape((*lead, size))

    def _keccak_permutation(self) -> Self:
        """Keccak-f[1600] of rows of 25 lanes, lane (x, y) at 5 y + x.

        A lane more counts the rounds, so that all of them are one kernel.
        """
        state = self.pad((None, (0, 1)))
        for _ in range(24):
            turn = state[:, 25:]
            state = state[:, :25]._keccak_round(_round_constant(turn)).cat(turn + 1, dim=1).contiguous()
        return state[:, :25]

    def _keccak_round(self, constant: Self) -> Self:
        """One round: theta, rho, pi, chi, iota (FIPS 202, section 3.2) over (rows, y, x)."""
        number = self._iota(25)
        y, x = number // 5, number % 5
        lanes = self.reshape((-1, 5, 5))
        column = lanes[:, 0] ^ lanes[:, 1] ^ lanes[:, 2] ^ lanes[:, 3] ^ lanes[:, 4]
        parity = column.roll(1, 1) ^ _rotated(column.roll(-1, 1), 1)
        mixed = (lanes ^ parity.unsqueeze(1)).reshape(self.shape)
        turned = _rotated(mixed, _per_lane(number, [o for row in _offsets() for o in row]))
        source = (x * 5 + (y * 3 + x) % 5).cast(dtypes.int32)
        lanes = turned._taken(1, source.reshape((1, 25)).expand(self.shape)).reshape((-1, 5, 5))
        lanes = lanes ^ (~lanes.roll(-1, 2) & lanes.roll(-2, 2))
        out: Self = lanes.reshape(self.shape) ^ number.eq(0).where(constant, 0)
        return out

    def hash(self) -> Self:
        """16 bytes for the contents: SHAKE128 of blocks of 4 KiB, then of the digests, until one is left.

        Zeros fill the last block of each level, and the length in bytes heads the last message.
        """
        data = self.flatten() if self.dtype is dtypes.uint8 else self.flatten().bitcast(dtypes.uint8)
        total = data.shape[0]
        while data.shape[0] > 4096:
            blocks = ceildiv(data.shape[0], 4096)
            data = data.pad(((0, blocks * 4096 - data.shape[0]),)).reshape((blocks, 4096)).keccak("shake_128").flatten()
        head = ((self._const(total, dtypes.uint64) >> (self._iota(8) * 8).cast(dtypes.uint64)) & 255).cast(dtypes.uint8)
        return head.cat(data).keccak("shake_128")


def _rotated(x: Any, count: Any) -> Any:
    """The 64 bits of x turned left by 0 to 63; a shift by 64 gives 0."""
    return (x << count) | (x >> (64 - count))


def _round_constant(turn: Any) -> Any:
    """The constant of round 0 to 23, from the 7 bits that it can have: 8 rounds a literal."""
    packed = [sum((c >> (1 << j) - 1 & 1) << 7 * i + j for i,
                  c in enumerate(_round_constants()[k:k + 8]) for j in range(7))
              for k in (0, 8, 16)]
    word = (turn < 8).where(turn._const(packed[0], dtypes.uint64),
                            (turn < 16).where(turn._const(packed[1], dtypes.uint64), packed[2]))
    bits = word >> (turn % 8) * 7
    out = bits & 1
    for j in range(1, 7):
        out = out | ((bits >> j) & 1) << (1 << j) - 1
    return out


def _per_lane(number: Any, values: list[int]) -> Any:
    """``values[number]`` of numbers 0 to 24, as shifted digits of literals: 6 bits a value, 10 values a literal."""
    words = [sum(v << 6 * i for i, v in enumerate(values[k:k + 10])) for k in (0, 10, 20)]
    word = (number < 10).where(number._const(words[0], dtypes.uint64),
                               (number < 20).where(number._const(words[1], dtypes.uint64), words[2]))
    return (word >> ((number % 10) * 6).cast(dtypes.uint64)) & 63
