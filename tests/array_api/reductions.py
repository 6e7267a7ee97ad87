"""Rows of indexing, searching, sorting, sets, statistics and products."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import array_api_strict as sx
import numpy as np

import tinyhost.array_api as xp

from .entries import entry
from .functions import expect
from .oracle import ALL, FLOATS, INTS, NUMERIC, Named, compare, values

SEARCHING, STATISTICAL, LINEAR = "Searching functions", "Statistical functions", "Linear algebra functions"


# *** indexing ***
@entry("Indexing functions", "take")
def _take() -> None:
    for axis in (0, 1, -1):
        compare("take", values("float32", (3, 4)), np.array([2, 0, 1, 1]), axis=axis)
    for d in ALL:
        compare("take", values(d, (5,)), np.array([4, 0], np.int8 if d == "int8" else np.int64))
    compare("take", values("int32", (3,)), np.zeros(0, np.int64))


@entry("Indexing functions", "take_along_axis")
def _take_along_axis() -> None:
    x = values("float32", (3, 4))
    compare("take_along_axis", x, np.array([[3, 0], [1, 1], [2, 3]]))
    compare("take_along_axis", x, np.array([[2, 0, 1, 1]]), axis=0)
    compare("take_along_axis", x, np.array([[1], [0], [3]]), axis=1)
    compare("take_along_axis", values("int8", (1, 4)), np.array([[1], [0], [3]]), axis=-1)


# *** searching and sorting ***
TIES = np.array([[3, 1, 3, 0], [0, 0, 2, 2], [5, -1, 5, -1]])


def _arg(name: str) -> Callable[[], None]:
    def check() -> None:
        for d in NUMERIC:
            for axis in (None, 0, -1):
                compare(name, TIES.clip(0).astype(d), axis=axis, default=True)
        compare(name, TIES, axis=1, keepdims=True, default=True)
        compare(name, TIES, keepdims=True, default=True)
        compare(name, np.array([1.0, np.nan, 3.0, np.nan]), default=True)
    return check


entry(SEARCHING, "argmax")(_arg("argmax"))
entry(SEARCHING, "argmin")(_arg("argmin"))


@entry(SEARCHING, "count_nonzero")
def _count_nonzero() -> None:
    for d in ALL:
        compare("count_nonzero", values(d, (3, 4)), axis=1, default=True)
    compare("count_nonzero", values("int8", (3, 4)), axis=(0, 1), keepdims=True, default=True)
    compare("count_nonzero", values("bool", (0, 2)), default=True)


@entry(SEARCHING, "nonzero", dynamic=True)
def _nonzero() -> None:
    for d in ALL:
        compare("nonzero", values(d, (3, 4)), default=True)
    compare("nonzero", np.zeros(3), default=True)
    expect("nonzero", xp.asarray(1))


@entry(SEARCHING, "searchsorted")
def _searchsorted() -> None:
    row = np.array([1.0, 2.0, 2.0, 5.0])
    for side in ("left", "right"):
        for d in ("float32", "int16", "uint8", "float64"):
            compare("searchsorted", row.astype(d), np.array([[0, 2, 7], [1, 5, 3]], d), side=side, default=True)
        compare("searchsorted", row, 2.0, side=side, default=True)
    compare("searchsorted", row[[2, 0, 3, 1]], np.array([1.5, 4.0]), sorter=np.array([1, 0, 3, 2]), default=True)
    expect("searchsorted", xp.zeros(1), xp.zeros(1), side="middle")


@entry(SEARCHING, "where")
def _where() -> None:
    condition = values("bool", (2, 3))
    for d in ALL:
        compare("where", condition, values(d, (3,)), values(d, (2, 1), seed=1))
    compare("where", condition, values("float32", (3,)), 0.0)
    compare("where", condition, 1, values("int8", (3,)))
    compare("where", values("bool", ()), values("int8", ()), values("int16", ()))


SORT_ME = np.array([[3, 1, 2, 1, 0], [0, 0, 6, 5, 5]])


@entry("Sorting functions", "argsort")
def _argsort() -> None:
    for d, descending in itertools.product(NUMERIC, (False, True)):
        compare("argsort", SORT_ME.astype(d), descending=descending, default=True)
    compare("argsort", SORT_ME, axis=0, default=True)
    compare("argsort", SORT_ME, axis=-2, stable=False, default=True)


@entry("Sorting functions", "sort")
def _sort() -> None:
    for d, descending in itertools.product(NUMERIC, (False, True)):
        compare("sort", SORT_ME.astype(d), descending=descending)
    compare("sort", SORT_ME, axis=0)
    compare("sort", values("float32", (40,)))


# *** sets ***
@entry("Set functions", "isin")
def _isin() -> None:
    for d in INTS:
        compare("isin", values(d, (3, 4)), values(d, (2, 2), seed=1))
    for invert in (False, True):
        x = values("int8", (5,))
        assert xp.isin(xp.asarray(x), 2, invert=invert).tolist() == np.isin(x, 2, invert=invert).tolist()
        some = values("int8", (2,), seed=1)
        assert xp.isin(xp.asarray(x), xp.asarray(some), invert=invert).tolist() == np.isin(
            x, some, invert=invert).tolist()
    compare("isin", values("int8", (3,)), np.zeros(0, np.int8))


def _unique(name: str) -> Callable[[], None]:
    def check() -> None:
        for d in ALL:
            array = np.array([3, 1, 0, 3, 1, 1]).astype(d).reshape(2, 3)
            want = getattr(sx, name)(sx.asarray(array))
            got = getattr(xp, name)(xp.asarray(array))
            for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want]):
                np.testing.assert_array_equal(g.numpy(), np.asarray(w))
            if isinstance(want, tuple):
                assert got._fields == want._fields
        nans = getattr(xp, name)(xp.asarray([math.nan, 1.0, math.nan, 1.0]))
        assert (nans[0] if isinstance(nans, tuple) else nans).shape == (3,)
        empty = getattr(xp, name)(xp.zeros((0,)))
        assert (empty[0] if isinstance(empty, tuple) else empty).shape == (0,)
    return check


for _n in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
    entry("Set functions", _n, dynamic=True)(_unique(_n))


# *** statistics ***
def _reduction(name: str) -> Callable[[], None]:
    def check() -> None:
        kinds = FLOATS if name in ("mean", "std", "var") else NUMERIC
        for d in kinds:
            compare(name, values(d, (3, 4)), axis=1, default=d in INTS and name in ("sum", "prod")
                    and np.dtype(d).itemsize < 8)
        last = kinds[-1]
        for axis in (None, 0, -1, (0, 2), ()):
            for keepdims in (False, True):
                compare(name, values(last, (2, 3, 4)), axis=axis, keepdims=keepdims)
        compare(name, values(last, ()))
        compare(name, np.array([[1, np.nan, 3], [np.inf, 1, 2]]), axis=1)
    return check


for _n in ("max", "mean", "min", "prod", "std", "sum", "var"):
    entry(STATISTICAL, _n)(_reduction(_n))


@entry(STATISTICAL, "sum, prod", "dtype argument and no elements")
def _sum_dtype() -> None:
    for name, d in itertools.product(("sum", "prod"), ("int8", "int64", "float32", "float64")):
        compare(name, values("int8", (4,)), dtype=Named(d))
    for name in ("sum", "prod"):
        compare(name, np.zeros((0, 2)), axis=0)
        compare(name, np.zeros((2, 0), np.float32))


@entry(STATISTICAL, "max, min", "no elements are an error")
def _max_empty() -> None:
    expect("max", xp.zeros((0, 2)), axis=0)
    expect("min", xp.zeros((2, 0)))
    compare("max", np.zeros((0, 2)), axis=1)


@entry(STATISTICAL, "std, var", "correction")
def _correction() -> None:
    for name, correction in itertools.product(("std", "var"), (0, 1, 0.5, 2)):
        compare(name, values("float64", (3, 4)), axis=0, correction=correction)


def _running(name: str) -> Callable[[], None]:
    def check() -> None:
        for d in NUMERIC:
            compare(name, values(d, (4,)), default=d in INTS and np.dtype(d).itemsize < 8)
        for axis, initial in itertools.product((0, 1, -1), (False, True)):
            compare(name, values("float64", (2, 3)), axis=axis, include_initial=initial)
        for d in ("int8", "float32"):
            compare(name, values("int16", (3,)), dtype=Named(d))
        expect(name, xp.zeros((2, 2)))
    return check


entry(STATISTICAL, "cumulative_sum")(_running("cumulative_sum"))
entry(STATISTICAL, "cumulative_prod")(_running("cumulative_prod"))


# *** utility ***
def _truth(name: str) -> Callable[[], None]:
    def check() -> None:
        for d in ALL:
            compare(name, values(d, (3, 2)), axis=1)
        for axis in (None, 0, (0, 1), ()):
            compare(name, values("bool", (2, 3)), axis=axis, keepdims=True)
        compare(name, np.zeros((0,), bool))
        compare(name, np.array([np.nan, 0.0]))
    return check


entry("Utility functions", "all")(_truth("all"))
entry("Utility functions", "any")(_truth("any"))


@entry("Utility functions", "diff")
def _diff() -> None:
    for d in NUMERIC:
        compare("diff", np.sort(values(d, (5,))))
    for axis, n in itertools.product((0, 1, -1), (0, 1, 2)):
        compare("diff", values("float64", (3, 4)), axis=axis, n=n)
    compare("diff", values("float32", (3,)), prepend=values("float32", (2,)), append=values("float32", (1,)))


# *** products ***
SHAPES = [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((5, 2, 3), (3, 2)),
          ((2, 1, 2, 3), (4, 3, 1)), ((2, 0), (0, 3))]


@entry(LINEAR, "matmul")
def _matmul() -> None:
    for a, b in SHAPES:
        compare("matmul", values("float64", a), values("float64", b, seed=1))
    for d in NUMERIC:
        compare("matmul", values(d, (2, 3)), values(d, (3, 2), seed=1))
    compare("matmul", values("int8", (2, 3)), values("int32", (3,)))
    expect("matmul", xp.asarray(1.0), xp.zeros(2))
    expect("matmul", xp.zeros((2, 3)), xp.zeros((2, 3)))


@entry(LINEAR, "matrix_transpose")
def _matrix_transpose() -> None:
    for shape in ((2, 3), (2, 3, 4)):
        compare("matrix_transpose", values("int8", shape))
    expect("matrix_transpose", xp.zeros(2))


@entry(LINEAR, "tensordot")
def _tensordot() -> None:
    x, y = values("float64", (2, 3, 4)), values("float64", (4, 3, 2), seed=1)
    for axes in (0, 1, ((1,), (1,)), ((2, 1), (0, 1)), ((0, 1, 2), (2, 1, 0))):
        compare("tensordot", x, y, axes=axes)
    for d in NUMERIC:
        compare("tensordot", values(d, (2, 3)), values(d, (3, 2), seed=1), axes=1)


@entry(LINEAR, "vecdot")
def _vecdot() -> None:
    for d in NUMERIC:
        compare("vecdot", values(d, (2, 3)), values(d, (3,), seed=1))
    compare("vecdot", values("float64", (3, 2)), values("float64", (3, 1), seed=1), axis=-2)
    expect("vecdot", xp.zeros(2), xp.zeros(3))
