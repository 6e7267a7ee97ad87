"""Runs of packets: each kind alone, order, faults, cancellation, the log, runs that wait for each other."""
from __future__ import annotations

import ctypes
import platform
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.cpu.native import (
    Cell,
    Journal,
    add,
    append,
    carry,
    count_down,
    divide,
    function,
    gather,
    in_chunk,
    read,
    wait_for,
)
from tests.cpu.packets import Packets
from tinyhost.errors import KernelFault
from tinyhost_cpu.code import Segment
from tinyhost_cpu.native.assembler import R11, RAX, RDI, RSI, RSP, Assembler, at
from tinyhost_cpu.native.idioms import ARGUMENTS
from tinyhost_cpu.native.layout import (
    NONE,
    PACKET_CLAIMED,
    RUN_CANCELLED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_LEFT,
    RUN_STARTED,
    RUN_WAITERS,
    SLOTS,
)
from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.native.runs import Run
from tinyhost_cpu.workers import pool as process_pool
from tinyhost_cpu.x86.insns import X86Ops as X

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="packets are for Linux on x86-64")
WIDTHS = pytest.mark.parametrize("width", [1, 2, 4])
MODES = 0xFFC0  # of MXCSR; the others note what a thread's numbers met so far (Intel SDM 1, 10.2.3)


@pytest.fixture
def pool() -> Iterator[Pool]:
    """The process's pool."""
    found = process_pool()
    assert isinstance(found, Pool)
    kept = found.timeout
    yield found
    found.timeout = kept


def address_of(array: np.ndarray) -> int:
    return array.ctypes.data


def check_over(run: Run) -> None:
    """Everything is counted, nobody is in it."""
    assert run.word(RUN_COMPLETED) == run.chunks and run.word(RUN_WAITERS) & 0xFFFFFFFF == 0
    assert run.word(RUN_LEFT) == run.word(RUN_STARTED) <= run.width


# *** kinds ***
@WIDTHS
def test_nothing_but_the_end(pool: Pool, width: int) -> None:
    run = Packets(pool).run(width)
    assert pool.execute([run]) == []
    check_over(run)


@WIDTHS
@pytest.mark.parametrize("chunks", [1, 2, 7, 100])
def test_execute_calls_each_chunk_once(pool: Pool, width: int, chunks: int) -> None:
    total = np.zeros(chunks, np.int64)
    run = Packets(pool).execute(function(carry), [address_of(total), address_of(total), 0, 5], chunks, 2).run(width)
    for i in range(1, 4):  # a run can be run again
        pool.execute([run])
        assert (total == 5 * i).all()
        check_over(run)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 8, 9, 40, 251])
@pytest.mark.parametrize("chunk_at", [0, -1])
def test_words_and_places(pool: Pool, count: int, chunk_at: int) -> None:
    """The sum of all words; chunk number and scratch address are put in place, in copies."""
    out = Cell()

    def total(a: Assembler) -> None:
        a.number(RAX, 0)
        for register in ARGUMENTS[:count]:
            a.put(X.ADD, RAX, register)
        for i in range(max(count - 6, 0)):
            a.put(X.ADD, RAX, at(RSP, 8 + 8 * i))
        a.number(R11, out.address)
        a.put(X.ADD, at(R11), RAX, lock=True)
    words = [(-1)**i * 5**(i % 20) for i in range(count)]
    place, scratch_at = chunk_at % count, NONE if count < 3 else 1
    ours = pool.scratch(64)
    packets = Packets(pool).execute(function(total), words, 5, place, scratch_at, 64)
    pool.execute([packets.run()])
    words[place] = 0
    if scratch_at != NONE:
        words[scratch_at] = ours
    assert (out.value - 5 * sum(words) - sum(range(5))) % 2**64 == 0


