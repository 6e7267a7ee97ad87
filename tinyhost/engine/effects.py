"""From tensor graphs to a schedulable SINK: what becomes storage, and storage as numbered parameters.

Takes roots over BUFFERs; gives a SINK of AFTER(place, STORE(place, value)) over PARAMs, the buffers behind those, and
what each computed node becomes. Roots, CONTIGUOUS and COPY nodes get storage of their own. Parameters are numbered in
the order of the graph, so equal graphs over other buffers are the same node and share a schedule.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any

from tinyhost.device import Buffer, Device
from tinyhost.device.buffer import buffer_of
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.dtype import DType, strong_dtype
from tinyhost.engine.hazards import NO_KERNEL, VIEWS, Conflicts, is_storage, under_views
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import UOp
from tinyhost.uop.info import ParamArg
from tinyhost.uop.sharding import stored_axis

_STATES = frozenset({Ops.PARAM, Ops.AFTER})


class Effects:
    """Roots are added one after the other; ``old`` are the states of storage that stores in their graphs replace.

    With ``apart``, every node that reads one of those is stored by itself. Then no kernel reads states of two times,
    and an order exists: the one in which the program wrote the nodes down. It costs memory, so it is for graphs whose
    kernels would need each other otherwise (StateCycle).
    """

    def __init__(self, old: Iterable[UOp] = (), apart: bool = False) -> None:
        self.becomes: dict[UOp, UOp] = {}  # computed node -> view of its buffer
        self.var_vals: dict[str, int] = {}
        self._new: dict[UOp, UOp] = {}  # node -> the same over parameters
        self._buffers: list[UOp] = []  # BUFFER of each parameter
        self._stores: dict[UOp, None] = {}
        self._copies: set[UOp] = set()  # COPYs without storage of their own so far
        self._states: list[UOp] = []  # every store in the graph, as the state of storage after it
        self._prunes = False  # whether scheduling may leave out what a store feeds: empty values, arguments, lanes
        self._conflicts = Conflicts(old, apart) if old else None
        self._apart = frozenset(old) if apart else frozenset()

    def __bool__(self) -> bool:
        return bool(self._stores)

    @property
    def sink(self) -> UOp:
        """The graph to schedule."""
        return UOp.sink(*self._stores)

    @property
    def params(self) -> list[Buffer | MultiBuffer]:
        """The buffers behind the parameters."""
        return [buffer_of(u) for u in self._buffers]

    def forget_unseen(self, seen: Collection[UOp]) -> None:
        """Forget what nodes other than ``seen`` become: nobody asks for it, so its storage ends with its last step."""
        self.becomes = {u: view for u, view in self.becomes.items() if u in seen}

    def take_params(self) -> list[Buffer | MultiBuffer]:
        """The buffers behind the parameters, once: what nothing else refers to is the caller's alone."""
        params = self.params
        self._buffers.clear()
        return params

    def add(self, root: UOp) -> None:
        """Let ``root`` be computed, into a new buffer unless it is a view of storage.

        Raises:
            RuntimeError: a variable is bound to two values.
        """
        unseen = (lambda u: u not in self._new) if self._new else None
        for u in root.toposort(gate=unseen, enter_calls=False):
            self._enter(u)
        base = under_views(new := self._new[root])
        if base.op is Ops.AFTER:
            self._require(base)
        elif not (_is_param(base) or base.is_variable):
            self._require(self._stored(root, new))
        if self._prunes:  # ``becomes`` tells the program of these stores, so they must run
            for state in self._states:
                self._require(state)

    def _require(self, effect: UOp) -> None:
        if 0 not in effect.max_shape:
            self._stores[effect] = None

    def _enter(self, u: UOp) -> None:
        """Translate a node whose sources are translated."""
        early = self._conflicts.add(u) if self._conflicts is not None else None
        if u.op is Ops.BUFFER:
            self._new[u] = self._param(u) if is_storage(u) else u
            return
        if u.is_bound_var:
            self._new[u] = self._bound(u)
            return
        if self._copies and not u.is_own_shard:
            self._store_copies(u.src[:1] + u.src[2:] if u.op is Ops.STORE else u.src)
        new = self._new
        src = tuple([new[s] if s in new else s for s in u.src])
        if early:
            src = tuple([self._into_new(s, x)[0] if s in early else x for s, x in zip(u.src, src)])
        built = u if src == u.src and u.tag is None else UOp(u.op, src, u.arg)  # tags tell leaves apart, kernels do not
        new[u] = built
        self._prunes = self._prunes or u.op is Ops.FUNCTION or type(u.device) is tuple or \
            (u._shape is not None and 0 in u._shape)
        if u.op is Ops.CONTIGUOUS:
            if u.arg is None and _is_whole(src[0]):
                new[u], self.becomes[u] = src[0], self._place(u.src[0])
            else:
                self._stored(u, src[0] if u.arg is None else built)
        elif u.op is Ops.COPY:
            self._copies.add(u)
        elif u.op is Ops.UNSHARD and under_views(src[0]).op not in _STATES:
            self._stored(u, built)
        elif u.op is Ops.AFTER:
            self.becomes[u] = self._place(u.src[0])
            self._states.append(built)
        elif self._apart and u.op not in NO_KERNEL and u.op is not Ops.STORE and \
                any([under_views(s) in self._apart for s in u.src]):
            self._stored(u, built)

    def _param(self, buffer: UOp) -> UOp:
        a = buffer.arg
        self._buffers.append(buffer)
        return UOp(Ops.PARAM, (), _param_arg(len(self._buffers) - 1, a.dtype, a.size, a.device))

    def _bound(self, u: UOp) -> UOp:
        var, val = u.unbind()
        if self.var_vals.setdefault(var.arg.name, val) != val:
            raise RuntimeError(f"bind mismatch on {var.arg.name!r}: {self.var_vals[var.arg.name]} and {val} in one "
                               "graph; realize what uses the one before building what uses the other")
        return var

    def _store_copies(self, src: Iterable[UOp]) -> None:
        """Give copies that are read storage; one that is only stored somewhere goes there at once."""
        for s in src:
            if s in self._copies:
                self._stored(s, self._new[s])

    def _stored(self, u: UOp, value: UOp) -> UOp:
        """``value``, the translation of ``u``, stored into a new buffer that ``u`` becomes."""
        self._copies.discard(u)
        self._new[u], self.becomes[u] = self._into_new(u, value)
        self._states.append(under_views(self._new[u]))
        return self._new[u]

    def _into_new(self, u: UOp, value: UOp) -> tuple[UOp, UOp]:
        """(``value`` stored into a new buffer of the shape of ``u``, that buffer)."""
        buffer = UOp.new_storage(u.shape, strong_dtype(u.dtype), u.device or Device.DEFAULT, stored_axis(u))
        base, views = _chain(buffer, lambda x: x.op is Ops.BUFFER)
        target = _over(self._param(base), views)
        return target.after(target.store(value)), buffer

    def _place(self, u: UOp) -> UOp:
        """The view ``u`` of a state of storage as that view of the storage itself."""
        base, views = _chain(u, lambda x: x in self.becomes or x.op not in VIEWS)
        return _over(self.becomes.get(base, base), views)


@lru_cache(maxsize=1024)
def _param_arg(slot: int, dtype: DType, size: int, device: Any) -> ParamArg:
    """The argument of a parameter; small programs ask for the same few again and again, each with its hash computed."""
    return ParamArg(slot, dtype, size, device=device)


def _chain(u: UOp, ends: Callable[[UOp], bool]) -> tuple[UOp, list[UOp]]:
    """The node that ``u`` is a chain of views of, and those views, innermost last."""
    views = []
    while not ends(u):
        views.append(u)
        u = u.src[0]
    return u, views


def _over(u: UOp, views: list[UOp]) -> UOp:
    """``u`` under ``views``, innermost last."""
    for view in reversed(views):
        u = UOp(view.op, (u, *view.src[1:]), view.arg)
    return u


def _is_param(u: UOp) -> bool:
    return u.op is Ops.PARAM and u.arg.addrspace is AddrSpace.GLOBAL


def _is_whole(u: UOp) -> bool:
    """Whether a value is a whole buffer in order, or will be."""
    while u.op is Ops.RESHAPE or u.op is Ops.UNSHARD:
        u = u.src[0]
    return _is_param(u) or (u.op is Ops.AFTER and u.src[0].has_buffer_identity())
