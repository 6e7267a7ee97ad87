"""Symbolic shapes of realized tensors as numbers: what a read-out needs.

Takes a view of storage whose extents contain bound variables; gives the same view with their values. Graphs only.
"""
from __future__ import annotations

from typing import Any

from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp

_VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST}


def is_concrete(shape: tuple[Any, ...]) -> bool:
    """Whether all extents are numbers."""
    return all(isinstance(d, int) for d in shape)


def value_of(extent: Any) -> int:
    """An extent or offset as a number.

    Raises:
        RuntimeError: a variable in it has no value.
    """
    if isinstance(extent, int):
        return extent
    free, values = extent.unbind_all()
    if missing := [v.expr for v in free.variables() if v not in values]:
        raise RuntimeError(f"cannot read data of symbolic shape: variable {', '.join(missing)} in {free.render()} has "
                           "no value; bind it, or shrink the tensor to a concrete shape first")
    return int(free.sym_infer({v.expr: n for v, n in values.items()}))


def concrete(uop: UOp) -> UOp:
    """A view with the values of its bound variables in the place of these.

    Raises:
        RuntimeError: a variable in its shape has no value.
    """
    chain = []
    while uop.op in _VIEWS:
        chain.append(uop)
        uop = uop.src[0]
    for view in reversed(chain):
        if view.op in (Ops.PAD, Ops.SHRINK):
            uop = uop._mop(view.op, tuple((value_of(o), value_of(n)) for o, n in view.marg))
        elif view.op in (Ops.RESHAPE, Ops.EXPAND):
            uop = uop._mop(view.op, tuple(map(value_of, view.marg)))
        else:
            uop = UOp(view.op, (uop, *view.src[1:]), view.arg)
    return uop
