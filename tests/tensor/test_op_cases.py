"""Every case of ``op_cases`` against torch: values and gradients of the graph, evaluated op by op."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tinyhost.tensor import Tensor

from .evaluator import evaluate
from .op_cases import CASES, Case


def as_numpy(t: torch.Tensor) -> np.ndarray[Any, Any]:
    t = t.detach().resolve_conj().resolve_neg()
    return t.float().numpy() if t.dtype is torch.bfloat16 else t.numpy()


def run_torch(case: Case, arrays: list[np.ndarray[Any, Any]]) -> tuple[Any, list[Any]]:
    leaves = [torch.from_numpy(a.copy()) for a in arrays]
    if case.grad:
        leaves = [t.requires_grad_() if t.is_floating_point() else t for t in leaves]
    out = case.ref(*leaves)
    if not case.grad:
        return as_numpy(out), []
    weight = torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape).to(out.dtype)
    floats = [t for t in leaves if t.is_floating_point()]
    grads = torch.autograd.grad((out * weight).sum(), floats, allow_unused=True)
    return as_numpy(out), [None if g is None else as_numpy(g) for g in grads]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_against_torch(case: Case) -> None:
    arrays = case.arrays()
    want, want_grads = run_torch(case, arrays)
    leaves = [Tensor(a, device="NPY") for a in arrays]
    out = case.fn(*leaves)
    assert out.shape == want.shape
    np.testing.assert_allclose(evaluate(out.uop), want, rtol=case.rtol, atol=case.atol)
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
            np.testing.assert_allclose(evaluate(grad), g, rtol=case.grad_rtol, atol=case.grad_atol)
