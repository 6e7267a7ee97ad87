"""Members of zip and tar files as lazy tensors over the bytes of the archive.

A stored zip entry and a tar member are ranges of the file, so their tensors lie on the file's device and are read when
they are used. A deflated entry is decompressed at once, to no more than the size it states. Encryption, other
compressions, archives in several parts and sparse tar members are errors. (Layouts: PKWARE APPNOTE 4.3 to 4.5;
POSIX.1-2001 pax, ustar.)
"""
from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

from tinyhost.io.source import Cursor, FileLike, Source, tensor_of
from tinyhost.tensor import Tensor

__all__ = ["Member", "member_tensor", "tar_extract", "tar_members", "zip_extract", "zip_members"]

MAX_DIRECTORY = 1 << 28  # bytes of a zip directory
MAX_MEMBERS = 1 << 18
MAX_PAX = 1 << 20        # bytes of the extended header of one tar member
MAX_RATIO = 1040         # deflate makes at most 1032 bytes of one
MAX_INFLATED = 1 << 30   # bytes of all deflated entries of an archive, or 20 times its size if that is more


@dataclass(frozen=True)
class Member:
    """One file of an archive: ``stored`` bytes from ``start``, ``size`` bytes when decompressed by ``method``."""

    name: str
    start: int
    stored: int
    size: int
    method: int = 0
    crc: int = 0


# *** zip ***
def _end_record(source: Source) -> tuple[int, int, int]:
    """(entries, size, offset) of the central directory, from the record at the end of the file."""
    tail_start = max(0, source.size - 65557)
    tail = source.read(tail_start, source.size - tail_start, "the end record")
    at = len(tail) - 22
    while True:  # the last signature whose comment reaches exactly the end of the file
        at = tail.rfind(b"PK\5\6", 0, at + 4) if at >= 0 else -1
        if at < 0:
            raise source.error(f"no end record of a zip archive in the last {len(tail)} bytes: truncated, or not a zip "
                               "archive")
        if at + 22 + int.from_bytes(tail[at + 20:at + 22], "little") == len(tail):
            break
        at -= 1
    disk, start_disk, here, count, size, offset = struct.unpack_from("<4H2I", tail, at + 4)
    if tail_start + at >= 20 and source.read(tail_start + at - 20, 4, "the zip64 locator") == b"PK\6\7":
        return _end_record64(source, tail_start + at)
    if disk or start_disk or here != count:
        raise source.error(f"a zip archive in several parts (this is part {disk}): join them first")
    if offset + size > tail_start + at:
        raise source.error(f"the zip directory takes {size} bytes from byte {offset}, its end record stands at byte "
                           f"{tail_start + at}: truncated or damaged")
    return count, size, offset


def _end_record64(source: Source, end: int) -> tuple[int, int, int]:
    where, = struct.unpack_from("<Q", source.read(end - 20, 20, "the zip64 locator"), 8)
    record = source.read(where, 56, "the zip64 end record")
    if record[:4] != b"PK\6\6":
        raise source.error(f"no zip64 end record at byte {where}, where its locator points: damaged")
    count, size, offset = struct.unpack_from("<3Q", record, 32)
    if offset + size > where:
        raise source.error(f"the zip64 directory takes {size} bytes from byte {offset}, its end record stands at byte "
                           f"{where}: damaged")
    return count, size, offset


def zip_members(source: Source) -> dict[str, Member]:
    """The entries of a zip archive by name, folders left out.

    Raises:
        ValueError: the archive is truncated or damaged, entries share bytes or a name, or use what is not supported.
    """
    count, size, offset = _end_record(source)
    if size > MAX_DIRECTORY or count > MAX_MEMBERS or count * 46 > size:
        raise source.error(f"the zip directory states {count} entries in {size} bytes: each takes 46 or more, and at "
                           f"most {MAX_MEMBERS} in {MAX_DIRECTORY} bytes are read")
    directory, at, out = source.read(offset, size, "the zip directory"), 0, dict[str, Member]()
    for i in range(count):
        name, member, at = _entry(source, directory, at, i)
        if name in out:
            raise source.error(f"the zip entry {name!r} stands twice")
        if not name.endswith("/"):
            out[name] = member
    end = 0
    for m in sorted(out.values(), key=lambda m: (m.start, m.stored)):
        if m.start < end and m.stored:
            raise source.error(f"the zip entry {m.name!r} at byte {m.start} shares bytes with the one before it: "
                               "damaged")
        end = max(end, m.start + m.stored)
    if (inflated := sum(m.size for m in out.values() if m.method)) > max(MAX_INFLATED, 20 * source.size):
        raise source.error(f"the deflated entries take {inflated} bytes, the archive {source.size}: more than "
                           f"{MAX_INFLATED} bytes and 20 times the archive are not unpacked in memory")
    return out


