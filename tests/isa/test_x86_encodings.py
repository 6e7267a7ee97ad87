"""Exact bytes of instructions given as INS nodes over physical registers."""

from __future__ import annotations

import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import GPR, RAX, RBP, RDI, RDX, RSI, RSP, XMM, X86Ops, X86Renderer, def_reg, imm

RENDERER = X86Renderer(Target("CPU", "X86", "x86-64-v3"))
i8, i16, i32, i64, u64, f32 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint64, dtypes.float32
NO_INDEX = UOp(Ops.NOOP)


def ins(op: object, dtype: DType, *src: UOp, tag: object = None) -> UOp:
    return UOp(Ops.INS, src, (op, dtype), tag)


def memory(
    base: object, index: object = None, scale: int = 1, disp: int = 0, access: DType = i32, wide: bool = False
) -> tuple[UOp, ...]:
    where = NO_INDEX if index is None else def_reg(u64, index)
    return def_reg(u64, base), where, imm(i32 if wide else i8, disp), imm(access, scale)


def r32(reg: object) -> UOp:
    return def_reg(i32, reg)


XMM0, XMM1, XMM2, XMM8 = (def_reg(f32, XMM[i]) for i in (0, 1, 2, 8))
CASES = {
    "mov edi, [rdi]": (ins(X86Ops.MOV, i32, *memory(RDI), tag=RDI), "8B 3F"),
    "mov esp, [rsp]": (ins(X86Ops.MOV, i32, *memory(RSP), tag=RSP), "8B 24 24"),
    "mov ebp, [rbp+0]": (ins(X86Ops.MOV, i32, *memory(RBP), tag=RBP), "8B 6D 00"),
    "mov eax, [rax+rdx*4]": (ins(X86Ops.MOV, i32, *memory(RAX, RDX, 4), tag=RAX), "8B 04 90"),
    "index rsp means none": (ins(X86Ops.MOV, i32, *memory(RAX, RSP, 4), tag=RAX), "8B 00"),
    "mov eax, [rax+r12*4]": (ins(X86Ops.MOV, i32, *memory(RAX, GPR[12], 4), tag=RAX), "42 8B 04 A0"),
    "mov edi, [rdi+rsi*4+0xa]": (ins(X86Ops.MOV, i32, *memory(RDI, RSI, 4, 10), tag=RDI), "8B 7C B7 0A"),
    "mov edi, [rdi+rsi*4+0x2710]": (
        ins(X86Ops.MOV, i32, *memory(RDI, RSI, 4, 10000, wide=True), tag=RDI),
        "8B BC B7 10 27 00 00",
    ),
    "movsx eax, dl": (ins(X86Ops.MOVSX, i32, def_reg(i8, RDX), tag=RAX), "0F BE C2"),
    "movsx eax, dil": (ins(X86Ops.MOVSX, i32, def_reg(i8, RDI), tag=RAX), "40 0F BE C7"),
    "movsx ax, dl": (ins(X86Ops.MOVSX, i16, def_reg(i8, RDX), tag=RAX), "66 0F BE C2"),
    "movsx rax, dl": (ins(X86Ops.MOVSX, i64, def_reg(i8, RDX), tag=RAX), "48 0F BE C2"),
    "vaddss xmm0, xmm0, xmm1": (ins(X86Ops.VADDSS, f32, XMM0, XMM1, tag=XMM[0]), "C5 FA 58 C1"),
    "vaddss xmm0, xmm0, xmm8": (ins(X86Ops.VADDSS, f32, XMM0, XMM8, tag=XMM[0]), "C4 C1 7A 58 C0"),
    "vblendvps xmm0, xmm0, xmm1, xmm2": (ins(X86Ops.VBLENDVPS, f32, XMM0, XMM1, XMM2, tag=XMM[0]), "C4 E3 79 4A C1 20"),
    "vpextrd [rdi+rsi*4+0xa], xmm0, 0": (
        ins(X86Ops.VPEXTRD, dtypes.void, *memory(RDI, RSI, 4, 10), XMM0, imm(i8, 0)),
        "C4 E3 79 16 44 B7 0A 00",
    ),
    "cmove eax, [rdi+rsi*4+0xa]": (
        ins(X86Ops.CMOVE, i32, r32(RAX), *memory(RDI, RSI, 4, 10), tag=RAX),
        "0F 44 44 B7 0A",
    ),
    "mov byte [rdi+rsi+0xa], 0xa": (
        ins(X86Ops.MOV, dtypes.void, *memory(RDI, RSI, 1, 10, i8), imm(i8, 10)),
        "40 C6 44 37 0A 0A",
    ),
    "imul edi, [rdi+rsi*4+0xa], 0xa": (
        ins(X86Ops.IMUL, i32, *memory(RDI, RSI, 4, 10, wide=True), imm(i32, 10), tag=RDI),
        "69 BC B7 0A 00 00 00 0A 00 00 00",
    ),
    "cmove edx, eax, flags ignored": (
        ins(X86Ops.CMOVE, i32, r32(RDX), r32(RAX), ins(X86Ops.CMP, dtypes.void, r32(RAX), r32(RDX)), tag=RDX),
        "0F 44 D0",
    ),
    "vaddps ymm0, ymm1, ymm2": (
        UOp(Ops.INS, tuple(def_reg(f32, XMM[i], 8) for i in (1, 2)), (X86Ops.VADDPS, f32, 8), XMM[0]),
        "C5 F4 58 C2",
    ),
    "vfmadd231ps ymm0, ymm1, [rdi]": (
        UOp(
            Ops.INS,
            (def_reg(f32, XMM[0], 8), def_reg(f32, XMM[1], 8), *memory(RDI, access=f32)),
            (X86Ops.VFMADD231PS, f32, 8),
            XMM[0],
        ),
        "C4 E2 75 B8 07",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes(name: str) -> None:
    node, want = CASES[name]
    assert RENDERER.render([node]) == bytes.fromhex(want).hex()


def test_tag_may_be_a_tuple() -> None:
    node = ins(X86Ops.VADDSS, f32, XMM0, XMM1, tag=(XMM[0],))
    assert RENDERER.render([node]) == "c5fa58c1"


def test_text() -> None:
    nodes = [CASES["imul edi, [rdi+rsi*4+0xa], 0xa"][0], CASES["vaddps ymm0, ymm1, ymm2"][0]]
    assert RENDERER.asm_text(nodes) == "imul edi, dword ptr [rdi+rsi*4+0xa], 0xa\nvaddps ymm0, ymm1, ymm2"


def test_a_virtual_register_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"needs physical registers, got tag 3 on X86Ops.MOV"):
        RENDERER.render([ins(X86Ops.MOV, i32, *memory(RDI), tag=3)])


def test_compiler_refuses_other_text() -> None:
    with pytest.raises(RuntimeError, match="machine code must be hex text, got 'ret'"):
        RENDERER.compiler.compile("ret")


def test_opcodes_are_values() -> None:
    import pickle

    assert pickle.loads(pickle.dumps(X86Ops.VADDPS)) is X86Ops.VADDPS
    assert repr(X86Ops.VADDPS) == "X86Ops.VADDPS" and X86Ops.ADD < X86Ops.VADDPS
    assert X86Ops.DEFINE.number > max(Ops)
