"""The queue IR: what a device's command queue can be told, as UOps, before any packet is known.

A queue is a LINEAR of commands with arg (devices, queue name). Every operand is a node of dtype uint64: a number where
it is known when the queue is built, else a variable whose value comes with each submission (an input's address, the
value of a signal). A backend rewrites each command into its packets; nothing here knows a packet.

Order: commands start in order. An ``execute`` or ``copy`` may still run when the next command starts, unless a
``barrier`` stands between; ``wait``, ``signal``, ``timestamp``, ``write`` and ``poll`` take effect after everything in
front of them has ended.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.info import HostCommand

if TYPE_CHECKING:
    from tinyhost.device.base import Program

Word = int | UOp
MAX_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Execute(HostCommand):
    """The arg of an execute command: ``program`` with so many ``buffers``, ``globals`` and ``locals`` among its
    operands, in that order; scalars follow. ``chunk`` is the position of the scalar that numbers the parts of a kernel
    that host threads share, -1 where there is none.
    """

    program: Program
    buffers: int
    globals: int
    locals: int
    chunk: int = -1


def word(x: Word) -> UOp:
    """An operand: a number modulo 2^64, or a node as it is."""
    return x if isinstance(x, UOp) else UOp(Ops.CONST, arg=x & MAX_WORD)


def variable(name: str) -> UOp:
    """An operand whose value comes with each submission."""
    return UOp.variable(name, 0, MAX_WORD, dtypes.uint64)


def _command(arg: str | Execute, *operands: Word) -> UOp:
    return UOp(Ops.INS, tuple([word(x) for x in operands]), arg)


def wait(signal: Word, value: Word) -> UOp:
    """Nothing behind starts before the u64 at ``signal`` is at least ``value``."""
    return _command("wait", signal, value)


def signal(signal: Word, value: Word) -> UOp:
    """Set the u64 at ``signal``; other queues and the host see everything that was written in front of it."""
    return _command("signal", signal, value)


def timestamp(signal: Word) -> UOp:
    """Write the device's clock to the u64 behind the value of ``signal``."""
    return _command("timestamp", signal)


def barrier() -> UOp:
    """Everything behind sees what everything in front wrote."""
    return _command("barrier")


def execute(program: Program, buffers: Sequence[Word], global_size: Sequence[Word], local_size: Sequence[Word] = (),
            scalars: Sequence[Word] = (), chunk: int = -1) -> UOp:
    """Launch a kernel; ``buffers`` are addresses in slot order, sizes and scalars as in ``Program.__call__``."""
    return _command(Execute(program, len(buffers), len(global_size), len(local_size), chunk),
                    *buffers, *global_size, *local_size, *scalars)


def copy(dest: Word, src: Word, nbytes: Word) -> UOp:
    """Copy between addresses that the device sees; the two do not overlap."""
    return _command("copy", dest, src, nbytes)


def write(address: Word, value: Word) -> UOp:
    """Write the lower 32 bits of ``value``."""
    return _command("write", address, value)


def poll(address: Word, value: Word, mask: Word = (1 << 32) - 1) -> UOp:
    """Nothing behind starts before the u32 at ``address``, under ``mask``, equals ``value``."""
    return _command("poll", address, value, mask)


def queue(devices: tuple[str, ...], name: str, commands: Sequence[UOp]) -> UOp:
    """A queue of commands, in order."""
    return UOp(Ops.LINEAR, tuple(commands), (devices, name))
