"""Values of a row that several loops of a kernel need: computed once, kept in the worker's arena.

A softmax is three loops over a row, and two of them need the same exponentials. The first loop that computes such a
value stores it in the PARAM named ``SCRATCH`` and goes on with what it stored; later loops read it there. Only values
that cost more than a store and a load are kept, and only rows that stay in the second-level cache.

``keep_row_values`` takes the small kernel with one closer for each RANGE, before any axis is split. The optimiser may
then make copies of rows (UPCAST, LANE): ``own_places`` gives each copy a row of its own in the arena.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.stage import SCRATCH
from tinyhost.codegen.work import HEAVY
from tinyhost.dtype import dtypes
from tinyhost.helpers import prod
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop import ParamArg, UOp

KEEP_COST = 8  # instructions from which a value is kept
_COPIES = frozenset({AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE})


@dataclass(eq=False)
class _Loop:
    """Loops over a row: the closer, its RANGEs from the outermost, and the nodes in it by what they are over the RANGEs
    of the first loop of that shape.
    """

    closer: UOp
    ranges: tuple[UOp, ...]
    nodes: dict[UOp, UOp]


@dataclass(eq=False)
class _Kept:
    """A value that ``writer`` stores, from element ``offset`` of the arena on."""

    writer: _Loop
    offset: int


def keep_row_values(sink: UOp, caps: Capabilities) -> UOp:
    """The kernel with the dear values that several of its loops share kept in the arena."""
    nodes = list(sink.toposort())
    reduces = [u for u in nodes if u.op is Ops.REDUCE]
    ends = [u for u in nodes if u.op is Ops.END]
    if caps.grid or not reduces or len(reduces) + len(ends) < 2 or any(u.op is Ops.BUFFER for u in nodes):
        return sink
    kept: dict[UOp, _Kept] = {}
    reads: dict[UOp, tuple[_Kept, tuple[UOp, ...]]] = {}
    size = 0
    for shape in dict.fromkeys(_sizes(_sorted(u)) for u in reduces):
        if shape is None or prod(shape) * 4 > caps.l2_bytes // 8:
            continue
        loops = _loops(shape, reduces, ends)
        for value, users in _shared(loops):
            dtype = next((v.dtype for v in kept), value.dtype)
            if value.dtype is not dtype or (size + prod(shape)) * dtype.itemsize > caps.l2_bytes // 4:
                continue
            mine = _Kept(users[0], size)
            kept[users[0].nodes[value]] = mine
            reads.update({u.nodes[value]: (mine, u.ranges) for u in users[1:]})
            size += -(-int(prod(shape)) // 64) * 64
    return _rebuilt(sink, kept, reads, size) if kept else sink


def _sorted(u: UOp) -> tuple[UOp, ...]:
    return tuple(sorted((r for r in u.src[1:] if r.op is Ops.RANGE), key=lambda r: r.arg[:-1]))


def _sizes(ranges: Iterable[UOp]) -> tuple[int, ...] | None:
    """Lengths of loops, None where one is symbolic."""
    bounds = [r.src[0] for r in ranges]
    return tuple(int(b.const_value) for b in bounds) if all(b.op is Ops.CONST for b in bounds) else None


def _loops(shape: tuple[int, ...], reduces: list[UOp], ends: list[UOp]) -> list[_Loop]:
    """The loops over rows of ``shape``, in an order in which none depends on a later one."""
    out: list[_Loop] = []
    first: tuple[UOp, ...] = ()
    for u in (*reduces, *ends):
        ranges = _sorted(u)
        if u.op is Ops.END:
            ranges = ranges[-len(shape):]
        if _sizes(ranges) == shape and (out or u.op is Ops.REDUCE):
            first = first or ranges
            out.append(_Loop(u, ranges, _over(u.src[0], ranges, first)))
    return out


def _over(body: UOp, ranges: tuple[UOp, ...], first: tuple[UOp, ...]) -> dict[UOp, UOp]:
    """Nodes of a loop by what they are with ``first`` in place of ``ranges``."""
    swap = dict(zip(ranges, first))
    mine = set(ranges)
    done: dict[UOp, UOp] = dict(swap)
    for u in body.toposort(gate=lambda u: not mine.isdisjoint(u.ranges)):
        if u not in done:
            done[u] = UOp(u.op, tuple([done.get(s, s) for s in u.src]), u.arg, u.tag)
    return {v: u for u, v in done.items() if mine <= u.ranges.keys()}


def _shared(loops: list[_Loop]) -> list[tuple[UOp, list[_Loop]]]:
    """Dear values that several loops compute, with these loops; the first one is a reduction. None is part of another,
    unless a loop needs it by itself.
    """
    found: dict[UOp, None] = {}
    for i, loop in enumerate(loops):
        before = [x for x in loops[:i] if x.closer.op is Ops.REDUCE and x.ranges != loop.ranges]
        seen: set[UOp] = set()
        stack = [loop.closer.src[0]]
        mapped = {u: v for v, u in loop.nodes.items()}
        while stack if before else ():
            u = stack.pop()
            if u in seen:
                continue
            seen.add(u)
            v = mapped.get(u)
            if v is not None and any(v in x.nodes for x in before) and _is_dear(v, loops[0].ranges):
                found[v] = None
            elif not u.ranges.keys().isdisjoint(loop.ranges):
                stack += u.src[1:] if u.op is Ops.STORE else u.src
    return [(v, users) for v in found if len(users := _users(v, loops)) > 1]


def _users(value: UOp, loops: list[_Loop]) -> list[_Loop]:
    """The loops that need ``value``, the one that keeps it first: those in whose rows that one stands."""
    mine = [x for x in loops if value in x.nodes]
    writer = mine[0]
    around = set(writer.closer.ranges)
    return [writer] + [x for x in mine[1:] if x.ranges != writer.ranges and around <= _outside(x)]


def _outside(loop: _Loop) -> set[UOp]:
    """RANGEs that stand around a loop."""
    open_ranges = loop.closer.src[1:] if loop.closer.op is Ops.END else loop.closer.src[0].ranges
    return set(open_ranges) - set(loop.ranges)


def _is_dear(v: UOp, ranges: tuple[UOp, ...]) -> bool:
    """Whether a value costs more inside its loop than storing and loading it."""
    if v.dtype.is_weak or v.dtype is dtypes.bool or v.op in (Ops.STORE, Ops.INDEX, Ops.RANGE):
        return False
    inside = set(ranges)
    cost = 0
    for u in v.toposort(gate=lambda u: not inside.isdisjoint(u.ranges)):
        if (u.op in GroupOp.ALU or u.op is Ops.INDEX or u.op is Ops.CAST) and not u.dtype.is_weak:
            cost += HEAVY.get(u.op, 1)
    return cost >= KEEP_COST


def _rebuilt(sink: UOp, kept: dict[UOp, _Kept], reads: dict[UOp, tuple[_Kept, tuple[UOp, ...]]], size: int) -> UOp:
    slot = 1 + max(u.arg.slot for u in sink.toposort() if u.op is Ops.PARAM)
    arena = UOp(Ops.PARAM, (), ParamArg(slot, next(iter(kept)).dtype, size, name=SCRATCH))
    done: dict[UOp, UOp] = {}
    stack = [(sink, False)]
    while stack:
        u, ready = stack.pop()
        if u in done:
            continue
        read = reads.get(u)
        src = u.src if read is None else (read[0].writer.closer,)
        if not ready:
            stack.append((u, True))
            stack += [(s, False) for s in reversed(src) if s not in done]
            continue
        new = tuple([done[s] for s in src])
        if read is not None:
            done[u] = arena.after(new[0]).index(_position(read[1], read[0].offset))
            continue
        out = u if new == src else UOp(u.op, new, u.arg, u.tag)
        if (mine := kept.get(u)) is not None:
            place = _position(mine.writer.ranges, mine.offset)
            out = arena.after(arena.index(place).store(out)).index(place)
        done[u] = out
    return done[sink]


def _position(ranges: Iterable[UOp], offset: int) -> Any:
    """Row-major index over ``ranges`` from ``offset`` on."""
    at: Any = None
    step = 1
    for r in reversed(tuple(ranges)):
        term = r if step == 1 else r * step
        at = term if at is None else term + at
        step *= int(r.src[0].const_value)
    return at + offset if offset else at


# *** copies of rows ***
def own_places(sink: UOp) -> UOp:
    """The kernel with a place in the arena for each copy of a row that is made side by side."""
    nodes = sink.toposort()
    stores = [s for u in nodes if u.op is Ops.AFTER for s in u.src[1:] if s.op is Ops.STORE and _is_arena(s.src[0])]
    copied: dict[UOp, None] = {}
    for u in stores:
        copied.update({r: None for r in u.src[1].ranges if r.arg[-1] in _COPIES and r not in u.src[0].ranges})
    if not copied:
        return sink
    order = sorted(copied, key=lambda r: (r.arg[-1] is AxisType.LANE, r.arg[:-1]))
    lane = order.pop() if order[-1].arg[-1] is AxisType.LANE else None
    lanes = 1 if lane is None else int(lane.src[0].const_value)
    copies = int(prod(int(r.src[0].const_value) for r in order))
    done: dict[UOp, UOp] = {}
    for u in nodes:
        src = tuple([done[s] for s in u.src])
        if u.op is Ops.PARAM and u.arg.name == SCRATCH:
            done[u] = UOp(Ops.PARAM, (), ParamArg(u.arg.slot, u.arg.dtype, u.arg.size * copies * lanes, name=SCRATCH))
        elif _is_arena(u):
            at = src[1] + _position(order, 0) * _storage(u).arg.size if order else src[1]
            done[u] = UOp(Ops.INDEX, (src[0], at if lane is None else at * lanes + lane))
        else:
            done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
    return done[sink]


def _storage(u: UOp) -> UOp:
    while u.op in (Ops.INDEX, Ops.AFTER):
        u = u.src[0]
    return u


def _is_arena(u: UOp) -> bool:
    return u.op is Ops.INDEX and (s := _storage(u)).op is Ops.PARAM and s.arg.name == SCRATCH
