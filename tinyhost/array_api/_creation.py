"""Making arrays.

Every result has a dtype and lies on a device, the default one unless another is given. Without a dtype, Python floats
become the default float and integers the default integer.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tinyhost.array_api._dtypes import result_type
from tinyhost.device import Device
from tinyhost.dtype import DType, dtypes, strong_dtype
from tinyhost.errors import DTypeError, ExchangeError
from tinyhost.tensor import Tensor


def place(x: Tensor, dtype: DType | None = None, device: Any = None) -> Tensor:
    """``x`` at a strong dtype and on a device."""
    x = x.cast(strong_dtype(x.dtype) if dtype is None else dtype)
    return x.to(device) if device is not None or x.device is None else x


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array from an array, Python scalars in nested sequences, or an object of another library.

    Raises:
        ValueError: ``copy=False`` where only a copy can be had.
        DTypeError: complex values.
    """
    if isinstance(obj, Tensor):
        x = place(obj, dtype, device)
        if copy is False and x is not obj:
            raise ValueError(f"{obj!r} reaches dtype {dtype} on {device} by a copy only: leave copy=False out")
        return x.clone() if copy else x
    if copy is False:
        return _shared(obj, dtype, device)
    if isinstance(obj, complex):
        raise DTypeError(f"there are no complex arrays, got {obj!r}: keep real and imaginary part in two arrays")
    if not isinstance(obj, (bool, int, float, list, tuple)):
        obj = np.asarray(obj)
    if isinstance(obj, (list, tuple)) and any(isinstance(v, (Tensor, np.ndarray)) for v in obj):
        obj = np.asarray([asarray(v).numpy() for v in obj])
    if isinstance(obj, (bool, int, float)):
        return full((), obj, dtype=dtype, device=device)
    return place(Tensor(obj, device=device, dtype=dtype), dtype, device)


def _shared(obj: Any, dtype: DType | None, device: Any) -> Tensor:
    if not hasattr(obj, "__dlpack__"):
        raise ValueError(f"{type(obj).__name__} cannot become an array without a copy: leave copy=False out")
    try:
        x = Tensor.from_dlpack(obj, device=device, copy=False)
    except ExchangeError as e:
        raise ValueError(f"an array without a copy: {e}") from e
    if dtype is not None and dtype is not x.dtype:
        raise ValueError(f"elements of {x.dtype} become {dtype} by a copy only: leave copy=False out")
    return x


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the elements of ``x``; see ``Tensor.from_dlpack``."""
    return Tensor.from_dlpack(x, device=device, copy=copy)


def empty(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Unspecified elements."""
    return Tensor.empty(_shape(shape), dtype=dtype, device=device)


def full(shape: int | Sequence[int], fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """``fill_value`` everywhere; an integer that needs 64 bits gets them."""
    if isinstance(fill_value, complex):
        raise DTypeError(f"there are no complex arrays, got {fill_value!r}")
    if dtype is None:
        dtype = strong_dtype(fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.from_py(fill_value))
        if dtype is dtypes.int32 and not isinstance(fill_value, Tensor) and not -2**31 <= fill_value < 2**31:
            dtype = dtypes.int64 if fill_value < 2**63 else dtypes.uint64
    if isinstance(fill_value, Tensor):
        return place(fill_value.expand(_shape(shape)) if shape != () else fill_value, dtype, device).clone()
    return Tensor.full(_shape(shape), fill_value, dtype=dtype, device=device)


def zeros(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros, of the default float without a dtype."""
    return full(shape, 0, dtype=dtype or dtypes.default_float, device=device)


def ones(shape: int | Sequence[int], *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones, of the default float without a dtype."""
    return full(shape, 1, dtype=dtype or dtypes.default_float, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Unspecified elements like ``x``."""
    return empty(x.shape, dtype=dtype or x.dtype, device=x.device if device is None else device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """``fill_value`` like ``x``."""
    device = x.device if device is None else device
    return full(x.shape, fill_value, dtype=dtype or strong_dtype(x.dtype), device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros like ``x``."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones like ``x``."""
    return full_like(x, 1, dtype=dtype, device=device)


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None,
           device: Any = None) -> Tensor:
    """``start``, ``start + step``, ... up to and without ``stop``."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        kinds = [dtypes.from_py(v) for v in (start, stop, step)]
        dtype = dtypes.default_float if dtypes.weakfloat in kinds else dtypes.default_int
    count = max(0, math.ceil((stop - start) / step))
    wide = dtypes.float64 if dtype.is_float else dtypes.int64
    return place((Tensor.arange(count).cast(wide) * step + start).cast(dtype), dtype, device or Device.DEFAULT)


def linspace(start: float, stop: float, /, num: int, *, dtype: DType | None = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``."""
    dtype = dtype or dtypes.default_float
    steps = num - 1 if endpoint else num
    part = Tensor.arange(num).cast(dtypes.float64) / max(steps, 1)
    values = part * (stop - start) + start
    if endpoint and num > 1:
        values = (Tensor.arange(num) == num - 1).where(float(stop), values)
    return place(values.cast(dtype), dtype, device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None,
        device: Any = None) -> Tensor:
    """Ones on the ``k``-th diagonal."""
    rows, columns = Tensor.arange(n_rows).reshape((n_rows, 1)), Tensor.arange(n_rows if n_cols is None else n_cols)
    return place((columns - rows == k).cast(dtype or dtypes.default_float), None, device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """``x`` with zeros above the ``k``-th diagonal."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """``x`` with zeros below the ``k``-th diagonal."""
    return x.triu(k)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid over one-dimensional axes.

    Raises:
        ValueError: unknown ``indexing``, or arrays of different dtypes.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"unknown indexing {indexing!r}: use 'xy' or 'ij'")
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError(f"meshgrid needs arrays of one dtype, got {[x.dtype for x in arrays]}: the common one is "
                         f"{result_type(*arrays)}")
    if not arrays:
        return ()
    return arrays[0].meshgrid(*arrays[1:], indexing=indexing)
