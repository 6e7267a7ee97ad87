"""Errors of the math functions in units of the last place, against values computed with more digits.

float16 is measured over every finite number, float32 and float64 over samples that spread over exponents as well as over
plain numbers. float32 is compared with numpy in float64, float64 with mpmath. One line a function and type: where the
error is largest, how large, and the mean. Run with ``DEV=CPU:LLVM`` and so on for another renderer.
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


@dataclass(frozen=True)
class Function:
    """One math function: how it is called here and in mpmath, and the arguments that matter."""

    name: str
    ours: Callable[..., Tensor]
    exact: str  # of mpmath
    low: float  # arguments between low and high
    high: float
    arity: int = 1


FUNCTIONS = (
    Function("exp2", lambda x: x.exp2(), "exp2", -1100, 1030),
    Function("exp", lambda x: x.exp(), "exp", -750, 710),
    Function("log2", lambda x: x.log2(), "log2", 0.0, np.inf),
    Function("log", lambda x: x.log(), "log", 0.0, np.inf),
    Function("log10", lambda x: x.log10(), "log10", 0.0, np.inf),
    Function("sin", lambda x: x.sin(), "sin", -np.inf, np.inf),
    Function("cos", lambda x: x.cos(), "cos", -np.inf, np.inf),
    Function("tan", lambda x: x.tan(), "tan", -1.5, 1.5),
    Function("tanh", lambda x: x.tanh(), "tanh", -np.inf, np.inf),
    Function("sinh", lambda x: x.sinh(), "sinh", -88, 88),
    Function("sigmoid", lambda x: x.sigmoid(), "sigmoid", -87, np.inf),
    Function("erf", lambda x: x.erf(), "erf", -np.inf, np.inf),
    Function("asin", lambda x: x.asin(), "asin", -1, 1),
    Function("acos", lambda x: x.acos(), "acos", -1, 1),
    Function("atan", lambda x: x.atan(), "atan", -np.inf, np.inf),
    Function("asinh", lambda x: x.asinh(), "asinh", -np.inf, np.inf),
    Function("acosh", lambda x: x.acosh(), "acosh", 1, np.inf),
    Function("atanh", lambda x: x.atanh(), "atanh", -1, 1),
    Function("rsqrt", lambda x: x.rsqrt(), "rsqrt", 0.0, np.inf),
    Function("pow", lambda x, y: x ** y, "pow", 0.0, np.inf, 2),
)


# *** exact values ***
def _mp_function(name: str) -> Callable[..., Any]:
    import mpmath
    special = {"exp2": lambda x: mpmath.mpf(2) ** x, "log2": lambda x: mpmath.log(x, 2), "rsqrt": lambda x: 1 / mpmath.sqrt(x),
               "pow": lambda x, y: x ** y, "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x))}
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


def ulp_errors(got: Array, high: Array, low: Array) -> Array:
    """|got - exact| in units of the last place of ``got``'s type at the exact value; 0 where the exact value overflows
    and ``got`` is that infinity."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(high)[1] - 1, np.frexp(float(info.smallest_normal))[1] - 1)
        unit = np.ldexp(1.0, exponent - info.nmant)
        error = np.abs((got.astype(np.float64) - high) - low) / unit
        overflow = np.abs(high) >= float(info.max) * (1 + 2.0 ** -(info.nmant + 2))
    return np.where(overflow & np.isinf(got) & (np.sign(got) == np.sign(high)), 0.0, error)


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
        x = np.concatenate([patterns, rng.uniform(low, high, count).astype(dtype), rng.uniform(-1, 2, count).astype(dtype)])
    return [x[np.isfinite(x) & (x >= f.low) & (x <= f.high)]]


def measure(f: Function, dtype: type, count: int, seed: int = 0) -> tuple[Array, list[Array], Array]:
    """(errors, arguments, results) of one function over a sample."""
    arguments = arguments_of(f, dtype, count, seed)
    got = f.ours(*[Tensor(a) for a in arguments]).numpy()
    high, low = exact(f, *arguments)
    inside = np.isfinite(high)
    return ulp_errors(got, high, low)[inside], [a[inside] for a in arguments], got[inside]


def report(names: Iterable[str], count: int) -> None:
    """Print the table."""
    print(f"{'function':10} {'type':8} {'numbers':>8} {'max ulp':>12} {'mean ulp':>9} {'99.9 %':>8}  worst argument -> result")
    for f in FUNCTIONS:
        if names and f.name not in names:
            continue
        for dtype in (np.float16, np.float32, np.float64):
            errors, arguments, got = measure(f, dtype, count)
            errors = np.where(np.isnan(errors), np.inf, errors)
            at = int(errors.argmax())
            where = ", ".join(repr(float(a[at])) for a in arguments)
            print(f"{f.name:10} {dtype.__name__:8} {errors.size:8} {errors[at]:12.2f} {errors.mean():9.3f} "
                  f"{np.quantile(errors, 0.999):8.2f}  {where} -> {float(got[at])!r}", flush=True)


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
