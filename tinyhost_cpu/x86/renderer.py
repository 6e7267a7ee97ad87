"""X86Renderer: linear programs to x86-64 machine code.

What exists natively (``NATIVE``, ``supports``, ``supports_cast``) is data that code generation reads to decide what
stays a vector; the selection rules are the ``isel_*`` files. The text of a program is hex.
"""

from __future__ import annotations

from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.isa.framework import HexCompiler, ISARenderer
from tinyhost.renderer.isa.regalloc import Allocation, Inst, VReg
from tinyhost.renderer.isa.registers import Register
from tinyhost.renderer.isa.selection import Rule, Selection
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import isel_alu, isel_bool, isel_cast, isel_control, isel_memory, isel_vector
from tinyhost_cpu.x86.caps import capabilities
from tinyhost_cpu.x86.emit import emit
from tinyhost_cpu.x86.encode import Imm, Mem, Reg, encode
from tinyhost_cpu.x86.lower import lower
from tinyhost_cpu.x86.printer import format_instruction
from tinyhost_cpu.x86.registers import ENV, kind_of

RULES: dict[Ops, Rule] = {
    Ops.CONST: isel_control.nothing,
    Ops.NOOP: isel_control.nothing,
    Ops.SINK: isel_control.nothing,
    Ops.GROUP: isel_control.nothing,
    Ops.BARRIER: isel_control.nothing,
    Ops.PARAM: isel_control.param,
    Ops.BUFFER: isel_memory.buffer,
    Ops.AFTER: isel_control.after,
    Ops.RANGE: isel_control.range_,
    Ops.END: isel_control.end,
    Ops.IF: isel_control.if_,
    Ops.ENDIF: isel_control.endif,
    Ops.INDEX: isel_vector.index,
    Ops.SHRINK: isel_vector.shrink,
    Ops.STACK: isel_vector.stack,
    Ops.LOAD: isel_memory.load,
    Ops.STORE: isel_memory.store,
    Ops.CAST: isel_cast.cast,
    Ops.BITCAST: isel_cast.bitcast,
    **dict.fromkeys((Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.AND, Ops.OR, Ops.XOR), isel_alu.binary),
    **dict.fromkeys((Ops.SHL, Ops.SHR), isel_alu.shift),
    **dict.fromkeys((Ops.CDIV, Ops.CMOD), isel_alu.divide),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL), isel_alu.unary),
    **dict.fromkeys(GroupOp.Comparison, isel_bool.compare),
    Ops.MAX: isel_alu.maximum,
    Ops.NEG: isel_alu.negate,
    Ops.WHERE: isel_bool.where,
    Ops.MULACC: isel_alu.mulacc,
}
_FLOATS = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})
_ARITHMETIC = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.NEG, *GroupOp.Comparison, Ops.WHERE, Ops.MULACC})
_FLOAT_ONLY = frozenset({Ops.FDIV, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC})
_INT_ONLY = frozenset({Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD})
_DATA = frozenset({Ops.LOAD, Ops.STORE, Ops.STACK, Ops.INDEX, Ops.BITCAST, Ops.CAST})
NATIVE = _ARITHMETIC | _FLOAT_ONLY | _INT_ONLY
_BOOL_OPS = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, *GroupOp.Comparison})


