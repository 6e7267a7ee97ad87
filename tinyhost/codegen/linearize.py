"""From the expanded graph to the list that a renderer takes: loops in order, each node in the outermost loop it may
be in.

A node stands in the innermost of the loops whose RANGEs it depends on, so whatever does not change in a loop is
outside of it. Inside one loop body the order is the depth-first order of the graph, which keeps values close to their
uses; a whole loop stands where its END stands. Two passes over the nodes, no priorities: the nesting was fixed by the
ranks.
"""
from __future__ import annotations

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.derive import ended_by


class _Loop:
    """One loop body: items are nodes and inner loops, in order."""

    __slots__ = ("range", "bit", "depth", "items")

    def __init__(self, rng: UOp | None, bit: int) -> None:
        self.range, self.bit = rng, bit
        self.depth = 0
        self.items: list[UOp | _Loop] = []


def linearize(sink: UOp) -> list[UOp]:
    """The nodes of ``sink`` in an order a renderer can print, SINK last.

    Raises:
        ValueError: a RANGE has no END, or loops overlap without one containing the other.
    """
    order = list(sink.toposort())
    masks, loops = _open_loops(order)
    if masks[sink]:
        names = [lp.range.arg for lp in loops.values() if masks[sink] >> lp.bit & 1 and lp.range is not None]
        raise ValueError(f"loops {names} are never closed: each RANGE needs an END around all that depends on it")
    root = _Loop(None, -1)
    parents = _nest(order, masks, loops, root)
    bodies = _Bodies(sorted(loops.values(), key=lambda lp: lp.bit), root)
    for u in order:
        op = u.op
        if op is Ops.END:
            lp = loops[u.src[1]]
            lp.items.append(u)
            parents[lp].items.append(lp)
        elif op is not Ops.RANGE and not (op is Ops.STACK and _is_lane_list(u)):
            bodies[masks[u]].items.append(u)
    return _flatten(root)


class _Bodies(dict[int, _Loop]):
    """The innermost of the loops in a mask."""

    def __init__(self, by_bit: list[_Loop], root: _Loop) -> None:
        self.by_bit, self[0] = by_bit, root

    def __missing__(self, mask: int) -> _Loop:
        body = self[mask] = max([self.by_bit[b] for b in _bits(mask)], key=lambda lp: lp.depth)
        return body


def _open_loops(order: list[UOp]) -> tuple[dict[UOp, int], dict[UOp, _Loop]]:
    """For each node the set of loops it is inside of, as bits."""
    masks: dict[UOp, int] = {}
    loops: dict[UOp, _Loop] = {}
    for u in order:
        mask = 0
        for s in u.src:
            mask |= masks[s]
        op = u.op
        if op is Ops.RANGE:
            loops[u] = lp = _Loop(u, len(loops))
            mask |= 1 << lp.bit
        elif op is Ops.END or op is Ops.AFTER:
            for r in ended_by(u):
                if r in loops:
                    mask &= ~(1 << loops[r].bit)
        masks[u] = mask
    return masks, loops


def _nest(order: list[UOp], masks: dict[UOp, int], loops: dict[UOp, _Loop], root: _Loop) -> dict[_Loop, _Loop]:
    """The loop directly around each loop: the innermost around its END; those contain each other."""
    around: dict[UOp, int] = {}
    for u in order:
        if u.op is Ops.END:
            for r in u.src[1:]:
                if r in loops:
                    around[r] = around.get(r, 0) | masks[u]
    for r, lp in loops.items():
        if r not in around:
            raise ValueError(f"loop {r.arg} is never closed: each RANGE needs an END around all that depends on it")
        around[r] |= masks[r] & ~(1 << lp.bit)
    _transitive(around, loops)
    by_size = sorted(loops.values(), key=lambda lp: around[lp.range].bit_count())  # type: ignore[index]
    by_bit = {lp.bit: lp for lp in loops.values()}
    parents: dict[_Loop, _Loop] = {}
    for lp in by_size:
        assert lp.range is not None
        mask = around[lp.range]
        outer = [by_bit[b] for b in _bits(mask)]
        lp.depth = len(outer) + 1
        parents[lp] = parent = max(outer, key=lambda o: o.depth, default=root)
        if parent.range is not None and mask & ~(around[parent.range] | 1 << parent.bit):
            raise ValueError(
                f"loop {lp.range.arg} is inside loops that do not contain each other: "
                f"{[o.range.arg for o in outer if o.range is not None]}; give a loop order that nests them"
            )
    return parents


def _transitive(around: dict[UOp, int], loops: dict[UOp, _Loop]) -> None:
    """A loop is also inside what its outer loops are inside of."""
    by_bit = {lp.bit: lp.range for lp in loops.values()}
    changed = True
    while changed:
        changed = False
        for r, mask in around.items():
            more = mask
            for b in _bits(mask):
                more |= around[by_bit[b]]  # type: ignore[index]
            if more != mask:
                around[r], changed = more, True


def _bits(mask: int) -> list[int]:
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return out


def _is_lane_list(u: UOp) -> bool:
    """The lanes of a shuffle, a STACK that is a part of the INDEX and no value."""
    return bool(u.src) and u.dtype is dtypes.weakint


def _flatten(root: _Loop) -> list[UOp]:
    out: list[UOp] = []
    stack: list[UOp | _Loop] = [root]
    while stack:
        item = stack.pop()
        if item.__class__ is UOp:
            out.append(item)
            continue
        assert isinstance(item, _Loop)
        if item.range is not None:
            out.append(item.range)
        stack += reversed(item.items)
    return out
