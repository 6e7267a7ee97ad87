"""Movement."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Input, case

case("reshape", lambda x: x.reshape(2, -1, 3), (4, 3))
case("permute", lambda x: x.permute(2, 0, 1), (2, 3, 4))
case("transpose", lambda x: x.transpose(0, 2), (2, 3, 4))
case("T", lambda x: x.T, (2, 3))
case("expand", lambda x: x.expand(5, 2, 4, 3), (2, 1, 3))
case("flip", lambda x: x.flip((0, 2)), (2, 3, 4))
case("shrink", lambda x: x.shrink(((1, 3), None)), (4, 3), ref=lambda x: x[1:3])
case("flatten", lambda x: x.flatten(1, 2), (2, 3, 4, 2))
case("unflatten", lambda x: x.unflatten(1, (3, -1)), (2, 6))
case("squeeze", lambda x: x.squeeze(), (1, 2, 1, 3))
case("squeeze_dim", lambda x: x.squeeze(-2), (1, 2, 1, 3))
case("unsqueeze", lambda x: x.unsqueeze(-1).unsqueeze(0), (2, 3))
case("split", lambda x: x.split((1, 3), 1)[1], (2, 4))
case("chunk", lambda x: x.chunk(3, 1)[2], (2, 7))
case("repeat", lambda x: x.repeat(2, 3, 1), (2, 3))
case("repeat_interleave", lambda x: x.repeat_interleave(2, 1), (2, 3))
case("repeat_interleave_flat", lambda x: x.repeat_interleave(3), (2, 3))
case("diagonal", lambda x: x.diagonal(1, 2, 0), (4, 2, 5))
case("diagonal_offset", lambda x: x.diagonal(-2), (4, 3))
case("diag", lambda x: x.diag(), (4,))
case("roll", lambda x: x.roll((1, -1), (0, 1)), (3, 4))
case("roll_flat", lambda x: x.roll(5), (3, 4))
case("unfold", lambda x: x.unfold(0, 3, 2), (8, 2))
case("unfold_disjoint", lambda x: x.unfold(1, 2, 3), (2, 9))
case("meshgrid", lambda x, y: x.meshgrid(y)[0] * 2 + x.meshgrid(y)[1], (3,), (4,),
     ref=lambda x, y: sum(a * b for a, b in zip(torch.meshgrid(x, y, indexing="ij"), (2, 1))))
case("rearrange", lambda x: x.rearrange("b (h w) c -> (b c) w h", h=2), (2, 6, 3),
     ref=lambda x: x.reshape(2, 2, 3, 3).permute(0, 3, 2, 1).reshape(6, 3, 2))
case("pad", lambda x: x.pad((1, 2, 0, 1)), (2, 3), ref=lambda x: F.pad(x, (1, 2, 0, 1)))
case("pad_value", lambda x: x.pad(((1, 0), None), value=7.0), (2, 3), ref=lambda x: F.pad(x, (0, 0, 1, 0), value=7.0))
case("pad_negative", lambda x: x.pad((-1, 2)), (2, 3), ref=lambda x: F.pad(x, (-1, 2)))
case("pad_reflect", lambda x: x.pad((2, 1, 1, 2), mode="reflect"), (1, 1, 3, 4),
     ref=lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"))
case("pad_replicate", lambda x: x.pad((2, 1, 1, 2), mode="replicate"), (1, 1, 3, 4),
     ref=lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate"))
case("pad_circular", lambda x: x.pad((2, 1, 1, 2), mode="circular"), (1, 1, 3, 4),
     ref=lambda x: F.pad(x, (2, 1, 1, 2), mode="circular"))
case("pad_int", lambda x: x.pad((1, 1)), Input((3,), "int32", -9, 9), ref=lambda x: F.pad(x, (1, 1)), grad=False)
case("pad_bool", lambda x: x.pad((1, 1), value=True), Input((3,), "bool"), ref=lambda x: F.pad(x, (1, 1), value=True),
     grad=False)
case("cat", lambda x, y, z: x.cat(y, z, dim=1), (2, 3), (2, 1), (2, 4), ref=lambda *a: torch.cat(a, 1))
case("stack", lambda x, y, z: x.stack(y, z, dim=1), (2, 3), (2, 3), (2, 3), ref=lambda *a: torch.stack(a, 1))
case("tril", lambda x: x.tril(-1), (3, 4))
case("triu", lambda x: x.triu(1), (2, 3, 4))
