"""Errors of the math functions in units of the last place of the exact result.

float16 is measured over every finite number, float32 over more than a million that spread over exponents as well as
over plain numbers, with the neighbours of multiples of pi/2 and of 1; float64 over a sample of the same kind. Results
of float16 and float32 are compared with float64, whose own error is 2**-29 of their last place, and the worst ones once
more with mpmath; float64 is compared with mpmath of 200 bits. One line a function and type: the bound that
``docs/accuracy.md`` states, the largest error and where it is, the mean. Run with ``DEV=CPU:LLVM`` and so on for
another renderer; ``--every 1`` goes through all float32.
"""
from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost.tensor import Tensor

Array = np.ndarray[Any, Any]
TYPES: tuple[type, ...] = (np.float16, np.float32, np.float64)


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x.tolist()])


def _gelu(x: Array) -> Array:
    return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@dataclass(frozen=True)
class Function:
    """One math function: how it is called here, in float64 and in mpmath, its arguments, and what is promised."""

    name: str
    ours: Callable[..., Tensor]
    wide: Callable[..., Array]  # of float64 arrays
    low: float  # arguments between low and high
    high: float
    bounds: tuple[float, float, float]  # ulp of float16, float32, float64
    arity: int = 1


FUNCTIONS = (
    Function("exp2", lambda x: x.exp2(), np.exp2, -1100, 1030, (0.51, 2.0, 2.0)),
    Function("exp", lambda x: x.exp(), np.exp, -750, 710, (0.51, 2.0, 2.0)),
    Function("log2", lambda x: x.log2(), np.log2, 0.0, np.inf, (0.51, 2.0, 2.0)),
    Function("log", lambda x: x.log(), np.log, 0.0, np.inf, (0.51, 1.5, 1.5)),
    Function("log10", lambda x: x.log10(), np.log10, 0.0, np.inf, (0.51, 2.0, 2.0)),
    Function("expm1", lambda x: x.expm1(), np.expm1, -750, 710, (0.51, 2.0, 2.0)),
    Function("log1p", lambda x: x.log1p(), np.log1p, -0.9999999, np.inf, (0.51, 2.0, 2.0)),
    Function("sin", lambda x: x.sin(), np.sin, -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("cos", lambda x: x.cos(), np.cos, -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("tan", lambda x: x.tan(), np.tan, -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("asin", lambda x: x.asin(), np.arcsin, -1, 1, (0.51, 2.0, 2.0)),
    Function("acos", lambda x: x.acos(), np.arccos, -1, 1, (0.51, 2.0, 2.0)),
    Function("atan", lambda x: x.atan(), np.arctan, -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("sinh", lambda x: x.sinh(), np.sinh, -710, 710, (0.51, 2.0, 2.0)),
    Function("cosh", lambda x: x.cosh(), np.cosh, -710, 710, (0.51, 2.0, 2.0)),
    Function("tanh", lambda x: x.tanh(), np.tanh, -np.inf, np.inf, (0.51, 2.2, 2.5)),
    Function("asinh", lambda x: x.asinh(), np.arcsinh, -np.inf, np.inf, (0.51, 2.0, 2.0)),
    Function("acosh", lambda x: x.acosh(), np.arccosh, 1, np.inf, (0.51, 2.0, 2.0)),
    Function("atanh", lambda x: x.atanh(), np.arctanh, -1, 1, (0.51, 2.0, 2.0)),
    Function("sigmoid", lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x)), -745, np.inf, (0.51, 2.5, 2.5)),
    Function("silu", lambda x: x.silu(), lambda x: x / (1 + np.exp(-x)), -80, np.inf, (0.51, 3.0, 3.0)),
    Function("softplus", lambda x: x.softplus(), lambda x: np.logaddexp(0, x), -745, np.inf, (0.51, 3.0, 3.0)),
    Function("gelu", lambda x: x.gelu(), _gelu, -1, np.inf, (0.51, 4.0, 4.0)),
    Function("gelu_erf", lambda x: x.gelu("none"), lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))), -1, np.inf,
             (0.51, 4.0, 4.0)),
    Function("erf", lambda x: x.erf(), _erf, -np.inf, np.inf, (0.51, 2.0, 2.2)),
    Function("sqrt", lambda x: x.sqrt(), np.sqrt, 0.0, np.inf, (0.5, 0.5, 0.5)),
    Function("rsqrt", lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x), 0.0, np.inf, (0.51, 1.5, 1.5)),
    Function("pow", lambda x, y: x ** y, np.power, 0.0, np.inf, (0.51, 0.51, 2.0), 2),
)


