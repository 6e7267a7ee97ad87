"""Learning-rate schedules.

A schedule takes an optimizer (or a group) and sets its rate to a function of the number of steps taken, the one torch's
schedule of the same name computes. That number is a tensor and so is the rate, so ``step()`` works inside a jitted
function and a jitted optimizer step sees every change. Construction sets the rate of step 0, as in torch.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from tinyhost.dtype import dtypes
from tinyhost.nn.optim import Optimizer, OptimizerGroup
from tinyhost.tensor import Tensor

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
           "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "Scheduler", "SequentialLR",
           "StepLR"]


def _optimizers(optimizer: Optimizer) -> list[Optimizer]:
    if isinstance(optimizer, OptimizerGroup):
        return [o for part in optimizer.optimizers for o in _optimizers(part)]
    return [optimizer]


class Scheduler:
    """Base: a subclass says in ``rate`` what the rate is after a number of steps.

    The rates that the optimizers have at construction are the ones that schedules scale.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizers = _optimizers(optimizer)
        self.base = [float(o.lr.item()) for o in self.optimizers]
        self.epoch = Tensor([0], dtype=dtypes.int32, device=self.optimizers[0].device)
        Tensor.realize(*self._assigned())

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """The rate after ``epoch`` steps, integers of shape (1,), of an optimizer that began with ``base``."""
        raise TypeError(f"{type(self).__name__} defines no rate: override rate(base, epoch)")

    def step(self) -> None:
        """Count one step and set the rate."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors whose realization is the step."""
        self.epoch.assign(self.epoch + 1)
        return [self.epoch, *self._assigned()]

    def get_last_lr(self) -> list[float]:
        """The rates as numbers, one for each optimizer."""
        return [float(o.lr.item()) for o in self.optimizers]

    def _assigned(self) -> list[Tensor]:
        for o, base in zip(self.optimizers, self.base):
            o.lr.assign(self.rate(base, self.epoch.to(o.device)).cast(o.lr.dtype).reshape(o.lr.shape))
        return [o.lr for o in self.optimizers]


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)


