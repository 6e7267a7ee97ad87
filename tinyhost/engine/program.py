"""Programs: a kernel graph becomes loaded code through three caches, this process's, the disk's, the compiler.

Takes a kernel's SINK and a device name; gives a ``Kernel`` with the loaded program. The disk key holds everything that
changes the code: canonical kernel, target with its capabilities, context variables marked ``codegen``, versions.
Kernels that differ in names or buffer slots only are one entry because the scheduler numbers both canonically.

The disk has one entry for each kernel, for whichever schedule asks for it, and one for all kernels of a schedule: a
second process reads a training step as one file and computes no key of a kernel.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from threading import RLock
from typing import TYPE_CHECKING, Any

from tinyhost.device import Device, Program, TinyELF, renderer_of
from tinyhost.engine import codec, diskcache
from tinyhost.engine.parallel import helpers_for, share
from tinyhost.engine.version import code_version
from tinyhost.env import BEAM, CCACHE, DEBUG, PROFILE, TRACK_MATCH_STATS, codegen_values
from tinyhost.helpers import ansistrip
from tinyhost.ops import AddrSpace, Ops
from tinyhost.plugin.hooks import hooks
from tinyhost.profiling import cpu_profile, record_program
from tinyhost.renderer.base import Renderer
from tinyhost.target import Target
from tinyhost.uop import ProgramInfo, UOp

if TYPE_CHECKING:
    from tinyhost.codegen.program import Rewrites

_SECONDS = Struct("<d")  # how long a helper took
SEVERAL = 4  # kernels of one schedule that are looked for together

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
    """How many kernels this process lowered and compiled, and how many of them helper processes did for it."""

    compiled: int = 0
    helped: int = 0


counters = CompileCounters()


def reset() -> None:
    """Forget compiled and loaded kernels."""
    with _lock:
        _kernels.clear()
        _loaded.clear()
        counters.compiled = counters.helped = 0


def signature_of(program: UOp) -> tuple[tuple[str | None, int, Any, tuple[int, ...]], ...]:
    """Arguments in call order: storage by slot, then scalars. Storage with a name is the kernel's scratch arena."""
    info: ProgramInfo = program.arg
    storage = sorted({u for u in program.src[1].src if u.op is Ops.PARAM and u.arg.addrspace is AddrSpace.GLOBAL},
                     key=lambda u: u.arg.slot)
    names = [None if u.arg.slot in info.globals else u.arg.name for u in storage]
    return (*((name, u.arg.slot, u.arg.dtype, (u.arg.size,)) for name, u in zip(names, storage)),
            *((v.arg.name, v.arg.slot, v.arg.dtype, ()) for v in info.vars))


def _elf(program: UOp) -> TinyELF:
    info: ProgramInfo = program.arg
    return TinyELF(program.src[3].arg, info.function_name, info.target, signature_of(program))


def _rewrites(target: Target) -> Rewrites:
    return lambda stage: hooks().call("tinyhost_rewrites", stage=stage, target=target)


def _compile(ast: UOp, renderer: Renderer) -> Kernel:
    from tinyhost.codegen import to_program  # a process with a warm disk cache needs no code generation
    with cpu_profile("codegen", category="codegen") as event:
        program = to_program(ast, renderer, _rewrites(renderer.target))
        if event is not None:
            event.args["kernel"] = ansistrip(program.arg.name)
    return Kernel(program.arg, _elf(program), program.src[2].arg)


def _to_bytes(k: Kernel) -> bytes:
    return codec.encode((k.info, k.elf.lib, k.elf.name, k.elf.target, k.elf.signature, k.source))


def _from_bytes(data: bytes) -> Kernel:
    info, lib, name, target, signature, source = codec.decode(data)
    return Kernel(info, TinyELF(lib, name, target, signature), source)


