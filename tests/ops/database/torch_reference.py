"""torch's answers to the cases of the database."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .case import EPSILON, Array, Case


def as_numpy(t: torch.Tensor) -> Array:
    """The values; bfloat16 as float32."""
    t = t.detach().resolve_conj().resolve_neg()
    return t.float().numpy() if t.dtype is torch.bfloat16 else t.numpy()


def run_torch(case: Case, arrays: list[Array], dtype: str = "float32") -> tuple[Array, list[Any]]:
    """(result, gradients of the float inputs; none without ``case.grad``); a float that is narrower than float32 is
    computed in float32, unless the case asks for torch's own rounding."""
    narrow = EPSILON.get(dtype, 0.0) > EPSILON["float32"]
    leaves = [_leaf(a, i.dtype or dtype, narrow and not case.ref_native) for a, i in zip(arrays, case.inputs)]
    if case.grad:
        leaves = [t.requires_grad_() if t.is_floating_point() else t for t in leaves]
    out = case.ref(*leaves)
    if not case.grad:
        return as_numpy(out), []
    weight = torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape).to(out.dtype)
    floats = [t for t in leaves if t.is_floating_point()]
    grads = torch.autograd.grad((out * weight).sum(), floats, allow_unused=True)
    return as_numpy(out), [None if g is None else as_numpy(g) for g in grads]


def _leaf(a: Array, dtype: str, widen: bool) -> torch.Tensor:
    t = torch.from_numpy(np.array(a))
    if widen and t.is_floating_point():
        return t.float()
    return t.to(torch.bfloat16) if dtype == "bfloat16" else t
