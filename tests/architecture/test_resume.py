"""``--resume`` leaves out what passed, and only that."""
from __future__ import annotations

from pathlib import Path

from tests.resume import Resume, source_stamp


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


class Config:
    class hook:
        @staticmethod
        def pytest_deselected(items: list[Item]) -> None:
            Config.left_out = [i.nodeid for i in items]


class Report:
    def __init__(self, nodeid: str, when: str = "call", passed: bool = True) -> None:
        self.nodeid, self.when, self.passed = nodeid, when, passed


def collect(path: Path) -> list[str]:
    items = [Item("a"), Item("b"), Item("c")]
    Resume(path).pytest_collection_modifyitems(Config, items)
    return [i.nodeid for i in items]


def test_passed_tests_are_left_out(tmp_path: Path):
    path = tmp_path / "passed"
    run = Resume(path)
    for report in (Report("a"), Report("b", passed=False), Report("c", when="setup")):
        run.pytest_runtest_logreport(report)
    assert collect(path) == ["b", "c"] and Config.left_out == ["a"]


def test_changed_code_runs_all_again(tmp_path: Path):
    path = tmp_path / "passed"
    path.write_text("another stamp\na\n")
    assert collect(path) == ["a", "b", "c"]
    assert path.read_text() == source_stamp() + "\n"
