"""A simulated machine with command queues: memory, queues that run interleaved by a seed, and a check of every access.

It takes 32-bit packets from rings and refuses what real hardware would not forgive: unknown packets, reserved bits,
addresses that are not mapped or freed, streams that change while they run, waits that nothing can meet. Launches and
copies take effect some time after their packet was read. Accesses are checked with vector clocks: two accesses of the
same bytes, one of them a write, must be ordered by barriers, signals and waits, whatever order they happened to run in.

A packet is a header (op << 24 | length in words << 16, the lower bits zero) and operands; addresses and signal values
take two words, the lower one first.
"""
from __future__ import annotations

import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinyhost.errors import KernelFault

PAD, INDIRECT, WAIT, SIGNAL, TIMESTAMP, BARRIER, LAUNCH, COPY, WRITE, POLL = 1, 2, 16, 17, 18, 19, 20, 21, 22, 23
LENGTHS = {INDIRECT: 4, WAIT: 5, SIGNAL: 5, TIMESTAMP: 3, BARRIER: 1, LAUNCH: 12, COPY: 7, WRITE: 4, POLL: 5}
NAMES = {PAD: "PAD", INDIRECT: "INDIRECT", WAIT: "WAIT", SIGNAL: "SIGNAL", TIMESTAMP: "TIMESTAMP", BARRIER: "BARRIER",
         LAUNCH: "LAUNCH", COPY: "COPY", WRITE: "WRITE", POLL: "POLL"}
IN_FLIGHT = 3  # launches and copies of one queue that run at once, at most
Clock = dict[str, int]


class Fault(KernelFault):
    """What the machine refuses."""


def join(into: Clock, other: Clock) -> None:
    for agent, n in other.items():
        into[agent] = max(into.get(agent, 0), n)


# *** memory ***
@dataclass
class Access:
    start: int
    end: int
    write: bool
    agent: str
    number: int
    what: str


@dataclass(eq=False)
class Block:
    """Mapped memory; ``history`` are the accesses that a later one must be behind."""

    address: int
    array: Any
    kind: str
    freed: bool = False
    history: list[Access] = field(default_factory=list)


