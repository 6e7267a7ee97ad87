"""Movement: shapes, axes, parts, padding, joining, windows, strides."""
from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .case import FLOATS, INTS, UINTS, Input, by_numpy, case

EMPTY, SCALAR, ONE = (0, 3), (), (1,)

# *** shapes ***
case("reshape", lambda x: x.reshape(2, -1, 3), (4, 3))
case("reshape keep", lambda x: x.reshape(None, 3, -1), (4, 6), ref=lambda x: x.reshape(4, 3, -1))
case("reshape scalar", lambda x: x.reshape(()), (1, 1))
case("reshape empty", lambda x: x.reshape(3, 0, 2), EMPTY)
case("view", lambda x: x.view(3, 4), (2, 6), dtypes=INTS[:2], grad=False)
case("view_as", lambda x, y: x.view_as(y), (2, 6), (3, 4))
case("flatten", lambda x: x.flatten(1, 2), (2, 3, 4, 2))
case("flatten all", lambda x: x.flatten(), (2, 3, 4))
case("flatten scalar", lambda x: x.flatten(), SCALAR)
case("flatten negative", lambda x: x.flatten(-2), (2, 3, 4))
case("ravel", lambda x: x.ravel(), (2, 3))
case("unflatten", lambda x: x.unflatten(1, (3, -1)), (2, 6))
case("unflatten negative", lambda x: x.unflatten(-1, (2, 2)), (3, 4))
case("squeeze", lambda x: x.squeeze(), (1, 2, 1, 3))
case("squeeze_dim", lambda x: x.squeeze(-2), (1, 2, 1, 3))
case("squeeze no one", lambda x: x.squeeze(1), (1, 2, 1))
case("squeeze several", lambda x: x.squeeze((0, 1, 2)), (1, 2, 1, 3))
case("squeeze scalar", lambda x: x.squeeze(0), SCALAR)
case("unsqueeze", lambda x: x.unsqueeze(-1).unsqueeze(0), (2, 3))
case("unsqueeze several", lambda x: x.unsqueeze((0, -1)), (2, 3), ref=lambda x: x[None, ..., None])
case("unsqueeze scalar", lambda x: x.unsqueeze(0), SCALAR)

# *** axes ***
case("permute", lambda x: x.permute(2, 0, 1), (2, 3, 4), dtypes=FLOATS)
case("permute negative", lambda x: x.permute(-1, 0, -2), (2, 3, 4))
case("transpose", lambda x: x.transpose(0, 2), (2, 3, 4))
case("transpose scalar", lambda x: x.transpose(0, 0), SCALAR)
case("T", lambda x: x.T, (2, 3))
case("mT", lambda x: x.mT, (2, 3, 4))
case("movedim", lambda x: x.movedim(0, -1), (2, 3, 4))
case("movedim several", lambda x: x.movedim((0, 2), (2, 1)), (2, 3, 4))
case("moveaxis", lambda x: x.moveaxis(-1, 0), (2, 3, 4))
case("swapaxes", lambda x: x.swapaxes(0, -1), (2, 3, 4))
case("swapdims", lambda x: x.swapdims(1, 2), (2, 3, 4))
case("flip", lambda x: x.flip((0, 2)), (2, 3, 4), dtypes=(*FLOATS, *INTS))
case("flip none", lambda x: x.flip(()), (2, 3))
case("flip empty", lambda x: x.flip(0), EMPTY)
case("fliplr", lambda x: x.fliplr(), (2, 3))
case("flipud", lambda x: x.flipud(), (3, 2))
for _k in (1, 2, 3, -1):
    case(f"rot90 {_k}", lambda x, k=_k: x.rot90(k), (2, 3))
case("rot90 other plane", lambda x: x.rot90(1, (2, 0)), (2, 3, 4))
case("roll", lambda x: x.roll((1, -1), (0, 1)), (3, 4), dtypes=("float32", *INTS[:2]))
case("roll_flat", lambda x: x.roll(5), (3, 4))
case("roll one axis twice", lambda x: x.roll((1, 1), (0, 0)), (3, 4))
case("roll far", lambda x: x.roll(-100, 1), (3, 4))
case("roll empty", lambda x: x.roll(1, 0), EMPTY)

