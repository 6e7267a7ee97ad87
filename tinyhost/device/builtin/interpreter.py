"""Runs program text with numpy: the grid is a numpy axis, loops run in order.

A value is an array of shape (n or 1, lanes or 1): all work items of a slice of the grid at once, and the vector lanes
of each. Work items run in lockstep, so a BARRIER only checks that whole workgroups reach it. Inside an IF, or a loop
whose length differs between work items, a mask says who takes part. An access outside its storage is an error that
names kernel, storage and index, unless its gate or the mask is off. Registers belong to a work item, local storage to
a workgroup; both start full of a pattern.
"""
from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tinyhost.device.base import Compiled, Program, TinyELF
from tinyhost.dtype import DType, dtypes, storage_fmt, to_dtype
from tinyhost.ops import Ops
from tinyhost.uop.semantics import array_function, bitcast_np, carrier_np, cast_function, from_storage_np, to_storage_np

Array = Any  # numpy arrays
SLICE = 1 << 16  # work items that run at once, at most (always whole workgroups)


# *** text ***
class Line(NamedTuple):
    """One instruction: number of its result, word, arguments."""

    result: int
    word: str
    args: tuple[str, ...]


_WORDS = frozenset({"literal", "scalar", "storage", "special", "cast", "bitcast", "lanes", "stack", "load", "store",
                    "loop", "end", "barrier", "if", "endif"})


def parse(text: str) -> tuple[str, list[Line]]:
    """(kernel name, instructions).

    Raises:
        ValueError: a line is no instruction.
    """
    first, *rest = text.splitlines()
    word, _, name = first.partition(" ")
    if word != "kernel":
        raise ValueError(f"program text starts with 'kernel NAME', got {first!r}")
    lines = []
    for number, line in enumerate(rest, 2):
        result, _, instruction = line.partition(" = ")
        word, *args = instruction.split() or [""]
        if not result.startswith("%") or word not in _WORDS and word not in Ops.__members__:
            raise ValueError(f"line {number} is no instruction: {line!r}")
        lines.append(Line(int(result[1:]), word, tuple(args)))
    return name, lines


def _number(ref: str) -> int:
    return int(ref[1:])


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
def _pure(result: int, compute: Callable[..., Array], *refs: int) -> Step:
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


def _stack(*parts: Array) -> Array:
    items = max(p.shape[0] for p in parts)
    full = [p if p.shape[0] == items else np.broadcast_to(p, (items, p.shape[1])) for p in parts]
    return np.concatenate(full, axis=1)


def _bitcast(src: DType, dst: DType) -> Callable[[Array], Array]:
    return lambda x: bitcast_np(x, src, dst)


def _literal(result: int, dtype: DType, spelled: str) -> Step:
    number: Any = float.fromhex(spelled) if dtype.is_float else int(spelled)
    value = np.array([[number]], carrier_np(dtype))

    def step(st: State) -> None:
        st.values[result] = value
    return step


def _special(result: int, dtype: DType, name: str) -> Step:
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


def _load(result: int, dtype: DType, place: tuple[int, int, int], alt: int | None, gate: int | None) -> Step:
    base, at, lanes = place
    along = np.arange(lanes)[None, :] if lanes > 1 else None

    def step(st: State) -> None:
        values = st.values
        storage: Storage = values[base]
        index = values[at] if along is None else values[at] + along
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


def _store(dtype: DType, place: tuple[int, int, int], value: int, gate: int | None) -> Step:
    base, at, lanes = place
    along = np.arange(lanes)[None, :] if lanes > 1 else None

    def step(st: State) -> None:
        values = st.values
        storage: Storage = values[base]
        index = values[at] if along is None else values[at] + along
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


def _private(result: int, dtype: DType, space: str, slot: str, size: int) -> Step:
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
def _loop(result: int, dtype: DType, bound: int | None, after_end: int) -> Step:
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


def _end(loop: int, dtype: DType, until: int | None, body: int) -> Step:
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


def _if(result: int, gate: int, after_endif: int) -> Step:
    def step(st: State) -> int | None:
        taking_part = _and_mask(st.mask, st.values[gate])
        if not taking_part.any():
            return after_endif
        st.saved[result] = st.mask
        st.mask = taking_part
        return None
    return step


def _endif(which: int) -> Step:
    def step(st: State) -> None:
        st.mask = st.saved.pop(which)
    return step


def _barrier(st: State) -> None:
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


