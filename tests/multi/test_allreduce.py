"""Combination over devices: the three algorithms agree with numpy and each other, and move what they should."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, GlobalCounters, Tensor, TinyJit, Variable, dtypes
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


# *** the three algorithms ***
SIZES: list[tuple[int, ...]] = [(1,), (7,), (31,), (32,), (33,), (1000,), (13, 17), (256001,)]
KINDS = {"float32": {}, "int32": {}, "bfloat16": {}, "float16": {}, "float16 sent as it is": {"ALLREDUCE_CAST": 1}}
COMBINE: dict[str, Any] = {"sum": np.sum, "max": np.max, "prod": np.prod}


def whole_numbers(rng: Any, shape: tuple[int, ...], op: str) -> np.ndarray[Any, Any]:
    """Numbers whose combination over a few devices is exact in every dtype."""
    x = rng.integers(-9, 10, shape) if op != "prod" else rng.choice([-2, -1, 1, 2], shape)
    return x.astype(np.float32)


def check_replays(algorithm: str, count: int, shape: tuple[int, ...], kind: str, op: str) -> None:
    """One combination, first eager, then captured, then replayed, each time of other numbers."""
    rng, devices = np.random.default_rng(count), names(count)
    dtype = kind.partition(" ")[0]
    with Context(**ALGORITHMS[algorithm], **KINDS[kind]):
        combine = TinyJit(lambda t: getattr(t, op)(0))
        for _ in range(4):
            x = whole_numbers(rng, (count, *shape), op)
            got = combine(Tensor(x).cast(dtype).shard(devices, 0).realize())
            assert got.device == devices and got.uop.axis is None
            np.testing.assert_array_equal(got.cast("float32").numpy(), COMBINE[op](x, axis=0))


# 35 cases: each size with each kind, each kind with each op
SAMPLE = [(size, kind, op) for i, size in enumerate(SIZES[:-1]) for j, kind in enumerate(KINDS)
          for k, op in enumerate(COMBINE) if (i + j + k) % 3 == 0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_every_algorithm_under_jit(count: int, algorithm: str):
    first = 3 * (count - 2) + list(ALGORITHMS).index(algorithm)
    for size, kind, op in SAMPLE[first::15]:
        check_replays(algorithm, count, size, kind, op)


@pytest.mark.soak
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_every_algorithm_of_every_kind(count: int, algorithm: str, shape: tuple[int, ...]):
    for kind in KINDS:
        for op in COMBINE:
            check_replays(algorithm, count, shape, kind, op)


def test_a_large_value_takes_each_way():
    """256,001 elements: above the threshold, and no chunk of it is a multiple of 2."""
    x = np.random.default_rng(1).integers(-99, 100, (3, 256001)).astype(np.int32)
    for choice in ({"RING": 0}, {"RING": 1}, {"ALL2ALL": 1}):
        with Context(**choice):
            assert (Tensor(x).shard(names(3), 0).sum(0).numpy() == x.sum(0)).all()


@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_algorithms_agree_on_rounded_sums(count: int):
    """Naive and all-to-all add in the order of the devices: the same bits. The ring starts elsewhere for each chunk."""
    x = np.random.default_rng(count).standard_normal((count, 333)).astype(np.float32)
    got = {}
    for name, choice in ALGORITHMS.items():
        with Context(**choice):
            total = Tensor(x).shard(names(count), 0).sum(0).realize()
        each = [Tensor(total.uop.mselect(i)).numpy() for i in range(count)]
        assert all((e == each[0]).all() for e in each)  # every device has the same bits
        got[name] = each[0]
    want = x[0]
    for row in x[1:]:
        want = want + row
    assert (got["naive"] == want).all() and (got["all-to-all"] == want).all()
    np.testing.assert_allclose(got["ring"], want, rtol=0, atol=count * np.finfo(np.float32).eps * 8)


def test_symbolic_sizes_under_jit():
    v, devices = Variable("n", 1, 9), names(3)
    x = np.arange(54, dtype=np.int32).reshape(6, 9)

    @TinyJit
    def f(t: Tensor, n: Any) -> tuple[Tensor, Tensor]:
        part = t[:, :n] * 2
        return part.sum(), part.sum(0).max()
    for n in (4, 9, 1, 7, 2):
        total, top = f(Tensor(x + n).shard(devices, 0).realize(), v.bind(n))
        part = (x + n)[:, :n] * 2
        assert total.item() == part.sum() and top.item() == part.sum(0).max()


# *** which devices ***
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("order", [(2, 4, 5), (3, 0, 2, 1), (5, 0)], ids=str)
def test_some_devices_in_any_order(order: tuple[int, ...], algorithm: str):
    devices = tuple(names(6)[i] for i in order)
    x = np.random.default_rng(2).integers(-9, 10, (12, 40)).astype(np.int32)
    with Context(**ALGORITHMS[algorithm]):
        t = Tensor(x).shard(devices, 0).realize()
        total = t.sum(0).realize()
        assert total.device == devices and (total.numpy() == x.sum(0)).all()
        assert all((Tensor(total.uop.mselect(i)).numpy() == x.sum(0)).all() for i in range(len(order)))


def test_device_tuples_that_overlap_in_one_program():
    rng = np.random.default_rng(3)
    tuples = [names(3), names(5)[2:], (names(6)[5], names(1)[0], names(4)[3])]

    @TinyJit
    def f(*ts: Tensor) -> tuple[Tensor, ...]:
        sums = [t.sum(0) for t in ts]
        joint = sums[0].to(names(3)[2]) + sums[1].to(names(3)[2]) * sums[2].to(names(3)[2])
        return (joint, *(s + joint.to(s.device) for s in sums))
    for _ in range(4):
        xs = [rng.integers(-9, 10, (6, 33)).astype(np.int32) for _ in tuples]
        got = f(*(Tensor(x).shard(d, 0).realize() for x, d in zip(xs, tuples)))
        a, b, c = (x.sum(0) for x in xs)
        for g, want, device in zip(got, (a + b * c, 2 * a * 1 + b * c, a + b * c + b, a + b * c + c),
                                   (names(3)[2], *tuples)):
            assert g.device == device and (g.numpy() == want).all()


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
