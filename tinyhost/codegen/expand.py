"""From the optimised kernel to the graph that is linearised: unrolls, vectorises and gives every value its width.

Takes a kernel whose RANGEs carry their final AxisType (weak index expressions, INDEX as a value, REDUCE); gives a
graph of strong nodes with LOAD, STORE, accumulators and closed loops. Each small node is visited once. What it
becomes is a list with one entry per combination of the UPCAST and UNROLL ranges it depends on (``mask``); a value
that depends on a LANE range is a vector. Weak integers stay ``Int`` values until something needs a node, so copies of
an access share their base.

Invariants: a RANGE of the result has exactly one END; no result node is weak except literals under a CAST, lane
numbers and access sizes; a vector node has one register's worth of lanes. Memory accesses are in ``memory.py``,
reductions and loop ends in ``loops.py``, vectors in ``vectors.py``.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhost.codegen.linear_form import atom, literal
from tinyhost.codegen.loops import Loops
from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import ParamArg, UOp


class Expander(Loops):
    """One expansion: ``run`` on the small kernel's SINK."""

    # *** the walk ***
    def run(self, sink: UOp) -> UOp:
        """The expanded SINK."""
        out, handlers = self.out, _HANDLERS
        self.plan_loops(sink)
        stack: list[tuple[UOp, bool]] = [(sink, False)]
        while stack:
            u, ready = stack.pop()
            if u in out:
                continue
            if not ready:
                stack.append((u, True))
                stack += [(s, False) for s in reversed(self.sources(u)) if s not in out]
                continue
            handler = handlers.get(u.op)
            if handler is None:
                self.plain(u)
            else:
                handler(self, u)
        return out[sink][0]  # type: ignore[no-any-return]

    def sources(self, u: UOp) -> tuple[UOp, ...]:
        """What must be expanded before ``u``."""
        op = u.op
        if op is Ops.INDEX:
            return self.access_sources(u)
        if op is Ops.STORE or op is Ops.LOAD:
            return (*(self.access_sources(u.src[0]) if u.src[0].op is Ops.INDEX else u.src[:1]), *u.src[1:])
        if op is Ops.REDUCE:
            return self.reduce_sources(u)
        if op is Ops.WHERE and self.is_guarded_load(u):
            return (*self.access_sources(u.src[1]), u.src[2])
        return u.src

    # *** leaves and selection ***
    def const(self, u: UOp) -> None:
        self.leaf(u, literal(u.arg) if type(u.arg) is int else u)

    def special(self, u: UOp) -> None:
        self.leaf(u, atom(UOp(Ops.SPECIAL, (self.bound_node(self.out[u.src[0]][0]),), u.arg)))

    def param(self, u: UOp) -> None:
        a: ParamArg = u.arg
        if a.addrspace is not AddrSpace.ALU:
            self.leaf(u, u)
        elif a.dtype is dtypes.weakint:
            lo, hi = u.bounds
            dt = dtypes.int32 if dtypes.int32.min <= lo and hi <= dtypes.int32.max else dtypes.int64
            strong = ParamArg(a.slot, dt, a.size, a.vmin_vmax, a.multiple_of, a.name, a.addrspace, a.device)
            self.leaf(u, atom(UOp(Ops.PARAM, (), strong)))
        else:
            self.leaf(u, u)

    def where(self, u: UOp) -> None:
        if u.dtype is dtypes.weakint:
            self.weak_integer(u)
            return
        if self.is_guarded_load(u):
            self.guarded_load(u)
            return
        dt = dtypes.default_float if u.dtype is dtypes.weakfloat else u.dtype
        self.emit(u, u.src, lambda c, x, y: self.select(c, x, y, dt))


_HANDLERS: dict[Ops, Callable[[Expander, UOp], None]] = {
    Ops.CONST: Expander.const, Ops.RANGE: Expander.range, Ops.SPECIAL: Expander.special, Ops.PARAM: Expander.param,
    Ops.BUFFER: Expander.param, Ops.INDEX: Expander.load, Ops.LOAD: Expander.explicit_load, Ops.STORE: Expander.store,
    Ops.REDUCE: Expander.reduce, Ops.END: Expander.end, Ops.AFTER: Expander.after, Ops.GROUP: Expander.group,
    Ops.SINK: Expander.sink, Ops.BARRIER: Expander.barrier, Ops.WHERE: Expander.where,
}
