"""Parameters by name, and safetensors files.

A state dict maps dotted attribute paths to tensors. Files are read lazily through the DISK device and written
atomically. A file that is truncated, or whose header promises what the file does not hold, is a ValueError that says
which entry.
"""
from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, cast

from tinyhost.dtype import DType, dtypes
from tinyhost.env import DEBUG
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import prod, tqdm
from tinyhost.io.archive import tar_extract, zip_extract
from tinyhost.io.torch_pickle import torch_load
from tinyhost.tensor import Tensor

__all__ = ["get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_load_metadata", "safe_save",
           "tar_extract", "torch_load", "zip_extract"]

SAFE_DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2}
_SAFE_NAMES = {d: n for n, d in SAFE_DTYPES.items()}
MAX_HEADER = 100_000_000  # bytes; the format's own limit (safetensors README, "Benefits")


# *** names ***
def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """Tensors inside ``obj`` (attributes, lists, tuples and dicts, nested) by dotted path.

    Example:
        >>> from tinyhost import Tensor
        >>> class Net: pass
        >>> net = Net(); net.w = Tensor.ones(2); net.layers = [Tensor.ones(1)]
        >>> sorted(get_state_dict(net))
        ['layers.0', 'w']
    """
    out: dict[str, Tensor] = {}
    stack: list[tuple[str, Any]] = [(prefix.strip("."), obj)]
    seen: set[int] = set()
    while stack:
        path, x = stack.pop()
        if isinstance(x, tensor_type):
            out[path] = cast(Tensor, x)
            continue
        items = _items(x)
        if items and id(x) in seen:
            continue
        if items:
            seen.add(id(x))
        stack.extend((f"{path}.{k}" if path else str(k), v) for k, v in reversed(items))
    return out


