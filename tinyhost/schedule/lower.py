"""A planned kernel as an AST: the value's expression over the kernel's ranges, stored.

Takes a ``Kernel`` and the fusion decision; gives ``Lowered``: SINK(END(STORE(INDEX(PARAM 0, i), value), ranges...))
with INDEX(PARAM, i) for what is read, REDUCE over ranges of its own, gates as WHERE(gate, i, Invalid) on indices,
the storage behind each PARAM and the states that are read. Values are built on demand from (node, indices, gate),
each once a kernel, on an explicit stack. Slots and ranges are numbered by first use, so equal kernels are the same
node.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tinyhost.dtype import DType, dtypes, strong_dtype
from tinyhost.errors import ScheduleError
from tinyhost.schedule.cost import const_state
from tinyhost.schedule.fuse import Fusion, bitcast_places
from tinyhost.schedule.graph import Kernel
from tinyhost.schedule.indexing import Gate, Indices, Shape, both
from tinyhost.schedule.storage import storage_root
from tinyhost.uop import GroupOp, KernelInfo, Ops, ParamArg, UOp

Key: TypeAlias = tuple[UOp, Indices, Gate]
_PASSED = (GroupOp.Movement | {Ops.AFTER}) - {Ops.PAD}


@dataclass
class Lowered:
    """A kernel's AST, the storage nodes of its slots, and the states it reads."""

    ast: UOp
    storage: list[UOp]
    states: list[UOp]
    variables: list[UOp]


