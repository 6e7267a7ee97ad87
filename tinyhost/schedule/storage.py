"""Storage under a value: which buffer a chain of views stands on, in which state, and whether the view is one block.

Takes places: chains of movement ops, BITCAST and AFTER over a storage node (PARAM, BUFFER, or a value that gets
storage: CONTIGUOUS, COPY). Gives the storage node, the state (the outermost AFTER, else the storage itself) and the
byte range of contiguous views. Looks at structure only; index expressions are in ``indexing.py``.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhost.dtype import DType
from tinyhost.helpers import prod
from tinyhost.schedule.indexing import Shape, is_static, row_major
from tinyhost.uop import AddrSpace, GroupOp, Ops, UOp

LEAVES = frozenset({Ops.PARAM, Ops.BUFFER, Ops.CONTIGUOUS, Ops.COPY})
_LINKS = GroupOp.Movement | {Ops.AFTER, Ops.BITCAST}


@dataclass(frozen=True)
class Region:
    """A contiguous view: ``size`` elements of ``dtype`` from byte ``start`` of storage in a state."""

    root: UOp
    state: UOp
    start: int
    size: int
    dtype: DType

    @property
    def whole(self) -> bool:
        """Whether the region is all of the storage at its own dtype."""
        return self.start == 0 and self.dtype is self.root.dtype and self.size == self.root.max_numel()


def storage_root(place: UOp) -> UOp:
    """What a chain of views and states stands on; any node, storage or not."""
    while place.op in _LINKS:
        place = place.src[0]
    return place


def state_of(place: UOp) -> UOp:
    """The state a place is read in: its outermost AFTER, else the storage itself."""
    while place.op in _LINKS and place.op is not Ops.AFTER:
        place = place.src[0]
    return place


def is_storage(u: UOp) -> bool:
    """Whether a node has bytes of its own (scalars in ALU space have none)."""
    return u.op in LEAVES and not (u.op in GroupOp.Defines and u.arg.addrspace is AddrSpace.ALU)


def region_of(place: UOp) -> Region | None:
    """The byte range of ``place``, None when it is not one contiguous block in row-major order."""
    chain, u = [], place
    while u.op in _LINKS:
        chain.append(u)
        u = u.src[0]
    if not is_storage(u):
        return None
    start = 0
    for view in reversed(chain):
        if view.op is Ops.AFTER or view.op is Ops.BITCAST:
            continue
        offset = _offset(view)
        if offset is None:
            return None
        start += offset * view.dtype.itemsize
    return Region(u, state_of(place), start, place.max_numel(), place.dtype)


def _offset(view: UOp) -> int | None:
    """First element, in the source, of a movement op that keeps its elements in one ordered block."""
    source, op = view.src[0].shape, view.op
    if not (is_static(source) and is_static(view.shape)):
        return None
    if op is Ops.RESHAPE or (op is Ops.EXPAND and prod(view.marg) == 1):
        return 0
    if op is Ops.PERMUTE:
        moved = [axis for axis in view.arg if source[axis] != 1]
        return 0 if moved == sorted(moved) else None
    if op is Ops.FLIP:
        return None if any(flag and d != 1 for flag, d in zip(view.arg, source)) else 0
    return _shrink_offset(source, view.marg) if op is Ops.SHRINK else None


def _shrink_offset(source: Shape, box: tuple[tuple[int, int], ...]) -> int | None:
    """A sub-box is one block when every axis inside its first longer axis is taken whole."""
    outer = True
    for d, (first, n) in zip(source, box):
        if not isinstance(first, int) or (not outer and n != d):
            return None
        outer = outer and n == 1
    return sum(o * stride for (o, _), stride in zip(box, row_major(source)))
