"""Scatter, gather, reduce-scatter and all-gather: every device gets what it reads and not more."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, nn
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.schedule.demand import narrow_copies
from tinyhost.schedule.multi import lower_devices
from tinyhost.uop import UOp

ALGORITHMS = {"naive": {"RING": 0}, "ring": {"RING": 2}, "all-to-all": {"ALL2ALL": 2}}
COUNT = 4
D = names(COUNT)
N = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
SIZE = N.size


def copies(*ts: Tensor) -> list[tuple[int, str, str]]:
    """(elements, to, from) of each copy between devices that realizing ``ts`` makes."""
    sides = [c.src[1:3] for c in ts[0].schedule_linear(*ts[1:]).src if c.src[0].op is Ops.COPY]
    return [(int(to.max_numel()), to.device, source.device) for to, source in sides]


def moved(*ts: Tensor) -> int:
    return sum(n for n, _, _ in copies(*ts))


def terms() -> Tensor:
    """Four values of N's shape, one on each device; their sum is 4 N + 6."""
    return Tensor(np.stack([N + i for i in range(COUNT)])).shard(D, 0).realize()


# *** scatter and gather ***
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_of_a_computed_value(axis: int):
    x = Tensor(N, device=D[0]).realize()
    y = ((x + 1) * 2).shard(D, axis)
    assert copies(y) == [(SIZE // COUNT, d, D[0]) for d in D[1:]]
    assert y.uop.axis == axis and (y.numpy() == (N + 1) * 2).all()


def test_scatter_to_other_devices():
    x = Tensor(N, device=names(6)[5]).realize()
    y = x.shard(D[::-1], 0)
    assert sorted(copies(y)) == sorted((SIZE // COUNT, d, names(6)[5]) for d in D)
    assert (y.numpy() == N).all()


def test_gather():
    for axis in (0, 1):
        x = Tensor(N).shard(D, axis).realize()
        assert sorted(copies(x.to(D[1]))) == [(SIZE // COUNT, D[1], d) for d in D if d != D[1]]
        assert (x.to(D[1]).numpy() == N).all()
        assert moved((x * 2).to(names(6)[4])) == SIZE and ((x * 2).to(names(6)[4]).numpy() == N * 2).all()


def test_all_gather():
    x = Tensor(N).shard(D, 0).realize()
    everywhere = x.shard(D)
    assert moved(everywhere) == (COUNT - 1) * SIZE
    assert everywhere.realize().uop.axis is None and (everywhere.numpy() == N).all()
    assert all((Tensor(everywhere.uop.mselect(i)).numpy() == N).all() for i in range(COUNT))


def test_splits_that_change():
    """Between rows and columns each device keeps what it has of its new part."""
    x = Tensor(N).shard(D, 0).realize()
    for devices, axis, count, size in ((D, 0, 0, 0), (D, 1, 12, SIZE // 16), (D[::-1], 0, 4, SIZE // 4),
                                       (names(6)[2:], 0, 4, SIZE // 4)):
        y = x.shard(devices, axis)
        assert [n for n, _, _ in copies(y)] == [size] * count
        assert y.device == devices and y.realize().uop.axis == axis and (y.numpy() == N).all()


def test_like_a_value_that_is_whole_everywhere():
    x, y = Tensor(N).shard(D, 0).realize(), Tensor(N).shard(D).realize()
    assert x.shard_like(y).realize().uop.axis is None and moved(y.shard_like(x)) == 0
    assert (x.shard_like(y).numpy() == N).all()
    x.grad = x * 2
    assert x.shard(D).grad.realize().uop.axis is None and x.shard_(D).grad.uop.axis is None
    assert x.realize().uop.axis is None and (x.numpy() == N).all() and (x.grad.numpy() == 2 * N).all()


def test_rows_of_a_sum_on_one_device():
    """What is not looked at is not sent."""
    rows = terms().sum(0)[4:8] * 2
    with Context(RING=0):
        assert sorted(copies(rows.to(D[0]))) == [(4 * 64, D[0], d) for d in D[1:]]
        assert (rows.to(D[0]).numpy() == (4 * N + 6)[4:8] * 2).all()


# *** reduce-scatter ***
SUM = 4 * N + 6
REDUCE_SCATTERS: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray[Any, Any]]] = {
    "shards of the sum": (lambda t: t.sum(0).shard(D, 0), SUM),
    "added to shards": (lambda t: t.sum(0) + Tensor(N).shard(D, 0).realize(), SUM + N),
    "scaled, added to shards": (lambda t: (t.sum(0) * -3).relu() - Tensor(N).shard(D, 0).realize(), -N),
    "seen as another shape": (lambda t: t.sum(0).reshape(16, 2, 64).shard(D, 0), SUM.reshape(16, 2, 64)),
    "cast": (lambda t: t.max(0).cast("int32").shard(D, 0), N + 3),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", REDUCE_SCATTERS)
def test_reduce_scatter(name: str, algorithm: str):
    """A sum of which each device keeps its part: n (n - 1) copies of a part, whatever the algorithm."""
    make, want = REDUCE_SCATTERS[name]
    with Context(**ALGORITHMS[algorithm]):
        y = make(terms())
        sent = copies(y)
        assert sum(n for n, _, _ in sent) == (COUNT - 1) * SIZE and len(sent) == COUNT * (COUNT - 1)
        assert y.uop.axis == 0 and (y.numpy() == want).all()


OTHERS: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray[Any, Any]]] = {
    "columns": (lambda t: t.sum(0).shard(D, 1), SUM),
    "columns as rows": (lambda t: t.sum(0).T.shard(D, 0), SUM.T),
    "rows as columns": (lambda t: t.max(0).permute(1, 0).shard(D, 1), (N + 3).T),
    "flipped": (lambda t: t.sum(0).flip((0, 1)).shard(D, 0), SUM[::-1, ::-1]),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", OTHERS)
def test_reduce_scatter_along_other_axes(name: str, algorithm: str):
    make, want = OTHERS[name]
    with Context(**ALGORITHMS[algorithm]):
        y = make(terms())
        assert moved(y) == (COUNT - 1) * SIZE and (y.numpy() == want).all()


@pytest.mark.parametrize("algorithm", ["ring", "all-to-all"])
def test_where_each_device_reads_most_of_a_sum(algorithm: str):
    """All of it in chunks is less than most of it from everybody."""
    with Context(**ALGORITHMS[algorithm]):
        y = terms().sum(0)[1:] * 2
        assert moved(y) == 2 * (COUNT - 1) * SIZE and (y.numpy() == SUM[1:] * 2).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_where_some_devices_read_a_sum(algorithm: str):
    with Context(**ALGORITHMS[algorithm]):
        y = terms().sum(0).to(D[2])
        assert moved(y) == (COUNT - 1) * SIZE and (y.numpy() == SUM).all()
        half = Tensor(terms().sum(0).uop.mselect(1)) + Tensor(N, device=D[1]).realize()
        assert moved(half) == (COUNT - 1) * SIZE and (half.numpy() == SUM + N).all()


def test_a_sum_that_somebody_reads_whole():
    total = terms().sum(0)
    part, rest = total.shard(D, 0) + 1, total.to(D[1]) * 2
    with Context(RING=0):
        assert moved(part, rest) <= COUNT * (COUNT - 1) * SIZE
        assert (part.numpy() == SUM + 1).all() and (rest.numpy() == SUM * 2).all()


@pytest.mark.parametrize("count, rows", [(3, 10), (5, 4), (6, 6), (2, 7)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_reduce_scatter_under_jit(algorithm: str, count: int, rows: int):
    d = names(count)
    with Context(**ALGORITHMS[algorithm]):
        f = TinyJit(lambda t: (t.sum(0).shard(d, 0) * 2, t.max(0).shard(d, 1)))
        for i in range(4):
            x = np.random.default_rng(i).integers(-9, 10, (count, rows, 7)).astype(np.int32)
            total, top = f(Tensor(x).shard(d, 0).realize())
            assert (total.numpy() == x.sum(0) * 2).all() and (top.numpy() == x.max(0)).all()
            assert (total.uop.axis, top.uop.axis) == (0, 1)


# *** state in shards, weights whole: each device updates its part of every weight ***
def test_sharded_state_of_whole_weights():
    """A gradient is reduce-scattered, its update all-gathered: 2 (n - 1) S in all, not n (n - 1) S."""
    rng = np.random.default_rng(0)
    start, data = rng.integers(-3, 4, (32, 64)).astype(np.float32), rng.integers(-2, 3, (3, 8, 32)).astype(np.float32)
    results = []
    for devices in (None, D):
        w = Tensor(start.copy())
        xs = [Tensor(x) for x in data]
        if devices is not None:
            w.shard_(devices)
            xs = [x.shard(devices, 0) for x in xs]
        opt = nn.optim.Adam([w.realize()], lr=0.125)
        if devices is not None:
            for t in (*opt.m, *opt.v):
                t.shard_(devices, 0).realize()
        with Context(TRAINING=1):
            for x in xs:
                ((x.realize() @ w) * 3).sum().backward()  # gradients are whole numbers
                step = opt.schedule_step()
                if devices is not None and x is xs[-1]:
                    assert moved(*step) == 2 * (COUNT - 1) * SIZE
                Tensor.realize(*step)
                opt.zero_grad()
        results.append([t.numpy() for t in (w, *opt.m, *opt.v)])
    assert w.uop.axis is None and opt.m[0].uop.axis == opt.v[0].uop.axis == 0
    for one, many in zip(*results):
        np.testing.assert_array_equal(one, many)


# *** any views in between ***
def chained(rng: Any, t: Tensor, x: np.ndarray[Any, Any]) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """A value and one of its views, or it with something added."""
    kind = int(rng.integers(7))
    if kind == 0 and x.ndim:
        order = tuple(int(i) for i in rng.permutation(x.ndim))
        return t.permute(order), x.transpose(order)
    if kind == 1:
        axes = tuple(i for i in range(x.ndim) if rng.random() < 0.5)
        return t.flip(axes), np.flip(x, axes)
    if kind == 2:
        edges = tuple(tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in x.shape)
        return t.pad(edges), np.pad(x, edges)
    if kind == 3:
        box = tuple(slice(int(rng.integers(0, (n + 1) // 2)), n) for n in x.shape)
        return t[box], x[box]
    if kind == 4:
        rows = int(rng.choice([d for d in range(1, x.size + 1) if x.size % d == 0]))
        cols = int(rng.choice([d for d in range(1, x.size // rows + 1) if x.size // rows % d == 0]))
        shape = (rows, cols, x.size // rows // cols)
        return t.reshape(shape), x.reshape(shape)
    if kind == 5 and x.ndim > 1:
        return t - t.sum(0, keepdim=True), x - x.sum(0, keepdims=True)
    return t * 2 + 1, x * 2 + 1


def check_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    d = names(count)
    x = rng.integers(-9, 10, (count, *rng.integers(1, 9, 2))).astype(np.int32)
    with Context(**list(ALGORITHMS.values())[seed % 3]):
        t, want = Tensor(x).shard(d, 0).realize().sum(0), x.sum(0).astype(np.int32)
        for _ in range(int(rng.integers(1, 6))):
            new, ref = chained(rng, t, want)
            if 0 < ref.size <= 600:
                t, want = new, ref
        whole = rng.random() < 0.3
        parts = [t.shard(d, int(rng.integers(want.ndim))) * 3 for _ in range(int(rng.integers(1, 3)))]
        outs = [*parts, t] if whole else parts
        Tensor.realize(*outs)
        for out in outs:
            np.testing.assert_array_equal(out.numpy(), want if out is t else want * 3)


@pytest.mark.parametrize("block", range(6))
def test_views_of_a_sum_in_parts(block: int):
    for seed in range(4 * block, 4 * block + 4):
        check_chain(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(50))
def test_many_views_of_a_sum_in_parts(block: int):
    for seed in range(1000 + 20 * block, 1020 + 20 * block):
        check_chain(seed)


# *** the pass itself ***
X = UOp.param(0, dtypes.float32, (8, 6), D[0])
COPY = X.copy_to_device(D[1])


def copied_shapes(sink: UOp) -> list[tuple[int, ...]]:
    return sorted(u.shape for u in narrow_copies(sink).toposort() if u.op is Ops.COPY)


@pytest.mark.parametrize("value, shapes", [
    (COPY[2:5], [(3, 6)]), (COPY.T[1:3] * 2, [(8, 2)]), (COPY.flip(0)[0:3], [(3, 6)]), (COPY.sum(1)[2:4], [(2, 6)]),
    (COPY.sum(0)[2:4], [(8, 2)]), (COPY.pad(((2, 0), (0, 0)))[:4], [(2, 6)]),
    (COPY.pad(((3, 0), (0, 0)))[:2], []), (COPY.reshape(4, 2, 6)[1:2], [(2, 6)]),
    (COPY.reshape(48)[12:20], [(2, 6)]), (COPY.reshape(16, 3)[3:4], [(1, 3)]),
    (COPY.reshape(2, 4, 6).expand(3, 2, 4, 6)[1:2, 0:1], [(4, 6)]), (COPY[0:1].exp() + COPY[6:7], [(7, 6)]),
    (COPY[1:3] + COPY.contiguous()[1:3], [(8, 6)]), (COPY.copy_to_device(D[2])[4:5], [(1, 6), (1, 6)]),
    (COPY, [(8, 6)]), (COPY + 1, [(8, 6)]),
], ids=[*"abcdefghijklmnop"])
def test_what_is_copied(value: UOp, shapes: list[tuple[int, ...]]):
    sink = UOp.sink(value.contiguous())
    assert copied_shapes(sink) == shapes
    if shapes == [(8, 6)]:
        assert narrow_copies(sink) is sink
    assert narrow_copies(sink).src[0].shape == value.shape


def test_depth_is_no_limit():
    terms, t = UOp.param(0, dtypes.float32, (4, 6), D).unshard(0), UOp.param(1, dtypes.float32, (6,), D)
    value = UOp(Ops.REDUCE, (terms,), (Ops.ADD, 1))
    for i in range(3000):
        value = UOp((Ops.MUL, Ops.ADD)[i % 2], (value, t))
    sink = lower_devices(UOp.sink(value.own_shard(0).unshard(0).contiguous()))
    assert {u.shape for u in sink.toposort() if u.op is Ops.COPY} == {(2,)}


def test_symbolic_shapes_are_copied_whole():
    n = UOp.variable("n", 1, 8)
    for value in (COPY[:n], COPY[:n].T[1:2], COPY.shrink(((n - 1, n), (0, 6)))):
        sink = UOp.sink(value.contiguous())
        assert all(s == (8, 6) for s in copied_shapes(sink))
