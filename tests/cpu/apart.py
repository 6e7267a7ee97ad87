"""Programs in processes of their own: for faults, forks and interrupts that a test run must not see."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import ctypes, signal
from tests.cpu.native import *
from tinyhost.errors import KernelFault
from tinyhost_cpu.workers import pool as made
pool = made()
cell = Cell()
pool.run("add", function(add).address, [cell.address, 1], 2)
"""


def run_apart(program: str, expected: str | set[str], **env: str) -> None:
    """The program in a process of its own, with more in the environment, prints this (a set: these lines in any order)
    and ends well."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(program)], capture_output=True, text=True,
                          cwd=ROOT, timeout=60, env={**os.environ, "PYTHONPATH": ".", **env})
    assert done.returncode == 0, done.stderr
    good = done.stdout == expected if isinstance(expected, str) else set(done.stdout.splitlines()) == expected
    assert good, f"expected {expected!r}, got {done.stdout!r}"
