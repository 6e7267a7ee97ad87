"""The disk cache: whole entries or none, private, silent after one warning."""
from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tinyhost.engine import diskcache
from tinyhost.env import Context
from tinyhost.errors import CacheWarning


@pytest.fixture
def folder(tmp_path: Path):
    diskcache.reset()
    with Context(CACHEDIR=str(tmp_path / "cache"), CACHELEVEL=2):
        yield tmp_path / "cache"
    diskcache.reset()


def entry(folder: Path) -> Path:
    return next(p for p in folder.rglob("*") if p.is_file())


def test_round_trip(folder: Path):
    assert diskcache.get("program", "k") is None
    diskcache.put("program", "k", b"payload")
    assert diskcache.get("program", "k") == b"payload"
    assert diskcache.counters.hits == {"program": 1} and diskcache.counters.misses == {"program": 1}
    assert oct(folder.stat().st_mode)[-3:] == "700"


def test_levels(folder: Path):
    with Context(CACHELEVEL=1):
        diskcache.put("schedule", "k", b"x", level=2)
    assert not folder.exists() or not any(p.is_file() for p in folder.rglob("*"))


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "magic"])
def test_damaged_entry_is_one_warning_and_made_again(folder: Path, damage: str):
    diskcache.put("program", "k", b"payload" * 10)
    data = entry(folder).read_bytes()
    broken = {"truncate": data[:-3], "flip": data[:-1] + bytes([data[-1] ^ 1]), "empty": b"", "magic": b"X" + data[1:]}
    entry(folder).write_bytes(broken[damage])
    with pytest.warns(CacheWarning, match="a disk cache entry of .* is damaged .*it is made again"):
        assert diskcache.get("program", "k") is None
    assert not any(p.is_file() for p in folder.rglob("*"))
    diskcache.put("program", "k", b"new")
    assert diskcache.get("program", "k") == b"new"


def test_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    diskcache.reset()
    with Context(CACHEDIR=str(tmp_path / "file" / "cache")):
        with pytest.warns(CacheWarning, match="no disk cache at .*Set CACHEDIR to a writable folder, or CACHELEVEL=0"):
            diskcache.put("program", "k", b"x")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert diskcache.get("program", "k") is None  # the second time is silent
    diskcache.reset()


def test_folder_that_others_can_write(tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    diskcache.reset()
    with Context(CACHEDIR=str(shared)), pytest.warns(CacheWarning, match="others can write there, and its entries are "
                                                                         "executed"):
        assert diskcache.get("program", "k") is None
    diskcache.reset()


def test_many_processes_write_one_entry(folder: Path):
    code = ("from tinyhost.engine import diskcache\nfor i in range(200):\n    diskcache.put('program', 'k', b'abc' * "
            "1000)\n    assert diskcache.get('program', 'k') == b'abc' * 1000\n")
    env = dict(os.environ, CACHEDIR=str(folder), CACHELEVEL="2")
    children = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=env) for _ in range(3)]
    assert [c.wait(timeout=60) for c in children] == [0, 0, 0]
    assert diskcache.get("program", "k") == b"abc" * 1000
    assert len([p for p in folder.rglob("*") if p.is_file()]) == 1
