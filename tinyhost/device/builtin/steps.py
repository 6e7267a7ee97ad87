"""The instructions of the interpreter as steps: functions that read and change the state of one run.

A value is an array of shape (n or 1, lanes or 1): all work items of a slice of the grid at once, and the vector lanes
of each. Work items run in lockstep, so a BARRIER only checks that whole workgroups reach it. Inside an IF, or a loop
whose length differs between work items, a mask says who takes part. An access outside its storage is an error that
names kernel, storage and index, unless its gate or the mask is off. Registers belong to a work item, local storage to
a workgroup; both start full of a pattern.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes, storage_fmt
from tinyhost.uop.semantics import bitcast_np, carrier_np, from_storage_np, to_storage_np

Array = Any  # numpy arrays


# *** state of one run ***
@dataclass
class Storage:
    """Memory that a place points into. ``offset`` is added to the index of each work item."""

    name: str
    dtype: DType
    size: int
    data: Array
    offset: Array | None = None


@dataclass
class Loop:
    """A loop that is running: step, length (None: endless), mask before it."""

    step: int
    length: int | None
    mask: Array | None
    bound: Array | None = None


@dataclass
class State:
    """Everything that instructions read and change."""

    kernel: str
    values: list[Any]
    items: int  # work items of this slice
    groups: int  # workgroups of this slice
    special: dict[str, Array]
    mask: Array | None = None
    loops: dict[int, Loop] = field(default_factory=dict)
    saved: dict[int, Array | None] = field(default_factory=dict)


Step = Callable[[State], "int | None"]  # gives the next step if it is not the following one


# *** instructions ***
def pure(result: int, compute: Callable[..., Array], *refs: int) -> Step:
    """A step that only computes."""
    if len(refs) == 1:
        (a,) = refs

        def unary(st: State) -> None:
            st.values[result] = compute(st.values[a])
        return unary
    if len(refs) == 2:
        a, b = refs

        def binary(st: State) -> None:
            st.values[result] = compute(st.values[a], st.values[b])
        return binary

    def general(st: State) -> None:
        st.values[result] = compute(*[st.values[r] for r in refs])
    return general


def stack(*parts: Array) -> Array:
    """The lanes of several values side by side."""
    items = max(p.shape[0] for p in parts)
    full = [p if p.shape[0] == items else np.broadcast_to(p, (items, p.shape[1])) for p in parts]
    return np.concatenate(full, axis=1)


def bitcast(src: DType, dst: DType) -> Callable[[Array], Array]:
    """A function that reads values of one type as another."""
    return lambda x: bitcast_np(x, src, dst)


def literal(result: int, dtype: DType, spelled: str) -> Step:
    """A number, spelled as the text does."""
    number: Any = float.fromhex(spelled) if dtype.is_float else int(spelled)
    value = np.array([[number]], carrier_np(dtype))

    def step(st: State) -> None:
        st.values[result] = value
    return step


def special(result: int, dtype: DType, name: str) -> Step:
    """A launch index."""
    def step(st: State) -> None:
        st.values[result] = st.special[name].astype(carrier_np(dtype))
    return step


# *** memory ***
def _out_of_range(st: State, what: str, storage: Storage, index: Array, taking_part: Array | None) -> IndexError:
    bad = (index < 0) | (index >= storage.size)
    if taking_part is not None:
        bad = bad & taking_part
    item, lane = np.argwhere(bad)[0]
    where = ", ".join(f"{k}={int(v[item if len(v) > 1 else 0, 0])}" for k, v in sorted(st.special.items()) if v.size)
    wrong = int(np.broadcast_to(index, bad.shape)[item, lane])
    return IndexError(f"kernel {st.kernel}: {what} {storage.name} at index {wrong}, outside its {storage.size} elements"
                      f"{f' (work item {where})' if where else ''}: the kernel's gate or bounds are wrong")


def _taking_part(st: State, gate: Array | None) -> Array | None:
    if gate is None:
        return st.mask
    return gate if st.mask is None else gate & st.mask


def _check(st: State, what: str, storage: Storage, index: Array, taking_part: Array | None) -> Array:
    """The index, 0 for those that take no part.

    Raises:
        IndexError: one that takes part is outside.
    """
    if taking_part is not None:
        index = np.where(taking_part, index, index.dtype.type(0))
    if index.size and (index.min() < 0 or index.max() >= storage.size):
        if taking_part is None or storage.size or taking_part.any():
            raise _out_of_range(st, what, storage, index, taking_part)
    return index


def _located(place: tuple[int, int, int]) -> Callable[[list[Any]], tuple[Storage, Array]]:
    """A function from the values of a run to (storage, index of each lane) of ``place``: storage, index, lanes."""
    base, at, lanes = place
    along = np.arange(lanes)[None, :] if lanes > 1 else None
    return lambda values: (values[base], values[at] if along is None else values[at] + along)


def load(result: int, dtype: DType, place: tuple[int, int, int], alt: int | None, gate: int | None) -> Step:
    """Read storage; ``place`` is storage, index and lanes."""
    located = _located(place)

    def step(st: State) -> None:
        values = st.values
        storage, index = located(values)
        gates: Array = None if gate is None else values[gate]
        taking_part = _taking_part(st, gates)
        index = _check(st, "load from", storage, index, taking_part)
        if storage.size == 0:
            values[result] = np.broadcast_to(values[alt], index.shape) if alt is not None else np.zeros(index.shape)
            return
        if storage.offset is not None:
            index = index + storage.offset
        loaded = from_storage_np(storage.data[index], dtype)
        values[result] = loaded if alt is None else np.where(gates, loaded, values[alt])
    return step


def store(dtype: DType, place: tuple[int, int, int], value: int, gate: int | None) -> Step:
    """Write storage; ``place`` as for ``load``."""
    located = _located(place)

    def step(st: State) -> None:
        values = st.values
        storage, index = located(values)
        taking_part = _taking_part(st, None if gate is None else values[gate])
        index = _check(st, "store to", storage, index, taking_part)
        if storage.offset is not None:
            index = index + storage.offset
        data = to_storage_np(values[value], dtype)
        if taking_part is not None:
            index, data, taking_part = np.broadcast_arrays(index, data, taking_part)
            index, data = index[taking_part], data[taking_part]
        elif data.shape[0] > index.shape[0]:
            index = np.broadcast_to(index, (data.shape[0], index.shape[1]))  # the last work item wins
        storage.data[index] = data
    return step


def private(result: int, dtype: DType, space: str, slot: str, size: int) -> Step:
    """Registers or local storage, new for each slice of the grid."""
    per_group = space == "local"

    def step(st: State) -> None:
        owners = st.groups if per_group else st.items
        raw = np.full(owners * size * dtype.itemsize, 0xA5, np.uint8)
        data: Array = raw.view(np.dtype(storage_fmt(dtype))) if dtype is not dtypes.bool else (raw & 1).view(np.bool_)
        offset = None
        if owners > 1:
            item = np.arange(st.items, dtype=np.int64)[:, None]
            offset = (item // (st.items // st.groups) if per_group else item) * size
        st.values[result] = Storage(f"{space}{slot}", dtype, size, data, offset)
    return step


# *** control ***
def loop(result: int, dtype: DType, bound: int | None, after_end: int) -> Step:
    """Begin a loop; without a bound it is endless."""
    carrier = carrier_np(dtype)

    def step(st: State) -> int | None:
        if bound is None:
            st.loops[result] = Loop(0, None, st.mask)
        else:
            lengths = st.values[bound]
            if lengths.size == 1:
                length, varying = int(lengths[0, 0]), None
            else:
                part = lengths if st.mask is None else lengths[np.broadcast_to(st.mask, lengths.shape)]
                length, varying = int(part.max(initial=0)), lengths
            if length <= 0:
                return after_end
            st.loops[result] = Loop(0, length, st.mask, varying)
            if varying is not None:
                st.mask = _and_mask(st.mask, varying > 0)
        st.values[result] = np.zeros((1, 1), carrier)
        return None
    return step


def _and_mask(mask: Array | None, more: Array) -> Array:
    return more if mask is None else mask & more


def end(loop: int, dtype: DType, until: int | None, body: int) -> Step:
    """Go on with a loop, or leave it."""
    carrier = carrier_np(dtype)

    def step(st: State) -> int | None:
        lp = st.loops[loop]
        lp.step += 1
        if lp.length is None:
            again = _and_mask(st.mask, st.values[until]) if until is not None else st.mask
            if again is None or again.any():
                st.mask = again if again is not None and not again.all() else lp.mask
                return body
        elif lp.step < lp.length:
            st.values[loop] = np.array([[lp.step]], carrier)
            if lp.bound is not None:
                st.mask = _and_mask(lp.mask, lp.bound > lp.step)
            return body
        st.mask = lp.mask
        del st.loops[loop]
        return None
    return step


def if_(result: int, gate: int, after_endif: int) -> Step:
    """Mask off who does not take part; skip the body if nobody does."""
    def step(st: State) -> int | None:
        taking_part = _and_mask(st.mask, st.values[gate])
        if not taking_part.any():
            return after_endif
        st.saved[result] = st.mask
        st.mask = taking_part
        return None
    return step


def endif(which: int) -> Step:
    """The mask as it was before that IF."""
    def step(st: State) -> None:
        st.mask = st.saved.pop(which)
    return step


def barrier(st: State) -> None:
    """Whole workgroups reach a barrier, or nobody of them.

    Raises:
        RuntimeError: a part of a workgroup waits for the rest.
    """
    if st.mask is None:
        return
    arrived = np.broadcast_to(st.mask, (st.items, 1)).reshape(st.groups, -1)
    if (arrived.any(axis=1) != arrived.all(axis=1)).any():
        raise RuntimeError(f"kernel {st.kernel}: only a part of a workgroup reaches a barrier; it must not stand "
                           "inside an IF or a loop whose length differs between work items")
