"""From lazy tensors to bytes: what of a graph becomes storage, and how live tensors learn of it.

``realize(*tensors)`` gives every value that is asked for, copied or marked CONTIGUOUS a buffer, replaces buffers by numbered
parameters (so equal graphs share a schedule), runs it, and exchanges the computed nodes for their buffers in all live
tensors. A store into an existing buffer runs only after every live tensor that still reads the old content has been computed:
a lazy reader sees the value of its own time.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from tinyhost._tensor.registry import live_tensors
from tinyhost.device import Buffer, Device
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.dtype import strong_dtype
from tinyhost.engine.realize import plan_of, run
from tinyhost.engine.schedule import get_linear
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import UOp
from tinyhost.uop.info import ParamArg

if TYPE_CHECKING:
    from tinyhost._tensor.core import TensorCore


# *** what becomes storage ***
def _is_storage(u: UOp) -> bool:
    return u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.GLOBAL


def _new_storage(value: UOp) -> UOp:
    """A fresh buffer seen with the value's shape."""
    device = value.device or Device.DEFAULT
    if isinstance(device, tuple):
        raise RuntimeError(f"a value on several devices {device} cannot be realized: move it to one with .to(device)")
    return UOp.new_buffer(device, value.max_numel(), strong_dtype(value.dtype)).view_as(value.shape)


def _store(target: UOp, value: UOp) -> UOp:
    return target.after(target.store(value))


class _Bases:
    """Rewrites a graph so that everything that becomes storage is AFTER(buffer, STORE(buffer, value))."""

    def __init__(self) -> None:
        self.new: dict[UOp, UOp] = {}
        self.becomes: dict[UOp, UOp] = {}  # original node -> view of its buffer

    def add(self, root: UOp) -> None:
        """Process ``root`` and all below it."""
        for u in root.toposort(gate=lambda u: u not in self.new, enter_calls=False):
            src = tuple([self.new.get(s, s) for s in u.src])
            built = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
            if u.op is Ops.CONTIGUOUS and u.arg is None and (_whole(built.src[0]) or _is_plain(built.src[0])):
                built = built.src[0]
            elif u.op is Ops.CONTIGUOUS:
                built = self._stored(u, built.src[0] if u.arg is None else built)
            elif u.op is Ops.COPY:
                built = self._stored(u, built)
            elif u.op is Ops.AFTER and not u.is_bound_var:
                self.becomes[u] = u.src[0].substitute(self.becomes, walk=True)
            self.new[u] = built

    def _stored(self, u: UOp, value: UOp) -> UOp:
        target = _new_storage(u)
        self.becomes[u] = target
        return _store(target, value)

    def root(self, u: UOp) -> UOp | None:
        """The effect that makes ``u`` exist, None when it exists already."""
        new = self.new[u]
        base = new.base
        if _is_storage(base) or new.is_bound_var or new.is_variable:
            return None
        if base.op is Ops.AFTER:
            return base
        return self._root_stored(u, new)

    def _root_stored(self, u: UOp, new: UOp) -> UOp:
        stored = self._stored(u, new)
        self.new[u] = stored
        return stored


def _whole(u: UOp) -> bool:
    """Whether a view shows all of its storage in order."""
    while u.op is Ops.RESHAPE:
        u = u.src[0]
    return u.op is Ops.AFTER and u.src[0].has_buffer_identity()


def _written(effects: list[UOp]) -> dict[UOp, None]:
    """Storage that existed before and is stored into."""
    out = {}
    for e in UOp.sink(*effects).toposort(enter_calls=False):
        if e.op is Ops.STORE and _is_storage(buf := _storage_under(e.src[0])) and has_storage(buf):
            out[buf] = None
    return out


def _storage_under(u: UOp) -> UOp:
    """What a chain of views and AFTERs shows."""
    while u.op is Ops.AFTER or u.base is not u:
        u = u.src[0]
    return u


