"""Every case of the op database against torch: values and gradients of the graph, evaluated op by op."""
from __future__ import annotations

import pytest

from tests.ops.database import RUNS, Case, check, run_id
from tinyhost.tensor import Tensor

from .evaluator import evaluate


@pytest.mark.parametrize("case, dtype", [r for r in RUNS if r[1] != "bfloat16"], ids=run_id)
def test_against_torch(case: Case, dtype: str) -> None:
    check(case, dtype, lambda a, _: Tensor(a, device="NPY"), lambda t: evaluate(t.uop))
