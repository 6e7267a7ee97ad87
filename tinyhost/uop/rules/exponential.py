"""Folding e**c: the product c * log2(e) under an EXP2 is not folded by itself, which would round it first.

Takes and gives nodes; the rule belongs to ``fold``. What code generation makes of the same formula with a variable is
in ``transcendental``.
"""
from __future__ import annotations

import math

from tinyhost.dtype import dtypes, truncate
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import UPat
from tinyhost.uop.rules.common import LITERAL_OPS, const_for, literal


def natural_exponent(u: UOp) -> float | None:
    """c or -c where ``u`` is the product of a literal c and log2(e) or -log2(e), in float32 or float64; else None."""
    dt = u.dtype
    if dt is not dtypes.float32 and dt is not dtypes.float64:
        return None
    value, factor = literal(u.src[0]), literal(u.src[1])
    if not isinstance(value, float) or not isinstance(factor, float):
        return None
    rounded = truncate[dt]
    return math.copysign(value, value * factor) if abs(rounded(factor)) == rounded(1 / math.log(2)) else None


def fold_exponential(u: UOp, x: UOp) -> UOp | None:
    """2**(c * log2(e)) -> e**c"""
    exponent = natural_exponent(x)
    if exponent is None:
        return None
    try:
        value = math.exp(exponent)
    except OverflowError:
        value = math.inf
    return const_for(u, truncate[u.dtype](value))


_LIT = UPat(LITERAL_OPS)
FOLD_EXPONENTIAL = (UPat(Ops.EXP2, src=(UPat(Ops.MUL, src=(_LIT, _LIT), name="x"),), name="u"), fold_exponential)
