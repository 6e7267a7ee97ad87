"""Every tensor method with inputs and torch's answer: data for tests of graphs, schedules, renderers and devices.

``CASES`` lists them. A case makes its inputs from its own name, so every test sees the same numbers. ``fn`` takes
tinyhost tensors, ``ref`` torch tensors (the same function where names agree). With ``grad`` the gradient of a
weighted sum of the result with respect to every float input is compared too.
"""
from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor


@dataclass(frozen=True)
class Input:
    """One input: numbers of ``shape`` between ``low`` and ``high``, or given ``data``."""

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    data: Any = None

    def make(self, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        if self.data is not None:
            return np.array(self.data, dtype=self.dtype)
        kind = np.dtype(self.dtype).kind
        if kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if kind in "iu":
            return rng.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One call and its reference."""

    name: str
    fn: Callable[..., Any]
    inputs: tuple[Input, ...]
    ref: Callable[..., Any]
    atol: float = 1e-6
    rtol: float = 1e-5
    grad: bool = True
    grad_atol: float = 1e-5
    grad_rtol: float = 1e-4

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """The inputs, the same in every run."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [i.make(rng) for i in self.inputs]

    def __repr__(self) -> str:
        return self.name


CASES: list[Case] = []


def case(name: str, fn: Callable[..., Any], *inputs: Any, ref: Callable[..., Any] | None = None, low: float = -2.0,
         high: float = 2.0, dtype: str = "float32", **kwargs: Any) -> None:
    """Add a case; an input is a shape or an Input."""
    made = tuple(i if isinstance(i, Input) else Input(tuple(i), dtype, low, high) for i in inputs)
    if any(c.name == name for c in CASES):
        raise ValueError(f"two cases named {name}")
    CASES.append(Case(name, fn, made, ref or fn, **kwargs))


def ints(*values: Any, dtype: str = "int32") -> Input:
    return Input(dtype=dtype, data=values[0] if len(values) == 1 else values)


EDGES = Input(data=[0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -2.5, 3.5])

# *** element-wise arithmetic ***
case("add", lambda x, y: x + y, (3, 4), (3, 4))
case("add_broadcast", lambda x, y: x + y, (3, 1, 4), (5, 1))
case("add_scalar", lambda x: 2 + x + 1.5, (3, 4))
case("sub", lambda x, y: x - y, (3, 4), (4,))
case("sub_scalar", lambda x: 2 - x - 1, (3, 4))
case("mul", lambda x, y: x * y, (3, 4), (3, 1))
case("mul_self", lambda x: x * x * 3, (3, 4))
case("div", lambda x, y: x / y, (3, 4), Input((3, 4), low=0.5))
case("div_scalar", lambda x: 3 / x + x / 4, Input((3, 4), low=0.5))
case("div_int", lambda x, y: x / y, Input((8,), "int32", -9, 9), Input((8,), "int32", 1, 9), grad=False)
case("div_trunc", lambda x, y: x.div(y, rounding_mode="trunc"), Input((8,), "int32", -20, 20),
     Input((8,), "int32", 1, 9),
     grad=False)
case("div_floor", lambda x, y: x.div(y, rounding_mode="floor"), (8,), Input((8,), low=0.5), grad=False)
case("floordiv_int", lambda x, y: x // y, Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("mod_int", lambda x, y: x % y, Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("mod_float", lambda x, y: x % y, (16,), Input((16,), low=0.5), atol=1e-5, grad=False)
case("fmod_int", lambda x, y: x.fmod(y), Input((16,), "int32", -20, 20), ints([3, -3] * 8), grad=False)
case("fmod_float", lambda x, y: x.fmod(y), (16,), Input((16,), low=0.5), atol=1e-5, grad=False)
case("neg", lambda x: -x, (3, 4))
case("neg_uint8", lambda x: -x, Input((5,), "uint8", 0, 255), grad=False)
case("pow", lambda x, y: x ** y, Input((3, 4), low=0.2), (3, 4))
case("pow_scalar", lambda x: x ** 3 + x ** 2.5 + x ** -1.5, Input((3, 4), low=0.3))
case("pow_small_int", lambda x: x ** 2 + x ** 4, (3, 4))
case("pow_reverse", lambda x: 2.0 ** x, (3, 4))
case("pow_int_int", lambda x: x ** 3, Input((9,), "int32", -5, 5), grad=False)
case("pow_int_tensors", lambda x, y: x ** y, Input((9,), "int32", -5, 5), Input((9,), "int32", 0, 6), grad=False)
case("maximum", lambda x, y: x.maximum(y), (3, 4), (3, 4))
case("maximum_nan", lambda x: x.maximum(x.flip(0)), EDGES, ref=lambda x: x.maximum(x.flip(0)), grad=False)
case("minimum", lambda x, y: x.minimum(y), (3, 4), (3, 4))
case("minimum_int", lambda x, y: x.minimum(y), Input((6,), "int32", -9, 9), Input((6,), "int32", -9, 9), grad=False)
case("copysign", lambda x, y: x.copysign(y), (3, 4), (3, 4))
case("copysign_zero", lambda x, y: x.copysign(y), Input(data=[1.0, 2.0, -3.0]), Input(data=[0.0, -0.0, -0.0]),
     grad=False)
case("logaddexp", lambda x, y: x.logaddexp(y), (3, 4), (3, 4), ref=torch.logaddexp)
case("logaddexp_infinite", lambda x, y: x.logaddexp(y), Input(data=[-math.inf, math.inf, 0.0, -math.inf]),
     Input(data=[-math.inf, 1.0, -math.inf, 200.0]), ref=torch.logaddexp, grad=False)
case("lerp", lambda x, y, w: x.lerp(y, w), (3, 4), (3, 4), Input((3, 4), low=0, high=1))

# *** comparison, logic, bits ***
for _name, _fn in {"lt": lambda x, y: x < y, "gt": lambda x, y: x > y, "le": lambda x, y: x <= y, "ge": lambda x,
                   y: x >= y,
                   "eq": lambda x, y: x == y, "ne": lambda x, y: x != y}.items():
    case(f"cmp_{_name}", _fn, Input((10,), "int32", -2, 2), Input((10,), "int32", -2, 2), grad=False)
    case(f"cmp_{_name}_nan", lambda x, f=_fn: f(x, x.flip(0)), EDGES, ref=lambda x, f=_fn: f(x, x.flip(0)), grad=False)
    case(f"cmp_{_name}_self", lambda x, f=_fn: f(x, x), EDGES, grad=False)
case("logical_not", lambda x: x.logical_not(), Input((10,), "int32", -2, 2), grad=False)
case("bool_ops", lambda x, y: (x & y) | (x ^ y), Input((10,), "bool"), Input((10,), "bool"), grad=False)
case("bit_ops", lambda x, y: ((x & y) | 5) ^ ~y, Input((10,), "int32", -99, 99), Input((10,), "int32", -99, 99),
     grad=False)
case("shifts", lambda x: (x << 3) >> 2, Input((10,), "int32", -99, 99), grad=False)
case("shifts_uint8", lambda x: (x << 1) >> 2, Input((10,), "uint8", 0, 255), grad=False)
case("where", lambda x, y: (x < y).where(x, y * 2), (3, 4), (4,), ref=lambda x, y: torch.where(x < y, x, y * 2))
case("where_scalar", lambda x: (x < 0).where(1.5, x), (3, 4), ref=lambda x: torch.where(x < 0, 1.5, x))
case("masked_fill", lambda x: x.masked_fill(x > 0, -1.0), (3, 4))

# *** math ***
case("exp", lambda x: x.exp(), (3, 4))
case("exp_edges", lambda x: x.exp(), EDGES, grad=False)
case("exp2", lambda x: x.exp2(), (3, 4))
case("log", lambda x: x.log(), Input((3, 4), low=0.1, high=9))
case("log2", lambda x: x.log2(), Input((3, 4), low=0.1, high=9))
case("log10", lambda x: x.log10(), Input((3, 4), low=0.1, high=9))
case("sqrt", lambda x: x.sqrt(), Input((3, 4), low=0.1, high=9))
case("rsqrt", lambda x: x.rsqrt(), Input((3, 4), low=0.1, high=9))
case("reciprocal", lambda x: x.reciprocal(), Input((3, 4), low=0.2))
case("sin", lambda x: x.sin(), Input((3, 40), low=-30, high=30), atol=1e-5)
case("cos", lambda x: x.cos(), Input((3, 40), low=-30, high=30), atol=1e-5)
case("tan", lambda x: x.tan(), Input((3, 40), low=-1.4, high=1.4), rtol=1e-4)
case("asin", lambda x: x.asin(), Input((3, 40), low=-0.95, high=0.95))
case("acos", lambda x: x.acos(), Input((3, 40), low=-0.95, high=0.95), rtol=1e-4)
case("atan", lambda x: x.atan(), Input((3, 40), low=-4, high=4), atol=1e-5, grad_atol=2e-3)
case("sinh", lambda x: x.sinh(), (3, 4))
case("cosh", lambda x: x.cosh(), (3, 4))
case("tanh", lambda x: x.tanh(), Input((3, 40), low=-9, high=9))
case("asinh", lambda x: x.asinh(), (3, 4))
case("acosh", lambda x: x.acosh(), Input((3, 4), low=1.1, high=9))
case("atanh", lambda x: x.atanh(), Input((3, 4), low=-0.9, high=0.9))
case("erf", lambda x: x.erf(), Input((3, 40), low=-4, high=4), grad_atol=1e-4)
case("sigmoid", lambda x: x.sigmoid(), Input((3, 40), low=-100, high=100))
case("square", lambda x: x.square(), (3, 4))
case("round", lambda x: x.round(), Input(data=[-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 2.6, 1e9, math.inf]),
     grad=False)
case("trunc", lambda x: x.trunc(), Input((3, 4), low=-9, high=9), grad=False)
case("floor", lambda x: x.floor(), Input((3, 4), low=-9, high=9), grad=False)
case("ceil", lambda x: x.ceil(), Input((3, 4), low=-9, high=9), grad=False)
case("sign", lambda x: x.sign(), Input(data=[0.0, -0.0, 2.0, -3.0, math.inf]), grad=False)
case("abs", lambda x: x.abs(), Input(data=[0.0, -0.0, 2.0, -3.0, math.inf]), grad=False)
case("abs_grad", lambda x: x.abs(), (3, 4))
case("isnan", lambda x: x.isnan(), EDGES, grad=False)
case("isinf", lambda x: x.isinf(), EDGES, grad=False)
case("isfinite", lambda x: x.isfinite(), EDGES, grad=False)
case("isclose", lambda x: x.isclose(x.flip(0), equal_nan=True), EDGES, grad=False)
case("clip", lambda x: x.clip(-1, 0.5), (3, 4))
case("clip_edges", lambda x: x.clip(-1, 0.5), EDGES, grad=False)
case("clamp_min", lambda x: x.clamp(min_=0.1), (3, 4), ref=lambda x: x.clamp(min=0.1))

# *** activations ***
case("relu", lambda x: x.relu(), Input(data=[-1.0, 0.0, 2.0]))
case("relu6", lambda x: x.relu6(), Input((3, 8), low=-9, high=9), ref=F.relu6)
case("leaky_relu", lambda x: x.leaky_relu(0.1), (3, 4), ref=lambda x: F.leaky_relu(x, 0.1))
case("elu", lambda x: x.elu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.elu(x, 0.7))
case("celu", lambda x: x.celu(0.7), Input((3, 40), low=-9, high=99), ref=lambda x: F.celu(x, 0.7))
case("selu", lambda x: x.selu(), Input((3, 40), low=-9, high=9), ref=F.selu)
case("silu", lambda x: x.silu(), Input((3, 40), low=-9, high=9), ref=F.silu)
case("gelu_tanh", lambda x: x.gelu(), Input((3, 40), low=-9, high=9), ref=lambda x: F.gelu(x, approximate="tanh"),
     atol=1e-5)
case("gelu_none", lambda x: x.gelu("none"), Input((3, 40), low=-9, high=9), ref=F.gelu, atol=2e-6, grad_atol=1e-4)
case("quick_gelu", lambda x: x.quick_gelu(), (3, 4), ref=lambda x: x * torch.sigmoid(1.702 * x))
case("mish", lambda x: x.mish(), Input((3, 40), low=-9, high=9), ref=F.mish, atol=1e-5)
case("softplus", lambda x: x.softplus(), Input((3, 40), low=-50, high=50), ref=lambda x: F.softplus(x, threshold=100))
case("softplus_beta", lambda x: x.softplus(3.0), (3, 4), ref=lambda x: F.softplus(x, 3.0))
case("softsign", lambda x: x.softsign(), (3, 4), ref=F.softsign)
case("logsigmoid", lambda x: x.logsigmoid(), Input((3, 40), low=-50, high=50), ref=F.logsigmoid)
case("hardsigmoid", lambda x: x.hardsigmoid(), Input((3, 8), low=-5, high=5), ref=F.hardsigmoid)
case("hardswish", lambda x: x.hardswish(), Input((3, 8), low=-5, high=5), ref=F.hardswish)
case("hardtanh", lambda x: x.hardtanh(), (3, 4), ref=F.hardtanh)

# *** movement ***
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

# *** reductions ***
case("sum", lambda x: x.sum(), (3, 4, 5))
case("sum_axis", lambda x: x.sum(1), (3, 4, 5))
case("sum_axes_keepdim", lambda x: x.sum((0, 2), keepdim=True), (3, 4, 5))
case("sum_int8", lambda x: x.sum(0), Input((300,), "int8", -100, 100), ref=lambda x: x.sum(0, dtype=torch.int32),
     grad=False)
case("prod", lambda x: x.prod(1), (3, 4))
case("prod_zeros", lambda x: x.prod(1), Input(data=[[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]))
case("max", lambda x: x.max(), (3, 4))
case("max_axis", lambda x: x.max(1), (3, 4), ref=lambda x: x.amax(1))
case("max_tie", lambda x: x.max(0), Input(data=[1.0, 3.0, 3.0, 2.0]), ref=lambda x: x.amax(0))
case("max_nan", lambda x: x.max(), EDGES, grad=False)
case("min", lambda x: x.min(0), (3, 4), ref=lambda x: x.amin(0))
case("min_uint8", lambda x: x.min(), Input((9,), "uint8", 3, 255), grad=False)
case("any", lambda x: x.any(1), Input((5, 2), "bool"), grad=False)
case("all", lambda x: x.all(1), Input((5, 2), "bool"), grad=False)
case("mean", lambda x: x.mean(1), (3, 4))
case("mean_int", lambda x: x.mean(), Input((9,), "int32", -9, 9), ref=lambda x: x.float().mean(), grad=False)
case("var", lambda x: x.var(1), (3, 4))
case("var_biased", lambda x: x.var(1, correction=0, keepdim=True), (3, 4))
case("std", lambda x: x.std(1), (3, 4))
case("logsumexp", lambda x: x.logsumexp(1), (3, 4))
case("logsumexp_infinite", lambda x: x.logsumexp(0), Input(data=[-math.inf, -math.inf]), grad=False)
case("argmax", lambda x: x.argmax(1), (3, 7), ref=lambda x: x.argmax(1).int(), grad=False)
case("argmax_nan", lambda x: x.argmax(), EDGES, ref=lambda x: x.argmax().int(), grad=False)
case("argmin", lambda x: x.argmin(), (3, 7), ref=lambda x: x.argmin().int(), grad=False)
case("softmax", lambda x: x.softmax(1), (3, 4))
case("softmin", lambda x: x.softmin(0), (3, 4), ref=lambda x: F.softmin(x, 0))
case("log_softmax", lambda x: x.log_softmax(-1), (3, 4))
case("normalize", lambda x: x.normalize(), (3, 4), ref=F.normalize)
case("normalize_p", lambda x: x.normalize(p=3.0, dim=0), (3, 4), ref=lambda x: F.normalize(x, p=3.0, dim=0))

# *** scans and sorting ***
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

# *** indexing ***
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

# *** products ***
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

# *** layers and losses ***
case("layernorm", lambda x: x.layernorm(), (3, 8), ref=lambda x: F.layer_norm(x, (8,)))
case("batchnorm", lambda x, w, b, m, i: x.batchnorm(w, b, m, i), (2, 3, 4), (3,), (3,), (3,), Input((3,), low=0.5),
     ref=lambda x, w, b, m, i: (x - m[None, :, None]) * i[None, :, None] * w[None, :, None] + b[None, :, None])
case("binary_crossentropy", lambda x, y: x.binary_crossentropy(y), Input((3, 4), low=0.1, high=0.9),
     Input((3, 4), low=0, high=1),
     ref=F.binary_cross_entropy)
case("binary_crossentropy_logits", lambda x,
     y: x.binary_crossentropy_logits(y, pos_weight=Tensor([2.0, 3, 4, 5], device=x.device)), (3, 4),
     Input((3, 4), low=0, high=1),
     ref=lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor([2.0, 3, 4, 5])))
case("cross_entropy", lambda x, y: x.cross_entropy(y), (4, 5), ints([0, 4, 2, 2]), ref=lambda x,
     y: F.cross_entropy(x, y.long()))
case("cross_entropy_smooth", lambda x, y: x.cross_entropy(y, label_smoothing=0.2, reduction="sum"), (4, 5, 2),
     Input((4, 2), "int32", 0, 5), ref=lambda x, y: F.cross_entropy(x, y.long(), label_smoothing=0.2, reduction="sum"))
case("cross_entropy_probs", lambda x, y: x.cross_entropy(y, reduction="none"), (4, 5), Input((4, 5), low=0, high=1),
     ref=lambda x, y: F.cross_entropy(x, y, reduction="none"), atol=1e-5)
case("sparse_crossentropy", lambda x, y: x.sparse_categorical_crossentropy(y, ignore_index=2), (4, 5),
     ints([0, 4, 2, 2]),
     ref=lambda x, y: F.cross_entropy(x, y.long(), ignore_index=2))
case("nll_loss", lambda x, y, w: x.log_softmax(1).nll_loss(y, w.detach(), ignore_index=1), (4, 5), ints([0, 4, 1, 2]),
     Input((5,), low=0.5), ref=lambda x, y, w: F.nll_loss(x.log_softmax(1), y.long(), w.detach(), ignore_index=1))
case("attention", lambda q, k, v: q.scaled_dot_product_attention(k, v), (2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8),
     ref=F.scaled_dot_product_attention, atol=1e-5)
case("attention_causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), (2, 3, 4, 8),
     (2, 3, 4, 8),
     (2, 3, 4, 8), ref=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-5)
case("attention_gqa", lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True), (2, 4, 4, 8), (2, 2, 5, 8),
     (2, 2, 5, 8), ref=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), atol=1e-5)

