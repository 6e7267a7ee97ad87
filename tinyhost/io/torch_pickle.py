"""Checkpoints of torch: zip archives (torch 1.6 and later), single pickles (0.1.10 to 1.5) and tar archives (before).

Takes a file; gives what was saved, tensors as lazy views of the file where they are rows or permuted rows. Nothing of
a checkpoint is run: of a pickle only the names in ``GLOBALS`` are understood, as makers defined here. Complex,
quantised and sparse tensors, and objects other than containers, numbers and text, are errors.
(Layouts: the module torch.serialization of torch 2.)
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
from tinyhost.io.archive import Member, cursor_of, member_bytes, tar_members, zip_members
from tinyhost.io.pickle_machine import PLAIN_KEYS, Global, PickleMachine, Refused, Stateful
from tinyhost.io.source import Cursor, FileLike, Source, tensor_of, view_of
from tinyhost.tensor import Tensor

__all__ = ["torch_load"]

MAGIC = 0x1950A86A20F9469CFC6C
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
def _ints(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int and 0 <= v < 2**63
                                                        for v in values) or len(values) > MAX_AXES:
        raise ValueError(f"{what} must be a tuple of at most {MAX_AXES} sizes")
    return tuple(values)


def _strided(storage: Storage, dtype: DType, offset: Any, size: Any, stride: Any) -> Tensor:
    """The view of a storage that torch describes by offset, size and stride, in elements.

    Raises:
        ValueError: it does not lie inside the storage.
    """
    shape, strides, (start,) = _ints(size, "size"), _ints(stride, "stride"), _ints((offset,), "storage_offset")
    if len(shape) != len(strides):
        raise ValueError(f"a tensor of size {shape} with strides {strides}: their lengths differ")
    numel = storage.numel * storage.dtype.itemsize // dtype.itemsize
    span = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if prod(shape) else 0
    if start + span > numel:
        raise ValueError(f"a tensor of size {shape}, strides {strides}, offset {start} does not lie in storage "
                         f"{storage.key!r} of {numel} elements: damaged")
    if storage.raw is None:
        return _NOTHING  # type: ignore[no-any-return]
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


_NOTHING: Any = object()  # stands for a tensor while only structure is read


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
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
    if data is not _NOTHING and not isinstance(data, Tensor):
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
    return _ints(items, "torch.Size")


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
        "torch._utils._rebuild_tensor": _rebuild, "torch._utils._rebuild_tensor_v2": _rebuild,
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


# *** zip ***
def _load_zip(source: Source) -> Any:
    members = zip_members(source)
    roots = [n[:-len("data.pkl")] for n in members if n == "data.pkl" or n.endswith("/data.pkl")]
    if len(roots) != 1:
        raise source.error(f"it holds {len(roots)} files data.pkl, a checkpoint has one; it has {sorted(members)[:5]}")
    root, made = roots[0], dict[str, Storage]()
    order = members.get(root + "byteorder")
    if order is not None and (text := member_bytes(source, order)) != b"little":
        raise source.error(f"its byte order is {text[:20]!r}: only little-endian checkpoints can be read")

    def storage(pid: Any) -> Storage:
        kind, key, numel = _persistent(pid)
        if key not in made:
            made[key] = Storage(key, kind.elements(), numel, _zip_storage(source, members, root, key,
                numel * kind.elements().itemsize))
        return made[key]
    pickle = members[root + "data.pkl"]
    content = cursor_of(source, pickle) if pickle.method == 0 else Cursor(_memory(source, member_bytes(source, pickle)))
    return PickleMachine(content, GLOBALS, storage).load()


def _memory(source: Source, content: bytes) -> Source:
    """Decompressed bytes, under the name of the file."""
    out = Source(tensor_of(content), source.kind)
    out.name = source.name
    return out


def _zip_storage(source: Source, members: dict[str, Member], root: str, key: str, size: int) -> Tensor:
    if (m := members.get(f"{root}data/{key}")) is None:
        raise ValueError(f"storage {key!r} has no file {root}data/{key} in the archive: damaged")
    if m.size < size:
        raise ValueError(f"storage {key!r} needs {size} bytes, its file {m.name} has {m.size}: truncated or damaged")
    if m.method == 0:
        return source.slice(m.start, m.stored, f"storage {key!r}")
    return tensor_of(member_bytes(source, m))


def _persistent(pid: Any) -> tuple[StorageType, str, int]:
    """(type, key, elements) of a storage's id ('storage', type, key, location, elements[, view])."""
    if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage" or not isinstance(pid[1],
        StorageType):
        raise ValueError("a persistent id that is no storage: not a checkpoint of tensors, or damaged")
    _, kind, key, _, numel = pid[:5]
    if not isinstance(key, str) or type(numel) is not int or not 0 <= numel < 2**60:
        raise ValueError("a storage whose key is no text or whose size is no number: damaged")
    return kind, key, numel


