"""Elements shared with other libraries: DLPack both ways, views for numpy, and numpy's operand protocols.

What others see is pinned by a lease on its memory (``tinyhost.device.buffer``): while they hold it, the memory is not
freed, reused or written by us. A tensor that is written meanwhile goes on in new memory, and what they hold keeps the
old content. What they write is visible in the tensor until then. Sharing needs memory that the host can see, which is a
capability of the device; elsewhere elements are copied.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhost._tensor import memory
from tinyhost._tensor.core import DeviceLike, canonical_device
from tinyhost._tensor.realize import RealizeTensor, is_empty
from tinyhost.device import Device
from tinyhost.dtype import strong_dtype
from tinyhost.errors import DTypeError, ExchangeError
from tinyhost.uop import UOp

if TYPE_CHECKING:
    from typing import Self

    from tinyhost._tensor import dlpack

_WRITERS = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}
# ufuncs as methods of the tensor that is their first operand
_UFUNCS = {
    "add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__",
    "floor_divide": "__floordiv__", "remainder": "__mod__", "power": "__pow__", "matmul": "__matmul__",
    "equal": "__eq__", "not_equal": "__ne__", "less": "__lt__", "less_equal": "__le__", "greater": "__gt__",
    "greater_equal": "__ge__", "bitwise_and": "__and__", "bitwise_or": "__or__", "bitwise_xor": "__xor__",
    "left_shift": "__lshift__", "right_shift": "__rshift__", "maximum": "maximum", "minimum": "minimum",
    "copysign": "copysign", "logaddexp": "logaddexp", "fmod": "fmod",
    "negative": "neg", "absolute": "abs", "invert": "bitwise_not", "logical_not": "logical_not", "sign": "sign",
    "square": "square", "sqrt": "sqrt", "reciprocal": "reciprocal", "exp": "exp", "exp2": "exp2", "log": "log",
    "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite"}


class Extent(int):
    """The number of elements, which can be called for the shape.

    >>> from tinyhost import Tensor
    >>> x = Tensor([[1, 2, 3]])
    >>> x.size, x.size(), x.size(1)
    (3, (1, 3), 3)
    """

    shape: tuple[Any, ...]

    def __new__(cls, x: Any) -> Self:
        self = super().__new__(cls, x.max_numel())
        self.shape = tuple(x.shape)
        return self

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


class InteropTensor(RealizeTensor):
    """Protocols of other array libraries."""

    __slots__ = ()

    # *** out ***
    def _stored(self) -> np.ndarray[Any, Any]:
        """A copy of the elements as numpy stores them: codes, where numpy has no such dtype."""
        t = self._concrete()
        np_dtype = memory.storage_dtype(strong_dtype(t.dtype))
        if is_empty(t):
            return np.empty(t.shape, np_dtype)
        buffer = t._read()
        raw = np.frombuffer(buffer.as_memoryview(allow_zero_copy=True).cast("B"), np_dtype)
        return raw.reshape(t.shape).copy()

    def _stored_in_place(self) -> tuple[np.ndarray[Any, Any], bool] | None:
        """The same where the elements lie, pinned, and whether nobody may write them; None if only a copy can be had.
        """
        t = self._concrete()
        stored = None if is_empty(t) else t._where_stored()
        return None if stored is None else memory.shown(stored)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A DLPack capsule of the elements in host memory: shared where the host sees them, else a copy.

        A versioned capsule of shared memory says that it is read-only; a legacy capsule cannot say so.

        Raises:
            ExchangeError: ``copy=False`` where only a copy can be had, another device than the host, or a legacy
                capsule of memory that must not be written.
        """
        from tinyhost._tensor import dlpack  # here and below: few programs exchange arrays
        if stream not in (None, -1):
            raise ExchangeError(f"host memory has no streams, got stream={stream!r}: leave it out")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise ExchangeError(f"a tensor is exported in host memory {self.__dlpack_device__()}, not on DLPack device "
                                f"{tuple(dl_device)}: copy it there afterwards")
        versioned = max_version is not None and max_version[0] >= 1
        dtype = strong_dtype(self.dtype)
        found = None if copy else self._stored_in_place()
        if found is None:
            if copy is False and not is_empty(self):
                raise ExchangeError(f"{self!r} cannot be exported without a copy: its elements must lie in memory "
                                    "that the host sees, in positive steps; leave copy out")
            return dlpack.make_capsule(self._stored(), dtype, dlpack.IS_COPIED, versioned)
        array, readonly = found
        if readonly and not versioned:
            raise ExchangeError("a legacy DLPack capsule cannot say that memory is read-only: ask for "
                                "max_version=(1, 0) or copy=True")
        return dlpack.make_capsule(array, dtype, dlpack.READ_ONLY, versioned)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLCPU, 0): elements are handed over in host memory."""
        from tinyhost._tensor import dlpack
        return dlpack.CPU, 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The elements for numpy: a copy of its own, or with ``copy=False`` a read-only view that pins the memory.

        Raises:
            ValueError: ``copy=False`` where only a copy can be had.
        """
        if copy is not False:
            array = self.numpy()
            return array if dtype is None else array.astype(dtype, copy=False)
        found = self._stored_in_place() if self.dtype.fmt is not None else None
        if found is None or (dtype is not None and np.dtype(dtype) != found[0].dtype):
            raise ValueError(f"{self!r} cannot become a numpy array of {dtype or 'its dtype'} without a copy: leave "
                             "copy=False out")
        view = found[0].view()
        view.flags.writeable = False
        return view

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a numpy array of its own; bfloat16 and fp8 come as float32."""
        return self._stored() if strong_dtype(self.dtype).fmt is not None else self.float()._stored()

    def data(self) -> memoryview:
        """The elements as a read-only memoryview of self's shape, which pins the memory where the host sees it.

        A dtype without a struct format comes as the bytes of its storage. Python knows the buffer protocol of classes
        (``__buffer__``) from 3.12 on only, so ``memoryview(t)`` is spelled ``t.data()``.
        """
        found = self._stored_in_place()
        array = self._stored() if found is None or not found[0].flags.c_contiguous else found[0].view()
        if strong_dtype(self.dtype).fmt is None:
            array = array.reshape(-1).view(np.uint8)
        array.flags.writeable = False
        return array.data

    # *** the array API standard ***
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """``tinyhost.array_api``.

        Raises:
            ValueError: a version of the standard that it does not follow.
        """
        from tinyhost import array_api
        if api_version not in (None, "2022.12", "2023.12", "2024.12", array_api.__array_api_version__):
            raise ValueError(f"there is no array API of version {api_version!r} here: the newest is "
                             f"{array_api.__array_api_version__}")
        return array_api

    @property
    def size(self) -> Extent:
        """The number of elements, as in numpy; called, the shape or the extent of one axis, as in torch.

        Of a shape with variables it is the largest number of elements.
        """
        return Extent(self)

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Self:
        """Self on another device.

        Raises:
            ValueError: a stream is given.
        """
        if stream is not None:
            raise ValueError(f"devices have no streams to choose from, got {stream!r}: leave it out")
        return self.to(device)

    def __pos__(self) -> Self:
        return self._fresh()

    def __abs__(self) -> Self:
        return self.abs()

    # *** in ***
    @classmethod
    def from_dlpack(cls, x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Self:
        """A tensor over the elements of ``x``, an object with ``__dlpack__`` or a capsule in host memory.

        Memory is shared, with any strides, where the device takes foreign memory over; else it is copied. Writes to
        the tensor reach shared memory, unless it is read-only: then the first write moves the tensor to memory of its
        own. The producer's memory is kept until the last tensor and export over it is gone.

        Args:
            copy: True always copies; False never does.

        Raises:
            ExchangeError: ``copy=False`` where sharing is impossible, or elements of a type that tensors do not have.
        """
        from tinyhost._tensor import dlpack
        target = canonical_device(device)
        if isinstance(x, RealizeTensor):
            return cls._from_tensor(x, target, copy)
        found = dlpack.take_capsule(_capsule_of(x))
        shared = cls._over(found, target)
        if shared is None:
            if copy is False:
                raise ExchangeError(f"elements of shape {found.shape} and strides {found.strides} at "
                                    f"{found.address:#x} cannot be shared with {target}: leave copy=False out")
            return cls._copied(found, target)
        return shared.clone().realize() if copy else shared

    @classmethod
    def _exchanged(cls, data: Any, device: Any) -> UOp | None:
        """A copy of another library's array, which may have dtypes that numpy lacks; None for what it hands out to
        numpy only, and for everything else."""
        known = (bool, int, float, list, tuple, np.ndarray, np.generic, InteropTensor)
        if isinstance(data, known) or not hasattr(data, "__dlpack__"):
            return None
        from tinyhost._tensor import dlpack
        try:
            found = dlpack.take_capsule(_capsule_of(data))
        except BufferError:
            return None
        return cls._copied(found, canonical_device(device)).uop

    @classmethod
    def _from_tensor(cls, x: Any, target: Any, copy: bool | None) -> Self:
        if copy is False and x.device != target:
            raise ExchangeError(f"a tensor on {x.device} reaches {target} by a copy only: leave copy=False out")
        given: Self = x.clone(target) if copy else x.detach().to(target)
        return given

    @classmethod
    def _over(cls, found: dlpack.Import, device: Any) -> Self | None:
        """A tensor on foreign memory itself, None where that is impossible."""
        from tinyhost.device import Buffer, caps_of
        if isinstance(device, tuple) or 0 in found.shape:
            return None
        if not caps_of(device).host_visible or not Device[device].allocator.foreign:
            return None
        steps = zip(found.shape, found.strides)
        address = found.address + found.dtype.itemsize * sum((n - 1) * s for n, s in steps if s < 0)
        if address % found.dtype.itemsize:
            return None
        size = 1 + sum((n - 1) * abs(s) for n, s in zip(found.shape, found.strides))
        buffer = Buffer(device, size, found.dtype).allocate(external_ptr=address, keep=found.owner)
        buffer.readonly = found.readonly
        unfolded: Self = _unfolded(cls._wrap(UOp.from_buffer(buffer)), found)
        return unfolded

    @classmethod
    def _copied(cls, found: dlpack.Import, device: Any) -> Self:
        np_dtype = memory.storage_dtype(found.dtype)
        lowest = sum((n - 1) * s for n, s in zip(found.shape, found.strides) if s < 0)
        span = sum((n - 1) * abs(s) for n, s in zip(found.shape, found.strides)) + 1
        if 0 in found.shape:
            array = np.empty(found.shape, np_dtype)
        else:
            size = np_dtype.itemsize
            raw = memory.memory_at(found.address + lowest * size, span * size, found.owner)
            array = np.ndarray(found.shape, np_dtype, raw, offset=-lowest * size,
                               strides=tuple(s * size for s in found.strides)).copy()
        codes = cls(array, device=device)
        return codes if codes.dtype is found.dtype else codes.bitcast(found.dtype)

    # *** numpy as the other operand ***
    def ufix(self, x: Any) -> Self:
        """``x`` as a tensor: Python and numpy scalars become literals without dtype, arrays and lists become data."""
        if isinstance(x, np.generic):
            value = x.item()
            if not isinstance(value, (bool, int, float)):
                raise DTypeError(f"a numpy scalar of type {x.dtype} is no operand of a tensor: use a bool, an integer "
                                 "or a float")
            return super().ufix(bool(value) if isinstance(value, bool) else value)
        return super().ufix(x)

    def __array_ufunc__(
            self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """``array + tensor`` and ``np.exp(tensor)`` make tensors, by the method of the same meaning."""
        name = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or name is None or kwargs:
            how = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            options = f" with {', '.join(sorted(kwargs))}" if kwargs else ""
            raise TypeError(f"numpy.{how}{options} has no counterpart for a Tensor: use the Tensor's own methods, or "
                            "numpy.asarray(tensor) for a copy")
        first, *rest = [x if isinstance(x, InteropTensor) else self.ufix(x) for x in inputs]
        return getattr(first, name)(*rest)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Other functions of numpy get copies of the tensors in their arguments, and give what they give for arrays."""
        if func.__name__ in _WRITERS or isinstance(kwargs.get("out"), InteropTensor):
            raise TypeError(f"numpy.{func.__name__} would write into a copy of a Tensor: write with tensor[...] = or "
                            "tensor.assign()")
        return func(*_plain(args), **{k: _plain(v) for k, v in kwargs.items()})


