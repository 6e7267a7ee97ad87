"""Every public operation with inputs and torch's answer: data for tests of graphs, schedules, renderers and devices.

``CASES`` lists the cases of all families, one module each; ``RUNS`` the pairs of case and dtype that tests run over.
"""
from __future__ import annotations

from . import (  # noqa: F401
    activations,
    convolutions,
    creation,
    dtypes,
    elementwise,
    indexing,
    layers,
    linalg,
    logic,
    losses,
    math,
    movement,
    pooling,
    products,
    reductions,
    sorting,
)
from .case import _CASES, Case, Input
from .check import check
from .torch_reference import as_numpy, run_torch

CASES: list[Case] = list(_CASES.values())
RUNS: list[tuple[Case, str]] = [(c, d) for c in CASES for d in c.dtypes]

__all__ = ["CASES", "RUNS", "Case", "Input", "as_numpy", "check", "run_id", "run_torch"]


def run_id(value: object) -> str:
    """Test id of a case or a dtype."""
    return repr(value) if isinstance(value, Case) else str(value)
