"""Rows of the array object: attributes, conversions, indexing, assignment, exchange."""
from __future__ import annotations

import operator

import numpy as np
import pytest

import tinyhost.array_api as xp
from tinyhost import Tensor

from .entries import DEVIATIONS, entry
from .oracle import ALL, INTS, NUMERIC, agree, both, values

SECTION = "Array object"


@entry(SECTION, "dtype, device, ndim, shape, size", "attributes")
def _attributes() -> None:
    x = xp.zeros((2, 3), dtype=xp.int8, device="PYTHON")
    assert (x.dtype, x.device, x.ndim, x.shape, x.size) == (xp.int8, "PYTHON", 2, (2, 3), 6)
    assert xp.zeros(()).size == 1 and xp.zeros((0, 3)).size == 0


@entry(SECTION, "T, mT", "attributes")
def _transposes() -> None:
    (x,), (s,) = both(values("int32"))
    agree(x.T, s.T)
    agree(x.mT, s.mT)
    (x,), (s,) = both(values("int32", (2, 3, 4)))
    agree(x.mT, s.mT)


@entry(SECTION, "__array_namespace__", "method")
def _namespace() -> None:
    x = xp.zeros(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match="no array API of version '1999.12'"):
        x.__array_namespace__(api_version="1999.12")


@entry(SECTION, "__dlpack__, __dlpack_device__", "method")
def _dlpack() -> None:
    x = xp.asarray([1.0, 2.0])
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2])
    assert x.__dlpack_device__() == (1, 0)


@entry(SECTION, "to_device", "method")
def _to_device() -> None:
    x = xp.asarray([1, 2])
    assert x.to_device("PYTHON").device == "PYTHON" and x.to_device("PYTHON").tolist() == [1, 2]
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("PYTHON", stream=3)


@entry(SECTION, "unary operators", "operators")
def _unary() -> None:
    for d in NUMERIC:
        (x,), (s,) = both(values(d))
        for f in (operator.neg, operator.pos, abs):
            agree(f(x), f(s))
    for d in ("bool", *INTS):
        (x,), (s,) = both(values(d))
        agree(~x, ~s)


@entry(SECTION, "matmul operator", "operators")
def _matmul() -> None:
    (x, y), (s, t) = both(values("float64", (2, 3)), values("float64", (3,), seed=1))
    agree(x @ y, s @ t)


@entry(SECTION, "in-place operators", "operators")
def _in_place() -> None:
    for f in (operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod, operator.ipow,
              operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
        (x, y), (s, t) = both(values("int32", (2, 3), 1, 5), values("int32", (3,), 1, 3, seed=1))
        agree(f(x, y), f(s, t))
    (x, y), (s, t) = both(values("float64", (3, 3)), values("float64", (3, 3), 1, 2, seed=1))
    for f in (operator.itruediv, operator.imatmul):
        agree(f(x, y), f(s, t))


@entry(SECTION, "__bool__", "0-d bool")
def _bool() -> None:
    assert bool(xp.asarray(True)) is True and bool(xp.asarray(False)) is False
    with pytest.raises(TypeError):
        bool(xp.zeros(2, dtype=xp.bool))


@entry(SECTION, "__bool__", "0-d numbers")
def _bool_numbers() -> None:
    assert bool(xp.asarray(1.5)) is True and bool(xp.asarray(0)) is False


DEVIATIONS["__bool__: 0-d numbers"] = "only a bool has a truth value, as everywhere in the Tensor API: write x != 0"


@entry(SECTION, "__int__, __float__, __index__, __complex__", "conversions")
def _numbers() -> None:
    assert int(xp.asarray(3.7)) == 3 and float(xp.asarray(2)) == 2.0 and complex(xp.asarray(1.5)) == 1.5
    assert operator.index(xp.asarray(4, dtype=xp.uint8)) == 4 and int(xp.asarray(True)) == 1
    assert [10, 20][xp.asarray(1)] == 20
    for f in (int, float, complex, operator.index):
        with pytest.raises(TypeError):
            f(xp.zeros(2))
    with pytest.raises(TypeError):
        operator.index(xp.asarray(1.0))


INDICES = [0, -1, (1, 2), (slice(None), 1), slice(0, 1), slice(None, None, -1),
           (slice(None), slice(None, None, 2)), ..., (..., 0), (None, 1), (slice(None), None), (slice(1, 1),),
           (0, slice(2, 0, -1)), ()]


@entry(SECTION, "__getitem__", "integers, slices, ellipsis, newaxis")
def _getitem() -> None:
    for d in ("int32", "float32", "bool"):
        (x,), (s,) = both(values(d, (2, 3)))
        for index in INDICES:
            if index != ():
                key = index if isinstance(index, tuple) else (index,)
                full = key if Ellipsis in key or sum(k is not None for k in key) == 2 else (*key, ...)
                agree(x[index], s[full])
        agree(x[()], s[..., ])
    with pytest.raises(IndexError):
        xp.zeros((2, 3))[2]


@entry(SECTION, "__getitem__", "integer arrays")
def _getitem_arrays() -> None:
    (x, i, j), (s, k, m) = both(values("float32", (3, 4)), np.array([2, 0, 1]), np.array([[0], [2]]))
    for got, want in ((x[i, 1], s[k, 1]), (x[i, i], s[k, k]), (x[j, i], s[m, k])):
        agree(got, want)


@entry(SECTION, "__getitem__", "boolean mask", dynamic=True)
def _getitem_mask() -> None:
    (x, m), (s, n) = both(values("float32", (3, 4)), values("bool", (3, 4)))
    agree(x[m], s[n])
    agree(x[x > 0], s[s > 0])


@entry(SECTION, "__setitem__", "integers, slices, arrays, scalars")
def _setitem() -> None:
    for index, value in ((0, 5), ((1, 2), 7), ((slice(None), 1), np.array([8, 9], np.int32)),
                         ((slice(None), slice(None, None, 2)), 0), ((0, ...), np.array([1, 2, 3], np.int32)),
                         (..., 3), ((slice(None, None, -1), 0), np.array([1, 2], np.int32))):
        (x, v), (s, w) = both(values("int32", (2, 3)), value)
        x[index] = v
        s[index if isinstance(index, tuple) and (len(index) == 2) else (index, ...) if index is not ... else ...] = w
        agree(x, s)


@entry(SECTION, "__setitem__", "boolean mask")
def _setitem_mask() -> None:
    (x, m), (s, n) = both(values("float32", (3, 4)), values("bool", (3, 4)))
    x[m] = 0.0
    s[n] = 0.0
    agree(x, s)


@entry(SECTION, "Python containers", "len, iter, in")
def _containers() -> None:
    x = xp.asarray([[1, 2], [3, 4]])
    assert len(x) == 2 and [r.tolist() for r in x] == [[1, 2], [3, 4]] and 3 in x and 5 not in x
    for f in (len, iter, list):
        with pytest.raises(TypeError):
            f(xp.asarray(1))


@entry(SECTION, "arrays are Tensors", "design")
def _tensors() -> None:
    assert isinstance(xp.zeros(2), Tensor) and all(hasattr(xp, d) for d in ALL)
