"""Optimizers: update parameters in place from their gradients.

``step()`` computes new values for all parameters and realizes them together. It demands TRAINING=1, so that a forgotten
context is an error and not a silently wrong batch norm. State is kept in float32 (float64 for float64 parameters), on
the parameter's devices and split like it. The learning rate is a tensor that is assigned to, so a jitted step sees each
change (see ``nn.schedule``).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyhost._tensor.core import DeviceLike, canonical_device
from tinyhost.dtype import DType, dtypes
from tinyhost.env import FUSE_OPTIM, TRAINING
from tinyhost.helpers import prod
from tinyhost.tensor import Tensor

__all__ = ["Adam", "AdamW", "LAMB", "LARS", "Muon", "Optimizer", "OptimizerGroup", "SGD"]


class Optimizer:
    """Base: parameters (each once), their gradients, the learning rate as a tensor of one float.

    What is no float or marked with ``is_param_(False)``, such as running statistics, is not trained, but realized with
    the step. A subclass defines ``_update``.

    Args:
        device: where state and rate are kept and updates computed, gradients and new values moving there and back;
            None: with each parameter, the rate with the first.
        fused: update all parameters as one vector, in a few large kernels instead of some for each parameter; the
            default is the context variable FUSE_OPTIM. State is then kept as one vector too.

    Raises:
        ValueError: no parameters, a learning rate that is negative or no finite number, or ``fused`` for a rule that
            looks at each parameter as a whole.
    """

    def __init__(self, params: Sequence[Tensor], lr: float, device: DeviceLike = None,
                 fused: bool | None = None) -> None:
        if not (lr >= 0 and math.isfinite(lr)):
            raise ValueError(f"Invalid learning rate: {lr}")
        unique = list({id(p): p for p in params}.values())
        self.params = [p.is_param_() for p in unique if p.is_param is not False and p.dtype.is_float]
        self.buffers = [p for p in unique if p.is_param is False or not p.dtype.is_float]
        if not self.params:
            raise ValueError("optimizer must have at least one param: the tensors it was given are integers, or "
                             "marked with "
                             "is_param_(False)" if unique else "optimizer must have at least one param")
        self._home = None if device is None else canonical_device(device)
        self.device = self._home or self.params[0].device
        self.lr = Tensor([lr], dtype=dtypes.float32, device=self.device)
        self.fused = self._chosen(fused)
        self._groups = self._joint_params() if self.fused else [[i] for i in range(len(self.params))]

    def _chosen(self, fused: bool | None) -> bool:
        reason = self._by_tensor()
        if fused and reason:
            raise ValueError(f"{type(self).__name__} cannot be fused: {reason}; leave fused out")
        return bool(FUSE_OPTIM.value if fused is None else fused) and not reason

    def _by_tensor(self) -> str:
        """Why the rule needs each parameter by itself, "" when it does not."""
        return ""

    def _joint_params(self) -> list[list[int]]:
        """Numbers of the parameters that one vector holds: those of one state dtype and device."""
        groups: dict[Any, list[int]] = {}
        for i, p in enumerate(self.params):
            home = self._home or p.device
            groups.setdefault((_state_dtype(p), home) if isinstance(home, str) else i, []).append(i)
        return list(groups.values())

    def _joined(self, tensors: Sequence[Tensor], group: list[int]) -> Tensor:
        """The tensors of a group as one at the state's dtype: itself, or flat and one after the other."""
        parts = [self._at_home(tensors[i]).cast(_state_dtype(self.params[i])) for i in group]
        return parts[0].flatten().cat(*(t.flatten() for t in parts[1:])) if self._flat(group) else parts[0]

    def _flat(self, group: list[int]) -> bool:
        """Whether the group is one vector; what is spread over devices stays as it is."""
        return self.fused and isinstance(self._home or self.params[group[0]].device, str)

    def _at_home(self, t: Tensor) -> Tensor:
        """A tensor where its update is computed: on its own device unless the optimizer was given one."""
        return t if self._home is None else t.to(self._home)

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
            raise RuntimeError("optimizer.step() needs training mode: wrap the training loop in `with "
                               "Context(TRAINING=1):`")
        missing = [i for i, p in enumerate(self.params) if p.grad is None]
        if missing:
            raise RuntimeError(f"params {missing} of the optimizer have no gradient: call backward() on a loss that "
                               "uses them before step()")
        self._step([p.grad.detach() for p in self.params])
        return self.params + self._state() + self.buffers

    def _state(self) -> list[Tensor]:
        """Tensors that live from step to step, besides the parameters."""
        return []

    def _step(self, grads: list[Tensor]) -> None:
        """Assign the new values to parameters and state."""
        values = [p.detach() for p in self.params]
        for k, group in enumerate(self._groups):
            w = self._joined(values, group)
            new = w - self._update(k, w, self._joined(grads, group))
            if self._flat(group):
                sizes = [prod(self.params[i].shape) for i in group]
                pieces: Sequence[Tensor] = new.contiguous().split(sizes)
            else:
                pieces = [new]
            for i, piece in zip(group, pieces):
                p = self.params[i]
                p.assign(piece.reshape(p.shape).cast(p.dtype).to(p.device))

    def _update(self, k: int, w: Tensor, g: Tensor) -> Tensor:
        """What is subtracted from the values ``w`` with gradients ``g`` of group ``k``; assigns the group's state."""
        raise TypeError(f"{type(self).__name__} defines no update rule: override _update")

    def _zeros(self) -> list[Tensor]:
        """Zeros of the shape that ``_joined`` gives each group."""
        out = []
        for group in self._groups:
            first = self.params[group[0]]
            dtype = _state_dtype(first)
            size = sum(prod(self.params[i].shape) for i in group)
            out.append(Tensor.zeros(size, dtype=dtype, device=self._home or first.device) if self._flat(group) else
                       first.zeros_like(dtype=dtype, device=self._home))
        return out


