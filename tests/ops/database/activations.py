"""Activations."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Input, case

case("relu", lambda x: x.relu(), Input(data=[-1.0, 0.0, 2.0]))
case("relu6", lambda x: x.relu6(), Input((3, 8), low=-9, high=9), ref=F.relu6)
case("leaky_relu", lambda x: x.leaky_relu(0.1), (3, 4), ref=lambda x: F.leaky_relu(x, 0.1))
case("elu", lambda x: x.elu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.elu(x, 0.7))
case("celu", lambda x: x.celu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.celu(x, 0.7))
case("selu", lambda x: x.selu(), Input((3, 40), low=-9, high=9), ref=F.selu)
case("silu", lambda x: x.silu(), Input((3, 40), low=-9, high=9), ref=F.silu)
case("gelu_tanh", lambda x: x.gelu(), Input((3, 40), low=-9, high=9), ref=lambda x: F.gelu(x, approximate="tanh"),
     atol=1e-5)
case("gelu_none", lambda x: x.gelu("none"), Input((3, 40), low=-9, high=9), ref=F.gelu, atol=2e-6, grad_atol=1e-4)
case("quick_gelu", lambda x: x.quick_gelu(), (3, 4), ref=lambda x: x * torch.sigmoid(1.702 * x))
case("mish", lambda x: x.mish(), Input((3, 40), low=-9, high=9), ref=F.mish, atol=1e-5)
case("softplus", lambda x: x.softplus(), Input((3, 40), low=-50, high=50), ref=lambda x: F.softplus(x, threshold=100))
case("softplus_beta", lambda x: x.softplus(3.0), (3, 4), ref=lambda x: F.softplus(x, 3.0))
case("softsign", lambda x: x.softsign(), (3, 4), ref=F.softsign)
case("logsigmoid", lambda x: x.logsigmoid(), Input((3, 40), low=-50, high=50), ref=F.logsigmoid)
case("hardsigmoid", lambda x: x.hardsigmoid(), Input((3, 8), low=-5, high=5), ref=F.hardsigmoid)
case("hardswish", lambda x: x.hardswish(), Input((3, 8), low=-5, high=5), ref=F.hardswish)
case("hardtanh", lambda x: x.hardtanh(), (3, 4), ref=F.hardtanh)
