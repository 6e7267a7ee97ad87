"""Which tensors are views of which: families, and who else shares a buffer.

A family is a tensor and everything made from it by movement, ``detach`` or ``bitcast``: its members see each other's
writes, as in numpy. Tensors of different families can still end on one buffer, because equal graphs are one node.
Before a buffer is written, such strangers are given a copy of what they show. One survey of all live tensors tells
for every buffer whether strangers exist, so that a write to a known buffer costs nothing more.
"""
from __future__ import annotations

import weakref
from typing import Any

from tinyhost._tensor.registry import live_tensors
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop import UOp

_ASIDE = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST, Ops.UNSHARD}
_exclusive: weakref.WeakSet[UOp] = weakref.WeakSet()  # buffers that one family alone shows


class Family:
    """The live members of one family."""

    __slots__ = ("_refs", "_limit")

    def __init__(self, first: Any) -> None:
        self._refs = [weakref.ref(first)]
        self._limit = 32

    def add(self, tensor: Any) -> None:
        """Enter a new view."""
        self._refs.append(weakref.ref(tensor))
        if len(self._refs) > self._limit:
            self._refs = [r for r in self._refs if r() is not None]
            self._limit = 2 * len(self._refs) + 32

    def members(self) -> list[Any]:
        """All members that are alive."""
        return [t for r in self._refs if (t := r()) is not None]


def family_of(tensor: Any) -> list[Any]:
    """The tensor and all live views that belong with it."""
    return [tensor] if tensor._family is None else tensor._family.members()


def root_of(uop: UOp) -> UOp:
    """The value that a view shows: what is left without movement, DETACH and BITCAST."""
    while uop.op in _ASIDE:
        uop = uop.src[0]
    return uop


def storage_of(uop: UOp) -> UOp | None:
    """The BUFFER or PARAM that a view shows, None if the value has no storage yet."""
    while uop.op in _ASIDE or uop.op is Ops.AFTER:
        uop = uop.src[0]
    if uop.op is Ops.PARAM:
        return uop
    return uop if uop.op is Ops.BUFFER and uop.arg.addrspace is AddrSpace.GLOBAL else None


def is_repeated(uop: UOp) -> bool:
    """Whether several elements of a view are one element of its root."""
    while uop.op in _ASIDE:
        if uop.op is Ops.EXPAND:
            return True
        uop = uop.src[0]
    return False


def move_family(tensor: Any, old: UOp, new: UOp) -> None:
    """Let every member of the family that is a view of ``old`` be that view of ``new``."""
    for t in family_of(tensor):
        if t.uop is old:
            t.uop = new
        elif root_of(t.uop) is old:
            t.uop = t.uop.substitute({old: new}, walk=True)


def forget_exclusive(uop: UOp) -> None:
    """Note that a stranger may now show the storage of ``uop``."""
    if (buffer := storage_of(uop)) is not None:
        _exclusive.discard(buffer)


def strangers(tensor: Any, buffer: UOp) -> list[Any]:
    """Live tensors of other families that show ``buffer``, which ``tensor`` is about to write; none from now on."""
    if buffer in _exclusive:
        return []
    _survey()
    if buffer in _exclusive:
        return []
    _exclusive.add(buffer)
    mine = {id(t) for t in family_of(tensor)}
    return [t for t in live_tensors() if id(t) not in mine and storage_of(t.uop) is buffer]


def _survey() -> None:
    """Sort the buffers of all live tensors into those of one family and those of several."""
    owner: dict[UOp, Any] = {}
    mixed: set[UOp] = set()
    for t in live_tensors():
        buffer = storage_of(t.uop)
        if buffer is None:
            continue
        family = t if t._family is None else t._family
        if owner.setdefault(buffer, family) is not family:
            mixed.add(buffer)
    _exclusive.clear()
    _exclusive.update(b for b in owner if b not in mixed)
