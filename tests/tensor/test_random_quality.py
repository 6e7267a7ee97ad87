"""Random numbers are what they claim: statistical tests with fixed seeds, whole ranges, every order of realisation.

Thresholds: a Kolmogorov-Smirnov distance times sqrt(n) of 1.95 and a chi-square of 4 deviations above its mean, both
exceeded by chance once in about a thousand seeds (the seeds here are fixed, so a failure is a change).
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.tensor import Tensor

N = 200_000
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    Tensor.manual_seed(11)
    yield
    Tensor.manual_seed(0)


def distance(sample: Array, cdf: Callable[[Array], Array]) -> float:
    """Kolmogorov-Smirnov: sqrt(n) times the largest gap between the sample's distribution and ``cdf``."""
    x = cdf(np.sort(sample.astype(np.float64).ravel()))
    i = np.arange(x.size)
    return float(max((x - i / x.size).max(), ((i + 1) / x.size - x).max()) * math.sqrt(x.size))


def surplus(counts: Array, expected: Array) -> float:
    """Chi-square in deviations above its mean."""
    df = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - df) / math.sqrt(2 * df))


def normal_cdf(x: Array) -> Array:
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


# *** the cipher ***
VECTORS = [((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
           ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
           ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0))]
"""Counter, key and result of threefry2x32 with 20 rounds, low word first (Random123, kat_vectors)."""


@pytest.mark.parametrize("dev, emulated", [("CPU", ""), ("PYTHON", ""), ("PYTHON::gpu", ""), ("CPU", "long"),
                                           ("PYTHON::gpu32", "")])
def test_published_vectors(dev: str, emulated: str) -> None:
    counters, keys, results = (np.array([low | high << 32 for low, high in column], np.uint64)
                               for column in zip(*VECTORS))
    with Context(DEV=dev, EMULATED_DTYPES=emulated):
        np.testing.assert_array_equal(Tensor(counters).threefry(Tensor(keys)).numpy(), results)


def test_words_are_the_same_on_every_device() -> None:
    def draw(dev: str) -> list[Array]:
        with Context(DEV=dev):
            Tensor.manual_seed(7)
            drawn = (Tensor.rand(33), Tensor.randint(20, low=-5, high=1 << 20), Tensor.randperm(9))
            return [t.numpy() for t in drawn]
    first, *others = [draw(dev) for dev in ("CPU", "PYTHON", "PYTHON::gpu", "PYTHON::gpu32")]
    for other in others:
        for a, b in zip(first, other):
            np.testing.assert_array_equal(a, b)


# *** continuous ***
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_rand_is_uniform(dtype: DType) -> None:
    x = Tensor.rand(N, dtype=dtype).numpy()
    assert distance(x, lambda v: v) < 1.95
    pairs = np.histogram2d(x[::2], x[1::2], bins=16, range=[[0, 1], [0, 1]])[0]
    assert surplus(pairs.ravel(), np.full(256, N / 512)) < 4
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(N)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, *dtypes.fp8s], ids=str)
def test_narrow_rand_takes_each_value_alike_and_never_1(dtype: DType) -> None:
    x = Tensor.rand(N, dtype=dtype).float().numpy()
    steps = 1 << dtypes.finfo(dtype)[1]
    assert x.min() == 0.0 and x.max() == 1 - 1 / steps
    counts = np.bincount((x * steps).astype(np.int64), minlength=steps)
    assert counts.size == steps and surplus(counts, np.full(steps, N / steps)) < 4


