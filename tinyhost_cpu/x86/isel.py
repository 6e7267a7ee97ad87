"""Instruction selection for x86-64: the rule of each op, and what is looked for in a program before them.

The rules are the ``isel_*`` files, by theme; ``operands`` has the conventions they share.
"""

from __future__ import annotations

from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.isa.selection import Rule, Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import (
    isel_alu,
    isel_bool,
    isel_cast,
    isel_control,
    isel_gather,
    isel_memory,
    isel_merge,
    isel_ternary,
    isel_vector,
)

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
    Ops.WHERE: isel_merge.where,
    Ops.MULACC: isel_alu.mulacc,
}


def begin(sel: Selection, uops: list[UOp]) -> None:
    """Arguments, register variables, nodes without a value of their own."""
    isel_memory.find_skipped(sel, uops)
    isel_bool.find_flag_only(sel, uops)
    isel_merge.find_merged(sel, uops)
    isel_gather.find_gathers(sel, uops)
    isel_ternary.find_ternary(sel, uops)
    isel_control.find_innermost(sel, uops)
    isel_control.select_arguments(sel, uops)
    isel_memory.assign_storage(sel, uops)
