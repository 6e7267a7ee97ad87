"""Indexing."""
from __future__ import annotations

import torch.nn.functional as F

from .case import Input, case, ints

case("getitem_int", lambda x: x[1], (3, 4))
case("getitem_slices", lambda x: x[1:, ::2, None, -1], (3, 5, 4))
case("getitem_negative_step", lambda x: x[::-1, 4:1:-2], (3, 6), ref=lambda x: x.flip(0)[:, [4, 2]])
case("getitem_ellipsis", lambda x: x[..., 0], (3, 5, 4))
case("getitem_tensor", lambda x, i: x[i], (5, 3), ints([4, 0, -1, 0]), ref=lambda x, i: x[i.long()])
case("getitem_tensor_2d", lambda x, i: x[:, i], (2, 5, 3), ints([[4, 0], [1, 1]]), ref=lambda x, i: x[:, i.long()])
case("getitem_two_tensors", lambda x, i, j: x[i, :, j], (4, 3, 5), ints([0, 3, 1]), ints([[4], [2]]),
     ref=lambda x, i, j: x[i.long(), :, j.long()])
case("getitem_adjacent_tensors", lambda x, i, j: x[:, i, j], (2, 3, 5), ints([0, 2, 1]), ints([4, 2, 0]),
     ref=lambda x, i, j: x[:, i.long(), j.long()])
case("getitem_list", lambda x: x[[2, 0], 1:], (3, 4))
case("getitem_uint8", lambda x, i: x[i], (300, 2), Input((5,), "uint8", 0, 255), ref=lambda x, i: x[i.long()])
case("gather", lambda x, i: x.gather(1, i), (3, 4), ints([[0, 3], [1, 1], [2, 0]]), ref=lambda x,
     i: x.gather(1, i.long()))
case("scatter", lambda x, i, s: x.scatter(1, i, s), (3, 4), ints([[0, 3], [1, 2], [2, 0]]), (3, 2),
     ref=lambda x, i, s: x.scatter(1, i.long(), s))
case("scatter_add", lambda x, i, s: x.scatter(0, i, s, reduce="add"), (3, 4), ints([[0, 2, 1], [0, 1, 1]]), (2, 3),
     ref=lambda x, i, s: x.scatter_add(0, i.long(), s))
case("scatter_scalar", lambda x, i: x.scatter(1, i, 9.0), (3, 4), ints([[0], [1], [2]]), ref=lambda x,
     i: x.scatter(1, i.long(), 9.0))
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _own in (True, False):
        case(f"scatter_reduce_{_reduce}_{_own}",
             lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(0, i, s, r, include_self=o), (4, 2),
             ints([[0, 2], [0, 1], [3, 1]]), (3, 2),
             ref=lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(0, i.long(), s, r, include_self=o))
case("one_hot", lambda x: x.one_hot(5), ints([0, 4, 2]), ref=lambda x: F.one_hot(x.long(), 5), grad=False)
case("interpolate_linear", lambda x: x.interpolate((7,)), (1, 2, 4), ref=lambda x: F.interpolate(x, 7, mode="linear"))
case("interpolate_corners", lambda x: x.interpolate((5, 7), align_corners=True), (1, 2, 3, 4),
     ref=lambda x: F.interpolate(x, (5, 7), mode="bilinear", align_corners=True))
case("interpolate_nearest", lambda x: x.interpolate((5, 7), mode="nearest"), (1, 2, 3, 4),
     ref=lambda x: F.interpolate(x, (5, 7), mode="nearest"))
case("interpolate_exact", lambda x: x.interpolate((2, 3), mode="nearest-exact"), (1, 2, 5, 4),
     ref=lambda x: F.interpolate(x, (2, 3), mode="nearest-exact"))
