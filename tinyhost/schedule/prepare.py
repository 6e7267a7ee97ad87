"""Preparation of a tensor graph: everything that is decided before index ranges are.

Takes a SINK of effects; gives an equal graph in the small grammar that ``fuse.py`` reads: leaves (PARAM, BUFFER,
CONST, index sequences), AFTER states, COPY of whole storage, CONTIGUOUS, movement, element-wise ops, REDUCE, STACK
and INDEX. FUNCTION calls are inlined, gradient marks and empty values are gone, COPY sources and call arguments
have storage, variables are scalar PARAMs (their bindings are returned beside the graph). One walk, sources first,
one handler for each op.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tinyhost.capabilities import Capabilities
from tinyhost.env import SPLIT_REDUCEOP
from tinyhost.errors import ScheduleError
from tinyhost.schedule.function import inline_functions
from tinyhost.schedule.multi import lower_devices
from tinyhost.schedule.split import split_reduce
from tinyhost.schedule.storage import LEAVES, is_storage, region_of, storage_root
from tinyhost.uop import GroupOp, Ops, ParamArg, UOp

CapsOf: TypeAlias = Callable[[Any], Capabilities]  # by device name
_DATA = GroupOp.Movement | GroupOp.Elementwise | {Ops.REDUCE, Ops.STACK, Ops.INDEX, Ops.CONTIGUOUS, Ops.COPY}


class Preparation:
    """One walk over a graph; ``bindings`` maps a variable's name to the node the call gets for it."""

    def __init__(self, caps_of: CapsOf) -> None:
        self.caps_of = caps_of
        self.bindings: dict[str, UOp] = {}
        self.handlers: dict[Ops, Callable[[UOp], UOp]] = {
            Ops.DETACH: lambda u: u.src[0], Ops.CONTIGUOUS_BACKWARD: lambda u: u.src[0], Ops.BUFFER: self.scalar,
            Ops.PARAM: self.scalar, Ops.CONTIGUOUS: self.contiguous, Ops.COPY: self.copy, Ops.CALL: self.call,
            Ops.STORE: self.store, Ops.AFTER: self.after, Ops.BITCAST: self.bitcast, Ops.REDUCE: self.reduce,
            Ops.STACK: self.stack, Ops.SINK: self.sink}

    def run(self, sink: UOp) -> UOp:
        """The prepared graph."""
        new: dict[UOp, UOp] = {}
        sink = lower_devices(inline_functions(sink))
        for u in sink.toposort(enter_calls=False):
            if u.op is Ops.AFTER and u.is_bound_var:
                new[u] = self.bound(u.src[0], u)
                continue
            node = u
            for s in u.src:
                if s in new:
                    node = UOp(u.op, tuple([new.get(s, s) for s in u.src]), u.arg, u.tag)
                    break
            if u.op in _DATA and 0 in node.shape or (u.op is Ops.PAD and 0 in node.src[0].shape):
                node = node.const_like(0)
            else:
                handler = self.handlers.get(u.op)
                if handler is not None:
                    node = handler(node)
            if node is not u:
                new[u] = node
        return new.get(sink, sink)

    # *** scalars ***
    def scalar(self, u: UOp) -> UOp:
        """A free variable or scalar argument becomes a PARAM without slot, known by its name."""
        return self.bound(u, u) if u.is_variable else u

    def bound(self, var: UOp, value: UOp) -> UOp:
        """The kernel-side scalar of ``var``; the call passes ``value`` for it."""
        a: ParamArg = var.arg
        name = a.name or f"p{a.slot}"
        known = self.bindings.setdefault(name, value)
        if known is not value and known.op is Ops.AFTER and value.op is Ops.AFTER:
            values = [n.src[1].src[1].render() for n in (known, value)]
            raise ScheduleError(f"bind mismatch on {name}, {' != '.join(values)}: one schedule uses one value of a "
                                "variable")
        if value.op is Ops.AFTER:
            self.bindings[name] = value
        return UOp(Ops.PARAM, (), ParamArg(-1, a.dtype, None, a.vmin_vmax, a.multiple_of, name, a.addrspace))

    # *** storage ***
    def contiguous(self, u: UOp) -> UOp:
        """Nothing to materialise: a value without a device, or one that is whole storage already."""
        x = u.src[0]
        if x.device is None or (u.arg is None and (x.op is Ops.CONTIGUOUS or is_whole(x))):
            return x
        return UOp(Ops.CONTIGUOUS, (x.src[0],), u.arg) if x.op is Ops.CONTIGUOUS and x.arg is None else u

    def copy(self, u: UOp) -> UOp:
        """The source gets storage; a copy to the same device, or of a value without a device, is the value."""
        x = u.src[0]
        if x.device is None or x.device == u.arg:
            return x
        if self.caps_of(x.device).storage_only:
            return self.copy_stored(u, x)
        return u if is_whole(x) else UOp(Ops.COPY, (UOp(Ops.CONTIGUOUS, (x,)),), u.arg)

    def copy_stored(self, u: UOp, x: UOp) -> UOp:
        """A device that only stores data copies blocks; other views are taken on the destination."""
        if region_of(x) is not None:
            return u
        chain = []
        while x.op in GroupOp.Movement or x.op is Ops.BITCAST:
            chain.append(x)
            x = x.src[0]
        if not is_storage(storage_root(x)):
            raise ScheduleError(f"cannot compute {x.op} on {x.device}: it only stores data; copy the operands to "
                                "another device before computing")
        out = UOp(Ops.COPY, (x,), u.arg)
        for view in reversed(chain):
            out = UOp(view.op, (out, *view.src[1:]), view.arg)
        return out

    def call(self, u: UOp) -> UOp:
        """Arguments of an opaque call are whole storage."""
        args = [a if a.shape == () or is_whole(a) else UOp(Ops.CONTIGUOUS, (a,)) for a in u.src[1:]]
        return UOp(Ops.CALL, (u.src[0], *args), u.arg)

    # *** effects ***
    def store(self, u: UOp) -> UOp:
        """Drop stores that change nothing; a BITCAST of the target moves to the value."""
        target, value = u.src[0], u.src[1]
        if storage_root(target).op is Ops.PARAM and storage_root(target).is_variable:
            return u
        if value is target or 0 in target.shape or value.base.is_invalid:
            return UOp(Ops.NOOP)
        plain = without_bitcast(target)
        if plain is not target:
            value = value.bitcast(plain.dtype)
        if value.dtype is not plain.dtype:
            value = UOp.const(value.const_value, plain.dtype) if value.is_const else value.cast(plain.dtype)
        return UOp(Ops.STORE, (plain, value, *u.src[2:]))

    def after(self, u: UOp) -> UOp:
        """Storage as of after effects."""
        deps: dict[UOp, None] = {}
        for d in u.src[1:]:
            deps.update(dict.fromkeys(d.src if d.op is Ops.GROUP else (d,)))
        deps.pop(UOp(Ops.NOOP), None)
        place = u.src[0]
        if not deps:
            return place
        if place.op is Ops.BITCAST:
            return UOp(Ops.BITCAST, (UOp(Ops.AFTER, (place.src[0], *deps)),), place.arg)
        if storage_root(place).op not in LEAVES:
            raise ScheduleError(f"cannot store into {storage_root(place).op} of shape {place.shape}: it has no "
                                "storage; call contiguous() on the target first")
        return UOp(Ops.AFTER, (place, *deps))

    def sink(self, u: UOp) -> UOp:
        """Only effects remain."""
        return UOp(Ops.SINK, tuple(dict.fromkeys(s for s in u.src if s.op in _EFFECTS)), u.arg)

    # *** values ***
    def bitcast(self, u: UOp) -> UOp:
        """BITCAST to the own dtype is the value; of a BITCAST at one size, the outer one."""
        x = u.src[0]
        if x.dtype is u.arg:
            return x
        if x.op is Ops.BITCAST and x.src[0].dtype.itemsize == x.arg.itemsize == u.arg.itemsize:
            return x.src[0].bitcast(u.arg)
        return u

    def stack(self, u: UOp) -> UOp:
        """Many operands are joined in groups that one kernel can read."""
        limit = self.caps_of(u.device).max_kernel_buffers if isinstance(u.device, str) else None
        if limit is None or len(u.src) < limit:
            return u
        group = limit // 2
        parts = [self.contiguous(UOp(Ops.CONTIGUOUS, (UOp(Ops.STACK, u.src[i:i + group]),)))
                 for i in range(0, len(u.src), group)]
        while len(parts) > group:
            parts = [self.contiguous(UOp(Ops.CONTIGUOUS, (_joined(parts[i:i + group]),)))
                     for i in range(0, len(parts), group)]
        return _joined(parts)

    def reduce(self, u: UOp) -> UOp:
        """A reduction of nothing is its identity; a long one is done in two stages."""
        x, (op, n) = u.src[0], u.arg
        if n == 0:
            return x
        if 0 in x.shape:
            return u.const_like(identity(op, u))
        if u.device is None or not SPLIT_REDUCEOP.value:
            return u
        return split_reduce(u, self.caps_of(u.device))


