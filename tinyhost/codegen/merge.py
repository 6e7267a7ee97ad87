"""Neighbouring RANGEs that always move together become one, so that the optimiser sees long axes.

Two loops of one closer merge when every index that moves with either is linear in both with coefficients that fit
(coefficient of the outer = coefficient of the inner * length of the inner), and nothing else depends on them.
"""
from __future__ import annotations

from tinyhost.codegen.memory import gate_and_index
from tinyhost.codegen.nests import ranges_of
from tinyhost.codegen.strides import Linear, linear
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp

_MERGED = frozenset({AxisType.WEAK, AxisType.REDUCE, AxisType.GLOBAL})


def merge_ranges(sink: UOp) -> UOp:
    """The kernel with neighbouring ranges merged where that only changes literals."""
    nodes = list(sink.toposort())
    uses, fixed = _index_uses(sink)
    memo: dict[UOp, Linear] = {}
    forms = [linear(u, memo) for u in uses]
    blocked = fixed.union(*[f.opaque for f in forms])
    swap: dict[UOp, UOp] = {}
    for outer, inner in _pairs(nodes, blocked):
        n = int(inner.src[0].const_value)
        if all(f.terms.get(outer, 0) == f.terms.get(inner, 0) * n for f in forms):
            swap[inner] = outer
    return _apply(sink, nodes, swap) if swap else sink


def _index_uses(sink: UOp) -> tuple[list[UOp], set[UOp]]:
    """(weak index expressions of accesses, RANGEs that anything else depends on)."""
    uses: dict[UOp, None] = {}
    fixed: set[UOp] = set()
    seen: set[UOp] = set()
    stack = [sink]
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        if u.op is Ops.END or u.op is Ops.REDUCE:
            stack.append(u.src[0])
        elif u.op is Ops.RANGE or u.dtype.is_weak:
            fixed.update(u.ranges)
            stack += _values_under(u.src)
        elif u.op is Ops.INDEX and len(u.src) == 2:
            gate, idx = gate_and_index(u)
            uses[idx] = None
            if gate is not None:
                fixed.update(gate.ranges)
            stack += [u.src[0], *_values_under((idx,) if gate is None else (idx, gate))]
        else:
            stack += u.src
    return list(uses), fixed


def _values_under(roots: tuple[UOp, ...]) -> list[UOp]:
    """Loads and reductions that indices or weak values are made of; they have indices of their own."""
    found: list[UOp] = []
    stack = list(roots)
    seen: set[UOp] = set()
    while stack:
        u = stack.pop()
        if u not in seen:
            seen.add(u)
            if u.op is Ops.INDEX or u.op is Ops.REDUCE:
                found.append(u)
            else:
                stack += u.src
    return found


def _pairs(nodes: list[UOp], blocked: set[UOp]) -> list[tuple[UOp, UOp]]:
    """(outer, inner) neighbours of one closer that may merge, innermost first."""
    closers: dict[UOp, list[UOp]] = {}
    for u in nodes:
        if u.op is Ops.END or u.op is Ops.REDUCE:
            for r in ranges_of(u):
                closers.setdefault(r, []).append(u)
    out = []
    seen: set[tuple[UOp, UOp]] = set()
    for u in nodes:
        if u.op is not Ops.END and u.op is not Ops.REDUCE:
            continue
        rs = [r for r in sorted(ranges_of(u), key=lambda r: r.arg[:-1]) if r.src[0].op is not Ops.NOOP]
        for a, b in list(zip(rs, rs[1:]))[::-1]:
            if (
                (a, b) not in seen
                and a not in blocked
                and b not in blocked
                and a.src[0].is_const
                and b.src[0].is_const
                and closers[a] == closers[b]
                and a.arg[-1] is b.arg[-1]
                and a.arg[-1] in _MERGED
            ):
                seen.add((a, b))
                out.append((a, b))
    return out


def _apply(sink: UOp, nodes: list[UOp], swap: dict[UOp, UOp]) -> UOp:
    """Chains of merged ranges become one RANGE each: the inner one grows, the outer ones are 0 in every index."""
    sizes: dict[UOp, int] = {}
    heads: dict[UOp, UOp] = {}
    tails = set(swap) - set(swap.values())
    for tail in tails:
        chain = [tail]
        while chain[-1] in swap:
            chain.append(swap[chain[-1]])
        size = 1
        for r in chain:
            size *= int(r.src[0].const_value)
            heads[r] = tail
        sizes[tail] = size
    done: dict[UOp, UOp] = {}
    for r, tail in heads.items():
        head = min((x for x in heads if heads[x] is tail), key=lambda x: x.arg[:-1])
        done[r] = UOp(Ops.RANGE, (UOp.const(sizes[tail]),), head.arg) if r is tail else UOp.const(0)
    for u in nodes:
        if u not in done:
            src = tuple([done[s] for s in u.src])
            if (u.op is Ops.END or u.op is Ops.REDUCE) and src != u.src:
                src = (src[0], *[s for s in src[1:] if s.op is not Ops.CONST])
            done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
    return done[sink]
