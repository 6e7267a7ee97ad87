"""Layers and losses."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor

from .case import Input, case, ints

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
