"""What makes a Tensor a node: construction, the hooks of the mixins, and the Python protocols that need no data.

A Tensor holds one UOp and nothing else but its gradient and whether it is a parameter. It is immutable in value except
through ``assign``, ``replace`` and item assignment, which exchange the UOp.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.host import host_node, path_node
from tinyhost._tensor.registry import note_move, note_param, track
from tinyhost._tensor.show import describe
from tinyhost._tensor.views import Family, forget_exclusive
from tinyhost.device import Device
from tinyhost.dtype import DType, Invalid, dtypes, strong_dtype, to_dtype
from tinyhost.errors import DeviceError, DTypeError, PlacementError
from tinyhost.mixin import RandMixin
from tinyhost.mixin.sint import Shape
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.leaf import is_leaf, with_identity
from tinyhost.uop.lines import mark
from tinyhost.uop.sharding import stored_axis

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike

DeviceLike = Any  # str, tuple of str, or None

_SCALARS = (bool, int, float)


def canonical_device(device: DeviceLike) -> str | tuple[str, ...]:
    """The device's full name; None is the default device.

    Raises:
        DeviceError: one of several devices is given twice.
    """
    if isinstance(device, (tuple, list)):
        names = tuple(Device.canonicalize(d) for d in device)
        if len(set(names)) != len(names):
            raise DeviceError(f"a tensor on several devices needs different ones, got {names}: each holds a part of "
                              "it, or all of it")
        return names[0] if len(names) == 1 else names
    return Device.canonicalize(device)


def check_devices(op: Ops, nodes: tuple[UOp, ...]) -> None:
    """Demand that operands share a device, or have none.

    Raises:
        PlacementError: they live on different devices.
    """
    first = None
    for i, u in enumerate(nodes):
        device = u.device
        if device is None or (first is not None and device == first.device):
            continue
        if first is not None:
            listed = ", ".join(map(str, dict.fromkeys(u.device for u in nodes if u.device is not None)))
            raise PlacementError(
                f"all operands of {op.name} must be on one device, got {listed}: operand {i} of shape {u.shape} is on "
                f"{device} and was not moved with the others on {first.device}; move it with .to() or .shard()")
        first = u


class TensorCore(RandMixin):
    """A UOp in the hands of a user."""

    __slots__ = ("_uop", "grad", "_is_param", "_family", "__weakref__")
    _uop: UOp
    grad: Any
    _is_param: bool | None
    _family: Family | None  # with its views; None while there are none

    def __init__(self, data: Any, device: DeviceLike = None, dtype: DTypeLike | None = None) -> None:
        dt = None if dtype is None else to_dtype(dtype)
        exchanged = self._exchanged(data, device)
        self._uop = _node_from(data if exchanged is None else exchanged, device, dt)
        self.grad = self._family = None
        self._is_param = None
        track(self)
        mark(self.uop)
        if isinstance(data, UOp):
            forget_exclusive(self.uop)

    def _move(self, uop: UOp) -> None:
        self._uop = uop
        note_move(self)

    def _mark(self, is_param: bool | None) -> None:
        self._is_param = is_param
        note_param(self, is_param)

    if TYPE_CHECKING:
        @property
        def uop(self) -> UOp: ...
        @uop.setter
        def uop(self, uop: UOp) -> None: ...
        @property
        def is_param(self) -> bool | None: ...
        @is_param.setter
        def is_param(self, is_param: bool | None) -> None: ...
    else:
        uop = property(attrgetter("_uop"), _move, doc="The graph it stands for.")
        is_param = property(attrgetter("_is_param"), _mark, doc="Whether it is a parameter; None: nobody said, so a "
                            "leaf gets a gradient where no parameter is marked.")

    if TYPE_CHECKING:  # of StorageTensor, which stands above the classes that call them
        def to(self, device: DeviceLike) -> Self: ...

        def clone(self, device: DeviceLike = None) -> Self: ...

    @classmethod
    def _exchanged(cls, data: Any, device: DeviceLike) -> UOp | None:
        """The node of foreign data that numpy cannot take in; None for all other data."""
        return None

    @classmethod
    def _wrap(cls, uop: UOp) -> Self:
        """A tensor over an existing node."""
        self = object.__new__(cls)
        self._uop, self.grad, self._is_param, self._family = uop, None, None, None
        track(self)
        mark(uop)
        return self

    @classmethod
    def _unmarked(cls, uop: UOp) -> Self:
        """A tensor over a view or a literal, whose line in the program explains no error."""
        self = object.__new__(cls)
        self._uop, self.grad, self._is_param, self._family = uop, None, None, None
        track(self)
        return self

    def _view(self, uop: UOp) -> Self:
        """A tensor over a node that shows self's elements: it sees what is written to self, and the other way round."""
        new = self._unmarked(uop)
        family = self._family
        if family is None:
            family = self._family = Family(self)
        new._family = family
        family.add(new)
        return new

    def _fresh(self) -> Self:
        """Self's value as a tensor that shares no writes with self."""
        forget_exclusive(self.uop)
        return self._wrap(self.uop)

    # *** hooks of the mixins ***
    @property
    def shape(self) -> Shape:
        """Extents of the axes."""
        return self.uop.shape

    @property
    def dtype(self) -> DType:
        """Data type of the elements."""
        return self.uop.dtype

    @property
    def device(self) -> str | tuple[str, ...] | None:
        """Device of the data, a tuple of them when it is spread, None where nothing fixes it yet."""
        return self.uop.device

    def alu(self, op: Ops, *src: Self) -> Self:
        """``op`` over self and ``src``, which share a device and have compatible shapes.

        Raises:
            PlacementError: operands on different devices.
            IndexError: shapes that do not broadcast.
        """
        if not src:
            return self._wrap(UOp(op, (self.uop,)))
        nodes = (self.uop, *[t.uop for t in src])
        check_devices(op, nodes)
        ret = UOp(op, nodes)
        ret.shape  # noqa: B018  shapes that do not fit are an error here, not when something runs
        return self._wrap(ret)

    def _binop(self, op: Ops, x: Any, reverse: bool = False) -> Self:
        # the usual cases without detours: a tensor of the same dtype, and a number that keeps self's dtype
        kind = x.__class__
        if kind is self.__class__:
            nodes = (x.uop, self.uop) if reverse else (self.uop, x.uop)
            if nodes[0].dtype is nodes[1].dtype:
                check_devices(op, nodes)
                ret = UOp(op, nodes)
                ret.shape  # noqa: B018  as in ``alu``
                return self._wrap(ret)
        if kind in _SCALARS and (dtype := self.uop.dtype) is not dtypes.bool:
            if dtype.is_float:
                literal = UOp(Ops.CONST, (), float(x))
            elif kind is not float:
                literal = UOp(Ops.CONST, (), int(x))
            else:
                return super()._binop(op, x, reverse)
            return self._wrap(UOp(op, (literal, self.uop) if reverse else (self.uop, literal)))
        return super()._binop(op, x, reverse)

    def _mop(self, op: Ops, arg: tuple[Any, ...]) -> Self:
        return self._view(self.uop._mop(op, arg))

    def _rop(self, op: Ops, axes: tuple[int, ...]) -> Self:
        return self._wrap(self.uop._rop(op, axes))

    @classmethod
    def _const(cls, b: Any, dtype: DType | None = None, device: Any = None) -> Self:
        return cls._unmarked(UOp.const(b, dtype))

    @classmethod
    def const(cls, b: Any, dtype: DTypeLike | None = None) -> Self:
        """0-d literal without a device; weak without ``dtype``."""
        return cls._const(b, None if dtype is None else to_dtype(dtype))

    def const_like(self, b: Any, dtype: DTypeLike | None = None) -> Self:
        """``b`` at self's shape, and at self's dtype unless another is given."""
        c = self._const(b, self.dtype if dtype is None else to_dtype(dtype))
        return c._broadcast_to(self.shape)

    @classmethod
    def _stack(cls, items: Any) -> Self:
        nodes = tuple(t.uop for t in items)
        check_devices(Ops.STACK, nodes)
        return cls._wrap(UOp._stack(nodes))

    @classmethod
    def _iota(cls, size: Any) -> Self:
        return cls._wrap(UOp._iota(size))

    def _literal(self) -> Any:
        return self.uop._literal()

    def index(self, *idx: Self) -> Self:
        """Elements at integer tensors that count the leading axes; indices must be in range."""
        return self._wrap(self.uop.index(*(i.uop for i in idx)))

    def ufix(self, x: Any) -> Self:
        """``x`` as a tensor: scalars become literals without dtype or device, arrays and lists become data."""
        if isinstance(x, TensorCore):
            return x  # type: ignore[return-value]
        if x.__class__ in _SCALARS:
            return self._unmarked(UOp(Ops.CONST, (), x))
        if isinstance(x, UOp):
            return self._wrap(x)
        if isinstance(x, (list, tuple)) or hasattr(x, "__array__"):
            return type(self)(x, device=self.device)
        return self._const(x)

    def cast(self, dtype: DTypeLike) -> Self:
        """Values converted to ``dtype``: floats truncate to integers, integers wrap.

        Raises:
            DTypeError: ``dtype`` holds no values.
        """
        dt = to_dtype(dtype)
        if dt is dtypes.void:
            raise DTypeError("cannot cast to void: it holds no values")
        return self if self.uop.dtype is dt else self._wrap(self.uop.cast(dt))

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bytes read as ``dtype``; the last axis shrinks or grows where the sizes differ.

        Raises:
            DTypeError: weak dtypes have no bytes.
            RuntimeError: the last axis does not divide.
        """
        dt = to_dtype(dtype)
        if self.dtype.is_weak or dt.is_weak:
            raise DTypeError(f"cannot bitcast {self.dtype} to {dt}: a weak dtype has no bytes, cast it first")
        if self.uop.dtype is dt:
            return self
        ret = self.uop.bitcast(dt)
        ret.shape  # noqa: B018
        return self._view(ret)

    def detach(self) -> Self:
        """Self with no gradient behind it."""
        return self._view(self.uop.detach())

    def contiguous(self, arg: Any = None, **kwargs: Any) -> Self:
        """Self with storage of its own layout; ``arg`` may hold optimiser actions for the kernel that fills it."""
        if self.dtype.is_weak:
            return self
        if arg is None and self.uop.has_buffer_identity(after_ok=True):
            return self
        if self.uop.device is None:
            return self._wrap(store_in_new_buffer(self.uop, canonical_device(None)))
        return self._wrap(self.uop.contiguous(arg, **kwargs))

    # *** flags ***
    def is_param_(self, is_param: bool = True) -> Self:
        """Mark self as a parameter: ``backward`` fills its ``grad``.

        Raises:
            DTypeError: gradients need floats.
        """
        if is_param and not self.dtype.is_float:
            raise DTypeError(f"only float tensors have gradients, got {self.dtype}: cast it first")
        self.is_param = is_param
        if is_param and self.uop.device is None and not is_leaf(self.uop):
            self.uop, self._family = with_identity(self.uop), None
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether self is a parameter."""
        return bool(self.is_param)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.is_param_(bool(value))

    # *** Python protocols ***
    __hash__ = object.__hash__

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return self.eq(x)

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return self.ne(x)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        for i in range(len(self)):
            yield self[i]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.uop, self.grad, self.is_param)

    def __copy__(self) -> Self:
        new = self._view(self.uop)
        new.grad, new.is_param = self.grad, self.is_param
        return new

    def __repr__(self) -> str:
        return describe(self)


