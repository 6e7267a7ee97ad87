"""Math functions."""
from __future__ import annotations

import math

import torch

from .case import EDGES, FLOATS, Input, case

INF = math.inf

_WIDE = {"exp": (-20, 20), "exp2": (-20, 20), "log": (0.1, 90), "log2": (0.1, 90), "log10": (0.1, 90),
         "sqrt": (0.1, 90),
         "rsqrt": (0.1, 90), "reciprocal": (0.2, 9), "sin": (-30, 30), "cos": (-30, 30), "tan": (-1.4, 1.4),
         "asin": (-0.95, 0.95), "acos": (-0.95, 0.95), "atan": (-4, 4), "sinh": (-9, 9), "cosh": (-9, 9),
         "tanh": (-9, 9), "asinh": (-90, 90), "acosh": (1.1, 90), "atanh": (-0.9, 0.9), "erf": (-4, 4),
         "sigmoid": (-100, 100), "log1p": (-0.9, 90), "expm1": (-9, 9)}
_BOUNDS = {"sin": {"atol": 2e-6}, "cos": {"atol": 2e-6}, "tan": {"rtol": 5e-5}, "erf": {"grad_atol": 1e-4},
           "atan": {"grad_atol": 2e-3}}
for _name, (_low, _high) in _WIDE.items():
    case(_name, lambda x, n=_name: getattr(x, n)(), Input((3, 40), low=_low, high=_high), dtypes=FLOATS,
         **_BOUNDS.get(_name, {}))
    case(f"{_name}_edges", lambda x, n=_name: getattr(x, n)(), EDGES, grad=False, dtypes=("float32", "float64"),
         op=_name,
         note="0, inf, NaN, outside of the domain")
    case(f"{_name}_ints", lambda x, n=_name: getattr(x, n)(), Input((8,), low=1, high=5), dtypes=("int32", "uint8"),
         op=_name, atol=2e-6)
case("exp_overflow", lambda x: x.exp(), Input(data=[88.0, 89.0, 1000.0, -87.0, -104.0, -1000.0]))
case("exp_bool", lambda x: x.exp(), Input((5,), "bool"))
case("log_denormal", lambda x: x.log(), Input(data=[1e-40, 1e-45, 1.1754944e-38, 3e38]), grad=False)
case("log1p_small", lambda x: x.log1p(), Input(data=[1e-8, -1e-4, 1e-30, 0.0]), atol=0)
case("expm1_small", lambda x: x.expm1(), Input(data=[1e-8, -1e-4, 1e-30, 0.0]), atol=0)
case("sin_large", lambda x: x.sin(), Input(data=[1e4, 39800.0, -1e6, 1e10, 3e38]), grad=False, atol=1e-6)
case("cos_large", lambda x: x.cos(), Input(data=[1e4, 39800.0, -1e6, 1e10, 3e38]), grad=False, atol=1e-6)
case("asinh_large", lambda x: x.asinh(), Input(data=[-1e4, -300.0, 1e4, 1e30, -1e-10]))
case("tanh_small", lambda x: x.tanh(), Input(data=[1e-8, -1e-4, 1e-30, 0.0]), atol=0)
case("sigmoid_far", lambda x: x.sigmoid(), Input(data=[-200.0, -90.0, 90.0, 200.0]), atol=1e-30)
case("sqrt_zero_slope", lambda x: x.sqrt(), Input(data=[0.0, 1.0]), note="infinite slope at 0")
case("rsqrt_zero", lambda x: x.rsqrt(), Input(data=[0.0, -0.0, INF]), grad=False)
case("reciprocal_zero", lambda x: x.reciprocal(), Input(data=[0.0, -0.0, INF, -INF]), grad=False, dtypes=FLOATS)
case("detach", lambda x: x.detach() * x, (3, 4))
case("contiguous", lambda x: x.contiguous() * x, (3, 4))
case("contiguous_backward", lambda x: x.contiguous_backward() * x, (3, 4), ref=lambda x: x * x)
case("atan_infinite", lambda x: x.atan(), Input(data=[INF, -INF, 1e30, -1e-30]), grad=False)
case("erf_small", lambda x: x.erf(), Input(data=[1e-8, -1e-4, 1e-30, 0.0]), atol=0)
case("softplus_log1p", lambda x: x.softplus(), Input(data=[-40.0, -20.0, 0.0, 20.0, 40.0]), op="softplus",
     ref=lambda x: torch.nn.functional.softplus(x, threshold=100), atol=1e-12, note="far from 0")
