"""Random lists of packets against what their order demands: which chunk may start when, who sees what."""
from __future__ import annotations

import platform
import random
import sys
import threading

import numpy as np
import pytest

from tests.cpu.native import Cell, Journal, append, carry, function, gather, in_chunk, read
from tests.cpu.packets import Packets
from tinyhost.errors import KernelFault
from tinyhost_cpu.native.layout import RUN_COMPLETED
from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.native.runs import Run
from tinyhost_cpu.workers import pool as process_pool

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="packets are for Linux on x86-64")
MOST = 30  # packets of a list


@pytest.fixture
def pool() -> Pool:
    """The process's pool."""
    found = process_pool()
    assert isinstance(found, Pool)
    return found


class Case:
    """A random list. ``flags`` are words that signals, writes and copies set, each once; ``seen`` is what kernels in
    front of and behind them read, 7 where they read nothing."""

    def __init__(self, pool: Pool, rng: random.Random, width: int) -> None:
        self.rng, self.packets, self.width = rng, Packets(pool), width
        self.journal = Journal(2 * 8 * MOST)
        self.flags, self.seen = np.zeros(2 * MOST, np.uint64), np.full(MOST, 7, np.uint64)
        self.source = np.arange(1, 65, dtype=np.uint64) * 1000
        self.target = np.zeros((MOST, 64), np.uint64)
        self.expected_flags = np.zeros(2 * MOST, np.uint64)
        self.expected_seen = np.full(MOST, 7, np.uint64)
        self.set_by: dict[int, int] = {}  # flag: packet that sets it
        self.needs: list[int]  # of each packet
        self.ends: list[int]  # chunks up to and with each packet
        self.crowd, crowd = Cell(), min(width, 2)
        if rng.random() < .5:  # nothing starts before a helper has come
            self.packets.execute(function(gather), [self.crowd.address, crowd], crowd, name="gather")
        else:
            self.packets.execute(function(append), [self.journal.address, 0, 0, 0], 1, 2, name="0")
        self.needs, self.ends = [0], [self.packets.chunks]
        for number in range(1, rng.randint(2, MOST)):
            self._add(number, rng.choice(("append",) * 4 + ("carry", "carry", "copy", "barrier", "signal", "write",
                                                             "timestamp", "wait", "poll")))
            self.needs.append(self.packets.need if len(self.packets.names) > len(self.needs) else 0)
            self.ends.append(self.packets.chunks)
            if len(self.packets.names) == number:  # a barrier is no packet: put something in its place
                self.packets.execute(function(append), [self.journal.address, number, 0, 0], 1, 2, name=str(number))
                self.needs[-1], self.ends[-1] = self.packets.need, self.packets.chunks

    def _add(self, number: int, kind: str) -> None:
        rng, packets = self.rng, self.packets
        word = self.flags.ctypes.data + 16 * number
        if kind == "append":
            words = [self.journal.address, number, 0, rng.choice((0, 0, 30, 3000))]
            packets.execute(function(append), words, rng.randint(1, 7), 2, name=str(number))
        elif kind == "carry":
            self._carry(number)
        elif kind == "copy":
            at = self.target.ctypes.data + 512 * number
            packets.add("copy", at, self.source.ctypes.data, 8 * 64, rng.randint(1, 5))
        elif kind == "barrier":
            packets.barrier()
        elif kind in ("signal", "write"):
            packets.alone(kind, word, number + 100)
            self.expected_flags[2 * number] = number + 100
            self.set_by[number] = number
        elif kind == "timestamp":
            packets.alone(kind, word)
        else:
            known = rng.choice(list(self.set_by)) if self.set_by else None
            address = word if known is None else self.flags.ctypes.data + 16 * known
            packets.alone(kind, address, 0 if known is None else known + 100, 2**32 - 1)

    def _carry(self, number: int) -> None:
        """Read a flag; whether it is set yet follows from the order, as it is set with nothing beside it."""
        flag = self.rng.choice(list(self.set_by)) if self.set_by and self.rng.random() < .8 else MOST - 1
        words = [self.seen.ctypes.data + 8 * number, self.flags.ctypes.data + 16 * flag, 0, 3]
        self.packets.execute(function(carry), words)
        self.expected_seen[number] = 3 + (flag + 100 if flag in self.set_by else 0)

    def clear(self) -> None:
        """As before the first run."""
        self.journal.clear()
        self.crowd.memory[0] = 0
        self.flags[:] = 0
        self.seen[:] = 7
        self.target[:] = 0

    def check(self) -> None:
        """Compare with what the order demands."""
        chunks = self._chunks()
        entries = self.journal.entries()
        assert sorted(entries) == sorted((n, c, what) for n, count in chunks.items() for c in range(count)
                                         for what in ("start", "end"))
        last_end = {n: max(i for i, e in enumerate(entries) if e[0] == n and e[2] == "end") for n in chunks}
        first_start = {n: min(i for i, e in enumerate(entries) if e[0] == n and e[2] == "start") for n in chunks}
        for n in chunks:
            for before in chunks:
                if self.ends[before] <= self.needs[n]:
                    assert last_end[before] < first_start[n], f"{n} started before {before} had ended"
        assert (self.flags[::2] == self.expected_flags[::2]).all() and (self.seen == self.expected_seen).all()
        copied = [i for i, name in enumerate(self.packets.names) if name == "copy"]
        assert all((self.target[i] == (self.source if i in copied else 0)).all() for i in range(MOST))

    def _chunks(self) -> dict[int, int]:
        """Chunks of the kernels that append, by packet."""
        before = [0, *self.ends]
        return {i: self.ends[i] - before[i] for i, name in enumerate(self.packets.names) if name.isdigit()}


