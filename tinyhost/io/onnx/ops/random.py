"""Random numbers. The seed attribute is not that of another implementation: equal seeds give other numbers there."""
from __future__ import annotations

from typing import Any

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import Call, narrowed
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import element, element_of
from tinyhost.tensor import Tensor


def _seeded(seed: float | None) -> None:
    if seed is not None:
        Tensor.manual_seed(hash(seed) & 0x7FFFFFFF)


def _uniform(shape: tuple[int, ...], low: float, high: float, kind: Any, ctx: Call) -> Any:
    return narrowed(Tensor.rand(*shape, device=ctx.device) * (high - low) + low, kind.tensor_type)


def _normal(shape: tuple[int, ...], mean: float, scale: float, kind: Any, ctx: Call) -> Any:
    return narrowed(Tensor.randn(*shape, device=ctx.device) * scale + mean, kind.tensor_type)


@op("RandomUniform")
def random_uniform(*, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None,
                   shape: list[int], ctx: Call) -> Any:
    """Uniform numbers of [low, high)."""
    _seeded(seed)
    return _uniform(tuple(shape), low, high, element(dtype), ctx)


@op("RandomUniformLike", raw=True)
def random_uniform_like(x: Any, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                        seed: float | None = None, ctx: Call) -> Any:
    """Uniform numbers at the shape of ``x``."""
    _seeded(seed)
    return _uniform(x.shape, low, high, element_of(x) if dtype is None else element(dtype), ctx)


@op("RandomNormal")
def random_normal(*, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                  shape: list[int], ctx: Call) -> Any:
    """Normal numbers."""
    _seeded(seed)
    return _normal(tuple(shape), mean, scale, element(dtype), ctx)


@op("RandomNormalLike", raw=True)
def random_normal_like(x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None, ctx: Call) -> Any:
    """Normal numbers at the shape of ``x``."""
    _seeded(seed)
    return _normal(x.shape, mean, scale, element_of(x) if dtype is None else element(dtype), ctx)


@op("Bernoulli", raw=True)
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None, ctx: Call) -> Any:
    """1 with the probability that ``x`` holds, else 0."""
    _seeded(seed)
    hit = Tensor.rand(*x.shape, device=ctx.device) < ctx.lift(x).cast(dtypes.float32)
    kind = element_of(x) if dtype is None else element(dtype)
    return narrowed(hit.where(1, 0), kind.tensor_type)


@op("Multinomial")
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    """Class numbers drawn from unnormalised log probabilities."""
    _seeded(seed)
    return narrowed(x.softmax(-1).multinomial(sample_size, replacement=True), element(dtype).tensor_type)
