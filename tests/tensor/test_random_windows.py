"""Random geometries of convolutions, pools, resampling and einsum against torch: graphs evaluated op by op."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor

from .evaluator import evaluate

CONV: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED: dict[int, Any] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX: dict[int, Any] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG: dict[int, Any] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
Rng = np.random.Generator


def numbers(rng: Rng, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def pick(rng: Rng, n: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(v) for v in rng.integers(low, high, n))


def ours(t: Tensor) -> np.ndarray:
    return evaluate(t.uop)


def tensor(x: np.ndarray) -> Tensor:
    return Tensor(x, device="NPY")


def conv(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    n, groups = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    how: dict[str, Any] = {"stride": pick(rng, n, 1, 4), "padding": pick(rng, n, 0, 3), "dilation": pick(rng, n, 1, 3)}
    how["groups"] = groups
    kernel = pick(rng, n, 1, 4)
    x = numbers(rng, int(rng.integers(1, 3)), 2 * groups, *(int(rng.integers(5, 9)) for _ in range(n)))
    w = numbers(rng, 3 * groups, 2, *kernel)
    return ours(tensor(x).conv2d(tensor(w), **how)), CONV[n](torch.tensor(x), torch.tensor(w), **how)


def transposed(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    n, groups = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    stride, dilation, kernel = pick(rng, n, 1, 4), pick(rng, n, 1, 3), pick(rng, n, 1, 4)
    padding = tuple(int(rng.integers(0, d * (k - 1) // 2 + 1)) for d, k in zip(dilation, kernel))
    extra = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation))
    how = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": groups}
    x = numbers(rng, int(rng.integers(1, 3)), 2 * groups, *pick(rng, n, 3, 6))
    w = numbers(rng, 2 * groups, 3, *kernel)
    return ours(tensor(x).conv_transpose2d(tensor(w), **how)), TRANSPOSED[n](torch.tensor(x), torch.tensor(w), **how)


def pool_geometry(rng: Rng) -> tuple[int, np.ndarray, tuple[int, ...], dict[str, Any]]:
    n = int(rng.integers(1, 4))
    kernel = pick(rng, n, 1, 4)
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    how = {"stride": pick(rng, n, 1, 4), "padding": padding, "ceil_mode": bool(rng.integers(0, 2))}
    return n, numbers(rng, 1, 2, *pick(rng, n, 5, 9)), kernel, how


def max_pool(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    n, x, kernel, how = pool_geometry(rng)
    how["dilation"] = pick(rng, n, 1, 3)
    values, places = tensor(x).max_pool2d(kernel, return_indices=True, **how)
    want, where = MAX[n](torch.tensor(x), kernel, return_indices=True, **how)
    np.testing.assert_array_equal(ours(places), where.numpy())
    return ours(values), want


def avg_pool(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    n, x, kernel, how = pool_geometry(rng)
    how["count_include_pad"] = bool(rng.integers(0, 2))
    return ours(tensor(x).avg_pool2d(kernel, **how)), AVG[n](torch.tensor(x), kernel, **how)


def resampled(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    mode, theirs = (("linear", "bilinear"), ("cubic", "bicubic"), ("nearest", "nearest"),
                    ("nearest-exact", "nearest-exact"))[int(rng.integers(0, 4))]
    corners = bool(rng.integers(0, 2)) if mode in ("linear", "cubic") else None
    x, size = numbers(rng, 1, 2, *pick(rng, 2, 1, 12)), pick(rng, 2, 1, 15)
    want = F.interpolate(torch.tensor(x), size, mode=theirs, align_corners=corners)
    return ours(tensor(x).interpolate(size, mode, bool(corners))), want


def einsum(rng: Rng) -> tuple[np.ndarray, torch.Tensor]:
    extents = dict(zip("abcde", pick(rng, 5, 1, 4)))
    terms = ["".join(rng.choice(list("abcde"), int(rng.integers(1, 4)))) for _ in range(int(rng.integers(1, 4)))]
    used = sorted(set("".join(terms)))
    rng.shuffle(used)
    formula = ",".join(terms)
    if rng.integers(0, 2):
        formula += "->" + "".join(used[:int(rng.integers(0, len(used) + 1))])
    items = [numbers(rng, *(extents[c] for c in t)) for t in terms]
    return ours(Tensor.einsum(formula, *map(tensor, items))), torch.einsum(formula, *map(torch.tensor, items))


KINDS = (conv, transposed, max_pool, avg_pool, resampled, einsum)


def run(kind: Any, seeds: range) -> None:
    for seed in seeds:
        got, want = kind(np.random.default_rng(seed))
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=2e-5, err_msg=f"{kind.__name__} seed {seed}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_sample(kind: Any) -> None:
    run(kind, range(15))


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_many(kind: Any) -> None:
    run(kind, range(15, 500))
