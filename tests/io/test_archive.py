"""Zip and tar archives: members as views of the file, writers of the Python library as the reference, hostile files."""
from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.io.fuzzing import fuzz
from tinyhost.io import tar_extract, zip_extract

CONTENT = {"a.txt": b"hello", "folder/b.bin": bytes(range(256)) * 40, "empty": b"", "caf\u00e9/\u00e4.txt": b"umlauts"}


def zip_of(content: dict[str, bytes], method: int = zipfile.ZIP_STORED, comment: bytes = b"",
           wide: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.comment = comment
        for name, data in content.items():
            with z.open(zipfile.ZipInfo(name) if method == 0 else name, "w", force_zip64=wide) as f:
                f.write(data)
        z.mkdir("a folder")
    return out.getvalue()


def tar_of(content: dict[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as t:
        folder = tarfile.TarInfo("a folder")
        folder.type = tarfile.DIRTYPE
        t.addfile(folder)
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(link)
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("wide", [False, True])
def test_zip(tmp_path: Path, method: int, wide: bool):
    (tmp_path / "f").write_bytes(zip_of(CONTENT, method, b"a comment with PK\5\6 in it", wide))
    found = zip_extract(tmp_path / "f")
    assert {k: bytes(t.data()) for k, t in found.items()} == CONTENT
    assert found["a.txt"].device.startswith("DISK:") == (method == zipfile.ZIP_STORED)


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar(tmp_path: Path, format: int):
    content = {**CONTENT, "/".join(["long" * 10] * (5 if format == tarfile.USTAR_FORMAT else 9)): b"a long name"}
    (tmp_path / "f").write_bytes(tar_of(content, format))
    found = tar_extract(tmp_path / "f")
    assert {k: bytes(t.data()) for k, t in found.items()} == content and found["a.txt"].device.startswith("DISK:")


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_links_of_tar(tmp_path: Path, format: int):
    long = "x" * (90 if format == tarfile.USTAR_FORMAT else 300)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as t:
        for name in ("a", long):
            info = tarfile.TarInfo(name)
            info.size = 3
            t.addfile(info, io.BytesIO(b"abc" if name == "a" else b"def"))
        for name, target, kind in (("hard", "a", tarfile.LNKTYPE), ("far", long, tarfile.LNKTYPE),
                                   ("soft", "a", tarfile.SYMTYPE), ("lost", "none", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            t.addfile(info)
    (tmp_path / "f").write_bytes(out.getvalue())
    found = {k: bytes(t.data()) for k, t in tar_extract(tmp_path / "f").items()}
    assert found == {"a": b"abc", long: b"def", "hard": b"abc", "far": b"def"}


def patched(raw: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """``raw`` with bytes behind the last ``signature`` replaced."""
    at = raw.rindex(signature) + offset
    return raw[:at] + value + raw[at + len(value):]


SMALL, DEFLATED = zip_of({"a": b"abcd"}), zip_of({"a": b"abcd" * 100}, zipfile.ZIP_DEFLATED)
FIRST = SMALL.index(b"PK\1\2")  # the entry of "a" in the directory
FIRST_DEFLATED = DEFLATED.index(b"PK\1\2")


def at(raw: bytes, where: int, value: bytes) -> bytes:
    return raw[:where] + value + raw[where + len(value):]


ZIPS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no end record of a zip archive in the last 0 bytes: truncated, or not a zip archive"),
    "text": (b"hello" * 100, "no end record of a zip archive in the last 500 bytes"),
    "truncated": (SMALL[:-1], "no end record"),
    "several parts": (patched(SMALL, b"PK\5\6", 4, b"\1"), "a zip archive in several parts"),
    "count": (patched(SMALL, b"PK\5\6", 8, b"\xff\x7f\xff\x7f"), "the zip directory states 32767 entries in"),
    "directory outside": (patched(SMALL, b"PK\5\6", 16, b"\xff\xff\0\0"), "the zip directory takes .* bytes from byte "
                          "65535"),
    "no entry": (at(SMALL, FIRST, b"XX"), "the zip directory has no entry 0 at byte 0"),
    "name length": (at(SMALL, FIRST + 28, b"\xff\xff"), "zip entry 0 ends at byte"),
    "encrypted": (at(SMALL, FIRST + 8, b"\1"), "the zip entry 'a' is encrypted"),
    "method": (at(SMALL, FIRST + 10, b"\x0e"), "the zip entry 'a' is compressed by method 14: stored .0. and deflated "
                                               ".8. "),
    "stored size": (at(SMALL, FIRST + 20, b"\5"), "the zip entry 'a' is stored in 5 bytes but has 4: damaged"),
    "size outside": (at(SMALL, FIRST + 20, b"\xff\xff\xff\0\xff\xff\xff\0"), "the zip entry 'a' takes 16777215 bytes "
                     "from byte"),
    "header outside": (at(SMALL, FIRST + 42, b"\xff\xff\xff\0"), "the header of zip entry 'a' takes 30 bytes from byte "
                                                                 "16777215"),
    "no header": (at(SMALL, FIRST + 42, b"\1"), "the zip entry 'a' has no header at byte 1"),
    "another name": (at(SMALL, 30, b"b"), "the zip entry 'a' has another name in its header at byte 0"),
    "zip64 field": (at(SMALL, FIRST + 42, b"\xff\xff\xff\xff"),
                    "the zip entry 'a' needs a zip64 field that is missing"),
    "bomb": (at(DEFLATED, FIRST_DEFLATED + 24, b"\xff\xff\xff\x7f"), "states 2147483647 bytes deflated to .*: no "
                                                                     "deflated data"),
    "deflated size": (at(DEFLATED, FIRST_DEFLATED + 24, b"\x8f\1\0\0"), "decompresses to 400 bytes or more .* 399 are "
                      "stated"),
    "checksum": (at(DEFLATED, FIRST_DEFLATED + 16, b"abcd"), "decompresses to 400 bytes or more with another checksum"),
    "deflated data": (at(DEFLATED, 31, b"\xff\xff\xff"), "the zip entry 'a' cannot be decompressed: Error -3"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_hostile_zip(tmp_path: Path, name: str):
    content, text = ZIPS[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match="f as zip archive: .*" + text):
        zip_extract(tmp_path / "f")


def test_entries_that_share_bytes(tmp_path: Path):
    """The classic bomb: many names for one deflated entry."""
    raw = zip_of({"a": b"x" * 100, "b": b"x" * 100})
    first = raw.index(b"PK\1\2")
    second = raw.index(b"PK\1\2", first + 1)
    raw = at(at(raw, second + 42, bytes(4)), second + 46, b"a")
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(ValueError, match="the zip entry 'a' stands twice"):
        zip_extract(tmp_path / "f")
    raw = at(zip_of({"a": b"x" * 100, "b": b"x" * 100}), first + 20, struct.pack("<II", 140, 140))
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(ValueError, match="the zip entry 'b' at byte .* shares bytes with the one before it"):
        zip_extract(tmp_path / "f")


TAR = tar_of({"a": b"abcd"})
TARS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the tar archive ends inside the header at byte 0"),
    "short": (b"x" * 100, "the tar archive ends inside the header at byte 0: truncated, or not a tar archive"),
    "text": (b"hello" * 200, "the tar header at byte 0 has b'.*' as its checksum: no octal number"),
    "checksum": (at(TAR, 512, b"b"), "the tar header at byte 512 does not have the checksum it states"),
    "truncated": (TAR[:1200], "the tar archive ends inside the header at byte 1536|the tar member"),
    "truncated data": (TAR[:1026], "the tar member 'a' takes 4 bytes from byte 1024, the file has 1026"),
    "compressed": (b"\x1f\x8b" + bytes(600), "it is compressed by gzip: unpack it first"),
}


@pytest.mark.parametrize("name", TARS)
def test_hostile_tar(tmp_path: Path, name: str):
    content, text = TARS[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=text):
        tar_extract(tmp_path / "f")


def mutations(folder: Path, count: int) -> None:
    content = {"a": b"hello" * 10, "b/c": bytes(range(256))}
    for raw, load in ((zip_of(content), zip_extract), (zip_of(content, zipfile.ZIP_DEFLATED), zip_extract),
                      (tar_of(content), tar_extract)):
        hot = [(0, 600), (len(raw) - 300, len(raw))] if load is zip_extract else [(0, 2600)]
        inflated = load is zip_extract and b"hello" * 10 not in raw
        accepted = fuzz(load, raw, hot, folder, 7, count, check=(lambda c, t: True) if inflated else lambda c,
                        t: bytes(t.data()) in c)
        assert accepted > count // 50


@pytest.mark.fuzz
def test_300_mutations(tmp_path: Path):
    mutations(tmp_path, 300)


@pytest.mark.soak
def test_10000_mutations(tmp_path: Path):
    mutations(tmp_path, 10_000)
