"""Threads that build and realize graphs at once: every result is right, shared data included."""
from __future__ import annotations

import functools
import random
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.side_by_side import together
from tinyhost import Context, GlobalCounters, Tensor, TinyJit
from tinyhost.device import Buffer

SHARED = [np.arange(24, dtype=np.float32).reshape(4, 6) / 7, np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)]


class Worker(threading.Thread):
    """Computes random expressions on Tensors and in numpy until told to stop; keeps the first difference."""

    def __init__(self, seed: int, shared: list[Tensor], until: float, count: int) -> None:
        super().__init__(name=f"worker {seed}")
        self.rng, self.shared, self.until, self.count = random.Random(seed), shared, until, count
        self.done = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while self.done < self.count or time.monotonic() < self.until:
                self.one()
                self.done += 1
        except BaseException as e:
            self.failure = e

    def leaf(self) -> tuple[Tensor, Any]:
        k = self.rng.randrange(4)
        if k < 2:
            return self.shared[k], SHARED[k].astype(np.float64)
        data = np.random.default_rng(self.rng.randrange(1 << 30)).standard_normal((4, 6)).astype(np.float32)
        return Tensor(data), data.astype(np.float64)

    def step(self, t: Tensor, a: Any) -> tuple[Tensor, Any]:
        kind = self.rng.randrange(7)
        if kind == 0:
            return t * 0.5 + 1, a * 0.5 + 1
        if kind == 1:
            u, b = self.leaf()
            return t + u, a + b
        if kind == 2:
            return t - t.mean(0, keepdim=True), a - a.mean(0, keepdims=True)
        if kind == 3:
            return t.relu() - t.flip(1), np.maximum(a, 0) - a[:, ::-1]
        if kind == 4:
            return t.transpose().contiguous().transpose(), a
        if kind == 5:
            u, b = self.leaf()
            return (t @ u.transpose()).tanh() @ u, np.tanh(a @ b.T) @ b
        c = t.clone()
        c += 1
        return c, a + 1

    def one(self) -> None:
        t, a = self.leaf()
        for _ in range(self.rng.randint(2, 7)):
            t, a = self.step(t, a)
            if self.rng.random() < 0.2:
                t.realize()
        with Context(NOOPT=int(self.rng.random() < 0.2)):
            np.testing.assert_allclose(t.numpy(), a, rtol=1e-3, atol=1e-3)


def run(threads: int, seconds: float, count: int) -> int:
    shared = [Tensor(a) for a in SHARED]  # not realized: the threads race for that, too
    until = time.monotonic() + seconds
    workers = [Worker(i, shared, until, count) for i in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    failures = [f"{w.name}: {type(w.failure).__name__}: {w.failure}" for w in workers if w.failure is not None]
    assert not failures, "\n".join(failures)
    return sum(w.done for w in workers)


def test_eight_threads():
    run(8, 0, 4)


@pytest.mark.soak
def test_eight_threads_for_thirty_seconds():
    print(f"\n{run(8, 30, 1)} expressions in 30 s")


def test_a_shared_buffer_is_allocated_once():
    for _ in range(20):
        before = GlobalCounters.mem_used
        buf = Buffer("PYTHON", 1000, SHARED_DTYPE)
        threads = [threading.Thread(target=buf.ensure_allocated) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert GlobalCounters.mem_used == before + 4000
        buf.deallocate()


def test_each_thread_has_its_own_jit():
    wrong: list[Any] = []

    def work(k: int) -> None:
        f = TinyJit(lambda x: (x * k + 1).sum())
        for i in range(8):
            if (got := f(Tensor(np.full(3, i, np.float32))).item()) != 3 * (i * k + 1):
                wrong.append((k, i, got))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


SHARED_DTYPE = Tensor(SHARED[0]).dtype


def test_gradients_while_other_threads_draw_random_numbers() -> None:
    """A draw overwrites the counter that lazy draws of other threads still read, so its thread computes those."""
    def work(k: int) -> None:
        for _ in range(25):
            w, x = Tensor([1.0, 2.0, 3.0]).is_param_(), Tensor.rand(3)
            y = x * 2 + k
            dx, dw = (w * y).sum().gradient(x, w)
            assert (dx.numpy() == 2 * w.numpy()).all()
            np.testing.assert_allclose(dw.numpy(), x.numpy() * 2 + k, rtol=1e-6)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        together(*[functools.partial(work, k) for k in range(6)])
    finally:
        sys.setswitchinterval(interval)
