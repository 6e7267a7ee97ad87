"""Selection of program structure: arguments, loops, conditions, ordering.

Loops test at the bottom. A loop whose bound may be 0 has a guard in front that jumps behind it; code that was hoisted
stands before the guard, so it also runs when the loop does not. An innermost loop counts the multiples of its counter
that addresses ask for (``isel_memory``), and only those where nothing else reads the counter.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import AddrSpace, Ops
from tinyhost.renderer.isa.selection import Induction, Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_bool import CONDITION_NAMES, LE, L, condition_of
from tinyhost_cpu.x86.operands import (
    NO_INDEX,
    as_int,
    def_reg,
    imm,
    int_literal,
    reg,
    short_imm,
    view,
)
from tinyhost_cpu.x86.registers import ARGUMENTS, STACK_ARGS


# *** arguments ***
def kernel_arguments(uops: list[UOp]) -> list[UOp]:
    """Parameters in calling order: storage by slot, then scalars by slot, the thread number last."""
    params = {
        u for u in uops if u.op in (Ops.PARAM, Ops.BUFFER) and (u.op is Ops.PARAM or u.arg.addrspace is AddrSpace.ALU)
    }

    def place(u: UOp) -> tuple[bool, bool, int, str]:
        scalar = u.arg.addrspace is AddrSpace.ALU
        return scalar, u.arg.name == "core_id", u.arg.slot, u.arg.name or ""

    return sorted(params, key=place)


def select_arguments(sel: Selection, uops: list[UOp]) -> None:
    """Give every parameter a register: System V passes six in registers, the others on the stack."""
    params = kernel_arguments(uops)
    words = []
    for i, u in enumerate(params):
        sel.arguments[u] = i
        dtype = dtypes.uint64 if u.arg.addrspace is not AddrSpace.ALU else _scalar_dtype(u)
        if i < len(ARGUMENTS):
            words.append((u, dtype, sel.emit(X86Ops.ARG, dtypes.uint64, (imm(dtypes.uint8, ARGUMENTS[i]),))))
        else:
            offset = short_imm(8 * (i - len(ARGUMENTS)))
            memory = (def_reg(dtypes.uint64, STACK_ARGS), NO_INDEX, offset, imm(dtypes.uint64, 1))
            words.append((u, dtype, sel.emit(X86Ops.MOV, dtypes.uint64, memory)))
    for u, dtype, word in words:
        sel.values[u] = word if dtype is dtypes.uint64 else _scalar_argument(sel, word, dtype)


def _scalar_dtype(u: UOp) -> DType:
    dtype: DType = u.arg.dtype
    if dtype.is_float:
        raise CompileError(f"scalar parameters are integers, got {dtype} for {u.arg.name!r}; pass floats in a buffer")
    return dtypes.int32 if dtype is dtypes.weakint else dtype


def _scalar_argument(sel: Selection, word: UOp, dtype: DType) -> UOp:
    if dtype.itemsize == 8:
        return view(sel, word, dtype)
    # the caller leaves the upper half undefined
    return view(sel, sel.emit(X86Ops.MOV, dtypes.int32, (view(sel, word, dtypes.int32),)), dtype)


def param(sel: Selection, u: UOp) -> UOp | None:
    """PARAM: its register was assigned on entry."""
    return sel.values[u]


# *** loops ***
def find_innermost(sel: Selection, uops: list[UOp]) -> None:
    """Collect the RANGEs without another loop inside."""
    last = None
    for u in uops:
        if u.op is Ops.RANGE:
            last = u
        elif u.op is Ops.END and last in u.src:
            assert last is not None
            sel.innermost.add(last)
            last = None


def _label(sel: Selection, number: int) -> None:
    sel.effect(X86Ops.LABEL, (imm(dtypes.int32, number),))
    sel.flags = None


def _jump(sel: Selection, code: int, flags: UOp, label: int) -> None:
    sel.effect(X86Ops["J" + CONDITION_NAMES[code]], (imm(dtypes.int32, label), flags))


def range_(sel: Selection, u: UOp) -> UOp | None:
    """RANGE: the counter as a variable, a guard where the bound may be 0, the label of the body."""
    bound = u.src[0]
    head, tail = sel.new_tag(), sel.new_tag()
    if bound.op is Ops.NOOP:
        sel.open_loop()
        sel.loops[u] = (head, tail, None, False)
        _label(sel, head)
        return None
    dtype = u.dtype
    literal = int_literal(bound)
    limit = (
        short_imm(literal)
        if literal is not None and abs(literal) < 1 << 31
        else as_int(sel, reg(sel, bound), dtype.itemsize)
    )
    guarded = bound.vmin < 1
    first = len(sel.segments)
    sel.open_loop()
    tag = sel.new_tag()
    if u in sel.innermost:
        sel.inductions[tag] = Induction(sel.preheaders[-1], first)
    counter = UOp(Ops.INS, (), (X86Ops.DEFINE, dtype), tag)
    sel.depth_of[counter] = sel.depth
    sel.emit(X86Ops.MOV, dtype, (imm(dtypes.int32, 0),), tag=tag)
    if guarded and literal is None:
        flags = sel.emit(X86Ops.TEST, dtypes.void, (limit, limit))
        _jump(sel, LE, flags, tail)
    elif guarded:
        sel.effect(X86Ops.JMP, (imm(dtypes.int32, tail),))
    _label(sel, head)
    sel.loops[u] = (head, tail, limit, guarded)
    return counter


def end(sel: Selection, u: UOp) -> UOp | None:
    """END: count, compare, jump back; with a condition, repeat while it holds."""
    ranges = [s for s in u.src[1:] if s.op is Ops.RANGE]
    if len(ranges) != 1:
        raise CompileError(f"END closes one RANGE in a linear program, got {len(ranges)} in {u!r}")
    rng = ranges[0]
    head, tail, limit, guarded = sel.loops[rng]
    sel.flush()
    if limit is None:
        flags, code = condition_of(sel, u.src[2])
        _jump(sel, code, flags, head)
    else:
        counter, limit = _count(sel, rng, limit)
        flags = sel.emit(X86Ops.CMP, dtypes.void, (counter, limit))
        _jump(sel, L, flags, head)
    sel.close_loop()
    if guarded:
        _label(sel, tail)
    return None


def _count(sel: Selection, rng: UOp, limit: UOp) -> tuple[UOp, UOp]:
    """Advance what the loop counts; gives the register that says whether it is done, and its bound."""
    counter = sel.values[rng]
    induction = sel.inductions.pop(counter.tag, None)
    steps = {} if induction is None else induction.steps
    counted = [(counter, 1)]
    if induction is not None and steps and not sel.reads(counter.tag, induction.first):
        step, register = next(iter(steps.items()))
        if (scaled := _scaled_limit(sel, limit, step)) is not None:
            counter, limit, counted = register, scaled, []
    for register, step in [*((r, s) for s, r in steps.items()), *counted]:
        sel.emit(X86Ops.ADD, register.arg[1], (register, short_imm(step)), tag=register.tag)
        sel.carried.add(register.tag)
    return counter, limit


def _scaled_limit(sel: Selection, limit: UOp, step: int) -> UOp | None:
    """The bound of a loop that counts by ``step``, None where it needs more than 31 bits."""
    if limit.op is Ops.CAST:
        bound = int(limit.src[0].arg) * step
        return short_imm(bound) if abs(bound) < 1 << 31 else None
    return sel.pure(X86Ops.IMUL, dtypes.int64, (view(sel, limit, dtypes.int64), short_imm(step)))


# *** conditions ***
def if_(sel: Selection, u: UOp) -> UOp | None:
    """IF: jump over the body when the condition is false."""
    label = sel.new_tag()
    sel.open_loop()
    flags, code = condition_of(sel, u.src[0])
    _jump(sel, code ^ 1, flags, label)
    sel.loops[u] = (label, label, None, False)
    return None


def endif(sel: Selection, u: UOp) -> UOp | None:
    """ENDIF: where a false condition continues."""
    sel.close_loop()
    _label(sel, sel.loops[u.src[0]][0])
    return None


# *** ordering ***
def after(sel: Selection, u: UOp) -> UOp | None:
    """AFTER: the value itself; the order is that of the list."""
    return sel.values.get(u.src[0])


def nothing(sel: Selection, u: UOp) -> UOp | None:
    """Ops that only order others."""
    return None
