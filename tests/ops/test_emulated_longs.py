"""The op database's cases of 64-bit integers with those types taken away: the same answers."""
from __future__ import annotations

import pytest

from tinyhost.env import Context
from tinyhost.tensor import Tensor

from .database import RUNS, Case, check, run_id

LONGS = ("int64", "uint64")
CASES = [(case, dtype) for case, dtype in RUNS
         if not case.slow and (dtype in LONGS or any(i.dtype in LONGS for i in case.inputs))]
DEVICES = ("CPU", "PYTHON")


def _chosen(index: int, device: str) -> list[pytest.MarkDecorator]:
    """One case in six on PYTHON, one in twelve on CPU by default."""
    return [] if index % (6 if device == "PYTHON" else 12) == 0 else [pytest.mark.soak]


@pytest.mark.parametrize("case, dtype, device", [
    pytest.param(case, dtype, device, id=f"{run_id(case)}-{dtype}-{device}", marks=_chosen(i, device))
    for i, (case, dtype) in enumerate(CASES) for device in DEVICES])
def test_against_torch(case: Case, dtype: str, device: str) -> None:
    with Context(DEV=device, EMULATED_DTYPES="long"):
        check(case, dtype, lambda a, dt: Tensor(a, dtype=dt), lambda t: t.numpy())
