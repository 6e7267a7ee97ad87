"""Combination over devices: the three algorithms agree with numpy and each other, and move what they should."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, GlobalCounters, Tensor, TinyJit, dtypes
from tinyhost.ops import Ops
from tinyhost.schedule.allreduce import chunks

ALGORITHMS = {"naive": {"RING": 0}, "ring": {"RING": 2}, "all-to-all": {"ALL2ALL": 2}}


@pytest.mark.parametrize("size", [1, 2, 7, 31, 32, 64, 96, 1000, 4096, 4100])
@pytest.mark.parametrize("count", [2, 3, 5, 6])
def test_chunks_cover_the_value(size: int, count: int):
    spans = chunks(size, count)
    assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])] and spans[-1][1] == size and len(spans) <= count
    grain = next(g for g in (32, 16, 8, 4, 2, 1) if size % g == 0)
    lengths = [b - a for a, b in spans]
    assert all(n % grain == 0 and n for n in lengths) and max(lengths) - min(lengths) <= grain


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_sums_of_odd_sizes(count: int, algorithm: str):
    rng = np.random.default_rng(count)
    with Context(**ALGORITHMS[algorithm]):
        for shape in [(1,), (5,), (8,), (7, 11), (64,)]:
            x = rng.integers(-99, 100, (count * 2, *shape)).astype(np.int32)
            t = Tensor(x).shard(names(count), 0).realize()
            assert (t.sum(0).numpy() == x.sum(0)).all() and (t.max(0).numpy() == x.max(0)).all()
            assert (t.sum(0).realize().numpy() == x.sum(0)).all() and (t.max(0).realize().numpy() == x.max(0)).all()


@pytest.mark.parametrize("op, ref", [(Ops.ADD, np.sum), (Ops.MAX, np.max), (Ops.MUL, np.prod)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ops_on_values_that_differ(algorithm: str, op: Ops, ref: Any):
    """An ALLREDUCE node itself, over storage in which every device has another value."""
    x = np.random.default_rng(1).integers(-3, 4, (3, 9)).astype(np.int64)
    own = Tensor(x).shard(names(3), 0).uop.src[0]
    with Context(**ALGORITHMS[algorithm]):
        t = Tensor(own.allreduce(op, names(3)))
        assert t.device == names(3) and (t.numpy() == ref(x, axis=0)).all()
        assert (Tensor(own.allreduce(op, names(6)[5])).numpy() == ref(x, axis=0)).all()
        assert (Tensor(own.allreduce(op, names(6)[2:])).numpy() == ref(x, axis=0)).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_devices_get_the_same_bits(algorithm: str):
    x = np.random.default_rng(5).standard_normal((6, 777)).astype(np.float32)
    with Context(**ALGORITHMS[algorithm]):
        total = Tensor(x).shard(names(6), 0).sum(0).realize()
        each = [Tensor(total.uop.mselect(i)).numpy() for i in range(6)]
    assert all((e == each[0]).all() for e in each)
    np.testing.assert_allclose(each[0], x.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_under_jit(algorithm: str):
    with Context(**ALGORITHMS[algorithm]):
        @TinyJit
        def f(x: Tensor) -> Tensor:
            return x.sum(0).realize()
        for i in range(5):
            x = np.random.default_rng(i).standard_normal((4, 64, 64)).astype(np.float32)
            total = f(Tensor(x).shard(names(4), 0).realize())
            np.testing.assert_allclose(total.numpy(), x.sum(0), rtol=1e-5, atol=1e-5)


def copied(count: int, size: int) -> tuple[int, int]:
    """(bytes moved, copies) of an all-reduce of ``size`` floats over ``count`` devices."""
    x = Tensor(np.ones((count, size), np.float32)).shard(names(count), 0).realize()
    linear = x.sum(0).schedule_linear()
    copies = [c.src[1] for c in linear.src if c.src[0].op is Ops.COPY]
    return sum(int(c.max_numel()) * c.dtype.itemsize for c in copies), len(copies)


def test_what_each_algorithm_moves():
    n, size = 4, 1024
    with Context(RING=0):
        assert copied(n, size) == (n * (n - 1) * size * 4, n * (n - 1))
    with Context(RING=2):
        assert copied(n, size) == (2 * (n - 1) * size * 4, 2 * n * (n - 1))
    with Context(ALL2ALL=2):
        assert copied(n, size) == (2 * (n - 1) * size * 4, 2 * n * (n - 1))


def test_large_values_go_around_a_ring():
    with Context(RING_ALLREDUCE_THRESHOLD=1000):
        assert copied(3, 1000)[0] == 3 * 2 * 1000 * 4  # not above it: naive
        assert copied(3, 1001)[0] == 2 * 2 * 1001 * 4
        assert copied(2, 1001)[1] == 2  # two devices have no ring
        with Context(ALL2ALL=1):
            assert copied(2, 1001)[1] == 4 and copied(2, 1000)[1] == 2
        with Context(RING=0):
            assert copied(3, 1001)[0] == 3 * 2 * 1001 * 4


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_narrow_sums(dtype: Any):
    x = Tensor(np.ones((4, 8), np.float32)).cast(dtype).shard(names(2), 0).realize()
    with Context(ALLREDUCE_CAST=1):
        narrow = x.sum(0).schedule_linear()
        assert x.sum(0).cast(dtypes.float32).tolist() == [4.0] * 8
    wide = x.sum(0).schedule_linear()
    assert x.sum(0).cast(dtypes.float32).tolist() == [4.0] * 8
    for linear, want in ((narrow, dtype), (wide, dtypes.float32)):
        assert {c.src[1].dtype for c in linear.src if c.src[0].op is Ops.COPY} == {want}


# *** copies and views of them ***
VIEWS = {
    "shrink": (lambda a: a.shrink(((1, 3),)), 4 * 4 + 2 * 4 * 2 + 2 * 4, [1, 2]),
    "expand": (lambda a: a.reshape(4, 1).expand(4, 2), 4 * 4 + (4 * 4 + 8 * 4) + 8 * 4,
               [[0, 0], [1, 1], [2, 2], [3, 3]]),
    "permute": (lambda a: a.reshape(2, 2).permute(1, 0), 4 * 4 + (4 * 4 + 4 * 4) + 4 * 4, [[0, 2], [1, 3]]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_taken_before_the_copy(name: str):
    """A value is stored on its device, the view is taken there, and only what it shows is copied."""
    view, moved, want = VIEWS[name]
    here, there = names(2)
    b = view(Tensor.arange(4, dtype=dtypes.int32).clone(there)).to(here)
    GlobalCounters.reset()
    linear = b.schedule_linear()
    assert len(linear.src) == 3 and [c.src[0].op for c in linear.src].count(Ops.COPY) == 1
    b.realize()
    assert GlobalCounters.global_mem == moved and GlobalCounters.kernel_count == 3
    assert b.tolist() == want


def test_a_shard_copies_only_itself():
    x = Tensor(np.arange(24, dtype=np.float32).reshape(6, 4), device=names(1)[0]).realize()
    linear = x.shard(names(3), 0).schedule_linear()
    assert [int(c.src[1].max_numel()) for c in linear.src if c.src[0].op is Ops.COPY] == [8, 8]
