"""Arrays of numpy: .npy files and .npz archives.

Takes and gives tensors; loaded ones are lazy views of the file where its bytes are little-endian and not compressed.
The header is read by a parser of its own that knows one dict of three entries; object arrays (which are pickles) and
structured dtypes are errors. Files are written whole or not at all, in C order. (Format: numpy.lib.format, 1.0 to 3.0.)
"""
from __future__ import annotations

import os
import re
import zipfile
from typing import IO

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import DTypeError
from tinyhost.files import atomic_file
from tinyhost.helpers import prod
from tinyhost.io.archive import member_bytes, zip_members
from tinyhost.io.source import Cursor, FileLike, Source, addressable, checked_tensor, tensor_of, view_of
from tinyhost.tensor import Tensor

__all__ = ["npy_load", "npy_save", "npz_load", "npz_save"]

MAGIC = b"\x93NUMPY"
MAX_HEADER = 1 << 16  # bytes; numpy's own limit is 10,000
MAX_AXES = 64

NPY_DTYPES: dict[str, DType] = {
    "b1": dtypes.bool, "i1": dtypes.int8, "u1": dtypes.uint8, "i2": dtypes.int16, "u2": dtypes.uint16,
    "i4": dtypes.int32,
    "u4": dtypes.uint32, "i8": dtypes.int64, "u8": dtypes.uint64, "f2": dtypes.float16, "f4": dtypes.float32,
    "f8": dtypes.float64}
_CODES = {d: c for c, d in NPY_DTYPES.items()}
_ENTRY = re.compile(r"""\s*(?P<q>['"])(?P<key>descr|fortran_order|shape)(?P=q)\s*:\s*(?P<value>
    (?P<r>['"])[^'"]*(?P=r) | True | False | \(\s*(?:\d{1,19}\s*,\s*)*(?:\d{1,19}\s*)?\) |
    \[[^{}]*\])\s*(?P<end>,|\Z)""", re.X)


def _header(source: Source, cursor: Cursor) -> tuple[str, bool, tuple[int, ...]]:
    """(dtype code, Fortran order, shape), the cursor left at the data."""
    if (magic := cursor.take(6, "the magic number")) != MAGIC:
        raise source.error(f"it begins with {magic!r}, not {MAGIC!r}: not a .npy file")
    major, minor = cursor.take(2, "the version")
    if major not in (1, 2, 3):
        raise source.error(f"version {major}.{minor} of the format: 1.0 to 3.0 can be read")
    length = cursor.integer(2 if major == 1 else 4, "the length of the header")
    if length > MAX_HEADER:
        raise source.error(f"a header of {length} bytes, at most {MAX_HEADER} are read: a structured dtype, or damaged")
    text = cursor.take(length, "the header").decode("utf-8" if major == 3 else "latin-1", "replace").strip()
    if not text.startswith("{") or not text.endswith("}"):
        raise source.error(f"the header {text[:80]!r} is no dict: damaged")
    found, rest = dict[str, str](), text[1:-1].strip()
    while rest:
        entry = _ENTRY.match(rest)
        if entry is None or entry["key"] in found:
            raise source.error(f"the header is malformed near {rest[:80]!r}: expected descr, fortran_order and shape, "
                               "once each")
        found[entry["key"]], rest = entry["value"], rest[entry.end():].strip()
    if found.keys() != {"descr", "fortran_order", "shape"} or found["fortran_order"] not in ("True", "False") or \
            not found["shape"].startswith("("):
        raise source.error(f"the header {text[:80]!r} needs descr, fortran_order and shape: damaged")
    shape = tuple(int(d) for d in re.findall(r"\d+", found["shape"]))
    return found["descr"], found["fortran_order"] == "True", shape


