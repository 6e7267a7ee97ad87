"""Python and numpy data as nodes.

Takes scalars, nested sequences, bytes, arrays and paths; gives a node: a weak literal for a lone scalar, else a
BUFFER on the host device that holds the data. Arrays and other mutable memory are copied here, so a later change of
them does not change the tensor; to share memory is what ``Tensor.from_dlpack`` and ``Tensor.from_blob`` are for.
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from tinyhost.device import host_buffer
from tinyhost.dtype import DType, _from_np_dtype, _to_np_dtype, dtypes, storage_fmt, to_storage_scalar
from tinyhost.errors import DTypeError
from tinyhost.helpers import fully_flatten, get_shape
from tinyhost.uop import UOp

HOST = "NPY"


def array_node(array: np.ndarray[Any, Any]) -> UOp:
    """The array's elements as a node on the host device; nobody may change the array afterwards."""
    if array.dtype.byteorder == (">" if np.little_endian else "<"):
        array = array.astype(array.dtype.newbyteorder("="))
    if array.size == 0:
        return UOp.new_buffer(HOST, 0, _from_np_dtype(array.dtype)).reshape(array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    return UOp.from_buffer(host_buffer(flat)).reshape(array.shape)


def _list_dtype(values: list[Any]) -> DType:
    """Dtype of a list: bool only if all are, float if one is, else the first integer type that holds the values."""
    if not values:
        return dtypes.default_float
    if bad := next((v for v in values if not isinstance(v, (bool, int, float, np.generic))), None):
        raise DTypeError(f"cannot make a tensor from an element of type {type(bad).__name__}: {bad!r}; use numbers, or "
                         "stack tensors with Tensor.stack")
    if any(isinstance(v, (float, np.floating)) for v in values):
        return dtypes.default_float
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return dtypes.bool
    low, high = int(min(values)), int(max(values))
    for dt in (dtypes.default_int, dtypes.int64, dtypes.uint64):
        if dt.min <= low and high <= dt.max:
            return dt
    raise OverflowError(f"integers from {low} to {high} fit no dtype")


def sequence_node(data: list[Any] | tuple[Any, ...], dtype: DType | None) -> UOp:
    """A nested sequence as a node; ``dtype`` rounds each element once."""
    shape = get_shape(data)
    values = fully_flatten(data)
    dt = _list_dtype(values) if dtype is None else dtype
    if dt.is_weak:
        raise RuntimeError(f"cannot create storage for weak dtype {dt}: use a concrete dtype")
    np_dtype = _to_np_dtype(dt)
    if np_dtype is None:  # no array type: store the codes and read them as dt
        codes = np.array([to_storage_scalar(v, dt) for v in values], dtype=np.dtype(storage_fmt(dt))).reshape(shape)
        return array_node(codes).bitcast(dt)
    if dt.is_int and dtype is not None:
        values = [to_storage_scalar(v.item() if isinstance(v, np.generic) else v, dt) for v in values]
    with np.errstate(over="ignore"):  # a number that the dtype does not hold is an infinity
        return array_node(np.array(values, dtype=np_dtype).reshape(shape))


def host_node(data: Any, dtype: DType | None) -> UOp | None:
    """Data that lives on the host as a node on the host device; None if it is no such data."""
    if isinstance(data, np.ndarray):
        return array_node(np.array(data, order="C"))
    if isinstance(data, np.generic):
        return array_node(np.asarray(data))
    if isinstance(data, (bytes, bytearray, memoryview)):
        node = array_node(np.frombuffer(bytearray(data), np.uint8))
        if dtype is None:
            return node
        values = node.bitcast(dtype)
        values.shape  # noqa: B018  bytes that make no whole number of elements are an error here
        return values
    if isinstance(data, (list, tuple)):
        return sequence_node(data, dtype)
    return None


def path_node(path: os.PathLike[str], dtype: DType | None) -> UOp:
    """A file as flat storage on the disk device."""
    dt = dtype or dtypes.uint8
    name = os.path.realpath(path)
    node = UOp.new_buffer(f"DISK:{name}", os.path.getsize(name) // dt.itemsize, dt)
    if node.arg.size:
        node.buffer.ensure_allocated()  # opens the file, which is the one to read even if the path changes
    return node
