"""Random numbers: the values that seed, device order and counter fix."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tinyhost import rng
from tinyhost.env import Context
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.tensor import Tensor

from .evaluator import evaluate, threefry


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    Tensor.manual_seed(0)
    yield
    Tensor.manual_seed(0)


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


def words(*draws: int) -> list[list[int]]:
    out = []
    for n in draws:
        key, counter = rng.state.draw(Tensor, "NPY", n)
        out.append(value(Tensor.random_bits(key, counter, n)).tolist())
    return out


def test_cipher_vectors() -> None:
    def pack(low: int, high: int) -> np.ndarray[Any, Any]:
        return np.array(high << 32 | low, np.uint64)
    for x, key, want in (((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
                         ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
                         ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0))):
        with np.errstate(over="ignore"):
            assert threefry(pack(*x), pack(*key)) == pack(*want)


def test_device_keys() -> None:
    assert [rng.state.key_words(i) for i in (0, 1)] == [(347607321, 0), (1984909965, 0)]
    Tensor.manual_seed(42)
    assert rng.state.key_words(0) == (347607321, 42)


def test_words_and_counter() -> None:
    first, second = words(8, 8)
    assert first == [607630541, 1284548859, 3059414975, 3923329682, 2246595877, 1413295934, 902898779, 1054647414]
    assert second == [1278358768, 313354774, 1946217561, 7204326, 3082700803, 1256518280, 203144392, 3005507552]
    assert value(rng.state.counter("NPY")).tolist() == [16, 0]


def test_counter_carries() -> None:
    low, high = Tensor(2**32 - 1, dtype="uint32")._add64(Tensor(5, dtype="uint32"), 2**32 + 3)
    assert (value(low), value(high)) == (2, 7)


DRAWS: list[tuple[Any, list[float], int]] = [
    (lambda: Tensor.rand(8, device="NPY"),
     [0.14147496, 0.29908228, 0.71232545, 0.91347134, 0.5230763, 0.32905853, 0.21022248, 0.24555421], 8),
    (lambda: Tensor.rand(3, device="NPY"), [0.8280727, 0.6228509, 0.5572898], 3),
    (lambda: Tensor.rand(8, device="NPY", dtype="half"),
     [0.5722656, 0.8271484, 0.1630859, 0.6220703, 0.5488281, 0.5566406, 0.0390625, 0.5869141], 4),
    (lambda: Tensor.rand(3, device="NPY", dtype="double"), [0.5740202360885531, 0.7323721104283403, 0.37846594054686],
     6),
    (lambda: Tensor.randint(8, device="NPY"), [1, 2, 7, 9, 5, 3, 2, 2], 8),
    (lambda: Tensor.randperm(8, device="NPY"), [0, 6, 7, 1, 5, 4, 2, 3], 8),
    (lambda: Tensor.randn(4, device="NPY"), [0.766946, -0.271169, -0.161116, 0.642455], 8),
]


@pytest.mark.parametrize("draw, want, counter", DRAWS,
                         ids=["rand", "rand3", "half", "double", "randint", "randperm", "randn"])
def test_observed_values(draw: Any, want: list[float], counter: int) -> None:
    np.testing.assert_allclose(value(draw()), want, rtol=1e-5)
    assert value(rng.state.counter("NPY")).tolist() == [counter, 0]


def test_other_seed() -> None:
    Tensor.manual_seed(42)
    np.testing.assert_allclose(value(Tensor.rand(8, device="NPY")),
                               [0.19192588, 0.8221742, 0.14642692, 0.19687533, 0.7817155,
                                                                    0.07299697, 0.6085588, 0.35485387], rtol=1e-6)
    Tensor.manual_seed(42)
    assert value(Tensor.randint(2, 3, low=5, high=10, device="NPY")).tolist() == [[6, 5, 5], [5, 7, 6]]


def test_distributions() -> None:
    u = value(Tensor.uniform(20000, low=-2, high=6, device="NPY"))
    assert u.min() >= -2 and u.max() < 6 and abs(u.mean() - 2) < 0.1
    n = value(Tensor.normal(20000, mean=3, std=2, device="NPY"))
    assert abs(n.mean() - 3) < 0.1 and abs(n.std() - 2) < 0.1
    k = value(Tensor.kaiming_uniform(64, 100, device="NPY"))
    assert abs(np.abs(k).max() - np.sqrt(3) * np.sqrt(2 / (1 + 1e-4)) / 10) < 0.01
    g = value(Tensor.glorot_uniform(50, 100, device="NPY"))
    assert abs(np.abs(g).max() - np.sqrt(6 / 150)) < 0.01
    assert value(Tensor.scaled_uniform(100, device="NPY")).max() < 0.1
    assert abs(value(Tensor.kaiming_normal(100, 200, device="NPY")).std() - np.sqrt(2) / np.sqrt(200)) < 0.01
    p = value(Tensor.randperm(100, device="NPY"))
    assert sorted(p.tolist()) == list(range(100))


def test_like() -> None:
    x = Tensor.empty(3, 4, device="NPY", dtype="half")
    assert (x.rand_like().shape, x.rand_like().dtype, x.rand_like().device) == (x.shape, x.dtype, "NPY")
    assert x.randn_like(dtype="float32").dtype.name == "float"


def test_multinomial() -> None:
    weight = Tensor([0.0, 1.0, 3.0], device="NPY")
    drawn = value(weight.multinomial(4000, replacement=True))
    assert 0 not in drawn and abs((drawn == 2).mean() - 0.75) < 0.05
    rows = value(Tensor([[1.0, 2, 3, 4]] * 5, device="NPY").multinomial(4))
    assert all(sorted(r.tolist()) == [0, 1, 2, 3] for r in rows)
    with pytest.raises(ShapeError, match="cannot draw 4 of 3 without replacement"):
        weight.multinomial(4)


def test_dropout() -> None:
    x = Tensor(np.ones(10000, np.float32), device="NPY")
    assert x.dropout(0.5) is x
    with Context(TRAINING=1):
        y = value(x.dropout(0.25))
        assert set(np.unique(y).tolist()) == {0.0, np.float32(1 / 0.75)} and abs((y == 0).mean() - 0.25) < 0.03
        assert not value(x.dropout(1.0)).any() and x.dropout(0.0) is x
    with pytest.raises(ValueError, match="dropout needs a probability between 0 and 1, got 1.5"):
        x.dropout(1.5)


def test_errors() -> None:
    with pytest.raises(DTypeError, match="rand needs a float dtype such as float32, got dtypes.int"):
        Tensor.rand(3, dtype="int32")
    with pytest.raises(ShapeError, match="rand needs extents that are non-negative ints"):
        Tensor.rand(-1)
    with pytest.raises(TypeError, match="randint needs ints as bounds, got low=0.5"):
        Tensor.randint(3, low=0.5)
    with pytest.raises(DTypeError, match="randint needs an integer dtype, got dtypes.float"):
        Tensor.randint(3, dtype="float32")
    assert Tensor.rand(0, 3, device="NPY").shape == (0, 3)


def test_threads_have_streams_of_their_own() -> None:
    def drawn() -> list[list[float]]:
        """Two draws here and two in a thread, in turns."""
        out: list[list[float]] = []
        Tensor.manual_seed(7)
        for _ in range(2):
            out.append(Tensor.rand(3).tolist())
            thread = threading.Thread(target=lambda: out.append(Tensor.rand(3).tolist()))
            thread.start()
            thread.join()
        return out
    first, second = drawn(), drawn()
    assert first == second and len({tuple(x) for x in first}) == 4
    Tensor.manual_seed(7)
    assert [Tensor.rand(3).tolist() for _ in range(2)] == first[::2]  # as without threads
