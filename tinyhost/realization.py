"""From lazy tensors to bytes: what of a graph becomes storage, and how live tensors learn of it.

``realize(*tensors)`` gives every value that is asked for, copied or marked CONTIGUOUS a buffer, replaces buffers by numbered
parameters (so equal graphs share a schedule), runs it, and exchanges the computed nodes for their buffers in all live
tensors. A store runs only together with every live tensor that still reads what it overwrites: a lazy reader sees the value
of its own time. Views are aliases and see the new content.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tinyhost._tensor.registry import live_tensors
from tinyhost.device import Buffer, Device, caps_of
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.dtype import strong_dtype
from tinyhost.engine.capture import recorder
from tinyhost.engine.realize import plan_of, run
from tinyhost.engine.schedule import get_linear
from tinyhost.errors import JitError
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.schedule.storage import region_of
from tinyhost.uop import UOp
from tinyhost.uop.info import ParamArg

if TYPE_CHECKING:
    from tinyhost._tensor.core import TensorCore

_VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST}
_STORED = frozenset({Ops.AFTER, Ops.CONTIGUOUS, Ops.COPY})  # what gets storage wherever it stands in a graph


def _is_storage(u: UOp) -> bool:
    return u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.GLOBAL


def _under_views(u: UOp) -> UOp:
    """What a chain of views shows: storage, a state of storage (AFTER), or a value."""
    while u.op in _VIEWS:
        u = u.src[0]
    return u


# *** what becomes storage ***
def _new_storage(value: UOp) -> UOp:
    """A fresh buffer seen with the value's shape."""
    device = value.device or Device.DEFAULT
    if isinstance(device, tuple):
        raise RuntimeError(f"a value on several devices {device} cannot be realized: move it to one with .to(device)")
    return UOp.new_buffer(device, value.max_numel(), strong_dtype(value.dtype)).view_as(value.shape)


class _Bases:
    """Rewrites graphs so that everything that becomes storage is AFTER(buffer, STORE(buffer, value))."""

    def __init__(self) -> None:
        self.new: dict[UOp, UOp] = {}
        self.becomes: dict[UOp, UOp] = {}  # original node -> view of its buffer

    def add(self, root: UOp) -> None:
        """Process ``root`` and all below it."""
        for u in root.toposort(gate=lambda u: u not in self.new, enter_calls=False):
            src = tuple([self.new.get(s, s) for s in u.src])
            built = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
            if u.op is Ops.CONTIGUOUS and u.arg is None and _is_whole(built.src[0]):
                built = built.src[0]
            elif u.op is Ops.CONTIGUOUS:
                built = self.stored(u, built.src[0] if u.arg is None else built)
            elif u.op is Ops.COPY:
                built = self.stored(u, built)
            elif u.op is Ops.AFTER and not u.is_bound_var:
                self.becomes[u] = self._place(u.src[0])
            self.new[u] = built

    def stored(self, u: UOp, value: UOp) -> UOp:
        """``value``, which is what ``u`` was rewritten to, stored into a new buffer that ``u`` becomes."""
        target = self.becomes[u] = _new_storage(u)
        self.new[u] = target.after(target.store(value))
        return self.new[u]

    def effect(self, u: UOp) -> UOp | None:
        """The effect that makes ``u`` exist, None when it exists already."""
        new = self.new[u]
        base = _under_views(new)
        if base.op is Ops.AFTER and not base.is_bound_var:
            return base
        exists = _is_storage(base) or base.is_bound_var or base.is_variable
        return None if exists else self.stored(u, new)

    def _place(self, u: UOp) -> UOp:
        """The view ``u`` of a state of storage as that view of the storage itself."""
        chain = []
        while u not in self.becomes and u.op in _VIEWS:
            chain.append(u)
            u = u.src[0]
        out = self.becomes.get(u, u)
        for view in reversed(chain):
            out = UOp(view.op, (out, *view.src[1:]), view.arg)
        return out


def _is_whole(u: UOp) -> bool:
    """Whether a value is a whole buffer in order, or will be."""
    while u.op is Ops.RESHAPE:
        u = u.src[0]
    return _is_storage(u) or (u.op is Ops.AFTER and u.src[0].has_buffer_identity())


# *** who must be computed together ***
def _overwritten(nodes: Iterable[UOp]) -> set[UOp]:
    """States of storage that hold content now and that other nodes replace."""
    old = set()
    for u in nodes:
        if u.op is Ops.AFTER and not u.is_bound_var:
            before = _under_views(u.src[0])
            if before.op is Ops.AFTER or (_is_storage(before) and has_storage(before)):
                old.add(before)
    return old


def _readers(values: list[UOp], old: set[UOp], computed: set[UOp]) -> list[UOp]:
    """Those of ``values`` that read the content of a state in ``old``, other than through what is computed anyway.

    A view is no reader; storage that waits for a store of such a value is one.
    """
    reads: dict[UOp, bool] = {}
    for n in UOp.sink(*values).toposort(enter_calls=False):
        if n in old:
            reads[n] = True
        elif n in computed:
            reads[n] = False
        else:  # what a store overwrites is not read
            src = n.src[1:] if n.op is Ops.AFTER or n.op is Ops.STORE else n.src
            reads[n] = any([reads.get(s, False) for s in src])
    return [u for u in values if (base := _under_views(u)) not in old and not _is_storage(base) and reads[base]]


