"""Remainders and floored quotients of floats.

Takes two nodes of one float dtype; gives remainders that are exact, as C's ``fmod`` has them, while the quotient is
below 2**128 (2**300 for float64), and NaN beyond. Dividing, rounding and multiplying back alone would lose every digit
as soon as the quotient has as many as the significand.
"""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops

_STEPS = 6  # each takes as many bits off the quotient as the significand has


def truncated_remainder(x: Any, y: Any) -> Any:
    """``x - trunc(x / y) * y``: it has the sign of ``x``; NaN for a zero ``y`` or an infinite ``x``."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        wide = dtypes.float64 if x.dtype.is_weak and dtypes.default_float is dtypes.float64 else dtypes.float32
        return truncated_remainder(x.cast(wide), y.cast(wide)).cast(x.dtype)
    rest, y_parts = x, _halves(y)
    for _ in range(_STEPS):
        rest = _reduced(rest, y, y_parts)
    negative = x < 0
    overshot = rest.ne(0) & (rest < 0).ne(negative)  # the quotient was rounded up
    rest = overshot.where(rest + (y < 0).ne(negative).where(-y, y), rest)
    return (rest.abs() < y.abs()).where(rest, math.nan)


def floored_remainder(x: Any, y: Any) -> Any:
    """``x - floor(x / y) * y``: it has the sign of ``y``."""
    rest = truncated_remainder(x, y)
    return (rest.ne(0) & (rest < 0).ne(y < 0)).where(rest + y, rest)


def floored_quotient(x: Any, y: Any) -> Any:
    """``floor(x / y)`` of the exact quotient; ``x / y`` where that is no number to round."""
    rest = truncated_remainder(x, y)
    quotient = (x - rest)._true_divide(y).round()
    down = rest.ne(0) & (rest < 0).ne(y < 0)
    return y.eq(0).where(x._true_divide(y), down.where(quotient - 1, quotient))


def _reduced(x: Any, y: Any, y_parts: tuple[Any, Any]) -> Any:
    """x less the multiple of y that the quotient, rounded to a float and truncated, names."""
    quotient = x._true_divide(y).trunc()
    product = quotient * y
    (high, low), (y_high, y_low) = _halves(quotient), y_parts
    # product + error is the exact product (Dekker 1971): halves multiply without rounding
    error = ((high * y_high - product) + high * y_low + low * y_high) + low * y_low
    return quotient.eq(0).where(x, (x - product) - error.alu(Ops.DETACH))


def _halves(x: Any) -> tuple[Any, Any]:
    """The leading half of the significand, rounded, and the rest: each has few enough bits to multiply exactly."""
    x = x.alu(Ops.DETACH)
    bits, integer = (27, dtypes.int64) if x.dtype is dtypes.float64 else (12, dtypes.int32)
    high = ((x.bitcast(integer) + (1 << bits - 1)) & -(1 << bits)).bitcast(x.dtype)
    return high, x - high
