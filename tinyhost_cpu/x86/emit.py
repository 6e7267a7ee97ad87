"""Allocated instructions to bytes: prologue, body with the allocator's edits, epilogue, jumps.

The frame, from rsp upwards: buffers of the kernel, spill slots, pushed registers, return address, stack arguments. Edits
are moves only, so they may stand between a comparison and its reader.
"""
from __future__ import annotations

from typing import Any

from tinyhost.renderer.isa.regalloc import Allocation, Edit, EditKind, Inst, Kind, VReg
from tinyhost_cpu.x86.encode import Mem, assemble
from tinyhost_cpu.x86.insns import IMM8, IMM32, MEM, R64, REL8, REL32, XMM, YMM, X86Ops
from tinyhost_cpu.x86.isel_bool import CONDITION_NAMES
from tinyhost_cpu.x86.lower import IMMEDIATE, MEMORY, REGISTER, Machine
from tinyhost_cpu.x86.registers import STACK_ARGS, VEC_BASE, VEC_CLASS

RSP = 4


class Emitter:
    """Bytes of one function."""

    def __init__(self, allocation: Allocation, vregs: list[VReg], buffers: int) -> None:
        self.allocation, self.vregs = allocation, vregs
        self.slots = [buffers + slot.offset for slot in allocation.slots]
        self.saved = allocation.used_callee_saved
        self.frame = -(-(buffers + allocation.frame_size) // 16) * 16
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
            self.definitions = {inst.vregs[0]: inst for inst in insts
                                if len(inst.vregs) == 1 and inst.signature.operands[0].is_def}
        self._prologue()
        out = self.out
        plain = Kind.OP
        for i, inst in enumerate(insts):
            if i in edits:
                for edit in edits[i]:
                    self._edit(edit)
            if inst.kind is plain:
                out += self._instruction(inst.opcode, locations[i])
            else:
                self._special(inst, locations[i])
        for at, target in self.fixups:
            out[at:at + 4] = (self.labels[target] - at - 4).to_bytes(4, "little", signed=True)
        return bytes(out)

    # *** instructions ***
    def _operand(self, location: int) -> Any:
        return location & 15 if location >= 0 else Mem(RSP, -1, 1, self.slots[~location])

    def _memory(self, m: Machine, entry: tuple[int, ...], loc: tuple[int, ...]) -> Mem:
        index = loc[entry[2]] if entry[2] >= 0 else -1
        if entry[1] >= 0:
            return Mem(loc[entry[1]], index, m.scale, m.disp)
        return Mem(RSP, index, m.scale, m.disp + (self.arguments if m.base is STACK_ARGS else 0))

    def _instruction(self, m: Machine, loc: tuple[int, ...]) -> bytes:
        template = m.template
        form = template.form
        if form is None:
            return b""
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
        code = assemble(form, ops)
        if template.op is X86Ops.SKIP_LOAD or template.op is X86Ops.SKIP_STORE:
            return bytes((0x70 | m.imm, len(code))) + code  # jcc over it (Jcc rel8)
        return code

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
        elif kind is Kind.RET:
            self._epilogue()
        else:
            self._jump(inst)

    def _jump(self, inst: Inst) -> None:
        op = inst.opcode.template.op
        target = self.labels.get(inst.target)
        if target is not None and target - len(self.out) - 2 >= -128:
            self.out += assemble(op.form((REL8,)), (target - len(self.out) - 2,))
            return
        self.out += assemble(op.form((REL32,)), (0,))
        self.fixups.append((len(self.out) - 4, inst.target))

    # *** what the allocator inserted ***
    def _edit(self, edit: Edit) -> None:
        kind = edit.kind
        vreg = self.vregs[edit.vreg]
        if kind is EditKind.REMAT:
            self.out += self._instruction(self.definitions[edit.vreg].opcode, (edit.dst,))
        elif kind is EditKind.SWAP:
            self.out += assemble(_XCHG, (edit.dst, edit.src))
        elif vreg.cls == VEC_CLASS:
            wide = YMM if vreg.size > 16 else XMM
            op = X86Ops.VMOVAPS if kind is EditKind.MOVE else X86Ops.VMOVUPS
            self.out += self._move(op, wide, edit)
        else:
            self.out += self._move(X86Ops.MOV, R64, edit)

    def _move(self, op: Any, width: int, edit: Edit) -> bytes:
        if edit.kind is EditKind.MOVE:
            return assemble(op.form((width, width)), (edit.dst & 15, edit.src & 15))
        if edit.kind is EditKind.SPILL:
            return assemble(op.form((MEM, width)), (self._operand(edit.dst), edit.src & 15))
        return assemble(op.form((width, MEM)), (edit.dst & 15, self._operand(edit.src)))

    # *** frame ***
    def _prologue(self) -> None:
        for reg in self.saved:
            self.out += assemble(_PUSH, (reg,))
        self._adjust(X86Ops.SUB)

    def _adjust(self, op: Any) -> None:
        if self.frame:
            small = self.frame < 128
            self.out += assemble(op.form((R64, IMM8 if small else IMM32)), (RSP, self.frame))

    def _epilogue(self) -> None:
        if any(v.cls == VEC_CLASS and v.size > 16 for v in self.vregs):
            self.out += assemble(X86Ops.VZEROUPPER.forms[0], ())
        self._adjust(X86Ops.ADD)
        for reg in reversed(self.saved):
            self.out += assemble(_POP, (reg,))
        self.out += assemble(X86Ops.RET.forms[0], ())


_XCHG = X86Ops.XCHG.form((R64, R64))
_PUSH, _POP = X86Ops.PUSH.form((R64,)), X86Ops.POP.form((R64,))
assert VEC_BASE == 16 and CONDITION_NAMES


def emit(insts: list[Inst], allocation: Allocation, vregs: list[VReg], buffers: int) -> bytes:
    """Machine code of an allocated function with ``buffers`` bytes of own storage in its frame."""
    return Emitter(allocation, vregs, buffers).run(insts)
