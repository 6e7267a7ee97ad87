"""Random element-wise programs with views, gathers and exact reductions: a tensor, and what numpy makes of the steps.

``program(seed)`` builds one over rows, ``matrix_program(seed)`` one over matrices with reductions along axes; every op
in it has one right result, bit for bit (NaN is NaN). Values never pass through numpy's own promotion: each step is
``tinyhost.uop.semantics`` on arrays.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import carrier_np, cast_np, evaluate_np

from .elementwise import Array, mixed, tensor

TYPES = (dtypes.bool, *dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.fp8e5m2)
WEIGHTS = np.array([1.0, 1, 1, 1, 1, 1, 1, 2, 1, 1, 3, 2, 0.7, 0.3])
INT_OPS = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.XOR, Ops.OR, Ops.AND, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD, Ops.FLOORDIV,
           Ops.FLOORMOD)
FLOAT_OPS = (Ops.ADD, Ops.MUL, Ops.FDIV, Ops.MAX)
BOOL_OPS = (Ops.ADD, Ops.MUL, Ops.XOR, Ops.OR, Ops.AND, Ops.MAX)
COMPARISONS = (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)


class Value(NamedTuple):
    """A tensor of shape (n,) and its elements in the dtype's carrier."""

    node: Tensor
    array: Array

    @property
    def dtype(self) -> DType:
        """Type of both."""
        return self.node.dtype


