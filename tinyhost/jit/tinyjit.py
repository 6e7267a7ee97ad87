"""TinyJit: run a function once, capture what it executes the second time, replay it from then on.

The first call runs as written (so state gets created); the second records every kernel launch with its buffers; later
calls exchange the input buffers and launch. What the function computes must follow from tensors: shapes, dtypes,
devices and Python values of the arguments must stay what they were, and so must TRAINING; a difference is a JitError,
or with ``captures=N`` another capture, never a silent old value. Other Python values (closures, attributes) are frozen
at capture. State that is written in place stays live.
"""
from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

import tinyhost
from tinyhost._tensor.registry import live_tensors, touched
from tinyhost.engine.capture import recorder
from tinyhost.engine.replay import Replay
from tinyhost.env import JIT, PROFILE
from tinyhost.errors import JitError
from tinyhost.jit.arguments import Inputs, check
from tinyhost.jit.captured import Captured, Version
from tinyhost.jit.capturing import capture, replayed
from tinyhost.jit.results import result_tensors
from tinyhost.profiling import cpu_profile
from tinyhost.realization import is_lazy, is_stored, lazy_graphs, realize, root_state
from tinyhost.tensor import Tensor

R = TypeVar("R")


class TinyJit(Generic[R]):
    """Decorator: capture a function of tensors and replay it.

    A decorated method has its captures for each object. A result keeps its value as long as a tensor shows it; results
    that nobody holds any more are the memory of the next ones.

    A pickled TinyJit holds its captures and the state they use, and replays them in another process, without the Python
    function. Loading a pickle executes code: load only files you trust.

    Args:
        captures: how many sets of arguments (shapes, dtypes, values) get a capture each; the one used longest ago makes
            room. With the default of 1, arguments that differ from the captured ones are an error.

    Raises (from calls):
        JitError: arguments differ from the captured ones, are no real buffers, or nothing was captured.

    Example:
        >>> from tinyhost import Tensor
        >>> @TinyJit
        ... def double(x): return x * 2
        >>> [double(Tensor([i, i + 1])).tolist() for i in range(4)]
        [[0, 2], [2, 4], [4, 6], [6, 8]]
    """

    def __new__(cls, fxn: Callable[..., R] | None = None, captures: int = 1) -> Any:
        """``@TinyJit(captures=4)`` is a decorator, ``@TinyJit`` a decorated function."""
        return functools.partial(cls, captures=captures) if fxn is None else object.__new__(cls)

    def __init__(self, fxn: Callable[..., R], captures: int = 1) -> None:
        if captures < 1:
            raise ValueError(f"TinyJit needs at least one capture, got captures={captures}")
        _check_function(fxn)
        self.fxn, self.captures = fxn, captures
        self._lock = RLock()
        self._methods: dict[int, tuple[weakref.ref[Any], TinyJit[R]]] = {}
        functools.update_wrapper(self, fxn)
        self.reset()

    def reset(self) -> None:
        """Forget the captures."""
        self.cnt = 0
        self._known: list[Captured] = []  # used last comes last
        self._methods.clear()

    @property
    def captured(self) -> Replay | None:
        """What the last call captured or replayed."""
        return self._known[-1].replay if self._known else None

    def __reduce__(self) -> tuple[Any, ...]:
        known = [c for c in self._known if c.replay is not None]
        if not known:
            raise JitError(f"nothing to pickle: {self._name} was not captured yet, call it twice first")
        return _loaded, (Version(tinyhost.__version__), self._name, self.captures, known)

    @property
    def _name(self) -> str:
        return str(getattr(self, "__name__", "the function"))

    def __get__(self, obj: Any, objtype: Any = None) -> TinyJit[R]:
        if obj is None or isinstance(self.fxn, staticmethod):
            return self
        key = id(obj)
        if key not in self._methods:
            try:
                ref = weakref.ref(obj, lambda _: self._methods.pop(key, None))
            except TypeError as e:
                raise JitError("a captured method belongs to objects with weak references, and "
                               f"{type(obj).__name__} has none: add '__weakref__' to its __slots__") from e
            self._methods[key] = ref, TinyJit(functools.partial(_call_method, self.fxn, ref), self.captures)
        return self._methods[key][1]

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if recorder.active() is not None:
            raise JitError("having TinyJit inside another TinyJit is not supported: the outer one captures both, so "
                           "call the plain function inside")
        if not PROFILE.value:
            return self._counted(args, kwargs)
        with cpu_profile(f"TinyJit {self._name}", category="TinyJit"):
            return self._counted(args, kwargs)

    def _counted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        with self._lock:
            inputs = Inputs(args, kwargs)
            ret = self._called(inputs, args, kwargs) if JIT.value else self._run(args, kwargs)[0]
            self.cnt += 1
            return ret

    def _called(self, inputs: Inputs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        captured = self._find(inputs)
        if captured is None:
            ret, _ = self._run(args, kwargs)
            self._known = [*self._known, Captured(inputs.demands)][-self.captures:]
            return ret
        if captured.replay is None:
            first: R = capture(captured, inputs, lambda early: self._run(args, kwargs, early))
            return first
        again: R = replayed(captured, captured.replay, inputs)
        return again

    def _find(self, inputs: Inputs) -> Captured | None:
        """The capture, or what waits to become one, for such arguments and the state as it is now."""
        known = self._known
        if self.captures == 1:  # the first call's arguments do not matter
            if known and known[0].replay is not None:
                check(known[0].demands, known[0].texts, inputs)
            alike = known
        else:
            alike = [c for c in known if c.demands == inputs.demands]
        if stale := [c for c in alike if c.state is not None and not c.state.is_current()]:
            known = self._known = [c for c in known if c not in stale]
            alike = [c for c in alike if c not in stale]
        ready = [c for c in alike if c.replay is not None and (c.state is None or c.state.fits())]
        found = next(iter(ready or [c for c in alike if c.replay is None]), None)
        if self.captures > 1 and found is not None and known[-1] is not found:
            self._known = [*(c for c in known if c is not found), found]
        return found

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any],
             early: Callable[[], None] | None = None) -> tuple[R, list[Tensor]]:
        """Call the function, and realize its result, whatever it stored and the state that it exchanged; for a capture
        (``early`` comes first) also what else it left. (result, its tensors)"""
        before, there = lazy_graphs(), {id(t): weakref.ref(t) for t in live_tensors()}
        with touched() as made:
            ret = self.fxn(*args, **kwargs)
            tensors = result_tensors(ret)
            if early is not None:
                early()
            left = [t for t in made() if is_lazy(t) and root_state(t) not in before
                    and (early is not None or is_stored(t) or (id(t) in there and there[id(t)]() is t))]
        realize(*tensors, *left)
        return ret, tensors