def _items(x: Any) -> list[tuple[Any, Any]]:
    """What a container or an object holds, by name."""
    if hasattr(x, "_asdict"):
        return list(x._asdict().items())
    if isinstance(x, dict):
        return list(x.items())
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, type) or not hasattr(x, "__dict__") or hasattr(x, "__code__") or "__wrapped__" in vars(x):
        return []  # functions, also decorated ones, hold no parameters
    return list(vars(x).items())


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of ``get_state_dict``."""
    return list(get_state_dict(obj).values())


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
    """Give the tensors of ``model`` the values of ``state_dict``; returns those that were given.

    Values are moved to the device and cast to the dtype of the model's tensors. Nothing is changed if a name or a shape
    is wrong.

    Raises:
        KeyError: ``strict`` and a name is missing from ``state_dict``.
        ShapeError: a shape differs.
    """
    own = get_state_dict(model)
    if DEBUG.value >= 1 and len(state_dict) > len(own):
        print(f"warning: unused weights in state_dict {sorted(state_dict.keys() - own.keys())}")
    missing = sorted(own.keys() - state_dict.keys())
    if strict and missing:
        raise KeyError(f"state_dict has no {missing}; it has {sorted(state_dict)[:20]}: load with strict=False to keep "
                       "the model's own values for those")
    given = {name: old for name, old in own.items() if name in state_dict}
    for name, old in given.items():
        if (new := state_dict[name]).shape != old.shape:
            raise ShapeError(f"Shape mismatch in layer `{name}`: Expected shape {old.shape}, but found {new.shape} in "
                             "state dict.")
    for name in tqdm(list(given), desc="loading weights", disable=not verbose or DEBUG.value < 1):
        old = given[name]
        old.replace(state_dict[name].to(old.device).cast(old.dtype))
        if realize:
            old.realize()
        if consume:
            del state_dict[name]
    return list(given.values())


# *** safetensors ***
def _as_disk(fn: Tensor | str | os.PathLike[str]) -> Tensor:
    return fn if isinstance(fn, Tensor) else Tensor(Path(fn))


def safe_load_metadata(t: Tensor | str | os.PathLike[str]) -> tuple[Tensor, int, dict[str, Any]]:
    """(file bytes, offset of the data, header) of a safetensors file.

    Raises:
        ValueError: the file is too short or its header is malformed.
    """
    t = _as_disk(t)
    size = int(t.nbytes())
    if size < 8:
        raise ValueError(f"not a safetensors file: {size} bytes, the header length alone takes 8")
    length = int.from_bytes(bytes(t[0:8].data()), "little")
    if length > MAX_HEADER or 8 + length > size:
        raise ValueError(f"safetensors header of {length} bytes does not fit a file of {size} bytes: truncated or not "
                         "this format")
    header = _parsed(bytes(t[8:8 + length].data()) if length else b"")
    return t, 8 + length, header


def _parsed(text: bytes) -> dict[str, Any]:
    # an entry takes some 50 bytes and holds three lists or objects: more nesting is refused before it takes memory
    if text.count(b"[") + text.count(b"{") > len(text) // 12 + 16 or text.count(b",") > len(text) // 4 + 16:
        raise ValueError(f"safetensors header of {len(text)} bytes holds more lists than entries could: not this "
                         "format")
    try:
        header = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"safetensors header is malformed: {e}") from e
    if not isinstance(header, dict):
        raise ValueError(f"safetensors header is malformed: a {type(header).__name__}, not an object")
    if not isinstance(header.get("__metadata__", {}), dict):
        raise ValueError("safetensors header is malformed: __metadata__ is no object")
    return header


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"the name {next(k for k in names if names.count(k) > 1)!r} stands twice")
    return out


def _checked(name: str, entry: Any, room: int) -> tuple[DType, tuple[int, ...], int, int]:
    """(dtype, shape, start, stop) of one header entry, against ``room`` bytes of data."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"safetensors entry {name!r} needs dtype, shape and data_offsets, got {entry!r:.100}")
    dtype, shape, offsets = SAFE_DTYPES.get(str(entry["dtype"])), entry["shape"], entry["data_offsets"]
    if dtype is None:
        raise ValueError(f"safetensors entry {name!r} has unknown dtype {entry['dtype']!r:.100}: known are "
                         f"{sorted(SAFE_DTYPES)}")
    if not isinstance(shape, list) or not all(type(d) is int and 0 <= d < 2**63 for d in shape):
        raise ValueError(f"safetensors entry {name!r} has shape {shape!r:.100}: expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(o) is int for o in offsets):
        raise ValueError(f"safetensors entry {name!r} has data_offsets {offsets!r:.100}: expected [start, stop]")
    start, stop = offsets
    want = prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= room or stop - start != want:
        raise ValueError(f"safetensors entry {name!r}: bytes {start} to {stop} do not hold {shape!r:.100} of {dtype} "
                         f"({want} bytes) in {room} bytes of data: the file is truncated or damaged")
    return dtype, tuple(shape), start, stop


def safe_load(fn: Tensor | str | os.PathLike[str]) -> dict[str, Tensor]:
    """Tensors of a safetensors file, on the DISK device until moved.

    Raises:
        ValueError: the file is truncated, its header is malformed, or entries overlap or leave gaps.
    """
    t, start, header = safe_load_metadata(fn)
    room = int(t.nbytes()) - start
    checked = {k: _checked(k, v, room) for k, v in header.items() if k != "__metadata__"}
    end = 0
    for name, (_, _, lo, hi) in sorted(checked.items(), key=lambda kv: kv[1][2:]):
        if lo != end:
            what = "overlaps the one before it" if lo < end else "leaves a gap after the one before it"
            raise ValueError(f"safetensors entry {name!r} {what}: it starts at byte {lo}, not {end}")
        end = hi
    if end != room:
        raise ValueError(f"safetensors entries end at byte {end} of {room}: the header does not belong to the data")
    return {k: _entry(t, start, *v) for k, v in checked.items()}


def _entry(t: Tensor, data: int, dtype: DType, shape: tuple[int, ...], lo: int, hi: int) -> Tensor:
    if lo == hi:
        return Tensor.empty(*shape, dtype=dtype, device=t.device)
    return t[data + lo:data + hi].bitcast(dtype).reshape(shape)


def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Write ``tensors`` as a safetensors file, whole or not at all.

    Raises:
        DTypeError: a dtype has no safetensors name.
        ValueError: a name that the format reserves.
    """
    # wide elements first, so that every tensor is aligned
    order = sorted(tensors.items(), key=lambda kv: -kv[1].dtype.itemsize)
    text = _header(order, metadata)
    path = Path(os.path.realpath(fn))
    temp = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temp, "xb") as f:
            f.write(len(text).to_bytes(8, "little") + text)
            for _, t in order:
                f.write(t.data() if t.numel() else b"")
            f.flush()
            os.fsync(f.fileno())
        if path.exists():
            shutil.copymode(path, temp)
        os.replace(temp, path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def _header(tensors: list[tuple[str, Tensor]], metadata: dict[str, Any] | None) -> bytes:
    header: dict[str, Any] = {"__metadata__": {k: str(v) for k, v in metadata.items()}} if metadata else {}
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
