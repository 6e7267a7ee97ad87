"""Lanes: a value on several devices as one node a device, and how parts of it move between them.

A value is whole on each device (``axis`` None), or split along an axis: lane i holds the elements ``spans[i]`` of it.
Spans do not overlap and come in any order and length; a lane with nothing has no node. What no lane holds is padding:
False, or any number. Nodes of different lanes only meet through COPY, which is how this module spells every transfer.
Graphs only.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tinyhost.helpers import ceildiv
from tinyhost.uop import AxisType, Ops, UOp

Span: TypeAlias = tuple[int, int]  # first element, and the one after the last


@dataclass(frozen=True)
class Lanes:
    """One node for each of ``devices``."""

    devices: tuple[str, ...]
    nodes: tuple[UOp | None, ...]
    axis: int | None = None
    spans: tuple[Span, ...] = ()
    extent: int = 0  # elements along the axis

    def node(self, i: int) -> UOp:
        """What lane ``i`` holds."""
        node = self.nodes[i]
        assert node is not None, f"lane {i} holds nothing"
        return node

    def filled(self) -> list[int]:
        """Lanes that hold something."""
        return [i for i, n in enumerate(self.nodes) if n is not None]

    def is_even(self) -> bool:
        """Whether the value is split in equal shards, in the order of the devices; the last ones may be shorter."""
        return self.axis is not None and self.spans == shard_spans(self.extent, len(self.devices))

    def split(self, axis: int, spans: tuple[Span, ...], extent: int,
              nodes: Sequence[UOp | None] | None = None) -> Lanes:
        """Lanes on the same devices, split otherwise."""
        return Lanes(self.devices, self.nodes if nodes is None else tuple(nodes), axis, spans, extent)


def shard_spans(extent: int, count: int) -> tuple[Span, ...]:
    """The spans of equal shards; where the extent does not divide, the last ones are shorter or hold nothing."""
    each = ceildiv(extent, count)
    spans = [(min(i * each, extent), min((i + 1) * each, extent)) for i in range(count)]
    return tuple((a, b) if a < b else (0, 0) for a, b in spans)


# *** pieces of nodes ***
def on_lane(node: UOp, i: int) -> UOp:
    """A node as lane ``i`` sees it: ranges over devices are the number of the lane."""
    if not node.ranges:
        return node
    own = {r: UOp(Ops.CONST, (), i) for r in node.ranges if r.arg[-1] is AxisType.DEVICE}
    return node.substitute(own, walk=True).simplify() if own else node


def cut(node: UOp, axis: int, span: Span) -> UOp:
    """The elements ``span`` along ``axis``."""
    shape = node.shape
    if span == (0, shape[axis]):
        return node
    if node.op is Ops.PAD and _misses(span, node.marg[axis][0], node.src[0].shape[axis]):
        return _padding(node, axis, span[1] - span[0])
    return node._mop(Ops.SHRINK, tuple((span[0], span[1] - span[0]) if a == axis else (0, d)
                                       for a, d in enumerate(shape)))


def _misses(span: Span, first: object, count: object) -> bool:
    """Whether ``count`` elements from ``first`` on lie outside of a span."""
    return isinstance(first, int) and isinstance(count, int) and (span[1] <= first or first + count <= span[0])


def joined(pieces: Sequence[UOp], axis: int) -> UOp:
    """``pieces`` one after the other along ``axis``."""
    return pieces[0] if len(pieces) == 1 else pieces[0].cat(*pieces[1:], dim=axis)


def moved(node: UOp, device: str) -> UOp:
    """The value on ``device``."""
    return node if node.device in (None, device) else UOp(Ops.COPY, (node,), device)


# *** parts of values ***
def part(value: Lanes, device: str, axis: int, span: Span) -> UOp:
    """The elements ``span`` along ``axis``, on ``device``: from its own lane where that holds them, else copied."""
    own = value.devices.index(device) if device in value.devices else None
    if value.axis is None:
        return moved(cut(value.node(own or 0), axis, span), device)
    if axis == value.axis and own is not None and value.spans[own] == span:
        return value.node(own)
    low, high = span if axis == value.axis else (0, value.extent)

    def narrow(piece: UOp) -> UOp:
        return piece if axis == value.axis else cut(piece, axis, span)
    pieces, at = [], low
    like = value.node(value.filled()[0])
    for i in sorted(value.filled(), key=lambda i: value.spans[i]):
        first = value.spans[i][0]
        start, stop = max(low, first), min(high, value.spans[i][1])
        if start < stop:
            if start > at:
                pieces.append(narrow(_padding(like, value.axis, start - at)))
            pieces.append(moved(narrow(cut(value.node(i), value.axis, (start - first, stop - first))), device))
            at = stop
    if at < high:
        pieces.append(narrow(_padding(like, value.axis, high - at)))
    return joined(pieces, value.axis)


def _padding(like: UOp, axis: int, count: int) -> UOp:
    """``count`` elements of padding along ``axis``."""
    shape = tuple(count if a == axis else d for a, d in enumerate(like.shape))
    return UOp.const(0, like.dtype).expand(shape)


def whole(value: Lanes, device: str) -> UOp:
    """All of the value, on ``device``."""
    if value.axis is None:
        own = value.devices.index(device) if device in value.devices else 0
        return moved(value.node(own), device)
    return part(value, device, value.axis, (0, value.extent))


def covered(value: Lanes) -> Lanes:
    """The value with its padding in the lanes: in equal shards if the axis divides, else at the ends of shards."""
    if value.axis is None or sum(b - a for a, b in value.spans) == value.extent:
        return value
    count = len(value.devices)
    spans = _stretched(value) if value.extent % count else shard_spans(value.extent, count)
    nodes = [None if a == b else part(value, d, value.axis, (a, b)) for (a, b), d in zip(spans, value.devices)]
    return value.split(value.axis, spans, value.extent, nodes)


def _stretched(value: Lanes) -> tuple[Span, ...]:
    """The spans of lanes, each up to the next one, the first and the last to the ends."""
    order = sorted(value.filled(), key=lambda i: value.spans[i])
    spans = [(0, 0)] * len(value.devices)
    starts = [0, *(value.spans[i][0] for i in order[1:]), value.extent]
    for i, start, stop in zip(order, starts, starts[1:]):
        spans[i] = start, stop
    return tuple(spans)


def everywhere(value: Lanes) -> Lanes:
    """The value whole on each of its devices."""
    if value.axis is None:
        return value
    return Lanes(value.devices, tuple(whole(value, d) for d in value.devices))
