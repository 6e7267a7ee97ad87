"""Random tensor graphs with effects, for comparing a schedule with direct evaluation.

A graph is grown from a few parameters by movement, element-wise ops, reductions, padding, gathers, contiguous, and
stores into views of parameters; every value stays small enough to evaluate. Values are int32 and bool, so results
are exact.
"""
from __future__ import annotations

import random
from typing import Any

from schedule.helpers import assign, output, param

from tinyhost.dtype import dtypes
from tinyhost.uop import Ops, UOp

MAX_ELEMENTS = 600


def numel(shape: tuple[Any, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


class Grower:
    """Grows one graph from a seed."""

    def __init__(self, seed: int, steps: int) -> None:
        self.rng = random.Random(seed)
        self.params: list[UOp] = []
        self.values: list[UOp] = []
        self.effects: list[UOp] = []
        for _ in range(self.rng.randint(1, 4)):
            self.new_param()
        for _ in range(steps):
            self.step()

    def new_param(self) -> None:
        shape = tuple(self.rng.choice((1, 2, 3, 4, 6)) for _ in range(self.rng.randint(1, 3)))
        p = param(len(self.params), shape, dtypes.int32)
        self.params.append(p)
        self.values.append(p)

    def pick(self) -> UOp:
        """Recent values are likelier, so graphs get deep."""
        k = min(int(self.rng.expovariate(0.25)), len(self.values) - 1)
        return self.values[-1 - k]

    def step(self) -> None:
        kinds = (self.movement, self.movement, self.movement, self.elementwise, self.elementwise, self.elementwise,
                 self.reduction, self.pad, self.gather, self.contiguous, self.store_view, self.stack,
                 self.broadcast, self.iota)
        value = self.rng.choice(kinds)(self.pick())
        if value is not None and numel(value.shape) <= MAX_ELEMENTS:
            self.values.append(value)

    def movement(self, x: UOp) -> UOp:
        rng, shape = self.rng, x.shape
        kind = rng.randrange(6)
        if kind == 0:
            order = list(range(len(shape)))
            rng.shuffle(order)
            return x.permute(tuple(order))
        if kind == 1:
            return x.reshape(self.factors(numel(shape)))
        if kind == 2 and shape:
            return x.flip(rng.randrange(len(shape)))
        if kind == 3:
            box = []
            for d in shape:
                a = rng.randint(0, d - 1)
                box.append((a, rng.randint(a + 1, d)))
            return x.shrink(tuple(box))
        if kind == 4:
            return x.reshape((*shape, 1)).expand((*shape, rng.randint(2, 3)))
        return x.reshape((1, *shape)).expand((rng.randint(2, 3), *shape))

    def factors(self, n: int) -> tuple[int, ...]:
        out = []
        while n > 1:
            d = self.rng.choice([k for k in range(2, n + 1) if n % k == 0])
            out.append(d)
            n //= d
        if self.rng.random() < 0.3:
            out.insert(self.rng.randint(0, len(out)), 1)
        return tuple(out)

    def elementwise(self, x: UOp) -> UOp:
        rng = self.rng
        y = self.fit(self.pick(), x.shape)
        kind = rng.randrange(7)
        if kind == 0:
            return x + y
        if kind == 1:
            return x * y
        if kind == 2:
            return x.maximum(y)
        if kind == 3:
            return (x < y).where(x, y + 1)
        if kind == 4:
            return x ^ (y + 3)
        if kind == 5:
            return x + rng.randint(-3, 3)
        return x.ne(y).cast(dtypes.int32) + x

    def fit(self, y: UOp, shape: tuple[int, ...]) -> UOp:
        """``y`` made broadcastable onto ``shape``: each axis is cut to size or to 1."""
        y = y.reshape(tuple([1] * max(0, len(shape) - len(y.shape))) + y.shape)
        while len(y.shape) > len(shape):
            y = y.sum(0)
        box = tuple((0, d) if d == want else (0, 1) for d, want in zip(y.shape, shape))
        return y.shrink(box)

    def reduction(self, x: UOp) -> UOp | None:
        if not x.shape:
            return None
        axes = tuple(sorted(self.rng.sample(range(len(x.shape)), self.rng.randint(1, len(x.shape)))))
        kind = self.rng.randrange(3)
        return x.sum(axes) if kind < 2 else x.max(axes)

    def pad(self, x: UOp) -> UOp | None:
        if not x.shape:
            return None
        pads = tuple((self.rng.randint(0, 2), self.rng.randint(0, 2)) for _ in x.shape)
        mask = UOp.const(True).reshape((1,) * len(x.shape)).expand(x.shape)._pad_box(pads)
        return mask.where(x._pad_box(pads), self.rng.choice((0, 0, 5)))

    def gather(self, x: UOp) -> UOp | None:
        if not x.shape:
            return None
        i = self.pick()
        return x.index(i) if numel(i.shape) * numel(x.shape[1:]) <= MAX_ELEMENTS else None

    def contiguous(self, x: UOp) -> UOp:
        return x.contiguous()

    def stack(self, x: UOp) -> UOp | None:
        y = self.pick()
        return UOp(Ops.STACK, (x, x + 1, y if y.shape == x.shape else x * 2))

    def broadcast(self, x: UOp) -> UOp | None:
        return x.reshape((*x.shape, 1)) + self.rng.randint(0, 2) * UOp.arange(self.rng.randint(2, 4))

    def iota(self, x: UOp) -> UOp | None:
        return x + UOp.arange(x.shape[-1]) if x.shape else None

    def store_view(self, x: UOp) -> UOp:
        """Store into a view of a parameter's newest state; later values see the new one."""
        k = self.rng.randrange(len(self.params))
        place = self.params[k]
        if self.rng.random() < 0.5:
            box = []
            for d in place.shape:
                a = self.rng.randint(0, d - 1)
                box.append((a, self.rng.randint(a + 1, d)))
            view = place.shrink(tuple(box))
            new = place.after(view.store(self.fit(x, view.shape) + 1))
        else:
            new = assign(place, self.fit(x, place.shape) + self.fit(self.pick(), place.shape))
        self.params[k] = new
        self.effects.append(new)
        return new

    def sink(self) -> tuple[UOp, ...]:
        """The newest states and up to three values as outputs."""
        out = list(dict.fromkeys(p for p in self.params if p.op is Ops.AFTER))
        chosen = self.rng.sample(self.values, min(3, len(self.values)))
        return (*out, *(output(100 + i, v) for i, v in enumerate(chosen)))