# *** repetition ***
case("expand", lambda x: x.expand(5, 2, 4, 3), (2, 1, 3))
case("expand keep", lambda x: x.expand(-1, 4), (3, 1))
case("expand scalar", lambda x: x.expand(2, 3), SCALAR)
case("expand to nothing", lambda x: x.expand(0, 3), (1, 3))
case("expand_as", lambda x, y: x.expand_as(y), (3, 1), (2, 3, 4))
case("broadcast_to", lambda x: x.broadcast_to((2, 3)), (3,))
case("repeat", lambda x: x.repeat(2, 3, 1), (2, 3), dtypes=FLOATS)
case("repeat nothing", lambda x: x.repeat(2, 0), (2, 3))
case("tile", lambda x: x.tile(2), (2, 3), ref=lambda x: x.tile((2,)))
case("tile more axes", lambda x: x.tile(2, 1, 3), (2, 3), ref=lambda x: x.tile((2, 1, 3)))
case("repeat_interleave", lambda x: x.repeat_interleave(2, 1), (2, 3))
case("repeat_interleave_flat", lambda x: x.repeat_interleave(3), (2, 3))
case("repeat_interleave none", lambda x: x.repeat_interleave(0, 0), (2, 3))
case("repeat_interleave scalar", lambda x: x.repeat_interleave(2), SCALAR)

# *** parts ***
case("shrink", lambda x: x.shrink(((1, 3), None)), (4, 3), ref=lambda x: x[1:3])
case("shrink to nothing", lambda x: x.shrink(((2, 2), None)), (4, 3), ref=lambda x: x[2:2])
case("shrink_to", lambda x: x.shrink_to(2, None), (4, 3), ref=lambda x: x[:2])
case("narrow", lambda x: x.narrow(1, 1, 2), (3, 4))
case("narrow from the end", lambda x: x.narrow(0, -2, 2), (3, 4))
case("select", lambda x: x.select(1, -1), (3, 4, 2))
case("unbind", lambda x: x.unbind(1), (2, 3))
case("split", lambda x: x.split((1, 3), 1), (2, 4))
case("split size", lambda x: x.split(2), (5, 2))
case("split empty parts", lambda x: x.split([0, 2, 0], 1), (3, 2))
case("split beyond", lambda x: x.split(9, -1), (2, 4))
case("chunk", lambda x: x.chunk(3, 1), (2, 7))
case("chunk more than elements", lambda x: x.chunk(5), (3, 2))
case("diagonal", lambda x: x.diagonal(1, 2, 0), (4, 2, 5))
case("diagonal_offset", lambda x: x.diagonal(-2), (4, 3))
case("diagonal outside", lambda x: x.diagonal(9), (4, 3))
case("diagonal square", lambda x: x.diagonal(0, -2, -1), (2, 3, 3), dtypes=FLOATS)
case("diag", lambda x: x.diag(), (4,))
case("diag above", lambda x: x.diag(2), (3,))
case("diag below", lambda x: x.diag(-1), (3,))
case("diag of a matrix", lambda x: x.diag(1), (3, 4))
case("diag empty", lambda x: x.diag(), (0,))
case("tril", lambda x: x.tril(-1), (3, 4), dtypes=("float32", "float16", *INTS[:2]))
case("tril batch", lambda x: x.tril(1), (2, 3, 3))
case("triu", lambda x: x.triu(1), (2, 3, 4))
case("triu far", lambda x: x.triu(-9), (3, 4))
case("triu bool", lambda x: x.triu(), Input((3, 3), "bool"), grad=False)

