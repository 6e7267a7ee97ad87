"""Selection of vector building and taking apart: STACK, and INDEX of a value (one lane, or a shuffle)."""

from __future__ import annotations

from collections.abc import Sequence

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_bool import bool_register, mask_of
from tinyhost_cpu.x86.isel_memory import is_place
from tinyhost_cpu.x86.operands import (
    HALVES,
    as_int,
    broadcast,
    fold,
    imm,
    int_constant,
    int_dtype,
    int_vec_op,
    lanes_of,
    literal_bits,
    reg,
    signed,
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
    return parts[0] if len(parts) == 1 else _join(sel, parts[0], parts[1], dtype, lanes)


def _join(sel: Selection, low: UOp, high: UOp, dtype: DType, lanes: int) -> UOp:
    op = X86Ops.VINSERTF128 if dtype.is_float else X86Ops.VINSERTI128
    return sel.emit(op, dtype, (view(sel, low, dtype, lanes), high, imm(dtypes.int8, 1)), lanes)


def _lanes_of_one_vector(u: UOp) -> UOp | None:
    """The vector whose lanes are stacked, in any order."""
    first = u.src[0]
    if first.op is not Ops.INDEX or not first.src[0].shape or is_place(first):
        return None
    source = first.src[0]
    same = all(s.op is Ops.INDEX and s.src[0] is source and s.src[1].is_const for s in u.src)
    return source if same else None


def constant_vector(sel: Selection, lanes: Sequence[int], dtype: DType) -> UOp:
    """A vector literal from the bits of each lane."""
    size = dtype.itemsize
    if all(x == lanes[0] for x in lanes):
        if lanes[0] == 0:
            return zero(sel, dtype, len(lanes))
        from tinyhost_cpu.x86.isel_alu import splat_bits

        return splat_bits(sel, lanes[0], dtype, len(lanes))
    raw = b"".join(x.to_bytes(size, "little") for x in lanes)
    parts = [_constant16(sel, raw[i : i + 16], dtype) for i in range(0, len(raw), 16)]
    if len(parts) == 1:
        return view(sel, parts[0], dtype, len(lanes))
    op = X86Ops.VINSERTI128
    return sel.pure(op, dtype, (view(sel, parts[0], dtype, len(lanes)), parts[1], imm(dtypes.int8, 1)), len(lanes))


def _constant16(sel: Selection, raw: bytes, dtype: DType) -> UOp:
    quads = [signed(int.from_bytes(raw[i : i + 8], "little"), 64) for i in range(0, len(raw), 8)]
    lanes = max(len(raw) // dtype.itemsize, 2)
    node = sel.pure(X86Ops.VMOVQ, dtype, (int_constant(sel, quads[0], True),), lanes)
    if len(quads) == 1 or quads[1] == 0:
        return node
    return sel.pure(X86Ops.VPINSRQ, dtype, (node, int_constant(sel, quads[1], True), imm(dtypes.int8, 1)), lanes)


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
    node = registers[0] if len(registers) == 1 else _join(sel, registers[0], registers[1], dtype, lanes)
    return sel.emit(int_vec_op("VPSUB", width), dtype, (zero(sel, dtype, lanes), node), lanes)


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
    node = extract(sel, source, int(at.const_value))
    return _truth(sel, node) if u.dtype is dtypes.bool else node


def _truth(sel: Selection, lane: UOp) -> UOp:
    """A lane of a mask as 0 or 1."""
    if lane.arg[1].is_float:
        return lane  # a scalar mask
    wide = as_int(sel, lane, 4)
    return view(sel, sel.pure(X86Ops.AND, dtypes.int32, (wide, imm(dtypes.int8, 1))), dtypes.bool)


def _half(sel: Selection, node: UOp, upper: bool) -> UOp:
    """128 bits of a 256-bit register."""
    dtype, lanes = node.arg[1], node.arg[2] // 2
    if not upper:
        return view(sel, node, dtype, lanes)
    op = X86Ops.VEXTRACTF128 if dtype.is_float else X86Ops.VEXTRACTI128
    return sel.pure(op, dtype, (node, imm(dtypes.int8, 1)), lanes)


def extract(sel: Selection, node: UOp, lane: int) -> UOp:
    """One lane as a scalar."""
    dtype, lanes = node.arg[1], node.arg[2]
    size = dtype.itemsize
    if lanes * size == 32:
        node, lane = _half(sel, node, lane >= lanes // 2), lane % (lanes // 2)
    if dtype in (dtypes.float32, dtypes.float64):
        if lane:
            op = X86Ops.VPERMILPS if size == 4 else X86Ops.VPERMILPD
            node = sel.pure(op, dtype, (node, imm(dtypes.uint8, lane)), max(lanes // 2, 2))
        return view(sel, node, dtype)
    if dtype in HALVES:
        return view(
            sel, sel.pure(X86Ops.VPSRLDQ, dtype, (node, imm(dtypes.uint8, lane * 2)), 2) if lane else node, dtype
        )
    if lane == 0 and size >= 4:
        return view(sel, sel.pure(X86Ops.VMOVD if size == 4 else X86Ops.VMOVQ, int_dtype(size), (node,)), dtype)
    work = dtypes.int64 if size == 8 else dtypes.int32
    return view(sel, sel.pure(int_vec_op("VPEXTR", size), work, (node, imm(dtypes.uint8, lane))), dtype)


def shuffle(sel: Selection, node: UOp, order: list[int]) -> UOp:
    """The lanes ``order`` of a vector register as a vector."""
    dtype, lanes = node.arg[1], node.arg[2]
    size, count = dtype.itemsize, len(order)
    if order == list(range(count)):
        return view(sel, node, dtype, count)
    half = lanes // 2
    if lanes * size == 32 and count * size <= 16 and (all(i < half for i in order) or all(i >= half for i in order)):
        node = _half(sel, node, order[0] >= half)
        return shuffle(sel, node, [i % half for i in order])
    if lanes * size <= 16 and count * size <= 16:
        return _shuffle16(sel, node, order, dtype)
    if size == 8 and count == 4:
        op = X86Ops.VPERMPD if dtype.is_float else X86Ops.VPERMQ
        control = sum(i << 2 * k for k, i in enumerate(order))
        return sel.emit(op, dtype, (view(sel, node, dtype, 4), imm(dtypes.uint8, control)), 4)
    if size == 4:
        order = order + [0] * (8 - count)
        control_vector = constant_vector(sel, order, dtypes.int32)
        op = X86Ops.VPERMPS if dtype.is_float else X86Ops.VPERMD
        out = sel.emit(op, dtype, (control_vector, view(sel, node, dtype, 8)), 8)
        return view(sel, out, dtype, count)
    return _shuffle_by_lanes(sel, node, order, dtype)


def _shuffle16(sel: Selection, node: UOp, order: list[int], dtype: DType) -> UOp:
    """A shuffle inside one 128-bit register."""
    size, count = dtype.itemsize, len(order)
    if size == 4:
        control = sum(i << 2 * k for k, i in enumerate(order))
        op = X86Ops.VPERMILPS if dtype.is_float else X86Ops.VPSHUFD
        return sel.emit(op, dtype, (node, imm(dtypes.uint8, control)), count)
    if size == 8 and dtype.is_float:
        return sel.emit(X86Ops.VPERMILPD, dtype, (node, imm(dtypes.uint8, order[0] | order[1] << 1)), count)
    if size == 8:
        control = sum((2 * i + j) << 2 * (2 * k + j) for k, i in enumerate(order) for j in (0, 1))
        return sel.emit(X86Ops.VPSHUFD, dtype, (node, imm(dtypes.uint8, control)), count)
    picked = [i * size + j for i in order for j in range(size)]
    control_vector = constant_vector(sel, picked + [0x80] * (16 - len(picked)), dtypes.uint8)
    return sel.emit(X86Ops.VPSHUFB, dtype, (node, control_vector), count)


def _shuffle_by_lanes(sel: Selection, node: UOp, order: list[int], dtype: DType) -> UOp:
    """Any order of narrow lanes of a 256-bit register, one at a time."""
    count = len(order)
    insert = X86Ops.VPINSRB if dtype.itemsize == 1 else X86Ops.VPINSRW
    per_register = 16 // dtype.itemsize
    registers = []
    for start in range(0, count, per_register):
        chunk = order[start : start + per_register]
        out = zero(sel, dtype, len(chunk))
        for k, i in enumerate(chunk):
            lane = extract(sel, node, i)
            lane = sel.pure(X86Ops.VMOVD, dtypes.int32, (lane,)) if dtype in HALVES else as_int(sel, lane, 4)
            out = sel.emit(insert, dtype, (out, lane, imm(dtypes.int8, k)), len(chunk))
        registers.append(out)
    return registers[0] if len(registers) == 1 else _join(sel, registers[0], registers[1], dtype, count)


def shrink(sel: Selection, u: UOp) -> UOp | None:
    """SHRINK over storage is a place; over a value it is consecutive lanes."""
    if is_place(u):
        return None
    first = int(u.src[1].const_value)
    return shuffle(sel, sel.value(u.src[0]), list(range(first, first + lanes_of(u))))
