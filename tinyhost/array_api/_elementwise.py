"""Element-wise functions.

One-argument functions are methods of Tensor; two-argument ones take a Python scalar on one side. What Tensor lacks is
built of its methods here, with the special values of the standard.
"""
from __future__ import annotations

import math
from typing import Any

from tinyhost.array_api._dtypes import result_type
from tinyhost.dtype import DType, dtypes
from tinyhost.tensor import Tensor

_SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both operands at their joint dtype.

    Raises:
        TypeError: neither is an array.
    """
    if not (isinstance(x1, Tensor) or isinstance(x2, Tensor)):
        raise TypeError(f"one operand must be an array, got {type(x1).__name__} and {type(x2).__name__}")
    a = x1 if isinstance(x1, Tensor) else x2.ufix(x1)
    b = x2 if isinstance(x2, Tensor) else a.ufix(x2)
    dtype = result_type(x1, x2)
    return a.cast(dtype), b.cast(dtype)


def select(condition: Tensor, x1: Any, x2: Any) -> Tensor:
    """``x1`` where the condition holds, else ``x2``."""
    chosen: Tensor = condition.where(x1, x2)
    return chosen


def abs(x: Tensor, /) -> Tensor:
    """Absolute values."""
    return x.abs()


def acos(x: Tensor, /) -> Tensor:
    """Inverse cosine."""
    return x.acos()


def acosh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic cosine."""
    return x.acosh()


def add(x1: Any, x2: Any, /) -> Tensor:
    """``x1 + x2``."""
    a, b = _pair(x1, x2)
    return a + b


def asin(x: Tensor, /) -> Tensor:
    """Inverse sine."""
    return x.asin()


def asinh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic sine."""
    return x.asinh()


def atan(x: Tensor, /) -> Tensor:
    """Inverse tangent."""
    return x.atan()


def atan2(x1: Any, x2: Any, /) -> Tensor:
    """Angle of the point with ordinate ``x1`` and abscissa ``x2``."""
    y, x = _pair(x1, x2)
    dy, dx = y.abs(), x.abs()
    far, near = dy.maximum(dx), dy.minimum(dx)
    ratio = (far == 0).where(0.0, (near == math.inf).where(1.0, near / far))
    angle = ratio.atan()
    angle = select(dy > dx, math.pi / 2 - angle, angle)
    angle = signbit(x).where(math.pi - angle, angle)
    return select(x.isnan() | y.isnan(), math.nan, angle.copysign(y)).cast(y.dtype)


def atanh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic tangent."""
    return x.atanh()


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """``x1 & x2``."""
    a, b = _pair(x1, x2)
    return a & b


def bitwise_invert(x: Tensor, /) -> Tensor:
    """``~x``."""
    return ~x


def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """``x1 << x2``."""
    a, b = _pair(x1, x2)
    return a << b


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """``x1 | x2``."""
    a, b = _pair(x1, x2)
    return a | b


def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """``x1 >> x2``, which keeps the sign."""
    a, b = _pair(x1, x2)
    return a >> b


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """``x1 ^ x2``."""
    a, b = _pair(x1, x2)
    return a ^ b


def ceil(x: Tensor, /) -> Tensor:
    """Rounded up."""
    return x.ceil()


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """``x`` kept between bounds, scalars or arrays; NaN stays, and a NaN bound gives NaN."""
    y = x
    if min is not None:
        y = y.maximum(min.cast(x.dtype) if isinstance(min, Tensor) else _bound(min, x.dtype))
    if max is not None:
        y = y.minimum(max.cast(x.dtype) if isinstance(max, Tensor) else _bound(max, x.dtype))
    return positive(x) if y is x else y.cast(x.dtype)


def _bound(value: Any, dtype: DType) -> Any:
    """A scalar bound that the dtype can hold."""
    if dtype.is_int and not isinstance(value, float):
        return min(max(int(value), dtype.min), dtype.max)
    return value


def conj(x: Tensor, /) -> Tensor:
    """``x``: all numbers are real."""
    return positive(x)


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The magnitude of ``x1`` with the sign of ``x2``."""
    a, b = _pair(x1, x2)
    return a.copysign(b)


def cos(x: Tensor, /) -> Tensor:
    """Cosine."""
    return x.cos()


def cosh(x: Tensor, /) -> Tensor:
    """Hyperbolic cosine."""
    return x.cosh()


def divide(x1: Any, x2: Any, /) -> Tensor:
    """``x1 / x2``."""
    a, b = _pair(x1, x2)
    return a / b


def equal(x1: Any, x2: Any, /) -> Tensor:
    """``x1 == x2``."""
    a, b = _pair(x1, x2)
    return a == b


def exp(x: Tensor, /) -> Tensor:
    """Exponential."""
    return x.exp()


def expm1(x: Tensor, /) -> Tensor:
    """``exp(x) - 1`` without cancellation."""
    # (u - 1) * x / log(u) with u = exp(x): the errors of u cancel (Higham, Accuracy and Stability, 1.14.1)
    u = x.exp()
    less = u - 1
    inside = (u != 1) & (less != -1) & (x.abs() < 1)
    return select(u == 1, x, select(inside, less * x / select(inside, u, 2.0).log(), less)).cast(u.dtype)


def floor(x: Tensor, /) -> Tensor:
    """Rounded down."""
    return x.floor()


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """``x1 // x2``."""
    a, b = _pair(x1, x2)
    return a // b


