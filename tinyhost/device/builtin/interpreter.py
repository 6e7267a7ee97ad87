"""Runs program text with numpy: the grid is a numpy axis, loops run in order.

Parses the text that ``python.py`` writes into ``steps``, and launches them over slices of the grid; what a value is and
how instructions behave is said there.
"""
from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinyhost.device.base import Compiled, Program, TinyELF
from tinyhost.device.builtin import steps
from tinyhost.dtype import DType, storage_fmt, to_dtype
from tinyhost.ops import Ops
from tinyhost.uop.semantics import array_function, carrier_np, cast_function

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
        self.setup: list[steps.Step] = []
        self.steps: list[steps.Step] = []
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
            self.setup.append(steps.literal(result, to_dtype(args[0]), args[1]))
        elif word == "scalar":
            self.scalars[result] = (to_dtype(args[0]), args[1])
        elif word == "storage":
            dtype, space, slot, size = to_dtype(args[0]), args[1], args[2], int(args[3])
            if space == "global":
                self.storage[result] = (dtype, int(slot), size)
            else:
                self.setup.append(steps.private(result, dtype, space, slot, size))
        else:
            self.steps.append(self._step(word, args, result))

    def _step(self, word: str, args: tuple[str, ...], result: int) -> steps.Step:
        if word in Ops.__members__:
            return steps.pure(result, array_function(Ops[word], to_dtype(args[0])), *map(_number, args[1:]))
        make: Callable[..., steps.Step] = getattr(self, f"_{word}")
        return make(result, *args)

    def _special(self, result: int, dtype: str, name: str) -> steps.Step:
        return steps.special(result, to_dtype(dtype), name)

    def _cast(self, result: int, src: str, dst: str, ref: str) -> steps.Step:
        return steps.pure(result, cast_function(to_dtype(src), to_dtype(dst)), _number(ref))

    def _bitcast(self, result: int, src: str, dst: str, ref: str) -> steps.Step:
        return steps.pure(result, steps.bitcast(to_dtype(src), to_dtype(dst)), _number(ref))

    def _lanes(self, result: int, ref: str, order: str) -> steps.Step:
        lanes = [int(i) for i in order.split(",")]
        return steps.pure(result, lambda x: x[:, lanes] if x.shape[1] > 1 else x, _number(ref))

    def _stack(self, result: int, dtype: str, *refs: str) -> steps.Step:
        return steps.pure(result, steps.stack, *map(_number, refs))

    def _load(self, result: int, dtype: str, base: str, at: str, lanes: str, alt: str | None = None,
              gate: str | None = None) -> steps.Step:
        place = (_number(base), _number(at), int(lanes))
        refs = [_number(ref) if ref else None for ref in (alt, gate)]
        return steps.load(result, to_dtype(dtype), place, *refs)

    def _store(self, result: int, dtype: str, base: str, at: str, lanes: str, value: str,
               gate: str | None = None) -> steps.Step:
        place = (_number(base), _number(at), int(lanes))
        return steps.store(to_dtype(dtype), place, _number(value), _number(gate) if gate else None)

    def _loop(self, result: int, dtype: str, bound: str) -> steps.Step:
        return steps.loop(result, to_dtype(dtype), None if bound == "endless" else _number(bound), self.jumps[result])

    def _end(self, result: int, loop: str, until: str | None = None) -> steps.Step:
        number = _number(loop)
        return steps.end(number, to_dtype(self.dtypes[number]), _number(until) if until else None, self.jumps[-number])

    def _if(self, result: int, gate: str) -> steps.Step:
        return steps.if_(result, _number(gate), self.jumps[result])

    def _endif(self, result: int, which: str) -> steps.Step:
        return steps.endif(_number(which))

    def _barrier(self, result: int) -> steps.Step:
        return steps.barrier


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
            fixed[result] = steps.Storage(f"data{slot}", dtype, size, raw[:need].view(storage_fmt(dtype)))
        for result, (dtype, name) in self.code.scalars.items():
            value = scalars[name]
            # what the launcher leaves open is the number of the thread, which is the first grid axis
            fixed[result] = name if value is None else np.array([[value]], carrier_np(dtype))
        return fixed

    def _run(self, grid: "Grid", first: int, last: int, fixed: dict[int, Any]) -> None:
        code = self.code
        items = (last - first) * grid.local
        st = steps.State(code.name, [None] * code.size, items, last - first, grid.special(first, last))
        for result, value in fixed.items():
            dtype = code.scalars[result][0] if isinstance(value, str) else None
            st.values[result] = value if dtype is None else st.special["gidx0"].astype(carrier_np(dtype))
        for step in code.setup:
            step(st)
        todo, at, count = code.steps, 0, len(code.steps)
        while at < count:
            jump = todo[at](st)
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
