"""Kernels written by hand over values on several devices: each runs them on its shard, of one shape everywhere."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Tensor, TinyJit
from tinyhost.errors import ScheduleError
from tinyhost.ops import Ops
from tinyhost.uop import UOp


def doubled(out: UOp, x: UOp) -> UOp:
    i, j = (UOp.range(n, k) for k, n in enumerate(out.shape))
    return out[i, j].store(x[i, j] * 2).end(i, j).sink()


@pytest.mark.parametrize("rows, count", [(8, 4), (10, 4), (5, 4), (2, 3), (6, 6)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_shards(axis: int | None, rows: int, count: int):
    n = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    n = n.T.copy() if axis == 1 else n
    x = Tensor(n).shard(names(count), axis).realize()
    seen: list[tuple[int, ...]] = []

    def kernel(out: UOp, x: UOp) -> UOp:
        seen.append(out.shape)
        return doubled(out, x)
    for given in (x, x + 1):
        out = given.empty_like().custom_kernel(given, fxn=kernel)[0].realize()
        assert out.device == names(count) and out.uop.axis == axis and out.shape == n.shape
        assert (out.numpy() == given.numpy() * 2).all() and set(seen) == {x.uop.shard_shape}


def test_views_in_a_kernel():
    """Placeholders may be seen through any views; padding reads 0."""
    def kernel(out: UOp, x: UOp) -> UOp:
        i, j = UOp.range(4, 0), UOp.range(5, 1)
        turned = x.permute((1, 0)).flip((0,))
        padded = x.reshape((2, 6))._mop(Ops.PAD, ((1, 4), (0, 6)))[i].reshape((3, 2))[1]
        return out[i, j].store(turned[i % 3, j % 4] + padded[j % 2]).end(i, j).sink()
    n = np.arange(12, dtype=np.int32).reshape(4, 3)
    i, j = np.indices((4, 5))
    padded = np.pad(n.reshape(2, 6), ((1, 1), (0, 0)))
    want = n.T[::-1][i % 3, j % 4] + padded[i, 2 + j % 2]
    for devices in (names(1)[0], names(2)):
        out = Tensor.empty(4, 5, dtype="int32", device=devices).custom_kernel(Tensor(n, device=devices), fxn=kernel)[0]
        assert (out.numpy() == want).all()


def test_in_place_and_captured():
    def add(total: UOp, x: UOp) -> UOp:
        i, j = UOp.range(total.shape[0], 0), UOp.range(total.shape[1], 1)
        return total[i, j].store(total[i, j] + x[i, j]).end(i, j).sink()
    d = names(3)
    total = Tensor(np.zeros((7, 2), np.float32)).shard(d, 0).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        after = total.custom_kernel(x, fxn=add)[0]
        return after.sum()
    for i in range(1, 6):
        got = step(Tensor(np.full((7, 2), i, np.float32)).shard(d, 0).realize())
        assert got.item() == 14 * i * (i + 1) / 2 and total.tolist() == [[i * (i + 1) / 2] * 2] * 7


def test_gradients():
    def backward(grad: UOp, call: UOp) -> tuple[None, UOp]:
        return None, grad * 2
    for rows in (6, 7):
        n = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        x = Tensor(n).shard(names(3), 0).realize()
        out = x.empty_like().custom_kernel(x, fxn=doubled, grad_fxn=backward)[0]
        (g,) = (out * out).sum().gradient(x)
        assert (g.numpy() == 8 * n).all() and g.uop.axis == 0


def test_a_call_without_a_part_somewhere():
    """Of a value that has fewer rows than there are devices, seen as it is."""
    x = Tensor(np.ones((2, 3), np.float32)).shard(names(3), 0).realize()
    a, b = UOp.placeholder((3,), x.dtype, 0), UOp.placeholder((3,), x.dtype, 1)
    i = UOp.range(3, 0)
    out = x.empty_like()
    call: Any = a[i].store(b[i]).end(i).sink().call(out.uop, x.uop)
    text = r"a call on \('.*'\) has an argument of shape \(2, 3\) that has no part on "
    with pytest.raises(ScheduleError, match=text):
        Tensor(out.uop.after(call)).realize()
