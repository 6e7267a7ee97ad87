"""Accesses whose lanes lie apart in memory while their copies are neighbours: whole vectors are read or written, and
turned in registers.

Takes an access of the small kernel whose index is expanded; gives one vector per copy, or the stores, or leaves it.
With ``lanes`` lanes that lie ``step`` elements apart and copies along one UPCAST or UNROLL range that lie side by side:

- ``lanes`` copies or a multiple of them: a square of rows is read and transposed, in log2(lanes) rounds in which pairs
  of rows exchange halves;
- a step of -1: one vector is read and reversed;
- a small step: the ``step`` vectors that hold all the elements are read and sorted by their place modulo ``step``; a
  store of ``step`` copies does the reverse.

Every vector read lies inside what the scalar loads would have spanned, rounded up where the storage goes on.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyhost.codegen.linear_form import Int, Lanes, Lin
from tinyhost.codegen.values import Entry, Values
from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.uop import UOp

SMALL_STEPS = frozenset({2, 3, 4, 8})  # of lanes, up to which all vectors between are read


class Blocks(Values):
    """Loads of whole blocks of elements, and numbers that were loaded as vectors."""

    # *** numbers that stay vectors ***
    def compare_ints(self, op: Ops, x: Entry, y: Entry) -> UOp:
        """As ``Values.compare_ints``; a loaded vector against one number is one comparison."""
        if x.__class__ is UOp or y.__class__ is UOp or x.__class__ is Lanes or y.__class__ is Lanes:
            x, y = self.as_int(x), self.as_int(y)
            a, b = self._operand(x, y), self._operand(y, x)
            if a is not None and b is not None:
                if op is Ops.CMPEQ and op not in self.renderer.code_for_op:
                    return self.logic(Ops.NEG, (self.compare_values(Ops.CMPNE, a, b),))
                return self.compare_values(op, a, b)
        return super().compare_ints(op, x, y)

    def _operand(self, x: Int, other: Int) -> UOp | None:
        """``x`` as a vector that is there, or as a number beside the vector ``other``."""
        if isinstance(x, Lanes):
            numbers = self.numbers_of(x)
            return numbers if numbers is not None and all(len(p.terms) == 1 and not p.const for p in x.parts) else None
        numbers = self.numbers_of(other)
        if numbers is None or self.ints.lane_of(x) is not None:
            return None
        lo, hi = self.ints.bounds(x)
        return self.ints.node(x, numbers.dtype) if numbers.dtype.min <= lo and hi <= numbers.dtype.max else None

    def numbers_of(self, x: Int) -> UOp | None:
        """The vector whose lanes are added, times 1, in the lanes of ``x``; None where there is none."""
        if not isinstance(x, Lanes):
            return None
        vectors = self.vectors
        found = next((n for n in x.parts[0].terms if n.op is Ops.INDEX and vectors.is_vector(n.src[0])), None)
        if found is None or any(p.terms.get(vectors.extract(found.src[0], i)) != 1 for i, p in enumerate(x.parts)):
            return None
        return found.src[0]

    def block_load(self, u: UOp, base: UOp, index: UOp) -> bool:
        """Expand the ungated load ``u`` as blocks; False where it is no block."""
        entries, mask = self.out[index], self.mask[index]
        lanes, step = self._apart(entries, u.dtype)
        if not lanes or self.mask[base]:
            return False
        storage = self.out[base][0]
        apart, count = self._neighbours(entries, mask)
        build: Callable[[UOp, Lin, int, int, int], list[UOp] | None]
        if step == -1:
            width, build = 1, self._reversed
        elif count >= lanes and count % lanes == 0:
            width, build = lanes, self._square
        elif step in SMALL_STEPS and count <= step and not lanes % (step & -step):
            width, build = count, self._sorted
        else:
            return False
        out: list[UOp | None] = [None] * len(entries)
        for i, at in enumerate(entries):
            if width == 1 or i // apart % count % width == 0:
                vectors = build(storage, at, width, lanes, step)
                if vectors is None:
                    return False
                for c, v in enumerate(vectors):
                    out[i + c * apart] = v
        self.out[u], self.mask[u] = out, mask
        return True

    def block_store(self, u: UOp, base: UOp, index: UOp, value: UOp) -> bool:
        """Expand the ungated store ``u`` as blocks; False where it is no block."""
        entries, mask = self.out[index], self.mask[index]
        dtype = u.src[0].dtype
        lanes, step = self._apart(entries, dtype)
        if step not in SMALL_STEPS or self.mask[base] or self.mask[value] & ~mask:
            return False
        apart, count = self._neighbours(entries, mask)
        if count != step or lanes % (step & -step):
            return False
        storage = self.out[base][0]
        values = [self.vectors.splat(self.value(x, dtype), lanes) for x in self.spread(value, mask)]
        stores = []
        for i, at in enumerate(entries):
            if i // apart % count == 0:
                start = self.ints.at_lane(at, 0)
                for j, row in enumerate(self._merged([values[i + c * apart] for c in range(step)], lanes)):
                    place = self._place(storage, Lin(start.terms, start.const + j * lanes), lanes)
                    stores.append(UOp(Ops.STORE, (place, row), None, u.tag))
        self.out[u], self.mask[u] = [UOp(Ops.GROUP, tuple(stores))], 0
        return True

    def _apart(self, entries: list[Entry], dtype: DType) -> tuple[int, int]:
        """(lanes, elements between them) of an access all of whose copies have lanes that lie apart in the same way and
        can be turned; else (0, 0).
        """
        split = self.ints.split_lane
        _, lane, step = split(entries[0]) if entries[0].__class__ is Lin else (None, None, 0)
        if lane is None or step in (0, 1):
            return 0, 0
        if any(x.__class__ is not Lin or split(x)[1:] != (lane, step) for x in entries[1:]):
            return 0, 0
        lanes = int(lane.src[0].const_value)
        turns = self.vectors.native(Ops.INDEX, dtype, lanes) and (dtype.itemsize >= 4 or lanes * dtype.itemsize <= 16)
        return (lanes, step) if turns else (0, 0)  # narrow elements change their places within 16 bytes only

    def _neighbours(self, entries: list[Lin], mask: int) -> tuple[int, int]:
        """Of the range along which entries are consecutive elements: entries from one copy to the next, and copies."""
        apart = len(entries)
        for bit, (_, n) in enumerate(self.bits):
            if not mask >> bit & 1:
                continue
            apart //= n
            if all(_follows(entries[i - apart], x) for i, x in enumerate(entries) if i // apart % n):
                return apart, n
        return 1, 1

    # *** what a block is made of ***
    def _row(self, storage: UOp, start: Lin, lanes: int) -> UOp:
        return self.vectors.mark_width(UOp(Ops.LOAD, (self._place(storage, start, lanes),)), lanes)

    def _place(self, storage: UOp, start: Lin, lanes: int) -> UOp:
        return UOp(Ops.SHRINK, (storage, self.ints.node(start), UOp(Ops.CONST, (), lanes)))

    def _square(self, storage: UOp, at: Lin, width: int, lanes: int, step: int) -> list[UOp]:
        """Row r of the block is lane r of all copies."""
        rows = [self._row(storage, self.ints.at_lane(at, i), lanes) for i in range(lanes)]
        return self._exchanged(rows, lanes)

    def _reversed(self, storage: UOp, at: Lin, width: int, lanes: int, step: int) -> list[UOp]:
        row = self._row(storage, self.ints.at_lane(at, lanes - 1), lanes)
        return [self.vectors.shuffle(row, range(lanes)[::-1])]

    def _sorted(self, storage: UOp, at: Lin, width: int, lanes: int, step: int) -> list[UOp] | None:
        """Copy c is every ``step``-th element from the c-th on."""
        start = self.ints.at_lane(at, 0)
        base = storage
        while base.op is Ops.AFTER:
            base = base.src[0]
        if base.arg.size is None or self.ints.bounds(start)[1] + step * lanes > base.arg.size:
            return None
        rows = [self._row(storage, Lin(start.terms, start.const + j * lanes), lanes) for j in range(step)]
        if step & 1:
            return [self._picked(rows, [c + step * i for i in range(lanes)], lanes) for c in range(width)]
        turned = self._exchanged(rows, step)
        order = [i % (lanes // step) * step + i // (lanes // step) for i in range(lanes)]
        return [self.vectors.shuffle(x, order) for x in turned[:width]]

    def _merged(self, copies: list[UOp], lanes: int) -> list[UOp]:
        """The rows whose every ``len(copies)``-th element comes from the same copy."""
        step = len(copies)
        if not step & 1:
            order = [i % step * (lanes // step) + i // step for i in range(lanes)]
            return self._exchanged([self.vectors.shuffle(x, order) for x in copies], step)
        inverse = [pow(step, -1, lanes) * (p - c) % lanes for c in range(step) for p in range(lanes)]
        placed = [self.vectors.shuffle(x, inverse[c * lanes:(c + 1) * lanes]) for c, x in enumerate(copies)]
        rows = []
        for j in range(step):
            row = placed[0]
            for c in range(1, step):
                row = self._blend([(j * lanes + p) % step == c for p in range(lanes)], placed[c], row)
            rows.append(row)
        return rows

    def _picked(self, rows: list[UOp], places: list[int], lanes: int) -> UOp:
        """The elements at ``places`` of all rows, whose lane numbers differ: blended, then put in order."""
        out = rows[0]
        for j, row in enumerate(rows[1:], 1):
            mine = {p % lanes for p in places if p // lanes == j}
            out = self._blend([i in mine for i in range(lanes)], row, out)
        return self.vectors.shuffle(out, [p % lanes for p in places])

    def _exchanged(self, rows: list[UOp], size: int) -> list[UOp]:
        """Each square of ``size`` rows and lanes transposed, ``size`` being a power of two."""
        lanes = self.vectors.width(rows[0])
        half = size // 2
        while half:
            upper = [bool(i & half) for i in range(lanes)]
            across = [i ^ half for i in range(lanes)]
            new = list(rows)
            for i, row in enumerate(rows):
                if not i & half:
                    other = rows[i + half]
                    new[i] = self._blend(upper, self.vectors.shuffle(other, across), row)
                    new[i + half] = self._blend(upper, other, self.vectors.shuffle(row, across))
            rows, half = new, half // 2
        return rows

    def _blend(self, chosen: Sequence[bool], x: UOp, y: UOp) -> UOp:
        """``x`` in the chosen lanes, else ``y``."""
        mask = self.vectors.stack([UOp(Ops.CONST, (), c) for c in chosen])
        return self.alu(Ops.WHERE, (mask, x, y))


def _follows(a: Lin, b: Lin) -> bool:
    return b.__class__ is Lin and a.terms == b.terms and b.const == a.const + 1
