"""Every context variable of the core, in one table.

A row is a `ContextVar`: its value is read from the environment once, where the row is defined, checked against the
type of the default, and from then on belongs to `contextvars`: `Context(NAME=...)` changes it for one block, one
thread, one task. `codegen=True` marks the variables that change generated code; `codegen_values()` is their part of
a cache key. os.environ is read here and never written. A backend defines its own variables with the same class.
"""
from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from tinyhost.errors import UnknownVariable, VariableError
from tinyhost.target import Target, format_targets, parse_targets

T = TypeVar("T")

VARIABLES: dict[str, ContextVar[Any]] = {}  # name -> variable, in the order of definition
_CODEGEN: list[ContextVar[Any]] = []  # those that change generated code: asked twice in each realize


class ContextVar(Generic[T]):
    """A named setting: `default` unless the environment says otherwise, changed for a block by `Context`.

    The type of `default` (int, float or str) is the type of the variable. `choices` and `minimum` narrow it.
    """

    __slots__ = ("name", "default", "initial", "doc", "codegen", "choices", "minimum", "_var", "_watcher")

    def __init__(self, name: str, default: T, doc: str = "", *, codegen: bool = False,
                 choices: tuple[T, ...] = (), minimum: int | None = None) -> None:
        if name in VARIABLES:
            raise ValueError(f"context variable {name} is defined twice; import it from where it is defined first")
        self.name, self.default, self.doc, self.codegen = name, default, doc, codegen
        self.choices, self.minimum = choices, minimum
        text = os.environ.get(name)
        self.initial: T = default if text is None else self.check(self.parse(text), text)
        self._var: contextvars.ContextVar[T] = contextvars.ContextVar(name, default=self.initial)
        self._watcher: Callable[[T], None] | None = None
        VARIABLES[name] = self
        if codegen:
            _CODEGEN.append(self)

    @property
    def value(self) -> T:
        """The value in the running context."""
        return self._var.get()

    @value.setter
    def value(self, new: T) -> None:
        self._set(self.coerce(new))

    def _set(self, new: T) -> contextvars.Token[T]:
        if self._watcher is not None:
            self._watcher(new)
        return self._var.set(new)

    def watch(self, watcher: Callable[[T], None]) -> None:
        """Call ``watcher`` with the present value, and from then on with each value that is set in any context."""
        self._watcher = watcher
        watcher(self.value)

    @property
    def key(self) -> str:
        """The name the environment and `Context` use."""
        return self.name

    @property
    def type_name(self) -> str:
        """What a value is, for messages and listings."""
        return type(self.default).__name__

    def parse(self, text: str) -> T:
        """Read the environment's text; a malformed one is a VariableError."""
        value: T = parse_as(self.name, text, self.default)
        return value

    def coerce(self, new: Any) -> T:
        """Check a value that a program sets; text is read as the environment's would be."""
        if isinstance(new, ContextVar):
            new = new.value
        if isinstance(new, str) and not isinstance(self.default, str):
            return self.check(self.parse(new), new)
        kind = type(self.default)
        if isinstance(new, bool) and kind is int:
            new = int(new)
        if isinstance(new, int) and kind is float:
            new = float(new)
        if type(new) is not kind:
            raise self.error(new)
        return self.check(new, new)

    def check(self, new: T, given: object) -> T:
        """Check `choices` and `minimum`."""
        low = self.minimum is not None and isinstance(new, (int, float)) and new < self.minimum
        if low or (self.choices and new not in self.choices):
            raise self.error(given)
        return new

    def plain(self) -> Any:
        """The value as data that JSON can hold and `coerce` takes back."""
        return self._var.get()

    def error(self, given: object) -> VariableError:
        """The exception for a value the variable cannot have."""
        return VariableError(f"{self.name}={given!s}: expected {self.expected()} ({self.doc})")

    def expected(self) -> str:
        """The values it can have, in words."""
        if self.choices:
            return "one of " + ", ".join(repr(c) if c == "" else str(c) for c in self.choices)
        words = _EXPECTED[type(self.default)]
        return words if self.minimum is None else f"{words} of at least {self.minimum}"

    @property
    def _plain(self) -> Any:
        # comparisons are those of the value, whatever its type allows
        return self._var.get()

    def __bool__(self) -> bool:
        return bool(self._var.get())

    def __int__(self) -> int:
        return int(self._plain)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return bool(self._var.get() == (other._var.get() if isinstance(other, ContextVar) else other))

    def __lt__(self, other: Any) -> bool:
        return bool(self._plain < other)

    def __le__(self, other: Any) -> bool:
        return bool(self._plain <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self._plain > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self._plain >= other)

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return str(self._var.get())

    def __repr__(self) -> str:
        return f"ContextVar({self.name}={self._var.get()!r})"


