"""Data types, literals, promotion, and how a Python number is rounded and stored as each type.

Takes and gives plain Python numbers. A ``DType`` is interned: equality is identity, so it hashes like an address and
stands in interning keys for free. Every rounding here is one rounding, to nearest even. Weak types (``weakint``,
``weakfloat``) are literals and index expressions whose width is not decided; they can be computed with, never stored.
What an operation computes is in ``tinyhost.uop.semantics``; arrays and devices are not known here.
"""
from __future__ import annotations

import builtins
import ctypes
import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tinyhost.env import DEFAULT_FLOAT, DEFAULT_INT, SUM_DTYPE
from tinyhost.errors import DTypeError

if TYPE_CHECKING:
    import numpy
    import torch


# *** literals ***
class ConstFloat(float):
    """A float that can be an interning key: NaN equals NaN, and -0.0 differs from 0.0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if float.__eq__(self, other) is True:
            return float.__ne__(self, 0.0) or math.copysign(1.0, self) == math.copysign(1.0, other)  # type: ignore
        return float.__ne__(self, self) and isinstance(other, float) and float.__ne__(other, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0x7FC00000 if float.__ne__(self, self) else float.__hash__(self)


class InvalidType:
    """The literal that stands for "no value here": padding, and the index of an access that must not happen."""

    __slots__ = ()
    _instance: InvalidType | None = None

    def __new__(cls) -> InvalidType:
        if cls._instance is None:
            cls._instance = object.__new__(cls)
        return cls._instance

    # sorts behind every number, so literals have a total order
    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __repr__(self) -> str:
        return "Invalid"

    def __reduce__(self) -> str:
        return "Invalid"


Invalid: Final = InvalidType()

PyConst: TypeAlias = float | int | bool
ConstType: TypeAlias = float | int | bool | InvalidType


# *** the type ***
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


# *** promotion ***
_PARENTS: Final[dict[DType, tuple[DType, ...]]] = {
    dtypes.bool: (dtypes.weakint,), dtypes.weakint: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,), dtypes.int16: (dtypes.int32,), dtypes.int32: (dtypes.int64,),
    dtypes.int64: (dtypes.weakfloat,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16), dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.uint32: (dtypes.int64, dtypes.uint64), dtypes.uint64: (dtypes.weakfloat,),
    dtypes.weakfloat: dtypes.fp8s, **{fp8: (dtypes.float16, dtypes.bfloat16) for fp8 in dtypes.fp8s},
    dtypes.float16: (dtypes.float32,), dtypes.bfloat16: (dtypes.float32,), dtypes.float32: (dtypes.float64,)}


@functools.cache
def _ancestors(dtype: DType) -> frozenset[DType]:
    return frozenset({dtype}).union(*[_ancestors(parent) for parent in _PARENTS.get(dtype, ())])


@functools.cache
def least_upper_dtype(*ds: DType) -> DType:
    """The smallest type that all of ``ds`` promote to.

    Raises:
        DTypeError: there is none (void takes part in no promotion).
    """
    if not ds:
        raise DTypeError("least_upper_dtype of nothing: give at least one dtype")
    common = frozenset.intersection(*[_ancestors(d) for d in ds])
    if not common:
        raise DTypeError(f"no common dtype of {', '.join(map(repr, ds))}: void takes part in no promotion")
    return min(common)


def least_upper_float(dtype: DType) -> DType:
    """The float type in which float math on ``dtype`` happens: itself, weakfloat for weakint, else via the default."""
    if dtype.is_float:
        return dtype
    return dtypes.weakfloat if dtype is dtypes.weakint else least_upper_dtype(dtype, dtypes.default_float)


def strong_dtype(dtype: DType) -> DType:
    """The default type of a weak one; others unchanged."""
    if not dtype.is_weak:
        return dtype
    return dtypes.default_int if dtype is dtypes.weakint else dtypes.default_float


def weak_dtype(dtype: DType) -> DType:
    """The weak type of the same kind: weakfloat, weakint, or bool and void as they are."""
    return dtypes.weakfloat if dtype.is_float else dtypes.weakint if dtype.is_int else dtype


@functools.cache
def can_lossless_cast(src: DType, dst: DType) -> bool:
    """Whether every value of ``src`` is a value of ``dst``."""
    if src is dst or src is dtypes.bool:
        return True
    if dst is dtypes.weakint:
        return src.is_int
    if src.is_weak or dst.is_weak:
        return False
    if dst.is_float:
        ints = {dtypes.float64: 32, dtypes.float32: 16, dtypes.float16: 8}.get(dst, 0)
        return src.bitsize <= ints if src.is_int else (
            src in {dtypes.float64: (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16, dtypes.float32),
                    dtypes.float32: (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16),
                    dtypes.float16: dtypes.fp8s}.get(dst, ()))
    return src.is_int and dst.is_int and bool(dst.min <= src.min and src.max <= dst.max)


def sum_acc_dtype(dtype: DType) -> DType:
    """The type in which a sum over ``dtype`` accumulates; floats are at least ``SUM_DTYPE``."""
    if dtype.is_unsigned:
        return least_upper_dtype(dtype, dtypes.uint32)
    if dtype.is_int or dtype is dtypes.bool:
        return least_upper_dtype(dtype, dtypes.int32)
    return least_upper_dtype(dtype, to_dtype(SUM_DTYPE.value or "float32"))


# *** rounding of Python numbers ***
def _int_to_float(x: int) -> float:
    """``x`` as a float that keeps every later rounding to fewer bits right (the last bit is sticky)."""
    shift = x.bit_length() - 53
    if shift > 0:
        head = x >> shift
        x = (head | (head << shift != x)) << shift
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _float(x: PyConst) -> float:
    return float(x) if isinstance(x, float) else _int_to_float(x)


def _round_double(x: PyConst) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _round_float(x: PyConst) -> float:
    value: float = ctypes.c_float(x if isinstance(x, float) else _int_to_float(x)).value
    return value


_HALF, _FLOAT, _UINT = struct.Struct("<e"), struct.Struct("<f"), struct.Struct("<I")


def float_to_fp16(x: PyConst) -> float:
    """The value of ``x`` rounded to float16; overflow gives an infinity."""
    x = _float(x)
    try:
        value: float = _HALF.unpack(_HALF.pack(x))[0]
        return value
    except OverflowError:
        return math.copysign(math.inf, x)


def float_to_bf16(x: PyConst) -> float:
    """The value of ``x`` rounded to bfloat16; overflow gives an infinity, NaN and infinities stay."""
    x = _float(x)
    if x == 0.0 or x - x != 0.0:
        return x
    # one rounding, straight to 8 significant bits or to multiples of the smallest subnormal
    step = math.ldexp(1.0, max(math.frexp(x)[1] - 8, -133))
    value = round(x / step) * step if abs(x) > step / 4 else math.copysign(0.0, x)
    if value == 0.0:
        return math.copysign(0.0, x)
    return math.copysign(math.inf, x) if abs(value) >= 2.0**128 else value


@functools.cache
def _fp8_tables(dtype: DType) -> tuple[tuple[float, ...], list[float]]:
    """(value of each code, upper edges of the codes from 0): ``edges[i]`` is half way between codes i and i+1."""
    _, mant = dtypes.finfo(dtype)
    fnuz = dtype in dtypes.fp8_fnuz
    bias = (1 << 6 - mant) - (0 if fnuz else 1)
    ladder = [math.ldexp((code & (1 << mant) - 1) + (1 << mant if code >> mant else 0),
                         max(code >> mant, 1) - bias - mant) for code in range(129)]
    top = 0x7F if fnuz else 0x7E if mant == 3 else 0x7B  # largest finite code
    edges = [(ladder[i] + ladder[i + 1]) / 2 for i in range(top + 1)]
    positive = ladder[:top + 1] + [math.inf] * (mant == 2 and not fnuz)
    positive += [math.nan] * (128 - len(positive))
    values = positive + [-v for v in positive]
    if fnuz:
        values[0x80] = math.nan
    return tuple(values), edges


def float_to_fp8(x: PyConst, dtype: DType) -> int:
    """The code of ``x`` in an fp8 type, rounded to nearest even.

    Overflow gives NaN in e4m3 and the fnuz types and infinity in e5m2. The fnuz types have one zero and one NaN.
    """
    x = _float(x)
    fnuz = dtype in dtypes.fp8_fnuz
    sign = 0x80 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x80 if fnuz else sign | 0x7F
    edges = _fp8_tables(dtype)[1]
    magnitude = abs(x)
    code = bisect_left(edges, magnitude)
    if code < len(edges) and magnitude == edges[code]:
        code += code & 1
    if code >= len(edges):
        return 0x80 if fnuz else sign | (0x7C if dtype is dtypes.fp8e5m2 else 0x7F)
    return code if fnuz and code == 0 else sign | code


def fp8_to_float(x: int, dtype: DType) -> float:
    """The value of an fp8 code."""
    return _fp8_tables(dtype)[0][x]


def float_to_int(x: float, dtype: DType) -> int:
    """``x`` as an integer type: toward zero, saturating; NaN gives 0."""
    if math.isnan(x):
        return 0
    if x >= dtype.max:
        return dtype.max  # type: ignore[no-any-return]
    return dtype.min if x <= dtype.min else int(x)


def _int_wrapper(dtype: DType) -> Callable[[PyConst], int]:
    mask, half = (1 << dtype.bitsize) - 1, 0 if dtype.is_unsigned else 1 << dtype.bitsize - 1

    def unsigned(x: PyConst) -> int:
        return float_to_int(x, dtype) if isinstance(x, float) else x & mask

    def signed(x: PyConst) -> int:
        return float_to_int(x, dtype) if isinstance(x, float) else ((x + half) & mask) - half
    return signed if half else unsigned


def _fp8_rounder(dtype: DType) -> Callable[[PyConst], float]:
    return lambda x: fp8_to_float(float_to_fp8(x, dtype), dtype)


def _weakint(x: PyConst) -> int:
    return float_to_int(x, dtypes.weakint) if isinstance(x, float) else int(x)


truncate: Final[dict[DType, Callable[[Any], Any]]] = {
    dtypes.bool: bool, dtypes.weakint: _weakint, dtypes.weakfloat: _round_double,
    **{dt: _int_wrapper(dt) for dt in dtypes.ints}, **{dt: _fp8_rounder(dt) for dt in dtypes.fp8s},
    dtypes.float16: float_to_fp16, dtypes.bfloat16: float_to_bf16, dtypes.float32: _round_float,
    dtypes.float64: _round_double}
"""The nearest value of each type: ints wrap, floats round; a float given for an int type truncates and saturates."""


# *** storage ***
def storage_fmt(dtype: DType) -> str | None:
    """``struct`` code of the stored form: the type's own, H for bfloat16, B for fp8, None for void and weak types."""
    return "H" if dtype is dtypes.bfloat16 else "B" if dtype in dtypes.fp8s else dtype.fmt


