"""Element types, and the values that flow between nodes.

A value is a Tensor; a numpy array on the host (shape arithmetic, strings); a ``Narrow``, elements of a type that no
device has, carried by a wider one; a list of values (a sequence); or None (an input left out, an empty optional).
This module knows how each is made, named and read; what nodes do with them is elsewhere.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import onnx

from tinyhost.dtype import DType, dtypes
from tinyhost.io.onnx.errors import OnnxModelError, OnnxUnsupported
from tinyhost.tensor import Tensor

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type of ONNX.

    Attributes:
        code: number in ``TensorProto.DataType``.
        name: as in type strings, ``tensor(name)``.
        array: numpy dtype of arrays of it; object for strings.
        dtype: device type that holds it, None for strings and complex numbers.
        native: whether ``dtype`` is the type itself rather than a wider carrier.
    """

    code: int
    name: str
    array: np.dtype[Any]
    dtype: DType | None
    native: bool = True

    @property
    def tensor_type(self) -> str:
        """The type string of tensors of it."""
        return f"tensor({self.name})"


def _table() -> list[ElementType]:
    code = onnx.TensorProto
    native = [("float", code.FLOAT, np.float32, dtypes.float32), ("double", code.DOUBLE, np.float64, dtypes.float64),
              ("float16", code.FLOAT16, np.float16, dtypes.float16), ("bool", code.BOOL, np.bool_, dtypes.bool),
              ("bfloat16", code.BFLOAT16, ml_dtypes.bfloat16, dtypes.bfloat16),
              ("int8", code.INT8, np.int8, dtypes.int8), ("uint8", code.UINT8, np.uint8, dtypes.uint8),
              ("int16", code.INT16, np.int16, dtypes.int16), ("uint16", code.UINT16, np.uint16, dtypes.uint16),
              ("int32", code.INT32, np.int32, dtypes.int32), ("uint32", code.UINT32, np.uint32, dtypes.uint32),
              ("int64", code.INT64, np.int64, dtypes.int64), ("uint64", code.UINT64, np.uint64, dtypes.uint64),
              ("float8e4m3fn", code.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, dtypes.fp8e4m3),
              ("float8e5m2", code.FLOAT8E5M2, ml_dtypes.float8_e5m2, dtypes.fp8e5m2),
              ("float8e4m3fnuz", code.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, dtypes.fp8e4m3fnuz),
              ("float8e5m2fnuz", code.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz, dtypes.fp8e5m2fnuz)]
    # newer types, where the installed packages know them: name, numpy name, carrier
    carried = [("int4", "int4", dtypes.int8), ("uint4", "uint4", dtypes.uint8),
               ("int2", "int2", dtypes.int8), ("uint2", "uint2", dtypes.uint8),
               ("float4e2m1", "float4_e2m1fn", dtypes.float32), ("float8e8m0", "float8_e8m0fnu", dtypes.float32)]
    table = [ElementType(int(c), name, np.dtype(a), d) for name, c, a, d in native]
    for name, array, carrier in carried:
        if hasattr(code, name.upper()) and hasattr(ml_dtypes, array):
            number = int(getattr(code, name.upper()))
            table.append(ElementType(number, name, np.dtype(getattr(ml_dtypes, array)), carrier, False))
    table.append(ElementType(int(code.STRING), "string", np.dtype(object), None))
    table.append(ElementType(int(code.COMPLEX64), "complex64", np.dtype(np.complex64), None))
    table.append(ElementType(int(code.COMPLEX128), "complex128", np.dtype(np.complex128), None))
    return table


ELEMENTS = {e.code: e for e in _table()}
BY_NAME = {e.name: e for e in ELEMENTS.values()}
BY_DTYPE = {e.dtype: e for e in ELEMENTS.values() if e.native and e.dtype is not None}
BY_ARRAY = {e.array: e for e in ELEMENTS.values()}
STRING = BY_NAME["string"]


def element(code: int) -> ElementType:
    """The element type of a number.

    Raises:
        OnnxUnsupported: no such type is known.
    """
    found = ELEMENTS.get(code)
    if found is None:
        raise OnnxUnsupported(f"element type {code} is not known: the types are "
                              f"{', '.join(f'{c} ({e.name})' for c, e in sorted(ELEMENTS.items()))}")
    return found


