"""Convolutions in both directions."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tinyhost.env import Context

from .case import FLOATS, Input, case

_BOUND = {"atol": 1e-5, "grad_atol": 1e-4}
_F: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_T: dict[int, Any] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _conv(name: str, x: tuple[int, ...], w: tuple[int, ...], **how: Any) -> None:
    case(f"conv2d_{name}", lambda x, w: x.conv2d(w, **how), x, w, ref=lambda x, w: _F[x.ndim - 2](x, w, **how),
         **_BOUND)


case("conv2d", lambda x, w, b: x.conv2d(w, b), (2, 3, 5, 6), (4, 3, 3, 3), (4,), ref=F.conv2d, dtypes=FLOATS, **_BOUND)
_conv("one_by_one", (2, 3, 4, 5), (4, 3, 1, 1))
_conv("strided", (1, 2, 7, 6), (3, 2, 2, 3), stride=2)
_conv("stride_pair", (1, 2, 7, 6), (3, 2, 2, 3), stride=(3, 1))
_conv("padded", (1, 2, 5, 4), (3, 2, 3, 3), padding=1)
_conv("padding_pair", (1, 2, 5, 4), (3, 2, 3, 3), padding=(2, 0))
_conv("dilated", (1, 2, 7, 8), (3, 2, 3, 3), dilation=2)
_conv("dilation_pair", (1, 2, 7, 8), (3, 2, 3, 3), dilation=(1, 3))
_conv("everything", (2, 4, 9, 8), (6, 2, 3, 2), stride=2, padding=(1, 2), dilation=(2, 1), groups=2)
_conv("grouped", (2, 4, 5, 4), (6, 2, 2, 2), groups=2)
_conv("depthwise", (1, 3, 5, 4), (3, 1, 3, 3), groups=3)
_conv("depthwise_multiplied", (1, 3, 5, 4), (6, 1, 3, 3), groups=3, padding=1)
_conv("kernel_of_input_size", (2, 3, 4, 4), (5, 3, 4, 4))
_conv("1d", (2, 3, 7), (4, 3, 3), padding=1)
_conv("1d_everything", (2, 4, 12), (4, 2, 3), stride=2, padding=2, dilation=2, groups=2)
_conv("3d", (1, 2, 3, 4, 4), (2, 2, 2, 2, 2))
_conv("3d_strided", (1, 2, 4, 4, 5), (2, 1, 2, 2, 2), stride=(1, 2, 2), padding=(1, 0, 1), groups=2)
case("conv2d_asymmetric", lambda x, w: x.conv2d(w, padding=(1, 2, 0, 3)), (1, 2, 5, 4), (3, 2, 3, 3),
     ref=lambda x, w: F.conv2d(F.pad(x, (1, 2, 0, 3)), w), note="padding (left, right, top, bottom)", **_BOUND)
case("conv2d_negative_padding", lambda x, w: x.conv2d(w, padding=(-1, 0, 0, -1)), (1, 2, 6, 6), (3, 2, 3, 3),
     ref=lambda x, w: F.conv2d(F.pad(x, (-1, 0, 0, -1)), w), note="padding below 0 crops", **_BOUND)
case("conv2d_ints", lambda x, w: x.conv2d(w), Input((1, 2, 5, 4), low=-9, high=9), Input((3, 2, 3, 3), low=-9, high=9),
     dtypes=("int8", "int32", "uint8"), ref=lambda x, w: F.conv2d(x.double(), w.double()).int(), note="sums are int32")
case("conv2d_dtype", lambda x, w: x.conv2d(w, dtype="float32"), Input((1, 2, 5, 4), "float16"),
     Input((3, 2, 3, 3), "float16"), ref=lambda x, w: F.conv2d(x.float(), w.float()), grad=False, **_BOUND)
case("conv2d_batch_of_none", lambda x, w: x.conv2d(w), (0, 2, 5, 4), (3, 2, 3, 3), ref=F.conv2d)


def _winograd(name: str, x: tuple[int, ...], w: tuple[int, ...], **how: Any) -> None:
    def fn(x: Any, w: Any) -> Any:
        with Context(WINO=1):
            return x.conv2d(w, **how)
    fn.__module__ = __name__
    case(f"conv2d_winograd_{name}", fn, x, w, ref=lambda x, w: _F[x.ndim - 2](x, w, **how), atol=5e-5, rtol=5e-5,
         grad_atol=5e-4, note=f"WINO=1 {name}", slow=True)


_winograd("plain", (1, 2, 10, 10), (3, 2, 3, 3))
_winograd("padded", (2, 3, 9, 7), (4, 3, 3, 3), padding=1)
_winograd("small", (1, 2, 3, 3), (2, 2, 3, 3))
_winograd("grouped", (1, 4, 8, 6), (4, 2, 3, 3), groups=2, padding=1)
_winograd("1d", (2, 3, 13), (4, 3, 3), padding=1)
_winograd("3d", (1, 2, 5, 4, 6), (2, 2, 3, 3, 3))
_winograd("depthwise", (1, 3, 7, 7), (3, 1, 3, 3), groups=3, padding=1)
_winograd("unfit", (1, 2, 8, 6), (4, 2, 3, 3), stride=2)


def _transposed(name: str, x: tuple[int, ...], w: tuple[int, ...], **how: Any) -> None:
    case(f"conv_transpose2d_{name}", lambda x, w: x.conv_transpose2d(w, **how), x, w,
         ref=lambda x, w: _T[x.ndim - 2](x, w, **how), **_BOUND)


case("conv_transpose2d", lambda x, w, b: x.conv_transpose2d(w, b), (1, 3, 4, 3), (3, 2, 3, 3), (2,),
     ref=F.conv_transpose2d, dtypes=("float32", "float64", "float16"), **_BOUND)
_transposed("strided", (1, 3, 4, 3), (3, 2, 3, 3), stride=2)
_transposed("stride_pair", (1, 3, 4, 3), (3, 2, 3, 2), stride=(3, 1))
_transposed("padded", (1, 3, 4, 3), (3, 2, 3, 3), padding=1)
_transposed("padding_pair", (1, 3, 4, 4), (3, 2, 3, 5), padding=(0, 2), stride=(1, 2))
_transposed("padding_beyond_kernel", (1, 2, 5, 5), (2, 2, 2, 2), padding=2)
_transposed("output_padding", (1, 3, 4, 3), (3, 2, 3, 3), stride=2, padding=1, output_padding=1)
_transposed("output_padding_pair", (1, 3, 4, 3), (3, 2, 3, 3), stride=(2, 3), output_padding=(0, 2))
_transposed("dilated", (1, 4, 3, 3), (4, 2, 2, 2), dilation=2)
_transposed("dilation_pair", (1, 4, 3, 3), (4, 2, 2, 2), dilation=(1, 3), stride=2)
_transposed("grouped", (1, 4, 3, 3), (4, 2, 2, 2), groups=2)
_transposed("depthwise", (1, 3, 4, 3), (3, 1, 3, 3), groups=3, stride=2)
_transposed("everything", (2, 4, 4, 3), (4, 3, 3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2),
            dilation=(2, 1), groups=2)
_transposed("1d", (2, 3, 6), (3, 2, 3), stride=2, padding=1)
_transposed("3d", (1, 2, 3, 2, 3), (2, 2, 2, 3, 2), stride=2, output_padding=1)
case("image_conv2d", lambda x, w: x.image_conv2d(w, padding=1), (1, 4, 5, 4), (4, 4, 3, 3),
     ref=lambda x, w: F.conv2d(x, w, padding=1), **_BOUND)
case("image_dot", lambda x, w: x.image_dot(w), (3, 4), (4, 5), ref=torch.matmul, **_BOUND)