_EFFECTS = frozenset({Ops.AFTER, Ops.STORE, Ops.CALL})


def _joined(parts: list[UOp]) -> UOp:
    """``parts`` along their first axis."""
    return parts[0].cat(*parts[1:], dim=0)


def is_whole(x: UOp) -> bool:
    """Whether a value is all of some storage in row-major order."""
    region = region_of(x)
    return region is not None and region.whole


def without_bitcast(target: UOp) -> UOp:
    """The place under a store's target at the storage's own dtype."""
    chain, u = [], target
    while u.op in GroupOp.Movement or u.op in (Ops.BITCAST, Ops.AFTER):
        chain.append(u)
        u = u.src[0]
    if not any(v.op is Ops.BITCAST for v in chain):
        return target
    for v in reversed(chain):
        if v.op is not Ops.BITCAST:
            u = UOp(v.op, (u, *v.src[1:]), v.arg)
        elif v.arg.itemsize != v.src[0].dtype.itemsize:
            own = v.src[0].dtype
            raise ScheduleError(f"cannot store {v.arg} into storage of {own}: bitcast the value to {own} instead")
    return u


def identity(op: Ops, u: UOp) -> object:
    """What a reduction starts from."""
    return 0 if op is Ops.ADD else 1 if op is Ops.MUL else u.dtype.min
