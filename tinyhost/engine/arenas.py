"""Which memory temporaries get: arenas they share, or whole buffers.

Takes storage with the first and last step that uses each, in the order of first use; gives a place for each and the
storage to make. One arena for each device and lane: what copies touch, and the rest. Where a device has no buffer views
they take turns on whole buffers; with NO_MEMORY_PLANNER=1 each has its own.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinyhost.device import caps_of
from tinyhost.dtype import DType, dtypes
from tinyhost.engine.memory import Block, place
from tinyhost.env import NO_MEMORY_PLANNER

View = tuple[int, int, DType]  # byte offset, elements, dtype
Storage = tuple[str, int, DType]  # device, elements, dtype


@dataclass
class Life:
    """Storage in use from step ``first`` to step ``last``; ``copied``: a copy touches it."""

    device: str
    size: int
    dtype: DType
    first: int
    last: int
    copied: bool = False

    def block(self) -> Block:
        """Its bytes, and the steps in which nothing else may lie there: a copy may run while its neighbours do."""
        last = self.last + (self.last - self.first if self.copied else 0)
        return Block(self.size * self.dtype.itemsize, self.first, last)


class Place(NamedTuple):
    """A number of storage, and the part of it (None: all)."""

    storage: int
    view: View | None


def arenas(lives: Sequence[Life]) -> tuple[list[Place], list[Storage]]:
    """(the place of each, the storage to make)."""
    places: dict[int, Place] = {}
    storage: list[Storage] = []
    lanes: dict[tuple[str, bool], list[int]] = {}
    for i, life in enumerate(lives):
        if NO_MEMORY_PLANNER.value:
            places[i] = Place(len(storage), None)
            storage.append((life.device, life.size, life.dtype))
        else:
            lanes.setdefault((life.device, life.copied), []).append(i)
    for (device, _), lane in lanes.items():
        caps = caps_of(device)
        if not caps.buffer_views or caps.storage_only:  # parts of a file are no memory to share
            _take_turns(lives, lane, places, storage)
            continue
        offsets, nbytes = place([lives[i].block() for i in lane])
        places.update({i: Place(len(storage), (at, lives[i].size, lives[i].dtype)) for i, at in zip(lane, offsets)})
        storage.append((device, nbytes, dtypes.uint8))
    return [places[i] for i in range(len(lives))], storage


def _take_turns(lives: Sequence[Life], lane: Iterable[int], places: dict[int, Place], storage: list[Storage]) -> None:
    """Whole buffers, each for lives of one size and dtype that do not overlap."""
    busy: dict[Storage, list[tuple[int, int]]] = {}  # (last step, number of storage)
    for i in lane:
        life = lives[i]
        same = busy.setdefault((life.device, life.size, life.dtype), [])
        number = next((n for last, n in same if last < life.first), len(storage))
        if number == len(storage):
            storage.append((life.device, life.size, life.dtype))
        same[:] = [(last, n) for last, n in same if n != number] + [(life.block().last, number)]
        places[i] = Place(number, None)
