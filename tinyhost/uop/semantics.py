"""What each ALU op, CAST and BITCAST computes: the one definition.

Takes values of one dtype and gives values of the result's dtype, through two faces of one table: Python numbers for
constant folding (``evaluate``, ``cast``, ``bitcast``) and numpy arrays for the reference device and for tests
(``evaluate_np``, ``cast_np``, ``bitcast_np``). Folding, bounds, the reference device and every compiled kernel agree
with it; the two faces agree bit for bit.

Integers wrap. Shift counts are unsigned; a count of the width or more gives 0, or the sign for SHR of a signed type.
x/0 and x%0 are 0 and INT_MIN/-1 is INT_MIN. MAX propagates NaN and gives its first operand when both are equal.
Comparisons with NaN are false except CMPNE. On bool, ADD is OR, MUL is AND, NEG is NOT. Float to int truncates and
saturates, NaN gives 0. Every float result is rounded once, to nearest even; MULACC is fused. EXP2, LOG2, SIN and POW
are computed in float64. numpy has no bfloat16 or fp8: such arrays are float32 arrays whose values are of that type.
"""
from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhost.dtype import (
    ConstType,
    DType,
    Invalid,
    dtypes,
    from_storage_scalar,
    least_upper_float,
    storage_fmt,
    to_storage_scalar,
    truncate,
)
from tinyhost.errors import DTypeError
from tinyhost.ops import Ops
from tinyhost.uop.array_casts import (
    bitcast_np,
    carrier_np,
    cast_function,
    cast_np,
    from_storage_np,
    round_np,
    to_storage_np,
)
from tinyhost.uop.meaning import MEANING, int_pow, np_shl, np_shr, shl, shr

__all__ = ["COMPARISON", "FLOAT_UNARY", "MEANING", "array_function", "bitcast", "bitcast_np", "carrier_np", "cast",
           "cast_function", "cast_np", "evaluate", "evaluate_np", "from_storage_np", "to_storage_np"]

Array = Any  # numpy arrays and numpy scalars

FLOAT_UNARY = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL})
COMPARISON = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})


# *** Python numbers ***
def _no_meaning(op: Ops, dtype: DType) -> DTypeError:
    return DTypeError(f"{op} of {dtype!r} has no meaning: "
                      f"{'it takes integers' if dtype.is_float or dtype is dtypes.bool else 'it takes floats'}; "
                      "cast the operands first")


def _scalar_where(dtype: DType) -> Callable[..., Any]:
    rounded = truncate[dtype]

    def where(cond: Any, x: Any, y: Any) -> Any:
        chosen = x if cond else y
        return chosen if chosen is Invalid else rounded(chosen)
    return where


def _scalar_mulacc(dtype: DType) -> Callable[..., Any]:
    carrier = carrier_np(dtype)

    def mulacc(*operands: float) -> Any:
        return evaluate_np(Ops.MULACC, dtype, *[np.asarray(truncate[dtype](x), carrier) for x in operands]).item()
    return mulacc


def _scalar_kind(op: Ops, dtype: DType) -> Callable[..., Any] | None:
    if op in (Ops.SHL, Ops.SHR):
        if not dtype.is_int:
            return None
        return (shl if op is Ops.SHL else shr)(dtype.bitsize)
    if op is Ops.POW and dtype.is_int:
        return lambda a, b: int_pow(a, b, 1 << dtype.bitsize)
    meaning = MEANING.get(op)
    if meaning is None:
        return None
    return meaning.floats if dtype.is_float else meaning.ints if dtype.is_int else meaning.bools


def _make_scalar(op: Ops, dtype: DType) -> Callable[..., Any]:
    """The scalar face of one op on one dtype, operands brought to the dtype and result wrapped or rounded."""
    if op is Ops.WHERE:
        return _scalar_where(dtype)
    if op is Ops.MULACC and dtype.is_float:
        return _scalar_mulacc(dtype)
    compute = _scalar_kind(op, dtype)
    if compute is None:
        raise _no_meaning(op, dtype)
    enter: Callable[[Any], Any] = truncate[dtype]
    leave: Callable[[Any], Any] = bool if op in COMPARISON else enter
    if op in (Ops.SHL, Ops.SHR):
        return lambda x, count: leave(compute(enter(x), int(count)))
    if op in FLOAT_UNARY or op in (Ops.NEG, Ops.TRUNC):
        return lambda x: leave(compute(enter(x)))
    if op is Ops.MULACC:
        return lambda a, b, c: leave(compute(enter(a), enter(b), enter(c)))
    return lambda a, b: leave(compute(enter(a), enter(b)))


