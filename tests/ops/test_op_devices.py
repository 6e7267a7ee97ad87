"""Every case of the op database on every device: values and gradients against torch, within each case's bound."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.tensor import Tensor

from .database import RUNS, Case, run_id, run_torch


def run_device(case: Case, dtype: str, arrays, want, want_grads) -> None:
    leaves = [Tensor(a, dtype=i.dtype or dtype) for a, i in zip(arrays, case.inputs)]
    (atol, rtol), (grad_atol, grad_rtol) = case.bounds(dtype), case.grad_bounds(dtype)
    out = case.fn(*leaves)
    grads, kept = {}, []
    if case.grad:  # before anything is realized: gradients belong to the graph
        weight = Tensor(np.linspace(0.5, 1.5, want.size).reshape(want.shape).astype(want.dtype))
        kept = [(t, t.uop, g) for t, g in zip([t for t in leaves if t.dtype.is_float], want_grads) if g is not None]
        grads = (out * weight).sum()._gradients([node for _, node, _ in kept], None)
        grads = {node: Tensor._wrap(g) for node, g in grads.items()}
    np.testing.assert_allclose(out.numpy(), want, rtol=rtol, atol=atol)
    for _, node, g in kept:
        if node not in grads:
            assert not g.any(), "no gradient where torch has one"
            continue
        np.testing.assert_allclose(grads[node].numpy(), g, rtol=grad_rtol, atol=grad_atol)


@pytest.mark.parametrize("case, dtype", RUNS, ids=run_id)
def test_against_torch(case: Case, dtype: str, dev: str) -> None:
    arrays = case.arrays(dtype)
    run_device(case, dtype, arrays, *run_torch(case, arrays, dtype))
