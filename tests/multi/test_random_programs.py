"""Random programs over integers on 1 to 6 devices: every value identical to numpy's, whatever is split and where."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit

ALGORITHMS = ({"RING": 0}, {"RING": 2}, {"ALL2ALL": 2})


class Value(NamedTuple):
    """A tensor and its elements."""

    node: Tensor
    array: np.ndarray[Any, Any]


class Program:
    """Steps drawn from a seed; matrices of at most a few dozen rows of int32."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.devices = names(int(self.rng.integers(1, 7)))
        self.values: list[Value] = []
        for _ in range(int(self.rng.integers(2, 4))):
            self.add_input()

    def add_input(self) -> None:
        shape = tuple(int(n) for n in self.rng.integers(1, 14, 2))
        array = self.rng.integers(-50, 50, shape).astype(np.int32)
        node = Tensor(array.copy())
        self.values.append(Value(self.place(node), array))
        if self.rng.random() < 0.5:
            self.values[-1].node.realize()

    def place(self, node: Tensor) -> Tensor:
        """The tensor on all devices, split along an axis or whole."""
        if len(self.devices) == 1:
            return node
        axis = self.rng.choice([None, 0, 1])
        return node.shard(self.devices, axis) if node.device is not None else node

    def pick(self) -> Value:
        return self.values[int(self.rng.integers(len(self.values)))]

    def step(self) -> None:
        """One more value."""
        v = self.pick()
        kinds = [self.unary, self.binary, self.reduce, self.shrink, self.pad, self.move, self.reshape, self.cat,
                 self.product, self.rows, self.again, self.write]
        new = kinds[int(self.rng.integers(len(kinds)))](v)
        if new is not None and 0 not in new.array.shape and new.array.size <= 800:
            assert new.node.shape == new.array.shape
            self.values.append(new)

    # *** steps ***
    def unary(self, v: Value) -> Value:
        k = int(self.rng.integers(-5, 6))
        return (Value(v.node * k, v.array * k), Value(v.node ^ k, v.array ^ k),
                Value(v.node.relu(), np.maximum(v.array, 0)),
                Value((v.node > k).where(v.node, k), np.where(v.array > k, v.array, k)))[int(self.rng.integers(4))]

    def binary(self, v: Value) -> Value | None:
        w = self.pick()
        if v.array.shape != w.array.shape:
            w = Value(v.node.sum(0, keepdim=True), v.array.sum(0, keepdims=True, dtype=np.int32))
        return Value(v.node - w.node, v.array - w.array)

    def reduce(self, v: Value) -> Value:
        axis = int(self.rng.integers(2))
        if self.rng.random() < 0.5:
            return Value(v.node.sum(axis, keepdim=True), v.array.sum(axis, keepdims=True, dtype=np.int32))
        return Value(v.node.max(axis, keepdim=True), v.array.max(axis, keepdims=True))

    def box(self, v: Value) -> tuple[slice, ...]:
        starts = [int(self.rng.integers(n)) for n in v.array.shape]
        return tuple(slice(a, int(self.rng.integers(a + 1, n + 1))) for a, n in zip(starts, v.array.shape))

    def shrink(self, v: Value) -> Value:
        box = self.box(v)
        return Value(v.node[box], v.array[box])

    def pad(self, v: Value) -> Value:
        edges = tuple(tuple(int(n) for n in self.rng.integers(0, 4, 2)) for _ in range(2))
        return Value(v.node.pad(edges), np.pad(v.array, edges))

    def move(self, v: Value) -> Value:
        if self.rng.random() < 0.5:
            return Value(v.node.T, v.array.T)
        axis = int(self.rng.integers(2))
        return Value(v.node.flip(axis), np.flip(v.array, axis))

    def reshape(self, v: Value) -> Value:
        size = v.array.size
        rows = int(self.rng.choice([d for d in range(1, size + 1) if size % d == 0]))
        return Value(v.node.reshape(rows, size // rows), v.array.reshape(rows, size // rows))

    def cat(self, v: Value) -> Value | None:
        w, axis = self.pick(), int(self.rng.integers(2))
        if v.array.shape[1 - axis] != w.array.shape[1 - axis]:
            w = v
        return Value(v.node.cat(w.node, dim=axis), np.concatenate([v.array, w.array], axis))

    def product(self, v: Value) -> Value:
        return Value(v.node @ v.node.T, v.array @ v.array.T)

    def rows(self, v: Value) -> Value:
        picked = self.rng.integers(0, v.array.shape[0], int(self.rng.integers(1, 6)))
        index = Tensor(picked.astype(np.int32))
        return Value(v.node[self.place(index) if len(self.devices) == 1 else index.to(self.devices)], v.array[picked])

    def again(self, v: Value) -> Value:
        """The value moved to where it is, or split otherwise."""
        return Value(self.place(v.node), v.array)

    def write(self, v: Value) -> Value:
        """A part of a copy overwritten."""
        node, array, box = v.node.clone(), v.array.copy(), self.box(v)
        node[box] = 7
        array[box] = 7
        return Value(node, array)


def check(seed: int) -> None:
    p = Program(seed)
    with Context(**ALGORITHMS[seed % 3]):
        for _ in range(12):
            p.step()
        last = p.values[-4:]
        last[0].node.realize(*[v.node for v in last[1:]])
        for v in p.values:
            np.testing.assert_array_equal(v.node.numpy(), v.array)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int):
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 1100))
def test_many_random_programs(seed: int):
    check(seed)


@pytest.mark.parametrize("count", [2, 3])
def test_a_replay_is_the_function(count: int):
    rng = np.random.default_rng(count)
    d = names(count)

    def f(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        z = (x.pad(((1, 0), (0, 0)))[:-1] - y).cat(x.flip(0), dim=0)
        return z, z.sum(0), (z @ z.T).max(1), z[2:5].sum()
    jit = TinyJit(f)
    for _ in range(4):
        x, y = (rng.integers(-9, 9, (7, 4)).astype(np.int32) for _ in range(2))
        got = jit(Tensor(x).shard(d, 0).realize(), Tensor(y).shard(d, 0).realize())
        want = f(Tensor(x), Tensor(y))
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
