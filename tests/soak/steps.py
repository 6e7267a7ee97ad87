"""The steps of random programs: what each does to tensors, and what it does to numpy arrays.

A step is data: its kind, the numbers of the values it takes, and parameters. ``TABLE[kind]`` holds two functions,
``tensor(p, *tensors)`` and ``array(p, *arrays)``, which must agree. Steps whose kind is in ``EFFECTS`` change their
first operand, a state, in place. ``UNKNOWN`` kinds have no counterpart in numpy: their arrays are right in shape and
dtype only. No step bakes in a size that a variable extent changes, unless the one who draws it says so.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinyhost import Tensor

Array = Any  # np.ndarray of any dtype and shape
ACCUMULATED = {"int8": "int32", "int16": "int32", "bool": "int32", "uint8": "uint32", "uint16": "uint32"}


class Pair(NamedTuple):
    """One kind of step on both sides."""

    tensor: Callable[..., Any]
    array: Callable[..., Any]


class Step(NamedTuple):
    """``out`` = kind(args, p); ``out`` is the number of the new value, or of the state that changes."""

    kind: str
    out: int
    args: tuple[int, ...]
    p: Any = None

    def __str__(self) -> str:
        args = ", ".join(f"v{a}" for a in self.args)
        return f"v{self.out} = {self.kind}({args}{', ' if args and self.p is not None else ''}" \
               f"{'' if self.p is None else f'p={self.p}'})"


TABLE: dict[str, Pair] = {}
EFFECTS = {"assign", "assign_part", "assign_row", "add_to", "swap", "train"}
UNKNOWN = {"rand", "randint", "train", "backward"}


def _add(kind: str, tensor: Callable[..., Any], array: Callable[..., Any] | None = None) -> None:
    TABLE[kind] = Pair(tensor, array or tensor)


def _small(a: Array, dtype: str) -> Array:
    return np.asarray(a).astype(dtype)


def accumulated(a: Array) -> str:
    """The dtype that sums of the array's have."""
    return ACCUMULATED.get(str(a.dtype), str(a.dtype))


def array_sum(a: Array, axis: Any, keepdims: bool = False) -> Array:
    """numpy's sum, as wide inside as the sums of tensors are."""
    inner = "float32" if a.dtype == np.float16 else accumulated(a)
    return np.asarray(a.sum(axis, dtype=inner, keepdims=keepdims)).astype(accumulated(a))