def _reads(u: UOp, written: dict[UOp, None]) -> bool:
    """Whether computing ``u`` reads the content that a buffer of ``written`` has now."""
    if _is_storage(u.base):
        return False  # an alias, which shows new content by design
    below = u.toposort(enter_calls=False)
    if not any(b in below for b in written):
        return False
    readers: dict[UOp, bool] = {}
    for n in below:
        if n in written:
            readers[n] = True
        elif n.op is Ops.AFTER:
            readers[n] = any(readers[s] for s in n.src[1:])
        elif n.op is Ops.STORE:
            readers[n] = any(readers[s] for s in n.src[1:])
        else:
            readers[n] = any(readers.get(s, False) for s in n.src)
    return readers[u]


def _pending_readers(effects: list[UOp], known: set[UOp]) -> list[UOp]:
    """Values of live tensors that must be computed before the effects overwrite what they read."""
    written = _written(effects)
    if not written:
        return []
    out = {t.uop: None for t in live_tensors() if t.uop not in known and t.uop.device is not None}
    return [u for u in out if u.base.op is not Ops.AFTER and _reads(u, written)]


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


def run_effects(effects: list[UOp], do_update_stats: bool = True) -> None:
    """Schedule and execute AFTER nodes."""
    sink, params, var_vals = _bind(UOp.sink(*effects))
    run(plan_of(get_linear(sink)), params, var_vals, do_update_stats)


def _substitute_live(becomes: dict[UOp, UOp]) -> None:
    tensors = [t for t in live_tensors() if t.uop.op is not Ops.BUFFER]
    if not tensors or not becomes:
        return
    sink = UOp.sink(*[t.uop for t in tensors])
    new = sink.substitute(becomes, walk=True)
    if new is sink:
        return
    for t, u in zip(tensors, new.src):
        if t.uop is not u:
            t.uop = u


def linear_with_vars(tensors: Sequence[TensorCore]) -> tuple[UOp, dict[str, int]]:
    """The LINEAR that would compute ``tensors``, over numbered parameters, and the values of its variables."""
    effects = _effects(_Bases(), {t.uop: None for t in tensors})
    sink, _, var_vals = _bind(UOp.sink(*effects))
    return get_linear(sink), var_vals


def realize(*tensors: TensorCore, do_update_stats: bool = True) -> None:
    """Compute ``tensors`` and exchange their graphs for buffers.

    Raises:
        RuntimeError: a value lies on several devices, or variables are bound to two values.
    """
    bases = _Bases()
    roots = {t.uop: None for t in tensors if t.uop.device is not None}
    effects = _effects(bases, roots)
    readers = _pending_readers(effects, set(roots)) if effects else []
    if readers:
        effects = _effects(bases, dict.fromkeys(readers)) + effects
    if not effects:
        return
    run_effects(list(dict.fromkeys(effects)), do_update_stats)
    _substitute_live(bases.becomes)


def _effects(bases: _Bases, roots: dict[UOp, None]) -> list[UOp]:
    out = []
    for u in roots:
        bases.add(u)
        effect = bases.root(u)
        if effect is not None and 0 not in effect.max_shape:
            out.append(effect)
    return out


def read(tensor: TensorCore) -> Buffer:
    """The tensor's elements in row-major order as one buffer, computed if needed."""
    if tensor.uop.device is not None:
        realize(tensor)
    u = tensor.uop
    if _is_plain(u):
        return buffer_of(u).ensure_allocated()
    bases = _Bases()
    bases.add(u)
    made = bases._root_stored(u, bases.new[u])
    if 0 not in made.max_shape:
        run_effects([made])
    return buffer_of(bases.becomes[u].base).ensure_allocated()


def _is_plain(u: UOp) -> bool:
    """Whether the value is a whole buffer in order."""
    while u.op is Ops.RESHAPE:
        u = u.src[0]
    return _is_storage(u)
