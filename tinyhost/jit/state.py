"""State that a captured function uses: tensors that live outside of it, and gradients that it leaves at them.

A replay knows storage and numbers, the function knows tensors. So what a function puts in the place of state is written
into the state's storage, where a replay finds it; and a capture is current only as long as tensors still stand where
they stood, and gradients are as it found them. What cannot be carried over is an error at capture.
"""
from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from tinyhost._tensor.registry import lazy_tensors, live_tensors, watch
from tinyhost._tensor.views import root_of, storage_of
from tinyhost.device.buffer import buffer_of, has_storage
from tinyhost.engine.capture import Capture, Fresh
from tinyhost.errors import JitError
from tinyhost.realization import realize, root_state
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.leaf import is_leaf
from tinyhost.uop.sharding import stored_axis

ANY = object()  # a gradient, or a graph, that does not matter
# (tensor, the gradient it must have before a replay or ANY, the one that it has after it)
Grads: TypeAlias = "list[tuple[weakref.ref[Tensor], Any, Any]]"
# (tensor, what it must stand for before a replay or ANY)
Needs: TypeAlias = "list[tuple[weakref.ref[Tensor], Any]]"


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


class Used:
    """What recorded steps use of what was there before: storage and leaves."""

    def __init__(self, capture: Capture) -> None:
        self.bases = {id(p.base) for ran, _ in capture.items for p in ran.held if not isinstance(p, Fresh)}
        self.leaves = capture.leaves

    def __contains__(self, node: UOp) -> bool:
        return node in self.leaves if is_leaf(node) else id(_base(node)) in self.bases


class Before:
    """Tensors as they were when a capture began.

    Attributes:
        roots: the graphs of lazy tensors, as they are computed.
    """

    def __init__(self, arguments: Iterable[Any]) -> None:
        self._grads: dict[int, tuple[Tensor, Tensor]] = {}
        self._graphs: dict[int, tuple[weakref.ref[Tensor], UOp]] = {}
        for t in live_tensors():
            self._graphs[id(t)] = weakref.ref(t), t.uop
            if t.grad is not None:
                self._grads[id(t)] = t, t.grad
        self._lazy = {id(t): root_state(t) for t, u in lazy_tensors() if u.device is not None and id(t) in self._graphs}
        self.roots: dict[UOp, None] = dict.fromkeys(self._lazy.values())
        self._arguments = {id(b.base) for b in arguments}

    def _stood(self, i: int, capture: Capture) -> UOp:
        """The graph of tensor ``i`` as the function found it, over what that was computed into since."""
        _, uop = self._graphs[i]
        root = self._lazy.get(i)
        done = None if root is None else capture.early.get(root)
        return uop if root is None or done is None else uop.substitute({root: done}, walk=True)

    def carry(self, capture: Capture, mine: Collection[Tensor]) -> None:
        """Write what the function put in the place of state into the storage of the state, while recording.

        ``mine`` are the tensors that it made or gave another node.

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
        for t in mine:
            if id(t) in self._graphs and self._graphs[id(t)][0]() is t:
                uop = self._stood(id(t), capture)
                if _is_replaced(uop, t, used):
                    _put_back(t, uop, Tensor._wrap(t.uop))
                    back.append(t)
        realize(*back)

    def check_dropped(self, capture: Capture) -> None:
        """Demand that the state which recorded steps use is still state.

        Raises:
            JitError: no tensor is left that shows it.
        """
        used = Used(capture)
        held: dict[UOp, bool] = {}  # what tensors stood on -> whether one of them lives
        for i, (ref, uop) in self._graphs.items():
            root = self._lazy.get(i)
            node = _home(uop) if root is None else root if root in capture.early else None
            if node is None or (root is None and (node not in used or self._is_argument(node))):
                continue
            held[node] = held.get(node, False) or ref() is not None
        now = {_home(t.uop) for t in live_tensors()}
        if gone := [node for node, alive in held.items() if not alive and node not in now]:
            raise JitError(f"state of shape {gone[0].shape} that the captured function reads was dropped by it, so the "
                           "next call would read something else: write state in place with assign(), or return it and "
                           "pass it as an argument")

    def _is_argument(self, node: UOp) -> bool:
        return node.op is Ops.BUFFER and id(_base(node)) in self._arguments

    def moved(self, capture: Capture, mine: Collection[Tensor]) -> list[tuple[Tensor, Any]]:
        """Tensors from before that the function let stand for something else, which nothing was carried over from, with
        what they must stand for before a replay."""
        used, out = Used(capture), []
        for t in mine:
            if id(t) not in self._graphs or self._graphs[id(t)][0]() is not t:
                continue
            uop = self._stood(id(t), capture)
            home = _home(uop)
            if t.uop is not uop and (home is None or _home(t.uop) is not home):
                out.append((t, uop if home is not None and is_leaf(home) and home in used else ANY))
        return out

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


def _kind(t: Tensor) -> Any:
    return t.shape, t.dtype, t.device, stored_axis(t.uop)


class State:
    """Tensors over what a capture uses, and the gradients and graphs that it expects and leaves."""

    def __init__(self, used: Collection[Any], leaves: Collection[UOp], grads: Grads, needs: Needs) -> None:
        self.grads, self._needs = grads, needs
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
        """Whether there are gradients where a replay needs some, and none where it needs none; and tensors are as it
        needs them."""
        for ref, need, _ in self.grads:
            if need is not ANY and (t := ref()) is not None and t.grad is not need:
                if t.grad is None or need is None or _kind(t.grad) != _kind(need):
                    return False
        return not self._needs or all([t.uop is need for r, need in self._needs if (t := r()) is not None])

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
