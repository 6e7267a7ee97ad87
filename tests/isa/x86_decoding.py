"""Operands for every form of the instruction table, and what an independent decoder makes of the bytes."""

from __future__ import annotations

import functools
import random
from typing import Any

import iced_x86

from tinyhost_cpu.x86.encode import Imm, Mem, Reg
from tinyhost_cpu.x86.insns import (
    BCST,
    DECORATIONS,
    GPR_KINDS,
    MASK,
    MEM,
    R64,
    REL8,
    REL32,
    VEC_KINDS,
    VMEM_KINDS,
    VMEM_X,
    VMEM_Y,
    XMM,
    YMM,
    ZMM,
    Form,
    Operand,
)
from tinyhost_cpu.x86.printer import NAMES

Operands = list[Reg | Mem | Imm]
REGISTERS = GPR_KINDS | VEC_KINDS | MASK
MEMORY = MEM | VMEM_KINDS


@functools.cache
def names_of(enumeration: Any) -> dict[int, str]:
    """Names of an enumeration of iced-x86 by value."""
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}


_KINDS = names_of(iced_x86.OpKind)
_REGISTERS = {value: name.lower() for value, name in names_of(iced_x86.Register).items()}
_REGISTERS |= {
    value: f"r{name[1:-1]}b"
    for value, name in names_of(iced_x86.Register).items()
    if name[0] == "R" and name[-1] == "L" and name[1].isdigit()
}


def plain(operands: Operands) -> list[Any]:
    """``operands`` as ``assemble`` takes them."""
    return [o.num if isinstance(o, Reg) else o.value if isinstance(o, Imm) else o for o in operands]


def with_index(mem: Mem, kinds: int, index: int) -> Mem:
    """``mem`` with the vector index that ``kinds`` asks for."""
    return mem._replace(idx=index, vector=XMM if kinds & VMEM_X else YMM if kinds & VMEM_Y else ZMM)


def immediate_bits(form: Form) -> int:
    return {1: 8, 2: 16, 4: 32, 8: 64}[form.imm_bytes]


# *** random operands of EVEX and opmask forms ***
def draw(form: Form, rng: random.Random, low: bool = False) -> Operands:
    """Operands for ``form``: all registers (``low``: those that VEX reaches), addressing modes and displacements."""
    top = 16 if low else 32
    numbers = rng.sample(range(top), 8)  # destination, index and mask of a gather must differ
    out: Operands = []
    for position, spec in enumerate(form.explicit):
        if spec.kinds & MEMORY and (not spec.kinds & REGISTERS or rng.random() < 0.5):
            out.append(draw_memory(form, spec, rng, numbers[position]))
        elif spec.kinds & VEC_KINDS:
            out.append(Reg(spec.kinds & (VEC_KINDS | DECORATIONS), numbers[position]))
        elif spec.kinds & MASK:
            out.append(Reg(spec.kinds & (MASK | DECORATIONS), rng.randrange(position == form.k, 8)))
        elif spec.kinds & GPR_KINDS:
            out.append(Reg(spec.kinds & (GPR_KINDS | DECORATIONS), rng.randrange(16)))
        else:
            out.append(Imm(rng.randrange(128), immediate_bits(form)))
    return out


def draw_memory(form: Form, spec: Operand, rng: random.Random, index: int) -> Mem:
    base, scale = rng.choice([rng.randrange(16), 4, 5, 12, 13]), rng.choice([1, 2, 4, 8])
    mem = Mem(base, -1, 1, draw_displacement(form.scale, rng), wide=rng.random() < 0.05)
    if spec.kinds & VMEM_KINDS:
        return with_index(mem._replace(scale=scale), spec.kinds, index)
    if rng.random() < 0.5:
        mem = mem._replace(idx=rng.choice([i for i in range(16) if i != 4]), scale=scale)
    return mem._replace(bits=spec.bits, bcst=bool(spec.kinds & BCST))


def draw_displacement(n: int, rng: random.Random) -> int:
    """Edges of a byte that counts ``n`` bytes."""
    counted = [k * n for k in (0, 1, -1, 127, -128, 128, -129)]
    return rng.choice([*counted, 127 * n + 1, -n - 1, 1, 127, -128, 128, 1 << 30, -(1 << 31)])


# *** what the decoder says ***
def decode(code: bytes) -> iced_x86.Instruction:
    """The one instruction in ``code``."""
    instruction = iced_x86.Decoder(64, code, ip=0).decode()
    assert instruction.len == len(code) and instruction.code != iced_x86.Code.INVALID, code.hex()
    return instruction


def decoded_operands(instruction: iced_x86.Instruction) -> list[Any]:
    """Operands of a decoded instruction: names, (base, index, scale, displacement, broadcast), integers."""
    out: list[Any] = []
    for i in range(instruction.op_count):
        kind = _KINDS[instruction.op_kind(i)]
        if kind == "REGISTER":
            out.append(_REGISTERS[instruction.op_register(i)])
        elif kind == "MEMORY":
            base, index = _REGISTERS[instruction.memory_base], _REGISTERS[instruction.memory_index]
            disp = instruction.memory_displacement
            disp = disp - (1 << 64) if disp >> 63 else disp
            scale = instruction.memory_index_scale if index != "none" else 1
            out.append((base, index, scale, disp, instruction.is_broadcast))
        elif kind.startswith("NEAR_BRANCH"):
            offset = (instruction.near_branch_target - instruction.len) & ((1 << 64) - 1)
            out.append(offset - (1 << 64) if offset >> 63 else offset)
        else:
            value = instruction.immediate(i)
            out.append(value - (1 << 64) if value >> 63 else value)
    if instruction.has_op_mask:
        out.insert(1, _REGISTERS[instruction.op_mask] + "{z}" * instruction.zeroing_masking)
    return out


def meant_operands(operands: Operands, form: Form) -> list[Any]:
    """``operands`` in the shape of ``decoded_operands``."""
    out: list[Any] = []
    for position, o in enumerate(operands):
        if isinstance(o, Reg):
            zeroing = position == form.k and form.explicit[position].kinds & DECORATIONS
            out.append(NAMES[o.kind & REGISTERS][o.num] + "{z}" * bool(zeroing))
        elif isinstance(o, Mem):
            index = NAMES[o.vector or R64][o.idx] if o.idx >= 0 else "none"
            out.append((NAMES[R64][o.base], index, o.scale if o.idx >= 0 else 1, o.disp, o.bcst))
        else:
            out.append(o.value)
    return out


def is_branch(spec: Operand) -> bool:
    return bool(spec.kinds & (REL8 | REL32))