_SCALAR: dict[tuple[Ops, DType], Callable[..., Any]] = {}


def evaluate(op: Ops, dtype: DType, operands: tuple[ConstType, ...]) -> Any:
    """``op`` on Python numbers of ``dtype`` (for WHERE: of the arms; for shifts: of the first operand).

    Operands are brought to ``dtype`` first, so literals need not be rounded or wrapped. An Invalid operand makes the
    result Invalid, except in the arm of a WHERE that is not taken.

    Raises:
        DTypeError: the op takes no operands of that dtype.
    """
    for x in operands:
        if x is Invalid and (op is not Ops.WHERE or operands[0] is Invalid):
            return Invalid
    fn = _SCALAR.get((op, dtype))
    if fn is None:
        if op in FLOAT_UNARY and not dtype.is_float:
            # depends on the default float, which may change
            return _make_scalar(op, least_upper_float(dtype))(*operands)
        fn = _SCALAR[op, dtype] = _make_scalar(op, dtype)
    return fn(*operands)


def cast(value: ConstType, src: DType, dst: DType) -> Any:
    """``value`` of type ``src`` converted to ``dst``; Invalid stays."""
    if value is Invalid:
        return value
    if not src.is_weak:
        value = truncate[src](value)
    return truncate[dst](value)


def bitcast(value: ConstType, src: DType, dst: DType) -> Any:
    """The value of type ``dst`` that has the bytes of ``value``; Invalid stays.

    Raises:
        DTypeError: the types differ in size, or one of them is weak or void.
    """
    if value is Invalid:
        return value
    fmts = storage_fmt(src), storage_fmt(dst)
    if fmts[0] is None or fmts[1] is None or src.itemsize != dst.itemsize:
        raise DTypeError(f"cannot bitcast one {src!r} ({src.itemsize} bytes) to {dst!r} ({dst.itemsize} bytes): "
                         "one number needs a type of its own size")
    raw = struct.pack(f"<{fmts[0]}", to_storage_scalar(value, src))  # type: ignore[arg-type]
    return from_storage_scalar(struct.unpack(f"<{fmts[1]}", raw)[0], dst)


# *** arrays ***
def _where_np(cond: Array, x: Array, y: Array) -> Array:
    return np.where(cond, x, y)


@functools.cache
def array_function(op: Ops, dtype: DType) -> Callable[..., Array]:
    """``op`` on arrays of ``dtype``, as ``evaluate_np``; the caller silences numpy's warnings.

    Raises:
        DTypeError: the op takes no operands of that dtype, or is a float op on another type.
    """
    if op is Ops.WHERE:
        return _where_np
    if op in (Ops.SHL, Ops.SHR):
        if not dtype.is_int:
            raise _no_meaning(op, dtype)
        return np_shl if op is Ops.SHL else np_shr
    meaning = MEANING[op]
    compute = meaning.np_floats if dtype.is_float else meaning.np_ints if dtype.is_int else meaning.np_bools
    if compute is None:
        raise _no_meaning(op, dtype)
    if not dtype.is_float or op in COMPARISON or (compute in _EXACT and dtype in _IEEE):
        return compute
    return lambda *xs: round_np(compute(*xs), dtype)


# numpy rounds these itself, to the type of the operands
_EXACT = frozenset({np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.negative, np.trunc})
_IEEE = frozenset({dtypes.float16, dtypes.float32, dtypes.float64, dtypes.weakfloat})


def evaluate_np(op: Ops, dtype: DType, *arrays: Array) -> Array:
    """``op`` on arrays (or numpy scalars) of ``dtype``, broadcast against each other, in the dtype's carrier.

    WHERE takes a bool array first and its arms in ``dtype``; the count of a shift is of any integer dtype.

    Raises:
        DTypeError: the op takes no operands of that dtype.
    """
    with np.errstate(all="ignore"):
        if op in FLOAT_UNARY and not dtype.is_float:
            wide = least_upper_float(dtype)
            arrays, dtype = tuple(cast_np(x, dtype, wide) for x in arrays), wide
        return array_function(op, dtype)(*arrays)
