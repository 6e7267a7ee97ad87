"""Convolution with kernels of extent 3 by Winograd's minimal filtering F(4, 3) (Lavin and Gray 2015, section 4).

Takes a padded input and weights; gives the same sums as the direct form from tiles of 6 that yield 4 results an axis,
with 36 products for 16 results instead of 144 in two dimensions. Rounding grows with the transforms: in float32 results
differ from the direct form by some 1e-5 of the largest one.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyhost.helpers import ceildiv, flatten

# interpolation at 0, 1, -1, 2, -2 and infinity
_INPUT = ((4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0),
          (0, 4, 0, -5, 0, 1))
_KERNEL = ((1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6),
           (1 / 24, -1 / 12, 1 / 6), (0, 0, 1))
_OUTPUT = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))


def fits(kernel: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any], is_float: bool) -> bool:
    """Whether the convolution is one that the transforms compute."""
    return is_float and set(kernel) == {3} and set(stride) == {1} == set(dilation)


def winograd(x: Any, weight: Any, groups: int, dtype: Any) -> Any:
    """(batch, channels, *space) with (out, channels / groups, 3, ...) to (batch, out, *space - 2)."""
    n, batch, out, per_group = weight.ndim - 2, x.shape[0], weight.shape[0], weight.shape[1]
    window = tuple(s - 2 for s in x.shape[2:])
    tiles = tuple(ceildiv(s, 4) for s in window)
    pads = flatten((0, 4 * t + 2 - s) for t, s in zip(reversed(tiles), reversed(x.shape[2:])))
    points = (6,) * n
    d = _transformed(x.pad(pads)._pool(points, 4, 1), _INPUT, n).contiguous()
    w = _transformed(weight, _KERNEL, n).contiguous()
    d = d.reshape((*points, batch, groups, 1, per_group, *tiles))
    w = w.reshape((*points, 1, groups, out // groups, per_group, *(1,) * n))
    product = d._product_sum(w, n + 3, dtype)
    product = product.permute((*range(n, product.ndim), *range(n))).contiguous()
    y = _transformed(product, _OUTPUT, n)  # (4, ..., batch, groups, out, *tiles)
    order = (*range(n, n + 3), *flatten((n + 3 + i, i) for i in range(n)))
    y = y.permute(order).reshape((batch, out, *(4 * t for t in tiles)))
    return y.shrink((None, None, *((0, s) for s in window)))


def _transformed(x: Any, matrix: Sequence[Sequence[float]], n: int) -> Any:
    """The matrix applied to each of the last ``n`` axes, which become the leading ones, in order."""
    for _ in range(n):
        size = x.shape[-1]
        column = [x.shrink((*(None,) * (x.ndim - 1), (j, j + 1))).reshape(x.shape[:-1]) for j in range(size)]
        rows = []
        for factors in matrix:
            terms = [c if f == 1 else c * f for c, f in zip(column, factors) if f]
            rows.append(terms[0].usum(*terms[1:]))
        x = x._stack(rows)
    return x
