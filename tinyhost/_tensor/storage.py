"""Tensors as storage: fresh buffers, copies, moves between devices, and writes in place.

A write is ``AFTER(target, STORE(target, value))``: the tensor's new node is its old storage as of after the store.
Views of the same storage that other tensors hold are moved along, so that they see the write as they would in numpy.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import (
    DeviceLike,
    TensorCore,
    canonical_device,
    is_stored,
    new_storage,
    place,
    store_in_new_buffer,
)
from tinyhost._tensor.registry import live_tensors
from tinyhost.dtype import dtypes, least_upper_dtype, strong_dtype, to_dtype
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import argfix
from tinyhost.mixin.sint import is_one, same_shape
from tinyhost.uop import Ops, UOp

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike


class StorageTensor(TensorCore):
    """empty, full, clone, to, assign, replace and the in-place operators."""

    __slots__ = ()

    # *** fresh storage ***
    @classmethod
    def empty(cls, *shape: Any, device: DeviceLike = None, dtype: DTypeLike | None = None) -> Self:
        """Storage with unspecified contents.

        Raises:
            ShapeError: a negative extent.
        """
        dims = argfix(*shape)
        if any(isinstance(s, int) and s < 0 for s in dims):
            raise ShapeError(f"an extent cannot be negative, got shape {dims}")
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        return cls._wrap(new_storage(dims, dt, canonical_device(device)))

    def empty_like(self, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Storage of self's shape, and of its dtype and device unless others are given."""
        dt = strong_dtype(self.dtype) if dtype is None else to_dtype(dtype)
        return self.empty(self.shape, device=self.device if device is None else device, dtype=dt)

    @classmethod
    def invalids(cls, *shape: Any, device: DeviceLike = None, dtype: DTypeLike | None = None) -> Self:
        """Storage that nothing reads before it is written."""
        return cls.empty(*shape, device=device, dtype=dtype)

    @classmethod
    def full(cls, shape: tuple[Any, ...], fill_value: Any, dtype: DTypeLike | None = None, device: DeviceLike = None,
             buffer: bool = True) -> Self:
        """``fill_value`` everywhere, in storage of its own; ``buffer=False`` gives a literal without it."""
        dims = argfix(shape)
        if any(isinstance(s, int) and s < 0 for s in dims):
            raise ShapeError(f"an extent cannot be negative, got shape {dims}")
        literal = fill_value.uop if isinstance(fill_value, TensorCore) else UOp.const(fill_value)
        if dtype is not None:
            literal = literal.cast(to_dtype(dtype)) if not literal.is_const else UOp.const(fill_value, to_dtype(dtype))
        value = literal.expand(dims) if dims else literal
        if not buffer:
            return cls._wrap(value)
        return cls._wrap(store_in_new_buffer(value, canonical_device(device)))

    def full_like(self, fill_value: Any, dtype: DTypeLike | None = None, device: DeviceLike = None,
                  buffer: bool = True) -> Self:
        """``fill_value`` at self's shape, and at its dtype and device unless others are given."""
        return self.full(self.shape, fill_value, self.dtype if dtype is None else dtype,
                         self.device if device is None else device, buffer)

    @classmethod
    def zeros(cls, *shape: Any, **kwargs: Any) -> Self:
        """Zeros of the default float."""
        return cls.full(argfix(*shape), 0.0, **{"dtype": dtypes.default_float, **kwargs})

    @classmethod
    def ones(cls, *shape: Any, **kwargs: Any) -> Self:
        """Ones of the default float."""
        return cls.full(argfix(*shape), 1.0, **{"dtype": dtypes.default_float, **kwargs})

    def zeros_like(self, **kwargs: Any) -> Self:
        """Zeros like self."""
        return self.full_like(0, **kwargs)

    def ones_like(self, **kwargs: Any) -> Self:
        """Ones like self."""
        return self.full_like(1, **kwargs)

    @classmethod
    def from_blob(cls, ptr: int, shape: tuple[int, ...], **kwargs: Any) -> Self:
        """Foreign memory at address ``ptr`` as a tensor; it must stay valid as long as the tensor."""
        from tinyhost.device import Buffer
        device = canonical_device(kwargs.pop("device", None))
        dt = to_dtype(kwargs.pop("dtype", dtypes.default_float))
        if kwargs:
            raise TypeError(f"from_blob takes device and dtype, got {sorted(kwargs)}")
        if isinstance(device, tuple):
            raise ValueError(f"foreign memory lies on one device, got {device}")
        buffer = Buffer(device, math.prod(shape), dt)
        buffer.allocate(external_ptr=ptr)
        return cls._wrap(UOp.from_buffer(buffer).reshape(shape))

    # *** copies ***
    def clone(self, device: DeviceLike = None) -> Self:
        """A copy in storage of its own, on self's device unless another is given."""
        target = self.device if device is None and self.device is not None else canonical_device(device)
        assert target is not None
        return self._wrap(store_in_new_buffer(self.uop, target))

    def to(self, device: DeviceLike) -> Self:
        """Self on another device, the default one for None; self if it is there already."""
        target = canonical_device(device)
        if self.device == target:
            return self
        ret = self._wrap(place(self.uop, target))
        ret.is_param = self.is_param
        if self.grad is not None:
            ret.grad = self.grad.to(device)
        return ret

    def to_(self, device: DeviceLike) -> Self:
        """Move self, and its gradient, to another device."""
        moved = self.to(device)
        if self.grad is not None and moved is not self:
            self.grad = moved.grad
        self.uop = moved.uop
        return self

    # *** writes ***
    def replace(self, x: Self) -> Self:
        """Let self stand for the value of ``x``; nothing is written.

        Raises:
            ShapeError: the shapes differ.
        """
        if not same_shape(self.shape, x.shape):
            raise ShapeError(f"cannot replace a tensor of shape {self.shape} by one of shape {x.shape}")
        self.uop = x.uop
        return self

    def _value_for(self, x: Any, shape: tuple[Any, ...], what: str) -> Self:
        """``x`` as a value that can be stored into ``shape`` elements of self.

        Raises:
            DTypeError: the dtypes differ and ``x`` is no weak value of self's kind.
            ShapeError: the shape does not broadcast.
            RuntimeError: the devices differ.
        """
        if not isinstance(x, TensorCore) and (isinstance(x, (list, tuple)) or hasattr(x, "__array__")):
            value = type(self)(x, device=self.device, dtype=self.dtype)
        else:
            value = self.ufix(x)
        mine, theirs = self.dtype, value.dtype
        if theirs is not mine:
            weak = theirs.is_weak or value._literal() is not None
            if not weak or least_upper_dtype(mine, theirs) is not mine:
                raise DTypeError(f"{what} dtype mismatch {mine} != {theirs}: cast the value to {mine}")
            value = value._at(mine).cast(mine) if value._literal() is None else self._const(value._literal(), mine)
        if value.device is not None and value.device != self.device:
            raise RuntimeError(f"{what} device mismatch {self.device} != {value.device}: move the value with .to()")
        extra = len(value.shape) - len(shape)
        if extra > 0 and all(is_one(s) for s in value.shape[:extra]):
            value = value.reshape(value.shape[extra:])
        try:
            return value._broadcast_to(shape)
        except ShapeError as e:
            raise ShapeError(f"{what} shape mismatch {shape} != {value.shape}: the value must broadcast") from e

    def assign(self, x: Any) -> Self:
        """Write ``x`` into self's storage when realized; without storage, let self stand for ``x``.

        Raises:
            DTypeError, ShapeError, RuntimeError: dtype, shape or device of ``x`` do not fit.
        """
        if isinstance(x, TensorCore) and x.uop is self.uop:
            return self
        if self.dtype.is_weak:
            self.uop = store_in_new_buffer(self.uop, canonical_device(self.device))
        value = self._value_for(x, self.shape, "assign")
        if not is_stored(self.uop):
            self.uop = value.uop if value.uop.device is not None or self.device is None else \
                store_in_new_buffer(value.uop, canonical_device(self.device))
            return self
        return self._store(value)

    def _store(self, value: Self) -> Self:
        """Write ``value`` into the view that self is; every view of the storage sees it."""
        target, base = self.uop, self.uop.base
        store = target.store(value.uop)
        if target is base or is_whole(target):
            self.uop = target.after(store)
        else:
            move_views(base, base.after(store))
        return self

    def __iadd__(self, x: Any) -> Self:
        return self.assign(self + x)

    def __isub__(self, x: Any) -> Self:
        return self.assign(self - x)

    def __imul__(self, x: Any) -> Self:
        return self.assign(self * x)

    def __itruediv__(self, x: Any) -> Self:
        return self.assign(self / x)

    def __ifloordiv__(self, x: Any) -> Self:
        return self.assign(self // x)

    def __imod__(self, x: Any) -> Self:
        return self.assign(self % x)

    def __ipow__(self, x: Any) -> Self:  # type: ignore[misc]
        return self.assign(self ** x)

    def __iand__(self, x: Any) -> Self:
        return self.assign(self & x)

    def __ior__(self, x: Any) -> Self:
        return self.assign(self | x)

    def __ixor__(self, x: Any) -> Self:
        return self.assign(self ^ x)

    def __ilshift__(self, x: Any) -> Self:
        return self.assign(self << x)

    def __irshift__(self, x: Any) -> Self:
        return self.assign(self >> x)

    def __imatmul__(self, x: Any) -> Self:
        return self.assign(self @ x)


def is_whole(uop: UOp) -> bool:
    """Whether a view shows all of its base in order."""
    while uop.op is Ops.RESHAPE:
        uop = uop.src[0]
    return uop is uop.base


def move_views(old: UOp, new: UOp) -> None:
    """Let every live tensor that is a view of ``old`` be that view of ``new``."""
    for t in live_tensors():
        if t.uop is old:
            t.uop = new
        elif t.uop.base is old:
            t.uop = t.uop.substitute({old: new}, walk=True)
