"""Storage and variables: BUFFER and PARAM nodes, views of them, what lies under a view, symbolic integers by name.

Storage is flat: its node carries a number of elements, and a shape is a view on top. Bytes live elsewhere; ``buffer``
and ``realized`` ask the device floor for them through ``services.py``.
"""
from __future__ import annotations

import threading
from typing import Any, Self

from tinyhost.dtype import DType, dtypes, strong_dtype
from tinyhost.helpers import prod
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop.fields import NodeFields, sint
from tinyhost.uop.info import ParamArg
from tinyhost.uop.services import registered, service
from tinyhost.uop.sharding import stored_axis

_VIEWS = GroupOp.Movement | {Ops.DETACH}
_STORAGE = frozenset({Ops.BUFFER, Ops.PARAM, Ops.STAGE, Ops.MSELECT, Ops.MSTACK})
_last_slot = 0
_lock = threading.Lock()


def next_buffer_slot() -> int:
    """A number that no other buffer of this process has."""
    global _last_slot
    with _lock:
        _last_slot += 1
        return _last_slot


def _run_in(m: Any) -> int | None:
    """Where a movement op's result starts in its source, None unless it is one run of it in order."""
    if m.op in (Ops.RESHAPE, Ops.DETACH):
        return 0
    shape = m.src[0].shape
    if not all(isinstance(d, int) for d in (*shape, *m.shape)):
        return None
    if m.op is Ops.PERMUTE:
        kept = [axis for axis in m.marg if shape[axis] != 1]
        return 0 if kept == sorted(kept) else None
    if m.op is not Ops.SHRINK:
        return 0 if m.shape == shape else None
    offset, pitch, inner_cut = 0, 1, False
    for d, (start, size) in zip(reversed(shape), reversed(m.marg)):
        if inner_cut and size != 1:
            return None
        inner_cut |= size != d
        offset, pitch = offset + start * pitch, pitch * d
    return offset


