"""Workers of generated code: calls with any number of arguments, faults, waiting, forks, many callers."""
from __future__ import annotations

import contextlib
import io
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cpu.apart import PRELUDE, ROOT, run_apart
from tests.cpu.native import Cell, add, add_part, count_down, divide, function, in_chunk, read, wait_for
from tinyhost.errors import KernelFault
from tinyhost_cpu import cpus
from tinyhost_cpu.code import Segment
from tinyhost_cpu.native.assembler import RAX, RCX, RDI, RSI, RSP, Assembler, at
from tinyhost_cpu.native.idioms import ARGUMENTS
from tinyhost_cpu.native.layout import NONE, SLOTS, argument_words
from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.native.states import WATCHDOG
from tinyhost_cpu.workers import pool as process_pool
from tinyhost_cpu.x86.insns import X86Ops as X

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="generated workers exist for Linux on x86-64")


@pytest.fixture
def pool() -> Iterator[Pool]:
    """The process's pool: a second one would take over its fault handler."""
    found = process_pool()
    assert isinstance(found, Pool)
    kept = found.timeout
    yield found
    found.timeout = kept


def test_every_chunk_gets_its_number(pool: Pool) -> None:
    cell = Cell()
    pool.call("add", function(add).address, cell.words(5))
    assert cell.value == 5
    pool.run("add", function(add_part).address, [cell.address, -1], 6, chunk_at=1)
    assert cell.value == 5 + 111111


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 8, 9, 40, 251])
def test_any_number_of_arguments(pool: Pool, count: int) -> None:
    def total(a: Assembler) -> None:
        """Sum of all words behind the first: registers, then the stack (System V ABI, 3.2.3)."""
        a.number(RAX, 0)
        for register in ARGUMENTS[1:count]:
            a.put(X.ADD, RAX, register)
        for i in range(max(count - 6, 0)):
            a.put(X.ADD, RAX, at(RSP, 8 + 8 * i))
        a.put(X.ADD, at(RDI), RAX, lock=True)
    cell, code = Cell(), function(total)
    values = [(-1)**i * 7**(i % 20) for i in range(count - 1)]
    pool.run("total", code.address, [cell.address, *values], 3)
    assert cell.value == 3 * sum(values)
    pool.call("total", code.address, cell.words(*values))
    assert cell.value == 4 * sum(values)


def test_the_stack_is_aligned_at_every_count(pool: Pool) -> None:
    def note(a: Assembler) -> None:
        a.put(X.MOV, RAX, RSP)
        a.put(X.AND, RAX, 15)
        a.put(X.ADD, at(RDI), RAX, lock=True)
    code = function(note)
    for count in range(1, 12):
        cell = Cell()
        pool.run("note", code.address, [cell.address, *[0] * (count - 1)], 2)
        pool.call("note", code.address, cell.words(*[0] * (count - 1)))
        assert cell.value == 3 * 8, "rsp + 8 is a multiple of 16 at entry (System V ABI, 3.2.2)"


FAULTS = [(read, 16, "SIGSEGV at address 0x10"), (read, 1 << 60, "SIGSEGV"), (divide, 0, "SIGFPE")]


@pytest.mark.parametrize("build, word, text", FAULTS, ids=lambda v: getattr(v, "__name__", str(v)))
@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_fault_is_an_error_that_names_the_kernel(pool: Pool, build, word, text, where: int) -> None:
    cell = Cell()
    for _ in range(3):
        with pytest.raises(KernelFault, match=f"kernel r_16_4 ended with {text}.*what it wrote is not valid"):
            pool.run("r_16_4", function(in_chunk(build)).address, [word, 0, 0, where], 3, chunk_at=2)
    with pytest.raises(KernelFault, match=f"kernel alone ended with {text}.*what it wrote is not valid"):
        pool.call("alone", function(build).address, argument_words([word, 0]))
    pool.run("add", function(add).address, [cell.address, 1], 3)  # all go on
    assert cell.value == 3


def test_an_invalid_instruction(pool: Pool) -> None:
    code = Segment(b"\x0f\x0b")  # ud2
    with pytest.raises(KernelFault, match="kernel k ended with SIGILL, instruction at 0x"):
        pool.run("k", code.address, [], 2)


def test_rings_wrap_around(pool: Pool) -> None:
    cell, code = Cell(), function(add)
    for _ in range(SLOTS + 100):
        pool.run("add", code.address, [cell.address, 1], 2)
    assert cell.value == 2 * (SLOTS + 100)


