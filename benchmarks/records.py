"""What a benchmark measured, as data: printed as a table, kept as lines of JSON for the report and its charts.

A ``Record`` is one piece of work with the median seconds of each contender; ours is called ``tinyhost``. Programs print
records with ``show``; where the variable BENCH_RECORDS names a file, each is appended there as a line of JSON, which
``report.py`` reads back.
"""
from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Iterable

OURS = "tinyhost"


@dataclasses.dataclass(frozen=True)
class Record:
    """One row: ``seconds`` by contender, in the order they ran.

    ``flops`` and ``bytes`` are what the work needs at least, for rates and the roofline. ``goal`` says in words what
    is asked of us, ``limit`` is the most seconds the goal allows where it is a number, ``share`` the least ratio of
    the best peer's time to ours where it is a comparison.
    """

    group: str
    name: str
    seconds: dict[str, float]
    flops: float = 0.0
    bytes: float = 0.0
    goal: str = ""
    limit: float | None = None
    share: float | None = None
    rounds: int = 0

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """Name and seconds of the fastest contender that is not ours."""
        peers = {n: s for n, s in self.seconds.items() if not n.startswith(OURS)}
        return min(peers.items(), key=lambda kv: kv[1]) if peers else None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer ours is; None without a peer or without us."""
        peer = self.best_peer
        return peer[1] / self.seconds[OURS] if peer is not None and OURS in self.seconds else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if OURS not in self.seconds:
            return None
        if self.limit is not None:
            return self.seconds[OURS] <= self.limit
        ratio = self.ratio
        return None if self.share is None or ratio is None else ratio >= self.share


def show(record: Record) -> None:
    """Print a record and keep it."""
    print(f"\n{record.name}" + (f"  (goal: {record.goal})" if record.goal else ""))
    ours = record.seconds.get(OURS) or next(iter(record.seconds.values()))
    for name, s in record.seconds.items():
        rates = [f"{record.flops / s / 1e9:8.1f} GFLOP/s" if record.flops else "",
                 f"{record.bytes / s / 1e9:7.1f} GB/s" if record.bytes else ""]
        print(f"  {name:26s} {amount(s):>12s} {' '.join(r for r in rates if r):30s} x{s / ours:6.2f}", flush=True)
    where = os.environ.get("BENCH_RECORDS")
    if where:
        with open(where, "a") as f:
            f.write(json.dumps(dataclasses.asdict(record)) + "\n")


def amount(seconds: float) -> str:
    """Seconds in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3f} {unit}"
    return f"{seconds * 1e6:.1f} us"


def load(path: pathlib.Path) -> list[Record]:
    """The records of a file, the last one where a name was measured twice."""
    found: dict[tuple[str, str], Record] = {}
    for line in path.read_text().splitlines():
        record = Record(**json.loads(line))
        found[record.group, record.name] = record
    return list(found.values())


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers; 0 of none."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else 0.0