def _loaded(version: Version, name: str, captures: int, known: list[Captured]) -> TinyJit[Any]:
    """A TinyJit from its pickled form."""
    def function(*args: Any, **kwargs: Any) -> Any:
        raise JitError(f"{name} was loaded from a pickle, which holds captures but no Python function: call it with "
                       "the arguments that were captured")
    function.__name__ = name
    jit: TinyJit[Any] = TinyJit(function, captures)
    jit._known = known
    return jit


def _call_method(fxn: Callable[..., R], ref: weakref.ref[Any], *args: Any, **kwargs: Any) -> R:
    return fxn(ref(), *args, **kwargs)


def _check_function(fxn: Any) -> None:
    """Demand a function that computes its result when it is called."""
    if not callable(fxn):
        raise JitError(f"TinyJit captures a function, got {type(fxn).__name__} {fxn!r:.60}: decorate the function "
                           "first, and with classmethod or property after that")
    if isinstance(fxn, staticmethod):
        fxn = fxn.__func__
    for kind, test in _DEFERRED.items():
        if test(fxn):
            raise JitError(f"TinyJit captures what a call computes, and {getattr(fxn, '__name__', fxn)} is "
                               f"{kind}, which computes later: capture the function that it calls")


_DEFERRED = {"a generator": inspect.isgeneratorfunction, "a coroutine": inspect.iscoroutinefunction,
             "an asynchronous generator": inspect.isasyncgenfunction}
