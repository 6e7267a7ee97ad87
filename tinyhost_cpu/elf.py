"""Small ELF64 files for debuggers: one that names a range of memory, and a shared object of two symbols.

Takes addresses, code and names; gives the bytes of a file. Both are little-endian files of the running machine; no
relocations, nothing undefined. Layout and constants are those of the System V ABI, chapters 4 and 5
(www.sco.com/developers/gabi), and its processor supplements.
"""
from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

ET_EXEC, ET_DYN = 2, 3
EM = {"x86_64": 62, "aarch64": 183}
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_HASH, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 1, 2, 3, 5, 6, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 0, 4, 5, 6, 10, 11, 14
STT_OBJECT, STT_FUNC, STB_GLOBAL = 1, 2, 1
_EHDR, _PHDR, _SHDR, _SYM = 64, 56, 64, 24
_PAGE = 1 << 16  # the largest page of the machines in EM


@dataclass
class Section:
    """One section: its bytes (None where it has none in the file), where it lies, and its header's fields."""

    name: str
    kind: int
    data: bytes | None
    flags: int = 0
    address: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 8
    entry: int = 0
    offset: int = 0


class Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        """Where ``text`` stands."""
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def machine() -> int | None:
    """The running machine's number in ELF headers, None for machines without one here."""
    return EM.get(platform.machine())


def symbol_file(name: str, address: int, size: int) -> bytes:
    """A file that says: the function ``name`` is the ``size`` bytes of code at ``address``, in memory already."""
    strings = Strings()
    symbols = bytes(_SYM) + struct.pack("<IBBHQQ", strings.add(name), STB_GLOBAL << 4 | STT_FUNC, 0, 1, address, size)
    return _file(ET_EXEC, [
        Section(".text", SHT_NOBITS, None, SHF_ALLOC | SHF_EXECINSTR, address, size, align=1),
        Section(".symtab", SHT_SYMTAB, symbols, link=3, info=1, entry=_SYM),
        Section(".strtab", SHT_STRTAB, strings.data, align=1)], [])


def shared_object(soname: str, function: tuple[str, bytes], variable: tuple[str, bytes]) -> bytes:
    """A library with one function (name, code) and one writable variable (name, initial bytes)."""
    strings = Strings()
    names = [strings.add(function[0]), strings.add(variable[0])]
    so = strings.add(soname)
    # one bucket: every name is found by walking all symbols
    hashes = struct.pack("<6I", 1, 3, 1, 0, 2, 0)
    at = _EHDR + 4 * _PHDR
    places = []
    for size in (len(hashes), 3 * _SYM, len(strings.data), len(function[1])):
        at = -(-at // 16) * 16
        places.append(at)
        at += size
    end_of_text = at
    dynamic_at = -(-at // _PAGE) * _PAGE
    dynamic = struct.pack("<14Q", DT_SONAME, so, DT_HASH, places[0], DT_SYMTAB, places[1], DT_STRTAB, places[2],
                          DT_STRSZ, len(strings.data), DT_SYMENT, _SYM, DT_NULL, 0)
    data_at = dynamic_at + len(dynamic)
    symbols = bytes(_SYM)
    for name, kind, section, value, content in ((names[0], STT_FUNC, 4, places[3], function[1]),
                                                (names[1], STT_OBJECT, 6, data_at, variable[1])):
        symbols += struct.pack("<IBBHQQ", name, STB_GLOBAL << 4 | kind, 0, section, value, len(content))
    end = data_at + len(variable[1])
    segments = [(PT_LOAD, PF_R | PF_X, 0, end_of_text), (PT_LOAD, PF_R | PF_W, dynamic_at, end - dynamic_at),
                (PT_DYNAMIC, PF_R | PF_W, dynamic_at, len(dynamic)), (PT_GNU_STACK, PF_R | PF_W, 0, 0)]
    return _file(ET_DYN, [
        Section(".hash", SHT_HASH, hashes, SHF_ALLOC, places[0], link=2, entry=4),
        Section(".dynsym", SHT_DYNSYM, symbols, SHF_ALLOC, places[1], link=3, info=1, entry=_SYM),
        Section(".dynstr", SHT_STRTAB, strings.data, SHF_ALLOC, places[2], align=1),
        Section(".text", SHT_PROGBITS, function[1], SHF_ALLOC | SHF_EXECINSTR, places[3], align=16),
        Section(".dynamic", SHT_DYNAMIC, dynamic, SHF_ALLOC | SHF_WRITE, dynamic_at, link=3, entry=16),
        Section(".data", SHT_PROGBITS, variable[1], SHF_ALLOC | SHF_WRITE, data_at)], segments)


def _file(kind: int, sections: list[Section], segments: list[tuple[int, int, int, int]]) -> bytes:
    """The file: headers, sections at their addresses where segments load them, section headers."""
    number = machine()
    assert number is not None, f"no ELF machine number for {platform.machine()}"
    names = Strings()
    out = bytearray(_EHDR + _PHDR * len(segments))
    all_sections = [*sections, Section(".shstrtab", SHT_STRTAB, b"", align=1)]
    name_offsets = [names.add(s.name) for s in all_sections]
    all_sections[-1].data = names.data
    for s in all_sections:
        s.offset = s.address if segments and s.flags & SHF_ALLOC else -(-len(out) // 8) * 8
        if s.data is not None:
            s.size = len(s.data)
            out += bytes(s.offset - len(out)) + s.data
    out += bytes(-len(out) % 8)
    table = len(out)
    out += bytes(_SHDR)
    for at, s in zip(name_offsets, all_sections):
        out += struct.pack("<IIQQQQIIQQ", at, s.kind, s.flags, s.address, s.offset, s.size, s.link, s.info, s.align,
                           s.entry)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    out[:_EHDR] = struct.pack("<16sHHIQQQIHHHHHH", ident, kind, number, 1, 0, _EHDR if segments else 0, table, 0,
                              _EHDR, _PHDR if segments else 0, len(segments), _SHDR, len(all_sections) + 1,
                              len(all_sections))
    for i, (what, flags, at, size) in enumerate(segments):
        align = _PAGE if what == PT_LOAD else 16 if what == PT_GNU_STACK else 8
        struct.pack_into("<IIQQQQQQ", out, _EHDR + i * _PHDR, what, flags, at, at, at, size, size, align)
    return bytes(out)
