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
    new_storage,
    place,
    store_in_new_buffer,
)
from tinyhost._tensor.views import (
    family_of,
    forget_exclusive,
    is_repeated,
    move_family,
    root_of,
    storage_of,
    strangers,
)
from tinyhost.download import fetch
from tinyhost.dtype import dtypes, least_upper_dtype, strong_dtype, to_dtype
from tinyhost.errors import DTypeError, PlacementError, ShapeError
from tinyhost.helpers import argfix
from tinyhost.mixin.movement import check_extents
from tinyhost.mixin.sint import is_one, same_shape
from tinyhost.uop import Ops, UOp
from tinyhost.uop.leaf import is_leaf, with_identity

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
        check_extents(dims)
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
        check_extents(dims)
        if any(isinstance(s, int) and s < 0 for s in dims):
            raise ShapeError(f"an extent cannot be negative, got shape {dims}")
        literal = fill_value.uop if isinstance(fill_value, TensorCore) else UOp.const(fill_value)
        if dtype is not None:
            literal = literal.cast(to_dtype(dtype)) if not literal.is_const else UOp.const(fill_value, to_dtype(dtype))
        value = literal.expand(dims) if dims else literal
        if not buffer:
            return cls._wrap(with_identity(value))
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

    # *** sequences: leaves of their own ***
    @classmethod
    def arange(cls, start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None) -> Self:
        """``start``, ``start + step``, ... below ``stop``, without storage; one argument counts from 0.

        Raises:
            ValueError: ``step`` is 0, or a number is not finite.
            OverflowError: a value does not fit the dtype.
        """
        return cls._wrap(with_identity(super().arange(start, stop, step, dtype).uop))

    @classmethod
    def linspace(cls, start: int | float, stop: int | float, steps: int, dtype: DTypeLike | None = None) -> Self:
        """``steps`` numbers from ``start`` to ``stop``, both included, without storage.

        Raises:
            ValueError: negative ``steps``, or bool as dtype.
        """
        return cls._wrap(with_identity(super().linspace(start, stop, steps, dtype).uop))

    @classmethod
    def eye(cls, n: int, m: int | None = None, dtype: DTypeLike | None = None) -> Self:
        """Matrix of ones on the main diagonal, zeros elsewhere, without storage.

        Raises:
            ValueError: a negative extent.
        """
        return cls._wrap(with_identity(super().eye(n, m, dtype).uop))

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

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, **kwargs: Any) -> Self:
        """The bytes behind a URL as a uint8 tensor of one axis; the file is kept in the cache folder.

        Raises:
            DownloadError: the file cannot be had.
        """
        return cls(fetch(url, gunzip=gunzip), **kwargs)

    # *** copies ***
    def clone(self, device: DeviceLike = None) -> Self:
        """A copy in storage of its own, on self's device unless another is given."""
        target = self.device if device is None and self.device is not None else canonical_device(device)
        assert target is not None
        return self._wrap(store_in_new_buffer(self.uop, target))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = self.clone() if self.device is not None else self._wrap(with_identity(self.uop))
        new.grad, new.is_param = None if self.grad is None else self.grad.__deepcopy__(memo), self.is_param
        memo[id(self)] = new
        return new

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
        forget_exclusive(x.uop)
        self.uop, self._family = x.uop, None
        return self

    def _value_for(self, x: Any, shape: tuple[Any, ...], what: str) -> Self:
        """``x`` as a value that can be stored into ``shape`` elements of self.

        Raises:
            DTypeError: the dtypes differ and ``x`` is no weak value of self's kind.
            ShapeError: the shape does not broadcast.
            PlacementError: the devices differ.
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
            literal = None if is_leaf(value.uop) else value._literal()
            value = value._at(mine).cast(mine) if literal is None else self._const(literal, mine)
        if value.device != self.device:
            value = self._value_here(value, shape, what)
        extra = len(value.shape) - len(shape)
        if extra > 0 and all(is_one(s) for s in value.shape[:extra]):
            value = value.reshape(value.shape[extra:])
        try:
            return value._broadcast_to(shape)
        except ShapeError as e:
            raise ShapeError(f"{what} shape mismatch {shape} != {value.shape}: the value must broadcast") from e

    def _value_here(self, value: Self, shape: tuple[Any, ...], what: str) -> Self:
        """A value from another device, or from none: storage outside of memory, like a file, gets a copy."""
        from tinyhost.device import caps_of  # brings the plugin catalog, which is not needed to build graphs
        if isinstance(self.device, str) and (caps := caps_of(self.device)).storage_only and not caps.host_visible:
            wide = value._broadcast_to(shape) if value.device is None else value
            return wide.contiguous().to(self.device)
        if value.device is not None:
            raise PlacementError(f"{what} device mismatch {self.device} != {value.device}: move the value with .to()")
        return value

    def assign(self, x: Any) -> Self:
        """Write ``x`` into self; the storage changes when self is realized, and every view of it sees the new content.

        Raises:
            DTypeError, ShapeError, RuntimeError: dtype, shape or device of ``x`` do not fit.
        """
        if isinstance(x, TensorCore) and x.uop is self.uop:
            return self
        self._own_storage()
        value = self._value_for(x, self.shape, "assign")
        if 0 in self.shape:
            return self
        if storage_of(self.uop) is not None:
            self._store(self.uop, value.uop)
            return self
        if value.device is None and self.device is not None:
            value = value._wrap(store_in_new_buffer(value.uop, self.device))
        forget_exclusive(value.uop)
        self.uop, self._family = value.uop, None
        return self

    def _own_storage(self) -> None:
        """Prepare a write: weak values become strong, repeated elements separate, a value with views gets storage."""
        if self.dtype.is_weak or is_repeated(self.uop):
            self.uop, self._family = store_in_new_buffer(self.uop, canonical_device(self.device)), None
            return
        root = root_of(self.uop)
        if storage_of(root) is None and any(t is not self and root_of(t.uop) is root for t in family_of(self)):
            move_family(self, root, store_in_new_buffer(root, canonical_device(root.device)))

    def _store(self, place: UOp, value: UOp) -> None:
        """Write ``value`` into ``place``, a view of the storage that self shows."""
        buffer, root = storage_of(place), root_of(place)
        assert buffer is not None
        copies: dict[UOp, UOp] = {}
        for t in strangers(self, buffer):
            theirs = root_of(t.uop)
            if theirs not in copies:
                copies[theirs] = store_in_new_buffer(theirs, canonical_device(theirs.device))
            t.uop = t.uop.substitute({theirs: copies[theirs]}, walk=True)
        if place is self.uop and is_whole(place) and len(family_of(self)) == 1:
            self.uop = place.after(place.store(value))
        else:
            move_family(self, root, root.after(place.store(value)))

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

    def __ipow__(self, x: Any) -> Self:
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
    """Whether a view shows all of its root in order."""
    while uop.op is Ops.RESHAPE:
        uop = uop.src[0]
    return uop is root_of(uop)