@dataclass(frozen=True, slots=True)
class Narrow:
    """Elements of a type that no device has (int4, float4e2m1 ...), exact in a wider one."""

    carrier: Tensor
    element: ElementType

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents of the axes."""
        return self.carrier.shape


Value: TypeAlias = Tensor | Array | Narrow | list[Any] | None


def array_element(array: Array) -> ElementType:
    """The element type of a numpy array; any array of text is of strings.

    Raises:
        OnnxUnsupported: ONNX has no such type.
    """
    found = BY_ARRAY.get(array.dtype)
    if found is not None:
        return found
    if array.dtype.kind in "UST":
        return STRING
    native = BY_ARRAY.get(array.dtype.newbyteorder("="))
    if native is None:
        raise OnnxUnsupported(f"numpy dtype {array.dtype} is no element type of ONNX: convert the array first")
    return native


def element_of(value: Any) -> ElementType:
    """The element type of a tensor value."""
    if isinstance(value, Tensor):
        return BY_DTYPE[value.dtype]
    return value.element if isinstance(value, Narrow) else array_element(value)


def type_name(value: Any) -> str:
    """The type string of a value: ``tensor(float)``, ``seq(tensor(float))`` ...; "" where nothing tells it."""
    if value is None:
        return ""
    if isinstance(value, list):
        inner = type_name(value[0]) if value else ""
        return f"seq({inner})" if inner else ""
    return element_of(value).tensor_type


def describe(value: Any) -> str:
    """A value in a message: type and shape."""
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a sequence of {len(value)}" + (f" ({describe(value[0])} ...)" if value else "")
    return f"{element_of(value).name}{list(value.shape)}"


def to_tensor(value: Any, device: Any = None) -> Tensor:
    """A tensor value on a device; a ``Narrow`` gives its carrier.

    Raises:
        OnnxModelError: the value is no tensor, or has no place on a device.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Narrow):
        return value.carrier
    if not isinstance(value, np.ndarray):
        raise OnnxModelError(f"a tensor is needed here, got {describe(value)}")
    kind = array_element(value)
    if kind.dtype is None:
        raise OnnxModelError(f"{kind.name} values stay on the host: this operator has no form for them")
    if not kind.native:
        return _native_tensor(value.astype(_CARRIERS[kind.dtype]), device)
    if value.dtype.kind != "V" and kind.dtype.fmt is not None:
        return _native_tensor(value, device)
    codes = np.ascontiguousarray(value).view(np.uint8 if kind.dtype.itemsize == 1 else np.uint16)
    return _native_tensor(codes.reshape(value.shape), device).bitcast(kind.dtype)


_CARRIERS = {dtypes.int8: np.int8, dtypes.uint8: np.uint8, dtypes.float32: np.float32}


def _native_tensor(array: Array, device: Any) -> Tensor:
    if array.size == 0:
        return Tensor(np.zeros(1, array.dtype), device=device).shrink(((0, 0),)).reshape(array.shape)
    return Tensor(array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape),
                  device=device)


def from_array(array: Array, device: Any = None) -> Value:
    """A numpy array as a value on a device; strings and complex numbers stay arrays."""
    kind = array_element(array)
    if kind.dtype is None:
        return array.astype(object) if kind is STRING else array
    tensor = to_tensor(array, device)
    return tensor if kind.native else Narrow(tensor, kind)


def to_array(value: Any) -> Array:
    """The elements as a numpy array of the element type's own dtype (ml_dtypes for bfloat16, fp8, int4 ...).

    Raises:
        OnnxModelError: the value is no tensor.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Narrow):
        return value.carrier.numpy().astype(value.element.array)
    if not isinstance(value, Tensor):
        raise OnnxModelError(f"a tensor is needed here, got {describe(value)}")
    kind = BY_DTYPE[value.dtype]
    if value.dtype.fmt is not None or 0 in value.shape:
        return value.numpy().astype(kind.array, copy=False)
    codes = value.contiguous().bitcast(dtypes.uint8 if value.dtype.itemsize == 1 else dtypes.uint16)
    return codes.numpy().view(kind.array)