class Context(ContextDecorator):
    """Set variables for a block or a function: ``with Context(DEBUG=2, BEAM=0): ...``.

    Contexts nest, and other threads see nothing of them.
    """

    def __init__(self, **values: Any) -> None:
        self._new = [(var := find_variable(name), var.coerce(value)) for name, value in values.items()]
        self._saved: list[list[contextvars.Token[Any]]] = []

    def _recreate_cm(self) -> Context:
        # each call of a decorated function has its own, so that threads and recursion do not share saved tokens
        fresh = Context()
        fresh._new = self._new
        return fresh

    def __enter__(self) -> Context:
        self._saved.append([var._set(value) for var, value in self._new])
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        for (var, _), token in reversed(list(zip(self._new, self._saved.pop(), strict=True))):
            var._var.reset(token)


_NO_TARGET = Target()


class DevVar(ContextVar[list[Target]]):
    """The variable DEV: a list of targets, set from text, one Target or a list; fields of the first one are attributes.

    `DEV.device` is the first target's device, and so on; all are "" when DEV is not set.
    """

    __slots__ = ()

    def parse(self, text: str) -> list[Target]:
        return parse_targets(text)

    def coerce(self, new: Any) -> list[Target]:
        if isinstance(new, str):
            return parse_targets(new)
        if isinstance(new, Target):
            return [new]
        if isinstance(new, ContextVar):
            return self.coerce(new.value)
        if isinstance(new, Iterable):
            return [t for one in new for t in self.coerce(one)]
        raise self.error(new)

    def plain(self) -> str:
        return format_targets(self.value)

    def expected(self) -> str:
        return "a DEV string, a Target or a list of them"

    @property
    def type_name(self) -> str:
        return "targets"

    def target(self, device: str, **defaults: str | bool) -> Target:
        """The first entry for `device` or for no device, else a bare one; `device` set, `defaults` filled in."""
        device = device.upper()
        found = next((t for t in self.value if t.device in ("", device)), Target())
        return replace(found, device=device).replacedefault(**defaults)

    @property
    def _first(self) -> Target:
        targets = self.value
        return targets[0] if targets else _NO_TARGET

    @property
    def device(self) -> str:
        """The first target's device."""
        return self._first.device

    @property
    def renderer(self) -> str:
        """The first target's renderer."""
        return self._first.renderer

    @property
    def arch(self) -> str:
        """The first target's arch."""
        return self._first.arch

    @property
    def interface(self) -> str:
        """The first target's interface."""
        return self._first.interface

    @property
    def indices(self) -> str:
        """The first target's device numbers, as written."""
        return self._first.indices

    @property
    def provider(self) -> str:
        """The first target's distribution."""
        return self._first.provider

    def __str__(self) -> str:
        return format_targets(self.value)

    def __repr__(self) -> str:
        return f"ContextVar(DEV={str(self)!r})"


def find_variable(name: str) -> ContextVar[Any]:
    """The variable of that name; an unknown one is an error with the nearest names."""
    if (var := VARIABLES.get(name)) is not None:
        return var
    import difflib
    near = difflib.get_close_matches(name.upper(), VARIABLES, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else "tinyhost.env lists all of them"
    raise UnknownVariable(f"no context variable is named {name!r}; {hint}")


def parse_as(name: str, text: str, default: Any) -> Any:
    """Read environment text as the type of `default`."""
    if isinstance(default, str):
        return text
    try:
        return int(text, 0) if isinstance(default, int) else float(text)
    except ValueError:
        raise VariableError(f"{name}={text}: expected {_EXPECTED[type(default)]}") from None


@overload
def getenv(name: str) -> int: ...
@overload
def getenv(name: str, default: T) -> T: ...
def getenv(name: str, default: Any = 0) -> Any:
    """The environment variable `name` as the type of `default` (int, float or str), `default` when it is not set."""
    text = os.environ.get(name)
    return default if text is None else parse_as(name, text, default)


def codegen_values() -> tuple[tuple[str, Any], ...]:
    """Name and value of each variable that changes generated code and is not at its default; a part of cache keys."""
    return tuple(sorted([(v.name, value) for v in _CODEGEN if (value := v._var.get()) != v.default]))


def snapshot() -> dict[str, Any]:
    """Name and value, as plain data, of each variable that a program has changed: what a child process is given."""
    return {v.name: v.plain() for v in VARIABLES.values() if v._var.get() != v.initial}


def restore(values: dict[str, Any]) -> None:
    """Take over the `snapshot` of a parent process; variables this process has not defined are left out."""
    for name, value in values.items():
        if (var := VARIABLES.get(name)) is not None:
            var.value = value


_EXPECTED: dict[type, str] = {int: "an integer", bool: "an integer", float: "a number", str: "text"}


def _cache_home() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "tinyhost")


