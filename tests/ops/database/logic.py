"""Comparisons, logic, bits and selection."""
from __future__ import annotations

import math
import operator

import numpy as np
import torch

from .case import EDGES, FLOATS, INTS, UINTS, Input, by_numpy, case, ints

ALL_INTS = (*INTS, *UINTS[1:])
INF, NAN = math.inf, math.nan

# *** comparisons ***
for _name in ("lt", "gt", "le", "ge", "eq", "ne"):
    _f = getattr(operator, _name)
    _op = _name if _name in ("eq", "ne") else f"__{_name}__"
    case(f"{_name}", lambda x, y, f=_f: f(x, y), Input((10,), low=-2, high=2), Input((10,), low=-2, high=2),
         dtypes=ALL_INTS, ref=by_numpy(_f), op=_op)
    case(f"{_name}_floats", lambda x, f=_f: f(x, x.flip(0)), EDGES, grad=False, dtypes=FLOATS, op=_op, note="NaN, inf")
    case(f"{_name}_self", lambda x, f=_f: f(x, x), EDGES, grad=False, op=_op, note="with itself")
    case(f"{_name}_scalar", lambda x, f=_f: f(x, 1), Input((10,), low=-2, high=3), dtypes=("float32", *INTS),
         grad=False,
         op=_op)
    case(f"{_name}_int_float", lambda x, y, f=_f: f(x, y), ints(0, 1, 2, -1), Input(data=[0.5, 1.0, 1.5, -1.0]),
         grad=False, op=_op)
    case(f"{_name}_bool", lambda x, y, f=_f: f(x, y), Input((10,), "bool"), Input((10,), "bool"), op=_op)
case("isnan", lambda x: x.isnan(), EDGES, grad=False, dtypes=FLOATS)
case("isinf", lambda x: x.isinf(), EDGES, grad=False, dtypes=FLOATS)
case("isinf_positive", lambda x: x.isinf(detect_negative=False), EDGES, grad=False, ref=torch.isposinf)
case("isinf_negative", lambda x: x.isinf(detect_positive=False), EDGES, grad=False, ref=torch.isneginf)
case("isfinite", lambda x: x.isfinite(), EDGES, grad=False, dtypes=FLOATS)
case("isfinite_ints", lambda x: x.isfinite(), Input((5,), low=-9, high=9), dtypes=INTS)
case("isnan_ints", lambda x: x.isnan(), Input((5,), low=-9, high=9), dtypes=INTS)
case("isclose", lambda x: x.isclose(x.flip(0)), EDGES, grad=False, dtypes=("float32", "float64"))
case("isclose_equal_nan", lambda x: x.isclose(x, equal_nan=True), EDGES, grad=False)
case("isclose_bounds", lambda x, y: x.isclose(y, rtol=0.1, atol=0.01), Input(data=[1.0, 1.0, 0.0, 0.0, -5.0]),
     Input(data=[1.1, 1.13, 0.009, 0.02, -5.4]), grad=False)
case("isclose_ints", lambda x, y: x.isclose(y), ints(1, 2, 100000), ints(1, 3, 100001))
case("allclose", lambda x, y: x.allclose(y, rtol=0.1), Input(data=[1.0, 2.0]), Input(data=[1.05, 2.05]), grad=False,
     ref=lambda x, y: torch.tensor(torch.allclose(x, y, rtol=0.1)))
case("allclose_not", lambda x, y: x.allclose(y), Input(data=[1.0, 2.0]), Input(data=[1.05, 2.05]), grad=False,
     ref=lambda x, y: torch.tensor(torch.allclose(x, y)))
case("allclose_nan", lambda x: x.allclose(x), EDGES, grad=False, ref=lambda x: torch.tensor(torch.allclose(x, x)))
case("allclose_equal_nan", lambda x: x.allclose(x, equal_nan=True), EDGES, grad=False,
     ref=lambda x: torch.tensor(torch.allclose(x, x, equal_nan=True)))

