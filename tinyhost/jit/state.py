"""State that a captured function uses: tensors that live outside of it, and gradients that it leaves at them.

A replay knows storage and numbers, the function knows tensors. So what a function puts in the place of state is written
into the state's storage, where a replay finds it; and a capture is current only as long as tensors still stand where
they stood, and gradients are as it found them. What cannot be carried over is an error at capture.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Collection, Iterable
from threading import get_ident
from typing import Any, TypeAlias

from tinyhost._tensor.core import canonical_device, store_in_new_buffer
from tinyhost._tensor.registry import is_mine, lazy_tensors, live_tensors, watch
from tinyhost._tensor.views import root_of, storage_of
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.engine.capture import Capture, Fresh, recorder
from tinyhost.engine.hazards import under_views
from tinyhost.errors import JitError
from tinyhost.realization import realize, root_state
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.leaf import is_leaf
from tinyhost.uop.sharding import stored_axis

ANY = object()  # a gradient that does not matter
# (tensor, the gradient it must have before a replay or ANY, the one that it has after it)
Grads: TypeAlias = "list[tuple[weakref.ref[Tensor], Any, Any]]"

Carried: TypeAlias = "list[tuple[weakref.ref[Tensor], UOp | None]]"  # state that was exchanged, and its storage


def _base(node: UOp) -> Any:
    return buffer_of(node).base


def _home(uop: UOp) -> UOp | None:
    """What a tensor stands on: a BUFFER that has content, or a leaf, which is a value of its own; None: neither."""
    node = storage_of(uop)
    if node is not None:
        return node if node.op is Ops.BUFFER and has_storage(node) else None
    while uop.op is not Ops.AFTER:
        if is_leaf(uop):
            return uop
        if uop is root_of(uop) or not uop.src:
            return None
        uop = uop.src[0]
    return None


def _rebuilt(lazy: list[tuple[Tensor, UOp]], tags: dict[UOp, Any]) -> None:
    """Exchange the tags of nodes in the graphs of tensors."""
    new: dict[UOp, UOp] = {}
    for n in UOp.sink(*[u for _, u in lazy]).toposort(enter_calls=False):
        src = tuple([new.get(s, s) for s in n.src])
        if src != n.src or n in tags:
            new[n] = made = UOp(n.op, src, n.arg, tags.get(n, n.tag))
            made._line_ = n._line_
    for t, u in lazy:
        if u in new and t.uop is u:
            t.uop = new[u]


def _set_apart() -> None:
    """Give values that wait outside of a capture a tag each.

    Equal graphs are one node: what the function computes anew must not be taken for a value that was there before.
    """
    lazy = [(t, u) for t, u in lazy_tensors() if u.device is not None and is_mine(t)]
    values = {base for _, u in lazy if (base := under_views(u)).op is not Ops.AFTER and base.tag is None}
    _rebuilt(lazy, {u: ("outside", i) for i, u in enumerate(values)})


def _join_again() -> None:
    """Take the tags of values that still wait."""
    lazy = [(t, u) for t, u in lazy_tensors() if is_mine(t)]
    below = UOp.sink(*[u for _, u in lazy]).toposort(enter_calls=False)
    if tagged := {n: None for n in below if n.tag.__class__ is tuple and n.tag[0] == "outside"}:
        _rebuilt(lazy, tagged)


class Used:
    """What recorded steps use of what was there before: storage and leaves."""

    def __init__(self, capture: Capture) -> None:
        self.bases = {id(p.base) for ran, _ in capture.items for p in ran.held if not isinstance(p, Fresh)}
        self.leaves = capture.leaves

    def __contains__(self, node: UOp) -> bool:
        return node in self.leaves if is_leaf(node) else id(_base(node)) in self.bases


def _note_death(died: dict[int, int], i: int, _: Any) -> None:
    died[i] = get_ident()


class Before:
    """Tensors as they were when a capture began.

    Attributes:
        roots: the graphs of lazy tensors, as they are computed.
    """

    def __init__(self, arguments: Iterable[Any]) -> None:
        self._grads: dict[int, tuple[Tensor, Tensor]] = {}
        self._graphs: dict[int, tuple[weakref.ref[Tensor], UOp]] = {}
        _set_apart()
        self._died: dict[int, int] = {}  # tensor -> the thread that dropped it last
        for t in live_tensors():
            self._graphs[id(t)] = weakref.ref(t, functools.partial(_note_death, self._died, id(t))), t.uop
            if t.grad is not None:
                self._grads[id(t)] = t, t.grad
        self._lazy = {id(t): root_state(t) for t, u in lazy_tensors() if u.device is not None and id(t) in self._graphs}
        self.roots: dict[UOp, None] = dict.fromkeys(self._lazy.values())
        self._arguments = {id(b.base) for b in arguments}
        self.carried: Carried = []

    def done(self) -> None:
        """The capture is over."""
        _join_again()

    def _stood(self, i: int, capture: Capture) -> UOp:
        """The graph of tensor ``i`` as the function found it, over what that was computed into since."""
        _, uop = self._graphs[i]
        root = self._lazy.get(i)
        done = None if root is None else capture.computed.get(root)
        return uop if root is None or done is None else uop.substitute({root: done}, walk=True)

    def carry(self, capture: Capture, mine: Collection[Tensor], ran: bool) -> None:
        """Write what the function put in the place of state into the storage of the state, while recording.

        ``mine`` are the tensors that it made or gave another node; ``ran`` is whether all that it did was computed.

        Raises:
            JitError: it does not fit there.
        """
        used = Used(capture)
        ids = {id(t) for t in mine}
        back: list[Tensor] = []
        for t, grad in self._grads.values():
            if t.grad is not grad and id(t.grad) in ids and _is_replaced(grad.uop, t.grad, used):
                _put_back(grad, grad.uop, t.grad)
                t.grad = grad
                back.append(grad)
        used.bases |= self._arguments
        for t in self._mine(mine):
            uop = self._stood(id(t), capture)
            if not _is_replaced(uop, t, used) or (not ran and others_on(t, _home(uop), ids)):
                continue
            if ran:
                with recorder.paused():
                    set_apart_from(t, _home(uop), ids)
            _put_back(t, uop, Tensor._wrap(t.uop))
            back.append(t)
            self.carried.append((weakref.ref(t), _home(uop)))
        realize(*back)

    def check_dropped(self, capture: Capture) -> None:
        """Demand that the state which recorded steps use is still state.

        Raises:
            JitError: no tensor is left that shows it.
        """
        used, me = Used(capture), get_ident()
        held: dict[UOp, bool] = {}  # what tensors stood on -> whether one of them lives, or another thread had it too
        for i, (_, uop) in self._graphs.items():
            root = self._lazy.get(i)
            if root is None:
                node = _home(uop)
                if node is None or node not in used or self._is_argument(node):
                    continue
            elif root not in capture.early or (node := _home(self._stood(i, capture))) is None:
                continue
            held[node] = held.get(node, False) or self._died.get(i, 0) != me
        now = {_home(t.uop) for t in live_tensors()}
        if gone := [node for node, alive in held.items() if not alive and node not in now]:
            raise JitError(f"state of shape {gone[0].shape} that the captured function reads was dropped by it, so the "
                           "next call would read something else: write state in place with assign(), or return it and "
                           "pass it as an argument")

    def _is_argument(self, node: UOp) -> bool:
        return node.op is Ops.BUFFER and id(_base(node)) in self._arguments

    def _mine(self, mine: Collection[Tensor]) -> list[Tensor]:
        """Those of the tensors that were there before."""
        return [t for t in mine if id(t) in self._graphs and self._graphs[id(t)][0]() is t]

    def is_settled(self, capture: Capture, mine: Collection[Tensor]) -> bool:
        """Whether the state that the function exchanged had storage before, as it has from now on."""
        return not [t for t in self._mine(mine) if t.uop is not self._stood(id(t), capture)
                    and ((home := _home(self._graphs[id(t)][1])) is None or is_leaf(home))]

    def moved(self, capture: Capture, mine: Collection[Tensor]) -> list[Tensor]:
        """Tensors from before that the function let stand for something else without reading what was there."""
        return [t for t in self._mine(mine) if t.uop is not (uop := self._stood(id(t), capture))
                and _home(t.uop) is not _home(uop)]

    def changed_grads(self, capture: Capture, mine: Collection[Tensor]) -> Grads:
        """The gradients that recorded steps read, and those that the function exchanged for one of ``mine``, or took
        from a tensor that it uses."""
        used, ids = Used(capture), {id(t) for t in mine}
        out: Grads = []
        for t in live_tensors():
            _, before = self._grads.get(id(t), (t, None))
            reads = before is not None and _is_used(before.uop, used)
            if t.grad is before:
                changed = reads
            else:
                changed = id(t.grad) in ids or (t.grad is None and _is_used(t.uop, used))
            if changed:
                out.append((weakref.ref(t), before if reads or before is None else ANY, t.grad))
        return out


def _is_used(uop: UOp, used: Used) -> bool:
    """Whether steps use what a tensor stands on."""
    node = _home(uop)
    return node is not None and node in used


def _is_replaced(old: UOp, now: Tensor, used: Used) -> bool:
    """Whether a tensor that showed storage stands on something else now, and the old was read or will be."""
    node = _home(old)
    if node is None or node.op is not Ops.BUFFER or is_leaf(node) or _home(now.uop) is node:
        return False
    return node in used or node in now.uop.toposort()


def _put_back(t: Tensor, uop: UOp, new: Tensor) -> None:
    """Let a tensor stand where it stood, and write ``new`` there."""
    if (new.shape, new.dtype, new.device) != (uop.shape, uop.dtype, uop.device):
        raise JitError(f"state of shape {uop.shape}, {uop.dtype} on {uop.device} was replaced by one of shape "
                       f"{new.shape}, {new.dtype} on {new.device} inside a captured function: write it in place with "
                       "assign(), or call reset() after such a change outside")
    t.uop = uop
    t.assign(new)


def others_on(t: Tensor, node: UOp | None, apart: Collection[int] = ()) -> list[Tensor]:
    """Tensors other than the state ``t`` that show its storage, but for those with the ids ``apart``."""
    return [o for o in live_tensors() if o is not t and id(o) not in apart and storage_of(o.uop) is node]


def set_apart_from(t: Tensor, node: UOp | None, apart: Collection[int] = ()) -> None:
    """Give tensors that show the storage of ``t`` a copy of it: ``t`` will stand for another value, they will not."""
    copies: dict[UOp, UOp] = {}
    others = others_on(t, node, apart)
    for o in others:
        root = root_of(o.uop)
        if root not in copies:
            copies[root] = store_in_new_buffer(root, canonical_device(root.device))
        o.uop = o.uop.substitute({root: copies[root]}, walk=True)
    realize(*others)


def _kind(t: Tensor) -> Any:
    return t.shape, t.dtype, t.device, stored_axis(t.uop)


class State:
    """Tensors over what a capture uses, and the gradients that it expects and leaves."""

    def __init__(self, used: Collection[Any], leaves: Collection[UOp], grads: Grads, carried: Carried) -> None:
        self.grads, self._carried = grads, carried
        self._homes: dict[UOp, list[weakref.ref[Tensor]]] = {}
        self._moved = False
        bases = {id(b) for b in used}
        for t in live_tensors():
            node = _home(t.uop)
            if node is not None and (node in leaves if is_leaf(node) else id(_base(node)) in bases):
                self._homes.setdefault(node, []).append(weakref.ref(t))
                watch(t, self._note)

    def _note(self) -> None:
        self._moved = True

    def is_current(self) -> bool:
        """Whether tensors still stand where they stood."""
        if not self._moved:
            return True
        self._moved = False
        for node, refs in self._homes.items():
            alive = [t for r in refs if (t := r()) is not None]
            if not alive or any([_home(t.uop) is not node for t in alive]):
                return False
        return True

    def fits(self) -> bool:
        """Whether there are gradients where a replay needs some, and none where it needs none."""
        for ref, need, _ in self.grads:
            if need is not ANY and (t := ref()) is not None and t.grad is not need:
                if t.grad is None or need is None or _kind(t.grad) != _kind(need):
                    return False
        return True

    def bring(self) -> None:
        """Put the gradients where a replay reads them, and what shows exchanged state out of its way."""
        for ref, node in self._carried:
            if (t := ref()) is not None:
                set_apart_from(t, node)
        for ref, need, _ in self.grads:
            if need is not ANY and (t := ref()) is not None and t.grad is not need:
                need.assign(t.grad)
                t.grad = need.realize()

    def leave(self) -> None:
        """Put the gradients where the function leaves them."""
        for ref, _, after in self.grads:
            if (t := ref()) is not None and t.grad is not after:
                t.grad = after
