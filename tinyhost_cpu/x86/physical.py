"""Instructions over physical registers: INS nodes as the encoder and the printer take them."""

from __future__ import annotations

from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.registers import Register
from tinyhost.uop import UOp
from tinyhost_cpu.x86.encode import Imm, Mem, Reg
from tinyhost_cpu.x86.registers import kind_of


def physical_operands(node: UOp) -> list[Reg | Mem | Imm]:
    """The operands of an INS whose registers are physical, in the order of the manual; flag sources are left out."""
    operands: list[Reg | Mem | Imm] = []
    src = [s for s in node.src if s.op is not Ops.INS or s.arg[1] is not dtypes.void]
    i = 0
    while i < len(src):
        s = src[i]
        if s.op is Ops.CAST:
            operands.append(Imm(int(s.src[0].arg), s.arg.itemsize * 8))
        elif i + 3 < len(src) and src[i + 2].op is Ops.CAST and src[i + 3].op is Ops.CAST:
            operands.append(_physical_memory(node.arg[0], *src[i : i + 4]))
            i += 3
        else:
            operands.append(Reg(kind_of(s.arg[1:]), _register(s).number))
        i += 1
    dest = kind_of(node.arg[1:])
    if dest:
        target = Reg(dest, _register(node).number)
        tied = any(f.tied and len(f.explicit) == len(operands) for f in node.arg[0].forms)
        operands = (
            [target, *operands[1:]]
            if tied and isinstance(operands[0], Reg) and _is_destination(operands, node)
            else [target, *operands]
        )
    return operands


def _is_destination(operands: list[Any], node: UOp) -> bool:
    """Whether the first source is the destination itself, as two-address forms have it."""
    return not any(not f.tied and f.has_def and len(f.explicit) == len(operands) + 1 for f in node.arg[0].forms)


def _register(node: UOp) -> Register:
    tag = node.tag[0] if isinstance(node.tag, tuple) else node.tag
    if not isinstance(tag, Register):
        raise ValueError(f"an encoded instruction needs physical registers, got tag {tag!r} on {node.arg[0]!r}")
    return tag


def _physical_memory(op: Any, base: UOp, index: UOp, disp: UOp, scale: UOp) -> Mem:
    number = -1 if index.op is Ops.NOOP else _register(index).number
    if number == 4:  # rsp cannot be an index: it means none
        number = -1
    value = int(disp.src[0].arg)
    bits = scale.arg.itemsize * 8 if not op.vex else 0
    return Mem(
        _register(base).number,
        number,
        int(scale.src[0].arg),
        value,
        bits,
        disp.arg.itemsize == 4 and -128 <= value < 128,
    )
