"""The DLPack ABI, version 1.x: structures, type codes, and capsules on their way in and out.

Takes and gives capsules, addresses, shapes and strides; knows no tensor. A capsule on its way out is made by numpy,
whose deleter may run in any thread, while an exception is set and at interpreter exit, and then relabelled with what
numpy cannot say: our type codes and flags. A capsule on its way in is emptied here, and its deleter is called once,
when the last holder of the ``Import`` is gone. Layouts and codes are those of dlpack.h 1.1.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import ExchangeError

CPU = 1  # kDLCPU
HOST_KINDS = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost: memory that the host reads and writes
READ_ONLY, IS_COPIED = 1, 2
VERSION = _MAJOR, _MINOR = 1, 1
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
_CODES: dict[DType, int] = {
    **{dt: _INT for dt in dtypes.sints}, **{dt: _UINT for dt in dtypes.uints}, dtypes.bool: _BOOL,
    dtypes.float16: _FLOAT, dtypes.float32: _FLOAT, dtypes.float64: _FLOAT, dtypes.bfloat16: _BFLOAT,
    dtypes.fp8e4m3: 10, dtypes.fp8e4m3fnuz: 11, dtypes.fp8e5m2: 12, dtypes.fp8e5m2fnuz: 13}
_DTYPES = {(code, 8 * dt.itemsize): dt for dt, code in _CODES.items()}
_CODE_NAMES = {3: "opaque handle", 5: "complex", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz",
               14: "float8_e8m0fnu", 15: "float6_e2m3fn", 16: "float6_e3m2fn", 17: "float4_e2m1fn"}


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _DeviceField(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _TypeField(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _DeviceField), ("ndim", ctypes.c_int32), ("dtype", _TypeField),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("version", _Version), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_FORMS: dict[bytes, Any] = {b"dltensor_versioned": _ManagedVersioned, b"dltensor": _Managed}
_USED = {b"dltensor_versioned": b"used_dltensor_versioned", b"dltensor": b"used_dltensor"}  # capsules point at these

_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


# *** out ***
def make_capsule(array: np.ndarray[Any, Any], dtype: DType, flags: int, versioned: bool) -> Any:
    """A capsule over the elements of ``array``, whose items are as wide as ``dtype`` and are labelled as it.

    The capsule, and then its consumer, holds the array. Numpy before 2.1 knows legacy capsules only.
    """
    capsule = None
    if versioned:
        try:
            capsule = array.__dlpack__(max_version=(_MAJOR, _MINOR))
        except TypeError:  # an older numpy; a producer may always answer with a legacy capsule
            capsule = None
    if capsule is None:
        capsule = array.__dlpack__()
    name = _get_name(capsule)
    managed = _FORMS[name].from_address(_get_pointer(capsule, name))
    if name == b"dltensor_versioned":
        managed.version.minor, managed.flags = _MINOR, flags
    managed.tensor.dtype.code, managed.tensor.dtype.bits = _CODES[dtype], 8 * dtype.itemsize
    return capsule


# *** in ***
class _Owner:
    """What a producer gave; its deleter is called when this dies."""

    __slots__ = ("_address", "_deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        self._address = address
        self._deleter = _Deleter(deleter) if deleter else None

    def __del__(self) -> None:
        if self._deleter is not None:
            self._deleter(self._address)


@dataclass(frozen=True)
class Import:
    """Foreign elements: ``strides`` count elements, ``owner`` keeps the memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    readonly: bool
    owner: _Owner


def take_capsule(capsule: Any) -> Import:
    """Empty a capsule. One that is refused here stays full, so its own destructor cleans up.

    Raises:
        ExchangeError: it is no fresh DLPack capsule, or holds what no tensor can show.
    """
    name = _get_name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name not in _FORMS:
        raise ExchangeError(f"expected a DLPack capsule that nobody has taken yet, got {capsule!r}: ask its producer "
                            "for a new one")
    address = _get_pointer(capsule, name)
    managed = _FORMS[name].from_address(address)
    if name == b"dltensor_versioned" and managed.version.major != _MAJOR:
        version = managed.version
        raise ExchangeError(f"a DLPack capsule of version {version.major}.{version.minor} cannot be read: only "
                            f"{_MAJOR}.x can, so ask for max_version=({_MAJOR}, {_MINOR})")
    tensor = managed.tensor
    if tensor.device.kind not in HOST_KINDS:
        raise ExchangeError(f"memory of DLPack device type {tensor.device.kind} cannot be shared: move the data to the "
                          "host first")
    dtype = _dtype_of(tensor.dtype)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _row_major(shape)
    readonly = name == b"dltensor_versioned" and bool(managed.flags & READ_ONLY)
    _set_name(capsule, _USED[name])
    return Import((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, readonly,
                  _Owner(address, managed.deleter))


def _dtype_of(field: _TypeField) -> DType:
    dtype = _DTYPES.get((field.code, field.bits))
    if dtype is None or field.lanes != 1:
        name = _CODE_NAMES.get(field.code, f"code {field.code}")
        raise ExchangeError(f"DLPack elements of type {name}, {field.bits} bits, {field.lanes} lanes have no tinyhost "
                          "dtype: convert them before the exchange")
    return dtype


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