def _unpickled(cls: type[TensorCore], uop: UOp, grad: Any, is_param: bool) -> TensorCore:
    new = cls._wrap(with_identity(uop) if is_leaf(uop) else uop)
    forget_exclusive(uop)
    new.grad, new.is_param = grad, is_param
    return new


def _node_from(data: Any, device: DeviceLike, dtype: DType | None) -> UOp:
    """The node of whatever ``Tensor`` was called with; a lone number is a leaf of its own."""
    if isinstance(data, TensorCore):
        raise TypeError("Tensor(tensor) would hide the graph: use .clone(), .cast() or .to() instead")
    if isinstance(data, UOp):
        uop = data if dtype is None else data.cast(dtype)
        return uop if device is None or uop.device is not None else place(uop, canonical_device(device))
    if data is None:
        return UOp.const(0.0, dtype).reshape(1).shrink(((0, 0),))
    if data.__class__ in _SCALARS:
        uop = UOp.const(data, dtype)
        return with_identity(uop) if device is None else place(uop, canonical_device(device))
    if isinstance(data, os.PathLike):
        return path_node(data, dtype)
    host = host_node(data, dtype)
    if host is None:
        return _foreign_node(data, device, dtype)
    target = canonical_device(device)
    uop = host if host.device == target else host.copy_to_device(target)
    return uop if dtype is None else uop.cast(dtype)


