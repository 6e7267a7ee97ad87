"""Places temporaries in one arena: blocks whose lifetimes do not overlap share memory.

Takes blocks of bytes with the first and last step that uses each; gives offsets and the size of the arena. In order of
time, the smallest hole that fits; holes that touch become one. A block that begins in the step in which another one
ends does not share with it, because one kernel may read the one while it writes the other.
"""
from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

ALIGNMENT = 256  # bytes; every block starts on a multiple


@dataclass(frozen=True)
class Block:
    """``size`` bytes in use from step ``first`` to step ``last``, both included."""

    size: int
    first: int
    last: int


def place(blocks: list[Block]) -> tuple[list[int], int]:
    """(offset of each block, bytes of the arena)."""
    offsets = [0] * len(blocks)
    holes: list[tuple[int, int]] = []  # (offset, size), sorted, never touching
    live: list[tuple[int, int]] = []  # (last step, block), sorted
    top = 0
    for i in sorted(range(len(blocks)), key=lambda i: blocks[i].first):
        block = blocks[i]
        while live and live[0][0] < block.first:
            _, done = live.pop(0)
            _give_back(holes, offsets[done], _padded(blocks[done].size))
        size = _padded(block.size)
        fitting = [(n, at) for at, n in holes if n >= size]
        if fitting:
            n, offsets[i] = min(fitting)
            holes.remove((offsets[i], n))
            if n > size:
                insort(holes, (offsets[i] + size, n - size))
        else:  # grow the arena, from its last hole if that reaches the end
            offsets[i] = holes.pop()[0] if holes and sum(holes[-1]) == top else top
            top = offsets[i] + size
        insort(live, (block.last, i))
    return offsets, top


def _padded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def _give_back(holes: list[tuple[int, int]], offset: int, size: int) -> None:
    insort(holes, (offset, size))
    i = holes.index((offset, size))
    if i + 1 < len(holes) and offset + size == holes[i + 1][0]:
        size += holes.pop(i + 1)[1]
        holes[i] = offset, size
    if i > 0 and sum(holes[i - 1]) == offset:
        holes[i - 1] = holes[i - 1][0], holes[i - 1][1] + size
        holes.pop(i)
