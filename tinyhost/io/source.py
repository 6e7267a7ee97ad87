"""Bytes of a file or a tensor, read in bounds, and files that are written whole or not at all.

Takes a path or a one-dimensional uint8 tensor; gives bytes of checked ranges, lazy tensors over ranges, and a cursor
for headers. Invariant: no length that a file states is believed before it was compared with the bytes that are there.
What the bytes mean is known to the readers of each format.
"""
from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import DTypeError
from tinyhost.helpers import prod
from tinyhost.tensor import Tensor

__all__ = ["Cursor", "FileLike", "Source", "TensorIO", "accept_filename", "addressable",
           "checked_tensor", "tensor_of", "view_of"]

T = TypeVar("T")
FileLike = Tensor | str | os.PathLike[str]
WINDOW = 1 << 16  # bytes that a cursor reads at once


class Source:
    """The bytes of a file, for one format.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        DTypeError: a tensor that is no row of uint8.
        TypeError: neither a path nor a tensor.
    """

    def __init__(self, fn: FileLike, kind: str) -> None:
        if isinstance(fn, Tensor):
            if fn.dtype is not dtypes.uint8 or len(fn.shape) != 1:
                raise DTypeError(f"{kind} needs the bytes of a file: a tensor of dtypes.uint8 with one axis, got "
                                 f"{fn.dtype} of shape {fn.shape}")
            self.bytes, self.name = fn, "the tensor"
        else:
            if not isinstance(fn, (str, os.PathLike)):
                raise TypeError(f"{kind} needs a path or a tensor of the file's bytes, got a {type(fn).__name__}: "
                                "Tensor(content) makes one of bytes")
            path = Path(fn)
            if path.is_dir():
                raise IsADirectoryError(f"{kind} needs a file, {path} is a folder")
            if not path.exists():
                raise FileNotFoundError(f"there is no file {path}")
            self.bytes, self.name = Tensor(path), str(path)
        self.kind = kind
        self.size = int(self.bytes.nbytes())

    def error(self, text: str) -> ValueError:
        """A ValueError that names the file and the format."""
        return ValueError(f"{self.name} as {self.kind}: {text}")

    def check(self, start: int, size: int, what: str) -> None:
        """Raises:
            ValueError: the range is not inside the file.
        """
        if start < 0 or size < 0 or start + size > self.size:
            raise self.error(f"{what} takes {size} bytes from byte {start}, the file has {self.size}: it is truncated "
                             "or damaged")

    def read(self, start: int, size: int, what: str) -> bytes:
        """The bytes of a range that is inside the file."""
        self.check(start, size, what)
        return bytes(self.bytes[start:start + size].data()) if size else b""

    def slice(self, start: int, size: int, what: str) -> Tensor:
        """The range as a tensor of uint8, not read."""
        self.check(start, size, what)
        return self.bytes[start:start + size] if size else Tensor.empty(0, dtype=dtypes.uint8, device=self.bytes.device)


class Cursor:
    """Reads forward from a position, through a window."""

    def __init__(self, source: Source, at: int = 0, end: int | None = None) -> None:
        self.source, self.at = source, at
        self.end = source.size if end is None else end
        self._window, self._start = b"", at

    @property
    def left(self) -> int:
        """Bytes before the end."""
        return self.end - self.at

    def take(self, size: int, what: str) -> bytes:
        """The next ``size`` bytes.

        Raises:
            ValueError: fewer are left.
        """
        if size < 0 or size > self.left:
            raise self.source.error(f"{what} takes {size} bytes from byte {self.at}, the data ends at byte {self.end}: "
                                    "it is truncated or damaged")
        lo = self.at - self._start
        if lo < 0 or lo + size > len(self._window):
            self._window = self.source.read(self.at, min(max(size, WINDOW), self.left), what)
            self._start, lo = self.at, 0
        self.at += size
        return self._window[lo:lo + size]

    def integer(self, size: int, what: str, signed: bool = False) -> int:
        """A little-endian integer of ``size`` bytes."""
        return int.from_bytes(self.take(size, what), "little", signed=signed)

    def line(self, what: str, limit: int = 1 << 16) -> bytes:
        """The bytes before the next line feed, which is passed.

        Raises:
            ValueError: there is none within ``limit`` bytes.
        """
        start, text = self.at, b""
        while (cut := text.find(b"\n")) < 0:
            if not self.left or len(text) > limit:
                raise self.source.error(f"{what} at byte {start} does not end: no line feed in {len(text)} bytes")
            text += self.take(min(256, self.left), what)
        self.at = start + cut + 1
        return text[:cut]


def accept_filename(func: Callable[[Tensor], T]) -> Callable[[FileLike], T]:
    """A function of the bytes of a file that takes its path too.

    Example:
        >>> import tempfile
        >>> size = accept_filename(lambda t: t.shape[0])
        >>> with tempfile.NamedTemporaryFile() as f:
        ...     f.write(b"abc"), f.flush(), size(f.name)
        (3, None, 3)
    """
    @wraps(func)
    def wrapper(t: FileLike) -> T:
        return func(Source(t, "file").bytes)
    return wrapper


class TensorIO(io.RawIOBase):
    """The bytes of a uint8 tensor with one axis as a file to read, for libraries that take file objects.

    Raises:
        DTypeError: a tensor that is no row of uint8.
    """

    def __init__(self, t: Tensor) -> None:
        self._source, self._at = Source(t, "file object"), 0

    def readable(self) -> bool:
        """True"""
        return True

    def seekable(self) -> bool:
        """True"""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` from the position on; the number of bytes that were left for it."""
        size = max(0, min(len(buffer), self._source.size - self._at))
        buffer[:size] = self._source.read(self._at, size, "a read") if size else b""
        self._at += size
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to ``offset`` from the start, the position or the end; the new position.

        Raises:
            ValueError: before the start.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to byte {base + offset}, before the start")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """The position."""
        return self._at


def checked_tensor(t: object, what: str) -> Tensor:
    """``t``, which is to be written.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"{what} is a {type(t).__name__}, not a tensor: Tensor(...) makes one")
    return t


def addressable(shape: tuple[int, ...] | list[int], dtype: DType) -> bool:
    """Whether strides of ``shape`` fit 63 bits, also where there are no elements."""
    spread: int = prod(max(d, 1) for d in shape)
    return spread * dtype.itemsize < 2**63


def view_of(raw: Tensor, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """Bytes as elements of ``dtype``, row-major; where they lie does not change."""
    if not prod(shape):
        return Tensor.empty(*shape, dtype=dtype, device=raw.device)
    return (raw if dtype is dtypes.uint8 else raw.bitcast(dtype)).reshape(shape)


def tensor_of(content: bytes, shape: tuple[int, ...] | None = None, dtype: DType = dtypes.uint8) -> Tensor:
    """A tensor of bytes that are in memory."""
    raw = Tensor(content) if content else Tensor.empty(0, dtype=dtypes.uint8)
    return view_of(raw, dtype, (len(content) // dtype.itemsize,) if shape is None else shape)
