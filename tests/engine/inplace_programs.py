"""Random programs of views, in-place writes and lazy readers, run on Tensors and on numpy arrays side by side.

A numpy expression is computed where it is written and a numpy view shares memory; a Tensor must give the same whatever
is realized in between. ``run(seed)`` runs one program and raises AssertionError with the program's text at a
difference.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost import Tensor

Pair = tuple[Tensor, "np.ndarray[Any, Any]"]


class Program:
    """One random program: its variables, both as Tensor and as array, and its text."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.rng = random.Random(seed)
        self.vars: dict[str, Pair] = {}
        self.text: list[str] = []
        self.count = 0
        self.steps = steps

    def run(self) -> None:
        """Run all steps, then compare every variable."""
        self.create()
        moves: list[Callable[[], None]] = [
            self.create,
            self.view,
            self.view,
            self.compute,
            self.compute,
            self.add_in_place,
            self.assign,
            self.set_item,
            self.set_item,
            self.clone,
            self.realize,
            self.drop,
        ]
        for _ in range(self.steps):
            self.rng.choice(moves)()
            if self.rng.random() < 0.1:
                self.compare(self.pick())
        for name in self.rng.sample(sorted(self.vars), len(self.vars)):
            self.compare(name)

    def pick(self, shape: tuple[int, ...] | None = None) -> str:
        """A variable, of ``shape`` if one is asked for and there is one."""
        fitting = [n for n, (_, a) in self.vars.items() if shape is None or a.shape == shape]
        return self.rng.choice(fitting)

    def add(self, line: str, t: Tensor, a: "np.ndarray[Any, Any]") -> None:
        self.count += 1
        name = f"v{self.count}"
        self.vars[name] = t, np.asarray(a)  # numpy makes scalars of what has no axis, which are no views
        self.text.append(f"{name} = {line}")

    def create(self) -> None:
        shape = self.rng.choice([(6,), (2, 3), (4, 3), (2, 2, 3)])
        data = np.array([self.rng.randint(-9, 9) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
        how = self.rng.choice(["copied", "realized", "zeros", "value"])
        if how == "zeros":
            self.add(f"zeros{shape}", Tensor.zeros(*shape, dtype="int32"), np.zeros(shape, np.int32))
        elif how == "value":
            self.add(f"({data.tolist()}) * 3", Tensor(data) * 3, data * 3)
        else:
            t = Tensor(data.copy())
            self.add(f"Tensor({data.tolist()})" + (".realize()" if how == "realized" else ""),
                     t.realize() if how == "realized" else t, data.copy())

    def index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """A random basic index; negative steps only -1."""
        out: list[Any] = []
        for n in shape:
            lo = self.rng.randint(0, n - 1)
            hi = self.rng.randint(lo + 1, n)
            one = lo if n > 1 else slice(None)
            out.append(self.rng.choice([slice(None), slice(lo, hi), slice(None, None, -1), one]))
        return tuple(out[:self.rng.randint(1, len(out))])

    def view(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        kind = self.rng.choice(["index", "index", "reshape", "transpose"])
        if kind == "index" and a.ndim:
            i = self.index(a.shape)
            self.add(f"{name}[{i}]", t[i], a[(*i, ...)])  # with ..., numpy gives a view also of one element
        elif kind == "transpose" and a.ndim > 1:
            self.add(f"{name}.transpose(0, 1)", t.transpose(0, 1), a.swapaxes(0, 1))
        elif kind == "reshape" and a.flags.c_contiguous and a.size:
            self.add(f"{name}.reshape(-1)", t.reshape(-1), a.reshape(-1))

    def expression(self, shape: tuple[int, ...]) -> tuple[str, Any, Any]:
        """A value of ``shape`` from variables of that shape, or a number."""
        fitting = [n for n, (_, a) in self.vars.items() if a.shape == shape]
        if not fitting or self.rng.random() < 0.2:
            c = self.rng.randint(-5, 5)
            return str(c), c, c
        n, m = self.rng.choice(fitting), self.rng.choice(fitting)
        (t, a), (u, b), c = self.vars[n], self.vars[m], self.rng.randint(-3, 3)
        return f"{n} * {c} + {m}", t * c + u, a * c + b

    def compute(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        if self.rng.random() < 0.25 and a.ndim:
            self.add(f"{name}.sum(0)", t.sum(0), a.sum(0, dtype=np.int32))
            return
        line, x, y = self.expression(a.shape)
        if isinstance(x, Tensor):
            self.add(line, x, y)

    def add_in_place(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        if not a.flags.writeable or not a.ndim:
            return
        line, x, y = self.expression(a.shape)
        t += x
        a += y
        self.vars[name] = t, np.asarray(a)  # numpy makes scalars of what has no axis, which are no views
        self.text.append(f"{name} += {line}")

    def assign(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        if not a.flags.writeable or not a.ndim:
            return
        line, x, y = self.expression(a.shape)
        t.assign(x)
        a[...] = y
        self.text.append(f"{name}.assign({line})")

    def set_item(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        if not a.flags.writeable or not a.ndim or not a.size:
            return
        i = self.index(a.shape)
        line, x, y = self.expression(a[(*i, ...)].shape)
        t[i] = x
        a[i] = y
        self.text.append(f"{name}[{i}] = {line}")

    def clone(self) -> None:
        name = self.pick()
        t, a = self.vars[name]
        self.add(f"{name}.clone()", t.clone(), a.copy())

    def realize(self) -> None:
        names = self.rng.sample(sorted(self.vars), min(len(self.vars), self.rng.randint(1, 3)))
        Tensor.realize(*[self.vars[n][0] for n in names])
        self.text.append(f"Tensor.realize({', '.join(names)})")

    def drop(self) -> None:
        if len(self.vars) > 3:
            name = self.pick()
            del self.vars[name]
            self.text.append(f"del {name}")

    def compare(self, name: str) -> None:
        t, a = self.vars[name]
        got = t.numpy()
        assert got.shape == a.shape and (got == a).all(), self.report(name, got, a)
        self.text.append(f"compare {name}")

    def report(self, name: str, got: Any, want: Any) -> str:
        return "\n".join([*self.text, f"{name} is {got.tolist()}, numpy says {want.tolist()}"])


def run(seed: int, steps: int = 14) -> None:
    """One program."""
    program = Program(seed, steps)
    try:
        program.run()
    except AssertionError:
        raise
    except Exception as e:
        raise AssertionError("\n".join([f"seed {seed}", *program.text, f"{type(e).__name__}: {e}"])) from e
