"""Charts of a run as PNG: a roofline of the kernels, bars of the ratios to the best peer for each sweep.

``draw`` takes records by group and a folder; gives the names of the charts it wrote. The roofs are measured in the same
run by ``machine.py`` (group "machine"): without them there is no roofline.
"""
from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from records import OURS, Record, geometric_mean

COLOURS = {OURS: "#d1495b", "numpy": "#00798c", "torch": "#edae49", "torch.compile": "#b8860b", "jax": "#30638e",
           "onnxruntime": "#66a182"}


def draw(groups: dict[str, list[Record]], folder: pathlib.Path) -> list[str]:
    """Write the charts."""
    written = []
    machine = {r.name: r for r in groups.get("machine", [])}
    if machine and "kernels" in groups:
        roofline(groups["kernels"], machine, folder / "roofline.png")
        written.append("roofline")
    for group, records in groups.items():
        compared = [r for r in records if r.ratio is not None]
        if compared:
            name = "ratios-" + "-".join("".join(c if c.isalnum() else " " for c in group).split())
            bars(group, compared, folder / f"{name}.png")
            written.append(name)
    return written


def roofline(kernels: list[Record], machine: dict[str, Record], path: pathlib.Path) -> None:
    """Rate over intensity, both logarithmic, under the machine's roofs."""
    peak = max(r.flops / min(r.seconds.values()) for r in machine.values() if r.flops)
    stream = max(r.bytes / min(r.seconds.values()) for r in machine.values() if r.bytes)
    fig, ax = plt.subplots(figsize=(8, 5))
    low, high = 2.0**-5, 2.0**9
    ax.plot([low, peak / stream, high], [low * stream / 1e9, peak / 1e9, peak / 1e9], color="#888888", lw=1.5)
    for r in kernels:
        if not r.flops or not r.bytes:
            continue
        for name, seconds in r.seconds.items():
            ax.scatter(r.flops / r.bytes, r.flops / seconds / 1e9, s=36 if name == OURS else 16,
                       color=COLOURS.get(name, "#999999"), zorder=3 if name == OURS else 2)
        ax.annotate(r.name, (r.flops / r.bytes, r.flops / r.seconds[OURS] / 1e9), fontsize=7,
                    xytext=(4, -9), textcoords="offset points")
    for name, colour in COLOURS.items():
        if any(name in r.seconds for r in kernels):
            ax.scatter([], [], color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="flops per byte", ylabel="GFLOP/s",
           title=f"{peak / 1e9:.0f} GFLOP/s, {stream / 1e9:.0f} GB/s measured")
    ax.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)


def bars(group: str, records: list[Record], path: pathlib.Path) -> None:
    """How many times as fast as the best peer, one bar for each row, sorted."""
    records = sorted(records, key=lambda r: r.ratio or 0.0)
    ratios = [r.ratio or 0.0 for r in records]
    fig, ax = plt.subplots(figsize=(8, 1.2 + 0.2 * len(records)))
    ax.barh(range(len(records)), ratios, color=["#d1495b" if r < 1 else "#66a182" for r in ratios])
    for i, r in enumerate(records):
        peer = r.best_peer
        ax.annotate(f"{r.ratio:.2f} of {peer[0]}" if peer else "", (r.ratio or 0.0, i), fontsize=6, va="center",
                    xytext=(3, 0), textcoords="offset points")
    ax.axvline(1.0, color="#444444", lw=0.8)
    ax.set_yticks(range(len(records)), [r.name for r in records], fontsize=6)
    ax.set(xscale="log", xlabel="best peer's time / ours",
           title=f"{group}: geometric mean {geometric_mean(ratios):.2f}")
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)
