"""Rows of text as columns, for terminals."""
from __future__ import annotations

from collections.abc import Sequence


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table with aligned columns; `notes[i]`, if any, stands indented under row i.

    >>> print(columns(["NAME", "STATE"], [["A", "found"]], ["why"]))
    NAME  STATE
    A     found
          why
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [_line(header, widths)]
    for i, row in enumerate(rows):
        lines.append(_line(row, widths))
        if i < len(notes) and notes[i]:
            lines += [" " * (widths[0] + 2) + text for text in notes[i].splitlines()]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
