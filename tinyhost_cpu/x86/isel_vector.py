"""Selection of vector building and taking apart: STACK, and INDEX of a value (one lane, or a shuffle)."""

from __future__ import annotations

from collections.abc import Sequence

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_bool import bool_register, mask_of, opmask
from tinyhost_cpu.x86.isel_gather import gather
from tinyhost_cpu.x86.isel_mask import constant_mask, lane_of_mask, mask_from_bits
from tinyhost_cpu.x86.isel_memory import is_place
from tinyhost_cpu.x86.isel_shuffle import extract, shuffle
from tinyhost_cpu.x86.operands import (
    HALVES,
    as_int,
    broadcast,
    constant_vector,
    fold,
    imm,
    int_dtype,
    int_vec_op,
    is_opmask,
    join,
    lanes_of,
    literal_bits,
    reg,
    short_imm,
    view,
    zero,
)


# *** building ***
def stack(sel: Selection, u: UOp) -> UOp | None:
    """STACK of scalars; one of literals is built where a reader needs it."""
    dtype, lanes = u.dtype, len(u.src)
    if dtype is dtypes.void or dtype is dtypes.weakint or not lanes:
        return None
    if lanes == 1:
        return reg(sel, u.src[0])
    if (found := sel.found.get(u)) is not None:
        return gather(sel, u, found, dtype)
    if dtype is dtypes.bool:
        return _stack_bools(sel, u, lanes)
    if all(s.is_const for s in u.src):
        return constant_vector(sel, [literal_bits(s.const_value, dtype) for s in u.src], dtype)
    if all(s is u.src[0] for s in u.src):
        return broadcast(sel, u.src[0], dtype, lanes)
    if (source := _lanes_of_one_vector(u)) is not None:
        return shuffle(sel, sel.value(source), [int(s.src[1].const_value) for s in u.src])
    size = dtype.itemsize
    per_register = 16 // size
    parts = [_pack(sel, u.src[i : i + per_register], dtype) for i in range(0, lanes, per_register)]
    return join(sel, parts, dtype, lanes)


def _lanes_of_one_vector(u: UOp) -> UOp | None:
    """The vector whose lanes are stacked, in any order."""
    first = u.src[0]
    if first.op is not Ops.INDEX or not first.src[0].shape or is_place(first):
        return None
    source = first.src[0]
    same = all(s.op is Ops.INDEX and s.src[0] is source and s.src[1].is_const for s in u.src)
    return source if same else None


def _pack(sel: Selection, parts: Sequence[UOp], dtype: DType) -> UOp:
    """Up to 16 bytes of scalars in one register."""
    if dtype is dtypes.float32:
        return _pack_float32(sel, parts)
    if dtype is dtypes.float64:
        return _pack_float64(sel, parts)
    lanes = len(parts)
    insert = X86Ops.VPINSRW if dtype in HALVES else int_vec_op("VPINSR", dtype.itemsize)
    node = zero(sel, dtype, lanes)
    for i, part in enumerate(parts):
        if part.is_const and literal_bits(part.const_value, dtype) == 0:
            continue
        operand = fold(sel, part) or (_lane_register(sel, part, dtype),)
        node = sel.emit(insert, dtype, (node, *operand, imm(dtypes.int8, i)), lanes)
    return node


def _lane_register(sel: Selection, part: UOp, dtype: DType) -> UOp:
    if dtype in HALVES:
        return sel.pure(X86Ops.VMOVD, dtypes.int32, (reg(sel, part),))
    return as_int(sel, reg(sel, part), max(dtype.itemsize, 4))


def _pack_float32(sel: Selection, parts: Sequence[UOp]) -> UOp:
    dtype, lanes = dtypes.float32, len(parts)
    node = reg(sel, parts[0])
    for i, part in enumerate(parts[1:], 1):
        operand = fold(sel, part) or (reg(sel, part),)
        node = sel.emit(X86Ops.VINSERTPS, dtype, (node, *operand, imm(dtypes.uint8, i << 4)), lanes)
    return node