# *** windows and strides ***
case("unfold", lambda x: x.unfold(0, 3, 2), (8, 2))
case("unfold_disjoint", lambda x: x.unfold(1, 2, 3), (2, 9))
case("unfold dense", lambda x: x.unfold(-1, 4, 1), (2, 3, 6))
case("unfold whole", lambda x: x.unfold(0, 4, 1), (4,))
case("unfold size one", lambda x: x.unfold(1, 1, 2), (2, 5), dtypes=FLOATS)
case("as_strided", lambda x: x.as_strided((2, 3), (3, 1), 2), (10,))
case("as_strided overlap", lambda x: x.as_strided((4, 3), (1, 2)), (3, 4))
case("as_strided transpose", lambda x: x.as_strided((4, 3), (1, 4)), (3, 4), dtypes=FLOATS)
case("as_strided zero stride", lambda x: x.as_strided((3, 2), (0, 5), 1), (2, 4))
case("as_strided diagonal", lambda x: x.as_strided((3,), (4,)), (3, 3))
case("as_strided three axes", lambda x: x.as_strided((2, 2, 3), (5, 2, 3), 1), (4, 5))
case("as_strided nothing", lambda x: x.as_strided((0, 3), (3, 1)), (2, 3))
case("as_strided scalar", lambda x: x.as_strided((), (), 4), (2, 3))
case("as_strided of a view", lambda x: x.T.contiguous().as_strided((2, 2), (3, 1)), (3, 4))

# *** padding ***
case("pad", lambda x: x.pad((1, 2, 0, 1)), (2, 3), ref=lambda x: F.pad(x, (1, 2, 0, 1)), dtypes=FLOATS)
case("pad_value", lambda x: x.pad(((1, 0), None), value=7.0), (2, 3), ref=lambda x: F.pad(x, (0, 0, 1, 0), value=7.0))
case("pad infinite", lambda x: x.pad((1, 1), value=float("-inf")), (3,), grad=False,
     ref=lambda x: F.pad(x, (1, 1), value=float("-inf")))
case("pad_negative", lambda x: x.pad((-1, 2)), (2, 3), ref=lambda x: F.pad(x, (-1, 2)))
case("pad negative all", lambda x: x.pad((-1, -2, -1, 0)), (3, 4), ref=lambda x: F.pad(x, (-1, -2, -1, 0)))
case("pad empty", lambda x: x.pad((0, 0, 2, 1), value=3.0), EMPTY, ref=lambda x: F.pad(x, (0, 0, 2, 1), value=3.0))
case("pad nothing", lambda x: x.pad((0, 0)), (3,), ref=lambda x: F.pad(x, (0, 0)))
case("pad_to", lambda x: x.pad_to(4, None, value=2), (3, 3), ref=lambda x: F.pad(x, (0, 0, 0, 1), value=2))
for _mode in ("reflect", "replicate", "circular"):
    case(f"pad_{_mode}", lambda x, m=_mode: x.pad((2, 1, 1, 2), mode=m), (1, 1, 3, 4),
         ref=lambda x, m=_mode: F.pad(x, (2, 1, 1, 2), mode=m))
    case(f"pad {_mode} one axis", lambda x, m=_mode: x.pad((0, 3), mode=m), (1, 2, 4),
         ref=lambda x, m=_mode: F.pad(x, (0, 3), mode=m), dtypes=("float32", "float64"))
    case(f"pad {_mode} negative", lambda x, m=_mode: x.pad((-1, 2), mode=m), (1, 2, 4),
         ref=lambda x, m=_mode: F.pad(x, (-1, 2), mode=m))
    case(f"pad {_mode} grouped", lambda x, m=_mode: x.pad((None, (1, 0), (0, 2)), mode=m), (2, 3, 4),
         ref=lambda x, m=_mode: F.pad(x[None], (0, 2, 1, 0), mode=m)[0])
case("pad reflect crop beyond", lambda x: x.pad((2, -3), mode="reflect"), (1, 2, 4),
     ref=lambda x: F.pad(x, (2, -3), mode="reflect"))
case("pad_int", lambda x: x.pad((1, 1)), Input((3,), low=-9, high=9), dtypes=INTS, ref=lambda x: F.pad(x, (1, 1)),
     grad=False)
case("pad unsigned", lambda x: x.pad((1, 2), value=3), Input((4,), low=0, high=60000), dtypes=UINTS, grad=False,
     ref=by_numpy(lambda x: np.pad(x, (1, 2), constant_values=3)))
