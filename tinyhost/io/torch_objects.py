"""What the names in a torch checkpoint stand for: makers of our own for tensors, storages and plain values.

Gives ``GLOBALS``, the only names that are understood in a pickle; nothing else is imported or called. Tensors are views
of storages: rows and permuted rows lie where the file lies, others are gathered on the default device.
(Names and arguments: the modules torch._utils and torch.storage of torch 2.)
"""
from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.io.pickle_machine import PLAIN_KEYS, Global, Refused, Stateful
from tinyhost.io.source import addressable, view_of
from tinyhost.tensor import Tensor

__all__ = ["GLOBALS", "SCRIPT_GLOBALS", "Storage", "StorageType", "rebuild", "script_state", "sizes_of"]

MAX_AXES = 64

TORCH_DTYPES: dict[str, DType] = {
    "float64": dtypes.float64, "double": dtypes.float64, "float32": dtypes.float32, "float": dtypes.float32,
    "float16": dtypes.float16, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "bool": dtypes.bool,
    "uint8": dtypes.uint8, "int8": dtypes.int8, "int16": dtypes.int16, "short": dtypes.int16, "int32": dtypes.int32,
    "int": dtypes.int32, "int64": dtypes.int64, "long": dtypes.int64, "uint16": dtypes.uint16, "uint32": dtypes.uint32,
    "uint64": dtypes.uint64, "float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2,
    "float8_e4m3fnuz": dtypes.fp8e4m3fnuz, "float8_e5m2fnuz": dtypes.fp8e5m2fnuz}
STORAGE_DTYPES: dict[str, DType] = {
    "Double": dtypes.float64, "Float": dtypes.float32, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
    "Long": dtypes.int64,
    "Int": dtypes.int32, "Short": dtypes.int16, "Char": dtypes.int8, "Byte": dtypes.uint8, "Bool": dtypes.bool,
    "Untyped": dtypes.uint8}
_REFUSED = ("ComplexDouble", "ComplexFloat", "QInt8", "QUInt8", "QInt32", "QUInt4x2", "QUInt2x4")

_REFUSED_NAMES = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor, save it after .to_dense()",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor, save it after .to_dense()",
    "torch._utils._rebuild_qtensor": "a quantised tensor, save it after .dequantize()",
    "torch._utils._rebuild_meta_tensor_no_storage": "a tensor on the meta device, which has no elements",
    "torch._utils._rebuild_wrapper_subclass": "a tensor subclass, save plain tensors",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor that was saved as a numpy array, move it to the CPU "
                                                      "before saving",
    "torch.storage._load_from_bytes": "a pickle inside a pickle, save tensors with torch.save",
    "numpy.core.multiarray._reconstruct": "a numpy array, save it as a tensor",
    "numpy._core.multiarray._reconstruct": "a numpy array, save it as a tensor"}


@dataclass(frozen=True)
class StorageType:
    """A class of storages; no dtype if its elements cannot be read."""

    name: str
    dtype: DType | None

    def elements(self) -> DType:
        """Raises:
            DTypeError: there is no such dtype here.
        """
        if self.dtype is None:
            raise DTypeError(f"a {self.name} has elements of a dtype that does not exist here: convert the tensor "
                             "before saving")
        return self.dtype


@dataclass(frozen=True)
class Storage:
    """Elements that tensors view; ``raw`` is None while only the structure of a pickle is read."""

    key: str
    dtype: DType
    numel: int
    raw: Tensor | None


# *** tensors ***
def sizes_of(values: Any, what: str) -> tuple[int, ...]:
    """Sizes, strides or offsets that a pickle states.

    Raises:
        ValueError: they are no numbers from 0 to 2**63.
    """
    if not isinstance(values, (tuple, list)) or not all(type(v) is int and 0 <= v < 2**63
                                                        for v in values) or len(values) > MAX_AXES:
        raise ValueError(f"{what} must be a tuple of at most {MAX_AXES} sizes")
    return tuple(values)


def _strided(storage: Storage, dtype: DType, offset: Any, size: Any, stride: Any) -> Tensor:
    """The view of a storage that torch describes by offset, size and stride, in elements.

    Raises:
        ValueError: it does not lie inside the storage.
    """
    shape, strides, (start,) = sizes_of(size, "size"), sizes_of(stride, "stride"), sizes_of((offset,), "storage_offset")
    if len(shape) != len(strides):
        raise ValueError(f"a tensor of size {shape} with strides {strides}: their lengths differ")
    if not addressable(shape, dtype):
        raise ValueError(f"a tensor of size {shape} has more elements than can be addressed: damaged")
    numel = storage.numel * storage.dtype.itemsize // dtype.itemsize
    span = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if prod(shape) else 0
    if start + span > numel:
        raise ValueError(f"a tensor of size {shape}, strides {strides}, offset {start} does not lie in storage "
                         f"{storage.key!r} of {numel} elements: damaged")
    if storage.raw is None:
        return NOTHING  # type: ignore[no-any-return]
    if not span:
        return Tensor.empty(*shape, dtype=dtype, device=storage.raw.device)
    row = view_of(storage.raw[start * dtype.itemsize:(start + span) * dtype.itemsize], dtype, (span,))
    # axes of one element never move, whatever their stride
    order = sorted((i for i, n in enumerate(shape) if n > 1), key=lambda i: -strides[i])
    dense = 1
    for i in reversed(order):
        if strides[i] != dense:
            return _gathered(row, shape, strides)
        dense *= shape[i]
    order += [i for i, n in enumerate(shape) if n == 1]
    return row.reshape(tuple(shape[i] for i in order)).permute(tuple(order.index(i) for i in range(len(shape))))


