"""Scans, sorting, order."""
from __future__ import annotations

import math

import numpy as np
import torch

from .case import FLOATS, INTS, UINTS, Input, by_numpy, case

NAN, INF = math.nan, math.inf
MIXED = Input(data=[3.0, 1.0, 1.0, -0.0, 0.0, NAN, -INF, 2.0])
LATE_NAN = Input(data=[[1.0, 3.0, NAN, 2.0, 4.0], [5.0, NAN, NAN, INF, -INF], [-INF, INF, 0.0, -0.0, 1.0]])
STEPS = Input((3, 9), low=-4, high=4)
FEW = Input((9,), low=0, high=4)

# *** running sums and products ***
case("cumsum", lambda x: x.cumsum(1), (3, 5), dtypes=FLOATS)
case("cumsum first axis", lambda x: x.cumsum(0), (5, 3))
case("cumsum_long", lambda x: x.cumsum(0), (1100,), atol=1e-4)
case("cumsum two stages", lambda x: x.cumsum(1), (2, 150), atol=1e-4)
case("cumsum middle axis", lambda x: x.cumsum(1), (2, 70, 3), atol=1e-4)
case("cumsum_int", lambda x: x.cumsum(0), Input((9,), low=-9, high=9), dtypes=INTS, ref=lambda x: x.cumsum(0),
     grad=False)
case("cumsum unsigned", lambda x: x.cumsum(0), Input((9,), low=0, high=20), dtypes=UINTS, grad=False,
     ref=by_numpy(lambda x: x.cumsum()))
case("cumsum bool", lambda x: x.cumsum(0), Input((9,), "bool"), grad=False)
case("cumsum nan", lambda x: x.cumsum(1), LATE_NAN, grad=False)
case("cumsum scalar", lambda x: x.cumsum(0), ())
case("cumsum empty", lambda x: x.cumsum(0), (0, 3))
case("cumsum of one", lambda x: x.cumsum(1), (3, 1))
case("cumprod", lambda x: x.cumprod(1), (3, 5), dtypes=("float32", "float64"))
case("cumprod long", lambda x: x.cumprod(0), Input((90,), low=0.9, high=1.1))
case("cumprod zero", lambda x: x.cumprod(0), Input(data=[2.0, 0.0, 3.0, 0.0]), grad=False)
case("cumprod integers", lambda x: x.cumprod(1), Input((2, 6), low=-3, high=4), dtypes=INTS, grad=False)
case("cumprod bool", lambda x: x.cumprod(0), Input((4,), "bool"), grad=False)
case("cumprod empty", lambda x: x.cumprod(1), (2, 0))

# *** running extremes ***
for _op in ("cummax", "cummin"):
    case(_op, lambda x, o=_op: getattr(x, o)(1)[0], (3, 5), dtypes=("float32", "float16", "float64"))
    case(f"{_op} first axis", lambda x, o=_op: getattr(x, o)(0)[0], (6, 2))
    case(f"{_op} and places", lambda x, o=_op: tuple(getattr(x, o)(1)), STEPS, dtypes=("float32", *INTS), grad=False)
    case(f"{_op} nan", lambda x, o=_op: tuple(getattr(x, o)(1)), LATE_NAN, grad=False)
    case(f"{_op} long", lambda x, o=_op: tuple(getattr(x, o)(0)), (300,), grad=False, slow=True)
    case(f"{_op} bool", lambda x, o=_op: tuple(getattr(x, o)(0)), Input((6,), "bool"), grad=False)
    case(f"{_op} scalar", lambda x, o=_op: tuple(getattr(x, o)(0)), (), grad=False)
    case(f"{_op} empty", lambda x, o=_op: tuple(getattr(x, o)(1)), (3, 0), grad=False)
case("cummax_index", lambda x: x.cummax(0)[1], Input(data=[1.0, 3.0, 3.0, 2.0, 4.0]), grad=False)
case("logcumsumexp", lambda x: x.logcumsumexp(1), (3, 5), dtypes=("float32", "float64"))
case("logcumsumexp long", lambda x: x.logcumsumexp(0), Input((200,), low=-9, high=9), atol=1e-5, grad_atol=1e-3,
     slow=True)
case("logcumsumexp large", lambda x: x.logcumsumexp(0), Input(data=[1000.0, 1000.5, -1000.0, 999.0]))
case("logcumsumexp infinite", lambda x: x.logcumsumexp(0), Input(data=[-INF, 1.0, -INF, 2.0, INF, 3.0]), grad=False)
case("logcumsumexp nan", lambda x: x.logcumsumexp(0), Input(data=[0.0, NAN, 1.0]), grad=False)
case("logcumsumexp scalar", lambda x: x.logcumsumexp(0), ())
case("logcumsumexp empty", lambda x: x.logcumsumexp(0), (0, 2))

