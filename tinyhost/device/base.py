"""What a device backend implements: Compiled (the device), Allocator (its memory), Program (one loaded kernel).

Everything optional is a field of Capabilities or a method with a default here; the host never looks for attributes.
Opaque buffers are whatever the backend's allocator returns; the host only hands them back.
"""
from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import DType
from tinyhost.env import LRU
from tinyhost.errors import OutOfMemory
from tinyhost.helpers import GlobalCounters, size_to_str
from tinyhost.target import Target

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues
    from tinyhost.specs import DeviceSpec

Opaque = TypeVar("Opaque")


@dataclass(frozen=True)
class BufferSpec:
    """Wishes about one allocation: host access, caching, foreign memory at ``external_ptr``."""

    uncached: bool = False
    cpu_access: bool = False
    host: bool = False
    nolru: bool = False
    zero: bool = False
    external_ptr: int | None = None


@dataclass(frozen=True)
class TinyELF:
    """A compiled kernel as a device loads it.

    ``signature`` lists arguments in call order, each (name, slot, dtype, shape): storage by slot, then scalars. Buffers
    have no name; named storage is scratch memory of that many elements, which the device provides to each worker;
    scalars have the shape ().
    """

    lib: bytes
    name: str
    target: Target
    signature: tuple[tuple[str | None, int, DType, tuple[int, ...]], ...] = ()
    profile_key: bytes | None = None


class Program(ABC):
    """A kernel loaded on a device."""

    def __init__(self, dev: "Compiled", elf: TinyELF) -> None:
        self.dev, self.elf = dev, elf

    @abstractmethod
    def __call__(self, *bufs: Any, global_size: tuple[int, ...] = (1, 1, 1), local_size: tuple[int, ...] | None = None,
                 vals: tuple[int | None, ...] = (), wait: bool = False) -> float | None:
        """Launch on opaque buffers in slot order; ``vals`` are the scalars. With ``wait``: seconds of device time."""


class Allocator(ABC, Generic[Opaque]):
    """Memory of one device. Sizes and offsets are bytes.

    Attributes:
        counted: whether allocations count as memory in use; not where they are parts of a file.
        foreign: whether ``_alloc`` takes memory of others over (``BufferSpec.external_ptr``).
    """

    counted: bool = True
    foreign: bool = False

    def __init__(self, dev: "Compiled") -> None:
        self.dev = dev

    @abstractmethod
    def _alloc(self, size: int, options: BufferSpec) -> Opaque:
        """New memory.

        Raises:
            MemoryError: there is none.
        """

    def _free(self, opaque: Opaque, options: BufferSpec) -> None:
        """Give memory back; the default leaves it to Python's reference counts."""

    @abstractmethod
    def _copyin(self, dest: Opaque, src: memoryview) -> None:
        """Host bytes to device memory; ``src`` may be reused when this returns."""

    @abstractmethod
    def _copyout(self, dest: memoryview, src: Opaque) -> None:
        """Device memory to host bytes, complete when this returns."""

    def _offset(self, buf: Opaque, size: int, offset: int) -> Opaque:
        """The part of ``buf`` from ``offset``; needed when capabilities say ``buffer_views``."""
        raise RuntimeError(f"{type(self).__name__} has no buffer views, so no part of a buffer can be an argument")

    def _as_buffer(self, src: Opaque) -> memoryview | None:
        """The memory itself as host bytes where the host can see it, else None."""
        return None

    def _transfer(self, dest: Opaque, src: Any, nbytes: int, source: "Allocator[Any]") -> bool:
        """Copy from memory of another device in order with the work of both; False where only the host can."""
        return False

    # *** what the host calls ***
    def alloc(self, size: int, options: BufferSpec | None = None) -> Opaque:
        """``size`` bytes (at least one).

        Raises:
            OutOfMemory: the device has no room; says how much was asked and is in use.
        """
        options = options or BufferSpec()
        try:
            opaque = self._alloc(max(size, 1), options)
        except MemoryError as e:
            used = GlobalCounters.mem_used_per_device.get(self.dev.name, 0)
            raise OutOfMemory(f"Allocation of {size_to_str(size)} failed on {self.dev.name}. Used: "
                              f"{size_to_str(used)}. Free tensors, use smaller batches or another device") from e
        return opaque

    def free(self, opaque: Opaque, size: int, options: BufferSpec | None = None) -> None:
        """Give back what ``alloc`` returned for ``size``."""
        self._free(opaque, options or BufferSpec())

    def free_cache(self) -> None:
        """Give memory that is kept for reuse back to the system."""