def to_storage_scalar(x: PyConst, dtype: DType) -> PyConst:
    """``x`` as the number that ``struct.pack(storage_fmt(dtype), ...)`` takes."""
    if dtype is dtypes.bfloat16:
        bits: int = _UINT.unpack(_FLOAT.pack(float_to_bf16(x)))[0]
        return bits >> 16
    return float_to_fp8(x, dtype) if dtype in dtypes.fp8s else truncate[dtype](x)


def from_storage_scalar(x: PyConst, dtype: DType) -> PyConst:
    """The value of what ``struct.unpack(storage_fmt(dtype), ...)`` gave."""
    if dtype is dtypes.bfloat16:
        value: float = _FLOAT.unpack(_UINT.pack(int(x) << 16))[0]
        return value
    return fp8_to_float(int(x), dtype) if dtype in dtypes.fp8s else x


# *** numpy and torch ***
def _to_np_dtype(dtype: DType) -> type[numpy.generic] | None:
    """The numpy scalar type, None where numpy has none."""
    import numpy as np
    return np.dtype(dtype.fmt).type if dtype.fmt is not None else None


@functools.cache
def _np_names() -> dict[str, DType]:
    import numpy as np
    return {np.dtype(dt.fmt).name: dt for dt in dtypes.all if dt.fmt is not None}


