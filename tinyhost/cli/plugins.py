"""``tinyhost plugins``: every installed device, renderer and hook module, from metadata alone."""
from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from tinyhost.cli.table import columns
from tinyhost.plugin.catalog import Record, catalog, not_installed


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("plugins", help="list what is installed, without importing any of it")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the catalog."""
    rows = [row(record) for record in catalog().records]
    if options.json:
        print(json.dumps(rows, indent=2))
    elif rows:
        cells = [[r["name"], r["kind"], r["state"], f"{r['distribution']} {r['version']}", r["entry_point"]]
                 for r in rows]
        print(columns(["NAME", "KIND", "STATE", "DISTRIBUTION", "ENTRY POINT"], cells, [r["reason"] for r in rows]))
    if not catalog().installed:
        print("tinyhost: " + not_installed("a device"), file=sys.stderr)
        return 1
    return 0


def row(record: Record) -> dict[str, Any]:
    """What is known of a record, as plain data."""
    provider = record.entry.provider
    return {"name": record.name, "kind": record.kind, "state": str(record.state), "distribution": provider.distribution,
            "version": provider.version, "entry_point": record.entry.value, "path": record.entry.path(),
            "reason": record.reason}
