"""Accesses of the expanded kernel: which places are scalars, vectors or gathers, and where gates go.

A place is INDEX(storage, index) or, with coefficient 1 along the lane, SHRINK(storage, index, lanes). A gate
(WHERE(cond, index, Invalid) in the small kernel) becomes the gate of the LOAD or STORE; WHERE(cond, load, other) over
the same gate becomes the load's alternative. Whatever a target cannot do as one vector access (strides, gates along
the lane without masks) is one scalar access per lane.
"""
from __future__ import annotations

from typing import Any

from tinyhost.codegen.blocks import Blocks
from tinyhost.codegen.linear_form import Int, Lanes, Lin, atom, is_lane
from tinyhost.codegen.values import TRUE
from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.uop import UOp

UNUSED = "unused"  # tag of an INDEX whose value is not used where its gate is false
STREAMED = "streamed"  # tag of a STORE that may pass by the caches


def gate_and_index(access: UOp) -> tuple[UOp | None, UOp]:
    """(gate or None, index) of an INDEX with one index."""
    idx = access.src[1]
    if idx.op is Ops.WHERE and idx.src[2].is_invalid:
        return idx.src[0], idx.src[1]
    return None, idx


class Memory(Blocks):
    """LOAD and STORE."""

    # *** what an access depends on ***
    def access_sources(self, u: UOp) -> tuple[UOp, ...]:
        """Storage, index and gate; for an INDEX that is no memory access, its sources."""
        if len(u.src) != 2:
            return u.src
        gate, idx = gate_and_index(u)
        return (u.src[0], idx) if gate is None else (u.src[0], idx, gate)

    def is_guarded_load(self, u: UOp) -> bool:
        """Whether ``u`` is WHERE(gate, load with that gate, other)."""
        x = u.src[1]
        return x.op is Ops.INDEX and len(x.src) == 2 and _is_storage(x.src[0]) and gate_and_index(x)[0] is u.src[0]

    # *** handlers ***
    def load(self, u: UOp) -> None:
        """An INDEX used as a value."""
        if len(u.src) != 2 or not _is_storage(u.src[0]):
            self.plain(u)
            return
        if u.tag == UNUSED:
            self.emit(u, self.access_sources(u), lambda base, i, g=TRUE: self.unguarded_load(base, i, g, u.dtype))
            return
        srcs = self.access_sources(u)
        if len(srcs) > 2 or not self.block_load(u, *srcs):
            self.emit(u, srcs, lambda base, i, g=TRUE: self.load_entry(base, i, g, None, u.dtype, None))

    def explicit_load(self, u: UOp) -> None:
        """A LOAD that the kernel spells itself."""
        place = u.src[0]
        if place.op is not Ops.INDEX:
            self.emit(u, u.src, lambda *xs: self.vectors.rebuild(u, xs))
            return
        srcs = self.access_sources(place)
        n = len(srcs)

        def build(*xs: Any) -> UOp:
            alt = self.value(xs[n], u.dtype) if len(xs) > n else None
            gates = [x for x in (*xs[2:n], *xs[n + 1:])]
            gate = TRUE if not gates else gates[0] if len(gates) == 1 else self.logic(Ops.AND, tuple(gates))
            return self.load_entry(xs[0], xs[1], gate, alt, u.dtype, u.arg)
        self.emit(u, (*srcs, *u.src[1:]), build)

    def guarded_load(self, u: UOp) -> None:
        """WHERE(gate, load, other) as a load with an alternative."""
        access = u.src[1]
        dt = u.dtype
        same = access.dtype is dt

        def build(base: UOp, i: Int, gate: UOp, other: Any) -> UOp:
            alt = self.value(other, dt)
            if same:
                return self.load_entry(base, i, gate, alt, dt, None)
            loaded = self.load_entry(base, i, gate, None, access.dtype, None)
            chosen: UOp = self.select(gate, loaded, alt, dt)
            return chosen
        self.emit(u, (*self.access_sources(access), u.src[2]), build)

    def store(self, u: UOp) -> None:
        place = u.src[0]
        if place.op is not Ops.INDEX:
            self.emit(u, u.src, lambda *xs: UOp(Ops.STORE, tuple(self._any(x) for x in xs), u.arg))
            return
        srcs = self.access_sources(place)
        n = len(srcs)
        dt = place.dtype

        def build(*xs: Any) -> UOp:
            gates = (*xs[2:n], *xs[n + 1:])
            gate = TRUE if not gates else gates[0] if len(gates) == 1 else self.logic(Ops.AND, gates)
            return self.store_entry(xs[0], xs[1], self.value(xs[n], dt), gate, u.tag)
        if n > 2 or len(u.src) > 2 or not self.block_store(u, srcs[0], srcs[1], u.src[1]):
            self.emit(u, (*srcs, *u.src[1:]), build)

    # *** one access ***
    def place(self, base: UOp, lin: Lin) -> UOp:
        """The scalar place at ``lin``."""
        return UOp(Ops.INDEX, (base, self.ints.node(lin)))

    def vector_place(self, base: UOp, start: Lin, width: int) -> UOp:
        """The place of ``width`` elements from ``start``."""
        return UOp(Ops.SHRINK, (base, self.ints.node(start), UOp(Ops.CONST, (), width)))

    def load_entry(self, base: UOp, index: Any, gate: UOp, alt: UOp | None, dt: DType, hint: Any) -> UOp:
        """The value at ``index``, ``alt`` (default 0) where the gate is false."""
        if gate.op is Ops.CONST and not gate.arg:
            return UOp.const(0, dt) if alt is None else alt
        gated = gate.op is not Ops.CONST
        other = UOp.const(0, dt) if alt is None else alt
        at = self.as_int(index)
        vectors, ints = self.vectors, self.ints
        wide_gate = vectors.width(gate)
        width, start = self._shape_of_access(at)
        if vectors.width(other) > max(width, wide_gate):  # one element, but an alternative for each lane
            chosen: UOp = self.select(gate, self.load_entry(base, index, gate, None, dt, hint), other, dt)
            return chosen
        if isinstance(start, Lin) and (wide_gate == 1 or width > 1 and self.renderer.caps.masked):
            if width == 1:
                return UOp(
                    Ops.LOAD, (self.place(base, start), other, gate) if gated else (self.place(base, start),), hint
                )
            place = self.vector_place(base, self._near(base, start, width) if wide_gate > 1 else start, width)
            node = UOp(Ops.LOAD, (place, vectors.splat(other, width), gate) if gated else (place,), hint)
            return vectors.mark_width(node, width)
        count = max(width, wide_gate)
        if wide_gate == count and (safe := self._safe_lanes(base, at, gate)) is not None:
            found = vectors.stack([UOp(Ops.LOAD, (self.place(base, x),), hint) for x in safe.parts])
            safely: UOp = self.select(gate, found, other, dt)
            return safely
        parts = []
        for i in range(count):
            place, g = self.place(base, ints.at_lane(at, i)), vectors.extract(gate, i)
            if g.op is Ops.CONST:
                parts.append(UOp(Ops.LOAD, (place,), hint) if g.arg else vectors.extract(other, i))
            else:
                parts.append(UOp(Ops.LOAD, (place, vectors.extract(other, i), g), hint))
        return vectors.stack(parts)

    def _near(self, base: UOp, start: Lin, width: int) -> Lin:
        """``start``, or 0 where all lanes of a masked access are outside the storage: lanes that are off fault nowhere,
        but a processor takes long to find that out for addresses without memory.
        """
        ints, size = self.ints, storage_of(base).arg.size
        lo, hi = ints.bounds(start)
        at = ints.node(start)
        zero = UOp.const(0, at.dtype)
        if lo <= -width:
            at = UOp(Ops.WHERE, (UOp(Ops.CMPLT, (at, UOp.const(1 - width, at.dtype))), zero, at))
        if size is not None and hi >= size:
            at = UOp(Ops.WHERE, (UOp(Ops.CMPLT, (at, UOp.const(size, at.dtype))), at, zero))
        return atom(at)

    def _safe_lanes(self, base: UOp, at: Int, gate: UOp) -> Lanes | None:
        """``at`` with a vector of numbers that it adds set to 0 where the vector ``gate`` is false, so that no lane
        needs a condition of its own; None where it adds no such vector or that would leave the storage.
        """
        size = storage_of(base).arg.size
        if not isinstance(at, Lanes) or size is None:
            return None
        vectors, ints = self.vectors, self.ints
        if (numbers := self.numbers_of(at)) is None:
            return None
        lanes = [vectors.extract(numbers, i) for i in range(len(at.parts))]
        rests = [Lin({n: c for n, c in x.terms.items() if n is not lane}, x.const) for x, lane in zip(at.parts, lanes)]
        if any(lo < 0 or hi >= size for lo, hi in map(ints.bounds, rests)):
            return None
        chosen = self.alu(Ops.WHERE, (gate, numbers, UOp.const(0, numbers.dtype)))
        picked = [atom(vectors.extract(chosen, i)) for i in range(len(rests))]
        return Lanes([Lin({**rest.terms, **x.terms}, rest.const) for rest, x in zip(rests, picked)])

    def unguarded_load(self, base: UOp, index: Any, gate: UOp, dt: DType) -> UOp:
        """A load whose value is not used where its gate is false: it reads some other element of the storage then."""
        safe = self._safe_index(base, index, gate)
        if safe is None:
            return self.load_entry(base, index, gate, None, dt, None)
        return self.load_entry(base, safe, TRUE, None, dt, None)

    def _safe_index(self, base: UOp, index: Any, gate: UOp) -> Int | None:
        """The index where the scalar ``gate`` holds, else one inside the storage; None where that costs more than a
        gate.

        The choice is made in the loop of the gate; loops inside it read without a condition.
        """
        at = self.as_int(index)
        if gate.op is Ops.CONST or self.vectors.is_vector(gate) or not isinstance(at, Lin):
            return None
        ints = self.ints
        rank = ints.rank_of(gate)
        inner = Lin({n: c for n, c in at.terms.items() if is_lane(n) or ints.rank_of(n) > rank}, 0)
        outer = Lin({n: c for n, c in at.terms.items() if n not in inner.terms}, at.const)
        lo, hi = ints.bounds(inner)
        size = storage_of(base).arg.size
        if size is None or hi - lo >= size or not any(not is_lane(n) for n in inner.terms):
            return None
        start = ints.node(outer)
        chosen = UOp(Ops.WHERE, (gate, start, UOp.const(-lo, start.dtype)))
        return ints.add(atom(chosen), inner)

    def _shape_of_access(self, at: Int) -> tuple[int, Lin | None]:
        """(lanes, index of the first) of a scalar or contiguous access; (lanes, None) of a gather."""
        if isinstance(at, Lanes):
            return len(at.parts), None
        start, rng, step = self.ints.split_lane(at)
        if rng is None:
            return 1, start
        return int(rng.src[0].const_value), start if step == 1 else None

    def store_entry(self, base: UOp, index: Any, value: UOp, gate: UOp, tag: Any = None) -> UOp:
        """Write ``value`` at ``index`` where the gate holds."""
        if gate.op is Ops.CONST and not gate.arg:
            return UOp(Ops.NOOP)
        gated = gate.op is not Ops.CONST
        at = self.as_int(index)
        vectors, ints = self.vectors, self.ints
        width, start = self._shape_of_access(at)
        if width == 1 and vectors.is_vector(value):
            raise ValueError(
                "a store that does not move along the vector lane cannot store a vector: choose another LANE axis"
            )
        if isinstance(start, Lin) and (vectors.width(gate) == 1 or self.renderer.caps.masked):
            place = self.place(base, start) if width == 1 else self.vector_place(base, start, width)
            full = vectors.splat(value, width)
            return UOp(Ops.STORE, (place, full, gate) if gated else (place, full), None, tag)
        stores = []
        for i in range(width):
            place, v, g = self.place(base, ints.at_lane(at, i)), vectors.extract(value, i), vectors.extract(gate, i)
            if g.op is not Ops.CONST:
                stores.append(UOp(Ops.STORE, (place, v, g)))
            elif g.arg:
                stores.append(UOp(Ops.STORE, (place, v)))
        return UOp(Ops.GROUP, tuple(stores))


def storage_of(u: UOp) -> UOp:
    """The storage behind AFTERs."""
    while u.op is Ops.AFTER:
        u = u.src[0]
    return u


def stored_in(store: UOp) -> UOp:
    """The storage that a STORE writes."""
    return storage_of(store.src[0].src[0])


def _is_storage(u: UOp) -> bool:
    return storage_of(u).op in (Ops.PARAM, Ops.BUFFER)

