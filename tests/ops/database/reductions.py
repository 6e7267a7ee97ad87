"""Reductions and statistics."""
from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from .case import EDGES, FLOATS, INTS, UINTS, Input, by_numpy, case, ints

INF, NAN = math.inf, math.nan
ALL_INTS = (*INTS, *UINTS[1:])

# *** sums and products ***
case("sum", lambda x: x.sum(), (3, 4, 5), dtypes=FLOATS, atol=2e-6)
case("sum_axis", lambda x: x.sum(1), (3, 4, 5))
case("sum_negative_axis", lambda x: x.sum(-2), (3, 4, 5))
case("sum_axes", lambda x: x.sum((0, -1)), (3, 4, 5))
case("sum_axes_keepdim", lambda x: x.sum((0, 2), keepdim=True), (3, 4, 5))
case("sum_keepdim", lambda x: x.sum(keepdim=True), (3, 4, 5), ref=lambda x: x.sum((0, 1, 2), keepdim=True))
case("sum_no_axes", lambda x: x.sum(()), (3, 4), ref=lambda x: x * 1, note="over no axis: as it is")
case("sum_scalar", lambda x: x.sum(), ())
case("sum_ints", lambda x: x.sum(0), Input((300,), low=-100, high=100), dtypes=INTS, ref=lambda x: x.sum(0))
case("sum_unsigned", lambda x: x.sum(), Input((30,), low=0, high=60000), dtypes=UINTS, ref=by_numpy(np.sum))
case("sum_bool", lambda x: x.sum(), Input((30,), "bool"))
case("sum_dtype", lambda x: x.sum(0, dtype="int8"), ints([100, 100, 100]), ref=lambda x: x.sum(0, dtype=torch.int8))
case("sum_dtype_float", lambda x: x.sum(dtype="float64"), (30,), ref=lambda x: x.sum(dtype=torch.float64), grad=False)
case("sum_empty", lambda x: x.sum(), (0,), note="0 of nothing")
case("sum_empty_axis", lambda x: x.sum(1), (3, 0, 2))
case("sum_of_empty_rest", lambda x: x.sum(1), (0, 3))
case("sum_infinite", lambda x: x.sum(1), Input(data=[[INF, 1.0, 2.0], [INF, -INF, 0.0], [NAN, 1.0, 1.0]]), grad=False)
case("sum_long", lambda x: x.sum(), Input((100_003,), low=0, high=1), rtol=2e-6, grad=False)
case("prod", lambda x: x.prod(1), (3, 4), dtypes=FLOATS)
case("prod_all", lambda x: x.prod(), (3, 4))
case("prod_axes", lambda x: x.prod((0, 2)), (2, 3, 2), ref=lambda x: x.prod(0).prod(1))
case("prod_keepdim", lambda x: x.prod(0, keepdim=True), (3, 4))
case("prod_zeros", lambda x: x.prod(1), Input(data=[[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]))
case("prod_ints", lambda x: x.prod(), Input((5,), low=-5, high=5), dtypes=ALL_INTS,
     ref=by_numpy(lambda x: np.prod(x, dtype=x.dtype)), note="in the input's own dtype")
case("prod_dtype", lambda x: x.prod(dtype="int64"), ints([100, 100, 100], dtype="int8"),
     ref=lambda x: x.prod(dtype=torch.int64))
case("prod_empty", lambda x: x.prod(), (0,), note="1 of nothing")
case("prod_bool", lambda x: x.prod(), Input((4,), "bool"), ref=lambda x: x.all())

# *** extremes ***
case("max", lambda x: x.max(), (3, 4), dtypes=FLOATS)
case("max_axis", lambda x: x.max(1), (3, 4), ref=lambda x: x.amax(1))
case("max_axes_keepdim", lambda x: x.max((0, 2), keepdim=True), (2, 3, 4), ref=lambda x: x.amax((0, 2), keepdim=True))
case("max_tie", lambda x: x.max(0), Input(data=[1.0, 3.0, 3.0, 2.0]), ref=lambda x: x.amax(0))
case("max_nan", lambda x: x.max(), EDGES, grad=False, dtypes=FLOATS)
case("max_infinite", lambda x: x.max(1), Input(data=[[-INF, -INF], [INF, 0.0]]), ref=lambda x: x.amax(1))
case("max_ints", lambda x: x.max(), Input((9,), low=-200, high=200), dtypes=ALL_INTS, ref=by_numpy(np.max))
case("max_bool", lambda x: x.max(1), Input((5, 2), "bool"), ref=lambda x: x.amax(1))
case("max_lowest", lambda x: x.max(), ints([-128, -128], dtype="int8"))
case("min", lambda x: x.min(0), (3, 4), ref=lambda x: x.amin(0), dtypes=FLOATS)
case("min_axes", lambda x: x.min((0, 2)), (2, 3, 4), ref=lambda x: x.amin((0, 2)))
case("min_tie", lambda x: x.min(0), Input(data=[1.0, 3.0, 1.0, 2.0]), ref=lambda x: x.amin(0))
case("min_nan", lambda x: x.min(), EDGES, grad=False, dtypes=FLOATS)
case("min_ints", lambda x: x.min(), Input((9,), low=-200, high=200), dtypes=ALL_INTS, ref=by_numpy(np.min))
case("min_bool", lambda x: x.min(1), Input((5, 2), "bool"), ref=lambda x: x.amin(1))
case("argmax", lambda x: x.argmax(1), (3, 7), grad=False)
case("argmax_flat", lambda x: x.argmax(), (3, 7), grad=False)
case("argmax_keepdim", lambda x: x.argmax(-1, keepdim=True), (3, 7), grad=False)
case("argmax_nan", lambda x: x.argmax(), EDGES, grad=False)
case("argmax_tie", lambda x: x.argmax(0), Input(data=[1.0, 3.0, 3.0, 2.0]), grad=False, note="the first of equals")
case("argmax_ints", lambda x: x.argmax(1), Input((3, 9), low=-4, high=4), dtypes=INTS,
     ref=by_numpy(lambda x: np.argmax(x, 1)))
case("argmax_bool", lambda x: x.argmax(), Input((9,), "bool"), ref=by_numpy(np.argmax))
case("argmin", lambda x: x.argmin(), (3, 7), grad=False)
case("argmin_axis", lambda x: x.argmin(0), (3, 7), grad=False)
case("argmin_tie", lambda x: x.argmin(0), Input(data=[1.0, 3.0, 1.0, 2.0]), grad=False, note="the first of equals")
case("argmin_nan", lambda x: x.argmin(), EDGES, grad=False)
case("argmin_ints", lambda x: x.argmin(1), Input((3, 9), low=-4, high=4), dtypes=INTS,
     ref=by_numpy(lambda x: np.argmin(x, 1)))
case("any", lambda x: x.any(1), Input((5, 2), "bool"))
case("any_floats", lambda x: x.any(), EDGES, grad=False)
case("any_ints", lambda x: x.any(0), Input((3, 4), low=0, high=2), dtypes=INTS, ref=lambda x: x.any(0).bool())
case("any_keepdim", lambda x: x.any((0, 1), keepdim=True), Input((5, 2), "bool"))
case("any_empty", lambda x: x.any(), Input((0,), "bool"), note="false of nothing")
case("all", lambda x: x.all(1), Input((5, 2), "bool"))
case("all_floats", lambda x: x.all(0), EDGES, grad=False)
case("all_ints", lambda x: x.all(0), Input((3, 4), low=0, high=3), dtypes=INTS, ref=lambda x: x.all(0).bool())
case("all_empty", lambda x: x.all(), Input((0,), "bool"), note="true of nothing")

# *** statistics ***
case("mean", lambda x: x.mean(1), (3, 4), dtypes=FLOATS)
case("mean_all", lambda x: x.mean(), (3, 4))
case("mean_axes_keepdim", lambda x: x.mean((0, 2), keepdim=True), (3, 4, 2))
case("mean_ints", lambda x: x.mean(), Input((9,), low=-9, high=9), dtypes=INTS, ref=lambda x: x.float().mean())
case("mean_bool", lambda x: x.mean(), Input((9,), "bool"), ref=lambda x: x.float().mean())
case("mean_half_many", lambda x: x.mean(), Input(data=np.ones(70000)), dtypes=("float16",), grad=False,
     note="70000 halves")
case("mean_empty", lambda x: x.mean(), (0,), grad=False, note="NaN of nothing")
for _correction in (0, 1, 2):
    case(f"var_correction {_correction}", lambda x, c=_correction: x.var(1, correction=c), (3, 4), op="var",
         note=f"correction {_correction}")
    case(f"std_correction {_correction}", lambda x, c=_correction: x.std(1, correction=c), (3, 4), op="std",
         note=f"correction {_correction}")
case("var", lambda x: x.var(), (3, 4), dtypes=FLOATS)
case("var_keepdim", lambda x: x.var((0, 2), correction=0, keepdim=True), (2, 3, 4))
case("var_far_from_zero", lambda x: x.var(), Input((40,), low=1e4, high=1e4 + 1), rtol=1e-3, grad=False)
case("var_one_value", lambda x: x.var(1), (3, 1), grad=False, ref=by_numpy(lambda x: np.full(3, np.nan, np.float32)),
     note="NaN of one value")
case("std", lambda x: x.std(), (3, 4), dtypes=FLOATS)
case("std_axes", lambda x: x.std((0, 1), keepdim=True), (2, 3, 4))
case("var_mean", lambda x: x.var_mean(1), (3, 4), ref=lambda x: torch.var_mean(x, 1))
case("var_mean_biased", lambda x: x.var_mean((0, 1), keepdim=True, correction=0), (3, 4),
     ref=lambda x: torch.var_mean(x, (0, 1), keepdim=True, correction=0))
case("std_mean", lambda x: x.std_mean(1), (3, 4), ref=lambda x: torch.std_mean(x, 1))
case("std_mean_all", lambda x: x.std_mean(), (3, 4), ref=torch.std_mean)
case("logsumexp", lambda x: x.logsumexp(1), (3, 4), ref=lambda x: x.logsumexp(1), dtypes=FLOATS)
case("logsumexp_all", lambda x: x.logsumexp(), (3, 4), ref=lambda x: x.logsumexp((0, 1)))
case("logsumexp_keepdim", lambda x: x.logsumexp((0, 1), keepdim=True), (3, 4))
case("logsumexp_large", lambda x: x.logsumexp(0), Input(data=[1000.0, 1000.0, -1000.0]))
case("logsumexp_infinite", lambda x: x.logsumexp(1), Input(data=[[-INF, -INF], [INF, 1.0], [-INF, 0.0], [INF, -INF]]),
     grad=False)
case("logsumexp_nan", lambda x: x.logsumexp(0), Input(data=[NAN, 1.0]), grad=False)
case("normalize", lambda x: x.normalize(), (3, 4), ref=F.normalize)
for _p in (0.0, 1.0, 3.0, INF):
    case(f"normalize_p {_p}", lambda x, p=_p: x.normalize(p=p, dim=0), (3, 4), note=f"p {_p}", grad=_p not in (0.0,),
         ref=lambda x, p=_p: F.normalize(x, p=p, dim=0))
case("normalize_zero", lambda x: x.normalize(), Input(data=[[0.0, 0.0], [3.0, 4.0]]), ref=F.normalize, grad=False)
