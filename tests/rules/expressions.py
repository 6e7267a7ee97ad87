"""Random index expressions and their exact value: what the fuzzer and the property tests of the rules share.

``Expressions(seed)`` gives weakint expressions over ranges and variables; ``value`` and ``values`` compute any node, at
one point or at many, from the one definition of each op; ``cost`` counts what a target would execute.
"""
from __future__ import annotations

import random
from typing import Any

import numpy as np

from tinyhost.dtype import Invalid, dtypes, least_upper_dtype
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp, semantics


def value(root: UOp, env: dict[UOp, Any]) -> Any:
    """The value of ``root`` where the leaves in ``env`` have the values given there."""
    done: dict[UOp, Any] = dict(env)
    for u in root.toposort():
        if u in done:
            continue
        args = [done[s] for s in u.src]
        if u.op is Ops.CONST:
            done[u] = u.arg
        elif u.op is Ops.CAST:
            done[u] = semantics.cast(args[0], u.src[0].dtype, u.arg)
        elif u.op is Ops.WHERE:
            done[u] = args[0] if args[0] is Invalid else semantics.evaluate(u.op, u.dtype, tuple(args))
        elif u.op in GroupOp.Comparison:
            done[u] = semantics.evaluate(u.op, least_upper_dtype(*[s.dtype for s in u.src]), tuple(args))
        elif u.op in GroupOp.ALU:
            done[u] = semantics.evaluate(u.op, u.dtype, tuple(args))
        else:
            raise AssertionError(f"{u.op} is no leaf of env and no arithmetic")
    return done[root]


def values(root: UOp, env: dict[UOp, np.ndarray]) -> np.ndarray:
    """The values of ``root`` at many points: leaves are arrays of their dtype; weak literals compare exactly."""
    done: dict[UOp, np.ndarray] = dict(env)
    for u in root.toposort():
        if u in done:
            continue
        args = [done[s] for s in u.src]
        if u.op is Ops.CONST:
            done[u] = np.asarray(u.arg, semantics.carrier_np(u.dtype))
        elif u.op is Ops.CAST:
            done[u] = semantics.cast_np(args[0], u.src[0].dtype, u.arg)
        elif u.op is Ops.BITCAST:
            done[u] = semantics.bitcast_np(args[0], u.src[0].dtype, u.arg)
        else:
            first = 1 if u.op is Ops.WHERE else 0
            at = u.dtype
            if u.op in GroupOp.Comparison:
                at = least_upper_dtype(*[s.dtype for s in u.src])
                if at.is_int and any(s.dtype.is_weak for s in u.src):
                    at = dtypes.weakint
            elif u.op in semantics.FLOAT_UNARY:
                at = u.src[0].dtype
            count = u.op in (Ops.SHL, Ops.SHR)
            args = [a if i < first or (count and i) else semantics.cast_np(a, u.src[i].dtype, at)
                    for i, a in enumerate(args)]
            done[u] = semantics.evaluate_np(u.op, at, *args)
    return done[root]


_WEIGHT = {Ops.FLOORDIV: 8, Ops.FLOORMOD: 8, Ops.CDIV: 8, Ops.CMOD: 8, Ops.WHERE: 3, Ops.MAX: 2, Ops.CMPLT: 2,
           Ops.CMPNE: 2, Ops.AND: 1, Ops.OR: 1, Ops.XOR: 1}


def cost(root: UOp) -> int:
    """Weighted number of operations other than sums and products with literals, which addressing absorbs."""
    return sum(_WEIGHT.get(u.op, 0) for u in root.toposort())


def sample_env(leaves: list[UOp], rnd: random.Random) -> dict[UOp, Any]:
    """A random value within the bounds for each leaf; the ends are drawn often."""
    env = {}
    for u in leaves:
        lo, hi = u.bounds
        env[u] = rnd.choice((lo, hi, rnd.randint(lo, hi), rnd.randint(lo, hi)))
    return env


_KINDS = {"add": 30, "muladd": 20, "mul": 12, "div": 14, "mod": 14, "where": 6, "max": 3, "sub": 5, "prod": 2,
          "symdiv": 2, "min": 2, "join": 8, "flat": 8}  # what an inner node is, with its weight


