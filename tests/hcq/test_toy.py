"""The queue layer on a device: copies through staging, peers, kernels one by one, errors, wrap-around."""
from __future__ import annotations

import gc
import random
import threading
import weakref

import numpy as np
import pytest

from tests.hcq import machine as hw
from tests.hcq.machine import Fault
from tests.hcq.toy import Toys
from tests.hcq.toy import site as site
from tests.hcq.toy import toys as toys
from tinyhost.device import Buffer, Device
from tinyhost.dtype import dtypes
from tinyhost.engine.program import get_kernel, get_program
from tinyhost.env import Context
from tinyhost.errors import CompileError, DeviceError, DeviceTimeout
from tinyhost.hcq import commands
from tinyhost.hcq.dependencies import DepsTracker, newest
from tinyhost.hcq.device import Queues, Submission
from tinyhost.hcq.peers import transfer
from tinyhost.hcq.signals import LIMIT, Timeline
from tinyhost.hcq.stream import encode
from tinyhost.hcq.submit import CompiledPatcher, PythonPatcher, host_device
from tinyhost.ops import AxisType, Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import KernelInfo, UOp
from tinyhost.uop.info import ParamArg

SEEDS = range(4)


def queues_of(name: str) -> Queues:
    queues = Device[name].queues
    assert queues is not None
    return queues


def random_bytes(nbytes: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8).tobytes()


def buffer(name: str, data: bytes) -> Buffer:
    return Buffer(name, len(data), dtypes.uint8, initial_value=data)


def content(b: Buffer) -> bytes:
    return bytes(b.as_memoryview())


# *** host and device ***
@pytest.mark.parametrize("kinds", [("COMPUTE", "COPY"), ("BOTH",), ("COMPUTE",)], ids="-".join)
@pytest.mark.parametrize("seed", SEEDS)
def test_copy_in_and_out(toys: Toys, seed: int, kinds: tuple[str, ...]):
    """With a copy queue, on the compute queue, and by the host."""
    plant = toys(seed=seed, kinds=kinds)
    for nbytes in (1, 244, 4096):
        data = random_bytes(nbytes)
        assert content(buffer("TOY", data)) == data
    assert (hw.COPY in plant.machine().counts) == (kinds != ("COMPUTE",))
    assert queues_of("TOY").has_copy_queue == ("COPY" in kinds)


