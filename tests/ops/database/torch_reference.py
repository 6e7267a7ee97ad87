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


def run_torch(case: Case, arrays: list[Array], dtype: str = "float32") -> tuple[list[Array], list[Any]]:
    """(results, gradients of the float inputs; none without ``case.grad``); a float that is narrower than float32 is
    computed in float32, unless the case asks for torch's own rounding."""
    narrow = EPSILON.get(dtype, 0.0) > EPSILON["float32"]
    leaves = [_leaf(a, i.dtype or dtype, narrow and not case.ref_native) for a, i in zip(arrays, case.inputs)]
    floats = [t for t in leaves if t.is_floating_point()] if case.grad else []
    for t in floats:
        t.requires_grad_()
    out = case.ref(*leaves)
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    terms = [(o.double() * weight_of(o)).sum() for o in outs if o.requires_grad]
    grads = torch.autograd.grad(terms, floats, allow_unused=True) if terms else ()
    return [as_numpy(o) for o in outs], [None if g is None else as_numpy(g) for g in grads]


def weight_of(t: Any) -> torch.Tensor:
    """What the elements of a result of this shape weigh in the scalar whose gradient is compared."""
    shape = tuple(t.shape)
    return torch.linspace(0.5, 1.5, int(np.prod(shape))).double().reshape(shape)  # float32 has them exactly


def _leaf(a: Array, dtype: str, widen: bool) -> torch.Tensor:
    t = torch.from_numpy(np.array(a))
    if widen and t.is_floating_point() and t.dtype.itemsize < 4:
        return t.float()
    return t.to(torch.bfloat16) if dtype == "bfloat16" and not widen else t
