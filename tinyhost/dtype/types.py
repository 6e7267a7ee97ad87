"""The data types and the namespace ``dtypes``.

A ``DType`` is interned: equality is identity, so it hashes like an address and stands in interning keys for free. Weak
types (``weakint``, ``weakfloat``) are literals and index expressions whose width is not decided; they can be computed
with, never stored. ``truncate``, the rounding of a number to a type, is filled in by ``rounding``.
"""
from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from tinyhost.dtype.literals import ConstFloat, ConstType, Invalid, InvalidType
from tinyhost.env import DEFAULT_FLOAT, DEFAULT_INT
from tinyhost.errors import DTypeError


class DType:
    """One data type; each exists once per process.

    Attributes:
        priority: place in the promotion order.
        bitsize: width in bits; 800 for weak types, 0 for void.
        name: its C name.
        fmt: its ``struct`` code, None where Python has none (bfloat16, fp8, weak types, void).
        itemsize: bytes in memory.
        min, max: bounds of the values, Python numbers.
        is_float, is_int, is_unsigned, is_weak: kind flags; bool and void have none of them.
    """

    __slots__ = ("priority", "bitsize", "name", "fmt", "itemsize", "min", "max", "is_float", "is_int", "is_unsigned",
                 "is_weak", "sort_key", "alias")

    priority: int
    bitsize: int
    name: str
    fmt: str | None
    itemsize: int
    min: Any
    max: Any
    is_float: bool
    is_int: bool
    is_unsigned: bool
    is_weak: bool
    sort_key: tuple[int, int, str, str]
    alias: str

    def __new__(cls, priority: int, bitsize: int, name: str, fmt: str | None) -> DType:
        self = _interned.get(name)
        if self is not None:
            if (self.priority, self.bitsize, self.fmt) != (priority, bitsize, fmt):
                raise ValueError(f"a dtype named {name!r} exists with other properties: {self!r}")
            return self
        self = object.__new__(cls)
        weak = name in ("weakint", "weakfloat")
        is_float = name == "weakfloat" or priority >= 10
        is_int = name == "weakint" or 1 <= priority <= 8
        unsigned = is_int and name.startswith("unsigned")
        lo: Any = False
        hi: Any = True
        if is_float:
            hi = _LARGEST.get(name, math.inf)
            lo = -hi
        elif is_int:
            lo, hi = (0, (1 << bitsize) - 1) if unsigned else (-(1 << bitsize - 1), (1 << bitsize - 1) - 1)
        for slot, value in (("priority", priority), ("bitsize", bitsize), ("name", name), ("fmt", fmt),
                            ("itemsize", (bitsize + 7) // 8), ("min", lo), ("max", hi), ("is_float", is_float),
                            ("is_int", is_int), ("is_unsigned", unsigned), ("is_weak", weak),
                            ("sort_key", (priority, bitsize, name, fmt or "")), ("alias", name)):
            object.__setattr__(self, slot, value)
        _interned[name] = self
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r} of {self!r}: dtypes are immutable")

    def __repr__(self) -> str:
        return f"dtypes.{self.alias}"

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.priority, self.bitsize, self.name, self.fmt)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    def __lt__(self, other: DType) -> bool:
        return self.sort_key < other.sort_key

    def __le__(self, other: DType) -> bool:
        return self.sort_key <= other.sort_key

    def __gt__(self, other: DType) -> bool:
        return self.sort_key > other.sort_key

    def __ge__(self, other: DType) -> bool:
        return self.sort_key >= other.sort_key

    def const(self, value: ConstType) -> ConstType:
        """``value`` as a literal of this type: floats rounded to it, ints exact (not wrapped), Invalid as it is."""
        if value is Invalid:
            return value
        if self.is_float:
            return ConstFloat(truncate[self](value))
        if self.is_int:
            return int(value)  # type: ignore[arg-type]
        return bool(value)


_interned: dict[str, DType] = {}
# types without infinities: their largest number is the neutral element of MAX, an infinity would be NaN
_LARGEST: Final = {"float8_e4m3": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0}

DTypeLike: TypeAlias = str | DType
truncate: Final[dict[DType, Callable[[Any], Any]]] = {}
"""The nearest value of each type: ints wrap, floats round; a float given for an int type truncates and saturates."""