class Program:
    """One program under construction."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n = int(self.rng.choice([1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 64, 100, 259]))
        self.values: list[Value] = []
        for i in range(int(self.rng.integers(2, 5))):
            self.add_input(self.random_type(), seed * 10 + i)

    # *** choices ***
    def random_type(self) -> DType:
        return TYPES[int(self.rng.choice(len(TYPES), p=WEIGHTS / WEIGHTS.sum()))]

    def pick(self) -> Value:
        """A value, recent ones more often."""
        back = min(int(self.rng.exponential(2.0)), len(self.values) - 1)
        return self.values[-1 - back]

    def pick_of(self, dtype: DType) -> Value:
        """A value of a type, converted if there is none."""
        have = [v for v in self.values if v.dtype is dtype]
        if have and self.rng.random() < 0.7:
            return have[int(self.rng.integers(len(have)))]
        return self.cast(self.pick(), dtype)

    # *** steps ***
    def add_input(self, dtype: DType, seed: int) -> None:
        array = mixed(dtype, 3 * self.n + 3, seed)[:self.n]
        self.values.append(Value(tensor(array, dtype), array))

    def alu(self, op: Ops, dtype: DType, *operands: Value) -> Value:
        node = Tensor._wrap(UOp(op, tuple(v.node.uop for v in operands)))
        return Value(node, np.asarray(evaluate_np(op, dtype, *[v.array for v in operands])))

    def cast(self, v: Value, dtype: DType) -> Value:
        return v if v.dtype is dtype else Value(v.node.cast(dtype), np.asarray(cast_np(v.array, v.dtype, dtype)))

    def literal(self, dtype: DType) -> Value:
        """A number as a weak literal."""
        number = int(self.rng.choice([0, 1, 2, 3, 5, 7, 10, 100]))
        plain = bool(number & 1) if dtype is dtypes.bool else float(number) if dtype.is_float else number
        array = np.full(self.n, truncate[dtype](plain)).astype(carrier_np(dtype))
        return Value(Tensor._wrap(UOp.const(plain, dtype)), array)

    def arithmetic(self) -> Value:
        a = self.pick()
        ops = BOOL_OPS if a.dtype is dtypes.bool else FLOAT_OPS if a.dtype.is_float else INT_OPS
        b = self.literal(a.dtype) if self.rng.random() < 0.25 else self.pick_of(a.dtype)
        if b.node.uop.is_const or self.rng.random() < 0.5:
            return self.alu(ops[int(self.rng.integers(len(ops)))], a.dtype, a, b)
        return self.alu(ops[int(self.rng.integers(len(ops)))], a.dtype, b, a)

    def comparison(self) -> Value:
        a = self.pick()
        return self.alu(COMPARISONS[int(self.rng.integers(3))], a.dtype, a, self.pick_of(a.dtype))

    def selection(self) -> Value:
        a = self.pick()
        return self.alu(Ops.WHERE, a.dtype, self.pick_of(dtypes.bool), a, self.pick_of(a.dtype))

    def unary(self) -> Value:
        a = self.pick()
        if not a.dtype.is_float:
            return self.cast(a, self.random_type())
        return self.alu((Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL)[int(self.rng.integers(3))], a.dtype, a)

    def view(self) -> Value:
        a, k = self.pick(), int(self.rng.integers(0, self.n))
        kind = int(self.rng.integers(3))
        if kind == 0:
            return Value(a.node.flip(0), a.array[::-1])
        if kind == 1:  # the first k go, zeros come
            return Value(a.node[k:].pad(((0, k),)), np.concatenate([a.array[k:], np.zeros(k, a.array.dtype)]))
        return Value(a.node[k:].cat(a.node[:k]), np.roll(a.array, -k))

    def gather(self) -> Value:
        a, i = self.pick(), self.pick_of(dtypes.int32)
        size = Value(Tensor._wrap(UOp.const(self.n + 2, dtypes.int32)), np.full(self.n, self.n + 2, np.int32))
        place = self.alu(Ops.FLOORMOD, dtypes.int32, i, size)
        inside = place.array < self.n
        array = np.where(inside, a.array[np.minimum(place.array, self.n - 1)], a.array.dtype.type(0))
        return Value(a.node[place.node], array)

    def reduction(self) -> Value:
        a, b = self.pick(), self.pick()
        b = self.cast(b, a.dtype)
        pair = a.node.stack(b.node)
        if a.dtype.is_int:
            return Value(pair.sum(0, dtype=a.dtype), np.asarray(evaluate_np(Ops.ADD, a.dtype, a.array, b.array)))
        return Value(pair.max(0), np.asarray(evaluate_np(Ops.MAX, a.dtype, a.array, b.array)))

    def step(self) -> None:
        """One more value."""
        makers: list[Callable[[], Value]] = [self.arithmetic, self.comparison, self.selection, self.unary, self.view,
                                             self.gather, self.reduction]
        chance = np.array([6.0, 1.5, 2, 2, 1.5, 0.5, 0.5])
        made = makers[int(self.rng.choice(len(makers), p=chance / chance.sum()))]()
        if self.rng.random() < 0.05:
            made.node.realize()
        self.values.append(made)


class MatrixProgram(Program):
    """Steps on matrices; axes are reduced and broadcast back, so kernels depend on each other."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        sizes = [1, 2, 3, 4, 7, 8, 16, 17, 33]
        self.rows = int(self.rng.choice(sizes))
        self.columns = self.rows if self.rng.random() < 0.4 else int(self.rng.choice(sizes))
        self.n = self.rows * self.columns
        self.values = []
        for i in range(int(self.rng.integers(2, 4))):
            self.add_input(self.random_type(), seed * 10 + i)

    def add_input(self, dtype: DType, seed: int) -> None:
        super().add_input(dtype, seed)
        v = self.values.pop()
        if hasattr(self, "rows"):
            shape = (self.rows, self.columns)
            v = Value(v.node.reshape(shape), v.array.reshape(shape))
        self.values.append(v)

    def literal(self, dtype: DType) -> Value:
        v = super().literal(dtype)
        return Value(v.node, v.array.reshape(self.rows, self.columns))

    def view(self) -> Value:
        a, axis = self.pick(), int(self.rng.integers(2))
        size = (self.rows, self.columns)[axis]
        k, kind = int(self.rng.integers(size)), int(self.rng.integers(5))
        if kind == 0 and self.rows == self.columns:
            return Value(a.node.T, a.array.T)
        if kind == 1:
            return Value(a.node.flip(axis), np.flip(a.array, axis))
        if kind == 2:
            return Value(a.node.roll(k, axis), np.roll(a.array, k, axis))
        if kind == 3:
            flat = a.node.reshape(self.n).flip(0).reshape(self.rows, self.columns)
            return Value(flat, a.array.reshape(-1)[::-1].reshape(a.array.shape))
        one = a.node.shrink(tuple((k, k + 1) if i == axis else None for i in range(2)))
        return Value(one.expand(self.rows, self.columns), np.broadcast_to(np.take(a.array, [k], axis), a.array.shape))

    def gather(self) -> Value:
        a = self.pick()
        rows = self.rng.integers(-self.rows, self.rows, self.rows)
        return Value(a.node[Tensor(rows)], a.array[rows])

    def reduction(self) -> Value:
        """A reduction along an axis, spread over it again."""
        a, axis = self.pick(), int(self.rng.integers(2))
        shape = (self.rows, self.columns)
        kind = int(self.rng.integers(3))
        if a.dtype.is_int and kind:
            if kind == 1 and self.rows == self.columns and a.dtype is not dtypes.uint64:
                b = self.pick_of(a.dtype)
                product = np.matmul(a.array.astype(np.int64), b.array.astype(np.int64)).astype(a.array.dtype)
                return Value(a.node.matmul(b.node, dtype=a.dtype), product)
            total = a.array.sum(axis, dtype=a.array.dtype, keepdims=True)
            return Value(a.node.sum(axis, keepdim=True, dtype=a.dtype).expand(shape), np.broadcast_to(total, shape))
        best = a.array.max(axis, keepdims=True) if not a.dtype.is_float else self.float_max(a.array, axis)
        return Value(a.node.max(axis, keepdim=True).expand(shape), np.broadcast_to(best, shape))

    @staticmethod
    def float_max(x: Array, axis: int) -> Array:
        """NaN wins; of zeros of both signs the sign depends on the order, so they lose it."""
        return np.maximum.reduce(x, axis, keepdims=True)


def program(seed: int) -> list[Value]:
    """The last two values of a random program over rows."""
    return _run(Program(seed))


def matrix_program(seed: int) -> list[Value]:
    """The last two values of a random program over matrices."""
    return _run(MatrixProgram(seed))


def _run(p: Program) -> list[Value]:
    for _ in range(int(p.rng.integers(3, 18))):
        p.step()
    return p.values[-2:]
