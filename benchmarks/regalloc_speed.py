"""Register allocation: microseconds per instruction, inserted spill code, and growth with program size.

Run: python benchmarks/regalloc_speed.py. Prints one line per pattern; each time is the best of several runs, in
processor time, so that other work on the machine disturbs little.
"""
from __future__ import annotations

import random
import time
from collections.abc import Callable

from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    DEF,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    VReg,
    check,
    define,
    run,
    use,
)

GPR, VEC = 0, 1
RCX, RDI, RSI = 1, 7, 6
ENV = MachineEnv((RegClass("gpr", (0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15), swap=True),
                  RegClass("vec", tuple(range(16, 32)))), frozenset((3, 5, 12, 13, 14, 15)), max_align=16)
CONST = Signature((DEF,))
LOAD = Signature((DEF, use()))
LOAD_INDEXED = Signature((DEF, use(), use()))
STORE = Signature((use(), use()))
BINARY = Signature((DEF, use(), use(memory=True)))
TIED = Signature((define(reuse=1), use(), use(memory=True)))
FMA = Signature((define(reuse=3), use(), use(memory=True), use()))
INCREMENT = Signature((define(reuse=1), use()))
COMPARE = Signature((use(), use(memory=True)))
SHIFT = Signature((define(reuse=1), use(), use(fixed=RCX)))
ARGUMENTS = Signature((define(fixed=RDI), define(fixed=RSI)))


class Builder:
    """Appends instructions; every method that makes a value returns its virtual register."""

    def __init__(self) -> None:
        self.insts: list[Inst] = []
        self.vregs: list[VReg] = []

    def value(self, cls: int, remat: bool = False) -> int:
        self.vregs.append(VReg(cls, 8 if cls == GPR else 32, remat))
        return len(self.vregs) - 1

    def op(self, name: str, signature: Signature, cls: int, *reads: int) -> int:
        v = self.value(cls)
        self.insts.append(Inst(name, (v, *reads), signature))
        return v

    def put(self, name: str, signature: Signature, *vregs: int) -> None:
        self.insts.append(Inst(name, vregs, signature))

    def arguments(self) -> tuple[int, int]:
        a, b = self.value(GPR), self.value(GPR)
        self.put("arguments", ARGUMENTS, a, b)
        return a, b

    def constant(self, cls: int) -> int:
        v = self.value(cls, remat=True)
        self.insts.append(Inst("const", (v,), CONST))
        return v

    def loop(self, name: str, body: Callable[[int], None]) -> None:
        """A do-while loop over a counter."""
        counter = self.op("zero", CONST, GPR)
        self.insts.append(Inst("label", kind=Kind.LABEL, target=name))
        body(counter)
        self.put("add", INCREMENT, counter, counter)
        self.put("cmp", COMPARE, counter, counter)
        self.insts.append(Inst("jl", kind=Kind.BRANCH, target=name))

    def finish(self) -> Function:
        self.insts.append(Inst("ret", kind=Kind.RET))
        return Function(self.insts, self.vregs)


def elementwise(unroll: int, depth: int) -> Function:
    """A loop whose body computes ``unroll`` independent chains of ``depth`` operations with shared constants."""
    b = Builder()
    src, dst = b.arguments()
    constants = [b.constant(VEC) for _ in range(10)]

    def body(counter: int) -> None:
        for _ in range(unroll):
            x = y = b.op("load", LOAD_INDEXED, VEC, src, counter)
            for k in range(depth):
                y = b.op("fma", FMA, VEC, x, constants[k % 10], y)
            b.put("store", STORE, dst, y)

    b.loop("elements", body)
    return b.finish()


