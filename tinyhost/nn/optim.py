"""Optimizers: update parameters in place from their gradients.

``step()`` computes new values for all parameters and realizes them together. It demands TRAINING=1, so that a forgotten
context is an error and not a silently wrong batch norm.
"""
from __future__ import annotations

from typing import Sequence

from tinyhost.dtype import dtypes
from tinyhost.env import TRAINING
from tinyhost.tensor import Tensor

__all__ = ["Adam", "AdamW", "Optimizer", "OptimizerGroup", "SGD"]


class Optimizer:
    """Base: parameters (each once), their gradients, the learning rate as a tensor of one float."""

    def __init__(self, params: Sequence[Tensor], lr: float, device: str | None = None) -> None:
        if lr < 0 or lr != lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        unique = {id(p): p for p in params}
        self.params = [p.is_param_() for p in unique.values()]
        if not self.params:
            raise ValueError("optimizer must have at least one param")
        self.device = device or self.params[0].device
        self.lr = Tensor([lr], dtype=dtypes.float32, device=self.device)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        """Update all parameters.

        Raises:
            RuntimeError: not in training, or a parameter has no gradient.
        """
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors whose realization is the step."""
        if not TRAINING.value:
            raise RuntimeError("optimizer.step() needs training mode: wrap the training loop in `with Context(TRAINING=1):`")
        missing = [i for i, p in enumerate(self.params) if p.grad is None]
        if missing:
            raise RuntimeError(f"params {missing} of the optimizer have no gradient: call backward() on a loss that uses them "
                               "before step()")
        return self._step([p.grad for p in self.params]) + self.params + self._state()

    def _state(self) -> list[Tensor]:
        return []

    def _step(self, grads: list[Tensor]) -> list[Tensor]:
        raise TypeError(f"{type(self).__name__} defines no update rule")

    def _zeros(self) -> list[Tensor]:
        return [Tensor.zeros(*p.shape, dtype=_state_dtype(p), device=p.device) for p in self.params]


def _state_dtype(p: Tensor):  # type: ignore[no-untyped-def]
    return p.dtype if p.dtype is dtypes.float64 else dtypes.float32


class OptimizerGroup(Optimizer):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for o in self.optimizers:
            o.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """The tensors whose realization is the step of all of them."""
        return [t for o in self.optimizers for t in o.schedule_step()]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum; ``classic`` scales the momentum by the current learning rate."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, classic: bool = False, device: str | None = None) -> None:
        super().__init__(params, lr, device)
        self.momentum, self.wd, self.nesterov, self.classic = momentum, weight_decay, nesterov, classic
        self.b = self._zeros() if momentum else []

    def _state(self) -> list[Tensor]:
        return self.b

    def _step(self, grads: list[Tensor]) -> list[Tensor]:
        for i, (p, g) in enumerate(zip(self.params, grads)):
            g = g.detach() + self.wd * p.detach() if self.wd else g.detach()
            lr = self.lr.cast(p.dtype)
            scaled = g * lr if self.classic else g
            if self.momentum:
                self.b[i].assign((self.momentum * self.b[i] + scaled).cast(self.b[i].dtype))
                scaled = (scaled + self.momentum * self.b[i]) if self.nesterov else self.b[i]
            p.assign((p.detach() - (scaled if self.classic else scaled * lr)).cast(p.dtype))
        return []


class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.01, device: str | None = None) -> None:
        super().__init__(params, lr, device)
        self.b1, self.b2, self.eps, self.wd = b1, b2, eps, weight_decay
        self.b1_t, self.b2_t = (Tensor.ones(1, dtype=dtypes.float32, device=self.device) for _ in range(2))
        self.m, self.v = self._zeros(), self._zeros()

    def _state(self) -> list[Tensor]:
        return [self.b1_t, self.b2_t, *self.m, *self.v]

    def _step(self, grads: list[Tensor]) -> list[Tensor]:
        self.b1_t *= self.b1
        self.b2_t *= self.b2
        for i, (p, g) in enumerate(zip(self.params, grads)):
            g = g.detach()
            self.m[i].assign((self.b1 * self.m[i] + (1.0 - self.b1) * g).cast(self.m[i].dtype))
            self.v[i].assign((self.b2 * self.v[i] + (1.0 - self.b2) * (g * g)).cast(self.v[i].dtype))
            m_hat = self.m[i] / (1.0 - self.b1_t)
            v_hat = self.v[i] / (1.0 - self.b2_t)
            up = m_hat / (v_hat.sqrt() + self.eps)
            if self.wd:
                up = up + self.wd * p.detach()
            p.assign((p.detach() - self.lr * up).cast(p.dtype))
        return []


class Adam(AdamW):
    """Adam."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 device: str | None = None) -> None:
        super().__init__(params, lr, b1, b2, eps, 0.0, device)