def greater(x1: Any, x2: Any, /) -> Tensor:
    """``x1 > x2``."""
    a, b = _pair(x1, x2)
    return a > b


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """``x1 >= x2``."""
    a, b = _pair(x1, x2)
    return a >= b


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """``sqrt(x1**2 + x2**2)`` without overflow between."""
    a, b = (v.abs() for v in _pair(x1, x2))
    far, near = a.maximum(b), a.minimum(b)
    ratio = select(far == 0, 0.0, near / far)
    length = far * (ratio.square() + 1).sqrt()
    return select((a == math.inf) | (b == math.inf), math.inf, length).cast(a.dtype)


def imag(x: Tensor, /) -> Tensor:
    """Zeros: all numbers are real."""
    return x.zeros_like()


def isfinite(x: Tensor, /) -> Tensor:
    """Whether an element is neither infinite nor NaN."""
    return x.isfinite()


def isinf(x: Tensor, /) -> Tensor:
    """Whether an element is infinite."""
    return x.isinf()


def isnan(x: Tensor, /) -> Tensor:
    """Whether an element is NaN."""
    return x.isnan()


def less(x1: Any, x2: Any, /) -> Tensor:
    """``x1 < x2``."""
    a, b = _pair(x1, x2)
    return a < b


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """``x1 <= x2``."""
    a, b = _pair(x1, x2)
    return a <= b


def log(x: Tensor, /) -> Tensor:
    """Natural logarithm."""
    return x.log()


def log1p(x: Tensor, /) -> Tensor:
    """``log(1 + x)`` without cancellation."""
    # log(u) * x / (u - 1) with u = 1 + x: the rounding of u cancels (Higham, Accuracy and Stability, problem 1.5)
    u = x + 1
    inside = (u != 1) & (u != math.inf)
    scaled = u.log() * (x / inside.where(u - 1, 1.0))
    return select(u == 1, x, select(inside, scaled, u.log()))


def log2(x: Tensor, /) -> Tensor:
    """Logarithm to base 2."""
    return x.log2()


def log10(x: Tensor, /) -> Tensor:
    """Logarithm to base 10."""
    return x.log10()


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """``log(exp(x1) + exp(x2))``."""
    a, b = _pair(x1, x2)
    return a.logaddexp(b)


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true."""
    a, b = _pair(x1, x2)
    return a.cast(dtypes.bool) & b.cast(dtypes.bool)


def logical_not(x: Tensor, /) -> Tensor:
    """Whether an element is false."""
    return x.logical_not()


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one is true."""
    a, b = _pair(x1, x2)
    return a.cast(dtypes.bool) | b.cast(dtypes.bool)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is true."""
    a, b = _pair(x1, x2)
    return a.cast(dtypes.bool) ^ b.cast(dtypes.bool)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The larger of both."""
    a, b = _pair(x1, x2)
    return a.maximum(b)


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller of both."""
    a, b = _pair(x1, x2)
    return a.minimum(b)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """``x1 * x2``."""
    a, b = _pair(x1, x2)
    return a * b


def negative(x: Tensor, /) -> Tensor:
    """``-x``."""
    return -x


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number after ``x1`` in the direction of ``x2``."""
    x, y = _pair(x1, x2)
    signed = _SIGNED[x.dtype.bitsize]
    bits = x.bitcast(signed)
    away = (x < y) == (x > 0)  # from zero
    moved = (bits + away.where(1, -1).cast(signed)).bitcast(x.dtype)
    moved = (x == 0).where((bits * 0 + 1).bitcast(x.dtype).copysign(y), moved)
    return select(x.isnan() | y.isnan(), math.nan, select(x == y, y, moved)).cast(x.dtype)


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """``x1 != x2``."""
    a, b = _pair(x1, x2)
    return a != b


def positive(x: Tensor, /) -> Tensor:
    """``+x``."""
    return x._fresh()


def pow(x1: Any, x2: Any, /) -> Tensor:
    """``x1 ** x2``."""
    a, b = _pair(x1, x2)
    return a.pow(b)


def real(x: Tensor, /) -> Tensor:
    """``x``: all numbers are real."""
    return positive(x)


def reciprocal(x: Tensor, /) -> Tensor:
    """``1 / x``."""
    return x.reciprocal()


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """``x1 % x2``, with the sign of ``x2``."""
    a, b = _pair(x1, x2)
    rest = a % b
    if not rest.dtype.is_float:
        return rest
    # a finite number modulo infinity is itself, or that infinity if their signs differ
    same = (a == 0) | ((a < 0) == (b < 0))
    return select(b.isinf() & a.isfinite(), select(same, a.copysign(b), b), rest)


def round(x: Tensor, /) -> Tensor:
    """Rounded to the nearest integer, halves to the even one."""
    return x.round() if x.dtype.is_float else positive(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN stays."""
    return select(x.isnan(), x, x.sign()) if x.dtype.is_float else x.sign()


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit is set, as it is in -0.0."""
    return x.bitcast(_SIGNED[x.dtype.bitsize]) < 0


def sin(x: Tensor, /) -> Tensor:
    """Sine."""
    return x.sin()


def sinh(x: Tensor, /) -> Tensor:
    """Hyperbolic sine."""
    return x.sinh()


def sqrt(x: Tensor, /) -> Tensor:
    """Square root."""
    return x.sqrt()


def square(x: Tensor, /) -> Tensor:
    """``x * x``."""
    return x.square()


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """``x1 - x2``."""
    a, b = _pair(x1, x2)
    return a - b


def tan(x: Tensor, /) -> Tensor:
    """Tangent."""
    return x.tan()


def tanh(x: Tensor, /) -> Tensor:
    """Hyperbolic tangent."""
    return x.tanh()


def trunc(x: Tensor, /) -> Tensor:
    """Rounded toward zero."""
    return x.trunc()
