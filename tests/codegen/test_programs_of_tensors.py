"""Small tensor programs whose kernels are hard to expand or select: each device gives numpy's answer."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.env import Context
from tinyhost.tensor import Tensor

DEVICES = ("CPU", "CPU:CLANG", "CPU:LLVM", "PYTHON")


@pytest.fixture(params=DEVICES)
def dev(request: pytest.FixtureRequest):
    from tests.ops.devices import why_not
    if reason := why_not(request.param):
        pytest.skip(reason)
    with Context(DEV=request.param):
        yield request.param


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float16"])
def test_a_scalar_load_with_an_alternative_for_each_lane(dev: str, dtype: str) -> None:
    a = np.arange(12).reshape(4, 3).astype(dtype)
    i, v = np.array([[1], [-2], [-1]]), np.array([[8], [8], [7]]).astype(dtype)
    t = Tensor(a)
    t[:, Tensor(i)] = Tensor(v)[None]
    a[:, i] = v
    np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("index", ["int8", "int32", "int64"])
def test_index_math_over_the_result_of_a_loop(dev: str, dtype: str, index: str) -> None:
    """The division by 3 is lowered after the loop it reads was made; the loop stays one."""
    a, v = np.arange(4).astype(dtype), np.array([2, 6, 6]).astype(dtype)
    i = np.array([[-4, -1, 1], [0, -2, -1]]).astype(index)
    t = Tensor(a)
    t[Tensor(i)] = Tensor(v)
    a[i] = v
    np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shape", [(4, 9), (3, 17), (2, 40)])
def test_a_literal_in_a_loop_and_behind_it(dev: str, dtype: str, shape: tuple[int, ...]) -> None:
    """A half literal is widened where it is used; what was widened inside a loop is gone behind it."""
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    np.testing.assert_array_equal(Tensor(a).cummin(1)[0].numpy(), np.minimum.accumulate(a, 1))
    np.testing.assert_array_equal((-(-Tensor(a)).max(1)).numpy(), a.min(1))
