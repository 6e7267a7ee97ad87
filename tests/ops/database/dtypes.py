"""Casts, bitcasts and mixed types."""
from __future__ import annotations

import torch

from .case import EDGES, INTS, Input, case, ints

_METHODS = {"float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16, "double": torch.float64,
            "int": torch.int32, "long": torch.int64, "short": torch.int16, "bool": torch.bool}
for _name, _dtype in _METHODS.items():
    case(_name, lambda x, n=_name: getattr(x, n)(), Input((9,), low=-9, high=9),
         ref=lambda x, d=_dtype: x.to(d), dtypes=("float32", "float16", *INTS), grad=False, atol=1e-6)
case("cast_gradient", lambda x: x.half().float() * x, (3, 4), rtol=1e-3, grad_rtol=1e-3, grad_atol=1e-2)
case("cast_int_uint8", lambda x: x.cast("uint8"), Input((9,), "int32", -900, 900), ref=lambda x: x.to(torch.uint8))
case("cast_int64_int8", lambda x: x.cast("int8"), Input((9,), "int64", -2**40, 2**40), ref=lambda x: x.to(torch.int8))
case("cast_bool_float", lambda x: x.cast("float32"), Input((9,), "bool"), ref=lambda x: x.float())
case("cast_half_overflow", lambda x: x.cast("float16"), Input(data=[65504.0, 65520.0, 1e9, -1e9, 1e-8]), grad=False,
     ref=lambda x: x.half())
case("cast_same", lambda x: x.cast("float32") * 1, (3,), ref=lambda x: x * 1)
case("cast_nan_bool", lambda x: x.bool(), EDGES, grad=False, op="cast", note="NaN is true")
case("bitcast", lambda x: x.bitcast("int32"), (3, 4), ref=lambda x: x.view(torch.int32), grad=False)
case("bitcast_back", lambda x: x.bitcast("float32"), Input((9,), "int32", 1, 2**30),
     ref=lambda x: x.view(torch.float32),
     atol=0, rtol=0, grad=False)
case("bitcast_narrow", lambda x: x.bitcast("uint8"), (3, 4), ref=lambda x: x.view(torch.uint8), grad=False)
case("bitcast_wide", lambda x: x.bitcast("int32"), Input((3, 8), "int8", -99, 99), ref=lambda x: x.view(torch.int32))
case("bitcast_half", lambda x: x.bitcast("int16"), Input((3, 4), "float16"), ref=lambda x: x.view(torch.int16),
     grad=False)
case("half_sum", lambda x: x.sum(1), Input((3, 200), "float16"), atol=1e-2, rtol=1e-3, grad=False, op="sum",
     note="halves")
case("half_exp", lambda x: x.exp(), Input((3, 4), "float16"), atol=1e-3, rtol=2e-3, grad=False, op="exp", note="halves")
case("double_math", lambda x: (x * 3 + 1).sqrt(), Input((9,), "float64", 0, 9), rtol=1e-12, atol=1e-14, op="sqrt",
     note="doubles")
case("promotion_int8_uint8", lambda x, y: x + y, ints(1, -2, dtype="int8"), ints(200, 3, dtype="uint8"), op="add",
     note="int8 + uint8 is int16")
case("promotion_half_bfloat16", lambda x, y: x + y, Input((4,), "float16"), Input((4,), "bfloat16"), op="add",
     grad=False,
     ref=lambda x, y: x.float() + y.float(), note="half + bfloat16 is float32", rtol=1e-2)
case("promotion_int64_half", lambda x, y: x * y, ints(1, -2, 3, dtype="int64"), Input((3,), "float16"), op="mul",
     grad=False, note="int64 * half is half", rtol=1e-3)