# What runs, and what it prints
DEV = DevVar("DEV", [], "devices in order of preference, as in docs of tinyhost.target")
DEBUG = ContextVar("DEBUG", 0,
                   "0 silent, 1 devices, schedules, 2 a line per kernel, 3 opts, 4 source, 5 graphs, 7 code, 8 cache")
NO_COLOR = ContextVar("NO_COLOR", "", "any text: no ANSI colors")
TRACK_MATCH_STATS = ContextVar("TRACK_MATCH_STATS", 0, "1 counts and times rewrite rules, 2 keeps each rewrite")
TRACEMETA = ContextVar("TRACEMETA", 1, "0 does not note the lines that build tensors, which errors name",
                       choices=(0, 1))
PROFILE = ContextVar("PROFILE", 0, "1 records host and device events and writes a trace at exit, 2 prints sums too",
                     choices=(0, 1, 2))
PROFILE_PATH = ContextVar("PROFILE_PATH", "", "file of the trace, one in the folder of temporary files when empty")
PROFILE_LIMIT = ContextVar("PROFILE_LIMIT", 250_000, "records a profile keeps; older ones are dropped", minimum=1)
PERF = ContextVar("PERF", 0, "1 tells perf and GDB the names of kernels", choices=(0, 1))

# Checks
SPEC = ContextVar("SPEC", 0, "0 off, 1 checks graphs between stages, 2 checks each node", choices=(0, 1, 2))
CHECK_OOB = ContextVar("CHECK_OOB", 0, "1 proves each memory access in bounds, or raises")
REWRITE_STACK_LIMIT = ContextVar("REWRITE_STACK_LIMIT", 250_000,
                                 "rewrite steps after which a rewrite counts as endless", minimum=1)

# Numbers
DEFAULT_FLOAT = ContextVar("DEFAULT_FLOAT", "", "dtype of python floats, float32 when empty")
DEFAULT_INT = ContextVar("DEFAULT_INT", "", "dtype of python integers, int32 when empty")
SUM_DTYPE = ContextVar("SUM_DTYPE", "", "smallest dtype float sums accumulate in, float32 when empty")
TRAINING = ContextVar("TRAINING", 0, "1 makes layers behave as in training", choices=(0, 1))
FUSE_OPTIM = ContextVar("FUSE_OPTIM", 0, "1 makes optimizers update all parameters as one vector", choices=(0, 1))
EMULATED_DTYPES = ContextVar("EMULATED_DTYPES", "",
                             "comma list of dtypes a renderer must not use natively", codegen=True)
TRANSCENDENTAL = ContextVar("TRANSCENDENTAL", 1, "2 computes exp2, log2 and sin by our polynomials everywhere",
                            codegen=True, choices=(0, 1, 2))

# Kernels
NOOPT = ContextVar("NOOPT", 0, "1 applies no kernel optimisation", codegen=True)
BEAM = ContextVar("BEAM", 0,
                  "width of the search over kernel optimisations, 0 for the hand rules", codegen=True, minimum=0)
BEAM_SECONDS = ContextVar("BEAM_SECONDS", 10.0, "seconds a search over one kernel's optimisations may take", minimum=0)
SPLIT_REDUCEOP = ContextVar("SPLIT_REDUCEOP", 1, "0 never splits a large reduction into two kernels", codegen=True)
RING = ContextVar("RING", 1, "0 never combines values in a ring of devices, 1 large ones, 2 always", codegen=True,
                  choices=(0, 1, 2))
