"""Rows of signatures, constants, dtypes, creation and manipulation."""
from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import array_api_strict as sx
import numpy as np
import pytest
import torch

import tinyhost.array_api as xp
from tinyhost import Device, dtypes

from .entries import entry
from .oracle import ALL, FLOATS, INTS, Named, agree, both, compare, values

CREATION, MANIPULATION, TYPES = "Creation functions", "Manipulation functions", "Data type functions"


def expect(name: str, *args: Any, error: Any = ValueError, **kw: Any) -> None:
    """Demand an error of one of our functions."""
    with pytest.raises(error):
        getattr(xp, name)(*args, **kw)


# *** signatures: of every function that the oracle has ***
_NOT_STANDARD = {"get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags"}
SIGNATURES = [n for n in dir(sx) if inspect.isfunction(getattr(sx, n)) and not n.startswith("_")
              and n not in _NOT_STANDARD]
LINALG_SIGNATURES = [n for n in sx.linalg.__all__ if n not in ("eig", "eigvals")]


def _signature(module: str, name: str) -> Callable[[], None]:
    def check() -> None:
        left, right = (getattr(m, module) if module else m for m in (xp, sx))
        ours = inspect.signature(getattr(left, name)).parameters
        theirs = inspect.signature(getattr(right, name)).parameters
        assert list(ours) == list(theirs), f"parameters {list(ours)} instead of {list(theirs)}"
        for key, want in theirs.items():
            assert ours[key].kind == want.kind, f"{key} is {ours[key].kind.name} instead of {want.kind.name}"
            undefined = type(want.default).__name__ == "Undef"
            assert undefined or ours[key].default == want.default, f"default of {key}: {ours[key].default}"
    return check


for _n in SIGNATURES:
    entry("Signatures", _n, "signature")(_signature("", _n))
for _n in LINALG_SIGNATURES:
    entry("Signatures", f"linalg.{_n}", "signature")(_signature("linalg", _n))


# *** constants, dtypes, information ***
@entry("Constants", "e, inf, nan, newaxis, pi")
def _constants() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
    x = xp.asarray([1, 2])
    assert x[:, xp.newaxis].shape == (2, 1)


for _d in ALL:
    @entry("Data types", _d)
    def _data_type(name: str = _d) -> None:
        dtype = getattr(xp, name)
        assert dtype == getattr(xp, name) and dtype != getattr(xp, "int8" if name != "int8" else "bool")
        x = xp.zeros(2, dtype=dtype)
        assert x.dtype == dtype and x.numpy().dtype.name == name


@entry("Inspection", "__array_namespace_info__")
def _info() -> None:
    info = xp.__array_namespace_info__()
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.default_device() == Device.DEFAULT and Device.DEFAULT in info.devices()
    assert info.default_dtypes() == {"real floating": xp.float32, "integral": xp.int32, "indexing": xp.int32}
    assert set(info.dtypes()) == set(ALL)
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"):
        want = {n for n in sx.__array_namespace_info__().dtypes(kind=kind) if n in ALL}
        assert set(info.dtypes(kind=kind)) == want
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert info.dtypes(kind="complex floating") == {}
    with pytest.raises(ValueError, match="unknown kind of dtype 'odd'"):
        info.dtypes(kind="odd")


@entry("Inspection", "__array_api_version__")
def _version() -> None:
    assert xp.__array_api_version__ == sx.__array_api_version__


@entry(TYPES, "astype")
def _astype() -> None:
    for a, b in itertools.product(ALL, ALL):
        agree(xp.astype(xp.asarray(values(a, low=0)), getattr(xp, b)),
              sx.astype(sx.asarray(values(a, low=0)), getattr(sx, b)))
    x = xp.asarray([1.5, 2.5])
    assert xp.astype(x, xp.float32, copy=False) is x
    y = xp.astype(x, xp.float32)
    y += 1
    assert x.tolist() == [1.5, 2.5]
    assert xp.astype(x, xp.int8, device="PYTHON").device == "PYTHON"