# *** one pickle ***
def _load_pickles(source: Source) -> Any:
    """Five pickles (magic number, protocol, system, object, keys), then each storage: element count and bytes."""
    cursor = Cursor(source)

    def plain(what: str) -> Any:
        def none(pid: Any) -> Any:
            raise ValueError(f"a persistent id in {what}: damaged")
        return PickleMachine(cursor, GLOBALS, none).load()
    if plain("the magic number") != MAGIC:
        raise source.error("it does not begin with the magic number of torch checkpoints")
    if (version := plain("the version")) != 1001:
        raise source.error(f"version {str(version)[:40]} of the format: 1001 can be read")
    system = plain("the system's properties")
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise source.error("it was not written on a little-endian system: only those checkpoints can be read")
    begin, sizes = cursor.at, dict[str, tuple[DType, int]]()

    def note(pid: Any) -> Storage:  # the storages lie behind the object, so the first reading only finds their sizes
        kind, key, numel = _persistent(pid)
        sizes.setdefault(key, (kind.elements(), numel))
        return _viewed(Storage(key, kind.elements(), numel, None), pid)
    PickleMachine(cursor, GLOBALS, note).load()
    made = _storages_behind(source, cursor, plain("the keys of storages"), sizes)
    return PickleMachine(Cursor(source, begin), GLOBALS, lambda pid: _viewed(made[pid[2]], pid)).load()


def _storages_behind(source: Source, cursor: Cursor, keys: Any, sizes: dict[str, tuple[DType, int]]) -> dict[str,
    Storage]:
    if not isinstance(keys, list) or set(map(str, keys)) != set(sizes) or len(keys) != len(sizes):
        raise source.error(f"the list of storages does not name the {len(sizes)} that tensors use: damaged")
    made = {}
    for key in keys:
        dtype, numel = sizes[key]
        if (count := cursor.integer(8, f"the size of storage {key!r}")) != numel:
            raise source.error(f"storage {key!r} has {count} elements, its tensors expect {numel}: damaged")
        raw = source.slice(cursor.at, count * dtype.itemsize, f"storage {key!r}")
        cursor.at += count * dtype.itemsize
        made[key] = Storage(key, dtype, numel, raw)
    return made


def _viewed(storage: Storage, pid: Any) -> Storage:
    """The part of a storage that view metadata (key, offset, elements) name, all of it without them."""
    if len(pid) < 6 or pid[5] is None:
        return storage
    if not isinstance(pid[5], tuple) or len(pid[5]) != 3:
        raise ValueError("a view of a storage that is no (key, offset, size): damaged")
    offset, numel = _ints(pid[5][1:], "the view of a storage")
    if offset + numel > storage.numel:
        raise ValueError(f"a view of {numel} elements from {offset} of storage {storage.key!r}, which has "
                         f"{storage.numel}: damaged")
    item = storage.dtype.itemsize
    raw = None if storage.raw is None else storage.raw[offset * item:(offset + numel) * item]
    return Storage(storage.key, storage.dtype, numel, raw)


# *** tar ***
def _load_tar(source: Source) -> Any:
    """Members storages and tensors, each a count and as many pickles with raw data behind, and the member pickle."""
    members = tar_members(source)
    if missing := {"storages", "tensors", "pickle"} - members.keys():
        raise source.error(f"a tar archive without {sorted(missing)}: not a checkpoint; it has {sorted(members)[:5]}")
    objects: dict[int, Any] = {}
    _tar_storages(source, cursor_of(source, members["storages"]), objects)
    _tar_tensors(source, cursor_of(source, members["tensors"]), objects)

    def known(pid: Any) -> Any:
        if isinstance(pid, str) and pid.isdecimal():
            pid = int(pid[:20])
        if isinstance(pid, tuple) and pid and isinstance(pid[0], StorageType):
            return pid[0]
        if type(pid) is not int or pid not in objects:
            raise ValueError("a persistent id that names no tensor or storage of the archive: damaged")
        return objects[pid]
    return PickleMachine(cursor_of(source, members["pickle"]), GLOBALS, known).load()


