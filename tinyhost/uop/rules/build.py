"""Short constructors of ALU nodes, for rules that build long expressions.

Operands broadcast, so literals need no shape; shift counts are literals of the operand's dtype. Nothing is simplified.
"""
from __future__ import annotations

from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp


def add(a: UOp, b: UOp) -> UOp:
    """a + b."""
    return UOp(Ops.ADD, (a, b))


def sub(a: UOp, b: UOp) -> UOp:
    """a - b."""
    return UOp(Ops.SUB, (a, b))


def mul(a: UOp, b: UOp) -> UOp:
    """a * b."""
    return UOp(Ops.MUL, (a, b))


def and_(a: UOp, b: UOp) -> UOp:
    """a & b."""
    return UOp(Ops.AND, (a, b))


def or_(a: UOp, b: UOp) -> UOp:
    """a | b."""
    return UOp(Ops.OR, (a, b))


def xor(a: UOp, b: UOp) -> UOp:
    """a ^ b."""
    return UOp(Ops.XOR, (a, b))


def shl(x: UOp, count: int) -> UOp:
    """x << count."""
    return UOp(Ops.SHL, (x, UOp.const(count, x.dtype)))


def shr(x: UOp, count: int) -> UOp:
    """x >> count, arithmetic on signed types."""
    return UOp(Ops.SHR, (x, UOp.const(count, x.dtype)))


def where(c: UOp, x: UOp, y: UOp) -> UOp:
    """x where c, else y."""
    return UOp(Ops.WHERE, (c, x, y))


def maximum(a: UOp, b: UOp) -> UOp:
    """The larger one, NaN if either is."""
    return UOp(Ops.MAX, (a, b))


def less(a: UOp, b: UOp) -> UOp:
    """a < b."""
    return UOp(Ops.CMPLT, (a, b))


def differs(a: UOp, b: UOp) -> UOp:
    """a != b."""
    return UOp(Ops.CMPNE, (a, b))


def fma(a: UOp, b: UOp, c: UOp) -> UOp:
    """a*b + c in one step where the target can."""
    return UOp(Ops.MULACC, (a, b, c))


def bits(x: UOp, dtype: DType) -> UOp:
    """The same bits as another dtype."""
    return UOp(Ops.BITCAST, (x,), dtype)
