"""Operands of selected instructions: immediates, constants, registers, broadcasts, memory.

Takes nodes of the linear program; gives INS nodes (see ``tinyhost.renderer.isa.selection``). The conventions that all
selection rules share live here:

- An integer narrower than 32 bits sits in a 32-bit register with undefined upper bits; a 32-bit one has zeros above; a
  scalar bool is 0 or 1 in 32 bits. A scalar float sits in the low lane of a vector register.
- x86-64-v3: a bool vector is a mask: all ones or all zeros per lane, in the width of what was compared. Its INS dtype
  is an integer or float of that width. A scalar float comparison is such a mask too.
- x86-64-v4 (``sel.level.evex``): a bool vector is an opmask register, its INS arg (op, dtypes.bool, lanes); bits behind
  the last lane are undefined. A scalar float comparison is one of ``SCALAR_MASK`` lanes: bit 0 counts, others are 0.
- A memory operand is four sources: base, index (NOOP: none), displacement, scale; the dtype of the scale immediate is
  the type of the access.
- Lanes above the last one of a vector shorter than a register are undefined.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.registers import Register
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Op, X86Ops

NO_INDEX = UOp(Ops.NOOP)
HALVES = (dtypes.float16, dtypes.bfloat16)
Memory = tuple[UOp, UOp, UOp, UOp]

_imms: dict[tuple[DType, Any], UOp] = {}


def imm(dtype: DType, value: Any) -> UOp:
    """An immediate; its dtype is the width of the field."""
    node = _imms.get((dtype, value))
    if node is None:
        if len(_imms) > 5000:
            _imms.clear()
        node = _imms[dtype, value] = UOp(Ops.CAST, (UOp(Ops.CONST, (), value),), dtype, "imm")
    return node


def short_imm(value: int) -> UOp:
    """An 8-bit immediate where it suffices, else 32 bits."""
    return imm(dtypes.int8 if -128 <= value < 128 else dtypes.int32, value)


def def_reg(dtype: DType, reg: Register, lanes: int = 1) -> UOp:
    """A physical register as an operand."""
    return UOp(Ops.INS, (), (X86Ops.DEFINE, dtype) if lanes == 1 else (X86Ops.DEFINE, dtype, lanes), reg)


def lanes_of(u: UOp) -> int:
    """Lanes of a node, 1 for a scalar."""
    shape = u.shape
    return shape[0] if shape else 1


def int_dtype(itemsize: int, signed: bool = True) -> DType:
    """The integer type of ``itemsize`` bytes."""
    return (_SIGNED if signed else _UNSIGNED)[itemsize]


_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
# a scalar in a vector register has a float dtype, whatever its bits mean: an integer dtype would be a general register
FLOAT_OF_WIDTH = {1: dtypes.float32, 2: dtypes.float32, 4: dtypes.float32, 8: dtypes.float64}
SCALAR_MASK = 2  # lanes in the INS arg of a scalar's opmask: one lane would be a general register


def is_float(dtype: DType) -> bool:
    """Whether values of ``dtype`` sit in vector registers as scalars."""
    return dtype.is_float


# *** literals ***
def literal_bits(value: Any, dtype: DType) -> int:
    """The bytes of a literal of ``dtype`` as an unsigned integer."""
    if dtype is dtypes.float32:
        return int.from_bytes(struct.pack("<f", dtype.const(value)), "little")
    if dtype is dtypes.float64:
        return int.from_bytes(struct.pack("<d", value), "little")
    if dtype is dtypes.float16:
        return int.from_bytes(struct.pack("<e", dtype.const(value)), "little")
    if dtype is dtypes.bfloat16:
        return int.from_bytes(struct.pack("<f", dtype.const(value)), "little") >> 16
    return int(value) & ((1 << dtype.itemsize * 8) - 1)


def signed(bits: int, width: int) -> int:
    """``bits`` read as a signed number of ``width`` bits."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def int_literal(u: UOp) -> int | None:
    """The value of an integer or bool literal, wrapped to its dtype and read as signed; None for anything else."""
    if not u.is_const or u.dtype.is_float:
        return None
    dtype = u.dtype
    if dtype is dtypes.weakint:
        return int(u.const_value)
    return (
        signed(literal_bits(u.const_value, dtype), dtype.itemsize * 8)
        if dtype is not dtypes.bool
        else int(u.const_value)
    )


