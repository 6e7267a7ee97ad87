"""TinyJit: run a function once, capture what it executes the second time, replay it from then on.

The first call runs as written (so state gets created); the second records every kernel launch with its buffers; later calls
copy nothing, they exchange the input buffers and launch. Shapes, dtypes, devices and Python values of the arguments must stay
what they were: a difference is a JitError, never a silent old value. Values that the function reads from closures and
attributes are frozen at capture.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Generic, TypeVar

from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of
from tinyhost.engine.capture import Capture, Recorded, recorder
from tinyhost.engine.realize import run
from tinyhost.env import JIT
from tinyhost.errors import JitError
from tinyhost.realization import realize
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

R = TypeVar("R")


def _leaves(path: str, x: Any) -> list[tuple[str, Any]]:
    """(path, value) of everything inside nested lists, tuples and dicts."""
    out: list[tuple[str, Any]] = []
    stack = [(path, x)]
    while stack:
        p, v = stack.pop()
        if isinstance(v, (list, tuple)):
            stack.extend((f"{p}[{i}]", item) for i, item in reversed(list(enumerate(v))))
        elif isinstance(v, dict):
            stack.extend((f"{p}[{k!r}]", v[k]) for k in reversed(list(v)))
        else:
            out.append((p, v))
    return out


class _Inputs:
    """The arguments of one call, checked and made real."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = [(f"arg {i}", a) for i, a in enumerate(args)] + sorted(kwargs.items())
        leaves = [leaf for name, a in named for leaf in _leaves(name, a)]
        self.tensors = [(p, v) for p, v in leaves if isinstance(v, Tensor)]
        variables = [(p, v) for p, v in leaves if isinstance(v, UOp)]
        plain = tuple((p, type(v).__name__, repr(v)) for p, v in leaves if not isinstance(v, (Tensor, UOp)))
        if self.tensors:
            realize(*[t for _, t in self.tensors])
        self.buffers = [self._buffer(p, t) for p, t in self.tensors]
        if len({id(b.base) for b in self.buffers}) != len(self.buffers):
            raise JitError("duplicate inputs to JIT: two arguments share one buffer, so a replay could not tell them apart; "
                           "pass a .clone() of one")
        self.var_vals = {v.unbind()[0].arg.name: v.unbind()[1] for _, v in variables if v.is_bound_var}
        self.expected = (tuple((p, t.shape, str(t.dtype), t.device) for p, t in self.tensors),
                         tuple((p, v.unbind()[0].arg) for p, v in variables if v.is_bound_var), plain)

    @staticmethod
    def _buffer(path: str, t: Tensor) -> Buffer:
        if not t.uop.has_buffer_identity():
            raise JitError(f"JIT inputs must be real buffers; use .clone(): {path} of shape {t.shape} is a view or a constant")
        return buffer_of(t.uop).ensure_allocated()


class TinyJit(Generic[R]):
    """Decorator: capture a function of tensors and replay it.

    Raises (from calls):
        JitError: arguments differ from the captured ones, are no real buffers, or nothing was captured.
    """

    def __init__(self, fxn: Callable[..., R]) -> None:
        self.fxn = fxn
        self.reset()
        functools.update_wrapper(self, fxn)

    def reset(self) -> None:
        """Forget the capture."""
        self.cnt = 0
        self.captured: Capture | None = None
        self.ret: Any = None
        self._expected: Any = None
        self._slots: list[tuple[Recorded, int, int, Buffer]] = []

    def __get__(self, obj: Any, objtype: Any = None) -> Callable[..., R]:
        return functools.partial(self.__call__, obj)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if recorder.active() is not None:
            raise JitError("having TinyJit inside another TinyJit is not supported: the outer one captures both")
        inputs = _Inputs(args, kwargs)
        if not JIT.value or self.cnt == 0:
            self.cnt += 1
            ret = self.fxn(*args, **kwargs)
            self._realize(ret)
            return ret
        if self.captured is None:
            return self._capture(inputs, args, kwargs)
        self._check(inputs)
        for rec, position, which, view in self._slots:
            new = inputs.buffers[which]
            rec.params[position] = new if view.base is view else new.view(view.size, view.dtype, view.offset)
        for rec in self.captured.items:
            run(rec.plan, rec.params, {**rec.var_vals, **inputs.var_vals}, temps=rec.temps)
        self.cnt += 1
        return self.ret  # type: ignore[no-any-return]

    def _realize(self, ret: Any) -> None:
        values = [v for _, v in _leaves("return", ret)]
        wrong = [type(v).__name__ for v in values if not isinstance(v, Tensor) and v is not None]
        if wrong:
            raise JitError(f"a captured function returns Tensors, containers of them or None, got {wrong}: a Python value would "
                           "be frozen at capture; return a Tensor and read it outside")
        tensors = [v for v in values if isinstance(v, Tensor)]
        if tensors:
            realize(*tensors)

    def _capture(self, inputs: _Inputs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        capture = recorder.start()
        try:
            ret = self.fxn(*args, **kwargs)
            self._realize(ret)
        finally:
            recorder.stop()
        if not capture.items:
            raise JitError("didn't JIT anything! The function ran no kernel while it was captured: realize its result inside, or "
                           "make it depend on its arguments")
        by_base = {id(b.base): i for i, b in enumerate(inputs.buffers)}
        self._slots = [(rec, i, by_base[id(p.base)], p) for rec in capture.items for i, p in enumerate(rec.params)
                       if id(p.base) in by_base]
        self.captured, self.ret, self._expected = capture, ret, inputs.expected
        self.cnt += 1
        return ret

    def _check(self, inputs: _Inputs) -> None:
        if inputs.expected == self._expected:
            return
        for what, old, new in zip(("tensors", "variables", "values"), self._expected, inputs.expected):
            if old != new:
                raise JitError(f"args mismatch in JIT: {what} were {old} at capture and are {new} now; call with the same, or "
                               "use a second TinyJit")
