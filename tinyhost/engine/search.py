"""Search over a kernel's optimisations: BEAM=N keeps the N fastest lists of Opts and tries their neighbours.

Takes a kernel's SINK, its renderer and its device; gives the SINK with the best Opts found in ``opts_to_apply``. Starts
from the hand rules. Candidates are compiled, those whose code was seen before are left out, the others are timed on
buffers of the kernel's own. A search ends when a round brings less than ``PROGRESS``, when there is nothing new, or
after BEAM_SECONDS. What it found is stored, in memory and on disk where the disk cache is on, and never timed again:
code stays the same from run to run. Ctrl-C ends it at once and stores nothing.
"""
from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

from tinyhost.codegen import to_program
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.neighbours import Opts, neighbours
from tinyhost.codegen.program import Rewrites, prepared
from tinyhost.device import Device, Program
from tinyhost.engine import codec, diskcache
from tinyhost.env import BEAM, BEAM_SECONDS, DEBUG
from tinyhost.errors import CompileError, KernelFault, KernelOptError, OutOfMemory
from tinyhost.helpers import ansistrip, time_to_str, tqdm
from tinyhost.ops import AddrSpace, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import KernelInfo, ProgramInfo, UOp

Load = Callable[[UOp], Program]
Compile = Callable[[Opts], UOp | None]
PROGRESS = 0.01  # a round that is not faster by this share is the last one
RUNS = 3  # of each candidate, the fastest counts
HOPELESS = 3.0  # a first run so much slower than the best is the only one
MOST_NODES = 12_000  # of a linear program; larger ones compile too long to be tried


@dataclass
class SearchCounters:
    """What searches of this process did."""

    searched: int = 0
    timed: int = 0
    reused: int = 0


counters = SearchCounters()
_found: dict[Any, Opts] = {}
_lock = RLock()


def reset() -> None:
    """Forget results of this process."""
    with _lock:
        _found.clear()
    counters.searched = counters.timed = counters.reused = 0


def searched(ast: UOp, renderer: Renderer, rewrites: Rewrites | None, device: str, load: Load, key: str) -> UOp:
    """``ast`` with the Opts of the fastest program found; as it is where its Opts are given or BEAM is 0.

    Args:
        load: makes a compiled PROGRAM launchable on ``device``.
        key: names kernel, target, variables and versions; a stored result with the same key is taken.
    """
    info = ast.arg if isinstance(ast.arg, KernelInfo) else KernelInfo()
    if info.opts_to_apply is not None or not BEAM.value:
        return ast
    with _lock:
        opts = _found.get(key)
    if opts is None:
        opts = _stored(key)
        if opts is None:
            opts = _search(ast, info, renderer, rewrites, Timer(device, load))
            diskcache.put("beam", key, codec.encode(opts), level=2)
        else:
            counters.reused += 1
        with _lock:
            opts = _found.setdefault(key, opts)
    else:
        counters.reused += 1
    return ast.replace(arg=replace(info, opts_to_apply=opts))


def _stored(key: str) -> Opts | None:
    data = diskcache.get("beam", key, level=2)
    if data is None:
        return None
    try:
        opts: Opts = codec.decode(data)
        return opts
    except ValueError:
        diskcache.damaged("beam", key)
        return None


