"""Conversions of x86-64-v4: between integers and floats of all sizes, each with opmasks in place of wide masks.

Semantics are those of ``isel_cast``: integers wrap, a float becomes an integer toward zero and saturates, NaN gives 0.
Signed conversions of the processor give the smallest integer for all that is out of range, unsigned ones the largest
(Intel SDM 1, 4.8.3.7 and 2C VCVTTPS2UDQ): so unsigned ones saturate by themselves once NaN and negative numbers are 0.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_mask import blend_registers, compare_floats, keep_where
from tinyhost_cpu.x86.operands import (
    INT_SUFFIX,
    float_constant,
    float_op,
    int_constant,
    int_dtype,
    splat,
    splat_bits,
    view,
    zero,
)

F32, F64 = dtypes.float32, dtypes.float64
ORDERED, LESS_EQUAL = 7, 2  # predicates of VCMP (Intel SDM 2A CMPPD, table 3-1)


# *** vectors ***
def resize_ints(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int) -> UOp:
    """Integers in another width."""
    old, new = INT_SUFFIX[src.itemsize], INT_SUFFIX[dst.itemsize]
    if old == new:
        return view(sel, node, dst, lanes)
    if dst.itemsize > src.itemsize:
        return sel.emit(X86Ops[f"VPMOV{'S' if src in dtypes.sints else 'Z'}X{old}{new}"], dst, (node,), lanes)
    return sel.emit(X86Ops[f"VPMOV{old}{new}"], dst, (node,), lanes)


def ints_to_floats(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int) -> UOp:
    """Integers of at most 64 bits as float32 or float64, rounded once."""
    if src.itemsize < 4:
        node, src = resize_ints(sel, node, src, dtypes.int32, lanes), dtypes.int32
    unsigned = "U" if src in dtypes.uints else ""
    return sel.emit(X86Ops[f"VCVT{unsigned}{_INT[src.itemsize]}2{_float(dst)}"], dst, (node,), lanes)


_INT = {4: "DQ", 8: "QQ"}


def _float(dtype: DType) -> str:
    return "PS" if dtype is F32 else "PD"


def floats_to_ints(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int, inside: bool) -> UOp:
    """float32 or float64 as integers; ``inside`` says that all are in range."""
    size = max(dst.itemsize, 4)
    if dst in dtypes.uints and dst.itemsize >= 4:
        return _to_unsigned(sel, node, src, dst, lanes, inside)
    number = _to_signed(sel, node, src, int_dtype(size), lanes, inside)
    if dst.itemsize >= 4:
        return view(sel, number, dst, lanes)
    if inside:
        return resize_ints(sel, number, dtypes.int32, dst, lanes)
    saturating = "S"
    if dst in dtypes.uints:
        number = sel.emit(X86Ops.VPMAXSD, dtypes.int32, (number, zero(sel, dtypes.int32, lanes)), lanes)
        saturating = "US"
    return sel.emit(X86Ops[f"VPMOV{saturating}D{INT_SUFFIX[dst.itemsize]}"], dst, (number,), lanes)


def _to_unsigned(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int, inside: bool) -> UOp:
    if not inside:  # the second operand, where the first is a NaN
        node = sel.emit(float_op("VMAX", src, lanes), src, (node, zero(sel, src, lanes)), lanes)
    return sel.emit(X86Ops[f"VCVTT{_float(src)}2U{_INT[dst.itemsize]}"], dst, (node,), lanes)


def _to_signed(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int, inside: bool) -> UOp:
    op = X86Ops[f"VCVTT{_float(src)}2{_INT[dst.itemsize]}"]
    if inside:
        return sel.emit(op, dst, (node,), lanes)
    node = keep_where(sel, compare_floats(sel, ORDERED, node, (node,), src, lanes), node, src, lanes)
    number = sel.emit(op, dst, (node,), lanes)
    limit = splat_float(sel, 2.0 ** (dst.itemsize * 8 - 1), src, lanes)
    large = compare_floats(sel, LESS_EQUAL, limit, (node,), src, lanes)
    return blend_registers(sel, large, (splat_bits(sel, dst.max, dst, lanes),), number, dst, lanes)


def splat_float(sel: Selection, value: float, dtype: DType, lanes: int) -> UOp:
    """A float literal in every lane."""
    node = float_constant(sel, value, dtype)
    return node if lanes == 1 else splat(sel, node, dtype, lanes)


# *** scalars ***
def uint64_to_float(sel: Selection, node: UOp, dst: DType) -> UOp:
    """A scalar uint64, rounded once."""
    op = X86Ops.VCVTUSI2SS if dst is F32 else X86Ops.VCVTUSI2SD
    return sel.emit(op, dst, (zero(sel, dst), view(sel, node, dtypes.int64)))


def float_to_int(sel: Selection, node: UOp, src: DType, dst: DType) -> UOp:
    """A scalar float32 or float64 that may be out of range, as an integer."""
    kind = "SS" if src is F32 else "SD"
    if dst in (dtypes.uint32, dtypes.uint64):
        node = sel.emit(float_op("VMAX", src, 1), src, (node, zero(sel, src)))  # NaN and negative numbers give 0
        work = int_dtype(dst.itemsize)
        return view(sel, sel.emit(X86Ops[f"VCVTT{kind}2USI"], work, (node,)), dst)
    ordered = compare_floats(sel, ORDERED, node, (node,), src, 1)
    node = keep_where(sel, ordered, node, src, 1)
    if dst is dtypes.int64:
        number = sel.emit(X86Ops[f"VCVTT{kind}2SI"], dtypes.int64, (node,))
        large = compare_floats(sel, LESS_EQUAL, float_constant(sel, 2.0**63, src), (node,), src, 1)
        flags = sel.emit(X86Ops.KORTESTW, dtypes.void, (large, large))
        return sel.emit(X86Ops.CMOVNE, dtypes.int64, (number, int_constant(sel, dst.max, True), flags))
    # 2^62 and all below convert exactly or to the smallest int64; both clamp right
    node = sel.emit(float_op("VMIN", src, 1), src, (float_constant(sel, 2.0**62, src), node))
    wide = sel.emit(X86Ops[f"VCVTT{kind}2SI"], dtypes.int64, (node,))
    for bound, code in ((dst.max, "G"), (dst.min, "L")):
        limit = int_constant(sel, bound, True)
        flags = sel.emit(X86Ops.CMP, dtypes.void, (wide, limit))
        wide = sel.emit(X86Ops["CMOV" + code], dtypes.int64, (wide, limit, flags))
    return view(sel, sel.emit(X86Ops.MOV, dtypes.int32, (view(sel, wide, dtypes.int32),)), dst)


# *** bfloat16 ***
def quiet_nans(sel: Selection, bits: UOp, node: UOp, lanes: int) -> UOp:
    """``bits`` (32 each), the quiet NaN of bfloat16 where the float32 ``node`` is a NaN."""
    floats = view(sel, node, F32, lanes)
    nan = compare_floats(sel, 3, floats, (floats,), F32, lanes)
    quiet = splat_bits(sel, 0x7FC0, dtypes.int32, lanes)
    return blend_registers(sel, nan, (quiet,), bits, dtypes.int32, lanes)
