"""TinyJit: run a function once, capture what it executes the second time, replay it from then on.

The first call runs as written (so state gets created); the second records every kernel launch with its buffers; later
calls exchange the input buffers and launch. What the function computes must follow from tensors: shapes, dtypes,
devices and Python values of the arguments must stay what they were, and so must TRAINING; a difference is a JitError,
never a silent old value. Other Python values (closures, attributes) are frozen at capture. State that is written in
place stays live.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, TypeVar

from tinyhost._tensor.views import forget_exclusive
from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of, from_buffer
from tinyhost.engine.capture import recorder
from tinyhost.engine.hazards import is_storage
from tinyhost.engine.replay import Replay
from tinyhost.env import JIT, TRAINING
from tinyhost.errors import JitError
from tinyhost.realization import lazy_graphs, realize, settle, waiting_stores
from tinyhost.schedule.storage import region_of
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

R = TypeVar("R")
_VALUES = (bool, int, float, complex, str, bytes, type(None))


# *** nested arguments and results ***
def _leaves(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything inside nested lists, tuples and dicts, in order."""
    stack = [(path, x)]
    while stack:
        p, v = stack.pop()
        if isinstance(v, (list, tuple)):
            stack.extend((f"{p}[{i}]", item) for i, item in reversed(list(enumerate(v))))
        elif isinstance(v, dict):
            stack.extend((f"{p}[{k!r}]", v[k]) for k in reversed(list(v)))
        else:
            yield p, v


