"""Workers of generated code: calls with any number of arguments, faults, waiting, forks, many callers."""
from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cpu.native import Cell, add, count_down, divide, function, read
from tinyhost.errors import KernelFault
from tinyhost_cpu.code import Segment
from tinyhost_cpu.native.assembler import RAX, RDI, RSP, Assembler, at
from tinyhost_cpu.native.layout import SLOTS, argument_words
from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.workers import pool as process_pool
from tinyhost_cpu.x86.insns import X86Ops as X

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="generated workers exist for Linux on x86-64")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pool() -> Iterator[Pool]:
    """The process's pool: a second one would take over its fault handler."""
    found = process_pool()
    assert isinstance(found, Pool)
    kept = found.timeout
    yield found
    found.timeout = kept


def test_every_thread_gets_its_words(pool: Pool) -> None:
    cell, code = Cell(), function(add)
    pool.call("add", code.address, cell.words(5))
    assert cell.value == 5
    pool.run("add", code.address, [cell.words(10**i) for i in range(6)])
    assert cell.value == 5 + 111111


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 8, 9, 40, 251])
def test_any_number_of_arguments(pool: Pool, count: int) -> None:
    def total(a: Assembler) -> None:
        """Sum of all words behind the first: registers, then the stack (System V ABI, 3.2.3)."""
        from tinyhost_cpu.native.code import ARGUMENTS
        a.number(RAX, 0)
        for register in ARGUMENTS[1:count]:
            a.put(X.ADD, RAX, register)
        for i in range(max(count - 6, 0)):
            a.put(X.ADD, RAX, at(RSP, 8 + 8 * i))
        a.put(X.ADD, at(RDI), RAX, lock=True)
    cell, code = Cell(), function(total)
    values = [(-1)**i * 7**(i % 20) for i in range(count - 1)]
    pool.run("total", code.address, [cell.words(*values)] * 3)
    assert cell.value == 3 * sum(values)


def test_the_stack_is_aligned_at_every_count(pool: Pool) -> None:
    def note(a: Assembler) -> None:
        a.put(X.MOV, RAX, RSP)
        a.put(X.AND, RAX, 15)
        a.put(X.ADD, at(RDI), RAX, lock=True)
    code = function(note)
    for count in range(1, 12):
        cell = Cell()
        pool.run("note", code.address, [cell.words(*[0] * (count - 1))] * 2)
        assert cell.value == 2 * 8, "rsp + 8 is a multiple of 16 at entry (System V ABI, 3.2.2)"


FAULTS = [(read, 16, "SIGSEGV at address 0x10"), (read, 1 << 60, "SIGSEGV"), (divide, 0, "SIGFPE")]


@pytest.mark.parametrize("build, word, text", FAULTS, ids=lambda v: getattr(v, "__name__", str(v)))
@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_fault_is_an_error_that_names_the_kernel(pool: Pool, build, word, text, where: int) -> None:
    cell = Cell(1)
    code = function(build)
    good = argument_words([cell.address, 1])
    bad = argument_words([word, 0])
    words = [bad if i == where else good for i in range(3)]
    for _ in range(3):
        with pytest.raises(KernelFault, match=f"kernel r_16_4 ended with {text}.*what it wrote is not valid"):
            pool.run("r_16_4", code.address, words)
    pool.run("add", function(add).address, [cell.words(1)] * 3)  # all go on
    assert cell.value == 4


def test_an_invalid_instruction(pool: Pool) -> None:
    code = Segment(b"\x0f\x0b")  # ud2
    with pytest.raises(KernelFault, match="kernel k ended with SIGILL, instruction at 0x"):
        pool.run("k", code.address, [argument_words([])] * 2)


def test_rings_wrap_around(pool: Pool) -> None:
    cell, code = Cell(), function(add)
    words = [cell.words(1)] * 2
    for _ in range(SLOTS + 100):
        pool.run("add", code.address, words)
    assert cell.value == 2 * (SLOTS + 100)


