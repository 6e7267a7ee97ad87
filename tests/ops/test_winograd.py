"""WINO=1 against the direct form: the stated bound, which kernels it takes, and that it is off by default."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhost.env import Context
from tinyhost.mixin import winograd
from tinyhost.tensor import Tensor


def conv(x: np.ndarray, w: np.ndarray, wino: int, **how: int) -> np.ndarray:
    with Context(WINO=wino):
        return Tensor(x).conv2d(Tensor(w), **how).numpy()


@pytest.mark.parametrize("shape", [(1, 16, 14, 14), (2, 3, 30, 9)])
def test_bound(shape: tuple[int, ...]) -> None:
    """In float32 within 2e-5 of the largest result."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    w = rng.standard_normal((8, shape[1], 3, 3)).astype(np.float32)
    direct, fast = conv(x, w, 0, padding=1), conv(x, w, 1, padding=1)
    assert not np.array_equal(direct, fast), "the transforms were not used"
    assert np.abs(direct - fast).max() <= 2e-5 * np.abs(direct).max()


@pytest.mark.parametrize("how", [{"stride": 2}, {"dilation": 2}])
def test_other_geometry_keeps_the_direct_form(how: dict[str, int]) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((1, 2, 9, 9)).astype(np.float32), rng.standard_normal((2, 2, 3, 3)).astype(np.float32)
    assert np.array_equal(conv(x, w, 0, **how), conv(x, w, 1, **how))


def test_what_fits() -> None:
    assert winograd.fits((3, 3), (1, 1), (1, 1), True) and winograd.fits((3,), (1,), (1,), True)
    assert not winograd.fits((3, 5), (1, 1), (1, 1), True) and not winograd.fits((3, 3), (1, 1), (1, 1), False)


def test_integers_stay_exact() -> None:
    x, w = np.arange(25, dtype=np.int32).reshape(1, 1, 5, 5), np.arange(9, dtype=np.int32).reshape(1, 1, 3, 3)
    assert np.array_equal(conv(x, w, 0), conv(x, w, 1))