@WIDTHS
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 4096, 100_001])
@pytest.mark.parametrize("chunks", [1, 3, 8])
def test_copy(pool: Pool, width: int, size: int, chunks: int) -> None:
    src = np.random.default_rng(size).integers(0, 256, size + 64, np.uint8)
    dest = np.full(size + 64, 7, np.uint8)
    packets = Packets(pool).add("copy", address_of(dest) + 3, address_of(src) + 1, size, chunks)
    pool.execute([packets.run(width)])
    assert (dest[3:3 + size] == src[1:1 + size]).all() and (dest[:3] == 7).all() and (dest[3 + size:] == 7).all()


def test_signal_and_write(pool: Pool) -> None:
    words = np.full(4, -1, np.int64)
    start = address_of(words)
    pool.execute([Packets(pool).alone("signal", start, 2**63 + 5).alone("write", start + 16, 2**40 + 6).run()])
    assert words.view(np.uint64).tolist() == [2**63 + 5, 2**64 - 1, 2**64 - 2**32 + 6, 2**64 - 1]


def test_timestamp_is_the_clock_of_the_host(pool: Pool) -> None:
    signals = np.zeros(4, np.uint64)
    cell = Cell()
    packets = Packets(pool).alone("timestamp", address_of(signals))
    packets.execute(function(count_down), [cell.address, 1000])
    packets.alone("timestamp", address_of(signals) + 16)
    before = time.monotonic_ns()
    pool.execute([packets.run()])
    assert before <= signals[1] <= signals[3] <= time.monotonic_ns()


@pytest.mark.parametrize("kind, value, mask", [("wait", 5, 0), ("wait", 2**63, 0), ("poll", 0x50, 0xF0)])
@WIDTHS
def test_wait_and_poll_hold_what_is_behind_them(pool: Pool, kind: str, value: int, mask: int, width: int) -> None:
    word, cell = np.zeros(1, np.uint64), Cell()
    packets = Packets(pool).alone(kind, address_of(word), value, mask).execute(function(add), [cell.address, 1], 3)
    run = packets.run(width)
    thread = threading.Thread(target=pool.execute, args=([run],))
    thread.start()
    for wrong in {"wait": (value - 1, 1), "poll": (0x5F ^ 0xF0, 0x4F)}[kind]:
        word[0] = wrong
        time.sleep(0.02)
        assert thread.is_alive() and cell.value == 0 and run.word(RUN_COMPLETED) == 0
    word[0] = value + 0xF if kind == "poll" else value + 1
    thread.join()
    assert cell.value == 3
    check_over(run)
    assert run.packet_word(0, PACKET_CLAIMED) >= 1


def test_a_wait_that_is_over_before_it_starts(pool: Pool) -> None:
    word = np.array([9], np.uint64)
    run = Packets(pool).alone("wait", address_of(word), 9).alone("poll", address_of(word), 9, 2**32 - 1).run(3)
    pool.execute([run])
    check_over(run)


def test_a_wait_without_end_is_an_error(pool: Pool) -> None:
    word, after, cell = np.zeros(1, np.uint64), np.zeros(1, np.uint64), Cell()
    pool.timeout = 0.05
    packets = Packets(pool).alone("wait", address_of(word), 3).execute(function(add), [cell.address, 1])
    packets.alone("signal", address_of(after), 1)
    text = f"packet 0: the signal at {address_of(word):#x} did not reach 3 in 0.1 s"
    for width in (1, 3):
        after[0] = 0
        with pytest.raises(KernelFault, match=text):
            pool.execute([packets.run(width)])
        assert cell.value == 0 and after[0] == 1, "what follows is skipped, signals are set"


# *** order ***
@WIDTHS
def test_a_barrier_holds_until_all_chunks_have_ended(pool: Pool, width: int) -> None:
    """A chain of kernels each of which reads what the one before wrote, chunk by chunk in another order."""
    rows = np.zeros((40, 8), np.int64)
    packets = Packets(pool)
    for i in range(1, 40):
        words = [address_of(rows[i]), address_of(rows[i - 1]), 0, i]
        packets.barrier().execute(function(carry), words, 8, 2)
    for _ in range(20):
        rows[1:] = 0
        pool.execute([packets.run(width)])
        assert (rows[39] == sum(range(40))).all()


