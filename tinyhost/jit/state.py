"""State that a captured function uses: tensors that live outside of it, and gradients that it leaves at them.

A replay knows storage, the function knows tensors. So what a function puts in the place of state is written into the
state's storage, where a replay finds it; and a capture is current only as long as tensors still show the storage it
uses, and gradients are as it found them. What cannot be carried over is an error at capture.
"""
from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from tinyhost._tensor.registry import lazy_tensors, live_tensors, watch
from tinyhost._tensor.views import storage_of
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.engine.capture import Capture, Fresh
from tinyhost.errors import JitError
from tinyhost.realization import realize, root_state
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.sharding import stored_axis

ANY = object()  # a gradient that does not matter
# (tensor, the gradient it must have before a replay or ANY, the one that it has after it)
Grads: TypeAlias = "list[tuple[weakref.ref[Tensor], Any, Any]]"


def _base(node: UOp) -> Any:
    return buffer_of(node).base


def _home(uop: UOp) -> UOp | None:
    """The BUFFER that a tensor shows, if it has content."""
    node = storage_of(uop)
    return node if node is not None and node.op is Ops.BUFFER and has_storage(node) else None


class Before:
    """Tensors as they were when a capture began."""

    def __init__(self, arguments: Iterable[Any]) -> None:
        live = live_tensors()
        self._shown = [(weakref.ref(t), t.uop, node) for t in live if (node := _home(t.uop)) is not None]
        self._lazy = [(weakref.ref(t), u, root_state(t)) for t, u in lazy_tensors() if u.device is not None]
        self.roots: dict[UOp, None] = dict.fromkeys([root for _, _, root in self._lazy])
        self._grads = {id(t): (t, t.grad) for t in live if t.grad is not None}
        self._arguments = {id(b.base) for b in arguments}

    def carry(self, capture: Capture, mine: Collection[Tensor]) -> None:
        """Write what the function put in the place of state into the storage of the state, while recording.

        ``mine`` are the tensors that it made or gave another node.

        Raises:
            JitError: it does not fit there.
        """
        used, ids = _used(capture), {id(t) for t in mine}
        back: list[Tensor] = []
        for t, grad in self._grads.values():
            if t.grad is not grad and id(t.grad) in ids and _carried(grad.uop, t.grad, used):
                _put_back(grad, grad.uop, t.grad)
                t.grad = grad
                back.append(grad)
        used |= self._arguments
        stood = [(ref, uop) for ref, uop, _ in self._shown]
        stood += [(ref, uop.substitute({root: capture.early[root]}, walk=True)) for ref, uop, root in self._lazy
                  if root in capture.early]
        for ref, uop in stood:
            state = ref()
            if state is not None and id(state) in ids and _carried(uop, state, used):
                _put_back(state, uop, Tensor._wrap(state.uop))
                back.append(state)
        realize(*back)

    def check_dropped(self, capture: Capture) -> None:
        """Demand that the state which recorded steps use is still state.

        Raises:
            JitError: no tensor is left that shows it.
        """
        used = _used(capture)
        held: dict[Any, bool] = {}  # storage or graph -> whether a tensor that showed it lives
        for ref, _, node in self._shown:
            if id(base := _base(node)) in used and id(base) not in self._arguments:
                held[node] = held.get(node, False) or ref() is not None
        for ref, _, root in self._lazy:
            if root in capture.early:
                held[root] = held.get(root, False) or ref() is not None
        now = {storage_of(t.uop) for t in live_tensors()}
        if gone := [node for node, alive in held.items() if not alive and node not in now]:
            raise JitError(f"state of shape {gone[0].shape} that the captured function reads was dropped by it, so the "
                           "next call would read something else: write state in place with assign(), or return it and "
                           "pass it as an argument")

    def changed_grads(self, capture: Capture, mine: Collection[Tensor]) -> Grads:
        """The gradients that recorded steps read, and those that the function exchanged for one of ``mine``, or took
        from a tensor that it uses."""
        used, ids = _used(capture), {id(t) for t in mine}
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


def _used(capture: Capture) -> set[int]:
    """Owners of memory that had content before, by id, which recorded steps read or write."""
    return {id(p.base) for bound, _ in capture.items for p in bound.held if not isinstance(p, Fresh)}


def _is_used(uop: UOp, used: set[int]) -> bool:
    """Whether steps use the storage that a tensor shows."""
    node = _home(uop)
    return node is not None and id(_base(node)) in used


def _carried(old: UOp, now: Tensor, used: set[int]) -> bool:
    """Whether a tensor that showed storage shows another value now, and the old one was read or will be."""
    node = _home(old)
    if node is None or storage_of(now.uop) is node:
        return False
    return id(_base(node)) in used or node in now.uop.toposort()


def _put_back(t: Tensor, uop: UOp, new: Tensor) -> None:
    """Let a tensor stand where it stood, and write ``new`` there."""
    if (new.shape, new.dtype, new.device) != (uop.shape, uop.dtype, uop.device):
        raise JitError(f"state of shape {uop.shape}, {uop.dtype} on {uop.device} was replaced by one of shape "
                       f"{new.shape}, {new.dtype} on {new.device} inside a captured function: write it in place with "
                       "assign(), or call reset() after such a change outside")
    t.uop = uop
    t.assign(new)


def _kind(t: Tensor) -> Any:
    return t.shape, t.dtype, t.device, stored_axis(t.uop)


class State:
    """Tensors over the storage that a capture uses, and the gradients it expects and leaves."""

    def __init__(self, used: Iterable[Any], grads: Grads) -> None:
        self.grads = grads
        self._homes: dict[UOp, list[weakref.ref[Tensor]]] = {}
        self._moved = False
        bases = {id(b) for b in used}
        for t in live_tensors():
            node = _home(t.uop)
            if node is not None and id(_base(node)) in bases:
                self._homes.setdefault(node, []).append(weakref.ref(t))
                watch(t, self._note)

    def _note(self) -> None:
        self._moved = True

    def is_current(self) -> bool:
        """Whether tensors still show the storage that they showed."""
        if not self._moved:
            return True
        self._moved = False
        for node, refs in self._homes.items():
            alive = [t for r in refs if (t := r()) is not None]
            if not alive or any([storage_of(t.uop) is not node for t in alive]):
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
        """Put the gradients where a replay reads them."""
        for ref, need, _ in self.grads:
            if need is not ANY and (t := ref()) is not None and t.grad is not need:
                need.assign(t.grad)
                t.grad = need.realize()

    def leave(self) -> None:
        """Put the gradients where the function leaves them."""
        for ref, _, after in self.grads:
            if (t := ref()) is not None and t.grad is not after:
                t.grad = after
