"""Fusion: which values of a tensor graph get storage, and so what each kernel computes.

Takes a prepared graph; gives the planned kernels in dependency order. The walk goes from consumers to producers and
hands each node the places at which it is read, as index expressions over the ranges of the reading kernels. A value
read at one place is computed there. A value read at several places, or more often than it has elements, is stored
when recomputing it is dear (``should_store``); a REDUCE over memory is never computed twice. A second pass,
producers first, takes storage away again from values that turned out cheap. Movement ops and widening casts are
never stored, their source is.
"""
from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tinyhost.dtype import dtypes
from tinyhost.helpers import prod
from tinyhost.schedule.cost import MANY, Facts, elements, facts_of
from tinyhost.schedule.fold import Fold, find_fold
from tinyhost.schedule.graph import Device, Kernel, TensorGraph, extent_of
from tinyhost.schedule.indexing import Gate, Indexing, Indices, Shape, both, either
from tinyhost.schedule.storage import region_of
from tinyhost.uop import AxisType, GroupOp, Ops, UOp

RECOMPUTE_COST = 64  # operations that may be repeated, an element, to save a store and its loads
REDUCE_COST = 4  # operations and further loads of a value that a reduction may evaluate again for each of its results
EXPAND_COST = 8  # the same that an element-wise loop may evaluate again
MANY_USES = 48  # results that take the same operand from which on any arithmetic on it is done before, not for each
MAX_ZERO_TERMS = 4  # a sum over windows may have this many terms for each that exists
MIN_CONTRACTION = 1 << 22  # products in a sum of products that deserves a kernel of its own
MIN_WORK = 1 << 15  # repeated operations below this are cheaper than one more kernel


class Reading(NamedTuple):
    """How one place is read: its gate, the iterations of the enclosing reductions, whether by computed index, whether
    in a sum of products.
    """

    gate: Gate
    scope: int
    gathered: bool = False
    product: bool = False


Readings: TypeAlias = dict[tuple[Kernel, Indices], Reading]


