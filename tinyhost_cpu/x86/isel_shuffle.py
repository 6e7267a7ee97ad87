"""Selection of shuffles: lanes of one vector in another order, and single lanes.

A pattern that repeats in every 16 bytes, and one that moves whole blocks of 16 or 32 bytes, has an instruction with an
immediate; others need a vector of lane numbers.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Op, X86Ops
from tinyhost_cpu.x86.isel_mask import lanes_to_mask, mask_op, mask_to_lanes
from tinyhost_cpu.x86.operands import (
    HALVES,
    INT_SUFFIX,
    as_int,
    constant_vector,
    imm,
    int_dtype,
    int_vec_op,
    join,
    view,
    zero,
)

Single = tuple[X86Op, tuple[UOp, ...], int]  # opcode, sources, lanes of the result's register


# *** parts of a register ***
def _half(sel: Selection, node: UOp, upper: bool) -> UOp:
    """Half of a register of 256 or 512 bits."""
    dtype, lanes = node.arg[1], node.arg[2] // 2
    if not upper:
        return view(sel, node, dtype, lanes)
    bits = "128" if lanes * dtype.itemsize <= 16 else "64X4"
    op = X86Ops[f"VEXTRACT{'F' if dtype.is_float else 'I'}{bits}"]
    return sel.pure(op, dtype, (node, imm(dtypes.int8, 1)), lanes)


def _quarter(sel: Selection, node: UOp, number: int) -> UOp:
    """128 bits of a 512-bit register."""
    dtype, lanes = node.arg[1], node.arg[2] // 4
    if not number:
        return view(sel, node, dtype, lanes)
    op = X86Ops.VEXTRACTF32X4 if dtype.is_float else X86Ops.VEXTRACTI32X4
    return sel.pure(op, dtype, (node, imm(dtypes.int8, number)), lanes)


def extract(sel: Selection, node: UOp, lane: int) -> UOp:
    """One lane as a scalar."""
    dtype, lanes = node.arg[1], node.arg[2]
    size = dtype.itemsize
    if lanes * size == 64:
        node, lane, lanes = _quarter(sel, node, lane // (lanes // 4)), lane % (lanes // 4), lanes // 4
    elif lanes * size == 32:
        node, lane, lanes = _half(sel, node, lane >= lanes // 2), lane % (lanes // 2), lanes // 2
    if dtype in (dtypes.float32, dtypes.float64):
        if lane:
            op = X86Ops.VPERMILPS if size == 4 else X86Ops.VPERMILPD
            node = sel.pure(op, dtype, (node, imm(dtypes.uint8, lane)), lanes)
        return view(sel, node, dtype)
    if dtype in HALVES:
        return view(
            sel, sel.pure(X86Ops.VPSRLDQ, dtype, (node, imm(dtypes.uint8, lane * 2)), 2) if lane else node, dtype
        )
    if lane == 0 and size >= 4:
        return view(sel, sel.pure(X86Ops.VMOVD if size == 4 else X86Ops.VMOVQ, int_dtype(size), (node,)), dtype)
    work = dtypes.int64 if size == 8 else dtypes.int32
    return view(sel, sel.pure(int_vec_op("VPEXTR", size), work, (node, imm(dtypes.uint8, lane))), dtype)


# *** shuffles ***
def shuffle(sel: Selection, node: UOp, order: list[int]) -> UOp:
    """The lanes ``order`` of a vector register as a vector."""
    dtype, lanes = node.arg[1], node.arg[2]
    if dtype is dtypes.bool:
        return _shuffle_opmask(sel, node, order)
    size, count = dtype.itemsize, len(order)
    if order == list(range(count)):
        return view(sel, node, dtype, count)
    half = lanes // 2
    if (
        lanes * size >= 32
        and count * size <= lanes * size // 2
        and (all(i < half for i in order) or all(i >= half for i in order))
    ):
        node = _half(sel, node, order[0] >= half)
        return shuffle(sel, node, [i % half for i in order])
    single = single_shuffle(sel, node, order, dtype)
    if single is None:
        return _shuffle_by_lanes(sel, node, order, dtype)
    op, src, width = single
    return view(sel, sel.emit(op, dtype, src, width), dtype, count)


def single_shuffle(sel: Selection, node: UOp, order: list[int], dtype: DType, merging: bool = False) -> Single | None:
    """The one instruction for a shuffle, None if there is none; for ``merging`` its elements are the lanes."""
    size, lanes, count = dtype.itemsize, node.arg[2], len(order)
    width = max(lanes, count)
    if width * size <= 16:
        return _in16(sel, node, order, dtype, merging)
    if count == lanes and (size >= 4 or not merging):
        found = _repeated(node, order, dtype, merging) or _blocks(sel, node, order, dtype)
        if found is not None:
            return found
    evex = sel.level.evex
    if evex and (size > 1 or sel.level.byte_permutes):
        name = ("PS" if size == 4 else "PD") if dtype.is_float and size >= 4 else INT_SUFFIX[size]
    elif size == 4:
        name = "PS" if dtype.is_float else "D"
    else:
        return None
    control = constant_vector(sel, order + [0] * (width - count), int_dtype(size))
    return X86Ops["VPERM" + name], (control, view(sel, node, dtype, width)), width


def _in16(sel: Selection, node: UOp, order: list[int], dtype: DType, merging: bool) -> Single:
    """A shuffle inside one 128-bit register."""
    size, count = dtype.itemsize, len(order)
    if size >= 4:
        single = _repeated(node, order + [0] * (16 // size - count), dtype, merging)
        assert single is not None
        return single[0], single[1], count
    if size == 2 and merging:
        return X86Ops.VPERMW, (constant_vector(sel, order + [0] * (8 - count), dtypes.int16), node), count
    picked = [i * size + j for i in order for j in range(size)]
    return X86Ops.VPSHUFB, (node, constant_vector(sel, picked + [0x80] * (16 - len(picked)), dtypes.uint8)), count


def _repeated(node: UOp, order: list[int], dtype: DType, merging: bool) -> Single | None:
    """The same pattern inside every 16 bytes (or, of 8-byte lanes, 32)."""
    size, count = dtype.itemsize, len(order)
    if size < 4:
        return None
    per = 16 // size
    if all(i // per == k // per for k, i in enumerate(order)):
        inside = [i % per for i in order]
        if size == 8 and (dtype.is_float or merging):
            control = sum(i << k for k, i in enumerate(inside))
            return X86Ops.VPERMILPD, (node, imm(dtypes.uint8, control)), count
        if inside == inside[:per] * (count // per):
            parts = [i if size == 4 else 2 * i + j for i in inside[:per] for j in range(size // 4)]
            control = sum(i << 2 * k for k, i in enumerate(parts))
            return X86Ops.VPERMILPS if dtype.is_float else X86Ops.VPSHUFD, (node, imm(dtypes.uint8, control)), count
    if size == 8 and count >= 4 and all(i // 4 == k // 4 for k, i in enumerate(order)):
        inside = [i % 4 for i in order]
        if inside == inside[:4] * (count // 4):
            control = sum(i << 2 * k for k, i in enumerate(inside[:4]))
            return X86Ops.VPERMPD if dtype.is_float else X86Ops.VPERMQ, (node, imm(dtypes.uint8, control)), count
    return None


def _blocks(sel: Selection, node: UOp, order: list[int], dtype: DType) -> Single | None:
    """Blocks of 16 bytes in another order."""
    size, count = dtype.itemsize, len(order)
    per = 16 // size
    blocks = [i // per for i in order[::per]]
    if order != [per * b + j for b in blocks for j in range(per)]:
        return None
    kind = "F" if dtype.is_float else "I"
    if not sel.level.evex:
        control = blocks[0] | blocks[1] << 4
        return X86Ops[f"VPERM2{kind}128"], (node, node, imm(dtypes.uint8, control)), count
    bits = 2 if len(blocks) == 4 else 1
    control = sum(b << bits * k for k, b in enumerate(blocks))
    elements = "32X4" if size == 4 else "64X2"
    return X86Ops[f"VSHUF{kind}{elements}"], (node, node, imm(dtypes.uint8, control)), count


def _shuffle_opmask(sel: Selection, node: UOp, order: list[int]) -> UOp:
    """The lanes ``order`` of an opmask: consecutive ones by a shift, others as lanes of a register."""
    lanes, count = node.arg[2], len(order)
    if order == list(range(order[0], order[0] + count)):
        if order[0]:
            shift = imm(dtypes.uint8, order[0])
            node = sel.emit(mask_op("KSHIFTR", lanes), dtypes.bool, (node, shift), lanes)
        return view(sel, node, dtypes.bool, count)
    return lanes_to_mask(sel, shuffle(sel, mask_to_lanes(sel, node, max(lanes, count)), order), count)


def _shuffle_by_lanes(sel: Selection, node: UOp, order: list[int], dtype: DType) -> UOp:
    """Any order of narrow lanes, one at a time."""
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
    return join(sel, registers, dtype, count)
