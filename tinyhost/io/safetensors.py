"""safetensors files, single or in shards: a JSON header and raw data behind it.

Takes a file, an index of shards or a folder; gives lazy views of the files. Writing is whole or not at all. Every
entry is compared with the bytes that are there: entries that overlap, leave gaps, stand twice or reach outside are
errors, and so are dtypes that do not exist here. (Format: README of the safetensors repository, "Format".)
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import DTypeError
from tinyhost.files import atomic_file
from tinyhost.helpers import prod
from tinyhost.io.source import FileLike, Source, addressable, checked_tensor, view_of
from tinyhost.tensor import Tensor

__all__ = ["SAFE_DTYPES", "safe_load", "safe_load_metadata", "safe_save"]

SAFE_DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2, "F8_E4M3FNUZ": dtypes.fp8e4m3fnuz, "F8_E5M2FNUZ": dtypes.fp8e5m2fnuz}
# dtypes of the format that do not exist here
_FOREIGN = ("F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "C64")
_SAFE_NAMES = {d: n for n, d in SAFE_DTYPES.items()}
MAX_HEADER = 100_000_000  # bytes; the format's own limit (README, "Benefits")
MAX_ENTRIES = 1 << 17     # of one file; models of the most experts have about as many tensors in all their shards
INDEX = "model.safetensors.index.json"


# *** header ***
def _header(source: Source) -> tuple[int, dict[str, Any]]:
    """(offset of the data, header)."""
    if source.size < 8:
        raise source.error(f"{source.size} bytes, the length of the header alone takes 8")
    length = int.from_bytes(source.read(0, 8, "the length of the header"), "little")
    if length > MAX_HEADER or 8 + length > source.size:
        raise source.error(f"a header of {length} bytes does not fit a file of {source.size} bytes: truncated or not "
                           "this format")
    header = _parsed(source, source.read(8, length, "the header"))
    if not isinstance(meta := header.get("__metadata__", {}), dict) or not all(isinstance(v, str)
                                                                               for v in meta.values()):
        raise source.error("the header is malformed: __metadata__ is no object of text")
    return 8 + length, header


def _parsed(source: Source, text: bytes) -> dict[str, Any]:
    """The object that ``text`` is, parsed only if it can be no more than entries and metadata: other objects would take
    many times the memory of their text."""
    entries = text.count(b'"data_offsets"') + text.count(b'.safetensors"')
    if entries > MAX_ENTRIES:
        raise source.error(f"a header of {entries} entries, at most {MAX_ENTRIES} are read")
    # an entry is three objects or lists and a comma behind each value; metadata are text, often JSON in quotes
    values = text.count(b"[") + text.count(b"{") + text.count(b",")
    if values > 16 * entries + (1 << 14) + min(text.count(b'\\"'), 1 << 20):
        raise source.error(f"a header of {len(text)} bytes holds some {values} values, more than its {entries} entries "
                           "could: not this format")
    try:
        header = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as e:
        raise source.error(f"the header is malformed: {e}") from e
    if not isinstance(header, dict):
        raise source.error(f"the header is malformed: a {type(header).__name__}, not an object")
    return header


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ValueError(f"the name {name[:80]!r} stands twice")
        out[name] = value
    return out


def _checked(source: Source, name: str, entry: Any, room: int) -> tuple[DType, tuple[int, ...], int, int]:
    """(dtype, shape, start, stop) of one entry, against ``room`` bytes of data."""
    what = f"entry {name[:200]!r}"
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise source.error(f"{what} needs dtype, shape and data_offsets, got {entry!r:.100}")
    dtype, shape, offsets = SAFE_DTYPES.get(str(entry["dtype"])), entry["shape"], entry["data_offsets"]
    if dtype is None:
        why = ": no such dtype exists here, convert it" if entry["dtype"] in _FOREIGN else ""
        raise source.error(f"{what} has dtype {entry['dtype']!r:.100}, which is not supported{why}; supported: "
                           f"{', '.join(sorted(SAFE_DTYPES))}")
    if not isinstance(shape, list) or not all(type(d) is int and 0 <= d < 2**63 for d in shape) or \
            (0 in shape and not addressable(shape, dtype)):
        raise source.error(f"{what} has shape {shape!r:.100}: expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(o) is int for o in offsets):
        raise source.error(f"{what} has data_offsets {offsets!r:.100}: expected [start, stop]")
    start, stop = offsets
    want = prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= room or stop - start != want:
        raise source.error(f"{what}: bytes {start} to {stop} do not hold {shape!r:.100} of {dtype} ({want} bytes) in "
                           f"{room} bytes of data: the file is truncated or damaged")
    return dtype, tuple(shape), start, stop


def safe_load_metadata(t: FileLike) -> tuple[Tensor, int, dict[str, Any]]:
    """(file bytes, offset of the data, header) of a safetensors file.

    Raises:
        ValueError: the file is too short or its header is malformed.
    """
    source = Source(t, "safetensors file")
    return source.bytes, *_header(source)


# *** load ***
def safe_load(fn: FileLike) -> dict[str, Tensor]:
    """Tensors of a safetensors file, on the file's device until they are moved.

    ``fn`` may also be the index of a model in shards (``model.safetensors.index.json``), or a folder that holds one or
    a ``model.safetensors``.

    Raises:
        ValueError: a file is truncated, its header is malformed, entries overlap or leave gaps, or index and shards do
        not fit.
        FileNotFoundError: the file or a shard is missing.
    """
    if isinstance(fn, (str, os.PathLike)):
        path = Path(fn)
        if path.is_dir():
            path = _in_folder(path)
        if path.name.endswith(".index.json"):
            return _load_shards(path)
        fn = path
    return _load(Source(fn, "safetensors file"))


def _load(source: Source) -> dict[str, Tensor]:
    data, header = _header(source)
    room = source.size - data
    checked = {k: _checked(source, k, v, room) for k, v in header.items() if k != "__metadata__"}
    end = 0
    for name, (_, _, lo, hi) in sorted(checked.items(), key=lambda kv: kv[1][2:]):
        if lo != end:
            what = "overlaps the one before it" if lo < end else "leaves a gap after the one before it"
            raise source.error(f"entry {name[:200]!r} {what}: it starts at byte {lo}, not {end}")
        end = hi
    if end != room:
        raise source.error(f"the entries end at byte {end} of {room}: the header does not belong to the data")
    return {k: view_of(source.slice(data + lo, hi - lo, k), dtype, shape) if lo < hi else
            Tensor.empty(*shape, dtype=dtype, device=source.bytes.device)
            for k, (dtype, shape, lo, hi) in checked.items()}


def _in_folder(folder: Path) -> Path:
    for name in (INDEX, "model.safetensors"):
        if (folder / name).is_file():
            return folder / name
    found = sorted(p.name for p in folder.iterdir() if p.name.endswith((".safetensors", ".safetensors.index.json")))
    raise FileNotFoundError(f"the folder {folder} has neither {INDEX} nor model.safetensors: name the file to load, it "
                            f"has {found[:20]}")


def _load_shards(path: Path) -> dict[str, Tensor]:
    """Tensors of all shards that the index at ``path`` names; those it does not name are left out."""
    source = Source(path, "safetensors index")
    if source.size > MAX_HEADER:
        raise source.error(f"{source.size} bytes, at most {MAX_HEADER} are read: not an index")
    index = _parsed(source, source.read(0, source.size, "the index"))
    where = index.get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(v, str) for v in where.values()):
        raise source.error("the index has no weight_map of names to files")
    shards: dict[str, dict[str, Tensor]] = {}
    for name in sorted(set(where.values())):
        if name != os.path.basename(name) or name in ("", ".", "..") or "\0" in name or len(name) > 255:
            raise source.error(f"the shard {name[:200]!r} is no name of a file beside the index")
        if not (path.parent / name).is_file():
            raise FileNotFoundError(f"{path} names the shard {name[:200]!r}, there is no file "
                                    f"{str(path.parent / name)[:300]}: get all shards of the model")
        shards[name] = _load(Source(path.parent / name, "safetensors file"))
    missing = [f"{k[:200]!r} in {v}" for k, v in where.items() if k not in shards[v]]
    if missing:
        raise source.error(f"{len(missing)} entries are not in their shards: {', '.join(missing[:5])}: index and "
                           "shards are of different models")
    return {k: shards[v][k] for k, v in where.items()}


# *** save ***
def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Write ``tensors`` as a safetensors file, whole or not at all; values of ``metadata`` become text.

    Raises:
        DTypeError: a dtype has no safetensors name.
        ValueError: a name that the format reserves.
        TypeError: a value is no tensor.
    """
    # wide elements first, so that every tensor is aligned
    order = sorted(tensors.items(), key=lambda kv: -checked_tensor(kv[1], repr(kv[0])).dtype.itemsize)
    text = _written(order, metadata)
    if order:
        Tensor.realize(*(t for _, t in order))  # together: each realization looks at all live tensors
    with atomic_file(fn) as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, t in order:
            f.write(t.data() if t.numel() else b"")


def _written(tensors: list[tuple[str, Tensor]], metadata: dict[str, Any] | None) -> bytes:
    """The header, padded so that the data begin at a multiple of 8."""
    header: dict[str, Any] = {"__metadata__": {str(k): str(v) for k, v in metadata.items()}} if metadata else {}
    offset = 0
    for name, t in tensors:
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"a safetensors entry is named by text other than '__metadata__', got {name!r}")
        if t.dtype not in _SAFE_NAMES:
            raise DTypeError(f"safetensors has no name for dtype {t.dtype} of {name!r}: cast it first")
        size = int(t.nbytes())
        header[name] = {"dtype": _SAFE_NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)
