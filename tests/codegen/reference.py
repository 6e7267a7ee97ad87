"""Reference evaluation of a kernel AST with numpy, and running of compiled kernels through ctypes.

A value is an array with one axis per RANGE of the kernel (length 1 where it does not depend on it), so the whole
iteration space is evaluated at once; every op is the one of ``tinyhost.uop.semantics``.
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tinyhost.codegen import to_program
from tinyhost.codegen.program import SCRATCH
from tinyhost.device.base import TinyELF
from tinyhost.device.builtin.interpreter import PythonProgram
from tinyhost.device.builtin.python import PythonRenderer
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import KernelInfo, Opt, OptOps, UOp
from tinyhost.uop.semantics import bitcast_np, carrier_np, cast_np, evaluate_np
from tinyhost_cpu.clang import ClangRenderer
from tinyhost_cpu.code import Segment

__all__ = ["KernelInfo", "Opt", "OptOps", "check", "evaluate", "renderer", "run"]


def renderer(level: str = "x86-64-v3") -> ClangRenderer:
    """The C renderer for a level of x86-64."""
    return ClangRenderer(Target("CPU", "CLANG", level))


class _Evaluator:
    def __init__(self, sink: UOp, buffers: list[np.ndarray]) -> None:
        self.buffers = [b.copy() for b in buffers]
        self.ranges = [u for u in sink.toposort() if u.op is Ops.RANGE]
        self.axis = {r: i for i, r in enumerate(self.ranges)}
        self.values: dict[UOp, Any] = {}
        for u in sink.toposort():
            self.values[u] = self.visit(u)

    def at(self, u: UOp) -> Any:
        return self.values[u]

    def visit(self, u: UOp) -> Any:
        op = u.op
        if op in (Ops.PARAM, Ops.SINK, Ops.END, Ops.GROUP):
            return None
        if op is Ops.CONST:
            kind = {int: np.int64, float: np.float64, bool: np.bool_}.get(type(u.arg), np.float64)
            return np.asarray(u.arg if not u.is_invalid else 0).astype(kind)
        if op is Ops.RANGE:
            n = int(u.src[0].const_value)
            shape = [1] * len(self.ranges)
            shape[self.axis[u]] = n
            return np.arange(n).reshape(shape)
        if op is Ops.INDEX:
            return self.load(u)
        if op is Ops.STORE:
            return self.store(u)
        if op is Ops.REDUCE:
            return self.reduce(u)
        if op is Ops.CAST:
            return cast_np(self.at(u.src[0]), u.src[0].dtype, u.arg)
        if op is Ops.BITCAST:
            return bitcast_np(self.at(u.src[0])[..., None], u.src[0].dtype, u.arg)[..., 0]
        dt = u.src[-1].dtype if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ) else u.dtype
        if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ):
            dt = next((s.dtype for s in u.src if not s.dtype.is_weak), dt)
        first = 1 if op is Ops.WHERE else 0
        args = [
            self.at(s) if i < first or s.dtype is dt else cast_np(self.at(s), s.dtype, dt) for i, s in enumerate(u.src)
        ]
        return evaluate_np(op, dt, *args)

    def load(self, u: UOp) -> Any:
        storage = u.src[0]
        buf = self.buffers[storage.arg.slot]
        idx = u.src[1]
        gate = self.at(idx.src[0]) if idx.op is Ops.WHERE and idx.src[2].is_invalid else np.asarray(True)
        at = np.asarray(self.at(idx.src[1] if idx.op is Ops.WHERE and idx.src[2].is_invalid else idx))
        inside = np.broadcast_to(gate, np.broadcast_shapes(gate.shape, at.shape))
        assert not inside.any() or ((at >= 0) & (at < buf.size) | ~inside).all(), "access out of bounds"
        return np.where(gate, buf[np.clip(at, 0, buf.size - 1)], buf.dtype.type(0))

    def store(self, u: UOp) -> None:
        place, value = u.src[0], self.at(u.src[1])
        buf = self.buffers[place.src[0].arg.slot]
        idx = place.src[1]
        gate = np.asarray(True)
        if idx.op is Ops.WHERE and idx.src[2].is_invalid:
            gate, idx = self.at(idx.src[0]), idx.src[1]
        at = np.asarray(self.at(idx))
        value = np.asarray(cast_np(value, u.src[1].dtype, place.dtype))
        at, value, gate = np.broadcast_arrays(at, value, gate)
        buf[at[gate]] = value[gate]

    def reduce(self, u: UOp) -> Any:
        op, x = u.arg[0], np.asarray(self.at(u.src[0]))
        axes = tuple(self.axis[r] for r in u.src[1:])
        shape = list(x.shape) if x.ndim else [1] * len(self.ranges)
        for r in u.src[1:]:
            shape[self.axis[r]] = int(r.src[0].const_value)
        x = np.broadcast_to(x, shape)
        carrier = carrier_np(u.dtype)
        if op is Ops.ADD:
            out = x.astype(np.float64 if u.dtype.is_float else x.dtype).sum(
                axes, keepdims=True, dtype=None if u.dtype.is_float else carrier
            )
            return out.astype(carrier) if u.dtype is not dtypes.bool else x.any(axes, keepdims=True)
        if op is Ops.MAX:
            return x.max(axes, keepdims=True)
        return x.prod(axes, keepdims=True, dtype=carrier)


def run_python(sink: UOp, buffers: list[np.ndarray], arch: str) -> tuple[list[np.ndarray], UOp]:
    """The buffers after the program for the PYTHON device, which checks each access and width."""
    r = PythonRenderer(Target("PYTHON", "LINEAR", arch))
    program = to_program(sink, r)
    info = program.arg
    out = [b.copy() for b in buffers]
    params = sorted(
        (u for u in program.src[1].src if u.op is Ops.PARAM and u.arg.slot in info.globals and u not in info.vars),
        key=lambda u: u.arg.slot,
    )
    signature = tuple((None, u.arg.slot, u.arg.dtype, u.arg.shape) for u in params) + tuple(
        (v.arg.name, v.arg.slot, v.arg.dtype, ()) for v in info.vars)
    loaded = PythonProgram(None, TinyELF(program.src[3].arg, "k", r.target, signature))
    loaded(*[out[u.arg.slot].view(np.uint8) for u in params], global_size=info.global_size, local_size=info.local_size,
           vals=tuple(None if v.arg.name == "core_id" else 0 for v in info.vars))
    return out, program


def evaluate(sink: UOp, buffers: list[np.ndarray]) -> list[np.ndarray]:
    """The buffers (by slot) after the kernel."""
    return _Evaluator(sink, buffers).buffers


def run(sink: UOp, buffers: list[np.ndarray], r: ClangRenderer | None = None) -> tuple[list[np.ndarray], UOp]:
    """The buffers after the compiled kernel, and its program."""
    program = to_program(sink, r or renderer())
    info = program.arg
    segment = Segment(program.src[3].arg)
    out = [b.copy() for b in buffers]
    scratch = np.zeros(max(info.scratch, 1), np.uint8)
    args = [b.ctypes.data for i, b in enumerate(out) if i in info.globals]
    if any(u.op is Ops.PARAM and u.arg.name == SCRATCH for u in program.src[1].src):
        args.append(scratch.ctypes.data)
    kinds = [ctypes.c_void_p] * len(args) + [
        ctypes.c_int64 if v.dtype.itemsize > 4 else ctypes.c_int for v in info.vars
    ]
    call = ctypes.CFUNCTYPE(None, *kinds)(segment.address)
    for core in range(info.global_size[0]):
        call(*args, *[core if v.arg.name == "core_id" else 0 for v in info.vars])
    return out, program


def check(sink: UOp, buffers: list[np.ndarray], level: str = "x86-64-v3", tol: float = 2e-5) -> UOp:
    """Compare the compiled kernel with the reference; its program. "PYTHON:..." runs on the reference device."""
    want = evaluate(sink, buffers)
    device, _, arch = level.partition(":")
    got, program = run_python(sink, buffers, arch) if device == "PYTHON" else run(sink, buffers, renderer(level))
    for slot in program.arg.outs:
        a, b = want[slot], got[slot]
        if a.dtype.kind == "f":
            scale = np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)), initial=1.0)
            np.testing.assert_allclose(b, a, rtol=tol, atol=tol * scale, err_msg=program.src[2].arg)
        else:
            np.testing.assert_array_equal(b, a, err_msg=program.src[2].arg)
    return program
