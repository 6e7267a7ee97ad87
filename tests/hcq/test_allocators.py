"""Allocators of offsets: against a list of intervals, the simplest thing that cannot be wrong."""
from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counting import calls
from tinyhost.errors import OutOfMemory
from tinyhost.hcq.allocators import TLSF, Bump


class Intervals:
    """What is allocated, as (start, end) pairs."""

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}

    def check(self, tlsf: TLSF, offset: int, size: int, align: int) -> None:
        assert offset % align == 0 and tlsf.base <= offset and offset + size <= tlsf.base + tlsf.size
        end = offset + max(size, 1)
        assert all(end <= a or b <= offset for a, b in self.taken.items()), "overlaps what is allocated"
        self.taken[offset] = end

    def longest_gap(self, tlsf: TLSF) -> int:
        at, longest = tlsf.base, 0
        for start in sorted(self.taken):
            longest = max(longest, start - at)
            at = start + tlsf.size_of(start)
        return max(longest, tlsf.base + tlsf.size - at)


def run(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    unit = rng.choice([1, 16, 256])
    tlsf = TLSF(rng.randrange(unit, 1 << 16), base=unit * rng.randrange(4), unit=unit)
    model = Intervals()
    for _ in range(steps):
        if model.taken and rng.random() < 0.45:
            offset = rng.choice(list(model.taken))
            del model.taken[offset]
            tlsf.free(offset)
        else:
            size, align = rng.choice([0, 1, 15, 16, 17, rng.randrange(1, 9000)]), 1 << rng.randrange(10)
            gap = model.longest_gap(tlsf)
            try:
                model.check(tlsf, tlsf.alloc(size, align), size, align)
            except OutOfMemory:
                # a free run that holds the size at any alignment is found
                assert gap < max(-(-size // unit) * unit, unit) + max(align - unit, 0)
        assert tlsf.used == sum(tlsf.size_of(o) for o in model.taken)
        assert tlsf.largest_free() == model.longest_gap(tlsf)
    for offset in list(model.taken):
        tlsf.free(offset)
    assert tlsf.used == 0 and tlsf.alloc(tlsf.size) == tlsf.base  # everything joined again


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_random_lives(seed: int) -> None:
    run(seed, 80)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_random_lives_in_full(part: int) -> None:
    for seed in range(100):
        run(1000 * part + seed, 1000)


def test_neighbours_join_in_every_order() -> None:
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        tlsf = TLSF(48)
        offsets = [tlsf.alloc(16) for _ in range(3)]
        with pytest.raises(OutOfMemory):
            tlsf.alloc(1)
        for i in order:
            tlsf.free(offsets[i])
        assert tlsf.largest_free() == 48


def test_work_does_not_grow_with_the_number_of_blocks() -> None:
    def cost(blocks: int) -> int:
        tlsf = TLSF(1 << 24)
        offsets = [tlsf.alloc(64) for _ in range(blocks)]
        for o in offsets[::2]:
            tlsf.free(o)
        return calls(lambda: [tlsf.free(tlsf.alloc(s)) for s in (64, 100, 5000)])

    assert cost(10_000) == cost(10)


def test_bad_requests() -> None:
    tlsf = TLSF(1024)
    offset = tlsf.alloc(1000)
    with pytest.raises(OutOfMemory, match="cannot allocate 100 bytes aligned to 32: 1008 of 1024 bytes are used, "
                                          "the longest free run has 16 bytes"):
        tlsf.alloc(100, 32)
    tlsf.free(offset)
    with pytest.raises(ValueError, match="nothing is allocated at offset 0: freed twice"):
        tlsf.free(offset)
    with pytest.raises(ValueError, match="cannot allocate -1 bytes aligned to 1"):
        tlsf.alloc(-1)
    with pytest.raises(ValueError, match="unit must be a power of two, got 24"):
        TLSF(1024, unit=24)
    with pytest.raises(ValueError, match="a range of 8 bytes from 0 holds no unit of 16 bytes"):
        TLSF(8)


@given(st.lists(st.tuples(st.integers(0, 200), st.sampled_from([1, 4, 16, 64])), max_size=50), st.integers(0, 100))
def test_a_ring_gives_what_comes_next(requests: list[tuple[int, int]], base: int) -> None:
    ring = Bump(512, base)
    last = base
    for size, align in requests:
        rounds = ring.rounds
        offset = ring.alloc(size, align)
        assert offset % align == 0 and base <= offset and offset + size <= base + 512
        assert offset >= last if ring.rounds == rounds else offset - base < align
        last = offset + size


def test_a_ring_that_is_too_short() -> None:
    with pytest.raises(OutOfMemory, match="cannot allocate 513 bytes aligned to 1 from a ring of 512 bytes"):
        Bump(512).alloc(513)
    once = Bump(512, wrap=False)
    once.alloc(500)
    with pytest.raises(OutOfMemory, match="at position 500, which does not wrap"):
        once.alloc(13)
    once.reset()
    assert once.alloc(512) == 0
