"""Documents: every Python block runs, device strings parse, files that are named exist, examples are right."""
from __future__ import annotations

import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tinyhost.target import parse_targets

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted([*ROOT.glob("tinyhost_*/README.md"), *ROOT.glob("docs/**/*.md")])]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(page.relative_to(ROOT), i, text) for page in PAGES
          for i, text in enumerate(BLOCK.findall(page.read_text()))]
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for package in ("tinyhost", "tinyhost_cpu")
                 for path in (ROOT / package).rglob("*.py") if ">>> " in path.read_text())
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_block(code: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """A block in a process of its own, warnings as errors, on the CPU."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=folder, env={**os.environ, "DEV": "CPU"}, capture_output=True, text=True)


@pytest.mark.parametrize("page,number,code", BLOCKS, ids=[f"{page}-{i}" for page, i, _ in BLOCKS])
def test_python_blocks_run(page: pathlib.Path, number: int, code: str, tmp_path: pathlib.Path) -> None:
    done = run_block(code, tmp_path)
    assert done.returncode == 0, f"block {number} of {page}: {done.stderr}"


def test_the_first_block_prints_what_it_computes(tmp_path: pathlib.Path) -> None:
    code = next(text for page, _, text in BLOCKS if str(page) == "README.md")
    assert run_block(code, tmp_path).stdout.split() == ["0.25", "[[3.0],", "[4.0]]"]


@pytest.mark.parametrize("dev", re.findall(r"^\| `([A-Z][^`]+)` \|", PAGES[0].read_text(), re.MULTILINE))
def test_device_strings_parse(dev: str) -> None:
    assert parse_targets(dev)[0].device


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_to_files(page: pathlib.Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_index_names_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text()
    for page in docs.glob("**/*.md"):
        if page.name != "README.md":
            assert f"({page.relative_to(docs).as_posix()})" in index, f"docs/README.md does not name {page.name}"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(p.name[:4]) for p in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=OPTIONS)
    assert tried and not failed
