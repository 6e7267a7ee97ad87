"""Softmax, norms, attention, and other layers without parameters of their own."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .case import FLOATS, Input, case, ints

INF, NAN = math.inf, math.nan

# *** softmax ***
case("softmax", lambda x: x.softmax(1), (3, 4), dtypes=FLOATS)
case("softmax_axis0", lambda x: x.softmax(0), (3, 4))
case("softmax_default", lambda x: x.softmax(), (2, 3, 4), ref=lambda x: x.softmax(-1))
case("softmax_axes", lambda x: x.softmax((0, 1)), (3, 4), ref=lambda x: x.flatten().softmax(0).reshape(3, 4))
case("softmax_dtype", lambda x: x.softmax(-1, dtype="float64"), (3, 4),
     ref=lambda x: x.softmax(-1, dtype=torch.float64))
case("softmax_dtype_half", lambda x: x.softmax(-1, dtype="float32"), Input((3, 4), "float16"), grad=False,
     ref=lambda x: x.softmax(-1, dtype=torch.float32))
case("softmax_ints", lambda x: x.softmax(-1), Input((3, 4), "int32", -3, 3), ref=lambda x: x.float().softmax(-1))
case("softmax_far", lambda x: x.softmax(-1), Input((3, 4), low=-1000, high=1000))
case("softmax_infinite", lambda x: x.softmax(-1), Input(data=[[-INF, 0.0, 1.0], [INF, 0.0, 1.0], [-INF, -INF, -INF]]),
     grad=False, note="a row of -inf gives NaN")
case("softmax_one", lambda x: x.softmax(-1), (3, 1))
case("softmax_scalar", lambda x: x.softmax(-1), ())
case("softmin", lambda x: x.softmin(0), (3, 4), ref=lambda x: F.softmin(x, 0))
case("softmin_dtype", lambda x: x.softmin(-1, dtype="float64"), (3, 4),
     ref=lambda x: F.softmin(x, -1, dtype=torch.float64))
case("log_softmax", lambda x: x.log_softmax(-1), (3, 4), dtypes=FLOATS)
case("log_softmax_axis0", lambda x: x.log_softmax(0), (3, 4))
case("log_softmax_dtype", lambda x: x.log_softmax(-1, dtype="float64"), (3, 4),
     ref=lambda x: x.log_softmax(-1, dtype=torch.float64))
case("log_softmax_far", lambda x: x.log_softmax(-1), Input((3, 4), low=-1000, high=1000))

# *** norms ***
case("layernorm", lambda x: x.layernorm(), (3, 8), ref=lambda x: F.layer_norm(x, (8,)), dtypes=FLOATS)
case("layernorm_axes", lambda x: x.layernorm((-2, -1), eps=1e-3), (2, 3, 4),
     ref=lambda x: F.layer_norm(x, (3, 4), eps=1e-3))
case("layernorm_axis0", lambda x: x.layernorm(0), (5, 3), ref=lambda x: F.layer_norm(x.T, (5,)).T)
case("layernorm_far", lambda x: x.layernorm(), Input((3, 8), low=1000, high=1001), ref=lambda x: F.layer_norm(x, (8,)),
     rtol=2e-3, atol=2e-3, grad=False, note="mean far from 0")
case("layernorm_constant", lambda x: x.layernorm(), Input(data=[[3.0] * 6]), ref=lambda x: F.layer_norm(x, (6,)))
case("batchnorm", lambda x, w, b, m, i: x.batchnorm(w, b, m, i), (2, 3, 4), (3,), (3,), (3,), Input((3,), low=0.5),
     ref=lambda x, w, b, m, i: (x - m[None, :, None]) * i[None, :, None] * w[None, :, None] + b[None, :, None])
case("batchnorm_plain", lambda x, m, i: x.batchnorm(None, None, m, i), (2, 3), (3,), Input((3,), low=0.5),
     ref=lambda x, m, i: (x - m) * i)
case("batchnorm_last_axis", lambda x, w, b, m, i: x.batchnorm(w, b, m, i, axis=-1), (2, 4, 3), (3,), (3,), (3,),
     Input((3,), low=0.5), ref=lambda x, w, b, m, i: (x - m) * i * w + b)
case("batchnorm_axes", lambda x, w, b, m, i: x.batchnorm(w, b, m, i, axis=(0, 2)), (2, 4, 3), (2, 3), (2, 3), (2, 3),
     Input((2, 3), low=0.5), ref=lambda x, w, b, m, i: (x - m[:, None]) * i[:, None] * w[:, None] + b[:, None])

# *** attention: (batch, heads, tokens, head size) ***
_Q, _K, _V = (2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6)
_BOUND = {"atol": 1e-5, "op": "scaled_dot_product_attention"}
_attention = F.scaled_dot_product_attention
case("attention", lambda q, k, v: q.scaled_dot_product_attention(k, v), _Q, _K, _V, ref=_attention, dtypes=FLOATS,
     note="no mask", **_BOUND)
case("attention_causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), _Q, _Q, _Q,
     note="causal",
     ref=lambda q, k, v: _attention(q, k, v, is_causal=True), **_BOUND)
case("attention_causal_more_keys", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), _Q, _K, _V,
     ref=lambda q, k, v: _attention(q, k, v, is_causal=True), note="causal, more keys than queries", **_BOUND)
case("attention_bool_mask", lambda q, k, v: q.scaled_dot_product_attention(k, v, _mask(q)), _Q, _K, _V,
     ref=lambda q, k, v: _attention(q, k, v, _torch_mask()), note="bool mask", **_BOUND)
case("attention_added_mask", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), _Q, _K, _V, (4, 5),
     ref=lambda q, k, v, m: _attention(q, k, v, m), note="added mask", **_BOUND)
case("attention_added_mask_heads", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), _Q, _K, _V, (2, 1, 4, 5),
     ref=lambda q, k, v, m: _attention(q, k, v, m), note="added mask, broadcast over heads", **_BOUND)
case("attention_masked_out", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), _Q, _K, _V,
     Input(dtype="bool", data=[[False] * 5, [True] * 5, [True] * 5, [False, True, False, False, True]]),
     ref=lambda q, k, v, m: _attention(q, k, v, m), grad=False, note="a row masked out gives zeros", **_BOUND)
case("attention_masked_out_added", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m), _Q, _K, _V,
     Input(data=[[-INF] * 5, [0.0] * 5, [0.0] * 5, [-INF, 0.0, -INF, 0.0, 0.0]]),
     ref=lambda q, k, v, m: _attention(q, k, v, m), grad=False, note="a row of -inf gives zeros", **_BOUND)
case("attention_gqa", lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True), (2, 4, 4, 8), (2, 2, 5, 8),
     (2, 2, 5, 8), ref=lambda q, k, v: _attention(q, k, v, enable_gqa=True), note="grouped heads", **_BOUND)
case("attention_gqa_causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=True),
     (1, 6, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), note="grouped heads, causal",
     ref=lambda q, k, v: _attention(q, k, v, is_causal=True, enable_gqa=True), **_BOUND)
case("attention_3d", lambda q, k, v: q.scaled_dot_product_attention(k, v), (2, 4, 8), (2, 5, 8), (2, 5, 8),
     ref=_attention, note="no axis of heads", **_BOUND)
case("attention_2d", lambda q, k, v: q.scaled_dot_product_attention(k, v), (4, 8), (5, 8), (5, 8), ref=_attention,
     note="tokens only", **_BOUND)


def _torch_mask() -> torch.Tensor:
    return torch.tensor([[True, False, True, True, False]] * 2 + [[True, True, True, True, True]] * 2)


def _mask(like):
    from tinyhost.tensor import Tensor
    return Tensor(_torch_mask().numpy(), device=like.device)


# *** others ***
case("sequential", lambda x: x.sequential([lambda t: t * 2, lambda t: t.relu(), lambda t: t.sum(1)]), (3, 4),
     ref=lambda x: (x * 2).relu().sum(1))
case("sequential_empty", lambda x: x.sequential([]) * 1, (3,), ref=lambda x: x * 1)
case("dropout_off", lambda x: x.dropout(0.5), (3, 4), ref=lambda x: x * 1, op="dropout", note="outside of training")
case("one_hot_loss", lambda x, i: (i.one_hot(4) * x).sum(-1), (3, 4), ints([3, 0, 1]), op="one_hot",
     note="in a product",
     ref=lambda x, i: (F.one_hot(i.long(), 4) * x).sum(-1))
