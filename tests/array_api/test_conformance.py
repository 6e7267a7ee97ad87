"""Every row of docs/array-api.md is a test; rows with a stated deviation must fail as long as it is stated."""
from __future__ import annotations

from pathlib import Path

import array_api_strict as sx
import pytest

import tinyhost.array_api as xp
from tinyhost import Context

from . import elementwise as elementwise
from . import functions as functions
from . import linalg as linalg
from . import objects as objects
from . import reductions as reductions
from .entries import DEVIATIONS, ENTRIES, OUTSIDE, Entry
from .table import counts, text

DOC = Path(__file__).resolve().parents[2] / "docs" / "array-api.md"


@pytest.mark.parametrize("row", ENTRIES, ids=lambda e: f"{e.section}: {e.key}")
def test_row(row: Entry) -> None:
    if row.key not in DEVIATIONS:
        row.check()
        return
    with pytest.raises(Exception):  # noqa: B017  any way to fail is the deviation
        row.check()


@pytest.mark.soak
@pytest.mark.parametrize("row", ENTRIES, ids=lambda e: f"{e.section}: {e.key}")
def test_row_on_the_reference_device(row: Entry) -> None:
    with Context(DEV="PYTHON"):
        test_row(row)


def test_rows_are_unique_and_deviations_exist() -> None:
    keys = [(e.section, e.key) for e in ENTRIES]
    assert len(set(keys)) == len(keys) and DEVIATIONS.keys() <= {e.key for e in ENTRIES}


def test_the_whole_standard_has_rows() -> None:
    """Every public name of the oracle is ours too, or stands in OUTSIDE."""
    ours = {n for n in dir(xp) if not n.startswith("_")}
    theirs = {n for n in dir(sx) if not n.startswith("_")} - functions._NOT_STANDARD
    theirs -= {"ArrayAPIStrictFlags", "Device", "ModuleType"}
    assert theirs - ours <= set(OUTSIDE)
    theirs_linalg = set(sx.linalg.__all__)
    assert {f"linalg.{n}" for n in theirs_linalg - set(xp.linalg.__all__)} <= set(OUTSIDE)
    words = {w for e in ENTRIES if e.section != "Signatures" for w in e.name.replace(",", " ").split()}
    assert {n for n in functions.SIGNATURES if n not in words} == set()
    assert {n for n in functions.LINALG_SIGNATURES if n not in words} == set()
    assert set(xp.__all__) == {n for n in xp.__all__ if hasattr(xp, n)}


def test_at_least_95_percent_hold() -> None:
    held, total = counts()
    assert held / total >= 0.95, (held, total)


def test_the_page_is_what_the_rows_say() -> None:
    assert DOC.read_text() == text(), "run: python -m tests.array_api.table"
