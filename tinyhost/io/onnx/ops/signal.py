"""Fourier transforms and filters. Complex numbers are a last axis of two: real and imaginary part."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyhost.io.onnx.call import check_host_size
from tinyhost.io.onnx.ops.shape import positive_axes
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, array_element, element
from tinyhost.tensor import Tensor


def _waves(rows: int, columns: int, inverse: bool, like: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of a transform of length n, (rows, columns)."""
    check_host_size(rows * columns, f"a transform of length {n}")
    turns = (np.outer(np.arange(rows), np.arange(columns)) % n) * (2 * math.pi / n)
    kind = np.float64 if like.dtype.itemsize == 8 else np.float32
    sign = 1.0 if inverse else -1.0
    return (Tensor(np.cos(turns).astype(kind), device=like.device),
            Tensor((sign * np.sin(turns)).astype(kind), device=like.device))


def transformed(x: Tensor, axis: int, length: int | None, inverse: bool, onesided: bool) -> Tensor:
    """DFT along ``axis`` of a signal whose last axis is (real) or (real, imaginary)."""
    if inverse and onesided:
        return _real_inverse(x.transpose(axis, -2), length).transpose(axis, -2)
    n = x.shape[axis] if length is None else length
    keep = min(n, x.shape[axis])
    x = x.shrink(tuple((0, keep) if i == axis else None for i in range(x.ndim)))
    x = x.pad(tuple((0, n - keep) if i == axis else (0, 0) for i in range(x.ndim)))
    out = n // 2 + 1 if onesided and not inverse else n
    moved = x.transpose(axis, -2)
    re = moved[..., 0]
    cos, sin = _waves(n, out, inverse, x, n)
    real, imag = re.matmul(cos), re.matmul(sin)
    if x.shape[-1] == 2:
        im = moved[..., 1]
        real, imag = real - im.matmul(sin), imag + im.matmul(cos)
    y = real.stack(imag, dim=-1)
    y = y / n if inverse else y
    return y.transpose(axis, -2)


def _real_inverse(half: Tensor, length: int | None) -> Tensor:
    """The real signal (..., length, 1) of half a spectrum (..., bins, 2), whose other half is the mirror."""
    if half.shape[-1] != 2:
        raise ValueError(f"an inverse transform of half a spectrum takes complex numbers, got shape {half.shape}")
    n = 2 * (half.shape[-2] - 1) if length is None else length
    bins = n // 2 + 1
    keep = tuple(None for _ in half.shape[:-2])
    half = half.shrink((*keep, (0, min(bins, half.shape[-2])), None))
    half = half.pad((*keep, (0, bins - half.shape[-2]), (0, 0)))
    cos, sin = _waves(bins, n, True, half, n)
    twice = np.array([1.0 if k == 0 or 2 * k == n else 2.0 for k in range(bins)])
    weight = Tensor(twice.astype(np.float64 if half.dtype.itemsize == 8 else np.float32), device=half.device)
    real, imag = half[..., 0] * weight, half[..., 1] * weight
    return ((real.matmul(cos) - imag.matmul(sin)) / n).unsqueeze(-1)


@op("DFT", since=17, host="dft_length")
def dft_17(x: Tensor, dft_length: Array | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    """Discrete Fourier transform along an attribute's axis (before opset 20)."""
    (axis,) = positive_axes([axis], x.ndim)
    length = None if dft_length is None else int(dft_length.reshape(()))
    return transformed(x, axis, length, bool(inverse), bool(onesided))


@op("DFT", since=20, host="dft_length axis")
def dft(x: Tensor, dft_length: Array | None = None, axis: Array | None = None, *, inverse: int = 0,
        onesided: int = 0) -> Tensor:
    """Discrete Fourier transform."""
    (at,) = positive_axes([-2 if axis is None else int(axis.reshape(()))], x.ndim)
    length = None if dft_length is None else int(dft_length.reshape(()))
    return transformed(x, at, length, bool(inverse), bool(onesided))


@op("STFT", host="frame_step frame_length")
def stft(signal: Tensor, frame_step: Array, window: Tensor | None = None, frame_length: Array | None = None, *,
         onesided: int = 1) -> Tensor:
    """Transforms of windows that start every ``frame_step`` samples: (batch, frames, bins, 2)."""
    step = int(frame_step.reshape(()))
    size = int(frame_length.reshape(())) if frame_length is not None else \
        window.shape[0] if window is not None else signal.shape[1]
    frames = signal.unfold(1, size, step)  # (batch, frames, 1 or 2, size)
    frames = frames.transpose(2, 3)
    if window is not None:
        frames = frames * window.reshape((1, 1, size, 1))
    return transformed(frames, 2, size, False, bool(onesided))


@op("MelWeightMatrix", raw=True, host="num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz")
def mel_weight_matrix(num_mel_bins: Array, dft_length: Array, sample_rate: Array, lower_edge_hertz: Array,
                      upper_edge_hertz: Array, *, output_datatype: int = 1) -> Any:
    """Triangles that turn spectrum bins into mel bins, (dft_length / 2 + 1, num_mel_bins)."""
    bins, length, rate = (int(v.reshape(())) for v in (num_mel_bins, dft_length, sample_rate))
    low, high = (2595 * math.log10(1 + float(v.reshape(())) / 700) for v in (lower_edge_hertz, upper_edge_hertz))
    check_host_size(bins, "MelWeightMatrix")
    mels = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate).astype(np.int64)
    check_host_size((length // 2 + 1) * bins, "MelWeightMatrix")
    out = np.zeros((length // 2 + 1, bins), np.float64)
    for i in range(bins):
        a, b, c = edges[i], edges[i + 1], edges[i + 2]
        if b == a:
            out[b, i] = 1
        else:
            out[a:b + 1, i] = (np.arange(a, b + 1) - a) / (b - a)
        if c > b:
            out[b:c, i] = (c - np.arange(b, c)) / (c - b)
    assert array_element(out)
    return out.astype(element(output_datatype).array)
