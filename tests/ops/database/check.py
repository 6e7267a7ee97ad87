"""One case in one dtype, ours against the reference: shapes, kinds of dtype, values, gradients.

Takes two functions beside the case, so that every way to run a tensor shares this comparison: how an array becomes a
tensor, and how a tensor becomes an array.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.tensor import Tensor

from .case import Array, Case
from .torch_reference import run_torch, weight_of


def check(case: Case, dtype: str, leaf: Callable[[Array, str], Tensor], value: Callable[[Tensor], Array]) -> None:
    """Fail where the case's results or gradients leave its bounds."""
    arrays = case.arrays(dtype)
    want, want_grads = run_torch(case, arrays, dtype)
    leaves = [leaf(a, i.dtype or dtype) for a, i in zip(arrays, case.inputs)]
    nodes = [t.uop for t in leaves if t.dtype.is_float]
    out = case.fn(*leaves)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    grads = _gradients(case, outs, nodes, want_grads, leaf)  # before anything is realized: they belong to the graph
    (atol, rtol), (grad_atol, grad_rtol) = case.bounds(dtype), case.grad_bounds(dtype)
    for ours, theirs in zip(outs, want, strict=True):
        assert ours.shape == theirs.shape, f"shape {ours.shape}, reference {theirs.shape}"
        assert _kind(ours) == theirs.dtype.kind.replace("u", "i"), f"dtype {ours.dtype}, reference {theirs.dtype}"
        np.testing.assert_allclose(value(ours), _in_range(theirs, ours), rtol=rtol, atol=atol)
    for node, theirs in zip(nodes, want_grads):
        if theirs is None:
            continue
        if node not in grads:
            assert not theirs.any(), "no gradient where torch has one"
            continue
        ours = grads[node]
        assert ours.shape == theirs.shape and ours.dtype is node.dtype
        np.testing.assert_allclose(value(ours), _in_range(theirs, ours), rtol=grad_rtol, atol=grad_atol)


def _in_range(theirs: Array, ours: Tensor) -> Array:
    """The reference with infinities for what float16 cannot hold."""
    if ours.dtype is not dtypes.float16 or theirs.dtype == np.float16:
        return theirs
    with np.errstate(over="ignore"):
        return theirs.astype(np.float16).astype(theirs.dtype)


def _kind(t: Tensor) -> str:
    return "b" if t.dtype is dtypes.bool else "f" if t.dtype.is_float else "i"


def _gradients(case: Case, outs: list[Tensor], nodes: list[Any], want: list[Any],
               leaf: Callable[[Array, str], Tensor]) -> dict[Any, Tensor]:
    """The gradient of the weighted sum of the float results, by leaf."""
    kept = [n for n, g in zip(nodes, want) if g is not None]
    if not kept:
        return {}
    terms = [(o * leaf(weight_of(o).float().numpy(), "float32")).sum() for o in outs if o.dtype.is_float]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return {node: Tensor._wrap(g) for node, g in total._gradients(kept, None).items()}
