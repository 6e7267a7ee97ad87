"""Selection of gathers at x86-64-v4: a STACK of loads whose indices are the lanes of one int32 vector.

Address i is base + vector[i] * scale + constant i. ``find_gathers`` looks for such STACKs before selection, so that
neither their loads nor the single lanes of the vector are selected; ``gather`` gives the instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AddrSpace, Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_mask import constant_mask
from tinyhost_cpu.x86.isel_memory import SCALES, add_scaled, base_register, index_register, storage_of, terms_of
from tinyhost_cpu.x86.operands import constant_vector, imm, short_imm

MOST_ELEMENTS = 1 << 30  # of the storage: sums of an index and its constant stay in 32 bits
Terms = dict[UOp, int]
_BORDERS = frozenset({Ops.STORE, Ops.RANGE, Ops.END, Ops.IF, Ops.ENDIF, Ops.BARRIER})


class Gather(NamedTuple):
    """The address of each lane: ``storage``[common + vector[lane] * factor + offsets[lane]]."""

    storage: UOp
    common: Terms
    vector: UOp
    factor: int
    offsets: list[int]


def find_gathers(sel: Selection, uops: list[UOp]) -> None:
    """Note the STACKs that are gathers, and leave out what only they read."""
    if not sel.level.evex:
        return
    segment = 0
    segments: dict[UOp, int] = {}  # of each load: between two of them memory or control flow changes
    for u in uops:
        if u.op in _BORDERS:
            segment += 1
        elif u.op is Ops.LOAD:
            segments[u] = segment
        elif u.op is Ops.STACK and u.src[0].op is Ops.LOAD and u.dtype.itemsize >= 4:
            found = _match(sel, u) if all(segments.get(s) == segment for s in u.src) else None
            if found is not None:
                sel.found[u] = found
                sel.skipped.update(u.src)
                for s in u.src:
                    _skip_lanes(sel, s.src[0].src[1])


def _skip_lanes(sel: Selection, idx: UOp) -> None:
    """Leave out the lane under an index, and the sums above it, if nothing else reads them."""
    stack = [idx]
    while stack:
        u = stack.pop()
        if sel.uses.get(u) == 1 and not u.is_const and u.op in (Ops.ADD, Ops.MUL, Ops.SHL, Ops.CAST, Ops.INDEX):
            sel.skipped.add(u)
            if u.op is not Ops.INDEX:
                stack += u.src


def _match(sel: Selection, u: UOp) -> Gather | None:
    lanes = len(u.src)
    size = u.dtype.itemsize
    if lanes * size not in (16, 32, 64) or lanes < 4:
        return None
    storage = common = vector = None
    factor, offsets = 0, []
    for i, s in enumerate(u.src):
        if s.op is not Ops.LOAD or len(s.src) != 1 or sel.uses.get(s) != 1 or s.src[0].op is not Ops.INDEX:
            return None
        buf, idx = s.src[0].src
        split = _split(idx, i, lanes)
        if split is None:
            return None
        rest, lane, c, const = split
        if i == 0:
            storage, common, vector, factor = buf, rest, lane.src[0], c
        elif buf is not storage or rest != common or lane.src[0] is not vector or c != factor:
            return None
        offsets.append(const)
    assert storage is not None and common is not None and vector is not None
    owner = storage_of(storage).arg
    fits = owner.addrspace is AddrSpace.GLOBAL and (owner.size or MOST_ELEMENTS) < MOST_ELEMENTS
    if not fits or factor * size not in SCALES or any((o - offsets[0]) % factor for o in offsets):
        return None
    if storage.dtype.itemsize != size:
        return None
    return Gather(storage, common, vector, factor, offsets)


def _split(idx: UOp, number: int, lanes: int) -> tuple[Terms, UOp, int, int] | None:
    """(other terms, lane ``number`` of an int32 vector, its factor, constant) of an index."""
    terms, const = terms_of(idx)
    rest: Terms = {}
    found: tuple[UOp, int] | None = None
    for u, c in terms:
        if u.op is Ops.INDEX and u.src[0].shape == (lanes,) and u.src[1].is_const and u.dtype is dtypes.int32:
            if found is not None or u.src[1].const_value != number:
                return None
            found = u, c
        else:
            rest[u] = rest.get(u, 0) + c
    return None if found is None else (rest, found[0], found[1], const)


def gather(sel: Selection, u: UOp, found: Gather, dtype: DType) -> UOp:
    """The instruction for a STACK that ``find_gathers`` noted."""
    lanes, size = len(u.src), dtype.itemsize
    indices = sel.value(found.vector)
    moved = [(o - found.offsets[0]) // found.factor for o in found.offsets]
    if any(moved):
        steps = constant_vector(sel, [m & 0xFFFFFFFF for m in moved], dtypes.int32)
        indices = sel.emit(X86Ops.VPADDD, dtypes.int32, (indices, steps), lanes)
    base = base_register(sel, storage_of(found.storage))
    for term, c in found.common.items():
        base = add_scaled(sel, base, index_register(sel, term), c * size)
    op = X86Ops[_GATHER[dtype.is_float, size]]
    old = sel.emit(X86Ops.ZERO, dtype, (), lanes)
    mask = constant_mask(sel, (1 << lanes) - 1, lanes)
    displacement = short_imm(found.offsets[0] * size)
    memory = (base, indices, displacement, imm(dtype, found.factor * size))
    node = sel.emit(op, dtype, (old, mask, *memory), lanes)
    sel.new_tag()  # the instruction clears its mask
    return node


_GATHER = {(True, 4): "VGATHERDPS", (True, 8): "VGATHERDPD", (False, 4): "VPGATHERDD", (False, 8): "VPGATHERDQ"}
