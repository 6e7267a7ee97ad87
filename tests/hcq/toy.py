"""A device driven from user space, with a driver like any: allocator, encoder, queues, peer group, loaded kernels.

``machine.py`` is its hardware. Its kernels are programs of the reference device. ``toys`` is a fixture that installs
the device as TOY: the numbers of one group are peers, each group has a machine of its own.
"""
from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.hcq import machine as hw
from tests.plugin.distributions import Site
from tests.plugin.distributions import site as site
from tinyhost.capabilities import Capabilities
from tinyhost.device import Device
from tinyhost.device.base import BufferSpec, Compiled, Program, TinyELF
from tinyhost.device.builtin.interpreter import PythonProgram, parse
from tinyhost.device.builtin.python import PythonRenderer
from tinyhost.engine import plan, program
from tinyhost.errors import DeviceError
from tinyhost.hcq import commands
from tinyhost.hcq.commands import Execute
from tinyhost.hcq.device import PeerGroup, Queues, Submission, Timing
from tinyhost.hcq.memory import HCQAllocator
from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.rings import Ring
from tinyhost.hcq.signals import Signal, SignalPool
from tinyhost.hcq.stream import Encoder, Encoding, packet
from tinyhost.hcq.words import high, low
from tinyhost.ops import Ops
from tinyhost.plugin.v1 import DeviceSpec, RendererSpec
from tinyhost.target import Target
from tinyhost.uop import PatternMatcher, UOp, UPat

TOY = DeviceSpec("TOY", device_class="tests.hcq.toy:ToyDevice", capabilities="tests.hcq.toy:capabilities",
                 renderers=("TOY.LINEAR",))
TOY_LINEAR = RendererSpec("TOY.LINEAR", renderer_class="tests.hcq.toy:ToyRenderer")


def capabilities(target: Target) -> Capabilities:
    return Capabilities(grid=True)


class ToyRenderer(PythonRenderer):
    def __init__(self, target: Target) -> None:
        super().__init__(replace(target, arch=""))
        self.caps = capabilities(target)


# *** packets ***
def _packet(op: int, *operands: Any) -> UOp:
    return packet(op << 24 | hw.LENGTHS[op] << 16, *operands)


def _two(*words: Any) -> list[Any]:
    """Each as its lower and its upper half."""
    return [half for w in words for half in (low(w), high(w))]


def _launch(ctx: Encoding, x: UOp) -> UOp | None:
    if not isinstance(x.arg, Execute):
        return None
    e = x.arg
    assert e.chunk < 0, "kernels of this device are not shared by threads"
    g, s = e.buffers + e.globals, e.buffers + e.globals + e.locals
    scalars = x.src[s:]
    at = ctx.arguments([*x.src[:e.buffers], *scalars])
    sizes = [(*x.src[a:b], *[commands.word(1)] * (3 - (b - a))) for a, b in ((e.buffers, g), (g, s))]
    assert isinstance(e.program, ToyProgram)
    return _packet(hw.LAUNCH, *_two(e.program.address, at), 8 * (e.buffers + len(scalars)), *sizes[0], *sizes[1])


_COMMON = [
    (UPat(Ops.INS, arg="wait", name="x"), lambda ctx, x: _packet(hw.WAIT, *_two(*x.src))),
    (UPat(Ops.INS, arg="signal", name="x"), lambda ctx, x: _packet(hw.SIGNAL, *_two(*x.src))),
    (UPat(Ops.INS, arg="timestamp", name="x"), lambda ctx, x: _packet(hw.TIMESTAMP, *_two(*x.src))),
    (UPat(Ops.INS, arg="barrier"), lambda ctx: _packet(hw.BARRIER)),
    (UPat(Ops.INS, arg="write", name="x"), lambda ctx, x: _packet(hw.WRITE, *_two(x.src[0]), low(x.src[1]))),
    (UPat(Ops.INS, arg="poll", name="x"), lambda ctx, x: _packet(hw.POLL, *_two(x.src[0]), *x.src[1:])),
]
_COPY = [(UPat(Ops.INS, arg="copy", name="x"), lambda ctx, x: _packet(hw.COPY, *_two(*x.src)))]
_LAUNCH = [(UPat(Ops.INS, name="x"), _launch)]
ENCODERS = {"COPY": Encoder(PatternMatcher(_COMMON + _COPY)), "COMPUTE": Encoder(PatternMatcher(_COMMON + _LAUNCH)),
            "BOTH": Encoder(PatternMatcher(_COMMON + _COPY + _LAUNCH))}
_TAKES = {"COPY": frozenset(hw.LENGTHS) - {hw.INDIRECT, hw.LAUNCH},
          "COMPUTE": frozenset(hw.LENGTHS) - {hw.INDIRECT, hw.COPY}, "BOTH": frozenset(hw.LENGTHS) - {hw.INDIRECT}}


