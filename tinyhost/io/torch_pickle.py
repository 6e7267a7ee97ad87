"""Checkpoints of torch: zip archives (torch 1.6 and later), single pickles (0.1.10 to 1.5) and tar archives (before).

Takes a file; gives what was saved, tensors as lazy views of the file where they are rows or permuted rows; of a
TorchScript archive its weights by name. Nothing of a checkpoint is run: of a pickle only the names in
``torch_objects.GLOBALS`` are understood. Complex, quantised and sparse tensors, and objects other than containers,
numbers and text, are errors. (Layouts: the module torch.serialization of torch 2.)
"""
from __future__ import annotations

from typing import Any

from tinyhost.dtype import DType
from tinyhost.io.archive import Member, cursor_of, member_bytes, tar_members, zip_members
from tinyhost.io.pickle_machine import PickleMachine
from tinyhost.io.source import Cursor, FileLike, Source, tensor_of
from tinyhost.io.torch_objects import (
    GLOBALS,
    MAX_AXES,
    SCRIPT_GLOBALS,
    Storage,
    StorageType,
    rebuild,
    script_state,
    sizes_of,
)
from tinyhost.tensor import Tensor

__all__ = ["torch_load"]

MAGIC = 0x1950A86A20F9469CFC6C


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
    pickle, scripted = members[root + "data.pkl"], root + "constants.pkl" in members
    content = cursor_of(source, pickle) if pickle.method == 0 else Cursor(_memory(source, member_bytes(source, pickle)))
    loaded = PickleMachine(content, SCRIPT_GLOBALS if scripted else GLOBALS, storage).load()
    return script_state(loaded) if scripted else loaded


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
    offset, numel = sizes_of(pid[5][1:], "the view of a storage")
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
            objects[key] = rebuild(objects[storage], offset, size, stride)
        except ValueError as e:
            raise source.error(f"tensor {key}: {e}") from e


# *** entry ***
def torch_load(t: FileLike) -> Any:
    """What ``torch.save`` wrote: usually a dict of tensors by name, else the nested containers as they were saved.

    Of what ``torch.jit.save`` wrote, the tensors among its attributes by dotted path; the code in it is not read.

    Tensors lie on the file's device until they are moved; those with steps, repeats or overlaps between their elements
    are gathered on the default device. Nothing of the file is run.

    Raises:
        ValueError: the file is truncated or damaged, or holds more than tensors, containers, numbers and text.
        DTypeError: a dtype that does not exist here (complex, quantised).
    """
    source = Source(t, "torch checkpoint")
    head = source.read(0, min(source.size, 512), "the first bytes")
    if head[:4] in (b"PK\3\4", b"PK\5\6"):
        return _load_zip(source)
    if head[:1] == b"\x80":
        return _load_pickles(source)
    if len(head) == 512:
        return _load_tar(source)
    raise source.error(f"{source.size} bytes that begin with {head[:8]!r}: neither a zip archive, nor a pickle, nor a "
                       "tar archive")