def test_scratch_memory_belongs_to_one_thread_at_a_time(pool: Pool) -> None:
    """Each chunk counts in its scratch memory, from zero."""
    def count(a: Assembler) -> None:
        a.put(X.MOV, at(RSI), 0)
        a.number(RCX, 20_000)
        a.label("up")
        a.put(X.ADD, at(RSI), 1)  # not atomic: two threads in one place would lose some
        a.put(X.SUB, RCX, 1)
        a.jump(X.JNE, "up")
        a.put(X.SUB, at(RSI), 20_000)
        a.put(X.MOV, RAX, at(RSI))
        a.put(X.ADD, at(RDI), RAX, lock=True)
    cell, code = Cell(), function(count)
    for size in (64, 1 << 12, 1 << 22):
        pool.run("count", code.address, [cell.address, 0], 8, NONE, 1, size)
    assert cell.value == 0


def test_many_callers(pool: Pool) -> None:
    cell, code, bad = Cell(), function(add), function(in_chunk(read))
    failed: list[str] = []

    def work(number: int) -> None:
        mine = Cell()
        for i in range(300):
            pool.run("add", code.address, [cell.address, 1], 3)
            pool.run("mine", code.address, [mine.address, 1], 2)
            if i % 50 == number:
                try:
                    pool.run(f"bad{number}", bad.address, [8 * number, 0, 0, i % 2], 2, chunk_at=2)
                except KernelFault as e:
                    failed.append(str(e).split(" ")[1])
        assert mine.value == 600
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert cell.value == 6 * 300 * 3
    assert sorted(failed) == sorted(f"bad{i}" for i in range(6) for _ in range(6)), "each fault went to its caller"


def test_a_kernel_that_does_not_end_is_stopped(pool: Pool) -> None:
    """On the calling thread, on whichever thread takes a chunk, on a thread of its own; all stay of use."""
    gate, cell = Cell(), Cell()
    code = function(wait_for)
    text = r"kernel {} did not end in 0\.1 s and was stopped at 0x.*what it wrote is not valid; CPU_TIMEOUT_MS gives"
    pool.timeout = 0.1
    for _ in range(2):
        with pytest.raises(KernelFault, match=text.format("r_7")):
            pool.call("r_7", code.address, gate.words())
        for chunk in range(3):
            with pytest.raises(KernelFault, match=text.format("r_8")):
                pool.run("r_8", function(in_chunk(wait_for)).address, [gate.address, 0, 0, chunk], 3, chunk_at=2)
        raised: list[str] = []

        def work() -> None:
            try:
                pool.call("r_9", code.address, gate.words())
            except KernelFault as e:
                raised.append(str(e).split(" ")[1])
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert raised == ["r_9"]
        pool.run("add", function(add).address, [cell.address, 1], 3)
    assert cell.value == 6


def test_the_time_out_comes_from_the_environment() -> None:
    run_apart("""
        gate = Cell()
        try:
            pool.call("r_7", function(wait_for).address, gate.words())
        except KernelFault as e:
            print(str(e).split(" and ")[0])
    """, "kernel r_7 did not end in 0.15 s\n", CPU_TIMEOUT_MS="150")


def test_the_time_out_is_that_of_one_kernel(pool: Pool) -> None:
    """Many short ones in a row are none that does not end."""
    pool.timeout = 0.3
    cell, code = Cell(), function(count_down)
    for _ in range(300):
        pool.call("count", code.address, cell.words(5_000_000))
    assert cell.value == 300


def test_the_watchdog_s_signal_ends_the_call_it_is_for(pool: Pool) -> None:
    """Late signals, to a thread that runs another kernel or none, are ignored."""
    cell, main, done = Cell(), threading.main_thread().ident or 0, threading.Event()

    def disturb() -> None:
        while not done.is_set():
            with contextlib.suppress(BlockingIOError):  # signals of this kind queue up, and the queue is full
                signal.pthread_kill(main, WATCHDOG)
    thread = threading.Thread(target=disturb)
    thread.start()
    state = pool._state()
    try:
        for _ in range(1000):
            pool.call("add", function(add).address, cell.words(1))
            state.expire(state.calls - 1)  # the one that has just returned
        assert cell.value == 1000
        state.expire(state.calls + 1)
        with pytest.raises(KernelFault, match="kernel count did not end"):
            pool.call("count", function(count_down).address, cell.words(1 << 40))
        state.expire(state.calls)  # outside of kernels
        pool.call("add", function(add).address, cell.words(1))
    finally:
        done.set()
        thread.join()
    assert cell.value == 1001


