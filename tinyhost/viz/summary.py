"""Sums of a profile as text: kernels by total time with their rates, the host's time by phase.

Takes events; gives a table of what ran on devices, one row a kernel, and one of host ranges, one row a phase. A
phase's time leaves out the ranges inside of it, so that the rows of a thread add up.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tinyhost.cli.table import columns
from tinyhost.events import ProfileEvent, ProfileKernelEvent, ProfileRangeEvent, kernels_of


@dataclass
class KernelSum:
    """All launches of one name on one device; times in ns."""

    device: str
    name: str
    count: int = 0
    ns: int = 0
    ops: int = 0
    nbytes: int = 0


@dataclass
class PhaseSum:
    """All ranges of one phase; ``ns`` without the ranges inside of them."""

    name: str
    count: int = 0
    ns: int = 0


def kernel_sums(kernels: Iterable[ProfileKernelEvent]) -> list[KernelSum]:
    """One sum a device and name, the longest first."""
    sums: dict[tuple[str, str], KernelSum] = {}
    for k in kernels:
        row = sums.setdefault((k.device, k.name), KernelSum(k.device, k.name))
        row.count += 1
        row.ns += k.en - k.st
        row.ops += k.ops
        row.nbytes += k.nbytes
    return sorted(sums.values(), key=lambda r: (-r.ns, r.device, r.name))


def phase_sums(events: Iterable[ProfileEvent]) -> list[PhaseSum]:
    """One sum a phase, or a name where the program marked the range itself, the longest first."""
    by_thread: dict[int, list[ProfileRangeEvent]] = defaultdict(list)
    for e in events:
        if isinstance(e, ProfileRangeEvent):
            by_thread[e.thread].append(e)
    sums: dict[str, PhaseSum] = {}
    for ranges in by_thread.values():
        open_ranges: list[ProfileRangeEvent] = []
        for e in sorted(ranges, key=lambda e: (e.st, -e.en)):
            while open_ranges and open_ranges[-1].en <= e.st:
                open_ranges.pop()
            if open_ranges:
                _phase(sums, open_ranges[-1]).ns -= min(e.en, open_ranges[-1].en) - e.st
            row = _phase(sums, e)
            row.count += 1
            row.ns += e.en - e.st
            open_ranges.append(e)
    return sorted(sums.values(), key=lambda r: (-r.ns, r.name))


def _phase(sums: dict[str, PhaseSum], e: ProfileRangeEvent) -> PhaseSum:
    name = str(e.name) if e.category == "user" else e.category
    return sums.setdefault(name, PhaseSum(name))


def summary(events: Sequence[ProfileEvent], rows: int = 20) -> str:
    """Both tables as text; of kernels the ``rows`` that took longest."""
    kernels = kernel_sums(kernels_of(events))
    total = sum(k.ns for k in kernels)
    table = [[k.device, k.name, str(k.count), f"{k.ns / 1e6:.3f}", f"{100 * k.ns / total if total else 0:.1f}%",
              *_rates(k)] for k in kernels[:rows]]
    out = [columns(["DEVICE", "KERNEL", "COUNT", "MS", "SHARE", "GFLOP/S", "GB/S"], table)]
    if len(kernels) > rows:
        out.append(f"and {len(kernels) - rows} more kernels, {sum(k.ns for k in kernels[rows:]) / 1e6:.3f} ms")
    count, ops, nbytes = (sum(getattr(k, f) for k in kernels) for f in ("count", "ops", "nbytes"))
    out.append(f"{count} launches, {total / 1e6:.3f} ms, {ops / 1e9:.3f} GFLOP, {nbytes / 1e9:.3f} GB")
    if phases := phase_sums(events):
        out += ["", columns(["HOST", "COUNT", "MS"], [[p.name, str(p.count), f"{p.ns / 1e6:.3f}"] for p in phases])]
    return "\n".join(out)


def _rates(k: KernelSum) -> list[str]:
    return ["-", "-"] if k.ns <= 0 else [f"{k.ops / k.ns:.2f}", f"{k.nbytes / k.ns:.2f}"]
