"""Attention and rotary embeddings.

Heads are an axis of their own, or lie beside each other in the last axis of three; then their number is an attribute.
A row that may attend to nothing gives zeros.
"""
from __future__ import annotations

import math
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import Call
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import element
from tinyhost.tensor import Tensor


def _heads(x: Tensor, count: int | None, what: str) -> Tensor:
    """(batch, heads, length, size) of either layout.

    Raises:
        ValueError: three axes, and no number of heads that divides the last.
    """
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not count or x.shape[2] % count:
        raise ValueError(f"{what} of shape {x.shape} needs four axes, or three and a number of heads, got {count}")
    return x.reshape((*x.shape[:2], count, x.shape[2] // count)).transpose(1, 2)


def _allowed(queries: int, keys: int, offset: Any, causal: bool, left: int, right: int) -> Tensor | None:
    """Where a query may look, by its place: at most at itself, and within a window; None is everywhere.

    ``offset`` is the place of the first query, a number or a Tensor (batch, 1, 1, 1).
    """
    place = Tensor.arange(queries).reshape((queries, 1)) + offset
    key = Tensor.arange(keys)
    tests = [key <= place] if causal else []
    tests += [key >= place - left] if left >= 0 else []
    tests += [key <= place + right] if right >= 0 else []
    out = None
    for t in tests:
        out = t if out is None else out & t
    return out


def _masked(scores: Tensor, mask: Tensor | None, allowed: list[Tensor | None]) -> Tensor:
    """Scores with the mask added, or -inf where it is False; a mask for fewer keys hides the rest."""
    if mask is not None:
        missing = scores.shape[-1] - mask.shape[-1]
        is_bool = mask.dtype is dtypes.bool
        if missing > 0 and mask.shape[-1] > 1:
            mask = mask.pad((*((0, 0),) * (mask.ndim - 1), (0, missing)), value=False if is_bool else -math.inf)
        scores = mask.where(scores, -math.inf) if is_bool else scores + mask
    for a in allowed:
        scores = scores if a is None else a.where(scores, -math.inf)
    return scores


def _weights(scores: Tensor) -> Tensor:
    """Softmax over the last axis; a row of -inf gives zeros."""
    top = scores.max(-1, keepdim=True)
    e = (scores - top.eq(-math.inf).where(0, top)).exp()
    total = e.sum(-1, keepdim=True)
    return e / total.eq(0).where(1, total)


@op("Attention", since=23)
def attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None,
              past_value: Tensor | None = None, nonpad_kv_seqlen: Tensor | None = None, *, is_causal: int = 0,
              kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
              qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None,
              softcap: float = 0.0, softmax_precision: int | None = None, ctx: Call) -> list[Any]:
    """Scaled dot product attention; also gives the keys and values with the past ones, and the scores."""
    flat = q.ndim == 3
    q, k, v = (_heads(q, q_num_heads, "Q"), _heads(k, kv_num_heads, "K"), _heads(v, kv_num_heads, "V"))
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    present = [k, v]
    repeats = q.shape[1] // k.shape[1]
    k, v = (k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)) if repeats > 1 else (k, v)
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if not scale else scale)
    stages = [(q * root) @ (k * root).transpose(-2, -1)]
    stages.append((stages[0] / softcap).tanh() * softcap if softcap else stages[0])
    offset, padding = _places(nonpad_kv_seqlen, past, q.shape[2], k.shape[2])
    allowed = _allowed(q.shape[2], k.shape[2], offset, bool(is_causal), left_window_size, right_window_size)
    stages.append(_masked(stages[1], attn_mask, [allowed, padding]))
    precision = element(softmax_precision).dtype if softmax_precision else None
    stages.append(_weights(stages[2].cast(precision or q.dtype)).cast(q.dtype))
    y = stages[3].cast(v.dtype) @ v
    if flat:
        y = y.transpose(1, 2).reshape((y.shape[0], y.shape[2], y.shape[1] * y.shape[3]))
    return [y, *present, stages[qk_matmul_output_mode]][:max(1, ctx.outputs)]


def _places(lengths: Tensor | None, past: int, queries: int, keys: int) -> tuple[Any, Tensor | None]:
    """(place of the first query, which keys are no padding)."""
    if lengths is None:
        return past, None
    n = lengths.reshape((-1, 1, 1, 1)).cast(dtypes.int32)
    return n - queries if not past else past, Tensor.arange(keys) < n


@op("RotaryEmbedding", since=23)
def rotary_embedding(x: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *,
                     interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0) -> Tensor:
    """Pairs of elements turned by angles that depend on the position."""
    y = _heads(x, num_heads, "X").transpose(1, 2)  # (batch, length, heads, size)
    size = rotary_embedding_dim or y.shape[-1]
    turned, rest = y[..., :size], y[..., size:]
    cos, sin = (c if position_ids is None else c[position_ids.cast(dtypes.int32)] for c in (cos_cache, sin_cache))
    cos, sin = cos[..., :size // 2].unsqueeze(2), sin[..., :size // 2].unsqueeze(2)
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :size // 2], turned[..., size // 2:])
    real, imag = cos * a - sin * b, sin * a + cos * b
    out = real.stack(imag, dim=-1).flatten(-2) if interleaved else real.cat(imag, dim=-1)
    out = out.cat(rest, dim=-1) if rest.shape[-1] else out
    return out.reshape(x.shape) if x.ndim == 3 else out.transpose(1, 2)
