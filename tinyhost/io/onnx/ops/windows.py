"""Geometry of windows: paddings as ONNX writes them, automatic paddings, windows as axes.

Takes attributes and extents; gives one (before, after) for each spatial axis.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhost.tensor import Tensor

Pairs = list[tuple[int, int]]


def spatial(values: Sequence[int] | None, n: int, default: int = 1) -> list[int]:
    """One number for each of ``n`` spatial axes.

    Raises:
        ValueError: there are more or fewer, or one is below 1.
    """
    out = [default] * n if not values else list(values)
    if len(out) != n or any(v < 1 for v in out):
        raise ValueError(f"{n} spatial axes need {n} positive numbers, got {out}")
    return out


def explicit_pads(pads: Sequence[int] | None, n: int) -> Pairs:
    """All befores, then all afters, as pairs.

    Raises:
        ValueError: there are not two for each axis.
    """
    if not pads:
        return [(0, 0)] * n
    if len(pads) != 2 * n:
        raise ValueError(f"{n} spatial axes need {2 * n} pads, got {list(pads)}")
    return list(zip(pads[:n], pads[n:]))


def window_pads(auto_pad: str, pads: Sequence[int] | None, extents: Sequence[int], kernel: Sequence[int],
                strides: Sequence[int], dilations: Sequence[int]) -> Pairs:
    """Padding of a convolution or pooling.

    Raises:
        ValueError: unknown ``auto_pad``.
    """
    if auto_pad in ("NOTSET", ""):
        return explicit_pads(pads, len(extents))
    if auto_pad == "VALID":
        return [(0, 0)] * len(extents)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto_pad!r}")
    out = []
    for size, k, s, d in zip(extents, kernel, strides, dilations):
        total = max(0, ((size + s - 1) // s - 1) * s + (k - 1) * d + 1 - size)
        small, large = total // 2, total - total // 2
        out.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return out


def flat_pads(pairs: Pairs) -> list[int]:
    """Pairs as Tensor methods take them: last axis first."""
    return [p for pair in reversed(pairs) for p in pair]


def ceil_pairs(extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
               pairs: Pairs) -> Pairs:
    """Pairs with what the last partial window needs behind; a window never starts behind the padded input."""
    out = []
    for size, k, s, d, (low, high) in zip(extents, kernel, strides, dilations, pairs):
        span = d * (k - 1) + 1
        count = -(-(size + low + high - span) // s) + 1
        if (count - 1) * s >= size + low:
            count -= 1
        out.append((low, high + max(0, (count - 1) * s + span - (size + low + high))))
    return out


def windows(x: Tensor, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pairs: Pairs,
            value: Any = 0) -> Tensor:
    """(N, C, *space) as (N, C, *windows, *kernel)."""
    return x.pad(flat_pads(pairs), value=value)._pool(tuple(kernel), tuple(strides), tuple(dilations))