def _rebuilt(x: Any, change: Callable[[Any], Any]) -> Any:
    """Nested lists, tuples and dicts with every leaf changed."""
    if isinstance(x, (list, tuple)):
        items = [_rebuilt(v, change) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {k: _rebuilt(v, change) for k, v in x.items()}
    return change(x)


# *** arguments ***
@dataclass(frozen=True)
class _Demand:
    """What one argument of a replay must be: ``value`` (or the same object), told as ``text``."""

    path: str
    value: Any
    text: str

    def met_by(self, other: _Demand) -> bool:
        """Whether the argument of another call is the same."""
        a, b = self.value, other.value
        return self.path == other.path and (a is b or (type(a) is type(b) is tuple and a == b))


class _Inputs:
    """The arguments of one call, made real, and what a replay demands of them."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = [(f"arg {i}", a) for i, a in enumerate(args)] + sorted(kwargs.items())
        leaves = [leaf for name, a in named for leaf in _leaves(name, a)]
        self.tensors = [(p, v) for p, v in leaves if isinstance(v, Tensor)]
        realize(*[t for _, t in self.tensors])
        self.buffers = [_input_buffer(p, t) for p, t in self.tensors]
        _check_overlap(self.tensors, self.buffers)
        self.bound = [v for _, v in leaves if isinstance(v, UOp) and v.is_bound_var]
        self.var_vals = {v.unbind()[0].arg.name: v.unbind()[1] for v in self.bound}
        self.demands = [_demand(p, v) for p, v in leaves] + [_demand("TRAINING", TRAINING.value)]

    def flat(self, i: int) -> UOp:
        """The elements of one tensor in order: its whole buffer, or a part of one."""
        buffer, (_, t) = self.buffers[i], self.tensors[i]
        return t.uop.buf_uop if buffer.base is buffer else t.uop.reshape((buffer.size,))


def _demand(path: str, v: Any) -> _Demand:
    if isinstance(v, Tensor):
        shape = tuple(v.shape)
        return _Demand(path, (Tensor, shape, v.dtype, v.device), f"a tensor {shape} {v.dtype} on {v.device}")
    if isinstance(v, UOp) and v.is_bound_var:
        return _Demand(path, v.unbind()[0], f"variable {v.expr}")
    # floats by text: nan is nan, and -0.0 is not 0.0
    return _Demand(path, (type(v), repr(v)) if isinstance(v, _VALUES) else v, f"{v!r:.80}")


def _input_buffer(path: str, t: Tensor) -> Buffer:
    region = region_of(t.uop) if t.uop.device is not None else None
    if region is None or not is_storage(region.root):
        what = "a constant" if t.uop.device is None else "a view that is no single block of its buffer"
        raise JitError(f"JIT inputs must be real buffers; use .clone(): {path} of shape {t.shape} is {what}")
    buffer = buffer_of(region.root).ensure_allocated()
    return buffer if region.whole else buffer.view(region.size, region.dtype, region.start)


def _check_overlap(tensors: list[tuple[str, Tensor]], buffers: list[Buffer]) -> None:
    spans = sorted((id(b.base), b.offset, b.offset + b.nbytes, p) for b, (p, _) in zip(buffers, tensors))
    for (base, _, end, first), (other, start, _, second) in zip(spans, spans[1:]):
        if base == other and start < end:
            raise JitError(f"duplicate inputs to JIT: {first} and {second} share memory, so a replay could not tell "
                           "them apart; pass a .clone() of one")


def _check(captured: list[_Demand], now: list[_Demand]) -> None:
    """Compare the arguments of a call with those of the capture."""
    if [d.path for d in captured] != [d.path for d in now]:
        raise JitError(f"args mismatch in JIT: captured with {', '.join(d.path for d in captured)}, called with "
                       f"{', '.join(d.path for d in now)}; call with the same arguments, or use a second TinyJit")
    wrong = [f"{a.path} was {a.text} at capture and is {b.text} now" for a, b in zip(captured, now) if not a.met_by(b)]
    if wrong:
        raise JitError(f"args mismatch in JIT: {'; '.join(wrong)}: call with the same, or use a second TinyJit")


class TinyJit(Generic[R]):
    """Decorator: capture a function of tensors and replay it.

    The tensors that replays return are the same memory each time: ``clone()`` what must outlast the next call. A
    decorated method has a capture for each object.

    Raises (from calls):
        JitError: arguments differ from the captured ones, are no real buffers, or nothing was captured.

    Example:
        >>> from tinyhost import Tensor
        >>> @TinyJit
        ... def double(x): return x * 2
        >>> [double(Tensor([i, i + 1])).tolist() for i in range(4)]
        [[0, 2], [2, 4], [4, 6], [6, 8]]
    """

    def __init__(self, fxn: Callable[..., R]) -> None:
        self.fxn = fxn
        self._lock = RLock()
        self._methods: dict[int, tuple[weakref.ref[Any], TinyJit[R]]] = {}
        functools.update_wrapper(self, fxn)
        self.reset()

    def reset(self) -> None:
        """Forget the capture."""
        self.cnt = 0
        self.captured: Replay | None = None
        self._demands: list[_Demand] = []
        self._inputs: list[UOp] = []  # what each input tensor stood on, and each bound variable
        self._ret: Any = None  # the result, with nodes in the place of tensors
        self._methods.clear()

    def __get__(self, obj: Any, objtype: Any = None) -> TinyJit[R]:
        if obj is None:
            return self
        key = id(obj)
        if key not in self._methods:
            ref = weakref.ref(obj, lambda _: self._methods.pop(key, None))
            self._methods[key] = ref, TinyJit(functools.partial(_call_method, self.fxn, ref))
        return self._methods[key][1]

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if recorder.active() is not None:
            raise JitError("having TinyJit inside another TinyJit is not supported: the outer one captures both, so "
                           "call the plain function inside")
        with self._lock:
            inputs = _Inputs(args, kwargs)
            if self.captured is not None and JIT.value:
                ret = self._replay(self.captured, inputs)
            elif self.cnt == 0 or not JIT.value:
                ret = self._run(args, kwargs)
            else:
                ret = self._capture(inputs, args, kwargs)
            self.cnt += 1
            return ret

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Call the function, and realize its result and whatever it stored."""
        before = waiting_stores()
        ret = self.fxn(*args, **kwargs)
        stored = [t for state, t in waiting_stores().items() if state not in before]
        realize(*_result_tensors(ret), *stored)
        return ret

    def _capture(self, inputs: _Inputs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        # a part of a buffer stands on a BUFFER of its own meanwhile, so that a replay may take another part
        views = {i: t.uop for i, (_, t) in enumerate(inputs.tensors) if inputs.buffers[i].base is not inputs.buffers[i]}
        nodes = [from_buffer(b) if i in views else inputs.flat(i) for i, b in enumerate(inputs.buffers)]
        for i, view in views.items():
            inputs.tensors[i][1].uop = nodes[i].reshape(view.shape)
        capture = recorder.start(lazy_graphs())
        try:
            ret = self._run(args, kwargs)
            result = _rebuilt(ret, lambda x: x.uop if isinstance(x, Tensor) else x)
        finally:
            recorder.stop()
            for i, view in views.items():
                t = inputs.tensors[i][1]
                written = t.uop is not nodes[i].reshape(view.shape)
                t.uop = t.uop.substitute({nodes[i]: view.reshape((view.max_numel(),))}, walk=True) if written else view
        if not capture.items:
            raise JitError("didn't JIT anything! The function ran no kernel while it was captured: realize its result "
                           "inside, or make it depend on its arguments")
        self.captured = Replay(capture, inputs.buffers)
        self._demands, self._inputs, self._ret = inputs.demands, [*nodes, *inputs.bound], result
        return ret

    def _replay(self, captured: Replay, inputs: _Inputs) -> R:
        _check(self._demands, inputs.demands)
        settle(captured.used, captured.written | {inputs.buffers[i].base for i in captured.written_inputs})
        captured.run(inputs.buffers, inputs.var_vals)
        now = dict(zip(self._inputs, [*map(inputs.flat, range(len(inputs.tensors))), *inputs.bound]))
        return _rebuilt(self._ret, lambda u: _result(u, now))  # type: ignore[no-any-return]


def _call_method(fxn: Callable[..., R], ref: weakref.ref[Any], *args: Any, **kwargs: Any) -> R:
    return fxn(ref(), *args, **kwargs)


def _result_tensors(ret: Any) -> list[Tensor]:
    values = [v for _, v in _leaves("return", ret)]
    wrong = sorted({type(v).__name__ for v in values if not isinstance(v, Tensor) and v is not None})
    if wrong:
        raise JitError(f"a captured function returns Tensors, containers of them or None, got {', '.join(wrong)}: a "
                       "Python value would be frozen at capture; return a Tensor and read it outside")
    return [v for v in values if isinstance(v, Tensor)]


def _result(u: Any, now: dict[UOp, UOp]) -> Any:
    """A new tensor for a node of the result, over the inputs of this call."""
    if not isinstance(u, UOp):
        return u
    t = Tensor._wrap(u.substitute(now, walk=True))
    forget_exclusive(t.uop)
    return t
