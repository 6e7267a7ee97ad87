"""TinyJit: run a function once, capture what it executes the second time, replay it from then on.

The first call runs as written (so state gets created); the second records every kernel launch with its buffers; later
calls exchange the input buffers and launch. What the function computes must follow from tensors: shapes, dtypes,
devices and Python values of the arguments must stay what they were, and so must TRAINING; a difference is a JitError,
or with ``captures=N`` another capture, never a silent old value. Other Python values (closures, attributes) are frozen
at capture. State that is written in place stays live.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

import tinyhost
from tinyhost.device import Buffer
from tinyhost.device.buffer import from_buffer
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.capture import Capture, recorder
from tinyhost.engine.replay import Replay
from tinyhost.env import JIT, PROFILE
from tinyhost.errors import JitError
from tinyhost.jit.arguments import Inputs, check, leaves, met, rebuilt
from tinyhost.jit.captured import Captured, Version, with_nodes
from tinyhost.jit.results import Output, outputs_of, result_tensor
from tinyhost.profiling import cpu_profile
from tinyhost.realization import lazy_graphs, realize, settle, waiting_stores
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp

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
        if obj is None:
            return self
        key = id(obj)
        if key not in self._methods:
            ref = weakref.ref(obj, lambda _: self._methods.pop(key, None))
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
            return self._capture(captured, inputs, args, kwargs)
        return self._replay(captured, captured.replay, inputs)

    def _find(self, inputs: Inputs) -> Captured | None:
        """What is known of such arguments; with one capture, the first call's arguments do not matter."""
        if self.captures == 1:
            return self._known[0] if self._known else None
        found = next((c for c in self._known if met(c.demands, inputs.demands)), None)
        if found is not None:
            self._known = [*(c for c in self._known if c is not found), found]
        return found

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[R, list[Tensor]]:
        """Call the function, and realize its result and whatever it stored; (result, its tensors)."""
        before = waiting_stores()
        ret = self.fxn(*args, **kwargs)
        stored = [t for state, t in waiting_stores().items() if state not in before]
        tensors = _result_tensors(ret)
        realize(*tensors, *stored)
        return ret, tensors

    # *** capture ***
    def _capture(self, captured: Captured, inputs: Inputs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        # a part of a buffer stands on a BUFFER of its own meanwhile, so that a replay may take another part
        views = {i: t.uop for i, (_, t) in enumerate(inputs.tensors) if inputs.is_part(i)}
        nodes = [from_buffer(b) if i in views else inputs.flat(i) for i, b in enumerate(inputs.buffers)]
        for i, view in views.items():
            inputs.tensors[i][1].uop = nodes[i].reshape(view.shape)
        capture = recorder.start(lazy_graphs())
        try:
            ret, tensors = self._run(args, kwargs)
            result = rebuilt(ret, lambda x: x.uop if isinstance(x, Tensor) else x)
        finally:
            recorder.stop()
            for i, view in views.items():
                t = inputs.tensors[i][1]
                written = t.uop is not nodes[i].reshape(view.shape)
                t.uop = t.uop.substitute({nodes[i]: view.reshape((view.max_numel(),))}, walk=True) if written else view
        if not capture.items:
            raise JitError("didn't JIT anything! The function ran no kernel while it was captured: realize its result "
                           "inside, or make it depend on its arguments")
        captured.inputs, captured.bound, captured.demands = nodes, inputs.bound, inputs.demands
        outputs = self._outputs(capture, result)
        captured.outputs = list(outputs.values())
        captured.replay = Replay(capture, [*inputs.buffers, *(o.buffer for o in captured.outputs)])
        captured.ret = rebuilt(result, lambda x: with_nodes(x, {u: o.slot for u, o in outputs.items()}))
        now = {o.slot: u for u, o in outputs.items()}
        now |= {nodes[i]: view.reshape((view.max_numel(),)) for i, view in views.items()}
        own: R = rebuilt(captured.ret, lambda x: result_tensor(x, now))
        results = {id(t) for _, t in leaves("", own)}
        for u, o in outputs.items():
            o.follow(u, results)
        return own

    def _outputs(self, capture: Capture, result: Any) -> dict[UOp, Output]:
        nodes = [u for _, u in leaves("", result)]
        written = {id(bound.params[i]) for bound, _ in capture.items for i in bound.plan.written}
        outputs = outputs_of(nodes, [u for r in nodes if isinstance(r, UOp) for u in r.toposort()
                                     if u.op is Ops.BUFFER and capture.made(u)])
        return {u: o for u, o in outputs.items() if id(o.buffer) in written}

    # *** replay ***
    def _replay(self, captured: Captured, replay: Replay, inputs: Inputs) -> R:
        check(captured.demands, inputs.demands)
        storage = [b.base for b in inputs.buffers]
        written = replay.written | {storage[i] for i in replay.written_given if i < len(storage)}
        settle({*replay.used, *(o.buffer for o in captured.outputs)}, written)
        given = [_apart(p, b, i in replay.written_given, replay)
                 for i, ((p, _), b) in enumerate(zip(inputs.tensors, inputs.buffers))]
        nodes = [o.renew() for o in captured.outputs]
        replay.run([*given, *(o.buffer for o in captured.outputs)], inputs.var_vals)
        now = dict(zip(captured.inputs, map(inputs.flat, range(len(inputs.tensors)))))
        now |= {node: inputs.bound[name] for name, node in captured.bound.items()}
        now |= {o.slot: node for o, node in zip(captured.outputs, nodes)}
        return rebuilt(captured.ret, lambda u: result_tensor(u, now))  # type: ignore[no-any-return]


def _apart(path: str, buffer: Buffer | MultiBuffer, written: bool, replay: Replay) -> Buffer | MultiBuffer:
    """An input in memory that the captured steps do not write as their state: a copy where they do."""
    if not any(part.base in replay.parts_written for part in parts_of(buffer)):
        return buffer
    if written:
        raise JitError(f"{path} is memory that the captured function writes as its own state too, so a replay could "
                       "not tell them apart; pass a .clone()")
    copies = [Buffer(p.device, p.size, p.dtype).allocate().copy_from(p) for p in parts_of(buffer)]
    return MultiBuffer(copies) if isinstance(buffer, MultiBuffer) else copies[0]


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


def _result_tensors(ret: Any) -> list[Tensor]:
    values = [v for _, v in leaves("return", ret)]
    wrong = sorted({type(v).__name__ for v in values if not isinstance(v, Tensor) and v is not None})
    if wrong:
        raise JitError(f"a captured function returns Tensors, containers of them or None, got {', '.join(wrong)}: a "
                       "Python value would be frozen at capture; return a Tensor and read it outside")
    return [v for v in values if isinstance(v, Tensor)]
