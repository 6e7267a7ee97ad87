"""What compiling costs: the kernels of one training step of `examples/train_mnist.py`, the first step of a process, and
how schedule and compile time grow with the graph.

Without an option everything is measured. `--chain N` measures one chain of N operations only; `--kernels` prints a line
for each kernel; `--growth` and `--first` measure one part. Disk caches are off, but for `--first`, which measures with
an empty and with a filled one. Times of kernels and of growth are CPU time of the thread, which a busy machine changes
little, the least of a few rounds; the first round of kernels is printed on its own. Times of a first step are wall time
and CPU time of its process, whose bytecode is compiled before.
"""
from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ["CACHELEVEL"] = os.environ["PARALLEL"] = "0"

import numpy as np
from networks import EXAMPLES, example

from tinyhost import Context, Device, Tensor, nn
from tinyhost.codegen import to_program
from tinyhost.engine import plan, program, schedule
from tinyhost.helpers import ansistrip
from tinyhost.ops import Ops
from tinyhost.uop import UOp


class Recorder:
    """Notes each kernel that the engine compiles and each graph that it schedules, with their seconds."""

    def __init__(self) -> None:
        self.kernels: list[tuple[UOp, Any, float]] = []
        self.schedules: list[float] = []

    def __enter__(self) -> Recorder:
        self.saved = program._compile, schedule._make
        compile_kernel, make_schedule = self.saved

        def timed_compile(ast: UOp, renderer: Any) -> Any:
            start = time.thread_time()
            kernel = compile_kernel(ast, renderer)
            self.kernels.append((ast, renderer, time.thread_time() - start))
            return kernel

        def timed_schedule(sink: UOp) -> UOp:
            start = time.thread_time()
            linear = make_schedule(sink)
            self.schedules.append(time.thread_time() - start)
            return linear

        program._compile, schedule._make = timed_compile, timed_schedule
        return self

    def __exit__(self, *exc: object) -> None:
        program._compile, schedule._make = self.saved


def training_step(example: Any, width: int, batch: int) -> Recorder:
    """One step of the example, recorded; weights are realized before."""
    Tensor.manual_seed(0)
    model = example.Model(width)
    opt = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)
    x, y = Tensor.rand(batch, 1, 28, 28).realize(), Tensor.zeros(batch, dtype="int32").contiguous().realize()
    Tensor.realize(*nn.state.get_parameters(model))
    with Context(TRAINING=1), Recorder() as recorder:
        opt.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        loss.realize(*opt.schedule_step())
    return recorder


def kernel_table(width: int, batch: int, rounds: int, every: bool) -> None:
    """Print times of the step's kernels."""
    first_kernel = first_of_process()
    recorder = training_step(example("train_mnist"), width, batch)
    times: list[tuple[float, str, int, int]] = []
    for ast, renderer, _ in recorder.kernels:
        runs = []
        for _ in range(rounds):
            gc.collect()
            start = time.thread_time()
            done = to_program(ast, renderer)
            runs.append(time.thread_time() - start)
        times.append((min(runs), ansistrip(done.arg.name), len(ast.toposort()), len(done.src[1].src)))
    ms = sorted(t * 1e3 for t, *_ in times)
    once = [s for *_, s in recorder.kernels]
    print(f"training step, width {width}, batch {batch}, on {Device.DEFAULT}: {len(ms)} kernels")
    print(f"  first kernel of the process    {first_kernel * 1e3:8.1f} ms")
    print(f"  scheduling                     {sum(recorder.schedules) * 1e3:8.1f} ms")
    print(f"  compiling all, first round     {sum(once) * 1e3:8.1f} ms")
    print(f"  compiling all, later           {sum(ms):8.1f} ms")
    print(f"  median kernel                  {statistics.median(ms):8.1f} ms")
    print(f"  worst kernel                   {ms[-1]:8.1f} ms")
    rows = sorted(times, reverse=True) if every else sorted(times, reverse=True)[:5]
    for t, name, small, large in rows:
        print(f"    {t * 1e3:7.1f} ms  {name:40s} {small:5d} nodes, {large:5d} instructions")


def first_of_process() -> float:
    """Seconds for one small kernel, everything not yet loaded included."""
    with Recorder() as recorder:
        (Tensor([1.0, 2.0]) + 1).realize()
    return recorder.kernels[0][2]


def chain(n: int) -> None:
    """Print the seconds of `n` element-wise ops in a row, from the first method call to the numbers."""
    x = Tensor.rand(1000).realize()
    start = time.perf_counter()
    y = x
    for i in range(n):
        y = y + float(i % 7) if i % 2 else y * 0.5
    built = time.perf_counter()
    with Recorder() as recorder:
        y.realize()
    end = time.perf_counter()
    scheduling, compiling = sum(recorder.schedules), sum(s for *_, s in recorder.kernels)
    print(f"chain of {n:6d} ops: {end - start:6.2f} s in all: building {built - start:5.2f}, scheduling "
          f"{scheduling:5.2f}, compiling {compiling:5.2f} ({len(recorder.kernels)} kernels)")


def _chain(n: int) -> Tensor:
    y = Tensor.rand(1000).realize()
    for i in range(n):
        y = y + float(i % 7) if i % 2 else y * 0.5
    return y


