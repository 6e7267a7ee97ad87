"""Walks over a graph: topological order and what follows from it. All work on an explicit stack, at any depth."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.uop.fields import NodeFields

T = TypeVar("T")
_CALLS = frozenset({Ops.CALL, Ops.FUNCTION})


def _is_address_call(u: Any) -> bool:
    return u.op is Ops.CALL and isinstance(u.arg, DType)


class WalkMixin(NodeFields):
    """Nodes below a node, in order."""

    __slots__ = ()

    def toposort(self, gate: Callable[[Self], bool] | None = None, enter_calls: bool = True) -> dict[Self, None]:
        """Nodes below, sources first, left to right. A node whose gate is false is absent with what only it reaches."""
        out: dict[Self, None] = {}
        users: list[tuple[Any, Any]] = []  # nodes that wait, each with the rest of its sources
        node: Any = None
        rest = iter((self,))
        while True:
            for s in rest:
                if s in out or (gate is not None and not gate(s)):
                    continue
                src = s.src
                if not enter_calls and s.op in _CALLS and not _is_address_call(s):
                    src = src[1:]
                if src:
                    users.append((node, rest))
                    node, rest = s, iter(src)
                    break
                out[s] = None
            else:
                if node is None:
                    return out
                out[node] = None
                node, rest = users.pop()

    @property
    def backward_slice(self) -> dict[Self, None]:
        """Everything below this node, without it."""
        out = self.toposort()
        del out[self]
        return out

    @property
    def backward_slice_with_self(self) -> dict[Self, None]:
        """This node, then everything below it."""
        return {self: None, **self.backward_slice}

    def op_in_backward_slice_with_self(self, *ops: Ops) -> bool:
        """Whether any node from here down has one of ``ops``."""
        return any(u.op in ops for u in self.toposort())

    def topovisit(self, visitor: Callable[[Self], T], cache: dict[Self, T]) -> T:
        """``visitor`` over the nodes below, sources first, remembered in ``cache``."""
        for u in self.toposort(gate=lambda u: u not in cache):
            cache[u] = visitor(u)
        return cache[self]
