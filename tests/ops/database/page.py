"""The page of all ops, printed from the database: for each op its modes, dtypes, gradient and error bound."""
from __future__ import annotations

import inspect
import sys
from pathlib import Path

from . import CASES
from .case import Case

PAGE = Path(__file__).parents[3] / "docs" / "ops.md"
_HEAD = """# Operations

Printed from the op database (`tests/ops/database`) by `python -m tests.ops.database`; a test keeps it current.

Every mode is a case: generated inputs, a reference (torch, or numpy where torch lacks the op or the dtype), a bound on
the error. Forward values, and gradients where the table says so, are compared with the reference on every device.
A bound "a + r" means |ours - reference| <= a + r * |reference| in float32 (and float64); in a narrower float it is
scaled by the ratio of the machine epsilons. Integers and bools are exact. A gradient is compared where an input is a
float that torch differentiates.

{cases} modes of {ops} ops.
"""


def page() -> str:
    """The whole page."""
    families = dict.fromkeys(c.family for c in CASES)
    parts = [_HEAD.format(cases=len(CASES), ops=len({c.op for c in CASES}))]
    parts += [_section(f, [c for c in CASES if c.family == f]) for f in families]
    return "\n".join(parts)


def _section(family: str, cases: list[Case]) -> str:
    doc = inspect.getdoc(sys.modules[f"{__package__}.{family}"]) or family
    title = doc.splitlines()[0].rstrip(".")
    lines = [f"## {title}", "", "| op | modes | dtypes | gradient | bound |", "|---|---|---|---|---|"]
    lines += [_row(op, [c for c in cases if c.op == op]) for op in dict.fromkeys(c.op for c in cases)]
    return "\n".join(lines) + "\n"


def _row(op: str, cases: list[Case]) -> str:
    modes = ", ".join(dict.fromkeys(c.mode.replace("_", " ").replace("|", "\\|") for c in cases))
    dtypes = ", ".join(dict.fromkeys(d for c in cases for d in c.given))
    floats = [c for c in cases if any("float" in d for d in c.given)]
    graded = [c for c in floats if c.grad]
    some = f"in {len(graded)} of {len(floats)} modes"
    gradient = "no" if not graded else "yes" if len(graded) == len(floats) else some
    bound = f"{max(c.atol for c in floats):g} + {max(c.rtol for c in floats):g}" if floats else "exact"
    return f"| `{op}` | {modes} | {dtypes} | {gradient} | {bound} |"
