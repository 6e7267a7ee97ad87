"""Machine code of one instruction.

``assemble`` takes a form and its explicit operands as plain numbers (register number, ``Mem``, immediate) in the order
of the manual and gives bytes: it is the hot path and checks nothing that the form already fixed. ``encode`` takes
``Reg``, ``Mem`` and ``Imm`` and finds the form. A memory operand is base + index * scale + displacement; nothing is
RIP-relative. VEX uses the two-byte prefix where it exists. A VEX form with a vector register from 16 up is encoded as
its EVEX twin; EVEX stores a displacement that is a multiple of the access as one byte (disp8*N).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinyhost_cpu.x86.forms import (
    BCST,
    IMM8,
    IMM16,
    IMM32,
    IMM64,
    MEM,
    REL8,
    REL32,
    VEC_KINDS,
    VMEM_KINDS,
    VMEM_X,
    VMEM_Y,
    VMEM_Z,
    XMM,
    YMM,
    ZMM,
    Form,
    FormError,
)
from tinyhost_cpu.x86.insns import X86Op


class Reg(NamedTuple):
    """A register of a given width: ``kind`` is one of R8..R64, XMM..ZMM, MASK, ``num`` its number in the file.

    ``MASK | ZEROING`` is an opmask that clears the lanes it turns off.
    """

    kind: int
    num: int


class Mem(NamedTuple):
    """A memory operand; ``idx``, the index register, is -1 for none, ``bits`` 0 leaves the access width to the form.

    ``wide`` asks for a 32-bit displacement where 8 bits would do; ``vector`` is XMM, YMM or ZMM when the index is a
    vector; ``bcst`` reads one element for all lanes.
    """

    base: int
    idx: int = -1
    scale: int = 1
    disp: int = 0
    bits: int = 0
    wide: bool = False
    vector: int = 0
    bcst: bool = False


class Imm(NamedTuple):
    """An immediate; ``bits`` 0 takes the shortest field that holds the value."""

    value: int
    bits: int = 0


_SCALE = {1: 0x00, 2: 0x40, 4: 0x80, 8: 0xC0}
_VECTORS = VEC_KINDS | VMEM_KINDS
_INDEX_KIND = {0: MEM, XMM: VMEM_X, YMM: VMEM_Y, ZMM: VMEM_Z}
_PP = (b"", b"\x66", b"\xf3", b"\xf2")
_memory_tails: dict[Any, bytes] = {}


def _memory_tail(reg: int, mem: Mem, scale: int = 1) -> bytes:
    """ModRM, SIB and displacement of ``mem`` with ``reg`` (0-7) in the reg field; ``scale`` is the N of disp8*N."""
    key = (reg, mem, scale)
    tail = _memory_tails.get(key)
    if tail is None:
        if len(_memory_tails) > 20000:
            _memory_tails.clear()
        tail = _memory_tails[key] = _make_memory_tail(reg, mem, scale)
    return tail


def _make_memory_tail(reg: int, mem: Mem, scale: int) -> bytes:
    base, disp = mem.base & 7, mem.disp
    if disp == 0 and base != 5 and not mem.wide:
        mod, tail = 0x00, b""
    elif -128 * scale <= disp < 128 * scale and not disp % scale and not mem.wide:
        mod, tail = 0x40, (disp // scale).to_bytes(1, "little", signed=True)
    elif -(1 << 31) <= disp < 1 << 31:
        mod, tail = 0x80, disp.to_bytes(4, "little", signed=True)
    else:
        raise FormError(f"displacement {disp} does not fit 32 bits; add it to the base register")
    if mem.idx >= 0:
        if mem.idx == 4 and not mem.vector:
            raise FormError("rsp cannot be an index register")
        return bytes((mod | reg << 3 | 4, _SCALE[mem.scale] | (mem.idx & 7) << 3 | base)) + tail
    if base == 4:  # rsp and r12 need a SIB byte
        return bytes((mod | reg << 3 | 4, 0x20 | base)) + tail
    return bytes((mod | reg << 3 | base,)) + tail


def _immediate(form: Form, ops: Sequence[Any]) -> bytes:
    """The immediate field."""
    size = form.imm_bytes
    value: int = ops[form.i] & ((1 << size * 8) - 1)
    return value.to_bytes(size, "little")


def _encode_vex(form: Form, ops: Sequence[Any]) -> bytes:
    reg: int = ops[form.r] if form.r >= 0 else form.ext
    vvvv = ops[form.v] if form.v >= 0 else 0
    rm = ops[form.m]
    if rm.__class__ is int:
        if (reg | vvvv | rm) > 15:
            return _encode_twin(form, ops)
        tail = bytes((0xC0 | (reg & 7) << 3 | rm & 7,))
        xb = 0x40 | (0x20 if rm < 8 else 0)
    else:
        if (reg | vvvv) > 15 or rm.idx > 15:
            return _encode_twin(form, ops)
        tail = _memory_tail(reg & 7, rm)
        xb = (0x40 if rm.idx < 8 else 0) | (0x20 if rm.base < 8 else 0)
    r = 0x80 if reg < 8 else 0
    low = (~vvvv & 15) << 3 | form.bits_1
    if xb | form.bits_0 == 0x61 and low < 0x80:
        head = bytes((0xC5, r | low, form.opcode))
    else:
        head = bytes((0xC4, r | xb | form.bits_0, low, form.opcode))
    if form.imm_bytes:
        return head + tail + _immediate(form, ops)
    if form.s >= 0:  # a register in imm[7:4]
        return head + tail + bytes((ops[form.s] << 4,)) if ops[form.s] < 16 else _encode_twin(form, ops)
    return head + tail


def _encode_twin(form: Form, ops: Sequence[Any]) -> bytes:
    """A VEX form over a vector register from 16 up."""
    twin = form.twin
    if twin is None:
        registers = ", ".join(map(str, high_registers(form, ops)))
        raise FormError(
            f"{form.op.name} has no EVEX form for vector register {registers}; give it a register below 16: {form}"
        )
    return _encode_evex(twin, ops)


# payload bits that a set bit 3 or 4 of a register number clears: in ModRM.reg, and in ModRM.rm as a register
_REG_BITS = tuple((n >> 3 & 1) << 7 | (n >> 4 & 1) << 4 for n in range(32))
_RM_BITS = tuple((n >> 3 & 1) << 5 | (n >> 4 & 1) << 6 for n in range(32))


def _encode_evex(form: Form, ops: Sequence[Any]) -> bytes:
    """Intel SDM 2A, 2.7.1: 62, then R X B R' 0 mmm, W vvvv 1 pp, z L'L b V' aaa; register bits are inverted."""
    reg: int = ops[form.r] if form.r >= 0 else form.ext
    vvvv: int = ops[form.v] if form.v >= 0 else 0
    rm = ops[form.m]
    high = vvvv
    if rm.__class__ is int:
        tail = bytes((0xC0 | (reg & 7) << 3 | rm & 7,))
        first = form.bits_0 ^ _REG_BITS[reg] ^ _RM_BITS[rm]
    else:
        tail = _memory_tail(reg & 7, rm, form.scale)
        first = form.bits_0 ^ _REG_BITS[reg] ^ (rm.base & 8) << 2
        if rm.idx > 7:
            first ^= (rm.idx & 8) << 3
            high |= rm.idx
    last = form.bits_2 | (0 if high & 16 else 8)
    if form.k >= 0:
        if not ops[form.k]:
            raise FormError(f"k0 cannot be a write mask, it means no mask; use k1 to k7 or the plain form of {form}")
        last |= ops[form.k]
    head = bytes((0x62, first, form.bits_1 | (~vvvv & 15) << 3, last, form.opcode))
    if form.imm_bytes:
        return head + tail + _immediate(form, ops)
    return head + tail


