"""From lazy tensors to bytes, and how live tensors learn of it.

``realize(*tensors)`` computes values into buffers and exchanges the computed nodes for them in all live tensors. A
store runs only together with every live tensor that still reads what it overwrites: a lazy reader sees the value of its
own time. Views are aliases and see the new content.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import RLock
from typing import TYPE_CHECKING

from tinyhost._tensor import history
from tinyhost._tensor.registry import exchanging, lazy_tensors, live_params
from tinyhost._tensor.views import family_of
from tinyhost.device import Buffer, Device, caps_of
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine.capture import Capture, recorder
from tinyhost.engine.collector import collector_paused
from tinyhost.engine.effects import Effects
from tinyhost.engine.hazards import STORED, is_storage, overwritten, readers, under_views
from tinyhost.engine.plan import plan_of
from tinyhost.engine.realize import run
from tinyhost.engine.schedule import get_linear
from tinyhost.errors import JitError, StateCycle
from tinyhost.ops import Ops
from tinyhost.schedule.storage import region_of
from tinyhost.uop import UOp
from tinyhost.uop.leaf import is_leaf

if TYPE_CHECKING:
    from tinyhost._tensor.core import TensorCore

computing = RLock()  # one thread at a time: a store that waits in the graphs of several threads runs once


def _with_readers(roots: dict[UOp, None]) -> tuple[dict[UOp, None], set[UOp]]:
    """``roots`` and, in front, live values that must be computed with their stores; what is overwritten."""
    values: list[UOp] | None = None
    while True:
        below = (next(iter(roots)) if len(roots) == 1 else UOp.sink(*roots)).toposort(enter_calls=False)
        old = overwritten(below, has_storage)
        if not old:
            return roots, old
        if values is None:
            values = list({_root(t): None for t, u in lazy_tensors() if u.device is not None})
        computed = {u for u in below if u.op in STORED} | roots.keys()
        more = readers([u for u in values if u not in roots], old, computed)
        if not more:
            return roots, old
        roots = dict.fromkeys(more) | roots


def _seen(computed: Collection[UOp], roots: Collection[UOp]) -> set[UOp]:
    """``roots``, and the ``computed`` nodes that live tensors show or read."""
    seen = set(roots)

    def below(u: UOp) -> bool:
        if u in computed:
            seen.add(u)
        return u not in computed
    UOp.sink(*[u for _, u in lazy_tensors()]).toposort(gate=below)
    return seen


def _compute(roots: dict[UOp, None], do_update_stats: bool = True, prune: bool = True) -> dict[UOp, UOp]:
    """Compute ``roots`` and all that must be computed with them; what each computed node becomes, with ``prune`` only
    of those that are ``roots`` or that live tensors stand on."""
    asked = roots
    roots, old = _with_readers(asked)
    if (capture := recorder.active()) is not None:
        below = UOp.sink(*roots).toposort(enter_calls=False)
        if done := _compute_outside(capture, below, asked):
            return _compute({u.substitute(done, walk=True): None for u in asked}, do_update_stats)
        capture.leaves.update([u for u in below if is_leaf(u)])
    try:
        with collector_paused():
            effects, linear = _scheduled(roots, old)
            plan = None if linear is None else plan_of(linear)
        if plan is not None:
            if prune and len(effects.becomes) > len(roots):
                effects.forget_unseen(_seen(effects.becomes, roots))
            run(plan, effects.take_params(), effects.var_vals, do_update_stats)
    except Exception as e:
        from tinyhost._tensor.blame import add_lines  # only where something failed
        add_lines(e, roots)
        raise
    history.forget(old)
    if effects.becomes:
        history.remember(effects.becomes, {under_views(t.uop) for t in live_params()}, old)
        _substitute_live(lazy_tensors(), effects.becomes)
    return effects.becomes


def _scheduled(roots: dict[UOp, None], old: set[UOp], apart: bool = False) -> tuple[Effects, UOp | None]:
    """The effects of computing ``roots``, and their schedule if there are any."""
    effects = Effects(old, apart)
    for u in roots:
        effects.add(u)
    try:
        return effects, get_linear(effects.sink) if effects else None
    except StateCycle:
        if apart:
            raise
        return _scheduled(roots, old, apart=True)


def _compute_outside(capture: Capture, below: dict[UOp, None], asked: dict[UOp, None]) -> dict[UOp, UOp]:
    """Compute what of ``below`` are graphs outside of a capture, unrecorded; what each computed node becomes."""
    needed = {u: part for u in capture.outside if (part := u) in below or (part := under_views(u)) in below}
    if not needed:
        return {}
    read = UOp.sink(*asked).toposort(enter_calls=False)
    was = {u: capture.outside.pop(u) for u in needed}
    with recorder.paused():
        done = _compute(dict.fromkeys(needed.values()), prune=False)
    capture.computed.update({was[u]: u.substitute(done, walk=True) for u in needed})
    capture.early.update([was[u] for u, part in needed.items() if part in read])
    # what else was outside stands on what was computed now
    capture.outside = {u.substitute(done, walk=True): old for u, old in capture.outside.items()}
    return done


def _substitute_live(lazy: Sequence[tuple[TensorCore, UOp]], becomes: dict[UOp, UOp]) -> None:
    """Let live tensors stand on the buffers their graphs were computed into."""
    others = [u for _, u in lazy if u not in becomes]
    new = dict(zip(others, UOp.sink(*others).substitute(becomes, walk=True).src)) if others else {}
    with exchanging:
        for t, old in lazy:
            u = becomes[old] if old in becomes else new[old]
            if u is not old and t.uop is old:  # another thread may have given the tensor a new value meanwhile
                t.uop = u


def linear_with_vars(tensors: Sequence[TensorCore]) -> tuple[UOp, dict[str, int]]:
    """The LINEAR that would compute ``tensors``, over numbered parameters, and the values of its variables."""
    effects = Effects()
    for u in {t.uop: None for t in tensors}:
        effects.add(u)
    return get_linear(effects.sink), effects.var_vals


def realize(*tensors: TensorCore, do_update_stats: bool = True) -> None:
    """Compute ``tensors`` and exchange their graphs for buffers.

    Raises:
        RuntimeError: a value lies on several devices, or variables are bound to two values.
    """
    if not _roots(tensors):
        return
    with computing:
        # another thread may have computed some of it meanwhile
        if roots := _roots(tensors):
            _compute(roots, do_update_stats)


def _roots(tensors: Sequence[TensorCore]) -> dict[UOp, None]:
    """What to compute for tensors that are not in memory."""
    return {_root(t): None for t in tensors if (u := t.uop).device is not None and not is_storage(under_views(u))}


def _root(t: TensorCore) -> UOp:
    """What to compute for ``t``: the value it is a view of, if other tensors are views of that and must share it."""
    base = under_views(t.uop)
    if base is t.uop or base.op is Ops.AFTER:
        return t.uop
    return base if any(o is not t and under_views(o.uop) is base for o in family_of(t)) else t.uop


def root_state(t: TensorCore) -> UOp:
    """What to compute for ``t``, of a state of storage without the views around."""
    root = _root(t)
    return base if (base := under_views(root)).op is Ops.AFTER else root


def lazy_graphs() -> dict[UOp, None]:
    """What live tensors stand for and is not computed yet: values, and states of storage without the views around."""
    return {root_state(t): None for t, u in lazy_tensors() if u.device is not None}


def is_lazy(t: TensorCore) -> bool:
    """Whether a tensor stands for something to compute."""
    return t.uop.device is not None and under_views(t.uop).op is not Ops.BUFFER


def is_stored(t: TensorCore) -> bool:
    """Whether a tensor shows storage in a state that exists only as a graph so far."""
    base = under_views(t.uop)
    return base.op is Ops.AFTER and not base.is_bound_var


def is_settled() -> bool:
    """Whether nothing waits that ``settle`` could have to compute or forget."""
    return history.is_empty() and not [t for t, u in lazy_tensors() if u.device is not None]


def settle(used: Collection[Buffer | MultiBuffer], written: Collection[Buffer | MultiBuffer]) -> None:
    """Before code outside of this module reads ``used`` and writes ``written`` (owners of memory): run the stores
    that wait for any of them, and compute what still reads what will be written."""
    with computing:
        _settle(used, written)


def _settle(used: Collection[Buffer | MultiBuffer], written: Collection[Buffer | MultiBuffer]) -> None:
    history.forget([u for u in history.readers_known() if has_storage(u) and buffer_of(u).base in written])
    while roots := _unsettled(used, written):
        _compute(roots)  # what read a state that waited reads storage now, so look again


def _unsettled(used: Collection[Buffer | MultiBuffer], written: Collection[Buffer | MultiBuffer]) -> dict[UOp, None]:
    """Stores that wait for storage in ``used``, and lazy values that read storage in ``written``."""
    lazy = list({_root(t): None for t, u in lazy_tensors() if u.device is not None})
    if not lazy:
        return {}
    below = UOp.sink(*lazy).toposort(enter_calls=False)
    buffers = {u: buffer_of(u).base for u in below if is_storage(u) and has_storage(u)}
    old = {u for u, b in buffers.items() if b in written}
    waiting = [u for u in lazy if (base := under_views(u)).op is Ops.AFTER and buffers.get(base.buf_uop) in used]
    return dict.fromkeys(waiting) | dict.fromkeys(readers(lazy, old, set()))


def read(tensor: TensorCore) -> Buffer:
    """The tensor's elements in row-major order as one buffer, computed if needed.

    Raises:
        JitError: a TinyJit is capturing, so what the program does with the data would be frozen.
    """
    if recorder.active() is not None:
        raise JitError(f"cannot read the data of {tensor!r} while TinyJit captures: the value would be frozen at "
                       "capture; return the tensor and read it outside")
    realize(tensor)
    u = tensor.uop
    region = region_of(u)
    if region is None or region.root.op is not Ops.BUFFER:
        if isinstance(u.device, str) and caps_of(u.device).storage_only:
            u = u.copy_to_device(Device.DEFAULT)  # which takes the view
        else:
            u = UOp(Ops.CONTIGUOUS, (u,))
        with computing:
            u = _compute({u: None})[u]
        region = region_of(u)
        assert region is not None, f"storage was made for {u.op}"
    buffer = buffer_of(region.root)
    assert isinstance(buffer, Buffer), "a value that is read lies on one device"
    buffer.ensure_allocated()
    return buffer if region.whole else buffer.view(region.size, region.dtype, region.start)
