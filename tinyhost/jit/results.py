"""The results of a captured function: which memory a replay writes them to, and the tensors that show it.

Memory that a capture made for a result is written again only when no tensor, view or lazy graph of an earlier call is
left on it; otherwise the replay gets other memory. Tensors that the function left somewhere (an attribute) always show
the last call. What a result reads besides (inputs, state) is the storage of its call. Results are views of each other,
of arguments and of state where they were at capture, so writes to one show in the others.
"""
from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tinyhost._tensor.registry import live_tensors
from tinyhost._tensor.views import family_of, forget_exclusive, storage_of
from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of, from_buffer
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine.hazards import is_storage
from tinyhost.errors import JitError
from tinyhost.jit.leaves import Container, leaves, rebuilt
from tinyhost.ops import GroupOp, Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

_SPARE = 2  # buffers that wait to be used again: programs that feed a result back alternate between two
_VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST}


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
        followers = self._detached() if self._followers else ()
        self.buffer, node = self._next()
        used = self._used
        if used[-1][0] is self.buffer:
            used.pop()
        else:
            self._used = used = [pair for pair in used if pair[0] is not self.buffer][-_SPARE + 1:]
        used.append((self.buffer, weakref.ref(node)))
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


def outputs_of(results: Iterable[UOp], made: Iterable[UOp]) -> dict[UOp, Output]:
    """An Output for each BUFFER of ``made`` that a result shows or reads."""
    wanted, out = set(made), dict[UOp, Output]()
    for r in results:
        out.update({u: Output(u) for u in r.toposort() if u in wanted and u not in out and is_storage(u)})
    return out


# *** the tensors ***
@dataclass
class Shown:
    """One tensor of the result.

    Attributes:
        node: its graph, over what stood for inputs, outputs and variables at capture.
        argument: number of the argument it is.
        family: a number that tensors share which see each other's writes.
        made: whether it shows memory that each call makes.
        outside: the tensor it is, while that lives and stands there.
        moves: whether that tensor is from before the call, and the function lets it stand for this.
    """

    node: UOp
    argument: int | None = None
    family: int | None = None
    made: bool = False
    outside: weakref.ref[Tensor] | None = None
    moves: bool = False

    def __post_init__(self) -> None:
        self._place, self._views = _chain(self.node)

    def __reduce__(self) -> tuple[Any, ...]:
        return Shown, (self.node, self.argument, self.family, self.made)

    def over(self, now: dict[UOp, UOp]) -> UOp:
        """Its graph over the storage and the variables of a call."""
        if self._views is None:
            return self.node.substitute(now, walk=True)
        u = now.get(self._place, self._place)
        for op, src, arg, tag in self._views:
            u = UOp(op, (u, *src), arg, tag)
        return u


def _chain(node: UOp) -> tuple[UOp, list[tuple[Ops, tuple[UOp, ...], Any, Any]] | None]:
    """What a node shows and the views of it, innermost first; None where variables stand in these."""
    views, u = [], node
    while u.op in _VIEWS:
        views.append((u.op, u.src[1:], u.arg, u.tag))
        u = u.src[0]
    fixed = u.op is Ops.BUFFER and not any(s.op is Ops.AFTER for _, src, _, _ in views for r in src
                                           for s in r.toposort())
    return u, views[::-1] if fixed else None


