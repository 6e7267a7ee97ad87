"""Memory that readers take: next to none for the data of a file, and a bounded amount for the worst headers.

Every file is read in a process of its own whose address space is limited. Its peak may grow by twice the size of the
file and a constant; most files here were made to take many times their size.
"""
from __future__ import annotations

import io
import json
import pickle
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.io.test_gguf import QUANTISED, described, file_of, text
from tests.io.test_torch_pickle import STORAGE, checkpoint
from tinyhost.io.ggml import GGML_TYPES

CONSTANT = 320 << 20  # bytes; most of it is what a pickle may take
PROGRAM = """
import pathlib, resource, sys, time
from tinyhost import Tensor
from tinyhost.io import gguf_load, npy_load, npz_load, tar_extract, torch_load, zip_extract
from tinyhost.nn.state import safe_load
Tensor(pathlib.Path(sys.argv[2] + ".small")).data()
def peak():  # of this program only: what getrusage says may be of the process that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[3]),) * 2)
start, what = time.process_time(), "loaded"
try:
    loaded = globals()[sys.argv[1]](sys.argv[2])
except (ValueError, TypeError) as e:
    what = str(e)
print(peak() - before, time.process_time() - start, what[:300])
"""


def growth(loader: str, path: Path, limit: int) -> tuple[int, float, str]:
    """(bytes of peak memory, seconds, what came out) of a reader in a process with ``limit`` bytes more."""
    path.with_name(path.name + ".small").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", PROGRAM, loader, str(path), str(limit)], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    peak, seconds, what = done.stdout.split(" ", 2)
    return int(peak) * 1024, float(seconds), what


def legacy(content: bytes) -> bytes:
    """A checkpoint of single pickles whose object is ``content``."""
    return b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})) + content


def tensors_of_few_bytes(count: int) -> bytes:
    """One storage and many tensors of it, each a recalled function and arguments."""
    make = b"ctorch._utils\n_rebuild_tensor_v2\nq\0(" + STORAGE + b"K\0K\x02\x85K\x01\x85\x89Ntq\1"
    return b"\x80\x02]" + b"(" + make[:-2] + b"q\1R" + b"h\0h\1R" * count + b"e."