@entry(TYPES, "can_cast")
def _can_cast() -> None:
    for a, b in itertools.product(ALL, ALL):
        want = sx.can_cast(getattr(sx, a), getattr(sx, b))
        assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == want, (a, b)
        assert xp.can_cast(xp.zeros(1, dtype=getattr(xp, a)), getattr(xp, b)) == want


@entry(TYPES, "finfo")
def _finfo() -> None:
    for d in FLOATS:
        got, want = xp.finfo(getattr(xp, d)), np.finfo(d)
        assert (got.bits, got.eps, got.max, got.min, got.smallest_normal) == (
            want.bits, want.eps, want.max, want.min, want.smallest_normal) and got.dtype is getattr(xp, d)
        assert xp.finfo(xp.zeros(1, dtype=getattr(xp, d))) == got and type(got.eps) is float
    assert xp.finfo(dtypes.half).max == 65504 and xp.finfo(dtypes.bfloat16).eps == 2**-7
    with pytest.raises(TypeError, match="finfo is for floats"):
        xp.finfo(xp.int8)


@entry(TYPES, "iinfo")
def _iinfo() -> None:
    for d in INTS:
        got, want = xp.iinfo(getattr(xp, d)), np.iinfo(d)
        assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min) and got.dtype is getattr(xp, d)
    with pytest.raises(TypeError, match="iinfo is for integers"):
        xp.iinfo(xp.zeros(1))


@entry(TYPES, "isdtype")
def _isdtype() -> None:
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for d in ALL:
        for kind in [*kinds, ("bool", "integral"), ("real floating", "signed integer")]:
            assert xp.isdtype(getattr(xp, d), kind) == sx.isdtype(getattr(sx, d), kind), (d, kind)
        assert xp.isdtype(getattr(xp, d), getattr(xp, d)) and xp.isdtype(getattr(xp, d), (xp.bool, getattr(xp, d)))
    expect("isdtype", xp.int8, "odd")


@entry(TYPES, "result_type")
def _result_type() -> None:
    assert xp.result_type(xp.int8, xp.uint8, xp.int16) is xp.int16
    assert xp.result_type(xp.zeros(2), 1, 2.5) is xp.float32 and xp.result_type(xp.float64, xp.zeros(1)) is xp.float64
    expect("result_type", 1, 2.0)
    expect("result_type")


# *** creation ***
@entry(CREATION, "arange")
def _arange() -> None:
    for args in ((5,), (0,), (2, 7), (7, 2, -2), (3, 3), (-4, 4, 3), (10, 0, -3)):
        compare("arange", *args, default=True)
        for d in ("int8", "int64", "float64"):
            compare("arange", *args, dtype=Named(d))
    for args in ((0.0, 1.0, 0.25), (5.0,), (0, 2, 0.5), (1.5, -1.5, -0.5)):
        compare("arange", *args, default=True)
        compare("arange", *args, dtype=Named("float64"))
    assert xp.arange(3, device="PYTHON").device == "PYTHON" and xp.arange(2).device == Device.DEFAULT


@entry(CREATION, "asarray")
def _asarray() -> None:
    for obj in (1, 2.5, True, [1, 2], [[1.0], [2.0]], (True, False), []):
        agree(xp.asarray(obj), sx.asarray(obj), default=True)
    for d in ALL:
        agree(xp.asarray([0, 1], dtype=getattr(xp, d)), sx.asarray([0, 1], dtype=getattr(sx, d)))
        array = values(d)
        agree(xp.asarray(array), sx.asarray(array))
        x = xp.asarray(array)
        assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x
        array[...] = 0
        agree(x, sx.asarray(values(d)))
    x = xp.asarray([1.0, 2.0])
    y = xp.asarray(x, copy=True)
    y += 1
    assert x.tolist() == [1, 2]
    source = np.ones(3, np.float32)
    shared = xp.asarray(source, copy=False)
    source[0] = 5
    assert shared.tolist() == [5, 1, 1] and xp.asarray(torch.ones(2)).tolist() == [1, 1]
    assert xp.asarray(memoryview(b"ab")).tolist() == [97, 98]
    expect("asarray", [1], copy=False)
    expect("asarray", x, dtype=xp.int32, copy=False)
    expect("asarray", 1j, error=TypeError)


