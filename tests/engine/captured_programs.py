"""Random captured functions with realizations, in-place writes and state in the middle, beside the same in numpy.

``Captured(seed)`` is one function of a (12, 16) int32 array; ``call(jit or function, i)`` runs it and the numpy version
on the i-th input, and keeps what both give. Values that the function leaves in ``kept`` show the last call.
"""
from __future__ import annotations

import random
from typing import Any

import numpy as np

from tinyhost import Tensor

SHAPE = (12, 16)


def data(seed: int) -> "np.ndarray[Any, Any]":
    """The input of one call."""
    return np.random.default_rng(seed).integers(-1000, 1000, SHAPE).astype(np.int32)


def multiply(a: Any, b: Any) -> Any:
    """A product of matrices that is as large as its factors."""
    return a @ (b.T if isinstance(b, np.ndarray) else b.transpose()) @ a


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, element by element."""
    return np.maximum(a, b) if isinstance(a, np.ndarray) else a.maximum(b)


def total(a: Any, axis: int) -> Any:
    """Sums along an axis, which keeps length 1."""
    sums = a.sum(axis, dtype=np.int32) if isinstance(a, np.ndarray) else a.sum(axis)
    return sums.reshape(*(1 if i == axis else n for i, n in enumerate(SHAPE)))


OPS: dict[str, Any] = {
    "a + b": lambda a, b: a + b,
    "a * 3 - b": lambda a, b: a * 3 - b,
    "max(a, b)": maximum,
    "a @ b.T @ a": multiply,
    "a - b's row sums": lambda a, b: a - total(b, 1),
    "a * b's column sums": lambda a, b: a * total(b, 0),
}


class Captured:
    """One random function, its state and what it left, on both sides."""

    def __init__(self, seed: int, steps: int = 12) -> None:
        rng = random.Random(seed)
        self.steps: list[tuple[Any, ...]] = []
        variables = 3  # input, state, constant
        for _ in range(steps):
            kind = rng.choice(["op"] * 5 + ["realize"] * 3 + ["write", "keep", "view", "state", "constant", "partial"])
            self.steps.append((kind, rng.choice(list(OPS)), rng.randrange(variables), rng.randrange(variables),
                               rng.randrange(SHAPE[0])))
            variables += kind in ("op", "constant", "partial")
        self.results = [rng.randrange(variables) for _ in range(rng.choice([1, 1, 2]))]
        self.state = Tensor(data(99)).realize(), data(99)
        self.kept: tuple[list[Any], list[Any]] = [], []
        self.given: list[tuple[list[Tensor], list[Any]]] = []  # results of all calls

    def __call__(self, x: Tensor) -> list[Tensor]:
        """The function on tensors."""
        self.kept[0].clear()
        return self._run(x, Tensor(data(7)), self.state[0], self.kept[0])

    def _run(self, x: Any, constant: Any, state: Any, kept: list[Any]) -> list[Any]:
        host = isinstance(x, np.ndarray)
        variables = [x, state * 1, constant]
        for kind, op, i, j, row in self.steps:
            a, b = variables[i], variables[j]
            if kind == "op":
                variables.append(OPS[op](a, b))
            elif kind == "realize" and not host:
                a.realize()
            elif kind == "write" and i > 1:
                a[row] = b[0] * 5
            elif kind in ("keep", "view"):
                kept.append(a * 1 if i == 0 else a[:row + 1] if kind == "view" else a)
            elif kind == "state":
                state[:] = (state * 3 + a) % 1009
            elif kind == "constant":
                variables.append((np.array if host else Tensor)(data(row)))
            elif kind == "partial":
                variables.append(np.empty(SHAPE, np.int32) if host else Tensor.empty(*SHAPE, dtype="int32"))
                variables[-1][:row + 1] = a[:row + 1]
                variables[-1][row + 1:] = b[row + 1:]
        if not host:
            Tensor.realize(*kept) if kept else None
        return [variables[r] * 1 for r in self.results]

    def call(self, run: Any, i: int) -> None:
        """Both sides on the i-th input."""
        self.kept[1].clear()
        with np.errstate(over="ignore"):
            want = self._run(data(i), data(7), self.state[1], self.kept[1])
        self.given.append((run(Tensor(data(i)).realize()), [w.copy() for w in want]))

    def check(self) -> None:
        """Compare results of all calls, state, and what was left."""
        for got, want in self.given:
            assert [g.tolist() for g in got] == [w.tolist() for w in want], self.steps
        assert self.state[0].tolist() == self.state[1].tolist(), self.steps
        assert [k.tolist() for k in self.kept[0]] == [k.tolist() for k in self.kept[1]], self.steps