def _foreign_node(data: Any, device: DeviceLike, dtype: DType | None) -> UOp:
    """Data of another library, through the array or the Invalid literal protocol."""
    import numpy as np
    if hasattr(data, "__array__"):
        return _node_from(np.asarray(data), device, dtype)
    if data is Invalid:
        return UOp.const(data)
    raise TypeError(f"cannot make a tensor from {type(data).__name__} {data!r}: use a number, a nested list, bytes, a "
                    "numpy array, a path or a UOp")


def place(uop: UOp, device: str | tuple[str, ...]) -> UOp:
    """The value on ``device``: literals get storage of their own, values elsewhere are copied."""
    if uop.device == device:
        return uop
    if uop.device is None:
        return store_in_new_buffer(uop, device)
    return uop.cast(strong_dtype(uop.dtype)).copy_to_device(device)


def new_storage(shape: Shape, dtype: DType, device: str | tuple[str, ...]) -> UOp:
    """Fresh storage viewed as ``shape``; a symbolic extent gets room for its largest value."""
    return UOp.new_storage(tuple(shape), dtype, device)


def store_in_new_buffer(uop: UOp, device: str | tuple[str, ...]) -> UOp:
    """The value in storage of its own on ``device``."""
    dtype = strong_dtype(uop.dtype)
    target = UOp.new_storage(uop.shape, dtype, device, stored_axis(uop) if uop.device == device else None)
    value = uop.cast(dtype)
    value = value if value.device in (None, device) else value.copy_to_device(device)
    return target.after(target.store(value))

