"""Writing the words that change from submission to submission: by Python and numpy, or by one compiled kernel.

Takes streams that are linked (``stream.Linked``); a call with the values of their variables writes all open words.
Nearly all words are fields of one variable and are written from tables, many at once; the rest are general expressions.
``PythonPatcher`` (HCQ2=0) and ``CompiledPatcher`` (HCQ2=1) are made from the same tables and write the same bytes.
Telling a device that there is work is not done here.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.errors import DeviceError, DeviceNotFound
from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.stream import Linked, Patch
from tinyhost.hcq.words import ALL, Evaluator, Field
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import KernelInfo, UOp
from tinyhost.uop.info import ParamArg

if TYPE_CHECKING:
    from tinyhost.device.base import Program

Array: TypeAlias = "np.ndarray[Any, Any]"
_UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {8: "B", 16: "H", 32: "I", 64: "Q"}
FEW = 16  # field words up to which numpy's calls cost more than they save
_FIELD_COLUMNS = ("addend", "shift", "mask", "left", "base")


@dataclass(frozen=True, eq=False)
class Group:
    """Field words of one width in one region.

    Attributes:
        which: for each word the row of its variable in the table of values.
        columns: addend, or addend, shift, mask, left and base; each with an entry for each word.
    """

    memory: HostMemory
    bits: int
    index: Array
    which: Array
    columns: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class General:
    """Words of one width in one region that are general expressions."""

    memory: HostMemory
    bits: int
    index: Array
    words: list[UOp]


def _elements(memory: HostMemory, bits: int) -> Array:
    """The memory as an array of unsigned numbers."""
    size = bits // 8
    return np.frombuffer(memory.view[:len(memory) // size * size], dtype=np.dtype(f"<u{size}"))


def _is_plain(f: Field) -> bool:
    return not (f.shift or f.left or f.base) and f.mask == ALL


class Patcher(ABC):
    """Open words of several streams, sorted into groups.

    Attributes:
        names: the variables whose values a call takes; the order of the table of values.
    """

    def __init__(self, linked: Sequence[Linked]) -> None:
        self.names: tuple[str, ...] = tuple(sorted({name for one in linked for name in one.variables}))
        row = {name: i for i, name in enumerate(self.names)}
        self.table: Array = np.zeros(len(self.names), dtype=np.uint64)
        self.groups: list[Group] = []
        self.general: list[General] = []
        for one in linked:
            for (region, bits, kind), patches in _by_kind(one).items():
                index = np.array([p.index for p in patches], dtype=np.int32)
                words: list[Any] = [p.word for p in patches]
                if kind == "general":
                    self.general.append(General(one.memory[region], bits, index, words))
                    continue
                which = np.array([row[f.name] for f in words], dtype=np.int32)
                names = _FIELD_COLUMNS[:1] if kind == "plain" else _FIELD_COLUMNS
                columns = tuple(np.array([getattr(f, c) for f in words], dtype=np.uint64) for c in names)
                self.groups.append(Group(one.memory[region], bits, index, which, columns))
        self._get: Callable[[Mapping[str, int]], Any] | None = itemgetter(*self.names) if self.names else None

    def fill(self, values: Mapping[str, int]) -> None:
        """Put values into the table, modulo 2^64.

        Raises:
            DeviceError: a variable has no value.
        """
        if self._get is None:
            return
        try:
            self.table[:] = self._get(values)
        except KeyError:
            missing = [n for n in self.names if n not in values]
            raise DeviceError(f"a submission needs values for {', '.join(map(repr, missing))}, got only "
                              f"{sorted(values)}: give one for each name in .names") from None
        except OverflowError:  # negative or too long
            self.table[:] = [values[n] & ALL for n in self.names]

    @abstractmethod
    def __call__(self, values: Mapping[str, int]) -> None:
        """Write all open words."""


def _by_kind(linked: Linked) -> dict[tuple[str, int, str], list[Patch]]:
    out: dict[tuple[str, int, str], list[Patch]] = defaultdict(list)
    for p in linked.patches:
        kind = "general" if isinstance(p.word, UOp) else "plain" if _is_plain(p.word) else "field"
        out[p.region, p.bits, kind].append(p)
    return out


# *** HCQ2=0 ***
class PythonPatcher(Patcher):
    """A few numpy operations for all field words of a region; one after the other where there are only a few."""

    def __init__(self, linked: Sequence[Linked]) -> None:
        super().__init__(linked)
        fields = [(one.memory[p.region], p) for one in linked for p in one.patches if isinstance(p.word, Field)]
        few = len(fields) <= FEW
        self._few = [_Word(memory, p) for memory, p in fields] if few else []
        self._writes = [(_elements(g.memory, g.bits), g.index, g.which.astype(np.intp), _kept(g.columns))
                        for g in self.groups if not few]
        self._evaluate = Evaluator([w for g in self.general for w in g.words]) if self.general else None
        self._general = [(_elements(g.memory, g.bits), g.index) for g in self.general]

    def __call__(self, values: Mapping[str, int]) -> None:
        if self._writes or self.general:
            self.fill(values)
        try:
            for word in self._few:
                word.view[word.index] = word.field.value(values[word.field.name]) & word.mask
        except KeyError:
            self.fill(values)  # says what is missing
            raise
        table = self.table
        for elements, index, which, columns in self._writes:
            words = table.take(which)
            if len(columns) == 1:
                words += columns[0]
            elif columns:
                addend, shift, mask, left, base = columns
                words += addend
                words >>= shift
                words &= mask
                words <<= left
                words += base
            elements[index] = words
        if self._evaluate is not None:
            self._write_general(values)

    def _write_general(self, values: Mapping[str, int]) -> None:
        assert self._evaluate is not None
        words, at = np.array(self._evaluate(values), dtype=np.uint64), 0
        for elements, index in self._general:
            elements[index] = words[at:at + len(index)]
            at += len(index)


class _Word:
    """A field word and the memory it is written to, as elements of its width."""

    __slots__ = ("view", "index", "field", "mask")

    def __init__(self, memory: HostMemory, patch: Patch) -> None:
        assert isinstance(patch.word, Field)
        size = patch.bits // 8
        self.view = memory.view[:len(memory) // size * size].cast("B").cast(_FORMATS[patch.bits])
        self.index, self.field, self.mask = patch.index, patch.word, (1 << patch.bits) - 1


def _kept(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    return () if len(columns) == 1 and not columns[0].any() else columns


# *** HCQ2=1 ***
def host_device() -> str:
    """Name of the installed device whose role is to run code for other devices on the host's processor.

    Raises:
        DeviceNotFound: there is none; says what to install, and how to go on without one.
    """
    from tinyhost.plugin.catalog import State, catalog
    from tinyhost.plugin.known import host_package
    from tinyhost.plugin.metadata import DEVICES
    from tinyhost.specs import HOST
    for record in catalog().of(DEVICES):
        if record.state in (State.DISABLED, State.INCOMPATIBLE, State.AMBIGUOUS) or not catalog().try_load(record):
            continue
        if HOST in record.spec.roles:
            return record.name
    raise DeviceNotFound("HCQ2=1 compiles the code that submits work for the host's processor, and no installed device "
                         f"has the role {HOST!r}: {host_package().install}, or set HCQ2=0 to submit from Python")


class CompiledPatcher(Patcher):
    """One kernel for the host's processor writes all words.

    Args:
        compile: from a kernel (SINK) to the program loaded on ``host_device()``.

    Raises:
        DeviceNotFound: no installed device has the role ``host``.
    """

    def __init__(self, linked: Sequence[Linked], compile: Callable[[UOp], Program]) -> None:
        super().__init__(linked)
        self.device = host_device()
        self._program: Program | None = None
        if self.groups or self.general:
            kernel = _Kernel(self)
            self._program = compile(kernel.sink())
            # the compiler drops arguments that the result does not depend on
            signature = self._program.elf.signature
            self._buffers = [_foreign(self.device, kernel.arrays[slot]) for _, slot, _, shape in signature if shape]
            self._handles = [b.get_buf() for b in self._buffers]
            self._scalars = [name for name, _, _, shape in signature if not shape and name is not None]

    def __call__(self, values: Mapping[str, int]) -> None:
        self.fill(values)
        if self._program is not None:
            self._program(*self._handles, vals=tuple([values[n] for n in self._scalars]))


def _foreign(device: str, array: Array) -> Any:
    """The memory of an array as a buffer of ``device``."""
    from tinyhost.device import Buffer
    dtype = dtypes.int32 if array.dtype == np.int32 else _UNSIGNED[array.dtype.itemsize * 8]
    return Buffer(device, array.size, dtype).allocate(external_ptr=array.ctypes.data, keep=array)


class _Kernel:
    """The kernel of a CompiledPatcher on its way: ``arrays`` are the memory of its storage arguments, by slot.

    Words of a group are written in a loop over tables; general expressions are straight lines. Values that are 64 bits
    wide come from the table of values, index variables as scalars, whose bounds say how wide they are.
    """

    def __init__(self, patcher: Patcher) -> None:
        self.patcher = patcher
        self.arrays: list[Array] = []
        self._storage: dict[tuple[int, int], UOp] = {}
        self.values = self.storage(patcher.table)
        self.row = {name: i for i, name in enumerate(patcher.names)}

    def sink(self) -> UOp:
        """The kernel."""
        stores = [self._loop(number, g) for number, g in enumerate(self.patcher.groups)]
        for g in self.patcher.general:
            stores += self._lines(g)
        return UOp.sink(*stores, arg=KernelInfo("submit", opts_to_apply=()))

    def storage(self, array: Array) -> UOp:
        """The argument for an array; the same memory seen in the same width is one argument."""
        key = array.ctypes.data, array.itemsize
        if key not in self._storage:
            dtype = dtypes.int32 if array.dtype == np.int32 else _UNSIGNED[array.itemsize * 8]
            self._storage[key] = UOp(Ops.PARAM, (), ParamArg(len(self.arrays), dtype, array.size))
            self.arrays.append(array)
        return self._storage[key]

    def _loop(self, number: int, group: Group) -> UOp:
        count = len(group.index)
        places = self.storage(np.stack([group.index, group.which], axis=1).reshape(-1))
        table = self.storage(np.stack(group.columns, axis=1).reshape(-1))
        width = len(group.columns)
        i = UOp(Ops.RANGE, (UOp.const(count),), (number, AxisType.LOOP))
        columns = [table.index(i * width + c) for c in range(width)]
        x = self.values.index(places.index(i * 2 + 1)) + columns[0]
        if width > 1:
            _, shift, mask, left, base = columns
            x = (((x >> shift) & mask) << left) + base
        target = self.storage(_elements(group.memory, group.bits))
        return target.index(places.index(i * 2)).store(x.cast(target.dtype)).end(i)

    def _lines(self, general: General) -> list[UOp]:
        target = self.storage(_elements(general.memory, general.bits))
        return [target.index(UOp.const(int(at))).store(self._inside(w).cast(target.dtype))
                for at, w in zip(general.index, general.words)]

    def _inside(self, expression: UOp) -> UOp:
        """The expression with wide variables read from the table and the others as scalar arguments."""
        swap = {}
        for v in expression.variables():
            value = self.values.index(UOp.const(self.row[v.arg.name]))
            swap[v] = v.replace(op=Ops.PARAM) if v.dtype.is_weak else value.cast(v.dtype)
        return expression.substitute(swap)
