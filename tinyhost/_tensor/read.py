"""Results: realization, and the data as memoryview, numpy array, Python numbers.

Everything here runs kernels. Weak values take their default dtype when they are read, values without a device the
default device.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhost._tensor.core import TensorCore, canonical_device, store_in_new_buffer
from tinyhost.dtype import _to_np_dtype, dtypes, strong_dtype
from tinyhost.env import ALLOW_DEVICE_USAGE
from tinyhost.errors import DeviceUsageError

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.device import Buffer
    from tinyhost.uop import UOp


class ReadTensor(TensorCore):
    """realize, data, numpy, item, tolist and truth."""

    __slots__ = ()

    def realize(self, *lst: Self, do_update_stats: bool = True) -> Self:
        """Compute self and ``lst`` together; weak values stay virtual."""
        _check_may_run()
        tensors = [t for t in (self, *lst) if not t.dtype.is_weak and not _is_empty(t)]
        for t in tensors:
            if t.uop.device is None:
                t.uop = store_in_new_buffer(t.uop, canonical_device(None))
        if tensors:
            from tinyhost import realization  # loads scheduler and engine, at the first realization
            realization.realize(*tensors, do_update_stats=do_update_stats)
        return self

    def schedule_linear(self, *lst: Self) -> UOp:
        """The LINEAR of kernels that would compute self and ``lst``."""
        from tinyhost import realization
        return realization.linear_with_vars([self, *lst])[0]

    def linear_with_vars(self, *lst: Self) -> tuple[UOp, dict[str, int]]:
        """The LINEAR of kernels that would compute self and ``lst``, and the values of bound variables."""
        from tinyhost import realization
        return realization.linear_with_vars([self, *lst])

    def _read(self) -> Buffer:
        """The realized elements in order, on one device."""
        _check_may_run()
        if not all(isinstance(s, int) for s in self.shape):
            raise RuntimeError(f"cannot read data of symbolic shape {self.shape}: shrink it to a concrete shape first")
        t = self.cast(strong_dtype(self.dtype))
        if isinstance(t.device, tuple):
            t = t._wrap(t.uop.copy_to_device(t.device[0]))
        from tinyhost import realization
        return realization.read(t)

    def data(self) -> memoryview:
        """The elements as a memoryview of self's shape; one without a struct format comes as bytes of its storage."""
        fmt: Any = strong_dtype(self.dtype).fmt
        if _is_empty(self):
            return memoryview(b"")
        raw = self._read().as_memoryview().cast("B")
        if fmt is None:
            return raw
        if fmt == "e":  # memoryview.cast knows it from Python 3.12 on
            return np.frombuffer(raw, np.float16).reshape(self.shape).data
        view: memoryview = raw.cast(fmt, self.shape) if self.shape else raw.cast(fmt)
        return view

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a numpy array of its own; bfloat16 and fp8 come as float32."""
        dtype = strong_dtype(self.dtype)
        np_dtype = _to_np_dtype(dtype)
        if np_dtype is None:
            return self.cast(dtypes.float32).numpy()
        if _is_empty(self):
            return np.empty(self.shape, dtype=np_dtype)
        raw = np.frombuffer(self._read().as_memoryview().cast("B"), dtype=np_dtype)
        return raw.reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.numpy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()  # the elements are handed over in host memory

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            ValueError: there is not exactly one element.
        """
        if self.numel() != 1:
            raise ValueError(f"item() needs exactly one element, got shape {self.shape}: use tolist() or index first")
        if (value := self._literal()) is not None:
            return value
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """The elements as nested lists, a number for a 0-d tensor."""
        return self.item() if not self.shape else self.numpy().tolist()

    def __bool__(self) -> bool:
        if self.shape or self.dtype is not dtypes.bool:
            raise TypeError(f"only a 0-d bool tensor has a truth value, got shape {self.shape} of {self.dtype}: use "
                            ".any(), .all() or .item()")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise TypeError(f"only an integer tensor can be an index, got {self.dtype}")
        return int(self.item())


def _check_may_run() -> None:
    if not ALLOW_DEVICE_USAGE.value:
        raise DeviceUsageError("a tensor is realized or read while ALLOW_DEVICE_USAGE=0, as in a function that is "
                               "being traced: return it, and read it outside")


def _is_empty(t: TensorCore) -> bool:
    return any(isinstance(s, int) and s == 0 for s in t.shape)