class X86Renderer(ISARenderer):
    """Machine code for x86-64-v3.

    Raises:
        RendererUnavailable: the target lacks AVX2, FMA, F16C or BMI2.
    """

    name = "X86"
    rules = RULES
    env = ENV
    code_for_op = NATIVE

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.caps = capabilities(target.arch)
        self.compiler = X86Compiler()

    # *** what exists ***
    def supports(self, op: Ops, dtype: DType, lanes: int = 1) -> bool:
        """Whether ``op`` has instructions for ``lanes`` lanes of ``dtype``."""
        if dtype.itemsize * lanes > self.caps.vector_bytes:
            return False
        if op in _DATA:
            return dtype in self.caps.dtypes
        if dtype is dtypes.bool:
            return op in _BOOL_OPS
        if op not in NATIVE or dtype not in self.caps.dtypes:
            return False
        if dtype in _FLOATS:
            # 16-bit floats are computed in float32, eight at a time
            return op not in _INT_ONLY and (dtype.itemsize > 2 or lanes <= 8)
        if op in _FLOAT_ONLY:
            return False
        # shifts of narrow lanes by literals exist; variable counts are rare and taken apart in selection
        return lanes == 1 or op not in (Ops.CDIV, Ops.CMOD)

    def supports_cast(self, src: DType, dst: DType, lanes: int = 1) -> bool:
        """Whether a conversion exists for ``lanes`` lanes."""
        if src not in self.caps.dtypes or dst not in self.caps.dtypes:
            return False
        if lanes == 1 or src is dtypes.bool:
            return True
        if dst is dtypes.bool:
            return self.supports(Ops.CMPNE, src, lanes)
        widest = max(src.itemsize, dst.itemsize)
        if src.itemsize == 2 and src.is_float or dst.itemsize == 2 and dst.is_float:
            widest = max(
                widest, 8 if dst is dtypes.bfloat16 and src.is_int and src.itemsize == 4 else 4
            )  # the type between
        if widest * lanes > self.caps.vector_bytes:
            return False
        quads = (dtypes.int64, dtypes.uint64)
        return not (src in quads and dst.is_float or dst in quads and src.is_float)

    # *** the framework's hooks ***
    def begin(self, sel: Selection, uops: list[UOp]) -> None:
        """Arguments, register variables, nodes without a value of their own."""
        isel_memory.find_skipped(sel, uops)
        isel_bool.find_flag_only(sel, uops)
        isel_control.select_arguments(sel, uops)
        isel_memory.assign_storage(sel, uops)

    def results(self, node: UOp) -> tuple[int, ...]:
        """Registers defined by a division, or the flags of a comparison."""
        op = node.arg[0]
        if op.implicit_results:
            return node.tag, node.tag + 1
        return (node.tag,) if op.writes_flags else ()

    def lower(self, nodes: list[UOp], count: int) -> tuple[list[Inst], list[VReg]]:
        """See ``lower``."""
        return lower(nodes, count)

    def emit(
        self,
        insts: list[Inst],
        allocation: Allocation,
        vregs: list[VReg],
        frame_bytes: int,
        text: list[str] | None = None,
    ) -> bytes:
        """See ``emit``."""
        return emit(insts, allocation, vregs, frame_bytes, text)

    # *** physical instructions ***
    def encode(self, nodes: list[UOp]) -> bytes:
        """Bytes of instructions over physical registers."""
        return b"".join(encode(node.arg[0], *physical_operands(node)) for node in nodes)

    def asm_text(self, nodes: list[UOp]) -> str:
        """Intel syntax of instructions over physical registers."""
        return "\n".join(format_instruction(node.arg[0], *physical_operands(node)) for node in nodes)


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
    bits = scale.arg.itemsize * 8 if not op.forms[0].vex else 0
    return Mem(
        _register(base).number,
        number,
        int(scale.src[0].arg),
        value,
        bits,
        disp.arg.itemsize == 4 and -128 <= value < 128,
    )


class X86Compiler(HexCompiler):
    """Hex to bytes; listings come from iced-x86 where that is installed."""

    def __init__(self) -> None:
        super().__init__("x86")

    def disassemble(self, lib: bytes) -> str:
        """A listing of ``lib``."""
        try:
            import iced_x86
        except ImportError:
            return super().disassemble(lib)
        formatter = iced_x86.Formatter(iced_x86.FormatterSyntax.INTEL)
        lines = (
            f"{i.ip:6x}  {lib[i.ip : i.ip + i.len].hex():<24} {formatter.format(i)}"
            for i in iced_x86.Decoder(64, lib, ip=0)
        )
        return "\n".join(lines)
