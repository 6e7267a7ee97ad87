"""Which elements of a gradient belong to a branch that was taken.

Below a WHERE, a MAX or a slice the gradient is exactly 0 wherever the other branch was taken, and a pole of the branch
that was not taken (``log`` of 0, ``x / 0``, ``sqrt`` of 0) would turn that 0 into NaN. So a bool mask travels with the
gradient, through element-wise ops and movement, and the rule of an op with a pole counts only inside of it.
A mask that would have to be reduced is dropped, unless it does not vary along the reduced axes: inside contractions,
gathers and calls nothing is hidden. No mask is made where no pole lies below, and none hides a pole that was reached.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.node import UOp

Rule = Callable[[UOp, UOp], "tuple[UOp | None, ...]"]

_POLES = frozenset({Ops.RECIPROCAL, Ops.LOG2, Ops.SQRT, Ops.POW, Ops.FDIV, Ops.EXP2, Ops.SIN})
_BRANCHES = frozenset({Ops.WHERE, Ops.MAX, Ops.SHRINK})
_BY_RULE = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.PAD, Ops.FLIP, Ops.STACK})  # the mask moves as the gradient does
_ALONG = GroupOp.Elementwise | {Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD}
_FACTORS = (GroupOp.Elementwise - {Ops.WHERE, Ops.MAX}) | {Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP}
_LIMIT = 256  # nodes looked at to learn something about a mask or a factor


def _may_be_infinite(factor: UOp) -> bool:
    """Whether a factor is computed, element by element and without broadcasting, by an op with a pole."""
    stack, seen = [factor], 0
    while stack and seen < 16:
        u = stack.pop()
        seen += 1
        if u.op in _POLES and u.op is not Ops.SIN:
            return True
        if u.op in _FACTORS:
            stack.extend(s for s in u.src if s.shape == u.shape)
    return False


def has_pole(u: UOp) -> bool:
    """Whether the derivative of ``u`` can be infinite or NaN at finite or infinite operands."""
    return u.op in _POLES or (u.op is Ops.MUL and any(_may_be_infinite(s) for s in u.src))


def _is_worth_it(u: UOp, mask: UOp) -> bool:
    """Whether the mask guards ``u``: not a product with one number a row or column, such as normalisation makes, unless
    the mask is one a row or column too, because it would be computed again in each such kernel."""
    if u.op is not Ops.MUL:
        return True
    return any(s.shape == u.shape or _summed(mask, u.shape, s.shape) is not None
               for s in u.src if _may_be_infinite(s))


class Branches:
    """Masks for the nodes of one walk, filled from the root down.

    Args:
        topo: the nodes below the root, sources first.
        on_path: those that lead to a target.
        rules: the gradient rules, which also move masks.
    """

    def __init__(self, topo: Sequence[UOp], on_path: Collection[UOp], rules: dict[Ops, Rule]) -> None:
        self._rules = rules
        self._masks: dict[UOp, UOp | None] = {}  # None: the gradient counts everywhere
        self._poles: set[UOp] = set()
        self._above: set[UOp] = set()  # poles and what has one below
        ops = {u.op for u in topo}
        if ops.isdisjoint(_POLES) or ops.isdisjoint(_BRANCHES | {Ops.REDUCE}):
            return
        for u in topo:
            if u in on_path:
                if has_pole(u):
                    self._poles.add(u)
                    self._above.add(u)
                elif any(s in self._above for s in u.src):
                    self._above.add(u)

    def guarded(self, u: UOp, grads: tuple[UOp | None, ...]) -> tuple[UOp | None, ...]:
        """The gradients that the rule of ``u`` gave, 0 where ``u`` was not taken; their masks are noted."""
        mask = self._masks.get(u)
        if mask is not None and u in self._poles and _is_worth_it(u, mask):
            grads = tuple(None if g is None else mask.where(g, 0) for g in grads)
        if u in self._above:
            for i, (s, g) in enumerate(zip(u.src, grads)):
                if g is not None:
                    self._note(s, self._below(u, i, g, mask))
        return grads

    def _note(self, s: UOp, mask: UOp | None) -> None:
        if s not in self._above:
            return
        if s in self._masks and mask is not None:
            old = self._masks[s]
            mask = None if old is None else old if old is mask else old | mask
        self._masks[s] = mask

    def _below(self, u: UOp, i: int, g: UOp, mask: UOp | None) -> UOp | None:
        """The mask of source ``i`` of ``u``, whose gradient is ``g``."""
        moved = None if mask is None else self._moved(u, i, mask)
        if not (u.op in _BRANCHES or (u.op is Ops.REDUCE and u.arg[0] is Ops.MAX)):
            return moved
        own = _nonzero(g)
        if own is not None and u.op in _ALONG:
            own = _summed(own, u.shape, u.src[i].shape)
        return moved if own is None else own if moved is None else own & moved

    def _moved(self, u: UOp, i: int, mask: UOp) -> UOp | None:
        """The mask of ``u`` at its source ``i``; None where it would have to be reduced."""
        if u.op in _ALONG:
            return _summed(mask, u.shape, u.src[i].shape)
        if u.op in _BY_RULE:
            return self._rules[u.op](u, mask._broadcast_to(u.shape))[i]
        if u.op is Ops.REDUCE:
            return mask._broadcast_to(u.shape)._mop(Ops.EXPAND, u.src[0].shape[:u.arg[1]])
        if u.op is Ops.SHRINK:
            box = tuple((o, s) for (o, _), s in zip(u.marg, u.src[0].shape))
            return mask._broadcast_to(u.shape)._mop(Ops.PAD, box)  # the slice's own mask covers what is around
        if u.op is Ops.EXPAND:
            return _summed(mask, u.shape, u.src[0].shape)
        return None


def _nonzero(g: UOp) -> UOp | None:
    """Where a gradient can differ from 0, by its outermost WHERE."""
    if g.op is not Ops.WHERE:
        return None
    cond, yes, no = g.src
    if no.base.is_const and no.base.const_value == 0:
        return cond
    return cond.logical_not() if yes.base.is_const and yes.base.const_value == 0 else None


def _summed(mask: UOp, shape: tuple[Any, ...], to: tuple[Any, ...]) -> UOp | None:
    """A mask of ``shape`` for the operand of shape ``to`` that was broadcast to it; None if it varies along that."""
    if shape == to:
        return mask
    lead = len(shape) - len(to)
    axes = {i for i, s in enumerate(shape) if i < lead or (to[i - lead] == 1 and s != 1)}
    if not axes:
        return mask
    offset = len(shape) - len(mask.shape)
    if not _is_constant_over(mask, frozenset(a - offset for a in axes if a >= offset)):
        return None
    full = mask._broadcast_to(shape)
    return full._mop(Ops.SHRINK, tuple((0, 1 if i in axes else s) for i, s in enumerate(shape))).reshape(to)


def _is_constant_over(mask: UOp, axes: frozenset[int]) -> bool:
    """Whether the mask is seen to be the same along ``axes``: because it was broadcast there."""
    stack, seen = [(mask, axes)], 0
    while stack:
        u, along = stack.pop()
        along = frozenset(a for a in along if u.shape[a] != 1)
        seen += 1
        if not along:
            continue
        below = _axes_below(u, along)
        if below is None or seen > _LIMIT:
            return False
        stack.extend(below)
    return True


def _axes_below(u: UOp, axes: frozenset[int]) -> list[tuple[UOp, frozenset[int]]] | None:
    """The sources of ``u`` with the axes that ``axes`` are there; None where that is not plain."""
    x = u.src[0] if u.src else u
    if u.op is Ops.EXPAND:
        lead = len(u.marg)
        return [(x, frozenset(a - lead for a in axes if a >= lead))]
    if u.op is Ops.PERMUTE:
        return [(x, frozenset(u.arg[a] for a in axes))]
    if u.op in (Ops.SHRINK, Ops.FLIP):
        return [(x, axes)]
    if u.op is Ops.RESHAPE:
        here = [i for i, s in enumerate(u.shape) if s != 1]
        there = [i for i, s in enumerate(x.shape) if s != 1]
        if [u.shape[i] for i in here] != [x.shape[i] for i in there]:
            return None
        return [(x, frozenset(there[here.index(a)] for a in axes))]
    if u.op in GroupOp.Elementwise and u.src:
        rank = len(u.shape)
        return [(s, frozenset(a - (rank - len(s.shape)) for a in axes if a >= rank - len(s.shape))) for s in u.src]
    return None