def _with_readers(roots: dict[UOp, None]) -> dict[UOp, None]:
    """``roots`` and, in front, the values of live tensors that must be computed before stores of these overwrite them."""
    values: list[UOp] | None = None
    while True:
        below = UOp.sink(*roots).toposort(enter_calls=False)
        old = _overwritten(below)
        if not old:
            return roots
        if values is None:
            live = {t.uop: None for t in live_tensors()}
            values = [u for u in live if u.device is not None and not _is_storage(_under_views(u))]
        computed = {u for u in below if u.op in _STORED} | roots.keys()
        more = _readers([u for u in values if u not in roots], old, computed)
        if not more:
            return roots
        roots = dict.fromkeys(more) | roots


# *** running ***
def _bind(sink: UOp) -> tuple[UOp, list[Buffer], dict[str, int]]:
    """The graph over numbered parameters, the buffers behind them, the variables' values."""
    subs: dict[UOp, UOp] = {}
    params: list[Buffer] = []
    var_vals: dict[str, int] = {}
    for u in sink.toposort():
        if _is_storage(u):
            subs[u] = UOp(Ops.PARAM, (), ParamArg(len(params), u.arg.dtype, u.arg.size, device=u.arg.device))
            params.append(buffer_of(u))
        elif u.is_bound_var:
            var, val = u.unbind()
            if var_vals.setdefault(var.arg.name, val) != val:
                raise RuntimeError(f"bind mismatch on {var.arg.name!r}: {var_vals[var.arg.name]} and {val} in one graph")
            subs[u] = var
    return sink.substitute(subs, walk=True, enter_calls=True), params, var_vals


def _run_effects(effects: list[UOp], do_update_stats: bool = True) -> None:
    """Schedule and execute AFTER nodes."""
    sink, params, var_vals = _bind(UOp.sink(*effects))
    run(plan_of(get_linear(sink)), params, var_vals, do_update_stats)


def _substitute_live(becomes: dict[UOp, UOp]) -> None:
    """Let live tensors stand on the buffers their graphs were computed into."""
    tensors = [(t, u) for t in live_tensors() if not _is_storage(_under_views(u := t.uop))]
    new = UOp.sink(*[u for _, u in tensors]).substitute(becomes, walk=True).src
    for (t, old), u in zip(tensors, new):
        if u is not old and t.uop is old:  # another thread may have given the tensor a new value meanwhile
            t.uop = u


def _effects(bases: _Bases, roots: Iterable[UOp]) -> list[UOp]:
    out: dict[UOp, None] = {}
    for u in roots:
        bases.add(u)
        effect = bases.effect(u)
        if effect is not None and 0 not in effect.max_shape:
            out[effect] = None
    return list(out)


def linear_with_vars(tensors: Sequence[TensorCore]) -> tuple[UOp, dict[str, int]]:
    """The LINEAR that would compute ``tensors``, over numbered parameters, and the values of its variables."""
    sink, _, var_vals = _bind(UOp.sink(*_effects(_Bases(), {t.uop: None for t in tensors})))
    return get_linear(sink), var_vals


def realize(*tensors: TensorCore, do_update_stats: bool = True) -> None:
    """Compute ``tensors`` and exchange their graphs for buffers.

    Raises:
        RuntimeError: a value lies on several devices, or variables are bound to two values.
    """
    asked = {t.uop: None for t in tensors if t.uop.device is not None and not _is_storage(_under_views(t.uop))}
    if not asked:
        return
    bases = _Bases()
    effects = _effects(bases, _with_readers(asked))
    if effects:
        _run_effects(effects, do_update_stats)
        _substitute_live(bases.becomes)


def read(tensor: TensorCore) -> Buffer:
    """The tensor's elements in row-major order as one buffer, computed if needed.

    Raises:
        JitError: a TinyJit is capturing, so what the program does with the data would be frozen.
    """
    if recorder.active() is not None:
        raise JitError(f"cannot read the data of {tensor!r} while TinyJit captures: the value would be frozen at capture; "
                       "return the tensor and read it outside")
    realize(tensor)
    u = tensor.uop
    if (region := region_of(u)) is not None and region.root.op is Ops.BUFFER:
        buffer = buffer_of(region.root).ensure_allocated()
        return buffer if region.whole else buffer.view(region.size, region.dtype, region.start)
    if u.device is not None and caps_of(u.device).storage_only:
        u = u.copy_to_device(Device.DEFAULT)  # which takes the view
    bases = _Bases()
    bases.add(u)
    if u not in bases.becomes:
        bases.stored(u, bases.new[u])
    if 0 not in u.max_shape:
        _run_effects([bases.new[u].base])
    return buffer_of(bases.becomes[u].base).ensure_allocated()
