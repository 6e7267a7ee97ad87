"""Arithmetic, comparison, bitwise and rounding methods, and their operators.

Takes nodes and Python scalars; gives one or a few ALU nodes. Shapes are not touched: broadcasting is the shape rule of
the ALU ops. Both operands reach the node at one dtype; Python scalars stay weak literals. ``==`` is not defined here:
for UOps it is identity.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tinyhost.dtype import Invalid, dtypes, least_upper_dtype, least_upper_float, weak_dtype
from tinyhost.errors import DTypeError
from tinyhost.mixin import remainder
from tinyhost.mixin.hooks import Node
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType


class ElementwiseMixin(Node):
    """Element-wise arithmetic over the ``alu`` hook."""

    __slots__ = ()

    # *** operands ***
    def _at(self, dtype: DType) -> Self:
        """Self as operand of a node of ``dtype``: a bare literal changes kind only, anything else is cast."""
        if self.dtype is dtype:
            return self
        value = self._literal()
        if value is None:
            return self.cast(dtype)
        kind = weak_dtype(dtype)
        if value is Invalid or self.dtype is kind:
            return self
        return self._const({dtypes.weakfloat: float, dtypes.weakint: int}.get(kind, bool)(value))

    def _operands(self, x: Any, reverse: bool = False) -> tuple[Self, Self]:
        """Self and ``x`` at their joint dtype, swapped when ``reverse``."""
        y: Self = x if x.__class__ is self.__class__ else self.ufix(x)
        lhs = self
        if lhs.dtype is not y.dtype:
            joint = least_upper_dtype(lhs.dtype, y.dtype)
            lhs, y = lhs._at(joint), y._at(joint)
        return (y, lhs) if reverse else (lhs, y)

    def _binop(self, op: Ops, x: Any, reverse: bool = False) -> Self:
        y: Self = x if x.__class__ is self.__class__ else self.ufix(x)
        if self.dtype is y.dtype:
            return y.alu(op, self) if reverse else self.alu(op, y)
        lhs, rhs = self._operands(y, reverse)
        return lhs.alu(op, rhs)

    def _float_operand(self) -> Self:
        """Self as a float: integers go to the default float, weak integers stay weak."""
        return self if self.dtype.is_float else self._at(least_upper_float(self.dtype))

    # *** arithmetic ***
    def add(self, x: Any, reverse: bool = False) -> Self:
        """``self + x``; OR on bools."""
        return self._binop(Ops.ADD, x, reverse)

    def mul(self, x: Any, reverse: bool = False) -> Self:
        """``self * x``; AND on bools."""
        return self._binop(Ops.MUL, x, reverse)

    def neg(self) -> Self:
        """``-self``; logical not on bools."""
        return self.logical_not() if self.dtype is dtypes.bool else self.alu(Ops.MUL, self.ufix(-1)._at(self.dtype))

    def sub(self, x: Any, reverse: bool = False) -> Self:
        """``self - x``; ``self or not x`` on bools."""
        if not reverse and (x.__class__ is int or x.__class__ is float):
            return self._binop(Ops.ADD, -x)
        lhs, rhs = self._operands(x, reverse)
        return lhs.alu(Ops.ADD, rhs.neg())

    def div(self, x: Any, reverse: bool = False, rounding_mode: Literal["trunc", "floor"] | None = None) -> Self:
        """``self / x``; integers divide as the default float unless a rounding mode keeps them integers.

        Raises:
            ValueError: unknown rounding mode.
        """
        if rounding_mode == "floor":
            return self.floordiv(x, reverse)
        if rounding_mode not in (None, "trunc"):
            raise ValueError(f"unknown rounding_mode {rounding_mode!r}: use None, 'trunc' or 'floor'")
        lhs, rhs = self._operands(x, reverse)
        if rounding_mode == "trunc" and lhs.dtype.is_int and rhs.dtype.is_int:
            return lhs.alu(Ops.CDIV, rhs)
        quotient = lhs._true_divide(rhs)
        return quotient.trunc() if rounding_mode == "trunc" else quotient

    def _true_divide(self, rhs: Self) -> Self:
        """The quotient rounded once; integers divide as the default float."""
        if self.dtype.is_float or rhs.dtype.is_float:
            return self.alu(Ops.FDIV, rhs)
        dtype = dtypes.default_float
        lhs = self.cast(dtype) if self.dtype.is_weak and rhs.dtype.is_weak else self._at(dtype)
        return lhs.alu(Ops.FDIV, rhs._at(dtype))

    def floordiv(self, x: Any, reverse: bool = False) -> Self:
        """``self // x``, rounded toward minus infinity; integers by 0 give 0, bools divide as the default integer."""
        lhs, rhs = self._division_operands(x, reverse)
        if lhs.dtype.is_float:
            quotient: Self = remainder.floored_quotient(lhs, rhs)
            return quotient
        return lhs.alu(Ops.FLOORDIV, rhs)

    def mod(self, x: Any, reverse: bool = False) -> Self:
        """``self % x`` with the sign of the divisor, exact on floats (``mixin/remainder.py``); integers by 0 give 0."""
        lhs, rhs = self._division_operands(x, reverse)
        if lhs.dtype.is_float:
            rest: Self = remainder.floored_remainder(lhs, rhs)
            return rest
        return lhs.alu(Ops.FLOORMOD, rhs)

    def fmod(self, x: Any) -> Self:
        """Remainder of the division rounded toward zero: it has the sign of ``self``; integers by 0 give 0."""
        lhs, rhs = self._division_operands(x)
        if lhs.dtype.is_float:
            rest: Self = remainder.truncated_remainder(lhs, rhs)
            return rest
        return lhs.alu(Ops.CMOD, rhs)

    def _division_operands(self, x: Any, reverse: bool = False) -> tuple[Self, Self]:
        """Both operands at one dtype that has a remainder."""
        lhs, rhs = self._operands(x, reverse)
        if lhs.dtype is dtypes.bool:
            return lhs.cast(dtypes.default_int), rhs.cast(dtypes.default_int)
        joint = least_upper_dtype(lhs.dtype, rhs.dtype)
        return (lhs.cast(joint), rhs.cast(joint)) if joint.is_float and not joint.is_weak else (lhs, rhs)

    def pow(self, x: Any, reverse: bool = False) -> Self:
        """``self ** x``. An integer raised to an integer stays one and wraps; a float exponent makes it a float.

        Raises:
            DTypeError: an integer raised to a negative Python integer.
        """
        if isinstance(x, (int, float)) and not reverse:
            return self._pow_scalar(x)
        base, exponent = self._operands(x, reverse)
        if base.dtype.is_float or exponent.dtype.is_float:
            return base.alu(Ops.POW, exponent)
        return base._pow_int(exponent)

    def _pow_scalar(self, x: int | float) -> Self:
        if not isinstance(x, float) and not self.dtype.is_float:
            if x < 0:
                raise DTypeError(f"{self.dtype} ** {x}: an integer to a negative power is no integer; cast it to float")
            return self._pow_by_squaring(int(x))
        lhs, rhs = self._operands(float(x))
        if -2 <= x <= 4 and x == int(x):
            power = lhs._pow_by_squaring(abs(int(x)))
            return power.reciprocal() if x < 0 else power
        return lhs.alu(Ops.POW, rhs)

    def _pow_by_squaring(self, n: int) -> Self:
        base = self.cast(dtypes.weakint) if self.dtype is dtypes.bool else self
        if n == 0:
            return base.const_like(1)
        out, square = None, base
        while True:
            if n & 1:
                out = square if out is None else out * square
            n >>= 1
            if not n:
                assert out is not None
                return out._fresh() if out is self else out
            square = square * square

    def _pow_int(self, exponent: Self) -> Self:
        """Exact power of integer nodes, one squaring for each bit; a negative exponent gives 0 unless |base| is 1."""
        base = self
        if self.dtype in (dtypes.bool, dtypes.weakint):  # a literal takes the exponent's dtype
            base = self.cast(dtypes.default_int if exponent.dtype in (dtypes.bool, dtypes.weakint) else exponent.dtype)
        exponent = exponent.cast(base.dtype)
        out, square = base.const_like(1), base
        for bit in range(base.dtype.bitsize - (not base.dtype.is_unsigned)):
            out = out * ((exponent >> bit) & 1).ne(0).where(square, 1)
            square = square * square
        if base.dtype.is_unsigned:
            return out
        odd = (exponent & 1).ne(0)
        inverse = base.eq(1).where(1, base.eq(-1).where(odd.where(-1, base.const_like(1)), 0))
        return (exponent < 0).where(inverse, out)

    def maximum(self, x: Any) -> Self:
        """Larger of both; NaN wins."""
        return self._binop(Ops.MAX, x)

    def minimum(self, x: Any) -> Self:
        """Smaller of both; NaN wins."""
        lhs, rhs = self._operands(x)
        return lhs._reversed_order().alu(Ops.MAX, rhs._reversed_order())._reversed_order()

    def _reversed_order(self) -> Self:
        """Self under a bijection of its dtype that turns the order round and is its own inverse."""
        return self.neg() if self.dtype.is_float or self.dtype is dtypes.bool else self.bitwise_not()

    # *** comparison ***
    def ne(self, x: Any) -> Self:
        """``self != x``; NaN differs from everything."""
        return self._binop(Ops.CMPNE, x)

    def eq(self, x: Any) -> Self:
        """Whether both are equal."""
        return self.ne(x).logical_not()

    def logical_not(self) -> Self:
        """Whether the value is zero or False."""
        return self.cast(dtypes.bool).alu(Ops.CMPNE, self.ufix(True))

    def _not_less(self, x: Any, reverse: bool) -> Self:
        lhs, rhs = self._operands(x, reverse)
        if lhs.dtype.is_float:  # not (a < b) would be true for NaN
            return rhs.alu(Ops.CMPLT, lhs).alu(Ops.OR, lhs.alu(Ops.CMPNE, rhs).logical_not())
        return lhs.alu(Ops.CMPLT, rhs).logical_not()

    def __lt__(self, x: Any) -> Self:
        return self._binop(Ops.CMPLT, x)

    def __gt__(self, x: Any) -> Self:
        return self._binop(Ops.CMPLT, x, True)

    def __ge__(self, x: Any) -> Self:
        return self._not_less(x, False)

    def __le__(self, x: Any) -> Self:
        return self._not_less(x, True)

    # *** bits ***
    def _bitop(self, op: Ops, x: Any, reverse: bool = False) -> Self:
        lhs, rhs = self._operands(x, reverse)
        if lhs.dtype.is_float or rhs.dtype.is_float:
            raise DTypeError(f"{op.name} needs integers or bools, got {lhs.dtype} and {rhs.dtype}: cast or bitcast")
        return lhs.alu(op, rhs)

    def bitwise_and(self, x: Any, reverse: bool = False) -> Self:
        """``self & x``."""
        return self._bitop(Ops.AND, x, reverse)

    def bitwise_or(self, x: Any, reverse: bool = False) -> Self:
        """``self | x``."""
        return self._bitop(Ops.OR, x, reverse)

    def bitwise_xor(self, x: Any, reverse: bool = False) -> Self:
        """``self ^ x``."""
        return self._bitop(Ops.XOR, x, reverse)

    def bitwise_not(self) -> Self:
        """``~self``; logical not on bools."""
        return self.logical_not() if self.dtype is dtypes.bool else self._bitop(Ops.XOR, -1)

    def _shift(self, op: Ops, x: Any, reverse: bool) -> Self:
        y = x if x.__class__ is self.__class__ else self.ufix(x)
        if not (self.dtype.is_int and y.dtype.is_int):
            raise DTypeError(f"shift operands must be int, got {self.dtype} and {y.dtype}: cast or bitcast floats and "
                             "bools")
        count = self._literal() if reverse else y._literal()
        if isinstance(count, int) and count < 0:
            raise ValueError(f"cannot shift by {count}: a count is not negative; shift the other way")
        lhs, rhs = self._operands(y, reverse)
        # the left side decides the width, so a literal there takes the count's
        return (lhs.cast(rhs.dtype) if lhs.dtype.is_weak else lhs).alu(op, rhs)

    def lshift(self, x: Any, reverse: bool = False) -> Self:
        """``self << x``; a count of the width or more, or below 0, gives 0.

        Raises:
            DTypeError: an operand is no integer.
            ValueError: a negative number as count.
        """
        return self._shift(Ops.SHL, x, reverse)

    def rshift(self, x: Any, reverse: bool = False) -> Self:
        """``self >> x``, arithmetic on signed types; a count of the width or more, or below 0, gives 0 or the sign.

        Raises:
            DTypeError: an operand is no integer.
            ValueError: a negative number as count.
        """
        return self._shift(Ops.SHR, x, reverse)

    def threefry(self, seed: Self) -> Self:
        """Threefry-2x32 of the uint64 counters ``self`` under the uint64 key ``seed``."""
        return self.alu(Ops.THREEFRY, seed)

    # *** selection ***
    def where(self, x: Any, y: Any) -> Self:
        """``x`` where self is true, else ``y``; self is bool.

        Raises:
            DTypeError: self is not bool.
        """
        if self.dtype is not dtypes.bool:
            raise DTypeError(f"where cond must be bool, got {self.dtype}: compare it, or cast it to bool")
        lhs = x if x.__class__ is self.__class__ else self.ufix(x)
        lhs, rhs = lhs._operands(y)
        return self.alu(Ops.WHERE, lhs, rhs)

    def masked_fill(self, mask: Self, value: Any) -> Self:
        """``value`` where ``mask`` is true, else self."""
        return mask.where(value, self)

    # *** rounding and roots ***
    def reciprocal(self) -> Self:
        """``1 / self``."""
        return self._float_operand().alu(Ops.RECIPROCAL)

    def sqrt(self) -> Self:
        """Square root; NaN for negative values."""
        return self._float_operand().alu(Ops.SQRT)

    def trunc(self) -> Self:
        """Rounded toward zero."""
        return self.alu(Ops.TRUNC) if self.dtype.is_float else self._fresh()

    def floor(self) -> Self:
        """Rounded toward minus infinity."""
        if not self.dtype.is_float:
            return self._fresh()
        rounded = self.trunc()
        return (self < rounded).where(rounded - 1, rounded)

    def ceil(self) -> Self:
        """Rounded toward plus infinity."""
        if not self.dtype.is_float:
            return self._fresh()
        rounded = self.trunc()
        return (rounded < self).where(rounded + 1, rounded)

    def usum(self, *uops: Self) -> Self:
        """Sum of self and all of ``uops``."""
        out = self
        for u in uops:
            out = out + u
        return out

    def uprod(self, *uops: Self) -> Self:
        """Product of self and all of ``uops``."""
        out = self
        for u in uops:
            out = out * u
        return out

    # *** operators ***
    def __neg__(self) -> Self:
        return self.neg()

    def __invert__(self) -> Self:
        return self.bitwise_not()

    def __add__(self, x: Any) -> Self:
        return self._binop(Ops.ADD, x)

    def __radd__(self, x: Any) -> Self:
        return self._binop(Ops.ADD, x, True)

    def __sub__(self, x: Any) -> Self:
        return self.sub(x)

    def __rsub__(self, x: Any) -> Self:
        return self.sub(x, True)

    def __mul__(self, x: Any) -> Self:
        return self._binop(Ops.MUL, x)

    def __rmul__(self, x: Any) -> Self:
        return self._binop(Ops.MUL, x, True)

    def __truediv__(self, x: Any) -> Self:
        return self.div(x)

    def __rtruediv__(self, x: Any) -> Self:
        return self.div(x, True)

    def __floordiv__(self, x: Any) -> Self:
        return self.floordiv(x)

    def __rfloordiv__(self, x: Any) -> Self:
        return self.floordiv(x, True)

    def __mod__(self, x: Any) -> Self:
        return self.mod(x)

    def __rmod__(self, x: Any) -> Self:
        return self.mod(x, True)

    def __pow__(self, x: Any) -> Self:
        return self.pow(x)

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, True)

    def __and__(self, x: Any) -> Self:
        return self.bitwise_and(x)

    def __rand__(self, x: Any) -> Self:
        return self.bitwise_and(x, True)

    def __or__(self, x: Any) -> Self:
        return self.bitwise_or(x)

    def __ror__(self, x: Any) -> Self:
        return self.bitwise_or(x, True)

    def __xor__(self, x: Any) -> Self:
        return self.bitwise_xor(x)

    def __rxor__(self, x: Any) -> Self:
        return self.bitwise_xor(x, True)

    def __lshift__(self, x: Any) -> Self:
        return self.lshift(x)

    def __rlshift__(self, x: Any) -> Self:
        return self.lshift(x, True)

    def __rshift__(self, x: Any) -> Self:
        return self.rshift(x)

    def __rrshift__(self, x: Any) -> Self:
        return self.rshift(x, True)
