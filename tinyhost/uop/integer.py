"""Nodes as symbolic integers: Python numbers of decided ones, terms, factors, exact quotients, values for variables.

Everything here reads bounds and literals; ``simplify`` is asked where an expression has to be decided. The canonical
form of sums that ``divides`` and ``const_factor`` count on (literal on the right, constant last) is made by
``rules/linear.py``.
"""
from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Self, TypeVar

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.fields import NodeFields

T = TypeVar("T")


def _own_factor(u: Any) -> int:
    if u.op is Ops.CONST and type(u.arg) is int:
        return abs(u.arg)
    return u.arg.multiple_of or 1 if u.op in GroupOp.Defines else 1


def _factors(u: Any) -> tuple[Counter[Any], int]:
    """The factors of a product, and its literal; of a sum, those that all terms share."""
    if u.op is Ops.ADD:
        terms = [_factors(t) for t in u.split_uop(Ops.ADD)]
        return reduce(operator.and_, [f for f, _ in terms]), math.gcd(*[k for _, k in terms])
    factors: Counter[Any] = Counter()
    literal = 1
    for f in u.split_uop(Ops.MUL):
        if f.op is Ops.CONST:
            literal *= f.arg
        else:
            factors[f] += 1
    return factors, literal


def _sum(parts: Sequence[Any]) -> Any:
    """The sum of ``parts``, None if one of them is."""
    return None if any(p is None for p in parts) else reduce(operator.add, parts)


class IntegerMixin(NodeFields):
    """Conversions to Python numbers and integer algebra."""

    __slots__ = ()

    def sym_infer(self, var_vals: dict[str, int]) -> int:
        """The integer value of the expression with variables given by name.

        Raises:
            RuntimeError: a variable has no value, or the expression is no integer arithmetic.
        """
        subs = {}
        for v in self.variables():
            if v.arg.name not in var_vals:
                raise RuntimeError(f"no value for variable {v.arg.name!r}, got only {sorted(var_vals)}")
            subs[v] = self._const(var_vals[v.arg.name])
        out = self.substitute(subs).simplify()
        if not out.is_const:
            raise RuntimeError(f"{self.render()} has no integer value with {var_vals}")
        return int(out.const_value)

    def __bool__(self) -> bool:
        return self._decided(dtypes.bool, bool)

    def __int__(self) -> int:
        return self._decided(dtypes.ints + (dtypes.weakint,), int)

    def __index__(self) -> int:
        return self.__int__()

    def __float__(self) -> float:
        return self._decided(dtypes.floats + (dtypes.weakfloat,), float)

    def _decided(self, kind: Any, make: Callable[[Any], T]) -> T:
        allowed = kind if isinstance(kind, tuple) else (kind,)
        assert self.dtype in allowed, f"a node of dtype {self.dtype} has no value as {make.__name__}"
        lo, hi = self.simplify().bounds
        if lo != hi:
            raise ValueError(f"{self.render()} is not decided: it lies between {lo} and {hi}")
        return make(lo)

    def split_uop(self, sep: Ops) -> Iterator[Self]:
        """Terms of nested ``sep``, left to right."""
        stack = [self]
        while stack:
            u = stack.pop()
            if u.op is sep:
                stack.extend(reversed(u.src))
            else:
                yield u

    def pop_const(self, op: Ops = Ops.ADD) -> tuple[Self, Any]:
        """(rest, literal) of ``rest op literal``; the neutral literal where there is none."""
        if self.op is op and self.src[1].op is Ops.CONST:
            return self.src[0], self.src[1].arg
        return self, (0 if op is Ops.ADD else 1)

    def const_factor(self) -> int:
        """Largest known integer that divides the value."""
        cache: dict[Any, int] = {}
        for u in self.toposort(gate=lambda u: u is self or u.op in (Ops.ADD, Ops.MUL, Ops.CONST)):
            if u.op is Ops.CONST and type(u.arg) is int:
                cache[u] = abs(u.arg)
            elif u.op is Ops.ADD:
                cache[u] = math.gcd(*(cache.get(s, _own_factor(s)) for s in u.src))
            elif u.op is Ops.MUL:
                cache[u] = cache.get(u.src[0], _own_factor(u.src[0])) * cache.get(u.src[1], _own_factor(u.src[1]))
            else:
                cache[u] = _own_factor(u)
        return cache[self]

    def overflows(self, dtype: DType) -> bool:
        """Whether some value within the bounds does not fit ``dtype``."""
        lo, hi = self.bounds
        return bool(lo < dtype.min or hi > dtype.max)

    def divide_exact(self, v: Self) -> Self | None:
        """The exact quotient by ``v``, None where it is not known to be exact."""
        if self is v:
            return self._const(1)
        if v.op is Ops.CONST:
            return self.divides(v.arg)
        if self.op is Ops.ADD:
            return _sum([t.divide_exact(v) for t in self.split_uop(Ops.ADD)])  # type: ignore[no-any-return]
        have, want = _factors(self), _factors(v)
        literal, rest = divmod(have[1], want[1]) if want[1] else (0, 1)
        left = have[0] - want[0]
        if rest or left + want[0] != have[0]:
            return None
        return self._product(left, literal)

    def _product(self, factors: Counter[Any], literal: int) -> Self:
        out: Any = None
        for f in factors.elements():
            out = f if out is None else out * f
        if out is None:
            return self._const(literal)
        return out if literal == 1 else out * literal  # type: ignore[no-any-return]

    @staticmethod
    def gcd(*uops: Any) -> Any:
        """The largest known common factor, its literal last."""
        factors, literal = _factors(uops[0])
        for u in uops[1:]:
            more, k = _factors(u)
            factors, literal = factors & more, math.gcd(literal, k)
        return uops[0]._product(factors, literal)

    def divides(self, v: int) -> Self | None:
        """The exact quotient by ``v``, None where it is not known to be exact."""
        if v == 1:
            return self
        if self.op is Ops.CONST:
            return self._const(self.arg // v) if self.arg % v == 0 else None
        if self.op is Ops.ADD:
            return _sum([t.divides(v) for t in self.split_uop(Ops.ADD)])  # type: ignore[no-any-return]
        if self.op is Ops.MUL:
            for i in (1, 0):
                if self.src[i].op is Ops.CONST and self.src[i].arg % v == 0:
                    q = self.src[i].arg // v
                    return self.src[1 - i] if q == 1 else self.src[1 - i] * q
        return None
