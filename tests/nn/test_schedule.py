"""Learning-rate schedules against torch's, outside and inside of a jitted training step."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as theirs

from tinyhost import Context, Tensor, TinyJit
from tinyhost.nn import schedule as ours
from tinyhost.nn.optim import SGD, AdamW, OptimizerGroup

STEPS = 25

SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "step": lambda s, o: s.StepLR(o, 4, 0.5),
    "step-default": lambda s, o: s.StepLR(o, 7),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 11, 11, 20], gamma=0.3),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, total_iters=6),
    "linear": lambda s, o: s.LinearLR(o, 0.1, total_iters=9),
    "linear-down": lambda s, o: s.LinearLR(o, 1.0, 0.2, total_iters=20),
    "polynomial": lambda s, o: s.PolynomialLR(o, 12, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 20, eta_min=0.01),
    "cosine-beyond": lambda s, o: s.CosineAnnealingLR(o, 8),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 6, eta_min=0.02),
    "restarts-longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "one-cycle": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=STEPS + 1),
    "one-cycle-linear": lambda s, o: s.OneCycleLR(o, 0.5, epochs=13, steps_per_epoch=2, anneal_strategy="linear",
                                                  pct_start=0.4),
    "one-cycle-three-phases": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=STEPS + 1, three_phase=True,
                                                        div_factor=10.0),
    "warm-up": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 15)], [5]),
    "three-in-turn": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, total_iters=4), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [4, 12]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_against_torch(name: str):
    opt, ref = SGD([Tensor.ones(2)], lr=0.2), torch.optim.SGD([torch.ones(2)], lr=0.2)
    got, want = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that no optimizer step was taken
        mine, other = SCHEDULES[name](ours, opt), SCHEDULES[name](theirs, ref)
        for _ in range(STEPS):
            got.append(opt.lr.item())
            want.append(ref.param_groups[0]["lr"])
            mine.step(), other.step()
    assert mine.get_last_lr() == [opt.lr.item()]
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=5e-8)


def test_chained_factors_multiply():
    opt, ref = SGD([Tensor.ones(2)], lr=0.2), torch.optim.SGD([torch.ones(2)], lr=0.2)
    mine = ours.ChainedScheduler(opt, [ours.ConstantLR(opt, 0.1, 4), ours.ExponentialLR(opt, 0.9)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = theirs.ChainedScheduler([theirs.ConstantLR(ref, 0.1, 4), theirs.ExponentialLR(ref, 0.9)])
        for _ in range(8):
            assert opt.lr.item() == pytest.approx(ref.param_groups[0]["lr"], rel=2e-6)
            mine.step(), other.step()


PLATEAUS = {
    "min": ({"patience": 2}, [5, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3]),
    "max": ({"mode": "max", "patience": 1, "factor": 0.5}, [1, 2, 2, 2, 3, 3, 3, 3, 3, 1]),
    "abs": ({"patience": 1, "threshold": 0.5, "threshold_mode": "abs"}, [5, 4.8, 4.6, 4.4, 3, 2.9, 2.8, 2.7]),
    "cooldown": ({"patience": 0, "cooldown": 3, "factor": 0.5}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    "floor": ({"patience": 0, "min_lr": 0.05}, [1, 2, 3, 4, 5]),
    "small steps": ({"patience": 0, "eps": 0.1}, [1, 2, 3, 4, 5]),
    "rel max": ({"mode": "max", "patience": 0, "threshold": 0.1}, [1, 1.05, 1.2, 1.25, 2]),
}


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateau_against_torch(name: str):
    how, metrics = PLATEAUS[name]
    opt, ref = SGD([Tensor.ones(2)], lr=0.2), torch.optim.SGD([torch.ones(2)], lr=0.2)
    mine, other = ours.ReduceLROnPlateau(opt, **how), theirs.ReduceLROnPlateau(ref, **how)
    for i, m in enumerate(metrics):
        mine.step(Tensor(float(m)) if i % 2 else m), other.step(m)
        assert opt.lr.item() == pytest.approx(ref.param_groups[0]["lr"], rel=2e-6), i


def test_inside_a_jitted_step():
    start = np.linspace(-1, 1, 6, dtype=np.float32)
    p, q = Tensor(start), torch.tensor(start, requires_grad=True)
    opt, ref = AdamW([p], lr=0.1), torch.optim.AdamW([q], lr=0.1)
    mine = ours.SequentialLR(opt, [ours.LinearLR(opt, 0.1, total_iters=3), ours.CosineAnnealingLR(opt, 6)], [3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = theirs.SequentialLR(ref, [theirs.LinearLR(ref, 0.1, total_iters=3), theirs.CosineAnnealingLR(ref, 6)],
                                    [3])

    @TinyJit
    def train(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = ((p * x).sin() * p).sum()
        loss.backward()
        opt.step()
        mine.step()
        return loss.realize()

    with Context(TRAINING=1):
        for i in range(9):
            x = np.full(6, 0.5 + i, np.float32)
            loss = train(Tensor(x).realize())
            ref.zero_grad()
            want = ((q * torch.tensor(x)).sin() * q).sum()
            want.backward()
            ref.step(), other.step()
            assert loss.item() == pytest.approx(want.item(), rel=1e-4, abs=1e-5), i
            assert opt.lr.item() == pytest.approx(ref.param_groups[0]["lr"], rel=2e-6, abs=1e-8), i
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_rate_assigned_between_jitted_steps():
    p = Tensor(np.ones(2, np.float32))
    opt = SGD([p], lr=1.0)

    @TinyJit
    def train() -> Tensor:
        opt.zero_grad()
        p.sum().backward()
        opt.step()
        return p

    with Context(TRAINING=1):
        want = 1.0
        for lr in (1.0, 0.5, 0.25, 2.0, 0.125):
            opt.lr.assign(Tensor([lr])).realize()
            train()
            want -= lr
            assert p.tolist() == [want, want]


def test_groups_scale_each_rate():
    group = OptimizerGroup(SGD([Tensor.ones(2)], lr=0.2), OptimizerGroup(AdamW([Tensor.ones(2)], lr=0.4)))
    s = ours.ExponentialLR(group, 0.5)
    s.step()
    assert s.get_last_lr() == pytest.approx([0.1, 0.2])


BAD = {
    "step size": (lambda o: ours.StepLR(o, 0), "StepLR needs a step_size of at least 1, got 0"),
    "period": (lambda o: ours.CosineAnnealingLR(o, 0), "CosineAnnealingLR needs T_max of at least 1, got 0"),
    "restart period": (lambda o: ours.CosineAnnealingWarmRestarts(o, 0), "T_0 and T_mult of at least 1, got 0, 1"),
    "constant factor": (lambda o: ours.ConstantLR(o, 2.0), "ConstantLR needs a factor between 0 and 1, got 2.0"),
    "start factor": (lambda o: ours.LinearLR(o, 0.0), "LinearLR needs a start_factor above 0 and up to 1, got 0.0"),
    "end factor": (lambda o: ours.LinearLR(o, 0.5, 1.5), "LinearLR needs an end_factor between 0 and 1, got 1.5"),
    "cycle length": (lambda o: ours.OneCycleLR(o, 0.1), "OneCycleLR needs total_steps of at least 2, or epochs and"),
    "cycle strategy": (lambda o: ours.OneCycleLR(o, 0.1, 9, anneal_strategy="sin"),
                       "unknown anneal_strategy 'sin': use"),
    "cycle start": (lambda o: ours.OneCycleLR(o, 0.1, 9, pct_start=2.0), "pct_start between 0 and 1, got 2.0"),
    "milestones": (lambda o: ours.SequentialLR(o, [ours.StepLR(o, 2)], [3]), "got 1 schedules and 1 milestones"),
    "empty chain": (lambda o: ours.ChainedScheduler(o, []), "ChainedScheduler needs at least one schedule"),
    "plateau factor": (lambda o: ours.ReduceLROnPlateau(o, factor=1.0), "needs a factor below 1, got 1.0"),
    "plateau mode": (lambda o: ours.ReduceLROnPlateau(o, "low"), "unknown mode 'low': use 'min' or 'max'"),
    "plateau threshold": (lambda o: ours.ReduceLROnPlateau(o, threshold_mode="x"), "unknown threshold_mode 'x': use"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name: str):
    call, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        call(SGD([Tensor.ones(2)], lr=0.1))


def test_a_schedule_without_rule():
    with pytest.raises(TypeError, match=r"Scheduler defines no rate: override rate\(base, epoch\)"):
        ours.Scheduler(SGD([Tensor.ones(2)], lr=0.1))
