"""Training for many steps: nothing that lives grows, eager or captured. Counts objects and bytes, no resident pages."""
from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Context, GlobalCounters, Tensor, TinyJit, nn
from tinyhost.device import Buffer, Device
from tinyhost.uop import UOp

OPTIMIZERS: dict[str, Callable[[list[Tensor]], Any]] = {
    "SGD with momentum": lambda p: nn.optim.SGD(p, lr=1e-2, momentum=0.9),
    "AdamW": lambda p: nn.optim.AdamW(p, lr=1e-3),
}


class Model:
    """A normalized layer, a random one and a linear one: weights, statistics and a counter of random numbers."""

    def __init__(self) -> None:
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm(16), nn.Linear(16, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).relu().dropout(0.2))


def training(optimizer: str) -> Callable[[Tensor, Tensor], Tensor]:
    model = Model()
    opt = OPTIMIZERS[optimizer](nn.state.get_parameters(model))

    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*opt.schedule_step())
    return step


def alive() -> dict[str, int]:
    """What lives in the process."""
    gc.collect()
    kinds = [type(o) for o in gc.get_objects()]
    return {**{k.__name__: kinds.count(k) for k in (UOp, Tensor, Buffer)}, "bytes": GlobalCounters.mem_used,
            "kept": Device[Device.DEFAULT].allocator._kept if Device.DEFAULT == "CPU" else 0}


def run(step: Callable[[Tensor, Tensor], Tensor], count: int, read: bool) -> None:
    rng = np.random.default_rng(0)
    with Context(TRAINING=1):
        for _ in range(count):
            loss = step(Tensor(rng.random((4, 8), dtype=np.float32)), Tensor(rng.integers(0, 4, 4).astype(np.int32)))
            if read:
                assert np.isfinite(loss.item())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_captured_training_steps_leave_nothing(optimizer: str):
    step = TinyJit(training(optimizer))
    run(step, 5, True)
    before = alive()
    run(step, 180, False)
    run(step, 20, True)
    assert alive() == before


def test_eager_training_steps_leave_nothing():
    step = training("AdamW")
    run(step, 4, True)
    before = alive()
    run(step, 10, False)
    run(step, 2, True)
    assert alive() == before


@pytest.mark.soak
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_many_training_steps_leave_nothing(optimizer: str, captured: bool):
    step: Callable[[Tensor, Tensor], Tensor] = training(optimizer)
    if captured:
        step = TinyJit(step)
    run(step, 5, True)
    before = alive()
    run(step, 5000 if captured else 400, True)
    assert alive() == before


def test_intermediate_realizations_leave_nothing():
    weights = [Tensor(np.eye(8, dtype=np.float32)).realize() for _ in range(3)]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        for w in weights:
            x = (x @ w).relu().realize()
            w += x.mean(0).expand(8, 8) * 1e-3
        return x.sum()

    def many(count: int) -> None:
        for i in range(count):
            f(Tensor(np.full((4, 8), i % 7, np.float32)))
    many(6)
    before = alive()
    many(200)
    assert alive() == before


def test_captures_that_are_dropped_leave_nothing():
    def one(i: int) -> None:
        f = TinyJit(lambda x: ((x @ x).softmax(1).realize() @ x).sum())
        for k in range(4):
            f(Tensor(np.full((16, 16), i + k, np.float32)))
    one(0)
    one(1)
    before = alive()
    for i in range(8):
        one(i)
    assert alive() == before


def test_sizes_that_change_leave_nothing():
    """Eager calls over many sizes: what an allocator keeps is bounded, plans and schedules are remembered."""
    def one(n: int) -> None:
        (Tensor(np.ones((n, 8), np.float32)).softmax(1).sum(0) + n).realize()
    for n in range(3, 12):
        one(n)
    before = alive()
    for _ in range(2):
        for n in range(3, 12):
            one(n)
    assert alive() == before
