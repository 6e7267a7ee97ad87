"""Selection of two bitwise operations of vectors as one: VPTERNLOG takes any function of three bits (x86-64-v4).

The inner operation, read by nobody else, is put off until the outer one (``find_ternary``). The immediate is the truth
table of the function: bit 4a + 2b + c is its value at a, b, c (Intel SDM 2C VPTERNLOGD).
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.operands import imm, vec, vec_or_mem

_BITWISE = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_TABLES = (0xF0, 0xCC, 0xAA)  # of the first, second and third operand themselves


def find_ternary(sel: Selection, uops: list[UOp]) -> None:
    """Leave bitwise operations that only another one reads to that."""
    if not sel.level.evex:
        return
    for u in uops:
        if u.op in _BITWISE and u.shape and u.dtype is not dtypes.bool:
            for s in u.src:
                if s.op in _BITWISE and s.shape and sel.uses.get(s) == 1:
                    sel.skipped.add(s)
                    break


def ternary(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp | None:
    """Both operations in one, None where no source of ``u`` was left to it."""
    for inner, other in (u.src, u.src[::-1]):
        if inner.op in _BITWISE and inner in sel.skipped and inner not in sel.values:
            return _select(sel, u.op, inner.op, (*inner.src, other), dtype, lanes)
    return None


def _select(sel: Selection, outer: Ops, inner: Ops, src: tuple[UOp, ...], dtype: DType, lanes: int) -> UOp:
    """outer(inner(src[0], src[1]), src[2]); the result takes the register of an operand that ends here, if one does."""
    order = sorted(range(3), key=lambda i: (src[i].is_const, not src[i].shape, sel.uses.get(src[i], 0) != 1))
    tables = [_TABLES[order.index(i)] for i in range(3)]
    table = _apply(outer, _apply(inner, tables[0], tables[1]), tables[2])
    first, second, third = (src[i] for i in order)
    operands = (vec(sel, first, dtype, lanes), vec(sel, second, dtype, lanes), *vec_or_mem(sel, third, dtype, lanes))
    op = X86Ops.VPTERNLOGQ if dtype.itemsize == 8 else X86Ops.VPTERNLOGD
    return sel.emit(op, dtype, (*operands, imm(dtypes.uint8, table)), lanes)


def _apply(op: Ops, a: int, b: int) -> int:
    return a & b if op is Ops.AND else a | b if op is Ops.OR else a ^ b
