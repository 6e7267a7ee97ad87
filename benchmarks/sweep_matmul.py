"""Matrix products of 40 shapes and all layouts beside numpy's.

    DEV=CPU python benchmarks/sweep_matmul.py [--rounds 7] [--only TEXT]

N means a row-major operand, T the transpose of one. Prints each ratio (numpy's time over ours), their geometric mean
and the least one. `--avx2` holds both to AVX2 (numpy through OPENBLAS_CORETYPE, ours through DEV).
"""
from __future__ import annotations

import argparse
import os
import sys

from rounds import fair_numpy, medians

if "--avx2" in sys.argv:
    if os.environ.get("OPENBLAS_CORETYPE") != "Haswell":  # both are read when the libraries load
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  {**os.environ, "OPENBLAS_CORETYPE": "Haswell", "DEV": "CPU:X86:x86-64-v3"})
else:
    fair_numpy()

import numpy as np
from peers import arrays, captured
from records import OURS, Record, geometric_mean, show

from tinyhost import Tensor

# (batch, rows, inner, columns, layout); batch 0 is a plain product of two matrices
SHAPES: list[tuple[int, int, int, int, str]] = [
    *((0, n, n, n, "NN") for n in (32, 64, 128, 256, 512, 768, 1000, 1024, 2048, 4096)),
    *((0, n, n, n, layout) for n in (256, 1024) for layout in ("NT", "TN", "TT")),
    (0, 1, 4096, 4096, "NN"), (0, 1, 4096, 4096, "NT"), (0, 4096, 4096, 1, "NN"), (0, 4096, 4096, 1, "TN"),
    (0, 8, 4096, 4096, "NN"), (0, 16, 1024, 4096, "NT"), (0, 64, 4096, 1024, "NN"), (0, 128, 768, 3072, "NT"),
    (0, 128, 3072, 768, "NT"), (0, 512, 256, 1024, "NN"), (0, 512, 64, 512, "NT"), (0, 2048, 64, 2048, "NN"),
    (0, 64, 2048, 64, "TN"), (0, 4096, 16, 4096, "NN"), (0, 1000, 1000, 1, "NN"), (0, 333, 777, 555, "NN"),
    (0, 1025, 1023, 1027, "NT"), (0, 3072, 768, 128, "NN"), (0, 10, 576, 128, "NT"),
    (12, 128, 32, 128, "NT"), (12, 128, 128, 32, "NN"), (32, 64, 64, 64, "NN"), (64, 16, 16, 16, "NN"),
    (8, 512, 64, 512, "NT"),
]
GROUP = "matrix products"


def name_of(shape: tuple[int, int, int, int, str]) -> str:
    """How a shape is printed: batch x rows x inner x columns, layout."""
    batch, m, k, n, layout = shape
    return f"{f'{batch}x ' if batch else ''}{m}x{k}x{n} {layout}"


def measure(shape: tuple[int, int, int, int, str], rounds: int) -> Record:
    """One shape."""
    batch, m, k, n, layout = shape
    lead = (batch,) if batch else ()
    left, right = (m, k) if layout[0] == "N" else (k, m), (k, n) if layout[1] == "N" else (n, k)
    a, b = arrays((*lead, *left), (*lead, *right))
    out = np.empty((*lead, m, n), dtype=np.float32)
    na, nb = (v if way == "N" else v.swapaxes(-1, -2) for v, way in zip((a, b), layout))

    def ours(x: Tensor, y: Tensor) -> Tensor:
        left, right = (v if way == "N" else v.transpose(-1, -2) for v, way in zip((x, y), layout))
        return left @ right
    flops = 2.0 * max(batch, 1) * m * k * n
    many = max(1, int(2e7 // flops))  # short products are timed in a row
    run = captured(ours, a, b)

    def repeated() -> None:
        for _ in range(many):
            run()

    def numpys() -> None:
        for _ in range(many):
            np.matmul(na, nb, out=out)
    times = {n: s / many for n, s in medians({OURS: repeated, "numpy": numpys}, rounds).items()}
    error = float(np.abs(np.asarray(run().numpy()) - out).max())
    assert error <= 1e-4 * k, f"{name_of(shape)}: {error}"
    size = 4.0 * max(batch, 1) * (m * k + k * n + m * n)
    return Record(GROUP + (", AVX2" if "--avx2" in sys.argv else ""), name_of(shape), times, flops, size,
                  share=0.6, rounds=rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="shapes whose printed form holds this text")
    parser.add_argument("--avx2", action="store_true", help="both held to AVX2")
    args = parser.parse_args()
    ratios = {}
    for shape in SHAPES:
        if args.only in name_of(shape):
            record = measure(shape, args.rounds)
            show(record)
            ratios[record.name] = record.ratio or 0.0
    least = min(ratios, key=lambda n: ratios[n])
    print(f"\n{len(ratios)} shapes: geometric mean {geometric_mean(ratios.values()):.3f} of numpy's speed "
          f"(goal >= 0.9), least {ratios[least]:.3f} at {least} (goal >= 0.6)")


if __name__ == "__main__":
    main()