class _Wanted:
    """A kernel that is asked for, and its keys."""

    def __init__(self, ast: UOp, device: str) -> None:
        self.ast, self.device = ast, device
        self.renderer = renderer_of(device)
        self.salts = tuple(hooks().call("tinyhost_cache_salt", target=self.renderer.target))
        self.key = ast, type(self.renderer), self.renderer.target, codegen_values(), self.salts
        self.data: bytes | None = None  # the kernel as the disk has it

    @property
    def on_disk(self) -> bool:
        """Whether it may be in the disk cache."""
        return bool(CCACHE.value) and self.renderer.compiler.cachekey is not None and diskcache.enabled()

    @cached_property
    def target_key(self) -> str:
        """What code for its device depends on, beside the kernel."""
        r = self.renderer
        target = f"{type(r).__qualname__}|{r.target}|{r.caps.text}|{r.compiler.cachekey}"
        return f"{target}|{codegen_values()}|{code_version(r)}|{self.salts}"

    @cached_property
    def disk_key(self) -> str:
        """Its key on the disk."""
        return f"{self.ast.key.hex()}|{self.target_key}"

    def read(self) -> Kernel | None:
        """Its entry of the disk cache."""
        return _decoded("program", self.disk_key, _from_bytes) if self.on_disk else None

    def make(self) -> Kernel:
        """Compile it, perhaps after a search for its best form, and put it on the disk."""
        ast, renderer = self.ast, self.renderer
        if BEAM.value:
            from tinyhost.engine import search
            ast = search.searched(ast, renderer, _rewrites(renderer.target), self.device,
                                  lambda program: Device[self.device].load(_elf(program)), self.disk_key)
        start = time.perf_counter()
        return self.made(_compile(ast, renderer), time.perf_counter() - start)

    def make_bytes(self) -> bytes:
        """Compile it in a helper process: what ``take`` takes in the one that asked for it."""
        start = time.perf_counter()
        data = _to_bytes(_compile(self.ast, self.renderer))
        return _SECONDS.pack(time.perf_counter() - start) + data

    def take(self, data: bytes) -> None:
        """Keep what a helper made."""
        counters.helped += 1
        self.data = data[_SECONDS.size:]
        self.keep(self.made(_from_bytes(self.data), *_SECONDS.unpack_from(data)))

    def made(self, kernel: Kernel, seconds: float) -> Kernel:
        """Count a kernel that was compiled, tell plugins, and put it on the disk."""
        counters.compiled += 1
        hooks().call("tinyhost_kernel_compiled", name=kernel.info.name, target=self.renderer.target,
                     source=kernel.source, binary=kernel.elf.lib, seconds=seconds)
        if self.on_disk:
            if self.data is None:
                self.data = _to_bytes(kernel)
            diskcache.put("program", self.disk_key, self.data)
        return kernel

    def have(self) -> None:
        """Make and keep it."""
        self.keep(self.make())

    def keep(self, kernel: Kernel) -> Kernel:
        """Put it into this process's cache; the kernel that is in there."""
        if DEBUG.value >= 4:
            print(kernel.source)
        with _lock:
            return _kernels.setdefault(self.key, kernel)


def _decoded(kind: str, key: str, decode: Callable[[bytes], Any]) -> Any:
    """An entry of the disk cache, None where it is missing or damaged."""
    data = diskcache.get(kind, key)
    if data is None:
        return None
    try:
        return decode(data)
    except ValueError:
        diskcache.damaged(kind, key)
        return None


def get_kernel(ast: UOp, device: str) -> Kernel:
    """Compiled code of a kernel for ``device``, from the nearest cache."""
    wanted = _Wanted(ast, device)
    kernel = _kernels.get(wanted.key)
    return wanted.keep(wanted.read() or wanted.make()) if kernel is None else kernel


def have_kernels(calls: Iterable[tuple[UOp, str]], schedule: str | None) -> None:
    """Have the kernels of a schedule in memory, so that ``get_kernel`` finds them: several are looked for together.

    Args:
        calls: kernels with their devices. schedule: name of the schedule in the disk cache, None where it is not there.
    """
    wanted = {w.key: w for w in [_Wanted(ast, device) for ast, device in dict.fromkeys(calls)]}
    missing = [w for w in wanted.values() if w.key not in _kernels]
    if len(missing) < SEVERAL:
        return
    together = None
    if schedule is not None and all(w.on_disk for w in missing):
        together = f"{schedule}|{list(dict.fromkeys(w.target_key for w in wanted.values()))}"
        kernels = _decoded("programs", together, _unpacked)
        if kernels is not None and len(kernels) == len(wanted):
            for w, kernel in zip(wanted.values(), kernels):
                w.keep(kernel)
            return
    to_make = []
    for w in missing:
        if (kernel := w.read()) is None:
            to_make.append(w)
        else:
            w.keep(kernel)
    helpers = helpers_for(len(to_make)) if _may_help(to_make) else 0
    share(to_make, _Wanted.have, _Wanted.make_bytes, _Wanted.take, helpers)
    if together is not None:
        diskcache.put("programs", together, _packed([w.data or _to_bytes(_kernels[w.key]) for w in wanted.values()]))


def _may_help(wanted: Sequence[_Wanted]) -> bool:
    """Whether helper processes may compile: for devices whose memory is the host's, and while nobody looks on."""
    watched = BEAM.value or PROFILE.value or DEBUG.value >= 3 or TRACK_MATCH_STATS.value
    return not watched and all(w.renderer.caps.host_visible for w in wanted)


def _packed(each: Iterable[bytes]) -> bytes:
    """Several kernels as one entry: each behind its length."""
    return b"".join([len(data).to_bytes(4, "little") + data for data in each])


def _unpacked(data: bytes) -> list[Kernel]:
    """The kernels of an entry.

    Raises:
        ValueError: the bytes are not of that form.
    """
    kernels, at = [], 0
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "little")
        kernels.append(_from_bytes(data[start:at]))
    return kernels


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