class Memory:
    """Addresses that are no addresses of this process; what is freed is never given out again."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[Block] = []
        self._next = 0x20_0000_0000
        self._lock = threading.RLock()

    def alloc(self, nbytes: int, kind: str = "data", align: int = 256) -> Block:
        raw = np.full(nbytes + 64, 0xA5, dtype=np.uint8)
        start = -raw.ctypes.data % 64
        with self._lock:
            address = -(-self._next // align) * align
            self._next = address + nbytes + 4096  # nothing is mapped behind it
            block = Block(address, raw[start:start + nbytes], kind)
            self._blocks.append(block)
            self._starts.append(address)
        return block

    def free(self, address: int) -> None:
        block = self._blocks[bisect_right(self._starts, address) - 1]
        assert block.address == address and not block.freed, f"{address:#x} was not allocated or is freed twice"
        block.freed = True
        block.array = np.full(0, 0, dtype=np.uint8)

    def find(self, address: int, nbytes: int) -> tuple[Block, int]:
        """(block, offset) of mapped bytes."""
        i = bisect_right(self._starts, address) - 1
        if i >= 0 and self._blocks[i].freed and address - self._starts[i] < 4096:
            raise Fault(f"use after free: {nbytes} bytes at {address:#x}")
        if i < 0 or address + nbytes > self._starts[i] + len(self._blocks[i].array):
            raise Fault(f"bad address: {nbytes} bytes at {address:#x} are not mapped")
        return self._blocks[i], address - self._starts[i]

    def words(self, address: int, count: int, bits: int = 32) -> list[int]:
        if address % (bits // 8):
            raise Fault(f"address {address:#x} is no multiple of {bits // 8}")
        block, at = self.find(address, count * bits // 8)
        return [int(x) for x in block.array[at:at + count * bits // 8].view(f"<u{bits // 8}")]


# *** code ***
@dataclass(frozen=True)
class Code:
    """A loaded kernel: for each buffer (bytes, whether it is written); ``run(arrays, global, local, scalars)``."""

    name: str
    buffers: tuple[tuple[int, bool], ...]
    scalars: int
    run: Callable[[list[Any], tuple[int, ...], tuple[int, ...], list[int]], None]


@dataclass(eq=False)
class Running:
    """A launch or a copy that has not ended: what it does, when it ends."""

    what: str
    effect: Callable[[], None]


@dataclass(eq=False)
class Submitted:
    """A stream as it was when the doorbell rang."""

    address: int
    words: list[int]
    arguments: dict[int, list[int]]  # address -> 64-bit words
    host: Clock
    at: int = 0


class Queue:
    """One queue: a ring, its pointers, and what it is running."""

    def __init__(self, machine: Machine, name: str, ring: Block, takes: frozenset[int]) -> None:
        self.machine, self.name, self.ring, self.takes = machine, name, ring, takes
        self.get = self.put = self.number = 0
        self.streams: list[Submitted] = []
        self.running: list[Running] = []
        self.clock: Clock = {}
        self.hung = False

    def fault(self, text: str) -> Fault:
        at = f"word {self.streams[0].at} of the stream at {self.streams[0].address:#x}" if self.streams else "its ring"
        return Fault(f"{self.name}, {at}: {text}")

    # *** the ring ***
    def doorbell(self, put: int) -> None:
        """The host wrote words up to ``put``, counted from the start."""
        ring = self.ring.array.view("<u4")
        if not self.put <= put <= self.get + len(ring):
            raise self.fault(f"put pointer {put} with {self.get} words read of a ring of {len(ring)}")
        while self.put < put:
            here = self.put % len(ring)
            header = int(ring[here])
            op, length = header >> 24, header >> 16 & 0xFF
            if op == PAD and header & 0xFFFF == 0 and 0 < length <= len(ring) - here:
                self.put += length
                continue
            if op != INDIRECT or here + length > len(ring):
                raise self.fault(f"ring word {here} is {header:#010x}: a ring holds INDIRECT packets that do not "
                                 "straddle its end, and PAD")
            _, low, high, count = self._operands(header, [int(x) for x in ring[here:here + LENGTHS[INDIRECT]]])
            self.streams.append(self._submitted(low | high << 32, count))
            self.put += length
        self.get = self.put

    def _submitted(self, address: int, count: int) -> Submitted:
        words = self.machine.memory.words(address, count)
        arguments, at = {}, 0
        while at < count and words[at] >> 16 & 0xFF:
            if words[at] >> 24 == LAUNCH and at + LENGTHS[LAUNCH] <= count:
                low, high, nbytes = words[at + 3:at + 6]
                arguments[low | high << 32] = self.machine.memory.words(low | high << 32, nbytes // 8, 64)
            at += words[at] >> 16 & 0xFF
        return Submitted(address, words, arguments, dict(self.machine.host))

    def _operands(self, header: int, words: list[int]) -> list[int]:
        op, length = header >> 24, header >> 16 & 0xFF
        if op not in LENGTHS:
            raise self.fault(f"unknown packet {header:#010x}")
        if header & 0xFFFF:
            raise self.fault(f"reserved bits in the header {header:#010x} of {NAMES[op]}")
        if length != LENGTHS[op] or len(words) < length:
            raise self.fault(f"{NAMES[op]} of {min(length, len(words))} words; it has {LENGTHS[op]}")
        return words[:length]

    # *** packets ***
    def next_packet(self) -> list[int] | None:
        """The packet to be run next; None at the end of all streams."""
        while self.streams and self.streams[0].at == len(self.streams[0].words):
            self.streams.pop(0)
        if not self.streams:
            return None
        s = self.streams[0]
        if s.at == 0:
            join(self.clock, s.host)
        now = self.machine.memory.words(s.address, len(s.words))
        if now != s.words:
            changed = next(i for i, (a, b) in enumerate(zip(now, s.words)) if a != b)
            raise self.fault(f"word {changed} was changed while the stream runs")
        packet = self._operands(s.words[s.at], s.words[s.at:s.at + LENGTHS.get(s.words[s.at] >> 24, 1)])
        if packet[0] >> 24 not in self.takes:
            raise self.fault(f"this queue takes no {NAMES[packet[0] >> 24]}")
        return packet

    def can_go(self) -> bool:
        """Whether the next packet can be run now."""
        packet = None if self.hung else self.next_packet()
        if packet is None:
            return False
        op = packet[0] >> 24
        if op in (LAUNCH, COPY):
            return len(self.running) < IN_FLIGHT
        if self.running:
            return False
        if op == WAIT:
            return self.machine.signal(self, packet)[0] >= (packet[3] | packet[4] << 32)
        return op != POLL or self._polled(packet)

    def _polled(self, packet: list[int]) -> bool:
        (value,) = self.machine.memory.words(packet[1] | packet[2] << 32, 1)
        return value & packet[4] == packet[3]

    def go(self) -> None:
        """Run the next packet."""
        packet = self.next_packet()
        assert packet is not None
        op, address = packet[0] >> 24, packet[1] | packet[2] << 32 if len(packet) > 2 else 0
        if op not in (LAUNCH, COPY):
            self.clock[self.name] = self.number  # everything in front has ended
        if op == WAIT or op == POLL:
            join(self.clock, self.machine.published.get(address, {}))
        elif op == SIGNAL:
            _, words = self.machine.signal(self, packet)
            words[0] = packet[3] | packet[4] << 32
            self.machine.published[address] = dict(self.clock)
        elif op == TIMESTAMP:
            self.machine.signal(self, packet)[1][1] = self.machine.time
        elif op == WRITE:
            block, at = self.access(address, 4, True, "WRITE")
            block.array[at:at + 4].view("<u4")[0] = packet[3]
            self.clock[self.name] = self.number
            self.machine.published[address] = dict(self.clock)
        elif op == COPY:
            self._copy(address, packet[3] | packet[4] << 32, packet[5] | packet[6] << 32)
        elif op == LAUNCH:
            self._launch(packet)
        self.streams[0].at += len(packet)

    def access(self, address: int, nbytes: int, write: bool, what: str, first: bool = True) -> tuple[Block, int]:
        """Note an access of the next launch or copy (``first``: of a new one); raises where it races."""
        block, at = self.machine.memory.find(address, nbytes)
        if block.kind not in ("data", "shared"):
            raise self.fault(f"{what} touches {address:#x}, which is memory for {block.kind}")
        self.number += first
        mine = Access(at, at + nbytes, write, self.name, self.number, f"{what} of {self.name}")
        for a in block.history:
            ordered = self.clock.get(a.agent, 0) >= a.number or (a.agent, a.number) == (self.name, self.number)
            if a.start < mine.end and mine.start < a.end and (write or a.write) and not ordered:
                raise self.fault(f"{what} {'writes' if write else 'reads'} {nbytes} bytes at {address:#x} that the "
                                 f"{a.what} {'writes' if a.write else 'reads'}, with no barrier or wait between")
        gone = [a for a in block.history if mine.start <= a.start and a.end <= mine.end
                and (write or a.agent == self.name and not a.write)]
        block.history = [a for a in block.history if a not in gone] + [mine]
        return block, at

    def _copy(self, dest: int, src: int, nbytes: int) -> None:
        if not nbytes or dest < src + nbytes and src < dest + nbytes:
            raise self.fault(f"COPY of {nbytes} bytes from {src:#x} to {dest:#x}: nothing, or overlapping")
        source, at = self.access(src, nbytes, False, "COPY")
        target, to = self.access(dest, nbytes, True, "COPY", False)
        early = source.array[at:at + nbytes].copy() if self.machine.rng.random() < 0.5 else None

        def effect() -> None:
            self.machine.memory.find(src, nbytes)
            self.machine.memory.find(dest, nbytes)
            target.array[to:to + nbytes] = source.array[at:at + nbytes] if early is None else early
        self.running.append(Running("COPY", effect))

    def _launch(self, packet: list[int]) -> None:
        code = self.machine.functions.get(packet[1] | packet[2] << 32)
        if code is None:
            raise self.fault(f"LAUNCH of {packet[1] | packet[2] << 32:#x}, where no kernel is loaded")
        at, nbytes = packet[3] | packet[4] << 32, packet[5]
        if nbytes != 8 * (len(code.buffers) + code.scalars):
            raise self.fault(f"kernel {code.name} takes {len(code.buffers)} buffers and {code.scalars} scalars, got "
                             f"{nbytes} bytes of arguments")
        words = self.machine.memory.words(at, nbytes // 8, 64)
        if words != self.streams[0].arguments.get(at, words):
            raise self.fault(f"arguments of kernel {code.name} were changed before it ran")
        if 0 in packet[6:12]:
            raise self.fault(f"kernel {code.name} over a grid of {packet[6:9]} times {packet[9:12]}")
        places = []
        for i, (address, (size, written)) in enumerate(zip(words, code.buffers)):
            places.append((*self.access(address, size, written, f"kernel {code.name}", i == 0), size))
        scalars = [w - (1 << 64) if w >> 63 else w for w in words[len(code.buffers):]]

        def effect() -> None:
            for address, (size, _) in zip(words, code.buffers):
                self.machine.memory.find(address, size)
            code.run([b.array[o:o + n] for b, o, n in places], tuple(packet[6:9]), tuple(packet[9:12]), scalars)
        self.running.append(Running(code.name, effect))

    def waits_for(self) -> str:
        packet = self.next_packet()
        assert packet is not None
        if packet[0] >> 24 == WAIT:
            value = self.machine.signal(self, packet)[0]
            return (f"{self.name} waits for the signal at {packet[1] | packet[2] << 32:#x} to become "
                    f"{packet[3] | packet[4] << 32}, it is {value}")
        return f"{self.name} polls {packet[1] | packet[2] << 32:#x}"


class Machine:
    """Memory and queues; ``step`` lets one of them go on."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.memory = Memory()
        self.queues: list[Queue] = []
        self.functions: dict[int, Code] = {}
        self.published: dict[int, Clock] = {}  # signal -> what was over when it was set
        self.host: Clock = {}
        self.time = 1000
        self.patient = False  # another thread may still submit what a queue waits for
        self.counts: dict[int, int] = {}  # packets run, by op

    def add_queue(self, name: str, ring_words: int, takes: frozenset[int]) -> Queue:
        queue = Queue(self, name, self.memory.alloc(ring_words * 4, "rings"), takes)
        self.queues.append(queue)
        return queue

    def signal(self, queue: Queue, packet: list[int]) -> tuple[int, Any]:
        """(value, the two u64) of the signal a packet names."""
        address = packet[1] | packet[2] << 32
        block, at = self.memory.find(address, 16)
        if block.kind != "signals" or address % 16:
            raise queue.fault(f"{NAMES[packet[0] >> 24]} of {address:#x}, which is no signal")
        words = block.array[at:at + 16].view("<u8")
        return int(words[0]), words

    def _actions(self) -> Iterator[tuple[Queue, Running | None]]:
        for q in self.queues:
            if not q.hung:
                for r in q.running:
                    yield q, r
            if q.can_go():
                yield q, None

    def step(self) -> bool:
        """Let one launch or copy end, or one packet run; False where nothing can."""
        actions = list(self._actions())
        if not actions:
            return False
        self.time += self.rng.randrange(1, 50)
        queue, running = self.rng.choice(actions)
        try:
            if running is None:
                packet = queue.next_packet()
                assert packet is not None
                self.counts[packet[0] >> 24] = self.counts.get(packet[0] >> 24, 0) + 1
                queue.go()
            else:
                queue.running.remove(running)
                running.effect()
        except Fault as e:
            raise e if str(e).startswith(queue.name) else queue.fault(str(e)) from None
        return True

    def advance(self) -> None:
        """What a waiting host calls: some steps; an error where nothing will ever go on."""
        if self.patient or any(q.hung for q in self.queues):
            self.step()
            return
        if not self.step():
            blocked = [q.waits_for() for q in self.queues if q.next_packet() is not None]
            raise Fault("nothing can go on: " + ("; ".join(blocked) or "all queues are empty, and the host waits"))
        for _ in range(self.rng.randrange(5)):
            self.step()
