"""The command ``tinyhost``: what is installed, and what works here.

Each subcommand is a module with `add(subparsers)`, whose parser sets the default `run`, a function from the parsed
arguments to an exit status. The core's own subcommands import no plugin into this process, so they work with every
plugin broken; subcommands of plugins (hook `tinyhost_cli`) are loaded when a command is asked for that the core
does not have.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's); returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        # a malformed DEV or DEBUG is an error of this import, and it is reported as one
        from tinyhost.errors import TinyhostError
    except ImportError as e:
        print(f"tinyhost: the installation is damaged: {e}; reinstall tinyhost", file=sys.stderr)
        return 2
    try:
        options = _parser(arguments).parse_args(arguments)
        status: int = options.run(options)
    except TinyhostError as e:
        print(f"tinyhost: error: {e}", file=sys.stderr)
        return 2
    return status


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    from tinyhost.cli import devices, doctor, info, plugins, profile
    parser = argparse.ArgumentParser(prog="tinyhost", description="A tensor compiler whose core knows no device.")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in (plugins, devices, doctor, info, profile):
        module.add(subparsers)
    asked = next((a for a in arguments if not a.startswith("-")), "")
    if asked and asked not in subparsers.choices:
        from tinyhost.plugin.hooks import hooks
        hooks().call("tinyhost_cli", subparsers=subparsers)
    return parser
