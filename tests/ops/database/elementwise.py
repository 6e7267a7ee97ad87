"""Element-wise arithmetic."""
from __future__ import annotations

import math

import torch

from .case import EDGES, Input, case, ints

case("add", lambda x, y: x + y, (3, 4), (3, 4))
case("add_broadcast", lambda x, y: x + y, (3, 1, 4), (5, 1))
case("add_scalar", lambda x: 2 + x + 1.5, (3, 4))
case("sub", lambda x, y: x - y, (3, 4), (4,))
case("sub_scalar", lambda x: 2 - x - 1, (3, 4))
case("mul", lambda x, y: x * y, (3, 4), (3, 1))
case("mul_self", lambda x: x * x * 3, (3, 4))
case("div", lambda x, y: x / y, (3, 4), Input((3, 4), low=0.5))
case("div_scalar", lambda x: 3 / x + x / 4, Input((3, 4), low=0.5))
case("div_int", lambda x, y: x / y, Input((8,), "int32", -9, 9), Input((8,), "int32", 1, 9), grad=False)
case("div_trunc", lambda x, y: x.div(y, rounding_mode="trunc"), Input((8,), "int32", -20, 20),
     Input((8,), "int32", 1, 9),
     grad=False)
case("div_floor", lambda x, y: x.div(y, rounding_mode="floor"), (8,), Input((8,), low=0.5), grad=False)
case("floordiv_int", lambda x, y: x // y, Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("mod_int", lambda x, y: x % y, Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("mod_float", lambda x, y: x % y, (16,), Input((16,), low=0.5), atol=1e-5, grad=False)
case("fmod_int", lambda x, y: x.fmod(y), Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("fmod_float", lambda x, y: x.fmod(y), (16,), Input((16,), low=0.5), atol=1e-5, grad=False)
case("neg", lambda x: -x, (3, 4))
case("neg_uint8", lambda x: -x, Input((5,), "uint8", 0, 255), grad=False)
case("pow", lambda x, y: x ** y, Input((3, 4), low=0.2), (3, 4))
case("pow_scalar", lambda x: x ** 3 + x ** 2.5 + x ** -1.5, Input((3, 4), low=0.3))
case("pow_small_int", lambda x: x ** 2 + x ** 4, (3, 4))
case("pow_reverse", lambda x: 2.0 ** x, (3, 4))
case("pow_int_int", lambda x: x ** 3, Input((9,), "int32", -5, 5), grad=False)
case("pow_int_tensors", lambda x, y: x ** y, Input((9,), "int32", -5, 5), Input((9,), "int32", 0, 6), grad=False)
case("maximum", lambda x, y: x.maximum(y), (3, 4), (3, 4))
case("maximum_nan", lambda x: x.maximum(x.flip(0)), EDGES, ref=lambda x: x.maximum(x.flip(0)), grad=False)
case("minimum", lambda x, y: x.minimum(y), (3, 4), (3, 4))
case("minimum_int", lambda x, y: x.minimum(y), Input((6,), "int32", -9, 9), Input((6,), "int32", -9, 9), grad=False)
case("copysign", lambda x, y: x.copysign(y), (3, 4), (3, 4))
case("copysign_zero", lambda x, y: x.copysign(y), Input(data=[1.0, 2.0, -3.0]), Input(data=[0.0, -0.0, -0.0]),
     grad=False)
case("logaddexp", lambda x, y: x.logaddexp(y), (3, 4), (3, 4), ref=torch.logaddexp)
case("logaddexp_infinite", lambda x, y: x.logaddexp(y), Input(data=[-math.inf, math.inf, 0.0, -math.inf]),
     Input(data=[-math.inf, 1.0, -math.inf, 200.0]), ref=torch.logaddexp, grad=False)
case("lerp", lambda x, y, w: x.lerp(y, w), (3, 4), (3, 4), Input((3, 4), low=0, high=1))
