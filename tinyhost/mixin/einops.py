"""Einops-style formulas: parse ``"b (h w) c -> b c h w"`` and carry it out as reshape, permute, reshape.

Takes a node with the movement methods; gives a node. The grammar is that of einops: names, one ellipsis, unit axes
(``1`` or ``()``), parentheses around axes that are one axis of the node.
"""
from __future__ import annotations

from typing import Any, TypeVar

from tinyhost.errors import ShapeError
from tinyhost.helpers import prod

T = TypeVar("T", bound=Any)


def _parse(side: str, formula: str, ellipsis_axes: list[str]) -> tuple[list[str], list[list[str]]]:
    """Flat axis names of one side, and the names grouped by the axis of the node they make up."""
    groups: list[list[str]] = []
    depth = 0
    for token in side.replace("(", " ( ").replace(")", " ) ").replace("...", " ... ").split():
        names = ellipsis_axes if token == "..." else [token]
        if token == "(":
            if depth:
                raise ShapeError(f"nested parentheses in rearrange formula {formula!r}: merge the names into one pair")
            depth, groups = 1, groups + [[]]
        elif token == ")":
            if not depth:
                raise ShapeError(f"unmatched parenthesis in rearrange formula {formula!r}")
            depth = 0
        elif token not in ("...", "1") and not token.isidentifier():
            raise ShapeError(f"{token!r} in rearrange formula {formula!r} is no axis: use names, 1, '...' and "
                             "parentheses; give sizes as keywords")
        elif depth:
            groups[-1].extend(names)
        else:
            groups.extend([n] for n in names)
    if depth:
        raise ShapeError(f"unmatched parenthesis in rearrange formula {formula!r}")
    return [n for g in groups for n in g], groups


def _check(left: list[str], right: list[str], sizes: dict[str, Any], formula: str) -> None:
    named = [[n for n in side if n != "1"] for side in (left, right)]
    for side in named:
        if doubled := sorted({n for n in side if side.count(n) > 1}):
            raise ShapeError(f"axis {doubled} stands twice on one side of rearrange formula {formula!r}")
    if set(named[0]) != set(named[1]):
        raise ShapeError(f"both sides of rearrange formula {formula!r} need the same axes: "
                         f"{sorted(set(named[0]) ^ set(named[1]))} stands on one side only")
    if unknown := sorted(set(sizes) - set(named[0])):
        raise ShapeError(f"size given for {unknown}, which rearrange formula {formula!r} does not hold")
    for name, size in sizes.items():
        if not isinstance(size, int) and not hasattr(size, "vmin"):
            raise TypeError(f"size {name}={size!r} for rearrange formula {formula!r} is no int")
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"size {name}={size} for rearrange formula {formula!r} is negative")


def _sides(formula: str) -> tuple[str, str]:
    """What stands before and after the arrow."""
    if not isinstance(formula, str):
        raise TypeError(f"a rearrange formula is text such as 'a b -> b a', got {formula!r}")
    if formula.count("->") != 1:
        raise ShapeError(f"a rearrange formula has one '->', got {formula!r}")
    lhs, rhs = formula.split("->")
    if lhs.count("...") > 1 or rhs.count("...") > 1:
        raise ShapeError(f"at most one ellipsis on each side, got rearrange formula {formula!r}")
    if ("..." in lhs) != ("..." in rhs):
        raise ShapeError(f"rearrange formula {formula!r} has an ellipsis on one side only")
    if "..." in "".join(part.split(")")[0] for part in lhs.split("(")[1:]):
        raise ShapeError(f"the ellipsis of rearrange formula {formula!r} cannot be split: take it out of the "
                         "parentheses")
    return lhs, rhs


def _extents(shape: tuple[Any, ...], groups: list[list[str]], sizes: dict[str, Any], formula: str) -> dict[str, Any]:
    """Extent of each named axis; one unknown axis of a group is what the others leave over."""
    known: dict[str, Any] = {**sizes, "1": 1}
    for extent, group in zip(shape, groups):
        unknown = [n for n in group if n not in known]
        if len(unknown) > 1:
            raise ShapeError(f"cannot infer the sizes of {unknown} in rearrange formula {formula!r}: give all but one")
        rest = prod(known[n] for n in group if n in known)
        if unknown:
            if isinstance(rest, int) and rest == 0:
                raise ShapeError(f"cannot infer the size of {unknown[0]!r} in rearrange formula {formula!r}: the other "
                                 "sizes of its axis multiply to 0")
            known[unknown[0]] = extent // rest
        if prod(known[n] for n in group) != extent and isinstance(extent, int):
            raise ShapeError(f"axes {group} of rearrange formula {formula!r} multiply to "
                             f"{prod(known[n] for n in group)}, but the extent in shape {shape} is {extent}")
    return known


def apply_rearrange(x: T, formula: str, sizes: dict[str, Any]) -> T:
    """``x`` with its axes split, permuted and merged as ``formula`` says.

    Raises:
        ShapeError: the formula is malformed or does not fit the shape.
    """
    lhs, rhs = _sides(formula)
    named = _parse(lhs.replace("...", ""), formula, [])[1]
    hidden = x.ndim - len(named) if "..." in lhs else 0
    ellipsis_axes = [f"...{i}" for i in range(max(0, hidden))]
    left, left_groups = _parse(lhs, formula, ellipsis_axes)
    right, right_groups = _parse(rhs, formula, ellipsis_axes)
    _check(left, right, sizes, formula)
    if len(left_groups) != x.ndim:
        raise ShapeError(f"formula {formula!r} describes {len(left_groups)} axes, shape {x.shape} has {x.ndim}")
    extent = _extents(x.shape, left_groups, sizes, formula)
    kept = [n for n in left if n != "1"]
    y = x.reshape(tuple(extent[n] for n in kept))
    y = y.permute(tuple(kept.index(n) for n in right if n != "1"))
    out: T = y.reshape(tuple(prod(extent[n] for n in g) for g in right_groups))
    return out
