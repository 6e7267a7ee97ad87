"""Allocated instructions to bytes: prologue, body with the allocator's edits, epilogue, jumps.

The frame, from rsp upwards: buffers of the kernel, spill slots, the caller's MXCSR, pushed registers, return address,
stack arguments. Edits are moves only, so they may stand between a comparison and its reader. A function that touches
vector registers runs with the default MXCSR (round to nearest, denormals kept, exceptions masked) whatever its caller
uses, and gives the caller's back.

Stores past the caches need aligned addresses, which only the run shows: a function that has them holds its body twice,
and a test at entry takes the one with plain stores where a pointer is not aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinyhost.renderer.isa.regalloc import Allocation, Edit, EditKind, Inst, Kind, VReg
from tinyhost_cpu.x86.encode import Mem, assemble, imm_kinds
from tinyhost_cpu.x86.insns import IMM32, MASK, MEM, R32, R64, REL8, REL32, XMM, YMM, ZMM, Form, X86Op, X86Ops
from tinyhost_cpu.x86.lower import IMMEDIATE, MEMORY, REGISTER, Machine
from tinyhost_cpu.x86.printer import format_form
from tinyhost_cpu.x86.registers import ARGUMENTS, MASK_CLASS, NUMBER, STACK_ARGS, VEC_CLASS

RAX, RSP = 0, 4
DEFAULT_MXCSR = 0x1F80  # Intel SDM 1, 10.2.3: its value after reset


class Streams(NamedTuple):
    """Arguments that are pointers to be aligned to ``alignment`` where stores pass by the caches."""

    arguments: Sequence[int] = ()
    alignment: int = 1


class Emitter:
    """Bytes of one function, and its text if ``text`` is a list."""

    def __init__(
        self,
        allocation: Allocation,
        vregs: list[VReg],
        buffers: int,
        streams: Streams,
        text: list[str] | None = None,
    ) -> None:
        self.streams, self.plain = streams, not streams.arguments
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
        self.heads: set[Any] = set()

    def run(self, insts: list[Inst]) -> bytes:
        """Code of the whole function."""
        if any(e.kind is EditKind.REMAT for group in self.allocation.edits.values() for e in group):
            self.definitions = {
                inst.vregs[0]: inst for inst in insts if len(inst.vregs) == 1 and inst.signature.operands[0].is_def
            }
        self.heads = innermost_heads(insts)
        self._prologue()
        if not self.plain:
            start = self._test_alignment()
            self._body(insts)
            self.out[start : start + 4] = (len(self.out) - start - 4).to_bytes(4, "little")
            self.plain = True
            self.labels, self.fixups = {}, []
        self._body(insts)
        return bytes(self.out)

    def _test_alignment(self) -> int:
        """Jump where a streamed pointer is not aligned; gives the place of the distance. Arguments are untouched."""
        for i, argument in enumerate(self.streams.arguments):
            stack = Mem(RSP, disp=self.arguments + 8 * (argument - len(ARGUMENTS)))
            source = ARGUMENTS[argument] if argument < len(ARGUMENTS) else stack
            op = X86Ops.OR if i else X86Ops.MOV
            self._put(op.form((R32, R32 if source.__class__ is int else MEM | 32 << 20)), (RAX, source))
        self._put(X86Ops.TEST.form((R32, IMM32)), (RAX, self.streams.alignment - 1))
        self._put(X86Ops.JNE.form((REL32,)), (0,))
        return len(self.out) - 4

    def _body(self, insts: list[Inst]) -> None:
        edits, locations = self.allocation.edits, self.allocation.locations
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

    def _put(self, form: Form, ops: Sequence[Any]) -> None:
        """Append one instruction."""
        self.out += assemble(form, ops)
        if self.text is not None:
            self.text.append("  " + format_form(form, ops))

    # *** instructions ***
    def _operand(self, location: int) -> Any:
        return NUMBER[location] if location >= 0 else Mem(RSP, -1, 1, self.slots[~location])

    def _memory(self, m: Machine, entry: tuple[int, ...], loc: tuple[int, ...]) -> Mem:
        index = NUMBER[loc[entry[2]]] if entry[2] >= 0 else -1
        if entry[3] > 1:
            return Mem(loc[entry[1]], index, m.scale, m.disp, vector=entry[3])
        if entry[1] >= 0:
            return Mem(loc[entry[1]], index, m.scale, m.disp, bcst=bool(entry[3]))
        return Mem(RSP, index, m.scale, m.disp + (self.arguments if m.base is STACK_ARGS else 0), bcst=bool(entry[3]))

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
                ops.append(NUMBER[location] if location >= 0 else self._operand(location))
            elif c == MEMORY:
                ops.append(self._memory(m, entry, loc))
            else:
                ops.append(m.imm if c == IMMEDIATE else 0)
        if self.plain and template.op in _STREAMING:
            form = _plain_form(form)
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
            if inst.target in self.heads:
                self._align()
            self.labels[inst.target] = len(self.out)
            if self.text is not None:
                self.text.append(f"L{inst.target}:")
        elif kind is Kind.RET:
            self._epilogue()
        else:
            self._jump(inst)

    def _align(self) -> None:
        """Pad with no-operations, so that what follows starts a line of the decoder."""
        missing = -len(self.out) % LINE
        while missing:
            size = min(missing, len(_NOPS))
            self.out += _NOPS[size - 1]
            missing -= size
            if self.text is not None:
                self.text.append("  nop")

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
            self._move(op, ZMM if vreg.size > 32 else YMM if vreg.size > 16 else XMM, edit)
        elif vreg.cls == MASK_CLASS:
            self._move(X86Ops.KMOVQ, MASK, edit)
        else:
            self._move(X86Ops.MOV, R64, edit)

    def _move(self, op: X86Op, width: int, edit: Edit) -> None:
        if edit.kind is EditKind.MOVE:
            self._put(op.form((width, width)), (NUMBER[edit.dst], NUMBER[edit.src]))
        elif edit.kind is EditKind.SPILL:
            self._put(op.form((MEM, width)), (self._operand(edit.dst), NUMBER[edit.src]))
        else:
            self._put(op.form((width, MEM)), (NUMBER[edit.dst], self._operand(edit.src)))

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
        if not self.plain:
            self._put(X86Ops.SFENCE.forms[0], ())
        if self.wide:
            self._put(X86Ops.VZEROUPPER.forms[0], ())
        if self.vector:
            self._put(X86Ops.LDMXCSR.forms[0], (Mem(RSP, disp=self.control),))
        self._adjust(X86Ops.ADD)
        for reg in reversed(self.saved):
            self._put(_POP, (reg,))
        self._put(X86Ops.RET.forms[0], ())


_STREAMING = frozenset({X86Ops.VMOVNTPS, X86Ops.VMOVNTDQ})


def _plain_form(form: Form) -> Form:
    """The store through the caches in place of one past them."""
    kind = form.explicit[1].kinds
    op = X86Ops.VMOVUPS if form.op is X86Ops.VMOVNTPS else X86Ops.VMOVDQU32 if kind & ZMM else X86Ops.VMOVDQU
    return op.form((MEM, kind))


LINE = 32  # bytes to which the heads of innermost loops are aligned; code is loaded at the start of a page
SHORT_BODY = 6  # instructions below which a loop is not worth padding
# Intel SDM 2B NOP, recommended multi-byte sequences of 1 to 9 bytes
_NOPS = tuple(
    map(
        bytes.fromhex,
        (
            "90",
            "6690",
            "0f1f00",
            "0f1f4000",
            "0f1f440000",
            "660f1f440000",
            "0f1f8000000000",
            "0f1f840000000000",
            "660f1f840000000000",
        ),
    )
)


def innermost_heads(insts: list[Inst]) -> set[Any]:
    """Labels that a jump leads back to without another label between."""
    heads = set()
    label, start = None, 0
    for i, inst in enumerate(insts):
        if inst.kind is Kind.LABEL:
            label, start = inst.target, i
        elif inst.kind is Kind.BRANCH and inst.target == label and i - start > SHORT_BODY:
            heads.add(label)
    return heads


_XCHG = X86Ops.XCHG.form((R64, R64))
_PUSH, _POP = X86Ops.PUSH.form((R64,)), X86Ops.POP.form((R64,))
_CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")


def emit(
    insts: list[Inst],
    allocation: Allocation,
    vregs: list[VReg],
    buffers: int,
    streams: Streams,
    text: list[str] | None = None,
) -> bytes:
    """Machine code of an allocated function with ``buffers`` bytes of own storage in its frame."""
    return Emitter(allocation, vregs, buffers, streams, text).run(insts)
