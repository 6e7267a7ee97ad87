"""Reductions."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .case import EDGES, Input, case

case("sum", lambda x: x.sum(), (3, 4, 5))
case("sum_axis", lambda x: x.sum(1), (3, 4, 5))
case("sum_axes_keepdim", lambda x: x.sum((0, 2), keepdim=True), (3, 4, 5))
case("sum_int8", lambda x: x.sum(0), Input((300,), "int8", -100, 100), ref=lambda x: x.sum(0, dtype=torch.int32),
     grad=False)
case("prod", lambda x: x.prod(1), (3, 4))
case("prod_zeros", lambda x: x.prod(1), Input(data=[[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]))
case("max", lambda x: x.max(), (3, 4))
case("max_axis", lambda x: x.max(1), (3, 4), ref=lambda x: x.amax(1))
case("max_tie", lambda x: x.max(0), Input(data=[1.0, 3.0, 3.0, 2.0]), ref=lambda x: x.amax(0))
case("max_nan", lambda x: x.max(), EDGES, grad=False)
case("min", lambda x: x.min(0), (3, 4), ref=lambda x: x.amin(0))
case("min_uint8", lambda x: x.min(), Input((9,), "uint8", 3, 255), grad=False)
case("any", lambda x: x.any(1), Input((5, 2), "bool"), grad=False)
case("all", lambda x: x.all(1), Input((5, 2), "bool"), grad=False)
case("mean", lambda x: x.mean(1), (3, 4))
case("mean_int", lambda x: x.mean(), Input((9,), "int32", -9, 9), ref=lambda x: x.float().mean(), grad=False)
case("var", lambda x: x.var(1), (3, 4))
case("var_biased", lambda x: x.var(1, correction=0, keepdim=True), (3, 4))
case("std", lambda x: x.std(1), (3, 4))
case("logsumexp", lambda x: x.logsumexp(1), (3, 4))
case("logsumexp_infinite", lambda x: x.logsumexp(0), Input(data=[-math.inf, -math.inf]), grad=False)
case("argmax", lambda x: x.argmax(1), (3, 7), ref=lambda x: x.argmax(1).int(), grad=False)
case("argmax_nan", lambda x: x.argmax(), EDGES, ref=lambda x: x.argmax().int(), grad=False)
case("argmin", lambda x: x.argmin(), (3, 7), ref=lambda x: x.argmin().int(), grad=False)
case("softmax", lambda x: x.softmax(1), (3, 4))
case("softmin", lambda x: x.softmin(0), (3, 4), ref=lambda x: F.softmin(x, 0))
case("log_softmax", lambda x: x.log_softmax(-1), (3, 4))
case("normalize", lambda x: x.normalize(), (3, 4), ref=F.normalize)
case("normalize_p", lambda x: x.normalize(p=3.0, dim=0), (3, 4), ref=lambda x: F.normalize(x, p=3.0, dim=0))