def _state_dtype(p: Tensor) -> DType:
    return p.dtype if p.dtype is dtypes.float64 else dtypes.float32


def _norm(t: Tensor) -> Tensor:
    return t.square().sum().sqrt()


def _trust_ratio(weight: Tensor, update: Tensor, scaled: Tensor) -> Tensor:
    """``scaled``, or 1 where weight or update is all zero."""
    ratio: Tensor = ((weight > 0) & (update > 0)).where(scaled, 1.0)
    return ratio


class OptimizerGroup(Optimizer):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise ValueError("an optimizer group needs at least one optimizer")
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


class LARS(Optimizer):
    """SGD whose rate is scaled for each tensor by ``tcoef * |weight| / |gradient|`` (You, Gitman, Ginsburg 2017).

    Args:
        classic: the momentum accumulates steps, scaled by the learning rate of their time, instead of gradients.
        pre_wd: weight decay is added to the gradient; otherwise it shrinks the weight by ``lr * weight_decay``.
        ns_steps: Newton-Schulz iterations that orthogonalise the update, with ``ns_coefficients``.
    """

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
                 ns_steps: int = 0, ns_coefficients: tuple[float, ...] | None = None, nesterov: bool = False,
                 classic: bool = True, pre_wd: bool = True, tcoef: float = 0.001, device: DeviceLike = None,
                 fused: bool | None = None) -> None:
        if ns_steps and not ns_coefficients:
            raise ValueError(f"ns_steps={ns_steps} needs ns_coefficients, the factors of the iterated polynomial")
        self.momentum, self.wd, self.tcoef = momentum, weight_decay, tcoef
        self.nesterov, self.classic, self.pre_wd = nesterov, classic, pre_wd
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        super().__init__(params, lr, device, fused)
        self.b = self._zeros() if momentum else []

    def _state(self) -> list[Tensor]:
        return self.b

    def _by_tensor(self) -> str:
        return "it scales each tensor by its own norm" if self.tcoef else \
            "it orthogonalises each matrix" if self.ns_steps else ""

    def _update(self, k: int, w: Tensor, g: Tensor) -> Tensor:
        lr = self.lr.to(w.device)
        rate = self._rate(lr, w, g)
        if self.wd and self.pre_wd:
            g = g + self.wd * w
        if self.classic:
            g = g * rate
        if self.momentum:
            b = self.b[k]
            b.assign(self.momentum * b + g)
            g = g + self.momentum * b if self.nesterov else b
        if self.ns_steps and self.ns_coefficients:
            g = g.reshape(g.shape[0], -1).newton_schulz(self.ns_steps, self.ns_coefficients).reshape(g.shape)
        if not self.classic:
            g = g * rate
        return g + lr * self.wd * w if self.wd and not self.pre_wd else g

    def _rate(self, lr: Tensor, w: Tensor, g: Tensor) -> Tensor:
        if not self.tcoef:
            return lr
        weight, grad = _norm(w), _norm(g)
        return lr * _trust_ratio(weight, grad, self.tcoef * weight / (grad + self.wd * weight))


