"""What is realized and what it costs: corner cases of shapes, constants, views, symbols; memory that comes and goes."""
from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinyhost import Context, Device, GlobalCounters, Tensor, Variable, dtypes
from tinyhost.device import Buffer, BufferSpec, LRUAllocator
from tinyhost.engine.memory import ALIGNMENT, Block, place
from tinyhost.errors import OutOfMemory


def kernels(call: Any) -> int:
    before = GlobalCounters.kernel_count
    call()
    return GlobalCounters.kernel_count - before


# *** corner cases ***
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_empty_tensors(shape: tuple[int, ...]):
    x = Tensor(np.zeros(shape, np.float32))
    y = (x + 1).realize()
    assert y.shape == shape and y.tolist() == np.zeros(shape).tolist() and y.numpy().shape == shape
    assert x.sum().item() == 0 and (x.reshape(-1) * 2).tolist() == [] and x.contiguous().realize().shape == shape
    z = Tensor.zeros(*shape)
    z += 1
    z.assign(z * 2).realize()
    assert z.tolist() == np.zeros(shape).tolist()
    assert Tensor.ones(3).cat(Tensor.zeros(0)).tolist() == [1, 1, 1]
    Tensor.realize(x, Tensor.ones(2), z)


def test_constants_need_no_kernel():
    assert kernels(lambda: Tensor(3).item()) == 0
    assert Tensor(3.5).tolist() == 3.5 and Tensor.arange(3).tolist() == [0, 1, 2]
    assert Tensor(2).realize().item() == 2 and (Tensor(2) + 3).item() == 5
    assert Tensor.full((2, 2), 7, buffer=False).tolist() == [[7, 7], [7, 7]]


def test_views_of_views():
    a = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    x = Tensor(a).realize()
    assert kernels(lambda: x[1:3].realize()) == 0  # a view is there already
    assert (x[1:3, ::2].transpose(0, 2).flip(0)[1:4, 1].numpy() == np.flip(a[1:3, ::2].swapaxes(0, 2), 0)[1:4, 1]).all()
    assert (x.reshape(20, 6).permute(1, 0).reshape(6, 4, 5).shrink(((1, 3), None, (0, 2))).numpy()
            == a.reshape(20, 6).T.reshape(6, 4, 5)[1:3, :, :2]).all()
    assert (x.expand(2, 4, 5, 6)[1, 2].numpy() == a[2]).all()


def test_reading_part_of_a_buffer_copies_that_part_only():
    x = Tensor(np.arange(1 << 20, dtype=np.float32)).realize()
    assert kernels(lambda: x[5:9].tolist()) == 0 and x[5:9].tolist() == [5, 6, 7, 8]
    assert kernels(lambda: x.reshape(1024, 1024)[3].numpy()) == 0 and x.reshape(1024, 1024)[3, 2].item() == 3 * 1024 + 2


def test_realizing_twice_runs_once():
    x = Tensor(np.ones(4, np.float32)).realize()
    y = x + 1
    assert kernels(y.realize) == 1 and kernels(y.realize) == 0 and kernels(lambda: y.tolist()) == 0


def test_equal_graphs_are_computed_once():
    x = Tensor(np.ones(4, np.float32)).realize()
    a, b = x + 1, x + 1
    assert kernels(lambda: Tensor.realize(a, b)) == 1


def test_copies_from_the_host_are_shared():
    x = Tensor(np.arange(4, dtype=np.float32))
    y, z = x + 1, x * 2
    assert kernels(lambda: Tensor.realize(y)) == 2 and kernels(lambda: Tensor.realize(z)) == 1


def test_symbolic_shapes():
    x = Tensor(np.arange(10, dtype=np.float32)).realize()
    v = Variable("n", 1, 10)
    for i in (1, 4, 10):
        part = x[:v.bind(i)]
        assert part.sum().item() == sum(range(i)) and (part * 2).max().item() == 2 * (i - 1)
        kept = (part + 1).realize()
        assert kept.pad_to(10).shrink(((0, i),)).tolist() == [k + 1.0 for k in range(i)]
        assert part.tolist() == list(range(i)) and (part + 1).numpy().shape == (i,)
    with pytest.raises(RuntimeError, match="cannot read data of symbolic shape: variable n in n has no value; bind it, "
                                           "or shrink the tensor to a concrete shape first"):
        x[:v].tolist()


