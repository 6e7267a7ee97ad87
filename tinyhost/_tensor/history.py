"""Where realized values came from, so that gradients flow through a value that was realized, read or printed.

A value that depends on a parameter keeps its graph beside the buffer it was computed into, as long as that buffer lives
and nothing the graph reads has been overwritten: a gradient is that of the values of the time, or an error, never a
mixture.
Knows graphs only; realization tells it what was computed and what was written.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import RLock
from typing import Any, NamedTuple

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp


class _Origin(NamedTuple):
    """The graph of a realized value, the storage that it reads, and for a sharded value how its buffers are put
    together (over a PARAM for the BUFFER: the table must not keep its own keys alive)."""

    graph: UOp
    reads: frozenset[UOp]
    shards: UOp | None

    def value_in(self, buffer: UOp) -> UOp:
        """The flat storage, or the sharded value over it, that ``graph`` was computed into."""
        if self.shards is None:
            return buffer
        return self.shards.substitute({buffer.param_like(0): buffer}, walk=True)


_graphs: weakref.WeakKeyDictionary[UOp, _Origin] = weakref.WeakKeyDictionary()  # by BUFFER
_lock = RLock()


def remember(computed: Mapping[UOp, UOp], params: Collection[UOp], written: Collection[UOp]) -> None:
    """Keep the graphs of ``computed`` (graph -> view of its new buffer) that depend on ``params`` (BUFFERs) through
    differentiable ops and read nothing that was ``written`` meanwhile."""
    fresh = {u: view.base for u, view in computed.items()
             if u.op is not Ops.AFTER and view.unsharded_base.op is Ops.BUFFER}
    if not fresh or not (params or _graphs):
        return
    needed: dict[UOp, bool] = {}
    for u in UOp.sink(*fresh).toposort(enter_calls=False):
        if u.op is Ops.BUFFER:
            needed[u] = u in params or u in _graphs
        else:
            needed[u] = u.op is not Ops.DETACH and any(needed.get(s, False) for s in u.src)
    for u, value in fresh.items():
        if not needed[u]:
            continue
        reads = frozenset(b for b in u.toposort(enter_calls=False) if b.op is Ops.BUFFER)
        if reads.isdisjoint(written):
            buffer = value.unsharded_base
            shards = None if value is buffer else value.substitute({buffer: buffer.param_like(0)}, walk=True)
            with _lock:
                _graphs[buffer] = _Origin(u, reads, shards)


def forget(written: Iterable[UOp]) -> None:
    """Drop the graphs that read storage which now holds something else."""
    gone = frozenset(written)
    if not gone or not _graphs:
        return
    with _lock:
        for buffer, origin in list(_graphs.items()):
            if buffer in gone or not origin.reads.isdisjoint(gone):
                del _graphs[buffer]


def forget_made(made: Callable[[UOp], bool]) -> None:
    """Drop the graphs of values whose storage was ``made``."""
    with _lock:
        for buffer in [b for b in _graphs if made(b)]:
            del _graphs[buffer]


def clear() -> None:
    """Drop all graphs: gradients stop at realized values."""
    with _lock:
        _graphs.clear()


def is_empty() -> bool:
    """Whether no graph is kept."""
    return not _graphs


def readers_known() -> frozenset[UOp]:
    """All storage that some kept graph reads."""
    if not _graphs:
        return frozenset()
    with _lock:
        return frozenset().union(*(origin.reads for origin in _graphs.values()))


def unrealized(root: UOp, targets: Iterable[UOp] = ()) -> tuple[UOp, dict[UOp, UOp]]:
    """``root`` with realized values exchanged for the graphs they came from, and what undoes it in a graph over it.

    ``targets`` stay as they are with all below them: values that wait to be stored into them are of another time.
    """
    back: dict[UOp, UOp] = {}
    kept = {t: UOp.new_buffer("", 1, dtypes.uint8) for t in targets if t.op is Ops.AFTER} if _graphs else {}
    while True:
        root = root.substitute(kept, walk=True)
        below = root.toposort(enter_calls=False)
        found = {origin.value_in(b): origin.graph for b in below if (origin := _graphs.get(b)) is not None}
        known = {value: graph for value, graph in found.items() if value in below}
        if not known:
            return root.substitute({leaf: t for t, leaf in kept.items()}, walk=True), back
        back.update({graph: _seen_as(value, graph.shape) for value, graph in known.items()})
        root = root.substitute({value: _filling(graph, value) for value, graph in known.items()}, walk=True)


def _seen_as(value: UOp, shape: tuple[Any, ...]) -> UOp:
    """Storage as a value of a shape, without the padding of shards."""
    return value.only(value.arg[0], shape[value.arg[0]]) if value.op is Ops.UNSHARD else value.view_as(shape)


def _filling(graph: UOp, value: UOp) -> UOp:
    """A graph as what fills storage, with the padding of shards."""
    if value.op is Ops.UNSHARD:
        graph = graph.with_full_shards(value.arg[0], len(value.src[0].device or ()))
    return graph.reshape(value.shape)
