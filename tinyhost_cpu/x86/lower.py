"""Selected instructions as the register allocator sees them.

An INS node becomes an ``Inst`` whose opcode is a ``Machine``: the template of its form (signature for the allocator,
where each operand comes from) with this instruction's immediate and displacement. Templates are shared by all
instructions of one shape, so the allocator analyses each shape once and most of the work is one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    NO_OPERANDS,
    Inst,
    Kind,
    OperandSpec,
    Signature,
    VReg,
    define,
    use,
)
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import (
    BCST,
    IMM8,
    IMM16,
    IMM32,
    IMM64,
    IMM_KINDS,
    MASK,
    MEM,
    VEC_KINDS,
    VMEM_X,
    VMEM_Y,
    VMEM_Z,
    XMM,
    YMM,
    ZEROING,
    ZMM,
    Form,
    X86Op,
    X86Ops,
)
from tinyhost_cpu.x86.isel_memory import load_op
from tinyhost_cpu.x86.operands import BROADCAST
from tinyhost_cpu.x86.registers import GPR_CLASS, MASK_CLASS, STACK_ARGS, VEC_CLASS, kind_of

_IMM_KIND = {1: IMM8, 2: IMM16, 4: IMM32, 8: IMM64}
REGISTER, MEMORY, IMMEDIATE, ZERO_IMMEDIATE = range(4)
RAX, RDX = 0, 2


class Template:
    """The shape shared by many instructions.

    Attributes:
        form: the line of the table, None for pseudo instructions. second: the class of a second result, or None.
        fetch: per explicit operand of the form, where it comes from: (REGISTER, vreg position), (MEMORY, base position
            or -1, index position or -1, 1 for a broadcast or the kind of a vector index), (IMMEDIATE,), or
            (ZERO_IMMEDIATE,).
        signature, kind: for the allocator.
    """

    __slots__ = ("form", "fetch", "signature", "kind", "op", "second")

    def __init__(
        self,
        op: X86Op,
        form: Form | None,
        fetch: tuple[tuple[int, ...], ...],
        signature: Signature,
        kind: Kind = Kind.OP,
        second: VReg | None = None,
    ) -> None:
        self.op, self.form, self.fetch, self.signature, self.kind = op, form, fetch, signature, kind
        self.second = second


class Machine:
    """One instruction: its template and what is not in registers."""

    __slots__ = ("template", "imm", "disp", "scale", "base", "node")

    def __init__(self, template: Template, imm: int, disp: int, scale: int, base: Any, node: UOp) -> None:
        self.template, self.imm, self.disp, self.scale, self.base, self.node = template, imm, disp, scale, base, node

    def __repr__(self) -> str:
        return f"{self.template.op.name.lower()}" + (
            f" #{self.imm}" if any(f[0] == IMMEDIATE for f in self.template.fetch) else ""
        )


_templates: dict[Any, Template] = {}
_ZEROING = X86Ops.ZEROING
_VECTOR_INDEX = {XMM: VMEM_X, YMM: VMEM_Y, ZMM: VMEM_Z}


def lower(nodes: list[UOp], count: int) -> tuple[list[Inst], list[VReg]]:
    """Instructions and virtual registers of a selected program."""
    vregs = [_UNUSED] * count
    insts: list[Inst] = []
    arguments = [n for n in nodes if n.arg[0] is X86Ops.ARG]
    if arguments:
        insts.append(_arguments(arguments, vregs))
    for node in nodes:
        if node.arg[0] is not X86Ops.ARG:
            insts.append(_lower(node, vregs))
    insts.append(Inst(_RETURN, (), NO_OPERANDS, Kind.RET))
    return insts, vregs


_UNUSED = VReg(GPR_CLASS, 8)
_GPR = VReg(GPR_CLASS, 8)
_GPR_REMAT = VReg(GPR_CLASS, 8, True)
_VREGS = {
    (kind, remat): VReg(cls, size, remat)
    for kind, cls, size in ((XMM, VEC_CLASS, 16), (YMM, VEC_CLASS, 32), (ZMM, VEC_CLASS, 64), (MASK, MASK_CLASS, 8))
    for remat in (False, True)
}


def _vreg(kind: int, remat: bool) -> VReg:
    return _VREGS[kind, remat] if kind & (VEC_KINDS | MASK) else _GPR_REMAT if remat else _GPR


def _arguments(nodes: list[UOp], vregs: list[VReg]) -> Inst:
    """One instruction that defines all argument registers at entry."""
    specs = tuple(define(fixed=int(n.src[0].src[0].arg)) for n in nodes)
    for n in nodes:
        vregs[n.tag] = _GPR
    template = Template(X86Ops.ARG, None, (), Signature(specs))
    return Inst(Machine(template, 0, 0, 1, None, nodes[0]), tuple(n.tag for n in nodes), template.signature)


def _lower(node: UOp, vregs: list[VReg]) -> Inst:
    arg = node.arg
    op, tail = arg[0], arg[1:]
    kinds: list[int] = []
    uses: list[int] = []
    immediate, disp, scale, base = 0, 0, 1, None
    src = node.src
    i, n = 0, len(src)
    while i < n:
        s = src[i]
        if s.op is Ops.CAST:  # an immediate
            immediate = s.src[0].arg
            kinds.append(_IMM_KIND[s.arg.itemsize])
        elif i + 3 < n and src[i + 2].op is Ops.CAST and src[i + 3].op is Ops.CAST:  # memory
            index, size = src[i + 1], src[i + 3]
            disp, scale = src[i + 2].src[0].arg, size.src[0].arg
            shape = 0
            if s.tag.__class__ is int:
                uses.append(s.tag)
                shape = 1
            else:
                base = s.tag
            if index.op is not Ops.NOOP:
                uses.append(index.tag)
                shape |= 2
            if len(index.arg or ()) == 3:
                kinds.append(_VECTOR_INDEX[kind_of(index.arg[1:])])
            else:
                kinds.append(MEM | shape << 32 | size.arg.itemsize << 23 | (BCST if size.tag == BROADCAST else 0))
            i += 3
        else:
            kind = kind_of(s.arg[1:])
            if kind:
                kinds.append(kind | ZEROING if s.arg[0] is _ZEROING else kind)
                uses.append(s.tag)
        i += 1
    key = (arg, tuple(kinds))
    template = _templates.get(key)
    if template is None:
        template = _templates[key] = _make_template(op, tail, kinds)
    payload = Machine(template, immediate, disp, scale, base, node)
    return _finish(node, op, tail, template, payload, uses, vregs)


def _finish(
    node: UOp,
    op: X86Op,
    tail: tuple[Any, ...],
    template: Template,
    payload: Machine,
    uses: list[int],
    vregs: list[VReg],
) -> Inst:
    kind = template.kind
    if kind is Kind.OP or kind is Kind.COPY:
        if tail[0] is dtypes.void:
            return Inst(payload, tuple(uses), template.signature, kind)
        tag = node.tag
        # what reads no register can be made again, unless it reads memory that may change
        remat = not uses and (payload.base is None or payload.base is STACK_ARGS or op is X86Ops.LEA)
        vregs[tag] = _vreg(kind_of(tail), remat)
        if template.second is not None:
            vregs[tag + 1] = template.second
            return Inst(payload, (tag, tag + 1, *uses), template.signature)
        return Inst(payload, (tag, *uses), template.signature, kind)
    return Inst(payload, (), NO_OPERANDS, kind, payload.imm)


def _make_template(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    special = _SPECIAL.get(op)
    if special is not None:
        return special(op, tail, kinds)
    if op.name[0] == "J":
        return Template(op, None, (), NO_OPERANDS, Kind.JUMP if op is X86Ops.JMP else Kind.BRANCH)
    return _form_template(op, tail, kinds)


def _find_form(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Form:
    """The form for a destination of type ``tail`` and sources of ``kinds``.

    A destination that is also read is the first source.
    """
    bits = not op.vex
    plain = [
        (MEM | (k >> 23 & 0xFF) * 8 << 20 if bits else k & 0xFFFFF) if k & MEM else k & 0x1FFFFF for k in kinds
    ]
    dest = kind_of(tail)
    if not dest:
        return op.form(tuple(plain))
    whole, tied = (dest, *plain), (dest, *plain[1:])
    for feature in ("", None):  # the tables beyond x86-64-v3 are only opened where they are needed
        form = op.match(whole, feature)
        if form is not None and form.has_def and not form.tied:
            return form
        form = op.match(tied, feature)
        if form is not None and form.tied:
            return form
    return op.form(whole)


def _form_template(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    form = _find_form(op, tail, kinds)
    has_def = kind_of(tail) != 0
    specs: list[OperandSpec] = [define(reuse=1)] if has_def and form.tied else [define()] if has_def else []
    fetch: list[tuple[int, ...]] = [(REGISTER, 0)] if has_def else []
    folded = False
    position = len(specs)
    explicit = form.explicit[1:] if has_def and not form.tied else form.explicit
    for k, kind in enumerate(kinds[: len(explicit)]):
        tied = form.tied and k == 0
        if kind & MEM:
            folded = True
            fetch.append(_memory_entry(kind, specs))
            position = len(specs)
        elif kind & IMM_KINDS:
            fetch.append((IMMEDIATE,))
        else:
            specs.append(use())
            if not tied:
                fetch.append((REGISTER, position))
            position += 1
    if not folded:
        _allow_slot(form, fetch, specs)
    return Template(op, form, tuple(fetch), Signature(tuple(specs)))


def _allow_slot(form: Form, fetch: list[tuple[int, ...]], specs: list[OperandSpec]) -> None:
    """Let the operand of ModRM.rm be read from its spill slot, if the form has memory there."""
    m = form.m
    if m < 0 or not form.explicit[m].kinds & MEM or form.explicit[m].access != "R":
        return
    entry = fetch[m]
    if entry[0] == REGISTER and not specs[entry[1]].is_def:
        specs[entry[1]] = specs[entry[1]]._replace(memory=True)


# *** pseudo instructions ***
def _copy(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    return Template(op, None, (), COPY_SIGNATURE, Kind.COPY)


def _label(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    return Template(op, None, (), NO_OPERANDS, Kind.LABEL)


def _same_register(name: str) -> Callable[[X86Op, tuple[Any, ...], list[int]], Template]:
    def make(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
        kind = kind_of(tail)
        kind = XMM if kind & ZMM else kind  # clears what lies above
        return Template(op, X86Ops[name].form((kind, kind, kind)), ((REGISTER, 0),) * 3, Signature((define(),)))

    return make


def _divide(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    form = op.form((kinds[2],))
    specs = (define(fixed=RAX), define(fixed=RDX), use(fixed=RAX), use(fixed=RDX), use(memory=True))
    return Template(op, form, ((REGISTER, 4),), Signature(specs), second=_GPR)


def _gather(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    """GATHER(old, opmask, memory): lanes are loaded over ``old``, the opmask is cleared on the way."""
    form = op.form((kind_of(tail), MASK, kinds[2]))
    index = next(kind for kind, memory in _VECTOR_INDEX.items() if memory == kinds[2])
    specs = (define(reuse=2), define(reuse=3), use(), use(), use(), use())
    fetch = ((REGISTER, 0), (REGISTER, 1), (MEMORY, 4, 5, index))
    return Template(op, form, fetch, Signature(specs), second=_VREGS[MASK, False])


def _sign(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    return Template(op, op.forms[0], (), Signature((define(fixed=RDX), use(fixed=RAX))))


def _memory_entry(kind: int, specs: list[OperandSpec]) -> tuple[int, ...]:
    """Where base and index of a memory operand come from; their reads are appended to ``specs``."""
    entry = [MEMORY, -1, -1, int(kind & BCST != 0)]
    for bit in (1, 2):
        if kind >> 32 & bit:
            entry[bit] = len(specs)
            specs.append(use())
    return tuple(entry)


def _skip_load(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    """SKIP_LOAD(alt, memory, condition): the load behind a jump over it."""
    specs: list[OperandSpec] = [define(reuse=1), use()]
    mem = _memory_entry(kinds[1], specs)
    size = kinds[1] >> 23 & 0xFF
    inner = _inner_load(tail, size)
    dest = kind_of(tail)
    if inner is X86Ops.VPINSRW:
        form = inner.form((dest, dest, MEM, IMM8))
        fetch: tuple[tuple[int, ...], ...] = ((REGISTER, 0), (REGISTER, 0), mem, (ZERO_IMMEDIATE,))
    else:
        form = inner.form((dest, MEM | (size * 8 << 20 if not inner.vex else 0)))
        fetch = ((REGISTER, 0), mem)
    return Template(op, form, fetch, Signature(tuple(specs)))


def _inner_load(tail: tuple[Any, ...], size: int) -> X86Op:
    dtype, lanes = tail[0], tail[1] if len(tail) > 1 else 1
    if lanes == 1 and not dtype.is_float and size < 4:
        return X86Ops.MOVZX  # readers extend by their own type
    return load_op(dtype, lanes)


def _skip_store(op: X86Op, tail: tuple[Any, ...], kinds: list[int]) -> Template:
    """SKIP_STORE(memory, value, condition): the store behind a jump over it; the lanes stand in the arg."""
    specs: list[OperandSpec] = []
    mem = _memory_entry(kinds[0], specs)
    fetch = [mem, (REGISTER, len(specs))]
    specs.append(use())
    size, value = kinds[0] >> 23 & 0xFF, kinds[1]
    if not value & VEC_KINDS:
        form = X86Ops.MOV.form((MEM | size * 8 << 20, value))
    elif (size := size * (tail[1] if len(tail) > 1 else 1)) == 2:
        form = X86Ops.VPEXTRW.form((MEM, value, IMM8))
        fetch.append((ZERO_IMMEDIATE,))
    else:
        form = {4: X86Ops.VMOVD, 8: X86Ops.VMOVQ}.get(size, X86Ops.VMOVUPS).form((MEM, value))
    return Template(op, form, tuple(fetch), Signature(tuple(specs)))


_SPECIAL: dict[X86Op, Callable[[X86Op, tuple[Any, ...], list[int]], Template]] = {
    X86Ops.COPY: _copy,
    X86Ops.LABEL: _label,
    X86Ops.ZERO: _same_register("VPXOR"),
    X86Ops.ONES: _same_register("VPCMPEQD"),
    X86Ops.IDIV: _divide,
    X86Ops.DIV: _divide,
    X86Ops.CDQ: _sign,
    X86Ops.CQO: _sign,
    **dict.fromkeys((X86Ops.VGATHERDPS, X86Ops.VGATHERDPD, X86Ops.VPGATHERDD, X86Ops.VPGATHERDQ), _gather),
    X86Ops.SKIP_LOAD: _skip_load,
    X86Ops.SKIP_STORE: _skip_store,
}
_RETURN = Machine(Template(X86Ops.RET, None, (), NO_OPERANDS, Kind.RET), 0, 0, 1, None, UOp(Ops.NOOP))