class SGD(LARS):
    """Stochastic gradient descent; ``classic`` momentum is scaled by the learning rate of its time."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, classic: bool = False, device: DeviceLike = None,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, momentum, weight_decay, nesterov=nesterov, classic=classic, tcoef=0.0,
                         device=device, fused=fused)


class Muon(LARS):
    """Momentum orthogonalised by Newton-Schulz (Jordan 2024), for matrices; use another optimizer for vectors.

    Raises:
        ValueError: a parameter has less than two axes.
    """

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.95, weight_decay: float = 0.1,
                 ns_steps: int = 5, ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315),
                 nesterov: bool = True, device: DeviceLike = None, fused: bool | None = None) -> None:
        if flat := [i for i, p in enumerate(params) if p.ndim < 2]:
            raise ValueError(f"Muon updates matrices, but params {flat} have less than two axes: give those to AdamW")
        super().__init__(params, lr, momentum, weight_decay, ns_steps, ns_coefficients, nesterov, classic=False,
                         pre_wd=False, tcoef=0.0, device=device, fused=fused)


class LAMB(Optimizer):
    """Adam with decoupled weight decay, its step scaled for each tensor by ``|weight| / |step|`` unless ``adam``
    (You et al. 2019)."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-6, weight_decay: float = 0.0, adam: bool = False, device: DeviceLike = None,
                 fused: bool | None = None) -> None:
        self.b1, self.b2, self.eps, self.wd, self.adam = b1, b2, eps, weight_decay, adam
        super().__init__(params, lr, device, fused)
        self.b1_t, self.b2_t = (Tensor.ones(1, dtype=dtypes.float32, device=self.device) for _ in range(2))
        self.m, self.v = self._zeros(), self._zeros()

    def _state(self) -> list[Tensor]:
        return [self.b1_t, self.b2_t, *self.m, *self.v]

    def _by_tensor(self) -> str:
        return "" if self.adam else "it scales each tensor by its own norm"

    def _step(self, grads: list[Tensor]) -> None:
        self.b1_t *= self.b1
        self.b2_t *= self.b2
        super()._step(grads)

    def _update(self, k: int, w: Tensor, g: Tensor) -> Tensor:
        m, v = self.m[k], self.v[k]
        m.assign(self.b1 * m + (1.0 - self.b1) * g)
        v.assign(self.b2 * v + (1.0 - self.b2) * (g * g))
        b1_t, b2_t = self.b1_t.to(w.device), self.b2_t.to(w.device)
        step = m / (1.0 - b1_t) / ((v / (1.0 - b2_t)).sqrt() + self.eps)
        if self.wd:
            step = step + self.wd * w
        if not self.adam:
            weight, length = _norm(w), _norm(step)
            step = step * _trust_ratio(weight, length, weight / length)
        return self.lr.to(w.device) * step


class AdamW(LAMB):
    """Adam with decoupled weight decay."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-8, weight_decay: float = 0.01, device: DeviceLike = None,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, adam=True, device=device, fused=fused)


class Adam(AdamW):
    """Adam."""

    def __init__(self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-8, device: DeviceLike = None, fused: bool | None = None) -> None:
        super().__init__(params, lr, b1, b2, eps, 0.0, device, fused)