@WIDTHS
def test_packets_without_a_barrier_overlap(pool: Pool, width: int) -> None:
    """A kernel that waits for what one behind it writes: only another participant can get there."""
    gate, cell = Cell(), Cell()
    packets = Packets(pool).execute(function(wait_for), [gate.address]).execute(function(add), [gate.address, 1])
    packets.barrier().execute(function(add), [cell.address, 1])
    if width == 1:
        gate.memory[0] = 1
    pool.execute([packets.run(width)])
    assert cell.value == 1


def test_width_one_wakes_nobody(pool: Pool) -> None:
    cell = Cell()
    pool.run("add", function(add).address, [cell.address, 1], 2)
    put = [worker.ring.words[0] for worker in pool.workers]
    pool.execute([Packets(pool).execute(function(add), [cell.address, 1], 50).run(1)])
    assert put == [worker.ring.words[0] for worker in pool.workers] and cell.value == 52


@pytest.fixture
def one_helper(pool: Pool, monkeypatch) -> Pool:
    """The pool with its first worker alone."""
    pool.execute([Packets(pool).run(2)])
    monkeypatch.setattr(pool, "workers", pool.workers[:1])
    monkeypatch.setattr(pool, "_cpus", 2)
    return pool


def test_a_busy_worker_holds_nobody_up(one_helper: Pool) -> None:
    """More calls for its help than its ring holds come and go while it is in a kernel."""
    pool, gate, cell = one_helper, Cell(), Cell()
    busy = Packets(pool).execute(function(wait_for), [gate.address], 2).run(2)
    thread = threading.Thread(target=pool.execute, args=([busy],))
    thread.start()
    while len(pool.faults.running()) < 2:  # the caller and the worker
        time.sleep(0.001)
    run = Packets(pool).execute(function(add), [cell.address, 1], 2).run(2)
    for _ in range(SLOTS + 100):
        pool.execute([run])
    assert len(pool.workers) == 1
    gate.memory[0] = 1
    thread.join()
    pool.execute([run, Packets(pool).execute(function(add), [cell.address, 1]).run()])
    assert cell.value == 2 * (SLOTS + 101) + 1


def test_idle_workers_first(one_helper: Pool, monkeypatch) -> None:
    """While a worker is in a kernel, another one is asked, started if there is a processor for it."""
    pool, gate, crowd = one_helper, Cell(), Cell()
    monkeypatch.setattr(pool, "_cpus", 3)
    busy = Packets(pool).execute(function(wait_for), [gate.address], 2).run(2)
    thread = threading.Thread(target=pool.execute, args=([busy],))
    thread.start()
    while len(pool.faults.running()) < 2:
        time.sleep(0.001)
    pool.execute([Packets(pool).execute(function(gather), [crowd.address, 2], 2).run(2)])  # needs two threads
    assert crowd.value == 2 and len(pool.workers) == 2
    gate.memory[0] = 1
    thread.join()


# *** faults ***
FAULTS = [(read, 16, "SIGSEGV at address 0x10"), (divide, 0, "SIGFPE")]


@WIDTHS
@pytest.mark.parametrize("build, word, text", FAULTS, ids=lambda v: getattr(v, "__name__", str(v)))
@pytest.mark.parametrize("chunk", [0, 1, 4])
def test_a_fault_names_the_kernel_and_what_follows_is_skipped(pool: Pool, build, word, text, chunk, width) -> None:
    before, after, flag = Cell(), Cell(), np.zeros(2, np.uint64)
    data = np.zeros(8, np.uint8)
    packets = Packets(pool).execute(function(add), [before.address, 1], 3, name="first").barrier()
    packets.execute(function(in_chunk(build)), [word, 0, 0, chunk], 5, 2, name="second").barrier()
    packets.execute(function(add), [after.address, 1], 5, name="third")
    packets.add("copy", address_of(data), address_of(flag), 8, 2)
    packets.alone("signal", address_of(flag), 3).alone("timestamp", address_of(flag))
    run = packets.run(width)
    for i in range(1, 4):
        flag[:] = 0
        with pytest.raises(KernelFault, match=f"kernel second ended with {text}.*instruction at 0x.*not valid"):
            pool.execute([run])
        check_over(run)
        assert run.word(RUN_FAILED) == 2
        assert before.value == 3 * i and after.value == 0 and flag[0] == 3 and flag[1] > 0
    assert (data == 0).all()


