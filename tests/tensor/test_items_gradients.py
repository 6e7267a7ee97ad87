"""Gradients through reads and writes by random indices, against torch: of the written tensor and of what is written.

Torch needs a copy before each write; ours writes in place. Writes with an index that names an element twice are left
out, because torch does not say which one stays.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tinyhost.tensor import Tensor

from .test_items_fuzz import Array, Program

Write = tuple[tuple[Any, ...], Array, bool]


def writes_for(seed: int) -> tuple[Array, list[Write]]:
    """A start and some writes to it: (index, value, whether the old elements are multiplied by the value)."""
    program = Program(seed)
    rng = program.rng = np.random.default_rng(seed)
    a = rng.standard_normal(tuple(rng.integers(1, 5, rng.integers(1, 4)))).astype(np.float32)
    out: list[Write] = []
    for _ in range(int(rng.integers(1, 4))):
        index = program.basic_index(a.shape) if program.chance(0.5) else program.array_index(a.shape)
        if any(isinstance(e, slice) and (e.step or 1) < 0 for e in index):
            continue  # torch has no negative steps
        count = np.zeros(a.shape, int)
        np.add.at(count, index, 1)
        if count.max(initial=0) < 2:
            shape = a[index].shape
            out.append((index, rng.standard_normal(shape).astype(np.float32), program.chance(0.3)))
    return a, out


def torch_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with arrays as tensors that torch takes."""
    return tuple(torch.from_numpy(e if e.dtype == bool else e.astype(np.int64)) if isinstance(e, np.ndarray) else e
                 for e in index)


def run(seed: int) -> None:
    a, writes = writes_for(seed)
    x, t = Tensor(a.copy()), torch.from_numpy(a.copy()).requires_grad_()
    values, wanted = [Tensor(v) for _, v, _ in writes], [torch.from_numpy(v).requires_grad_() for _, v, _ in writes]
    y, u = x * 2, t * 2
    for (index, _, multiplies), v, w in zip(writes, values, wanted):
        old, u = u, u.clone()
        if multiplies:
            y[index] = y[index] * v
            u[torch_index(index)] = old[torch_index(index)] * w
        else:
            y[index] = v * 3
            u[torch_index(index)] = w * 3
    weight = np.random.default_rng(seed).standard_normal(a.shape).astype(np.float32)
    (u * u * torch.from_numpy(weight)).sum().backward()
    nodes = [v.uop for v in (x, *values)]
    grads = (y * y * Tensor(weight)).sum()._gradients(nodes, None)
    for node, theirs in zip(nodes, (t, *wanted), strict=True):
        want = np.zeros(node.shape, np.float32) if theirs.grad is None else theirs.grad.numpy()
        got = Tensor._wrap(grads[node]).numpy() if node in grads else np.zeros(node.shape, np.float32)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("seed", range(25))
def test_writes(seed: int) -> None:
    run(seed)


@pytest.mark.soak
def test_many_writes() -> None:
    for seed in range(1000, 2000):
        run(seed)
