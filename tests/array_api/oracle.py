"""Comparison with array-api-strict, and the inputs that both get.

Default dtypes may differ between implementations: where the standard says "default", a result of strict's default maps
to ours. Values of floats are compared with a tolerance, special values bit by bit in their NaNs, infinities and signs
of zero.
"""
from __future__ import annotations

from typing import Any

import array_api_strict as sx
import numpy as np

import tinyhost.array_api as xp
from tinyhost import Tensor
from tinyhost.dtype import DType

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
FLOATS = ["float32", "float64"]
NUMERIC = INTS + FLOATS
ALL = ["bool", *NUMERIC]
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.5, 1e-30, -1e30])
_NAMES: dict[Any, str] = {getattr(xp, n): n for n in ALL}


def name_of(dtype: DType) -> str:
    """The standard's name of one of our dtypes."""
    return _NAMES.get(dtype, repr(dtype))


def values(dtype: str, shape: tuple[int, ...] = (2, 3), low: float | None = None, high: float | None = None,
           seed: int = 0) -> np.ndarray[Any, Any]:
    """The same random numbers for the same arguments; small integers, floats of a few units."""
    rng = np.random.default_rng([seed, ALL.index(dtype), *shape])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return rng.uniform(-3 if low is None else low, 3 if high is None else high, shape).astype(dtype)
    bottom = 0 if dtype in UNSIGNED else -6
    return rng.integers(bottom if low is None else int(low), 7 if high is None else int(high), shape).astype(dtype)


def both(*arrays: Any) -> tuple[list[Tensor], list[Any]]:
    """numpy arrays as ours and as strict's; other values stay."""
    ours = [xp.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arrays]
    theirs = [sx.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arrays]
    return ours, theirs


def agree(ours: Any, theirs: Any, default: bool = False, rtol: float | None = None, exact: bool = False) -> None:
    """Demand the same dtype, shape and values; tuples element by element.

    ``default``: strict's default dtypes stand for ours. ``exact``: the signs of zeros count.
    """
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for o, t in zip(ours, theirs):
            agree(o, t, default, rtol, exact)
        return
    assert isinstance(ours, Tensor), f"an array is expected, got {type(ours).__name__}"
    want = np.asarray(theirs)
    name = want.dtype.name
    if default:
        name = {"int64": "int32", "uint64": "uint32", "float64": "float32"}.get(name, name)
    assert name_of(ours.dtype) == name, f"dtype {name_of(ours.dtype)} instead of {name}"
    assert ours.shape == want.shape, f"shape {ours.shape} instead of {want.shape}"
    got = ours.numpy()
    if want.dtype.kind == "f" or got.dtype.kind == "f":
        tolerance = rtol if rtol is not None else TOLERANCE[got.dtype.name]
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
        if exact:
            zero = want == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), "signs of zeros")
    else:
        np.testing.assert_array_equal(got, want)


def compare(name: str, *args: Any, default: bool = False, rtol: float | None = None, exact: bool = False,
            module: str = "", **kwargs: Any) -> None:
    """Demand that a function of both namespaces agrees on the same arguments."""
    left, right = (getattr(m, module) if module else m for m in (xp, sx))
    ours, theirs = both(*args)
    named = {k: both(v) for k, v in kwargs.items()}
    with np.errstate(all="ignore"):
        want = getattr(right, name)(*theirs, **{k: _dtype(sx, v[1][0]) for k, v in named.items()})
        got = getattr(left, name)(*ours, **{k: _dtype(xp, v[0][0]) for k, v in named.items()})
        agree(got, want, default, rtol, exact)


class Named(str):
    """A dtype by name, which each namespace turns into its own."""


def _dtype(namespace: Any, value: Any) -> Any:
    return getattr(namespace, value) if isinstance(value, Named) else value