def test_uniform() -> None:
    x = Tensor.uniform(N, low=-3.0, high=5.0).numpy()
    assert x.min() >= -3 and x.max() < 5 and distance(x, lambda v: (v + 3) / 8) < 1.95
    # a range so short that most sums are rounded to its end
    y = Tensor.uniform(1000, low=2.0**24, high=2.0**24 + 2).numpy()
    assert set(y.tolist()) == {2.0**24}


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_randn_is_normal(dtype: DType) -> None:
    x = Tensor.randn(N // 4, dtype=dtype).numpy()
    assert distance(x, normal_cdf) < 1.95
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(x.size)
    y = Tensor.normal(N // 4, mean=-2.0, std=3.0).numpy()
    assert distance((y + 2) / 3, normal_cdf) < 1.95


def test_moments_of_initialisers() -> None:
    kaiming = Tensor.kaiming_normal(200, 500).numpy()
    assert distance(kaiming[:100] / math.sqrt(2 / (1 + 1e-4) / 500), normal_cdf) < 1.95
    glorot = Tensor.glorot_uniform(100, 300).numpy()
    bound = math.sqrt(6 / 400)
    assert distance(glorot, lambda v: (v / bound + 1) / 2) < 1.95


# *** integers ***
@pytest.mark.parametrize("low, high", [(0, 10), (-7, 6), (0, 2), (100, 355)])
def test_randint_is_uniform(low: int, high: int) -> None:
    x = Tensor.randint(N, low=low, high=high).numpy()
    assert x.dtype == np.int32 and surplus(np.bincount(x - low, minlength=high - low),
                                           np.full(high - low, N / (high - low))) < 4


@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_randint_over_the_whole_type(dtype: DType) -> None:
    x = Tensor.randint(20000, low=dtype.min, high=dtype.max + 1, dtype=dtype).numpy()
    assert x.dtype.itemsize == dtype.itemsize
    spread = (x.astype(np.float64) - dtype.min) / 2.0**dtype.bitsize
    if dtype.itemsize > 2:
        assert distance(spread, lambda v: v) < 1.95
    bits = x.astype(np.int64 if dtype in dtypes.sints else np.uint64).view(np.uint64)
    for shift in range(0, dtype.bitsize, 4):  # each digit of 4 bits
        digits = bits >> np.uint64(shift) & np.uint64(15)
        assert surplus(np.bincount(digits.astype(np.int64), minlength=16), np.full(16, 20000 / 16)) < 4


def test_randint_of_a_long_range_has_no_bias() -> None:
    """3 * 2**62 numbers out of words: a product with 64 bits would make every third number twice as likely."""
    x = Tensor.randint(30000, low=0, high=3 << 62, dtype="uint64").numpy()
    assert surplus(np.bincount((x % np.uint64(3)).astype(np.int64), minlength=3), np.full(3, 10000.0)) < 4
    y = Tensor.randint(30000, low=-(3 << 29), high=3 << 29, dtype="int64").numpy()
    assert surplus(np.bincount(y % 3, minlength=3), np.full(3, 10000.0)) < 4
    assert abs(y).max() <= 3 << 29


# *** permutations and choices ***
def test_all_permutations_are_alike() -> None:
    draws = 2400
    rows = Tensor.stack(*[Tensor.randperm(4) for _ in range(24)]).numpy()
    assert {tuple(sorted(r)) for r in rows.tolist()} == {(0, 1, 2, 3)}
    orders = list(itertools.permutations(range(4)))
    # the same construction in one draw: the order of four words
    keys = Tensor.randint(draws, 4, low=0, high=1 << 32, dtype="uint32").argsort(1).numpy()
    counts = np.array([(keys == np.array(p)).all(1).sum() for p in orders])
    assert counts.sum() == draws and surplus(counts, np.full(24, draws / 24)) < 4


def test_a_long_permutation() -> None:
    p = Tensor.randperm(10000).numpy()
    assert np.array_equal(np.sort(p), np.arange(10000))
    assert abs(np.corrcoef(p, np.arange(10000))[0, 1]) < 0.04
    assert Tensor.randperm(0).shape == (0,) and Tensor.randperm(1).tolist() == [0]


def test_multinomial_with_replacement() -> None:
    weight = np.array([1.0, 0.0, 2.0, 5.0, 0.0])
    x = Tensor(weight.astype(np.float32)).multinomial(40000, replacement=True).numpy()
    counts = np.bincount(x, minlength=5)
    assert counts[1] == counts[4] == 0
    assert surplus(counts[[0, 2, 3]], weight[[0, 2, 3]] / 8 * 40000) < 4


def test_multinomial_without_replacement() -> None:
    """Ordered pairs of three: P(i, j) = w_i * w_j / (1 - w_i)."""
    weight, rows = np.array([0.2, 0.3, 0.5]), 12000
    x = Tensor(np.tile(weight, (rows, 1)).astype(np.float32)).multinomial(2).numpy()
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    counts = np.array([((x[:, 0] == i) & (x[:, 1] == j)).sum() for i, j in pairs])
    expected = np.array([weight[i] * weight[j] / (1 - weight[i]) * rows for i, j in pairs])
    assert counts.sum() == rows and surplus(counts, expected) < 4


def test_dropout_rate() -> None:
    with Context(TRAINING=1):
        y = Tensor.ones(N).contiguous().dropout(0.3).numpy()
    assert abs((y == 0).mean() - 0.3) < 4 * math.sqrt(0.21 / N)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / np.float32(0.7))}


