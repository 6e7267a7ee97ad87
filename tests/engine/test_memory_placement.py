"""Placement of temporaries in an arena: nothing alive at once overlaps, and the arena is small."""
from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyhost.engine import memory
from tinyhost.engine.memory import ALIGNMENT, Block, place
from tinyhost.hcq.allocators import TLSF


def padded(block: Block) -> int:
    return max(-(-block.size // ALIGNMENT), 1) * ALIGNMENT


def alive_at_once(blocks: list[Block]) -> int:
    """The most bytes in use in one step: no arena is smaller."""
    steps = {b.first for b in blocks}
    return max((sum(padded(b) for b in blocks if b.first <= s <= b.last) for s in steps), default=0)


def check(blocks: list[Block]) -> int:
    """Sizes of what `place` gives; the arena."""
    offsets, arena = place(blocks)
    assert len(offsets) == len(blocks)
    assert all(o % ALIGNMENT == 0 and o >= 0 and o + padded(b) <= arena for o, b in zip(offsets, blocks))
    in_use: list[tuple[int, int, int]] = []  # (last step, start, end)
    for offset, b in sorted(zip(offsets, blocks), key=lambda x: x[1].first):
        in_use = [u for u in in_use if u[0] >= b.first]
        assert not [u for u in in_use if u[1] < offset + padded(b) and offset < u[2]]
        in_use.append((b.last, offset, offset + padded(b)))
    assert place(blocks) == (offsets, arena)
    return arena


def drawn(n: int, lifetime: float, seed: int) -> list[Block]:
    rng = random.Random(seed)
    firsts = [rng.randrange(n) for _ in range(n)]
    return [Block(int(2 ** rng.uniform(4, 24)), f, min(n - 1, f + int(rng.expovariate(1 / lifetime)))) for f in firsts]


def by_tlsf(blocks: list[Block]) -> int:
    """The arena that an allocator needs, which does not know what comes."""
    tlsf = TLSF(2 * sum(padded(b) for b in blocks), unit=ALIGNMENT)
    live: dict[int, Block] = {}
    top = 0
    for b in sorted(blocks, key=lambda b: b.first):
        for at in [at for at, other in live.items() if other.last < b.first]:
            tlsf.free(at)
            del live[at]
        at = tlsf.alloc(b.size)
        live[at] = b
        top = max(top, at + padded(b))
    return top


lives = st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 30)).map(
    lambda t: Block(t[0], t[1], t[1] + t[2]))


@given(st.lists(lives, max_size=40))
@settings(max_examples=150, deadline=None)
def test_blocks_alive_at_once_lie_apart(blocks: list[Block]):
    arena = check(blocks)
    assert alive_at_once(blocks) <= arena <= sum(map(padded, blocks))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "lifetime"), [(30, 10), (200, 20), (1000, 4)])
def test_no_worse_than_an_allocator(n: int, lifetime: float, seed: int):
    blocks = drawn(n, lifetime, seed)
    arena, best = check(blocks), alive_at_once(blocks)
    assert arena <= by_tlsf(blocks) and arena <= 1.25 * best


@pytest.mark.parametrize(("n", "lifetime"), [(10_000, 3), (10_000, 60), (3_000, 1_500)])
def test_many_blocks_end_the_search_early(n: int, lifetime: float, monkeypatch: pytest.MonkeyPatch):
    """The work is bounded: orders times pairs of blocks that are alive at once."""
    looked_at = []
    in_order = memory._in_order

    def counted(sizes: list[int], together: list[list[int]], order: list[int]) -> memory.Placement:
        looked_at.append(sum(map(len, together)) + len(sizes))
        return in_order(sizes, together, order)
    monkeypatch.setattr(memory, "_in_order", counted)
    blocks = drawn(n, lifetime, 0)
    place(blocks)
    assert sum(looked_at) <= memory._VISITS
    monkeypatch.undo()
    check(blocks)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_drawn_blocks(seed: int):
    rng = random.Random(seed)
    for _ in range(60):
        blocks = drawn(rng.randrange(1, 400), rng.uniform(0.5, 60), rng.randrange(1 << 30))
        assert alive_at_once(blocks) <= check(blocks) <= sum(map(padded, blocks))


def test_known_arenas():
    assert place([]) == ([], 0)
    assert place([Block(0, 0, 0)]) == ([0], 256)
    assert place([Block(1000, i, i) for i in range(10)]) == ([0] * 10, 1024)
    # one kernel reads the first while it writes the second, which the third may follow
    assert check([Block(1000, 0, 1), Block(1000, 1, 2), Block(1000, 2, 3)]) == 2048
    # nested lives: all at once
    assert check([Block(256, i, 9 - i) for i in range(5)]) == 5 * 256
    # in the order of time the second block would close the way for the third
    assert check([Block(256, 0, 1), Block(256, 0, 4), Block(512, 2, 3)]) == 768