class Expressions:
    """A stream of random expressions."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        sizes = [self.rnd.choice((1, 2, 3, 4, 5, 7, 8, 16, 28, 32, 100)) for _ in range(4)]
        self.leaves = [UOp.range(n, i) for i, n in enumerate(sizes)]
        lo = self.rnd.choice((0, 1, 2))
        self.leaves.append(UOp.variable("n", lo, lo + self.rnd.choice((0, 1, 5, 30))))
        self.leaves.append(UOp.variable("m", -self.rnd.choice((1, 4, 9)), self.rnd.choice((0, 3, 12))))
        self.pool = list(self.leaves)

    def literal(self) -> UOp:
        return UOp.const(self.rnd.choice((1, 2, 3, 4, 4, 6, 7, 8, 12, 16, 32, -1, -2, -3, -4, 0, 5, 100)))

    def integer(self, depth: int) -> UOp:
        rnd = self.rnd
        if depth == 0 or rnd.random() < 0.08:
            return rnd.choice(self.pool) if rnd.random() < 0.8 else self.literal()
        kind = rnd.choices(*zip(*_KINDS.items()))[0]
        if kind == "flat":
            return self.flat_index()
        a = self.integer(depth - 1)
        if kind == "join":
            return self.joined(a)
        if kind == "mul":
            return a * self.literal()
        if kind == "div":
            return a // self.positive()
        if kind == "mod":
            return a % self.positive()
        b = self.integer(depth - 1)
        if kind == "add":
            return a + b
        if kind == "muladd":
            return a * self.literal() + b
        if kind == "sub":
            return a - b
        if kind == "max":
            return a.maximum(b)
        if kind == "min":
            return a.minimum(b)
        if kind == "prod":
            return a * b
        if kind == "symdiv":
            d = self.leaves[4]
            return (a * d + b) // d if rnd.random() < 0.5 else (a + b * d) % d
        return self.boolean(depth - 1).where(a, b)

    def joined(self, a: UOp) -> UOp:
        """Quotient and remainder of one numerator, or of two that nearly agree, put together again."""
        rnd = self.rnd
        c, s = rnd.choice((2, 3, 4, 6, 8)), rnd.choice((1, 1, 2, 3, -1))
        b = rnd.choice((a, a, a + rnd.choice(self.leaves) * c, a + rnd.choice(self.leaves), a + c, a + 1))
        high = rnd.choice((b // c, b // c % rnd.choice((2, 3, 5))))
        return a % c * s + high * (c * s if rnd.random() < 0.85 else c)

    def flat_index(self) -> UOp:
        """A flattened index over the ranges, divided or reduced by a product of some of their sizes."""
        rnd = self.rnd
        flat, stride = UOp.const(rnd.choice((0, 0, 1, 3))), rnd.choice((1, 1, 2, 4))
        cuts = [stride]
        for r in rnd.sample(self.leaves[:4], rnd.choice((2, 3, 4))):
            flat = flat + r * stride
            stride *= r.vmax + 1 if rnd.random() < 0.9 else rnd.choice((2, 3, 4))
            cuts.append(stride)
        c = rnd.choice(cuts) * rnd.choice((1, 1, 1, 2, 3))
        d, m = rnd.choice(cuts), rnd.choice((2, 3, 7, 16))
        return rnd.choice((flat // c, flat % c, flat % c // d, flat // d % m))

    def positive(self) -> UOp:
        return UOp.const(self.rnd.choice((2, 3, 4, 4, 6, 7, 8, 12, 16, 32)) * (1 if self.rnd.random() < 0.92 else -1))

    def boolean(self, depth: int) -> UOp:
        rnd = self.rnd
        a = self.integer(max(depth - 1, 0))
        b = self.literal() if rnd.random() < 0.6 else self.integer(max(depth - 1, 0))
        c = rnd.choice((a < b, b < a, a.ne(b), a.eq(b), a >= b, a <= b))
        if depth > 1 and rnd.random() < 0.35:
            d = self.boolean(depth - 1)
            return rnd.choice((c & d, c | d, c.ne(d), d.logical_not() & c))
        return c

    def draw(self) -> UOp:
        """The next expression, of int or bool."""
        depth = self.rnd.choice((1, 2, 3, 3, 4, 5))
        e = self.integer(depth) if self.rnd.random() < 0.75 else self.boolean(depth)
        if e.dtype is dtypes.weakint and self.rnd.random() < 0.3:
            self.pool.append(e)
        return e