def test_the_process_ends_while_a_kernel_does_not() -> None:
    """On a daemon thread and its workers; their loops outlive the interpreter's memory."""
    for _ in range(4):
        run_apart("""
            import threading
            gate, one = Cell(), Cell()
            def work():
                pool.run("r_7", function(wait_for).address, [gate.address], 2)
            threading.Thread(target=work, daemon=True).start()
            while sum(pool.faults.running().values()) == 0:
                pass
            print("running")
        """, "running\n")


def test_ctrl_c_is_raised_when_the_kernel_has_ended() -> None:
    for call in ('pool.run("r", code.address, [gate.address], 2)', 'pool.call("r", code.address, gate.words())'):
        run_apart(f"""
            import os, threading, time
            gate, code = Cell(), function(wait_for)
            def interrupt():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
                print("open")
                gate.memory[0] = 1
            threading.Timer(0.1, interrupt).start()
            try:
                {call}
            except KeyboardInterrupt:
                print("interrupted", gate.value)
        """, "open\ninterrupted 1\n")


FORKS = """
    import os
    def both():
        cell = Cell()
        pool.run("add", function(add).address, [cell.address, 1], 3)
        pool.call("add", function(add).address, cell.words(1))
        try:
            pool.run("bad", function(in_chunk(read)).address, [1, 0, 0, 1], 2, chunk_at=2)
        except KernelFault as e:
            text = str(e).split(",")[0]
        # one write: two processes share the pipe
        os.write(1, f"{'parent' if child else 'child'} {cell.value} {text}\\n".encode())
"""


def test_a_forked_child_starts_its_own_workers() -> None:
    run_apart(FORKS + """
    child = os.fork()
    both()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    """, {f"{who} 4 kernel bad ended with SIGSEGV at address 0x1" for who in ("child", "parent")})


def test_a_fork_while_other_threads_run_kernels() -> None:
    run_apart(FORKS + """
    import threading
    stop = False
    def work():
        mine = Cell()
        while not stop:
            pool.run("add", function(add).address, [mine.address, 1], 3)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            both()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    for t in threads:
        t.join()
    """, {"child 4 kernel bad ended with SIGSEGV at address 0x1"})


def test_an_endless_kernel_in_a_forked_child() -> None:
    """It has a watchdog of its own."""
    run_apart("""
        import os
        pool.timeout = 0.1
        gate, child = Cell(), os.fork()
        try:
            pool.run("r_7", function(in_chunk(wait_for)).address, [gate.address, 0, 0, 1], 2, chunk_at=2)
        except KernelFault as e:
            os.write(1, str(e).split(" and ")[0].encode() + b"\\n")
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """, {"kernel r_7 did not end in 0.1 s"})


def test_no_more_threads_than_processors() -> None:
    run_apart("""
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        pool.forget()  # as in a child: it counts processors anew
        cell = Cell()
        pool.run("add", function(add_part).address, [cell.address, 0], 6, chunk_at=1)
        print(cell.value, len(pool.workers))
    """, "111111 0\n")


@pytest.mark.parametrize("limit, count", [("max 100000", 3), ("50000 100000", 1), ("150000 100000", 2),
                                          ("900000 100000", 3)])
def test_processors_are_those_of_affinity_and_cgroup(monkeypatch, limit: str, count: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 4, 5})
    monkeypatch.setattr(cpus, "open", lambda path: io.StringIO(limit), raising=False)
    assert cpus.available_cpus() == count


def test_faults_of_others_are_not_ours() -> None:
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", PRELUDE + "ctypes.string_at(8)"],
                          capture_output=True, text=True, cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == -signal.SIGSEGV and "Fatal Python error: Segmentation fault" in done.stderr
    plain = subprocess.run([sys.executable, "-c", PRELUDE + "ctypes.string_at(8)"], capture_output=True, text=True,
                           cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert plain.returncode == -signal.SIGSEGV and plain.stderr == ""


def test_workers_block_signals(pool: Pool) -> None:
    cell = Cell()
    pool.run("add", function(add).address, [cell.address, 1], 2)
    status = Path(f"/proc/self/task/{pool.workers[0].ring.thread}/status").read_text()
    blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")), 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        assert blocked >> number - 1 & 1
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, WATCHDOG):
        assert not blocked >> number - 1 & 1
