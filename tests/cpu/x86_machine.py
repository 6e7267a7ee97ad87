"""Runs linear programs as machine code: renders, loads into executable memory, calls through ctypes.

Code is for the level that ``at_level`` chose, x86-64-v3 without it.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.target import Target
from tinyhost.uop import ParamArg, UOp
from tinyhost_cpu.x86.caps import host_features, level_features
from tinyhost_cpu.x86.renderer import X86Renderer

LEVELS = ("x86-64-v3", "x86-64-v4")
RENDERERS = {level: X86Renderer(Target("CPU", "X86", level)) for level in LEVELS}
for _renderer in RENDERERS.values():
    _renderer.checked = True
RENDERER = RENDERERS["x86-64-v3"]
_chosen = ["x86-64-v3"]
NUMPY = {
    dtypes.bool: np.bool_,
    dtypes.int8: np.int8,
    dtypes.int16: np.int16,
    dtypes.int32: np.int32,
    dtypes.int64: np.int64,
    dtypes.uint8: np.uint8,
    dtypes.uint16: np.uint16,
    dtypes.uint32: np.uint32,
    dtypes.uint64: np.uint64,
    dtypes.float16: np.float16,
    dtypes.bfloat16: np.uint16,
    dtypes.float32: np.float32,
    dtypes.float64: np.float64,
}


@contextmanager
def at_level(level: str) -> Iterator[None]:
    """Assemble for ``level`` inside the block."""
    _chosen.append(level)
    try:
        yield
    finally:
        _chosen.pop()


def renderer() -> X86Renderer:
    """The renderer of the chosen level; its allocations are checked."""
    return RENDERERS[_chosen[-1]]


def widest() -> int:
    """Bytes of a vector register at the chosen level."""
    return renderer().caps.vector_bytes


def call(code: bytes, buffers: Sequence[np.ndarray], scalars: Sequence[int] = ()) -> None:
    """Call ``code`` with pointers to ``buffers`` and then ``scalars``."""
    if missing := sorted(level_features(_chosen[-1]) - host_features()):
        pytest.skip(f"code for {_chosen[-1]} was assembled, but this processor lacks {', '.join(missing)} to run it")
    area = mmap.mmap(-1, -(-len(code) // 4096) * 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    pin = ctypes.c_char.from_buffer(area)
    args: list[Any] = [ctypes.c_void_p(b.ctypes.data) for b in buffers] + [ctypes.c_int64(s) for s in scalars]
    ctypes.CFUNCTYPE(None, *[type(a) for a in args])(ctypes.addressof(pin))(*args)


def param(slot: int, dtype: DType, size: int) -> UOp:
    return UOp(Ops.PARAM, (), ParamArg(slot, dtype, size))


def scalar(name: str, lo: int, hi: int, slot: int, dtype: DType = dtypes.int32) -> UOp:
    return UOp(Ops.PARAM, (), ParamArg(slot, dtype, None, (lo, hi), None, name, AddrSpace.ALU))


def const(value: Any, dtype: DType) -> UOp:
    return UOp.const(value, dtype)


def i32(value: int) -> UOp:
    return UOp.const(value, dtypes.int32)


def add(*xs: UOp) -> UOp:
    """The sum of nodes."""
    total = xs[0]
    for x in xs[1:]:
        total = UOp(Ops.ADD, (total, x))
    return total


def mul(a: UOp, b: int) -> UOp:
    """A node times an int32 literal."""
    return UOp(Ops.MUL, (a, i32(b)))


def loop(bound: Any, number: int, kind: AxisType = AxisType.WEAK) -> UOp:
    return UOp(Ops.RANGE, (bound if isinstance(bound, UOp) else i32(bound),), (number, kind))


def at(buffer: UOp, index: Any, lanes: int = 1) -> UOp:
    index = index if isinstance(index, UOp) else i32(index)
    return (
        UOp(Ops.INDEX, (buffer, index)) if lanes == 1 else UOp(Ops.SHRINK, (buffer, index, UOp(Ops.CONST, (), lanes)))
    )


def load(buffer: UOp, index: Any, lanes: int = 1, *gate: UOp) -> UOp:
    return UOp(Ops.LOAD, (at(buffer, index, lanes), *gate))


def store(buffer: UOp, index: Any, value: UOp, lanes: int = 1, *gate: UOp) -> UOp:
    return UOp(Ops.STORE, (at(buffer, index, lanes), value, *gate))


def lane(vector: UOp, i: int) -> UOp:
    return UOp(Ops.INDEX, (vector, UOp(Ops.CONST, (), i)))


def assemble(*effects: UOp) -> bytes:
    """Machine code of the program with these effects."""
    return bytes.fromhex(renderer().render(linearize(UOp(Ops.SINK, effects))))


def run(effects: Sequence[UOp], buffers: Sequence[np.ndarray], scalars: Sequence[int] = ()) -> bytes:
    """Assemble and call."""
    code = assemble(*effects)
    call(code, buffers, scalars)
    return code


def listing(code: bytes) -> str:
    return renderer().compiler.disassemble(code)
