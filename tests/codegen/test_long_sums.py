"""Rounding errors of long float sums do not grow with the length: equal numbers, the worst case, along every axis."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.dtype import dtypes
from tinyhost.env import Context
from tinyhost.ops import AxisType, Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

N = 1 << 20
FORMS = {
    "all": (lambda t: t.sum(), N),
    "prime length": (lambda t: t[:1048573].sum(), 1048573),
    "rows": (lambda t: t.reshape(3, -1).sum(1), N // 3),
    "product": (lambda t: t.reshape(1, -1) @ Tensor.ones(t.numel(), 2).contiguous(), N),
    "mean": (lambda t: t.mean() * t.numel(), N),
}


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("dev", ["CPU", "CPU:CLANG", "CPU:LLVM"])
@pytest.mark.parametrize("form", FORMS)
def test_equal_numbers(form: str, dev: str, noopt: int) -> None:
    from tests.ops.devices import why_not
    if reason := why_not(dev):
        pytest.skip(reason)
    fn, terms = FORMS[form]
    size = N // 3 * 3 if form == "rows" else N
    with Context(DEV=dev, NOOPT=noopt):
        got = fn(Tensor(np.full(size, 0.1, np.float32))).numpy()
    assert np.abs(got.astype(np.float64) / (float(np.float32(0.1)) * terms) - 1).max() < 5e-6


def loops_of(root: UOp) -> list[tuple[int, ...]]:
    """Lengths of the ranges of each REDUCE, sources first."""
    return [tuple(int(r.src[0].const_value) for r in u.src[1:]) for u in root.toposort() if u.op is Ops.REDUCE]


@pytest.mark.parametrize("lengths, want", [
    ((500,), [(500,)]),
    ((1000,), [(250,), (4,)]),
    ((4096,), [(256,), (16,)]),
    ((1500,), [(250,), (6,)]),
    ((40, 3, 3), [(40, 3, 3)]),
    ((512, 3, 3), [(3, 3, 16), (32,)]),
    ((8, 4, 256), [(256,), (8, 4)]),
    ((3, 300), [(300,), (3,)]),
    ((2, 511, 3), [(73, 3), (2, 7)]),
    ((1031,), [(256,), (4,), (7,)]),
    ((1 << 20,), [(256,), (256,), (16,)]),
])
def test_where_sums_are_nested(lengths: tuple[int, ...], want: list[tuple[int, ...]]) -> None:
    from tinyhost.codegen.long_sums import nested_sum
    ranges = [UOp.range(n, i, AxisType.REDUCE) for i, n in enumerate(lengths)]
    index = sum(ranges[1:], ranges[0])
    value = UOp.param(0, dtypes.float32, 1 << 20).index(index)
    got = nested_sum(Ops.ADD, value, ranges, [])
    assert sorted(map(sorted, loops_of(got))) == sorted(map(sorted, want))
    for kind in (dtypes.float64, dtypes.int32):
        other = UOp.param(0, kind, 1 << 20).index(index)
        assert len(loops_of(nested_sum(Ops.ADD, other, ranges, []))) == 1
    assert len(loops_of(nested_sum(Ops.MAX, value, ranges, []))) == 1


@pytest.mark.parametrize("channels", [257, 300, 384, 511])
def test_channels_and_a_window(channels: int) -> None:
    import torch
    rng = np.random.default_rng(channels)
    x, w = rng.random((1, channels, 1, 24), np.float32), rng.random((8, channels, 1, 3), np.float32)
    with Context(DEV="CPU"):
        got = Tensor(x).conv2d(Tensor(w), padding=(1, 1, 0, 0)).numpy()
    exact = torch.nn.functional.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double(), padding=(0, 1))
    np.testing.assert_allclose(got, exact.numpy(), rtol=1e-6)