def _encode_legacy(form: Form, ops: Sequence[Any]) -> bytes:
    rex = 0x48 if form.w else 0
    reg = ops[form.r] if form.r >= 0 else form.ext
    opcode, tail = form.opcode, b""
    if form.m >= 0:
        rm = ops[form.m]
        if rm.__class__ is int:
            tail = bytes((0xC0 | (reg & 7) << 3 | rm & 7,))
            rex |= (0x44 if reg > 7 else 0) | (0x41 if rm > 7 else 0)
            high = rm
        else:
            tail = _memory_tail(reg & 7, rm)
            rex |= (0x44 if reg > 7 else 0) | (0x42 if rm.idx > 7 else 0) | (0x41 if rm.base > 7 else 0)
            high = max(rm.base & -(rm.base < 8), rm.idx & -(rm.idx < 8))
        # byte operations name registers 4-7 (spl, bpl, sil, dil) only under a REX prefix
        if form.byte and (high > 3 or form.r >= 0 and reg > 3):
            rex |= 0x40
    elif form.o >= 0:
        opcode += ops[form.o] & 7
        rex |= (0x41 if ops[form.o] > 7 else 0) | (0x40 if form.byte and ops[form.o] > 3 else 0)
    head = _PP[form.pp] + (bytes((rex,)) if rex else b"") + (b"\x0f" if form.map else b"")
    body = opcode.to_bytes(2 if opcode > 255 else 1, "big") + tail
    return head + body + (_immediate(form, ops) if form.imm_bytes else b"")


