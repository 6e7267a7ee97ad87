"""Buffer: typed storage on one device, and the map from BUFFER nodes to it.

A Buffer is allocated at first use and freed when nothing refers to it any more; a view shares its base's memory. The
map is weak in the node: when the last graph that mentions a BUFFER is gone, its storage goes too.
"""
from __future__ import annotations

import math
import weakref
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.device.registry import Device
from tinyhost.dtype import DType, _from_np_dtype, _to_np_dtype, dtypes
from tinyhost.env import MAX_BUFFER_SIZE, PROFILE
from tinyhost.errors import ExchangeError, OutOfMemory
from tinyhost.helpers import GlobalCounters, size_to_str
from tinyhost.ops import AddrSpace, Ops
from tinyhost.profiling import record_memory
from tinyhost.uop import UOp
from tinyhost.uop.info import ParamArg
from tinyhost.uop.services import register

if TYPE_CHECKING:
    from tinyhost.device.base import Allocator, BufferSpec

HOST_DEVICE = "NPY"


class Buffer:
    """``size`` elements of ``dtype`` on ``device``; with ``base`` a view of it, ``offset`` bytes in."""

    def __init__(self, device: str, size: int, dtype: DType, opaque: Any = None, options: BufferSpec | None = None,
                 initial_value: bytes | None = None, base: "Buffer | None" = None, offset: int = 0,
                 preallocate: bool = False) -> None:
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} elements")
        if dtype in dtypes.weaks or dtype is dtypes.void:
            raise RuntimeError(f"cannot create storage for dtype {dtype}: cast to a concrete dtype first")
        self.device, self.size, self.dtype, self.options, self.offset = device, size, dtype, options, offset
        self._opaque: Any = None
        self._base = base
        self._lease: weakref.ref[Lease] | None = None
        self._owned = self._counted = False
        self._keep: Any = None  # what foreign memory belongs to
        self.readonly = False
        if base is not None and (offset < 0 or offset + self.nbytes > base.nbytes or base._base is not None):
            raise ValueError(f"view of {size} {dtype} at byte {offset} does not fit its base of {base.nbytes} bytes")
        if opaque is not None:
            self.allocate(opaque)
        if initial_value is not None:
            self.allocate().copyin(memoryview(initial_value))
        elif preallocate:
            self.allocate()

    def __repr__(self) -> str:
        state = "allocated" if self.is_allocated() else "not allocated"
        return f"<Buffer {self.device} {self.size} x {self.dtype} at byte {self.offset}, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        data = bytes(self.as_memoryview()) if self.is_allocated() else None
        options = None if self.options is None else replace(self.options, external_ptr=None)  # memory of its own
        return Buffer, (self.device, self.size, self.dtype, None, options, data)

    @property
    def base(self) -> "Buffer":
        """The buffer that owns the memory."""
        return self if self._base is None else self._base

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def allocator(self) -> "Allocator[Any]":
        """The device's allocator."""
        return Device[self.device].allocator

    def is_allocated(self) -> bool:
        """Whether memory stands behind it."""
        return self.base._opaque is not None

    is_initialized = is_allocated

    def ensure_allocated(self) -> "Buffer":
        """Allocate if needed; threads that need it at once get one memory."""
        if not self.is_allocated():
            self.allocator  # noqa: B018  opening a device waits for another thread, which must not need our lock
            with _lock:
                if not self.is_allocated():
                    self.allocate()
        return self

    def allocate(self, opaque: Any = None, external_ptr: int | None = None, keep: Any = None) -> "Buffer":
        """Get memory, or take ``opaque`` or the foreign memory at ``external_ptr`` over; ``keep`` lives as long as it.

        Raises:
            OutOfMemory: the device has none, or MAX_BUFFER_SIZE forbids it.
        """
        if self._base is not None:
            self._base.ensure_allocated()
            return self
        if self._opaque is not None:
            raise RuntimeError(f"{self!r} is allocated already")
        limit = MAX_BUFFER_SIZE.value
        if limit and self.nbytes > limit:
            raise OutOfMemory(f"buffer of {size_to_str(self.nbytes)} is over MAX_BUFFER_SIZE={limit}")
        if external_ptr is not None:
            self._check_foreign(external_ptr)
            from tinyhost.device.base import BufferSpec
            self.options = BufferSpec(external_ptr=external_ptr)
        self._owned, self._keep = opaque is None, keep
        allocator = self.allocator
        self._counted = self._owned and external_ptr is None and allocator.counted
        self._opaque = allocator.alloc(self.nbytes, self.options) if opaque is None else opaque
        if self._counted:
            _account(self.device, self.nbytes)
        return self

    def _check_foreign(self, ptr: int) -> None:
        if not self.allocator.foreign:
            raise ValueError(f"{self.device} cannot take foreign memory over: make the tensor on a device that can, "
                             "and move it with .to()")
        if ptr <= 0:
            raise ValueError(f"foreign memory at {ptr}: an address is a positive number")
        if ptr % self.dtype.itemsize:
            raise ValueError(f"foreign memory at {ptr:#x} is not aligned to the {self.dtype.itemsize} bytes of "
                             f"{self.dtype}: copy it to aligned memory first")

    def deallocate(self) -> None:
        """Give the memory back."""
        if self._base is not None or self._opaque is None:
            return
        if (lease := self._leased()) is not None:
            self._leave_to(lease, Buffer(self.device, self.size, self.dtype))
            return
        opaque, self._opaque = self._opaque, None
        if self._counted:
            _account(self.device, -self.nbytes)
        if self._owned:
            self.allocator.free(opaque, self.nbytes, self.options)
        if self._keep is not None:
            Device[self.device].synchronize()  # work on foreign memory ends before its owner hears of it
            self._keep = None

    def __del__(self) -> None:
        # a half-built buffer, and interpreter shutdown, leave nothing to free
        if getattr(self, "_opaque", None) is not None and not Device.finalized:
            self.deallocate()

    def get_buf(self, device: str | None = None) -> Any:
        """The backend's handle, allocated if needed."""
        base = self.base.ensure_allocated()
        if self.offset == 0 and self._base is None:
            return base._opaque
        return self.allocator._offset(base._opaque, self.nbytes, self.offset)

    def view(self, size: int, dtype: DType, offset: int) -> "Buffer":
        """``size`` elements of ``dtype`` that start ``offset`` bytes into this buffer."""
        return Buffer(self.device, size, dtype, base=self.base, offset=self.offset + offset)

    def as_memoryview(self, allow_zero_copy: bool = False, force_zero_copy: bool = False,
                      no_sync: bool = False) -> memoryview:
        """The bytes; the memory itself where ``allow_zero_copy`` and the host can see it, else a copy.

        Args:
            force_zero_copy: never copy.
            no_sync: do not wait for work on the device.

        Raises:
            ExchangeError: ``force_zero_copy`` where the host does not see the memory.
        """
        if not no_sync:
            Device[self.device].synchronize()
        if (allow_zero_copy or force_zero_copy) and (seen := self.host_view()) is not None:
            return seen
        if force_zero_copy:
            raise ExchangeError(f"the host does not see the memory of {self!r}: leave force_zero_copy out to copy it")
        out = memoryview(bytearray(self.nbytes))
        if self.nbytes:
            self.allocator._copyout(out, self.get_buf())
        return out

    def host_view(self) -> memoryview | None:
        """The memory as host bytes, None where the host cannot see it."""
        whole = self.allocator._as_buffer(self.base.ensure_allocated()._opaque)
        return None if whole is None else whole[self.offset:self.offset + self.nbytes]

    def copyin(self, mv: memoryview) -> "Buffer":
        """Fill from host bytes of exactly this size."""
        mv = mv.cast("B") if mv.format != "B" or mv.ndim != 1 else mv
        if len(mv) != self.nbytes:
            raise ValueError(f"size mismatch: {len(mv)} bytes into a buffer of {self.nbytes}")
        if self.nbytes:
            self.allocator._copyin(self.get_buf(), mv)
        return self

    def copy_from(self, src: "Buffer") -> "Buffer":
        """Fill from another buffer of the same size, on any device, with as few copies as the two allow."""
        if src.nbytes != self.nbytes:
            raise ValueError(f"size mismatch: {src!r} into {self!r}")
        if not self.nbytes or self.allocator._transfer(self.get_buf(), src.get_buf(), self.nbytes, src.allocator):
            return self
        Device[src.device].synchronize()
        if (seen := src.host_view()) is not None:
            self.copyin(seen)
        elif (mine := self.host_view()) is not None:
            Device[self.device].synchronize()
            src.allocator._copyout(mine, src.get_buf())
        else:
            self.copyin(src.as_memoryview())
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy as a flat array.

        Raises:
            TypeError: numpy has no such type.
        """
        np_dtype = _to_np_dtype(self.dtype)
        if np_dtype is None:
            raise TypeError(f"numpy has no dtype for {self.dtype}: cast first")
        return np.frombuffer(self.as_memoryview(), dtype=np_dtype)

    # *** memory that others see ***
    def lease(self) -> "Lease":
        """A hold on the memory: while it lives, the memory is not freed, reused or written by us."""
        base = self.base.ensure_allocated()
        with _lock:
            lease = base._leased()
            if lease is None:
                lease = Lease(base)
                base._lease = weakref.ref(lease)
            return lease

    def _leased(self) -> "Lease | None":
        return None if self._lease is None else self._lease()

    def make_writable(self) -> None:
        """Prepare a write: memory that is leased or read-only stays as it is, and the buffer goes on in a copy of it.

        Handles from ``get_buf`` are stale after a move.
        """
        base = self.base
        if base._opaque is None or (base._lease is None and not base.readonly):
            return
        with _lock:
            lease = base._leased()
            if lease is not None or base.readonly:
                base._leave_to(lease, Buffer(base.device, base.size, base.dtype).allocate().copy_from(base))

    def _leave_to(self, lease: "Lease | None", other: "Buffer") -> None:
        """Exchange memory with ``other``, which the lease holds from now on."""
        for name in ("_opaque", "options", "_owned", "_counted", "_keep", "readonly"):
            mine = getattr(self, name)
            setattr(self, name, getattr(other, name))
            setattr(other, name, mine)
        self._lease = None
        if lease is not None:
            lease.buffer = other


class Lease:
    """A hold on the memory of ``buffer``, shared by all who see that memory: it is freed after the last one let go.

    Attributes:
        buffer: the leased one, or after it went on elsewhere a stand-in that owns what it left.
        view: the memory as host bytes, None where the host cannot see it.
        readonly: whether nobody may write the memory.
    """

    __slots__ = ("buffer", "view", "readonly", "__weakref__")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.view, self.readonly = buffer, buffer.host_view(), buffer.readonly


def _account(device: str, nbytes: int) -> None:
    per = GlobalCounters.mem_used_per_device
    with _lock:
        GlobalCounters.mem_used += nbytes
        per[device] = per.get(device, 0) + nbytes
        if PROFILE.value:
            record_memory(device, per[device])


# *** BUFFER nodes ***
_lock = RLock()  # re-entrant: the collector may free buffers inside of a locked block
_buffers: "weakref.WeakKeyDictionary[UOp, Buffer | MultiBuffer]" = weakref.WeakKeyDictionary()


def _new_buffer(arg: ParamArg) -> Buffer | MultiBuffer:
    if isinstance(arg.device, tuple):
        return MultiBuffer([Buffer(d, arg.size or 0, arg.dtype) for d in arg.device])
    assert arg.device is not None, "a BUFFER has a device"
    return Buffer(arg.device, arg.size or 0, arg.dtype)


def buffer_of(u: UOp) -> Buffer | MultiBuffer:
    """The storage of a BUFFER, or of a contiguous view of one.

    Raises:
        RuntimeError: the node is not such a view.
    """
    views = []
    while u.op in (Ops.RESHAPE, Ops.AFTER, Ops.SHRINK, Ops.BITCAST, Ops.UNSHARD):
        if u.op in (Ops.SHRINK, Ops.BITCAST):
            views.append(u)
        u = u.src[0]
    if u.op is not Ops.BUFFER or u.arg.addrspace is not AddrSpace.GLOBAL:
        raise RuntimeError(f"no storage behind {u.op}: realize() the tensor first")
    with _lock:
        buf = _buffers.get(u)
        if buf is None:
            buf = _buffers[u] = _new_buffer(u.arg)
    for v in reversed(views):
        buf = _view(buf, v)
    return buf


def has_storage(u: UOp) -> bool:
    """Whether a BUFFER node was given storage before."""
    with _lock:
        return u in _buffers


def _view(buf: Buffer | MultiBuffer, v: UOp) -> Buffer | MultiBuffer:
    if v.op is Ops.BITCAST:
        return buf.view(buf.nbytes // v.dtype.itemsize, v.dtype, 0)
    if len(v.marg) != 1 or not all(isinstance(x, int) for x in v.marg[0]):
        raise RuntimeError(f"a buffer view is one contiguous run, got shrink {v.marg} of shape {v.src[0].shape}")
    offset, size = v.marg[0]
    return buf.view(size, buf.dtype, offset * buf.dtype.itemsize)


def from_buffer(buf: Buffer | MultiBuffer, device: Any = None) -> UOp:
    """A BUFFER node for existing storage."""
    u = UOp.new_buffer(buf.device, buf.size, buf.dtype)
    with _lock:
        _buffers[u] = buf
    return u


def _pickled(u: UOp) -> Buffer | MultiBuffer | None:
    with _lock:
        buf = _buffers.get(u)
    return buf if buf is not None and buf.is_allocated() else None


def _unpickled(arg: ParamArg, tag: Any, buf: Buffer | MultiBuffer) -> UOp:
    return from_buffer(buf)


register(buffer=buffer_of, from_buffer=from_buffer, on_buffer_pickle=_pickled, on_buffer_unpickle=_unpickled)


def host_buffer(array: "np.ndarray[Any, Any]") -> Buffer:
    """Storage on the host that is ``array`` itself (C order; copied when it is not contiguous or not native).

    Raises:
        TypeError: no dtype corresponds to the array's.
    """
    dtype = _from_np_dtype(array.dtype)
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    buffer = Buffer(HOST_DEVICE, math.prod(native.shape), dtype, opaque=native.reshape(-1))
    buffer.readonly = not native.flags.writeable
    return buffer
