"""Index arithmetic of the expanded kernel: sums of (strong node * integer) plus a constant.

Takes weak integer expressions one node at a time and keeps each as a ``Lin``; gives int32 or int64 nodes when a value
is needed. Because constants of unrolled iterations only change ``Lin.const``, all copies of an access share one base
node and differ in a literal offset. Terms are added outermost loop first, so that every partial sum can leave the
inner loops. An expression that is not linear in the vector lane becomes a ``Lanes``: one ``Lin`` per lane.

Division is by positive literals; a dividend that may be negative is moved up by a multiple of the divisor first, so
the emitted division is always of non-negative numbers.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp
from tinyhost.uop.semantics import evaluate

_INT32 = (-(1 << 31), (1 << 31) - 1)


class Lin:
    """``const + sum(coefficient * atom)``; atoms are strong scalars, or the LANE range. Never changed once made."""

    __slots__ = ("terms", "const")

    def __init__(self, terms: dict[UOp, int], const: int) -> None:
        self.terms, self.const = terms, const

    def __repr__(self) -> str:
        return " + ".join([f"{c}*{a.op.name}{a.arg}" for a, c in self.terms.items()] + [str(self.const)])


class Lanes:
    """One ``Lin`` for each vector lane."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Lin]) -> None:
        self.parts = parts


Int = Lin | Lanes
ZERO = Lin({}, 0)


def literal(value: int) -> Lin:
    """The constant ``value``."""
    return Lin({}, value)


def atom(node: UOp) -> Lin:
    """``node`` itself."""
    return Lin({node: 1}, 0)


def _add(a: Lin, b: Lin) -> Lin:
    if not b.terms:
        return Lin(a.terms, a.const + b.const) if b.const else a
    if not a.terms:
        return Lin(b.terms, a.const + b.const) if a.const else b
    terms = dict(a.terms)
    for node, c in b.terms.items():
        c += terms.get(node, 0)
        if c:
            terms[node] = c
        else:
            del terms[node]
    return Lin(terms, a.const + b.const)


def _scale(a: Lin, c: int) -> Lin:
    if c == 1:
        return a
    return Lin({n: k * c for n, k in a.terms.items()}, a.const * c) if c else ZERO