ALL2ALL = ContextVar("ALL2ALL", 0, "1 combines large values a part on each device, 2 all values", codegen=True,
                     choices=(0, 1, 2))
RING_ALLREDUCE_THRESHOLD = ContextVar("RING_ALLREDUCE_THRESHOLD", 256_000,
                                      "elements above which a value is large to RING and ALL2ALL", codegen=True,
                                      minimum=0)
ALLREDUCE_CAST = ContextVar("ALLREDUCE_CAST", 0,
                            "1 combines sums of half and bfloat16 values over devices in that dtype", codegen=True,
                            choices=(0, 1))
MAX_KERNEL_BUFFERS = ContextVar("MAX_KERNEL_BUFFERS", 0,
                                "most buffers of one kernel, 0 for the device's limit", codegen=True, minimum=0)
MAX_KERNEL_OPS = ContextVar("MAX_KERNEL_OPS", 0,
                            "most ops of one kernel, 0 for the device's limit", codegen=True, minimum=0)
WINO = ContextVar("WINO", 0, "1 computes convolutions of extent 3 and stride 1 by Winograd's transforms",
                  choices=(0, 1))
NUM_CPU_THREADS = ContextVar("NUM_CPU_THREADS", 0,
                             "threads of one CPU kernel, 0 for all cores this process may use", codegen=True, minimum=0)

# Engine and memory
JIT = ContextVar("JIT", 1, "0 never captures, 1 captures and batches, 2 captures without graphs", choices=(0, 1, 2))
PARALLEL = ContextVar("PARALLEL", -1,
                      "helper processes that compile a schedule's kernels, 0 for none, -1 for one a spare processor",
                      minimum=-1)
LRU = ContextVar("LRU", 1, "0 gives freed buffers back at once")
NO_MEMORY_PLANNER = ContextVar("NO_MEMORY_PLANNER", 0, "1 gives each temporary buffer its own memory")
MAX_BUFFER_SIZE = ContextVar("MAX_BUFFER_SIZE", 0, "bytes of the largest buffer, 0 for the device's limit", minimum=0)
NULL_ALLOW_COPYOUT = ContextVar("NULL_ALLOW_COPYOUT", 0, "1 lets NULL buffers be read; what is read is not defined")
HCQ2 = ContextVar("HCQ2", 0, "1 submits captured graphs by compiled code, 0 from Python", choices=(0, 1))
HCQDEV_WAIT_TIMEOUT_MS = ContextVar("HCQDEV_WAIT_TIMEOUT_MS", 30_000,
                                    "milliseconds without progress after which a device counts as hung", minimum=1)
ALLOW_DEVICE_USAGE = ContextVar("ALLOW_DEVICE_USAGE", 1, "0 makes opening a device an error")

# Caches
SCACHE = ContextVar("SCACHE", 1, "0 schedules again each time")
CCACHE = ContextVar("CCACHE", 1, "0 compiles again each time")
CACHELEVEL = ContextVar("CACHELEVEL", 2,
                        "0 no disk cache, 1 programs, 2 schedules and search results too", choices=(0, 1, 2))
CACHEDIR = ContextVar("CACHEDIR", _cache_home(), "folder of the disk cache, XDG_CACHE_HOME/tinyhost by default")

# Plugins and compilers
TINYHOST_PLUGINS = ContextVar("TINYHOST_PLUGINS", "*", "'' no plugin, 'cpu,amd' only these, '-amd' all but these")
TINYHOST_REQUIRE = ContextVar("TINYHOST_REQUIRE", "",
                              "comma list of requirements that must be installed: 'tinyhost-amd>=0.3'")
TINYHOST_STRICT = ContextVar("TINYHOST_STRICT", 0, "1 makes a fall-back and a broken plugin an error", choices=(0, 1))
TINYHOST_OPEN_TIMEOUT = ContextVar("TINYHOST_OPEN_TIMEOUT", 60.0,
                                   "seconds a plugin may take to load or open, 0 for no limit", minimum=0)
TINYHOST_PROBE_TIMEOUT = ContextVar("TINYHOST_PROBE_TIMEOUT", 10.0,
                                    "seconds a device probe may take in its own process", minimum=0)
CC = ContextVar("CC", "", "C compiler the C renderers call", codegen=True)
