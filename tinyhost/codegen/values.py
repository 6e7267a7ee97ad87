"""Values of the expanded kernel: copies, conversions, comparisons and weak integers.

``Values`` is the state of one expansion and everything about single values: an entry is a strong node, or an ``Int`` as
long as a value is a weak integer. What a node became is a list with one entry per combination of the UPCAST and UNROLL
ranges it depends on; ``mask`` says which. Literals fold here; nothing here touches memory or loops.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tinyhost.codegen.linear_form import Int, Integers, Lanes, Lin, atom, literal
from tinyhost.codegen.lower import native_dtypes
from tinyhost.codegen.vectors import Vectors
from tinyhost.dtype import DType, Invalid, dtypes, least_upper_dtype
from tinyhost.helpers import prod
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import UOp
from tinyhost.uop.semantics import evaluate

_COMPARE = GroupOp.Comparison
TRUE, FALSE = UOp(Ops.CONST, (), True), UOp(Ops.CONST, (), False)

Entry = Any  # UOp, or Int for weak integers
Entries = list[Entry]


class Values:
    """State of one expansion.

    Args:
        renderer: asked which ops exist in which widths.
        order: loop RANGEs of the kernel, outermost first.
        lower: turns one scalar integer op the target may lack into ones it has.
    """

    def __init__(self, renderer: Renderer, order: list[UOp], lower: Callable[[UOp], UOp]) -> None:
        self.renderer = renderer
        self.strong_ranges: dict[UOp, UOp] = {}
        self.rank: dict[UOp, int] = {}
        self.small_rank = {r.arg[:-1]: i for i, r in enumerate(order)}  # by id: a new bound makes a new node
        self.ints = Integers(self.rank, lower, dtypes.int64 in native_dtypes(renderer))
        self.vectors = Vectors(renderer, lower)
        self.alu = self.vectors.alu
        self.out: dict[UOp, Entries] = {}
        self.mask: dict[UOp, int] = {}
        self.bits: list[tuple[UOp, int]] = []  # (unrolled range, size) by bit
        self.bit_of: dict[UOp, int] = {}
        self._projections: dict[tuple[int, int], list[int]] = {}
        self.groups: dict[UOp, list[UOp]] = {}
        self.deferred: dict[UOp, tuple[list[UOp], list[UOp]] | None] = {}
        self.accumulators = 0

    def copies(self, mask: int) -> int:
        """How many combinations of the unrolled ranges in ``mask`` there are."""
        return int(prod(n for i, (_, n) in enumerate(self.bits) if mask >> i & 1))

    def project(self, mask: int, inner: int) -> list[int]:
        """For each combination over ``mask``, the index of the same combination over its subset ``inner``."""
        key = (mask, inner)
        found = self._projections.get(key)
        if found is None:
            sizes = [(i, n) for i, (_, n) in enumerate(self.bits) if mask >> i & 1]
            found = []
            for combo in itertools.product(*[range(n) for _, n in sizes]):
                at = 0
                for (i, n), v in zip(sizes, combo):
                    if inner >> i & 1:
                        at = at * n + v
                found.append(at)
            self._projections[key] = found
        return found

    def spread(self, u: UOp, mask: int) -> Entries:
        """The entries of ``u``, one per combination over ``mask``."""
        entries, own = self.out[u], self.mask[u]
        return entries if own == mask else [entries[i] for i in self.project(mask, own)]

    def emit(self, u: UOp, srcs: tuple[UOp, ...], fn: Callable[..., Entry]) -> None:
        """Set the entries of ``u`` to ``fn`` over those of ``srcs``."""
        masks = self.mask
        mask = 0
        for s in srcs:
            mask |= masks[s]
        masks[u] = mask
        if mask == 0:
            out = self.out
            self.out[u] = [fn(*[out[s][0] for s in srcs])]
        else:
            self.out[u] = [fn(*xs) for xs in zip(*[self.spread(s, mask) for s in srcs])]

    def leaf(self, u: UOp, entry: Entry) -> None:
        """``u`` is the same in all copies."""
        self.mask[u], self.out[u] = 0, [entry]

    def _bit(self, u: UOp, size: int) -> int:
        bit = self.bit_of.get(u)
        if bit is None:
            bit = self.bit_of[u] = len(self.bits)
            self.bits.append((u, size))
        return bit

    # *** values ***
    def value(self, entry: Entry, dt: DType) -> UOp:
        """An entry as a strong node of ``dt``; a linear lane term makes it a vector."""
        if entry.__class__ is UOp:
            node: UOp = entry
            if node.dtype is dt:
                return node
            if node.op is Ops.CONST:
                return UOp.const(node.arg, dt)
            return self.vectors.cast(node, dt)
        if isinstance(entry, Lin) and not entry.terms:
            return UOp.const(entry.const, dt)
        node = self.integer(entry)
        return node if node.dtype is dt else self.vectors.cast(node, dt)

    def integer(self, entry: Int) -> UOp:
        """A weak integer as a strong node, a vector where it depends on the lane."""
        ints = self.ints
        if isinstance(entry, Lanes):
            return self.vectors.stack(ints._same_dtype(entry.parts))
        rest, rng, step = ints.split_lane(entry)
        if rng is None:
            return ints.node(entry)
        dt = ints.dtype_of(entry)
        iota = self.vectors.mark(ints.iota(int(rng.src[0].const_value), step, dt))
        return self.alu(Ops.ADD, (iota, ints.node(rest, dt))) if rest.terms or rest.const else iota

    def as_int(self, entry: Entry) -> Int:
        """A node used as a weak integer."""
        if entry.__class__ is not UOp:
            return entry  # type: ignore[no-any-return]
        node: UOp = entry
        if node.is_const and node.dtype is not dtypes.bool:
            return literal(int(node.const_value))
        if node.dtype is dtypes.bool or node.dtype.is_float or node.dtype is dtypes.uint64:
            node = self.vectors.cast(node, dtypes.int64 if node.dtype.itemsize > 4 else dtypes.int32)
        if self.vectors.is_vector(node):
            return Lanes([atom(self.vectors.extract(node, i)) for i in range(self.vectors.width(node))])
        return atom(node)

    def _any(self, entry: Entry) -> UOp:
        """An entry as a node, at its own default width."""
        if entry.__class__ is not UOp:
            return self.integer(entry)
        node: UOp = entry
        return UOp.const(node.arg, dtypes.default_float) if node.dtype is dtypes.weakfloat else node

    def _count(self, entry: Entry, dt: DType) -> UOp:
        return entry if entry.__class__ is UOp and not entry.dtype.is_weak else self.value(entry, dt)

    def plain(self, u: UOp) -> None:
        """An ALU op or anything else that is rebuilt copy by copy."""
        op, src = u.op, u.src
        dtype = u.dtype
        if dtype is dtypes.weakint:
            self.weak_integer(u)
        elif op in _COMPARE:
            self.compare(u)
        elif op is Ops.CAST:
            self.cast(u)
        elif op in GroupOp.ALU:
            dt = dtypes.default_float if dtype is dtypes.weakfloat else dtype
            if op is Ops.SHL or op is Ops.SHR:
                self.emit(u, src, lambda a, b: self.alu(op, (self.value(a, dt), self._count(b, dt)), u.tag))
            elif dt is dtypes.bool:
                self.emit(u, src, lambda *xs: self.logic(op, xs))
            else:
                value, alu, tag = self.value, self.alu, u.tag
                self.emit(u, src, lambda *xs: alu(op, tuple([value(x, dt) for x in xs]), tag))
        else:
            self.emit(u, src, lambda *xs: self.vectors.rebuild(u, tuple(self._any(x) for x in xs)))

    def cast(self, u: UOp) -> None:
        dt = dtypes.default_float if u.arg is dtypes.weakfloat else u.arg
        self.emit(u, u.src, lambda x: self._cast(x, dt, u.tag))

    def _cast(self, entry: Entry, dt: DType, tag: Any) -> UOp:
        if entry.__class__ is UOp:
            node: UOp = entry
            if node.op is Ops.CONST:
                return node if node.arg is Invalid else UOp.const(node.arg, dt)
            return node if node.dtype is dt else self.vectors.cast(node, dt, tag)
        return self.value(entry, dt)

    # *** booleans ***
    def compare(self, u: UOp) -> None:
        op, (a, b) = u.op, u.src
        if a.dtype is dtypes.weakint and b.dtype is dtypes.weakint:
            self.emit(u, u.src, lambda x, y: self.compare_ints(op, x, y))
            return
        dt = least_upper_dtype(a.dtype, b.dtype)
        dt = dtypes.default_float if dt is dtypes.weakfloat else dt
        if dt is dtypes.bool:
            self.emit(u, u.src, lambda *xs: self.logic(op, xs))
        else:
            self.emit(u, u.src, lambda x, y: self.compare_values(op, self.value(x, dt), self.value(y, dt)))

    def compare_values(self, op: Ops, x: UOp, y: UOp) -> UOp:
        """A comparison of strong values; literals fold."""
        if x.is_const and y.is_const:
            return UOp.const(evaluate(op, x.dtype, (x.const_value, y.const_value)))
        return self.alu(op, (x, y))

    def compare_ints(self, op: Ops, x: Entry, y: Entry) -> UOp:
        """A comparison of weak integers, decided by bounds where they suffice."""
        ints = self.ints
        x, y = self.as_int(x), self.as_int(y)
        if isinstance(x, Lanes) or isinstance(y, Lanes):
            count = len((x if isinstance(x, Lanes) else y).parts)
            parts = [self.compare_ints(op, ints.at_lane(x, i), ints.at_lane(y, i)) for i in range(count)]
            return parts[0] if all(p is parts[0] for p in parts) else self.vectors.stack(parts)
        diff = ints.add(x, ints.scale(y, -1))
        assert isinstance(diff, Lin)
        lo, hi = ints.bounds(diff)
        if op is Ops.CMPLT:
            if hi < 0 or lo >= 0:
                return TRUE if hi < 0 else FALSE
        elif lo > 0 or hi < 0 or lo == hi == 0:
            return TRUE if (lo == hi == 0) == (op is Ops.CMPEQ) else FALSE
        if op is Ops.CMPEQ and Ops.CMPEQ not in self.renderer.code_for_op:
            return self.logic(Ops.NEG, (self._compare_sides(Ops.CMPNE, diff),))
        return self._compare_sides(op, diff)

    def _compare_sides(self, op: Ops, diff: Lin) -> UOp:
        """``diff op 0`` as lane and positive terms against the rest."""
        ints, vectors = self.ints, self.vectors
        rest, rng, step = ints.split_lane(diff)
        if rng is not None:
            limit = Lin({n: -c for n, c in rest.terms.items()}, -rest.const)
            dt = ints.dtype_of(diff) if ints.dtype_of(limit) is dtypes.int32 else dtypes.int64
            iota = vectors.mark(ints.iota(int(rng.src[0].const_value), step, dt))
            return self.alu(op, (iota, ints.node(limit, dt)))
        left = Lin({n: c for n, c in diff.terms.items() if c > 0}, 0)
        right = Lin({n: -c for n, c in diff.terms.items() if c < 0}, -diff.const)
        a, b = ints._same_dtype((left, right))
        return self.alu(op, (a, b))

    def logic(self, op: Ops, xs: tuple[Entry, ...]) -> UOp:
        """A bool op with literals folded."""
        nodes = [self.value(x, dtypes.bool) for x in xs]
        known = [n.arg if n.op is Ops.CONST else None for n in nodes]
        if op is Ops.NEG:
            return UOp.const(not known[0]) if known[0] is not None else self.alu(Ops.CMPNE, (nodes[0], TRUE))
        if len(nodes) == 2:
            op = _BOOL_OP.get(op, op)
            for k, other in ((known[0], nodes[1]), (known[1], nodes[0])):
                if k is None:
                    continue
                if op is Ops.AND or op is Ops.OR:
                    return other if k is (op is Ops.AND) else UOp.const(k)
                if (op is Ops.XOR or op is Ops.CMPNE) and k is False or op is Ops.CMPEQ and k is True:
                    return other
        if all(k is not None for k in known):
            return UOp.const(_FOLD[op](*known))
        return self.alu(op, tuple(nodes))

    # *** selection ***
    def select(self, cond: Entry, x: Entry, y: Entry, dt: DType) -> Entry:
        """``x`` where ``cond`` holds, else ``y``."""
        if cond.op is Ops.CONST:
            return self.value(x if cond.arg else y, dt)
        if y.__class__ is UOp and y.is_invalid:
            return self.value(x, dt)
        a, b = self.value(x, dt), self.value(y, dt)
        return a if a is b else self.alu(Ops.WHERE, (cond, a, b))

    # *** weak integers ***
    def weak_integer(self, u: UOp) -> None:
        op, src, ints, as_int = u.op, u.src, self.ints, self.as_int
        if op is Ops.ADD:
            self.emit(u, src, lambda a, b: ints.add(as_int(a), as_int(b)))
        elif op is Ops.MUL:
            self.emit(u, src, lambda a, b: ints.mul(as_int(a), as_int(b)))
        elif op is Ops.SUB:
            self.emit(u, src, lambda a, b: ints.add(as_int(a), ints.scale(as_int(b), -1)))
        elif op is Ops.NEG:
            self.emit(u, src, lambda a: ints.scale(as_int(a), -1))
        elif op is Ops.CAST:
            self.emit(u, src, as_int)
        elif op is Ops.WHERE:
            self.emit(u, src, self._weak_where)
        elif op is Ops.INDEX or op is Ops.REDUCE:
            raise TypeError(f"{op} of weakint has no storage form: cast to a concrete dtype first")
        else:
            self.emit(u, src, lambda *xs: self._weak_binary(op, [as_int(x) for x in xs]))

    def _weak_binary(self, op: Ops, xs: list[Int]) -> Int:
        ints = self.ints
        b = xs[-1]
        if isinstance(b, Lin) and not b.terms and len(xs) == 2:
            c = b.const
            if op is Ops.FLOORDIV and c > 0:
                return ints.floordiv(xs[0], c)
            if op is Ops.FLOORMOD and c > 0:
                return ints.floormod(xs[0], c)
            if op in (Ops.CDIV, Ops.CMOD) and c > 0 and isinstance(xs[0], Lin) and ints.bounds(xs[0])[0] >= 0:
                return (ints.floordiv if op is Ops.CDIV else ints.floormod)(xs[0], c)
            if op is Ops.SHL and c < 64:
                return ints.scale(xs[0], 1 << c)
            if op is Ops.SHR and c < 64:
                return ints.floordiv(xs[0], 1 << c)
        return ints.binary(op, *xs) if len(xs) == 2 else ints._opaque(op, *xs)

    def _weak_where(self, cond: UOp, x: Entry, y: Entry) -> Int:
        if cond.op is Ops.CONST:
            return self.as_int(x if cond.arg else y)
        if y.__class__ is UOp and y.is_invalid:
            return self.as_int(x)
        ints = self.ints
        a, b = self.as_int(x), self.as_int(y)
        vectors = self.vectors
        count = vectors.width(cond) if vectors.is_vector(cond) else max(ints.width(a), ints.width(b))
        if count > 1:
            return Lanes([self._scalar_where(vectors.extract(cond, i), ints.at_lane(a, i), ints.at_lane(b, i))
                          for i in range(count)])
        assert isinstance(a, Lin) and isinstance(b, Lin)
        return self._scalar_where(cond, a, b)

    def _scalar_where(self, cond: UOp, a: Lin, b: Lin) -> Lin:
        if cond.op is Ops.CONST:
            return a if cond.arg else b
        return atom(UOp(Ops.WHERE, (cond, *self.ints._same_dtype((a, b)))))


_BOOL_OP = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.MAX: Ops.OR}
_FOLD: dict[Ops, Callable[..., bool]] = {
    Ops.AND: lambda a, b: a and b,
    Ops.OR: lambda a, b: a or b,
    Ops.XOR: lambda a, b: a != b,
    Ops.CMPNE: lambda a, b: a != b,
    Ops.CMPEQ: lambda a, b: a == b,
    Ops.CMPLT: lambda a, b: a < b,
    Ops.SUB: lambda a, b: a or not b,
    Ops.MULACC: lambda a, b, c: a and b or c,
}
