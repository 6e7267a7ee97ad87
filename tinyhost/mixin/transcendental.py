"""Exponentials, logarithms, trigonometry, rounding and float classification.

Takes nodes; integers become the default float. Everything is made of EXP2, LOG2, SIN, SQRT, division and arithmetic, so
gradients follow. float16 and bfloat16 are computed in float32 and rounded once. Where the other ops lose digits a
polynomial of ``minimax`` takes over; the arm that is not taken stays finite there, and so does its slope.
Errors are a few units of the last place (``benchmarks/accuracy.py`` measures them), but cos and tan near their zeros
and poles are exact to 2**-22 only, relative to 1.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, least_upper_dtype
from tinyhost.mixin import minimax
from tinyhost.mixin.elementwise import ElementwiseMixin
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

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

    def _odd_from(self, limit: float, near: minimax.Minimax, far: Callable[[Self], Self]) -> Self:
        """The odd function that is x times ``near`` of x*x up to ``limit``, and ``far`` beyond."""
        def positive(a: Self) -> Self:
            small = a <= limit
            z = small.where(a, 0)
            return small.where(a * near.at(z * z), far(a))
        return self._odd(positive)

    def asin(self) -> Self:
        """Arc sine, NaN outside [-1, 1]."""
        def positive(a: Self) -> Self:
            big, r = a._asin_half()
            return big.where(math.pi / 2 - r * 2, r)
        return self._in_float32(lambda x: x._odd(positive))

    def _asin_half(self) -> tuple[Self, Self]:
        """(where |self| is above 1/2, asin of sqrt((1 - self)/2) there and of self elsewhere), for self from 0."""
        big = self > 0.5
        r = big.where(((1 - self) * 0.5).sqrt(), self)
        z = big.where((1 - self) * 0.5, self * self)
        return big, r * minimax.ASIN.at(z)

    def acos(self) -> Self:
        """Arc cosine, NaN outside [-1, 1]."""
        def fn(x: Self) -> Self:
            negative = x < 0
            big, r = negative.where(-x, x)._asin_half()
            far = negative.where(math.pi - r * 2, r * 2)
            return big.where(far, math.pi / 2 - negative.where(-r, r))
        return self._in_float32(fn)

    def atan(self) -> Self:
        """Arc tangent."""
        def positive(a: Self) -> Self:
            # tan(t + pi/4) and tan(t + pi/2) in terms of tan(t), with one division
            mid, far = a > math.sqrt(2) - 1, a > math.sqrt(2) + 1
            t = far.where(-1, mid.where(a - 1, a)) / far.where(a, mid.where(a + 1, 1))
            r = t * minimax.ATAN.at(t * t)
            return mid.where(r + far.where(math.pi / 2, math.pi / 4), r)
        return self._in_float32(lambda x: x._odd(positive))

    def _half_exp(self) -> Self:
        """exp(self) / 2, finite as long as that is."""
        root = (self * 0.5).exp()
        return root * 0.5 * root

    def sinh(self) -> Self:
        """Hyperbolic sine."""
        def far(a: Self) -> Self:
            half = a._half_exp()
            return half - half.reciprocal() * 0.25
        return self._in_float32(lambda x: x._odd_from(1, minimax.SINH, far))

    def cosh(self) -> Self:
        """Hyperbolic cosine."""
        def fn(x: Self) -> Self:
            half = (x < 0).where(-x, x)._half_exp()
            return half + half.reciprocal() * 0.25
        return self._in_float32(fn)

    def tanh(self) -> Self:
        """Hyperbolic tangent."""
        return self._in_float32(
            lambda x: x._odd_from(0.625, minimax.TANH, lambda a: 1 - (a * -2).sigmoid() * 2))

    def _log_of_sum(self, minus: int) -> Self:
        """log(self + sqrt(self**2 - minus)), for self from 1/2; squares do not overflow."""
        huge = self > 2.0**30
        root = (huge.where(1, self).square() - minus).sqrt()
        return huge.where(self, self + root).log() + huge.where(math.log(2), 0)

    def asinh(self) -> Self:
        """Inverse hyperbolic sine."""
        return self._in_float32(lambda x: x._odd_from(0.5, minimax.ASINH, lambda a: a._log_of_sum(-1)))

    def acosh(self) -> Self:
        """Inverse hyperbolic cosine, NaN below 1."""
        def fn(x: Self) -> Self:
            t = x - 1
            small = t <= 0.5
            near = small.where(t, 1)
            return small.where((near * 2).sqrt() * minimax.ACOSH.at(near), small.where(2, x)._log_of_sum(1))
        return self._in_float32(fn)

    def atanh(self) -> Self:
        """Inverse hyperbolic tangent, NaN outside [-1, 1]."""
        return self._in_float32(
            lambda x: x._odd_from(0.5, minimax.ATANH, lambda a: ((1 + a).log() - (1 - a).log()) * 0.5))

    def erf(self) -> Self:
        """Gauss error function."""
        def far(a: Self) -> Self:
            top = 6 if minimax.is_wide(a.dtype) else 4  # 1 from there
            return 1 - (-minimax.ERFC.at((a > top).where(top, a))).exp()
        return self._in_float32(lambda x: x._odd_from(1, minimax.ERF, far))

    def sigmoid(self) -> Self:
        """``1 / (1 + exp(-self))``."""
        def fn(x: Self) -> Self:
            # the exponential stays finite, so that no gradient is inf * 0
            dtype = dtypes.default_float if x.dtype.is_weak else x.dtype
            limit = math.log(2) * ((1 << dtypes.finfo(dtype)[0] - 1) - 2)
            return ((x.maximum(-limit) * (-1 / math.log(2))).exp2() + 1).reciprocal()
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
