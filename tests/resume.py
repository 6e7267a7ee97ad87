"""A pytest plugin for long runs: ``--resume FILE`` leaves out tests that passed in an earlier run of the same code.

FILE's first line is a stamp of every source file of the packages and tests; when it differs, all tests run again. Each
test that passes is appended at once, so a run that is ended loses nothing but the test it was in.
"""
from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def source_stamp() -> str:
    """Hash over all Python files of the packages and the tests."""
    digest = hashlib.sha256()
    for folder in ("tinyhost", "tinyhost_cpu", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


class Resume:
    """Tests that passed, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        stamp = source_stamp()
        lines = path.read_text().splitlines() if path.exists() else []
        self.passed = set(lines[1:]) if lines[:1] == [stamp] else set()
        if not self.passed:
            path.write_text(stamp + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed."""
        done = [i for i in items if i.nodeid in self.passed]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [i for i in items if i.nodeid not in self.passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that passed."""
        if report.when == "call" and report.passed:
            with self.path.open("a") as f:
                f.write(report.nodeid + "\n")