@entry(CREATION, "empty, empty_like")
def _empty() -> None:
    assert xp.empty((2, 3)).shape == (2, 3) and xp.empty(4, dtype=xp.int8).dtype is xp.int8
    assert xp.empty_like(xp.zeros((2, 0), dtype=xp.bool)).dtype is xp.bool


@entry(CREATION, "eye")
def _eye() -> None:
    for args in ((3,), (2, 3), (3, 2), (0,), (0, 2)):
        for k in (-3, -1, 0, 1, 2):
            compare("eye", *args, k=k, default=True)
    for d in ALL:
        compare("eye", 2, dtype=Named(d))


@entry(CREATION, "from_dlpack")
def _from_dlpack() -> None:
    source = torch.arange(4.0)
    x = xp.from_dlpack(source)
    source[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    y = xp.from_dlpack(source, copy=True)
    source[0] = 0
    assert y.tolist() == [9, 1, 2, 3] and xp.from_dlpack(source, device="PYTHON").device == "PYTHON"


@entry(CREATION, "full, full_like")
def _full() -> None:
    for value in (True, 3, 2.5, -1, 2**40, math.inf):
        compare("full", (2, 2), value, default=not isinstance(value, int) or value < 2**31)
    for d in ALL:
        compare("full", (3,), 1, dtype=Named(d))
        compare("full_like", values(d), 1)
        compare("full_like", values("int8"), 1, dtype=Named(d))
    for shape in ((), 3, (0, 2)):
        compare("full", shape, 7, default=True)


@entry(CREATION, "linspace")
def _linspace() -> None:
    for args in ((0, 1, 5), (-2.5, 3, 7), (3, -3, 4), (1, 1, 3), (0, 1, 1), (0, 1, 0), (0, 1, 2)):
        for endpoint in (True, False):
            compare("linspace", *args, endpoint=endpoint, default=True)
            compare("linspace", *args, endpoint=endpoint, dtype=Named("float64"))


@entry(CREATION, "meshgrid")
def _meshgrid() -> None:
    for indexing in ("xy", "ij"):
        for sizes in ((3,), (2, 3), (2, 1, 4)):
            agree(xp.meshgrid(*[xp.arange(n) for n in sizes], indexing=indexing),
                  sx.meshgrid(*[sx.arange(n) for n in sizes], indexing=indexing), default=True)
    expect("meshgrid", xp.arange(2), xp.arange(2), indexing="yx")


@entry(CREATION, "ones, ones_like, zeros, zeros_like")
def _ones() -> None:
    for name in ("ones", "zeros"):
        for shape in ((2, 3), 4, (), (0,)):
            compare(name, shape, default=True)
        for d in ALL:
            compare(name, (2,), dtype=Named(d))
            compare(f"{name}_like", values(d))
            compare(f"{name}_like", values("int8"), dtype=Named(d))


@entry(CREATION, "tril, triu")
def _tri() -> None:
    for name, k in itertools.product(("tril", "triu"), (-2, 0, 1, 5)):
        compare(name, values("float32", (3, 4)), k=k)
        compare(name, values("int8", (2, 3, 3)), k=k)
    compare("tril", values("bool", (3, 3)))


# *** manipulation ***
@entry(MANIPULATION, "broadcast_arrays")
def _broadcast_arrays() -> None:
    compare("broadcast_arrays", values("int8", (2, 1)), values("float32", (3,)), values("bool", ()))
    expect("broadcast_arrays", xp.zeros(2), xp.zeros(3))


@entry(MANIPULATION, "broadcast_shapes")
def _broadcast_shapes() -> None:
    for shapes in ((), ((2, 1), (3,)), ((0,), (1,)), ((4, 1, 3), (2, 1), ())):
        assert xp.broadcast_shapes(*shapes) == sx.broadcast_shapes(*shapes)
    expect("broadcast_shapes", (2,), (3,))


@entry(MANIPULATION, "broadcast_to")
def _broadcast_to() -> None:
    for shape, to in (((1, 3), (2, 3)), ((), (2, 2)), ((3,), (0, 3)), ((), ())):
        compare("broadcast_to", values("int16", shape), to)
    expect("broadcast_to", xp.zeros(2), (3,))


@entry(MANIPULATION, "concat")
def _concat() -> None:
    for d in ALL:
        agree(xp.concat(both(values(d), values(d, seed=1))[0]), sx.concat(both(values(d), values(d, seed=1))[1]))
    for axis in (0, 1, -1, None):
        parts = [values("float32", (2, 2)), values("float32", (2, 2), seed=1), values("float64", (2, 2))]
        ours, theirs = both(*parts)
        agree(xp.concat(ours, axis=axis), sx.concat(theirs, axis=axis))
    expect("concat", [xp.zeros((2, 2)), xp.zeros((2, 3))])


@entry(MANIPULATION, "expand_dims")
def _expand_dims() -> None:
    for axis in (0, 1, 2, -1, -3, (0, 2), (-1, 0)):
        compare("expand_dims", values("int32"), axis)
    expect("expand_dims", xp.zeros(2), 3, error=(ValueError, IndexError))


@entry(MANIPULATION, "flip")
def _flip() -> None:
    for axis in (None, 0, -1, (0, 1), (2, 0)):
        compare("flip", values("int32", (2, 3, 2)), axis=axis)
    compare("flip", values("bool", ()))


@entry(MANIPULATION, "moveaxis")
def _moveaxis() -> None:
    for source, target in ((0, 2), (-1, 0), ((0, 1), (1, 2)), ((2, 0), (0, 1))):
        compare("moveaxis", values("int32", (2, 3, 4)), source, target)


@entry(MANIPULATION, "permute_dims")
def _permute_dims() -> None:
    for axes in ((0, 1, 2), (2, 0, 1), (-1, 0, 1)):
        compare("permute_dims", values("int32", (2, 3, 4)), axes)


@entry(MANIPULATION, "repeat")
def _repeat() -> None:
    for repeats, axis in ((2, None), (3, 0), (0, 1), (1, -1)):
        compare("repeat", values("int16"), repeats, axis=axis)


@entry(MANIPULATION, "repeat", "array of repeats", dynamic=True)
def _repeat_array() -> None:
    compare("repeat", values("int16"), np.array([0, 3]), axis=0)
    compare("repeat", values("float32", (4,)), np.array([1, 0, 2, 1]))


@entry(MANIPULATION, "reshape")
def _reshape() -> None:
    for shape in ((3, 2), (6,), (-1,), (2, -1), (1, 2, 3, 1)):
        compare("reshape", values("int32"), shape)
    compare("reshape", values("int32", (1,)), ())
    compare("reshape", values("int32", (0, 2)), (2, 0))
    x = xp.zeros((2, 2))
    y = xp.reshape(x, (4,), copy=True)
    y += 1
    assert x.tolist() == [[0, 0], [0, 0]]
    expect("reshape", x, (3,))


@entry(MANIPULATION, "roll")
def _roll() -> None:
    for shift, axis in ((1, None), (-2, None), (1, 0), (5, 1), ((1, -1), (0, 1)), (2, -1)):
        compare("roll", values("int32"), shift, axis=axis)
    compare("roll", values("int32", ()), 1)


@entry(MANIPULATION, "squeeze")
def _squeeze() -> None:
    for axis in (0, 2, (0, 2), -1):
        compare("squeeze", values("int32", (1, 2, 1)), axis)
    expect("squeeze", xp.zeros((1, 2)), 1)


@entry(MANIPULATION, "stack")
def _stack() -> None:
    for axis in (0, 1, 2, -1):
        ours, theirs = both(values("int8"), values("int16", seed=1))
        agree(xp.stack(ours, axis=axis), sx.stack(theirs, axis=axis))
    expect("stack", [xp.zeros(2), xp.zeros(3)], error=(ValueError, IndexError))


@entry(MANIPULATION, "tile")
def _tile() -> None:
    for reps in ((2,), (2, 1), (3, 2, 2), (), (0, 2)):
        compare("tile", values("int32"), reps)


@entry(MANIPULATION, "unstack")
def _unstack() -> None:
    for axis in (0, 1, -1):
        compare("unstack", values("int32"), axis=axis)
