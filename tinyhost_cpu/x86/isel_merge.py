"""Selection of WHERE at x86-64-v4 where one arm is an instruction that nobody else reads: it merges under an opmask.

The arm is put off until the WHERE (``find_merged``) and writes its lanes over those of the other arm, or over zeros.
Instructions whose mask has a bit per lane of the WHERE do that: arithmetic of 4 and 8 bytes, shuffles.
"""

from __future__ import annotations

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import isel_bool
from tinyhost_cpu.x86.isel_bool import opmask
from tinyhost_cpu.x86.isel_mask import constant_mask, mask_op
from tinyhost_cpu.x86.isel_memory import is_place
from tinyhost_cpu.x86.isel_shuffle import single_shuffle
from tinyhost_cpu.x86.operands import all_zero, float_op, lanes_of, vec, vec_or_mem, zeroing

_ARITHMETIC = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.SQRT, Ops.MULACC})
_MERGING = frozenset(
    [f"V{name}P{t}" for name in ("ADD", "SUB", "MUL", "DIV", "SQRT") for t in "SD"]
    + [f"VP{name}{t}" for name in ("ADD", "SUB", "MULL") for t in "DQ"]
)


def find_merged(sel: Selection, uops: list[UOp]) -> None:
    """Leave values that only a WHERE of vectors reads to that."""
    if not sel.level.evex:
        return
    for u in uops:
        if u.op is Ops.WHERE and u.shape and u.src[0].shape:
            for s in u.src[1:]:
                if sel.uses.get(s) == 1 and s.shape and _may_merge(s):
                    sel.skipped.add(s)


def _may_merge(u: UOp) -> bool:
    if u.op is Ops.INDEX:
        return not is_place(u)
    return u.op in _ARITHMETIC and u.dtype is not dtypes.bool and u.dtype.itemsize >= 4


def where(sel: Selection, u: UOp) -> UOp:
    """WHERE, merging one arm into the other where that is one instruction."""
    cond, a, b = u.src
    for arm, other, value in ((a, b, True), (b, a, False)):
        if arm in sel.skipped and arm not in sel.values and _may_merge(arm):
            node = _merge(sel, cond, arm, other, value)
            if node is not None:
                return node
    return isel_bool.where(sel, u)


def _merge(sel: Selection, cond: UOp, arm: UOp, other: UOp, value: bool) -> UOp | None:
    """``arm`` in the lanes where ``cond`` is ``value``, else ``other``; None where that is not one instruction."""
    dtype, lanes = arm.dtype, lanes_of(arm)
    if dtype is dtypes.bool or lanes * dtype.itemsize < 16:
        return None
    if arm.op is Ops.INDEX:
        return _merge_shuffle(sel, cond, arm, other, value)
    mask = _mask(sel, cond, lanes, value)
    if arm.op is Ops.MULACC:
        if not dtype.is_float or arm.src[2] is not other:
            return None
        a, b, c = arm.src
        src = (vec(sel, c, dtype, lanes), mask, vec(sel, a, dtype, lanes), *vec_or_mem(sel, b, dtype, lanes))
        return sel.emit(float_op("VFMADD231", dtype, lanes), dtype, src, lanes)
    prefix = (zeroing(sel, mask),) if all_zero(other) else (vec(sel, other, dtype, lanes), mask)
    node = sel.value(arm)
    if sel.out[-1] is not node or node.arg[0].name not in _MERGING:
        return None
    sel.out.pop()  # it comes again, merging
    return sel.emit(node.arg[0], dtype, (*prefix, *node.src), lanes)


def _mask(sel: Selection, cond: UOp, lanes: int, value: bool) -> UOp:
    """The lanes where ``cond`` is ``value``."""
    if cond.op is Ops.STACK and all(s.is_const for s in cond.src):
        return constant_mask(sel, sum((bool(s.const_value) is value) << i for i, s in enumerate(cond.src)), lanes)
    mask = opmask(sel, cond, lanes)
    return mask if value else sel.pure(mask_op("KNOT", lanes), dtypes.bool, (mask,), lanes)


def _merge_shuffle(sel: Selection, cond: UOp, arm: UOp, other: UOp, value: bool) -> UOp | None:
    dtype, lanes = arm.dtype, lanes_of(arm)
    node = sel.value(arm.src[0])
    if node.arg[2] != lanes:
        return None
    single = single_shuffle(sel, node, [int(s.const_value) for s in arm.src[1].src], dtype, merging=True)
    if single is None or single[2] != lanes:
        return None
    mask = _mask(sel, cond, lanes, value)
    prefix = (zeroing(sel, mask),) if all_zero(other) else (vec(sel, other, dtype, lanes), mask)
    return sel.emit(single[0], dtype, (*prefix, *single[1]), lanes)
