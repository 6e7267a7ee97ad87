"""Threads that build and realize random programs at once: every result right, and all of them come to an end.

Each test runs in a process of its own, which prints the stacks of all threads and ends when nothing was finished for a
while: a deadlock is a failure with a traceback.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 100  # seconds in which some thread must finish a program


def run(threads: int, programs: int, seconds: int, first: int) -> int:
    """How many programs the threads ran: ``programs`` each, then more until ``seconds`` are over."""
    args = [threads, programs, seconds, first, PATIENCE]
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-m", "tests.soak.threads", *map(str, args)],
                          cwd=ROOT, env={**os.environ, "SPEC": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-12000:]}"
    return int(done.stdout.split()[-1])


def test_eight_threads():
    assert run(8, 2, 0, 0) == 16


@pytest.mark.soak
@pytest.mark.parametrize("first", [1000, 2000])
def test_eight_threads_for_a_minute(first: int):
    assert run(8, 1, 60, first) >= 8
