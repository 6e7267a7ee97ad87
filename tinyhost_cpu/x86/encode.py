"""Machine code of one instruction.

``assemble`` takes a form and its explicit operands as plain numbers (register number, ``Mem``, immediate) in the order
of the manual and gives bytes: it is the hot path and checks nothing that the form already fixed. ``encode`` takes
``Reg``, ``Mem`` and ``Imm`` and finds the form. A memory operand is base + index * scale + displacement; nothing is
RIP-relative. VEX operands use the two-byte prefix where it exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinyhost_cpu.x86.insns import (
    IMM8,
    IMM16,
    IMM32,
    IMM64,
    MEM,
    REL8,
    REL32,
    VMEM_X,
    VMEM_Y,
    XMM,
    YMM,
    Form,
    FormError,
    X86Op,
)


class Reg(NamedTuple):
    """A register of a given width: ``kind`` is one of R8..R64, XMM, YMM, MASK, ``num`` its number in the file."""

    kind: int
    num: int


class Mem(NamedTuple):
    """A memory operand; ``idx``, the index register, is -1 for none, ``bits`` 0 leaves the access width to the form.

    ``wide`` asks for a 32-bit displacement where 8 bits would do; ``vector`` is XMM or YMM when the index is a vector.
    """

    base: int
    idx: int = -1
    scale: int = 1
    disp: int = 0
    bits: int = 0
    wide: bool = False
    vector: int = 0


class Imm(NamedTuple):
    """An immediate; ``bits`` 0 takes the shortest field that holds the value."""

    value: int
    bits: int = 0


_SCALE = {1: 0x00, 2: 0x40, 4: 0x80, 8: 0xC0}
_PP = (b"", b"\x66", b"\xf3", b"\xf2")
_memory_tails: dict[Any, bytes] = {}


def _memory_tail(reg: int, mem: Mem) -> bytes:
    """ModRM, SIB and displacement of ``mem`` with ``reg`` (0-7) in the reg field."""
    key = (reg, mem)
    tail = _memory_tails.get(key)
    if tail is None:
        if len(_memory_tails) > 20000:
            _memory_tails.clear()
        tail = _memory_tails[key] = _make_memory_tail(reg, mem)
    return tail


def _make_memory_tail(reg: int, mem: Mem) -> bytes:
    base, disp = mem.base & 7, mem.disp
    if disp == 0 and base != 5 and not mem.wide:
        mod, tail = 0x00, b""
    elif -128 <= disp < 128 and not mem.wide:
        mod, tail = 0x40, disp.to_bytes(1, "little", signed=True)
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
    """The immediate field, or the register in its upper half."""
    if form.s >= 0:
        return bytes((ops[form.s] << 4,))
    size = form.imm_bytes
    value: int = ops[form.i] & ((1 << size * 8) - 1)
    return value.to_bytes(size, "little")


def _encode_vex(form: Form, ops: Sequence[Any]) -> bytes:
    reg: int = ops[form.r] if form.r >= 0 else form.ext
    vvvv = ops[form.v] if form.v >= 0 else 0
    rm = ops[form.m]
    if rm.__class__ is int:
        tail = bytes((0xC0 | (reg & 7) << 3 | rm & 7,))
        xb = 0x40 | (0x20 if rm < 8 else 0)
    else:
        tail = _memory_tail(reg & 7, rm)
        xb = (0x40 if rm.idx < 8 else 0) | (0x20 if rm.base < 8 else 0)
    r = 0x80 if reg < 8 else 0
    low = (~vvvv & 15) << 3 | form.length << 2 | form.pp
    if xb == 0x60 and form.map == 1 and not form.w:
        head = bytes((0xC5, r | low, form.opcode))
    else:
        head = bytes((0xC4, r | xb | form.map, form.w << 7 | low, form.opcode))
    if form.s >= 0 or form.imm_bytes:
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
    return bytes((0xC5, 0xF8 | form.length << 2 | form.pp, form.opcode))


def assemble(form: Form, ops: Sequence[Any]) -> bytes:
    """Bytes of ``form``; ``ops`` are its explicit operands as register numbers, ``Mem`` and integers."""
    encoder = form.encoder
    if encoder is None:
        encoder = _encode_legacy if not form.vex else _encode_vex if form.m >= 0 else _encode_bare
        form.encoder = encoder
    return encoder(form, ops)


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
        vector = VMEM_X if operand.vector == XMM else VMEM_Y if operand.vector == YMM else MEM
        return vector | operand.bits << 20
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
