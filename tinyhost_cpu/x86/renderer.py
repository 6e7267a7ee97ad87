"""X86Renderer: linear programs to x86-64 machine code.

What exists natively (``NATIVE``, ``supports``, ``supports_cast``) is data that code generation reads to decide what
stays a vector; the selection rules are the ``isel_*`` files. The text of a program is hex. What only compiling needs is
imported there: a process that finds its programs on disk asks a renderer for its capabilities alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.isa.framework import HexCompiler, ISARenderer
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost_cpu.target import thread_count
from tinyhost_cpu.x86.caps import capabilities, check_features, level_of

if TYPE_CHECKING:
    from tinyhost.renderer.isa.regalloc import Allocation, Inst, MachineEnv, VReg
    from tinyhost.renderer.isa.schedule import Facts
    from tinyhost.renderer.isa.selection import Rule, Selection

_FLOATS = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})
_ARITHMETIC = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.NEG, *GroupOp.Comparison, Ops.WHERE, Ops.MULACC})
_FLOAT_ONLY = frozenset({Ops.FDIV, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC})
_INT_ONLY = frozenset({Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD})
_DATA = frozenset({Ops.LOAD, Ops.STORE, Ops.STACK, Ops.INDEX, Ops.BITCAST, Ops.CAST})
NATIVE = _ARITHMETIC | _FLOAT_ONLY | _INT_ONLY
_BOOL_OPS = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, *GroupOp.Comparison})


class X86Renderer(ISARenderer):
    """Machine code for x86-64-v3, or for x86-64-v4 where the target has it.

    Raises:
        RendererUnavailable: the target lacks AVX2, FMA, F16C or BMI2.
    """

    name = "X86"
    code_for_op = NATIVE

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.caps = capabilities(target.arch, thread_count())
        self.level = level_of(check_features(target.arch))
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
            # 16-bit floats are computed in float32
            return op not in _INT_ONLY and max(dtype.itemsize, 4) * lanes <= self.caps.vector_bytes
        if op in _FLOAT_ONLY:
            return False
        # shifts of narrow lanes by literals exist; variable counts are rare and taken apart in selection
        return lanes == 1 or op not in (Ops.CDIV, Ops.CMOD)

    def supports_cast(self, src: DType, dst: DType, lanes: int = 1) -> bool:
        """Whether a conversion exists for ``lanes`` lanes."""
        if src not in self.caps.dtypes or dst not in self.caps.dtypes:
            return False
        if lanes == 1:
            return True
        if src is dtypes.bool:
            return dst.itemsize * lanes <= self.caps.vector_bytes
        if dst is dtypes.bool:
            return self.supports(Ops.CMPNE, src, lanes)
        widest = max(src.itemsize, dst.itemsize)
        if src.itemsize == 2 and src.is_float or dst.itemsize == 2 and dst.is_float:
            widest = max(
                widest, 8 if dst is dtypes.bfloat16 and src.is_int and src.itemsize == 4 else 4
            )  # the type between
        if widest * lanes > self.caps.vector_bytes:
            return False
        if self.level.evex:
            return True
        quads = (dtypes.int64, dtypes.uint64)
        return not (src in quads and dst.is_float or dst in quads and src.is_float)

    # *** the framework's hooks ***
    @property
    def rules(self) -> dict[Ops, Rule]:
        """See ``isel``."""
        from tinyhost_cpu.x86.isel import RULES

        return RULES

    @property
    def env(self) -> MachineEnv:
        """The register files of the level."""
        from tinyhost_cpu.x86.registers import ENV, ENV_V4

        return ENV_V4 if self.level.evex else ENV

    def begin(self, sel: Selection, uops: list[UOp]) -> None:
        """See ``isel``."""
        from tinyhost_cpu.x86.isel import begin

        begin(sel, uops)

    def results(self, node: UOp) -> tuple[int, ...]:
        """Registers defined by a division, or the flags of a comparison."""
        op = node.arg[0]
        if op.implicit_results:
            return node.tag, node.tag + 1
        return (node.tag,) if op.writes_flags else ()

    def lower(self, nodes: list[UOp], count: int) -> tuple[list[Inst], list[VReg]]:
        """See ``lower``."""
        from tinyhost_cpu.x86.lower import lower

        return lower(nodes, count)

    def facts(self) -> Facts:
        """See ``effects``."""
        from tinyhost_cpu.x86.effects import X86Facts

        return X86Facts()

    def emit(
        self,
        insts: list[Inst],
        allocation: Allocation,
        vregs: list[VReg],
        sel: Selection,
        text: list[str] | None = None,
    ) -> bytes:
        """See ``emit``."""
        from tinyhost_cpu.x86.emit import Streams, emit

        streams = Streams(sorted(sel.arguments[p] for p in sel.streamed), self.caps.vector_bytes)
        return emit(insts, allocation, vregs, sel.frame_bytes, streams, text)

    # *** physical instructions ***
    def encode(self, nodes: list[UOp]) -> bytes:
        """Bytes of instructions over physical registers."""
        from tinyhost_cpu.x86.encode import encode
        from tinyhost_cpu.x86.physical import physical_operands

        return b"".join(encode(node.arg[0], *physical_operands(node)) for node in nodes)

    def asm_text(self, nodes: list[UOp]) -> str:
        """Intel syntax of instructions over physical registers."""
        from tinyhost_cpu.x86.physical import physical_operands
        from tinyhost_cpu.x86.printer import format_instruction

        return "\n".join(format_instruction(node.arg[0], *physical_operands(node)) for node in nodes)


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