def _entry(source: Source, directory: bytes, at: int, i: int) -> tuple[str, Member, int]:
    """(name, member, position of the next entry) of entry ``i``, which begins at ``at``."""
    if directory[at:at + 4] != b"PK\1\2" or at + 46 > len(directory):
        raise source.error(f"the zip directory has no entry {i} at byte {at} of {len(directory)}: truncated or damaged")
    flags, method = struct.unpack_from("<2H", directory, at + 8)
    crc, stored, size, n_name, n_extra, n_comment = struct.unpack_from("<3I3H", directory, at + 16)
    header, = struct.unpack_from("<I", directory, at + 42)
    end = at + 46 + n_name + n_extra + n_comment
    if end > len(directory):
        raise source.error(f"zip entry {i} ends at byte {end} of a directory of {len(directory)}: truncated or damaged")
    raw_name = directory[at + 46:at + 46 + n_name]
    name = raw_name.decode("utf-8" if flags & 0x800 else "cp437", "replace")
    size, stored, header = _wide(source, name, directory[at + 46 + n_name:at + 46 + n_name + n_extra], size, stored,
                                 header)
    if flags & 0x2041:
        raise source.error(f"the zip entry {name!r} is encrypted: decrypt the archive first")
    if method not in (0, 8):
        raise source.error(f"the zip entry {name!r} is compressed by method {method}: stored (0) and deflated (8) "
                           "entries can be read")
    if method == 0 and stored != size:
        raise source.error(f"the zip entry {name!r} is stored in {stored} bytes but has {size}: damaged")
    if size > stored * MAX_RATIO + 64:
        raise source.error(f"the zip entry {name!r} states {size} bytes deflated to {stored}: no deflated data is that "
                           "small")
    start = _data_start(source, name, raw_name, header)
    source.check(start, stored, f"the zip entry {name!r}")
    return name, Member(name, start, stored, size, method, crc), end


def _data_start(source: Source, name: str, raw_name: bytes, header: int) -> int:
    """Where the data of an entry begin: behind its own header, which must name the same entry."""
    local = source.read(header, 30, f"the header of zip entry {name!r}")
    if local[:4] != b"PK\3\4":
        raise source.error(f"the zip entry {name!r} has no header at byte {header}, where the directory points: "
                           "damaged")
    n_name, n_extra = struct.unpack_from("<2H", local, 26)
    if n_name != len(raw_name) or source.read(header + 30, n_name, f"the name of zip entry {name!r}") != raw_name:
        raise source.error(f"the zip entry {name!r} has another name in its header at byte {header}: damaged")
    return header + 30 + int(n_name) + int(n_extra)


def _wide(source: Source, name: str, extra: bytes, *values: int) -> list[int]:
    """Size, stored size and header offset, those of all ones taken from the zip64 extra field."""
    at, wide = 0, b""
    while at + 4 <= len(extra):
        tag, n = struct.unpack_from("<2H", extra, at)
        if tag == 1:
            wide = extra[at + 4:at + 4 + n]
        at += 4 + n
    out = []
    for v in values:
        if v == 0xFFFFFFFF:
            if len(wide) < 8:
                raise source.error(f"the zip entry {name!r} needs a zip64 field that is missing or too short: damaged")
            v, wide = int.from_bytes(wide[:8], "little"), wide[8:]
        out.append(v)
    return out


def member_tensor(source: Source, m: Member) -> Tensor:
    """The bytes of a member: a view of the archive, or in memory if it is deflated.

    Raises:
        ValueError: deflated data are damaged.
    """
    if m.method == 0:
        return source.slice(m.start, m.stored, f"the member {m.name!r}")
    return tensor_of(member_bytes(source, m))


def member_bytes(source: Source, m: Member) -> bytes:
    """The content of a member, decompressed."""
    raw = source.read(m.start, m.stored, f"the member {m.name!r}")
    if m.method == 0:
        return raw
    inflate = zlib.decompressobj(-15)
    try:
        content = inflate.decompress(raw, m.size + 1)
    except zlib.error as e:
        raise source.error(f"the zip entry {m.name!r} cannot be decompressed: {e}") from e
    if len(content) != m.size or not inflate.eof or zlib.crc32(content) != m.crc:
        raise source.error(f"the zip entry {m.name!r} decompresses to {len(content)} bytes or more with another "
                           f"checksum than stated, {m.size} are stated: damaged")
    return content


def zip_extract(t: FileLike) -> dict[str, Tensor]:
    """The files of a zip archive by name, as rows of uint8; stored entries are not read before they are used.

    Raises:
        ValueError: the archive is truncated or damaged, or uses encryption or a compression other than deflate.
    """
    source = Source(t, "zip archive")
    return {name: member_tensor(source, m) for name, m in zip_members(source).items()}


