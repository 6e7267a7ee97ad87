"""What a case of the op database is: a call with generated inputs, a reference's answer, bounds on the error.

A case belongs to a public ``op``; further cases of the same op are its modes. ``fn`` takes tinyhost tensors, ``ref``
torch tensors (the same function where names agree); both give one tensor or several. A case runs in each of its
``dtypes``: inputs given as shapes take that dtype, inputs with a dtype of their own keep it. Inputs follow from the
case's name, so every test sees the same numbers. With ``grad`` the gradient of a weighted sum of the float results with
respect to every float input is compared too.

The bound of a narrower float is ``atol`` and ``rtol`` times the ratio of the machine epsilons; its reference is torch's
answer in float32 from the narrow inputs, unless ``ref_native`` (the result's own rounding is what is tested).
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Input:
    """One input: numbers of ``shape`` between ``low`` and ``high``, or given ``data``; no dtype: the case's.

    Bounds that the dtype cannot hold are moved to its own.
    """

    shape: tuple[int, ...] = ()
    dtype: str | None = None
    low: float = -2.0
    high: float = 2.0
    data: Any = None

    def make(self, rng: np.random.Generator, dtype: str) -> Array:
        """The array; for bfloat16 a float32 one whose values bfloat16 has."""
        dtype = self.dtype or dtype
        if self.data is not None:
            return _rounded(np.array(self.data), dtype)
        kind = "f" if dtype == "bfloat16" else np.dtype(dtype).kind
        if kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if kind in "iu":
            limits = np.iinfo(dtype)
            low, high = max(int(self.low), limits.min), min(int(self.high), limits.max)
            return rng.integers(low, high, self.shape).astype(dtype)
        return _rounded(rng.uniform(self.low, self.high, self.shape), dtype)


def _rounded(a: Array, dtype: str) -> Array:
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return a.astype(dtype)
    import torch
    return torch.from_numpy(np.ascontiguousarray(a, dtype=np.float64)).to(torch.bfloat16).float().numpy()


@dataclass(frozen=True)
class Case:
    """One call and its reference."""

    name: str
    op: str
    fn: Callable[..., Any]
    inputs: tuple[Input, ...]
    ref: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32",)
    atol: float = 1e-6
    rtol: float = 1e-5
    grad: bool = True
    grad_atol: float = 1e-5
    grad_rtol: float = 1e-4
    ref_native: bool = False
    slow: bool = False  # takes seconds: by default on CPU only
    note: str = ""  # what the mode is about, for the printed list

    @property
    def family(self) -> str:
        """Name of the module that defines the case."""
        return self.fn.__module__.rpartition(".")[2]

    @property
    def mode(self) -> str:
        """What sets the case apart from others of its op: the note, else the rest of the name."""
        return self.note or self.name.removeprefix(self.op).strip("_ ") or "plain"

    @property
    def given(self) -> tuple[str, ...]:
        """The dtypes that the inputs have over all runs."""
        own = dict.fromkeys(i.dtype for i in self.inputs if i.dtype)
        return tuple(dict.fromkeys([*(self.dtypes if len(own) == 0 or any(i.dtype is None for i in self.inputs)
                                      else ()), *own]))

    def arrays(self, dtype: str) -> list[Array]:
        """The inputs, the same in every run."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [i.make(rng, dtype) for i in self.inputs]

    def bounds(self, dtype: str) -> tuple[float, float]:
        """(atol, rtol) in ``dtype``."""
        wider = EPSILON.get(dtype, 0.0) / EPSILON["float32"]
        factor = wider if wider > 1 else 1.0
        return self.atol * factor, self.rtol * factor

    def grad_bounds(self, dtype: str) -> tuple[float, float]:
        """(atol, rtol) of gradients in ``dtype``."""
        factor = max(1.0, EPSILON.get(dtype, 0.0) / EPSILON["float32"])
        return self.grad_atol * factor, self.grad_rtol * factor

    def __repr__(self) -> str:
        return self.name


FLOATS = ("float32", "float16", "bfloat16", "float64")
INTS = ("int32", "int8", "int16", "int64", "uint8")
UINTS = ("uint8", "uint16", "uint32", "uint64")
_CASES: dict[str, Case] = {}


def case(name: str, fn: Callable[..., Any], *inputs: Any, op: str = "", ref: Callable[..., Any] | None = None,
         low: float = -2.0, high: float = 2.0, dtype: str | None = None, **kwargs: Any) -> None:
    """Add a case; an input is a shape or an Input; ``op``: the public name, else the longest one the name begins with.

    Raises:
        ValueError: the name is taken.
    """
    made = tuple(i if isinstance(i, Input) else Input(tuple(i), dtype, low, high) for i in inputs)
    if name in _CASES:
        raise ValueError(f"two cases named {name}")
    _CASES[name] = Case(name, op or _op_of(name), fn, made, ref or fn, **kwargs)


def _op_of(name: str) -> str:
    """The longest prefix of ``name`` (in words) that is a method of Tensor, else the first word."""
    from tinyhost.tensor import Tensor
    words = name.replace(" ", "_").split("_")
    return next((p for n in range(len(words), 0, -1) if hasattr(Tensor, p := "_".join(words[:n]))), words[0])


def ints(*values: Any, dtype: str = "int32") -> Input:
    """An input of these integers."""
    return Input(dtype=dtype, data=values[0] if len(values) == 1 else values)


def by_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reference in numpy: ``fn`` takes and gives arrays (one or several); for dtypes and ops that torch lacks."""
    import torch

    def ref(*tensors: Any) -> Any:
        with np.errstate(all="ignore"):
            out = fn(*(t.detach().numpy() for t in tensors))
        return tuple(torch.from_numpy(np.array(o)) for o in out) if isinstance(out, tuple) else \
            torch.from_numpy(np.array(out))
    return ref


EDGES = Input(data=[0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -2.5, 3.5])