class Lowering:
    """Builds the expressions of one kernel."""

    def __init__(self, fusion: Fusion, kernel: Kernel) -> None:
        self.fusion, self.kernel = fusion, kernel
        self.indexing, self.math = fusion.indexing, fusion.indexing.math
        self.built: dict[Key, UOp] = {}
        self.params: dict[UOp, UOp] = {}  # storage -> PARAM
        self.states: dict[UOp, None] = {}
        self.ranges: dict[Key, Indices] = {}  # of reductions
        self.target = storage_root(kernel.node.src[0]) if kernel.node.op is Ops.STORE else kernel.node
        self.own_reads: dict[UOp, None] = {}  # offsets at which the target is read
        kernel.restart()

    # *** storage ***
    def param(self, root: UOp) -> UOp:
        """The kernel's PARAM for a storage node."""
        p = self.params.get(root)
        if p is None:
            dtype = strong_dtype(root.dtype)
            p = self.params[root] = UOp(Ops.PARAM, (), ParamArg(len(self.params), dtype, root.max_numel()))
        return p

    def _load(self, root: UOp, state: UOp, flat: UOp, gate: Gate) -> UOp:
        if gate is not None and not gate.vmax:
            return UOp.const(0, strong_dtype(root.dtype))  # nothing but padding
        self.states[state] = None
        if root is self.target:
            self.own_reads[flat] = None
        if gate is not None and self._never_outside(root, flat, gate):
            gate = None
        return UOp(Ops.INDEX, (self.param(root), flat if gate is None else flat.valid(gate)))

    def _never_outside(self, root: UOp, flat: UOp, gate: UOp) -> bool:
        """Whether a load stays in bounds without its gate, and the gate would make it vary along one more range."""
        if gate.ranges.keys() <= flat.ranges.keys():
            return False
        lo, hi = self.math.extent(self.math.parse(flat))
        return lo >= 0 and hi < root.max_numel()

    def _stored(self, u: UOp, indices: Indices, gate: Gate) -> UOp | None:
        """A read of ``u`` from the storage another kernel writes, None when this kernel computes it."""
        kernel = self.fusion.homes.get(u) or self.fusion.kernels.get(u)
        if kernel is None or kernel is self.kernel:
            return None
        root = storage_root(kernel.node.src[0]) if kernel.node.op is Ops.STORE else kernel.node
        out = self._load(root, kernel.state, self.indexing.flat(u.shape, indices), gate)
        return out.cast(u.dtype)

    # *** values ***
    def value(self, u: UOp, indices: Indices, gate: Gate) -> UOp:
        """The expression of an element."""
        built = self.built
        root: Key = (u, indices, gate)
        stack = [root]
        while stack:
            key = stack[-1]
            if key in built:
                stack.pop()
                continue
            out = self._step(*key)
            if isinstance(out, UOp):
                built[key] = out
                stack.pop()
            else:
                stack += out
        return built[root]

    def _step(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        """The expression when those of its sources are built, else what is missing (in the order of a stack)."""
        state: UOp | None = None
        while True:
            stored = self._stored(u, indices, gate)
            if stored is not None:
                return stored
            op = u.op
            if op is Ops.AFTER:
                if state is None:
                    if (fill := const_state(u)) is not None:
                        return fill
                    state = u
                u = u.src[0]
            elif op in _PASSED or (op is Ops.PAD and u.dtype is not dtypes.bool):
                indices, gate = self.indexing.through(u, indices, gate)
                u = u.src[0]
            else:
                break
        if op is Ops.PARAM or op is Ops.BUFFER or op is Ops.COPY:
            if op is Ops.PARAM and u.arg.size is None:
                return u
            return self._load(u, u if state is None else state, self.indexing.flat(u.shape, indices), gate)
        rule = _RULES.get(op)
        if rule is None:
            raise ScheduleError(f"{op} of shape {u._shape} cannot be computed inside a kernel")
        return rule(self, u, indices, gate)

    def _get(self, keys: list[Key]) -> list[UOp] | None:
        """Built expressions of all keys, None if one is missing."""
        built = self.built
        out = []
        for k in keys:
            node = built.get(k)
            if node is None:
                return None
            out.append(node)
        return out

    def _missing(self, keys: list[Key]) -> list[Key]:
        return [k for k in reversed(keys) if k not in self.built]

    def _const(self, u: UOp, indices: Indices, gate: Gate) -> UOp:
        return u

    def _iota(self, u: UOp, indices: Indices, gate: Gate) -> UOp:
        """The index sequence: its value at an index is the index."""
        value, rng = u.src[0], u.src[1]
        return indices[0] if value is rng else value.substitute({rng: indices[0]})

    def _alu(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        shape = u.shape
        keys = []
        for s in u.src:
            theirs = s.shape
            keys.append((s, indices if theirs is shape else self.indexing.broadcast(theirs, indices, shape), gate))
        src = self._get(keys)
        return self._missing(keys) if src is None else UOp(u.op, tuple(src), u.arg)

    def _pad(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        """A bool is False outside the box; other values are "don't care" there and reach no PAD here."""
        source, inner = self.indexing.through(u, indices, gate)
        keys = [(u.src[0], source, inner)]
        src = self._get(keys)
        if src is None:
            return keys
        box = self.indexing.box(u, indices)
        if box is None:
            return src[0]
        return box if src[0].is_const and src[0].const_value is True else UOp(Ops.AND, (box, src[0]))

    def _reduce(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        source, over = self.fusion.reduced(u, self.kernel)
        ranges = self._reduce_ranges(u, over, indices, gate)
        place, exists = self.fusion.term(u, ranges, indices)
        keys = [(source, place, both(gate, exists))]
        src = self._get(keys)
        if src is None:
            return keys
        real = tuple(r for r in ranges if r.op is Ops.RANGE)
        term = src[0].cast(u.dtype)
        if exists is not None:
            term = _zero_outside(exists, term)
        return UOp(Ops.REDUCE, (term, *real), (u.arg[0], 0)) if real else term

    def _reduce_ranges(self, u: UOp, over: Shape, indices: Indices, gate: Gate) -> Indices:
        """Only a reduction that reads no memory can stand inside another one; it gets ranges of its own."""
        key = (u, indices, gate)
        ranges = self.ranges.get(key)
        if ranges is None:
            own = not self.fusion.facts[u].pending
            ranges = self.ranges[key] = self.kernel.reduce_ranges(over, own)
        return ranges

    def _stack(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        pick, rest = indices[0], indices[1:]
        if pick.op is Ops.CONST:
            keys = [(u.src[pick.arg], rest, gate)]
            src = self._get(keys)
            return keys if src is None else src[0].cast(u.dtype)
        conds = [pick.eq(k) for k in range(len(u.src))]
        keys = [(s, rest, gate if s.is_const else both(gate, c)) for s, c in zip(u.src, conds)]
        src = self._get(keys)
        if src is None:
            return self._missing(keys)
        out = src[-1].cast(u.dtype)
        for c, s in zip(reversed(conds[:-1]), reversed(src[:-1])):
            out = UOp(Ops.WHERE, (c, s.cast(u.dtype), out))
        return out

    def _index(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        keys, at = [], 0
        for i in u.src[1:]:
            keys.append((i, indices[at:at + len(i.shape)], gate))
            at += len(i.shape)
        picks = self._get(keys)
        if picks is None:
            return self._missing(keys)
        place = [pick.get_idx().cast(dtypes.weakint) for pick in picks]
        inner, guard = gate, None
        for pick, i, extent in zip(picks, place, u.src[0].shape):
            if pick._gated:  # whoever built the index says where it holds
                inner = both(inner, pick.src[0])
            else:
                guard = both(guard, self.indexing.inside(i, extent))
        keys = [(u.src[0], (*place, *indices[at:]), both(inner, guard))]
        src = self._get(keys)
        if src is None:
            return keys
        return src[0] if guard is None else _zero_outside(guard, src[0])

    def _bitcast(self, u: UOp, indices: Indices, gate: Gate) -> UOp | list[Key]:
        x = u.src[0]
        places = bitcast_places(self.indexing, u, indices)
        keys = [(x, place, gate) for place in places or (indices,)]
        src = self._get(keys)
        if src is None:
            return self._missing(keys)
        if places is None:
            return UOp(Ops.BITCAST, (src[0],), u.arg)
        narrow, wide = sorted((x.dtype, u.dtype), key=lambda d: d.itemsize)
        bits = 8 * narrow.itemsize
        small, large = _unsigned(narrow.itemsize), _unsigned(wide.itemsize)
        if len(places) == 1:
            rest = self.math.build(self.math.divmod(self.math.parse(indices[-1]), wide.itemsize // narrow.itemsize)[1])
            return (src[0].bitcast(large) >> (rest * bits).cast(large)).cast(small).bitcast(u.dtype)
        out = src[0].bitcast(small).cast(large)
        for k, s in enumerate(src[1:], 1):
            out = out | (s.bitcast(small).cast(large) << UOp.const(k * bits, large))
        return out.bitcast(u.dtype)

    # *** the kernel ***
    def store(self) -> UOp:
        """END(STORE(place, value), ranges...)"""
        kernel = self.kernel
        place = UOp(Ops.INDEX, (self.param(self.target), self.offset()))
        value = self.value(kernel.value, self.indexing.broadcast(kernel.value.shape, kernel.ranges, kernel.shape), None)
        return UOp(Ops.STORE, (place, value.cast(strong_dtype(value.dtype)))).end(*kernel.out_ranges)

    def offset(self) -> UOp:
        """Element of the target that an iteration writes."""
        kernel = self.kernel
        if kernel.whole:
            return self.indexing.flat(kernel.shape, kernel.ranges)
        place, indices = kernel.node.src[0], kernel.ranges
        while place is not self.target:
            if place.op is not Ops.AFTER:
                indices, _ = self.indexing.through(place, indices, None)
            place = place.src[0]
        return self.indexing.flat(place.shape, indices)

    def overwrites_own_input(self) -> bool:
        """Whether an iteration reads an element of the target that another iteration may write."""
        return any(not self._apart(flat, self.offset()) for flat in self.own_reads)

    def _apart(self, read: UOp, written: UOp) -> bool:
        if read is written:
            return True
        (lo, hi), (first, last) = (self.math.extent(self.math.parse(u)) for u in (read, written))
        return bool(hi < first or last < lo)


def lower_kernel(fusion: Fusion, kernel: Kernel) -> list[tuple[Kernel, Lowered]]:
    """``kernel`` lowered; if it would overwrite what it still has to read, its value is stored by a kernel before."""
    lowering = Lowering(fusion, kernel)
    store = lowering.store()
    if not lowering.own_reads or not lowering.overwrites_own_input():
        return [(kernel, _finish(lowering, store))]
    value = UOp(Ops.CONTIGUOUS, (kernel.value,), None, kernel.node)
    first = fusion.open(value, kernel.device)
    first.opts, kernel.opts, kernel.value = kernel.opts, None, value
    out = [(k, Lowering(fusion, k)) for k in (first, kernel)]
    return [(k, _finish(lowering, lowering.store())) for k, lowering in out]


def _finish(lowering: Lowering, store: UOp) -> Lowered:
    """Number slots and ranges by first use, outputs first."""
    sink = UOp(Ops.SINK, (store,), KernelInfo(opts_to_apply=lowering.kernel.opts))
    nodes = list(sink.toposort())
    outputs = lowering.kernel.out_ranges
    params = [u for u in nodes if u.op is Ops.PARAM and u.arg.size is not None]
    ranges = [*outputs, *(u for u in nodes if u.op is Ops.RANGE and u not in outputs)]
    place = lowering.params[lowering.target]
    params.remove(place)
    params.insert(0, place)
    new: dict[UOp, UOp] = {}
    for slot, p in enumerate(params):
        if p.arg.slot != slot:
            new[p] = UOp(Ops.PARAM, (), ParamArg(slot, p.arg.dtype, p.arg.size))
    for i, r in enumerate(ranges):
        if r.arg[0] != i:
            new[r] = UOp(Ops.RANGE, r.src, (i, r.arg[-1]))
    roots = {p: root for root, p in lowering.params.items()}
    return Lowered(sink.substitute(new, walk=True), [roots[p] for p in params], list(lowering.states),
                   [u for u in nodes if u.op is Ops.PARAM and u.arg.size is None])


def _zero_outside(gate: UOp, value: UOp) -> UOp:
    """``value`` where ``gate`` holds, else 0; a gated load reads 0 by itself."""
    if value.op is Ops.INDEX and value.src[1]._gated:
        return value
    return gate.where(value, UOp.const(0, value.dtype))


def _unsigned(size: int) -> DType:
    return {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[size]


_RULES = {
    **dict.fromkeys(GroupOp.ALU | {Ops.CAST}, Lowering._alu), Ops.CONST: Lowering._const, Ops.STAGE: Lowering._iota,
    Ops.PAD: Lowering._pad, Ops.REDUCE: Lowering._reduce, Ops.STACK: Lowering._stack, Ops.INDEX: Lowering._index,
    Ops.BITCAST: Lowering._bitcast}
