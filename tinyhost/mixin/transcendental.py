"""Exponentials, logarithms, trigonometry, rounding and float classification.

Takes nodes; integers become the default float. Everything is made of EXP2, LOG2, SIN, SQRT, RECIPROCAL and
arithmetic, so gradients follow. float16 and bfloat16 are computed in float32 and rounded once. Polynomials name their
source.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tinyhost.dtype import dtypes, least_upper_dtype
from tinyhost.mixin.elementwise import ElementwiseMixin
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

N = TypeVar("N", bound=ElementwiseMixin)

# Abramowitz and Stegun, 4.4.46: arcsin x = pi/2 - sqrt(1 - x) p(x), |error| <= 2e-8, highest power first
_ASIN = (-0.0012624911, 0.0066700901, -0.0170881256, 0.0308918810, -0.0501743046, 0.0889789874, -0.2145988016,
         1.5707963050)
# Abramowitz and Stegun, 7.1.26: erf x = 1 - p(t) exp(-x*x), t = 1 / (1 + 0.3275911 x), |error| <= 1.5e-7
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0)


def polynomial(x: N, coefficients: Sequence[float]) -> N:
    """Horner's scheme, highest power first."""
    out = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        out = out * x + c if c else out * x
    return out


class TranscendentalMixin(ElementwiseMixin):
    """exp, log, sin and relatives."""

    __slots__ = ()

    def _in_float32(self, fn: Callable[[Self], Self]) -> Self:
        """``fn`` of self as a float; narrow floats are computed in float32."""
        x = self._float_operand()
        if x.dtype in (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s):
            return fn(x.cast(least_upper_dtype(x.dtype, dtypes.float32))).cast(x.dtype)
        return fn(x)

    def detach(self) -> Self:
        """Self with no gradient behind it."""
        return self.alu(Ops.DETACH)

    def contiguous_backward(self) -> Self:
        """Self, whose gradient is made contiguous."""
        return self.alu(Ops.CONTIGUOUS_BACKWARD)

    def square(self) -> Self:
        """``self * self``."""
        return self * self

    def rsqrt(self) -> Self:
        """``1 / sqrt(self)``."""
        return self.sqrt().reciprocal()

    # *** exponentials and logarithms ***
    def exp2(self) -> Self:
        """Two to the power of self."""
        return self._in_float32(lambda x: x.alu(Ops.EXP2))

    def exp(self) -> Self:
        """e to the power of self."""
        return self._in_float32(lambda x: (x * (1 / math.log(2))).exp2())

    def log2(self) -> Self:
        """Logarithm to base 2."""
        return self._in_float32(lambda x: x.alu(Ops.LOG2))

    def log(self) -> Self:
        """Natural logarithm."""
        return self._in_float32(lambda x: x.log2() * math.log(2))

    def log10(self) -> Self:
        """Logarithm to base 10."""
        return self._in_float32(lambda x: x.log2() * math.log10(2))

    def logaddexp(self, other: Any) -> Self:
        """``log(exp(self) + exp(other))`` without overflow."""
        lhs, rhs = self._operands(other)
        lhs, rhs = lhs._float_operand(), rhs._float_operand()
        top = lhs.maximum(rhs).detach()
        top = top.isfinite().where(top, 0)
        return ((lhs - top).exp() + (rhs - top).exp()).log() + top

    # *** trigonometry ***
    def sin(self) -> Self:
        """Sine of radians."""
        return self._in_float32(lambda x: x.alu(Ops.SIN))

    def cos(self) -> Self:
        """Cosine of radians."""
        # 1 - 2 sin(x/2)^2: halving the argument is exact, pi/2 - x is not
        return self._in_float32(lambda x: 1 - (x * 0.5).sin().square() * 2)

    def tan(self) -> Self:
        """Tangent of radians."""
        return self._in_float32(lambda x: x.sin() / x.cos())

    def _odd(self, fn: Callable[[Self], Self]) -> Self:
        """The odd function that equals ``fn`` on non-negative values; its slope at 0 is that of ``fn``."""
        negative = self < 0
        y = fn(negative.where(-self, self))
        return negative.where(-y, y)

    def asin(self) -> Self:
        """Arc sine, NaN outside [-1, 1]."""
        return self._in_float32(lambda x: x._odd(lambda a: math.pi / 2 - (1 - a).sqrt() * polynomial(a, _ASIN)))

    def acos(self) -> Self:
        """Arc cosine, NaN outside [-1, 1]."""
        return self._in_float32(lambda x: math.pi / 2 - x.asin())

    def atan(self) -> Self:
        """Arc tangent."""
        return self._in_float32(lambda x: (x * (x * x + 1).rsqrt()).asin())

    def sinh(self) -> Self:
        """Hyperbolic sine."""
        return self._in_float32(lambda x: (x.exp() - (-x).exp()) * 0.5)

    def cosh(self) -> Self:
        """Hyperbolic cosine."""
        return self._in_float32(lambda x: (x.exp() + (-x).exp()) * 0.5)

    def tanh(self) -> Self:
        """Hyperbolic tangent."""
        return self._in_float32(lambda x: (x * 2).sigmoid() * 2 - 1)

    def asinh(self) -> Self:
        """Inverse hyperbolic sine."""
        return self._in_float32(lambda x: x._odd(lambda a: (a + (a * a + 1).sqrt()).log()))

    def acosh(self) -> Self:
        """Inverse hyperbolic cosine, NaN below 1."""
        return self._in_float32(lambda x: (x + (x * x - 1).sqrt()).log())

    def atanh(self) -> Self:
        """Inverse hyperbolic tangent, NaN outside [-1, 1]."""
        return self._in_float32(lambda x: ((1 + x) / (1 - x)).log() * 0.5)

    def erf(self) -> Self:
        """Gauss error function, to 1.5e-7."""
        def positive(a: Self) -> Self:
            t = (a * 0.3275911 + 1).reciprocal()
            return 1 - polynomial(t, _ERF) * (-(a * a)).exp()
        return self._in_float32(lambda x: x._odd(positive))

    def sigmoid(self) -> Self:
        """``1 / (1 + exp(-self))``."""
        def fn(x: Self) -> Self:
            # the exponential stays finite, so that no gradient is inf * 0
            dtype = dtypes.default_float if x.dtype.is_weak else x.dtype
            limit = float((1 << dtypes.finfo(dtype)[0] - 1) - 2)
            return ((x * (1 / math.log(2))).maximum(-limit).neg().exp2() + 1).reciprocal()
        return self._in_float32(fn)

    # *** rounding, sign, classes ***
    def round(self) -> Self:
        """Nearest integer, halves to even."""
        if not self.dtype.is_float:
            return self._fresh()
        base = self.trunc()
        rest = (self - base).abs()
        odd = (base * 0.5).trunc().ne(base * 0.5)
        away = (rest > 0.5) | (rest.eq(0.5) & odd)
        return away.where(base + (self < 0).where(-1.0, 1.0), base)

    def sign(self) -> Self:
        """-1, 0 or 1."""
        if self.dtype is dtypes.bool:
            return self._fresh()
        return (self > 0).where(1, (self < 0).where(-1, 0))._at(self.dtype)

    def abs(self) -> Self:
        """Magnitude."""
        return self._fresh() if self.dtype.is_unsigned or self.dtype is dtypes.bool else self.maximum(-self)

    def copysign(self, other: Any) -> Self:
        """Magnitude of self with the sign of ``other``; the sign of a zero counts."""
        lhs, rhs = self._operands(other)
        lhs, rhs = lhs._float_operand(), rhs._float_operand()
        magnitude = lhs.abs()
        return ((rhs < 0) | (rhs.reciprocal() < 0)).where(-magnitude, magnitude)

    def isnan(self) -> Self:
        """Whether the value is NaN."""
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Whether the value is infinite, with the chosen signs."""
        return (self.eq(math.inf) & detect_positive) | (self.eq(-math.inf) & detect_negative)

    def isfinite(self) -> Self:
        """Whether the value is neither infinite nor NaN."""
        return self.abs() < math.inf

    def isclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Whether ``|self - other| <= atol + rtol * |other|``; infinities are close to themselves."""
        lhs, rhs = self._operands(other)
        close = ((lhs - rhs).abs() <= rhs.abs() * rtol + atol) & rhs.isfinite() | lhs.eq(rhs)
        return close | (lhs.isnan() & rhs.isnan()) if equal_nan else close

    def clip(self, min_: Any = None, max_: Any = None) -> Self:
        """Self kept within ``min_`` and ``max_``.

        Raises:
            RuntimeError: neither bound is given.
        """
        if min_ is None and max_ is None:
            raise RuntimeError("clip needs min_ or max_, got neither")
        out = self
        if min_ is not None:
            out = (out < min_).where(min_, out)
        return out if max_ is None else (out > max_).where(max_, out)

    def clamp(self, min_: Any = None, max_: Any = None) -> Self:
        """Same as ``clip``."""
        return self.clip(min_, max_)

    def lerp(self, end: Self, weight: Any) -> Self:
        """``self + (end - self) * weight``; integers are interpolated as floats and rounded back."""
        if self.dtype.is_float:
            step: Self = (end - self) * weight
            return self + step
        start = self.cast(dtypes.default_float)
        step = (end.cast(dtypes.default_float) - start) * weight
        return (start + step).round().cast(self.dtype)
