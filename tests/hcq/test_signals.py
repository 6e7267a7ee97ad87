"""Signals and timelines: values, waits that end, waits that give up, numbers that wrap, errors that stay."""
from __future__ import annotations

import gc
import threading

import pytest

from tests.hcq.memory import host_memory
from tinyhost.env import Context
from tinyhost.errors import DeviceError, DeviceTimeout, KernelFault
from tinyhost.hcq.signals import LIMIT, ErrorState, Signal, SignalPool, Timeline, wait_all


@pytest.fixture
def pool() -> SignalPool:
    return SignalPool(host_memory)


def test_layout_of_a_signal():
    memory = host_memory(16, address=0x10040)
    s = Signal(memory, 5)
    s.value = 0x1_0000_0002
    memory.mmio(64)[1] = 77
    assert bytes(memory.view[:8]) == (0x1_0000_0002).to_bytes(8, "little")
    assert (s.address, s.timestamp) == (0x10040, 77)
    with pytest.raises(ValueError, match="16 bytes at a multiple of 16, not 16 bytes at 0x10048"):
        Signal(host_memory(16, address=0x10048))


def test_signals_of_a_pool_are_apart_and_come_back(pool: SignalPool):
    signals = [pool.get(i) for i in range(600)]
    assert [s.value for s in signals] == list(range(600)) and len({s.address for s in signals}) == 600
    signals[3].memory.mmio(64)[1] = 99
    pool.put(signals[3])
    again = pool.get()
    assert again.address == signals[3].address and again.value == 0 and again.timestamp == 0


def test_memory_of_a_signal_lives_as_long_as_it():
    s = SignalPool(host_memory).get(3)
    gc.collect()
    s.value += 1
    assert s.value == 4


def test_the_sentinel_has_every_value(pool: SignalPool):
    pool.sentinel.wait(LIMIT * 1000, timeout_ms=0)
    assert pool.sentinel is pool.sentinel and pool.get().address != pool.sentinel.address


def test_a_wait_ends_when_another_thread_sets_the_value(pool: SignalPool):
    s, entered = pool.get(), threading.Event()

    def later() -> None:
        entered.wait(5)
        s.value = 9
    t = threading.Thread(target=later)
    t.start()
    s._on_wait = entered.set
    s.wait(9, timeout_ms=5000)
    t.join()


def test_a_wait_without_progress_gives_up(pool: SignalPool):
    with pytest.raises(DeviceTimeout, match=r"waited .* for a signal to become 2; it is 1, and nothing changed for 20 "
                                            r"ms.*Set HCQDEV_WAIT_TIMEOUT_MS to wait longer") as e:
        pool.get(1).wait(2, timeout_ms=20)
    assert isinstance(e.value, TimeoutError)


@pytest.mark.parametrize("pause, ends", [(0, True), (1, True), (3, False)])
def test_progress_begins_the_time_anew(monkeypatch: pytest.MonkeyPatch, pause: int, ends: bool):
    """A limit of 25 ms: 100 steps of 10 ms each outlast it, a pause of 3 more at value 60 does not."""
    clock, left = [0.0], [pause]
    monkeypatch.setattr("tinyhost.hcq.signals.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("tinyhost.hcq.signals.time.sleep", lambda seconds: None)

    def step() -> None:
        clock[0] += 0.010
        if s.value == 60 and left[0]:
            left[0] -= 1
        else:
            s.value += 1
    s = SignalPool(host_memory, step).get()
    with Context(HCQDEV_WAIT_TIMEOUT_MS=25):
        if ends:
            s.wait(100)
        else:
            with pytest.raises(DeviceTimeout, match="become 100; it is 60"):
                s.wait(100)


# *** timelines ***
def test_numbers_in_order(pool: SignalPool):
    t = Timeline(pool)
    assert [t.reserve(), t.reserve(3), t.reserve()] == [0, 1, 4] and t.value == 5
    t.signal.value = 4
    t.wait(4)
    with pytest.raises(DeviceTimeout):
        t.wait(timeout_ms=1)


def test_numbers_wrap_when_the_device_is_idle(pool: SignalPool):
    t = Timeline(pool, start=LIMIT - 3)
    assert t.reserve() == LIMIT - 3
    old, point = t.signal, t.point()
    assert not point.done
    with Context(HCQDEV_WAIT_TIMEOUT_MS=1), pytest.raises(DeviceTimeout, match=f"become {LIMIT - 2}"):
        Timeline.reserve(t, 5)
    t.errors.error = None
    old.value = LIMIT - 2
    assert t.reserve(2) == 0 and t.value == 2 and t.epoch == 1
    assert t.signal is not old and t.signal.value == 0
    assert old.value == LIMIT - 2, "what other devices wait for in the old signal stays reached"
    assert point.done
    point.wait(timeout_ms=0)


def test_numbers_wrap_twice(pool: SignalPool):
    t = Timeline(pool)
    signals = []
    for _ in range(3):
        t.value = t.signal.value = LIMIT - 1
        signals.append(t.signal)
        assert t.reserve() == 0 and t.signal.value == 0
    assert signals[0] is signals[2] and signals[0] is not signals[1], "two signals take turns"


def test_the_last_number_is_below_the_limit(pool: SignalPool):
    t = Timeline(pool, start=LIMIT - 2)
    assert t.reserve() == LIMIT - 2 and t.value == LIMIT - 1 and t.epoch == 0
    with pytest.raises(ValueError, match="cannot reserve 2147483648 at once"):
        t.reserve(LIMIT)


def test_points_of_several_timelines(pool: SignalPool):
    lines = [Timeline(pool) for _ in range(3)]
    for t in lines:
        t.reserve(2)
    points = [t.point(1) for t in lines]
    for t in lines:
        t.signal.value = 1
    wait_all(points)
    assert all(p.done for p in points) and not lines[0].point().done


# *** errors ***
def test_errors_stay(pool: SignalPool):
    errors = ErrorState("TOY:1")
    t = Timeline(pool, errors)
    t.reserve()
    with pytest.raises(DeviceTimeout) as first:
        t.wait(timeout_ms=1)
    t.signal.value = 1  # too late
    for use in (t.wait, t.reserve, errors.check):
        with pytest.raises(DeviceTimeout) as again:
            use()
        assert str(again.value) == str(first.value)
    assert "TOY:1 takes no more work in this process: save what other devices hold, and start anew" in str(first.value)


def test_the_first_error_stays():
    errors = ErrorState("TOY")
    with pytest.raises(KernelFault, match="kernel a"):
        errors.fail(KernelFault("kernel a read address 0"))
    with pytest.raises(KernelFault, match="kernel a"):
        errors.fail(DeviceError("reset"))


def test_what_is_wrong_with_a_device_ends_a_wait():
    def look() -> None:
        raise KernelFault("kernel a read address 0")
    t = Timeline(SignalPool(host_memory, look), ErrorState("TOY"))
    t.reserve()
    with pytest.raises(KernelFault, match="read address 0. TOY takes no more work"):
        t.wait()
    with pytest.raises(KernelFault, match="read address 0. TOY takes no more work"):
        t.reserve()