def _encode_bare(form: Form, ops: Sequence[Any]) -> bytes:
    """A VEX instruction without operands."""
    return bytes((0xC5, 0xF8 | form.bits_1, form.opcode))


def assemble(form: Form, ops: Sequence[Any]) -> bytes:
    """Bytes of ``form``; ``ops`` are its explicit operands as register numbers, ``Mem`` and integers."""
    encoder = form.encoder
    if encoder is None:
        encoder = (
            _encode_legacy
            if not form.vex
            else _encode_evex
            if form.evex
            else _encode_vex
            if form.m >= 0
            else _encode_bare
        )
        form.encoder = encoder
    return encoder(form, ops)


def high_registers(form: Form, ops: Sequence[Any]) -> list[int]:
    """Numbers from 16 up among the vector registers of ``ops``, indexes of memory included."""
    numbers = [o.idx if isinstance(o, Mem) else o for o, spec in zip(ops, form.explicit) if spec.kinds & _VECTORS]
    return [n for n in numbers if n > 15]


def imm_kinds(value: int, bits: int = 0) -> int:
    """Kinds of immediate that hold ``value``: of ``bits`` bits when given, else all that reach it."""
    if bits:
        return {8: IMM8 | REL8, 16: IMM16, 32: IMM32 | REL32, 64: IMM64}[bits]
    kinds = IMM64
    if -(1 << 31) <= value < 1 << 31:
        kinds |= IMM32 | REL32
    if -(1 << 15) <= value < 1 << 15:
        kinds |= IMM16
    if -128 <= value < 128:
        kinds |= IMM8 | REL8
    return kinds


def operand_kind(operand: Reg | Mem | Imm) -> int:
    """The kind bits by which forms are chosen."""
    if isinstance(operand, Reg):
        return operand.kind
    if isinstance(operand, Mem):
        kind = _INDEX_KIND[operand.vector] | operand.bits << 20
        return kind | BCST if operand.bcst else kind
    return imm_kinds(operand.value, operand.bits)


def plain_operand(operand: Reg | Mem | Imm) -> Any:
    """The operand as ``assemble`` takes it."""
    return operand.num if isinstance(operand, Reg) else operand.value if isinstance(operand, Imm) else operand


def encode(op: X86Op, *operands: Reg | Mem | Imm) -> bytes:
    """Machine code of ``op`` with ``operands`` in the order of the manual.

    Raises:
        FormError: no form takes these operands, or a displacement does not fit.

    >>> from tinyhost_cpu.x86.insns import R32, X86Ops
    >>> encode(X86Ops.ADD, Reg(R32, 0), Mem(7, 6, 4, 10)).hex()
    '0344b70a'
    """
    form = op.form(tuple(map(operand_kind, operands)))
    return assemble(form, [plain_operand(o) for o in operands])
