"""Every op case on real devices: schedule, code generation and execution against torch."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost.device import Device
from tinyhost.tensor import Tensor

from .op_cases import CASES, Case
from .test_op_cases import run_torch


def opens(device: str) -> bool:
    try:
        Device[device]
    except RuntimeError:
        return False
    return True


def on(device: str, a: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(a, device=device)


@pytest.mark.parametrize("device", ["PYTHON", pytest.param("CPU", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_on_device(case: Case, device: str) -> None:
    if not opens(device):
        pytest.skip(f"{device} does not open here")
    arrays = case.arrays()
    want, want_grads = run_torch(case, arrays)
    leaves = [on(device, a) for a in arrays]
    out = case.fn(*leaves)
    grads: list[tuple[Tensor, Any]] = []
    if case.grad:
        weight = on(device, np.linspace(0.5, 1.5, want.size).reshape(want.shape).astype(want.dtype))
        kept = [(t, g) for t, g in zip([t for t in leaves if t.dtype.is_float], want_grads) if g is not None]
        found = (out * weight).sum()._gradients([t.uop for t, _ in kept], None)
        grads = [(Tensor._wrap(found[t.uop]), g) for t, g in kept if t.uop in found]
    np.testing.assert_allclose(out.numpy(), want, rtol=case.rtol, atol=case.atol)
    for grad, g in grads:
        np.testing.assert_allclose(grad.numpy(), g, rtol=case.grad_rtol, atol=case.grad_atol)
