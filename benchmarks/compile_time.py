"""What compiling costs: the kernels of one training step of `examples/train_mnist.py`, chains of operations, nodes.

`--chain N` measures one chain of N operations only; `--kernels` prints a line for each kernel. Disk caches are off. A
kernel's time is from its graph to machine code, the median of a few rounds; the first round is printed on its own.
"""
from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import pathlib
import statistics
import sys
import time
from typing import Any

os.environ["CACHELEVEL"] = "0"

from tinyhost import Context, Device, Tensor, nn
from tinyhost.codegen import to_program
from tinyhost.engine import program, schedule
from tinyhost.helpers import ansistrip
from tinyhost.ops import Ops
from tinyhost.uop import UOp

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "train_mnist.py"


def load_example() -> Any:
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("train_mnist", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Recorder:
    """Notes each kernel that the engine compiles and each graph that it schedules, with their seconds."""

    def __init__(self) -> None:
        self.kernels: list[tuple[UOp, Any, float]] = []
        self.schedules: list[float] = []

    def __enter__(self) -> Recorder:
        self.saved = program._compile, schedule.create_linear
        compile_kernel, create_linear = self.saved

        def timed_compile(ast: UOp, renderer: Any) -> Any:
            start = time.perf_counter()
            kernel = compile_kernel(ast, renderer)
            self.kernels.append((ast, renderer, time.perf_counter() - start))
            return kernel

        def timed_schedule(*args: Any) -> UOp:
            start = time.perf_counter()
            linear = create_linear(*args)
            self.schedules.append(time.perf_counter() - start)
            return linear

        program._compile, schedule.create_linear = timed_compile, timed_schedule
        return self

    def __exit__(self, *exc: object) -> None:
        program._compile, schedule.create_linear = self.saved


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
    recorder = training_step(load_example(), width, batch)
    times: list[tuple[float, str, int, int]] = []
    for ast, renderer, _ in recorder.kernels:
        runs = []
        for _ in range(rounds):
            gc.collect()
            start = time.perf_counter()
            done = to_program(ast, renderer)
            runs.append(time.perf_counter() - start)
        times.append((statistics.median(runs), ansistrip(done.arg.name), len(ast.toposort()), len(done.src[1].src)))
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
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.chain:
        chain(args.chain)
        return
    kernel_table(args.width, args.batch, args.rounds, args.kernels)
    nodes()
    for n in (1_000, 10_000):
        chain(n)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
