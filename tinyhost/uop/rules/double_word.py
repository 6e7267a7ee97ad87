"""Arithmetic on sums of two floats that stay apart, about twice as exact as one.

Takes and gives pairs (high, low) of nodes of float32 or float64, |low| at most an ulp of high. Products are split by
masks, not by a fused multiply-add, which not every target has, so nothing overflows that the product itself does not.
After T. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.
"""
from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, mul, sub

Pair = tuple[UOp, UOp]
# the kept bits of half a mantissa
_MASKS = {dtypes.float32: (dtypes.uint32, 0xFFFFF000), dtypes.float64: (dtypes.uint64, 0xFFFFFFFFF8000000)}


def constant(value: float, rest: float, dt: DType) -> Pair:
    """The literal ``value + rest``."""
    return UOp.const(value, dt), UOp.const(rest, dt)


def split(x: UOp) -> Pair:
    """x as a sum of numbers of half its length, whose products are exact."""
    ints, mask = _MASKS[x.dtype]
    high = bits(and_(bits(x, ints), UOp.const(mask, ints)), x.dtype)
    return high, sub(x, high)


def fast_sum(a: UOp, b: UOp) -> Pair:
    """a + b exactly, for |a| >= |b| or a = 0."""
    total = add(a, b)
    return total, sub(b, sub(total, a))


def product(a: UOp, b: UOp) -> Pair:
    """a * b: exactly in float32, to 2**-103 in float64, half of whose mantissa is no whole number of bits."""
    total = mul(a, b)
    (a1, a0), (b1, b0) = split(a), split(b)
    return total, add(add(add(sub(mul(a1, b1), total), mul(a1, b0)), mul(a0, b1)), mul(a0, b0))


def times(a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    high, low = product(a[0], b[0])
    return high, add(low, add(mul(a[0], b[1]), mul(a[1], b[0])))


def scaled(a: Pair, b: UOp) -> Pair:
    """The product of a pair and a number."""
    high, low = product(a[0], b)
    return high, add(low, mul(a[1], b))
