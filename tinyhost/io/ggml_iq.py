"""Blocks of the IQ types of GGML, whose codes name points of a grid: raw bytes in, float32 out.

Each function takes blocks, uint8 of shape (blocks, bytes per block), and gives float32 of shape (blocks, 256). A code
names a row of 8 or 4 values; signs lie apart, one bit a value, or are seven bits and their parity. The grids are in
``ggml_grids``. (Layouts: ggml-common.h and the reference dequantisers of ggml-quants.c)
"""
from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from tinyhost.dtype import dtypes
from tinyhost.io.ggml_fields import bits, flat, half, signed, split
from tinyhost.io.ggml_grids import GRIDS
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

__all__ = ["iq1_m", "iq1_s", "iq2_s", "iq2_xs", "iq2_xxs", "iq3_s", "iq3_xxs"]


# tables in use by grid and device: the tensors of a model share one
_tables: WeakValueDictionary[tuple[str, Any], UOp] = WeakValueDictionary()


def _table(name: str, device: Any) -> Tensor:
    """The values of all points of a grid, int8."""
    if (node := _tables.get((name, device))) is None:
        node = _tables[name, device] = Tensor(GRIDS[name].table(), device=device).bitcast(dtypes.int8).uop
    return Tensor(node)


def _points(name: str, code: Tensor) -> Tensor:
    """The points of codes (blocks, n) in the grid ``name``: float32 of (blocks, n, digits)."""
    digits, table = GRIDS[name].digits, _table(name, code.device)
    places = flat(code.cast(dtypes.int32), -1, 1) * digits + Tensor.arange(digits, dtype=dtypes.int32)
    return table[places].cast(dtypes.float32)


def _nibbles(b: Tensor) -> Tensor:
    """The halves of each byte, low ones first, as float32."""
    return signed(split(b, 2, 4) & 15, 0)


def _negated(sign: Tensor) -> Tensor:
    """1 for bits that are 0, -1 for those that are 1, as float32."""
    return 1 - 2 * signed(sign, 0)


def _seven_signs(s: Tensor) -> Tensor:
    """Signs of groups of eight values: seven bits, the eighth makes the number of ones even."""
    parity = s ^ (s >> 4)
    parity = parity ^ (parity >> 2)
    parity = (parity ^ (parity >> 1)) & 1
    return _negated(bits(s | (parity << 7)))


def _signs_and_scale(words: Tensor) -> tuple[Tensor, Tensor]:
    """Of words of 32 bits, eight a block: signs (blocks, 256) of four fields of 7 bits, and scales (blocks, 8)."""
    return _seven_signs((split(words, 4, 7) & 127).cast(dtypes.uint8)), signed(words >> 28, 0)


def _product(scales: Tensor, points: Tensor, signs: Tensor) -> Tensor:
    """Scales (blocks, groups) by points by signs (blocks, 256)."""
    groups = int(scales.shape[1])
    return flat(scales.reshape(-1, groups, 1) * flat(points, groups, -1) * flat(signs, groups, -1))


def iq2_xxs(b: Tensor) -> Tensor:
    """2.06 bits a weight: per 32 values four codes, then signs and a scale in one word."""
    pairs = flat(b[:, 2:66], 8, 8)
    signs, scale = _signs_and_scale(flat(pairs[:, :, 4:8]).bitcast(dtypes.uint32))
    return _product(half(b, 0) * (scale + 0.5) * 0.25, _points("IQ2_XXS", flat(pairs[:, :, 0:4])), signs)


def iq2_xs(b: Tensor) -> Tensor:
    """2.31 bits a weight: per 8 values a code of 9 bits and 7 of signs."""
    code = b[:, 2:66].bitcast(dtypes.uint16)
    scales = half(b, 0) * (_nibbles(b[:, 66:74]) + 0.5) * 0.25
    return _product(scales, _points("IQ2_XS", code & 511), _seven_signs((code >> 9).cast(dtypes.uint8)))


def iq2_s(b: Tensor) -> Tensor:
    """2.56 bits a weight: per 8 values a code of 10 bits and 8 signs."""
    code = b[:, 2:34].cast(dtypes.int32) | ((split(b[:, 66:74], 4, 2) & 3).cast(dtypes.int32) << 8)
    scales = half(b, 0) * (_nibbles(b[:, 74:82]) + 0.5) * 0.25
    return _product(scales, _points("IQ2_S", code), _negated(bits(b[:, 34:66])))


def iq3_xxs(b: Tensor) -> Tensor:
    """3.06 bits a weight: per 4 values a code of 8 bits, per 32 signs and a scale in one word."""
    signs, scale = _signs_and_scale(b[:, 66:98].bitcast(dtypes.uint32))
    return _product(half(b, 0) * (scale + 0.5) * 0.5, _points("IQ3_XXS", b[:, 2:66]), signs)


def iq3_s(b: Tensor) -> Tensor:
    """3.44 bits a weight: per 4 values a code of 9 bits and 4 signs."""
    code = b[:, 2:66].cast(dtypes.int32) | (bits(b[:, 66:74]).cast(dtypes.int32) << 8)
    scales = half(b, 0) * (_nibbles(b[:, 106:110]) * 2 + 1)
    return _product(scales, _points("IQ3_S", code), _negated(bits(b[:, 74:106])))


def _shifted(scales: Tensor, points: Tensor, down: Tensor) -> Tensor:
    """Scales by points that are moved up by an eighth, or down where the bit ``down`` is set; scales and bits are
    (blocks, groups)."""
    groups = int(down.shape[1])
    delta = _negated(down) * 0.125
    return flat(scales.reshape(-1, groups, 1) * (flat(points, groups, -1) + delta.reshape(-1, groups, 1)))


def iq1_s(b: Tensor) -> Tensor:
    """1.56 bits a weight: per 8 values a code of 11 bits, per 32 a scale and a shift."""
    high = b[:, 34:50].bitcast(dtypes.uint16)
    code = b[:, 2:34].cast(dtypes.int32) | ((split(high, 4, 3) & 7).cast(dtypes.int32) << 8)
    scales = half(b, 0) * (signed((high >> 12) & 7, 0) * 2 + 1)
    return _shifted(scales, _points("IQ1", code), high >> 15)


def iq1_m(b: Tensor) -> Tensor:
    """1.75 bits a weight: per 8 values a code of 11 bits and a shift, per 16 a scale; d is spread over the scales."""
    high = split(b[:, 32:48], 2, 4)
    code = b[:, 0:32].cast(dtypes.int32) | ((high & 7).cast(dtypes.int32) << 8)
    packed = b[:, 48:56].bitcast(dtypes.uint16)
    # the highest four bits of each word, the first word's lowest
    top = (packed >> 12) << (Tensor.arange(4, dtype=dtypes.int32) * 4).cast(dtypes.uint16).reshape(1, 4)
    d = (top[:, 0:1] | top[:, 1:2] | top[:, 2:3] | top[:, 3:4]).bitcast(dtypes.float16).cast(dtypes.float32)
    scales = d * (signed(split(packed, 4, 3) & 7, 0) * 2 + 1)
    return _shifted(flat(scales.reshape(-1, 16, 1).expand(-1, 16, 2)), _points("IQ1", code), (high >> 3) & 1)
