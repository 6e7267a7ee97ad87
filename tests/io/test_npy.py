"""npy and npz: numpy as the reference both ways, orders, refusals, hostile files."""
from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.io.fuzzing import fuzz
from tinyhost import Tensor, dtypes
from tinyhost.errors import DTypeError
from tinyhost.io import npy_load, npy_save, npz_load, npz_save

CODES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def sample(code: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    raw = np.random.default_rng(len(shape)).integers(0, 200, shape)
    return (raw % 2 if code == "?" else raw).astype(code)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("layout", "CF")
def test_load(tmp_path: Path, code: str, order: str, layout: str):
    x = np.asarray(sample(code, (2, 3, 4)).astype(np.dtype(code).newbyteorder(order)), order=layout)
    np.save(tmp_path / "f.npy", x)
    t = npy_load(tmp_path / "f.npy")
    assert t.shape == x.shape and t.numpy().dtype == np.dtype(code) and (t.numpy() == x).all()
    assert t.device.startswith("DISK:") == (order == "<" or x.itemsize == 1)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3), (1, 2, 3, 4)])
def test_save(tmp_path: Path, code: str, shape: tuple[int, ...]):
    x = sample(code, shape)
    npy_save(Tensor(x), tmp_path / "f")
    y = np.load(tmp_path / "f")
    assert y.dtype == x.dtype and y.shape == x.shape and (y == x).all()
    assert (tmp_path / "f").read_bytes().index(b"\n") % 64 == 63  # data begin at a multiple of 64
    t = npy_load(tmp_path / "f")
    assert t.shape == shape and (t.numpy() == x).all()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path: Path, version: tuple[int, int]):
    with open(tmp_path / "f", "wb") as f:
        np.lib.format.write_array(f, sample("f4"), version=version)
    assert (npy_load(tmp_path / "f").numpy() == sample("f4")).all()


@pytest.mark.parametrize("compress", [False, True])
def test_npz(tmp_path: Path, compress: bool):
    arrays = {"a": sample("f4"), "b/c": sample("i8", (5,)), "d": sample("f2", ()), "f": np.asfortranarray(sample("f8"))}
    (np.savez_compressed if compress else np.savez)(tmp_path / "f.npz", **arrays)
    loaded = npz_load(tmp_path / "f.npz")
    assert {k: v.numpy().tolist() for k, v in loaded.items()} == {k: v.tolist() for k, v in arrays.items()}
    assert loaded["a"].device.startswith("DISK:") != compress
    npz_save({k: Tensor(v) for k, v in arrays.items()}, tmp_path / "g", compress)
    with np.load(tmp_path / "g") as ours:
        assert {k: (ours[k].dtype, ours[k].tolist()) for k in ours} == {k: (v.dtype, v.tolist()) for k,
            v in arrays.items()}


