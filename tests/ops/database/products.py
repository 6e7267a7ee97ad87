"""Products."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor

from .case import Input, case

case("dot_vectors", lambda x, y: x.dot(y), (5,), (5,))
case("matmul", lambda x, y: x @ y, (3, 5), (5, 4), atol=1e-5)
case("matmul_batched", lambda x, y: x @ y, (2, 1, 3, 5), (4, 5, 2), atol=1e-5)
case("matmul_vector", lambda x, y: x @ y, (3, 5), (5,), atol=1e-5)
case("vector_matmul", lambda x, y: x @ y, (5,), (5, 4), atol=1e-5)
case("matmul_int8", lambda x, y: x @ y, Input((3, 5), "int8", -20, 20), Input((5, 2), "int8", -20, 20), grad=False)
case("linear", lambda x, w, b: x.linear(w, b), (3, 5), (5, 2), (2,), ref=lambda x, w, b: x @ w + b, atol=1e-5)
for _formula, *_shapes in (("ij,jk->ik", (3, 4), (4, 2)), ("ij,jk", (3, 4), (4, 2)),
                           ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
                           ("ii->i", (4, 4)), ("ij->", (3, 4)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
                           ("i,j->ij", (3,), (4,)), ("ijk->kji", (2, 3, 4)), ("ij,ij->i", (3, 4), (3, 4))):
    case(f"einsum {_formula}", lambda *t, f=_formula: Tensor.einsum(f, *t), *_shapes,
         ref=lambda *t, f=_formula: torch.einsum(f, *t), atol=1e-5)
case("conv2d", lambda x, w, b: x.conv2d(w, b), (2, 3, 5, 6), (4, 3, 3, 3), (4,), ref=F.conv2d, atol=1e-5)
case("conv2d_strided", lambda x, w: x.conv2d(w, stride=2, padding=(1, 2), dilation=(2, 1)), (1, 2, 7, 6), (3, 2, 2, 3),
     ref=lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 2), dilation=(2, 1)), atol=1e-5)
case("conv2d_grouped", lambda x, w: x.conv2d(w, groups=2), (2, 4, 5, 4), (6, 2, 2, 2),
     ref=lambda x, w: F.conv2d(x, w, groups=2), atol=1e-5)
case("conv1d", lambda x, w: x.conv2d(w, padding=1), (2, 3, 7), (4, 3, 3), ref=lambda x, w: F.conv1d(x, w, padding=1),
     atol=1e-5)
case("conv3d", lambda x, w: x.conv2d(w), (1, 2, 3, 4, 4), (2, 2, 2, 2, 2), ref=F.conv3d, atol=1e-5)
case("conv_transpose2d", lambda x, w, b: x.conv_transpose2d(w, b, stride=2, padding=1, output_padding=1), (1, 3, 4, 3),
     (3, 2, 3, 3), (2,), ref=lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
     atol=1e-5)
case("conv_transpose2d_grouped", lambda x, w: x.conv_transpose2d(w, groups=2, dilation=2), (1, 4, 3, 3), (4, 3, 2, 2),
     ref=lambda x, w: F.conv_transpose2d(x, w, groups=2, dilation=2), atol=1e-5)
case("avg_pool2d", lambda x: x.avg_pool2d(), (1, 2, 5, 6), ref=lambda x: F.avg_pool2d(x, 2))
case("avg_pool2d_padded", lambda x: x.avg_pool2d((3, 3), stride=2, padding=1), (1, 2, 5, 6),
     ref=lambda x: F.avg_pool2d(x, 3, 2, 1))
case("avg_pool2d_excluded", lambda x: x.avg_pool2d((3, 3), stride=2, padding=1, count_include_pad=False), (1, 2, 5, 6),
     ref=lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
case("avg_pool2d_ceil", lambda x: x.avg_pool2d((3, 3), stride=2, padding=1, ceil_mode=True), (1, 2, 6, 6),
     ref=lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True))
case("max_pool2d", lambda x: x.max_pool2d(), (1, 2, 5, 6), ref=lambda x: F.max_pool2d(x, 2))
case("max_pool2d_padded", lambda x: x.max_pool2d((3, 3), stride=2, padding=1, dilation=1, ceil_mode=True), (1, 2, 6, 7),
     ref=lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True))
case("max_pool2d_indices", lambda x: x.max_pool2d((3, 3), stride=1, return_indices=True)[1], (1, 2, 5, 6),
     ref=lambda x: F.max_pool2d(x, 3, 1, return_indices=True)[1].int(), grad=False)
case("max_unpool2d", lambda x: Tensor.max_unpool2d(*x.max_pool2d(return_indices=True)), (1, 2, 4, 6),
     ref=lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), grad=False)
case("newton_schulz", lambda x: x.newton_schulz(3, (2, -1.5, 0.5)), (4, 3), grad=False, atol=1e-4,
     ref=lambda x: _newton_schulz(x, 3, (2, -1.5, 0.5)))


def _newton_schulz(x: torch.Tensor, steps: int, params: tuple[float, ...]) -> torch.Tensor:
    g = x / (x.norm() + 1e-7)
    g = g.T if x.shape[0] > x.shape[1] else g
    for _ in range(steps):
        a = g @ g.T
        g = params[0] * g + params[1] * a @ g + params[2] * a @ a @ g
    return g.T if x.shape[0] > x.shape[1] else g
