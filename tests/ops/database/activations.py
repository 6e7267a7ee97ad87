"""Activations."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .case import FLOATS, Input, case

_X = Input((3, 40), low=-9, high=9)
case("relu", lambda x: x.relu(), Input(data=[-1.0, 0.0, 2.0]), dtypes=FLOATS)
case("relu_ints", lambda x: x.relu(), Input((9,), low=-9, high=9), dtypes=("int32", "int8", "uint8"))
case("relu6", lambda x: x.relu6(), _X, ref=F.relu6, dtypes=FLOATS)
case("leaky_relu", lambda x: x.leaky_relu(0.1), (3, 4), ref=lambda x: F.leaky_relu(x, 0.1), dtypes=FLOATS)
case("leaky_relu_default", lambda x: x.leaky_relu(), (3, 4), ref=F.leaky_relu)
case("leaky_relu_zero", lambda x: x.leaky_relu(0.1), Input(data=[0.0, -0.0]), ref=lambda x: F.leaky_relu(x, 0.1))
case("elu", lambda x: x.elu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.elu(x, 0.7), dtypes=FLOATS)
case("celu", lambda x: x.celu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.celu(x, 0.7), dtypes=FLOATS)
case("celu_default", lambda x: x.celu(), _X, ref=F.celu)
case("selu", lambda x: x.selu(), _X, ref=F.selu, dtypes=FLOATS)
case("silu", lambda x: x.silu(), _X, ref=F.silu, dtypes=FLOATS)
case("swish", lambda x: x.swish(), _X, ref=F.silu)
case("gelu_tanh", lambda x: x.gelu(), _X, ref=lambda x: F.gelu(x, approximate="tanh"), atol=1e-5, dtypes=FLOATS)
case("gelu_none", lambda x: x.gelu("none"), _X, ref=F.gelu, atol=2e-6, grad_atol=1e-4, dtypes=FLOATS)
case("quick_gelu", lambda x: x.quick_gelu(), (3, 4), ref=lambda x: x * torch.sigmoid(1.702 * x))
case("mish", lambda x: x.mish(), _X, ref=F.mish, atol=1e-5, dtypes=FLOATS)
case("softplus", lambda x: x.softplus(), Input((3, 40), low=-50, high=50), ref=lambda x: F.softplus(x, threshold=100),
     dtypes=FLOATS)
case("softplus_beta", lambda x: x.softplus(3.0), (3, 4), ref=lambda x: F.softplus(x, 3.0))
case("softsign", lambda x: x.softsign(), _X, ref=F.softsign, dtypes=FLOATS)
case("logsigmoid", lambda x: x.logsigmoid(), Input((3, 40), low=-50, high=50), ref=F.logsigmoid, dtypes=FLOATS)
case("hardsigmoid", lambda x: x.hardsigmoid(), Input((3, 8), low=-5, high=5), ref=F.hardsigmoid, dtypes=FLOATS)
case("hardsigmoid_line", lambda x: x.hardsigmoid(0.2, 0.4), (3, 8), ref=lambda x: (x * 0.2 + 0.4).clamp(0, 1))
case("hardswish", lambda x: x.hardswish(), Input((3, 8), low=-5, high=5), ref=F.hardswish, dtypes=FLOATS)
case("hardtanh", lambda x: x.hardtanh(), (3, 4), ref=F.hardtanh, dtypes=FLOATS)
case("hardtanh_bounds", lambda x: x.hardtanh(-0.5, 1.5), (3, 4), ref=lambda x: F.hardtanh(x, -0.5, 1.5))
_ENDS = Input(data=[math.inf, -math.inf, math.nan, 0.0, 1e30, -1e30])
for _name, _ref in {"relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "elu": F.elu, "selu": F.selu,
                    "softplus": F.softplus, "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh,
                    "softsign": F.softsign,
                    "logsigmoid": F.logsigmoid}.items():
    case(f"{_name}_ends", lambda x, n=_name: getattr(x, n)(), _ENDS, ref=_ref, op=_name, grad=False, note="inf and NaN")
for _name, _at in {"relu": (0,), "relu6": (0, 6), "hardsigmoid": (-3, 3), "hardswish": (-3, 3), "hardtanh": (-1, 1),
                   "elu": (0,), "selu": (0,), "celu": (0,), "softsign": (0,)}.items():
    case(f"{_name}_kinks", lambda x, n=_name: getattr(x, n)(), Input(data=[float(v) for v in _at]),
         ref=getattr(F, _name), op=_name, note="slopes at the kinks")