# *** tar ***
def _number(source: Source, field: bytes, at: int, what: str) -> int:
    """A number in octal text, or in base 256 when the first bit is set."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    if text.strip(b"01234567"):
        raise source.error(f"the tar header at byte {at} has {text!r} as its {what}: no octal number, damaged")
    return int(text or b"0", 8)


def _pax(source: Source, text: bytes, at: int) -> dict[str, str]:
    """Records "length key=value\\n" of an extended header."""
    out: dict[str, str] = {}
    while text:
        head, _, _ = text[:24].partition(b" ")
        length = int(head) if head.isdigit() and len(head) < 10 else 0
        key, eq, value = text[len(head) + 1:length].partition(b"=")
        if not len(head) + 3 <= length <= len(text) or not eq or not value.endswith(b"\n"):
            raise source.error(f"the extended tar header at byte {at} is malformed near {text[:24]!r}")
        out[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "replace")
        text = text[length:]
    return out


def tar_members(source: Source) -> dict[str, Member]:
    """The regular files of a tar archive by name, hard links to them too; of a name that stands twice the last one.

    Raises:
        ValueError: the archive is truncated or damaged.
    """
    out, at, extra = dict[str, Member](), 0, dict[str, str]()
    while at + 512 <= source.size:
        block = source.read(at, 512, "a tar header")
        if not block.strip(b"\0"):
            return out
        if sum(block) - sum(block[148:156]) + 8 * 32 != _number(source, block[148:156], at, "checksum"):
            raise source.error(f"the tar header at byte {at} does not have the checksum it states: damaged, or not a "
                               "tar archive")
        kind, name, size = block[156:157], _tar_name(block, extra), _tar_size(source, block, extra, at)
        source.check(at + 512, size, f"the tar member {name!r}")
        if kind in (b"x", b"g", b"L", b"K"):
            extra = {**extra, **_extended(source, kind, at + 512, size)}
        elif kind in (b"S",) or "GNU.sparse.major" in extra:
            raise source.error(f"the tar member {name!r} is sparse: pack it without --sparse")
        else:
            if kind == b"1" and (linked := out.get(_link_name(block, extra))) is not None:
                out[name] = replace(linked, name=name)
            elif kind in (b"0", b"\0", b"7") and not name.endswith("/"):
                out[name] = Member(name, at + 512, size, size)
            if len(out) > MAX_MEMBERS:
                raise source.error(f"more than {MAX_MEMBERS} members: that many are not read")
            extra = {}
        at += 512 + (size + 511) // 512 * 512
    if at == 0 or at != source.size:
        raise source.error(f"the tar archive ends inside the header at byte {at}: truncated, or not a tar archive")
    return out


def _tar_size(source: Source, block: bytes, extra: dict[str, str], at: int) -> int:
    """Bytes of data behind a header; -1 if what is stated is no number."""
    kind, size = block[156:157], _number(source, block[124:136], at, "size")
    if kind in (b"1", b"2", b"3", b"4", b"5", b"6"):
        return 0  # links, folders and devices have no data, whatever they state
    if kind in (b"0", b"\0", b"7") and "size" in extra:
        return int(extra["size"]) if extra["size"].isdecimal() and len(extra["size"]) < 20 else -1
    return size


def _tar_name(block: bytes, extra: dict[str, str]) -> str:
    if "path" in extra:
        return extra["path"]
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "replace")


def _link_name(block: bytes, extra: dict[str, str]) -> str:
    """The earlier member that a hard link stands for."""
    return extra.get("linkpath", block[157:257].partition(b"\0")[0].decode("utf-8", "replace"))


def _extended(source: Source, kind: bytes, start: int, size: int) -> dict[str, str]:
    """What a header of kind x (pax), L or K (long names) says of the member behind it; g says nothing that matters."""
    if size > MAX_PAX:
        raise source.error(f"the extended tar header at byte {start} takes {size} bytes, at most {MAX_PAX} are read")
    text = source.read(start, size, "an extended tar header")
    if kind in (b"L", b"K"):
        return {"path" if kind == b"L" else "linkpath": text.partition(b"\0")[0].decode("utf-8", "replace")}
    return _pax(source, text, start) if kind == b"x" else {}


def tar_extract(t: FileLike) -> dict[str, Tensor]:
    """The regular files of an uncompressed tar archive by name, as rows of uint8 that are read when they are used.

    Raises:
        ValueError: the archive is truncated or damaged, or has sparse members.
    """
    source = Source(t, "tar archive")
    head = source.read(0, min(2, source.size), "the first bytes")
    if head == b"\x1f\x8b":
        raise source.error("it is compressed by gzip: unpack it first, members are read in place")
    return {name: member_tensor(source, m) for name, m in tar_members(source).items()}


def cursor_of(source: Source, m: Member) -> Cursor:
    """A cursor over a stored member."""
    return Cursor(source, m.start, m.start + m.stored)
