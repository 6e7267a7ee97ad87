"""Scans and sorting."""
from __future__ import annotations

import math

from .case import Input, case

case("cumsum", lambda x: x.cumsum(1), (3, 5))
case("cumsum_long", lambda x: x.cumsum(0), (1100,), atol=1e-4)
case("cumsum_int", lambda x: x.cumsum(0), Input((9,), "int32", -9, 9), ref=lambda x: x.cumsum(0).int(), grad=False)
case("cumprod", lambda x: x.cumprod(1), (3, 5))
case("cummax", lambda x: x.cummax(1)[0], (3, 5))
case("cummax_index", lambda x: x.cummax(0)[1], Input(data=[1.0, 3.0, 3.0, 2.0, 4.0]),
     ref=lambda x: x.cummax(0)[1].int(),
     grad=False)
case("cummin", lambda x: x.cummin(1)[0], (3, 5))
case("logcumsumexp", lambda x: x.logcumsumexp(1), (3, 5))
case("sort", lambda x: x.sort(1)[0], (3, 7))
case("sort_descending", lambda x: x.sort(0, descending=True)[0], (6, 2))
case("sort_index", lambda x: x.sort(0)[1], Input(data=[3.0, 1.0, 1.0, -0.0, 0.0, math.nan, -math.inf, 2.0]),
     ref=lambda x: x.sort(dim=0, stable=True)[1].int(), grad=False)
case("argsort", lambda x: x.argsort(1), Input((3, 9), "int32", -4, 4),
     ref=lambda x: x.argsort(dim=1, stable=True).int(), grad=False)
case("topk", lambda x: x.topk(3, 1)[0], (3, 7))
case("topk_smallest", lambda x: x.topk(2, 0, largest=False)[1], (5, 3),
     ref=lambda x: x.topk(2, 0, largest=False)[1].int(),
     grad=False)
