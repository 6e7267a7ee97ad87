"""Exponentials, logarithms, trigonometry, rounding and float classification.

Takes nodes; integers become the default float. Everything is made of EXP2, LOG2, SIN, SQRT, division and arithmetic, so
gradients follow. float16, bfloat16 and fp8 are computed in float32 and rounded once. Where the other ops lose digits a
polynomial of ``minimax`` takes over; the arm that is not taken stays finite there, and so does its slope.
exp, log, cos and tan are formulas that code generation knows and replaces by the functions themselves
(``tinyhost.uop.rules.transcendental``). Errors are at most 2 units of the last place in float32 for nearly all of them
(``docs/accuracy.md``).
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
        return self._in_float32(lambda x: x.sqrt().reciprocal())

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

    def expm1(self) -> Self:
        """``exp(self) - 1`` without cancellation."""
        def fn(x: Self) -> Self:
            near = x.abs() < 0.5
            a = near.where(x, 0)
            return x.ne(0).where(near.where(a + a * minimax.EXPM1.at(a), x.exp() - 1), x)
        return self._in_float32(fn)

    def log1p(self) -> Self:
        """``log(1 + self)`` without cancellation, NaN below -1."""
        def fn(x: Self) -> Self:
            total = x + 1
            # what the sum lost when it was rounded; beyond 2**30 it counts no more
            lost = (x > 1).where((x > 2.0**30).where(0, x - total + 1), x - (total - 1))
            return x.ne(0).where(total.log() + lost / total.ne(0).where(total, 1), x)
        return self._in_float32(fn)

    def logaddexp(self, other: Any) -> Self:
        """``log(exp(self) + exp(other))`` without overflow."""
        lhs, rhs = self._operands(other)
        lhs, rhs = lhs._float_operand(), rhs._float_operand()
        gap = lhs.eq(rhs).where(0, lhs - rhs)  # equal infinities have none
        return lhs.maximum(rhs) + (-gap.abs()).exp().log1p()

    # *** trigonometry ***
    def sin(self) -> Self:
        """Sine of radians."""
        return self._in_float32(lambda x: x.alu(Ops.SIN))

    def cos(self) -> Self:
        """Cosine of radians."""
        def fn(x: Self) -> Self:
            # halving the argument is exact, adding pi/2 is not; code generation puts a cosine in the place of this
            half = (x * 0.5).sin()
            return half * half * -2 + 1
        return self._in_float32(fn)

    def tan(self) -> Self:
        """Tangent of radians."""
        return self._in_float32(lambda x: x.sin() / x.cos())

    def _odd(self, fn: Callable[[Self], Self]) -> Self:
        """The odd function that equals ``fn`` on non-negative values; its slope at 0 is that of ``fn``."""
        negative = self._sign_bit()
        y = fn(negative.where(-self, self))
        return negative.where(-y, y)

    def _sign_bit(self) -> Self:
        """Whether the sign bit is set, that of -0.0 included; literals have none."""
        if self.dtype.is_weak:
            return self < 0
        ints = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[self.dtype.itemsize]
        return self.bitcast(ints) < 0

    def _bent(self, bend: minimax.Minimax) -> Self:
        """self * (1 + bend(self**2)), the bend being small: only that is rounded more than once."""
        return self + self * bend.at(self * self)

    def _odd_from(self, limit: float, near: minimax.Minimax, far: Callable[[Self], Self]) -> Self:
        """The odd function that is ``_bent`` by ``near`` up to ``limit``, and ``far`` beyond."""
        def positive(a: Self) -> Self:
            beyond = a > limit
            return beyond.where(far(a), beyond.where(0, a)._bent(near))
        return self._odd(positive)

    def asin(self) -> Self:
        """Arc sine, NaN outside [-1, 1]."""
        def positive(a: Self) -> Self:
            big, r, bend = a._asin_half()
            high, low = minimax.pi_over(2, a.dtype)
            top = high - r * 2
            lost = (high - top) - r * 2  # what top lost when it was rounded
            return big.where(top - ((bend * 2 - low) - lost), r + bend)
        return self._in_float32(lambda x: x._odd(positive))

    def _asin_half(self) -> tuple[Self, Self, Self]:
        """(where |self| is above 1/2, r, asin(r) - r), r being sqrt((1 - self)/2) there and self elsewhere, from 0."""
        big = self > 0.5
        z = big.where((1 - self) * 0.5, self * self)
        r = big.where(((1 - self) * 0.5).sqrt(), self)
        return big, r, r * minimax.ASIN.at(z)

    def acos(self) -> Self:
        """Arc cosine, NaN outside [-1, 1]."""
        def fn(x: Self) -> Self:
            negative = x < 0
            big, r, bend = negative.where(-x, x)._asin_half()
            angle = r + bend
            (high, low), (half_high, half_low) = (minimax.pi_over(n, x.dtype) for n in (1, 2))
            far = negative.where(high - (angle * 2 - low), angle * 2)
            return big.where(far, half_high - (negative.where(-angle, angle) - half_low))
        return self._in_float32(fn)

    def atan(self) -> Self:
        """Arc tangent."""
        def positive(a: Self) -> Self:
            far = a > 1  # atan(a) = pi/2 - atan(1/a)
            r = (far.where(1, a) / far.where(a, 1))._bent(minimax.ATAN)
            high, low = minimax.pi_over(2, a.dtype)
            return far.where(high - (r - low), r)
        return self._in_float32(lambda x: x._odd(positive))

    def _half_exp(self) -> Self:
        """exp(self) / 2, finite as long as that is, for self from 0."""
        # e**3 / 2 is nearly a number of float32 and of float64, and self - 3 is exact
        far = self > (709 if minimax.is_wide(self.dtype) else 88)
        value = far.where(self - 3, self).exp()
        return far.where(value * (math.exp(3) / 2), value * 0.5)

    def sinh(self) -> Self:
        """Hyperbolic sine."""
        def far(a: Self) -> Self:
            half = a._half_exp()
            return half - 0.25 / half
        return self._in_float32(lambda x: x._odd_from(1, minimax.SINH, far))

    def cosh(self) -> Self:
        """Hyperbolic cosine."""
        def fn(x: Self) -> Self:
            half = (x < 0).where(-x, x)._half_exp()
            return half + 0.25 / half
        return self._in_float32(fn)

    def tanh(self) -> Self:
        """Hyperbolic tangent."""
        return self._in_float32(
            lambda x: x._odd_from(0.625, minimax.TANH, lambda a: (a * -2).sigmoid() * -2 + 1))

    def _log_of_sum(self, root: Callable[[Self], Self]) -> Self:
        """log(self + root(self)), with what the sum loses when it is rounded; for self from 0."""
        huge = self > 2.0**30  # root(self) is self, and no square overflows
        a = huge.where(2, self)
        b = root(a)
        total = huge.where(self, a + b)
        swapped = b > a
        lost = swapped.where(a, b) - (total - swapped.where(b, a))
        return total.log() + huge.where(math.log(2), lost / total)

    def asinh(self) -> Self:
        """Inverse hyperbolic sine."""
        return self._in_float32(lambda x: x._odd_from(
            1, minimax.ASINH, lambda a: a._log_of_sum(lambda b: (b * b + 1).sqrt())))

    def acosh(self) -> Self:
        """Inverse hyperbolic cosine, NaN below 1."""
        def fn(x: Self) -> Self:
            small = x <= 1.5
            t = small.where(x - 1, 1)
            root = (t * 2).sqrt()
            far = small.where(2, x)._log_of_sum(lambda b: ((b - 1) * (b + 1)).sqrt())
            return small.where(root + root * minimax.ACOSH.at(t), far)
        return self._in_float32(fn)

    def atanh(self) -> Self:
        """Inverse hyperbolic tangent, NaN outside [-1, 1]."""
        return self._in_float32(
            lambda x: x._odd_from(0.5, minimax.ATANH, lambda a: ((1 - a) / (1 + a)).log() * -0.5))

    def erf(self) -> Self:
        """Gauss error function."""
        def far(a: Self) -> Self:
            top = 6 if minimax.is_wide(a.dtype) else 4  # 1 from there
            return (-minimax.ERFC.at((a > top).where(top, a))).exp() * -1 + 1
        return self._in_float32(lambda x: x._odd_from(1, minimax.ERF, far))

    def sigmoid(self) -> Self:
        """``1 / (1 + exp(-self))``."""
        def fn(x: Self) -> Self:
            negative = x < 0
            t = negative.where(x, -x).exp()  # at most 1: neither it nor a gradient overflows
            return negative.where(t, 1) * (t + 1).reciprocal()
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
        """Magnitude; that of -0.0 is 0.0."""
        if self.dtype.is_unsigned or self.dtype is dtypes.bool:
            return self._fresh()
        magnitude = self.maximum(-self)
        return self.ne(0).where(magnitude, 0) if self.dtype.is_float else magnitude

    def copysign(self, other: Any) -> Self:
        """Magnitude of self with the sign of ``other``; the sign of a zero counts."""
        lhs, rhs = self._operands(other)
        lhs, rhs = lhs._float_operand(), rhs._float_operand()
        magnitude = lhs.abs()
        return rhs._sign_bit().where(-magnitude, magnitude)

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
            out = (out < min_)._or_nan(min_).where(min_, out)
        return out if max_ is None else (out > max_)._or_nan(max_).where(max_, out)

    def _or_nan(self, bound: Any) -> Self:
        """Self (whether a value is beyond a bound), or whether the bound is NaN."""
        return self if isinstance(bound, (int, float)) and bound == bound else self | (bound != bound)

    def clamp(self, min_: Any = None, max_: Any = None) -> Self:
        """Same as ``clip``."""
        return self.clip(min_, max_)

    def lerp(self, end: Self, weight: Any) -> Self:
        """``self + (end - self) * weight``, exactly ``end`` at weight 1; integers go through floats and are rounded."""
        if not self.dtype.is_float:
            start, stop = self.cast(dtypes.default_float), end.cast(dtypes.default_float)
            return start.lerp(stop, weight).round().cast(self.dtype)
        span: Self = end - self
        low: Self = self + span * weight
        high: Self = end - span * (1 - weight)
        if isinstance(weight, (int, float)):
            return low if weight < 0.5 else high
        chosen: Self = (weight < 0.5).where(low, high)
        return chosen
