"""Memory over a whole capture: what nobody refers to shares arenas, everything else stays where it is."""
from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.engine.captured_programs import Captured
from tinyhost import Context, GlobalCounters, Tensor, TinyJit, dtypes, nn
from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.engine import arrange as arranging
from tinyhost.engine.arrange import Recording
from tinyhost.engine.capture import Fresh
from tinyhost.engine.plan import Copy

SIZE = 1 << 16  # elements of the large tensors, float32
LARGE = 4 * SIZE


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """What captures were arranged to, in order."""
    seen: list[Recording] = []
    arranged = arranging._arranged

    def noted(*args: Any) -> Recording:
        seen.append(arranged(*args))
        return seen[-1]
    monkeypatch.setattr(arranging, "_arranged", noted)
    return seen


@contextmanager
def most_used() -> Iterator[list[int]]:
    """The bytes in use after each allocation in the block, above those before it."""
    gc.collect()
    before, seen, allocate = GlobalCounters.mem_used, [0], Buffer.allocate

    def counted(self: Buffer, *args: Any, **kwargs: Any) -> Buffer:
        out = allocate(self, *args, **kwargs)
        seen.append(GlobalCounters.mem_used - before)
        return out
    Buffer.allocate = counted  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Buffer.allocate = allocate  # type: ignore[method-assign]


def ramp() -> Tensor:
    return Tensor(np.arange(SIZE, dtype=np.float32)).realize()


def chain(x: Tensor) -> Tensor:
    """Nine realized steps, each of which reads the one before."""
    for i in range(9):
        x = (x * 2 + i).realize()
    return x.sum()


def chained(x: "np.ndarray[Any, Any]") -> float:
    for i in range(9):
        x = x * 2 + i
    return float(x.astype(np.float64).sum())


def address(t: Tensor) -> int:
    buffer = buffer_of(t.uop.base)
    assert isinstance(buffer, Buffer)
    return int(np.frombuffer(buffer.as_memoryview(force_zero_copy=True), np.uint8).ctypes.data)


def arena_bytes(recording: Recording) -> int:
    return sum(a.nbytes for a in recording.arenas)


# *** sizes ***
def test_a_chain_of_freed_tensors_takes_two(recordings: list[Recording]):
    f, x = TinyJit(chain), ramp()
    for call in range(5):
        with most_used() as seen:
            result = f(x)
        assert max(seen) <= 2 * LARGE + 4096, f"call {call}"
        assert result.item() == pytest.approx(chained(x.numpy()))
    assert arena_bytes(recordings[0]) <= 2 * LARGE + 4096 and len(recordings[0].arenas) == 1


