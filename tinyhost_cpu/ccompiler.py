"""The driver of clang or gcc: C text in, one flat image of machine code out.

Everything that changes the output is in the cache key: version, flags, level. What the compiler can do is asked of its
preprocessor once a process.
"""
from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tinyhost.env import CC
from tinyhost.errors import CompileError, RendererUnavailable
from tinyhost.renderer.base import Compiler, source_key
from tinyhost_cpu.levels import Level
from tinyhost_cpu.relocate import flat_image

_PROBE = """
#if defined __clang__
clang
#endif
#if __clang_major__ >= 16
excess
#endif
#if defined __aarch64__ || __clang_major__ >= 15 || (defined __FLT16_MANT_DIG__ && !defined __clang__)
half
#endif
#if defined __has_builtin
#if __has_builtin(__builtin_elementwise_fma) && __has_builtin(__builtin_elementwise_sqrt)
elementwise
#endif
#endif
"""


@dataclass(frozen=True)
class Abilities:
    """What a C compiler is and has."""

    version: str
    clang: bool  # it is clang, not gcc
    half: bool  # _Float16 on every level
    elementwise: bool  # vector builtins of fma and sqrt
    excess: bool  # knows -ffloat16-excess-precision


@lru_cache
def find_compiler(wanted: str) -> tuple[str, ...]:
    """The C compiler's command: ``wanted`` (the variable CC), else clang, else gcc.

    Raises:
        RendererUnavailable: there is none.
    """
    candidates = [wanted] if wanted else ["clang", "gcc", "cc"]
    for command in candidates:
        parts = shlex.split(command)
        if parts and shutil.which(parts[0]):
            return tuple(parts)
    raise RendererUnavailable(f"no C compiler: looked for {', '.join(candidates)} on PATH; install clang or gcc, "
                              "or set CC")


@lru_cache
def abilities(command: tuple[str, ...]) -> Abilities:
    """What the compiler of that command is.

    Raises:
        RendererUnavailable: it does not run, or is no C compiler.
    """
    try:
        done = subprocess.run([*command, "-v", "-E", "-P", "-x", "c", "-"], input=_PROBE, capture_output=True,
                              text=True, check=False)
    except OSError as e:
        raise RendererUnavailable(f"{shlex.join(command)} does not run: {e}; set CC to a C compiler") from e
    if done.returncode:
        raise RendererUnavailable(f"{shlex.join(command)} is no C compiler: {done.stderr.strip()[-200:]}; "
                                  "set CC to one")
    words = set(done.stdout.split())
    version = next((line for line in done.stderr.splitlines() if " version " in line), "")
    return Abilities(version, *(name in words for name in ("clang", "half", "elementwise", "excess")))


class CCompiler(Compiler):
    """clang or gcc as a filter: C on stdin, a flat image out; no file is left behind."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.command = find_compiler(CC.value)
        self.abilities = abilities(self.command)
        super().__init__(f"cc_{source_key(self.abilities.version, *self.flags())}")

    def _machine_flags(self) -> list[str]:
        level = self.level
        if not level.is_x86:
            return ["-fno-plt"]
        wide = ["-mprefer-vector-width=512"] if level.vector_bytes == 64 else []
        changes = [f"-m{'' if there else 'no-'}{name}" for name, there in level.changes]
        return [f"-march={level.name}", *changes, *wide, "-fcf-protection=none"]

    def flags(self) -> list[str]:
        """Everything that changes the output."""
        if self.abilities.clang:
            own = ["-ffloat16-excess-precision=none"] if self.abilities.excess else []
        else:
            own = ["-fexcess-precision=standard", "-fno-tree-loop-distribute-patterns", "-Wno-psabi"]
        return ["-O2", *self._machine_flags(), *own, "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                "-fwrapv", "-fno-strict-aliasing", "-ffreestanding", "-fno-builtin", "-fPIC", "-fvisibility=hidden",
                "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-std=gnu11", "-nostdlib", "-w"]

    def compile(self, src: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="tinyhost-cc-") as folder:
            path = Path(folder) / "kernel.o"
            command = [*self.command, *self.flags(), "-x", "c", "-c", "-", "-o", str(path)]
            done = subprocess.run(command, input=src.encode(), capture_output=True, check=False)
            if done.returncode:
                raise CompileError(f"{shlex.join(self.command)} rejected the program:\n"
                                   f"{done.stderr.decode(errors='replace')}\nsource:\n{src}")
            return flat_image(path.read_bytes())

    def disassemble(self, lib: bytes) -> str:
        if not shutil.which("objdump"):
            return super().disassemble(lib)
        machine = "i386:x86-64" if self.level.is_x86 else "aarch64"
        with tempfile.TemporaryDirectory(prefix="tinyhost-cc-") as folder:
            path = Path(folder) / "kernel.bin"
            path.write_bytes(lib)
            done = subprocess.run(["objdump", "-D", "-b", "binary", "-m", machine, "--no-show-raw-insn", str(path)],
                                  capture_output=True, text=True, check=False)
        return done.stdout or super().disassemble(lib)