def _wide(n: int) -> Tensor:
    """n small computations that have nothing to do with each other, in one sum."""
    x = Tensor.rand(16).realize()
    parts = [x * float(i) for i in range(n // 2)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2])] + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]


def _layers(n: int) -> Tensor:
    """Layers of a small net, each ten nodes."""
    net = [nn.Linear(8, 8) for _ in range(max(1, n // 10))]
    Tensor.realize(*nn.state.get_parameters(net))
    x = Tensor.rand(4, 8).realize()
    for layer in net:
        x = layer(x).relu()
    return x


def growth(sizes: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000)) -> None:
    """Print what a node costs in graphs of growing size, and the exponent of the cost in the number of nodes."""
    graphs: tuple[tuple[str, Callable[[int], Tensor]], ...] = (("chain", _chain), ("wide", _wide), ("layers", _layers))
    for name, graph in graphs:
        rows: list[tuple[int, float, float, float]] = []
        for n in sizes:
            rows.append(min((_cost(graph(n)) for _ in range(3 if n < 3_000 else 2)), key=lambda row: row[3]))
            count, scheduling, compiling, total = rows[-1]
            print(f"{name:7s} {count:6d} nodes, us each: schedule {scheduling * 1e6 / count:6.1f}, compile "
                  f"{compiling * 1e6 / count:6.1f}, all {total * 1e6 / count:6.1f}")
            sys.stdout.flush()
        exponents = [_exponent([(row[0], row[i]) for row in rows]) for i in (1, 2, 3)]
        print(f"{name:7s} exponent: schedule {exponents[0]:.2f}, compile {exponents[1]:.2f}, all {exponents[2]:.2f}")


def _cost(tensor: Tensor) -> tuple[int, float, float, float]:
    """(nodes, seconds to schedule, to compile, in all) of realizing ``tensor``, CPU time of this thread."""
    count = len(tensor.uop.toposort())
    for part in (schedule, plan, program):
        part.reset()
    gc.collect()
    with Recorder() as recorder:
        start = time.thread_time()
        tensor.realize()
        total = time.thread_time() - start
    return count, sum(recorder.schedules), sum(s for *_, s in recorder.kernels), total


def _exponent(points: list[tuple[int, float]]) -> float:
    """The slope of a straight line through the logarithms."""
    x, y = np.log([n for n, _ in points]), np.log([seconds for _, seconds in points])
    return float(np.polyfit(x, y, 1)[0])


FIRST_STEP = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from tinyhost import Context, Tensor, nn
import train_mnist
start, cpu = time.perf_counter(), time.process_time()
model = train_mnist.Model(int(sys.argv[2]))
opt = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)
rng = np.random.default_rng(0)
x = Tensor(rng.random((int(sys.argv[3]), 1, 28, 28), np.float32))
y = Tensor(rng.integers(0, 10, int(sys.argv[3])).astype(np.int32))
with Context(TRAINING=1):
    opt.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    loss.realize(*opt.schedule_step())
    loss.item()
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def first_step(width: int, batch: int, rounds: int) -> None:
    """Print milliseconds from the end of the import to the loss of the first step, in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "CACHELEVEL", "PARALLEL")}
        env["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        command = [sys.executable, "-c", FIRST_STEP, str(EXAMPLES), str(width), str(batch)]

        def run(cache: str) -> tuple[float, float]:
            done = subprocess.run(command, env={**env, "CACHEDIR": f"{folder}/{cache}"}, check=True,
                                  capture_output=True, text=True)
            wall, cpu = map(float, done.stdout.split()[-2:])
            return wall * 1e3, cpu * 1e3

        run("kept")  # compiles bytecode, and fills this cache
        for name, caches in (("cold", [f"empty{i}" for i in range(rounds)]), ("warm disk cache", ["kept"] * rounds)):
            times = [run(cache) for cache in caches]
            wall, cpu = (min(t[i] for t in times) for i in (0, 1))
            print(f"first step, {name:16s} wall {wall:7.0f} ms, CPU {cpu:7.0f} ms (least of {rounds})")


def nodes(count: int = 20_000) -> None:
    """Print microseconds to create, find again and release one node."""
    literals = [UOp.const(i) for i in range(count)]

    def build() -> list[UOp]:
        out, u = [], UOp.variable("n", 0, 1)
        for c in literals:
            u = UOp(Ops.ADD, (u, c))
            out.append(u)
        return out

    costs: dict[str, float] = {}
    for _ in range(7):
        gc.collect()
        start = time.perf_counter()
        kept = build()
        created = time.perf_counter()
        build()
        found = time.perf_counter()
        del kept
        released = time.perf_counter()
        for name, seconds in (("create", created - start), ("find", found - created), ("release", released - found)):
            costs[name] = min(costs.get(name, 1.0), seconds / count)
    print("node, us: " + ", ".join(f"{name} {s * 1e6:.2f}" for name, s in costs.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chain", type=int, default=0, help="measure one chain of this length and nothing else")
    parser.add_argument("--kernels", action="store_true", help="one line for each kernel")
    parser.add_argument("--growth", action="store_true", help="measure costs a node and nothing else")
    parser.add_argument("--first", action="store_true", help="measure first steps and nothing else")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.chain:
        chain(args.chain)
        return
    if args.growth or args.first:
        if args.growth:
            growth()
        if args.first:
            first_step(args.width, args.batch, args.rounds)
        return
    kernel_table(args.width, args.batch, args.rounds, args.kernels)
    if args.kernels:
        return
    nodes()
    first_step(args.width, args.batch, args.rounds)
    growth()
    for n in (1_000, 10_000):
        chain(n)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