def test_saving_is_whole_or_not_at_all(tmp_path: Path):
    npy_save(Tensor([1.0]), tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(DTypeError, match="numpy has no dtype for dtypes.bfloat16 of the tensor: cast it first"):
        npy_save(Tensor([1.0]).cast(dtypes.bfloat16), tmp_path / "f")
    with pytest.raises(DTypeError, match="numpy has no dtype for .* of 'b': cast it first"):
        npz_save({"a": Tensor([1.0]), "b": Tensor([1.0]).cast(dtypes.fp8e5m2)}, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["f"]


def file_of(header: str, data: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + (len(text) if length is None else length).to_bytes(2
        if version == 1 else 4, "little") \
        + text + data


def header(descr: str = "'<f4'", fortran: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


def dumped(x: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, x, allow_pickle=True)
    return out.getvalue()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f as .npy file: the magic number takes 6 bytes from byte 0, the data ends at byte 0"),
    "text": (b"hello world", "it begins with b'hello ', not b'.x93NUMPY': not a .npy file"),
    "version": (file_of(header(), bytes(8), 9), "version 9.0 of the format: 1.0 to 3.0 can be read"),
    "header longer than the file": (file_of(header(), b"", length=9000), "the header takes 9000 bytes from byte 10, "
                                    "the data ends at"),
    "header of 4 GiB": (file_of(header(), b"", 2, 2**32 - 1), "a header of 4294967295 bytes, at most 65536 are read"),
    "no dict": (file_of("[1]"), "the header '.1.' is no dict"),
    "code": (file_of("{'descr': __import__('os').system('x')}"), "the header is malformed near \"'descr': __import__"),
    "nesting": (file_of("{'shape': " + "(" * 1000 + ")" * 1000 + "}"), "the header is malformed near"),
    "entry missing": (file_of("{'descr': '<f4', 'shape': (2,)}", bytes(8)), "needs descr, fortran_order and shape"),
    "entry twice": (file_of("{'shape': (2,), 'shape': (2,)}", bytes(8)), "expected descr, fortran_order and shape, "
                    "once each"),
    "unknown entry": (file_of("{'shape': (2,), 'x': (2,)}", bytes(8)), "the header is malformed near \"'x'"),
    "shape no tuple": (file_of(header(shape="True"), bytes(8)), "needs descr, fortran_order and shape"),
    "negative size": (file_of(header(shape="(-2,)"), bytes(8)), "the header is malformed near \"'shape': .-2,"),
    "size of many digits": (file_of(header(shape=f"({'9' * 5000},)"), bytes(8)), "the header is malformed near"),
    "size beyond 2**63": (file_of(header(shape=f"({2**63},0)")), "axes of less than 2..63 elements can be read"),
    "no elements, but strides": (file_of(header(shape=f"({2**40},0,{2**40})")), "axes of less than 2..63 elements"),
    "too many axes": (file_of(header(shape=f"({'1,' * 65})"), bytes(4)), "at most 64 axes"),
    "too little data": (file_of(header(), bytes(7)), r"shape \(2,\) of dtypes.float.* takes 8 bytes, 7 follow the "
                                                     r"header: truncated"),
    "too much data": (file_of(header(), bytes(9)), "takes 8 bytes, 9 follow the header"),
    "product that overflows": (file_of(header(shape=f"({2**32}, {2**32}, 4)"), bytes(8)),
                               "takes 295147905179352825856 bytes"),
    "objects": (dumped(np.array([{}])), "an array of Python objects, which is a pickle and could run code: it is not "
                                        "read"),
    "structure": (dumped(np.zeros(2, [("a", "f4")])), r"dtype \[.*'a', '<f4'.*\] does not exist here"),
    "text array": (dumped(np.array(["ab"])), "dtype '<U2' does not exist here: known are"),
    "complex": (dumped(np.zeros(2, "c8")), "dtype '<c8' does not exist here"),
    "dates": (dumped(np.zeros(2, "M8[s]")), "dtype '<M8.s.' does not exist here"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(tmp_path: Path, name: str):
    content, text = HOSTILE[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=text):
        npy_load(tmp_path / "f")


def test_hostile_archive(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "f", "w") as z:
        z.writestr("a.npy", "hello world")
    with pytest.raises(ValueError, match="'a.npy' of .*f as .npy file: it begins with b'hello '"):
        npz_load(tmp_path / "f")
    with zipfile.ZipFile(tmp_path / "f", "w") as z:
        z.writestr("a.npy", dumped(sample("f4")))
        z.writestr("a", dumped(sample("f4")))
    with pytest.raises(ValueError, match="the array 'a' stands twice, with and without .npy"):
        npz_load(tmp_path / "f")
    with pytest.raises(ValueError, match="f as .npz archive: no end record"):
        (tmp_path / "f").write_bytes(b"x" * 50)
        npz_load(tmp_path / "f")


def good_files() -> list[tuple[bytes, object, list[tuple[int, int]]]]:
    x, out = sample("f4"), io.BytesIO()
    np.savez(out, a=x, b=np.asfortranarray(sample("i2", (2, 3, 4))))
    npz = out.getvalue()
    return [(dumped(x), npy_load, [(0, 90)]), (dumped(np.asfortranarray(x)), npy_load, [(0, 90)]),
            (npz, npz_load, [(0, 160), (len(npz) - 130, len(npz))])]


def mutations(folder: Path, count: int) -> None:
    for raw, load, hot in good_files():
        assert fuzz(load, raw, hot, folder, 3, count) > count // 100


@pytest.mark.fuzz
def test_300_mutations(tmp_path: Path):
    mutations(tmp_path, 300)


@pytest.mark.soak
def test_10000_mutations(tmp_path: Path):
    mutations(tmp_path, 10_000)
