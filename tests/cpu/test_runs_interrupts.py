"""Ctrl-C and other Python signal handlers while packets run: what has not started does not, nobody stays behind."""
from __future__ import annotations

import platform
import sys

import pytest

from tests.cpu.apart import run_apart

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="packets are for Linux on x86-64")
COMMON = """
    import os, threading, time
    import numpy as np
    from tests.cpu.packets import Packets
    from tinyhost_cpu.native.layout import RUN_COMPLETED, RUN_LEFT, RUN_STARTED
    flag, cell = np.zeros(1, np.uint64), Cell()
    def over(run):
        return run.word(RUN_COMPLETED) == run.chunks and run.word(RUN_LEFT) == run.word(RUN_STARTED)
"""


@pytest.mark.parametrize("width", [1, 2, 3])
def test_ctrl_c_in_the_middle_of_many_packets(width: int) -> None:
    """Each of 4000 kernels takes some hundred microseconds; far fewer start after the signal. Signals are set."""
    run_apart(COMMON + f"""
    packets = Packets(pool)
    for _ in range(4000):
        packets.execute(function(count_down), [cell.address, 1_000_000]).barrier()
    run = packets.alone("signal", flag.ctypes.data, 5).run({width})
    at = []
    def interrupt():
        while cell.value < 100:
            time.sleep(0.001)
        at.append(cell.value)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        pool.execute([run])
    except KeyboardInterrupt:
        print("interrupted", cell.value - at[0] < 1500, int(flag[0]), over(run))
    before = cell.value
    pool.run("add", function(add).address, [cell.address, 1], 3)
    print(cell.value - before)
    """, "interrupted True 5 True\n3\n")


@pytest.mark.parametrize("width", [1, 2])
def test_ctrl_c_in_one_long_kernel(width: int) -> None:
    """It ends first; the kernel behind it does not start on this thread."""
    run_apart(COMMON + f"""
    gate = Cell()
    packets = Packets(pool).execute(function(wait_for), [gate.address]).barrier()
    run = packets.execute(function(add), [cell.address, 1], 2).alone("signal", flag.ctypes.data, 5).run({width})
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        print("open", flush=True)
        gate.memory[0] = 1
    threading.Timer(0.1, interrupt).start()
    try:
        pool.execute([run])
    except KeyboardInterrupt:
        print("interrupted", gate.value, int(flag[0]), over(run), {width} > 1 or cell.value == 0)
    """, "open\ninterrupted 1 5 True True\n")


def test_ctrl_c_while_runs_wait_for_what_never_comes() -> None:
    run_apart(COMMON + """
    first = Packets(pool).alone("wait", flag.ctypes.data, 1).execute(function(add), [cell.address, 1]).run(2)
    second = Packets(pool).alone("poll", flag.ctypes.data, 1, 1).execute(function(add), [cell.address, 1]).run(2)
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        pool.execute([first, second])
    except KeyboardInterrupt:
        print("interrupted", cell.value, over(first), over(second))
    """, "interrupted 0 True True\n")


def test_interrupts_again_and_again() -> None:
    """Wherever they come, helpers have left the memory when the exception arrives."""
    run_apart(COMMON + """
    class Interrupt(Exception):
        pass
    armed = False
    def raise_it(*args):
        global armed  # another thread may have taken the signal, and it arrives late
        if armed:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Interrupt
    signal.signal(signal.SIGALRM, raise_it)
    caught = finished = bad = 0
    pool.execute([Packets(pool).run(3)])
    for i in range(600):
        packets = Packets(pool)
        for _ in range(200):
            packets.execute(function(count_down), [cell.address, 5000], 3).barrier()
        run = packets.run(3)
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, 1e-4 + i * 1e-6)
            pool.execute([run])
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            finished += 1
        except Interrupt:
            caught += 1
            bad += not over(run) and run.word(RUN_COMPLETED) != 0  # 0: it had not begun
    print(caught + finished, caught > 0, bad)
    """, "600 True 0\n")


def test_a_signal_handler_runs_kernels_itself() -> None:
    """In the middle of a launch on the same thread."""
    run_apart(COMMON + """
    inner, count = Cell(), 0
    def handler(*args):
        global count
        count += 1
        pool.run("add", function(add).address, [inner.address, 1], 2)
        pool.call("add", function(add).address, inner.words(1))
        if count < 200:
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while count < 200:
        pool.run("count", function(count_down).address, [cell.address, 30_000], 3)
    print(inner.value - 3 * count, cell.value % 3)
    """, "0 0\n")