class LRUAllocator(Allocator[Opaque], ABC):
    """Keeps freed memory by (size, options) and hands it out again.

    All that it holds, in use and kept, is no more than what was once in use at a time and a quarter of that (``SLACK``
    if that is more): beyond that, new memory takes the place of what was kept longest. When memory runs out, all that
    is kept is given back.
    """

    SLACK = 32 << 20  # bytes; loops over small buffers of many sizes free nothing

    def __init__(self, dev: "Compiled") -> None:
        super().__init__(dev)
        self._cache: dict[tuple[int, BufferSpec], list[Opaque]] = {}  # freed last comes last; no list is empty
        self._used = self._kept = self._most = 0  # bytes in use, kept, and the most in use before a free
        self._lock = RLock()  # re-entrant: the collector may free buffers inside of a locked block

    def alloc(self, size: int, options: BufferSpec | None = None) -> Opaque:
        """Memory of exactly this size from the cache, else new."""
        options = options or BufferSpec()
        with self._lock:
            self._used += _counted(size, options)
            if (size, options) in self._cache:
                return self._take(size, options)
            most = max(self._most, self._used)
            surplus = self._oldest(self._used + self._kept - most - max(self.SLACK, most // 4))
        self._free_all(surplus)
        try:
            return super().alloc(size, options)
        except MemoryError:
            self.free_cache()
        try:
            return super().alloc(size, options)
        except MemoryError:
            with self._lock:
                self._used -= _counted(size, options)
            raise

    def free(self, opaque: Opaque, size: int, options: BufferSpec | None = None) -> None:
        """Keep the memory for the next allocation of this size."""
        options = options or BufferSpec()
        keeps = LRU.value and not options.nolru and not options.zero and options.external_ptr is None
        with self._lock:
            self._most = max(self._most, self._used)  # grows between two frees only
            self._used -= _counted(size, options)
            if keeps:
                same = self._cache.pop((size, options), [])
                same.append(opaque)
                self._cache[size, options] = same
                self._kept += size
        if not keeps:
            super().free(opaque, size, options)

    def free_cache(self) -> None:
        """Give all kept memory back."""
        with self._lock:
            kept = self._oldest(sys.maxsize)
        self._free_all(kept)

    def _take(self, size: int, options: BufferSpec) -> Opaque:
        same = self._cache[size, options]
        if len(same) == 1:
            del self._cache[size, options]
        self._kept -= size
        return same.pop()

    def _oldest(self, nbytes: int) -> list[tuple[Opaque, int, BufferSpec]]:
        """Take kept memory of at least ``nbytes`` out, that of the sizes freed longest ago first."""
        out: list[tuple[Opaque, int, BufferSpec]] = []
        while nbytes > 0 and self._cache:
            size, options = next(iter(self._cache))
            out.append((self._take(size, options), size, options))
            nbytes -= size
        return out

    def _free_all(self, memory: "list[tuple[Opaque, int, BufferSpec]]") -> None:
        for opaque, size, options in memory:
            super().free(opaque, size, options)


def _counted(size: int, options: BufferSpec) -> int:
    """Bytes of the device's own memory in an allocation."""
    return size if options.external_ptr is None else 0


class Compiled:
    """An opened device.

    Attributes:
        allocator: its memory.
        caps: limits narrowed after opening, or None to keep what ``capabilities(target)`` said.
        queues: command queues that run captured graphs; None where the host launches step by step.
    """

    allocator: Allocator[Any]
    program_class: Callable[["Compiled", TinyELF], Program] | None = None
    caps: Capabilities | None = None
    queues: "Queues | None" = None

    def __init__(self, name: str, target: Target, spec: "DeviceSpec") -> None:
        self.name, self.target, self.spec = name, target, spec

    def load(self, elf: TinyELF) -> Program:
        """A launchable kernel.

        Raises:
            RuntimeError: the device runs no kernels.
        """
        if self.program_class is None:
            raise RuntimeError(f"{self.name} holds data and runs no kernels: move the tensor with .to(device) first")
        return self.program_class(self, elf)

    def synchronize(self) -> None:
        """Wait until everything submitted is done."""

    def finalize(self) -> None:
        """Wait, and release what must not outlive the process."""
        self.synchronize()