@pytest.mark.parametrize("kind", ["copy", "signal", "timestamp", "write", "wait", "poll", "execute"])
@WIDTHS
def test_a_bad_address_in_each_kind(pool: Pool, kind: str, width: int) -> None:
    after, flag = Cell(), np.zeros(1, np.uint64)
    packets = Packets(pool)
    if kind == "execute":
        packets.add(kind, 64, 64, 3, name="execute of nothing")  # no arguments to read
    else:
        packets.alone(kind, 64, address_of(flag) if kind == "copy" else 1, 8)
    packets.barrier().execute(function(add), [after.address, 1]).alone("signal", address_of(flag), 1)
    run = packets.run(width)
    with pytest.raises(KernelFault, match=rf"{kind}.* ended with SIGSEGV at address 0x[456]"):
        pool.execute([run])
    check_over(run)
    assert after.value == 0 and flag[0] == 1


def test_the_first_fault_wins(pool: Pool) -> None:
    packets = Packets(pool)
    for i in range(10):
        packets.execute(function(read), [8 * (i + 1)], name=f"k{i}").barrier()
    with pytest.raises(KernelFault, match="kernel k0 ended with SIGSEGV at address 0x8,"):
        pool.execute([packets.run(1)])


def test_a_kernel_without_end_in_a_run(pool: Pool) -> None:
    gate, after = Cell(), Cell()
    pool.timeout = 0.1
    for width in (1, 3):
        packets = Packets(pool).execute(function(in_chunk(wait_for)), [gate.address, 0, 0, 1], 3, 2, name="endless")
        packets.barrier().execute(function(add), [after.address, 1])
        run = packets.run(width)
        with pytest.raises(KernelFault, match="kernel endless did not end in 0.1 s and was stopped"):
            pool.execute([run])
        check_over(run)
    pool.run("add", function(add).address, [after.address, 1], 4)
    assert after.value == 4


def test_vector_control_is_restored_after_a_fault(pool: Pool) -> None:
    def spoil(a: Assembler) -> None:
        a.put(X.STMXCSR, at(RDI, 0, 32))
        a.put(X.MOV, at(RSI, 0, 32), 0x9FC0)  # flush to zero, denormals are zero
        a.put(X.LDMXCSR, at(RSI, 0, 32))
        a.number(RAX, 0)
        a.put(X.MOV, RAX, at(RAX))

    def control(a: Assembler) -> None:
        a.put(X.STMXCSR, at(RDI, 0, 32))
    seen, word = Cell(), Cell()
    pool.call("control", function(control).address, seen.words())
    normal = seen.value & MODES
    with pytest.raises(KernelFault):
        pool.execute([Packets(pool).execute(function(spoil), [seen.address, word.address], 4).run(3)])
    for _ in range(4):
        pool.run("control", function(control).address, [seen.address], 3)
        assert seen.value & MODES == normal


# *** several runs at once ***
@pytest.mark.parametrize("count", [2, 3])
@WIDTHS
def test_runs_that_wait_for_each_other(pool: Pool, count: int, width: int) -> None:
    """A token goes around: run i, round r."""
    token, journal = np.zeros(1, np.uint64), Journal(1000)
    lists = [Packets(pool) for _ in range(count)]
    for step in range(30):
        packets = lists[step % count].alone("wait", address_of(token), step)
        packets.execute(function(append), [journal.address, step, 0, 50]).alone("signal", address_of(token), step + 1)
    for _ in range(10):
        token[0] = 0
        journal.clear()
        runs = [packets.run(width) for packets in lists]
        pool.execute(runs)
        assert [n for n, _, what in journal.entries() if what == "start"] == list(range(30))
        for run in runs:
            check_over(run)


