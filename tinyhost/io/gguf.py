"""GGUF models: metadata and tensors of one file, or of the parts of one model.

Takes a file; gives plain metadata and lazy tensors. Plain types are views of the file; quantised ones are expressions
over their raw bytes on the default device. Every count and offset is checked against the file before anything is made
of it. Big-endian files and version 1 are errors. (Format: docs/gguf.md of ggml, versions 2 and 3.)
"""
from __future__ import annotations

import os
import re
import struct
from collections.abc import Set
from pathlib import Path
from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.helpers import prod
from tinyhost.io.ggml import GGML_TYPES, GgmlType, dequantize
from tinyhost.io.source import Cursor, FileLike, Source, addressable, view_of
from tinyhost.tensor import Tensor

__all__ = ["gguf_load"]

MAX_ITEMS = 1 << 22    # of all arrays of metadata; the largest vocabularies have some 2**19
MAX_TENSORS = 1 << 13  # of one file; the largest models have some 2**11
MAX_HEADER = 1 << 27   # bytes of metadata and tensor descriptions; those of the largest vocabularies take some 2**24
MAX_NAME = (1 << 16) - 1  # bytes; the format's own limit for keys
MAX_AXES = 8           # GGML itself has four
MAX_DEPTH = 4          # of arrays in arrays
MAX_ALIGNMENT = 1 << 20

_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PART = re.compile(r"(?P<stem>.*)-(?P<no>\d{5})-of-(?P<count>\d{5})\.gguf")


