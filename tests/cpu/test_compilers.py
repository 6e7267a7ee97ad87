"""Renderers that leave selection to a compiler: levels, the C driver, flat images, C and LLVM text."""
from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.counting import calls
from tinyhost.codegen import to_program
from tinyhost.device.base import TinyELF
from tinyhost.dtype import dtypes
from tinyhost.env import Context
from tinyhost.errors import CompileError, RendererUnavailable, TargetError
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import KernelInfo, UOp
from tinyhost_cpu import ccompiler
from tinyhost_cpu.ccompiler import CCompiler, abilities, find_compiler
from tinyhost_cpu.clang import ClangRenderer, missing
from tinyhost_cpu.code import Segment
from tinyhost_cpu.levels import Level, default_level, parse_level

needs_c = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a C compiler")
COMPILERS = [c for c in ("clang", "gcc") if shutil.which(c)]


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest):
    """Each C compiler of this machine."""
    with Context(CC=request.param):
        yield CCompiler(parse_level(""))


def call(image: bytes, *args: object) -> None:
    segment = Segment(image)
    ctypes.CFUNCTYPE(None)(segment.address)(*args)


# *** levels ***
def test_levels_and_features() -> None:
    assert parse_level("").name == parse_level("native").name == default_level()
    level = parse_level("x86-64-v3, -fma,+sse4_1")
    assert level == Level("x86-64-v3", (("fma", False), ("sse4.1", True)))
    assert not level.has("fma") and level.has("f16c")
    assert level.lacking_ops == {Ops.MULACC} and not level.capabilities().fma
    assert parse_level("x86-64").lacking_ops == {Ops.MULACC, Ops.TRUNC}
    assert dtypes.float16 not in parse_level("x86-64-v2").capabilities().dtypes
    assert parse_level("x86-64-v4").vector_bytes == 64 and not parse_level("arm64").is_x86


def test_levels_that_are_none() -> None:
    with pytest.raises(RendererUnavailable, match="no compiler target for arch 'sparc': the levels are .*arm64"):
        parse_level("sparc")
    with pytest.raises(TargetError, match="feature 'fma' in arch 'x86-64-v3,fma' has no sign"):
        parse_level("x86-64-v3,fma")


# *** the driver ***
def test_a_compiler_that_is_not_there() -> None:
    with pytest.raises(RendererUnavailable, match="no C compiler: looked for no-such-cc -m64 on PATH; install"):
        find_compiler("no-such-cc -m64")
    with Context(CC="no-such-cc"):
        assert missing().startswith("no C compiler: looked for no-such-cc")
        with pytest.raises(RendererUnavailable, match="no-such-cc"):
            ClangRenderer(Target("CPU", "CLANG", ""))


def test_a_program_that_is_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "fake-cc"
    script.write_text("#!/bin/sh\necho 'wrong file' >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(RendererUnavailable, match="fake-cc is no C compiler: wrong file; set CC to one"):
        abilities((str(script),))
    script.chmod(0o644)
    with pytest.raises(RendererUnavailable, match="fake-cc does not run: .*denied.*; set CC to a C compiler"):
        abilities((str(script),))


def test_the_first_compiler_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ccompiler.shutil, "which", lambda name: f"/usr/bin/{name}" if name in ("gcc", "cc") else None)
    find_compiler.cache_clear()
    assert find_compiler("") == ("gcc",)
    find_compiler.cache_clear()


def test_text_that_is_no_c(compiler: CCompiler) -> None:
    with pytest.raises(CompileError, match=r"(clang|gcc) rejected the program:\n(.|\n)*error(.|\n)*source:\nint int"):
        compiler.compile("int int")


def test_kernels_call_no_library(compiler: CCompiler) -> None:
    source = '__attribute__((section(".text.entry"))) void f(void) { extern void puts(char*); puts("x"); }'
    with pytest.raises(CompileError, match="the kernel needs the symbol puts, and kernels are linked against nothing"):
        compiler.compile(source)
    with pytest.raises(CompileError, match="the object has no section .text.entry"):
        compiler.compile("void f(void) {}")