def test_layers_that_are_realized_take_two(recordings: list[Recording]):
    """Results of replays have no gradients, so activations need not stay for those."""
    layers = [nn.Linear(64, 64) for _ in range(6)]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x).relu().realize()
        return x.sum()
    x = Tensor(np.ones((SIZE // 64, 64), np.float32)).realize()
    assert len({f(x).item() for _ in range(4)}) == 1
    assert arena_bytes(recordings[0]) <= 2 * LARGE + 4096 and len(recordings[0].used) == 12


def test_temporaries_of_plans_and_realized_tensors_share(recordings: list[Recording]):
    """A plan's own temporary lies where a tensor of the plan before lay."""
    def f(x: Tensor) -> Tensor:
        for _ in range(4):
            x = (x.reshape(256, 256).softmax(1) * 2).sum(0).reshape(256, 1).expand(256, 256).contiguous().realize()
        return x.sum()
    jit, x = TinyJit(f), ramp()
    want = f(x).item()
    assert [jit(x).item() for _ in range(4)] == [want] * 4
    assert arena_bytes(recordings[0]) <= 2 * LARGE + 65536


def test_without_the_planner_each_has_its_own_memory(recordings: list[Recording]):
    with Context(NO_MEMORY_PLANNER=1):
        f, x = TinyJit(chain), ramp()
        for _ in range(4):
            assert f(x).item() == pytest.approx(chained(x.numpy()))
    assert len(recordings[0].arenas) >= 9 and arena_bytes(recordings[0]) >= 9 * LARGE


def test_the_planner_may_be_switched_between_captures(recordings: list[Recording]):
    x = ramp()
    for off in (0, 1, 0):
        with Context(NO_MEMORY_PLANNER=off):
            f = TinyJit(lambda x: ((x.reshape(256, 256) @ x.reshape(256, 256)).softmax(1) @ x.reshape(256, 256)).sum())
            for _ in range(3):
                f(x)
    assert len(recordings[0].arenas) == len(recordings[2].arenas) == 1 < len(recordings[1].arenas)


def test_a_loaded_capture_holds_no_content_of_temporaries(recordings: list[Recording]):
    f, x = TinyJit(chain), ramp()
    f(x)
    want = f(x).item()
    data = pickle.dumps(f)
    assert len(data) < LARGE // 4
    g = pickle.loads(data)
    with most_used() as seen:
        assert g(x).item() == g(x).item() == want
    assert max(seen) <= 2 * LARGE + 4096 and arena_bytes(recordings[1]) <= 2 * LARGE + 4096
    assert pickle.loads(pickle.dumps(g))(x).item() == want


def test_each_lane_has_an_arena(recordings: list[Recording]):
    """What copies touch lies apart from the rest, and is held twice as long."""
    def f(x: Tensor) -> Tensor:
        for _ in range(2):
            x = (x.reshape(256, 256).softmax(1) * 2).sum(0).expand(256, 256).contiguous().realize()
            x = (x.to("CPU:1") + 1).to("CPU")
        return x.sum()
    jit, x = TinyJit(f), ramp()
    assert len({jit(x).item() for _ in range(4)}) == 1
    touched = {(o.source, isinstance(s.what, Copy)) for s in recordings[0].steps for o in s.args}
    lanes = {(a.device, (a, True) in touched) for a in recordings[0].arenas}
    assert lanes == {("CPU", False), ("CPU", True), ("CPU:1", True)} and len(recordings[0].arenas) == 3


def test_buffers_take_turns_where_a_device_has_no_views(recordings: list[Recording]):
    def f(x: Tensor) -> Tensor:
        for i in range(9):
            x = (x * 2 + i).realize()
        return x.sum()
    with Context(DEV="PYTHON::gpu"):
        x, jit = Tensor(np.arange(64, dtype=np.float32)).realize(), TinyJit(f)
        assert [jit(x).item() for _ in range(4)] == [chained(np.arange(64, dtype=np.float32))] * 4
    assert len(recordings[0].arenas) == 2 and all(o.view is None for s in recordings[0].steps for o in s.args)


def test_storage_on_several_devices():
    devices = ("CPU:1", "CPU:2")

    def f(x: Tensor) -> Tensor:
        for i in range(9):
            x = (x * 2 + i).realize()
        return x.sum()
    x = Tensor(np.arange(SIZE, dtype=np.float32)).shard(devices, 0).realize()
    jit = TinyJit(f)
    for _ in range(5):
        with most_used() as seen:
            assert jit(x).item() == pytest.approx(chained(np.arange(SIZE, dtype=np.float32)))
        assert max(seen) <= 2 * LARGE + 16384
    assert len(data := pickle.dumps(jit)) < LARGE // 4
    with most_used() as seen:
        assert pickle.loads(data)(x).item() == jit(x).item()
    assert max(seen) <= 2 * LARGE + 16384


def test_fresh_storage_is_known_without_being_held():
    storage = MultiBuffer([Buffer("CPU:1", 4, dtypes.int32), Buffer("CPU:2", 4, dtypes.int32)])
    part, fresh = storage.lane("CPU:1"), Fresh(storage)
    assert fresh.is_of(storage) and fresh.storage() is storage and not fresh.is_gone()
    del storage
    found = fresh.storage()
    assert isinstance(found, MultiBuffer) and found.lane("CPU:1") is part and found.device == ("CPU:1", "CPU:2")
    assert fresh.is_of(found) and not fresh.is_gone()
    del found
    assert not fresh.is_gone()  # someone holds a part
    del part
    assert fresh.is_gone() and not fresh.storage().is_allocated()


# *** what stays ***
def test_what_the_function_left_stays_where_it_is():
    """A tensor, a view and a lazy reader that are left hold their memory; replays fill it anew."""
    left: dict[str, Tensor] = {}

    def f(x: Tensor) -> Tensor:
        a = (x * 2).realize()
        b = (a + 1).realize()
        c = (b * 3).realize()
        d = (c - 5).realize()
        left.update(whole=a, view=b[100:200], lazy=c.sum())
        return (d * 2).realize().sum()
    jit = TinyJit(f)
    jit(ramp())
    first = jit(ramp())
    x = np.arange(SIZE, dtype=np.float32)
    places: list[tuple[int, int]] = []
    for i in range(4):
        jit((ramp() + i).realize())
        places.append((address(left["whole"]), address(left["view"])))
        assert left["whole"].numpy().tobytes() == ((x + i) * 2).tobytes()
        assert left["view"].numpy().tobytes() == ((x + i) * 2 + 1)[100:200].tobytes()
    assert len(set(places)) == 1
    assert left["lazy"].item() == pytest.approx(float((((x + 3) * 2 + 1) * 3).astype(np.float64).sum()))
    assert first.item() == pytest.approx(float((((x * 2 + 1) * 3 - 5) * 2).astype(np.float64).sum()))


def test_exports_of_what_was_left_keep_their_value():
    left: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        left[:] = [(x * 2).realize()]
        return chain(left[0] + 1)
    jit, x = TinyJit(f), ramp()
    exports = []
    for i in range(6):
        jit((x + i).realize())
        exports.append((np.frombuffer(left[0].data(), np.float32), left[0].numpy()))
    assert all((export == value).all() for export, value in exports)


def test_results_of_all_calls_keep_their_values():
    jit, x = TinyJit(lambda x: (chain(x), (x * 3).realize())), ramp()
    kept = [jit((x + i).realize()) for i in range(6)]
    for i, (total, tripled) in enumerate(kept):
        want = np.arange(SIZE, dtype=np.float32) + i
        assert total.item() == pytest.approx(chained(want)) and tripled.numpy().tobytes() == (want * 3).tobytes()


def test_content_made_by_the_host_stays():
    """Memory that no step fills is state, also where no tensor is left on it."""
    def f(x: Tensor) -> Tensor:
        table = Tensor(np.arange(SIZE, dtype=np.float32)[::-1].copy()).realize()
        return ((x + table).realize() * 2).realize().sum()
    jit, x = TinyJit(f), ramp()
    assert [jit(x).item() for _ in range(4)] == [pytest.approx(2.0 * SIZE * (SIZE - 1))] * 4


def test_storage_that_a_capture_makes_and_leaves():
    """What makes it is a part of the capture, so each replay begins with it anew."""
    box: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        if len(box) < 2:
            box.append(Tensor.zeros(4).contiguous().realize())
        box[-1] += x
        return chain(box[-1].sum().expand(SIZE))
    jit, x = TinyJit(f), Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    for _ in range(5):
        jit(x)
    assert box[1].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_two_captures_of_one_function_have_their_own_memory():
    f = TinyJit(chain, captures=2)
    x, y = ramp(), (ramp()[:SIZE // 2] + 1).realize()
    for _ in range(4):
        assert f(x).item() == pytest.approx(chained(x.numpy())) and f(y).item() == pytest.approx(chained(y.numpy()))


# *** random functions ***
def compare(seed: int) -> None:
    """A random function, eager, captured with the planner and without, against numpy: to the last bit."""
    for jitted, off in ((False, 0), (True, 0), (True, 1)):
        program = Captured(seed)
        run = TinyJit(program) if jitted else program
        with Context(NO_MEMORY_PLANNER=off):
            for i in range(5):
                program.call(run, i)
        program.check()


@pytest.mark.parametrize("seed", range(16))
def test_random_functions(seed: int):
    compare(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_more_random_functions(seed: int):
    compare(seed)