def check_lists(pool: Pool, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        case = Case(pool, rng, rng.randint(1, 4))
        for _ in range(2):
            case.clear()
            pool.execute([case.packets.run(case.width)])
            case.check()


@pytest.mark.parametrize("seed", range(8))
def test_random_lists(pool: Pool, seed: int) -> None:
    check_lists(pool, seed, 60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_random_lists_in_full(pool: Pool, seed: int) -> None:
    check_lists(pool, seed, 6000)


def check_threads(pool: Pool, seed: int, count: int) -> None:
    """Eight threads at once, two lists each time."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        rng = random.Random(seed * 8 + number)
        try:
            for _ in range(count):
                cases = [Case(pool, rng, rng.randint(1, 2)) for _ in range(2)]
                pool.execute([case.packets.run(case.width) for case in cases])
                for case in cases:
                    case.check()
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_eight_threads(pool: Pool) -> None:
    check_threads(pool, 1, 20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_eight_threads_in_full(pool: Pool, seed: int) -> None:
    check_threads(pool, seed, 150)


def check_faults(pool: Pool, seed: int, count: int) -> None:
    """One chunk of one packet faults: what it holds back does not run, all is counted, and the next run works."""
    rng = random.Random(seed)
    for _ in range(count):
        packets, journal, flag = Packets(pool), Journal(2 * 8 * MOST), np.zeros(1, np.uint64)
        size = rng.randint(1, MOST)
        bad, needs, ends = rng.randrange(size), [], []
        for number in range(size):
            if rng.random() < .5:
                packets.barrier()
            chunks = rng.randint(1, 5)
            if number == bad:
                words = [8, 0, 0, rng.randrange(chunks)]
                packets.execute(function(in_chunk(read)), words, chunks, 2, name=f"bad_{number}")
            else:
                packets.execute(function(append), [journal.address, number, 0, 0], chunks, 2, name=f"good_{number}")
            needs.append(packets.need)
            ends.append(packets.chunks)
        run = packets.alone("signal", flag.ctypes.data, 1).run(rng.randint(1, 4))
        with pytest.raises(KernelFault, match=f"kernel bad_{bad} ended with SIGSEGV at address 0x8,"):
            pool.execute([run])
        check_skipped(run, journal, needs, ends, bad)
        assert flag[0] == 1


def check_skipped(run: Run, journal: Journal, needs: list[int], ends: list[int], bad: int) -> None:
    ran = {n for n, _, _ in journal.entries()}
    must = {n for n in range(bad) if ends[n] <= needs[bad]}
    must_not = {n for n in range(bad + 1, len(ends)) if needs[n] >= ends[bad]}
    assert must <= ran and not ran & must_not
    assert run.word(RUN_COMPLETED) == run.chunks


@pytest.mark.parametrize("seed", range(4))
def test_random_faults(pool: Pool, seed: int) -> None:
    check_faults(pool, seed, 100)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_random_faults_in_full(pool: Pool, seed: int) -> None:
    check_faults(pool, seed, 20_000)


def check_dances(pool: Pool, seed: int, count: int) -> None:
    """Several runs whose waits are for signals of the others, in a random order that can be followed."""
    rng = random.Random(seed)
    for _ in range(count):
        runs, steps = rng.randint(2, 4), rng.randint(1, 25)
        token, journal = np.zeros(1, np.uint64), Journal(2 * 25)
        lists = [Packets(pool) for _ in range(runs)]
        for step in range(steps):
            packets = rng.choice(lists).alone("wait", token.ctypes.data, step)
            packets.execute(function(append), [journal.address, step, 0, 0])
            packets.alone("signal", token.ctypes.data, step + 1)
        pool.execute([packets.run(rng.randint(1, 2)) for packets in lists])
        assert [n for n, _, what in journal.entries() if what == "start"] == list(range(steps))


def test_random_dances(pool: Pool) -> None:
    check_dances(pool, 1, 60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_random_dances_in_full(pool: Pool, seed: int) -> None:
    check_dances(pool, seed, 10_000)