def test_one_kernel_serves_all_values_of_a_variable():
    from tinyhost.engine import program
    x = Tensor(np.arange(16, dtype=np.float32)).realize()
    v = Variable("m", 1, 16)
    x[:v.bind(1)].square().sum().item()
    before = program.counters.compiled
    for i in range(2, 17):
        assert x[:v.bind(i)].square().sum().item() == sum(k * k for k in range(i))
    assert program.counters.compiled == before


def test_two_values_of_one_variable():
    x = Tensor(np.arange(10, dtype=np.float32)).realize()
    v = Variable("n", 1, 10)
    with pytest.raises(RuntimeError, match="bind mismatch on 'n': .*realize what uses the one before building what "
                                           "uses the other"):
        (x[:v.bind(3)].sum() + x[:v.bind(4)].sum()).item()


def test_several_devices_in_one_realization():
    a = Tensor(np.ones(3, np.float32), device="PYTHON")
    b = Tensor(np.ones(3, np.float32))
    c, d = a + 1, b + a.to(b.device)
    Tensor.realize(c, d)
    assert c.tolist() == [2, 2, 2] and d.tolist() == [2, 2, 2] and c.device == "PYTHON" and d.device == b.device
    assert (c.to(b.device) * d).tolist() == [4, 4, 4]


def test_copies_between_devices_and_back():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for device in ("PYTHON", "NPY", Device.DEFAULT, "NPY"):
        x = x.to(device)
    assert x.realize().device == "NPY" and x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_many_outputs():
    x = Tensor(np.arange(4, dtype=np.float32)).realize()
    outs = [x + i for i in range(60)]
    Tensor.realize(*outs)
    assert [o.tolist() for o in outs] == [[i, i + 1, i + 2, i + 3] for i in range(60)]


def test_many_inputs():
    xs = [Tensor(np.full(4, i, np.float32)).realize() for i in range(100)]
    assert sum(xs[1:], xs[0]).tolist() == [4950] * 4
    assert Tensor.stack(*xs).sum(0).tolist() == [4950] * 4


def test_a_failing_realization_leaves_the_rest_alone():
    x = Tensor(np.ones(3, np.float32)).realize()
    y = x + 1
    with Context(MAX_BUFFER_SIZE=4), pytest.raises(OutOfMemory, match="buffer of 12 B is over MAX_BUFFER_SIZE=4"):
        y.realize()
    assert y.tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]


# *** memory ***
def used() -> int:
    gc.collect()
    return GlobalCounters.mem_used


def test_buffers_are_freed_with_their_tensors():
    before = used()
    x = Tensor(np.zeros((100, 100), np.float32)).realize()
    assert used() == before + 40_000
    y = x[3:5]
    del x
    assert used() == before + 40_000  # a view keeps its base
    del y
    assert used() == before


def test_temporaries_are_freed():
    x = Tensor(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)).realize()
    before = used()
    y = (x @ x).softmax().matmul(x).sum(1).realize()
    assert used() == before + y.nbytes()


def test_a_failing_kernel_frees_what_it_made():
    before = used()
    x = Tensor(np.zeros(1000, np.float32)).realize()
    y = (x.reshape(10, 100) @ x.reshape(100, 10)).sum(0)
    with Context(MAX_BUFFER_SIZE=8), pytest.raises(OutOfMemory):
        y.realize()
    del x, y
    assert used() == before


def test_accounting_by_device():
    gc.collect()
    per = GlobalCounters.mem_used_per_device
    before = per.get("PYTHON", 0)
    x = Tensor(np.zeros(256, np.float32), device="PYTHON").realize()
    assert per["PYTHON"] == before + 1024
    del x
    gc.collect()
    assert per["PYTHON"] == before