def _dtype(source: Source, descr: str) -> tuple[DType, bool]:
    """(dtype, whether its bytes are reversed) of a dtype code such as '<f4'."""
    code = descr.strip("'\"")
    if code.lstrip("|<>=").startswith("O"):
        raise source.error("an array of Python objects, which is a pickle and could run code: it is not read. Save "
                           "numbers")
    dtype = NPY_DTYPES.get(code[1:]) if code[:1] in "<>|=" else NPY_DTYPES.get(code)
    if dtype is None or (code[:1] == "|" and dtype.itemsize > 1):
        raise source.error(f"dtype {descr[:80]} does not exist here: known are {sorted(NPY_DTYPES)} with < or > before "
                           "them")
    return dtype, code[:1] == ">" and dtype.itemsize > 1


def _array(source: Source) -> Tensor:
    cursor = Cursor(source)
    descr, fortran, shape = _header(source, cursor)
    dtype, swapped = _dtype(source, descr)
    if len(shape) > MAX_AXES or any(d >= 2**63 for d in shape) or (0 in shape and not addressable(shape, dtype)):
        raise source.error(f"shape {str(shape)[:80]}: at most {MAX_AXES} axes of less than 2**63 elements can be read")
    size = prod(shape) * dtype.itemsize
    if size != cursor.left:
        raise source.error(f"shape {str(shape)[:80]} of {dtype} takes {size} bytes, {cursor.left} follow the header: "
                           "truncated or damaged")
    raw = source.slice(cursor.at, size, "the data")
    if swapped and size:
        raw = raw.to(None).reshape(-1, dtype.itemsize).flip(1).reshape(-1)
    if not fortran:
        return view_of(raw, dtype, shape)
    return view_of(raw, dtype, shape[::-1]).permute(tuple(range(len(shape)))[::-1])


def npy_load(fn: FileLike) -> Tensor:
    """The array of a .npy file, on the file's device until it is moved.

    Big-endian arrays are turned around on the default device.

    Raises:
        ValueError: the file is truncated or damaged, or its dtype does not exist here (objects, structures, text,
        complex).
    """
    return _array(Source(fn, ".npy file"))


def npz_load(fn: FileLike) -> dict[str, Tensor]:
    """The arrays of a .npz archive by name; compressed ones are in memory, others are read when they are used.

    Raises:
        ValueError: the archive or an array is truncated or damaged, or a dtype does not exist here.
    """
    source, out = Source(fn, ".npz archive"), dict[str, Tensor]()
    for name, m in zip_members(source).items():
        raw = source.slice(m.start, m.stored, name) if m.method == 0 else tensor_of(member_bytes(source, m))
        part = Source(raw, ".npy file")
        part.name = f"{name[:80]!r} of {source.name}"
        if (short := name.removesuffix(".npy")) in out:
            raise source.error(f"the array {short[:80]!r} stands twice, with and without .npy")
        out[short] = _array(part)
    return out


def _write(t: Tensor, f: IO[bytes], what: str) -> None:
    code = _CODES.get(checked_tensor(t, what).dtype)
    if code is None:
        raise DTypeError(f"numpy has no dtype for {t.dtype} of {what}: cast it first")
    order = "|" if t.dtype.itemsize == 1 else "<"
    text = f"{{'descr': '{order}{code}', 'fortran_order': False, 'shape': {tuple(map(int, t.shape))!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    f.write(MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text)
    if t.numel():
        f.write(t.numpy().tobytes())


def npy_save(t: Tensor, fn: str | os.PathLike[str]) -> None:
    """Write ``t`` as a .npy file, whole or not at all.

    Raises:
        DTypeError: numpy has no such dtype (bfloat16, fp8).
    """
    with atomic_file(fn) as f:
        _write(t, f, "the tensor")


def npz_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], compress: bool = False) -> None:
    """Write ``tensors`` as a .npz archive, whole or not at all.

    Raises:
        DTypeError: numpy has no such dtype (bfloat16, fp8).
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with atomic_file(fn) as out, zipfile.ZipFile(out, "w", method) as archive:
        for name, t in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as f:
                _write(t, f, repr(name))
