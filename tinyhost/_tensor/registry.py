"""Every live Tensor of the process, weakly; which of them may stand for something not computed; which are parameters.

Realization asks for them to put buffers in the place of graphs. Tensors compare element by element, so the tables are
keyed by address; the reference removes its own entries, and a tensor that nobody holds is never kept alive. A tensor
that was seen on storage is not looked at again before it is given another node, so asking what is lazy costs nothing
where nothing is.
"""
from __future__ import annotations

import weakref
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any

from tinyhost.ops import GroupOp, Ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tinyhost.tensor import Tensor
    from tinyhost.uop import UOp

_VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST, Ops.UNSHARD}


class _Ref(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("address", "thread", "watchers")
    address: int
    thread: int  # that made it, or gave it its node
    watchers: tuple[weakref.WeakMethod[Callable[[], None]], ...]


exchanging = RLock()  # held while nodes of tensors are exchanged, and by who needs those of several as of one time
_live: dict[int, _Ref] = {}
_moved: dict[int, _Ref] = {}  # those that were given a node since they were last seen on storage
_params: dict[int, _Ref] = {}
_logs: dict[int, list[_Ref]] = {}  # by thread, while it wants to know


def _forget(ref: _Ref) -> None:
    address = ref.address
    for table in (_live, _moved, _params):
        if table.get(address) is ref:
            del table[address]
    if ref.watchers:
        _tell(ref)


def _tell(ref: _Ref) -> None:
    for method in ref.watchers:
        if (call := method()) is not None:
            call()


def track(tensor: Any) -> None:
    """Enter a new tensor."""
    ref = _Ref(tensor, _forget)
    ref.address = address = id(tensor)
    ref.watchers = ()
    ref.thread = me = get_ident()
    _live[address] = _moved[address] = ref
    if _logs and (log := _logs.get(me)) is not None:
        log.append(ref)


def note_move(tensor: Any) -> None:
    """Note that a tensor was given another node."""
    ref = _live[id(tensor)]
    ref.thread = me = get_ident()
    _moved[ref.address] = ref
    if ref.watchers:
        _tell(ref)
    if _logs and (log := _logs.get(me)) is not None:
        log.append(ref)


def note_param(tensor: Any, is_param: bool | None) -> None:
    """Note whether a tensor is a parameter."""
    if is_param:
        _params[id(tensor)] = _live[id(tensor)]
    else:
        _params.pop(id(tensor), None)


def watch(tensor: Any, changed: Callable[[], None]) -> None:
    """Call the method ``changed``, as long as its object lives, when the tensor is given another node and when it is
    gone."""
    ref = _live[id(tensor)]
    ref.watchers = (*(m for m in ref.watchers if m() is not None), weakref.WeakMethod(changed))


@contextmanager
def touched() -> Iterator[Callable[[], list[Tensor]]]:
    """A block; its value gives the live tensors that this thread made or gave another node since it began."""
    me = get_ident()
    outer, log = _logs.get(me), list[_Ref]()
    _logs[me] = log
    try:
        yield lambda: list({id(t): t for ref in list(log) if (t := ref()) is not None}.values())
    finally:
        if outer is None:
            del _logs[me]
        else:
            outer.extend(log)
            _logs[me] = outer


def is_mine(tensor: Any) -> bool:
    """Whether this thread gave a tensor the node it has."""
    return _live[id(tensor)].thread == get_ident()


def live_tensors() -> list[Tensor]:
    """All tensors that are alive now, oldest first."""
    # a collection during the walk removes entries, so walk a copy
    return [t for ref in _live.copy().values() if (t := ref()) is not None]


def live_params() -> list[Tensor]:
    """Parameters that are alive now."""
    return [t for ref in _params.copy().values() if (t := ref()) is not None]


def lazy_tensors() -> list[tuple[Tensor, UOp]]:
    """Live tensors that are no views of buffers, with their graphs."""
    lazy: list[tuple[Tensor, UOp]] = []
    for address, ref in _moved.copy().items():
        t = ref()
        if t is None:
            continue
        u = base = t.uop
        while base.op in _VIEWS:
            base = base.src[0]
        if base.op is not Ops.BUFFER:
            lazy.append((t, u))
            continue
        _moved.pop(address, None)
        if t.uop is not u:  # another thread gave it a node meanwhile
            _moved[address] = ref
    return lazy
