"""Freed memory that an allocator keeps: bounded by what was in use at once."""
from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from tinyhost.device import BufferSpec, LRUAllocator
from tinyhost.errors import OutOfMemory


class Allocator(LRUAllocator[int]):
    """Memory as numbers; ``held`` are those that the system gave and did not get back, with their sizes."""

    SLACK = 1000

    def __init__(self, room: int = 1 << 60) -> None:
        super().__init__(SimpleNamespace(name="FAKE"))
        self.room, self.made, self.held = room, 0, {}

    def _alloc(self, size: int, options: BufferSpec) -> int:
        if sum(self.held.values()) + size > self.room:
            raise MemoryError
        self.made += 1
        self.held[self.made] = size
        return self.made

    def _free(self, opaque: int, options: BufferSpec) -> None:
        del self.held[opaque]

    def _copyin(self, dest: int, src: memoryview) -> None: ...
    def _copyout(self, dest: memoryview, src: int) -> None: ...


def test_new_sizes_take_the_place_of_old_ones():
    a = Allocator()
    for size in (5000, 6000, 7000):
        a.free(a.alloc(size), size)
    assert sorted(a.held.values()) == [7000]
    assert a.alloc(7000) == 3


def test_sizes_that_fit_into_the_slack_all_stay():
    a = Allocator()
    for _ in range(3):
        for size in (300, 400, 500):
            a.free(a.alloc(size), size)
    assert a.made == 3


def test_what_was_freed_longest_ago_goes_first():
    a = Allocator()
    first, second, third = a.alloc(2000), a.alloc(1500), a.alloc(2500)
    for opaque, size in ((second, 1500), (first, 2000), (third, 2500)):
        a.free(opaque, size)
    a.alloc(1700)
    assert second not in a.held and first in a.held and third in a.held


def test_what_is_held_stays_within_the_most_that_was_in_use_and_the_slack():
    rng = random.Random(0)
    a = Allocator()
    live: list[tuple[int, int, BufferSpec]] = []
    used = most = 0
    for _ in range(3000):
        if live and rng.random() < 0.5:
            opaque, size, spec = live.pop(rng.randrange(len(live)))
            a.free(opaque, size, spec)
            used -= size
        else:
            size, spec = rng.choice((0, 64, 900, 5000, rng.randrange(1, 20_000))), BufferSpec(nolru=rng.random() < 0.1)
            live.append((a.alloc(size, spec), size, spec))
            used += size
        most = max(most, used)
        least = len(a.held)  # no allocation is less than a byte
        assert used <= sum(a.held.values()) <= most + max(a.SLACK, most // 4) + least
        assert len({opaque for opaque, _, _ in live}) == len(live) and all(o in a.held for o, _, _ in live)
    for opaque, size, spec in live:
        a.free(opaque, size, spec)
    a.free_cache()
    assert not a.held


def test_foreign_memory_does_not_count():
    a = Allocator()
    spec = BufferSpec(external_ptr=4096)
    a.free(a.alloc(1 << 30, spec), 1 << 30, spec)
    for size in (5000, 6000):
        a.free(a.alloc(size), size)
    assert sorted(a.held.values()) == [6000]


def test_memory_that_could_not_be_had_does_not_count():
    a = Allocator(room=10_000)
    for _ in range(3):
        with pytest.raises(OutOfMemory, match="Allocation of 1.05 MB failed on FAKE"):
            a.alloc(1 << 20)
    for size in (5000, 6000):
        a.free(a.alloc(size), size)
    assert sorted(a.held.values()) == [6000]
