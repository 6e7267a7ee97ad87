"""Intel syntax of one instruction, as assemblers read it.

Takes a form with plain operands, or a mnemonic with the operands that ``encode`` takes; gives one line of text: that of
the instruction which ``assemble`` makes of them, so the EVEX twin's where a vector register from 16 up asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhost_cpu.x86.encode import Imm, Mem, Reg, high_registers, operand_kind, plain_operand
from tinyhost_cpu.x86.forms import (
    BCST,
    DECORATION_WORDS,
    GPR_KINDS,
    IMM_KINDS,
    MASK,
    R8,
    R16,
    R32,
    R64,
    REL8,
    REL32,
    ROUNDING_KINDS,
    VEC_KINDS,
    XMM,
    YMM,
    ZEROING,
    ZMM,
    Form,
)
from tinyhost_cpu.x86.insns import X86Op

_LEGACY = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
_BYTE = ("al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil")
NAMES: dict[int, tuple[str, ...]] = {
    R8: _BYTE + tuple(f"r{i}b" for i in range(8, 16)),
    R16: _LEGACY + tuple(f"r{i}w" for i in range(8, 16)),
    R32: tuple("e" + n for n in _LEGACY) + tuple(f"r{i}d" for i in range(8, 16)),
    R64: tuple("r" + n for n in _LEGACY) + tuple(f"r{i}" for i in range(8, 16)),
    XMM: tuple(f"xmm{i}" for i in range(32)),
    YMM: tuple(f"ymm{i}" for i in range(32)),
    ZMM: tuple(f"zmm{i}" for i in range(32)),
    MASK: tuple(f"k{i}" for i in range(8)),
}
_WIDTH = {8: "byte", 16: "word", 32: "dword", 64: "qword", 128: "xmmword", 256: "ymmword", 512: "zmmword"}


def _number(value: int) -> str:
    return str(value) if -10 < value < 10 else hex(value)


def format_memory(mem: Mem, bits: int) -> str:
    """``dword ptr [rdi+rsi*4+0xa]``; ``bits`` is the access width."""
    text = NAMES[R64][mem.base]
    if mem.idx >= 0:
        text += f"+{NAMES[mem.vector or R64][mem.idx]}*{mem.scale}"
    if mem.disp:
        text += ("+" if mem.disp > 0 else "-") + _number(abs(mem.disp))
    return (f"{_WIDTH[bits]} ptr " if bits else "") + f"[{text}]"


def format_form(form: Form, ops: Sequence[Any]) -> str:
    """One line from a form and its explicit operands as ``assemble`` takes them."""
    if form.vex and not form.evex and high_registers(form, ops):
        form = form.twin or form
    parts: list[str] = []
    rounding = ""
    for position, (operand, spec) in enumerate(zip(ops, form.explicit)):
        if position == form.k:
            parts[-1] += f"{{{NAMES[MASK][operand]}}}" + "{z}" * bool(spec.kinds & ZEROING)
        elif isinstance(operand, Mem):
            text = format_memory(operand, operand.bits or spec.bits)
            parts.append(f"{text}{{1to{spec.lanes}}}" if spec.kinds & BCST else text)
        elif spec.kinds & IMM_KINDS or spec.kinds & (REL8 | REL32):
            parts.append(_number(operand))
        else:
            parts.append(NAMES[spec.kinds & (GPR_KINDS | VEC_KINDS | MASK)][operand])
            rounding = rounding or DECORATION_WORDS.get(spec.kinds & ROUNDING_KINDS, "")
    if rounding:  # assemblers read it behind the last vector register
        behind = form.explicit[-1].kinds & (GPR_KINDS | IMM_KINDS)
        parts.insert(len(parts) - (behind != 0), rounding)
    if form.op.name in ("SHL", "SHR", "SAR"):
        parts += [o.text.strip("<>") for o in form.implicit]
    return f"{form.op.name.lower()} {', '.join(parts)}".strip()


def format_instruction(op: X86Op, *operands: Reg | Mem | Imm) -> str:
    """One line: mnemonic and operands.

    Raises:
        FormError: no form takes these operands.

    >>> from tinyhost_cpu.x86.insns import X86Ops
    >>> format_instruction(X86Ops.VADDPS, Reg(YMM, 1), Reg(YMM, 2), Mem(7, disp=32))
    'vaddps ymm1, ymm2, ymmword ptr [rdi+0x20]'
    """
    form = op.form(tuple(map(operand_kind, operands)))
    return format_form(form, [plain_operand(o) for o in operands])
