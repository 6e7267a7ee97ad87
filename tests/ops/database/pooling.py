"""Pooling over windows, its inverse, and resampling."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor

from .case import FLOATS, INTS, Input, case

_AVG: dict[int, Any] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_MAX: dict[int, Any] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def _avg(name: str, x: tuple[int, ...], kernel: tuple[int, ...], **how: Any) -> None:
    case(f"avg_pool2d_{name}", lambda x: x.avg_pool2d(kernel, **how), x,
         ref=lambda x: _AVG[len(kernel)](x, kernel, **how))


case("avg_pool2d", lambda x: x.avg_pool2d(), (1, 2, 5, 6), ref=lambda x: F.avg_pool2d(x, 2), dtypes=FLOATS)
_avg("overlapping", (1, 2, 5, 6), (3, 2), stride=1)
_avg("padded", (1, 2, 5, 6), (3, 3), stride=2, padding=1)
_avg("padding_pair", (1, 2, 5, 6), (3, 2), stride=(2, 1), padding=(1, 0))
_avg("excluded", (1, 2, 5, 6), (3, 3), stride=2, padding=1, count_include_pad=False)
for _size in ((6, 6), (5, 7), (4, 8)):
    for _include in (True, False):
        _avg(f"ceil_{_size[0]}x{_size[1]}_{_include}", (1, 2, *_size), (3, 3), stride=2, padding=1, ceil_mode=True,
             count_include_pad=_include)
_avg("ceil_unpadded", (1, 2, 6, 7), (3, 2), stride=(2, 3), ceil_mode=True)
_avg("1d", (2, 3, 9), (3,), stride=2, padding=1)
_avg("3d", (1, 2, 4, 5, 4), (2, 3, 2), stride=(2, 1, 2), padding=(1, 1, 0))
case("avg_pool2d_asymmetric", lambda x: x.avg_pool2d((2, 2), padding=(1, 0, 0, 1)), (1, 2, 5, 5),
     ref=lambda x: F.avg_pool2d(F.pad(x, (1, 0, 0, 1)), 2), note="padding (left, right, top, bottom)")
case("avg_pool2d_dilated", lambda x: x.avg_pool2d((2, 2), stride=1, dilation=2), (1, 1, 5, 6),
     ref=lambda x: (x[..., :-2, :-2] + x[..., 2:, :-2] + x[..., :-2, 2:] + x[..., 2:, 2:]) / 4)
case("avg_pool2d_ints", lambda x: x.avg_pool2d(), Input((1, 2, 4, 6), "int32", -9, 9),
     ref=lambda x: F.avg_pool2d(x.float(), 2), note="float32 of integers")


def _max(name: str, x: tuple[int, ...], kernel: tuple[int, ...], **how: Any) -> None:
    case(f"max_pool2d_{name}", lambda x: x.max_pool2d(kernel, **how), x,
         ref=lambda x: _MAX[len(kernel)](x, kernel, **how))
    case(f"max_pool2d_indices_{name}", lambda x: x.max_pool2d(kernel, **how, return_indices=True), x,
         ref=lambda x: _MAX[len(kernel)](x, kernel, **how, return_indices=True), note=f"indices, {name}")


case("max_pool2d", lambda x: x.max_pool2d(), (1, 2, 5, 6), ref=lambda x: F.max_pool2d(x, 2), dtypes=FLOATS)
_max("overlapping", (1, 2, 5, 6), (3, 3), stride=1)
_max("strided", (1, 2, 7, 6), (2, 3), stride=(3, 2))
_max("padded", (1, 2, 6, 7), (3, 3), stride=2, padding=1)
_max("ceil", (1, 2, 6, 7), (3, 3), stride=2, padding=1, ceil_mode=True)
_max("ceil_unpadded", (1, 2, 6, 8), (3, 3), stride=2, ceil_mode=True)
_max("dilated", (1, 2, 7, 8), (2, 3), stride=1, dilation=2)
_max("dilated_ceil", (1, 2, 7, 8), (2, 2), stride=3, padding=1, dilation=(2, 3), ceil_mode=True)
_max("1d", (2, 3, 9), (3,), stride=2, padding=1)
_max("3d", (1, 2, 4, 5, 4), (2, 3, 2), stride=(2, 1, 2), padding=(1, 1, 0))
case("max_pool2d_ints", lambda x: x.max_pool2d((3, 3), stride=2, padding=1), Input((1, 2, 6, 7), low=-90, high=90),
     dtypes=INTS, ref=lambda x: F.max_pool2d(x.double(), 3, 2, 1).to(x.dtype))
case("max_pool2d_negative", lambda x: x.max_pool2d((3, 3), padding=1), Input((1, 1, 4, 4), low=-9, high=-5),
     ref=lambda x: F.max_pool2d(x, 3, padding=1), note="padding is below everything")
case("max_pool2d_infinite", lambda x: x.max_pool2d(return_indices=True),
     Input(data=[[[[-float("inf")] * 4, [-float("inf")] * 4]]]), grad=False,
     ref=lambda x: F.max_pool2d(x, 2, return_indices=True), note="windows of -inf")
case("max_pool2d_nan", lambda x: x.max_pool2d(return_indices=True),
     Input(data=[[[[1.0, float("nan"), 3.0, 2.0], [0.0, 5.0, 1.0, 3.0]]]]), grad=False,
     ref=lambda x: F.max_pool2d(x, 2, return_indices=True), note="NaN wins")
case("max_pool2d_tie", lambda x: x.max_pool2d(return_indices=True),
     Input(data=[[[[1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, 2.0]]]]),
     ref=lambda x: F.max_pool2d(x, 2, return_indices=True), grad=False, note="the first of equals")
case("max_pool2d_asymmetric", lambda x: x.max_pool2d((2, 2), padding=(1, 0, 0, 1)), (1, 2, 5, 5),
     ref=lambda x: F.max_pool2d(F.pad(x, (1, 0, 0, 1), value=-float("inf")), 2),
     note="padding (left, right, top, bottom)")
case("max_unpool2d", lambda x: Tensor.max_unpool2d(*x.max_pool2d(return_indices=True)), (1, 2, 4, 6),
     ref=lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2))
case("max_unpool2d_size", lambda x: Tensor.max_unpool2d(*x.max_pool2d(return_indices=True), output_size=(1, 2, 5, 7)),
     (1, 2, 5, 7), ref=lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 7)))
case("max_unpool2d_strided",
     lambda x: Tensor.max_unpool2d(*x.max_pool2d((3, 3), stride=2, padding=1, return_indices=True), (3, 3), stride=2,
                                   padding=1), (1, 2, 7, 5), grad=False,
     ref=lambda x: F.max_unpool2d(*F.max_pool2d(x, 3, 2, 1, return_indices=True), 3, 2, 1))
case("max_unpool2d_1d", lambda x: Tensor.max_unpool2d(*x.max_pool2d((2,), return_indices=True), (2,)), (2, 3, 8),
     ref=lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2))

# *** resampling ***
_TORCH = {("linear", 1): "linear", ("linear", 2): "bilinear", ("linear", 3): "trilinear", ("cubic", 2): "bicubic"}


def _resample(mode: str, shape: tuple[int, ...], size: tuple[int, ...], corners: bool = False, **kwargs: Any) -> None:
    theirs = _TORCH.get((mode, len(size)), mode)
    extra = {"align_corners": corners} if mode in ("linear", "cubic") else {}
    ends = " corners" * corners
    case(f"interpolate_{mode} {shape[2:]} {size}{ends}", lambda x: x.interpolate(size, mode, corners), shape,
         ref=lambda x: F.interpolate(x, size, mode=theirs, **extra), op="interpolate",
         note=f"{mode}{ends} {shape[2:]} to {size}", atol=5e-6, grad_atol=2e-5, **kwargs)


for _mode in ("linear", "nearest", "nearest-exact"):
    for _shape, _new in (((2, 3, 29), (7,)), ((2, 3, 4), (9,)), ((2, 3, 29), (1,)), ((1, 1, 1), (5,)),
                         ((1, 2, 5, 4), (2, 3)), ((1, 2, 3, 4), (5, 7)), ((1, 1, 4, 3), (4, 6)),
                         ((1, 1, 2, 3, 4), (3, 5, 2))):
        _resample(_mode, _shape, _new)
for _shape, _new in (((2, 3, 29), (7,)), ((2, 3, 29), (1,)), ((2, 3, 4), (9,)), ((1, 1, 1), (5,)),
                     ((1, 2, 3, 4), (5, 7)),
                     ((1, 2, 5, 4), (1, 1)), ((1, 1, 2, 3, 4), (3, 5, 1))):
    _resample("linear", _shape, _new, True)
for _shape, _new in (((1, 2, 5, 4), (2, 3)), ((1, 2, 3, 4), (7, 9)), ((1, 1, 1, 6), (3, 4)), ((1, 1, 5, 6), (1, 1))):
    _resample("cubic", _shape, _new)
    _resample("cubic", _shape, _new, True)
case("interpolate_half", lambda x: x.interpolate((5, 7)), (1, 2, 3, 4), dtypes=("float16", "bfloat16", "float64"),
     ref=lambda x: F.interpolate(x, (5, 7), mode="bilinear"), atol=1e-6)
case("interpolate_uint8", lambda x: x.interpolate((5, 7)), Input((1, 2, 3, 4), "uint8", 0, 255),
     ref=lambda x: torch.round(F.interpolate(x.double(), (5, 7), mode="bilinear")).to(torch.uint8), atol=1,
     note="integers are rounded")
case("interpolate_nearest_ints", lambda x: x.interpolate((7,), "nearest"), Input((1, 2, 4), "int32", -9, 9),
     ref=lambda x: F.interpolate(x.float(), 7, mode="nearest").int())
