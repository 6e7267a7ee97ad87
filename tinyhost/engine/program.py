"""Programs: a kernel graph becomes loaded code through three caches, this process's, the disk's, the compiler.

Takes a kernel's SINK and a device name; gives a ``Kernel`` with the loaded program. The disk key holds everything that
changes the code: canonical kernel, target with its capabilities, context variables marked ``codegen``, versions.
Kernels that differ in names or buffer slots only are one entry because the scheduler numbers both canonically.
"""
from __future__ import annotations

import time
from dataclasses import dataclass
from threading import RLock
from typing import Any

from tinyhost.codegen import to_program
from tinyhost.device import Device, Program, TinyELF, renderer_of
from tinyhost.engine import codec, diskcache
from tinyhost.engine.version import code_version
from tinyhost.env import CCACHE, DEBUG, PROFILE, codegen_values
from tinyhost.helpers import ansistrip
from tinyhost.ops import AddrSpace, Ops
from tinyhost.plugin.hooks import hooks
from tinyhost.profiling import cpu_profile, record_program
from tinyhost.renderer.base import Renderer
from tinyhost.uop import ProgramInfo, UOp


@dataclass(frozen=True)
class Kernel:
    """Compiled code with what a launch needs."""

    info: ProgramInfo
    elf: TinyELF
    source: str


_kernels: dict[Any, Kernel] = {}
_loaded: dict[Any, Program] = {}
_lock = RLock()


@dataclass
class CompileCounters:
    """How many kernels this process lowered and compiled itself."""

    compiled: int = 0


counters = CompileCounters()


def reset() -> None:
    """Forget compiled and loaded kernels."""
    with _lock:
        _kernels.clear()
        _loaded.clear()
        counters.compiled = 0


def signature_of(program: UOp) -> tuple[tuple[str | None, int, Any, tuple[int, ...]], ...]:
    """Arguments in call order: storage by slot, then scalars. Storage with a name is the kernel's scratch arena."""
    info: ProgramInfo = program.arg
    storage = sorted({u for u in program.src[1].src if u.op is Ops.PARAM and u.arg.addrspace is AddrSpace.GLOBAL},
                     key=lambda u: u.arg.slot)
    names = [None if u.arg.slot in info.globals else u.arg.name for u in storage]
    return (*((name, u.arg.slot, u.arg.dtype, (u.arg.size,)) for name, u in zip(names, storage)),
            *((v.arg.name, v.arg.slot, v.arg.dtype, ()) for v in info.vars))


def _compile(ast: UOp, renderer: Renderer) -> Kernel:
    start = time.perf_counter()
    target = renderer.target
    with cpu_profile("codegen", category="codegen") as event:
        program = to_program(ast, renderer, lambda stage: hooks().call("tinyhost_rewrites", stage=stage, target=target))
        if event is not None:
            event.args["kernel"] = ansistrip(program.arg.name)
    counters.compiled += 1
    info: ProgramInfo = program.arg
    source, binary = program.src[2].arg, program.src[3].arg
    hooks().call("tinyhost_kernel_compiled", name=info.name, target=renderer.target, source=source, binary=binary,
                 seconds=time.perf_counter() - start)
    return Kernel(info, TinyELF(binary, info.function_name, renderer.target, signature_of(program)), source)


def _disk_key(ast: UOp, renderer: Renderer, salts: tuple[str, ...]) -> str:
    target = f"{type(renderer).__qualname__}|{renderer.target}|{renderer.caps.text}|{renderer.compiler.cachekey}"
    return f"{ast.key.hex()}|{target}|{codegen_values()}|{code_version(renderer)}|{salts}"


def _to_bytes(k: Kernel) -> bytes:
    return codec.encode((k.info, k.elf.lib, k.elf.name, k.elf.target, k.elf.signature, k.source))


def _from_bytes(data: bytes) -> Kernel:
    info, lib, name, target, signature, source = codec.decode(data)
    return Kernel(info, TinyELF(lib, name, target, signature), source)


def get_kernel(ast: UOp, device: str) -> Kernel:
    """Compiled code of a kernel for ``device``, from the nearest cache."""
    renderer = renderer_of(device)
    salts = tuple(hooks().call("tinyhost_cache_salt", target=renderer.target))
    key = (ast, type(renderer), renderer.target, codegen_values(), salts)
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    cached = CCACHE.value and renderer.compiler.cachekey is not None
    disk_key = _disk_key(ast, renderer, salts) if cached else ""
    data = diskcache.get("program", disk_key) if cached else None
    if data is not None:
        try:
            kernel = _from_bytes(data)
        except ValueError:
            diskcache.damaged("program", disk_key)
    if kernel is None:
        kernel = _compile(ast, renderer)
        if cached:
            diskcache.put("program", disk_key, _to_bytes(kernel))
    if DEBUG.value >= 4:
        print(kernel.source)
    with _lock:
        return _kernels.setdefault(key, kernel)


def get_program(kernel: Kernel, device: str) -> Program:
    """The kernel loaded on ``device``."""
    key = (kernel.elf.lib, kernel.elf.name, kernel.elf.signature, device)
    program = _loaded.get(key)
    if program is None:
        program = Device[device].load(kernel.elf)
        if PROFILE.value:
            record_program(device, ansistrip(kernel.info.name), kernel.elf.lib)
        with _lock:
            program = _loaded.setdefault(key, program)
    return program
