"""Parts of quantised blocks of GGML, as tensor expressions.

Blocks are uint8 of (blocks, bytes per block), their parts (blocks, n). Nothing here is computed before it is realized,
and nothing knows a type of block: those stand in ``ggml`` and ``ggml_iq``.
"""
from __future__ import annotations

from tinyhost.dtype import dtypes
from tinyhost.tensor import Tensor

__all__ = ["bits", "fields", "flat", "half", "looked_up", "scaled", "signed", "split"]


def half(b: Tensor, at: int) -> Tensor:
    """The float16 at byte ``at`` of each block, as (blocks, 1)."""
    return b[:, at:at + 2].bitcast(dtypes.float16).cast(dtypes.float32)


def flat(x: Tensor, *shape: int) -> Tensor:
    """``x`` with the axes behind the first one joined, or as ``shape``."""
    return x.reshape(x.shape[0], *(shape or (-1,)))


def fields(q: Tensor, groups: int, width: int) -> Tensor:
    """Fields of ``width`` bits of bytes (blocks, groups * n): (blocks, groups, 8 // width, n), the low bits of all
    first."""
    count = 8 // width
    shifts = (Tensor.arange(count, dtype=dtypes.uint8) * width).reshape(1, 1, count, 1)
    return (q.reshape(q.shape[0], groups, 1, -1) >> shifts) & ((1 << width) - 1)


def split(words: Tensor, count: int, width: int) -> Tensor:
    """The lowest ``count`` fields of ``width`` bits of each word, word by word: (blocks, words * count), not masked."""
    shifts = (Tensor.arange(count, dtype=dtypes.int32) * width).cast(words.dtype).reshape(1, 1, count)
    return flat(flat(words, -1, 1) >> shifts)


def bits(h: Tensor) -> Tensor:
    """The bits of bytes (blocks, n) in order: (blocks, 8 * n)."""
    return split(h, 8, 1) & 1


def signed(q: Tensor, zero: int) -> Tensor:
    """Small unsigned integers less their zero point, as float32."""
    return (q.cast(dtypes.int32) - zero).cast(dtypes.float32)


def scaled(x: Tensor, scales: Tensor) -> Tensor:
    """(blocks, elements) times (blocks, groups), each scale over its share of the elements."""
    groups = int(scales.shape[1])
    return flat(flat(x, groups, -1) * scales.reshape(scales.shape[0], groups, 1))


def looked_up(values: tuple[int, ...], q: Tensor) -> Tensor:
    """The values at the places ``q``, as float32."""
    return Tensor(values, dtype=dtypes.float32, device=q.device)[q.cast(dtypes.int32)]