# *** order, devices, shapes ***
def draws() -> list[Tensor]:
    return [Tensor.rand(5), Tensor.randn(4), Tensor.randint(6, low=0, high=1000), Tensor.randperm(7), Tensor.rand(3)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_the_order_of_realisation_does_not_matter(order: tuple[int, ...]) -> None:
    want = [t.numpy() for t in draws()]
    Tensor.manual_seed(11)
    made = draws()
    for i in order:
        made[i].realize()
    for t, w in zip(made, want):
        np.testing.assert_array_equal(t.numpy(), w)
    Tensor.manual_seed(11)
    made = draws()
    Tensor.realize(*made)
    for t, w in zip(made, want):
        np.testing.assert_array_equal(t.numpy(), w)


def test_a_draw_that_is_never_used_still_counts() -> None:
    first = [Tensor.rand(4), Tensor.rand(4)][1].numpy()
    Tensor.manual_seed(11)
    Tensor.rand(4)
    np.testing.assert_array_equal(Tensor.rand(4).numpy(), first)


def test_splitting_over_devices_does_not_matter() -> None:
    devices = ("CPU:1", "CPU:2")
    like = Tensor.zeros(8, 3).contiguous().shard(devices, 0)
    split, whole = like.rand_like(), Tensor.rand(5, device=devices)
    Tensor.manual_seed(11)
    np.testing.assert_array_equal(split.numpy(), Tensor.rand(8, 3, device="CPU:1").numpy())
    np.testing.assert_array_equal(whole.numpy(), Tensor.rand(5, device="CPU:1").numpy())


def test_devices_draw_different_numbers() -> None:
    assert not np.array_equal(Tensor.rand(8, device="CPU:1").numpy(), Tensor.rand(8, device="CPU:2").numpy())


def test_seeds() -> None:
    def drawn(seed: int) -> list[float]:
        Tensor.manual_seed(seed)
        return Tensor.rand(4).tolist()
    assert drawn(3) == drawn(3) != drawn(4)


def test_shapes() -> None:
    for t in (Tensor.rand(), Tensor.randn(), Tensor.randint(), Tensor.uniform(), Tensor.normal()):
        assert t.shape == () and t.numpy().shape == ()
    assert Tensor.rand(2, 0, 3).numpy().shape == (2, 0, 3) == Tensor.randint(2, 0, 3).numpy().shape
    like = Tensor.empty(3, 4, dtype="half")
    assert (like.randn_like().shape, like.randn_like().dtype) == ((3, 4), dtypes.half)
    assert like.rand_like(dtype="float64").numpy().dtype == np.float64
    assert Tensor.rand(2**20 + 3).numpy().max() < 1


def test_draws_beyond_2_to_the_32_words_carry() -> None:
    assert Tensor.rand(2**33).shape == (2**33,)
    after = Tensor.rand(2).numpy()  # words 2**33 and on
    Tensor.manual_seed(11)
    for _ in range(2):
        Tensor.rand(2**32)
    np.testing.assert_array_equal(Tensor.rand(2).numpy(), after)
    assert not np.array_equal(Tensor.rand(2).numpy(), after)