def matmul(rows: int, columns: int, unroll: int) -> Function:
    """Register tile of a matrix product: rows x columns accumulators, three nested loops."""
    b = Builder()
    a, c = b.arguments()

    def tile(i: int) -> None:
        def column(j: int) -> None:
            accumulators = [b.op("zero", CONST, VEC) for _ in range(rows * columns)]

            def inner(k: int) -> None:
                for _ in range(unroll):
                    panel = [b.op("load", LOAD_INDEXED, VEC, c, k) for _ in range(columns)]
                    for row in range(rows):
                        x = b.op("broadcast", LOAD_INDEXED, VEC, a, k)
                        for n in range(columns):
                            acc = accumulators[row * columns + n]
                            b.put("fma", FMA, acc, x, panel[n], acc)

            b.loop(f"inner{i}", inner)
            place = b.op("lea", BINARY, GPR, i, j)
            for acc in accumulators:
                b.put("store", STORE, place, acc)

        b.loop("columns", column)

    b.loop("rows", tile)
    return b.finish()


def expression(length: int, width: int, seed: int = 0) -> Function:
    """Straight code over ``width`` values live at a time, half of it two-address, with shifts and copies."""
    rnd = random.Random(seed)
    b = Builder()
    live = [*b.arguments()]
    while len(b.insts) < length:
        roll = rnd.random()
        if len(live) < width and roll < 0.3:
            v = b.op("load", LOAD, GPR, rnd.choice(live))
        elif 0.3 < roll < 0.35:
            v = b.op("shift", SHIFT, GPR, rnd.choice(live), rnd.choice(live))
        elif 0.35 <= roll < 0.4:
            v = b.value(GPR)
            b.insts.append(Inst("mov", (v, rnd.choice(live)), COPY_SIGNATURE, Kind.COPY))
        else:
            v = b.op("add", TIED if roll < 0.7 else BINARY, GPR, rnd.choice(live), rnd.choice(live))
        live.append(v)
        if len(live) > width:
            live.pop(rnd.randrange(len(live)))
    for v in live:
        b.put("store", STORE, live[0], v)
    return b.finish()


def many_loops(count: int) -> Function:
    """``count`` small loops one after another around a few values live everywhere."""
    b = Builder()
    src, dst = b.arguments()
    everywhere = [b.op("load", LOAD, VEC, src) for _ in range(12)]
    for number in range(count):
        def body(counter: int) -> None:
            for acc in everywhere[:4]:
                x = b.op("load", LOAD_INDEXED, VEC, src, counter)
                y = b.op("mul", BINARY, VEC, x, x)
                b.put("fma", FMA, acc, x, y, acc)
            b.put("store", STORE, dst, everywhere[number % 12])

        b.loop(f"loop{number}", body)
    for v in everywhere:
        b.put("store", STORE, dst, v)
    return b.finish()


def measure(name: str, function: Function, repeat: int, checked: bool = True) -> float:
    """Print one line; the best time per instruction in microseconds."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        allocation = run(function, ENV)
        best = min(best, time.process_time() - start)
    per = best / len(function.insts) * 1e6
    counts = "  ".join(f"{kind.value} {allocation.count(kind):5}" for kind in EditKind if kind is not EditKind.SWAP)
    if checked:
        check(function, ENV, allocation)
    print(f"{name:34} {len(function.insts):7} instructions  {best * 1e3:9.2f} ms  {per:6.2f} us each   {counts}",
          flush=True)
    return per


def main() -> None:
    measure("elementwise 8 chains of 12", elementwise(8, 12), 9)
    measure("elementwise 32 chains of 12", elementwise(32, 12), 9)
    measure("matmul 6x2, unroll 8", matmul(6, 2, 8), 9)
    measure("matmul 6x2, unroll 24", matmul(6, 2, 24), 9)
    measure("matmul 8x2 (too big a tile)", matmul(8, 2, 8), 9)
    measure("expression, 10 live of 15", expression(500, 10), 9)
    measure("expression, 20 live of 15", expression(500, 20), 9)
    measure("expression, 60 live of 15", expression(500, 60), 9)
    measure("40 loops", many_loops(40), 5)
    for size in (1_000, 10_000, 100_000):
        measure("growth: expression, 20 live", expression(size, 20), 1 if size > 50_000 else 3, checked=size < 50_000)
    for size in (60, 600, 6_000):
        measure("growth: loops", many_loops(size), 1 if size > 5_000 else 3, checked=size < 1000)


if __name__ == "__main__":
    main()