def _gathered(row: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """Elements of ``row`` at the places that strides give, on the default device: steps, repeats and overlaps."""
    moved = [(n, s) for n, s in zip(shape, strides) if s]  # repeats are made by expand, not gathered
    if prod(n for n, _ in moved) >= 2**31 or row.numel() >= 2**31:
        raise ValueError(f"a tensor of size {shape} with strides {strides} is no permuted row and too large to gather: "
                         "save it after .contiguous()")
    place = Tensor.zeros(*[1] * len(moved), dtype=dtypes.int32)
    for i, (n, s) in enumerate(moved):
        place = place + (Tensor.arange(n, dtype=dtypes.int32) * s).reshape(tuple(n if j == i else 1
            for j in range(len(moved))))
    values = row.to(None)[place] if moved else row.to(None).reshape(())
    return values.reshape(tuple(n if s else 1 for n, s in zip(shape, strides))).expand(shape)


NOTHING: Any = object()  # stands for a tensor while only structure is read


def rebuild(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
             metadata: Any = None) -> Tensor:
    """torch._utils._rebuild_tensor and _rebuild_tensor_v2."""
    if not isinstance(storage, Storage):
        raise ValueError(f"a tensor is made of a {type(storage).__name__}, not a storage: damaged")
    return _rebuild3(storage, offset, size, stride, requires_grad, hooks, storage.dtype, metadata)


def _rebuild3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
              metadata: Any = None) -> Tensor:
    """torch._utils._rebuild_tensor_v3: the storage is untyped."""
    if not isinstance(storage, Storage) or not isinstance(dtype, DType):
        raise ValueError(f"a tensor is made of a {type(storage).__name__} and a {type(dtype).__name__}: damaged")
    if isinstance(metadata, dict) and any(metadata.get(k) is True for k in ("conj", "neg")):
        raise ValueError("a tensor whose values are conjugated or negated when read: save it after "
                         ".resolve_conj().resolve_neg()")
    return _strided(storage, dtype, offset, size, stride)


def _parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Tensor:
    """torch._utils._rebuild_parameter and _rebuild_parameter_with_state."""
    if data is not NOTHING and not isinstance(data, Tensor):
        raise ValueError(f"a parameter is made of a {type(data).__name__}, not a tensor: damaged")
    return data  # type: ignore[no-any-return]


def _from_type(make: Any, kind: Any, args: Any, state: Any) -> Any:
    """torch._tensor._rebuild_from_type_v2: a tensor that carries attributes, which are dropped."""
    if not isinstance(make, Global) or make.make is None or make.make is _from_type or not isinstance(args, tuple):
        raise ValueError("a tensor with attributes is made of no function and arguments: damaged")
    return make.make(*args)


# *** plain values ***
def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    out = OrderedDict[Any, Any]()
    for pair in items if isinstance(items, (list, tuple)) else ():
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or type(pair[0]) not in (str, int):
            raise ValueError("items are pairs of a name and a value")
        out[pair[0]] = pair[1]
    return out


def _set(items: Any = ()) -> set[Any]:
    if not isinstance(items, (list, tuple)) or not all(type(v) in PLAIN_KEYS for v in items):
        raise ValueError("items of a set are text and numbers")
    return set(items)


def _counts(items: Any = None) -> Counter[Any]:
    return Counter(items if isinstance(items, dict) else {})


def _default(factory: Any = None) -> dict[Any, Any]:
    # the factory is not kept: reading a missing name is an error, as in a dict
    return {}


def _size(items: Any = ()) -> tuple[int, ...]:
    return sizes_of(items, "torch.Size")


def _device(kind: Any, index: Any = None) -> str:
    if not isinstance(kind, str) or not isinstance(index, (int, type(None))):
        raise ValueError("a device is named by text and a number")
    return kind if index is None else f"{kind}:{index}"


