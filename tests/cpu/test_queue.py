"""Packets of the queue IR: what a command becomes, in which order packets may start, and what they do when they run."""
from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from tinyhost import Device
from tinyhost.dtype import dtypes
from tinyhost.errors import CompileError
from tinyhost.hcq import commands
from tinyhost.hcq.device import Submission
from tinyhost.hcq.stream import COMMANDS, Linked, encode
from tinyhost.hcq.submit import PythonPatcher
from tinyhost.uop import UOp
from tinyhost_cpu.native import layout
from tinyhost_cpu.queue import COPY_CHUNK, CPUQueues, host_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                                reason="packets are for Linux on x86-64")


def queues(device: str = "CPU") -> CPUQueues:
    found = Device[device].queues
    assert isinstance(found, CPUQueues)
    return found


def linked(items: Sequence[UOp], device: str = "CPU") -> Linked:
    q = queues(device)
    stream = encode(commands.queue((device,), q.compute_queue, items), q.encoder(q.compute_queue))
    return stream.link({name: q.allocate(max(stream.nbytes(name), 1)) for name in stream.regions})


def packets(stream: Linked) -> np.ndarray:
    """Rows of words."""
    words = np.frombuffer(stream.memory[COMMANDS].view, np.uint64)
    return words[layout.RUN_HEADER_BYTES // 8:][:stream.nbytes() // 8 - layout.RUN_HEADER_BYTES // 8].reshape(-1, 8)


def needs(items: Sequence[UOp]) -> list[int]:
    """What each packet waits for, the end included."""
    return packets(linked(items))[:, layout.PACKET_NEED // 8].tolist()


def submit(*work: Linked, device: str = "CPU") -> None:
    group = queues(device).group
    group.submit([Submission(queues(device), "COMPUTE:0", w) for w in work])


def test_a_barrier_orders_what_follows() -> None:
    memory = host_memory(256)
    a, b, c = [commands.copy(memory.address + 64 * i, memory.address + 192, 8) for i in range(3)]
    assert needs([a, b, c]) == [0, 0, 0, 3]
    assert needs([a, b, commands.barrier(), c]) == [0, 0, 2, 3]
    assert needs([commands.barrier(), a, commands.barrier(), commands.barrier(), b]) == [0, 1, 2]


def test_waits_hold_what_follows_and_signals_do_not() -> None:
    memory = host_memory(256)
    copy = commands.copy(memory.address, memory.address + 64, 8)
    signal = memory.address + 128
    assert needs([copy, commands.wait(signal, 0), copy]) == [0, 1, 2, 3]
    assert needs([copy, commands.poll(signal, 0), copy]) == [0, 1, 2, 3]
    for later in (commands.signal(signal, 1), commands.timestamp(signal), commands.write(signal, 1)):
        assert needs([copy, later, copy]) == [0, 1, 0, 3]


def test_a_large_copy_is_shared() -> None:
    memory = host_memory(64)
    copy = commands.copy(memory.address, memory.address, 3 * COPY_CHUNK + 1)
    assert packets(linked([copy]))[0, layout.PACKET_CHUNKS // 8] == 4
    assert needs([copy]) == [0, 4]


def test_what_the_commands_do() -> None:
    memory = host_memory(4096)
    bytes_, base = np.frombuffer(memory.view, np.uint8), memory.address
    bytes_[:100] = np.arange(100)
    submit(linked([commands.copy(base + 1024, base, 100), commands.barrier(),
                   commands.copy(base + 2048, base + 1024, 50),
                   commands.write(base + 3000 // 4 * 4, -2), commands.signal(base + 3200, 1 << 40),
                   commands.wait(base + 3200, 1 << 40), commands.poll(base + 3200 + 4, 1 << 8, 0xF00),
                   commands.timestamp(base + 3200)]))
    assert (bytes_[2048:2098] == np.arange(50)).all() and (bytes_[2098:2148] == 0).all()
    assert bytes_[3000:3004].view(np.int32)[0] == -2 and bytes_[3004:3008].view(np.int32)[0] == 0
    assert bytes_[3200:3208].view(np.uint64)[0] == 1 << 40 and bytes_[3208:3216].view(np.uint64)[0] > 0


def test_streams_of_one_submission_wait_for_each_other() -> None:
    memory = host_memory(512)
    words, at = np.frombuffer(memory.view, np.uint64), memory.address
    words[0] = 7
    second = linked([commands.wait(at + 64, 1), commands.copy(at + 16, at + 8, 8), commands.signal(at + 128, 1)],
                    "CPU:1")
    first = linked([commands.copy(at + 8, at, 8), commands.signal(at + 64, 1), commands.wait(at + 128, 1),
                    commands.copy(at + 24, at + 16, 8)])
    submit(second, first)
    assert words[:4].tolist() == [7, 7, 7, 7]


def test_variables_come_with_each_submission() -> None:
    memory = host_memory(64)
    words = np.frombuffer(memory.view, np.uint64)
    work = linked([commands.signal(commands.variable("where"), commands.variable("what") * 3 + 1)])
    assert work.variables == ("what", "where")
    patch = PythonPatcher([work])
    for i in range(4):
        patch({"where": memory.address + 8 * i, "what": i})
        submit(work)
    assert words[:4].tolist() == [1, 4, 7, 10]


def test_a_launch_has_a_number_of_parts() -> None:
    q = queues()
    part = commands.variable("parts")
    program = type("P", (), {"arranged": lambda self, b, s: [*b, *s], "scratch_at": -1, "scratch_bytes": 0})()
    launch = commands.execute(program, [0], [part, 1, 1], (), [0], chunk=0)
    with pytest.raises(AssertionError, match="the parts of a kernel are a number, not parts"):
        encode(commands.queue(("CPU",), "COMPUTE:0", [launch]), q.encoder("COMPUTE:0"))
    unknown = UOp(commands.barrier().op, (), "sleep")
    with pytest.raises(CompileError, match="no packets for the command sleep"):
        encode(commands.queue(("CPU",), "COMPUTE:0", [unknown]), q.encoder("COMPUTE:0"))


def test_words_are_of_64_bits() -> None:
    assert commands.variable("x").dtype is dtypes.uint64
    assert packets(linked([commands.signal(64, -1)]))[0, layout.PACKET_B // 8] == (1 << 64) - 1
