"""What training holds: peak memory of the step of `examples/train_mnist.py` beside torch's, and growth over many steps.

Each figure comes from a fresh process: its resident size after import and creation of the model and optimizer, the peak
of it during the training loop above that (VmHWM, Linux only), medians of a few processes. Ours is measured with an
empty disk cache and again with a filled one; compiling is a part of the loop. `--growth N` sets how many steps the
second part runs (0: none); it counts what is alive at a tenth of them and at the end.
"""
from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

MIB = 1 << 20


def digits(batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images (batch, 1, 28, 28) and labels (batch,)."""
    rng = np.random.default_rng(0)
    return rng.random((batch, 1, 28, 28), dtype=np.float32), rng.integers(0, 10, batch).astype(np.int32)


# *** the contenders ***
def ours(width: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """One captured training step; model and optimizer exist."""
    from networks import digits_step

    from tinyhost import Tensor
    _, step = digits_step(width)
    return lambda images, labels: float(step(Tensor(images), Tensor(labels)).item())


def torch(width: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """The same step as a torch user writes it."""
    import torch as t
    from torch_models import Digits, training_step
    model = Digits(width)
    opt = t.optim.Adam(model.parameters(), lr=1e-3)
    return lambda images, labels: float(training_step(model, opt, t.from_numpy(images),
                                                      t.from_numpy(labels).long()).item())


CONTENDERS: dict[str, Callable[[int], Callable[[np.ndarray, np.ndarray], float]]] = {"tinyhost": ours, "torch": torch}


# *** in the child ***
def status(field: str) -> int:
    """A line of /proc/self/status, bytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def alive() -> dict[str, int]:
    """Objects and bytes that live in this process."""
    gc.collect()
    from tinyhost import GlobalCounters, Tensor
    from tinyhost.device import Buffer
    from tinyhost.uop import UOp
    objects = gc.get_objects()
    counts = {cls.__name__: sum(type(o) is cls for o in objects) for cls in (Tensor, UOp, Buffer)}
    return {**counts, "mem_used": GlobalCounters.mem_used}


def peak(name: str, batch: int, steps: int) -> dict[str, Any]:
    """Bytes resident before the loop, and the peak above."""
    step = CONTENDERS[name](32)
    images, labels = digits(batch)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    losses = [step(images.copy(), labels.copy()) for _ in range(steps)]
    return {"before": before, "peak": status("VmHWM") - before, "after": status("VmRSS") - before, "loss": losses[-1]}


def growth(name: str, batch: int, steps: int) -> dict[str, Any]:
    """What lives after a tenth of the steps, and after all of them."""
    step = CONTENDERS[name](8)
    images, labels = digits(batch)
    seen: list[dict[str, int]] = []
    for i in range(1, steps + 1):
        step(images.copy(), labels.copy())
        if i in (steps // 10, steps):
            counts = alive() if name == "tinyhost" else {}  # counting takes memory itself
            seen.append({**counts, "resident": status("VmRSS")})
    return {"early": seen[0], "late": seen[-1]}


CHILDREN: dict[str, Callable[[str, int, int], dict[str, Any]]] = {"peak": peak, "growth": growth}


# *** in the parent ***
def child(what: str, name: str, batch: int, steps: int, cache: str) -> dict[str, Any]:
    """The report of a fresh process."""
    command = [sys.executable, __file__, "--child", what, "--of", name, "--batch", str(batch), "--steps", str(steps)]
    env = {**os.environ, "CACHEDIR": cache} if cache else dict(os.environ)
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if out.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{out.stderr}")
    report: dict[str, Any] = json.loads(out.stdout.splitlines()[-1])
    return report


def compare(batch: int, steps: int, rounds: int) -> None:
    """Print the peaks and their ratios."""
    names = ["tinyhost, empty disk cache", "tinyhost, filled disk cache"]
    names += ["torch"] if importlib.util.find_spec("torch") else []
    reports: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                reports[name].append(child("peak", name.split(",")[0], batch, steps, os.path.join(folder, "cache")))
    print(f"\nMNIST step, batch {batch}, {steps} steps, MiB above import and model (medians of {rounds} processes)")
    last = statistics.median(r["peak"] for r in reports[names[-1]])
    for name, found in reports.items():
        before, top, after = (statistics.median(r[k] for r in found) for k in ("before", "peak", "after"))
        ratio = f"  x{top / last:5.2f} of {names[-1]}" if name != names[-1] else ""
        print(f"  {name:28s} peak {top / MIB:7.1f}  at the end {after / MIB:7.1f}  (before {before / MIB:6.1f}){ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", type=int, default=10_000)
    parser.add_argument("--child", choices=sorted(CHILDREN), help=argparse.SUPPRESS)
    parser.add_argument("--of", choices=sorted(CONTENDERS), default="tinyhost", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(CHILDREN[args.child](args.of, args.batch, args.steps)))
        return
    if args.rounds:
        compare(args.batch, args.steps, args.rounds)
    if args.growth:
        report = child("growth", "tinyhost", 16, args.growth, "")
        print(f"\ngrowth of a small step, after {args.growth // 10} and {args.growth} steps")
        for key, early in report["early"].items():
            print(f"  {key:10s} {early:12,d} -> {report['late'][key]:12,d}")


if __name__ == "__main__":
    main()
