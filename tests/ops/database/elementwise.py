"""Element-wise arithmetic."""
from __future__ import annotations

import math

import numpy as np
import torch

from .case import EDGES, FLOATS, INTS, UINTS, Input, by_numpy, case, ints

INF, NAN = math.inf, math.nan
ALL_INTS = (*INTS, *UINTS[1:])
SIGNED = ("int8", "int16", "int32", "int64")

# *** sums, products, quotients ***
case("add", lambda x, y: x + y, (3, 4), (3, 4), dtypes=FLOATS)
case("add_ints", lambda x, y: x + y, Input((9,), low=-200, high=200), Input((9,), low=-200, high=200), dtypes=ALL_INTS,
     ref=by_numpy(np.add))
case("add_broadcast", lambda x, y: x + y, (3, 1, 4), (5, 1))
case("add_scalar", lambda x: 2 + x + 1.5, (3, 4))
case("add_bool", lambda x, y: x + y, Input((8,), "bool"), Input((8,), "bool"))
case("add_bool_int", lambda x, y: x + y, Input((8,), "bool"), Input((8,), "int16", -9, 9))
case("add_int_float", lambda x, y: x + y, Input((8,), "int32", -9, 9), (8,))
case("add_int_float_scalar", lambda x: x + 0.5, Input((8,), low=-9, high=9), dtypes=INTS)
case("sub", lambda x, y: x - y, (3, 4), (4,), dtypes=FLOATS)
case("sub_ints", lambda x, y: x - y, Input((9,), low=-200, high=200), Input((9,), low=-200, high=200), dtypes=ALL_INTS,
     ref=by_numpy(np.subtract))
case("sub_scalar", lambda x: 2 - x - 1, (3, 4))
case("sub_infinities", lambda x: x - x.flip(0), EDGES, dtypes=FLOATS, ref=lambda x: x - x.flip(0))
case("mul", lambda x, y: x * y, (3, 4), (3, 1), dtypes=FLOATS)
case("mul_ints", lambda x, y: x * y, Input((9,), low=-200, high=200), Input((9,), low=-200, high=200), dtypes=ALL_INTS,
     ref=by_numpy(np.multiply))
case("mul_bool", lambda x, y: x * y, Input((8,), "bool"), Input((8,), "bool"))
case("mul_self", lambda x: x * x * 3, (3, 4))
case("mul_by_zero", lambda x: x * 0.0, EDGES, dtypes=FLOATS)
case("div", lambda x, y: x / y, (3, 4), Input((3, 4), low=0.5), dtypes=FLOATS)
case("div_scalar", lambda x: 3 / x + x / 4, Input((3, 4), low=0.5))
case("div_by_zero", lambda x, y: x / y, EDGES, Input(data=[0.0, 0.0, 0.0, 0.0, 0.0, -0.0, 0.0, -0.0, -0.0, 0.0]),
     grad=False, dtypes=FLOATS)
case("div_by_zero_scalar", lambda x: x / 0, EDGES, grad=False)
case("div_of_scalar_by_zero", lambda x: 1 / x, EDGES, grad=False, dtypes=FLOATS)
case("div_ints", lambda x, y: x / y, Input((8,), low=-9, high=9), Input((8,), low=1, high=9), dtypes=INTS)
case("div_ints_by_zero", lambda x, y: x / y, ints(5, 0, -3), ints(0, 0, 0))
case("div_bool", lambda x, y: x / y, Input((8,), "bool"), Input(data=[True] * 8, dtype="bool"))
case("div_trunc", lambda x, y: x.div(y, rounding_mode="trunc"), Input((8,), low=-20, high=20),
     Input((8,), low=1, high=9),
     grad=False, dtypes=("float32", *INTS))
case("div_floor", lambda x, y: x.div(y, rounding_mode="floor"), Input((8,), low=-20, high=20),
     Input((8,), low=1, high=9),
     grad=False, dtypes=("float32", *INTS))
