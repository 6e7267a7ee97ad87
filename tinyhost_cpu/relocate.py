"""From a relocatable ELF object to one flat block of code that runs at any address, entry first.

Takes the bytes of a 64-bit little-endian object (x86-64 or arm64) whose entry is the section ``.text.entry``; gives
that section, then all other allocated sections, with every relocation resolved. Nothing may be left undefined: a kernel
calls no library.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass

from tinyhost.errors import CompileError

_ALLOC, _NOBITS, _RELA, _SYMTAB = 2, 8, 4, 2
_X86_64, _AARCH64 = 62, 183


@dataclass
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    place: int = -1  # offset in the image


def flat_image(obj: bytes) -> bytes:
    """The image of one object file.

    Raises:
        CompileError: a symbol is undefined or a relocation is of an unknown kind.
    """
    machine = struct.unpack_from("<H", obj, 18)[0]
    sections = _sections(obj)
    image = _lay_out(obj, sections)
    for rela in sections:
        if rela.kind == _RELA and sections[rela.info].place >= 0:
            _relocate(obj, image, sections, rela, machine)
    return bytes(image)


def _sections(obj: bytes) -> list[_Section]:
    if obj[:4] != b"\x7fELF" or obj[4] != 2 or obj[5] != 1:
        raise CompileError("the compiler gave no 64-bit little-endian ELF object")
    start, count, names = struct.unpack_from("<Q", obj, 40)[0], *struct.unpack_from("<HH", obj, 60)
    raw = [struct.unpack_from("<IIQQQQIIQQ", obj, start + 64 * i) for i in range(count)]
    text = raw[names][4]
    section_names = [obj[text + r[0]:obj.index(b"\0", text + r[0])].decode() for r in raw]
    return [_Section(name, r[1], r[2], r[4], r[5], r[6], r[7], r[8] or 1) for name, r in zip(section_names, raw)]


def _lay_out(obj: bytes, sections: list[_Section]) -> bytearray:
    image = bytearray()
    loaded = [s for s in sections if s.flags & _ALLOC and s.size and not s.name.startswith((".note", ".eh_frame"))]
    for s in sorted(loaded, key=lambda s: s.name != ".text.entry"):
        image += b"\0" * (-len(image) % s.align)
        s.place = len(image)
        image += b"\0" * s.size if s.kind == _NOBITS else obj[s.offset:s.offset + s.size]
    if not any(s.name == ".text.entry" and s.place == 0 for s in loaded):
        raise CompileError("the object has no section .text.entry")
    return image


def _relocate(obj: bytes, image: bytearray, sections: list[_Section], rela: _Section, machine: int) -> None:
    symbols = sections[rela.link]
    strings = sections[symbols.link].offset
    for at in range(rela.offset, rela.offset + rela.size, 24):
        offset, info, addend = struct.unpack_from("<QQq", obj, at)
        name, _, _, index, value = struct.unpack_from("<IBBHQ", obj, symbols.offset + 24 * (info >> 32))
        if index == 0 or index >= len(sections) or sections[index].place < 0:
            text = obj[strings + name:obj.index(b"\0", strings + name)].decode()
            raise CompileError(f"the kernel needs the symbol {text or index}, and kernels are linked against nothing: "
                               "the operation must be decomposed before it reaches the compiler")
        target = sections[index].place + value + addend
        _apply(image, sections[rela.info].place + offset, target, info & 0xFFFFFFFF, machine)


def _apply(image: bytearray, place: int, target: int, kind: int, machine: int) -> None:
    if machine == _X86_64 and kind in (2, 4):  # PC32, PLT32
        struct.pack_into("<i", image, place, target - place)
    elif machine == _X86_64 and kind == 24:  # PC64
        struct.pack_into("<q", image, place, target - place)
    elif machine == _AARCH64 and kind in (282, 283):  # JUMP26, CALL26
        _patch(image, place, (target - place) >> 2 & 0x3FFFFFF)
    elif machine == _AARCH64 and kind == 275:  # ADR_PREL_PG_HI21; images start on a page
        page = (target >> 12) - (place >> 12)
        _patch(image, place, (page & 3) << 29 | (page >> 2 & 0x7FFFF) << 5)
    elif machine == _AARCH64 and kind in _LO12:
        _patch(image, place, (target & 0xFFF) >> _LO12[kind] << 10)
    elif machine == _AARCH64 and kind == 261:  # PREL32
        struct.pack_into("<i", image, place, target - place)
    else:
        raise CompileError(f"relocation kind {kind} of machine {machine} is not known to the loader")


_LO12 = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # ADD and 8- to 128-bit loads: shift of the offset


def _patch(image: bytearray, place: int, bits: int) -> None:
    struct.pack_into("<I", image, place, struct.unpack_from("<I", image, place)[0] | bits)
