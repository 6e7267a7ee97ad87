"""Every case of the op database on every device: values and gradients against torch, within each case's bound."""
from __future__ import annotations

import numpy as np
import pytest

from tests.tensor.op_cases import CASES, Case
from tests.tensor.test_op_cases import run_torch
from tinyhost.tensor import Tensor


def run_device(case: Case, arrays, want, want_grads) -> None:
    leaves = [Tensor(a) for a in arrays]
    out = case.fn(*leaves)
    grads, kept = {}, []
    if case.grad:  # before anything is realized: gradients belong to the graph
        weight = Tensor(np.linspace(0.5, 1.5, want.size).reshape(want.shape).astype(want.dtype))
        kept = [(t, t.uop, g) for t, g in zip([t for t in leaves if t.dtype.is_float], want_grads) if g is not None]
        grads = (out * weight).sum()._gradients([node for _, node, _ in kept], None)
        grads = {node: Tensor._wrap(g) for node, g in grads.items()}
    np.testing.assert_allclose(out.numpy(), want, rtol=case.rtol, atol=case.atol)
    for _, node, g in kept:
        if node not in grads:
            assert not g.any(), "no gradient where torch has one"
            continue
        np.testing.assert_allclose(grads[node].numpy(), g, rtol=case.grad_rtol, atol=case.grad_atol)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_against_torch(case: Case, dev: str) -> None:
    arrays = case.arrays()
    run_device(case, arrays, *run_torch(case, arrays))
