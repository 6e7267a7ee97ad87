"""Symbolic integers in shapes: an extent is an ``int`` or a node with ``vmin``, ``vmax`` and ``simplify``.

Takes extents and shapes, gives extents, shapes and decisions. A comparison that the bounds do not decide has no
answer here: the caller names the default. Imports no node class.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

# An extent. Nodes cannot be named on this floor, so the symbolic half is the protocol in the docstring.
sint: TypeAlias = Any
Shape: TypeAlias = tuple[Any, ...]


def ssimplify(x: sint) -> sint:
    """``x`` simplified, as a Python int when its value is known."""
    if isinstance(x, int):
        return x
    x = x.simplify()
    return x.vmin if x.vmin == x.vmax else x


def resolve(x: Any, default: bool = True) -> bool:
    """Truth of a condition on symbolic integers; ``default`` where the bounds do not decide it."""
    if isinstance(x, bool):
        return x
    if x.vmin == x.vmax:
        return bool(x.vmin)
    x = x.simplify()
    return bool(x.vmin) if x.vmin == x.vmax else default


def same(a: sint, b: sint) -> bool:
    """Whether two extents are known to be equal."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a is b:
        return True
    return bool(ssimplify(b - a if isinstance(a, int) else a - b) == 0)


def same_shape(a: Sequence[sint], b: Sequence[sint]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))


def is_one(x: sint) -> bool:
    """Whether an extent is known to be 1."""
    return x == 1 if isinstance(x, int) else x.vmin == x.vmax == 1


def smax(*xs: sint) -> sint:
    """Largest of several extents."""
    out = xs[0]
    for x in xs[1:]:
        if isinstance(out, int) and isinstance(x, int):
            out = max(out, x)
        else:
            out = ssimplify(out.maximum(x) if not isinstance(out, int) else x.maximum(out))
    return out


def smin(*xs: sint) -> sint:
    """Smallest of several extents."""
    out = xs[0]
    for x in xs[1:]:
        if isinstance(out, int) and isinstance(x, int):
            out = min(out, x)
        else:
            out = ssimplify(out.minimum(x) if not isinstance(out, int) else x.minimum(out))
    return out


def sprod(xs: Iterable[sint]) -> sint:
    """Product of extents, simplified."""
    out: sint = 1
    for x in xs:
        out = x if isinstance(out, int) and out == 1 else out * x
    return ssimplify(out)


def max_extent(x: sint) -> int:
    """Largest value an extent can take."""
    return x if isinstance(x, int) else int(x.vmax)


def broadcast_shape(*shapes: Sequence[sint]) -> Shape:
    """Right-aligned broadcast of shapes, where an extent of 1 stretches.

    Raises:
        IndexError: two extents differ and neither is 1.
    """
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    out = []
    for axis, column in enumerate(zip(*padded)):
        extent: sint = 1
        for x in column:
            if is_one(x) or x is extent:
                continue
            if is_one(extent):
                extent = x
            elif not same(extent, x):
                raise IndexError(f"cannot broadcast {', '.join(str(tuple(s)) for s in shapes)}: extents {extent} and "
                                 f"{x} of axis {axis - rank} differ and neither is 1")
        out.append(extent)
    return tuple(out)