def _pack_float64(sel: Selection, parts: Sequence[UOp]) -> UOp:
    dtype = dtypes.float64
    low = reg(sel, parts[0])
    memory = fold(sel, parts[1])
    if memory is not None:
        return sel.emit(X86Ops.VMOVHPS, dtype, (low, *memory), 2)
    return sel.emit(X86Ops.VUNPCKLPD, dtype, (low, reg(sel, parts[1])), 2)


def _stack_bools(sel: Selection, u: UOp, lanes: int) -> UOp:
    """Scalar bools as a mask of 4 bytes a lane, narrower when more lanes would not fit a register."""
    if sel.level.evex:
        return _stack_opmask(sel, u.src, lanes)
    width = min(4, 32 // lanes)
    dtype = int_dtype(width)
    if all(s.is_const for s in u.src):
        full = (1 << width * 8) - 1
        return constant_vector(sel, [full if s.const_value else 0 for s in u.src], dtype)
    if all(s is u.src[0] for s in u.src):
        return mask_of(sel, u.src[0], width, lanes)
    per_register = 16 // width
    registers = []
    for i in range(0, lanes, per_register):
        chunk = u.src[i : i + per_register]
        node = zero(sel, dtype, len(chunk))
        for j, part in enumerate(chunk):
            if not (part.is_const and not part.const_value):
                number = view(sel, bool_register(sel, part), dtypes.int32)
                node = sel.emit(int_vec_op("VPINSR", width), dtype, (node, number, imm(dtypes.int8, j)), len(chunk))
        registers.append(node)
    node = join(sel, registers, dtype, lanes)
    return sel.emit(int_vec_op("VPSUB", width), dtype, (zero(sel, dtype, lanes), node), lanes)


def _stack_opmask(sel: Selection, parts: Sequence[UOp], lanes: int) -> UOp:
    """Scalar bools as an opmask: bits are shifted in, the last lane first."""
    if all(s.is_const for s in parts):
        return constant_mask(sel, sum(bool(s.const_value) << i for i, s in enumerate(parts)), lanes)
    if all(s is parts[0] for s in parts):
        return opmask(sel, parts[0], lanes)
    work, wide = dtypes.int64 if lanes > 32 else dtypes.int32, dtypes.int64
    bits = bool_register(sel, parts[-1])
    for part in reversed(parts[:-1]):
        old = view(sel, bits, wide)
        if part.is_const:  # 2 * bits + 0 or 1
            src = (old, old, short_imm(int(part.const_value)), imm(dtypes.uint8, 1))
        else:
            src = (view(sel, bool_register(sel, part), wide), old, short_imm(0), imm(dtypes.uint8, 2))
        bits = sel.emit(X86Ops.LEA, work, src)
    return mask_from_bits(sel, bits, lanes)


# *** taking apart ***
def index(sel: Selection, u: UOp) -> UOp | None:
    """INDEX over storage is a place; over a value it is a lane, or with a STACK of lanes a shuffle."""
    if is_place(u):
        return None
    x, at = u.src
    source = None if x.is_const else sel.value(x)
    if at.op is Ops.STACK:
        assert source is not None
        return shuffle(sel, source, [int(s.const_value) for s in at.src])
    if x.op is Ops.STACK:
        return reg(sel, x.src[int(at.const_value)])
    assert source is not None
    if is_opmask(source):
        return lane_of_mask(sel, source, int(at.const_value))
    node = extract(sel, source, int(at.const_value))
    return _truth(sel, node) if u.dtype is dtypes.bool else node


def _truth(sel: Selection, lane: UOp) -> UOp:
    """A lane of a mask as 0 or 1."""
    if lane.arg[1].is_float:
        return lane  # a scalar mask
    wide = as_int(sel, lane, 4)
    return view(sel, sel.pure(X86Ops.AND, dtypes.int32, (wide, imm(dtypes.int8, 1))), dtypes.bool)


def shrink(sel: Selection, u: UOp) -> UOp | None:
    """SHRINK over storage is a place; over a value it is consecutive lanes."""
    if is_place(u):
        return None
    first = int(u.src[1].const_value)
    return shuffle(sel, sel.value(u.src[0]), list(range(first, first + lanes_of(u))))
