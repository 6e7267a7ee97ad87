"""Random programs over a few arrays and their views, run step by step on numpy and on tensors.

A program mixes views, reads, writes with every kind of index, in-place operators and realizations at random points; at
the end every array, view and earlier reader must hold what numpy holds. A reader is built lazily before later writes
and must show the values of its own time. Ints beside separated index arrays are left out: torch and numpy place the
result differently there.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost.tensor import Tensor

Array = np.ndarray[Any, Any]
DTYPES = ("float32", "int32", "uint8", "int64")
SAME_SIZE = {"int32": "uint32", "uint32": "int32", "uint8": "int8", "int8": "uint8", "int64": "uint64",
             "uint64": "int64"}


class Program:
    """The arrays of one program and the steps that may happen to them."""

    def __init__(self, seed: int, left_out: frozenset[int] = frozenset()) -> None:
        """Steps draw from generators of their own, so that leaving out some keeps the others: to shrink a failure."""
        self.seed, self.left_out = seed, left_out
        self.rng = np.random.default_rng(seed)
        self.live: list[tuple[Array, Tensor]] = []
        self.readers: list[tuple[Array, Tensor]] = []
        self.log: list[str] = []
        for _ in range(2):
            self.create()

    def run(self) -> None:
        steps = (self.create, self.view, self.view, self.write, self.write, self.write, self.operate, self.operate,
                 self.operate_on_item, self.read, self.gather, self.realize, self.assign)
        for number in range(int(self.rng.integers(5, 31))):
            self.rng = np.random.default_rng((self.seed, number))
            if number not in self.left_out:
                self.pick(steps)()
        for want, got in self.live + self.readers:
            assert got.shape == want.shape
            np.testing.assert_array_equal(got.numpy(), want)

    # *** choices ***
    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def numbers(self, shape: Any, dtype: Any) -> Array:
        return self.rng.integers(0, 9, shape).astype(dtype)

    def note(self, text: str) -> None:
        self.log.append(text)

    # *** steps ***
    def create(self) -> None:
        shape = tuple(int(s) for s in self.rng.integers(0 if self.chance(0.05) else 1, 5, self.rng.integers(0, 4)))
        a = self.numbers(shape, self.pick(DTYPES))
        t = Tensor(a.copy())
        t = self.pick((lambda: t, lambda: t.clone(), lambda: t.clone().realize(), lambda: t + 0))()
        self.note(f"{len(self.live)}: new {shape} {a.dtype}")
        self.live.append((a, t))

    def view(self) -> None:
        i = int(self.rng.integers(len(self.live)))
        a, t = self.live[i]
        kind = self.pick(("index", "transpose", "reshape", "flip", "bitcast"))
        if kind == "index":
            index = self.basic_index(a.shape)
            b, u = a[index], t[index]
        elif kind == "transpose":
            order = tuple(int(k) for k in self.rng.permutation(a.ndim))
            index, b, u = order, a.transpose(order), t.permute(order) if order else t.reshape(())
        elif kind == "bitcast":
            index = SAME_SIZE.get(str(a.dtype), str(a.dtype))
            b, u = a.view(index), t.bitcast(index)
        elif kind == "reshape":
            index, b, u = -1, a.reshape(-1), t.reshape(-1) if a.size else t.reshape(0)
        else:
            axes = tuple(k for k in range(a.ndim) if self.chance(0.5))
            index, b, u = axes, np.flip(a, axes), t.flip(axes)
        if isinstance(b, np.ndarray) and (np.shares_memory(a, b) or not a.size):
            self.note(f"{len(self.live)}: {kind} of {i}: {index}")
            self.live.append((b, u))

    def write(self) -> None:
        i = int(self.rng.integers(len(self.live)))
        a, t = self.live[i]
        index = self.basic_index(a.shape) if self.chance(0.5) else self.array_index(a.shape)
        shape = a[index].shape
        b, u = self.value(shape, a.dtype)
        self.note(f"{i}[{index}] = {b.tolist()}")
        a[index] = b.copy()  # numpy itself reads what a mask has overwritten
        t[self.as_tensor_index(index)] = u

    def value(self, shape: tuple[int, ...], dtype: Any) -> tuple[Array, Any]:
        """A number, new data that broadcasts to ``shape``, or a view or function of a live array."""
        if self.chance(0.3):
            n = int(self.rng.integers(0, 9))
            return np.array(n, dtype), n if dtype.kind != "f" else float(n)
        fitting = [(a, t) for a, t in self.live if a.dtype == dtype and a.shape == shape]
        if fitting and self.chance(0.6):
            a, t = self.pick(fitting)
            if self.chance(0.5) and a.ndim:
                return np.flip(a, 0), t.flip(0)
            return (a, t) if self.chance(0.5) else ((a + 1).astype(dtype), t + 1)
        part = tuple(1 if self.chance(0.2) else s for s in shape)[self.rng.integers(0, len(shape) + 1):]
        b = self.numbers(part, dtype)
        return b, Tensor(b) if self.chance(0.8) else b

    def operate(self) -> None:
        i = int(self.rng.integers(len(self.live)))
        a, t = self.live[i]
        b, u = self.value(a.shape, a.dtype)
        self.note(f"{i} op= {b.tolist()}")
        if self.chance(0.5):
            a += b
            t += u
        else:
            a *= b
            t *= u
        self.live[i] = (a, t)

    def operate_on_item(self) -> None:
        i = int(self.rng.integers(len(self.live)))
        a, t = self.live[i]
        index = self.basic_index(a.shape) if self.chance(0.6) else self.array_index(a.shape)
        self.note(f"{i}[{index}] += 3")
        a[index] += a.dtype.type(3)
        t[self.as_tensor_index(index)] += 3

    def read(self) -> None:
        a, t = self.pick(self.live)
        self.readers.append(((a * 2 + 1).astype(a.dtype), t * 2 + 1))

    def gather(self) -> None:
        a, t = self.pick(self.live)
        index = self.array_index(a.shape)
        if not any(isinstance(e, (np.ndarray, bool)) for e in index):
            return  # a view
        b = np.array(a[index])
        self.note(f"{len(self.live)}: gather {index}")
        self.live.append((b, t[self.as_tensor_index(index)]))

    def realize(self) -> None:
        self.note("realize")
        self.pick(self.live)[1].realize()

    def assign(self) -> None:
        i = int(self.rng.integers(len(self.live)))
        a, t = self.live[i]
        b, u = self.value(a.shape, a.dtype)
        if isinstance(u, Tensor) and b.shape == a.shape:
            self.note(f"{i}.assign {b.tolist()}")
            a[...] = b
            t.assign(u)

    # *** indices ***
    def basic_entry(self, size: int) -> Any:
        if size and self.chance(0.35):
            return int(self.rng.integers(-size, size))
        bounds = [None if self.chance(0.4) else int(self.rng.integers(-size - 1, size + 2)) for _ in range(2)]
        return slice(*bounds, self.pick((None, None, 1, 2, 3, -1, -2)))

    def basic_index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        entries = [self.basic_entry(s) for s in shape]
        if self.chance(0.3):
            cut = int(self.rng.integers(0, len(entries) + 1))
            entries = entries[:cut] + ([Ellipsis] if self.chance(0.5) else [])
        if self.chance(0.2):
            entries.insert(int(self.rng.integers(0, len(entries) + 1)), None)
        if not any(isinstance(e, slice) or e in (None, Ellipsis) for e in entries):
            entries.append(Ellipsis)  # numpy views, not scalars
        return tuple(entries)

    def array_index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Slices, None, integer arrays and masks; some without any array."""
        common = tuple(int(n) for n in self.rng.integers(1, 4, self.rng.integers(1, 3)))
        mask_count, entries, axis = 0, [], 0
        while axis < len(shape):
            size = shape[axis]
            if self.chance(0.3) and not mask_count and not any(isinstance(e, np.ndarray) for e in entries):
                rank = int(self.rng.integers(1, len(shape) - axis + 1))
                entries.append(self.rng.random(shape[axis:axis + rank]) < 0.5)
                mask_count, axis = 1, axis + rank
                continue
            if size and self.chance(0.5) and not mask_count:
                part = tuple(1 if self.chance(0.2) else n for n in common)
                entries.append(self.rng.integers(-size, size, part).astype(self.pick(("int8", "int32", "int64"))))
            else:
                entries.append(slice(*sorted(int(n) for n in self.rng.integers(0, size + 1, 2)))
                               if self.chance(0.5) else slice(None))
            axis += 1
        if self.chance(0.15):
            entries.insert(int(self.rng.integers(0, len(entries) + 1)), None)
        if self.chance(0.1) and not any(isinstance(e, np.ndarray) for e in entries):
            entries.insert(0, self.chance(0.5))
        return tuple(entries)

    def as_tensor_index(self, index: tuple[Any, ...]) -> Any:
        """The same index with arrays as tensors, lists or arrays."""
        def convert(e: Any) -> Any:
            if not isinstance(e, np.ndarray):
                return e
            return self.pick((lambda: Tensor(e), lambda: Tensor(e), lambda: e.tolist() if e.size else e, lambda: e))()
        converted = tuple(convert(e) for e in index)
        return converted[0] if len(converted) == 1 and not isinstance(converted[0], tuple) else converted


def run(seed: int) -> None:
    program = Program(seed)
    try:
        program.run()
    except Exception as e:
        raise AssertionError(f"program {seed}:\n" + "\n".join(program.log)) from e


@pytest.mark.parametrize("seed", range(60))
def test_programs(seed: int) -> None:
    run(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(50))
def test_many_programs(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        run(seed)
