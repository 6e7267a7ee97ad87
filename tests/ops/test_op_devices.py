"""Every case of the op database on every device: values and gradients against torch, within each case's bound.

What runs by default is a fixed choice, every case on CPU among it; the rest has the marker ``soak`` (see conftest.py).
"""
from __future__ import annotations

import pytest

from tinyhost.tensor import Tensor

from .database import RUNS, Case, check, run_id


@pytest.mark.parametrize("case, dtype", RUNS, ids=run_id)
def test_against_torch(case: Case, dtype: str, dev: str) -> None:
    check(case, dtype, lambda a, dt: Tensor(a, dtype=dt), lambda t: t.numpy())