def _encoded(text: Any, encoding: Any) -> bytes:
    """_codecs.encode, by which protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise ValueError("text in latin1 is expected")
    return text.encode("latin-1")


class _ScalarType(Stateful):
    """A dtype of numpy; its byte order arrives as state."""

    def __init__(self, code: Any, align: Any = False, copy: Any = True) -> None:
        if code not in _SCALARS:
            raise ValueError(f"a numpy scalar of dtype {str(code)[:40]!r}: numbers and bool can be read")
        self.format = _SCALARS[code]

    def set_state(self, state: Any) -> None:
        """(version, byte order, ...)"""
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", "|", "="):
            raise ValueError("a numpy scalar that is not little-endian: save it as a Python number")


_SCALARS = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I",
            "u2": "H", "u1": "B",
            "b1": "?"}


def _scalar(kind: Any, content: Any) -> float | int | bool:
    """numpy.core.multiarray.scalar: the number."""
    if not isinstance(kind, _ScalarType) or not isinstance(content, (bytes, str)):
        raise ValueError("a numpy scalar needs a dtype and bytes")
    raw = content.encode("latin-1") if isinstance(content, str) else content
    if len(raw) != struct.calcsize(kind.format):
        raise ValueError(f"a numpy scalar of {struct.calcsize(kind.format)} bytes has {len(raw)}: damaged")
    value: float | int | bool = struct.unpack("<" + kind.format, raw)[0]
    return value


def _table() -> dict[str, Any]:
    makers: dict[str, Callable[..., Any] | None] = {
        "torch._utils._rebuild_tensor": rebuild, "torch._utils._rebuild_tensor_v2": rebuild,
        "torch._utils._rebuild_tensor_v3": _rebuild3, "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter, "torch._tensor._rebuild_from_type_v2": _from_type,
        "torch.Size": _size, "torch.device": _device, "torch.Tensor": None, "torch.nn.parameter.Parameter": None,
        "torch.nn.parameter.Buffer": None, "collections.OrderedDict": _ordered, "collections.Counter": _counts,
        "collections.defaultdict": _default, "_codecs.encode": _encoded, "numpy.dtype": _ScalarType,
        "numpy.core.multiarray.scalar": _scalar, "numpy._core.multiarray.scalar": _scalar,
        "builtins.set": _set, "__builtin__.set": _set, }
    makers.update({f"{module}.{name}": None for module in ("builtins", "__builtin__")
                   for name in ("dict", "float", "int", "list", "long", "str")})
    out: dict[str, Any] = {name: Global(name, make) for name, make in makers.items()}
    out.update({f"torch.{name}": d for name, d in TORCH_DTYPES.items()})
    out.update({f"torch.{name}Storage": StorageType(f"torch.{name}Storage", d) for name, d in STORAGE_DTYPES.items()})
    out.update({f"torch.{name}Storage": StorageType(f"torch.{name}Storage", None) for name in _REFUSED})
    out.update({name: Refused(reason) for name, reason in _REFUSED_NAMES.items()})
    out["torch.storage.UntypedStorage"] = out["torch.UntypedStorage"]
    out.update({f"torch.{name}Tensor": StorageType(f"torch.{name}Tensor", d) for name, d in STORAGE_DTYPES.items()})
    return out


GLOBALS = _table()


# *** TorchScript ***
class _Script(Stateful):
    """An object of a class whose code lies in the archive: only its attributes are read."""

    def __init__(self) -> None:
        self.attributes: dict[Any, Any] = {}

    def set_state(self, state: Any) -> None:
        """Attributes by name."""
        if not isinstance(state, dict):
            raise ValueError(f"the state of a scripted object is a {type(state).__name__}, made by code that is not "
                             "run: save the state_dict of the module")
        self.attributes = state


class _ScriptGlobals(dict[str, Any]):
    """``GLOBALS`` and every class of the archive itself."""

    def get(self, name: str, default: Any = None) -> Any:
        """What a name stands for."""
        return Global(name, _Script) if name.startswith("__torch__.") else super().get(name, default)


def _items_of(values: Any, tag: Any = None) -> Any:
    """torch.jit._pickle.build_intlist and its kind: the list itself."""
    if not isinstance(values, (list, dict)):
        raise ValueError(f"a typed list or dict is made of a {type(values).__name__}: damaged")
    return values


SCRIPT_GLOBALS: dict[str, Any] = _ScriptGlobals(GLOBALS)
SCRIPT_GLOBALS.update({f"torch.jit._pickle.{name}": Global(f"torch.jit._pickle.{name}", _items_of) for name in (
    "build_boollist", "build_doublelist", "build_intlist", "build_tensorlist", "restore_type_tag")})


def script_state(root: Any) -> dict[str, Tensor]:
    """The tensors among the attributes of scripted objects, by dotted path."""
    out, stack, seen = dict[str, Tensor](), [("", root)], set[int]()
    while stack:
        path, x = stack.pop()
        if isinstance(x, Tensor):
            out[path] = x
        elif isinstance(x, (_Script, dict, list, tuple)) and id(x) not in seen:
            seen.add(id(x))
            held = x.attributes if isinstance(x, _Script) else x
            items = list(held.items() if isinstance(held, dict) else enumerate(held))
            stack.extend((f"{path}.{k}" if path else str(k), v) for k, v in reversed(items))
    return out
