"""Command queues of the processor: commands become packets that workers of generated code run.

Takes the queue IR of ``tinyhost.hcq.commands``; gives 64-byte packets as ``native/layout.py`` lays them out. A packet
starts when as many chunks have ended as its word NEED says, so a barrier is no packet: it raises the NEED of what
follows. Each device has one queue; all devices of the processor are one group, which has done everything that was
submitted when ``submit`` returns.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from tinyhost.hcq.commands import Execute, Word
from tinyhost.hcq.device import HostMemory, PeerGroup, Queues, Submission, Timing
from tinyhost.hcq.signals import SignalPool, Timeline
from tinyhost.hcq.stream import COMMANDS, Encoder, Encoding, Linked, packet, several
from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp, UPat
from tinyhost_cpu.cpus import available_cpus
from tinyhost_cpu.memory import CACHE_LINE, Memory, allocate
from tinyhost_cpu.native.layout import NONE, REGISTER_ARGS, RUN_HEADER_BYTES, execute_word
from tinyhost_cpu.native.runs import Run
from tinyhost_cpu.portable import PortablePool
from tinyhost_cpu.workers import pool

if TYPE_CHECKING:
    from tinyhost_cpu.device import CPUProgram
    from tinyhost_cpu.native.pool import Pool

WORD = 8
COPY_CHUNK = 1 << 20  # bytes of a copy that one worker takes at a time


# *** packets ***
class PacketEncoding(Encoding):
    """Counts chunks, from which each packet's NEED follows, and what a run needs to know.

    Attributes:
        need: chunks that have ended when everything in front of the last barrier has.
        chunks: chunks of all packets so far.
        width: most chunks of one packet.
        scratch: most bytes of scratch memory of one kernel.
        names: of each packet, for errors; "" where it runs nothing.
        launches: numbers of the packets that launch or copy, in order.
        programs: what is launched, which keeps the code alive.
    """

    def __init__(self, encoder: PacketEncoder, queue: UOp) -> None:
        super().__init__(encoder, queue)
        self._handlers = encoder.handlers
        self.need = self.chunks = self.scratch = 0
        self.width = 1
        self.names: list[str] = []
        self.launches: list[int] = []
        self.programs: dict[CPUProgram, None] = {}

    def add(self, kind: str, need: int, operands: Sequence[Word], chunks: int = 1, name: str = "") -> UOp:
        """One packet of ``kind`` that starts after ``need`` chunks."""
        out = packet(self._handlers[kind], 0, chunks, need, *operands, *[0] * (3 - len(operands)), len(self.names))
        self.names.append(name)
        self.chunks += chunks
        self.width = max(self.width, chunks)
        return out

    def after_all(self, kind: str, *operands: Word) -> UOp:
        """A packet that takes effect after everything in front of it."""
        return self.add(kind, self.chunks, operands)

    def holding(self, kind: str, *operands: Word) -> UOp:
        """The same; nothing behind it starts before."""
        out = self.after_all(kind, *operands)
        self.need = self.chunks
        return out


def _execute(ctx: PacketEncoding, u: UOp) -> UOp:
    launch: Execute = u.arg
    program = cast("CPUProgram", launch.program)  # a queue of this device runs no other
    buffers, sizes = u.src[:launch.buffers], u.src[launch.buffers:launch.buffers + launch.globals]
    scalars = u.src[launch.buffers + launch.globals + launch.locals:]
    words, chunk = program.arranged(buffers, scalars), NONE
    chunks = 1
    if launch.chunk >= 0:
        chunks, chunk = _number(sizes[0]), len(words) - len(scalars) + launch.chunk
    scratch = NONE if program.scratch_at < 0 else program.scratch_at
    at = ctx.arguments([*words, *[0] * (REGISTER_ARGS - len(words))])
    ctx.scratch = max(ctx.scratch, program.scratch_bytes)
    ctx.launches.append(len(ctx.names))
    ctx.programs[program] = None
    operands = program.segment.address, at, execute_word(len(words), chunk, scratch)
    return ctx.add("execute", ctx.need, operands, chunks, program.elf.name)


def _number(u: UOp) -> int:
    assert u.op is Ops.CONST, f"the parts of a kernel are a number, not {u.render()}"
    return int(u.arg)


def _copy(ctx: PacketEncoding, u: UOp) -> UOp:
    dest, src, nbytes = u.src
    size = _number(nbytes)
    ctx.launches.append(len(ctx.names))
    return ctx.add("copy", ctx.need, (dest, src, size), max(1, -(-size // COPY_CHUNK)), f"copy of {size} bytes")


def _barrier(ctx: PacketEncoding, u: UOp) -> UOp:
    ctx.need = ctx.chunks
    return several(())


_lower = PatternMatcher([
    (UPat(Ops.INS, arg="wait", name="u"), lambda ctx, u: ctx.holding("wait", *u.src)),
    (UPat(Ops.INS, arg="poll", name="u"), lambda ctx, u: ctx.holding("poll", *u.src)),
    (UPat(Ops.INS, arg="signal", name="u"), lambda ctx, u: ctx.after_all("signal", *u.src)),
    (UPat(Ops.INS, arg="timestamp", name="u"), lambda ctx, u: ctx.after_all("timestamp", *u.src)),
    (UPat(Ops.INS, arg="write", name="u"), lambda ctx, u: ctx.after_all("write", *u.src)),
    (UPat(Ops.INS, arg="barrier", name="u"), _barrier),
    (UPat(Ops.INS, arg="copy", name="u"), _copy),
    (UPat(Ops.INS, name="u"), lambda ctx, u: _execute(ctx, u) if isinstance(u.arg, Execute) else None),
])


class PacketEncoder(Encoder):
    """Packets behind the header of a run; ``handlers`` are the addresses of their code, by kind."""

    def __init__(self, handlers: dict[str, int]) -> None:
        super().__init__(_lower, word_bits=64, align=CACHE_LINE, arguments_align=CACHE_LINE)
        object.__setattr__(self, "handlers", handlers)

    handlers: dict[str, int]

    def begin(self, queue: UOp) -> PacketEncoding:
        """Counts from nothing."""
        return PacketEncoding(self, queue)

    def header(self, ctx: Encoding) -> Sequence[Word]:
        """Space for the state of the run."""
        return [0] * (RUN_HEADER_BYTES // WORD)

    def trailer(self, ctx: Encoding) -> Sequence[Word]:
        """The end, after everything."""
        assert isinstance(ctx, PacketEncoding)
        return ctx.after_all("end").src


# *** queues ***
class CPUGroup(PeerGroup):
    """All devices of the processor. What different threads submit runs side by side."""

    synchronous = measures = True

    def __init__(self, workers: Pool) -> None:
        super().__init__()
        self.lock = nullcontext()
        self.pool = workers
        self._threads = available_cpus()
        self.signals = SignalPool(host_memory)

    def submit(self, work: Sequence[Submission], timed: bool = False) -> Sequence[Timing] | None:
        """Run all of ``work``, the calling thread among the workers.

        Raises:
            KernelFault: a kernel ended with a fault or does not end; what it wrote is not valid, the device goes on.
        """
        threads = max(1, self._threads // len(work))
        records = self.pool.execute([_run(w.linked, threads) for w in work], timed)
        if not timed:
            return None
        ordinal = [{n: i for i, n in enumerate(_encoding(w.linked).launches)} for w in work]
        return [Timing(r.run, ordinal[r.run][r.packet], r.participant, r.start, r.end) for r in records]


class CPUQueues(Queues):
    """The queue of one device."""

    group: CPUGroup

    def __init__(self, device: str, group: CPUGroup) -> None:
        self._own = threading.local()
        super().__init__(device, group)
        self._encoder = PacketEncoder(group.pool.handlers)

    @property
    def timeline(self) -> Timeline:
        """The calling thread's: work of one thread is in order, and nothing of it is left when ``submit`` returns."""
        found: Timeline | None = getattr(self._own, "timeline", None)
        if found is None:
            found = self._own.timeline = Timeline(self.group.signals, self.errors)
        return found

    @timeline.setter
    def timeline(self, first: Timeline) -> None:
        self._own.timeline = first

    def encoder(self, name: str) -> PacketEncoder:
        """Packets; there is one queue."""
        return self._encoder

    def allocate(self, nbytes: int) -> HostMemory:
        """Memory at a multiple of a cache line."""
        return host_memory(nbytes)

    def address_of(self, opaque: Memory) -> int:
        """Where it is in this process."""
        return opaque.address


_group: CPUGroup | None = None
_lock = threading.Lock()


def queues_of(device: str) -> CPUQueues | None:
    """The queues of a device, None where no generated code runs packets."""
    global _group
    workers = pool()
    if isinstance(workers, PortablePool):
        return None
    with _lock:
        if _group is None:
            _group = CPUGroup(workers)
        return CPUQueues(device, _group)


def host_memory(nbytes: int) -> HostMemory:
    """Zeroed memory at a multiple of a cache line, the same for the processor and the host."""
    memory = allocate(nbytes)
    ctypes.memset(memory.address, 0, nbytes)
    return HostMemory(memory.address, memory.view(), memory)


def _encoding(linked: Linked) -> PacketEncoding:
    encoding = linked.stream.encoding
    assert isinstance(encoding, PacketEncoding)
    return encoding


def _run(linked: Linked, threads: int) -> Run:
    e = _encoding(linked)
    return Run(linked.address(COMMANDS), len(e.names), min(e.width, threads), e.scratch, e.names, (linked, e.programs))