def _no_id(pid: Any) -> Any:
    if isinstance(pid, tuple) and pid and isinstance(pid[0], StorageType):
        return pid[0]
    raise ValueError("a persistent id where there is none: damaged")


def _record(source: Source, cursor: Cursor, what: str) -> tuple[int, Any, Any]:
    """A pickled (key, x, y)."""
    out = PickleMachine(cursor, GLOBALS, _no_id).load()
    if not isinstance(out, tuple) or len(out) != 3 or type(out[0]) is not int:
        raise source.error(f"{what} before byte {cursor.at} is no (key, value, value): damaged")
    return out


def _count(source: Source, cursor: Cursor, what: str) -> int:
    n = PickleMachine(cursor, GLOBALS, _no_id).load()
    if type(n) is not int or not 0 <= n <= cursor.left:
        raise source.error(f"the number of {what} is no number that fits {cursor.left} bytes: damaged")
    return n


def _tar_storages(source: Source, cursor: Cursor, objects: dict[int, Any]) -> None:
    for _ in range(_count(source, cursor, "storages")):
        key, _, kind = _record(source, cursor, "a storage")
        if not isinstance(kind, StorageType):
            raise source.error(f"storage {key} has no type: damaged")
        dtype, numel = kind.elements(), cursor.integer(8, f"the size of storage {key}")
        if numel * dtype.itemsize > cursor.left:
            raise source.error(f"storage {key} of {numel} {dtype} does not fit the {cursor.left} bytes that are left: "
                               "truncated or damaged")
        objects[key] = Storage(str(key), dtype, numel, source.slice(cursor.at, numel * dtype.itemsize,
                                                                    f"storage {key}"))
        cursor.at += numel * dtype.itemsize
    views = PickleMachine(cursor, GLOBALS, _no_id).load()
    if not isinstance(views, list):
        raise source.error("the list of storage views is none: damaged")
    for view in views:
        if not isinstance(view, tuple) or len(view) != 4 or not all(type(v) is int for v in view) or \
                not isinstance(root := objects.get(view[1]), Storage):
            raise source.error("a view of a storage is no (key, storage, offset, size): damaged")
        objects[view[0]] = _viewed(root, (0,) * 5 + ((0, *view[2:]),))


def _tar_tensors(source: Source, cursor: Cursor, objects: dict[int, Any]) -> None:
    for _ in range(_count(source, cursor, "tensors")):
        key, storage, _ = _record(source, cursor, "a tensor")
        axes = cursor.integer(4, f"the number of axes of tensor {key}")
        if axes > MAX_AXES:
            raise source.error(f"tensor {key} has {axes} axes, at most {MAX_AXES} can be: damaged")
        cursor.take(4, "padding")
        size, stride = ([cursor.integer(8, f"size and stride of tensor {key}") for _ in range(axes)] for _ in range(2))
        offset = cursor.integer(8, f"the offset of tensor {key}")
        if type(storage) is not int or not isinstance(objects.get(storage), Storage):
            raise source.error(f"tensor {key} names a storage that is not there: damaged")
        try:
            objects[key] = _rebuild(objects[storage], offset, size, stride)
        except ValueError as e:
            raise source.error(f"tensor {key}: {e}") from e


# *** entry ***
def torch_load(fn: FileLike) -> Any:
    """What ``torch.save`` wrote: usually a dict of tensors by name, else the nested containers as they were saved.

    Tensors lie on the file's device until they are moved; those with steps, repeats or overlaps between their elements
    are gathered on the default device. Nothing of the file is run.

    Raises:
        ValueError: the file is truncated or damaged, or holds more than tensors, containers, numbers and text.
        DTypeError: a dtype that does not exist here (complex, quantised).
    """
    source = Source(fn, "torch checkpoint")
    head = source.read(0, min(source.size, 512), "the first bytes")
    if head[:4] in (b"PK\3\4", b"PK\5\6"):
        return _load_zip(source)
    if head[:1] == b"\x80":
        return _load_pickles(source)
    if len(head) == 512:
        return _load_tar(source)
    raise source.error(f"{source.size} bytes that begin with {head[:8]!r}: neither a zip archive, nor a pickle, nor a "
                       "tar archive")
