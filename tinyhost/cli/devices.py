"""``tinyhost devices``: which devices and renderers work here, each tried in a process of its own.

A device is probed and opened in one child; then each of its renderers multiplies three numbers in another. A driver
that crashes or hangs is a row of the table.
"""
from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

from tinyhost.cli.table import columns
from tinyhost.env import DEV, TINYHOST_PROBE_TIMEOUT, Context
from tinyhost.plugin.catalog import Record, State, catalog
from tinyhost.plugin.isolate import Outcome, run_isolated
from tinyhost.plugin.metadata import DEVICES
from tinyhost.specs import DRY, STORAGE, DeviceSpec, Tier

OK = "ok"  # what a renderer that works answers
UNUSABLE = (State.DISABLED, State.INCOMPATIBLE, State.AMBIGUOUS)


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("devices", help="try every installed device and renderer, each in its own process")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try all devices and print what came out."""
    rows = examine_all()
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        header = ["NAME", "STATE", "TIER", "COUNT", "DISTRIBUTION", "RENDERERS"]
        print(columns(header, [_cells(r) for r in rows], [_notes(r) for r in rows]))
    return 0


def examine_all() -> list[dict[str, Any]]:
    """One row per installed device that is not mere storage."""
    records = catalog().of(DEVICES)
    tried = [r for r in records if r.state not in UNUSABLE]
    outcomes = dict(zip(map(id, tried), _run("examine", [r.name for r in tried]), strict=True))
    rows = [_row(r, outcomes.get(id(r))) for r in records]
    rows = [row for row in rows if not row.pop("storage")]
    pairs = [(row["name"], renderer) for row in rows if row["state"] == "works" for renderer in row["renderers"]]
    results = dict(zip(pairs, _run("multiply", [list(p) for p in pairs]), strict=True))
    for (name, renderer), outcome in results.items():
        row = next(r for r in rows if r["name"] == name)
        row["renderers"][renderer] = outcome.failure or outcome.value
    return rows


def examine(name: str) -> dict[str, Any]:
    """In a child: probe and open a device."""
    spec: DeviceSpec = catalog().load(catalog().device(name))
    found: dict[str, Any] = {"storage": STORAGE in spec.roles, "tier": "", "count": 0, "reason": "", "state": "works",
                             "interfaces": {i.name: "mock" if i.mock else "" for i in spec.interfaces},
                             "env": {e.name: e.doc for e in spec.env}, "docs": spec.docs, "renderers": _renderers(spec)}
    if found["storage"]:
        return found
    if spec.probe:
        from tinyhost.plugin.child import probe_entry
        record = catalog().device(name)
        probe = probe_entry((record.name, record.entry.value))
        found |= {"tier": tier_name(probe["tier"]), "count": probe["count"], "reason": probe["reason"]}
        if not probe["ok"] and not DEV.target(name).interface:
            return found | {"state": "unavailable"}
    from tinyhost.device.registry import Device
    try:
        Device[name].synchronize()
    except Exception as e:  # the row says what happened
        return found | {"state": "unavailable", "reason": str(e)}
    return found


def multiply(pair: tuple[str, str]) -> str:
    """In a child: OK when [1, 2, 3] times 2 is [2, 4, 6] with the device's renderer, else what it is."""
    name, renderer = pair
    from tinyhost import Tensor
    spec: DeviceSpec = catalog().load(catalog().device(name))
    target = DEV.target(name)
    if target.renderer != renderer:  # DEV may be about another one, and its arch with it
        target = replace(target, renderer=renderer, arch="")
    with Context(DEV=target):
        result = Tensor([1, 2, 3], device=name) * 2
        if DRY in spec.roles:
            result.realize()
            return OK
        values = result.tolist()
    return OK if values == [2, 4, 6] else f"[1, 2, 3] * 2 gave {values}"


def tier_name(tier: int) -> str:
    """The word for a tier, or its number."""
    return Tier(tier).name.lower() if tier in list(Tier) else str(tier)


def _renderers(spec: DeviceSpec) -> dict[str, str]:
    own = [n.partition(".")[2] if n.startswith(spec.name + ".") else n for n in spec.renderers]
    return dict.fromkeys(own + [r.name.partition(".")[2] for r in catalog().renderers_of(spec.name)], "")


def _run(function: str, arguments: list[Any]) -> list[Outcome]:
    return run_isolated(f"tinyhost.cli.devices:{function}", arguments, TINYHOST_PROBE_TIMEOUT.value)


def _row(record: Record, outcome: Outcome | None) -> dict[str, Any]:
    provider = record.entry.provider
    row: dict[str, Any] = {
        "name": record.name, "state": str(record.state), "tier": "", "count": 0,
        "distribution": provider.distribution, "version": provider.version, "path": record.entry.path(),
        "reason": record.reason, "interfaces": {}, "renderers": {}, "env": {}, "docs": "", "storage": False}
    if outcome is None:
        return row
    if outcome.failure:
        return row | {"state": "broken", "reason": "\n".join(filter(None, (outcome.failure, outcome.stderr)))}
    row |= outcome.value
    return row


def _cells(row: dict[str, Any]) -> list[str]:
    renderers = [name if result in (OK, "") else f"{name} (fails)" for name, result in row["renderers"].items()]
    return [row["name"], row["state"], row["tier"], str(row["count"] or ""), f"{row['distribution']} {row['version']}",
            ", ".join(renderers)]


def _notes(row: dict[str, Any]) -> str:
    failed = [f"{name}: {result}" for name, result in row["renderers"].items() if result not in (OK, "")]
    return "\n".join(filter(None, [row["reason"], *failed]))
