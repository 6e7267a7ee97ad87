"""Views of memory, rings, arenas of arguments: against the simplest models."""
from __future__ import annotations

import random

import pytest

from tests.hcq.memory import host_memory
from tinyhost.env import Context
from tinyhost.errors import DeviceTimeout, OutOfMemory
from tinyhost.hcq.arguments import ArgumentArena
from tinyhost.hcq.mmio import MMIO
from tinyhost.hcq.rings import Ring
from tinyhost.hcq.signals import Point, SignalPool, Timeline


# *** views ***
def test_registers_of_all_widths():
    memory = host_memory(32, address=0x9000, fill=0)
    for bits in (8, 16, 32, 64):
        view = memory.mmio(bits)
        assert len(view) == 32 * 8 // bits
        view[1] = (1 << bits) + 5
        assert view[1] == 5 and bytes(memory.view[bits // 8:bits // 4]) == (5).to_bytes(bits // 8, "little")
        view[1] = 0
    view = memory.mmio(32)
    view[2:5] = [7, 8, 9]
    assert view[:] == [0, 0, 7, 8, 9, 0, 0, 0] and view.view(8, 8, 64)[0] == 7 | 8 << 32
    assert view.view(12)[1] == 9 and memory.part(8, 8).address == 0x9008 and memory.part(8, 8).mmio()[0] == 7


def test_registers_that_are_not_there():
    view = host_memory(16).mmio(32)
    with pytest.raises(IndexError, match="register 4 of <MMIO 16 bytes .*the last one is 3"):
        view[4] = 1
    with pytest.raises(IndexError, match="register -1"):
        view[-1]
    with pytest.raises(ValueError, match="2 values for 3 registers"):
        view[0:3] = [1, 2]
    with pytest.raises(ValueError, match="12 bytes from byte 8 do not lie in"):
        view.view(8, 12)
    with pytest.raises(ValueError, match="8 bytes from byte 12 do not lie in memory of 16 bytes"):
        host_memory(16).part(12, 8)
    with pytest.raises(ValueError, match="registers have 8, 16, 32, 64 bits, not 24"):
        MMIO(0x1000, 16, 24)
    with pytest.raises(ValueError, match="must be a multiple of 4 bytes"):
        MMIO(0x1002, 16, 32)


# *** rings ***
class Reader:
    """The device's end of a ring: reads some words whenever the host waits."""

    def __init__(self, rng: random.Random, size: int, wraps: bool, pads: bool) -> None:
        self.rng, self.wraps, self.count, self.seen = rng, wraps, 0, list[int]()
        self.memory = host_memory(size * 4)
        self.ring = Ring(self.memory, 32, self.where, wraps, (lambda n: [0xFADE0000 | n] * n) if pads else None,
                         lambda: self.read(rng.randrange(1, 4)))

    def where(self) -> int:
        return self.count % self.ring.size if self.wraps else self.count

    def read(self, words: int) -> None:
        view = self.memory.mmio(32)
        for _ in range(min(words, self.ring.produced - self.count)):
            self.seen.append(view[self.count % self.ring.size])
            self.count += 1


@pytest.mark.parametrize("seed", range(12))
def test_what_goes_into_a_ring_comes_out(seed: int):
    rng = random.Random(seed)
    wraps, pads = rng.random() < 0.5, rng.random() < 0.5
    size = rng.randrange(8, 40)
    reader = Reader(rng, size, wraps, pads)
    ring, sent = reader.ring, list[int]()
    for i in range(200):
        words = [i << 8 | k for k in range(rng.randrange(1, ring.capacity // 2 + 1))]
        start = ring.write(words)
        assert not pads or start + len(words) <= size, "a packet straddles the end"
        assert 0 <= ring.room <= ring.capacity and ring.produced - reader.count <= ring.capacity
        sent += words
        reader.read(rng.randrange(size))
    reader.read(size)
    assert [w for w in reader.seen if w >> 16 != 0xFADE] == sent
    assert pads or reader.seen == sent
    assert ring.room == ring.capacity


def test_a_packet_longer_than_the_ring():
    ring = Ring(host_memory(32), 32, lambda: 0, wraps=True)
    with pytest.raises(ValueError, match="a packet of 8 words does not fit a ring of 7: make the ring longer"):
        ring.write(range(8))


def test_a_device_that_makes_no_room():
    ring = Ring(host_memory(32), 32, lambda: 3)
    ring.write([0] * 8)
    assert ring.room == 3
    with Context(HCQDEV_WAIT_TIMEOUT_MS=5), pytest.raises(DeviceTimeout) as e:
        ring.write([0] * 4)
    assert ("for room for 4 words in a ring of 8; the device has read 3 of 8, and nothing changed for 5 ms"
            in str(e.value))


# *** arguments ***
@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_use_never_overlap(seed: int):
    """Work ends only when it is waited for, or by chance; a piece is in use until the work it was retired with ends."""
    rng = random.Random(seed)
    timeline = Timeline(SignalPool(host_memory, lambda: advance()))

    def advance() -> None:
        timeline.signal.value += timeline.signal.value < timeline.value
    arena = ArgumentArena(host_memory(rng.choice([256, 1000]), address=rng.randrange(1, 64) * 8))
    live: list[tuple[int, int, Point]] = []
    for _ in range(300):
        pieces = []
        for _ in range(rng.randrange(1, 4)):
            nbytes, align = rng.randrange(1, 40), rng.choice([1, 8, 16])
            m = arena.alloc(nbytes, align)
            assert m.address % align == 0 and len(m) == nbytes
            assert arena.memory.address <= m.address <= arena.memory.address + arena.size - nbytes
            live = [p for p in live if not p[2].done]
            for a, b, *_ in live + [(p.address, p.address + len(p)) for p in pieces]:
                assert m.address + nbytes <= a or b <= m.address, "given out while it is in use"
            pieces.append(m)
        timeline.reserve()
        arena.retire(timeline.point())
        live += [(p.address, p.address + len(p), timeline.point()) for p in pieces]
        assert arena.used <= arena.size
        if rng.random() < 0.3:
            advance()


def test_arguments_that_never_fit():
    timeline = Timeline(SignalPool(host_memory))
    arena = ArgumentArena(host_memory(128))
    arena.alloc(100)
    with pytest.raises(OutOfMemory, match="cannot place 64 bytes of arguments: 100 of 128 bytes belong to work that "
                                          "was not submitted yet"):
        arena.alloc(64)
    arena.retire(timeline.point())
    assert len(arena.alloc(64)) == 64
    with pytest.raises(OutOfMemory):
        ArgumentArena(host_memory(128)).alloc(129)