class _Header:
    """Reads metadata and tensor descriptions."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cursor = Cursor(source, 0, min(source.size, MAX_HEADER))
        self.items = MAX_ITEMS

    def count(self, what: str, size: int, limit: int) -> int:
        """A number of things that take ``size`` bytes or more each."""
        n = self.cursor.integer(8, f"the number of {what}")
        if n > limit or n * size > self.cursor.left:
            raise self.source.error(f"{n} {what} of {size} bytes or more do not fit the {self.cursor.left} bytes "
                                    f"behind byte {self.cursor.at}, or are more than {limit}: truncated or damaged")
        return n

    def text(self, what: str, errors: str = "strict", limit: int = MAX_NAME) -> str:
        """A string with its length before it."""
        at, size = self.cursor.at, self.cursor.integer(8, f"the length of {what}")
        if size > min(limit, self.cursor.left):
            raise self.source.error(f"{what} at byte {at} takes {size} bytes: {self.cursor.left} are left and at most "
                                    f"{limit} "
                                    "are read, it is truncated or damaged")
        try:
            return self.cursor.take(size, what).decode("utf-8", errors)
        except UnicodeDecodeError as e:
            raise self.source.error(f"{what} at byte {at} is no UTF-8: {e}") from e

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        """A value of metadata."""
        if kind in _NUMBERS:
            return self.numbers(kind, 1, what)[0]
        if kind == _STRING:
            return self.text(what, "surrogateescape", MAX_HEADER)  # tokens may be any bytes
        if kind != _ARRAY:
            raise self.source.error(f"{what} before byte {self.cursor.at} has type {kind}: 0 to 12 are known, damaged")
        if depth >= MAX_DEPTH:
            raise self.source.error(f"{what} nests arrays more than {MAX_DEPTH} deep: damaged")
        inner = self.cursor.integer(4, f"the item type of {what}")
        size = struct.calcsize(_NUMBERS[inner]) if inner in _NUMBERS else 8 if inner == _STRING else 12
        n = self.count(f"items of {what}", size, self.items)
        self.items -= n
        if inner in _NUMBERS:
            return self.numbers(inner, n, what)
        return [self.value(inner, what, depth + 1) for _ in range(n)]

    def numbers(self, kind: int, n: int, what: str) -> list[Any]:
        """``n`` numbers or bools."""
        format = _NUMBERS[kind]
        raw = self.cursor.take(n * struct.calcsize(format), what)
        if kind == _BOOL and raw.strip(b"\0\1"):
            raise self.source.error(f"{what} before byte {self.cursor.at} is a bool other than 0 and 1: damaged")
        return list(struct.unpack(f"<{n}{format}", raw))


def _metadata(header: _Header, count: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for _ in range(count):
        key = header.text("a metadata key")
        if key in out:
            raise header.source.error(f"the metadata key {key[:80]!r} stands twice")
        out[key] = header.value(header.cursor.integer(4, f"the type of {key[:80]!r}"), f"metadata {key[:80]!r}")
    return out


def _described(header: _Header) -> tuple[str, tuple[int, ...], GgmlType, int, int]:
    """(name, shape, type, offset, bytes) of the next tensor."""
    source, cursor = header.source, header.cursor
    name = header.text("a tensor name")
    what = f"tensor {name[:80]!r}"
    axes = cursor.integer(4, f"the number of axes of {what}")
    if axes > MAX_AXES:
        raise source.error(f"{what} has {axes} axes, at most {MAX_AXES} can be: damaged")
    dims = [cursor.integer(8, f"the shape of {what}") for _ in range(axes)]
    number, offset = cursor.integer(4, f"the type of {what}"), cursor.integer(8, f"the offset of {what}")
    kind = GGML_TYPES.get(number)
    if kind is None or (kind.dtype is None and kind.read is None):
        known = sorted(t.name for t in GGML_TYPES.values() if t.bytes)
        label = number if kind is None else f"{number} ({kind.name})"
        raise source.error(f"{what} has ggml type {label}, which is not supported; supported: {', '.join(known)}")
    if any(d >= 2**63 for d in dims) or (0 in dims and not addressable(dims, kind.dtype or dtypes.float32)):
        raise source.error(f"{what} has shape {dims[::-1]}: damaged")
    if (dims[0] if dims else 1) % kind.elements:
        raise source.error(f"{what} of type {kind.name} has rows of {dims[0] if dims else 1} elements: they are made "
                           f"of blocks of {kind.elements}")
    # the first axis of GGML is the one whose elements are neighbours
    return name, tuple(dims[::-1]), kind, offset, prod(dims) // kind.elements * kind.bytes


def _tensors(header: _Header, count: int, alignment: int) -> dict[str, Tensor]:
    source, described = header.source, [_described(header) for _ in range(count)]
    data = (header.cursor.at + alignment - 1) // alignment * alignment
    out: dict[str, Tensor] = {}
    for name, shape, kind, offset, size in described:
        if name in out:
            raise source.error(f"the tensor name {name[:80]!r} stands twice")
        if offset % alignment:
            raise source.error(f"tensor {name[:80]!r} begins at offset {offset}, no multiple of the alignment "
                               f"{alignment}: damaged")
        raw = source.slice(data + offset, size,
                           f"tensor {name[:80]!r} of type {kind.name} and shape {shape}") if size else None
        if raw is None:
            out[name] = Tensor.empty(*shape, dtype=kind.dtype or dtypes.float32)
        else:
            out[name] = view_of(raw, kind.dtype, shape) if kind.dtype else dequantize(raw.to(None), kind, shape)
    end = 0
    for name, _, _, offset, size in sorted(described, key=lambda d: (d[3], d[4])):
        if offset < end and size:
            raise source.error(f"tensor {name[:80]!r} at offset {offset} shares bytes with the one before it, which "
                               f"ends at {end}: damaged")
        end = max(end, offset + size)
    return out


def _load(fn: FileLike) -> tuple[dict[str, Any], dict[str, Tensor]]:
    source = Source(fn, "GGUF model")
    header = _Header(source)
    if (magic := header.cursor.take(4, "the magic number")) != b"GGUF":
        raise source.error(f"it begins with {magic!r}, not b'GGUF': not a GGUF model")
    version = header.cursor.integer(4, "the version")
    if version not in (2, 3):
        why = "it is big-endian" if version in (2 << 24, 3 << 24) else f"version {version} of the format"
        raise source.error(f"{why}: little-endian files of versions 2 and 3 can be read")
    tensors = header.count("tensors", 24, MAX_TENSORS)
    metadata = _metadata(header, header.count("metadata entries", 13, MAX_ITEMS))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT:
        raise source.error(f"general.alignment is {str(alignment)[:40]}: a number of bytes up to {MAX_ALIGNMENT} is "
                           "expected")
    return metadata, _tensors(header, tensors, alignment)


def gguf_load(fn: FileLike) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(metadata, tensors by name) of a GGUF model; of a model in parts, all parts when ``fn`` is the path of the first.

    F16 and the other plain types keep their dtype and lie on the file's device; quantised tensors become float32 on the
    default device, computed when they are used.

    Raises:
        ValueError: the file is truncated or damaged, or a tensor has a type that is not read here.
        FileNotFoundError: the file or a part is missing.
    """
    metadata, tensors = _load(fn)
    count = metadata.get("split.count", 1)
    if isinstance(fn, Tensor) or count == 1 or metadata.get("split.no") != 0:
        return metadata, tensors
    path = Path(os.fspath(fn))
    name = _PART.fullmatch(path.name)
    if name is None or int(name["count"]) != count or int(name["no"]) != 1:
        raise ValueError(f"{path} is the first of {str(count)[:20]} parts but is not named so: name the parts "
                         f"<model>-00001-of-{str(count)[:20]:0>5}.gguf")
    for i in range(2, int(name["count"]) + 1):
        part = path.with_name(f"{name['stem']}-{i:05}-of-{name['count']}.gguf")
        tensors.update(_part(part, i - 1, int(name["count"]), tensors.keys()))
    total = metadata.get("split.tensors.count", len(tensors))
    if total != len(tensors):
        raise ValueError(f"{path} as GGUF model: its {count} parts hold {len(tensors)} tensors, {total} are stated: "
                         "parts of different models")
    return metadata, tensors


def _part(path: Path, number: int, count: int, earlier: Set[str]) -> dict[str, Tensor]:
    """The tensors of one more part, whose names must be new."""
    metadata, tensors = _load(path)
    if metadata.get("split.no") != number or metadata.get("split.count") != count:
        raise ValueError(f"{path} as GGUF model: it says it is part {metadata.get('split.no')} (from 0) of "
                         f"{metadata.get('split.count')}, not part {number} of {count}: parts of different models")
    if both := tensors.keys() & earlier:
        raise ValueError(f"{path} as GGUF model: {sorted(both)[:3]} are in an earlier part already")
    return tensors
