"""Activation functions.

Takes nodes, gives element-wise nodes. Values and slopes at the kinks are torch's; NaN passes through all of them.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tinyhost.mixin.minimax import Minimax
from tinyhost.mixin.transcendental import TranscendentalMixin

if TYPE_CHECKING:
    from typing import Self

# 2y / x in the tanh form of gelu, y being sqrt(2 / pi) * (x + 0.044715 * x**3), in x*x
_GELU = Minimax(*[tuple(2 * math.sqrt(2 / math.pi) * c for c in (1.0, 0.044715))] * 2)


class ActivationMixin(TranscendentalMixin):
    """relu to hardtanh."""

    __slots__ = ()

    def relu(self) -> Self:
        """``max(self, 0)``, with slope 0 at 0."""
        return self.maximum(0)

    def relu6(self) -> Self:
        """``min(max(self, 0), 6)``."""
        positive = self.relu()
        return (positive >= 6).where(6, positive)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """Self where positive, else ``neg_slope * self``."""
        return (self > 0).where(self, self * neg_slope)

    def _expm1_below_zero(self, scale: float = 1.0) -> Self:
        """``exp(self / scale) - 1`` where self is not positive; elsewhere 0, without overflow."""
        below = (self > 0).where(0, self)
        return (below if scale == 1.0 else below / scale).expm1()

    def elu(self, alpha: float = 1.0) -> Self:
        """Self where positive, else ``alpha * (exp(self) - 1)``."""
        return (self > 0).where(self, self._expm1_below_zero() * alpha)

    def celu(self, alpha: float = 1.0) -> Self:
        """Self where positive, else ``alpha * (exp(self / alpha) - 1)``.

        Raises:
            ValueError: ``alpha`` is 0.
        """
        if alpha == 0:
            raise ValueError("celu divides by alpha: it cannot be 0, use relu")
        return (self > 0).where(self, self._expm1_below_zero(alpha) * alpha)

    def selu(self, alpha: float = 1.67326, gamma: float = 1.0507) -> Self:
        """Scaled ``elu``."""
        return self.elu(alpha) * gamma

    def silu(self) -> Self:
        """``self * sigmoid(self)``."""
        return self._in_float32(lambda x: x * x.sigmoid())

    def swish(self) -> Self:
        """Same as ``silu``."""
        return self.silu()

    def gelu(self, approximate: str = "tanh") -> Self:
        """Gaussian error linear unit: ``"tanh"`` approximates, ``"none"`` uses ``erf``.

        Raises:
            ValueError: another approximation.
        """
        if approximate == "none":
            return self._in_float32(lambda x: x * 0.5 * ((x / math.sqrt(2)).erf() + 1))
        if approximate != "tanh":
            raise ValueError(f"unknown approximate {approximate!r}: use 'tanh' or 'none'")
        # 0.5 x (1 + tanh(y)) = x sigmoid(2y)
        return self._in_float32(lambda x: x * (x * _GELU.at(x * x)).sigmoid())

    def quick_gelu(self) -> Self:
        """``self * sigmoid(1.702 * self)``."""
        return self * (self * 1.702).sigmoid()

    def mish(self) -> Self:
        """``self * tanh(softplus(self))``."""
        return self * self.softplus().tanh()

    def softplus(self, beta: float = 1.0) -> Self:
        """``log(1 + exp(beta * self)) / beta``, without overflow, and to full precision where it is small.

        Raises:
            ValueError: ``beta`` is 0.
        """
        if beta == 0:
            raise ValueError("softplus divides by beta: it cannot be 0")
        return (self if beta == 1.0 else self * beta)._in_float32(lambda x: x._softplus()) * (1 / beta)

    def _softplus(self) -> Self:
        positive = self > 0
        return positive.where(self, 0) + positive.where(-self, self).exp().log1p()

    def softsign(self) -> Self:
        """``self / (1 + |self|)``."""
        return self / (self.abs() + 1)

    def logsigmoid(self) -> Self:
        """``log(sigmoid(self))`` without underflow."""
        return -(-self).softplus()

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """``alpha * self + beta`` kept within 0 and 1."""
        line = (self * alpha + beta).relu()
        return (line >= 1).where(1, line)

    def hardswish(self) -> Self:
        """``self * relu6(self + 3) / 6``."""
        return self * (self + 3).relu6() * (1 / 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """Self kept within ``min_val`` and ``max_val``, with slope 0 there; ``clip`` has slope 1 at its bounds."""
        return (self <= min_val).where(min_val, (self >= max_val).where(max_val, self))
