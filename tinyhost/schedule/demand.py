"""Copies of what is read: a value that moves to another device, and of which only a part is read there, moves in part.

Takes a graph on single devices, in which ALLREDUCE(MSTACK(values)) combines values of several; gives an equal one. A
walk against the arrows finds the box of each value that its readers look at, through element-wise and movement ops; a
walk along them builds the values again in that box, copies included, up to the first ops that need all of a value. So
the sum of values on several devices of which each device keeps its own part is a reduce-scatter. Symbolic shapes are
read whole. The graph itself comes back where no copy gets smaller.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tinyhost.helpers import prod
from tinyhost.schedule.allreduce import goes_in_chunks
from tinyhost.schedule.indexing import is_static
from tinyhost.uop import GroupOp, Ops, UOp

Box: TypeAlias = tuple[tuple[int, int], ...]  # first element, and the one after the last, of each axis

_SAME = GroupOp.ALU | {Ops.CAST, Ops.COPY, Ops.DETACH}  # a result reads the elements at its own place
_MOVES = frozenset({Ops.COPY, Ops.ALLREDUCE})
_BOXED = frozenset({Ops.SHRINK, Ops.PAD})


def narrow_copies(sink: UOp) -> UOp:
    """``sink`` with copies of what is read only."""
    order = list(sink.toposort(enter_calls=False))
    moved = _after_copies(order)
    if not any(u.op is Ops.SHRINK and u in moved for u in order):
        return sink
    demand = _Demand(moved)
    demand.walk(order)
    if all(demand.read.get(u) == whole_box(u) for u in moved if u.op in _MOVES):
        return sink
    return _rebuilt([u for u in order if u in demand.live], moved, demand.read)


def whole_box(u: UOp) -> Box:
    """The box of all elements of a value of static shape."""
    return tuple([(0, d) for d in u.shape])


def _after_copies(order: Iterable[UOp]) -> set[UOp]:
    """Copies, and what is computed of them in ways that ``_READS`` knows: what can be had in part."""
    out: set[UOp] = set()
    for u in order:
        if (u.op in _MOVES or (u.op in _READS and any(s in out for s in u.src))) and _has_boxes(u):
            out.add(u)
    return out


def _has_boxes(u: UOp) -> bool:
    return is_static(u.shape) and 0 not in u.shape and (u.op not in _BOXED or is_static(u.src[1].as_shape))


# *** against the arrows: what is read ***
class _Demand:
    """What is read.

    Attributes:
        read: of each value of ``moved`` that is read, the smallest box that holds what its readers read.
        live: all nodes that are read.
    """

    def __init__(self, moved: set[UOp]) -> None:
        self.moved = moved
        self.read: dict[UOp, Box] = {}
        self.live: set[UOp] = set()
        self._combined: dict[UOp, list[UOp]] = {}  # by their MSTACK

    def walk(self, order: list[UOp]) -> None:
        """Visit all nodes, readers first."""
        self.live.add(order[-1])
        for u in reversed(order):
            if u.op is Ops.MSTACK:
                self._terms(u)
            elif u.op is Ops.ALLREDUCE and u in self.live:
                self._combined.setdefault(u.src[0], []).append(u)
            elif u in self.live:
                boxes = _READS[u.op](u, self.read[u]) if u in self.moved else []
                for i, s in enumerate(u.src):
                    if i >= len(boxes):
                        self._ask(s, None)
                    elif (box := boxes[i]) is not None:
                        self._ask(s, box)

    def _ask(self, u: UOp, box: Box | None) -> None:
        """Somebody reads a box of ``u``, all of it for None."""
        self.live.add(u)
        if u in self.moved:
            box = whole_box(u) if box is None else box
            self.read[u] = _around(self.read[u], box) if u in self.read else box

    def _terms(self, stack: UOp) -> None:
        """What is read of values that are combined, once it is known what is read of the sums.

        Parts are combined where they are read; that is dearer than a ring where all lanes read most of a large value.
        """
        sums = self._combined.get(stack, [])
        if sums and sums[0] in self.moved and goes_in_chunks(int(prod(stack.shape)), len(stack.src)):
            if sum(_count(self.read[u]) for u in sums) > 2 * int(prod(stack.shape)):
                self.read.update((u, whole_box(u)) for u in sums)
        for u in sums:
            for s in stack.src:
                self._ask(s, self.read.get(u))


def _count(box: Box) -> int:
    return int(prod([b - a for a, b in box]))


def _around(a: Box, b: Box) -> Box:
    return tuple([(min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b)])


def _same(u: UOp, box: Box) -> list[Box | None]:
    """Element by element; axes that are stretched have one element."""
    return [tuple([span if d != 1 else (0, 1) for span, d in zip(box[len(box) - len(s.shape):], s.shape)])
            for s in u.src]


def _shrink(u: UOp, box: Box) -> list[Box | None]:
    return [tuple([(a + first, b + first) for (a, b), (first, _) in zip(box, u.marg)])]


def _pad(u: UOp, box: Box) -> list[Box | None]:
    inner = tuple([(max(a - first, 0), min(b - first, d)) for (a, b), (first, _), d in
                   zip(box, u.marg, u.src[0].shape)])
    return [inner if all(a < b for a, b in inner) else None]


def _permute(u: UOp, box: Box) -> list[Box | None]:
    return [tuple([box[u.arg.index(i)] for i in range(len(box))])]


def _flip(u: UOp, box: Box) -> list[Box | None]:
    return [tuple([(d - b, d - a) if turned else (a, b) for (a, b), turned, d in zip(box, u.arg, u.shape)])]


def _expand(u: UOp, box: Box) -> list[Box | None]:
    return [box[len(u.marg):]]


def _reduce(u: UOp, box: Box) -> list[Box | None]:
    return [(*whole_box(u.src[0])[:u.arg[1]], *box)]


def _reshape(u: UOp, box: Box) -> list[Box | None]:
    out: list[tuple[int, int]] = []
    for old, new in _runs(u.src[0].shape, u.shape):
        dims = u.shape[new]
        out.extend(_unflat(_flat(_unflat(_flat(box[new], dims), dims), dims), u.src[0].shape[old]))
    return [tuple(out)]


def _runs(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Both shapes in the shortest runs of axes with equal products."""
    out, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        first = i, j
        i, a = (i + 1, old[i]) if i < len(old) else (i, 1)
        j, b = (j + 1, new[j]) if j < len(new) else (j, 1)
        while a != b:
            if a < b:
                i, a = i + 1, a * old[i]
            else:
                j, b = j + 1, b * new[j]
        out.append((slice(first[0], i), slice(first[1], j)))
    return out


