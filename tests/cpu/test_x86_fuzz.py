"""Random programs: scalars beside vectors, casts, shuffles, many live values; bit-exact against the definition."""

from __future__ import annotations

import random

import numpy as np
import pytest
from x86_machine import NUMPY, const, i32, load, loop, param, renderer, run, store, widest

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.semantics import cast_np, evaluate_np, from_storage_np, to_storage_np

ROWS = 4
pytestmark = pytest.mark.usefixtures("level")
BINARY = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]
UNARY = [Ops.SQRT, Ops.TRUNC, Ops.NEG, Ops.RECIPROCAL]
POOL = [dtypes.float32, dtypes.float32, dtypes.int32, dtypes.float64, dtypes.int64, dtypes.int8, dtypes.uint8]
POOL += [dtypes.int16, dtypes.uint32, dtypes.float16, dtypes.bool]


class Program:
    """A random program and the value of each of its nodes: arrays of shape (ROWS, lanes), (ROWS, 1) for scalars."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.width = self.rng.choice([2, 4, 8, 16, 16, 32, 64] if widest() > 32 else [2, 4, 8])
        self.row = loop(ROWS, 0)
        self.inputs: list[np.ndarray] = []
        self.params: list[UOp] = []
        self.nodes: list[tuple[UOp, np.ndarray]] = []
        self.wide = {d: d.itemsize * self.width <= widest() for d in POOL}

    def array(self, dtype: DType, count: int) -> np.ndarray:
        if dtype is dtypes.bool:
            return self.data.integers(0, 2, count).astype(bool)
        if dtype.is_float:
            x = self.data.standard_normal(count) * 4
            x[self.data.integers(0, count, 2)] = self.data.choice([np.nan, np.inf, -0.0, 0.0])
            return cast_np(x, dtypes.float64, dtype)
        info = np.iinfo(NUMPY[dtype])
        return self.data.integers(info.min, info.max, count, dtype=NUMPY[dtype], endpoint=True)

    def add_input(self) -> None:
        dtype = self.rng.choice([d for d in POOL if self.wide[d]])
        lanes = self.rng.choice([1, self.width, self.width])
        values = self.array(dtype, ROWS * lanes)
        p = param(100 + len(self.params), dtype, ROWS * lanes)
        self.params.append(p)
        self.inputs.append(np.ascontiguousarray(to_storage_np(values, dtype)))
        at = UOp(Ops.MUL, (self.row, i32(lanes))) if lanes > 1 else self.row
        self.nodes.append((load(p, at, lanes), values.reshape(ROWS, lanes)))

    def pick(self, dtype: DType | None = None) -> tuple[UOp, np.ndarray]:
        some = [n for n in self.nodes if dtype is None or n[0].dtype is dtype]
        if not some or dtype is not None and dtype is not dtypes.bool and self.rng.random() < 0.1:
            assert dtype is not None
            value = self.rng.choice([0, 1, 2, 5])
            node = const(value, dtype) if dtype is not dtypes.bool else UOp(Ops.CONST, (), bool(value))
            return node, np.full((ROWS, 1), value).astype(NUMPY[dtype])
        return self.rng.choice(some[-12:])

    def keep(self, node: UOp, value: np.ndarray) -> None:
        lanes = value.shape[1]
        assert (node.shape or (1,))[0] == lanes, (node, lanes)
        self.nodes.append((node, value))

    def step(self) -> None:
        getattr(
            self,
            self.rng.choice(
                [*["binary"] * 3, "unary", "cast", "where", "mulacc", "extract", "shuffle", "merge", "build"]
            ),
        )()

    def allowed(self, op: Ops, dtype: DType, *values: np.ndarray) -> bool:
        return renderer().supports(op, dtype, max(v.shape[1] for v in values))

    def binary(self) -> None:
        op = self.rng.choice(BINARY)
        a, x = self.pick()
        b, y = self.pick(a.dtype)
        if self.rng.random() < 0.5:
            a, x, b, y = b, y, a, x
        if self.allowed(op, a.dtype, x, y) and not (a.is_const and b.is_const):
            self.keep(UOp(op, (a, b)), np.broadcast_arrays(evaluate_np(op, a.dtype, x, y), x + y)[0])

    def unary(self) -> None:
        op, (a, x) = self.rng.choice(UNARY), self.pick()
        if self.allowed(op, a.dtype, x) and a.dtype is not dtypes.bool and (op is Ops.NEG or a.dtype.is_float):
            self.keep(UOp(op, (a,)), evaluate_np(op, a.dtype, x))

    def cast(self) -> None:
        a, x = self.pick()
        dtype = self.rng.choice([d for d in POOL if self.wide[d] or x.shape[1] == 1])
        if dtype is not a.dtype and renderer().supports_cast(a.dtype, dtype, x.shape[1]):
            self.keep(UOp(Ops.CAST, (a,), dtype), cast_np(x, a.dtype, dtype))

    def where(self) -> None:
        c, z = self.pick(dtypes.bool)
        a, x = self.pick()
        b, y = self.pick(a.dtype)
        if self.allowed(Ops.WHERE, a.dtype, x, y, z) and not c.is_const:
            self.keep(UOp(Ops.WHERE, (c, a, b)), np.where(z, x, y))

    def mulacc(self) -> None:
        a, x = self.pick()
        if a.dtype not in (dtypes.float32, dtypes.float64):
            return
        (b, y), (c, z) = self.pick(a.dtype), self.pick(a.dtype)
        if self.allowed(Ops.MULACC, a.dtype, x, y, z):
            want = evaluate_np(Ops.MULACC, a.dtype, *np.broadcast_arrays(x, y, z))
            self.keep(UOp(Ops.MULACC, (a, b, c)), want)

    def lanes_of(self, a: UOp, x: np.ndarray, i: int) -> tuple[UOp, np.ndarray]:
        return UOp(Ops.INDEX, (a, UOp(Ops.CONST, (), i))), x[:, i : i + 1]

    def extract(self) -> None:
        a, x = self.pick()
        if x.shape[1] > 1:
            self.keep(*self.lanes_of(a, x, self.rng.randrange(x.shape[1])))

    def shuffle(self) -> None:
        a, x = self.pick()
        if x.shape[1] > 1 and a.dtype is not dtypes.bool:
            order = [self.rng.randrange(self.width) for _ in range(self.width)]
            self.keep(UOp(Ops.INDEX, (a, UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i) for i in order)))), x[:, order])

    def merge(self) -> None:
        """A shuffle, a sum or a product that only a WHERE reads."""
        (c, z), (a, x), (b, y) = self.pick(dtypes.bool), self.pick(), self.pick()
        if z.shape[1] == 1 or a.dtype is dtypes.bool or b.dtype is not a.dtype or c.is_const:
            return
        (d, w), op = self.pick(a.dtype), self.rng.choice([Ops.ADD, Ops.MUL, Ops.SUB, Ops.MULACC])
        if self.rng.random() < 0.6:
            if not self.allowed(op, a.dtype, x, y, z, w) or op is Ops.MULACC and not a.dtype.is_float:
                return
            if op is Ops.MULACC and a.dtype.itemsize == 2:
                return
            srcs, values = ((a, d, b), (x, w, y)) if op is Ops.MULACC else ((a, d), (x, w))
            arm, value = UOp(op, srcs), evaluate_np(op, a.dtype, *np.broadcast_arrays(*values))
            if not any(s.shape for s in srcs):
                return
            b, y = self.rng.choice([(b, y), (const(0, a.dtype), np.zeros_like(x[:, :1]))])
            pair = (arm, b), (value, y)
            picked, chosen = pair if self.rng.random() < 0.5 else (pair[0][::-1], pair[1][::-1])
            self.keep(UOp(Ops.WHERE, (c, *picked)), np.where(z, *chosen))
            return
        if x.shape[1] == 1:
            return
        kind = self.rng.choice([1, 2, 4, 0])
        order = [i ^ kind if kind and kind < self.width else self.rng.randrange(self.width) for i in range(self.width)]
        shuffled = UOp(Ops.INDEX, (a, UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i) for i in order))))
        if self.rng.random() < 0.5:
            self.keep(UOp(Ops.WHERE, (c, shuffled, b)), np.where(z, x[:, order], y))
        else:
            self.keep(UOp(Ops.WHERE, (c, b, shuffled)), np.where(z, y, x[:, order]))

    def build(self) -> None:
        a, x = self.pick()
        if not self.wide[a.dtype]:
            return
        parts = []
        for _ in range(self.width):
            b, y = self.pick(a.dtype)
            parts.append((b, y) if y.shape[1] == 1 else self.lanes_of(b, y, self.rng.randrange(y.shape[1])))
        if not all(p.is_const for p, _ in parts):
            self.keep(UOp(Ops.STACK, tuple(p for p, _ in parts)), np.concatenate([y for _, y in parts], axis=1))

    def run(self) -> None:
        """Store a part of the nodes, and compare."""
        chosen = [n for n in self.nodes if not n[0].is_const][-24:]
        stores, outputs = [], []
        for k, (node, value) in enumerate(chosen):
            lanes = value.shape[1]
            at = UOp(Ops.MUL, (self.row, i32(lanes))) if lanes > 1 else self.row
            stores.append(store(param(k, node.dtype, ROWS * lanes), at, node, lanes))
            outputs.append(np.zeros((ROWS, lanes), NUMPY[node.dtype]))
        read = {u for u in UOp(Ops.SINK, tuple(stores)).toposort() if u.op is Ops.PARAM}
        used = [x for p, x in zip(self.params, self.inputs) if p in read]
        run([UOp(Ops.END, (UOp(Ops.GROUP, tuple(stores)), self.row))], [*outputs, *used])
        for (node, want), got in zip(chosen, outputs):
            got = from_storage_np(got, node.dtype)
            same = (got == want) | ((got != got) & (want != want))
            assert same.all(), (node.op, node.dtype, got[~same][:4], np.broadcast_to(want, got.shape)[~same][:4])


def check(seed: int) -> None:
    program = Program(seed)
    for _ in range(program.rng.randrange(3, 9)):
        program.add_input()
    for _ in range(program.rng.choice([10, 30, 80])):
        program.step()
    with np.errstate(all="ignore"):
        program.run()


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int) -> None:
    with np.errstate(all="ignore"):
        check(seed)


@pytest.mark.soak
def test_many_random_programs() -> None:
    for seed in range(1000, 6000):
        with np.errstate(all="ignore"):
            check(seed)