def _plain(x: Any) -> Any:
    """Tensors inside of nested lists and tuples as arrays."""
    if isinstance(x, InteropTensor):
        return x.numpy()
    return [_plain(v) for v in x] if isinstance(x, list) else tuple(map(_plain, x)) if isinstance(x, tuple) else x


def _capsule_of(x: Any) -> Any:
    """The capsule of a producer, asked in the newest way that it understands."""
    if not hasattr(x, "__dlpack__"):
        if type(x).__name__ == "PyCapsule":
            return x
        raise TypeError(f"from_dlpack needs an object with __dlpack__ or a DLPack capsule, got {type(x).__name__}")
    from tinyhost._tensor import dlpack
    on_host = not hasattr(x, "__dlpack_device__") or int(x.__dlpack_device__()[0]) in dlpack.HOST_KINDS
    attempts: list[dict[str, Any]] = [{"max_version": dlpack.VERSION}, {}]
    if not on_host:
        attempts = [{"max_version": dlpack.VERSION, "dl_device": (dlpack.CPU, 0)}]
    for kwargs in attempts[:-1]:
        try:
            return x.__dlpack__(**kwargs)
        except TypeError:  # a producer from before DLPack 1.0
            continue
    return x.__dlpack__(**attempts[-1])


def _block_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int] | None:
    """The axes that count, outermost first, if the elements fill one block of memory; axes of stride 0 repeat them."""
    order = [i for i, (n, s) in enumerate(zip(shape, strides)) if n > 1 and s != 0]
    order.sort(key=lambda i: -abs(strides[i]))
    step = 1
    for i in reversed(order):
        if abs(strides[i]) != step:
            return None
        step *= shape[i]
    return order


def _unfolded(flat: Any, found: dlpack.Import) -> Any:
    """The elements that the memory of an import spans, as its axes."""
    order = _block_order(found.shape, found.strides)
    backward = tuple(i for i, (n, s) in enumerate(zip(found.shape, found.strides)) if s < 0 and n > 1)
    if order is None:
        x = flat.as_strided(found.shape, tuple(map(abs, found.strides)))
        return x.flip(backward) if backward else x
    others = [i for i in range(len(found.shape)) if i not in order]
    x = flat.reshape(tuple([*(found.shape[i] for i in order), *(1 for _ in others)]))
    now = [*order, *others]
    x = x.permute(tuple(now.index(i) for i in range(len(now))))
    x = x.flip(backward) if backward else x
    return x if x.shape == found.shape else x.expand(found.shape)