class CountingAllocator(LRUAllocator[int]):
    """Hands out numbers, at most ``room`` bytes at a time."""

    def __init__(self, room: int) -> None:
        super().__init__(SimpleNamespace(name="FAKE"))
        self.room, self.made, self.log = room, 0, []

    def _alloc(self, size: int, options: BufferSpec) -> int:
        if size > self.room:
            raise MemoryError
        self.room -= size
        self.made += 1
        return self.made

    def _free(self, opaque: int, options: BufferSpec) -> None:
        self.log.append(opaque)
        self.room += 100

    def _copyin(self, dest: int, src: memoryview) -> None: ...
    def _copyout(self, dest: memoryview, src: int) -> None: ...


def test_freed_memory_is_handed_out_again():
    a = CountingAllocator(1000)
    first = a.alloc(100)
    a.free(first, 100)
    assert a.alloc(100) == first and a.alloc(100) == 2 and a.alloc(101) == 3 and a.made == 3 and not a.log
    a.free(first, 100, BufferSpec(cpu_access=True))
    assert a.alloc(100) == 4  # other wishes, other memory
    with Context(LRU=0):
        a.free(2, 100)
    assert a.log == [2]
    a.free_cache()
    assert a.log == [2, first]


def test_kept_memory_is_given_back_before_memory_runs_out():
    a = CountingAllocator(300)
    kept = [a.alloc(100) for _ in range(3)]
    for k in kept:
        a.free(k, 100)
    assert a.alloc(200) == 4 and sorted(a.log) == kept
    with pytest.raises(OutOfMemory, match="Allocation of 900 B failed on FAKE. Used: 0 B. Free tensors, use smaller "
                                          "batches or another device"):
        a.alloc(900)


def test_files_are_no_memory(tmp_path: Any):
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    before = used()
    t = Tensor(tmp_path / "f")
    assert t[5:7].tolist() == [0, 0] and used() - before < 1000
    del t


def test_a_view_must_fit():
    base = Buffer("NPY", 10, dtypes.float32)
    assert base.view(2, dtypes.float32, 8).offset == 8
    for size, offset in ((3, 32), (1, -4), (11, 0)):
        with pytest.raises(ValueError, match=f"view of {size} dtypes.float at byte {offset} does not fit its base of "
                                             "40 bytes"):
            base.view(size, dtypes.float32, offset)


@pytest.mark.parametrize("seed", range(60))
def test_placement_of_temporaries(seed: int):
    rng = np.random.default_rng(seed)
    sizes, starts = rng.choice([0, 1, 100, 256, 257, 1000, 5000], 60), rng.integers(50, size=60)
    blocks = [Block(int(size), int(first), int(first + rng.integers(12)))
              for size, first in zip(sizes[:rng.integers(1, 60)], starts)]
    offsets, size = place(blocks)
    for i, a in enumerate(blocks):
        assert offsets[i] % ALIGNMENT == 0 and offsets[i] + a.size <= size
        for j in range(i):
            b = blocks[j]
            if a.first <= b.last and b.first <= a.last and a.size and b.size:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i], (i, j)
    padded = [-(-max(b.size, 1) // ALIGNMENT) * ALIGNMENT for b in blocks]
    peak = max(sum(n for b, n in zip(blocks, padded) if b.first <= t <= b.last) for t in range(62))
    assert peak <= size <= 2 * peak


def test_a_chain_of_temporaries_takes_the_memory_of_two():
    offsets, size = place([Block(1000, i, i + 1) for i in range(50)])
    assert size == 2 * 1024 and len(set(offsets)) == 2


def test_a_pipeline_of_reductions_stays_small():
    n = 128
    x = Tensor(np.full((n, n), 0.01, np.float32)).realize()
    for planner in (1, 0):
        y = x
        for _ in range(10):
            y = y @ x
        with Context(NO_MEMORY_PLANNER=planner):
            before, peak = used(), 0
            seen: list[int] = []
            old = Buffer.allocate

            def spy(self: Buffer, *args: Any, **kwargs: Any) -> Buffer:
                out = old(self, *args, **kwargs)
                seen.append(GlobalCounters.mem_used)
                return out
            Buffer.allocate = spy
            try:
                y.realize()
            finally:
                Buffer.allocate = old
            peak = max(seen) - before
        assert peak <= 3 * n * n * 4 + 4096
