"""One op on many numbers on the device of the context, and the numbers that find mistakes.

``compute`` runs a graph over inputs of any dtype and gives values in numpy carriers (``semantics.carrier_np``);
``same_numbers`` compares bit for bit, except that all NaNs are one.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes, storage_fmt
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import carrier_np, from_storage_np, to_storage_np

Array = np.ndarray[Any, Any]

BIT_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def tensor(values: Array, dtype: DType) -> Tensor:
    """A realized tensor that holds values given in the carrier of ``dtype``."""
    stored = np.ascontiguousarray(to_storage_np(values, dtype))
    if stored.dtype == storage_fmt(dtype) and dtype.fmt is not None:
        return Tensor(stored).realize()
    return Tensor(stored).realize().bitcast(dtype)


def numbers(t: Tensor) -> Array:
    """The elements of a tensor in the carrier of its dtype."""
    if t.dtype.fmt is not None:
        return t.numpy()
    raw = t.contiguous().bitcast(dtypes.uint16 if t.dtype.itemsize == 2 else dtypes.uint8)
    return np.asarray(from_storage_np(raw.numpy(), t.dtype))


def compute(build: Callable[..., UOp], *inputs: Tensor) -> Array:
    """``build`` of the inputs' nodes, as one kernel."""
    return numbers(Tensor._wrap(build(*[t.uop for t in inputs])))


def apply(op: Ops, *inputs: Tensor) -> Array:
    """One ALU op."""
    return compute(lambda *xs: UOp(op, xs), *inputs)


def same_numbers(got: Array, want: Array) -> Array:
    """Where two arrays hold the same bits, or both NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
    if got.dtype.kind != "f":
        return got == want
    bits = BIT_TYPES[got.dtype.itemsize]
    return (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))


def check_numbers(got: Array, want: Array, *inputs: Array) -> None:
    """All elements the same; shows the first few that are not, with their operands."""
    wrong = np.flatnonzero(~same_numbers(got, want))
    shown = [(int(i), *[x.reshape(-1)[i] for x in inputs], got.reshape(-1)[i], want.reshape(-1)[i]) for i in wrong[:6]]
    assert not wrong.size, f"{wrong.size} of {got.size} differ; (index, operands, got, want): {shown}"


# *** numbers ***
def all_of(dtype: DType) -> Array:
    """Every value of a type of 8 or 16 bits, or bool."""
    if dtype is dtypes.bool:
        return np.array([False, True])
    raw = np.arange(1 << dtype.bitsize, dtype=BIT_TYPES[dtype.itemsize])
    return np.asarray(from_storage_np(raw.view(storage_fmt(dtype)), dtype))


def pairs(x: Array) -> tuple[Array, Array]:
    """Every pair of elements, flat."""
    return np.repeat(x, x.size), np.tile(x, x.size)


_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.0, 3.0, 7.0, 10.0, np.inf, -np.inf, np.nan)
_LIMITS = (127.0, 128.0, 255.0, 256.0, -128.0, -129.0, 32767.0, 32768.0, 65535.0, 65536.0, -32768.0, -32769.0,
           2.0**31, 2.0**31 - 1, -(2.0**31), -(2.0**31) - 1, 2.0**32, 2.0**32 - 1, 2.0**63, -(2.0**63), 2.0**64,
           2.0**63 - 1024, 2.0**64 - 2048, 65504.0, 65519.0, 65520.0, 1e30, -1e30, 448.0, 464.0, 240.0, 57344.0)


def edges(dtype: DType) -> Array:
    """Numbers at which something changes: limits of this type and of others, zeros, infinities, NaN, subnormals."""
    if dtype is dtypes.bool:
        return np.array([False, True])
    carrier = carrier_np(dtype)
    if dtype.is_int:
        near = [b + d for b in (0, dtype.min, dtype.max, dtype.min // 2, dtype.max // 2) for d in (-2, -1, 0, 1, 2)]
        small = [3, 5, 7, 8, 10, 16, 31, 32, 63, 64, 100, 127, -3, -7, -10]
        return np.unique(np.array([v for v in near + small if dtype.min <= v <= dtype.max], carrier))
    with np.errstate(all="ignore"):
        base = np.array([v + d for v in (*_FLOATS, *_LIMITS) for d in (0.0, 0.5, -0.5)])
        out = from_storage_np(to_storage_np(base.astype(carrier), dtype), dtype)
    if dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        info = np.finfo(carrier)
        tiny = [info.smallest_subnormal, info.smallest_normal, info.max, info.smallest_normal / 2, info.eps]
        out = np.concatenate([out, np.array(tiny, carrier), -np.array(tiny, carrier)])
    return np.asarray(out)


def random_bits(dtype: DType, count: int, seed: int) -> Array:
    """Random bit patterns: for floats every exponent is as likely, subnormals, NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    if dtype is dtypes.bool:
        return rng.integers(0, 2, count).astype(np.bool_)
    raw = rng.integers(0, 1 << dtype.bitsize, count, dtype=np.uint64).astype(BIT_TYPES[dtype.itemsize]) \
        if dtype.bitsize < 64 else rng.integers(0, 2**64, count, dtype=np.uint64)
    return np.asarray(from_storage_np(raw.view(storage_fmt(dtype)), dtype))


def mixed(dtype: DType, count: int, seed: int) -> Array:
    """Edges, numbers of every size, small numbers, and random bits, shuffled."""
    rng = np.random.default_rng(seed)
    edge = edges(dtype)
    out = [rng.choice(edge, count // 3), random_bits(dtype, count - count // 3 - count // 3, seed + 1)]
    if dtype.is_float:
        with np.errstate(all="ignore"):
            plain = rng.standard_normal(count // 3) * 10.0 ** rng.integers(-3, 4, count // 3)
            out.append(np.asarray(from_storage_np(to_storage_np(plain.astype(carrier_np(dtype)), dtype), dtype)))
    else:
        out.append(rng.integers(0, 2 if dtype is dtypes.bool else 100, count // 3).astype(carrier_np(dtype)))
    return np.asarray(rng.permutation(np.concatenate(out)))
