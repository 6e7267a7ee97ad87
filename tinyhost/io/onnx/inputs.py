"""Inputs of a model: what is declared, and whether what came fits.

Takes TypeProtos and the caller's values; gives values for the run. Symbolic extents are free, but one name is one
number in a call.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost.io.onnx.errors import OnnxError
from tinyhost.io.onnx.types import (
    BY_NAME,
    ELEMENTS,
    STRING,
    Narrow,
    Value,
    array_element,
    describe,
    from_array,
    type_name,
)
from tinyhost.tensor import Tensor

_HOST_INPUT = 64  # elements of an integer input that stay on the host


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """Declared type of an input or output.

    Attributes:
        type: type string, "" where nothing is declared.
        shape: extents as numbers, names or None; None where the rank is open.
        optional: whether it may be left out.
    """

    type: str
    shape: tuple[int | str | None, ...] | None
    optional: bool = False

    def __str__(self) -> str:
        dims = "" if self.shape is None else "[" + ", ".join("?" if d is None else str(d) for d in self.shape) + "]"
        return (self.type or "any type") + dims


def _info(proto: Any) -> ValueInfo:
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        inner = _info(proto.optional_type.elem_type)
        return ValueInfo(inner.type, inner.shape, True)
    if kind == "sequence_type":
        inner = _info(proto.sequence_type.elem_type)
        return ValueInfo(f"seq({inner.type})" if inner.type else "", None)
    if kind != "tensor_type" or proto.tensor_type.elem_type not in ELEMENTS:
        return ValueInfo("", None)
    t = proto.tensor_type
    shape = None
    if t.HasField("shape"):
        shape = tuple(_extent(d) for d in t.shape.dim)
    return ValueInfo(ELEMENTS[t.elem_type].tensor_type, shape)


def _extent(dim: Any) -> int | str | None:
    """A number, a name, or None where open; exporters write open ones as -1 or "?" too."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return str(dim.dim_param) if dim.dim_param not in ("", "?") else None


def value_infos(protos: Iterable[Any]) -> dict[str, ValueInfo]:
    """Declared types by name, of ValueInfoProtos."""
    return {v.name: _info(v.type) for v in protos}


def checked_input(name: str, value: Any, info: ValueInfo | None, extents: dict[str, int], device: Any) -> Value:
    """An input as a value; ``extents`` collects what the symbolic names stand for.

    Raises:
        OnnxError: type or shape is not what the model declares.
    """
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and (info is None or info.type.startswith("seq(") or not info.type):
        found: Any = [checked_input(name, v, None, extents, device) for v in value]
    else:
        found = _converted(name, value, info, device)
    if info is None:
        return found
    got = type_name(found)
    if info.type and got and got != info.type:
        raise OnnxError(f"input {name!r} is {describe(found)}, the model declares {info}: convert it first")
    if info.shape is not None and not isinstance(found, list):
        _check_shape(name, found, info, extents)
    return found


def _converted(name: str, value: Any, info: ValueInfo | None, device: Any) -> Value:
    if isinstance(value, Tensor):
        return value if device is None else value.to(device)
    if isinstance(value, Narrow):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        if not isinstance(value, (bool, int, float, str, list, tuple)) and not hasattr(value, "__array__"):
            raise OnnxError(f"input {name!r} is of type {type(value).__name__}: give a Tensor or a numpy array")
        kind = None if info is None else BY_NAME.get(info.type[len("tensor("):-1])
        value = np.asarray(value, dtype=None if kind is None else kind.array)
    array = np.asarray(value)
    if array_element(array) is STRING:
        return array.astype(object)
    if array.dtype.kind in "iub" and array.ndim <= 1 and array.size <= _HOST_INPUT:
        return array.copy()
    return from_array(array, device)


def _check_shape(name: str, value: Any, info: ValueInfo, extents: dict[str, int]) -> None:
    assert info.shape is not None
    shape = tuple(value.shape)
    if len(shape) != len(info.shape):
        raise OnnxError(f"input {name!r} is {describe(value)}, the model declares {info}: the number of axes differs")
    for have, want in zip(shape, info.shape):
        if isinstance(want, int) and want != have:
            raise OnnxError(f"input {name!r} is {describe(value)}, the model declares {info}: {have} is not {want}")
        if isinstance(want, str) and extents.setdefault(want, have) != have:
            raise OnnxError(f"input {name!r} is {describe(value)}, the model declares {info}, but {want} is "
                            f"{extents[want]} in another input")
