"""Steps of optimizers (domain ai.onnx.preview.training)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.io.onnx.registry import op
from tinyhost.tensor import Tensor

_DOMAIN = "ai.onnx.preview.training"


def _stepped(values: tuple[Tensor, ...], kinds: int, step: Callable[..., tuple[Tensor, ...]]) -> list[Tensor]:
    """All results, grouped by kind, of a step over tensors that come grouped by kind."""
    n = len(values) // kinds
    if n * kinds != len(values) or not n:
        raise ValueError(f"{len(values)} tensors are not {kinds} for each weight")
    groups = [values[i * n:(i + 1) * n] for i in range(kinds)]
    rows = [step(*parts) for parts in zip(*groups)]
    return [r[k] for k in range(len(rows[0])) for r in rows]


@op("Adagrad", domain=_DOMAIN)
def adagrad(rate: Tensor, count: Tensor, *values: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0) -> list[Tensor]:
    """Weights and squared gradient sums after a step of Adagrad."""
    lr = rate / (count.cast(rate.dtype) * decay_factor + 1)

    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        h = h + g * g
        return x - lr * g / (h.sqrt() + epsilon), h
    return _stepped(values, 3, step)


@op("Adam", domain=_DOMAIN)
def adam(rate: Tensor, count: Tensor, *values: Tensor, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> list[Tensor]:
    """Weights and both moments after a step of Adam."""
    t = count.cast(rate.dtype)
    one = t * 0 + 1
    ready = count > 0
    lr = ready.where(rate * (1 - (one * beta).pow(t)).sqrt() / (1 - (one * alpha).pow(ready.where(t, 1))), rate)

    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        v = v * alpha + g * (1 - alpha)
        h = h * beta + g * g * (1 - beta)
        new = x - lr * v / (h.sqrt() + epsilon)
        return new * (1 - norm_coefficient_post), v, h
    return _stepped(values, 4, step)


@op("Momentum", domain=_DOMAIN)
def momentum(rate: Tensor, count: Tensor, *values: Tensor, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> list[Tensor]:
    """Weights and momenta after a step of SG with momentum."""
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"mode is 'standard' or 'nesterov', got {mode!r}")
    dampened: Any = (count > 0).where(beta, 1.0)

    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        v = v * alpha + g * dampened
        return x - rate * (g + v * alpha if mode == "nesterov" else v), v
    return _stepped(values, 3, step)