def test_tables_and_helpers_move_with_the_code(compiler: CCompiler) -> None:
    source = """static const int table[4] = {3, 1, 4, 1};
    __attribute__((noinline)) static int twice(int x) { __asm__(""); return x * 2; }
    __attribute__((section(".text.entry"))) void f(int* out, int n) {
      for (int i = 0; i < n; i++) out[i] = twice(table[(i * 7) & 3]) + 1000000007;
    }"""
    out = np.zeros(5, np.int32)
    call(compiler.compile(source), ctypes.c_void_p(out.ctypes.data), ctypes.c_int(5))
    assert out.tolist() == [2 * v + 1000000007 for v in (3, 1, 4, 1, 3)]


def test_the_key_names_compiler_flags_and_level() -> None:
    keys = set()
    for name in COMPILERS:
        with Context(CC=name):
            keys |= {CCompiler(parse_level(arch)).cachekey for arch in ("x86-64", "x86-64-v3", "x86-64-v3,-fma")}
    assert len(keys) == 3 * len(COMPILERS)


# *** C text ***
@needs_c
def test_masks_of_long_chains_are_cheap() -> None:
    """Each comparison is used twice: a walk per use would never end."""
    n = 64
    x = UOp.param(1, dtypes.float32, n).index(UOp.range(n, 0))
    mask = UOp(Ops.CMPLT, (x, UOp.const(0.5, dtypes.float32)))
    for i in range(200):
        other = UOp(Ops.CMPLT, (x, UOp.const(i * 0.01, dtypes.float32)))
        mask = UOp(Ops.XOR, (UOp(Ops.AND, (mask, other)), UOp(Ops.OR, (mask, other))))
    store = UOp.param(0, dtypes.bool, n).index(UOp.range(n, 0)).store(mask)
    renderer = ClangRenderer(Target("CPU", "CLANG", ""))
    kernel = store.end(UOp.range(n, 0)).sink(arg=KernelInfo())
    program = kernel

    def compiled() -> None:
        nonlocal program
        program = to_program(kernel, renderer)
    assert calls(compiled) < 500_000
    assert renderer.masks == {}  # a rendering leaves nothing behind
    assert "charx64" in program.src[2].arg or "intx" in program.src[2].arg


@needs_c
@pytest.mark.parametrize("half", [True, False])
def test_half_follows_the_compiler(half: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without _Float16 half is emulated: kernels see uint16."""
    found = abilities(find_compiler(""))
    monkeypatch.setattr("tinyhost_cpu.clang.abilities", lambda command: type(found)(**{**found.__dict__, "half": half}))
    renderer = ClangRenderer(Target("CPU", "CLANG", "x86-64-v3"))
    assert (dtypes.float16 in renderer.caps.dtypes) is half


# *** LLVM text ***
def test_text_that_is_no_llvm() -> None:
    llvm = pytest.importorskip("tinyhost_cpu.llvm")
    if llvm.missing():
        pytest.skip(llvm.missing())
    compiler = llvm.LLVMCompiler(parse_level(""))
    with pytest.raises(CompileError, match=r"LLVM rejected the program: (.|\n)*define nonsense"):
        compiler.compile("define nonsense")
    assert len({llvm.LLVMCompiler(parse_level(a)).cachekey for a in ("x86-64-v2", "x86-64-v3", "x86-64-v3,-fma")}) == 3


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v3,-fma", "arm64"])
def test_llvm_compiles_for_levels_of_other_machines(level: str) -> None:
    llvm = pytest.importorskip("tinyhost_cpu.llvm")
    if llvm.missing():
        pytest.skip(llvm.missing())
    n, i = 48, UOp.range(48, 0)
    x = UOp.param(1, dtypes.float32, n).index(i)
    value = UOp(Ops.TRUNC, (UOp(Ops.SQRT, (x,)),)) * 3.0
    store = UOp.param(0, dtypes.float32, n).index(i).store(value)
    program = to_program(store.end(i).sink(arg=KernelInfo()), llvm.LLVMRenderer(Target("CPU", "LLVM", level)))
    assert isinstance(program.arg.function_name, str) and len(program.src[3].arg) > 16
    assert TinyELF(program.src[3].arg, "k", Target("CPU", "LLVM", level), ()).lib
