"""Values with exact expectations: selection between widths, integer round trips, half, interpolation, index types."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost import GlobalCounters, Tensor, dtypes


def test_a_float32_mask_selects_doubles(dev: str) -> None:
    cond = Tensor([1.0, 2.0, 5.0, 9.0], dtype=dtypes.float32) < 3.0
    a = Tensor([10.0, 20.0, 30.0, 40.0], dtype=dtypes.float64)
    b = Tensor([50.0, 60.0, 70.0, 80.0], dtype=dtypes.float64)
    out = cond.where(a, b)
    assert out.dtype is dtypes.float64 and out.tolist() == [10, 20, 70, 80]


def test_int64_through_uint32_keeps_the_low_half(dev: str) -> None:
    x = Tensor([0x12345678ABCDEF01], dtype=dtypes.int64).cast(dtypes.uint32).contiguous().cast(dtypes.int64)
    assert x.tolist() == [2882400001]


def test_half_on_the_right_of_a_comparison(dev: str) -> None:
    t = Tensor([-1.0, 1.0], dtype=dtypes.half)
    one, zero = Tensor([1.0, 1.0], dtype=dtypes.half), Tensor([0.0, 0.0], dtype=dtypes.half)
    assert (t > 0).where(one, zero).tolist() == [0, 1]


@pytest.mark.parametrize("sign,want", [("<", [-1, -2, -3, 40]), (">", [-1, -2, 30, -4]), ("!=", [10, -2, 30, 40]),
                                       ("==", [-1, 20, -3, -4])])
def test_where_nan_cond(sign: str, want: list[int], dev: str) -> None:
    x = Tensor([float("nan"), 1.0, 2.0, -1.0])
    cond = {"<": x < 1, ">": x > 1, "!=": x != 1, "==": x == 1}[sign]
    assert cond.where(Tensor([10.0, 20.0, 30.0, 40.0]), Tensor([-1.0, -2.0, -3.0, -4.0])).tolist() == want


def test_interpolation_to_one_value_with_aligned_corners(dev: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 29)).astype(np.float32)
    out = Tensor(x).interpolate((1,), mode="linear", align_corners=True)
    assert out.shape == (2, 3, 1)
    np.testing.assert_array_equal(out.numpy(), x[:, :, :1])


def test_uint8_indices(dev: str) -> None:
    assert Tensor([10, 20, 30, 40])[Tensor([1, 2, 3, 0], dtype=dtypes.uint8)].tolist() == [20, 30, 40, 10]


# a copy counts its bytes once, a kernel what it reads and writes
COPIES = {
    "shrink": (lambda a: a.shrink(((1, 3),)), 4 * 4 + 2 * 4 * 2 + 2 * 4, [1, 2]),
    "expand": (lambda a: a.reshape(4, 1).expand(4, 2), 4 * 4 + (4 * 4 + 8 * 4) + 8 * 4,
               [[0, 0], [1, 1], [2, 2], [3, 3]]),
    "permute": (lambda a: a.reshape(2, 2).permute(1, 0), 4 * 4 + (4 * 4 + 4 * 4) + 4 * 4, [[0, 2], [1, 3]]),
}


@pytest.mark.parametrize("view", COPIES)
def test_views_are_made_before_a_copy(view: str) -> None:
    make, traffic, values = COPIES[view]
    GlobalCounters.reset()
    a = Tensor.arange(4, dtype=dtypes.int32).to("CPU:1").contiguous()
    b = make(a).to("CPU:0")
    assert len(b.schedule_linear().src) == 3
    GlobalCounters.reset()
    assert b.tolist() == values
    assert (GlobalCounters.kernel_count, GlobalCounters.global_mem) == (3, traffic)