def test_a_fault_in_one_run_does_not_stop_another(pool: Pool) -> None:
    flag, cell = np.zeros(1, np.uint64), Cell()
    bad = Packets(pool).execute(function(read), [8], name="bad").alone("signal", address_of(flag), 1)
    good = Packets(pool).alone("wait", address_of(flag), 1).execute(function(add), [cell.address, 1])
    for first, second in ((bad, good), (good, bad)):
        flag[0] = 0
        with pytest.raises(KernelFault, match="kernel bad"):
            pool.execute([first.run(), second.run()])
    assert cell.value == 2


def test_many_threads_with_runs_that_wait_for_each_other(pool: Pool) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                test_runs_that_wait_for_each_other(pool, 2, 2)
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


# *** cancelled runs and the log ***
@WIDTHS
def test_a_cancelled_run_sets_its_signals(pool: Pool, width: int) -> None:
    never, flag, cell = np.zeros(1, np.uint64), np.zeros(1, np.uint64), Cell()
    packets = Packets(pool).alone("wait", address_of(never), 1)
    for _ in range(10):
        packets.execute(function(add), [cell.address, 1], 3).barrier()
    run = packets.alone("poll", address_of(never), 1, 1).alone("signal", address_of(flag), 4).run(width)
    thread = threading.Thread(target=pool.execute, args=([run],))
    thread.start()
    time.sleep(0.02)
    assert thread.is_alive()
    run.set_word(RUN_CANCELLED, 1)
    thread.join()
    check_over(run)
    assert flag[0] == 4 and cell.value == 0


@WIDTHS
def test_the_log_has_every_chunk(pool: Pool, width: int) -> None:
    cell, flag = Cell(), np.zeros(2, np.uint64)
    packets = Packets(pool).execute(function(count_down), [cell.address, 1000], 5).barrier()
    packets.add("copy", address_of(flag), address_of(flag) + 8, 8, 2).alone("signal", address_of(flag), 1)
    packets.execute(function(count_down), [cell.address, 1000], 3)
    before = time.perf_counter_ns()
    records = pool.execute([packets.run(width), packets.run(width)], log=True)
    after = time.perf_counter_ns()
    expected = [(r, p, c) for r in range(2) for p, chunks in ((0, 5), (1, 2), (3, 3)) for c in range(chunks)]
    assert sorted((r.run, r.packet, r.chunk) for r in records) == expected
    assert all(before <= r.start <= r.end <= after and 0 <= r.participant <= len(pool.workers) for r in records)
    for run in range(2):
        ends = [max(r.end for r in records if (r.run, r.packet) == (run, p)) for p in (0, 1, 3)]
        starts = [min(r.start for r in records if (r.run, r.packet) == (run, p)) for p in (0, 1, 3)]
        assert ends[0] <= starts[1] and ends[1] <= starts[2]
    assert [r.start for r in records] == sorted(r.start for r in records)
    assert pool.execute([packets.run(width)]) == []


def test_code_may_be_anywhere(pool: Pool) -> None:
    """A kernel is an address: one of the C library."""
    words = (ctypes.c_uint64 * 4)(1, 2, 3, 4)
    copied = (ctypes.c_uint64 * 4)()

    class Library(Segment):
        def __init__(self, address: int) -> None:
            self.address = address
    memcpy = ctypes.cast(ctypes.CDLL(None).memcpy, ctypes.c_void_p).value or 0
    arguments = [ctypes.addressof(copied), ctypes.addressof(words), 32]
    pool.execute([Packets(pool).execute(Library(memcpy), arguments).run()])
    assert list(copied) == [1, 2, 3, 4]
