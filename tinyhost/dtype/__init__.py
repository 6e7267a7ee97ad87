"""Data types, literals, promotion, and how a Python number is rounded and stored as each type.

Takes and gives plain Python numbers. What an operation computes is in ``tinyhost.uop.semantics``; arrays and devices
are not known here. The names for numpy and torch start with an underscore: they are for this package.
"""
from __future__ import annotations

from tinyhost.dtype.frameworks import _from_np_dtype, _from_torch_dtype, _to_np_dtype, _to_torch_dtype
from tinyhost.dtype.literals import ConstFloat, ConstType, Invalid, InvalidType, PyConst
from tinyhost.dtype.promotion import (
    can_lossless_cast,
    least_upper_dtype,
    least_upper_float,
    strong_dtype,
    sum_acc_dtype,
    weak_dtype,
)
from tinyhost.dtype.rounding import (
    _fp8_tables,
    float_to_bf16,
    float_to_fp8,
    float_to_fp16,
    float_to_int,
    fp8_to_float,
    from_storage_scalar,
    storage_fmt,
    to_storage_scalar,
)
from tinyhost.dtype.types import DTYPES_DICT, DType, DTypeLike, dtypes, to_dtype, truncate

__all__ = [
    "DTYPES_DICT", "ConstFloat", "ConstType", "DType", "DTypeLike", "Invalid", "InvalidType", "PyConst",
    "_fp8_tables", "_from_np_dtype", "_from_torch_dtype", "_to_np_dtype", "_to_torch_dtype", "can_lossless_cast",
    "dtypes", "float_to_bf16", "float_to_fp8", "float_to_fp16", "float_to_int", "fp8_to_float", "from_storage_scalar",
    "least_upper_dtype", "least_upper_float", "storage_fmt", "strong_dtype", "sum_acc_dtype", "to_dtype",
    "to_storage_scalar", "truncate", "weak_dtype"]
