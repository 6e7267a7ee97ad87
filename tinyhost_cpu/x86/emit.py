"""Allocated instructions to bytes: prologue, body with the allocator's edits, epilogue, jumps.

The frame, from rsp upwards: buffers of the kernel, spill slots, the caller's MXCSR, pushed registers, return address,
stack arguments. Edits are moves only, so they may stand between a comparison and its reader. A function that touches
vector registers runs with the default MXCSR (round to nearest, denormals kept, exceptions masked) whatever its caller
uses, and gives the caller's back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhost.renderer.isa.regalloc import Allocation, Edit, EditKind, Inst, Kind, VReg
from tinyhost_cpu.x86.encode import Mem, assemble, imm_kinds
from tinyhost_cpu.x86.insns import IMM32, MEM, R64, REL8, REL32, XMM, YMM, Form, X86Op, X86Ops
from tinyhost_cpu.x86.lower import IMMEDIATE, MEMORY, REGISTER, Machine
from tinyhost_cpu.x86.printer import format_form
from tinyhost_cpu.x86.registers import STACK_ARGS, VEC_CLASS

RSP = 4
DEFAULT_MXCSR = 0x1F80  # Intel SDM 1, 10.2.3: its value after reset


class Emitter:
    """Bytes of one function, and its text if ``text`` is a list."""

    def __init__(self, allocation: Allocation, vregs: list[VReg], buffers: int, text: list[str] | None = None) -> None:
        self.allocation, self.vregs, self.text = allocation, vregs, text
        self.slots = [buffers + slot.offset for slot in allocation.slots]
        self.saved = allocation.used_callee_saved
        self.vector = any(v.cls == VEC_CLASS for v in vregs)
        self.wide = any(v.cls == VEC_CLASS and v.size > 16 for v in vregs)
        self.control = buffers + allocation.frame_size  # where MXCSR is kept
        self.frame = -(-(self.control + 8 * self.vector) // 16) * 16
        # return address and pushed registers lie between the frame and the stack arguments
        self.arguments = self.frame + 8 * len(self.saved) + 8
        self.out = bytearray()
        self.labels: dict[Any, int] = {}
        self.fixups: list[tuple[int, Any]] = []
        self.definitions: dict[int, Inst] = {}

    def run(self, insts: list[Inst]) -> bytes:
        """Code of the whole function."""
        edits, locations = self.allocation.edits, self.allocation.locations
        if any(e.kind is EditKind.REMAT for group in edits.values() for e in group):
            self.definitions = {
                inst.vregs[0]: inst for inst in insts if len(inst.vregs) == 1 and inst.signature.operands[0].is_def
            }
        self._prologue()
        plain = Kind.OP
        for i, inst in enumerate(insts):
            if i in edits:
                for edit in edits[i]:
                    self._edit(edit)
            if inst.kind is plain:
                self._instruction(inst.opcode, locations[i])
            else:
                self._special(inst, locations[i])
        for at, target in self.fixups:
            self.out[at : at + 4] = (self.labels[target] - at - 4).to_bytes(4, "little", signed=True)
        return bytes(self.out)

    def _put(self, form: Form, ops: Sequence[Any]) -> None:
        """Append one instruction."""
        self.out += assemble(form, ops)
        if self.text is not None:
            self.text.append("  " + format_form(form, ops))

    # *** instructions ***
    def _operand(self, location: int) -> Any:
        return location & 15 if location >= 0 else Mem(RSP, -1, 1, self.slots[~location])

    def _memory(self, m: Machine, entry: tuple[int, ...], loc: tuple[int, ...]) -> Mem:
        index = loc[entry[2]] if entry[2] >= 0 else -1
        if entry[1] >= 0:
            return Mem(loc[entry[1]], index, m.scale, m.disp)
        return Mem(RSP, index, m.scale, m.disp + (self.arguments if m.base is STACK_ARGS else 0))

    def _instruction(self, m: Machine, loc: tuple[int, ...]) -> None:
        template = m.template
        form = template.form
        if form is None:
            return
        ops: list[Any] = []
        for entry in template.fetch:
            c = entry[0]
            if c == REGISTER:
                location = loc[entry[1]]
                ops.append(location & 15 if location >= 0 else self._operand(location))
            elif c == MEMORY:
                ops.append(self._memory(m, entry, loc))
            else:
                ops.append(m.imm if c == IMMEDIATE else 0)
        if template.op is X86Ops.SKIP_LOAD or template.op is X86Ops.SKIP_STORE:
            # jcc over one instruction: 0x70 | condition is Jcc rel8
            self.out += bytes((0x70 | m.imm, len(assemble(form, ops))))
            if self.text is not None:
                self.text.append(f"  j{_CONDITIONS[m.imm]} over the next")
        self._put(form, ops)

    def _special(self, inst: Inst, loc: tuple[int, ...]) -> None:
        kind = inst.kind
        if kind is Kind.COPY:
            dst, src = loc
            if src < 0:
                self._edit(Edit(EditKind.FILL, inst.vregs[0], dst, src))
            elif dst != src:
                self._edit(Edit(EditKind.MOVE, inst.vregs[0], dst, src))
        elif kind is Kind.LABEL:
            self.labels[inst.target] = len(self.out)
            if self.text is not None:
                self.text.append(f"L{inst.target}:")
        elif kind is Kind.RET:
            self._epilogue()
        else:
            self._jump(inst)

    def _jump(self, inst: Inst) -> None:
        op = inst.opcode.template.op
        target = self.labels.get(inst.target)
        if target is not None and target - len(self.out) - 2 >= -128:
            self.out += assemble(op.form((REL8,)), (target - len(self.out) - 2,))
        else:
            self.out += assemble(op.form((REL32,)), (0,))
            self.fixups.append((len(self.out) - 4, inst.target))
        if self.text is not None:
            self.text.append(f"  {op.name.lower()} L{inst.target}")

    # *** what the allocator inserted ***
    def _edit(self, edit: Edit) -> None:
        kind = edit.kind
        vreg = self.vregs[edit.vreg]
        if kind is EditKind.REMAT:
            self._instruction(self.definitions[edit.vreg].opcode, (edit.dst,))
        elif kind is EditKind.SWAP:
            self._put(_XCHG, (edit.dst, edit.src))
        elif vreg.cls == VEC_CLASS:
            op = X86Ops.VMOVAPS if kind is EditKind.MOVE else X86Ops.VMOVUPS
            self._move(op, YMM if vreg.size > 16 else XMM, edit)
        else:
            self._move(X86Ops.MOV, R64, edit)

    def _move(self, op: X86Op, width: int, edit: Edit) -> None:
        if edit.kind is EditKind.MOVE:
            self._put(op.form((width, width)), (edit.dst & 15, edit.src & 15))
        elif edit.kind is EditKind.SPILL:
            self._put(op.form((MEM, width)), (self._operand(edit.dst), edit.src & 15))
        else:
            self._put(op.form((width, MEM)), (edit.dst & 15, self._operand(edit.src)))

    # *** frame ***
    def _prologue(self) -> None:
        for reg in self.saved:
            self._put(_PUSH, (reg,))
        self._adjust(X86Ops.SUB)
        if self.vector:
            kept, wanted = Mem(RSP, disp=self.control), Mem(RSP, disp=self.control + 4)
            self._put(X86Ops.STMXCSR.forms[0], (kept,))
            self._put(X86Ops.MOV.form((MEM | 32 << 20, IMM32)), (wanted, DEFAULT_MXCSR))
            self._put(X86Ops.LDMXCSR.forms[0], (wanted,))

    def _adjust(self, op: X86Op) -> None:
        if self.frame:
            self._put(op.form((R64, imm_kinds(self.frame))), (RSP, self.frame))

    def _epilogue(self) -> None:
        if self.wide:
            self._put(X86Ops.VZEROUPPER.forms[0], ())
        if self.vector:
            self._put(X86Ops.LDMXCSR.forms[0], (Mem(RSP, disp=self.control),))
        self._adjust(X86Ops.ADD)
        for reg in reversed(self.saved):
            self._put(_POP, (reg,))
        self._put(X86Ops.RET.forms[0], ())


_XCHG = X86Ops.XCHG.form((R64, R64))
_PUSH, _POP = X86Ops.PUSH.form((R64,)), X86Ops.POP.form((R64,))
_CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")


def emit(
    insts: list[Inst], allocation: Allocation, vregs: list[VReg], buffers: int, text: list[str] | None = None
) -> bytes:
    """Machine code of an allocated function with ``buffers`` bytes of own storage in its frame."""
    return Emitter(allocation, vregs, buffers, text).run(insts)
