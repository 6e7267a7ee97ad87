"""Parameters by name, and safetensors files.

A state dict maps dotted attribute paths to tensors. Files are read lazily through the DISK device and written atomically. A
file that is truncated, or whose header promises what the file does not hold, is a ValueError that says which entry.
"""
from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections import OrderedDict
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.env import DEBUG
from tinyhost.helpers import prod, tqdm
from tinyhost.tensor import Tensor

__all__ = ["get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_load_metadata", "safe_save"]

SAFE_DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2}
_SAFE_NAMES = {d: n for n, d in SAFE_DTYPES.items()}
MAX_HEADER = 100 << 20  # bytes; the format's own limit (safetensors README, "Format")


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
            out[path] = x
            continue
        items = _items(x)
        if items and id(x) in seen:
            continue
        if items:
            seen.add(id(x))
        stack.extend((f"{path}.{k}" if path else str(k), v) for k, v in reversed(items))
    return out


def _items(x: Any) -> list[tuple[Any, Any]]:
    if hasattr(x, "_asdict"):
        return list(x._asdict().items())
    if isinstance(x, (dict, OrderedDict)):
        return list(x.items())
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    return list(vars(x).items()) if hasattr(x, "__dict__") and not isinstance(x, type) and not callable_without_state(x) else []


def callable_without_state(x: Any) -> bool:
    """Functions have a ``__dict__`` but hold no parameters."""
    return hasattr(x, "__code__")


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of ``get_state_dict``."""
    return list(get_state_dict(obj).values())


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
    """Give the tensors of ``model`` the values of ``state_dict``; returns those that were given.

    Raises:
        KeyError: ``strict`` and a name is missing from ``state_dict``.
        ValueError: a shape differs.
    """
    own = get_state_dict(model)
    if DEBUG.value >= 1 and len(state_dict) > len(own):
        print(f"warning: unused weights in state_dict {sorted(state_dict.keys() - own.keys())}")
    missing = sorted(own.keys() - state_dict.keys())
    if strict and missing:
        raise KeyError(f"state_dict has no {missing}; it has {sorted(state_dict)[:20]}: load with strict=False to keep the "
                       "model's own values for those")
    loaded = []
    for name in tqdm(list(own), desc="loading weights", disable=not verbose or DEBUG.value < 1):
        if name not in state_dict:
            continue
        new, old = state_dict[name], own[name]
        if new.shape != old.shape:
            raise ValueError(f"Shape mismatch in layer `{name}`: Expected shape {old.shape}, but found {new.shape} in state dict.")
        old.replace(new.to(old.device).cast(old.dtype))
        if realize:
            old.realize()
        if consume:
            del state_dict[name]
        loaded.append(old)
    return loaded


# *** safetensors ***
def _as_disk(fn: Tensor | str | pathlib.Path) -> Tensor:
    return fn if isinstance(fn, Tensor) else Tensor(pathlib.Path(fn))


def safe_load_metadata(t: Tensor | str | pathlib.Path) -> tuple[Tensor, int, dict[str, Any]]:
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
        raise ValueError(f"safetensors header of {length} bytes does not fit a file of {size} bytes: truncated or not this format")
    try:
        header = json.loads(bytes(t[8:8 + length].data()))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as e:
        raise ValueError(f"safetensors header is no JSON: {e}") from e
    if not isinstance(header, dict):
        raise ValueError(f"safetensors header is a {type(header).__name__}, not an object")
    return t, 8 + length, header


def _checked(name: str, entry: Any, room: int) -> tuple[DType, tuple[int, ...], int, int]:
    """(dtype, shape, start, stop) of one header entry, against ``room`` bytes of data."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"safetensors entry {name!r} needs dtype, shape and data_offsets, got {str(entry)[:100]}")
    dtype, shape, offsets = SAFE_DTYPES.get(str(entry["dtype"])), entry["shape"], entry["data_offsets"]
    if dtype is None:
        raise ValueError(f"safetensors entry {name!r} has unknown dtype {entry['dtype']!r}: known are {sorted(SAFE_DTYPES)}")
    if not isinstance(shape, list) or not all(type(d) is int and d >= 0 for d in shape):
        raise ValueError(f"safetensors entry {name!r} has shape {shape!r}: expected a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(o) is int for o in offsets):
        raise ValueError(f"safetensors entry {name!r} has data_offsets {offsets!r}: expected [start, stop]")
    start, stop = offsets
    want = prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= room or stop - start != want:
        raise ValueError(f"safetensors entry {name!r}: bytes {start} to {stop} do not hold {shape} of {dtype} ({want} bytes) in "
                         f"{room} bytes of data: the file is truncated or damaged")
    return dtype, tuple(shape), start, stop


def safe_load(fn: Tensor | str | pathlib.Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file, on the DISK device until moved.

    Raises:
        ValueError: the file is truncated, its header is malformed, or entries overlap.
    """
    t, start, header = safe_load_metadata(fn)
    room = int(t.nbytes()) - start
    checked = {k: _checked(k, v, room) for k, v in header.items() if k != "__metadata__"}
    end = 0
    for name, (_, _, lo, hi) in sorted(checked.items(), key=lambda kv: kv[1][2:]):
        if lo < end:
            raise ValueError(f"safetensors entry {name!r} overlaps the one before it (byte {lo} < {end})")
        end = max(end, hi)
    return {k: _entry(t, start, *v) for k, v in checked.items()}


def _entry(t: Tensor, data: int, dtype: DType, shape: tuple[int, ...], lo: int, hi: int) -> Tensor:
    if lo == hi:
        return Tensor.empty(*shape, dtype=dtype, device=t.device)
    return t[data + lo:data + hi].bitcast(dtype).reshape(shape)


def safe_save(tensors: dict[str, Tensor], fn: str | pathlib.Path, metadata: dict[str, Any] | None = None) -> None:
    """Write ``tensors`` as a safetensors file, whole or not at all.

    Raises:
        TypeError: a dtype has no safetensors name.
    """
    header: dict[str, Any] = {"__metadata__": {k: str(v) for k, v in metadata.items()}} if metadata else {}
    offset = 0
    for name, t in tensors.items():
        if t.dtype not in _SAFE_NAMES:
            raise TypeError(f"safetensors has no name for dtype {t.dtype} of {name!r}: cast it first")
        size = t.numel() * t.dtype.itemsize
        header[name] = {"dtype": _SAFE_NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(fn)
    fd, temp = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}-")
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text)
            for t in tensors.values():
                f.write(t.contiguous().data().cast("B") if t.numel() else b"")
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise
