"""``tinyhost info``: versions, machine, variables and plugins, for bug reports. Imports no plugin and opens nothing."""
from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tinyhost.cli.plugins import row
from tinyhost.env import snapshot
from tinyhost.plugin.catalog import catalog

_PACKAGES = ("numpy", "pluggy", "packaging", "llvmlite")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("info", help="versions and settings, for bug reports")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what a bug report should hold."""
    found = collect()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items()) or "none"
        elif isinstance(value, list):
            value = ", ".join("{name} {state} ({distribution} {version})".format(**p) for p in value) or "none"
        print(f"{name}: {value}")
    return 0


def collect() -> dict[str, Any]:
    """Versions, machine, changed variables and installed plugins as plain data."""
    return {
        "tinyhost": catalog().core_version or "not installed",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": {p: v for p in _PACKAGES if (v := _version(p))},
        "variables": {name: str(value) for name, value in {**_set_outside(), **snapshot()}.items()},
        "plugins": [{k: v for k, v in row(r).items() if k != "path"} for r in catalog().records],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _set_outside() -> dict[str, Any]:
    """Variables of the environment that tinyhost reads."""
    from tinyhost.env import VARIABLES
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