class _DTypes:
    """The namespace ``dtypes``: every type under its name and its alias, kind tests and the two defaults."""

    __slots__ = ()

    void: Final = DType(-1, 0, "void", None)
    weakint: Final = DType(0, 800, "weakint", None)
    bool: Final = DType(0, 1, "bool", "?")
    int8: Final = DType(1, 8, "signed char", "b")
    uint8: Final = DType(2, 8, "unsigned char", "B")
    int16: Final = DType(3, 16, "short", "h")
    uint16: Final = DType(4, 16, "unsigned short", "H")
    int32: Final = DType(5, 32, "int", "i")
    uint32: Final = DType(6, 32, "unsigned int", "I")
    int64: Final = DType(7, 64, "long", "q")
    uint64: Final = DType(8, 64, "unsigned long", "Q")
    weakfloat: Final = DType(9, 800, "weakfloat", None)
    fp8e4m3: Final = DType(10, 8, "float8_e4m3", None)
    fp8e5m2: Final = DType(11, 8, "float8_e5m2", None)
    fp8e4m3fnuz: Final = DType(10, 8, "float8_e4m3fnuz", None)
    fp8e5m2fnuz: Final = DType(11, 8, "float8_e5m2fnuz", None)
    float16: Final = DType(12, 16, "half", "e")
    bfloat16: Final = DType(13, 16, "__bf16", None)
    float32: Final = DType(14, 32, "float", "f")
    float64: Final = DType(15, 64, "double", "d")

    char: Final = int8
    uchar: Final = uint8
    short: Final = int16
    ushort: Final = uint16
    int: Final = int32
    uint: Final = uint32
    long: Final = int64
    ulong: Final = uint64
    half: Final = float16
    float: Final = float32
    double: Final = float64

    fp8_ocp: Final = (fp8e4m3, fp8e5m2)
    fp8_fnuz: Final = (fp8e4m3fnuz, fp8e5m2fnuz)
    fp8s: Final = fp8_ocp + fp8_fnuz
    floats: Final = fp8s + (float16, bfloat16, float32, float64)
    int8s: Final = (uint8, int8)
    int16s: Final = (uint16, int16)
    int32s: Final = (uint32, int32)
    int64s: Final = (uint64, int64)
    uints: Final = (uint8, uint16, uint32, uint64)
    sints: Final = (int8, int16, int32, int64)
    ints: Final = uints + sints
    weaks: Final = (weakint, weakfloat)
    all: Final = floats + ints + (bool,)

    @property
    def default_float(self) -> DType:
        """What a weak float becomes when nothing else decides (``DEFAULT_FLOAT``)."""
        return to_dtype(DEFAULT_FLOAT.value or "float32")

    @property
    def default_int(self) -> DType:
        """What a weak int becomes when nothing else decides (``DEFAULT_INT``)."""
        return to_dtype(DEFAULT_INT.value or "int32")

    @staticmethod
    def is_float(x: DType) -> builtins.bool:
        """Whether ``x`` is a float type, weakfloat included."""
        return x.is_float

    @staticmethod
    def is_int(x: DType) -> builtins.bool:
        """Whether ``x`` is an integer type, weakint included, bool not."""
        return x.is_int

    @staticmethod
    def is_unsigned(x: DType) -> builtins.bool:
        """Whether ``x`` is an unsigned integer type."""
        return x.is_unsigned

    @staticmethod
    def is_bool(x: DType) -> builtins.bool:
        """Whether ``x`` is bool."""
        return x is dtypes.bool

    @staticmethod
    def finfo(dtype: DType) -> tuple[builtins.int, builtins.int]:
        """(exponent bits, stored mantissa bits) of a float type; KeyError for weakfloat and non-floats."""
        return _FINFO[dtype.name]

    @staticmethod
    def from_py(x: Any) -> DType:
        """Type of a Python literal: weak for numbers, the widest of its items for a list, weakfloat for an empty one.

        Raises:
            DTypeError: ``x`` is no bool, int, float, Invalid or nested list of those.
        """
        kind = _PY_KINDS.get(x.__class__)
        if kind is not None:
            return kind
        if isinstance(x, (list, tuple)):
            return max((dtypes.from_py(item) for item in x), default=dtypes.weakfloat)
        for base, dtype in _PY_KINDS.items():
            if isinstance(x, base):
                return dtype
        raise DTypeError(f"could not infer a dtype from {x!r} of type {type(x).__name__}: give bool, int, float or a "
                         "list of these")


dtypes: Final = _DTypes()

_FINFO: Final = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2), "float8_e4m3fnuz": (4, 3), "float8_e5m2fnuz": (5, 2),
                 "half": (5, 10), "__bf16": (8, 7), "float": (8, 23), "double": (11, 52)}
_PY_KINDS: Final[dict[type, DType]] = {bool: dtypes.bool, int: dtypes.weakint, float: dtypes.weakfloat,
                                       ConstFloat: dtypes.weakfloat, InvalidType: dtypes.bool}


def _names() -> Iterator[tuple[str, DType]]:
    for name, value in vars(_DTypes).items():
        if isinstance(value, DType):
            object.__setattr__(value, "alias", name)  # the last name bound to a type is the one that prints
            if not name.startswith(("default", "void", "weak", "_")):
                yield name, value


DTYPES_DICT: Final[dict[str, DType]] = dict(_names())


def to_dtype(dtype: DTypeLike) -> DType:
    """A type from itself or from its name ("float32", "half", "int" ...; case does not matter).

    Raises:
        DTypeError: no type has that name.
    """
    if isinstance(dtype, DType):
        return dtype
    found = DTYPES_DICT.get(dtype) or DTYPES_DICT.get(str(dtype).lower())
    if found is None:
        raise DTypeError(f"unknown dtype {dtype!r}: the names are {', '.join(sorted(DTYPES_DICT))}")
    return found