# *** exact values ***
def _mp_function(name: str) -> Callable[..., Any]:
    import mpmath
    special = {"exp2": lambda x: mpmath.mpf(2) ** x, "log2": lambda x: mpmath.log(x, 2),
               "rsqrt": lambda x: 1 / mpmath.sqrt(x), "pow": lambda x, y: x ** y,
               "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)), "silu": lambda x: x / (1 + mpmath.exp(-x)),
               "softplus": lambda x: mpmath.log1p(mpmath.exp(x)) if x < 1000 else x, "gelu": _mp_gelu,
               "gelu_erf": lambda x: x / 2 * mpmath.erfc(-x / mpmath.sqrt(2))}
    return special.get(name) or getattr(mpmath, name)


def _mp_gelu(x: Any) -> Any:
    import mpmath
    if abs(x) > 1000:
        return x if x > 0 else mpmath.mpf(0)
    return x / (1 + mpmath.exp(-2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3)))


def exact(f: Function, *arguments: Array) -> tuple[Array, Array]:
    """The values as the float64 nearest to them and the rest."""
    import mpmath
    high, low = [], []
    with mpmath.workprec(200):
        fn = _mp_function(f.name)
        for row in zip(*[a.tolist() for a in arguments]):
            value = fn(*[mpmath.mpf(v) for v in row])
            top = float(value)
            high.append(top)
            low.append(float(value - top) if np.isfinite(top) else 0.0)
    return np.array(high), np.array(low)


