"""Casts and mixed types."""
from __future__ import annotations

import torch

from .case import Input, case

case("cast_float_int", lambda x: x.int(), Input((9,), low=-9, high=9), grad=False)
case("cast_int_uint8", lambda x: x.cast("uint8"), Input((9,), "int32", -900, 900), ref=lambda x: x.to(torch.uint8),
     grad=False)
case("cast_half", lambda x: x.half() * 2, (3, 4), atol=1e-3, rtol=1e-3, grad_rtol=1e-3)
case("cast_bfloat16", lambda x: x.bfloat16().float(), (3, 4), grad=False)
case("bitcast", lambda x: x.bitcast("int32"), (3, 4), ref=lambda x: x.view(torch.int32), grad=False)
case("bitcast_narrow", lambda x: x.bitcast("uint8"), (3, 4), ref=lambda x: x.view(torch.uint8), grad=False)
case("half_sum", lambda x: x.sum(1), Input((3, 200), "float16"), atol=1e-2, rtol=1e-3, grad=False)
case("half_exp", lambda x: x.exp(), Input((3, 4), "float16"), atol=1e-3, rtol=2e-3, grad=False)
case("half_matmul", lambda x, y: x @ y, Input((3, 20), "float16"), Input((20, 4), "float16"), atol=1e-2, rtol=2e-3,
     grad=False)
case("double_math", lambda x: (x * 3 + 1).sqrt(), Input((9,), "float64", 0, 9), rtol=1e-12, atol=1e-14)
