"""The machine's roofs: multiply-adds of registers and bytes of memory per second, measured by hand-written code.

    DEV=CPU python benchmarks/machine.py

Every thread runs the same loop: independent fused multiply-adds on the widest registers the processor has, or loads of
a region larger than the caches.
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from records import OURS, Record, show

from tinyhost_cpu.code import Segment
from tinyhost_cpu.native.assembler import RDI, RDX, RSI, Assembler
from tinyhost_cpu.workers import pool
from tinyhost_cpu.x86.caps import host_features
from tinyhost_cpu.x86.encode import Mem, Reg
from tinyhost_cpu.x86.insns import YMM, ZMM
from tinyhost_cpu.x86.insns import X86Ops as X

ROUNDS = 15
THREADS = int(os.environ.get("NUM_CPU_THREADS") or 0) or len(os.sched_getaffinity(0))
WIDE = "avx512f" in host_features()
LANES = 16 if WIDE else 8
CHAINS = 12  # a multiply-add takes 4 cycles and two start in each


def multiply_adds(a: Assembler) -> None:
    """Arguments: unread address, steps."""
    kind = ZMM if WIDE else YMM
    for i in range(CHAINS + 2):
        zero = Reg(YMM, i)
        a.put(X.VXORPS, zero, zero, zero)
    a.label("loop")
    for i in range(CHAINS):
        a.put(X.VFMADD231PS, Reg(kind, i), Reg(kind, CHAINS), Reg(kind, CHAINS + 1))
    a.put(X.SUB, RSI, 1)
    a.jump(X.JNE, "loop")
    a.put(X.VZEROUPPER)
    a.put(X.RET)


def reads(a: Assembler) -> None:
    """Arguments: address of the whole, steps of 8 vectors, part number."""
    kind, size = (ZMM, 64) if WIDE else (YMM, 32)
    a.put(X.IMUL, RDX, RSI)
    a.put(X.IMUL, RDX, RDX, 8 * size)
    a.put(X.ADD, RDI, RDX)
    a.label("loop")
    for i in range(8):
        a.put(X.VMOVUPS, Reg(kind, i), Mem(7, disp=i * size))
    a.put(X.ADD, RDI, 8 * size)
    a.put(X.SUB, RSI, 1)
    a.jump(X.JNE, "loop")
    a.put(X.VZEROUPPER)
    a.put(X.RET)


def median(run: Callable[[], object]) -> float:
    """Median seconds of a run."""
    times = []
    for _ in range(ROUNDS):
        time.sleep(0.02)
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def code(build: Callable[[Assembler], None]) -> Segment:
    """Machine code of a loop."""
    a = Assembler()
    build(a)
    return Segment(a.finish())


def main() -> None:
    steps = 2_000_000
    loop, stream = code(multiply_adds), code(reads)
    seconds = median(lambda: pool().run("multiply_adds", loop.address, [0, steps, 0], THREADS, chunk_at=2))
    show(Record("machine", f"multiply-adds, {LANES} lanes, {THREADS} threads", {OURS: seconds},
                2.0 * CHAINS * LANES * steps * THREADS, rounds=ROUNDS))
    memory = np.ones((256 << 20) // 4, dtype=np.float32)
    size = 8 * 4 * LANES
    steps = memory.nbytes // size // THREADS
    base = memory.ctypes.data
    seconds = median(lambda: pool().run("reads", stream.address, [base, steps, 0], THREADS, chunk_at=2))
    show(Record("machine", f"reading {memory.nbytes >> 20} MiB, {THREADS} threads", {OURS: seconds},
                bytes=float(steps * size * THREADS), rounds=ROUNDS))


if __name__ == "__main__":
    main()
