"""Random arguments: shapes with 0 to 3 axes, zero extents and broadcasting, every dtype, against array-api-strict."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyhost.array_api as xp

from .elementwise import BINARY, UNARY
from .oracle import ALL, FLOATS, INTS, NUMERIC, compare, values

Random = np.random.Generator


def _shape(rng: Random, low: int = 0, high: int = 3) -> tuple[int, ...]:
    extents = rng.choice([0, 1, 2, 3, 4], size=rng.integers(low, high + 1), p=[.06, .2, .3, .24, .2])
    return tuple(int(n) for n in extents)


def _dtype(rng: Random, kinds: list[str]) -> str:
    return str(rng.choice(kinds))


def _axis(rng: Random, ndim: int) -> int:
    return int(rng.integers(-ndim, ndim))


def _array(rng: Random, kinds: list[str], shape: tuple[int, ...] | None = None, low: float | None = None,
           high: float | None = None) -> np.ndarray[Any, Any]:
    shape = _shape(rng) if shape is None else shape
    return values(_dtype(rng, kinds), shape, low, high, seed=int(rng.integers(1 << 30)))


def _narrow(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "iu" and array.dtype.itemsize < 8


def unary(rng: Random) -> None:
    name = str(rng.choice(list(UNARY)))
    kinds, low, high = UNARY[name]
    compare(name, _array(rng, kinds, low=low, high=high))


def binary(rng: Random) -> None:
    name = str(rng.choice(list(BINARY)))
    kinds, low, high = BINARY[name]
    shape = _shape(rng)
    other = tuple(1 if rng.random() < 0.3 else n for n in shape[int(rng.integers(0, len(shape) + 1)):])
    first, second = (shape, other) if rng.random() < 0.5 else (other, shape)
    dtype = _dtype(rng, kinds)
    base = low if name == "pow" and dtype in FLOATS else None
    compare(name, _array(rng, [dtype], first, base), _array(rng, [dtype], second, low, high))


def reduction(rng: Random) -> None:
    name = str(rng.choice(["sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero"]))
    x = _array(rng, ALL if name in ("all", "any") else FLOATS if name in ("mean", "std", "var") else NUMERIC)
    axes = tuple(int(a) for a in rng.permutation(x.ndim)[:rng.integers(0, x.ndim + 1)])
    axis = None if rng.random() < 0.3 else axes if rng.random() < 0.7 or not axes else axes[0]
    seen = [x.shape[a] for a in (range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis)]
    if 0 in seen and name in ("max", "min", "mean", "std", "var"):
        return
    default = name == "count_nonzero" or (name in ("sum", "prod") and _narrow(x))
    compare(name, x, axis=axis, keepdims=bool(rng.random() < 0.5), default=default)


def movement(rng: Random) -> None:
    x = _array(rng, ALL, _shape(rng, 1))
    axis = _axis(rng, x.ndim)
    shift = int(rng.integers(-5, 6))
    order = tuple(int(i) for i in rng.permutation(x.ndim))
    choices: list[Callable[[], None]] = [
        lambda: compare("flip", x, axis=axis), lambda: compare("roll", x, shift, axis=axis),
        lambda: compare("roll", x, shift), lambda: compare("permute_dims", x, order),
        lambda: compare("expand_dims", x, axis), lambda: compare("repeat", x, abs(shift), axis=axis),
        lambda: compare("unstack", x, axis=axis), lambda: compare("reshape", x, (-1,) if x.size else x.shape),
        lambda: compare("moveaxis", x, axis, _axis(rng, x.ndim)), lambda: compare("broadcast_to", x, (2, *x.shape)),
        lambda: compare("tile", x, tuple(int(n) for n in rng.integers(1, 3, rng.integers(0, 4))))]
    choices[int(rng.integers(len(choices)))]()


def order(rng: Random) -> None:
    x = _array(rng, NUMERIC, _shape(rng, 1))
    axis, down = _axis(rng, x.ndim), bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        compare("sort", x, axis=axis, descending=down)
    elif x.shape[axis] and rng.random() < 0.5:
        compare(str(rng.choice(["argmax", "argmin"])), x, axis=axis, default=True)
    else:
        compare("argsort", x, axis=axis, descending=down, default=True)


def running(rng: Random) -> None:
    x = _array(rng, NUMERIC, _shape(rng, 1))
    name = str(rng.choice(["cumulative_sum", "cumulative_prod"]))
    compare(name, x, axis=_axis(rng, x.ndim), include_initial=bool(rng.random() < 0.5), default=_narrow(x))


def product(rng: Random) -> None:
    n, kinds = int(rng.integers(0, 4)), [_dtype(rng, NUMERIC)]
    lead = _shape(rng, 0, 1)
    x, y = _array(rng, kinds, (*lead, 2, n)), _array(rng, kinds, (n, 3))
    if rng.random() < 0.6:
        compare("matmul", x, y)
    else:
        compare("tensordot", x, y, axes=1)


def index(rng: Random) -> None:
    x = _array(rng, ALL, tuple(n or 1 for n in _shape(rng, 1)))
    axis = _axis(rng, x.ndim)
    if rng.random() < 0.6:
        compare("take", x, rng.integers(0, x.shape[axis], rng.integers(0, 4)), axis=axis)
    else:
        shape = list(x.shape)
        shape[axis] = 2
        compare("take_along_axis", x, rng.integers(0, x.shape[axis], shape), axis=axis)


FAMILIES = [unary, binary, binary, reduction, reduction, movement, movement, order, running, product, index]


def _run(seed: int) -> None:
    rng = np.random.default_rng(seed)
    FAMILIES[seed % len(FAMILIES)](rng)


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(11))
def test_random_calls(block: int) -> None:
    for i in range(12):
        _run(block + 11 * i)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(100))
def test_many_random_calls(block: int) -> None:
    for seed in range(1000 + 110 * block, 1000 + 110 * (block + 1)):
        try:
            _run(seed)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}") from e


# *** arguments that cannot be ***
BAD: list[tuple[str, Callable[[], Any]]] = [
    ("shapes", lambda: xp.add(xp.zeros(2), xp.zeros(3))), ("matmul", lambda: xp.matmul(xp.zeros((2, 3)), xp.zeros(2))),
    ("axis", lambda: xp.sum(xp.zeros((2, 3)), axis=2)), ("axis twice", lambda: xp.sum(xp.zeros((2, 3)), axis=(0, 0))),
    ("flip", lambda: xp.flip(xp.zeros(2), axis=1)), ("concat axis", lambda: xp.concat([xp.zeros(2)], axis=1)),
    ("stack axis", lambda: xp.stack([xp.zeros(2)], axis=2)), ("expand", lambda: xp.broadcast_to(xp.zeros(2), (3,))),
    ("permute", lambda: xp.permute_dims(xp.zeros((2, 3)), (0, 0))), ("reshape", lambda: xp.reshape(xp.zeros(4), (3,))),
    ("squeeze", lambda: xp.squeeze(xp.zeros((2, 1)), 0)), ("take", lambda: xp.take(xp.zeros((2, 2)), xp.zeros(1))),
    ("sort axis", lambda: xp.sort(xp.zeros(2), axis=1)), ("negative", lambda: xp.zeros((-1,))),
    ("shift of floats", lambda: xp.bitwise_left_shift(xp.zeros(2), xp.zeros(2))),
    ("and of floats", lambda: xp.bitwise_and(xp.zeros(2), xp.zeros(2))), ("two scalars", lambda: xp.add(1, 2)),
    ("vecdot", lambda: xp.vecdot(xp.zeros(3), xp.zeros(4))),
    ("vecdot axis", lambda: xp.vecdot(xp.zeros(3), xp.zeros(3), axis=0)),
    ("tensordot", lambda: xp.tensordot(xp.zeros(3), xp.zeros(4), axes=1)), ("complex", lambda: xp.asarray(1j)),
    ("cross", lambda: xp.linalg.cross(xp.zeros(2), xp.zeros(2))), ("inv", lambda: xp.linalg.inv(xp.zeros((2, 3)))),
    ("cumulative axis", lambda: xp.cumulative_sum(xp.zeros((2, 2)))), ("no arrays", lambda: xp.concat([])),
    ("kind", lambda: xp.isdtype(xp.int8, "float")), ("moveaxis", lambda: xp.moveaxis(xp.zeros((2, 2)), (0, 1), 0))]


@pytest.mark.parametrize("call", [b[1] for b in BAD], ids=[b[0] for b in BAD])
def test_impossible_arguments_are_errors(call: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    assert len(str(caught.value)) > 10


@pytest.mark.parametrize("dtype", INTS)
def test_integers_wrap(dtype: str) -> None:
    info = np.iinfo(dtype)
    edge = np.array([info.max, info.min, info.max // 2, 1], dtype)
    for name in ("add", "subtract", "multiply"):
        compare(name, edge.reshape(-1, 1).copy(), edge)
    for name in ("negative", "abs", "square", "sign"):
        compare(name, edge)