def _flat(box: Box, dims: tuple[int, ...]) -> tuple[int, int]:
    """The shortest run of elements, in row-major order, that holds a box."""
    low = high = 0
    for (a, b), d in zip(box, dims):
        low, high = low * d + a, high * d + b - 1
    return low, high + 1


def _unflat(span: tuple[int, int], dims: tuple[int, ...]) -> Box:
    """The box, cut along one axis only, that holds a run of elements."""
    out: list[tuple[int, int]] = []
    low, high = span
    for k in range(len(dims)):
        inner = prod(dims[k + 1:])
        a, b = low // inner, (high - 1) // inner + 1
        if b - a > 1:
            return (*out, (a, b), *((0, n) for n in dims[k + 1:]))
        out.append((a, b))
        low, high = low - a * inner, high - a * inner
    return tuple(out)


_READS: dict[Ops, Callable[[UOp, Box], list[Box | None]]] = {
    **dict.fromkeys(_SAME, _same), Ops.SHRINK: _shrink, Ops.PAD: _pad, Ops.PERMUTE: _permute, Ops.FLIP: _flip,
    Ops.EXPAND: _expand, Ops.REDUCE: _reduce, Ops.RESHAPE: _reshape}


# *** along the arrows: the values in their boxes ***
def _rebuilt(order: list[UOp], moved: set[UOp], read: dict[UOp, Box]) -> UOp:
    """The last node of ``order``; of values in ``moved`` there is what ``read`` says."""
    new: dict[UOp, UOp] = {}

    def at(s: UOp, box: Box) -> UOp:
        return _cut(new.get(s, s), read[s] if s in moved else whole_box(s), box)
    for u in order:
        if u.op is Ops.ALLREDUCE:
            terms = [at(s, read[u]) if u in moved else new.get(s, s) for s in u.src[0].src]
            new[u] = UOp(u.op, (UOp(Ops.MSTACK, tuple(terms)),), u.arg)
        elif u in moved:
            new[u] = _in_box(u, read[u], at)
        else:
            src = tuple([at(s, whole_box(s)) if s in moved else new.get(s, s) for s in u.src])
            if src != u.src:
                new[u] = UOp(u.op, src, u.arg, u.tag)
    return new.get(order[-1], order[-1])


def _cut(u: UOp, have: Box, box: Box) -> UOp:
    """``box`` of a value of which ``u`` is the box ``have``."""
    if have == box:
        return u
    return u._mop(Ops.SHRINK, tuple([(a - first, b - a) for (a, b), (first, _) in zip(box, have)]))


def _in_box(u: UOp, box: Box, at: Callable[[UOp, Box], UOp]) -> UOp:
    """The elements ``box`` of ``u``; ``at`` gives boxes of sources."""
    boxes = _READS[u.op](u, box)
    if boxes[0] is None:  # nothing but padding
        return UOp.const(0, u.dtype).expand(tuple([b - a for a, b in box]))
    src = tuple([at(s, b) for s, b in zip(u.src, boxes) if b is not None])
    if u.op in _SAME or u.op is Ops.REDUCE:
        return UOp(u.op, src, u.arg, u.tag)
    if u.op is Ops.SHRINK:
        return src[0]
    if u.op is Ops.PAD:
        places = tuple([(low + first - a, b - a) for (low, _), (first, _), (a, b) in zip(boxes[0], u.marg, box)])
        return src[0] if src[0].shape == tuple([n for _, n in places]) else src[0]._mop(Ops.PAD, places)
    if u.op is Ops.EXPAND:
        return src[0]._mop(Ops.EXPAND, tuple([b - a for a, b in box[:len(u.marg)]]))
    return _reshaped(u, box, src[0], boxes[0]) if u.op is Ops.RESHAPE else src[0]._mop(u.op, u.arg)


def _reshaped(u: UOp, box: Box, x: UOp, have: Box) -> UOp:
    """``box`` of the RESHAPE ``u`` from the box ``have`` of its source: run by run, what is flat in both is cut."""
    source = u.src[0].shape
    flat: list[tuple[tuple[int, int], tuple[int, int]]] = []
    outer: list[tuple[int, int]] = []
    for old, new in _runs(source, u.shape):
        around = _unflat(_flat(box[new], u.shape[new]), u.shape[new])
        held, wanted = _flat(have[old], source[old]), _flat(around, u.shape[new])
        flat.append((held, wanted))
        outer.extend(around)
    x = x._mop(Ops.RESHAPE, tuple([b - a for (a, b), _ in flat]))
    x = _cut(x, tuple([held for held, _ in flat]), tuple([wanted for _, wanted in flat]))
    return _cut(x._mop(Ops.RESHAPE, tuple([b - a for a, b in outer])), tuple(outer), box)