def ulp_errors(got: Array, high: Array, low: Array) -> Array:
    """|got - exact| in units of the last place of ``got``'s type at the exact value, subnormal numbers included.

    0 where the exact value rounds to an infinity and ``got`` is that; infinite where only one is NaN.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.abs(high))[1] - 1, np.frexp(float(info.smallest_normal))[1] - 1)
        error = np.abs((got.astype(np.float64) - high) - low) / np.ldexp(1.0, exponent - info.nmant)
        overflow = np.abs(high) >= float(info.max) * (1 + 2.0 ** -(info.nmant + 2))
        right_infinity = np.isinf(got) & overflow & (np.sign(got) == np.sign(high))
    return np.where(right_infinity, 0.0, np.where(np.isnan(error), np.inf, error))


# *** arguments ***
def hard_numbers(dtype: type, count: int, rng: np.random.Generator) -> Array:
    """Neighbours of multiples of pi/2 and of 1, where results are small and reductions matter."""
    multiples = np.unique(np.concatenate([rng.integers(1, 1 << 16, count), np.exp2(rng.uniform(0, 60, count))]))
    near = np.concatenate([(multiples * (math.pi / 2)).astype(dtype), np.ones(8, dtype)])
    up, down = np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(0))
    return np.concatenate([near, up, down, np.nextafter(up, dtype(np.inf)), 1 + np.exp2(rng.uniform(-30, 0, count)),
                           1 - np.exp2(rng.uniform(-30, 0, count))]).astype(dtype)


def arguments_of(f: Function, dtype: type, count: int, seed: int = 0) -> list[Array]:
    """About ``count`` arguments inside the function's range: by bit pattern (every exponent alike), plain, hard."""
    rng = np.random.default_rng(seed)
    bits: type = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    if f.arity == 2:
        x = np.exp2(rng.uniform(-8, 8, count)).astype(dtype)
        return [x, (rng.uniform(-6, 6, count) if dtype is np.float16 else rng.uniform(-100, 100, count)).astype(dtype)]
    if dtype is np.float16:
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    else:
        patterns = rng.integers(0, np.iinfo(bits).max, count // 2, dtype=bits, endpoint=True).view(dtype)
        low, high = max(f.low, -110.0), min(f.high, 110.0)
        plain = [rng.uniform(low, high, count // 8), rng.uniform(max(low, -4), min(high, 4), count // 8)]
        hard = hard_numbers(dtype, count // 24, rng)
        x = np.concatenate([patterns, *[p.astype(dtype) for p in plain], hard])
    inside = np.isfinite(x) & (x >= f.low) & (x <= f.high)
    return [x[inside & (x != 0)] if f.low == 0.0 else x[inside]]  # 0 is a pole


def _errors(f: Function, arguments: list[Array], got: Array) -> Array:
    """Errors of results, NaN where the function has no finite value."""
    if got.dtype == np.float64:
        high, low = exact(f, *arguments)
        return np.where(np.isfinite(high), ulp_errors(got, high, low), np.nan)
    with np.errstate(all="ignore"):
        high = f.wide(*[a.astype(np.float64) for a in arguments])
    errors = np.where(np.isfinite(high), ulp_errors(got, high, np.zeros_like(high)), np.nan)
    worst = np.argsort(np.nan_to_num(errors, nan=-1.0))[-50:]
    worst = worst[np.isfinite(high[worst])]
    errors[worst] = ulp_errors(got[worst], *exact(f, *[a[worst] for a in arguments]))
    return errors


def measure(f: Function, dtype: type, count: int, seed: int = 0, every: int = 1) -> tuple[Array, list[Array], Array]:
    """(errors, arguments, results) of one function over a sample, or one of ``every`` arguments of it."""
    arguments = [a[::every] for a in arguments_of(f, dtype, count, seed)]
    got = f.ours(*[Tensor(a) for a in arguments]).numpy()
    errors = _errors(f, arguments, got)
    inside = ~np.isnan(errors)
    return errors[inside], [a[inside] for a in arguments], got[inside]


def sweep(f: Function, every: int = 1, block: int = 1 << 22) -> tuple[float, float, int]:
    """(largest error, where, how many) over all float32 of a function's range, or one of ``every``, by bit pattern."""
    worst, where, count = 0.0, math.nan, 0
    for start in range(0, 1 << 32, block * every):
        x = np.arange(start, min(start + block * every, 1 << 32), every, dtype=np.uint64).astype(np.uint32)
        x = x.view(np.float32)
        x = x[np.isfinite(x) & (x >= f.low) & (x <= f.high) & ((x != 0) | (f.low != 0.0))]
        if x.size == 0:
            continue
        errors = _errors(f, [x], f.ours(Tensor(x)).numpy())
        count += x.size
        if (most := float(np.nanmax(errors))) > worst:
            worst, where = most, float(x[np.nanargmax(errors)])
    return worst, where, count


def report(names: Iterable[str], count: int, wide_count: int) -> None:
    """Print the table."""
    print(f"{'function':8} {'type':8} {'numbers':>8} {'bound':>6} {'max ulp':>8} {'99.9 %':>7} {'mean':>6}  "
          "worst argument -> result")
    for f in FUNCTIONS:
        if names and f.name not in names:
            continue
        for dtype, bound in zip(TYPES, f.bounds):
            errors, arguments, got = measure(f, dtype, wide_count if dtype is np.float64 else count)
            at = int(errors.argmax())
            where = ", ".join(repr(float(a[at])) for a in arguments)
            print(f"{f.name:8} {dtype.__name__:8} {errors.size:8} {bound:6.2f} {errors[at]:8.3f} "
                  f"{np.quantile(errors, 0.999):7.2f} {errors.mean():6.3f}  {where} -> {float(got[at])!r}", flush=True)


@functools.cache
def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("names", nargs="*", help="functions, all by default")
    p.add_argument("--count", type=int, default=2_000_000, help="arguments of float32, and pairs of float16 for pow")
    p.add_argument("--wide", type=int, default=20_000, help="arguments of float64")
    p.add_argument("--every", type=int, default=0, help="sweep float32 by bit pattern, one of so many")
    return p


if __name__ == "__main__":
    options = parser().parse_args(sys.argv[1:])
    if options.every:
        for f in FUNCTIONS:
            if f.arity == 1 and (not options.names or f.name in options.names):
                worst, where, count = sweep(f, options.every)
                print(f"{f.name:8} {count:11} float32: {worst:.3f} ulp at {where!r}, {f.bounds[1]} allowed", flush=True)
    else:
        report(options.names, options.count, options.wide)
