"""Errors of the math functions in units of the last place, against mpmath with 200 bits.

float16 is measured over every finite number, float32 and float64 over samples that spread over exponents as well as
over plain numbers. One line a function and type: the bound that ``docs/accuracy.md`` states, the largest error and
where it is, the mean. Run with ``DEV=CPU:LLVM`` and so on for another renderer.
"""
from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost.tensor import Tensor

Array = np.ndarray[Any, Any]
TYPES: tuple[type, ...] = (np.float16, np.float32, np.float64)


@dataclass(frozen=True)
class Function:
    """One math function: how it is called here and in mpmath, the arguments that matter, and what is promised."""

    name: str
    ours: Callable[..., Tensor]
    exact: str  # of mpmath
    low: float  # arguments between low and high
    high: float
    bounds: tuple[float, float, float]  # ulp of float16, float32, float64
    arity: int = 1
    size: Callable[[Array], Array] = np.abs  # the magnitude whose last place counts, from the exact values


FUNCTIONS = (
    Function("exp2", lambda x: x.exp2(), "exp2", -1100, 1030, (0.51, 1.5, 1.5)),
    Function("exp", lambda x: x.exp(), "exp", -750, 710, (0.51, 1.5, 1.5)),
    Function("log2", lambda x: x.log2(), "log2", 0.0, np.inf, (0.51, 2.0, 3.0)),
    Function("log", lambda x: x.log(), "log", 0.0, np.inf, (0.51, 2.5, 3.5)),
    Function("log10", lambda x: x.log10(), "log10", 0.0, np.inf, (0.51, 3.0, 4.0)),
    Function("sin", lambda x: x.sin(), "sin", -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("cos", lambda x: x.cos(), "cos", -np.inf, np.inf, (0.51, 3.5, 3.5), size=lambda v: np.ones_like(v)),
    Function("tan", lambda x: x.tan(), "tan", -1.57, 1.57, (1.0, 2.5, 2.5), size=lambda v: np.abs(v) + v * v),
    Function("asin", lambda x: x.asin(), "asin", -1, 1, (0.51, 4.0, 4.0)),
    Function("acos", lambda x: x.acos(), "acos", -1, 1, (0.51, 2.5, 2.5)),
    Function("atan", lambda x: x.atan(), "atan", -np.inf, np.inf, (0.51, 3.5, 3.5)),
    Function("sinh", lambda x: x.sinh(), "sinh", -710, 710, (0.51, 4.5, 4.5)),
    Function("cosh", lambda x: x.cosh(), "cosh", -710, 710, (0.51, 3.5, 3.5)),
    Function("tanh", lambda x: x.tanh(), "tanh", -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("asinh", lambda x: x.asinh(), "asinh", -np.inf, np.inf, (0.51, 4.0, 4.0)),
    Function("acosh", lambda x: x.acosh(), "acosh", 1, np.inf, (0.51, 3.5, 3.5)),
    Function("atanh", lambda x: x.atanh(), "atanh", -1, 1, (0.51, 3.0, 3.0)),
    Function("sigmoid", lambda x: x.sigmoid(), "sigmoid", -87, np.inf, (0.51, 3.0, 3.0)),
    Function("erf", lambda x: x.erf(), "erf", -np.inf, np.inf, (0.51, 3.0, 3.0)),
    Function("sqrt", lambda x: x.sqrt(), "sqrt", 0.0, np.inf, (0.5, 0.5, 0.5)),
    Function("rsqrt", lambda x: x.rsqrt(), "rsqrt", 0.0, np.inf, (2.0, 2.0, 2.0)),
    Function("pow", lambda x, y: x ** y, "pow", 0.0, np.inf, (0.51, 0.51, 100.0), 2),
)


# *** exact values ***
def _mp_function(name: str) -> Callable[..., Any]:
    import mpmath
    special = {"exp2": lambda x: mpmath.mpf(2) ** x, "log2": lambda x: mpmath.log(x, 2),
               "rsqrt": lambda x: 1 / mpmath.sqrt(x), "pow": lambda x, y: x ** y,
               "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x))}
    return special.get(name) or getattr(mpmath, name)  # type: ignore[no-any-return]


def exact(f: Function, *arguments: Array) -> tuple[Array, Array]:
    """The values as the float64 nearest to them and the rest."""
    import mpmath
    high, low = [], []
    with mpmath.workprec(200):
        fn = _mp_function(f.exact)
        for row in zip(*[a.tolist() for a in arguments]):
            value = fn(*[mpmath.mpf(v) for v in row])
            top = float(value)
            high.append(top)
            low.append(float(value - top) if np.isfinite(top) else 0.0)
    return np.array(high), np.array(low)


def ulp_errors(got: Array, high: Array, low: Array, size: Callable[[Array], Array] = np.abs) -> Array:
    """|got - exact| in units of the last place of ``got``'s type at the ``size`` of the exact value.

    0 where the exact value rounds to an infinity and ``got`` is that; infinite where only one is NaN.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(size(high))[1] - 1, np.frexp(float(info.smallest_normal))[1] - 1)
        error = np.abs((got.astype(np.float64) - high) - low) / np.ldexp(1.0, exponent - info.nmant)
        overflow = np.abs(high) >= float(info.max) * (1 + 2.0 ** -(info.nmant + 2))
        right_infinity = np.isinf(got) & overflow & (np.sign(got) == np.sign(high))
    return np.where(right_infinity, 0.0, np.where(np.isnan(error), np.inf, error))


# *** arguments ***
def arguments_of(f: Function, dtype: type, count: int, seed: int = 0) -> list[Array]:
    """Arguments inside the range of the function: half by bit pattern (every exponent alike), half plain numbers."""
    rng = np.random.default_rng(seed)
    bits: type = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    if f.arity == 2:
        x = np.exp2(rng.uniform(-8, 8, count)).astype(dtype)
        return [x, (rng.uniform(-6, 6, count) if dtype is np.float16 else rng.uniform(-14, 14, count)).astype(dtype)]
    if dtype is np.float16:
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    else:
        patterns = rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)
        low, high = max(f.low, -30.0), min(f.high, 30.0)
        plain = [rng.uniform(low, high, count), rng.uniform(-1, 2, count)]
        x = np.concatenate([patterns, *[p.astype(dtype) for p in plain]])
    inside = np.isfinite(x) & (x >= f.low) & (x <= f.high)
    return [x[inside & (x != 0)] if f.low == 0.0 else x[inside]]  # 0 is a pole


def measure(f: Function, dtype: type, count: int, seed: int = 0, every: int = 1) -> tuple[Array, list[Array], Array]:
    """(errors, arguments, results) of one function over a sample, or one of ``every`` arguments of it."""
    arguments = [a[::every] for a in arguments_of(f, dtype, count, seed)]
    got = f.ours(*[Tensor(a) for a in arguments]).numpy()
    high, low = exact(f, *arguments)
    inside = np.isfinite(high)
    return ulp_errors(got, high, low, f.size)[inside], [a[inside] for a in arguments], got[inside]


def report(names: Iterable[str], count: int) -> None:
    """Print the table."""
    print(f"{'function':8} {'type':8} {'numbers':>8} {'bound':>6} {'max ulp':>8} {'99.9 %':>7} {'mean':>6}  "
          "worst argument -> result")
    for f in FUNCTIONS:
        if names and f.name not in names:
            continue
        for dtype, bound in zip(TYPES, f.bounds):
            errors, arguments, got = measure(f, dtype, count)
            at = int(errors.argmax())
            where = ", ".join(repr(float(a[at])) for a in arguments)
            print(f"{f.name:8} {dtype.__name__:8} {errors.size:8} {bound:6.2f} {errors[at]:8.2f} "
                  f"{np.quantile(errors, 0.999):7.2f} {errors.mean():6.3f}  {where} -> {float(got[at])!r}", flush=True)


@functools.cache
def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("names", nargs="*", help="functions, all by default")
    p.add_argument("--count", type=int, default=4000, help="random arguments of each kind")
    return p


if __name__ == "__main__":
    options = parser().parse_args(sys.argv[1:])
    report(options.names, options.count)
