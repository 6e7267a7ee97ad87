"""The vocabulary of the IR: operations, their groups, axis kinds and address spaces.

Takes nothing, gives four enumerations and the sets over them. The number of an op is part of its meaning: it breaks
ties when nodes are sorted (linear order, canonical operand order), so a new op is inserted where its class stands.
The grammar of each op (sources, argument, legality) is in ``tinyhost.uop.spec``; what an op computes is in
``tinyhost.uop.semantics``.
"""
from __future__ import annotations

import sys
from enum import Enum, EnumType, IntEnum, auto
from typing import Any, TypeVar

E = TypeVar("E", bound=Enum)


class _Members(type):
    """What an enumeration's class itself can do: all of ``EnumType`` that reads members."""

    __iter__: Any = EnumType.__iter__
    __reversed__: Any = EnumType.__reversed__
    __len__: Any = EnumType.__len__
    __bool__: Any = EnumType.__bool__
    __contains__: Any = EnumType.__contains__
    __getitem__: Any = EnumType.__getitem__
    __dir__: Any = EnumType.__dir__
    __repr__: Any = EnumType.__repr__
    __members__: Any = EnumType.__members__


def direct(cls: type[E]) -> type[E]:
    """Let members of an enumeration be read as attributes of any other class.

    ``EnumType`` of Python 3.11 has a ``__getattr__`` in Python, so that each ``Ops.ADD`` costs 90 ns instead of 15: a
    fifth of the time of compiling a kernel. Python 3.12 has none.
    """
    if sys.version_info < (3, 12):
        cls.__class__ = _Members  # type: ignore[assignment]
    return cls


class FastEnum(IntEnum):
    """An integer enumeration that prints as ``Class.NAME``."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__
    # ops stand in every dictionary key; the default hash of an enumeration goes through Python code
    __hash__ = int.__hash__


@direct
class Ops(FastEnum):
    """Every operation of the IR, in canonical order."""

    # values that exist before anything runs
    SPECIAL = auto()
    BUFFER = auto()
    # structure
    NOOP = auto()
    REWRITE_ERROR = auto()
    PARAM = auto()
    FUNCTION = auto()
    CALL = auto()
    PROGRAM = auto()
    LINEAR = auto()
    SOURCE = auto()
    BINARY = auto()
    SINK = auto()
    AFTER = auto()
    GROUP = auto()
    STACK = auto()
    TUPLE = auto()
    GETTUPLE = auto()
    GETADDR = auto()
    # memory
    INDEX = auto()
    SHRINK = auto()
    LOAD = auto()
    STORE = auto()
    WMMA = auto()
    # unary
    CAST = auto()
    BITCAST = auto()
    EXP2 = auto()
    LOG2 = auto()
    SIN = auto()
    SQRT = auto()
    RECIPROCAL = auto()
    NEG = auto()
    TRUNC = auto()
    # binary
    ADD = auto()
    MUL = auto()
    SHL = auto()
    SHR = auto()
    CDIV = auto()
    MAX = auto()
    CMOD = auto()
    CMPLT = auto()
    CMPNE = auto()
    CMPEQ = auto()
    XOR = auto()
    OR = auto()
    AND = auto()
    THREEFRY = auto()
    SUB = auto()
    FDIV = auto()
    POW = auto()
    FLOORDIV = auto()
    FLOORMOD = auto()
    # ternary
    WHERE = auto()
    MULACC = auto()
    # control flow
    BARRIER = auto()
    RANGE = auto()
    IF = auto()
    END = auto()
    ENDIF = auto()
    WAIT = auto()
    # literals and instructions
    CONST = auto()
    CUSTOM = auto()
    CUSTOMI = auto()
    INS = auto()
    # tensor graph
    CONTIGUOUS = auto()
    CONTIGUOUS_BACKWARD = auto()
    DETACH = auto()
    STAGE = auto()
    COPY = auto()
    MSELECT = auto()
    MSTACK = auto()
    CUSTOM_FUNCTION = auto()
    # movement
    RESHAPE = auto()
    PERMUTE = auto()
    EXPAND = auto()
    PAD = auto()
    FLIP = auto()
    UNSHARD = auto()
    # reduction
    REDUCE = auto()
    ALLREDUCE = auto()
    # pattern compiler
    PYLITERAL = auto()


class GroupOp:
    """Named sets of ops (``docs/spec.md`` lists them)."""

    Unary = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.NEG, Ops.TRUNC})
    Binary = frozenset({
        Ops.ADD, Ops.MUL, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.MAX, Ops.CMOD, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.XOR,
        Ops.OR, Ops.AND, Ops.THREEFRY, Ops.SUB, Ops.FDIV, Ops.POW, Ops.FLOORDIV, Ops.FLOORMOD})
    Ternary = frozenset({Ops.WHERE, Ops.MULACC})
    ALU = Unary | Binary | Ternary
    Broadcastable = Binary | Ternary
    Elementwise = ALU | {Ops.CAST, Ops.BITCAST}
    Defines = frozenset({Ops.PARAM, Ops.BUFFER})
    Irreducible = frozenset({Ops.CONST, Ops.SPECIAL, Ops.RANGE, Ops.PARAM, Ops.GETADDR})
    Movement = frozenset({Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.PAD, Ops.SHRINK, Ops.FLIP})
    Commutative = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPNE, Ops.CMPEQ, Ops.XOR, Ops.AND, Ops.OR})
    Associative = frozenset({Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.MAX})
    Idempotent = frozenset({Ops.OR, Ops.AND, Ops.MAX})
    Reduce = frozenset({Ops.ADD, Ops.MUL, Ops.MAX})
    Comparison = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
    OpaqueBody = frozenset({Ops.SINK, Ops.PROGRAM, Ops.LINEAR, Ops.COPY, Ops.CUSTOM_FUNCTION})
    All = frozenset(Ops)


@direct
class AxisType(Enum):
    """What runs the iterations of a RANGE: hardware indices, threads, a loop, unrolled code or vector lanes."""

    DEVICE = auto()
    GLOBAL = auto()
    WARP = auto()
    LOCAL = auto()
    WEAK = auto()
    GROUP_REDUCE = auto()
    REDUCE = auto()
    UPCAST = auto()
    UNROLL = auto()
    THREAD = auto()
    PLACEHOLDER = auto()
    LOOP = auto()
    LANE = auto()

    def __repr__(self) -> str:
        return f"AxisType.{self.name}"

    # AxisType stands inside interning keys; the default Enum hash goes through Python code.
    def __hash__(self) -> int:
        return id(self)


@direct
class AddrSpace(Enum):
    """Where a value lives: device memory, workgroup memory, registers, or nowhere (an ALU value)."""

    GLOBAL = 1
    LOCAL = 2
    REG = 3
    ALU = 4

    def __repr__(self) -> str:
        return f"AddrSpace.{self.name}"

    def __hash__(self) -> int:
        return self._value_

    def __lt__(self, other: "AddrSpace") -> bool:
        return self._value_ < other._value_
