"""Kernels on DEV=CPU beside every installed peer: products, a convolution, element-wise work, sums, a softmax.

    DEV=CPU python benchmarks/kernels.py [NAME ...]

Each row runs all contenders in alternating rounds and prints medians. Goals are those of docs/performance.md.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable

from rounds import fair_numpy, medians

fair_numpy()

import numpy as np  # noqa: E402
from peers import arrays, captured, has, jax_runs, numpy_run, torch_module, torch_runs  # noqa: E402
from records import OURS, Record, show  # noqa: E402

from tinyhost import Tensor  # noqa: E402

GROUP = "kernels"


def matmul(n: int, rounds: int) -> None:
    """Square float32 product."""
    a, b = arrays((n, n), (n, n))
    out = np.empty_like(a)
    runs = {OURS: captured(lambda x, y: x @ y, a, b), **numpy_run(lambda: np.matmul(a, b, out=out)),
            **torch_runs("", lambda x, y: x @ y, a, b), **jax_runs(lambda x, y: x @ y, a, b)}
    show(Record(GROUP, f"matmul {n}", medians(runs, rounds), 2.0 * n**3, 12.0 * n * n, ">= 0.95 of the best peer",
                share=0.95, rounds=rounds))


def conv(rounds: int) -> None:
    """8x64x56x56, 64 out, 3x3, padding 1."""
    x, w = arrays((8, 64, 56, 56), (64, 64, 3, 3))
    runs = {OURS: captured(lambda x, w: x.conv2d(w, padding=1), x, w)}
    if has("torch"):
        runs |= torch_runs("", lambda x, w: torch_module().nn.functional.conv2d(x, w, padding=1), x, w)

    def lax(x: object, w: object) -> object:
        import jax
        return jax.lax.conv(x, w, (1, 1), "SAME")
    runs |= jax_runs(lax, x, w)
    show(Record(GROUP, "conv 8x64x56x56, 64 out, 3x3", medians(runs, rounds), 2.0 * 8 * 64 * 56 * 56 * 64 * 9,
                4.0 * (2 * x.size + w.size), ">= the best peer", share=1.0, rounds=rounds))


def add_reused(rounds: int) -> None:
    """16M elements into an output that exists."""
    a, b = arrays((1 << 24,), (1 << 24,))
    out = np.empty_like(a)
    kept = Tensor.empty(1 << 24).contiguous().realize()
    runs = {OURS: captured(lambda x, y: kept.assign(x + y), a, b), **numpy_run(lambda: np.add(a, b, out=out))}
    if has("torch"):
        torch = torch_module()
        ta, tb, tc = (torch.from_numpy(v) for v in (a, b, out.copy()))
        runs["torch"] = lambda: torch.add(ta, tb, out=tc)
    show(Record(GROUP, "add 16M, output reused", medians(runs, rounds), a.size, 12.0 * a.size, "<= 3.5 ms",
                limit=3.5e-3, rounds=rounds))


def add_fresh(rounds: int) -> None:
    """16M elements into new memory."""
    a, b = arrays((1 << 24,), (1 << 24,))
    ta, tb = Tensor(a).clone().realize(), Tensor(b).clone().realize()
    runs = {OURS: lambda: (ta + tb).realize(), **numpy_run(lambda: a + b),
            **torch_runs("", lambda x, y: x + y, a, b), **jax_runs(lambda x, y: x + y, a, b)}
    show(Record(GROUP, "add 16M, fresh output", medians(runs, rounds), a.size, 12.0 * a.size, "<= 8 ms",
                limit=8e-3, rounds=rounds))


def total(rounds: int) -> None:
    """Sum of 16M elements."""
    (a,) = arrays((1 << 24,))
    runs = {OURS: captured(lambda x: x.sum(), a), **numpy_run(lambda: a.sum()), **torch_runs("", lambda x: x.sum(), a),
            **jax_runs(lambda x: x.sum(), a)}
    show(Record(GROUP, "sum 16M", medians(runs, rounds), a.size, 4.0 * a.size, "<= 1.03 ms", limit=1.03e-3,
                rounds=rounds))


def gelu(rounds: int) -> None:
    """Its tanh form, 16M elements."""
    (a,) = arrays((1 << 24,))
    runs = {OURS: captured(lambda x: x.gelu(), a),
            **numpy_run(lambda: 0.5 * a * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a * a * a))))}
    if has("torch"):
        runs |= torch_runs("", lambda x: torch_module().nn.functional.gelu(x, approximate="tanh"), a)

    def jax_gelu(x: object) -> object:
        import jax
        return jax.nn.gelu(x, approximate=True)
    runs |= jax_runs(jax_gelu, a)
    show(Record(GROUP, "gelu (tanh) 16M", medians(runs, rounds), 0.0, 8.0 * a.size, "<= 5 ms", limit=5e-3,
                rounds=rounds))


def softmax(rounds: int) -> None:
    """Along rows of 1,024."""
    (a,) = arrays((4096, 1024))

    def plain() -> object:
        e = np.exp(a - a.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    runs = {OURS: captured(lambda x: x.softmax(1), a), **numpy_run(plain), **torch_runs("", lambda x: x.softmax(1), a)}

    def jax_softmax(x: object) -> object:
        import jax
        return jax.nn.softmax(x, axis=1)
    runs |= jax_runs(jax_softmax, a)
    show(Record(GROUP, "softmax 4096x1024", medians(runs, rounds), 0.0, 8.0 * a.size, "<= the best peer", share=1.0,
                rounds=rounds))


def small(rounds: int) -> None:
    """One eager addition of 16 elements."""
    (a,) = arrays((16,))
    t = Tensor(a).clone().realize()
    many = 200

    def ours() -> None:
        for _ in range(many):
            (t + 1).realize()

    def numpys() -> None:
        for _ in range(many):
            a + 1
    runs: dict[str, Callable[[], object]] = {OURS: ours, **numpy_run(numpys)}
    if has("torch"):
        torch = torch_module()
        ta = torch.from_numpy(a)

        def torchs() -> None:
            for _ in range(many):
                ta + 1
        runs["torch"] = torchs
    times = {n: s / many for n, s in medians(runs, rounds).items()}
    show(Record(GROUP, "eager (a+1).realize(), 16 elements", times, goal="<= 100 us", limit=100e-6, rounds=rounds))


ROWS: dict[str, Callable[[int], None]] = {
    "matmul512": lambda rounds: matmul(512, rounds),
    "matmul1024": lambda rounds: matmul(1024, rounds),
    "matmul2048": lambda rounds: matmul(2048, rounds),
    "conv": conv,
    "add": add_reused,
    "fresh": add_fresh,
    "sum": total,
    "gelu": gelu,
    "softmax": softmax,
    "eager": small,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", help=f"some of {', '.join(ROWS)}; all by default")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    unknown = sorted(set(args.rows) - set(ROWS))
    if unknown:
        parser.error(f"no row named {', '.join(unknown)}: there are {', '.join(ROWS)}")
    for name in args.rows or ROWS:
        ROWS[name](args.rounds)


if __name__ == "__main__":
    main()
