"""ModelProto in, checked: bytes and files become protos, tensor protos become arrays.

No length, path or type that a file states is believed before it was compared with what is there. External data is
read from files beside the model only. What the nodes mean is not known here.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.io.onnx.errors import OnnxModelError, OnnxUnsupported
from tinyhost.io.onnx.types import Array, element
from tinyhost.tensor import Tensor

ModelLike = Any  # str, path, bytes, ModelProto or a uint8 tensor


def onnx_load(model: ModelLike) -> tuple[Any, str | None]:
    """The ModelProto of a file, of bytes, or itself; and the folder in which its external data lies, if any.

    Raises:
        OnnxModelError: the bytes are no ONNX model.
        FileNotFoundError, IsADirectoryError: there is no such file.
        DTypeError: a tensor that is no row of uint8.
    """
    if isinstance(model, onnx.ModelProto):
        return model, None
    if isinstance(model, Tensor):
        if model.dtype is not dtypes.uint8 or model.ndim != 1:
            raise DTypeError("an ONNX model as a tensor is a row of dtypes.uint8, got "
                             f"{model.dtype} of shape {model.shape}")
        return _parsed(bytes(model.data()), "the tensor"), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parsed(bytes(model), "the bytes"), None
    path = Path(model)
    if path.is_dir():
        raise IsADirectoryError(f"an ONNX model is a file, {path} is a folder")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return _parsed(path.read_bytes(), str(path)), os.path.dirname(os.path.realpath(path))


def _parsed(content: bytes, name: str) -> Any:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise OnnxModelError(f"{name} is no ONNX model of {len(content)} bytes: {error}; it is truncated or "
                             "damaged") from error
    if not model.HasField("graph"):
        raise OnnxModelError(f"{name} of {len(content)} bytes holds no graph: it is no ONNX model, or truncated")
    return model


# *** tensors ***
def _count(tensor: Any, what: str) -> int:
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise OnnxModelError(f"{what} has a negative extent: {list(dims)}")
    return int(prod(dims))


def tensor_array(tensor: Any, base_dir: str | None, what: str) -> Array:
    """The elements of a TensorProto, in the numpy dtype of its element type.

    Raises:
        OnnxModelError: the data is not what type and shape demand, or lies where it must not.
        OnnxUnsupported: the element type is unknown.
    """
    if tensor.data_type == onnx.TensorProto.UNDEFINED:
        raise OnnxModelError(f"{what} has no element type")
    kind = element(tensor.data_type)
    count = _count(tensor, what)
    if tensor.HasField("segment"):
        raise OnnxUnsupported(f"{what} is stored in segments, which nothing writes: store it whole")
    shape = tuple(tensor.dims)
    try:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return _external(tensor, kind, count, base_dir, what)
        if not tensor.HasField("raw_data") and kind.native and kind.dtype is dtypes.float32:
            return np.array(tensor.float_data, dtype=np.float32).reshape(shape)  # to_array would warn of casts
        return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)
    except (ValueError, TypeError, UnicodeDecodeError, OverflowError) as error:
        if isinstance(error, OnnxModelError):
            raise
        raise OnnxModelError(f"{what} of {kind.name}{list(shape)} needs {count} elements, its data does not hold "
                             f"them: {error}") from error


def _bits(kind: Any) -> int:
    return {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}.get(kind.name, kind.array.itemsize * 8)


def _external(tensor: Any, kind: Any, count: int, base_dir: str | None, what: str) -> Array:
    """Elements that lie in a file beside the model."""
    if kind.dtype is None:
        raise OnnxModelError(f"{what}: {kind.name} elements cannot be external data")
    entries = {e.key: e.value for e in tensor.external_data}
    path = external_path(entries.get("location", ""), base_dir, what)
    size = (count * _bits(kind) + 7) // 8
    offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(size)))
    there = os.path.getsize(path)
    if offset < 0 or length != size or offset + size > there:
        raise OnnxModelError(f"{what} of {kind.name}{list(tensor.dims)} takes {size} bytes, its external data is "
                             f"stated as {length} bytes from byte {offset} of a file of {there} bytes")
    with open(path, "rb") as f:
        f.seek(offset)
        content = f.read(size)
    inline = onnx.TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=content)
    return np.asarray(numpy_helper.to_array(inline)).reshape(tuple(tensor.dims))


def external_path(location: str, base_dir: str | None, what: str) -> str:
    """The file of external data, which must lie in or under the model's folder.

    Raises:
        OnnxModelError: there is no folder or file, or the file lies elsewhere.
    """
    if base_dir is None:
        raise OnnxModelError(f"{what} is external data in {location!r}, but the model came without a folder: load it "
                             "from a path")
    path = os.path.realpath(os.path.join(base_dir, location))
    folder = os.path.realpath(base_dir)
    if not location or os.path.isabs(location) or os.path.commonpath([path, folder]) != folder:
        raise OnnxModelError(f"{what} is external data in {location!r}, which is not a file under the model's folder: "
                             "refused")
    if not os.path.isfile(path):
        raise OnnxModelError(f"{what} is external data in {location!r}, and there is no such file beside the model")
    return path


def sparse_array(sparse: Any, base_dir: str | None, what: str) -> Array:
    """A SparseTensorProto as a dense array.

    Raises:
        OnnxModelError: indices lie outside, or fit neither form.
    """
    shape = tuple(sparse.dims)
    if any(d < 0 for d in shape) or prod(shape) > 1 << 26:
        raise OnnxModelError(f"{what}: a sparse tensor of shape {list(shape)} cannot be made dense")
    values = tensor_array(sparse.values, base_dir, what)
    places = tensor_array(sparse.indices, base_dir, what)
    dense = np.zeros(prod(shape), values.dtype)
    try:
        flat = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), shape)
        dense[flat] = values
    except (ValueError, IndexError, TypeError) as error:
        raise OnnxModelError(f"{what}: the indices {list(places.shape)} of a sparse tensor of shape {list(shape)} do "
                             f"not fit: {error}") from error
    return dense.reshape(shape)
