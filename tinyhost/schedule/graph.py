"""The prepared tensor graph as data for fusion: order, consumers, kernels to be.

Takes a prepared SINK; gives its nodes sources first without shape operands and bodies, who uses what, and
``Kernel``, one planned kernel: the value it computes, the shape it runs over and the ranges of its axes. No
decisions are made here.
"""
from __future__ import annotations

from typing import Any, TypeAlias

from tinyhost.schedule.indexing import Indices, Shape
from tinyhost.uop import AxisType, GroupOp, Ops, UOp

Device: TypeAlias = str | tuple[str, ...] | None
_NO_DATA = frozenset({Ops.STAGE, Ops.CONST, Ops.PARAM, Ops.BUFFER, Ops.RANGE})


def data_sources(u: UOp) -> tuple[UOp, ...]:
    """Sources that carry data: no shape operands, no bodies."""
    op = u.op
    if op in GroupOp.Movement:
        return u.src[:1]
    if op in _NO_DATA:
        return ()
    return u.src[1:] if op is Ops.CALL else u.src


class TensorGraph:
    """Nodes of a prepared graph, sources first, and their consumers in that order."""

    def __init__(self, sink: UOp) -> None:
        self.sink = sink
        self.order: list[UOp] = []
        self.consumers: dict[UOp, list[UOp]] = {sink: []}
        consumers, order = self.consumers, self.order
        stack: list[tuple[UOp, bool]] = [(sink, False)]
        done: set[UOp] = set()
        while stack:
            u, ready = stack.pop()
            if ready:
                order.append(u)
                for s in data_sources(u):
                    consumers[s].append(u)
            elif u not in done:
                done.add(u)
                consumers[u] = []
                stack.append((u, True))
                stack += [(s, False) for s in reversed(data_sources(u)) if s not in done]


def extent_of(dim: Any) -> int:
    """An extent as an int, symbolic ones at their largest."""
    return dim if isinstance(dim, int) else int(dim.vmax)


class Kernel:
    """A kernel to be: ``value`` computed over ``shape``, stored for ``node`` (a STORE, CONTIGUOUS or computed value).

    Its axes are RANGEs numbered from 0, an axis of one element is the literal 0. Reductions that run side by side over
    equal extents share their ranges; a reduction inside another gets its own.
    """

    __slots__ = ("node", "value", "shape", "ranges", "sizes", "state", "device", "opts", "whole", "contraction",
                 "_reduce_ranges", "_next_id")

    def __init__(self, node: UOp, value: UOp, shape: Shape) -> None:
        self.node, self.value, self.shape = node, value, shape
        self.state: UOp = node  # what readers of the stored value depend on
        self.device: Device = None
        self.opts: tuple[Any, ...] | None = None
        self.whole = True  # the target is all of some storage, in row-major order of shape
        self.contraction: UOp | None = None  # the large sum of products that it computes
        self._next_id = 0
        self.ranges = self._new_ranges(shape, AxisType.WEAK)
        self.sizes = tuple(extent_of(d) for d in shape)
        self.restart()

    def _new_ranges(self, shape: Shape, kind: AxisType) -> Indices:
        out = []
        for d in shape:
            if isinstance(d, int) and d == 1:
                out.append(UOp(Ops.CONST, (), 0))
            else:
                out.append(UOp.range(d, self._next_id, kind))
                self._next_id += 1
        return tuple(out)

    def restart(self) -> None:
        """Forget the ranges given to reductions."""
        self._reduce_ranges: dict[Shape, Indices] = {}
        self._next_id = sum(r.op is Ops.RANGE for r in self.ranges)

    def reduce_ranges(self, shape: Shape, nested: bool) -> Indices:
        """Ranges of a reduction over ``shape``."""
        if nested:
            return self._new_ranges(shape, AxisType.REDUCE)
        ranges = self._reduce_ranges.get(shape)
        if ranges is None:
            ranges = self._reduce_ranges[shape] = self._new_ranges(shape, AxisType.REDUCE)
        return ranges

    @property
    def out_ranges(self) -> tuple[UOp, ...]:
        """RANGEs of the axes."""
        return tuple(r for r in self.ranges if r.op is Ops.RANGE)
