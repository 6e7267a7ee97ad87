"""Every case of the op database against torch: values and gradients of the graph, evaluated op by op."""
from __future__ import annotations

import numpy as np
import pytest

from tests.ops.database import RUNS, Case, run_id, run_torch
from tinyhost.tensor import Tensor

from .evaluator import evaluate


@pytest.mark.parametrize("case, dtype", [r for r in RUNS if r[1] != "bfloat16"], ids=run_id)
def test_against_torch(case: Case, dtype: str) -> None:
    arrays = case.arrays(dtype)
    want, want_grads = run_torch(case, arrays, dtype)
    (atol, rtol), (grad_atol, grad_rtol) = case.bounds(dtype), case.grad_bounds(dtype)
    leaves = [Tensor(a, device="NPY") for a in arrays]
    out = case.fn(*leaves)
    assert out.shape == want.shape
    np.testing.assert_allclose(evaluate(out.uop), want, rtol=rtol, atol=atol)
    if case.grad:
        weight = Tensor(np.linspace(0.5, 1.5, want.size).reshape(want.shape).astype(want.dtype), device="NPY")
        floats = [t for t in leaves if t.dtype.is_float]
        kept = [(t, g) for t, g in zip(floats, want_grads) if g is not None]
        grads = (out * weight).sum()._gradients([t.uop for t, _ in kept], None)
        for t, g in kept:
            if t.uop not in grads:
                assert not g.any(), "no gradient where torch has one"
                continue
            grad = grads[t.uop]
            assert grad.shape == t.shape and grad.dtype is t.dtype
            np.testing.assert_allclose(evaluate(grad), g, rtol=grad_rtol, atol=grad_atol)