def pickles() -> Iterator[tuple[str, bytes]]:
    n = 3_000_000
    yield "sets", b"\x80\x04" + b"\x8f" * n + b"."
    yield "lists", b"\x80\x02" + b"]" * n + b"."
    yield "dicts", b"\x80\x02" + b"}" * n + b"."
    yield "memo", b"\x80\x04N" + b"\x94" * n + b"."
    yield "tuples", b"\x80\x02)" + b"\x85" * n + b"."
    yield "copies", b"\x80\x02N" + b"2" * n + b"."
    yield "floats", b"\x80\x02" + (b"G" + struct.pack(">d", 1.5)) * (n // 9) + b"."
    yield "wide text", b"\x80\x02X" + struct.pack("<I", n) + b"a" * (n - 4) + "\U0001F600".encode() + b"."
    yield "short texts", b"\x80\x02" + b"X\1\0\0\0a" * (n // 6) + b"."
    yield "entries", b"\x80\x02}(" + b"".join(b"J" + struct.pack("<i", i) + b"N" for i in range(n // 6)) + b"u."
    yield "tensors", tensors_of_few_bytes(n // 5)


def json_files() -> Iterator[tuple[str, bytes]]:
    def whole(header: bytes) -> bytes:
        return struct.pack("<Q", len(header)) + header
    n = 300_000
    yield "keys", whole(b"{" + b",".join(b'"%x":0' % i for i in range(n)) + b"}")
    yield "keys with quotes", whole(b"{" + b",".join(b'"\\"%x":0' % i for i in range(n)) + b"}")
    yield "offsets", whole(b"{" + b",".join(b'"%x":{"data_offsets":[%s]}' % (i, b"0," * 12 + b"0")
                                            for i in range(60_000)) + b"}")
    entries = {f"{i:x}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(60_000)}
    yield "empty entries", whole(json.dumps(entries, separators=(",", ":")).encode())
    for filling in (b"[],", b'"",', b"1e9,"):
        yield f"many {filling!r}", whole(b"[" + filling * (10_000_000 // len(filling)) + b"0]")
    yield "shapes", whole(b'{"a":{"data_offsets":0,"shape":[' + b"0," * 2_000_000 + b"0]}}")


def gguf_files() -> Iterator[tuple[str, bytes]]:
    def array(kind: int, count: int, content: bytes) -> bytes:
        return text("a") + struct.pack("<IIQ", 9, kind, count) + content
    yield "bools", file_of([array(7, 4_000_000, bytes(4_000_000))])
    yield "doubles", file_of([array(12, 2_000_000, struct.pack("<d", 1.5) * 2_000_000)])
    yield "texts", file_of([array(8, 2_000_000, bytes(16_000_000))])
    yield "entries", file_of([text(f"{i:x}") + struct.pack("<IB", 0, 1) for i in range(200_000)])
    yield "nested", file_of([array(9, 300_000, struct.pack("<IQ", 0, 0) * 300_000)])
    kind = GGML_TYPES[QUANTISED["IQ1_S"]]
    infos = [described(f"{i:x}", (kind.elements,), QUANTISED["IQ1_S"], i * 64) for i in range(3_000)]
    yield "tensors", file_of([], infos, bytes(64 * 3_000))


def archives() -> Iterator[tuple[str, str, bytes]]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a", bytes(200 << 20))
    bomb = out.getvalue()
    yield "zip_extract", "deflated", bomb[:-60] + bomb[-60:]
    at = bomb.index(b"PK\1\2")
    yield "zip_extract", "bomb", bomb[:at + 24] + struct.pack("<I", 0xFFFFFFF0) + bomb[at + 28:]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for i in range(30_000):
            z.writestr(f"{i:x}", b"")
    yield "zip_extract", "entries", out.getvalue()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as t:
        for i in range(20_000):
            t.addfile(tarfile.TarInfo(f"{i:x}"))
    yield "tar_extract", "entries", out.getvalue()


def hostile(count: int | None) -> Iterator[tuple[str, str, bytes]]:
    """The first ``count`` files of each kind, or all."""
    for name, raw in islice(pickles(), count):
        yield "torch_load", f"zip: {name}", raw
        yield "torch_load", f"pickle: {name}", legacy(raw)
    for name, raw in islice(json_files(), count):
        yield "safe_load", name, raw
    for name, raw in islice(gguf_files(), count):
        yield "gguf_load", name, raw
    if count is None:
        yield from archives()


def worst(tmp_path: Path, count: int | None) -> None:
    report = []
    for i, (loader, name, raw) in enumerate(hostile(count)):
        path = tmp_path / f"f{i}"
        if name.startswith("zip: "):
            checkpoint(path, raw, {"0": bytes(16)})
        else:
            path.write_bytes(raw)
        size = path.stat().st_size
        constant = CONSTANT + (400 << 20 if name == "deflated" else 0)  # what it states to hold, twice
        peak, seconds, what = growth(loader, path, 2 * size + 2 * constant)
        report.append(f"{loader} {name}: {size >> 10} KiB, {peak >> 10} KiB, {seconds:.1f} s, {what.strip()[-100:]}")
        assert peak <= 2 * size + constant and seconds < 30, "\n".join(report)
        assert not name.endswith(": sets") or "its objects take more than 268435456 bytes and twice the file" in what
    print("\n".join(report))


def test_some_of_the_worst_headers(tmp_path: Path):
    worst(tmp_path, 1)


@pytest.mark.soak
def test_all_of_the_worst_headers(tmp_path: Path):
    worst(tmp_path, None)


def sparse(path: Path, head: bytes, size: int) -> Path:
    """A file of ``head`` and ``size`` zeros that take no room."""
    path.write_bytes(head)
    with open(path, "r+b") as f:
        f.truncate(len(head) + size)
    return path


def large(folder: Path) -> Iterator[tuple[str, Path]]:
    """Good files of 6 GiB."""
    size = 6 << 30
    header = json.dumps({"x": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    yield "safe_load", sparse(folder / "s", struct.pack("<Q", len(header)) + header, size)
    elements = size // 18 * 32
    yield "gguf_load", sparse(folder / "g", file_of([], [described("x", (elements,), 2)]), size)
    text_ = b"{'descr': '<f4', 'fortran_order': True, 'shape': (3, %d)}" % (size // 12)
    yield "npy_load", sparse(folder / "n.npy", b"\x93NUMPY\1\0" + len(text_).to_bytes(2, "little") + text_, size)
    info = tarfile.TarInfo("x")
    info.size = size
    yield "tar_extract", sparse(folder / "t", info.tobuf(tarfile.GNU_FORMAT), size + 1024)
    path = folder / "z"
    with zipfile.ZipFile(path, "w") as z, z.open("x", "w", force_zip64=True) as f:
        f.write(b"")
    raw = path.read_bytes()
    at = raw.index(b"PK\1\2")
    directory = bytearray(raw[at:])
    directory[20:28] = b"\xff" * 8  # sizes, in a zip64 field behind the name
    directory[30:32] = (20).to_bytes(2, "little")
    directory[47:47] = struct.pack("<HHQQ", 1, 16, size, size)
    end = directory.index(b"PK\5\6")
    directory[end + 12:end + 20] = b"\xff" * 8
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, end, at + size)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + size + end, 1)
    with open(path, "wb") as out:
        out.write(raw[:at])
        out.seek(at + size)
        out.write(directory[:end] + record + locator + directory[end:])
    yield "zip_extract", path


def test_large_files_are_not_read(tmp_path: Path):
    for loader, path in large(tmp_path):
        peak, seconds, what = growth(loader, path, 1 << 30)
        assert what.strip() == "loaded" and peak < 32 << 20 and seconds < 3, (loader, peak, seconds, what)


def test_the_limit_is_one(tmp_path: Path):
    """A reader that took the memory would fail here."""
    (tmp_path / "f.small").write_bytes(b"x")
    program = PROGRAM.replace("globals()[sys.argv[1]](sys.argv[2])", "[0] * 200_000_000")
    done = subprocess.run([sys.executable, "-c", program, "", str(tmp_path / "f"), str(1 << 30)], capture_output=True,
                          text=True)
    assert done.returncode != 0 and "MemoryError" in done.stderr