# *** from text to steps ***
class Code:
    """A parsed program: steps, and what it takes."""

    def __init__(self, text: str) -> None:
        self.name, lines = parse(text)
        self.size = 1 + max((line.result for line in lines), default=0)
        self.storage: dict[int, tuple[DType, int, int]] = {}  # result -> dtype, slot, size
        self.scalars: dict[int, tuple[DType, str]] = {}
        self.dtypes = {line.result: line.args[0] for line in lines if line.word == "loop"}
        self.jumps = self._find_jumps(lines)
        self.setup: list[Step] = []
        self.steps: list[Step] = []
        for i, line in enumerate(lines):
            self._add(i, line)

    @staticmethod
    def _find_jumps(lines: list[Line]) -> dict[int, int]:
        """For each loop and IF, and each END, the step to go to."""
        jumps: dict[int, int] = {}
        at = 0
        for line in lines:
            if line.word in ("literal", "storage", "scalar"):
                continue
            at += 1
            if line.word == "loop":
                jumps[-line.result] = at  # its body
            elif line.word in ("end", "endif"):
                jumps[_number(line.args[0])] = at  # behind it
        return jumps

    def _add(self, position: int, line: Line) -> None:
        word, args, result = line.word, line.args, line.result
        if word == "literal":
            self.setup.append(_literal(result, to_dtype(args[0]), args[1]))
        elif word == "scalar":
            self.scalars[result] = (to_dtype(args[0]), args[1])
        elif word == "storage":
            dtype, space, slot, size = to_dtype(args[0]), args[1], args[2], int(args[3])
            if space == "global":
                self.storage[result] = (dtype, int(slot), size)
            else:
                self.setup.append(_private(result, dtype, space, slot, size))
        else:
            self.steps.append(self._step(word, args, result))

    def _step(self, word: str, args: tuple[str, ...], result: int) -> Step:
        if word in Ops.__members__:
            return _pure(result, array_function(Ops[word], to_dtype(args[0])), *map(_number, args[1:]))
        make: Callable[..., Step] = getattr(self, f"_{word}")
        return make(result, *args)

    def _special(self, result: int, dtype: str, name: str) -> Step:
        return _special(result, to_dtype(dtype), name)

    def _cast(self, result: int, src: str, dst: str, ref: str) -> Step:
        return _pure(result, cast_function(to_dtype(src), to_dtype(dst)), _number(ref))

    def _bitcast(self, result: int, src: str, dst: str, ref: str) -> Step:
        return _pure(result, _bitcast(to_dtype(src), to_dtype(dst)), _number(ref))

    def _lanes(self, result: int, ref: str, order: str) -> Step:
        lanes = [int(i) for i in order.split(",")]
        return _pure(result, lambda x: x[:, lanes] if x.shape[1] > 1 else x, _number(ref))

    def _stack(self, result: int, dtype: str, *refs: str) -> Step:
        return _pure(result, _stack, *map(_number, refs))

    def _load(self, result: int, dtype: str, base: str, at: str, lanes: str, alt: str | None = None,
              gate: str | None = None) -> Step:
        place = (_number(base), _number(at), int(lanes))
        return _load(result, to_dtype(dtype), place, _number(alt) if alt else None, _number(gate) if gate else None)

    def _store(self, result: int, dtype: str, base: str, at: str, lanes: str, value: str,
               gate: str | None = None) -> Step:
        place = (_number(base), _number(at), int(lanes))
        return _store(to_dtype(dtype), place, _number(value), _number(gate) if gate else None)

    def _loop(self, result: int, dtype: str, bound: str) -> Step:
        return _loop(result, to_dtype(dtype), None if bound == "endless" else _number(bound), self.jumps[result])

    def _end(self, result: int, loop: str, until: str | None = None) -> Step:
        number = _number(loop)
        return _end(number, to_dtype(self.dtypes[number]), _number(until) if until else None, self.jumps[-number])

    def _if(self, result: int, gate: str) -> Step:
        return _if(result, _number(gate), self.jumps[result])

    def _endif(self, result: int, which: str) -> Step:
        return _endif(_number(which))

    def _barrier(self, result: int) -> Step:
        return _barrier


@functools.lru_cache(maxsize=1024)
def load_code(lib: bytes) -> Code:
    """The parsed form of compiled bytes."""
    return Code(lib.decode())


