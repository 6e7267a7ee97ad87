"""The toy's hardware is strict: what no device forgives is an error that names queue, word and reason."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.hcq import machine as hw
from tests.hcq.machine import Code, Fault, Machine, Queue


class Rig:
    """A machine with a compute and a copy queue, and hand-written streams."""

    def __init__(self, seed: int = 0) -> None:
        self.machine = Machine(seed)
        takes = frozenset(hw.LENGTHS) - {hw.INDIRECT}
        self.compute = self.machine.add_queue("TOY COMPUTE:0", 32, takes - {hw.COPY})
        self.copy = self.machine.add_queue("TOY COPY:0", 32, takes - {hw.LAUNCH})
        self.signal = self.machine.memory.alloc(64, "signals")
        self.signal.array[:] = 0
        self.data = [self.machine.memory.alloc(64).address for _ in range(4)]
        self.machine.functions[0x5000] = Code("add", ((64, True), (64, False)), 1, self._add)

    @staticmethod
    def _add(arrays: list[np.ndarray], grid: Sequence[int], local: Sequence[int], scalars: list[int]) -> None:
        arrays[0][:] = arrays[1] + scalars[0]

    def run(self, queue: Queue, *packets: Sequence[int], drain: bool = True) -> None:
        words = [w for p in packets for w in p]
        stream = self.machine.memory.alloc(4 * len(words), "streams")
        stream.array.view("<u4")[:] = words
        at = queue.put % 32
        queue.ring.array.view("<u4")[at:at + 4] = [head(hw.INDIRECT), *two(stream.address), len(words)]
        queue.doorbell(queue.put + 4)
        self.last = stream
        while drain and self.machine.step():
            pass

    def arguments(self, *words: int) -> int:
        block = self.machine.memory.alloc(8 * len(words), "streams")
        block.array.view("<u8")[:] = words
        return block.address

    def launch(self, dest: int, src: int, n: int = 1) -> list[int]:
        return [head(hw.LAUNCH), *two(0x5000), *two(self.arguments(dest, src, n)), 24, 1, 1, 1, 1, 1, 1]

    def wait(self, value: int) -> list[int]:
        return [head(hw.WAIT), *two(self.signal.address), *two(value)]

    def set(self, value: int) -> list[int]:
        return [head(hw.SIGNAL), *two(self.signal.address), *two(value)]


def two(x: int) -> list[int]:
    return [x & 0xFFFFFFFF, x >> 32]


def head(op: int) -> int:
    return op << 24 | hw.LENGTHS[op] << 16


def copy(dest: int, src: int, nbytes: int = 64) -> list[int]:
    return [head(hw.COPY), *two(dest), *two(src), *two(nbytes)]


BARRIER = [head(hw.BARRIER)]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_packets_do_what_they_say(rig: Rig):
    a, b, c, _ = rig.data
    block, _ = rig.machine.memory.find(a, 64)
    block.array[:] = np.arange(64)
    rig.run(rig.copy, copy(b, a), rig.set(1))
    rig.run(rig.compute, rig.wait(1), rig.launch(c, b, 5), rig.set(2), [head(hw.TIMESTAMP), *two(rig.signal.address)])
    assert list(rig.machine.memory.find(c, 64)[0].array) == [i + 5 for i in range(64)]
    assert rig.signal.array.view("<u8")[0] == 2 and rig.signal.array.view("<u8")[1] > 1000
    for _ in range(20):
        rig.run(rig.copy, rig.wait(2), copy(b, a), rig.set(3))  # the ring wraps


@pytest.mark.parametrize("packet, text", [
    ([0x63 << 24 | 1 << 16], "unknown packet 0x63010000"),
    ([head(hw.BARRIER) | 4], "reserved bits in the header 0x13010004 of BARRIER"),
    ([hw.WAIT << 24 | 3 << 16, 0, 0], "WAIT of 3 words; it has 5"),
    ([head(hw.COPY), 1, 0, 2, 0, 64, 0], "this queue takes no COPY"),
    ([head(hw.SIGNAL), *two(0x20_0000_0000), *two(1)], "SIGNAL of 0x2000000000, which is no signal"),
    ([head(hw.LAUNCH), *two(0x6000), *two(0x20_0000_0000), 24, 1, 1, 1, 1, 1, 1], "no kernel is loaded"),
    ([head(hw.WRITE), *two(0x77), 5], "bad address: 4 bytes at 0x77 are not mapped"),
])
def test_packets_that_are_refused(rig: Rig, packet: list[int], text: str):
    with pytest.raises(Fault, match=text):
        rig.run(rig.compute, packet)


def test_a_fault_names_queue_and_word(rig: Rig):
    with pytest.raises(Fault, match=r"TOY COMPUTE:0, word 2 of the stream at 0x[0-9a-f]+: unknown packet"):
        rig.run(rig.compute, BARRIER, BARRIER, [7 << 24])


def test_copies_that_are_refused(rig: Rig):
    a = rig.data[0]
    with pytest.raises(Fault, match="COPY of 64 bytes .*overlapping"):
        rig.run(rig.copy, copy(a, a + 32))
    rig = Rig()
    with pytest.raises(Fault, match="bad address: 65 bytes"):
        rig.run(rig.copy, copy(rig.data[0], rig.data[1], 65))
    rig = Rig()
    with pytest.raises(Fault, match="COPY touches 0x[0-9a-f]+, which is memory for signals"):
        rig.run(rig.copy, copy(rig.data[0], rig.signal.address))


def test_launches_that_are_refused(rig: Rig):
    a, b, *_ = rig.data
    wrong = rig.launch(a, b)
    wrong[5] = 16
    with pytest.raises(Fault, match="kernel add takes 2 buffers and 1 scalars, got 16 bytes"):
        rig.run(rig.compute, wrong)
    wrong = Rig().launch(a, b)
    wrong[7] = 0
    rig = Rig()
    wrong[3:5] = two(rig.arguments(a, b, 1))
    with pytest.raises(Fault, match="kernel add over a grid of"):
        rig.run(rig.compute, wrong)


def test_a_wait_that_nothing_meets(rig: Rig):
    rig.run(rig.compute, rig.wait(3))
    with pytest.raises(Fault, match=r"nothing can go on: TOY COMPUTE:0 waits for the signal at 0x[0-9a-f]+ to become "
                                    r"3, it is 0"):
        rig.machine.advance()


def test_use_after_free(rig: Rig):
    a, b, *_ = rig.data
    rig.machine.memory.free(a)
    with pytest.raises(Fault, match=f"use after free: 64 bytes at {a:#x}"):
        rig.run(rig.copy, copy(b, a))


@pytest.mark.parametrize("seed", range(5))
def test_memory_freed_while_a_copy_runs(seed: int):
    rig = Rig(seed)
    a, b, *_ = rig.data
    rig.run(rig.copy, copy(b, a), drain=False)
    rig.machine.step()
    assert rig.copy.running
    rig.machine.memory.free(a)
    with pytest.raises(Fault, match="use after free"):
        rig.machine.step()


def test_a_stream_that_changes_while_it_runs(rig: Rig):
    rig.run(rig.compute, BARRIER, BARRIER, drain=False)
    rig.machine.step()
    rig.last.array[4] = 1
    with pytest.raises(Fault, match="word 1 was changed while the stream runs"):
        rig.machine.step()


def test_arguments_that_change_before_the_kernel_runs(rig: Rig):
    a, b, *_ = rig.data
    launch = rig.launch(a, b)
    rig.run(rig.compute, BARRIER, launch, drain=False)
    rig.machine.memory.find(launch[3] | launch[4] << 32, 8)[0].array[0] ^= 1
    with pytest.raises(Fault, match="arguments of kernel add were changed before it ran"):
        while rig.machine.step():
            pass


# *** races ***
@pytest.mark.parametrize("seed", range(8))
def test_a_missing_barrier(seed: int):
    rig = Rig(seed)
    a, b, c, d = rig.data
    rig.run(rig.compute, rig.launch(a, b), rig.launch(c, b), BARRIER, rig.launch(d, a))
    with pytest.raises(Fault, match="kernel add reads 64 bytes .* that the kernel add of TOY COMPUTE:0 writes, with no "
                                    "barrier or wait between"):
        rig.run(rig.compute, BARRIER, rig.launch(a, b), rig.launch(c, a))


@pytest.mark.parametrize("seed", range(8))
def test_a_missing_wait_between_queues(seed: int):
    """Found in every order in which the queues happen to run."""
    rig = Rig(seed)
    a, b, c, _ = rig.data
    rig.run(rig.copy, copy(b, a), rig.set(1), drain=False)
    with pytest.raises(Fault, match="kernel add (reads|writes)|COPY (reads|writes)"):
        rig.run(rig.compute, rig.launch(c, b))
    rig = Rig(seed)
    rig.run(rig.compute, rig.wait(1), rig.launch(c, b), drain=False)
    rig.run(rig.copy, copy(b, a), rig.set(1))


@pytest.mark.parametrize("seed", range(8))
def test_a_wait_for_an_earlier_value_orders_nothing_later(seed: int):
    rig = Rig(seed)
    a, b, c, _ = rig.data
    rig.run(rig.copy, rig.set(1), copy(b, a), rig.set(2), drain=False)
    try:
        rig.run(rig.compute, rig.wait(1), rig.launch(c, b))
    except Fault as e:
        assert "no barrier or wait between" in str(e)
    else:  # the signal was 2 already when the wait was run
        assert rig.machine.signal(rig.compute, rig.wait(1))[0] == 2


def test_reads_do_not_race(rig: Rig):
    a, b, c, _ = rig.data
    rig.run(rig.copy, copy(b, a), drain=False)
    rig.run(rig.compute, rig.launch(c, a))


def test_a_write_behind_reads_of_two_queues(rig: Rig):
    a, b, c, d = rig.data
    rig.run(rig.copy, copy(b, a), rig.set(1))
    rig.run(rig.compute, rig.launch(c, a), BARRIER)
    with pytest.raises(Fault, match="COPY writes .* that the kernel add of TOY COMPUTE:0 reads"):
        rig.run(rig.copy, copy(a, d))