@dataclass
class Result:
    """What a captured function returns: a value with numbers of ``tensors`` in the place of these.

    Attributes:
        anchors: for a family that does not end with the result, the number of an argument in it, or those tensors of
            state in it that lived at capture.
    """

    value: Any = None
    tensors: list[Shown] = field(default_factory=list)
    anchors: dict[int, int | list[weakref.ref[Tensor]]] = field(default_factory=dict)

    def moved(self, new: dict[UOp, UOp]) -> Result:
        """The same over other nodes."""
        return Result(self.value, [replace(s, node=s.node.substitute(new, walk=True)) for s in self.tensors],
                      self.anchors)

    def storage(self) -> list[Any]:
        """Owners of the memory of state that is shown."""
        return [buffer_of(node).base for s in self.tensors if not s.made and s.argument is None
                and (node := storage_of(s.node)) is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        # tensors outside stay behind
        return Result, (self.value, self.tensors, {n: a for n, a in self.anchors.items() if isinstance(a, int)})

    def tensors_over(self, now: dict[UOp, UOp], arguments: Sequence[tuple[str, Tensor]]) -> list[Tensor]:
        """The tensors of a call, over its storage and variables."""
        families: dict[int, Tensor] = {}
        out = []
        for s in self.tensors:
            t = _this(s, arguments)
            if t is not None and s.moves:
                t.uop, t._family = s.over(now), None
            if t is None:
                first = None if s.family is None else families.get(s.family)
                if first is None and self.anchors:
                    first = self._anchor(s, arguments)
                u = s.over(now)
                t = Tensor._unmarked(u) if first is None else first._view(u)
                if not s.made:
                    forget_exclusive(u)
            if s.family is not None:
                families.setdefault(s.family, t)
            out.append(t)
        return out

    def _anchor(self, s: Shown, arguments: Sequence[tuple[str, Tensor]]) -> Tensor | None:
        """A tensor outside that a result is a view of."""
        anchor = self.anchors.get(s.family) if s.family is not None else None
        if isinstance(anchor, int):
            return arguments[anchor][1]
        alive = [t for r in anchor or () if (t := r()) is not None and storage_of(t.uop) is storage_of(s.node)]
        return alive[0] if alive else None

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        """The value with these tensors in it."""
        if self.value.__class__ is int:
            return tensors[self.value]
        return rebuilt(self.value, lambda i: None if i is None else tensors[i])


def _this(s: Shown, arguments: Sequence[tuple[str, Tensor]]) -> Tensor | None:
    """The tensor that a result is, if it is none of its own."""
    if s.argument is not None:
        return arguments[s.argument][1]
    t = None if s.outside is None else s.outside()
    return t if t is not None and (s.moves or storage_of(t.uop) is storage_of(s.node)) else None


def result_tensors(ret: Any) -> list[Tensor]:
    """The tensors in what a function returned.

    Raises:
        JitError: it returned something else.
    """
    values = [v for _, v in leaves("return", ret) if not isinstance(v, Container)]
    wrong = sorted({type(v).__name__ for v in values if not isinstance(v, Tensor) and v is not None})
    if wrong:
        raise JitError(f"a captured function returns Tensors, containers of them or None, got {', '.join(wrong)}: a "
                       "Python value would be frozen at capture; return a Tensor and read it outside")
    return [v for v in values if isinstance(v, Tensor)]


def result_of(ret: Any, tensors: Sequence[Tensor], moved: Collection[int], arguments: Sequence[tuple[str, Tensor]],
              made: Collection[UOp]) -> Result:
    """What a function returned, and after it left.

    Args:
        ret: what it returned.
        tensors: those in it, and in front of them those from before that the function let stand for something else.
        moved: ids of the latter.
        arguments: (name, argument) of the call.
        made: storage that the capture made.
    """
    unique = list({id(t): t for t in tensors}.values())
    number = {id(t): i for i, t in enumerate(unique)}
    families: dict[int, int] = {}
    result = Result(rebuilt(ret, lambda t: None if t is None else number[id(t)]))
    for t in unique:
        family = None if t._family is None else families.setdefault(id(t._family), len(families))
        home = storage_of(t.uop)
        shown = Shown(t.uop, family=family, made=home in made)
        shown.argument = next((i for i, (_, a) in enumerate(arguments) if a is t), None)
        shown.moves = id(t) in moved
        if shown.moves or (shown.argument is None and home is not None and home not in made):
            shown.outside = weakref.ref(t)
        if family is not None and family not in result.anchors and home not in made:
            members = [m for m in family_of(t) if id(m) not in number]
            mine = [i for i, (_, a) in enumerate(arguments) if any(a is m for m in members)]
            result.anchors[family] = mine[0] if mine else [weakref.ref(m) for m in members]
        result.tensors.append(shown)
    return result
