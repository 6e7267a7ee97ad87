"""The way from a linear program to machine code that all own back ends share.

``ISARenderer.assemble`` is the table of contents: select, drop dead code, lower to the allocator's instructions, drop
copies, reorder where registers are short, allocate registers, emit. A target gives the rules of selection, the operands
of its instructions and their bytes; it inherits the order of things. The text of a program is the hex of its bytes, so
that it travels as any other source does; ``HexCompiler`` turns it back.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from tinyhost.env import DEBUG, SPEC
from tinyhost.errors import CompileError
from tinyhost.ops import Ops
from tinyhost.renderer.base import Compiler, Renderer
from tinyhost.target import Target
from tinyhost.uop import UOp

if TYPE_CHECKING:
    from tinyhost.renderer.isa.regalloc import Allocation, Inst, MachineEnv, VReg
    from tinyhost.renderer.isa.schedule import Facts
    from tinyhost.renderer.isa.selection import Rule, Selection


class HexCompiler(Compiler):
    """Hex text to the bytes it spells."""

    def compile(self, src: str) -> bytes:
        """The bytes of ``src``.

        Raises:
            CompileError: ``src`` is not hex.
        """
        try:
            return bytes.fromhex(src)
        except ValueError as e:
            raise CompileError(f"machine code must be hex text, got {src[:60]!r}: {e}") from e


class ISARenderer(Renderer):
    """A renderer that makes machine code itself.

    Attributes:
        level: what the rules of selection ask of the target.
        checked: whether the allocation checker runs; SPEC and DEBUG imply it.
    """

    level: Any = None
    checked: bool = False

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.compiler = HexCompiler()

    # *** what a target gives ***
    @property
    @abstractmethod
    def rules(self) -> dict[Ops, Rule]:
        """The selection rule of each op."""

    @property
    @abstractmethod
    def env(self) -> MachineEnv:
        """The target's register files."""

    @abstractmethod
    def begin(self, sel: Selection, uops: list[UOp]) -> None:
        """Prepare selection: arguments, storage, nodes that need no value."""

    @abstractmethod
    def results(self, node: UOp) -> tuple[int, ...]:
        """Registers that a void or multi-result instruction defines, () if it is kept for its effect."""

    @abstractmethod
    def lower(self, nodes: list[UOp], count: int) -> tuple[list[Inst], list[VReg]]:
        """Instructions and registers (``count`` of them) for the allocator."""

    def facts(self) -> Facts | None:
        """What the scheduler may know of this target's instructions; None keeps their order."""
        return None

    @abstractmethod
    def emit(
        self,
        insts: list[Inst],
        allocation: Allocation,
        vregs: list[VReg],
        sel: Selection,
        text: list[str] | None = None,
    ) -> bytes:
        """Machine code with prologue and epilogue; its lines in assembler syntax are appended to ``text``."""

    @abstractmethod
    def encode(self, nodes: list[UOp]) -> bytes:
        """Machine code of instructions whose operands are physical registers."""

    # *** the pipeline ***
    def select(self, uops: list[UOp]) -> tuple[Selection, list[UOp]]:
        """Instructions of a program, dead ones dropped; the last node's value counts as read."""
        from tinyhost.renderer.isa.passes import eliminate
        from tinyhost.renderer.isa.selection import Selection

        sel = Selection(self.rules, self.level)
        sel.count_uses(uops)
        self.begin(sel, uops)
        nodes = sel.run(uops)
        roots = {v.tag for v in sel.variables.values()} | sel.carried
        if (last := sel.values.get(uops[-1])) is not None:
            roots.add(last.tag)
        return sel, eliminate(nodes, roots, self.results)

    def isel(self, uops: list[UOp]) -> list[UOp]:
        """The selected instructions of a program, in order."""
        return self.select(uops)[1]

    def assemble(self, uops: list[UOp], text: list[str] | None = None) -> bytes:
        """Machine code of a linear program; its lines in assembler syntax are appended to ``text``."""
        from tinyhost.renderer.isa.passes import propagate_copies
        from tinyhost.renderer.isa.regalloc import Function, run
        from tinyhost.renderer.isa.schedule import schedule

        sel, nodes = self.select(uops)
        insts, vregs = self.lower(nodes, sel.serial + 2)
        insts = propagate_copies(insts)
        if (facts := self.facts()) is not None:
            insts = schedule(insts, vregs, self.env, facts)
        checked = self.checked or SPEC.value > 0 or DEBUG.value > 0
        allocation = run(Function(insts, vregs), self.env, checked)
        return self.emit(insts, allocation, vregs, sel, text)

    def listing(self, uops: list[UOp]) -> str:
        """A linear program in assembler syntax."""
        text: list[str] = []
        self.assemble(uops, text)
        return "\n".join(text)

    def render(self, uops: list[UOp]) -> str:
        """Hex of the machine code; a list of instructions over physical registers is encoded as it stands."""
        if all(u.op is Ops.INS for u in uops):
            return self.encode(uops).hex()
        return self.assemble(uops).hex()
