"""Small machine-code functions for tests of workers."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from tinyhost_cpu.code import Segment
from tinyhost_cpu.native.assembler import RAX, RCX, RDI, RDX, RSI, Assembler, at
from tinyhost_cpu.native.layout import argument_words
from tinyhost_cpu.x86.insns import X86Ops as X


@functools.cache
def function(build: Callable[[Assembler], None]) -> Segment:
    """``build``, then a return; the code stays for good."""
    a = Assembler()
    build(a)
    a.put(X.RET)
    return Segment(a.finish())


def add(a: Assembler) -> None:
    """``*p += n``"""
    a.put(X.ADD, at(RDI), RSI, lock=True)


def count_down(a: Assembler) -> None:
    """Take ``n`` steps, then ``*p += 1``."""
    a.label("loop")
    a.put(X.SUB, RSI, 1)
    a.jump(X.JNE, "loop")
    a.put(X.ADD, at(RDI), 1, lock=True)


def read(a: Assembler) -> None:
    """Read ``*p``."""
    a.put(X.MOV, RAX, at(RDI))


def divide(a: Assembler) -> None:
    """1 / n"""
    a.number(RAX, 1)
    a.number(RDX, 0)
    a.put(X.MOV, RCX, RSI)
    a.put(X.DIV, RCX)


def wait_for(a: Assembler) -> None:
    """Until ``*p`` is not 0."""
    a.label("loop")
    a.put(X.PAUSE)
    a.put(X.CMP, at(RDI), 0)
    a.jump(X.JE, "loop")


def add_part(a: Assembler) -> None:
    """``*p += 10**chunk`` (second word), atomically"""
    a.number(RAX, 1)
    a.label("power")
    a.put(X.TEST, RSI, RSI)
    a.jump(X.JE, "done")
    a.put(X.IMUL, RAX, RAX, 10)
    a.put(X.SUB, RSI, 1)
    a.jump(X.JMP, "power")
    a.label("done")
    a.put(X.ADD, at(RDI), RAX, lock=True)


def append(a: Assembler) -> None:
    """Append ``n << 16 | chunk << 1`` (second and third word) to the journal at ``p``, take the fourth word's steps,
    append the same plus 1. A journal is a count, then entries."""
    a.put(X.SHL, RSI, 16)
    a.put(X.SHL, RDX, 1)
    a.put(X.OR, RSI, RDX)
    for label in ("start", "end"):
        a.number(RAX, 1)
        a.put(X.XADD, at(RDI), RAX, lock=True)
        a.put(X.MOV, at(RDI, 8, index=RAX, scale=8), RSI)
        if label == "start":
            a.put(X.TEST, RCX, RCX)
            a.jump(X.JE, "worked")
            a.label("work")
            a.put(X.SUB, RCX, 1)
            a.jump(X.JNE, "work")
            a.label("worked")
            a.put(X.ADD, RSI, 1)


def gather(a: Assembler) -> None:
    """``*p += 1``, then wait until it is ``n``: that many threads have come."""
    a.put(X.ADD, at(RDI), 1, lock=True)
    a.label("alone")
    a.put(X.PAUSE)
    a.put(X.CMP, at(RDI), RSI)
    a.jump(X.JB, "alone")


def carry(a: Assembler) -> None:
    """``dest[chunk] = src[chunk] + n``: destination, source, chunk, n"""
    a.put(X.MOV, RAX, at(RSI, index=RDX, scale=8))
    a.put(X.ADD, RAX, RCX)
    a.put(X.MOV, at(RDI, index=RDX, scale=8), RAX)


@functools.cache
def in_chunk(build: Callable[[Assembler], None]) -> Callable[[Assembler], None]:
    """``build`` for one chunk only: the third word is the number of the chunk, the fourth that of the one it is for."""
    def guarded(a: Assembler) -> None:
        a.put(X.CMP, RDX, RCX)
        a.jump(X.JNE, "not here")
        build(a)
        a.label("not here")
    return guarded


class Journal:
    """What ``append`` wrote."""

    def __init__(self, room: int) -> None:
        self.memory = (ctypes.c_uint64 * (room + 1))()
        self.address = ctypes.addressof(self.memory)

    def entries(self) -> list[tuple[int, int, str]]:
        """(n, chunk, "start" or "end") in order."""
        return [(w >> 16, (w & 0xFFFF) >> 1, "end" if w & 1 else "start") for w in self.memory[1:1 + self.memory[0]]]

    def clear(self) -> None:
        """Forget all entries."""
        self.memory[0] = 0


class Cell:
    """A number in memory that functions work on."""

    def __init__(self, value: int = 0) -> None:
        self.memory = (ctypes.c_int64 * 1)(value)
        self.address = ctypes.addressof(self.memory)

    @property
    def value(self) -> int:
        return self.memory[0]

    def words(self, *more: int) -> Any:
        """Arguments: the address, then ``more``."""
        return argument_words([self.address, *more])
