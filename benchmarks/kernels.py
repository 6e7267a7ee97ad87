"""Kernels on DEV=CPU beside numpy: a matrix product with explicit Opts and with the hand rules, a large addition.

    DEV=CPU python benchmarks/kernels.py
"""
from __future__ import annotations

import argparse
from collections.abc import Callable

from rounds import fair_numpy, medians, table

fair_numpy()

import numpy as np  # noqa: E402

from tinyhost import Tensor, TinyJit  # noqa: E402
from tinyhost.uop import Opt, OptOps  # noqa: E402

# rows by 6, columns by 2 vectors of 8; columns outside rows outside the sum; the panel of B packed once for each block
# of columns in the order (sum, vector, lane); rows split over two threads
TILE_6X2 = (Opt(OptOps.LANE, 1, 8), Opt(OptOps.UPCAST, 0, 6), Opt(OptOps.UPCAST, 1, 2),
            Opt(OptOps.REORDER, None, (1, 0, 4)), Opt(OptOps.STAGE, 1, (4, 3, 5)), Opt(OptOps.THREAD, 0, 2))


def captured(make: Callable[[], Tensor]) -> Callable[[], None]:
    """A function that replays what ``make`` computes."""
    step = TinyJit(lambda: make().realize())
    for _ in range(3):
        step()

    def run() -> None:
        step()
    return run


def matmul(n: int, rounds: int) -> None:
    """Square float32 product."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    ta, tb = Tensor(a).realize(), Tensor(b).realize()
    results = medians({
        "numpy": lambda: np.matmul(a, b, out=out),
        "tinyhost, explicit Opts": captured(lambda: (ta @ tb).contiguous(TILE_6X2)),
        "tinyhost, hand rules": captured(lambda: (ta @ tb).contiguous()),
    }, rounds)
    error = np.abs((ta @ tb).contiguous(TILE_6X2).numpy() - a.astype(np.float64) @ b.astype(np.float64)).max()
    table(f"matmul {n} float32 (largest error {error:.1e})", results, 2 * n**3 / 1e9, "GFLOP/s")


def add(millions: int, rounds: int) -> None:
    """Element-wise addition into an output that exists."""
    n = millions << 20
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    ta, tb, tc = Tensor(a).realize(), Tensor(b).realize(), Tensor.empty(n).contiguous().realize()
    results = medians({
        "numpy.add(out=)": lambda: np.add(a, b, out=out),
        "tinyhost, output reused": captured(lambda: tc.assign(ta + tb)),
        "tinyhost, fresh output": lambda: (ta + tb).realize(),
    }, rounds)
    table(f"add {millions}M float32", results, 12 * n / 1e9, "GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    for n in (512, 1024, 2048):
        matmul(n, args.rounds)
    add(16, args.rounds)


if __name__ == "__main__":
    main()