# *** launching ***
class PythonProgram(Program):
    """A kernel on the reference device."""

    def __init__(self, dev: Compiled, elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.code = load_code(elf.lib)
        self.slots = [slot for name, slot, _, _ in elf.signature if name is None]
        self.scalar_names = [name for name, _, _, shape in elf.signature if name is not None and shape == ()]

    def __call__(self, *bufs: Any, global_size: tuple[int, ...] = (1, 1, 1), local_size: tuple[int, ...] | None = None,
                 vals: tuple[int | None, ...] = (), wait: bool = False) -> float | None:
        """Run on byte arrays in slot order.

        Raises:
            TypeError: the number of buffers or scalars is not that of the kernel.
            ValueError: a buffer is smaller than the kernel's storage.
            IndexError: an access outside its storage.
        """
        start = time.perf_counter()
        if len(bufs) != len(self.slots) or len(vals) != len(self.scalar_names):
            raise TypeError(f"kernel {self.code.name} takes {len(self.slots)} buffers and {len(self.scalar_names)} "
                            f"scalars, got {len(bufs)} and {len(vals)}")
        fixed = self._arguments(bufs, dict(zip(self.scalar_names, vals)))
        grid = Grid(global_size, local_size or (1, 1, 1))
        with np.errstate(all="ignore"):
            for first in range(0, grid.groups, grid.groups_at_once):
                self._run(grid, first, min(first + grid.groups_at_once, grid.groups), fixed)
        return time.perf_counter() - start if wait else None

    def _arguments(self, bufs: tuple[Any, ...], scalars: dict[str | None, int | None]) -> dict[int, Any]:
        fixed: dict[int, Any] = {}
        by_slot = dict(zip(self.slots, bufs))
        for result, (dtype, slot, size) in self.code.storage.items():
            raw = by_slot[slot].reshape(-1).view(np.uint8)
            need = size * dtype.itemsize
            if raw.size < need:
                raise ValueError(f"kernel {self.code.name}: buffer {slot} has {raw.size} bytes, but the kernel's "
                                 f"{size} elements of {dtype!r} take {need}")
            fixed[result] = Storage(f"data{slot}", dtype, size, raw[:need].view(storage_fmt(dtype)))
        for result, (dtype, name) in self.code.scalars.items():
            value = scalars[name]
            # what the launcher leaves open is the number of the thread, which is the first grid axis
            fixed[result] = name if value is None else np.array([[value]], carrier_np(dtype))
        return fixed

    def _run(self, grid: "Grid", first: int, last: int, fixed: dict[int, Any]) -> None:
        code = self.code
        items = (last - first) * grid.local
        st = State(code.name, [None] * code.size, items, last - first, grid.special(first, last))
        for result, value in fixed.items():
            dtype = code.scalars[result][0] if isinstance(value, str) else None
            st.values[result] = value if dtype is None else st.special["gidx0"].astype(carrier_np(dtype))
        for step in code.setup:
            step(st)
        steps, at, count = code.steps, 0, len(code.steps)
        while at < count:
            jump = steps[at](st)
            at = at + 1 if jump is None else jump


class Grid:
    """Launch dimensions and the indices of the work items; dimension 0 runs fastest."""

    def __init__(self, global_size: tuple[int, ...], local_size: tuple[int, ...]) -> None:
        self.global_size = tuple(map(int, global_size)) + (1,) * (3 - len(global_size))
        self.local_size = tuple(map(int, local_size)) + (1,) * (3 - len(local_size))
        self.groups = int(np.prod(self.global_size, dtype=np.int64))
        self.local = int(np.prod(self.local_size, dtype=np.int64))
        self.groups_at_once = max(SLICE // max(self.local, 1), 1)

    def special(self, first: int, last: int) -> dict[str, Array]:
        """gidx, lidx and idx of the work items of some workgroups."""
        group = np.arange(first, last, dtype=np.int64).repeat(self.local)[:, None]
        item = np.tile(np.arange(self.local, dtype=np.int64), last - first)[:, None]
        out: dict[str, Array] = {}
        for axis in range(3):
            below_g = int(np.prod(self.global_size[:axis], dtype=np.int64))
            below_l = int(np.prod(self.local_size[:axis], dtype=np.int64))
            g = group // below_g % self.global_size[axis]
            local = item // below_l % self.local_size[axis]
            out[f"gidx{axis}"], out[f"lidx{axis}"] = g, local
            out[f"idx{axis}"] = g * self.local_size[axis] + local
        return out
