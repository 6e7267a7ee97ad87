"""Opmask registers (x86-64-v4): bool vectors, comparisons that write them, moves and blends that read them.

A bool vector is one bit per lane in an opmask register; bits behind the last lane are undefined, so an instruction that
looks at more of them than there are lanes (an access shorter than 16 bytes) gets a mask made ``exact``. A scalar float
comparison is an opmask too, of which only bit 0 can be set. In memory a bool is a byte, 0 or 1.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Op, X86Ops
from tinyhost_cpu.x86.operands import (
    INT_SUFFIX,
    SCALAR_MASK,
    Memory,
    all_zero,
    as_int,
    float_op,
    imm,
    int_constant,
    int_dtype,
    masked_move,
    splat_bits,
    vec,
    vec_or_mem,
    view,
    zero,
    zeroing,
)

BOOL = dtypes.bool
EQUAL, LESS, NOT_EQUAL = 0, 1, 4  # predicates of VPCMP (Intel SDM 2C VPCMPD)
_INT_PREDICATE = {Ops.CMPLT: LESS, Ops.CMPNE: NOT_EQUAL, Ops.CMPEQ: EQUAL}


# *** the registers ***
def mask_op(base: str, lanes: int) -> X86Op:
    """``KAND`` as KANDB, KANDW, KANDD or KANDQ."""
    return X86Ops[base + ("B" if lanes <= 8 else "W" if lanes <= 16 else "D" if lanes <= 32 else "Q")]


def mask_logic(sel: Selection, base: str, lanes: int, *src: UOp) -> UOp:
    """Logic of opmasks."""
    return sel.emit(mask_op(base, lanes), BOOL, src, lanes)


def mask_from_bits(sel: Selection, bits: UOp, lanes: int) -> UOp:
    """The low bits of a general-purpose register as an opmask."""
    return sel.pure(mask_op("KMOV", lanes), BOOL, (as_int(sel, bits, 8 if lanes > 32 else 4),), lanes)


def mask_to_bits(sel: Selection, mask: UOp, lanes: int) -> UOp:
    """An opmask in a general-purpose register."""
    return sel.pure(mask_op("KMOV", lanes), dtypes.int64 if lanes > 32 else dtypes.int32, (mask,))


def constant_mask(sel: Selection, bits: int, lanes: int) -> UOp:
    """A literal opmask."""
    return mask_from_bits(sel, int_constant(sel, bits, lanes > 32), lanes)


def exact(sel: Selection, mask: UOp, lanes: int, itemsize: int) -> UOp:
    """``mask`` for an access that may look behind its last lane, where bits become 0."""
    if lanes * itemsize >= 16:
        return mask
    return sel.pure(X86Ops.KANDW, BOOL, (mask, constant_mask(sel, (1 << lanes) - 1, lanes)), lanes)


def lane_of_mask(sel: Selection, mask: UOp, lane: int) -> UOp:
    """One lane as a scalar bool."""
    node = mask_to_bits(sel, mask, mask.arg[2])
    work = node.arg[1]
    if lane:
        node = sel.pure(X86Ops.SHR, work, (node, imm(dtypes.int8, lane)))
    return view(sel, sel.pure(X86Ops.AND, dtypes.int32, (as_int(sel, node, 4), imm(dtypes.int8, 1))), BOOL)


# *** comparisons ***
def compare_floats(
    sel: Selection, predicate: int, left: UOp, right: tuple[UOp, ...], dtype: DType, lanes: int
) -> UOp:
    """A float comparison, scalar or vector."""
    src = (left, *right, imm(dtypes.uint8, predicate))
    return sel.emit(float_op("VCMP", dtype, lanes), BOOL, src, lanes if lanes > 1 else SCALAR_MASK)


def compare_ints(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    """A comparison of integer vectors."""
    a, b = u.src
    op = X86Ops[f"VPCMP{'U' * (dtype in dtypes.uints)}{INT_SUFFIX[dtype.itemsize]}"]
    src = (vec(sel, a, dtype, lanes), *vec_or_mem(sel, b, dtype, lanes), imm(dtypes.uint8, _INT_PREDICATE[u.op]))
    return sel.emit(op, BOOL, src, lanes)


def compare_opmasks(sel: Selection, op: Ops, a: UOp, b: UOp, lanes: int) -> UOp:
    """Comparisons of bool vectors: != is XOR, a < b is ~a & b."""
    return mask_logic(sel, {Ops.CMPLT: "KANDN", Ops.CMPNE: "KXOR", Ops.CMPEQ: "KXNOR"}[op], lanes, a, b)


# *** what masks choose ***
def blend(sel: Selection, mask: UOp, a: UOp, b: UOp, dtype: DType, lanes: int) -> UOp:
    """The lanes of ``a`` where ``mask`` is set, else those of ``b``."""
    if all_zero(b):  # a move, which has no broadcast
        yes = vec_or_mem(sel, a, dtype, lanes) if a.shape else (vec(sel, a, dtype, lanes),)
        return sel.emit(masked_move(dtype), dtype, (zeroing(sel, mask), *yes), lanes)
    no = vec(sel, b, dtype, lanes)
    yes = vec_or_mem(sel, a, dtype, lanes) if lanes > 1 else (vec(sel, a, dtype, lanes),)  # blends read whole registers
    return blend_registers(sel, mask, yes, no, dtype, lanes)


def blend_registers(sel: Selection, mask: UOp, yes: tuple[UOp, ...], no: UOp, dtype: DType, lanes: int) -> UOp:
    """``blend`` of a register or memory operand ``yes`` and a register."""
    size = dtype.itemsize
    name = {"S": "VBLENDMPS", "D": "VBLENDMPD"}["D" if size == 8 else "S"]
    op = X86Ops[name if dtype.is_float and size >= 4 else f"VPBLENDM{INT_SUFFIX[size]}"]
    return sel.emit(op, dtype, (mask, no, *yes), lanes)


def keep_where(sel: Selection, mask: UOp, node: UOp, dtype: DType, lanes: int) -> UOp:
    """The lanes of a register where ``mask`` is set, else 0."""
    return sel.emit(masked_move(dtype), dtype, (zeroing(sel, mask), node), lanes)


def mask_as(sel: Selection, mask: UOp, one: int, dtype: DType, lanes: int) -> UOp:
    """Lanes with the bits ``one`` where ``mask`` is set, else 0."""
    return keep_where(sel, mask, splat_bits(sel, one, dtype, lanes), dtype, lanes)


# *** shuffles ***
def shuffle_width(lanes: int) -> int:
    """Bytes of the lanes as which a mask of ``lanes`` bits is shuffled."""
    return 4 if lanes <= 16 else 64 // lanes


def mask_to_lanes(sel: Selection, mask: UOp, lanes: int) -> UOp:
    """A register with all bits set in the lanes of ``mask``."""
    size = shuffle_width(lanes)
    return sel.pure(X86Ops["VPMOVM2" + INT_SUFFIX[size]], int_dtype(size), (mask,), lanes)


def lanes_to_mask(sel: Selection, node: UOp, lanes: int) -> UOp:
    """The sign bits of the lanes of a register."""
    return sel.emit(X86Ops[f"VPMOV{INT_SUFFIX[node.arg[1].itemsize]}2M"], BOOL, (node,), lanes)


# *** bytes 0 and 1 ***
def mask_of_bytes(sel: Selection, node: UOp, lanes: int) -> UOp:
    """The lanes that are not 0."""
    return sel.emit(X86Ops.VPTESTMB, BOOL, (node, node), lanes)


def load_mask(sel: Selection, memory: Memory, lanes: int) -> UOp:
    """The bytes in memory that are not 0; 16 or more of them."""
    predicate = imm(dtypes.uint8, NOT_EQUAL)
    return sel.emit(X86Ops.VPCMPUB, BOOL, (zero(sel, dtypes.uint8, lanes), *memory, predicate), lanes)