def int_constant(sel: Selection, value: int, wide: bool) -> UOp:
    """A register that holds ``value``: 64 bits where ``wide``, else 32."""
    if not wide:
        return sel.pure(X86Ops.MOV, dtypes.int32, (imm(dtypes.int32, signed(value & 0xFFFFFFFF, 32)),))
    if 0 <= value < 1 << 32:
        return sel.alias(X86Ops.ALIAS, int_constant(sel, value, False), dtypes.int64)
    return sel.pure(X86Ops.MOV, dtypes.int64, (imm(dtypes.int64, value),))


def zero(sel: Selection, dtype: DType, lanes: int = 1) -> UOp:
    """A vector register of zeros."""
    return sel.pure(X86Ops.ZERO, dtype, (), lanes)


def ones(sel: Selection, dtype: DType, lanes: int = 1) -> UOp:
    """A vector register of ones in every bit."""
    return sel.pure(X86Ops.ONES, dtype, (), lanes)


def float_constant(sel: Selection, value: Any, dtype: DType) -> UOp:
    """A float literal in a vector register."""
    bits = literal_bits(value, dtype)
    return (
        zero(sel, dtype) if bits == 0 else to_vector_register(sel, int_constant(sel, bits, dtype.itemsize == 8), dtype)
    )


def to_vector_register(sel: Selection, node: UOp, dtype: DType) -> UOp:
    """The bits of a general-purpose register in the low lane of a vector register, as the float type ``dtype``."""
    if dtype.itemsize == 8:
        return sel.pure(X86Ops.VMOVQ, dtype, (as_int(sel, node, 8),))
    return sel.pure(X86Ops.VMOVD, dtype, (as_int(sel, node, 4),))


def constant(sel: Selection, u: UOp) -> UOp:
    """A literal in a register."""
    dtype = u.dtype
    if dtype.is_float:
        return float_constant(sel, u.const_value, dtype)
    value = int_literal(u)
    assert value is not None
    node = int_constant(sel, value, dtype.itemsize == 8)
    return node if node.arg[1] is dtype else sel.alias(X86Ops.ALIAS, node, dtype)


def constant_vector(sel: Selection, lanes: Sequence[int], dtype: DType) -> UOp:
    """A vector literal from the bits of each lane."""
    size = dtype.itemsize
    if all(x == lanes[0] for x in lanes):
        if lanes[0] == 0:
            return zero(sel, dtype, len(lanes))
        return splat_bits(sel, lanes[0], dtype, len(lanes))
    if size > 1 and len(lanes) * size > 16 and not dtype.is_float and all(x < 128 for x in lanes):
        low = constant_vector(sel, lanes, dtypes.int8)  # lane numbers and the like: bytes, extended
        return sel.pure(X86Ops[f"VPMOVZXB{INT_SUFFIX[size]}"], dtype, (low,), len(lanes))
    raw = b"".join(x.to_bytes(size, "little") for x in lanes)
    parts = [_constant16(sel, raw[i : i + 16], dtype) for i in range(0, len(raw), 16)]
    count = len(lanes) // len(parts)
    while len(parts) > 1:
        count *= 2
        op = X86Ops.VINSERTI128 if count * size <= 32 else X86Ops.VINSERTI64X4
        pairs = zip(parts[::2], parts[1::2])
        parts = [sel.pure(op, dtype, (view(sel, a, dtype, count), b, imm(dtypes.int8, 1)), count) for a, b in pairs]
    return view(sel, parts[0], dtype, len(lanes))


