"""STAGE: an operand of a reduction copied once into a panel of scratch memory, in the order its loop reads it.

Takes the small kernel after all splits, the operand (any expression: conversions and gates are done while packing) and the
ranges of the panel, outermost first; gives the kernel in which a nest of its own fills the panel wherever the operand's
other ranges change, and the reduction reads the panel. The loop order decides how often that is.
"""
from __future__ import annotations

from typing import Any

from tinyhost.helpers import prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import ParamArg, UOp

SCRATCH = "scratch"  # name of the PARAM that is the worker's arena
_COPIED = frozenset({AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE})


def panel_size(panel: list[UOp]) -> int:
    """Elements of a panel."""
    return int(prod(int(r.src[0].const_value) for r in panel))


def stage_operand(sink: UOp, operand: UOp, panel: list[UOp]) -> UOp:
    """The kernel with ``operand`` read from a panel over the ranges ``panel``."""
    nodes = list(sink.toposort())
    fresh = 1 + max(u.arg[0] for u in nodes if u.op is Ops.RANGE)
    slot = 1 + max(u.arg.slot for u in nodes if u.op is Ops.PARAM)
    scratch = UOp(Ops.PARAM, (), ParamArg(slot, operand.dtype, panel_size(panel), name=SCRATCH))
    swap = {r: UOp(Ops.RANGE, r.src, (fresh + i, r.arg[-1] if r.arg[-1] in _COPIED else AxisType.WEAK)) for i, r in enumerate(panel)}
    packed = scratch.index(_position([swap[r] for r in panel])).store(_substituted(operand, swap))
    ready = scratch.after(packed.end(*[swap[r] for r in panel]))
    return sink.substitute({operand: ready.index(_position(panel))}, walk=True)


def _position(panel: list[UOp]) -> Any:
    """Row-major index over the ranges."""
    at, step = UOp.const(0), 1
    for r in reversed(panel):
        term = r if step == 1 else r * step
        at = term if step == 1 else term + at
        step *= int(r.src[0].const_value)
    return at


def _substituted(u: UOp, swap: dict[UOp, UOp]) -> UOp:
    done: dict[UOp, UOp] = dict(swap)
    old = set(swap)
    for x in u.toposort(gate=lambda n: not old.isdisjoint(n.ranges)):
        if x not in done:
            done[x] = UOp(x.op, tuple([done.get(s, s) for s in x.src]), x.arg, x.tag)
    return done.get(u, u)