# *** element-wise; p is a number of the dtype ***
_add("+c", lambda p, t: t + p)
_add("*c", lambda p, t: t * p)
_add("c-", lambda p, t: p - t)
_add("^c", lambda p, t: t ^ p)
_add("&c", lambda p, t: t & p)
_add("//c", lambda p, t: t // p)
_add("%c", lambda p, t: t % p)
_add("<<c", lambda p, t: t << p)
_add(">>c", lambda p, t: t >> p)
_add(">c", lambda p, t: t > p)
_add("==c", lambda p, t: t == p)
_add("not", lambda p, t: t.logical_not(), lambda p, a: np.logical_not(a))
_add("neg", lambda p, t: -t)
_add("relu", lambda p, t: t.relu(), lambda p, a: np.maximum(a, a.dtype.type(0)))
_add("abs", lambda p, t: t.abs(), lambda p, a: np.abs(a))
_add("sign", lambda p, t: t.sign(), lambda p, a: np.sign(a))
_add("floor", lambda p, t: t.floor(), lambda p, a: np.floor(a))
_add("clip", lambda p, t: t.clip(*p), lambda p, a: np.clip(a, *p))
_add("where_c", lambda p, t: (t > p).where(t, p), lambda p, a: np.where(a > p, a, a.dtype.type(p)))
_add("masked", lambda p, t: t.masked_fill(t > p, p), lambda p, a: np.where(a > p, a.dtype.type(p), a))
_add("cast", lambda p, t: t.cast(p), lambda p, a: a.astype(p))
_add("low_bits", lambda p, t: (t.cast("int32") & 7).cast(p), lambda p, a: (a.astype(np.int32) & 7).astype(p))
_add("bits", lambda p, t: t.bitcast(p), lambda p, a: a.view(p))
_add("chain", lambda p, t: _chained(p, t), lambda p, a: _chained(p, a))

_add("add", lambda p, t, u: t + u)
_add("sub", lambda p, t, u: t - u)
_add("mul", lambda p, t, u: t * u)
_add("max2", lambda p, t, u: t.maximum(u), lambda p, a, b: np.maximum(a, b))
_add("min2", lambda p, t, u: t.minimum(u), lambda p, a, b: np.minimum(a, b))
_add("lt", lambda p, t, u: t < u)
_add("eq", lambda p, t, u: t == u)
_add("xor", lambda p, t, u: t ^ u)
_add("and", lambda p, t, u: t & u)
_add("or", lambda p, t, u: t | u)
_add("select", lambda p, c, t, u: c.cast("bool").where(t, u), lambda p, c, a, b: np.where(c.astype(bool), a, b))


def _chained(p: int, x: Any) -> Any:
    """``p`` cheap operations in a row on integers."""
    for i in range(p):
        x = x + i if i % 2 else x ^ 3
    return x


# *** floats that round: equal between runs that execute the same kernels ***
for _kind in ("exp", "sin", "tanh", "sigmoid"):
    _add(_kind, lambda p, t, k=_kind: getattr(t, k)(),
         {"exp": lambda p, a: np.exp(a), "sin": lambda p, a: np.sin(a), "tanh": lambda p, a: np.tanh(a),
          "sigmoid": lambda p, a: 1 / (1 + np.exp(-a))}[_kind])
_add("root", lambda p, t: t.abs().sqrt(), lambda p, a: np.sqrt(np.abs(a)))
_add("inverse", lambda p, t: 1 / (t.abs() + 1), lambda p, a: 1 / (np.abs(a) + 1))
_add("softmax", lambda p, t: t.softmax(p), lambda p, a: np.exp(a - a.max(p, keepdims=True)))
_add("mean", lambda p, t: t.mean(p), lambda p, a: np.asarray(a.mean(p)))
_add("std", lambda p, t: t.std(p, correction=0), lambda p, a: np.asarray(a.std(p)))
_add("tenth", lambda p, t: t * 0.1, lambda p, a: (a * 0.1).astype(a.dtype))

# *** reductions; p is (axes, keepdim) ***
_add("sum", lambda p, t: t.sum(p[0], keepdim=p[1]), lambda p, a: array_sum(a, *p))
_add("max", lambda p, t: t.max(p[0], keepdim=p[1]), lambda p, a: np.asarray(a.max(p[0], keepdims=p[1])))
_add("min", lambda p, t: t.min(p[0], keepdim=p[1]), lambda p, a: np.asarray(a.min(p[0], keepdims=p[1])))
_add("prod", lambda p, t: t.prod(p[0], keepdim=p[1]),
     lambda p, a: np.asarray(a.prod(p[0], keepdims=p[1], dtype=a.dtype)))
_add("any", lambda p, t: t.any(p[0], keepdim=p[1]), lambda p, a: np.asarray(a.any(p[0], keepdims=p[1])))
_add("all", lambda p, t: t.all(p[0], keepdim=p[1]), lambda p, a: np.asarray(a.all(p[0], keepdims=p[1])))
_add("argmax", lambda p, t: t.argmax(p), lambda p, a: _small(a.argmax(p), "int32"))
_add("argmin", lambda p, t: t.argmin(p), lambda p, a: _small(a.argmin(p), "int32"))
_add("cumsum", lambda p, t: t.cumsum(p), lambda p, a: _cumulated(a, p))
_add("cummax", lambda p, t: t.cummax(p)[0], lambda p, a: np.maximum.accumulate(a, p))


def _cumulated(a: Array, axis: int) -> Array:
    inner = "float32" if a.dtype == np.float16 else accumulated(a)
    return a.cumsum(axis, dtype=inner).astype(accumulated(a))


# *** movement ***
_add("reshape", lambda p, t: t.reshape(p))
_add("split0", lambda p, t: t.reshape(t.shape[0], *p), lambda p, a: a.reshape(a.shape[0], *p))
_add("permute", lambda p, t: t.permute(p), lambda p, a: a.transpose(p))
_add("expand", lambda p, t: t.unsqueeze(p[0]).expand(*t.shape[:p[0]], p[1], *t.shape[p[0]:]),
     lambda p, a: np.repeat(np.expand_dims(a, p[0]), p[1], p[0]))
_add("pad", lambda p, t: t.pad(p[0], value=p[1]), lambda p, a: np.pad(a, p[0], constant_values=p[1]))
_add("slice", lambda p, t: t[p])
_add("cut", lambda p, t: _cut(t, p))
_add("split", lambda p, t: t.split(p[0], p[1])[p[2]],
     lambda p, a: np.split(a, range(p[0], a.shape[p[1]], p[0]), p[1])[p[2]])
_add("flip", lambda p, t: t.flip(p), lambda p, a: np.flip(a, p))
_add("roll", lambda p, t: t.roll(*p), lambda p, a: np.roll(a, *p))
_add("repeat", lambda p, t: t.repeat(p), lambda p, a: np.tile(a, p))
_add("tril", lambda p, t: t.tril(p), lambda p, a: np.tril(a, p))
_add("triu", lambda p, t: t.triu(p), lambda p, a: np.triu(a, p))
_add("cat", lambda p, *ts: ts[0].cat(*ts[1:], dim=p), lambda p, *arrays: np.concatenate(arrays, p))
_add("stack", lambda p, *ts: ts[0].stack(*ts[1:], dim=p), lambda p, *arrays: np.stack(arrays, p))
_add("cat_short", lambda p, t: t.cat(t[:1], dim=0), lambda p, a: np.concatenate([a, a[:1]], 0))

# *** products ***
_add("matmul", lambda p, t, u: t @ u, lambda p, a, b: _product(a, b))
_add("gram", lambda p, t: t @ t.T if p else t.T @ t, lambda p, a: _product(a, a.T) if p else _product(a.T, a))
_add("conv", lambda p, t, w: _cut(t, p[0]).conv2d(_cut(w, p[1]), stride=p[2], padding=p[3]),
     lambda p, a, w: _conv(_cut(a, p[0]), _cut(w, p[1]), *p[2:]))


def _product(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(a.astype("float32"), b.astype("float32")).astype("float16")
                      if a.dtype == np.float16 else np.matmul(a, b))


def _cut(x: Any, shape: tuple[int, ...]) -> Any:
    """The first elements of a value in another shape."""
    return x.reshape(-1)[:int(np.prod(shape))].reshape(shape)


def _conv(a: Array, w: Array, stride: int, padding: int) -> Array:
    a = np.pad(a, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(a, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("ncyxhw,ochw->noyx", windows, w).astype(a.dtype)


# *** indexing; p["n"] are extents, so that every index is one ***
def placed(index: Any, like: Tensor) -> Tensor:
    """An index of the host where a tensor is."""
    return Tensor(np.array(index, np.int32)).to(like.device)


_add("rows", lambda p, t: t[placed(p, t)], lambda p, a: a[p])
_add("columns", lambda p, t: t[:, placed(p, t)], lambda p, a: a[:, p])
_add("rows_by", lambda p, t, i: t[i.cast("int32") % p], lambda p, a, i: a[i.astype(np.int32) % p])
_add("gather", lambda p, t, i: t.gather(p[0], i.cast("int32") % p[1]),
     lambda p, a, i: np.take_along_axis(a, i.astype(np.int32) % p[1], p[0]))
_add("scatter_sum", lambda p, t, i: t.scatter_reduce(p[0], i.cast("int32") % p[1], t, "sum"),
     lambda p, a, i: _scattered(a, i.astype(np.int32) % p[1], p[0]))
_add("one_hot", lambda p, i: (i.cast("int32") % p).one_hot(p), lambda p, i: _small(
    np.eye(p)[i.astype(np.int32) % p], "int32"))
_add("sort", lambda p, t: t.sort(p)[0], lambda p, a: np.sort(a, p))
_add("top", lambda p, t: t.topk(p[0], p[1])[0], lambda p, a: np.flip(np.sort(a, p[1]), p[1]).take(range(p[0]), p[1]))
_add("set", lambda p, t, v: _set_part(t, p, v), lambda p, a, b: _set_part(a, p, b))
_add("set_c", lambda p, t: _set_part(t, p[0], p[1]), lambda p, a: _set_part(a, p[0], p[1]))
_add("set_rows", lambda p, t: _set_rows(t, p), lambda p, a: _set_rows(a, p))


def _scattered(a: Array, i: Array, axis: int) -> Array:
    out = a.copy()
    for at in np.ndindex(*i.shape):
        to = (*at[:axis], i[at], *at[axis + 1:])
        out[to] += a[at]
    return out


def _copied(x: Any) -> Any:
    return x.clone() if isinstance(x, Tensor) else x.copy()


def _set_part(x: Any, part: Any, value: Any) -> Any:
    out = _copied(x)
    out[part] = value
    return out


def _set_rows(x: Any, rows: list[int]) -> Any:
    out = _copied(x)
    index = placed(rows, x) if isinstance(x, Tensor) else rows
    out[index] = out[:len(rows)][::-1]
    return out


# *** what changes how a graph is computed, not what it says ***
_add("realize", lambda p, t: t.realize(), lambda p, a: a)
_add("contiguous", lambda p, t: t.contiguous(), lambda p, a: a)
_add("clone", lambda p, t: t.clone(), lambda p, a: a.copy())
_add("detach", lambda p, t: t.detach(), lambda p, a: a)

# *** random numbers; p is (shape, device of it) ***
_add("rand", lambda p, like: (Tensor.rand(*p, device=like.device) * 8).cast("int32"),
     lambda p, like: np.zeros(p, np.int32))
_add("randint", lambda p, like: Tensor.randint(*p, low=-5, high=9, device=like.device),
     lambda p, like: np.zeros(p, np.int32))

# *** gradients that numpy has, too; and two that only runs can tell ***
_add("grad_square", lambda p, t: _gradient(t, (t * t * 2).sum()), lambda p, a: a * 4)
_add("grad_relu", lambda p, t: _gradient(t, ((t - 1).relu() * 3).sum()), lambda p, a: ((a > 1) * 3).astype(a.dtype))
_add("grad_part", lambda p, t: _gradient(t, (t[p] * t[p]).sum()), lambda p, a: _grad_part(a, p))
_add("grad_matmul", lambda p, t, u: _gradient(t, (t @ u.detach()).sum()),
     lambda p, a, b: np.broadcast_to(array_sum(b, 1), a.shape).astype(a.dtype))
_add("backward", lambda p, t: _gradient(t, (t.tanh() * t.sum(0)).square().mean()), lambda p, a: np.zeros_like(a))


def _gradient(t: Tensor, loss: Tensor) -> Any:
    return loss.gradient(t)[0]


def _grad_part(a: Array, part: Any) -> Array:
    out = np.zeros_like(a)
    out[part] = a[part] * 2
    return out


# *** effects on states ***
def _assign(x: Any, value: Any) -> None:
    if isinstance(x, Tensor):
        x.assign(value)
    else:
        x[...] = value


def _assign_part(x: Any, part: Any, value: Any) -> None:
    x[part] = value


def _assign_row(x: Any, row: int, value: Any) -> None:
    """Through a view that has a name."""
    view = x[row]
    if isinstance(view, Tensor):
        view.assign(value)
    else:
        x[row] = value


def _swap(x: Any, y: Any) -> None:
    kept = _copied(x)
    _assign(x, y)
    _assign(y, kept)


def _train(w: Tensor, x: Tensor) -> None:
    loss = (x.float().tanh() * w).sum().tanh() + (w * w).mean()
    w.assign(w - loss.gradient(w)[0] * 0.125)


def _add_to(x: Any, value: Any) -> None:
    x += value


_add("assign", lambda p, s, v: _assign(s, v))
_add("assign_part", lambda p, s, v: _assign_part(s, p, v))
_add("assign_row", lambda p, s, v: _assign_row(s, p, v))
_add("add_to", lambda p, s, v: _add_to(s, v))
_add("swap", lambda p, s, u: _swap(s, u))
_add("train", lambda p, w, x: _train(w, x), lambda p, w, x: None)
_add("read", lambda p, s: s + 1)
_add("read_part", lambda p, s: s[p] * 2)
