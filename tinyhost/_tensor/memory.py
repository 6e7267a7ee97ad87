"""Storage as numpy arrays over its very memory.

Takes a realized view of storage; gives an array that shows its elements where they lie, with strides, and that pins
the memory: a lease (``tinyhost.device.buffer``) lives as long as the array. Only memory that the host sees can be
shown, which is a capability of the device.
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhost.device import Device
from tinyhost.dtype import DType, storage_fmt
from tinyhost.ops import Ops
from tinyhost.uop import UOp

if TYPE_CHECKING:
    from tinyhost.device import Buffer

Array = np.ndarray[Any, Any]

_VIEWS = {Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.BITCAST, Ops.DETACH}


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """What numpy stores elements of ``dtype`` as: codes, where it has no such dtype."""
    return np.dtype(storage_fmt(dtype))


def memory_at(address: int, nbytes: int, owner: Any) -> Array:
    """The bytes at an address; they keep ``owner`` alive."""
    memory: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    memory.owner = owner
    return np.frombuffer(memory, np.uint8)


def pinned(buffer: Buffer) -> tuple[Array, bool] | None:
    """The bytes of a buffer where they lie, and whether nobody may write them; None where the host sees none.

    The array itself can be written: who hands it on says whether that is allowed.
    """
    from tinyhost.device import caps_of
    if not caps_of(buffer.device).host_visible:
        return None
    Device[buffer.device].synchronize()
    lease = buffer.lease()
    if lease.view is None:
        return None
    start = np.frombuffer(lease.view, np.uint8).ctypes.data + buffer.offset
    return memory_at(start, buffer.nbytes, lease), lease.readonly


def shown(uop: UOp) -> tuple[Array, bool] | None:
    """The elements of a view of storage where they lie, and whether nobody may write them.

    None where the host does not see them, or the view is no walk through memory in positive steps.
    """
    from tinyhost.device.buffer import Buffer, buffer_of
    chain = []
    while uop.op in _VIEWS:
        chain.append(uop)
        uop = uop.src[0]
    if uop.op is not Ops.BUFFER:
        return None
    buffer = buffer_of(uop)
    found = pinned(buffer) if isinstance(buffer, Buffer) else None
    if found is None:
        return None
    array = found[0].view(storage_dtype(uop.dtype))
    for view in reversed(chain):
        moved = _viewed(array, view)
        if moved is None:
            return None
        array = moved
    return array, found[1]


def _viewed(array: Array, view: UOp) -> Array | None:
    """One more view of an array, None where it would have to be copied."""
    if view.op is Ops.RESHAPE:
        moved = array.reshape(view.shape)
        return moved if np.may_share_memory(moved, array) else None
    if view.op is Ops.PERMUTE:
        return array.transpose(view.arg)
    if view.op is Ops.SHRINK:
        return array[tuple(slice(o, o + n) for o, n in view.marg)]
    if view.op is Ops.DETACH:
        return array
    dtype = storage_dtype(view.dtype)
    if dtype.itemsize != array.dtype.itemsize and array.strides[-1:] != (array.dtype.itemsize,):
        return None
    return array.view(dtype)