@pytest.mark.parametrize("seed", range(3))
def test_copy_without_copy_queue(toys: Toys, seed: int):
    """61 floats from one device to another, neither of which has a queue for copies."""
    toys(seed=seed, kinds=("BOTH",))
    assert not queues_of("TOY").has_copy_queue and not queues_of("TOY:1").has_copy_queue
    x = np.arange(61, dtype=np.float32)
    t = Tensor(x, device="TOY").realize()
    np.testing.assert_array_equal(t.to("TOY:1").realize().numpy(), x)
    np.testing.assert_array_equal((t.to("TOY:1") * 2).to("TOY:2").numpy(), x * 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_slots_of_staging_memory_are_used_again(toys: Toys, seed: int):
    """5 MB + 123 bytes through 1 MB in 4 slots, both ways."""
    toys(seed=seed)
    q = queues_of("TOY")
    q.staging_bytes, q.staging_slots = 1 << 20, 4
    data = random_bytes((5 << 20) + 123, seed)
    b = buffer("TOY", data)
    assert len(q.staging) == 4 and q.staging.slot_bytes == 1 << 18
    assert content(b) == data
    other = buffer("TOY", data[::-1])
    assert content(other) == data[::-1] and content(b) == data


def test_staging_memory_of_no_size(toys: Toys):
    toys()
    q = queues_of("TOY")
    q.staging_bytes, q.staging_slots = 128, 4
    with pytest.raises(ValueError, match="128 bytes of staging memory make no 4 slots of 64 bytes or more"):
        buffer("TOY", b"x")


# *** devices among each other ***
def pair(a: str, b: str, nbytes: int, seed: int) -> tuple[Buffer, Buffer, bytes]:
    data = random_bytes(nbytes, seed)
    return buffer(a, data), buffer(b, bytes(nbytes)), data


def address(b: Buffer) -> int:
    return queues_of(b.device).address_of(b.get_buf())


@pytest.mark.parametrize("kinds", [("COMPUTE", "COPY"), ("BOTH",)], ids="-".join)
@pytest.mark.parametrize("names", [("TOY", "TOY:1"), ("TOY", "TOY:2"), ("TOY:3", "TOY:1"), ("TOY", "TOY")],
                         ids=["peers", "groups", "groups back", "itself"])
@pytest.mark.parametrize("seed", range(2))
def test_transfer(toys: Toys, seed: int, names: tuple[str, str], kinds: tuple[str, ...]):
    toys(seed=seed, kinds=kinds)
    for name in names:
        queues_of(name).staging_bytes, queues_of(name).staging_slots = 4096, 3
    src, dest, data = pair(*names, 10_000, seed)
    for shift in range(3):  # the source is written anew as soon as the first copy was handed in
        point = transfer(queues_of(names[1]), address(dest), queues_of(names[0]), address(src), 10_000 - shift)
        src.copyin(memoryview(random_bytes(10_000, shift + 100)))
        assert content(dest)[:10_000 - shift] == data[:10_000 - shift]
        assert point.done
        data = random_bytes(10_000, shift + 100)


@pytest.mark.parametrize("kinds, other, possible", [
    (("COMPUTE", "COPY"), "TOY:1", True), (("COMPUTE", "COPY"), "TOY:2", True), (("BOTH",), "TOY:1", True),
    (("COMPUTE",), "TOY:1", False), (("COMPUTE",), "TOY:2", False)])
def test_what_an_allocator_transfers(toys: Toys, kinds: tuple[str, ...], other: str, possible: bool):
    toys(kinds=kinds)
    src, dest, data = pair("TOY", other, 500, 0)
    assert dest.allocator._transfer(dest.get_buf(), src.get_buf(), 500, src.allocator) is possible
    assert (content(dest) == data) is possible
    host = Buffer("NPY", 500, dtypes.uint8, initial_value=data)
    assert dest.allocator._transfer(dest.get_buf(), host.get_buf(), 500, host.allocator) is False


@pytest.mark.parametrize("seed", range(2))
def test_tensors_on_overlapping_sets_of_devices(toys: Toys, seed: int):
    toys(seed=seed)
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    a = Tensor(x).shard(("TOY", "TOY:1"), axis=0)
    b = Tensor(x).shard(("TOY:1", "TOY:2"), axis=1)
    c = Tensor(x).shard(("TOY:2", "TOY"), axis=0)
    np.testing.assert_array_equal((a * 2).realize().sum(0).numpy(), (x * 2).sum(0))
    np.testing.assert_array_equal((b + 1).realize().sum(1).numpy(), (x + 1).sum(1))
    np.testing.assert_array_equal((c.to(("TOY", "TOY:1")) + a.to("TOY").to(("TOY", "TOY:1"))).numpy(), x + x)


# *** kernels one by one ***
@pytest.mark.parametrize("seed", SEEDS)
def test_tensors_run(toys: Toys, seed: int):
    plant = toys(seed=seed)
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((8, 12)).astype(np.float32), rng.standard_normal((12, 5)).astype(np.float32)
    t, u = Tensor(x, device="TOY"), Tensor(w, device="TOY")
    for _ in range(3):
        t, x = (t @ u).relu() @ u.T, np.maximum(x @ w, 0) @ w.T
        np.testing.assert_allclose(t.realize().numpy(), x, rtol=1e-4)
    assert plant.machine().counts[hw.LAUNCH] >= 6


def test_work_runs_behind_the_host(toys: Toys):
    """Nothing is waited for when a kernel is submitted, and freed memory is not reused too early."""
    plant = toys(seed=3)
    t = Tensor(np.ones(100, dtype=np.float32), device="TOY").realize()
    for i in range(60):
        t = (t + 1).realize()
        if i % 20 == 10:
            gc.collect()
    assert queues_of("TOY").timeline.signal.value < queues_of("TOY").timeline.value
    np.testing.assert_array_equal(t.numpy(), np.full(100, 61, np.float32))
    assert not any(q.running or q.streams for q in plant.machine().queues)


class _Thing:
    """What may be kept."""


def test_what_is_kept_until_the_device_is_done(toys: Toys):
    toys(seed=1)
    q = queues_of("TOY")
    q.immediate.run("COMPUTE:0", "nothing", list, {})
    things = [_Thing() for _ in range(2)]
    seen = [weakref.ref(t) for t in things]
    q.keep(things[0])
    point = q.immediate.run("COMPUTE:0", "nothing", list, {})
    q.keep(things[1])
    q.keep(things[0])  # used again: until now
    things.clear()
    gc.collect()
    assert not point.done and all(s() is not None for s in seen)
    q.synchronize()
    assert all(s() is None for s in seen)
    q.keep(_Thing())  # an idle device keeps nothing
    assert not q._kept


def test_signals_of_a_timeline_go_back_to_the_pool(toys: Toys):
    toys()
    pool = queues_of("TOY").group.signals
    used = {Timeline(pool).signal.address for _ in range(40)}
    assert len(used) == 1


@pytest.mark.parametrize("start", [LIMIT - 4, LIMIT - 9, LIMIT - 20])
@pytest.mark.parametrize("seed", range(2))
def test_numbers_wrap_between_kernels_copies_and_transfers(toys: Toys, seed: int, start: int):
    toys(seed=seed, timeline_start=start)
    x = np.arange(20, dtype=np.float32)
    t = Tensor(x, device="TOY").realize()
    for _ in range(8):
        t, x = ((t + 1).to("TOY:1") * 2).to("TOY").realize(), (x + 1) * 2
    np.testing.assert_array_equal(t.numpy(), x)
    assert queues_of("TOY").timeline.epoch == 1 and queues_of("TOY").timeline.value < 100


def test_signals_below_two_to_the_31(toys: Toys, monkeypatch: pytest.MonkeyPatch):
    """No wait or signal of the wrapping run carries a value that does not fit 31 bits."""
    seen: list[int] = []
    original = hw.Machine.signal

    def look(self: hw.Machine, queue: hw.Queue, packet: list[int]):
        if packet[0] >> 24 in (hw.WAIT, hw.SIGNAL):
            seen.append(packet[3] | packet[4] << 32)
        return original(self, queue, packet)
    monkeypatch.setattr(hw.Machine, "signal", look)
    toys(timeline_start=LIMIT - 5)
    t = Tensor(np.ones(4, dtype=np.float32), device="TOY")
    for _ in range(10):
        t = (t + 1).realize()
    t.numpy()
    assert max(seen) == LIMIT - 1 and 1 in seen


@pytest.mark.parametrize("seed", range(4))
def test_threads_share_devices(toys: Toys, seed: int):
    """Three threads copy, transfer and compute at once, also against each other between two groups."""
    plant = toys(seed=seed, timeline_start=LIMIT - 60)
    plant.machine(0).patient = plant.machine(1).patient = True
    pairs, problems = (("TOY", "TOY:2"), ("TOY:2", "TOY"), ("TOY", "TOY:1")), list[Exception]()
    for name in ("TOY", "TOY:1", "TOY:2"):
        queues_of(name).staging_bytes = 512

    def work(number: int) -> None:
        here, there = pairs[number]
        try:
            for i in range(6):
                src, dest, data = pair(here, there, 900, i * 3 + number)
                transfer(queues_of(there), address(dest), queues_of(here), address(src), 900)
                assert content(dest) == data
        except Exception as e:  # a thread has nobody to raise it to
            problems.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems and not any(t.is_alive() for t in threads), problems


# *** streams of random commands, both ways to submit ***
class Script:
    """Random kernels and copies over a few buffers on two devices, with the waits the tracker asks for."""

    def __init__(self, seed: int, compiled: bool) -> None:
        self.rng, self.compiled = random.Random(seed), compiled
        self.names = [("TOY", "COMPUTE:0"), ("TOY", "COPY:0"), ("TOY:1", "COMPUTE:0"), ("TOY:1", "COPY:0")]
        self.buffers = [Buffer("TOY", 64, dtypes.int32).ensure_allocated() for _ in range(3)]
        self.buffers += [Buffer("TOY:1", 64, dtypes.int32).ensure_allocated() for _ in range(3)]
        self.model = [np.zeros(64, np.int32) for _ in self.buffers]
        for i, b in enumerate(self.buffers):
            self.model[i][:] = np.arange(64) * (i + 1)
            b.copyin(memoryview(self.model[i].tobytes()))
        self.tracker = DepsTracker[tuple[int, int]]()
        self.counts = [0] * 4
        self.items: list[list] = [[] for _ in range(4)]
        self.steps: list[tuple] = []

    def build(self, length: int) -> list[tuple]:
        add = {d: _program(d) for d in ("TOY", "TOY:1")}
        for _ in range(length):
            copies = self.rng.random() < 0.5
            q = self.rng.choice([1, 3] if copies else [0, 2])
            mine = [0, 1, 2] if q < 2 else [3, 4, 5]
            dest, src = self.rng.sample(range(6) if copies else mine, 2)
            start, size = (self.rng.randrange(32), self.rng.randrange(1, 32)) if copies else (0, 64)
            self.counts[q] += 1
            token = q, self.counts[q]
            a, b = (self.tracker.access(i, start * 4, (start + size) * 4, w, token) for i, w in ((src, False),
                                                                                             (dest, True)))
            for other, value in sorted(newest([*a, *b], q, fifo=False).items()):
                self.items[q].append(commands.barrier() if other == q else commands.wait(
                    commands.variable(f"signal{other}"), commands.variable(f"base{other}") + value))
            d, s = (queues_of(self.buffers[i].device).address_of(self.buffers[i].get_buf()) for i in (dest, src))
            self.items[q].append(
                commands.copy(d + 4 * start, s + 4 * start, 4 * size) if copies
                else commands.execute(add[self.names[q][0]], [d, s], [1]))
            self.items[q].append(commands.signal(commands.variable(f"signal{q}"),
                                                 commands.variable(f"base{q}") + self.counts[q]))
            self.steps.append((copies, dest, src, start, size))
        return self.steps

    def run(self, times: int) -> None:
        group, devices = queues_of("TOY").group, [queues_of("TOY"), queues_of("TOY:1")]
        lines = [Timeline(group.signals, start=LIMIT - 3 * c if c else 0) for c in self.counts]
        linked = []
        for (device, name), items in zip(self.names, self.items):
            waits = [commands.wait(commands.variable(f"before{i}"), commands.variable(f"then{i}")) for i in range(2)]
            stream = encode(commands.queue((device,), name, [*waits, *items]), queues_of(device).encoder(name))
            memory = {r: queues_of(device).allocate(max(stream.nbytes(r), 1)) for r in stream.regions}
            linked.append(stream.link(memory))
        patch = CompiledPatcher(linked, _compile) if self.compiled else PythonPatcher(linked)
        for _ in range(times):
            values = {}
            for line in lines:
                line.wait()
            for i, q in enumerate(devices):
                values |= {f"before{i}": q.timeline.signal.address, f"then{i}": q.timeline.value}
            for i, (line, count) in enumerate(zip(lines, self.counts)):
                values |= {f"base{i}": line.reserve(count), f"signal{i}": line.signal.address}
            patch({n: values[n] for n in patch.names})
            group.submit([Submission(queues_of(d), n, one) for (d, n), one in zip(self.names, linked)])
            for copies, dest, src, start, size in self.steps:
                if copies:
                    self.model[dest][start:start + size] = self.model[src][start:start + size]
                else:
                    self.model[dest][:] = self.model[src] * 3 + 1
        for line in lines:
            line.wait()
        for b, m in zip(self.buffers, self.model):
            np.testing.assert_array_equal(b.numpy(), m)


def _compile(sink):
    return get_program(get_kernel(sink, host_device()), host_device())


def _program(device: str):
    """A kernel: its first buffer becomes its second times 3 plus 1, 64 elements in one loop."""
    dest, src = (UOp(Ops.PARAM, (), ParamArg(i, dtypes.int32, 64, device=device)) for i in range(2))
    i = UOp(Ops.RANGE, (UOp.const(64),), (0, AxisType.LOOP))
    sink = UOp.sink(dest.index(i).store(src.index(i) * 3 + 1).end(i), arg=KernelInfo("triple", opts_to_apply=()))
    return get_program(get_kernel(sink, device), device)


@pytest.mark.parametrize("compiled", [False, True], ids=["HCQ2=0", "HCQ2=1"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_commands(toys: Toys, seed: int, compiled: bool):
    toys(seed=seed)
    script = Script(seed, compiled)
    script.build(25)
    script.run(5)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(16))
def test_many_random_commands(toys: Toys, part: int):
    for seed in range(100 + part * 12, 112 + part * 12):
        toys(seed=seed)
        script = Script(seed, compiled=seed % 2 == 1)
        script.build(40)
        script.run(6)


# *** errors ***
def test_a_device_that_hangs(toys: Toys):
    plant = toys()
    x = Tensor(np.ones(4, dtype=np.float32), device="TOY").realize()
    x.numpy()
    plant.machine().queues[0].hung = True
    y = (x + 1).realize()
    with Context(HCQDEV_WAIT_TIMEOUT_MS=20), pytest.raises(DeviceTimeout) as first:
        y.numpy()
    assert "nothing changed for 20 ms" in str(first.value) and "TOY takes no more work" in str(first.value)
    plant.machine().queues[0].hung = False
    for again in (y.numpy, Device["TOY"].synchronize, lambda: (x + 2).realize(), lambda: buffer("TOY", b"x")):
        with pytest.raises(DeviceTimeout) as e:
            again()
        assert str(e.value) == str(first.value)
    np.testing.assert_array_equal(Tensor(np.ones(4, dtype=np.float32), device="TOY:2").numpy(), np.ones(4, np.float32))


def test_a_fault_of_the_device(toys: Toys):
    toys()
    q = queues_of("TOY:1")
    with pytest.raises(Fault, match=r"^TOY:1 COPY:0, word 5 of the stream at 0x[0-9a-f]+: bad address: 16 bytes at "
                                    r"0x5678 are not mapped. TOY:1 takes no more work"):
        q.immediate.copy("COPY:0", 0x1234, 0x5678, 16).wait()
    with pytest.raises(DeviceError, match="bad address"):
        q.immediate.copy("COPY:0", 0x1234, 0x5678, 16)


def test_an_encoder_without_copies(toys: Toys):
    toys(kinds=("COMPUTE",))
    for _ in range(2):
        with pytest.raises(CompileError, match="no packets for the command copy of queue"):
            queues_of("TOY").immediate.copy("COMPUTE:0", 0, 64, 16)
    np.testing.assert_array_equal((Tensor([1, 2], device="TOY") + 1).numpy(), [2, 3])  # the device goes on


def test_memory_of_streams_is_freed(toys: Toys):
    plant = toys()
    t = Tensor(np.ones(8, dtype=np.float32), device="TOY")
    for _ in range(50):
        t = (t + 1).realize()
    t.numpy()
    live = [b for b in plant.machine().memory._blocks if b.kind == "streams" and not b.freed]
    assert len(live) < 120
