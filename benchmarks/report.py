"""docs/performance.md and its charts from the records of a run.

    python benchmarks/report.py RECORDS.jsonl

Takes the lines of JSON that the benchmarks append to BENCH_RECORDS; writes one table for each group, which goals are
reached, geometric means of the sweeps, and, where matplotlib is installed, charts as PNG in docs/performance/.
"""
from __future__ import annotations

import pathlib
import platform
import sys

from records import OURS, Record, amount, geometric_mean, load

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
CHARTS = ROOT / "docs" / "performance"
HEAD = """# Performance

Written by `make bench` from one run on one machine; ours and all peers take turns in alternating rounds, figures are
medians. Machines are noisy and shared: compare figures of one table only. `benchmarks/` says what each row does.

"""


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions() -> str:
    """Versions of ours and of the peers."""
    import importlib.metadata as metadata
    found = []
    for name in ("tinyhost", "numpy", "torch", "jax", "onnxruntime"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def verdict(record: Record) -> str:
    """Whether the goal is reached, in a word."""
    return {True: "yes", False: "no", None: ""}[record.reached]


def table(records: list[Record]) -> str:
    """One group as a table."""
    peers = list(dict.fromkeys(n for r in records for n in r.seconds if n != OURS))
    ours = [n for n in dict.fromkeys(n for r in records for n in r.seconds) if n == OURS]
    columns = [*ours, *peers]
    rows = [["work", *columns, "best peer / ours", "goal", "reached"]]
    for r in records:
        ratio = r.ratio
        rows.append([r.name, *(amount(r.seconds[c]) if c in r.seconds else "" for c in columns),
                     f"{ratio:.2f}" if ratio is not None else "", r.goal, verdict(r)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def summary(records: list[Record]) -> str:
    """The geometric mean and the least ratio of a sweep."""
    ratios = {r.name: r.ratio for r in records if r.ratio is not None}
    if len(ratios) < 8:
        return ""
    least = min(ratios, key=lambda n: ratios[n] or 0.0)
    mean = geometric_mean(v for v in ratios.values() if v)
    return (f"\nGeometric mean of the best peer's time over ours: {mean:.2f}; least {ratios[least]:.2f} at {least}.\n")


def page(groups: dict[str, list[Record]], charts: list[str]) -> str:
    """The text of docs/performance.md."""
    out = [HEAD, f"{processor()}, {versions()}.\n"]
    for chart in charts:
        out.append(f"\n![{chart}](performance/{chart}.png)\n")
    for group, records in groups.items():
        out += [f"\n## {group[0].upper()}{group[1:]}\n\n", table(records), "\n", summary(records)]
    return "".join(out)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("one argument: the file of records that BENCH_RECORDS named")
    groups: dict[str, list[Record]] = {}
    for record in load(pathlib.Path(sys.argv[1])):
        groups.setdefault(record.group, []).append(record)
    charts: list[str] = []
    try:
        from charts import draw
    except ImportError as e:
        print(f"no charts: {e} (pip install tinyhost[bench])")
    else:
        CHARTS.mkdir(parents=True, exist_ok=True)
        charts = draw(groups, CHARTS)
    text = page(groups, charts)
    scratch = PAGE.with_suffix(".md.new")
    scratch.write_text(text)
    scratch.replace(PAGE)
    reached = [r.reached for records in groups.values() for r in records if r.reached is not None]
    print(f"{PAGE}: {sum(reached)} of {len(reached)} goals reached, charts {', '.join(charts) or 'none'}")


if __name__ == "__main__":
    main()
