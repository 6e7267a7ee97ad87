"""Views, reductions without axes, empty tensors, pools and convolutions at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tinyhost import Tensor, dtypes, nn

pytestmark = pytest.mark.usefixtures("device")


def test_a_lazy_cumulative_sum_that_is_compared() -> None:
    for size in (3, 4, 17, 300):
        p = np.full(size, 1 / size, np.float32) if size > 4 else np.array([0.1, 0.2, 0.7, 0.4], np.float32)[:size]
        cdf = Tensor(p).cumsum()
        cdf = cdf / cdf[-1]
        draws = np.array([[0.05], [0.25], [0.9]], np.float32)
        want = (draws >= (np.cumsum(p) / np.sum(p)).astype(np.float32)).sum(1)
        assert np.abs((Tensor(draws) >= cdf).sum(1).numpy() - want).max() <= (size > 4)


@pytest.mark.parametrize("perm", [(0, 1, 4, 2, 3, 5), (5, 4, 3, 2, 1, 0), (0, 2, 1, 4, 3, 5), (3, 0, 5, 1, 4, 2)])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int8"])
def test_changes_of_layout(perm: tuple[int, ...], dtype: str) -> None:
    n = np.arange(160).astype(dtype).reshape(2, 5, 2, 2, 2, 2)
    want = n.transpose(perm).reshape(-1, 10)
    np.testing.assert_array_equal(Tensor(n).permute(perm).reshape(-1, 10).contiguous().numpy(), want)
    np.testing.assert_array_equal((Tensor(n).permute(perm).reshape(-1, 10) * 2).T.numpy(), (want * 2).astype(dtype).T)


def _random_views(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = Tensor(n).contiguous().realize()
    for _ in range(12):
        k = rng.integers(6)
        if k == 0 and n.size < 4000:
            pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 2, (3, 2)))
            n, t = np.pad(n, pads), t.pad(pads)
        elif k == 1:
            axis = int(rng.integers(3))
            n, t = np.flip(n, axis), t.flip(axis)
        elif k == 2:
            order = tuple(int(i) for i in rng.permutation(3))
            n, t = n.transpose(order), t.permute(order)
        elif k == 3:
            box = tuple((int(rng.integers(0, s)), s) for s in n.shape)
            n, t = n[tuple(slice(*b) for b in box)], t.shrink(box)
        elif k == 4:
            shape = (n.shape[0] * n.shape[1], 1, n.shape[2])
            n, t = n.reshape(shape), t.reshape(shape)
        else:
            n, t = n[:, ::2], t[:, ::2]
    np.testing.assert_array_equal((t + 1).numpy(), n + 1, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_views(seed: int) -> None:
    _random_views(seed)


@pytest.mark.soak
@pytest.mark.parametrize("start", range(100, 1000, 100))
def test_many_chains_of_views(start: int) -> None:
    for seed in range(start, start + 100):
        _random_views(seed)


@pytest.mark.parametrize(
    "name", ["sum", "max", "min", "mean", "prod", "any", "all", "argmax", "softmax", "cumsum", "std", "logsumexp"]
)
def test_axes_of_a_number(name: str) -> None:
    x = Tensor([[3.0]]).realize().reshape(()) if name not in ("any", "all") else Tensor([True]).realize().reshape(())
    for axis in (1, -2, 7):
        with pytest.raises(IndexError, match=str(axis)):
            getattr(x, name)(axis)
    assert getattr(x, name)(0).shape == getattr(x, name)(-1).shape == ()
    if name in ("sum", "max", "min", "mean", "prod"):
        assert getattr(x, name)(()).item() == 3.0 and getattr(x, name)().item() == 3.0
        with pytest.raises(IndexError):
            getattr(x, name)((1,))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0), (2, 0, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_empty_tensors(shape: tuple[int, ...], dtype: str) -> None:
    for x in (
        Tensor.empty(*shape, dtype=dtype),
        Tensor.zeros(*shape, dtype=dtype).contiguous(),
        Tensor(np.zeros(shape)).cast(dtype),
    ):
        assert x.realize().numpy().shape == shape and x.tolist() == np.zeros(shape).tolist()
        assert (
            (x + x).realize().shape == shape and x.sum().item() == 0 and x.reshape(-1).cat(x.reshape(-1)).shape == (0,)
        )
        assert x.T.contiguous().realize().shape == shape[::-1]
    assert Tensor([]).tolist() == [] and Tensor([[], []]).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64", "float32"])
def test_max_pools_keep_their_dtype(dtype: str) -> None:
    n = np.arange(16).reshape(1, 1, 4, 4).astype(dtype)
    if not dtype.startswith("u"):
        n = (n - 20).astype(dtype)
    o = Tensor(n).max_pool2d((2, 2), stride=2, padding=1)
    want = torch.nn.functional.max_pool2d(torch.tensor(n.astype(np.float64)), 2, 2, 1)
    assert o.dtype is Tensor(n).dtype and o.shape == (1, 1, 3, 3)
    np.testing.assert_array_equal(o.numpy(), want.numpy().astype(dtype))


@pytest.mark.parametrize(
    "size, kernel, stride, padding", [(17, 2, 2, 1), (5, 3, 2, 1), (7, 2, 3, 1), (4, 3, 3, 0), (6, 4, 3, 2)]
)
def test_shapes_of_pools_with_ceil_mode(size: int, kernel: int, stride: int, padding: int) -> None:
    data = np.random.default_rng(0).standard_normal((1, 1, size, size)).astype(np.float32)
    for name in ("avg_pool2d", "max_pool2d"):
        want = getattr(torch.nn.functional, name)(torch.tensor(data), kernel, stride, padding, ceil_mode=True)
        got = getattr(Tensor(data), name)((kernel, kernel), stride=stride, padding=padding, ceil_mode=True)
        assert got.shape == tuple(want.shape)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


GEOMETRIES: list[tuple[Any, Any, Any, Any, int]] = [
    ((1, 1), (0, 0), (1, 1), (3, 3), 1),
    ((2, 1), (1, 0), (1, 1), (3, 2), 1),
    ((2, 3), (1, 2), (2, 1), (3, 4), 1),
    ((3, 2), (0, 1), (1, 3), (1, 2), 2),
]


@pytest.mark.parametrize("stride, padding, dilation, kernel, groups", GEOMETRIES)
def test_transposed_convolution_is_the_adjoint(
    stride: Any, padding: Any, dilation: Any, kernel: Any, groups: int
) -> None:
    rng = np.random.default_rng(5)
    x = Tensor(rng.standard_normal((1, 4, 9, 10)).astype(np.float32))
    w = Tensor(rng.standard_normal((6, 4 // groups, *kernel)).astype(np.float32))
    y = x.conv2d(w, groups=groups, stride=stride, padding=padding, dilation=dilation)
    g = Tensor(rng.standard_normal(y.shape).astype(np.float32))
    left = [
        (9, 10)[i] - ((y.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1)
        for i in range(2)
    ]
    back = g.conv_transpose2d(
        w, groups=groups, stride=stride, padding=padding, dilation=dilation, output_padding=tuple(left)
    )
    np.testing.assert_allclose((y * g).sum().item(), (x * back).sum().item(), rtol=1e-3)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
@pytest.mark.parametrize("size, out", [(4, 2), (4, 7), (5, 3), (3, 1), (1, 4), (29, 1)])
def test_interpolation(size: int, out: int, mode: str) -> None:
    data = np.arange(size, dtype=np.float32).reshape(1, 1, size)
    want = torch.nn.functional.interpolate(torch.tensor(data), size=out, mode=mode)
    np.testing.assert_allclose(Tensor(data).interpolate((out,), mode=mode).numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(), (8,), (2, 3), (1, 1, 4), (0,)])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.int64])
def test_embeddings_of_any_shape(shape: tuple[int, ...], dtype: Any) -> None:
    layer = nn.Embedding(8, 32)
    index = np.random.default_rng(0).integers(0, 8, shape)
    got = layer(Tensor(index.astype(np.int64)).cast(dtype))
    assert got.shape == (*shape, 32)
    np.testing.assert_array_equal(got.numpy(), layer.weight.numpy()[index])
