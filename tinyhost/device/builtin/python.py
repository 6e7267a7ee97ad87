"""PYTHON: the executable definition of the linear program.

The renderer writes a program as text, one instruction a line, and the device interprets that text with numpy
(``interpreter.py``). The arch field chooses whose programs it runs: nothing for a plain grid, ``gpu`` for workgroups
with shared memory and a small number of buffers, ``gpu32`` for such a machine that has no 64-bit types and no narrow
floats, or a CPU level (``x86-64-v3``) for vectors of that level without a
grid. All of that is data in ``ARCHES``; what an op computes is ``tinyhost.uop.semantics``.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tinyhost.capabilities import Capabilities
from tinyhost.device.base import BufferSpec, Compiled
from tinyhost.device.builtin.interpreter import PythonProgram, parse
from tinyhost.device.builtin.npy import NpyAllocator
from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.errors import CompileError, TargetError
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.renderer.base import Compiler, Renderer
from tinyhost.specs import DeviceSpec
from tinyhost.target import Target
from tinyhost.uop import UOp

# *** targets ***
_WHOLE = GroupOp.ALU - {Ops.MULACC}
# what machines have; the rest reaches them decomposed
_MACHINE = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.FDIV, Ops.SQRT, Ops.TRUNC, Ops.SHL, Ops.SHR, Ops.AND,
                      Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE, Ops.CDIV, Ops.CMOD, Ops.MULACC})

_GPU = Capabilities(grid=True, locals=True, buffer_views=False, max_kernel_buffers=8, shared_bytes=32768,
                    global_max=(2**31 - 1, 65535, 65535), local_max=(1024, 1024, 64))
_UP_TO_32_BITS = frozenset(dt for dt in (*dtypes.ints, dtypes.bool, dtypes.float32) if dt.itemsize <= 4)

ARCHES: dict[str, tuple[Capabilities, frozenset[Ops]]] = {
    "": (Capabilities(grid=True, host_visible=True), _WHOLE),
    "gpu": (_GPU, _WHOLE),
    "gpu32": (replace(_GPU, dtypes=_UP_TO_32_BITS), _WHOLE),
    "x86-64-v2": (Capabilities(host_visible=True, vector_bytes=16), _MACHINE - {Ops.MULACC}),
    "x86-64-v3": (Capabilities(host_visible=True, vector_bytes=32, fma=True), _MACHINE),
    "x86-64-v4": (Capabilities(host_visible=True, vector_bytes=64, vector_registers=32, fma=True, masked=True),
                  _MACHINE)}


def _arch(target: Target) -> tuple[Capabilities, frozenset[Ops]]:
    if target.arch not in ARCHES:
        known = ", ".join(a for a in ARCHES if a)
        raise TargetError(f"PYTHON has no arch {target.arch!r}: use one of {known}, or none")
    return ARCHES[target.arch]


def capabilities(target: Target) -> Capabilities:
    """What programs for ``target`` may use.

    Raises:
        TargetError: the arch is unknown.
    """
    return _arch(target)[0]


# *** rendering ***
class PythonCompiler(Compiler):
    """Checks program text; the bytes are the text."""

    def __init__(self) -> None:
        super().__init__("python")

    def compile(self, src: str) -> bytes:
        try:
            parse(src)
        except ValueError as e:
            raise CompileError(f"no program for PYTHON: {e}\n{src}") from e
        return src.encode()

    def disassemble(self, lib: bytes) -> str:
        return lib.decode()


class PythonRenderer(Renderer):
    """Linear programs as text for the interpreter."""

    name = "LINEAR"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.caps, self.code_for_op = _arch(target)
        self.compiler = PythonCompiler()

    def render(self, uops: list[UOp]) -> str:
        if self.caps.vector_bytes:
            _check_widths(uops, self.caps.vector_bytes)
        return _Writer(uops).text()

    def supports(self, op: Ops, dtype: DType, lanes: int = 1) -> bool:
        return lanes == 1 or dtype is dtypes.bool or lanes * dtype.itemsize <= self.caps.vector_bytes


def _check_widths(uops: list[UOp], most: int) -> None:
    """No vector is wider than the registers of the level.

    Raises:
        ValueError: one is.
    """
    for u in uops:
        lanes = _lanes(u) if u.op in _VALUES else 1
        if lanes > 1 and u.dtype is not dtypes.bool and not u.dtype.is_weak and lanes * u.dtype.itemsize > most:
            raise ValueError(f"{u.op} has {lanes} lanes of {u.dtype!r}, but a vector has {most} bytes: split it first")


def _lanes(u: UOp) -> int:
    shape = u._shape
    return int(shape[0]) if shape else 1


def _is_storage(u: UOp) -> bool:
    while u.op is Ops.AFTER:
        u = u.src[0]
    return u.op in GroupOp.Defines and u.arg.addrspace is not AddrSpace.ALU


_SPACES = {AddrSpace.GLOBAL: "global", AddrSpace.LOCAL: "local", AddrSpace.REG: "reg"}
_VALUES = GroupOp.ALU | {Ops.CAST, Ops.BITCAST, Ops.LOAD, Ops.STACK}
_NO_CODE = frozenset({Ops.GROUP, Ops.NOOP, Ops.SINK, Ops.CONST})


class _Writer:
    """One program on its way to text. Literals and storage come first, then the instructions in order."""

    def __init__(self, uops: list[UOp]) -> None:
        self.uops = uops
        self.names: dict[UOp, str] = {}
        self.literals: dict[tuple[str, str], str] = {}
        self.head: list[str] = []
        self.body: list[str] = []
        self.count = 0

    def text(self) -> str:
        """The program."""
        sink = self.uops[-1]
        name = sink.arg.function_name if sink.op is Ops.SINK and sink.arg is not None else "kernel"
        for u in self.uops:
            if u.op not in _NO_CODE:
                self.instruction(u)
        return "\n".join([f"kernel {name}", *self.head, *self.body]) + "\n"

    # *** operands ***
    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count}"

    def literal(self, value: Any, dtype: DType) -> str:
        """Name of a literal, wrapped or rounded to ``dtype``."""
        value = truncate[dtype](value)
        spelled = value.hex() if dtype.is_float else str(int(value))
        key = (dtype.alias, spelled)
        if key not in self.literals:
            self.literals[key] = name = self.fresh()
            self.head.append(f"{name} = literal {dtype.alias} {spelled}")
        return self.literals[key]

    def ref(self, u: UOp, dtype: DType | None = None) -> str:
        """Name of a value, converted to ``dtype`` where it has another one."""
        if u.is_const:
            if u.is_invalid:
                raise ValueError("a linear program has no Invalid: gates must have become gates of LOAD and STORE")
            own = u.dtype if not u.dtype.is_weak else dtypes.int64 if u.dtype.is_int else dtypes.float64
            return self.literal(u.const_value, dtype or own)
        name = self.names[u]
        if dtype is None or u.dtype is dtype:
            return name
        return self.emit(f"cast {u.dtype.alias} {dtype.alias} {name}")

    def emit(self, line: str, u: UOp | None = None) -> str:
        name = self.fresh()
        self.body.append(f"{name} = {line}")
        if u is not None:
            self.names[u] = name
        return name

    # *** instructions ***
    def instruction(self, u: UOp) -> None:
        """Write ``u``."""
        op = u.op
        if op in GroupOp.ALU:
            self.alu(u)
        elif op is Ops.AFTER:
            if u.src[0] in self.names:
                self.names[u] = self.names[u.src[0]]
        elif op in (Ops.INDEX, Ops.SHRINK):
            if not _is_storage(u.src[0]):
                self.lane(u)
        elif op in GroupOp.Defines:
            self.define(u)
        else:
            handler = _HANDLERS.get(op)
            if handler is None:
                raise ValueError(f"PYTHON cannot run {op} with arg {u.arg!r}: it is no instruction of a linear program")
            handler(self, u)

    def alu(self, u: UOp) -> None:
        op, src = u.op, u.src
        if op is Ops.WHERE:
            refs, dt = [self.ref(src[0], dtypes.bool), *(self.ref(s, u.dtype) for s in src[1:])], u.dtype
        elif op in (Ops.SHL, Ops.SHR):
            count = None if not src[1].dtype.is_weak else u.dtype
            refs, dt = [self.ref(src[0], u.dtype), self.ref(src[1], count)], u.dtype
        else:
            dt = UOp(Ops.ADD, src).dtype if op in GroupOp.Comparison else u.dtype
            if dt.is_weak:
                dt = dtypes.int64 if dt.is_int else dtypes.float64
            refs = [self.ref(s, dt) for s in src]
        self.emit(f"{op.name} {dt.alias} {' '.join(refs)}", u)

    def define(self, u: UOp) -> None:
        arg = u.arg
        if arg.image is not None:
            raise ValueError(f"PYTHON has no images, got {arg}")
        if arg.addrspace is AddrSpace.ALU:
            line = f"scalar {arg.dtype.alias} {arg.name or arg.slot}"
        else:
            # the scratch arena is no argument: each work item has its own
            space = "reg" if u.op is Ops.PARAM and arg.name == "scratch" else _SPACES[arg.addrspace]
            line = f"storage {arg.dtype.alias} {space} {arg.slot} {arg.size or 1}"
        self.names[u] = name = self.fresh()
        self.head.append(f"{name} = {line}")

    def lane(self, u: UOp) -> None:
        order = u.src[1]
        lanes = [s.const_value for s in (order.src if order.op is Ops.STACK else (order,))]
        self.emit(f"lanes {self.ref(u.src[0])} {','.join(map(str, lanes))}", u)

    def place(self, u: UOp) -> str:
        """``storage index lanes`` of a place."""
        if u.op in (Ops.INDEX, Ops.SHRINK) and len(u.src) >= 2:
            lanes = u.src[2].const_value if u.op is Ops.SHRINK else 1
            return f"{self.names[u.src[0]]} {self.ref(u.src[1])} {lanes}"
        if _is_storage(u):
            return f"{self.names[u]} {self.literal(0, dtypes.int32)} {_lanes(u)}"
        raise ValueError(f"a place is INDEX or SHRINK over storage, got {u.op} over {[s.op.name for s in u.src]}")

    def load(self, u: UOp) -> None:
        gated = f" {self.ref(u.src[1], u.dtype)} {self.ref(u.src[2], dtypes.bool)}" if len(u.src) > 1 else ""
        self.emit(f"load {u.dtype.alias} {self.place(u.src[0])}{gated}", u)

    def store(self, u: UOp) -> None:
        dt = u.src[0].dtype
        gate = f" {self.ref(u.src[2], dtypes.bool)}" if len(u.src) > 2 else ""
        self.emit(f"store {dt.alias} {self.place(u.src[0])} {self.ref(u.src[1], dt)}{gate}")

    def conversion(self, u: UOp) -> None:
        src = u.src[0]
        if not u.is_const:
            word = "cast" if u.op is Ops.CAST else "bitcast"
            name = self.ref(src) if not src.dtype.is_weak else self.ref(src, src.dtype)
            self.emit(f"{word} {src.dtype.alias} {u.dtype.alias} {name}", u)

    def stack(self, u: UOp) -> None:
        if u.src and not u.dtype.is_weak:  # weak ones spell lanes and shapes
            self.emit(f"stack {u.dtype.alias} {' '.join(self.ref(s, u.dtype) for s in u.src)}", u)

    def range(self, u: UOp) -> None:
        if u.src[0].op is Ops.NOOP:
            self.emit("loop int endless", u)
        else:
            dt = dtypes.int32 if u.dtype.is_weak else u.dtype
            self.emit(f"loop {dt.alias} {self.ref(u.src[0], dt)}", u)

    def end(self, u: UOp) -> None:
        ranges = [s for s in u.src[1:] if s.op is Ops.RANGE]
        cond = [s for s in u.src[1:] if s.op is not Ops.RANGE]
        for r in sorted(ranges, key=lambda r: r.arg[:-1], reverse=True):
            until = f" {self.ref(cond[0], dtypes.bool)}" if cond and r.src[0].op is Ops.NOOP else ""
            self.emit(f"end {self.names[r]}{until}")


_HANDLERS: dict[Ops, Any] = {
    Ops.LOAD: _Writer.load, Ops.STORE: _Writer.store, Ops.CAST: _Writer.conversion, Ops.BITCAST: _Writer.conversion,
    Ops.STACK: _Writer.stack, Ops.RANGE: _Writer.range, Ops.END: _Writer.end,
    Ops.SPECIAL: lambda w, u: w.emit(f"special {(dtypes.int32 if u.dtype.is_weak else u.dtype).alias} {u.arg}", u),
    Ops.BARRIER: lambda w, u: w.emit("barrier"),
    Ops.IF: lambda w, u: w.emit(f"if {w.ref(u.src[0], dtypes.bool)}", u),
    Ops.ENDIF: lambda w, u: w.emit(f"endif {w.names[u.src[0]]}")}


# *** the device ***
class PythonAllocator(NpyAllocator):
    """Host memory; new memory is full of a pattern, so that reading what was never written shows."""

    def _alloc(self, size: int, options: BufferSpec) -> np.ndarray[Any, Any]:
        if options.external_ptr is not None:
            return super()._alloc(size, options)
        return np.full(size, 0 if options.zero else 0xA5, dtype=np.uint8)


class PythonDevice(Compiled):
    """The reference device."""

    program_class = PythonProgram

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        self.allocator = PythonAllocator(self)


def render_program(uops: Iterable[UOp]) -> str:
    """Text of a linear program."""
    return _Writer(list(uops)).text()
