"""What the scheduler must know of x86 instructions: flags, and the memory they touch.

Facts of an instruction come from its line in the table. A storage is a parameter of the kernel, or the frame. Different
parameters count as different memory: between their loads and stores a linear program has no order but that of its
graph, in which nothing depends on memory that another parameter shares.
"""

from __future__ import annotations

from collections.abc import Hashable

from tinyhost.ops import Ops
from tinyhost.renderer.isa.regalloc import Inst
from tinyhost.renderer.isa.schedule import Access, Effects, Facts, Place
from tinyhost.uop import UOp
from tinyhost_cpu.x86.forms import MEM, VMEM_KINDS
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.lower import MEMORY, Template
from tinyhost_cpu.x86.registers import STACK_ARGS

_CONDITIONAL = frozenset({X86Ops.SKIP_LOAD, X86Ops.SKIP_STORE})
_FOLLOWED = frozenset({X86Ops.LEA, X86Ops.ALIAS})  # their first source is the pointer they start from
_ATOMIC = frozenset({X86Ops.XCHG, X86Ops.XADD, X86Ops.CMPXCHG})
_UNORDERED = frozenset({X86Ops.VMOVNTPS, X86Ops.VMOVNTPD, X86Ops.VMOVNTDQ})


class X86Facts(Facts):
    """Flags and memory of one program's instructions."""

    def __init__(self) -> None:
        self.known: dict[Template, Effects] = {}
        self.roots: dict[UOp, Hashable] = {}

    def effects(self, inst: Inst) -> Effects:
        """Flags and memory, from the line of the table."""
        template: Template = inst.opcode.template
        found = self.known.get(template)
        if found is None:
            found = self.known[template] = _effects_of(template)
        return found

    def place(self, inst: Inst) -> Place:
        """The memory operand."""
        machine = inst.opcode
        template: Template = machine.template
        entry = next((e for e in template.fetch if e[0] == MEMORY), None)
        if entry is None:
            return Place(None)
        storage = self._storage(machine.node, machine.base)
        size = _bytes_of(template)
        if not size or template.op in _UNORDERED:  # whole lines of streamed stores stay together
            return Place(storage)
        registers = tuple([k for k in entry[1:3] if k >= 0])
        return Place(storage, registers, (entry[2] >= 0, machine.scale), machine.disp, size)

    def _storage(self, node: UOp, base: object) -> Hashable:
        """The parameter that an address starts from, the fixed register it starts from, or None."""
        if base is not None:
            return base
        src = node.src
        for i in range(len(src) - 3):
            if src[i + 2].op is Ops.CAST and src[i + 3].op is Ops.CAST and src[i].op is Ops.INS:
                return self._root(src[i])
        return None

    def _root(self, node: UOp) -> Hashable:
        if node not in self.roots:
            start = node
            while start.arg[0] in _FOLLOWED and start.src and start.src[0].op is Ops.INS:
                start = start.src[0]
            self.roots[node] = _storage_of(start)
        return self.roots[node]


def _storage_of(node: UOp) -> Hashable:
    """The tag of a pointer that the caller passed or of a fixed register, else None."""
    op, tag = node.arg[0], node.tag
    known: Hashable = tag
    if op is X86Ops.ARG or not isinstance(tag, int):
        return known
    # the seventh parameter and on are loaded from the caller's frame
    if op is X86Ops.MOV and len(node.src) == 4 and node.src[0].op is Ops.INS and node.src[0].tag is STACK_ARGS:
        return known
    return None


def _effects_of(template: Template) -> Effects:
    op, form = template.op, template.form
    if op in _CONDITIONAL:
        return Effects(True, False, Access.READ if op is X86Ops.SKIP_LOAD else Access.WRITE)
    if op.latency == "fence" or op in _ATOMIC:
        return Effects(op.reads_flags, op.writes_flags, Access.FENCE)
    access = Access.NONE
    if op is not X86Ops.LEA and form is not None and any(e[0] == MEMORY for e in template.fetch):
        access = Access.READ
        for operand, entry in zip(form.explicit, template.fetch):
            if entry[0] == MEMORY and operand.access != "R":
                access = Access.WRITE
    return Effects(op.reads_flags, op.writes_flags, access)


def _bytes_of(template: Template) -> int:
    """Bytes that the memory operand may touch, 0 where it has a vector of indices."""
    form = template.form
    if form is None:
        return 0
    for operand, entry in zip(form.explicit, template.fetch):
        if entry[0] == MEMORY:
            if operand.kinds & VMEM_KINDS or not operand.kinds & MEM:
                return 0
            return operand.bits // 8
    return 0
