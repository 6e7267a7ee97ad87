"""VEX forms and their EVEX twins run side by side: on equal registers and memory they leave equal results."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest
from x86_decoding import MEMORY, Operands, plain

from tinyhost_cpu.code import Segment
from tinyhost_cpu.x86.caps import host_features, level_features
from tinyhost_cpu.x86.encode import Imm, Mem, Reg, assemble, encode
from tinyhost_cpu.x86.insns import GPR_KINDS, R64, VEC_KINDS, YMM, Form, X86Ops

RDI, RSI = 7, 6  # inputs, results
RESULT = 64  # bytes that a form may leave: 32 of a vector or general register, 32 of memory
FORMS = [form for op in X86Ops if op.lines for form in op.forms if form.twin]


def operands(form: Form, rng: random.Random) -> Operands:
    """Operand i in register i, general ones in r8 upwards; memory at the inputs, a destination at the results."""
    out: Operands = []
    for position, spec in enumerate(form.explicit):
        if spec.kinds & MEMORY and (not spec.kinds & (VEC_KINDS | GPR_KINDS) or rng.random() < 0.5):
            out.append(Mem(RDI if spec.access == "R" else RSI, disp=32 * (spec.access != "R"), bits=spec.bits))
        elif spec.kinds & VEC_KINDS:
            out.append(Reg(spec.kinds & VEC_KINDS, position))
        elif spec.kinds & GPR_KINDS:
            out.append(Reg(spec.kinds & GPR_KINDS, 8 + position))
        else:
            out.append(Imm(rng.randrange(16 if form.op.name.startswith("VROUND") else 128), 8))
    return out


def run_once(form: Form, ops: Operands, base: int) -> bytes:
    """Code that loads the operands, with vectors in registers from ``base``, runs ``form`` and keeps the results."""
    moved = [Reg(o.kind, o.num + base) if isinstance(o, Reg) and o.kind & VEC_KINDS else o for o in ops]
    code = b""
    for position, o in enumerate(moved):
        if isinstance(o, Reg) and o.kind & VEC_KINDS:
            code += encode(X86Ops.VMOVUPS, Reg(YMM, o.num), Mem(RDI, disp=32 * position))
        elif isinstance(o, Reg):
            code += encode(X86Ops.MOV, Reg(R64, o.num), Mem(RDI, disp=32 * position, bits=64))
    code += assemble(form, plain(moved))
    if isinstance(first := moved[0], Reg) and first.kind & VEC_KINDS:
        code += encode(X86Ops.VMOVUPS, Mem(RSI), Reg(YMM, first.num))
    elif isinstance(first, Reg):
        code += encode(X86Ops.MOV, Mem(RSI, bits=64), Reg(R64, first.num))
    return code + encode(X86Ops.ADD, Reg(R64, RSI), Imm(RESULT))


def aligned(size: int) -> np.ndarray:
    """``size`` zero bytes from a multiple of 64, as aligned moves ask."""
    area = np.zeros(size + 64, np.uint8)
    return area[-area.ctypes.data % 64 :][:size]


def data(rng: np.random.Generator, kind: int) -> np.ndarray:
    """Inputs: floats of moderate size, doubles, or any bits."""
    if kind == 0:
        return (rng.standard_normal(64) * 100).astype(np.float32).view(np.uint8)
    return (rng.standard_normal(32) * 100).view(np.uint8) if kind == 1 else rng.integers(0, 256, 256, np.uint8)


@pytest.mark.skipif(bool(level_features("x86-64-v4") - host_features()), reason="this processor lacks AVX-512")
def test_twins_leave_the_same_results() -> None:
    rng = random.Random(3)
    cases = [(form, operands(form, rng)) for form in FORMS for _ in range(3)]
    body = b"".join(run_once(form, ops, base) for form, ops in cases for base in (0, 16))
    code = Segment(body + encode(X86Ops.VZEROUPPER) + encode(X86Ops.RET))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address)
    numbers = np.random.default_rng(3)
    for turn in range(6):
        inputs, results = aligned(256), aligned(len(cases) * 2 * RESULT).reshape(len(cases), 2, RESULT)
        inputs[:] = data(numbers, turn % 3)
        function(inputs.ctypes.data, results.ctypes.data)
        different = np.flatnonzero((results[:, 0] != results[:, 1]).any(axis=1))
        assert not different.size, [cases[i] for i in different[:5]]
        assert results.any(axis=(1, 2)).mean() > 0.9