# *** the driver ***
class ToySignal(Signal):
    """Looking at a signal, the host learns what was over when it was set."""

    __slots__ = ()
    machine: hw.Machine

    @property
    def value(self) -> int:
        hw.join(self.machine.host, self.machine.published.get(self.address, {}))
        return int(self._words[0])

    @value.setter
    def value(self, new: int) -> None:
        self._words[0] = new
        self.machine.published[self.address] = dict(self.machine.host)


class ToyGroup(PeerGroup):
    """Toys of one machine."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.machine = hw.Machine(seed)
        self.signals = SignalPool(lambda nbytes: self.memory(nbytes, "signals"), self.advance, chunk_bytes=256)
        self.signals.signal_class = type("MachineSignal", (ToySignal,), {"__slots__": (), "machine": self.machine})
        self.devices: list[ToyQueues] = []

    def memory(self, nbytes: int, kind: str) -> HostMemory:
        block = self.machine.memory.alloc(nbytes, kind)
        owner = _Owner()
        weakref.finalize(owner, self.machine.memory.free, block.address).atexit = False
        return HostMemory(block.address, memoryview(block.array), owner)

    def advance(self) -> None:
        """Let the machine go on while the host waits."""
        with self.lock:  # the machine runs in whichever thread waits
            try:
                self.machine.advance()
            except hw.Fault as e:
                self._blame(e)
                raise

    def _blame(self, e: hw.Fault) -> None:
        """A fault belongs to the device whose queue it names; the devices of one machine cannot go on without it."""
        for queues in self.devices:
            if str(e).startswith(f"{queues.device} "):
                queues.errors.fail(e)

    def submit(self, work: Sequence[Submission], timed: bool = False) -> Sequence[Timing] | None:
        for s in work:
            s.queues.errors.check()
        try:
            for s in work:
                assert isinstance(s.queues, ToyQueues)
                s.queues.start(s.name, s.linked.address(), s.linked.nbytes() // 4)
                for _ in range(self.machine.rng.randrange(4)):
                    self.machine.step()
        except hw.Fault as e:
            self._blame(e)
            raise
        return None


class _Owner:
    """Frees memory of the machine when nothing refers to it."""


class ToyQueues(Queues):
    """The queues of one toy; ``kinds`` says which: COMPUTE, COPY, or BOTH for one that runs and copies."""

    staging_bytes, staging_slots = 1 << 18, 4

    def __init__(self, device: str, group: ToyGroup, kinds: Sequence[str], ring_words: int = 26,
                 timeline_start: int = 0) -> None:
        super().__init__(device, group, timeline_start)
        self.kinds = {f"{'COMPUTE' if k == 'BOTH' else k}:0": k for k in kinds}
        self.names = tuple(self.kinds)
        self.compute_copies = "BOTH" in kinds
        self.machine, self._toys = group.machine, group
        self.hardware = {name: self.machine.add_queue(f"{device} {name}", ring_words, _TAKES[kind])
                         for name, kind in self.kinds.items()}
        self.rings = {name: self._ring(q) for name, q in self.hardware.items()}
        group.devices.append(self)

    def _ring(self, q: hw.Queue) -> Ring:
        return Ring(HostMemory(q.ring.address, memoryview(q.ring.array)), 32, lambda: q.get,
                    filler=lambda n: [hw.PAD << 24 | n << 16, *[0] * (n - 1)], on_wait=self._toys.advance)

    def encoder(self, name: str) -> Encoder:
        return ENCODERS[self.kinds[name]]

    def allocate(self, nbytes: int) -> HostMemory:
        return self._toys.memory(nbytes, "shared" if nbytes == self.staging_bytes else "streams")

    def address_of(self, opaque: Any) -> int:
        return int(opaque.address)

    def start(self, name: str, address: int, words: int) -> None:
        """Tell a queue to run a stream."""
        ring = self.rings[name]
        ring.write([hw.INDIRECT << 24 | hw.LENGTHS[hw.INDIRECT] << 16, address & 0xFFFFFFFF, address >> 32, words])
        self.hardware[name].doorbell(ring.produced)


class ToyMemory:
    """A buffer: ``size`` bytes at ``address`` of the machine."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size


class ToyAllocator(HCQAllocator[ToyMemory]):
    """Memory of the machine; the host sees it only where no queue copies."""

    dev: ToyDevice

    @property
    def machine(self) -> hw.Machine:
        return self.dev.queues.machine

    def _alloc(self, size: int, options: BufferSpec) -> ToyMemory:
        return ToyMemory(self.machine.memory.alloc(size).address, size)

    def _give_back(self, opaque: ToyMemory, options: BufferSpec) -> None:
        self.machine.memory.free(opaque.address)

    def _offset(self, buf: ToyMemory, size: int, offset: int) -> ToyMemory:
        return ToyMemory(buf.address + offset, size)

    def _as_buffer(self, src: ToyMemory) -> memoryview | None:
        if self.dev.queues.copying_queue is not None:
            return None
        block, at = self.machine.memory.find(src.address, src.size)
        return memoryview(block.array)[at:at + src.size]


