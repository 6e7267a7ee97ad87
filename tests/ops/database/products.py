"""Products of vectors, matrices and tensors."""
from __future__ import annotations

import numpy as np
import torch

from tinyhost.tensor import Tensor

from .case import FLOATS, INTS, UINTS, Input, by_numpy, case

ALL_INTS = (*INTS, *UINTS[1:])
_MATRIX = {"atol": 1e-5}

case("dot", lambda x, y: x.dot(y), (5,), (5,), dtypes=FLOATS, atol=2e-6)
case("dot_matrices", lambda x, y: x.dot(y), (3, 5), (5, 4), ref=torch.matmul, **_MATRIX)
case("matmul", lambda x, y: x @ y, (3, 5), (5, 4), dtypes=FLOATS, **_MATRIX)
case("matmul_square", lambda x, y: x @ y, (17, 17), (17, 17), **_MATRIX)
case("matmul_wide", lambda x, y: x @ y, (2, 70), (70, 3), **_MATRIX)
for _a, _b in (((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 4)), ((2, 3, 5), (5,)), ((5,), (2, 5, 4)), ((2, 3, 5), (5, 4)),
               ((3, 5), (2, 5, 4)), ((2, 3, 5), (2, 5, 4)), ((2, 1, 3, 5), (4, 5, 2)), ((2, 4, 3, 5), (1, 5, 2)),
               ((1, 1), (1, 1)), ((3, 1), (1, 4)), ((1, 5), (5, 1))):
    case(f"matmul {_a} {_b}".replace(",)", ")"), lambda x, y: x @ y, _a, _b, op="matmul", note=f"{_a} @ {_b}",
         **_MATRIX)
case("matmul_empty_inner", lambda x, y: x @ y, (3, 0), (0, 4), note="zeros over no inner element")
case("matmul_empty_outer", lambda x, y: x @ y, (0, 3), (3, 4), note="empty result")
case("matmul_reverse", lambda x, y: y.matmul(x, reverse=True), (3, 5), (5, 4), ref=torch.matmul, **_MATRIX)
case("matmul_ints", lambda x, y: x @ y, Input((3, 5), low=-20, high=20), Input((5, 2), low=-20, high=20),
     dtypes=ALL_INTS, ref=by_numpy(np.matmul), note="in the input's own dtype, wrapping")
case("matmul_bool", lambda x, y: x @ y, Input((3, 5), "bool"), Input((5, 2), "bool"), ref=by_numpy(np.matmul))
case("matmul_int_float", lambda x, y: x @ y, Input((3, 5), "int32", -9, 9), (5, 2), ref=lambda x, y: x.float() @ y,
     **_MATRIX)
case("matmul_half_float", lambda x, y: x @ y, Input((3, 5), "float16"), (5, 2), ref=lambda x, y: x.float() @ y,
     rtol=1e-3,
     atol=1e-3, grad=False)
case("matmul_dtype", lambda x, y: x.matmul(y, dtype="int32"), Input((3, 50), "int8", -120, 120),
     Input((50, 2), "int8", -120, 120), ref=lambda x, y: x.int() @ y.int())
case("matmul_dtype_half", lambda x, y: x.matmul(y, dtype="float32"), Input((3, 50), "float16"),
     Input((50, 2), "float16"),
     ref=lambda x, y: x.float() @ y.float(), grad=False, **_MATRIX)
case("matmul_half_long", lambda x, y: x @ y, Input((2, 4000), "float16", 0, 1), Input((4000, 2), "float16", 0, 1),
     ref=lambda x, y: x.float() @ y.float(), rtol=1e-3, grad=False, note="sums of 4000 halves")
case("matmul_infinite", lambda x, y: x @ y, Input(data=[[float("inf"), 1.0], [0.0, float("nan")]]),
     Input(data=[[1.0, 0.0], [2.0, 3.0]]), grad=False)
case("matmul_transposed", lambda x, y: x.T @ y.transpose(), (5, 3), (4, 5), ref=lambda x, y: x.T @ y.T, **_MATRIX)
case("linear", lambda x, w, b: x.linear(w, b), (3, 5), (5, 2), (2,), ref=lambda x, w, b: x @ w + b, **_MATRIX)
case("linear_no_bias", lambda x, w: x.linear(w), (2, 3, 5), (5, 2), ref=torch.matmul, **_MATRIX)
case("linear_diagonal", lambda x, w, b: x.linear(w, b), (3, 5), (5,), (5,), ref=lambda x, w, b: x * w + b)
case("linear_dtype", lambda x, w, b: x.linear(w, b, dtype="float64"), (3, 5), (5, 2), (2,), grad=False,
     ref=lambda x, w, b: x.double() @ w.double() + b)

# *** einsum ***
for _formula, *_shapes in (("ij,jk->ik", (3, 4), (4, 2)), ("ij,jk", (3, 4), (4, 2)), ("ba", (2, 3)),
                           ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("ii->i", (4, 4)), ("ii", (4, 4)),
                           ("iij->j", (3, 3, 2)),
                           ("iii->i", (3, 3, 3)), ("iji->j", (3, 2, 3)), ("ij->", (3, 4)), ("->", ()), (",->", (), ()),
                           ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("...ij,...jk", (2, 1, 3, 4), (5, 4, 2)),
                           ("i...->...", (3, 2, 4)), ("...i->...", (3, 2, 4)), ("i...j->j...i", (3, 2, 4)),
                           ("...,...->...", (3, 4), (4,)), ("...", (3, 4)), ("i...i->...", (3, 2, 3)),
                           ("...ii->...i", (2, 3, 3)),
                           ("i,j->ij", (3,), (4,)), ("i,i->", (4,), (4,)), ("i,i->i", (4,), (4,)),
                           ("ijk->kji", (2, 3, 4)),
                           ("ij,ij->i", (3, 4), (3, 4)), ("ij,ji->", (3, 4), (4, 3)),
                           (" i j , j k -> i k ", (3, 4), (4, 2)),
                           ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,jk,kl,lm->im", (2, 3), (3, 2), (2, 4),
                                                                      (4, 2)),
                           ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("Ab,bA->A", (2, 3), (3, 2)),
                           ("ij,kj->ik", (3, 1), (2, 4)), ("xyz,zyx->y", (2, 3, 4), (4, 3, 2)),
                           ("ab,cd->abcd", (2, 3), (1, 2)),
                           ("ij,jk->ki", (3, 0), (0, 2))):
    case(f"einsum {_formula.strip()} {_shapes}", lambda *t, f=_formula: Tensor.einsum(f, *t), *_shapes, op="einsum",
         ref=lambda *t, f=_formula: torch.einsum(f, *t), note=f"`{_formula.strip()}`", **_MATRIX)
case("einsum_list", lambda x, y: Tensor.einsum("ij,jk->ik", [x, y]), (3, 4), (4, 2), ref=torch.matmul, **_MATRIX)
case("einsum_ints", lambda x, y: Tensor.einsum("ij,jk->ik", x, y), Input((3, 4), low=-9, high=9),
     Input((4, 2), low=-9, high=9), dtypes=INTS, ref=by_numpy(np.matmul))
case("einsum_dtype", lambda x, y: Tensor.einsum("i,i->", x, y, dtype="int32"), Input((50,), "int8", -120, 120),
     Input((50,), "int8", -120, 120), ref=lambda x, y: (x.int() * y.int()).sum())
case("einsum_half", lambda x, y: Tensor.einsum("ij,jk->ik", x, y), (3, 40), (40, 2), dtypes=("float16", "bfloat16"),
     ref=torch.matmul, **_MATRIX)
