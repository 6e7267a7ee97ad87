"""Bytes of files: ranges in bounds, file objects over tensors, files that are written whole or not at all."""
from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinyhost import Tensor
from tinyhost.errors import DTypeError
from tinyhost.files import atomic_file
from tinyhost.io import gguf_load, npy_load, npy_save, npz_load, npz_save, tar_extract, torch_load, zip_extract
from tinyhost.io.safetensors import safe_load, safe_save
from tinyhost.io.source import Cursor, Source, TensorIO, accept_filename


def test_ranges(tmp_path: Path):
    (tmp_path / "f").write_bytes(bytes(range(100)))
    for fn in (tmp_path / "f", str(tmp_path / "f"), Tensor(bytes(range(100)))):
        source = Source(fn, "thing")
        assert source.size == 100 and source.read(98, 2, "x") == b"bc" and source.read(100, 0, "x") == b""
        assert source.slice(5, 3, "x").tolist() == [5, 6, 7] and source.slice(100, 0, "x").shape == (0,)
        for start, size in ((99, 2), (-1, 1), (0, 2**70), (2**70, 0), (0, -1)):
            with pytest.raises(ValueError, match=f"as thing: x takes {size} bytes from byte {start}, the file has 100"):
                source.read(start, size, "x")


def test_a_cursor_reads_through_its_window():
    cursor = Cursor(Source(Tensor(bytes(200_000)), "thing"), 10, 150_000)
    assert cursor.take(100_000, "x") == bytes(100_000) and cursor.at == 100_010 and cursor.left == 49_990
    with pytest.raises(ValueError, match="x takes 49991 bytes from byte 100010, the data ends at byte 150000"):
        cursor.take(49_991, "x")
    assert cursor.integer(4, "x") == 0
    with pytest.raises(ValueError, match="no line feed in"):
        cursor.line("x")


def test_file_objects(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "f", "w") as z:
        z.writestr("a", "x" * 100)
        z.writestr("b", json.dumps({"k": [1, 2]}))
    raw = Tensor(tmp_path / "f")
    with zipfile.ZipFile(io.BufferedReader(TensorIO(raw))) as z:
        assert z.read("a") == b"x" * 100 and json.load(z.open("b")) == {"k": [1, 2]}
    f = TensorIO(Tensor(b"hello"))
    assert f.readable() and f.seekable() and not f.writable()
    assert f.read(2) == b"he" and f.tell() == 2 and f.read() == b"llo" and f.read() == b""
    assert f.seek(-2, io.SEEK_END) == 3 and f.read(9) == b"lo" and f.seek(9) == 9 and f.read(1) == b""
    assert f.seek(-8, io.SEEK_CUR) == 1
    with pytest.raises(ValueError, match="seek to byte -1, before the start"):
        f.seek(-1)
    with pytest.raises(DTypeError, match="file object needs the bytes of a file: a tensor of dtypes.uint8 with"):
        TensorIO(Tensor([1.0]))


def test_functions_of_bytes_take_paths(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"abc")

    @accept_filename
    def first(t: Tensor) -> int:
        """The first byte."""
        return int(t[0].item())
    assert first(tmp_path / "f") == first(str(tmp_path / "f")) == first(Tensor(b"abc")) == 97
    assert first.__doc__ == "The first byte."
    with pytest.raises(FileNotFoundError, match="there is no file .*none"):
        first(tmp_path / "none")


def test_an_atomic_file_keeps_the_old_one_on_errors(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "f") as f:
        f.write(b"new")
        raise KeyboardInterrupt
    assert (tmp_path / "f").read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]
    with atomic_file(tmp_path / "f") as f:
        f.write(b"new")
        assert (tmp_path / "f").read_bytes() == b"old"
    assert (tmp_path / "f").read_bytes() == b"new" and os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("load", [gguf_load, npy_load, npz_load, safe_load, tar_extract, torch_load, zip_extract])
def test_what_is_no_file(tmp_path: Path, load: Callable[[Any], Any]):
    for bad in (b"content", 3, None, [1, 2]):
        with pytest.raises(TypeError, match=f"needs a path or a tensor of the file's bytes, got a {type(bad).__name__}"
                                            r": Tensor\(content\) makes one of bytes"):
            load(bad)
    with pytest.raises(DTypeError, match="needs the bytes of a file: a tensor of dtypes.uint8 with one axis, got"):
        load(Tensor([1.0]))
    with pytest.raises(FileNotFoundError, match="there is no file .*none"):
        load(tmp_path / "none")


def test_what_is_no_tensor(tmp_path: Path):
    for save in (lambda: safe_save({"w": [1]}, tmp_path / "f"), lambda: npz_save({"w": [1]}, tmp_path / "f")):
        with pytest.raises(TypeError, match=r"'w' is a list, not a tensor: Tensor\(...\) makes one"):
            save()
    with pytest.raises(TypeError, match="the tensor is a int, not a tensor"):
        npy_save(3, tmp_path / "f")
    assert not os.listdir(tmp_path)