class ToyProgram(Program):
    """A program of the reference device, loaded at an address of the machine."""

    dev: ToyDevice

    def __init__(self, dev: ToyDevice, elf: TinyELF) -> None:
        super().__init__(dev, elf)
        self.python = PythonProgram(dev, elf)
        self.address = dev.queues.machine.memory.alloc(64, "code").address
        dev.queues.machine.functions[self.address] = self._code()

    def _code(self) -> hw.Code:
        lines = parse(self.elf.lib.decode())[1]
        storage = {f"%{line.result}": int(line.args[2]) for line in lines if line.word == "storage"}
        written = {storage[line.args[1]] for line in lines if line.word == "store" and line.args[1] in storage}
        buffers = tuple((shape[0] * dtype.itemsize, slot in written)
                        for name, slot, dtype, shape in self.elf.signature if name is None)
        return hw.Code(self.elf.name, buffers, len(self.python.scalar_names), self._run)

    def _run(self, arrays: list[Any], grid: tuple[int, ...], local: tuple[int, ...], scalars: list[int]) -> None:
        self.python(*arrays, global_size=grid, local_size=local, vals=tuple(scalars))

    def __call__(self, *bufs: ToyMemory, global_size: tuple[int, ...] = (1, 1, 1),
                 local_size: tuple[int, ...] | None = None, vals: tuple[int | None, ...] = (),
                 wait: bool = False) -> float | None:
        names = [[f".{kind}{i}" for i in range(n)] for kind, n in (("buffer", len(bufs)), ("scalar", len(vals)))]

        def build() -> list[UOp]:
            buffers, scalars = [[commands.variable(n) for n in row] for row in names]
            return [commands.execute(self, buffers, global_size, local_size or (), scalars)]
        queues = self.dev.queues
        numbers = [*[b.address for b in bufs], *[v or 0 for v in vals]]
        point = queues.immediate.run(queues.compute_queue, (self, global_size, local_size), build,
                                     dict(zip([*names[0], *names[1]], numbers)))
        if wait:
            point.wait()
        return 0.0 if wait else None


class Plant:
    """Which toys there are: the group of each number, the queues each has, where timelines start."""

    def __init__(self, seed: int = 0, groups: Sequence[Sequence[int]] = ((0, 1), (2, 3)),
                 kinds: Sequence[str] = ("COMPUTE", "COPY"), **options: Any) -> None:
        self.groups = [(tuple(numbers), ToyGroup(seed + i)) for i, numbers in enumerate(groups)]
        self.kinds, self.options = kinds, options

    def queues(self, name: str) -> ToyQueues:
        number = int(name.partition(":")[2] or 0)
        for numbers, group in self.groups:
            if number in numbers:
                return ToyQueues(name, group, self.kinds, **self.options)
        raise DeviceError(f"there is no toy {number}: this plant has {[n for n, _ in self.groups]}")

    def machine(self, group: int = 0) -> hw.Machine:
        return self.groups[group][1].machine


class ToyDevice(Compiled):
    """A toy of the present plant."""

    plant: Plant | None = None
    program_class = ToyProgram  # type: ignore[assignment]
    queues: ToyQueues

    def __init__(self, name: str, target: Target, spec: DeviceSpec) -> None:
        super().__init__(name, target, spec)
        assert ToyDevice.plant is not None, "use the fixture toys"
        self.queues = ToyDevice.plant.queues(name)
        self.allocator: Any = ToyAllocator(self)

    def synchronize(self) -> None:
        self.queues.synchronize()


class Toys:
    """Makes plants; devices of the one before are forgotten."""

    def __call__(self, **options: Any) -> Plant:
        self.forget()
        ToyDevice.plant = Plant(**options)
        return ToyDevice.plant

    def forget(self) -> None:
        plan.reset()
        gc.collect()  # memory goes back to the machine it came from
        for name in [n for n in Device._opened if n.partition(":")[0] == "TOY"]:
            del Device._opened[name]
        Device._checked.clear()
        program.reset()  # kernels are loaded in a machine


@pytest.fixture
def toys(site: Site) -> Iterator[Toys]:
    """Call it to make a plant: toys TOY, TOY:1 are peers, TOY:2, TOY:3 others."""
    site.add("toy", devices={"TOY": "tests.hcq.toy:TOY"}, renderers={"TOY.LINEAR": "tests.hcq.toy:TOY_LINEAR"})
    made = Toys()
    yield made
    made.forget()
    ToyDevice.plant = None
