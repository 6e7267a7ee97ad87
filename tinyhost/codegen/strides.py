"""How the accesses of a small kernel move: the coefficient of each RANGE in each index.

Takes weak index expressions; gives linear parts. What is not linear (quotients, remainders, loaded indices) is
``opaque``: the RANGEs under it move the access in a way no stride describes. Read by merging, by the optimiser and by
its hand rules.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyhost.codegen.memory import gate_and_index
from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp

_NONE: frozenset[UOp] = frozenset()


@dataclass(frozen=True)
class Linear:
    """``const + sum(coefficient * RANGE)`` plus something that depends on the ``opaque`` RANGEs."""

    terms: dict[UOp, int]
    const: int
    opaque: frozenset[UOp]


def linear(u: UOp, memo: dict[UOp, Linear]) -> Linear:
    """The linear part of a weak integer expression."""
    found = memo.get(u)
    if found is not None:
        return found
    for x in u.toposort(gate=lambda n: n not in memo):
        memo[x] = _linear_of(x, memo)
    return memo[u]


def _linear_of(x: UOp, memo: dict[UOp, Linear]) -> Linear:
    op = x.op
    if op is Ops.CONST:
        return Linear({}, x.arg, _NONE) if type(x.arg) is int else Linear({}, 0, _NONE)
    if op is Ops.RANGE:
        return Linear({x: 1}, 0, _NONE)
    if x.dtype is dtypes.weakint:
        if op is Ops.ADD:
            return _combine(memo[x.src[0]], memo[x.src[1]], 1)
        if op is Ops.SUB:
            return _combine(memo[x.src[0]], memo[x.src[1]], -1)
        if op is Ops.MUL:
            a, b = memo[x.src[0]], memo[x.src[1]]
            if not b.terms and not b.opaque and x.src[1].op is Ops.CONST:
                return _times(a, b.const)
            if not a.terms and not a.opaque and x.src[0].op is Ops.CONST:
                return _times(b, a.const)
    return Linear({}, 0, frozenset(x.ranges))


def _combine(a: Linear, b: Linear, sign: int) -> Linear:
    terms = dict(a.terms)
    for r, c in b.terms.items():
        c = terms.get(r, 0) + sign * c
        if c:
            terms[r] = c
        else:
            del terms[r]
    return Linear(terms, a.const + sign * b.const, a.opaque | b.opaque)


def _times(a: Linear, c: int) -> Linear:
    return Linear({r: k * c for r, k in a.terms.items()} if c else {}, a.const * c, a.opaque)


@dataclass(frozen=True)
class Access:
    """One INDEX of storage: what, how it moves, under which gate, whether it is written."""

    node: UOp
    storage: UOp
    linear: Linear
    gate: UOp | None
    written: bool

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.node.dtype

    def stride(self, r: UOp) -> int | None:
        """Elements the access moves per step of ``r``; None where no stride describes it."""
        return None if r in self.linear.opaque else self.linear.terms.get(r, 0)


def accesses_of(sink: UOp, memo: dict[UOp, Linear]) -> list[Access]:
    """All storage accesses of a kernel, stores first."""
    stores: dict[UOp, None] = {}
    loads: dict[UOp, None] = {}
    for u in sink.toposort():
        if u.op is Ops.STORE:
            stores[u.src[0]] = None
        if u.op is Ops.INDEX and len(u.src) == 2:
            loads[u] = None
    out: list[Access] = []
    used = _value_uses(sink)
    for nodes, written in ((stores, True), (loads, False)):
        for u in nodes:
            if u.op is not Ops.INDEX or (not written and u not in used):
                continue
            storage = _storage(u.src[0])
            if storage is not None and len(u.src) == 2:
                gate, idx = gate_and_index(u)
                out.append(Access(u, storage, linear(idx, memo), gate, written))
    return out


def _storage(u: UOp) -> UOp | None:
    while u.op is Ops.AFTER:
        u = u.src[0]
    return u if u.op is Ops.PARAM or u.op is Ops.BUFFER else None


def _value_uses(sink: UOp) -> set[UOp]:
    """INDEX nodes used as values (a store's target alone is none)."""
    out: set[UOp] = set()
    for u in sink.toposort():
        srcs: Any = u.src[1:] if u.op is Ops.STORE else u.src
        out.update([s for s in srcs if s.op is Ops.INDEX])
    return out
