"""Quantised blocks of GGML as tensor expressions: raw bytes on a device in, float32 out.

Each function takes blocks, uint8 of shape (blocks, bytes per block), and gives their elements, float32 of shape
(blocks, elements per block). Nothing is read or computed before the result is realized; a cast or product behind it
joins its kernel. ``d`` and ``m`` are scale and minimum of a block, ``q`` its small integers. (Layouts: ggml-common.h
and the reference dequantisers of ggml-quants.c; MXFP4: OCP Microscaling Formats 1.0, section 5. Types whose codes name
points of a grid are in ``ggml_iq``.)
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyhost.dtype import DType, dtypes
from tinyhost.io import ggml_iq
from tinyhost.io.ggml_fields import bits, fields, flat, half, looked_up, scaled, signed, split
from tinyhost.tensor import Tensor

__all__ = ["GGML_TYPES", "GgmlType", "dequantize"]

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)  # doubled E2M1


# *** blocks of 32 ***
def _q4_0(b: Tensor) -> Tensor:
    return half(b, 0) * signed(flat(fields(b[:, 2:18], 1, 4)), 8)


def _q4_1(b: Tensor) -> Tensor:
    return half(b, 0) * signed(flat(fields(b[:, 4:20], 1, 4)), 0) + half(b, 2)


def _q5_0(b: Tensor) -> Tensor:
    q = flat(fields(b[:, 6:22], 1, 4)) | (bits(b[:, 2:6]) << 4)
    return half(b, 0) * signed(q, 16)


def _q5_1(b: Tensor) -> Tensor:
    q = flat(fields(b[:, 8:24], 1, 4)) | (bits(b[:, 4:8]) << 4)
    return half(b, 0) * signed(q, 0) + half(b, 2)


def _q8_0(b: Tensor) -> Tensor:
    return half(b, 0) * b[:, 2:34].bitcast(dtypes.int8).cast(dtypes.float32)


def _iq4_nl(b: Tensor) -> Tensor:
    return half(b, 0) * looked_up(IQ4_VALUES, flat(fields(b[:, 2:18], 1, 4)))


def _mxfp4(b: Tensor) -> Tensor:
    e = b[:, 0:1].cast(dtypes.uint32)
    # half of 2**(e - 127), since the values are doubled: a subnormal for e < 2
    scale: Tensor = (e < 2).where((e & 1) * 0x200000 + 0x200000, (e - 1) << 23).bitcast(dtypes.float32)
    return scale * looked_up(FP4_VALUES, flat(fields(b[:, 1:17], 1, 4)))


def _q1_0(b: Tensor) -> Tensor:
    # d where a bit is set, -d where not
    return half(b, 0) * (signed(bits(b[:, 2:18]), 0) * 2 - 1)


def _nvfp4(b: Tensor) -> Tensor:
    # four scales without a sign, E4M3 halved since the values are doubled; all ones stand for 0
    code = b[:, 0:4]
    exponent, fraction = ((code >> 3) & 15).cast(dtypes.uint32), signed(code & 7, 0)
    normal = (fraction + 8) * ((exponent + 116) << 23).bitcast(dtypes.float32)  # 2**(exponent - 11)
    scales = (code == 0x7F).where(0.0, (exponent == 0).where(fraction * 2.0**-10, normal))
    return scaled(looked_up(FP4_VALUES, flat(fields(b[:, 4:36], 4, 4))), scales)


# *** blocks of 256 ***
def _q8_k(b: Tensor) -> Tensor:
    # sums of the elements follow, which products use
    return b[:, 0:4].bitcast(dtypes.float32) * b[:, 4:260].bitcast(dtypes.int8).cast(dtypes.float32)


def _q2_k(b: Tensor) -> Tensor:
    scales = b[:, 0:16]
    q = signed(flat(fields(b[:, 16:80], 2, 2)), 0)
    minimum = signed(scales >> 4, 0) * half(b, 82)
    return flat(flat(scaled(q, signed(scales & 15, 0) * half(b, 80)), 16, 16) - minimum.reshape(-1, 16, 1))


def _q3_k(b: Tensor) -> Tensor:
    # hmask holds the third bit of all eight rows of 32
    q = flat(fields(b[:, 32:96], 2, 2)) | (flat(fields(b[:, 0:32], 1, 1)) << 2)
    scales = flat(fields(b[:, 96:104], 1, 4)) | (flat(fields(b[:, 104:108], 1, 2)) << 4)
    return scaled(signed(q, 4), signed(scales, 32) * half(b, 108))


def _scales_and_minima(s: Tensor) -> tuple[Tensor, Tensor]:
    """Eight scales and eight minima of 6 bits in 12 bytes: four of each in the low bits, the others in what is left."""
    d, m, rest = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    return ((d & 63).cat((rest & 15) | ((d >> 6) << 4), dim=1), (m & 63).cat((rest >> 4) | ((m >> 6) << 4), dim=1))


def _k_block(b: Tensor, q: Tensor) -> Tensor:
    """d * scale * q - dmin * minimum, by rows of 32."""
    scales, minima = _scales_and_minima(b[:, 4:16])
    x = scaled(signed(q, 0), signed(scales, 0) * half(b, 0))
    return flat(flat(x, 8, 32) - (signed(minima, 0) * half(b, 2)).reshape(-1, 8, 1))


def _q4_k(b: Tensor) -> Tensor:
    return _k_block(b, flat(fields(b[:, 16:144], 4, 4)))


def _q5_k(b: Tensor) -> Tensor:
    return _k_block(b, flat(fields(b[:, 48:176], 4, 4)) | (flat(fields(b[:, 16:48], 1, 1)) << 4))


def _q6_k(b: Tensor) -> Tensor:
    q = flat(fields(b[:, 0:128], 2, 4)) | (flat(fields(b[:, 128:192], 2, 2)) << 4)
    return scaled(signed(q, 32), b[:, 192:208].bitcast(dtypes.int8).cast(dtypes.float32) * half(b, 208))


def _iq4_xs(b: Tensor) -> Tensor:
    low, high = split(b[:, 4:8], 2, 4) & 15, split(b[:, 2:4], 4, 2) & 3
    scales = signed(low | (high << 4), 32) * half(b, 0)
    return scaled(looked_up(IQ4_VALUES, flat(fields(b[:, 8:136], 8, 4))), scales)


def _tq2_0(b: Tensor) -> Tensor:
    return half(b, 64) * signed(flat(fields(b[:, 0:64], 2, 2)), 1)


def _ternary(q: Tensor, digits: int) -> Tensor:
    """The first digits, base 3, of bytes (blocks, n) that hold fractions of 256: (blocks, digits * n)."""
    rows = q.reshape(q.shape[0], 1, -1).cast(dtypes.int32)
    powers = Tensor([3**i for i in range(digits)], dtype=dtypes.int32, device=q.device).reshape(1, digits, 1)
    return flat((((rows * powers) & 255) * 3) >> 8)


def _tq1_0(b: Tensor) -> Tensor:
    q = _ternary(b[:, 0:32], 5).cat(_ternary(b[:, 32:48], 5), _ternary(b[:, 48:52], 4), dim=1)
    return half(b, 52) * signed(q, 1)


# *** table ***
@dataclass(frozen=True)
class GgmlType:
    """A type of GGML: elements and bytes of a block, and either a dtype or how a block is read; neither: known but not
    read."""

    name: str
    elements: int = 1
    bytes: int = 0
    dtype: DType | None = None
    read: Callable[[Tensor], Tensor] | None = None


def _plain(name: str, dtype: DType) -> GgmlType:
    return GgmlType(name, 1, dtype.itemsize, dtype)


# by their number in the file (enum ggml_type of ggml.h)
GGML_TYPES: dict[int, GgmlType] = {
    0: _plain("F32", dtypes.float32), 1: _plain("F16", dtypes.float16), 30: _plain("BF16", dtypes.bfloat16),
    28: _plain("F64", dtypes.float64), 24: _plain("I8", dtypes.int8), 25: _plain("I16", dtypes.int16),
    26: _plain("I32", dtypes.int32), 27: _plain("I64", dtypes.int64),
    2: GgmlType("Q4_0", 32, 18, read=_q4_0), 3: GgmlType("Q4_1", 32, 20, read=_q4_1),
    6: GgmlType("Q5_0", 32, 22, read=_q5_0), 7: GgmlType("Q5_1", 32, 24, read=_q5_1),
    8: GgmlType("Q8_0", 32, 34, read=_q8_0), 20: GgmlType("IQ4_NL", 32, 18, read=_iq4_nl),
    39: GgmlType("MXFP4", 32, 17, read=_mxfp4), 40: GgmlType("NVFP4", 64, 36, read=_nvfp4),
    41: GgmlType("Q1_0", 128, 18, read=_q1_0),
    10: GgmlType("Q2_K", 256, 84, read=_q2_k), 11: GgmlType("Q3_K", 256, 110, read=_q3_k),
    12: GgmlType("Q4_K", 256, 144, read=_q4_k), 13: GgmlType("Q5_K", 256, 176, read=_q5_k),
    14: GgmlType("Q6_K", 256, 210, read=_q6_k), 15: GgmlType("Q8_K", 256, 292, read=_q8_k),
    23: GgmlType("IQ4_XS", 256, 136, read=_iq4_xs), 16: GgmlType("IQ2_XXS", 256, 66, read=ggml_iq.iq2_xxs),
    17: GgmlType("IQ2_XS", 256, 74, read=ggml_iq.iq2_xs), 22: GgmlType("IQ2_S", 256, 82, read=ggml_iq.iq2_s),
    18: GgmlType("IQ3_XXS", 256, 98, read=ggml_iq.iq3_xxs), 21: GgmlType("IQ3_S", 256, 110, read=ggml_iq.iq3_s),
    19: GgmlType("IQ1_S", 256, 50, read=ggml_iq.iq1_s), 29: GgmlType("IQ1_M", 256, 56, read=ggml_iq.iq1_m),
    34: GgmlType("TQ1_0", 256, 54, read=_tq1_0), 35: GgmlType("TQ2_0", 256, 66, read=_tq2_0),
    9: GgmlType("Q8_1")}  # of products in flight; it was laid out in two ways


def dequantize(raw: Tensor, kind: GgmlType, shape: tuple[int, ...]) -> Tensor:
    """The elements of quantised ``raw`` bytes, float32 of ``shape``, on the device of ``raw``.

    Raises:
        ValueError: the bytes are no whole number of blocks, or blocks of this type are not read.
    """
    if kind.read is None or int(raw.nbytes()) % kind.bytes:
        raise ValueError(f"{raw.nbytes()} bytes are not read as blocks of {kind.name}")
    return kind.read(raw.reshape(-1, kind.bytes)).reshape(shape)