class StorageMixin(NodeFields):
    """Constructors and questions around storage."""

    __slots__ = ()

    # *** storage ***
    @classmethod
    def new_buffer(cls, device: str | tuple[str, ...], size: int, dtype: DType, num: int | None = None) -> Self:
        """A new buffer of ``size`` elements on ``device``."""
        if not isinstance(size, int):
            raise TypeError(f"new_buffer size must be a concrete int, got {size}")
        if dtype in dtypes.weaks:
            raise RuntimeError(f"cannot create storage for weak dtype {dtype}: cast to a concrete dtype first")
        slot = next_buffer_slot() if num is None else num
        return cls(Ops.BUFFER, (), ParamArg(slot, dtype, size, device=device))

    @classmethod
    def param(cls, slot: int, dtype: DType, shape: Any = None, device: Any = None,
              vmin_vmax: tuple[Any, Any] | None = None, multiple_of: int | None = None, name: str | None = None,
              addrspace: AddrSpace = AddrSpace.GLOBAL, volatile: bool = False) -> Self:
        """A call argument: a scalar without ``shape``, else flat storage of the largest shape viewed as ``shape``."""
        if dtype in dtypes.weaks and addrspace is not AddrSpace.ALU:
            raise RuntimeError(f"cannot create param for weak dtype {dtype}: cast to a concrete dtype first")
        dims = () if shape is None else shape if isinstance(shape, tuple) else (shape,)
        size = int(prod(d if isinstance(d, int) else d.vmax for d in dims)) if dims else None
        p = cls(Ops.PARAM, (), ParamArg(slot, dtype, size, vmin_vmax, multiple_of, name, addrspace, device, volatile))
        return p.view_as(dims) if dims else p

    def view_as(self, shape: tuple[sint, ...], axis: int | None = None) -> Self:
        """This flat storage seen as ``shape``: the largest shape, the symbolic part of it, shards along ``axis``."""
        most = tuple(d if isinstance(d, int) else int(d.vmax) for d in shape)
        u = self if most == self.shape else self._mop(Ops.RESHAPE, most)
        u = u if most == tuple(shape) else u._mop(Ops.SHRINK, tuple((0, d) for d in shape))
        return u.unshard(axis)

    def param_like(self, slot: int) -> Self:
        """A PARAM that takes a value like this one."""
        if self.is_variable or self.is_bound_var:
            var = self.src[0] if self.op is Ops.AFTER else self
            a = var.arg
            arg = ParamArg(slot, a.dtype, a.size, a.vmin_vmax, a.multiple_of, f"p{slot}", a.addrspace)
            return type(self)(Ops.PARAM, (), arg)
        axis = stored_axis(self)
        if axis is None:
            return self.param(slot, self.dtype, self.shape or None, self.device)
        return self.param(slot, self.dtype, self.shard_shape, self.device).unshard(axis).only(axis, self.shape[axis])

    @classmethod
    def placeholder(cls, shape: tuple[int, ...], dtype: DType, slot: int | None = None,
                    addrspace: AddrSpace = AddrSpace.GLOBAL, device: Any = None, volatile: bool = False) -> Self:
        """Storage inside a kernel: a PARAM in global memory, a BUFFER in workgroup memory or registers."""
        if addrspace is not AddrSpace.GLOBAL and device is not None:
            raise ValueError(f"{addrspace} storage belongs to its kernel and has no device, got {device!r}")
        arg = ParamArg(next_buffer_slot() if slot is None else slot, strong_dtype(dtype), int(prod(shape)),
                       addrspace=addrspace, device=device, volatile=volatile)
        u = cls(Ops.PARAM if addrspace is AddrSpace.GLOBAL else Ops.BUFFER, (), arg)
        return u._mop(Ops.RESHAPE, shape) if len(shape) > 1 else u

    def placeholder_like(self, slot: int, addrspace: AddrSpace = AddrSpace.GLOBAL) -> Self:
        """A placeholder of this value's largest shape and dtype; of what one device holds if it is split."""
        return self.placeholder(self.max_shard_shape, self.dtype, slot, addrspace)

    @property
    def base(self) -> Self:
        """The value under movement ops and DETACH."""
        u = self
        while u.op in _VIEWS:
            u = u.src[0]
        return u

    def contiguous_view(self) -> tuple[Self, int] | None:
        """(base, offset in elements) where this value is one run of its base in order, else None."""
        movement: list[Self] = []
        u = self
        while u.op in _VIEWS:
            movement.append(u)
            u = u.src[0]
        offset = 0
        for m in reversed(movement):
            step = _run_in(m)
            if step is None:
                return None
            offset += step
        return u, offset

    def contiguous_view_offset(self) -> int | None:
        """Offset in elements of ``contiguous_view``, None where there is none."""
        view = self.contiguous_view()
        return None if view is None else view[1]

    @property
    def without_after(self) -> Self:
        """The value under one AFTER."""
        return self.src[0] if self.op is Ops.AFTER else self

    @property
    def buf_uop(self) -> Self:
        """The storage a place or view belongs to."""
        u = self
        while u.op not in _STORAGE:
            if not u.src:
                raise RuntimeError(f"no storage under {self.op}: reached {u.op}")
            u = u.src[0]
        return u

    def has_buffer_identity(self, after_ok: bool = False) -> bool:
        """Whether the value is a whole buffer, at most reshaped."""
        u = self
        while u.op in (Ops.RESHAPE, Ops.UNSHARD, Ops.MSELECT) or (after_ok and u.op is Ops.AFTER):
            u = u.src[0]
        if u.op is Ops.BUFFER:
            return u.arg.addrspace is AddrSpace.GLOBAL
        return u.op is Ops.PARAM and u.arg.size is not None

    @property
    def buffer(self) -> Any:
        """The storage behind a BUFFER or a contiguous view of one."""
        return service("buffer")(self)

    @property
    def realized(self) -> Any:
        """The allocated storage of this value, None when there is none yet."""
        fn = registered("buffer")
        if fn is None or not self.has_buffer_identity():
            return None
        buf = fn(self)
        return buf if buf is not None and buf.is_allocated() else None

    @property
    def is_realized(self) -> bool:
        """Whether this value's bytes exist."""
        return self.realized is not None

    @classmethod
    def from_buffer(cls, opaque: Any, device: Any = None) -> Self:
        """The BUFFER node of existing storage."""
        return service("from_buffer")(opaque, device)  # type: ignore[no-any-return]

    # *** variables ***
    @classmethod
    def variable(cls, name: str, min_val: Any, max_val: Any, dtype: DType = dtypes.weakint, multiple_of: int = 1,
                 param: bool = False) -> Self:
        """A symbolic integer between ``min_val`` and ``max_val``."""
        if min_val > max_val:
            raise ValueError(f"variable {name!r} has an empty range {min_val} to {max_val}")
        step = None if multiple_of == 1 else multiple_of
        arg = ParamArg(-1, dtype, None, (min_val, max_val), step, name, AddrSpace.ALU)
        return cls(Ops.PARAM if param else Ops.BUFFER, (), arg)

    @property
    def is_variable(self) -> bool:
        """Whether this is an unbound symbolic integer."""
        return self.op in GroupOp.Defines and self.arg.addrspace is AddrSpace.ALU

    @property
    def is_bound_var(self) -> bool:
        """Whether this is a symbolic integer with its value."""
        return self.op is Ops.AFTER and len(self.src) == 2 and self.src[0].is_variable and self.src[1].op is Ops.STORE

    @property
    def expr(self) -> str:
        """Name of a variable."""
        return str((self.src[0] if self.op is Ops.AFTER else self).arg.name)

    def bind(self, val: Any) -> Self:
        """This variable with a value."""
        if not self.is_variable:
            raise ValueError(f"only a variable can be bound, got {self.op}")
        if isinstance(val, StorageMixin):
            return self.after(self.store(val))
        lo, hi = self.arg.vmin_vmax
        assert lo <= val <= hi, f"bind {val} not in range [{lo}, {hi}] of variable {self.arg.name!r}"
        assert val % (self.arg.multiple_of or 1) == 0, \
            f"bind {val} is no multiple of {self.arg.multiple_of} as variable {self.arg.name!r} demands"
        return self.after(self.store(self._const(val)))

    @property
    def val(self) -> int:
        """Value of a bound variable."""
        return self.unbind()[1]

    def unbind(self) -> tuple[Self, int]:
        """The variable and its value."""
        if not self.is_bound_var:
            raise ValueError(f"can't unbind {self.op}: it is not a bound variable")
        return self.src[0], self.src[1].src[1].const_value

    def unbind_all(self) -> tuple[Self, dict[Self, int]]:
        """The graph with bound variables made free, and their values."""
        found = {u: u.unbind() for u in self.toposort() if u.is_bound_var}
        return self.substitute({u: v for u, (v, _) in found.items()}), dict(found.values())

    def variables(self) -> list[Self]:
        """Variables of the graph, sorted by name."""
        return sorted({u for u in self.toposort() if u.is_variable}, key=lambda v: v.arg.name)
