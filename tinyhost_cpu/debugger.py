"""Registration of generated code with GDB (manual, chapter "JIT Compilation Interface").

A debugger looks for two symbols: the variable ``__jit_debug_descriptor``, a list of symbol files in memory, and the
function ``__jit_debug_register_code``, which a program calls after each change of the list and which does nothing: the
debugger stops there. A Python process has neither, so a shared object of our own brings them. It lies in a private
file as long as the process lives, because a debugger that attaches later reads its symbols.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile

from tinyhost_cpu import elf

REGISTER, UNREGISTER = 1, 2  # jit_actions_t
RETURN = {62: b"\xc3", 183: b"\xc0\x03\x5f\xd6"}  # by ELF machine: ret
NAMES = "__jit_debug_register_code", "__jit_debug_descriptor"


class Entry(ctypes.Structure):
    """``struct jit_code_entry``: one symbol file."""

    _fields_ = [("next", ctypes.c_void_p), ("prev", ctypes.c_void_p), ("symfile_addr", ctypes.c_void_p),
                ("symfile_size", ctypes.c_uint64)]


class Descriptor(ctypes.Structure):
    """``struct jit_descriptor``: the list, and what changed last."""

    _fields_ = [("version", ctypes.c_uint32), ("action_flag", ctypes.c_uint32), ("relevant_entry", ctypes.c_void_p),
                ("first_entry", ctypes.c_void_p)]


class Debugger:
    """The list of this process. Calls must not overlap.

    Raises:
        OSError: the shared object cannot be written or loaded here.
    """

    def __init__(self) -> None:
        number = elf.machine()
        if number is None:
            raise OSError("GDB's interface is not written for this machine")
        folder = tempfile.mkdtemp(prefix="tinyhost-debugger-")
        atexit.register(_remove, folder, os.getpid())
        path = os.path.join(folder, "tinyhost-debugger.so")
        initial = bytes(Descriptor(version=1))
        with open(path, "xb") as f:
            f.write(elf.shared_object("tinyhost-debugger.so", (NAMES[0], RETURN[number]), (NAMES[1], initial)))
        self._library = ctypes.CDLL(path)
        self._changed = self._library[NAMES[0]]
        self._changed.restype = None
        self._descriptor = Descriptor.in_dll(self._library, NAMES[1])
        self._held: dict[int, tuple[Entry, ctypes.Array[ctypes.c_char]]] = {}  # address -> entry and its file

    def register(self, file: bytes) -> int:
        """Add a symbol file; the number by which it is taken out."""
        content = ctypes.create_string_buffer(file, len(file))
        first = self._descriptor.first_entry
        entry = Entry(first, None, ctypes.addressof(content), len(file))
        address = ctypes.addressof(entry)
        self._held[address] = entry, content
        if first:
            self._held[first][0].prev = address
        self._descriptor.first_entry = address
        self._tell(REGISTER, address)
        return address

    def unregister(self, address: int) -> None:
        """Take a symbol file out."""
        entry = self._held[address][0]
        if entry.prev:
            self._held[entry.prev][0].next = entry.next
        else:
            self._descriptor.first_entry = entry.next
        if entry.next:
            self._held[entry.next][0].prev = entry.prev
        self._tell(UNREGISTER, address)
        del self._held[address]

    def _tell(self, action: int, address: int) -> None:
        self._descriptor.relevant_entry, self._descriptor.action_flag = address, action
        self._changed()
        self._descriptor.action_flag = 0


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child that ends leaves its parent's file
        shutil.rmtree(folder, ignore_errors=True)