def test_many_callers(pool: Pool) -> None:
    cell, code, bad = Cell(), function(add), function(read)
    failed: list[str] = []

    def work(number: int) -> None:
        mine = Cell()
        for i in range(300):
            pool.run("add", code.address, [cell.words(1), mine.words(1), cell.words(1)])
            if i % 50 == number:
                try:
                    pool.run(f"bad{number}", bad.address, [cell.words(), argument_words([8 * number])])
                except KernelFault as e:
                    failed.append(str(e).split(" ")[1])
        assert mine.value == 300
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert cell.value == 6 * 300 * 2
    assert sorted(failed) == sorted(f"bad{i}" for i in range(6) for _ in range(6)), "each fault went to its caller"


def test_a_kernel_that_does_not_end_is_named() -> None:
    run_apart("""
        pool.timeout = 0.2
        cell, one, code = Cell(), Cell(1), function(wait_for)
        for _ in range(2):  # the worker refuses what comes later
            try:
                pool.run("r_7", code.address, [one.words(), cell.words()])
            except KernelFault as e:
                print(e)
        cell.memory[0] = 1
    """, 2 * ("kernel r_7 did not end in 0.2 s on worker 1; it cannot be stopped and keeps its memory: start a new "
               "process\n"))


@pytest.mark.parametrize("wake", ["", "cell.memory[0] = 1"])
def test_the_process_ends_while_a_worker_does_not(wake: str) -> None:
    """Its loop, or the code it comes back to, outlives the interpreter's memory."""
    for _ in range(4):
        run_apart(f"""
            pool.timeout = 0.05
            cell, one = Cell(), Cell(1)
            try:
                pool.run("r_7", function(wait_for).address, [one.words(), cell.words()])
            except KernelFault as e:
                print("stuck")
            {wake}
        """, "stuck\n")


def test_ctrl_c_is_raised_when_the_kernel_has_ended() -> None:
    run_apart("""
        import os, threading, time
        one, gate, code = Cell(1), Cell(), function(wait_for)
        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            print("open")
            gate.memory[0] = 1
        threading.Timer(0.1, interrupt).start()
        try:
            pool.run("r", code.address, [one.words(), gate.words()])
        except KeyboardInterrupt:
            print("interrupted", gate.value)
    """, "open\ninterrupted 1\n")


def test_a_forked_child_starts_its_own_workers() -> None:
    run_apart("""
        import os
        cell, code = Cell(), function(add)
        pool.run("add", code.address, [cell.words(1)] * 3)
        child = os.fork()
        pool.run("add", code.address, [cell.words(1)] * 3)
        try:
            pool.run("bad", function(read).address, [cell.words(), argument_words([1])])
        except KernelFault as e:
            print("child" if child == 0 else "parent", cell.value, str(e).split(",")[0], flush=True)
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """, {f"{who} 6 kernel bad ended with SIGSEGV at address 0x1" for who in ("child", "parent")})


def test_faults_of_others_are_not_ours() -> None:
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", PRELUDE + "ctypes.string_at(8)"],
                          capture_output=True, text=True, cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == -signal.SIGSEGV and "Fatal Python error: Segmentation fault" in done.stderr
    plain = subprocess.run([sys.executable, "-c", PRELUDE + "ctypes.string_at(8)"], capture_output=True, text=True,
                           cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert plain.returncode == -signal.SIGSEGV and plain.stderr == ""


def test_workers_block_signals(pool: Pool) -> None:
    pool.run("add", function(add).address, [Cell().words(1)] * 2)
    status = Path(f"/proc/self/task/{pool.workers[0].ring.thread}/status").read_text()
    blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")), 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        assert blocked >> number - 1 & 1
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        assert not blocked >> number - 1 & 1


def test_interrupted_callers_leave_words_alone(pool: Pool) -> None:
    cell, code = Cell(), function(count_down)
    pool.run("count", code.address, [cell.words(100_000)] * 4)
    assert cell.value == 4


PRELUDE = """
import ctypes, signal
from tests.cpu.native import *
from tinyhost.errors import KernelFault
from tinyhost_cpu.workers import pool as made
pool = made()
pool.run("add", function(add).address, [Cell().words(1)] * 2)
"""


def run_apart(program: str, expected: str | set[str]) -> None:
    """The program in a process of its own prints this (a set: these lines in any order) and ends well."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(program)], capture_output=True, text=True,
                          cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected if isinstance(expected, str) else set(done.stdout.splitlines()) == expected