class Fusion:
    """State of the decision; ``kernels`` maps a node with storage to its kernel, ``homes`` a value to the kernel of the
    output it is stored in."""

    def __init__(self, graph: TensorGraph, indexing: Indexing) -> None:
        self.graph, self.indexing = graph, indexing
        self.readings: dict[UOp, Readings] = {}
        self.kernels: dict[UOp, Kernel] = {}
        self.homes: dict[UOp, Kernel] = {}
        self.chosen: dict[UOp, Readings] = {}  # values stored by choice, and how they would be read
        self.apart: set[UOp] = set()  # second contractions of a kernel, which are stored
        self.facts: dict[UOp, Facts] = {}
        self.folds: dict[UOp, Fold | None] = {}  # of REDUCEs
        self.merged: dict[UOp, UOp] = {}  # REDUCE -> the REDUCE whose terms it sums itself
        self._absorbed: set[UOp] = set()  # CONTIGUOUS nodes whose only user is the store of an output
        self._outputs: dict[UOp, Kernel] = {}  # value -> kernel that stores exactly it in an output nobody else touches

    def run(self) -> None:
        """Decide for the whole graph."""
        for u in self.graph.order:
            self.facts[u] = facts_of(u, self.facts, ())
        for u in reversed(self.graph.order):
            self._visit(u)
        self._take_back()

    # *** consumers to producers ***
    def _visit(self, u: UOp) -> None:
        op = u.op
        if op is Ops.STORE:
            self._open_store(u)
        elif op is Ops.CONTIGUOUS:
            self._visit_contiguous(u)
        elif (readings := self.readings.get(u)) is not None and op in _SPREAD:
            if op not in GroupOp.Movement:
                readings = self._decide(u, readings)
            spread = _SPREAD[op]
            for (kernel, indices), reading in readings.items():
                spread(self, u, kernel, indices, reading)

    def _read(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        while u.op is Ops.CAST and u not in self.facts:  # that of a fold, which is no node of the graph
            u = u.src[0]
        if u.op not in _SPREAD:
            return
        readings = self.readings.get(u)
        key = (kernel, indices)
        if readings is None:
            self.readings[u] = {key: reading}
        elif (old := readings.get(key)) is None:
            readings[key] = reading
        else:
            readings[key] = Reading(either(old.gate, reading.gate), max(old.scope, reading.scope),
                                    old.gathered or reading.gathered, old.product or reading.product)

    def _read_value(self, kernel: Kernel) -> None:
        self._read(kernel.value, kernel, kernel.ranges, Reading(None, 1))

    def open(self, u: UOp, device: Device) -> Kernel:
        """A kernel that stores ``u`` in storage of its own on ``device``."""
        value = u.src[0] if u.op is Ops.CONTIGUOUS else u
        kernel = self.kernels[u] = Kernel(u, value, u.shape)
        kernel.device = device
        if u.op is Ops.CONTIGUOUS:
            kernel.opts = u.arg
        return kernel

    def _open_store(self, u: UOp) -> None:
        target, value = u.src[:2]
        region = region_of(target)
        if value.op is Ops.COPY and region is not None and self._only(value, u):
            return  # the copy writes the target itself
        whole = region is not None and region.whole
        same = whole and value.shape == target.shape
        user, sole = u, True
        while same and value.op is Ops.RESHAPE:
            sole = sole and self._only(value, user)
            user, value = value, value.src[0]
        opts = None
        if value.op is Ops.CONTIGUOUS and sole and self._only(value, user):
            self._absorbed.add(value)
            value, opts = value.src[0], value.arg
        kernel = self.kernels[u] = Kernel(u, value, value.shape if same else target.shape)
        kernel.opts, kernel.whole, kernel.device = opts, whole, target.device
        states = [c for c in self.graph.consumers[u] if c.op is Ops.AFTER]
        if same and len(states) == 1 and states[0].src[1:] == (u,):
            if self._untouched(u, states[0]) and self._final(states[0]):
                kernel.state = states[0]
                self._outputs[value] = kernel
        indices = self.indexing.broadcast(value.shape, kernel.ranges, kernel.shape)
        self._read(value, kernel, indices, Reading(None, 1))

    def _only(self, value: UOp, consumer: UOp) -> bool:
        return self.graph.consumers[value] == [consumer]

    def _untouched(self, store: UOp, state: UOp) -> bool:
        """Whether storage is used by this store alone before it: then readers of the value can wait for the store."""
        allowed = {store, state}
        place = store.src[0]
        while True:
            if not allowed.issuperset(self.graph.consumers[place]):
                return False
            if place.op in _BUFFERS:
                return True
            if place.op not in GroupOp.Movement:
                return False
            allowed, place = {place}, place.src[0]

    def _final(self, state: UOp) -> bool:
        """Whether nothing replaces a state: then its readers need not come before anything."""
        views = [state]
        while views:
            x = views.pop()
            for c in self.graph.consumers[x]:
                if c.op in GroupOp.Movement or c.op is Ops.BITCAST:
                    views.append(c)
                elif c.op is Ops.CALL or (c.op in (Ops.STORE, Ops.AFTER) and c.src[0] is x):
                    return False
        return True

    def _visit_contiguous(self, u: UOp) -> None:
        if u in self._absorbed:
            return
        home = self._outputs.get(u)
        if home is None:
            home = self.open(u, u.device)
        else:
            self.homes[u] = home
            home.opts, home.value = u.arg, u.src[0]
        self._outputs.setdefault(u.src[0], home)
        self._read_value(home)

    # *** decisions ***
    def _decide(self, u: UOp, readings: Readings) -> Readings:
        facts = self.facts[u]
        if u.device is None and len({kernel.device for kernel, _ in readings}) > 1:
            return readings  # kernels of several devices share no memory
        home = self._outputs.get(u)
        if home is not None and (facts.cost or facts.pending):
            own = {key: r for key, r in readings.items() if key[0] is home and key[1] == home.ranges}
            if own:
                self.homes[u] = home
                return own
        if _is_widening(u) or not (should_store(u, facts, readings) or self._second_contraction(u, facts, readings)):
            return readings
        self.chosen[u] = readings
        kernel = self.open(u, u.device or next(iter(readings))[0].device)
        return {(kernel, kernel.ranges): Reading(None, 1)}

    def _second_contraction(self, u: UOp, facts: Facts, readings: Readings) -> bool:
        """Whether ``u`` is a large sum of products in a kernel that computes another one: tiles, order and panels are
        chosen for one of them.
        """
        if u.op is not Ops.REDUCE or not facts.pending or not is_contraction(u, facts):
            return False
        kernel = next(iter(readings))[0]
        if kernel.contraction is None:
            kernel.contraction = u
            return False
        self.apart.add(u)
        return True

    def _take_back(self) -> None:
        """Values whose reductions or buffers turned out stored anyway are computed where they are read."""
        stored = {u for u in self.kernels if u.op is not Ops.STORE} | self.homes.keys()
        for u in self.graph.order:
            self.facts[u] = facts = facts_of(u, self.facts, stored)
            if u in self.chosen and u not in self.apart and not should_store(u, facts, self.chosen[u]):
                stored.remove(u)
                del self.kernels[u], self.chosen[u]

    # *** from a node's places to its sources' ***
    def _through_movement(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        source, gate = self.indexing.through(u, indices, reading.gate)
        self._read(u.src[0], kernel, source, reading if gate is reading.gate else reading._replace(gate=gate))

    def _through_alu(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        shape = u.shape
        for s in u.src:
            self._read(s, kernel, self.indexing.broadcast(s.shape, indices, shape), reading)

    def _through_reduce(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        source, over = self.reduced(u, kernel)
        ranges = kernel.reduce_ranges(over, reading.scope > 1)
        scope = reading.scope * int(prod(extent_of(d) for d in over))
        place, gate = self.term(u, ranges, indices)
        self._read(source, kernel, place, Reading(both(reading.gate, gate), scope, product=_is_product(u)))

    def reduced(self, u: UOp, kernel: Kernel) -> tuple[UOp, Shape]:
        """What a REDUCE reads, and over which extents."""
        if u not in self.folds:
            self.folds[u] = find_fold(self.indexing, u)
            self._try_merge(u, kernel)
        fold, inner = self.folds[u], self.merged.get(u)
        over = u.src[0].shape[:u.arg[1]] if fold is None else fold.sizes
        if inner is not None and inner not in self.kernels:
            return inner.src[0], over + inner.src[0].shape[:inner.arg[1]]
        return u.src[0] if fold is None else fold.value, over

    def term(self, u: UOp, ranges: Indices, indices: Indices) -> tuple[Indices, Gate]:
        """Where a term of a REDUCE is read, and the gate outside of which it is zero."""
        fold = self.folds[u]
        if fold is None:
            return ranges + indices, None
        place, gate = fold.place(self.indexing.math, ranges[:len(fold.sizes)], indices)
        return ranges[len(fold.sizes):] + place, gate

    def _try_merge(self, u: UOp, kernel: Kernel) -> None:
        """A sum over windows of sums is one sum, when nobody else needs the inner ones and few terms are zero."""
        fold = self.folds[u]
        if fold is None or fold.value.op is not Ops.REDUCE or fold.value.arg[0] is not Ops.ADD:
            return
        terms = elements(u) * int(prod(fold.sizes))
        if terms > MAX_ZERO_TERMS * elements(fold.value) or elements(u) < int(prod(kernel.sizes)):
            return
        chain = u.src[0]
        while chain is not fold.value:
            if len(self.graph.consumers[chain]) != 1:
                return
            chain = chain.src[1] if chain.op is Ops.WHERE else chain.src[0]
        if len(self.graph.consumers[chain]) == 1:
            self.merged[u] = fold.value

    def _through_bitcast(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        x = u.src[0]
        if (places := bitcast_places(self.indexing, u, indices)) is None:
            self._read(x, kernel, indices, reading)
        else:
            for place in places:
                self._read(x, kernel, place, reading)

    def _through_stack(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        for s in u.src:
            self._read(s, kernel, indices[1:], reading)

    def _through_index(self, u: UOp, kernel: Kernel, indices: Indices, reading: Reading) -> None:
        picked, at = [], 0
        for i in u.src[1:]:
            place = indices[at:at + len(i.shape)]
            at += len(i.shape)
            self._read(i, kernel, place, reading)
            picked.append(self._computed_index(i, place))
        self._read(u.src[0], kernel, (*picked, *indices[at:]), reading._replace(gathered=True))

    def _computed_index(self, i: UOp, place: Indices) -> UOp:
        """Stands for an index that a kernel computes: equal where index tensor and place are equal."""
        token = UOp(Ops.INDEX, (i, *place))
        self.indexing.math.bounds.setdefault(token, (-1 << 63, (1 << 63) - 1))
        return token


def bitcast_places(indexing: Indexing, u: UOp, indices: Indices) -> tuple[Indices, ...] | None:
    """Where the elements lie that make up one element of a BITCAST to another size; None at equal sizes."""
    old, new = u.src[0].dtype.itemsize, u.dtype.itemsize
    if old == new:
        return None
    math, last = indexing.math, indices[-1]
    if old > new:
        return ((*indices[:-1], math.build(math.divmod(math.parse(last), old // new)[0])),)
    n = new // old
    const, terms = math.parse(last)
    return tuple((*indices[:-1], math.build((const * n + k, {a: c * n for a, c in terms.items()}))) for k in range(n))


def _is_widening(u: UOp) -> bool:
    """Whether a cast or reinterpretation stores no less than its source: then the source is the one to store."""
    return u.op in (Ops.CAST, Ops.BITCAST) and u.src[0].dtype.itemsize <= u.dtype.itemsize and u.src[0].shape == u.shape


def should_store(u: UOp, facts: Facts, readings: Readings) -> bool:
    """Whether computing ``u`` once, into memory, beats computing it at each of its places."""
    leaves, cost, pending = facts
    if pending:
        return len(readings) > 1 or any(r.scope > 1 or r.gathered or _evaluations(key, r, False) > elements(u)
                                        for key, r in readings.items())
    if cost == 0 or (leaves is not None and not leaves and cost <= RECOMPUTE_COST):
        return False
    if len(readings) > 1 and (leaves is None or cost * (len(readings) - 1) > RECOMPUTE_COST):
        return True
    count = elements(u)
    if u.dtype is dtypes.bool and cost <= RECOMPUTE_COST and leaves is not None:
        if 8 * sum(map(elements, leaves)) < count:
            return False  # a table of comparisons is larger than what is compared
    cost += MANY - 1 if leaves is None else len(leaves) - 1  # loads beyond the first
    for key, r in readings.items():
        times = _evaluations(key, r, True)
        limit = EXPAND_COST if r.scope == 1 else REDUCE_COST
        if r.product and u.dtype.is_float and times >= MANY_USES * count and _stands_still(key):
            limit = 0
        if cost > limit and (times - count) * cost > MIN_WORK:
            return True
    return False


def is_contraction(u: UOp, facts: Facts) -> bool:
    """Whether a REDUCE sums many products of values that are used again and again."""
    work = elements(u.src[0])
    if work < MIN_CONTRACTION or not _is_product(u):
        return False
    return facts.leaves is None or 8 * sum(map(elements, facts.leaves)) < work


def _is_product(u: UOp) -> bool:
    """Whether a REDUCE sums products."""
    x = u.src[0]
    while x.op is Ops.CAST or x.op in GroupOp.Movement:
        x = x.src[0]
    return u.arg[0] is Ops.ADD and x.op is Ops.MUL


def _stands_still(key: tuple[Kernel, Indices]) -> bool:
    """Whether a value is the same along the last axis of the output: vectors of results take it as a scalar from
    memory, where an operand that moves along is copied into a panel and may be computed on the way."""
    kernel, indices = key
    last = next((r for r in reversed(kernel.ranges) if r.op is Ops.RANGE), None)
    return last is not None and not any(last in i.ranges for i in indices)


def _evaluations(key: tuple[Kernel, Indices], reading: Reading, hoist: bool) -> int:
    """How often the value is computed at a place; with ``hoist`` loops inside the last one it depends on are free."""
    kernel, indices = key
    used = {r for i in indices for r in i.ranges}
    if not hoist or any(r.arg[-1] is AxisType.REDUCE for r in used):
        return int(prod(kernel.sizes)) * reading.scope
    depth = max((axis + 1 for axis, r in enumerate(kernel.ranges) if r in used), default=0)
    return int(prod(kernel.sizes[:depth]))


_BUFFERS = frozenset({Ops.PARAM, Ops.BUFFER})
_SPREAD = {
    **dict.fromkeys(GroupOp.Movement, Fusion._through_movement),
    **dict.fromkeys(GroupOp.ALU | {Ops.CAST}, Fusion._through_alu),
    Ops.BITCAST: Fusion._through_bitcast, Ops.REDUCE: Fusion._through_reduce, Ops.STACK: Fusion._through_stack,
    Ops.INDEX: Fusion._through_index}
