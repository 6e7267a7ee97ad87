"""Programs over sharded tensors, each beside the numpy program it must agree with.

A program takes tensors and a function ``split(t, axis)`` that puts one on several devices; numpy gets the arrays. All
inputs have axes of 12 elements, which 2, 3, 4 and 6 devices divide, and 60, which 5 divide too; 7 and 8 do not.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost import Tensor

Split = Callable[[Tensor, "int | None"], Tensor]


@dataclass(frozen=True)
class Program:
    """``run`` over split tensors; ``ref`` over arrays; integer results must be identical."""

    name: str
    run: Callable[..., Any]
    ref: Callable[..., Any]


X = (60, 12)  # every program gets x (60, 12) and y (60, 12), small integers as float32, and i (60,) indices below 12
AXES: list[Program] = []


def _add(name: str, run: Callable[..., Any], ref: Callable[..., Any] | None = None) -> None:
    AXES.append(Program(name, run, ref or run))


# *** element-wise ***
_add("add", lambda x, y, s: x + y)
_add("mixed axes", lambda x, y, s: s(x, 0) * s(y, 1) + x, lambda x, y, s: x * y + x)
_add("with a copy on each", lambda x, y, s: s(x, 0) - s(y, None), lambda x, y, s: x - y)
_add("row", lambda x, y, s: x + s(y[0:1], None), lambda x, y, s: x + y[0:1])
_add("column", lambda x, y, s: x * s(y[:, 0:1], 0), lambda x, y, s: x * y[:, 0:1])
_add("scalar", lambda x, y, s: x * 3 + 1)
_add("where", lambda x, y, s: (x > y).where(x, y * 2), lambda x, y, s: np.where(x > y, x, y * 2))
_add("relu", lambda x, y, s: x.relu(), lambda x, y, s: np.maximum(x, 0))
_add("cast", lambda x, y, s: x.cast("int32") // 3, lambda x, y, s: x.astype(np.int32) // 3)
_add("compare", lambda x, y, s: (x < y) & (y > 0), lambda x, y, s: (x < y) & (y > 0))
_add("arange", lambda x, y, s: x + Tensor.arange(12), lambda x, y, s: x + np.arange(12))
_add("arange over rows", lambda x, y, s: x * Tensor.arange(60).reshape(60, 1),
     lambda x, y, s: x * np.arange(60).reshape(60, 1))
_add("bitcast", lambda x, y, s: x.bitcast("int32"), lambda x, y, s: x.view(np.int32))
_add("bitcast to bytes", lambda x, y, s: x.bitcast("uint8"), lambda x, y, s: x.view(np.uint8))
# *** reductions ***
_add("sum", lambda x, y, s: x.sum())
_add("sum rows", lambda x, y, s: x.sum(0))
_add("sum columns", lambda x, y, s: x.sum(1))
_add("max rows", lambda x, y, s: x.max(0))
_add("min columns", lambda x, y, s: x.min(1))
_add("mean", lambda x, y, s: x.mean(0) * 60, lambda x, y, s: x.sum(0))
_add("prod", lambda x, y, s: (x.abs() > 2).where(1, x.abs() + 1).prod(1), lambda x, y, s: np.where(
    abs(x) > 2, 1, abs(x) + 1).prod(1))
_add("sum of a sum", lambda x, y, s: (x * y.sum(0)).sum(1), lambda x, y, s: (x * y.sum(0)).sum(1))
_add("keepdim", lambda x, y, s: x - x.max(0, keepdim=True), lambda x, y, s: x - x.max(0, keepdims=True))
_add("argmax", lambda x, y, s: x.argmax(1), lambda x, y, s: x.argmax(1))
_add("argmax of rows", lambda x, y, s: x.argmax(0), lambda x, y, s: x.argmax(0))
_add("any", lambda x, y, s: (x > 4).any(0), lambda x, y, s: (x > 4).any(0))
_add("cumsum of columns", lambda x, y, s: x.cumsum(1), lambda x, y, s: x.cumsum(1))
_add("cumsum of rows", lambda x, y, s: x.cumsum(0), lambda x, y, s: x.cumsum(0))
# *** movement ***
_add("transpose", lambda x, y, s: x.T + 1)
_add("reshape in rows", lambda x, y, s: x.reshape(60, 3, 4).sum(1), lambda x, y, s: x.reshape(60, 3, 4).sum(1))
_add("merge", lambda x, y, s: x.reshape(720) * 2)
_add("split rows", lambda x, y, s: x.reshape(6, 10, 12).sum(0), lambda x, y, s: x.reshape(6, 10, 12).sum(0))
_add("reshape across", lambda x, y, s: x.reshape(16, 45).sum(0), lambda x, y, s: x.reshape(16, 45).sum(0))
_add("shrink rows", lambda x, y, s: x[7:31] + 1)
_add("shrink both", lambda x, y, s: x[3:50, 2:11] * y[1:48, 0:9])
_add("one row", lambda x, y, s: x[17] + 1)
_add("one element", lambda x, y, s: x[17, 3] + 1)
_add("last column", lambda x, y, s: x[:, -1] + 0)
_add("every third", lambda x, y, s: x[::3, 1::2] + 0)
_add("reversed", lambda x, y, s: x[::-1] + y)
_add("flip", lambda x, y, s: x.flip((0, 1)) * y, lambda x, y, s: x[::-1, ::-1] * y)
_add("pad", lambda x, y, s: x.pad(((2, 3), (1, 0))) + 1, lambda x, y, s: np.pad(x, ((2, 3), (1, 0))) + 1)
_add("shift", lambda x, y, s: x - x.pad(((1, 0), (0, 0)))[:60], lambda x, y, s: x - np.pad(x, ((1, 0), (0, 0)))[:60])
_add("neighbours", lambda x, y, s: x[1:] - x[:-1])
_add("roll", lambda x, y, s: x.roll(7, 0), lambda x, y, s: np.roll(x, 7, 0))
_add("expand", lambda x, y, s: x.reshape(60, 1, 12).expand(60, 3, 12).sum((0, 1)),
     lambda x, y, s: x.sum(0) * 3)
_add("repeat", lambda x, y, s: x.repeat(2, 1), lambda x, y, s: np.tile(x, (2, 1)))
_add("cat rows", lambda x, y, s: x.cat(y, dim=0), lambda x, y, s: np.concatenate([x, y], 0))
_add("cat columns", lambda x, y, s: x.cat(y, x, dim=1), lambda x, y, s: np.concatenate([x, y, x], 1))
_add("stack", lambda x, y, s: x.stack(y, dim=1), lambda x, y, s: np.stack([x, y], 1))
_add("chunks", lambda x, y, s: x.chunk(4, 0)[2] + y.chunk(4, 0)[1],
     lambda x, y, s: np.split(x, 4)[2] + np.split(y, 4)[1])
# *** products ***
_add("matmul rows", lambda x, y, s: x @ s(y.T, None), lambda x, y, s: x @ y.T)
_add("matmul inner", lambda x, y, s: x.T @ y, lambda x, y, s: x.T @ y)
_add("matmul outer", lambda x, y, s: x @ y.T, lambda x, y, s: x @ y.T)
_add("chain", lambda x, y, s: (x @ x.T) @ y * 1, lambda x, y, s: (x @ x.T) @ y)
# *** indexing ***
_add("rows by index", lambda x, y, s: x[s(Tensor([5, 0, 59, 5]), None)], lambda x, y, s: x[[5, 0, 59, 5]])
_add("columns by index", lambda x, y, s: x[:, s(Tensor([3, 11, 0]), None)], lambda x, y, s: x[:, [3, 11, 0]])
_add("gather", lambda x, y, s: x.gather(1, (y.abs() % 12).cast("int32")),
     lambda x, y, s: np.take_along_axis(x, (abs(y) % 12).astype(np.int64), 1))
_add("table", lambda x, y, s: s(x, None)[(y[:, 0].abs() % 12).cast("int32")],
     lambda x, y, s: x[(abs(y[:, 0]) % 12).astype(np.int64)])
_add("sort", lambda x, y, s: x.sort(0)[0], lambda x, y, s: np.sort(x, 0))
_add("one hot", lambda x, y, s: (x[:, 0].abs() % 12).cast("int32").one_hot(12).sum(0),
     lambda x, y, s: np.eye(12)[(abs(x[:, 0]) % 12).astype(int)].sum(0).astype(np.int32))
