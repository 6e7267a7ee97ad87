"""``tinyhost profile``: run a script, then print what its kernels and the host spent their time on.

The script runs in a process of its own with PROFILE=2, so that every thread of it is recorded; its exit status is
that of the command.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from tinyhost.errors import ProfileError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("profile", help="run a script and print where its time goes")
    parser.add_argument("--trace", metavar="PATH", help="file for the trace, which Perfetto opens")
    parser.add_argument("script", metavar="SCRIPT", help="a Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the program is given")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the script; its exit status, 128 and the signal's number if a signal ended it."""
    script = options.script
    if not os.path.isfile(script):
        what = "it is no file" if os.path.exists(script) else "there is no such file"
        raise ProfileError(f"cannot profile {script}: {what}; give the path of a Python program")
    trace = _checked(options.trace) if options.trace else os.path.join(
        tempfile.mkdtemp(prefix="tinyhost-profile-"), "trace.json")
    status = _wait([sys.executable, script, *options.arguments],
                   {**os.environ, "PROFILE": "2", "PROFILE_PATH": trace})
    if not os.path.exists(trace):
        print(f"tinyhost: nothing was recorded: {script} used no device, or was stopped", file=sys.stderr)
        if not options.trace:
            os.rmdir(os.path.dirname(trace))
    return status if status >= 0 else 128 - status


def _checked(path: str) -> str:
    """The absolute path; a folder that takes no file is an error now, not after a long run."""
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        why = ("it is a folder" if os.path.isdir(path) else f"the folder {folder} does not exist"
               if not os.path.isdir(folder) else f"the folder {folder} cannot be written")
        raise ProfileError(f"cannot write the profile to {path}: {why}; give --trace another path")
    if os.path.exists(path):
        os.unlink(path)  # what is there afterwards is of this run
    return path


def _wait(command: list[str], environment: dict[str, str]) -> int:
    """Run to the end. Ctrl-C reaches the program too, which decides what to do."""
    process = subprocess.Popen(command, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