case("div_reversed", lambda x: x.div(3.0, reverse=True), Input((8,), low=0.5), ref=lambda x: 3.0 / x)
case("floordiv", lambda x, y: x // y, Input((16,), low=-20, high=20), Input(data=[3, -3] * 8),
     dtypes=("float32", "float64", *SIGNED), grad=False)
case("floordiv_unsigned", lambda x, y: x // y, Input((16,), low=0, high=60000), Input((16,), low=1, high=50),
     dtypes=UINTS, ref=by_numpy(np.floor_divide))
case("floordiv_float_infinite", lambda x, y: x // y, Input(data=[INF, 1.0, 1.0, NAN, 2.0]),
     Input(data=[2.0, 0.0, INF, 1.0, NAN]), grad=False)
case("floordiv_scalar", lambda x: x // 7, Input((20,), low=-100, high=100), dtypes=("float32", *INTS), grad=False)
case("floordiv_negative_scalar", lambda x: x // -7, Input((20,), low=-100, high=100), dtypes=SIGNED)
case("floordiv_of_scalar", lambda x: 100 // x, ints(3, -3, 7, -7, 100))
case("mod", lambda x, y: x % y, Input((16,), low=-20, high=20), Input(data=[3, -3, 7, -5] * 4),
     dtypes=("float32", "float64", *SIGNED), atol=1e-5, grad_atol=1e-4)
case("mod_unsigned", lambda x, y: x % y, Input((16,), low=0, high=60000), Input((16,), low=1, high=50), dtypes=UINTS,
     ref=by_numpy(np.mod))
case("mod_edges", lambda x, y: x % y, Input(data=[INF, 1.0, 1.0, -1.0, -0.0, 5.5, NAN, -6.0]),
     Input(data=[2.0, 0.0, INF, INF, 3.0, -2.0, 1.0, 3.0]), grad=False, ref=by_numpy(np.mod))
case("mod_large_quotient", lambda x, y: x % y, Input(data=[1e10, -1e10, 123456792.0, 3e38]),
     Input(data=[3.0, 3.0, 0.7, 7.0]), grad=False, ref=by_numpy(np.mod))
case("mod_scalar", lambda x: x % 7, Input((20,), low=-100, high=100), dtypes=("float32", *INTS), atol=1e-5)
case("mod_of_scalar", lambda x: 100 % x, ints(3, -3, 7, -7, 100))
case("fmod", lambda x, y: x.fmod(y), Input((16,), low=-20, high=20), Input(data=[3, -3, 7, -5] * 4),
     dtypes=("float32", "float64", *SIGNED), atol=1e-5, grad_atol=1e-4)
case("fmod_unsigned", lambda x, y: x.fmod(y), Input((16,), low=0, high=60000), Input((16,), low=1, high=50),
     dtypes=UINTS, ref=by_numpy(np.fmod))
case("fmod_edges", lambda x, y: x.fmod(y), Input(data=[INF, 1.0, 1.0, -1.0, -0.0, 5.5, NAN, -6.0]),
     Input(data=[2.0, 0.0, INF, INF, 3.0, -2.0, 1.0, 3.0]), grad=False)
case("fmod_large_quotient", lambda x, y: x.fmod(y), Input(data=[1e10, -1e10, 123456792.0, 3e38]),
     Input(data=[3.0, 3.0, 0.7, 7.0]), grad=False)
for _name, _f in {"floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "fmod": lambda x, y: x.fmod(y)}.items():
    case(f"{_name}_ints_by_zero", _f, Input((9,), low=-50, high=50), Input(data=[0] * 9), dtypes=ALL_INTS, op=_name,
         ref=by_numpy(lambda x, y: x * 0), note="0 for integers by 0")
    case(f"{_name} bool", _f, Input((8,), "bool"), Input(data=[True] * 8, dtype="bool"), op=_name,
         ref=by_numpy(lambda x, y, n=_name: x.astype(np.int32) * (n == "floordiv")))
case("floordiv_lowest", lambda x, y: x // y, ints(-128, 127, -128, dtype="int8"), ints(-1, -1, 127, dtype="int8"))
case("mod_lowest", lambda x, y: x % y, ints(-128, 127, -128, dtype="int8"), ints(-1, -1, 127, dtype="int8"))
case("mod_exact", lambda x: x % 0.1, Input(data=[1.0, 0.5, 100.0, -1.0, 1e8]), ref=by_numpy(
    lambda x: np.mod(x, np.float32(0.1))), grad=False, atol=0, rtol=1e-6)
case("floordiv_exact", lambda x: x // 0.1, Input(data=[1.0, 0.5, 100.0, -1.0]), grad=False, atol=0, rtol=0,
     ref=by_numpy(lambda x: np.floor_divide(x, np.float32(0.1))))
case("neg", lambda x: -x, (3, 4), dtypes=FLOATS)
case("neg_ints", lambda x: -x, Input((9,), low=-200, high=200), dtypes=ALL_INTS, ref=by_numpy(np.negative))
case("usum", lambda x, y, z: x.usum(y, z), (3,), (3,), (3,), ref=lambda x, y, z: x + y + z)
case("uprod", lambda x, y, z: x.uprod(y, z), (3,), (3,), (3,), ref=lambda x, y, z: x * y * z)
case("square", lambda x: x.square(), (3, 4), dtypes=FLOATS)
case("square_ints", lambda x: x.square(), Input((9,), low=-11, high=11), dtypes=INTS)

# *** powers ***
case("pow", lambda x, y: x ** y, Input((3, 4), low=0.2), (3, 4), dtypes=FLOATS)
case("pow_scalar", lambda x: x ** 3 + x ** 2.5 + x ** -1.5, Input((3, 4), low=0.3))
case("pow_small_int", lambda x: x ** 2 + x ** 4, (3, 4), dtypes=FLOATS)
case("pow_large_int", lambda x: x ** 11 + x ** -7, Input((3, 4), low=0.5), rtol=3e-5)
case("pow_reverse", lambda x: 2.0 ** x, (3, 4), dtypes=FLOATS)
case("pow_of_int", lambda x: 2 ** x, (3, 4))
case("pow_of_negative", lambda x: (-2.0) ** x, Input(data=[0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.3]), grad=False)
case("pow_ints_scalar", lambda x: x ** 3, Input((9,), low=-5, high=5), dtypes=INTS)
case("pow_ints", lambda x, y: x ** y, Input((9,), low=-5, high=5), Input((9,), low=0, high=6), dtypes=INTS)
case("pow_negative_exponent_ints", lambda x, y: x ** y, ints(1, -1, -1, 2, -3, 7), ints(-3, -3, -2, -1, -2, -5))
case("pow_of_int_scalar", lambda x: 3 ** x, Input(data=[0, 1, 2, 4]), dtypes=INTS)
case("pow_tensors_bool", lambda x, y: x ** y, Input((6,), "bool"), Input((6,), "bool"), ref=lambda x,
     y: x.int() ** y.int())
case("pow_int_float", lambda x, y: x ** y, ints(2, 3, 4, 0), Input(data=[0.5, -1.0, 2.0, 0.0]), grad=False)
case("pow_int_float_scalar", lambda x: x ** 0.5, ints(0, 1, 2, 9), rtol=1e-6)
case("pow_bool", lambda x: x ** 2, Input((6,), "bool"), ref=lambda x: x.int() ** 2)
_BASES = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, -2.0, 0.5]
for _i, _e in enumerate((0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1.5, INF, -INF, NAN)):
    case(f"pow_edges {_e}", lambda x, e=_e: x ** e, Input(data=_BASES), grad=False, note=f"edges ** {_e}",
         ref=by_numpy(lambda x, e=_e: np.power(x, np.full_like(x, e))))
    case(f"pow_edges_tensor {_e}", lambda x, y: x ** y, Input(data=_BASES), Input(data=[_e] * len(_BASES)), grad=False,
         note=f"edges ** tensor of {_e}", ref=by_numpy(np.power))
for _e in (0, 1, 2, 3, 4.0, -1.0, 0.5, 7):
    case(f"pow_slopes {_e}", lambda x, e=_e: x ** e,
         Input(data=[0.0, -2.0, 3.0] if _e not in (-1.0, 0.5) else [2.0, 3.0]),
         note=f"slopes of x ** {_e} at 0 and below")
case("pow_slopes_tensor", lambda x, y: x ** y, Input(data=[0.0, 0.0, 0.0, 2.0]), Input(data=[1.0, 2.0, 3.0, 0.0]),
     note="slopes at base 0")
case("pow_zero_exponent_slope", lambda x, y: x ** y, Input(data=[0.0, 2.0, -3.0]), Input(data=[0.0, 0.0, 0.0]),
     ref=lambda x, y: x ** y.detach() + y * 0, note="slope at exponent 0", grad=False)

# *** choice ***
case("maximum", lambda x, y: x.maximum(y), (3, 4), (3, 4), dtypes=FLOATS)
case("maximum_ints", lambda x, y: x.maximum(y), Input((9,), low=-200, high=200), Input((9,), low=-200, high=200),
     dtypes=ALL_INTS, ref=by_numpy(np.maximum))
case("maximum_nan", lambda x: x.maximum(x.flip(0)), EDGES, grad=False, dtypes=FLOATS)
case("maximum_tie", lambda x, y: x.maximum(y), Input(data=[1.0, 2.0]), Input(data=[1.0, 3.0]))
case("maximum_scalar", lambda x: x.maximum(0.5), (3, 4), ref=lambda x: x.clamp(min=0.5))
case("maximum_bool", lambda x, y: x.maximum(y), Input((8,), "bool"), Input((8,), "bool"))
case("minimum", lambda x, y: x.minimum(y), (3, 4), (3, 4), dtypes=FLOATS)
case("minimum_ints", lambda x, y: x.minimum(y), Input((9,), low=-200, high=200), Input((9,), low=-200, high=200),
     dtypes=ALL_INTS, ref=by_numpy(np.minimum))
case("minimum_nan", lambda x: x.minimum(x.flip(0)), EDGES, grad=False, dtypes=FLOATS)
case("minimum_tie", lambda x, y: x.minimum(y), Input(data=[1.0, 2.0]), Input(data=[1.0, 3.0]))
case("minimum_bool", lambda x, y: x.minimum(y), Input((8,), "bool"), Input((8,), "bool"))
case("copysign", lambda x, y: x.copysign(y), (3, 4), (3, 4), dtypes=("float32", "float64"))
case("copysign_zero", lambda x, y: 1 / x.copysign(y), Input(data=[1.0, 2.0, -3.0, 0.0, -0.0, 0.0]),
     Input(data=[0.0, -0.0, -0.0, -0.0, 0.0, -2.0]), grad=False)
case("copysign_infinite", lambda x, y: x.copysign(y), Input(data=[INF, 1.0, -2.0, 3.0]),
     Input(data=[-1.0, -INF, INF, -5.0]),
     grad=False)
case("copysign_scalar", lambda x: x.copysign(-1.0), EDGES, ref=lambda x: torch.copysign(x, -1.0), grad=False)
case("copysign_ints", lambda x, y: x.copysign(y), ints(1, -2, 3), ints(-1, 1, 0))
case("logaddexp", lambda x, y: x.logaddexp(y), (3, 4), (3, 4), ref=torch.logaddexp)
case("logaddexp_infinite", lambda x, y: x.logaddexp(y), Input(data=[-INF, INF, 0.0, -INF, INF]),
     Input(data=[-INF, 1.0, -INF, 200.0, INF]), ref=torch.logaddexp, grad=False)
case("logaddexp_far", lambda x, y: x.logaddexp(y), Input((12,), low=-300, high=300), Input((12,), low=-300, high=300),
     ref=torch.logaddexp)
case("lerp", lambda x, y, w: x.lerp(y, w), (3, 4), (3, 4), Input((3, 4), low=0, high=1), dtypes=("float32", "float64"))
case("lerp_scalar", lambda x, y: x.lerp(y, 0.25), (3, 4), (3, 4))
case("lerp_ends", lambda x, y, w: x.lerp(y, w), Input(data=[1e8, -3.0, 0.1]), Input(data=[1.0, 1e8, 0.3]),
     Input(data=[1.0, 0.0, 1.0]), atol=0, rtol=2e-7)
case("lerp_uint8", lambda x, y: x.lerp(y, 0.5), ints(0, 200, 255, dtype="uint8"), ints(10, 100, 0, dtype="uint8"),
     ref=lambda x, y: torch.round(x.float().lerp(y.float(), 0.5)).to(torch.uint8))
case("clip", lambda x: x.clip(-1, 0.5), (3, 4), dtypes=FLOATS)
case("clip_edges", lambda x: x.clip(-1, 0.5), EDGES, grad=False)
case("clip_ints", lambda x: x.clip(2, 7), Input((9,), low=-11, high=11), dtypes=INTS)
case("clip_int_by_float", lambda x: x.clip(-0.5, 2.5), Input((9,), "int32", -11, 11))
case("clip_tensors", lambda x, lo, hi: x.clip(lo, hi), (3, 4), Input((4,), low=-1, high=0),
     Input((3, 1), low=0, high=1))
case("clip_crossed", lambda x: x.clip(1.0, -1.0), (8,), grad=False)
case("clip_nan_bound", lambda x, lo: x.clip(lo), (3,), Input(data=[NAN, 0.0, NAN]), grad=False)
case("clip_at_bound", lambda x: x.clip(-1.0, 1.0), Input(data=[-1.0, 1.0, 0.0, 2.0, -2.0]))
case("clamp_min", lambda x: x.clamp(min_=0.1), (3, 4), ref=lambda x: x.clamp(min=0.1))
case("clamp_max", lambda x: x.clamp(max_=0.1), (3, 4), ref=lambda x: x.clamp(max=0.1))

# *** rounding and signs ***
_HALVES = Input(data=[-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 2.6, 1e4, INF, -INF, NAN, 0.49999997, 8388609.0])
for _name in ("round", "trunc", "floor", "ceil"):
    case(_name, lambda x, n=_name: getattr(x, n)(), _HALVES, grad=False,
         dtypes=FLOATS, op=_name)
    case(f"{_name}_slope", lambda x, n=_name: getattr(x, n)() * x, (3, 4), op=_name)
    case(f"{_name}_ints", lambda x, n=_name: getattr(x, n)(), Input((9,), low=-11, high=11), dtypes=INTS, op=_name)
case("round_zero_sign", lambda x: 1 / x.round(), Input(data=[-0.2, 0.2, -0.5, 0.5, -0.0, 0.0]), grad=False)
case("trunc_zero_sign", lambda x: 1 / x.trunc(), Input(data=[-0.2, 0.2, -0.9, 0.9, -0.0, 0.0]), grad=False)
case("ceil_zero_sign", lambda x: 1 / x.ceil(), Input(data=[-0.2, -0.9, -0.0, 0.0]), grad=False)
case("floor_zero_sign", lambda x: 1 / x.floor(), Input(data=[0.2, 0.9, -0.0, 0.0]), grad=False)
case("sign", lambda x: x.sign(), EDGES, grad=False, dtypes=FLOATS, ref=lambda x: torch.where(x.isnan(), 0.0, x.sign()),
     note="0 for NaN")
case("sign_ints", lambda x: x.sign(), Input((9,), low=-11, high=11), dtypes=INTS)
case("sign_slope", lambda x: x.sign() * x, (3, 4))
case("abs", lambda x: x.abs(), EDGES, grad=False, dtypes=FLOATS)
case("abs_zero_sign", lambda x: 1 / x.abs(), Input(data=[-0.0, 0.0, -1.0]), grad=False)
case("abs_ints", lambda x: x.abs(), ints(0, 5, -5, -128, 127), dtypes=("int32",))
case("abs_lowest", lambda x: x.abs(), ints(-128, 127, -1, dtype="int8"))
case("abs_slope", lambda x: x.abs(), Input(data=[-2.0, 0.0, 3.0]))