class Integers:
    """Arithmetic on ``Int`` values and their materialisation for one kernel.

    Args:
        rank: place of each RANGE (strong) in the loop nest, outermost 0; launch indices have none.
        lower: turns an op the target may lack into ones it has (decomposition).
        has_int64: without, everything is int32, whatever the bounds say: storage is smaller than that.
    """

    def __init__(self, rank: dict[UOp, int], lower: Callable[[UOp], UOp], has_int64: bool = True) -> None:
        self.rank, self.lower, self.has_int64 = rank, lower, has_int64
        self._nodes: dict[tuple[Any, ...], UOp] = {}
        self._ranks: dict[UOp, int] = {}
        self._iotas: dict[tuple[int, int, DType], UOp] = {}

    # *** lanes ***
    @staticmethod
    def lane_of(x: Int) -> UOp | None:
        """The LANE range in ``x``, if any."""
        if x.__class__ is Lin:
            for node in x.terms:
                if is_lane(node):
                    return node
        return None

    def width(self, x: Int) -> int:
        """How many lanes ``x`` differs in, 1 for a scalar."""
        if isinstance(x, Lanes):
            return len(x.parts)
        rng = self.lane_of(x)
        return 1 if rng is None else lane_size(rng)

    def at_lane(self, x: Int, lane: int) -> Lin:
        """``x`` in one lane."""
        if x.__class__ is Lanes:
            return x.parts[lane]
        assert isinstance(x, Lin)
        rng = self.lane_of(x)
        if rng is None:
            return x
        terms = dict(x.terms)
        return Lin(terms, x.const + terms.pop(rng) * lane)

    def lanes(self, x: Int, count: int) -> Lanes:
        """``x`` as one value per lane."""
        return x if isinstance(x, Lanes) else Lanes([self.at_lane(x, i) for i in range(count)])

    def _lift(self, fn: Callable[..., Lin], *xs: Int) -> Int:
        """``fn`` on scalars, lane by lane where an operand is a ``Lanes``."""
        count = next((len(x.parts) for x in xs if x.__class__ is Lanes), 0)
        if not count:
            return fn(*xs)
        return Lanes([fn(*[self.at_lane(x, i) for x in xs]) for i in range(count)])

    # *** arithmetic ***
    def add(self, a: Int, b: Int) -> Int:
        """``a + b``."""
        return _add(a, b) if a.__class__ is Lin and b.__class__ is Lin else self._lift(_add, a, b)

    def scale(self, a: Int, c: int) -> Int:
        """``a * c`` for a literal ``c``."""
        return _scale(a, c) if isinstance(a, Lin) else Lanes([_scale(p, c) for p in a.parts])

    def mul(self, a: Int, b: Int) -> Int:
        """``a * b``; a product of two non-literals is an atom."""
        if isinstance(b, Lin) and not b.terms:
            return self.scale(a, b.const)
        if isinstance(a, Lin) and not a.terms:
            return self.scale(b, a.const)
        return self._opaque(Ops.MUL, a, b)

    def _opaque(self, op: Ops, *xs: Int) -> Int:
        """An op without linear meaning over materialised operands."""
        if any(self.lane_of(x) is not None for x in xs):
            count = lane_size(next(r for r in map(self.lane_of, xs) if r is not None))
            xs = tuple(self.lanes(x, count) for x in xs)
        return self._lift(lambda *ys: atom(self.lower(UOp(op, tuple(self._same_dtype(ys))))), *xs)

    def binary(self, op: Ops, a: Int, b: Int) -> Int:
        """``a op b`` for an op that has no linear meaning."""
        if isinstance(a, Lin) and isinstance(b, Lin) and not a.terms and not b.terms:
            return literal(evaluate(op, dtypes.weakint, (a.const, b.const)))
        return self._opaque(op, a, b)

    def floordiv(self, a: Int, c: int) -> Int:
        """``a // c`` for a positive literal ``c``."""
        return self._per_lane_unless(a, c, self._floordiv)

    def floormod(self, a: Int, c: int) -> Int:
        """``a % c`` for a positive literal ``c``."""
        return self._per_lane_unless(a, c, self._floormod)

    def _per_lane_unless(self, a: Int, c: int, fn: Callable[[Lin, int], Lin | None]) -> Int:
        if isinstance(a, Lin):
            out = fn(a, c)
            if out is not None:
                return out
            rng = self.lane_of(a)
            assert rng is not None
            a = self.lanes(a, lane_size(rng))
        return self._lift(lambda x: fn(x, c), a)  # type: ignore[arg-type,return-value]

    def _split(self, a: Lin, c: int) -> tuple[Lin, Lin]:
        """(whole, rest) with ``a = whole * c + rest`` and the constant of ``rest`` in 0 .. c-1."""
        whole, rest = {}, {}
        for node, k in a.terms.items():
            if k % c == 0:
                whole[node] = k // c
            else:
                rest[node] = k
        q, r = divmod(a.const, c)
        return Lin(whole, q), Lin(rest, r)

    def _common(self, a: Lin, c: int) -> int:
        """The largest g > 1 dividing ``c`` such that ``a`` is g * (something) + (a value in 0 .. g-1), or 1."""
        for g in sorted({gcd(k, c) for k in a.terms.values()}, reverse=True):
            if g > 1:
                _, small = self._split(a, g)
                lo, hi = self.bounds(small)
                if lo >= 0 and hi < g:
                    return g
        return 1

    def _floordiv(self, a: Lin, c: int) -> Lin | None:
        if c == 1:
            return a
        whole, rest = self._split(a, c)
        lo, hi = self.bounds(rest)
        if lo // c == hi // c:
            return _add(whole, literal(lo // c))
        if (g := self._common(rest, c)) > 1:
            big, _ = self._split(rest, g)
            out = self._floordiv(big, c // g)
            return None if out is None else _add(whole, out)
        if self.lane_of(rest) is not None:
            return None
        up = max(0, -(lo // c))
        if hi + up * c > dtypes.int64.max:  # no room to make it positive
            return _add(whole, atom(self._total(Ops.FLOORDIV, rest, c)))
        return _add(_add(whole, literal(-up)), atom(self._quotient(_add(rest, literal(up * c)), c)))

    def _floormod(self, a: Lin, c: int) -> Lin | None:
        whole, rest = self._split(a, c)
        lo, hi = self.bounds(rest)
        if lo // c == hi // c:
            return _add(rest, literal(-(lo // c) * c))
        if (g := self._common(rest, c)) > 1:
            big, small = self._split(rest, g)
            out = self._floormod(big, c // g)
            return None if out is None else _add(_scale(out, g), small)
        if self.lane_of(rest) is not None:
            return None
        up = max(0, -(lo // c)) * c
        if hi + up > dtypes.int64.max:
            return atom(self._total(Ops.FLOORMOD, rest, c))
        rest = _add(rest, literal(up))
        if c & (c - 1) == 0:
            node = self.node(rest)
            return atom(self.lower(UOp(Ops.AND, (node, UOp.const(c - 1, node.dtype)))))
        return _add(rest, _scale(atom(self._quotient(rest, c)), -c))

    def _total(self, op: Ops, rest: Lin, c: int) -> UOp:
        """FLOORDIV or FLOORMOD of what may be negative."""
        node = self.node(rest)
        return self.lower(UOp(op, (node, UOp.const(c, node.dtype))))

    def _quotient(self, rest: Lin, c: int) -> UOp:
        node = self.node(rest)
        if c & (c - 1) == 0:
            return self.lower(UOp(Ops.SHR, (node, UOp.const(c.bit_length() - 1, node.dtype))))
        return self.lower(UOp(Ops.CDIV, (node, UOp.const(c, node.dtype))))

    # *** bounds and nodes ***
    def bounds(self, a: Lin) -> tuple[int, int]:
        """Smallest and largest value."""
        lo = hi = a.const
        for node, c in a.terms.items():
            if c > 0:
                lo += node.vmin * c
                hi += node.vmax * c
            else:
                lo += node.vmax * c
                hi += node.vmin * c
        return lo, hi

    def dtype_of(self, a: Lin) -> DType:
        """int32 where bounds and atoms allow, else int64."""
        if not self.has_int64:
            return dtypes.int32
        lo, hi = self.bounds(a)
        if lo < _INT32[0] or hi > _INT32[1] or any(n.dtype.itemsize > 4 for n in a.terms if not is_lane(n)):
            return dtypes.int64
        return dtypes.int32

    def _same_dtype(self, xs: Iterable[Int]) -> list[UOp]:
        lins: list[Any] = list(xs)
        wide = dtypes.int64 if any(self.dtype_of(x) is dtypes.int64 for x in lins) else dtypes.int32
        return [self.node(x, wide) for x in lins]

    def rank_of(self, node: UOp) -> int:
        """Rank of the innermost loop a strong node depends on, -1 outside all loops."""
        r = self._ranks.get(node)
        if r is None:
            rank = self.rank
            r = self._ranks[node] = max([rank[x] for x in node.ranges if x in rank], default=-1)
        return r

    def node(self, a: Lin, dtype: DType | None = None) -> UOp:
        """A scalar node with the value of ``a``, int32 or int64 unless ``dtype`` says which."""
        dt = self.dtype_of(a) if dtype is None else dtype
        terms = a.terms
        if not terms:
            return UOp.const(a.const, dt)
        key = (dt, *terms.items())
        base = self._nodes.get(key)
        if base is None:
            base = self._nodes[key] = self._sum(terms, dt)
        return UOp(Ops.ADD, (base, UOp.const(a.const, dt))) if a.const else base

    def _sum(self, terms: dict[UOp, int], dt: DType) -> UOp:
        items = list(terms.items())
        if len(items) > 1:
            rank_of = self.rank_of
            items.sort(key=lambda kv: rank_of(kv[0]))
        total: UOp | None = None
        for node, c in items:
            x = node if node.dtype is dt else UOp(Ops.CAST, (node,), dt)
            x = x if c == 1 else UOp(Ops.MUL, (x, UOp.const(c, dt)))
            total = x if total is None else UOp(Ops.ADD, (total, x))
        assert total is not None
        return total

    def iota(self, count: int, step: int, dt: DType) -> UOp:
        """The vector 0, step, 2*step ..."""
        key = (count, step, dt)
        v = self._iotas.get(key)
        if v is None:
            v = self._iotas[key] = UOp(Ops.STACK, tuple(UOp.const(i * step, dt) for i in range(count)))
        return v

    def split_lane(self, a: Lin) -> tuple[Lin, UOp | None, int]:
        """(``a`` without its lane term, LANE range or None, coefficient)."""
        rng = self.lane_of(a)
        if rng is None:
            return a, None, 0
        terms = dict(a.terms)
        c = terms.pop(rng)
        return Lin(terms, a.const), rng, c


def is_lane(node: UOp) -> bool:
    """Whether ``node`` is a LANE range."""
    return node.op is Ops.RANGE and node.arg[-1] is AxisType.LANE


def lane_size(rng: UOp) -> int:
    """Lanes of a LANE range."""
    return int(rng.src[0].arg)