# *** sort ***
case("sort", lambda x: x.sort(1), (3, 7), ref=lambda x: x.sort(dim=1, stable=True), dtypes=FLOATS)
case("sort_descending", lambda x: x.sort(0, descending=True), (6, 2),
     ref=lambda x: x.sort(dim=0, descending=True, stable=True))
case("sort_index", lambda x: x.sort(0)[1], MIXED, ref=lambda x: x.sort(dim=0, stable=True)[1], grad=False)
case("sort nan last", lambda x: x.sort(0)[0], MIXED, ref=lambda x: x.sort(dim=0, stable=True)[0], grad=False,
     dtypes=("float32", "float16", "float64"))
case("sort nan first", lambda x: x.sort(1, descending=True), LATE_NAN,
     ref=lambda x: x.sort(dim=1, descending=True, stable=True), grad=False)
case("sort integers", lambda x: x.sort(1), STEPS, ref=lambda x: x.sort(dim=1, stable=True), dtypes=INTS, grad=False)
case("sort integers descending", lambda x: x.sort(1, descending=True), STEPS, dtypes=INTS, grad=False,
     ref=lambda x: x.sort(dim=1, descending=True, stable=True))
case("sort unsigned", lambda x: x.sort(1), Input((3, 9), low=0, high=60000), dtypes=UINTS, grad=False,
     ref=by_numpy(lambda x: (np.sort(x, 1), np.argsort(x, 1, kind="stable"))))
case("sort bool", lambda x: x.sort(0), Input((7,), "bool"), ref=lambda x: x.sort(dim=0, stable=True), grad=False)
case("sort bool descending", lambda x: x.sort(0, descending=True), Input((7,), "bool"), grad=False,
     ref=lambda x: x.sort(dim=0, descending=True, stable=True))
case("sort extremes", lambda x: x.sort(0), Input(dtype="int32", data=[2**31 - 1, -2**31, 0, -1, 2**31 - 1]), grad=False,
     ref=lambda x: x.sort(dim=0, stable=True))
case("sort scalar", lambda x: x.sort(0), (), ref=lambda x: x.sort(dim=0))
case("sort empty", lambda x: x.sort(1), (3, 0), ref=lambda x: x.sort(dim=1))
case("sort of one", lambda x: x.sort(0), (1, 3), ref=lambda x: x.sort(dim=0))
case("argsort", lambda x: x.argsort(1), STEPS, ref=lambda x: x.argsort(dim=1, stable=True), dtypes=("float32", *INTS),
     grad=False)
case("argsort descending", lambda x: x.argsort(0, descending=True), STEPS, grad=False,
     ref=lambda x: x.argsort(dim=0, descending=True, stable=True))
case("argsort ties", lambda x: x.argsort(), FEW, ref=lambda x: x.argsort(dim=-1, stable=True), dtypes=INTS, grad=False)

# *** topk ***
case("topk", lambda x: x.topk(3, 1), (3, 7), dtypes=FLOATS, grad_rtol=1e-3)
case("topk_smallest", lambda x: x.topk(2, 0, largest=False), (5, 3))
case("topk all", lambda x: x.topk(4), (2, 4))
case("topk none", lambda x: x.topk(0, 1), (2, 4))
case("topk nan", lambda x: x.topk(2, 1)[0], Input(data=[[1.0, NAN, 3.0, 2.0], [4.0, -INF, INF, 0.0]]), grad=False)
case("topk integers", lambda x: x.topk(3, 1)[0], STEPS, dtypes=INTS, grad=False)
case("topk scalar", lambda x: x.topk(1, 0), ())
case("topk unsorted", lambda x: x.topk(3, 1, sorted_=False)[0].sum(1), (3, 7), ref=lambda x: x.topk(3, 1)[0].sum(1))
case("argmax ties", lambda x: x.argmax(0), Input(data=[1.0, 3.0, 3.0, 2.0]), grad=False)
case("argmax nan", lambda x: x.argmax(1), LATE_NAN, grad=False)
case("argmin nan", lambda x: x.argmin(1), LATE_NAN, grad=False)
case("argmax bool", lambda x: x.argmax(0), Input(dtype="bool", data=[False, True, True]), grad=False,
     ref=lambda x: x.to(torch.uint8).argmax(0))