class StepLR(Scheduler):
    """The rate times ``gamma`` after every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        _check(step_size >= 1, f"StepLR needs a step_size of at least 1, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * gamma ** (epoch // step_size)"""
        return base * _power(self.gamma, epoch // self.step_size)


class MultiStepLR(Scheduler):
    """The rate times ``gamma`` at each of the ``milestones``; one that stands twice counts twice."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * gamma ** (number of milestones reached)"""
        reached = epoch * 0
        for m in self.milestones:
            reached = reached + (epoch >= m).int()
        return base * _power(self.gamma, reached)


class ExponentialLR(Scheduler):
    """The rate times ``gamma`` in every step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * gamma ** epoch"""
        return base * _power(self.gamma, epoch)


class ConstantLR(Scheduler):
    """The rate times ``factor`` for the first ``total_iters`` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5) -> None:
        _check(0 <= factor <= 1, f"ConstantLR needs a factor between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * factor, then base"""
        early = epoch < self.total_iters
        out: Tensor = early.where(base * self.factor, base)
        return out


class LinearLR(Scheduler):
    """The rate times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` steps: warm-up."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 total_iters: int = 5) -> None:
        _check(0 < start_factor <= 1, f"LinearLR needs a start_factor above 0 and up to 1, got {start_factor}")
        _check(0 <= end_factor <= 1, f"LinearLR needs an end_factor between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * (start + (end - start) * share of total_iters)"""
        share = epoch.minimum(self.total_iters).float() / max(self.total_iters, 1)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(Scheduler):
    """The rate times (1 - share of ``total_iters``) ** ``power``."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base * (1 - epoch / total_iters) ** power"""
        left = 1 - epoch.minimum(self.total_iters).float() / max(self.total_iters, 1)
        out: Tensor = base * left ** float(self.power)
        return out


class CosineAnnealingLR(Scheduler):
    """The rate falls to ``eta_min`` in ``T_max`` steps along half a cosine, and rises again if steps go on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        _check(T_max >= 1, f"CosineAnnealingLR needs T_max of at least 1, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """eta_min + (base - eta_min) * (1 + cos(pi * epoch / T_max)) / 2"""
        return _cosine(base, self.eta_min, epoch.float() / self.T_max)


class CosineAnnealingWarmRestarts(Scheduler):
    """Half a cosine down to ``eta_min`` in ``T_0`` steps, again and again; each time ``T_mult`` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
        _check(T_0 >= 1 and T_mult >= 1,
               f"CosineAnnealingWarmRestarts needs T_0 and T_mult of at least 1, got {T_0}, {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """A cosine over the share of the running period that has passed"""
        if self.T_mult == 1:
            return _cosine(base, self.eta_min, (epoch % self.T_0).float() / self.T_0)
        start, length = 0, self.T_0
        share = epoch.float() / length
        while start + length < 2**31:  # the periods that an int32 counter can reach
            start, length = start + length, length * self.T_mult
            share = (epoch >= start).where((epoch - start).float() / length, share)
        return _cosine(base, self.eta_min, share)


class OneCycleLR(Scheduler):
    """Up from ``max_lr / div_factor`` to ``max_lr`` and down to ``1 / final_div_factor`` of the start (Smith 2018).

    Args:
        total_steps: length of the cycle; or give ``epochs`` and ``steps_per_epoch``.
        pct_start: share of the steps that go up.
        anneal_strategy: "cos" or "linear".
        three_phase: down to the start in as many steps as up, and only then below it.
    """

    def __init__(self, optimizer: Optimizer, max_lr: float, total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False) -> None:
        if total_steps is None and epochs and steps_per_epoch:
            total_steps = epochs * steps_per_epoch
        if total_steps is None or total_steps < 2:
            raise ValueError("OneCycleLR needs total_steps of at least 2, or epochs and steps_per_epoch; got "
                             f"total_steps={total_steps}, epochs={epochs}, steps_per_epoch={steps_per_epoch}")
        _check(anneal_strategy in ("cos", "linear"),
               f"unknown anneal_strategy {anneal_strategy!r}: use 'cos' or 'linear'")
        _check(0 <= pct_start <= 1, f"OneCycleLR needs a pct_start between 0 and 1, got {pct_start}")
        self.anneal_strategy, low = anneal_strategy, max_lr / div_factor
        top, last = pct_start * total_steps - 1, total_steps - 1
        # (first step, last step, rate there, rate here) of each phase
        self.phases: list[tuple[float, float, float, float]] = [(0.0, top, low, max_lr)]
        if three_phase:
            self.phases.append((top, 2 * top, max_lr, low))
        _, begin, _, start = self.phases[-1]
        self.phases.append((begin, last, start, low / final_div_factor))
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """The rate of the phase that the step falls into; the base rate does not matter"""
        out = None
        for first, last, start, end in reversed(self.phases):
            share = (epoch.float() - first) / (last - first if last != first else 1.0)
            value = _cosine(start, end, share) if self.anneal_strategy == "cos" else start + (end - start) * share
            out = value if out is None else (epoch.float() <= last).where(value, out)
        assert out is not None
        return out


class SequentialLR(Scheduler):
    """One schedule after the other: number i + 1 begins at ``milestones[i]``, at its own step 0.

    Warm-up and decay: ``SequentialLR(opt, [LinearLR(opt, 0.1, total_iters=10), CosineAnnealingLR(opt, 90)], [10])``.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[Scheduler], milestones: Sequence[int]) -> None:
        _check(len(schedulers) == len(milestones) + 1,
               f"SequentialLR needs a milestone between each two schedules: got {len(schedulers)} schedules and "
               f"{len(milestones)} milestones")
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        _restore(optimizer, self.schedulers[0])
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """The rate of the schedule whose turn it is"""
        out = self.schedulers[0].rate(base, epoch)
        for s, begin in zip(self.schedulers[1:], self.milestones):
            out = (epoch >= begin).where(s.rate(base, (epoch - begin).maximum(0)), out)
        return out


class ChainedScheduler(Scheduler):
    """All schedules at once: their factors are multiplied."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[Scheduler]) -> None:
        _check(len(schedulers) > 0, "ChainedScheduler needs at least one schedule")
        self.schedulers = list(schedulers)
        _restore(optimizer, self.schedulers[0])
        super().__init__(optimizer)

    def rate(self, base: float, epoch: Tensor) -> Tensor:
        """base times the factor of each schedule"""
        out = self.schedulers[0].rate(base, epoch)
        for s in self.schedulers[1:]:
            out = out * (s.rate(base, epoch) / base)
        return out


class ReduceLROnPlateau:
    """The rate times ``factor`` when a metric has not improved for more than ``patience`` steps.

    Args:
        mode: "min" or "max": what an improvement is.
        threshold: how much better the metric must be, as a share of the best ("rel") or as a difference ("abs").
        cooldown: steps after a reduction in which nothing counts.
        min_lr: the rate does not fall below it.
        eps: reductions smaller than this are left out.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0,
                 eps: float = 1e-8) -> None:
        _check(factor < 1, f"ReduceLROnPlateau needs a factor below 1, got {factor}")
        _check(mode in ("min", "max"), f"unknown mode {mode!r}: use 'min' or 'max'")
        _check(threshold_mode in ("rel", "abs"), f"unknown threshold_mode {threshold_mode!r}: use 'rel' or 'abs'")
        self.optimizers = _optimizers(optimizer)
        self.mode, self.factor, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.min_lr, self.eps = threshold, threshold_mode, min_lr, eps
        device = self.optimizers[0].device
        self.best = Tensor([math.inf if mode == "min" else -math.inf], dtype=dtypes.float32, device=device)
        self.bad_steps = Tensor([0], dtype=dtypes.int32, device=device)
        self.cooldown_left = Tensor([0], dtype=dtypes.int32, device=device)

    def step(self, metrics: Tensor | float) -> None:
        """Take note of the metric, a number or a tensor of one element, and set the rate."""
        Tensor.realize(*self.schedule_step(metrics))

    def schedule_step(self, metrics: Tensor | float) -> list[Tensor]:
        """The tensors whose realization is the step."""
        value = metrics if isinstance(metrics, Tensor) else Tensor([float(metrics)], device=self.best.device)
        value = value.detach().reshape(1).cast(self.best.dtype).to(self.best.device)
        better = self._better(value)
        cooling = self.cooldown_left > 0
        bad = (better | cooling).where(0, self.bad_steps + 1)
        reduce = bad > self.patience
        self.best.assign(better.where(value, self.best))
        self.cooldown_left.assign(reduce.where(self.cooldown, self.cooldown_left - cooling.int()))
        for o in self.optimizers:
            lower = (o.lr * self.factor).maximum(self.min_lr)
            o.lr.assign((reduce.to(o.device) & (o.lr - lower > self.eps)).where(lower, o.lr))
        self.bad_steps.assign(reduce.where(0, bad))
        return [self.best, self.cooldown_left, self.bad_steps, *(o.lr for o in self.optimizers)]

    def _better(self, value: Tensor) -> Tensor:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            bar = self.best + sign * self.threshold
        else:
            bar = self.best * (1 + sign * self.threshold)
        return value < bar if self.mode == "min" else value > bar

    def get_last_lr(self) -> list[float]:
        """The rates as numbers, one for each optimizer."""
        return [float(o.lr.item()) for o in self.optimizers]


def _restore(optimizer: Optimizer, first: Scheduler) -> None:
    """Undo what the parts of a compound schedule set the rates to."""
    for o, base in zip(_optimizers(optimizer), first.base):
        o.lr.assign(Tensor([base], dtype=o.lr.dtype, device=o.device)).realize()


def _power(base: float, exponent: Tensor) -> Tensor:
    return base ** exponent.float()


def _cosine(start: float, end: float, share: Tensor) -> Tensor:
    """From ``start`` to ``end`` along half a cosine as ``share`` goes from 0 to 1."""
    return end + (start - end) * (share * (math.pi / 2)).cos().square()  # (1 + cos 2x) / 2
