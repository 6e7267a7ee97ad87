"""Words of command streams: numbers, or expressions over variables, and how the expressions are computed.

Takes an expression of integer ops over variables and literals; gives a ``Field`` where it is a bit field of one
variable plus an addend, which covers nearly every word of every packet, or an ``Evaluator`` for any other. Both
compute modulo 2^64; a stream keeps the lower bits of a word. What an op means is ``tinyhost.uop.semantics``.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp
from tinyhost.uop.semantics import COMPARISON, cast, evaluate

ALL = (1 << 64) - 1


def low(x: int | UOp) -> int | UOp:
    """The lower 32 bits of an address."""
    return (x.arg if isinstance(x, UOp) and x.op is Ops.CONST else x) & 0xFFFFFFFF


def high(x: int | UOp) -> int | UOp:
    """The upper 32 bits of an address."""
    return (x.arg if isinstance(x, UOp) and x.op is Ops.CONST else x) >> 32


@dataclass(frozen=True, slots=True)
class Field:
    """``((((name + addend) >> shift) & mask) << left) + base``, modulo 2^64."""

    name: str
    addend: int = 0
    shift: int = 0
    mask: int = ALL
    left: int = 0
    base: int = 0

    def value(self, x: int) -> int:
        """The word where the variable is ``x``."""
        return (((((x + self.addend) & ALL) >> self.shift & self.mask) << self.left) + self.base) & ALL

    def then(self, op: Ops, c: int) -> Field | None:
        """The field of ``self op c``, None where it is no field."""
        if op is Ops.ADD:
            return self._add(c)
        if op is Ops.AND:
            return None if self.base else self._with(mask=self.mask & (c & ALL) >> self.left)
        if op is Ops.OR:
            c &= ALL
            moved = self.mask << self.left & ALL
            return None if moved & (c | self.base) else self._with(base=self.base | c)
        if op is Ops.SHL:
            return self._with(left=self.left + c, base=self.base << c & ALL) if 0 <= c and self.left + c < 64 else None
        if op is Ops.SHR and not self.left and not self.base and 0 <= c < 64 - self.shift:
            return self._with(shift=self.shift + c, mask=self.mask >> c)
        return None

    def _add(self, c: int) -> Field:
        if self.shift or self.mask != ALL or self.left or self.base:
            return self._with(base=(self.base + c) & ALL)
        return self._with(addend=(self.addend + c) & ALL)

    def _with(self, **changes: int) -> Field:
        values = {f: changes.get(f, getattr(self, f)) for f in ("addend", "shift", "mask", "left", "base")}
        return Field(self.name, **values)


def _literal(u: UOp) -> int | None:
    if u.op is Ops.CAST and u.src[0].op is Ops.CONST:
        return int(u.const_value) if u.dtype is dtypes.uint64 or u.dtype.is_weak else None
    return int(u.arg) if u.op is Ops.CONST and type(u.arg) is int else None


def _power(c: int) -> int | None:
    """The exponent where ``c`` is a power of two."""
    return c.bit_length() - 1 if c > 0 and c & c - 1 == 0 else None


def _step(u: UOp) -> tuple[UOp, Ops, int] | None:
    """(operand, op of ``Field.then``, literal) of one op on a uint64 value, None where it is something else."""
    if u.dtype is not dtypes.uint64 or len(u.src) != 2:
        return None
    x, op, c = u.src[0], u.op, _literal(u.src[1])
    if c is None and op in GroupOp.Commutative:
        x, c = u.src[1], _literal(u.src[0])
    if c is None or x.dtype is not dtypes.uint64:
        return None
    if op is Ops.SUB:
        return x, Ops.ADD, -c
    if op in (Ops.MUL, Ops.FLOORDIV, Ops.CDIV, Ops.FLOORMOD, Ops.CMOD):
        power = _power(c)
        if power is None:
            return None
        if op is Ops.MUL:
            return x, Ops.SHL, power
        return (x, Ops.AND, c - 1) if op in (Ops.FLOORMOD, Ops.CMOD) else (x, Ops.SHR, power)
    return x, op, c


def _leaf(u: UOp) -> str | None:
    """Name of the variable that a word is, whose value is in its bounds and wraps to 64 bits like any number."""
    if u.op is Ops.CAST and u.dtype is dtypes.uint64:
        u = u.src[0]
    return u.arg.name if u.is_variable and u.dtype.is_int else None


def field_of(u: UOp) -> Field | None:
    """The word as a field of one variable, None where it is a general expression."""
    steps = []
    while (name := _leaf(u)) is None:
        step = _step(u)
        if step is None:
            return None
        steps.append(step)
        u = step[0]
    out = Field(name)
    for _, op, c in reversed(steps):
        longer = out.then(op, c)
        if longer is None:
            return None
        out = longer
    return out


class Evaluator:
    """Several expressions as one list of steps, shared parts computed once.

    Attributes:
        names: the variables that need values, sorted.

    Raises:
        TypeError: a node is no integer arithmetic over variables.
    """

    def __init__(self, words: Sequence[UOp]) -> None:
        nodes = list(UOp.sink(*words).toposort())[:-1]
        number = {u: i for i, u in enumerate(nodes)}
        self._first: list[Any] = [u.arg if u.op is Ops.CONST else None for u in nodes]
        self._variables = [(number[u], u.arg.name) for u in nodes if u.is_variable]
        self._steps = [(number[u], _compute(u), [number[s] for s in u.src]) for u in nodes
                       if u.op is not Ops.CONST and not u.is_variable]
        self._results = [number[w] for w in words]
        self.names = tuple(sorted({name for _, name in self._variables}))

    def __call__(self, values: Mapping[str, int]) -> list[int]:
        """The words, modulo 2^64."""
        table = self._first.copy()
        for i, name in self._variables:
            table[i] = values[name]
        for i, compute, sources in self._steps:
            table[i] = compute(*[table[s] for s in sources])
        return [int(table[i]) & ALL for i in self._results]


def _compute(u: UOp) -> Callable[..., Any]:
    op = u.op
    if op is Ops.CAST and not u.dtype.is_float:
        src, dst = u.src[0].dtype, u.dtype
        return lambda x: cast(x, src, dst)
    if op not in GroupOp.ALU or (u.dtype.is_float or u.src[-1].dtype.is_float):
        raise TypeError(f"{op} of {u.dtype} is no part of a word: words are integer arithmetic over variables")
    dtype = UOp(Ops.ADD, u.src).dtype if op in COMPARISON else u.dtype
    return lambda *xs: evaluate(op, dtype, xs)