def _from_np_dtype(npdtype: numpy.dtype[Any]) -> DType:
    """The type of a numpy dtype.

    Raises:
        DTypeError: it has no counterpart here (complex, strings, objects, dates).
    """
    import numpy as np
    name = np.dtype(npdtype).name
    if name not in _np_names():
        raise DTypeError(f"numpy dtype {name!r} has no tinyhost dtype: convert the array first, for example with "
                        f".astype('float32'); supported are {', '.join(sorted(_np_names()))}")
    return _np_names()[name]


_TORCH_NAMES: Final = {
    **{dt: name for dt, name in zip(dtypes.ints, ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32",
                                                   "int64"))},
    dtypes.bool: "bool", dtypes.float16: "float16", dtypes.bfloat16: "bfloat16", dtypes.float32: "float32",
    dtypes.float64: "float64", dtypes.fp8e4m3: "float8_e4m3fn", dtypes.fp8e5m2: "float8_e5m2",
    dtypes.fp8e4m3fnuz: "float8_e4m3fnuz", dtypes.fp8e5m2fnuz: "float8_e5m2fnuz"}


def _to_torch_dtype(dtype: DType) -> torch.dtype | None:
    """The torch dtype, None where torch has none."""
    import torch
    return getattr(torch, _TORCH_NAMES.get(dtype, ""), None)


def _from_torch_dtype(torchdtype: torch.dtype) -> DType:
    """The type of a torch dtype.

    Raises:
        DTypeError: it has no counterpart here.
    """
    name = str(torchdtype).removeprefix("torch.")
    for dtype, torch_name in _TORCH_NAMES.items():
        if torch_name == name:
            return dtype
    raise DTypeError(f"torch dtype {torchdtype} has no tinyhost dtype: convert the tensor first, for example with "
                    ".float()")
