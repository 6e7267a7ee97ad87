"""What the table of the standard has a row for: a section, a name, an aspect, and the check behind the verdict.

A check raises where tinyhost does not do what the standard wants. ``DEVIATIONS`` lists the rows whose check must fail,
with the reason; ``OUTSIDE`` the names that need complex numbers.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One row; ``dynamic`` marks shapes that depend on data."""

    section: str
    name: str
    aspect: str
    check: Callable[[], None]
    dynamic: bool = False

    @property
    def key(self) -> str:
        """Unique text of the row."""
        return f"{self.name}: {self.aspect}"


ENTRIES: list[Entry] = []

DEVIATIONS: dict[str, str] = {}

OUTSIDE = {
    "complex64": "no complex dtypes", "complex128": "no complex dtypes", "fft": "the extension needs complex numbers",
    "linalg.eig": "results are complex", "linalg.eigvals": "results are complex"}


def entry(section: str, name: str, aspect: str = "values", dynamic: bool = False) -> Callable[
        [Callable[[], None]], Callable[[], None]]:
    """Enter the decorated check as a row."""
    def enter(check: Callable[[], None]) -> Callable[[], None]:
        ENTRIES.append(Entry(section, name, aspect, check, dynamic))
        return check
    return enter