def _constant16(sel: Selection, raw: bytes, dtype: DType) -> UOp:
    quads = [signed(int.from_bytes(raw[i : i + 8], "little"), 64) for i in range(0, len(raw), 8)]
    lanes = max(len(raw) // dtype.itemsize, 2)
    node = sel.pure(X86Ops.VMOVQ, dtype, (int_constant(sel, quads[0], True),), lanes)
    if len(quads) == 1 or quads[1] == 0:
        return node
    return sel.pure(X86Ops.VPINSRQ, dtype, (node, int_constant(sel, quads[1], True), imm(dtypes.int8, 1)), lanes)


# *** registers ***
def view(sel: Selection, node: UOp, dtype: DType, lanes: int = 1) -> UOp:
    """The register of ``node`` as another type."""
    if node.arg == ((node.arg[0], dtype) if lanes == 1 else (node.arg[0], dtype, lanes)):
        return node
    return sel.alias(X86Ops.ALIAS, node, dtype, lanes)


def as_int(sel: Selection, node: UOp, itemsize: int) -> UOp:
    """A general-purpose register seen with ``itemsize`` bytes."""
    dtype = node.arg[1]
    return node if dtype.itemsize == itemsize and dtype is not dtypes.bool else view(sel, node, _SIGNED[itemsize])


def reg(sel: Selection, u: UOp) -> UOp:
    """The register that holds ``u``."""
    node = sel.values.get(u)
    if node is not None:
        return node
    if u.is_const:
        return constant(sel, u)
    return sel.value(u)


def broadcast(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    """A scalar in every lane, straight from memory where possible."""
    key = ("broadcast", u, lanes)
    if (node := sel.recall(key)) is not None:
        return node
    pending = sel.pending.pop(u, None)
    if pending is not None:
        node = sel.remember(key, sel.emit(_broadcast_op(dtype, lanes), dtype, pending.memory, lanes))
        if dtype.is_float:
            sel.values[u] = view(sel, node, dtype)
        return node
    if u.is_const:
        bits = literal_bits(u.const_value, dtype)
        if bits == 0:
            return zero(sel, dtype, lanes)
        if sel.level.evex:
            return splat_bits(sel, bits, dtype, lanes)
    return splat(sel, reg(sel, u), dtype, lanes)


def splat_bits(sel: Selection, bits: int, dtype: DType, lanes: int) -> UOp:
    """A bit pattern of the width of ``dtype`` in every lane, as that type."""
    size = dtype.itemsize
    number = int_constant(sel, bits, size == 8)
    if sel.level.evex and lanes > 1:
        return view(sel, splat(sel, number, int_dtype(size), lanes), dtype, lanes)
    node = to_vector_register(sel, number, FLOAT_OF_WIDTH[size])
    if lanes == 1:
        return view(sel, node, dtype)
    return view(sel, sel.pure(int_vec_op("VPBROADCAST", size), int_dtype(size), (node,), lanes), dtype, lanes)


def splat(sel: Selection, node: UOp, dtype: DType, lanes: int) -> UOp:
    """A scalar register in every lane."""
    if not dtype.is_float and sel.level.evex:  # straight from a general-purpose register
        return sel.pure(_broadcast_op(dtype, lanes), dtype, (as_int(sel, node, max(dtype.itemsize, 4)),), lanes)
    if not dtype.is_float:
        node = to_vector_register(sel, node, FLOAT_OF_WIDTH[dtype.itemsize])
    return sel.pure(_broadcast_op(dtype, lanes), dtype, (node,), lanes)


def _broadcast_op(dtype: DType, lanes: int) -> X86Op:
    # VBROADCASTSD has no form with a 128-bit destination
    if dtype is dtypes.float64 and lanes == 2:
        return X86Ops.VMOVDDUP
    return X86Ops[_BROADCAST[dtype.itemsize, dtype.is_float]]


_BROADCAST = {
    (1, False): "VPBROADCASTB",
    (2, False): "VPBROADCASTW",
    (4, False): "VPBROADCASTD",
    (8, False): "VPBROADCASTQ",
    (2, True): "VPBROADCASTW",
    (4, True): "VBROADCASTSS",
    (8, True): "VBROADCASTSD",
}


def vec(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    """``u`` in a register of ``lanes`` lanes: a scalar beside a vector is broadcast."""
    if lanes == 1 or u.shape:
        return reg(sel, u)
    return broadcast(sel, u, dtype, lanes)


def fold(sel: Selection, u: UOp) -> Memory | None:
    """The memory operand of a load that only this instruction reads, if it may move here."""
    pending = sel.pending.get(u)
    if pending is None or sel.uses.get(u) != 1:
        return None
    del sel.pending[u]
    base, index, disp, scale = pending.memory
    return base, index, disp, scale


def vec_or_mem(sel: Selection, u: UOp, dtype: DType, lanes: int) -> tuple[UOp, ...]:
    """The last operand of a vector instruction: memory where that reads just the operand's bytes, else a register.

    With EVEX a scalar in memory is read into every lane. One that several instructions read is a register: a load each
    would keep the load ports busy.
    """
    if foldable(sel, u, dtype, lanes):
        mem = fold(sel, u)
        assert mem is not None
        if lanes > 1 and not u.shape:
            return (*mem[:3], broadcast_size(mem[3]))
        return mem
    return (vec(sel, u, dtype, lanes),)


def foldable(sel: Selection, u: UOp, dtype: DType, lanes: int) -> bool:
    """Whether ``vec_or_mem`` would give memory."""
    if u not in sel.pending or sel.uses.get(u) != 1:
        return False
    size = dtype.itemsize
    return lanes == 1 or size * lanes >= 16 and (bool(u.shape) or size >= 4 and sel.level.evex)


BROADCAST = "broadcast"  # tag of the scale of a memory operand that is one element, read into every lane


def broadcast_size(size: UOp) -> UOp:
    """The scale of a memory operand, marked for a broadcast."""
    return UOp(Ops.CAST, size.src, size.arg, BROADCAST)


def join(sel: Selection, parts: list[UOp], dtype: DType, lanes: int) -> UOp:
    """Registers of equal width side by side: pairs make one of 32 bytes, pairs of those one of 64."""
    count = lanes // len(parts)
    while len(parts) > 1:
        count *= 2
        bits = "128" if count * dtype.itemsize <= 32 else "64X4"
        op = X86Ops[f"VINSERT{'F' if dtype.is_float else 'I'}{bits}"]
        pairs = zip(parts[::2], parts[1::2])
        parts = [sel.emit(op, dtype, (view(sel, a, dtype, count), b, imm(dtypes.int8, 1)), count) for a, b in pairs]
    return view(sel, parts[0], dtype, lanes)


# *** opmasks ***
def is_opmask(node: UOp) -> bool:
    """Whether an instruction's result is in an opmask register."""
    arg = node.arg
    return len(arg) == 3 and arg[1] is dtypes.bool


def zeroing(sel: Selection, mask: UOp) -> UOp:
    """``mask`` as the operand of an instruction that clears the lanes it leaves out."""
    return sel.alias(X86Ops.ZEROING, mask, dtypes.bool, mask.arg[2])


def masked_move(dtype: DType) -> X86Op:
    """The move of ``dtype`` whose mask has a bit per element."""
    if dtype is dtypes.float32:
        return X86Ops.VMOVUPS
    return X86Ops.VMOVUPD if dtype is dtypes.float64 else X86Ops[f"VMOVDQU{dtype.itemsize * 8}"]


def all_zero(u: UOp) -> bool:
    """Whether every byte of a literal is 0."""
    if u.op is Ops.STACK:
        return all(all_zero(s) for s in u.src)
    return u.is_const and literal_bits(u.const_value, u.dtype) == 0


def lane_of(u: UOp, lane: int) -> UOp:
    """One lane of a vector node as a node; a scalar is itself."""
    if not u.shape:
        return u
    return u.src[lane] if u.op is Ops.STACK else UOp(Ops.INDEX, (u, UOp(Ops.CONST, (), lane)))


def by_lanes(sel: Selection, u: UOp) -> UOp:
    """A vector op that has no vector form, one lane after the other."""
    parts = tuple(UOp(u.op, tuple(lane_of(s, i) for s in u.src), u.arg) for i in range(lanes_of(u)))
    return sel.value(UOp(Ops.STACK, parts))


# *** opcodes by type ***
_float_ops: dict[tuple[str, DType, bool], X86Op] = {}


def float_op(base: str, dtype: DType, lanes: int) -> X86Op:
    """``VADD`` as VADDSS, VADDSD, VADDPS or VADDPD."""
    key = (base, dtype, lanes > 1)
    op = _float_ops.get(key)
    if op is None:
        op = _float_ops[key] = X86Ops[f"{base}{'P' if lanes > 1 else 'S'}{'S' if dtype is dtypes.float32 else 'D'}"]
    return op


def bitwise_op(sel: Selection, base: str, itemsize: int = 4) -> X86Op:
    """``VPAND`` (VPOR, VPXOR, VPANDN); in EVEX its name says the size of a broadcast element."""
    return X86Ops[base + ("Q" if itemsize == 8 else "D") if sel.level.evex else base]


INT_SUFFIX = {1: "B", 2: "W", 4: "D", 8: "Q"}


def int_vec_op(base: str, itemsize: int) -> X86Op:
    """``VPADD`` as VPADDB, VPADDW, VPADDD or VPADDQ."""
    return X86Ops[base + INT_SUFFIX[itemsize]]