case("pad_bool", lambda x: x.pad((1, 1), value=True), Input((3,), "bool"), ref=lambda x: F.pad(x, (1, 1), value=True),
     grad=False)

# *** joining ***
case("cat", lambda x, y, z: x.cat(y, z, dim=1), (2, 3), (2, 1), (2, 4), ref=lambda *a: torch.cat(a, 1),
     dtypes=(*FLOATS, *INTS))
case("cat last axis", lambda x, y: x.cat(y, dim=-1), (2, 3), (2, 2), ref=lambda *a: torch.cat(a, -1))
case("cat empty part", lambda x, y: x.cat(y, dim=0), (0, 3), (2, 3), ref=lambda *a: torch.cat(a, 0))
case("cat promotes", lambda x, y: x.cat(y), Input((2,), "int32", -9, 9), (3,), ref=lambda *a: torch.cat(a))
case("cat bools", lambda x, y: x.cat(y), Input((2,), "bool"), Input((3,), "bool"), ref=lambda *a: torch.cat(a),
     grad=False)
case("stack", lambda x, y, z: x.stack(y, z, dim=1), (2, 3), (2, 3), (2, 3), ref=lambda *a: torch.stack(a, 1))
case("stack scalars", lambda x, y: x.stack(y), SCALAR, SCALAR, ref=lambda *a: torch.stack(a))
case("stack last axis", lambda x, y: x.stack(y, dim=-1), (2, 3), (2, 3), ref=lambda *a: torch.stack(a, -1))
case("hstack", lambda x, y: x.hstack(y), (2, 3), (2, 1), ref=lambda *a: torch.hstack(a))
case("hstack flat", lambda x, y: x.hstack(y), (2,), (3,), ref=lambda *a: torch.hstack(a))
case("vstack", lambda x, y: x.vstack(y), (3,), (2, 3), ref=lambda *a: torch.vstack(a))
case("dstack", lambda x, y: x.dstack(y), (2, 3), (2, 3), ref=lambda *a: torch.dstack(a))
case("dstack flat", lambda x, y: x.dstack(y), (3,), (3,), ref=lambda *a: torch.dstack(a))
case("meshgrid", lambda x, y: x.meshgrid(y), (3,), (4,), ref=lambda x, y: torch.meshgrid(x, y, indexing="ij"))
case("meshgrid xy", lambda x, y, z: x.meshgrid(y, z, indexing="xy"), (3,), (4,), (2,),
     ref=lambda *a: torch.meshgrid(*a, indexing="xy"))
case("meshgrid one", lambda x: x.meshgrid(), ONE, ref=lambda x: torch.meshgrid(x, indexing="ij"))

# *** einops ***
case("rearrange", lambda x: x.rearrange("b (h w) c -> (b c) w h", h=2), (2, 6, 3),
     ref=lambda x: x.reshape(2, 2, 3, 3).permute(0, 3, 2, 1).reshape(6, 3, 2))
case("rearrange ellipsis", lambda x: x.rearrange("a ... b -> b ... a"), (2, 3, 4, 5),
     ref=lambda x: x.permute(3, 1, 2, 0))
case("rearrange merged ellipsis", lambda x: x.rearrange("a ... -> (... a)"), (2, 3, 4),
     ref=lambda x: x.permute(1, 2, 0).reshape(24))
case("rearrange unit axes", lambda x: x.rearrange("1 a b -> b 1 a ()"), (1, 2, 3),
     ref=lambda x: x.permute(2, 0, 1)[..., None])
case("rearrange patches", lambda x: x.rearrange("b (h p) (w q) c -> b (h w) (p q c)", p=2, q=3), (1, 4, 6, 2),
     ref=lambda x: x.reshape(1, 2, 2, 2, 3, 2).permute(0, 1, 3, 2, 4, 5).reshape(1, 4, 12))
case("rearrange integers", lambda x: x.rearrange("a b -> (b a)"), Input((2, 3), "int32", -9, 9), grad=False,
     ref=by_numpy(lambda x: x.T.ravel()))