# *** dtypes ***
case("cast_float_int", lambda x: x.int(), Input((9,), low=-9, high=9), grad=False)
case("cast_int_uint8", lambda x: x.cast("uint8"), Input((9,), "int32", -900, 900), ref=lambda x: x.to(torch.uint8),
     grad=False)
case("cast_half", lambda x: x.half() * 2, (3, 4), atol=1e-3, rtol=1e-3, grad_rtol=1e-3)
case("cast_bfloat16", lambda x: x.bfloat16().float(), (3, 4), grad=False)
case("bitcast", lambda x: x.bitcast("int32"), (3, 4), ref=lambda x: x.view(torch.int32), grad=False)
case("bitcast_narrow", lambda x: x.bitcast("uint8"), (3, 4), ref=lambda x: x.view(torch.uint8), grad=False)
case("half_sum", lambda x: x.sum(1), Input((3, 200), "float16"), atol=1e-2, rtol=1e-3, grad=False)
case("half_exp", lambda x: x.exp(), Input((3, 4), "float16"), atol=1e-3, rtol=2e-3, grad=False)
case("half_matmul", lambda x, y: x @ y, Input((3, 20), "float16"), Input((20, 4), "float16"), atol=1e-2, rtol=2e-3,
     grad=False)
case("double_math", lambda x: (x * 3 + 1).sqrt(), Input((9,), "float64", 0, 9), rtol=1e-12, atol=1e-14)


def _newton_schulz(x: torch.Tensor, steps: int, params: tuple[float, ...]) -> torch.Tensor:
    g = x / (x.norm() + 1e-7)
    g = g.T if x.shape[0] > x.shape[1] else g
    for _ in range(steps):
        a = g @ g.T
        g = params[0] * g + params[1] * a @ g + params[2] * a @ a @ g
    return g.T if x.shape[0] > x.shape[1] else g