# *** logic and bits ***
case("logical_not", lambda x: x.logical_not(), Input((10,), low=-2, high=2), dtypes=INTS)
case("logical_not_floats", lambda x: x.logical_not(), EDGES, grad=False, dtypes=FLOATS)
for _name, _f in {"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor}.items():
    case(_name, lambda x, y, f=_f: f(x, y), Input((10,), low=-99, high=99), Input((10,), low=-99, high=99),
         dtypes=ALL_INTS, ref=by_numpy(_f))
    case(f"{_name}_bool", lambda x, y, f=_f: f(x, y), Input((10,), "bool"), Input((10,), "bool"))
    case(f"{_name}_scalar", lambda x, f=_f: f(x, 5), Input((10,), low=-99, high=99), dtypes=INTS)
    case(f"{_name}_of_scalar", lambda x, f=_f: f(6, x), Input((10,), low=-99, high=99), dtypes=("int32", "uint8"))
    case(f"{_name}_method", lambda x, y, n=_name: getattr(x, n)(y), Input((10,), "int64", -99, 99),
         Input((10,), "int64", -99, 99), ref=lambda x, y, n=_name: getattr(torch, n)(x, y), note="method")
    case(f"{_name}_mixed", lambda x, y, f=_f: f(x, y), Input((10,), "int8", -99, 99), Input((10,), "int32", -99, 99),
         note="int8 and int32")
case("bitwise_not", lambda x: ~x, Input((10,), low=-99, high=99), dtypes=ALL_INTS, ref=by_numpy(np.invert))
case("bitwise_not_bool", lambda x: ~x, Input((10,), "bool"))

# *** shifts: counts of the width or more give 0, or the sign ***

def _shifted(x: np.ndarray, count: np.ndarray | int, left: bool) -> np.ndarray:
    """Exact shifts of Python integers, wrapped to the dtype."""
    bits, signed = x.dtype.itemsize * 8, x.dtype.kind == "i"
    out = []
    for v, c in zip(x.ravel().tolist(), np.broadcast_to(count, x.shape).ravel().tolist()):
        r = (v << c if left else v >> c) % 2**bits
        out.append(r - 2**bits if signed and r >= 2**(bits - 1) else r)
    return np.array(out, x.dtype).reshape(x.shape)


for _dtype in ALL_INTS:
    _bits = int(_dtype.lstrip("uint"))
    _values = Input((_bits + 3,), _dtype, -2**60, 2**60)
    _counts = Input(dtype=_dtype, data=list(range(_bits)) + [_bits, _bits + 1, 100])
    for _name, _left in (("lshift", True), ("rshift", False)):
        _f = getattr(operator, _name)
        case(f"{_name} {_dtype}", lambda x, n, f=_f: f(x, n), _values, _counts,
             ref=by_numpy(lambda x, n, left=_left: _shifted(x, n, left)), op=_name, note=f"{_dtype}, counts up to 100")
        case(f"{_name}_scalar {_dtype}", lambda x, f=_f: f(x, 3), _values,
             ref=by_numpy(lambda x, left=_left: _shifted(x, 3, left)), op=_name, note=f"{_dtype} by a number")
        case(f"{_name}_over {_dtype}", lambda x, f=_f, b=_bits: f(x, b), _values,
             ref=by_numpy(lambda x, left=_left, b=_bits: _shifted(x, b, left)), op=_name, note=f"{_dtype} by its width")
    case(f"lshift_reversed {_dtype}", lambda n: 3 << n, Input(dtype=_dtype, data=[0, 1, 2, 5, _bits - 1, _bits]),
         ref=by_numpy(lambda n: _shifted(np.full_like(n, 3), n, True)), op="lshift", note=f"number << {_dtype}")
    case(f"rshift_reversed {_dtype}", lambda n: 100 >> n, Input(dtype=_dtype, data=[0, 1, 2, 5, _bits - 1, _bits]),
         ref=by_numpy(lambda n: _shifted(np.full_like(n, 100), n, False)), op="rshift", note=f"number >> {_dtype}")
case("lshift_method", lambda x, n: x.lshift(n), ints(1, -3, 7), ints(2, 1, 4), ref=lambda x, n: x << n, note="method")
case("lshift_method_reversed", lambda n: n.lshift(5, reverse=True), ints(2, 1, 4), ref=lambda n: 5 << n, op="lshift",
     note="method, reversed")
case("rshift_method", lambda x, n: x.rshift(n), ints(100, -3, 7), ints(2, 1, 4), ref=lambda x, n: x >> n, note="method")
case("rshift_method_reversed", lambda n: n.rshift(99, reverse=True), ints(2, 1, 4), ref=lambda n: 99 >> n, op="rshift",
     note="method, reversed")
case("lshift_mixed", lambda x, n: x << n, ints(1, -3, 7, dtype="int64"), ints(40, 1, 4, dtype="int8"), op="lshift",
     ref=lambda x, n: x << n.long(), note="int64 by int8")

# *** selection ***
case("where", lambda x, y: (x < y).where(x, y * 2), (3, 4), (4,), ref=lambda x, y: torch.where(x < y, x, y * 2),
     dtypes=FLOATS)
case("where_scalar", lambda x: (x < 0).where(1.5, x), (3, 4), ref=lambda x: torch.where(x < 0, 1.5, x))
case("where_scalars", lambda x: (x < 0).where(1, 2), (3, 4), ref=lambda x: torch.where(x < 0, 1, 2))
case("where_ints", lambda x, y: (x < y).where(x, y), Input((9,), low=-9, high=9), Input((9,), low=-9, high=9),
     ref=lambda x, y: torch.where(x < y, x, y), dtypes=INTS)
case("where_int_float", lambda x, y: (x < 0).where(x, y), Input((9,), "int32", -9, 9), (9,),
     ref=lambda x, y: torch.where(x < 0, x, y))
case("where_bool", lambda x, y: x.where(y, ~y), Input((9,), "bool"), Input((9,), "bool"),
     ref=lambda x, y: torch.where(x, y, ~y))
case("where_broadcast", lambda x, y, c: c.where(x, y), (3, 1), (4,), Input((2, 1, 1), "bool"),
     ref=lambda x, y, c: torch.where(c, x, y))
for _name, _f in {"lt": operator.lt, "gt": operator.gt, "ne": operator.ne, "eq": operator.eq}.items():
    case(f"where_nan_{_name}", lambda x, f=_f: f(x, 1).where(x * 0 + 10, -1.0), Input(data=[NAN, 1.0, 2.0, -1.0]),
         ref=lambda x, f=_f: torch.where(f(x, 1), x * 0 + 10, -1.0), grad=False, note=f"condition {_name} of NaN")
case("where_untaken_nan", lambda x: (x > 0).where(x.sqrt(), 0.0), Input(data=[1.0, -1.0, 4.0]), grad=False,
     ref=lambda x: torch.where(x > 0, x.sqrt(), 0.0))
case("masked_fill", lambda x: x.masked_fill(x > 0, -1.0), (3, 4))
case("masked_fill_ints", lambda x: x.masked_fill(x > 0, -1), Input((9,), low=-9, high=9), dtypes=("int32", "int8"))
case("masked_fill_broadcast", lambda x, m: x.masked_fill(m, -INF), (3, 4), Input((4,), "bool"), grad=False)
