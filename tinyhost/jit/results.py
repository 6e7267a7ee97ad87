"""The results of a captured function: which memory a replay writes them to, and the tensors that show it.

Memory that a capture made for a result is written again only when no tensor, view or lazy graph of an earlier call is
left on it; otherwise the replay gets other memory. Tensors that the function left somewhere (a ``grad``, an attribute)
always show the last call. What a result reads besides (inputs, state) is the storage of its call.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from tinyhost._tensor.registry import live_tensors
from tinyhost._tensor.views import forget_exclusive
from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of, from_buffer
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine.hazards import is_storage
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

_SPARE = 2  # buffers that wait to be used again: programs that feed a result back alternate between two


class Output:
    """One piece of memory that the captured steps fill: the buffers that had this role, with the node tensors show.

    ``slot`` stands for the memory in result graphs. Nodes are held weakly: when the last graph over one is gone, its
    buffer may be written again.
    """

    def __init__(self, node: UOp) -> None:
        self.buffer: Buffer | MultiBuffer = buffer_of(node)
        self.slot = UOp.new_buffer(node.arg.device, node.arg.size, node.arg.dtype)
        self._used: list[tuple[Buffer | MultiBuffer, weakref.ref[UOp]]] = [(self.buffer, weakref.ref(node))]
        self._followers: list[weakref.ref[Tensor]] = []

    def follow(self, node: UOp, results: set[int]) -> None:
        """Let live tensors over ``node`` that are no ``results`` show what later calls write."""
        self._followers = [weakref.ref(t) for t in live_tensors() if id(t) not in results and node in t.uop.toposort()]

    def renew(self) -> UOp:
        """The node for the results of the next call; ``buffer`` is what it shows."""
        followers = self._detached()
        self.buffer, node = self._next()
        self._used = [(b, r) for b, r in self._used if b is not self.buffer][-_SPARE + 1:]
        self._used.append((self.buffer, weakref.ref(node)))
        for t in followers:
            t.uop = t.uop.substitute({self.slot: node}, walk=True)
        return node

    def _detached(self) -> list[Tensor]:
        """Tensors that follow, put over the slot meanwhile so that they hold no memory."""
        last = self._used[-1][1]()
        if last is None:
            return []
        alive = [t for r in self._followers if (t := r()) is not None]
        for t in alive:
            t.uop = t.uop.substitute({last: self.slot}, walk=True)
        return alive

    def _next(self) -> tuple[Buffer | MultiBuffer, UOp]:
        for buffer, node in self._used:
            if node() is None:
                return buffer, from_buffer(buffer)
        fresh = UOp.new_buffer(self.slot.arg.device, self.slot.arg.size, self.slot.arg.dtype)
        return buffer_of(fresh), fresh


def outputs_of(results: Iterable[Any], made: Iterable[UOp]) -> dict[UOp, Output]:
    """An Output for each BUFFER of ``made`` that a result (a node) shows or reads."""
    wanted, out = set(made), dict[UOp, Output]()
    for r in results:
        if isinstance(r, UOp):
            out.update({u: Output(u) for u in r.toposort() if u in wanted and u not in out and is_storage(u)})
    return out


def result_tensor(node: Any, now: dict[UOp, UOp]) -> Any:
    """A new tensor for a node of the result, over the storage and the variables of a call."""
    if not isinstance(node, UOp):
        return node
    t = Tensor._wrap(node.substitute(now, walk=True))
    forget_exclusive(t.uop)
    return t
