"""Every case of the op database on every device: values and gradients against torch, within each case's bound.

CPU runs every case in every dtype, PYTHON every case; what else of the devices and dtypes runs by default is a fixed
choice, and all of it has the marker ``soak`` (see conftest.py).
"""
from __future__ import annotations

import pytest

from tinyhost.tensor import Tensor

from .database import RUNS, Case, check, run_id


@pytest.mark.parametrize("case, dtype", RUNS, ids=run_id)
def test_against_torch(case: Case, dtype: str, dev: str) -> None:
    check(case, dtype, lambda a, dt: Tensor(a, dtype=dt), lambda t: t.numpy())
