"""Small functions that every floor uses: integers, sequences, text and time.

Nothing here knows a node, a device or a file format. Functions are pure except the counters and the clock.
"""
from __future__ import annotations

import contextlib
import functools
import math
import operator
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, ClassVar, TypeVar

from tinyhost.env import NO_COLOR

T = TypeVar("T")


# *** integers ***
def prod(xs: Iterable[Any]) -> Any:
    """Product of ``xs``, 1 when empty; works on ints and symbolic integers alike."""
    return functools.reduce(operator.mul, xs, 1)


def ceildiv(num: Any, amt: Any) -> Any:
    """Smallest integer not below ``num / amt``."""
    return -(num // -amt)


def round_up(num: Any, amt: Any) -> Any:
    """Smallest multiple of ``amt`` not below ``num``."""
    return ceildiv(num, amt) * amt


def cdiv(x: int, y: int) -> int:
    """C division: truncates toward zero; 0 when ``y`` is 0."""
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def cmod(x: int, y: int) -> int:
    """C remainder: sign of the dividend; 0 when ``y`` is 0."""
    return 0 if y == 0 else x - cdiv(x, y) * y


def getbits(value: int, start: int, end: int) -> int:
    """Bits ``start`` to ``end`` of ``value``, both included."""
    return (value >> start) & ((1 << (end - start + 1)) - 1)


# *** sequences ***
def dedup(xs: Iterable[T]) -> list[T]:
    """Distinct items in order of first appearance."""
    return list(dict.fromkeys(xs))


def all_same(items: Sequence[Any]) -> bool:
    """Whether all items are equal to the first (true when empty)."""
    return all(x == items[0] for x in items)


def flatten(xs: Iterable[Iterable[T]]) -> list[T]:
    """One level of nesting removed."""
    return [y for x in xs for y in x]


def fully_flatten(x: Any) -> list[Any]:
    """All levels of nesting of lists, tuples and other sequences removed; a scalar becomes a list of one."""
    out, stack = [], [x]
    while stack:
        item = stack.pop()
        if hasattr(item, "__len__") and hasattr(item, "__getitem__") and not isinstance(item, (str, bytes)):
            if hasattr(item, "shape") and item.shape == ():
                out.append(item[()])
            else:
                stack.extend(reversed([item[i] for i in range(len(item))]))
        else:
            out.append(item)
    return out


def get_shape(x: Any) -> tuple[int, ...]:
    """Shape of a nested sequence.

    Raises:
        ValueError: the sub-sequences of one level differ in shape.
    """
    if not hasattr(x, "__len__") or not hasattr(x, "__getitem__") or isinstance(x, (str, bytes)):
        return ()
    if hasattr(x, "shape"):
        return tuple(x.shape)
    shapes = [get_shape(item) for item in x]
    if not all_same(shapes):
        raise ValueError(f"inhomogeneous shape from {x}")
    return (len(shapes),) + (shapes[0] if shapes else ())


def argfix(*x: Any) -> tuple[Any, ...]:
    """``f(1, 2)`` and ``f((1, 2))`` both give ``(1, 2)``.

    Raises:
        ValueError: a sequence is followed by further arguments.
    """
    if x and isinstance(x[0], (tuple, list)):
        if len(x) != 1:
            raise ValueError(f"bad arg {x}: give one sequence or separate values, not both")
        return tuple(x[0])
    return x


def unwrap(x: T | None) -> T:
    """``x`` where the caller knows it is not None."""
    assert x is not None, "value expected, got None"
    return x


def get_single_element(x: Iterable[T]) -> T:
    """The only item of ``x``."""
    items = list(x)
    assert len(items) == 1, f"list must only have 1 element, {items}"
    return items[0]


def merge_dicts(ds: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
    """Union of dictionaries; a key with two different values is an error."""
    out: dict[Any, Any] = {}
    for d in ds:
        for k, v in d.items():
            if k in out and out[k] != v:
                raise ValueError(f"cannot merge, {k} is {out[k]} and {v}")
            out[k] = v
    return out


# *** text ***
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ANSI = re.compile(r"\x1b\[(K|.*?m)")


def colored(st: str, color: str | None, background: bool = False) -> str:
    """``st`` in an ANSI colour; an upper-case name is the bright shade. None and NO_COLOR leave the text alone."""
    return st if color is None or NO_COLOR.value else painted(st, color, background)


def painted(st: str, color: str, background: bool = False) -> str:
    """``st`` in an ANSI colour whatever NO_COLOR says: for text that is kept, and printed through ``printable``."""
    code = 10 * background + 60 * (color.upper() == color) + 30 + _COLORS.index(color.lower())
    return f"\u001b[{code}m{st}\u001b[0m"


def ansistrip(s: str) -> str:
    """``s`` without colour codes."""
    return _ANSI.sub("", s)


def printable(s: str) -> str:
    """``s`` as it is to be printed: without colour codes if NO_COLOR is set."""
    return ansistrip(s) if NO_COLOR.value else s


def ansilen(s: str) -> int:
    """Visible length of ``s``."""
    return len(ansistrip(s))


def strip_parens(s: str) -> str:
    """``s`` without one outer pair of parentheses, if that pair encloses all of it."""
    if not (s.startswith("(") and s.endswith(")")):
        return s
    inner = s[1:-1]
    depth = 0
    for c in inner:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return s
    return inner


def to_function_name(s: str) -> str:
    """A C identifier from ``s``: colour codes dropped, other characters as two upper-case hex digits."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"{ord(c):02X}" for c in ansistrip(s))


def time_to_str(t: float, w: int = 8) -> str:
    """Seconds ``t`` with a fitting unit, right-aligned to ``w`` characters before the unit."""
    scale, unit = next(((d, pr) for d, pr in ((1, "s "), (1e3, "ms")) if t * d > 10), (1e6, "us"))
    return f"{t * scale:{w}.2f}{unit}"


def size_to_str(n: float) -> str:
    """Bytes with a fitting unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if n < 1000:
            return f"{n:.2f} {unit}" if unit != "B" else f"{int(n)} B"
        n /= 1000
    return f"{n:.2f} TB"


# *** counters and time ***
class GlobalCounters:
    """Running totals of this process: launches, FLOPs, bytes moved, seconds, bytes allocated."""

    global_ops: ClassVar[int] = 0
    global_mem: ClassVar[int] = 0
    time_sum_s: ClassVar[float] = 0.0
    kernel_count: ClassVar[int] = 0
    mem_used: ClassVar[int] = 0
    mem_used_per_device: ClassVar[dict[str, int]] = {}

    @staticmethod
    def reset() -> None:
        """Set launches, FLOPs, bytes moved and seconds to zero; allocations are still there and stay counted."""
        GlobalCounters.global_ops, GlobalCounters.global_mem = 0, 0
        GlobalCounters.time_sum_s, GlobalCounters.kernel_count = 0.0, 0


class Timing(contextlib.ContextDecorator):
    """Prints how long a block took."""

    def __init__(self, prefix: str = "", on_exit: Callable[[float], str] | None = None, enabled: bool = True) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self) -> "Timing":
        self.st = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms" + (self.on_exit(self.et) if self.on_exit else ""))


class tqdm(Iterator[T]):
    """A progress bar on stderr: ``for x in tqdm(xs)``, or ``bar = tqdm(total=n)`` with ``bar.update()``."""

    def __init__(self, iterable: Iterable[T] | None = None, desc: str = "", total: int | None = None,
                 disable: bool = False, unit: str = "it", rate: int = 20) -> None:
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        self.iterator = iter(iterable) if iterable is not None else None
        self.desc, self.total, self.disable, self.unit = f"{desc}: " if desc else "", total, disable, unit
        self.n, self.start, self.shown, self.interval = 0, time.perf_counter(), 0.0, 1 / rate
        self.update(0)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self.iterator is None:
            raise TypeError("this progress bar has no iterable; call update()")
        try:
            item = next(self.iterator)
        except StopIteration:
            self.close()
            raise
        self.update(1)
        return item

    def set_description(self, desc: str) -> None:
        """Replace the text in front of the bar."""
        self.desc = f"{desc}: " if desc else ""

    def update(self, n: int = 1, close: bool = False) -> None:
        """Advance by ``n`` and redraw when due."""
        self.n += n
        now = time.perf_counter()
        if self.disable or (not close and now - self.shown < self.interval):
            return
        self.shown = now
        elapsed = max(now - self.start, 1e-9)
        line = f"\r{self.desc}"
        if self.total:
            done = min(self.n / self.total, 1.0)
            left = elapsed / done - elapsed if done else math.nan
            bar = "#" * int(30 * done)
            eta = "?" if math.isnan(left) else f"{left:.0f}s"
            line += f"{100 * done:3.0f}%|{bar:<30}| {self.n}/{self.total} [{elapsed:.0f}s<{eta}, "
        else:
            line += f"{self.n}{self.unit} [{elapsed:.0f}s, "
        print(line + f"{self.n / elapsed:.2f}{self.unit}/s]", end="\n" if close else "", flush=True, file=sys.stderr)

    def close(self) -> None:
        """Draw the last state and end the line."""
        self.update(0, close=True)


class trange(tqdm[int]):
    """``tqdm(range(n))``."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(iterable=range(n), total=n, **kwargs)