class Timer:
    """Runs programs of one kernel on buffers that it keeps between runs."""

    def __init__(self, device: str, load: Load) -> None:
        self.device, self.load = Device[device], load
        self._buffers: dict[tuple[int, int], Any] = {}

    def __call__(self, program: UOp, best: float) -> float:
        """Seconds of the fastest of a few runs; of the first one where that is hopeless beside ``best``."""
        run, info = self.load(program), program.arg
        bufs = [self._buffer(u) for u in _storage(program)]
        middle = {v.arg.name: (int(v.vmin) + int(v.vmax) + 1) // 2 for v in info.vars if v.arg.name != "core_id"}
        grid, local = (None if size is None else tuple(d if isinstance(d, int) else d.sym_infer(middle) for d in size)
                       for size in (info.global_size, info.local_size))
        fastest = math.inf
        for i in range(RUNS):
            seconds = run(*bufs, global_size=grid or (1, 1, 1), local_size=local, vals=info.vals(middle), wait=True)
            assert seconds is not None, "a program that is waited for says how long it took"
            fastest = min(fastest, seconds)
            if i == 0 and seconds > HOPELESS * best:
                break
        counters.timed += 1
        return fastest

    def _buffer(self, param: UOp) -> Any:
        key = (param.arg.slot, (param.arg.size or 1) * param.arg.dtype.itemsize)
        if key not in self._buffers:
            allocator = self.device.allocator
            self._buffers[key] = memory = allocator.alloc(key[1])
            allocator._copyin(memory, memoryview(bytes(key[1])))
        return self._buffers[key]

    def close(self) -> None:
        """Give the buffers back."""
        for (_, size), memory in self._buffers.items():
            self.device.allocator.free(memory, size)
        self._buffers.clear()


def _storage(program: UOp) -> list[UOp]:
    info: ProgramInfo = program.arg
    params = {u for u in program.src[1].src if u.op is Ops.PARAM and u.arg.addrspace is AddrSpace.GLOBAL}
    return sorted((u for u in params if u.arg.slot in info.globals), key=lambda u: u.arg.slot)


def _search(ast: UOp, info: KernelInfo, renderer: Renderer, rewrites: Rewrites | None, timer: Timer) -> Opts:
    counters.searched += 1
    deadline = time.monotonic() + BEAM_SECONDS.value
    first = to_program(ast, renderer, rewrites)
    start: Opts = first.src[0].arg.applied_opts
    compile_one = _compiler(ast, info, renderer, rewrites)
    small = prepared(ast, renderer, rewrites).sink
    seen = {first.src[3].arg}
    try:
        times = {start: timer(first, math.inf)}
        base = times[start]
        name = ansistrip(first.arg.name)
        with _Bar(f"search {name}", BEAM_SECONDS.value) as bar:
            beam, tried = [start], {start}
            while time.monotonic() < deadline:
                best = times[beam[0]]
                fresh = [n for state in beam for n in neighbours(lambda: Kernel(small, renderer), state)]
                for opts in [n for n in dict.fromkeys(fresh) if n not in tried]:
                    if time.monotonic() >= deadline:
                        break
                    tried.add(opts)
                    program = compile_one(opts)
                    if program is None or program.src[3].arg in seen:
                        continue
                    seen.add(program.src[3].arg)
                    times[opts] = _timed(timer, program, min(times.values()))
                    bar.show(min(times.values()))
                beam = sorted(times, key=lambda o: times[o])[:BEAM.value]
                if times[beam[0]] > best * (1 - PROGRESS):
                    break
        if DEBUG.value >= 2:
            print(f"search {name}: {time_to_str(base)} -> {time_to_str(times[beam[0]])} in {len(times)} programs, "
                  f"{list(beam[0])}")
        return beam[0]
    finally:
        timer.close()


def _timed(timer: Timer, program: UOp, best: float) -> float:
    try:
        return timer(program, best)
    except (KernelFault, OutOfMemory):
        return math.inf  # a candidate that needs more than there is loses


def _compiler(ast: UOp, info: KernelInfo, renderer: Renderer, rewrites: Rewrites | None) -> Compile:
    def compile_one(opts: Opts) -> UOp | None:
        try:
            program = to_program(ast.replace(arg=replace(info, opts_to_apply=opts)), renderer, rewrites)
        except (KernelOptError, CompileError):
            return None
        return program if len(program.src[1].src) <= MOST_NODES else None
    return compile_one


class _Bar:
    """Progress of a search in time, on a terminal only."""

    def __init__(self, title: str, seconds: float) -> None:
        self.title, self.start = title, time.monotonic()
        self.bar: tqdm[int] | None = tqdm(total=max(1, int(seconds)), desc=title) if sys.stderr.isatty() else None

    def __enter__(self) -> "_Bar":
        return self

    def show(self, best: float) -> None:
        """Redraw with the best time so far."""
        if self.bar is not None:
            self.bar.set_description(f"{self.title} {time_to_str(best)}")
            self.bar.update(int(time.monotonic() - self.start) - self.bar.n)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.close()
