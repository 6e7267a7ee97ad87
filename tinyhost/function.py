"""``@function``: a Python function over tensors becomes one FUNCTION node with its own parameters.

Each call traces the function once. The tensors among its arguments (also inside lists, dicts and objects) become
parameters in order of first occurrence, so equal calls share one body; a gradient is one backward function. Buffers
that the body reads without being given them are implicit inputs. Nothing may run while a function is traced.
"""
from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from tinyhost._tensor.core import TensorCore
from tinyhost.device import Device
from tinyhost.dtype import strong_dtype
from tinyhost.env import Context
from tinyhost.errors import CallError, FunctionError
from tinyhost.ops import AddrSpace, Ops
from tinyhost.rng import state
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.leaf import is_leaf, without_identity


def function(fxn: Callable[..., Any] | None = None, *, precompile: bool = False, precompile_backward: bool = False,
             allow_implicit: bool = True, grad_fxn: Callable[..., Any] | None = None) -> Any:
    """Make calls of ``fxn`` FUNCTION nodes.

    Args:
        fxn: takes and returns tensors, or nests of tuples, lists and dicts with tensors.
        precompile: schedule the body on its own, once.
        precompile_backward: the same for its backward function.
        allow_implicit: let the body read buffers that are not among the arguments.
        grad_fxn: custom gradient, called with one gradient for each result that has one and ``call=``; it returns one
            gradient (or None) for each argument of the call.

    Raises:
        FunctionError: at the call, if there are implicit inputs and ``allow_implicit`` is false.
    """
    if fxn is None:
        return functools.partial(function, precompile=precompile, precompile_backward=precompile_backward,
                                 allow_implicit=allow_implicit, grad_fxn=grad_fxn)
    name = getattr(fxn, "__qualname__", type(fxn).__name__)

    @functools.wraps(fxn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        assert fxn is not None
        inputs = _inputs((args, kwargs))
        newest = _newest_buffer()
        _ = Device.DEFAULT  # chosen before devices are off limits
        with Context(ALLOW_DEVICE_USAGE=0):
            result = fxn(*args, **kwargs)
        outputs: list[Tensor] = []
        shape = _flattened(result, outputs)
        body, arguments = _body(name, [t.uop for t in outputs], inputs, newest, allow_implicit)
        call = body.call(*arguments, grad_fxn=grad_fxn, name=name, precompile=precompile,
                         precompile_backward=precompile_backward)
        return _rebuilt(shape, iter([Tensor._wrap(call.gettuple(i)) for i in range(len(outputs))]))
    return traced


def _newest_buffer() -> int:
    """Slot of a buffer made just now: later ones have larger slots."""
    return int(UOp.new_buffer("NPY", 0, Tensor.const(True).dtype).arg.slot)


def _inputs(root: Any) -> list[UOp]:
    """Nodes of the tensors and bound variables in the arguments, each once, in order of first occurrence."""
    found: dict[UOp, None] = {}
    seen: set[int] = set()
    stack = [root]
    while stack:
        x = stack.pop()
        if isinstance(x, TensorCore):
            if x.uop.device is not None or (is_leaf(x.uop) and x.dtype.is_float):
                found[x.uop] = None
        elif isinstance(x, UOp):
            if x.is_bound_var:
                found[x] = None
        elif id(x) not in seen:
            seen.add(id(x))
            if isinstance(x, dict):
                stack.extend(reversed(x.values()))
            elif isinstance(x, (list, tuple)):
                stack.extend(reversed(x))
            elif hasattr(x, "__dict__") and not isinstance(x, (type, types.FunctionType, types.ModuleType)):
                stack.extend(reversed(vars(x).values()))
    return list(found)


def _body(name: str, outputs: list[UOp], inputs: list[UOp], newest: int,
          allow_implicit: bool) -> tuple[UOp, list[UOp]]:
    """The TUPLE over parameters, and the arguments in their order."""
    body = UOp.maketuple(*outputs)
    below = body.toposort(enter_calls=False)
    arguments = [u for u in inputs if u in below]
    trial = _with_params(body, arguments)
    used = {u.arg.slot for u in trial.toposort(enter_calls=False) if u.op is Ops.PARAM and u.arg.slot >= 0}
    if len(used) < len(arguments):  # an argument that the body reads only through another argument
        arguments = [u for i, u in enumerate(arguments) if i in used]
        trial = _with_params(body, arguments)
    body = trial
    buffers = (u for u in body.toposort(enter_calls=False) if u.op is Ops.BUFFER)
    hidden = [u for u in buffers if u.arg.addrspace is AddrSpace.GLOBAL]
    random = {t.uop.buf_uop for t in state.storage()}
    implicit = [u for u in hidden if u not in random and (u.arg.slot < newest or u.is_realized)]
    if implicit and not allow_implicit:
        raise FunctionError(f"function {name} has {len(implicit)} implicit buffer(s), but allow_implicit=False: pass "
                            "the tensors that it reads as arguments")
    extra = {u: u.param_like(len(arguments) + i) for i, u in enumerate(hidden)}
    strong = [u.cast(strong_dtype(u.dtype)) for u in arguments]
    return without_identity(body.substitute(extra, walk=True)), [*strong, *hidden]


def _with_params(body: UOp, arguments: list[UOp]) -> UOp:
    """Parameters in the place of the arguments; tensors first, as their parameters may have symbolic shapes."""
    params = {u: _param(u, i) for i, u in enumerate(arguments)}
    body = body.substitute({u: p for u, p in params.items() if not u.is_bound_var}, walk=True)
    return body.substitute({u: p for u, p in params.items() if u.is_bound_var}, walk=True)


def _param(u: UOp, slot: int) -> UOp:
    """The parameter for an argument; a weak number stays weak inside, so that it takes the dtype of its partner."""
    return u.cast(strong_dtype(u.dtype)).param_like(slot).cast(u.dtype) if u.dtype.is_weak else u.param_like(slot)


# *** nests of results ***
def _flattened(x: Any, out: list[Tensor]) -> Any:
    """The nest with each tensor replaced by its class; the tensors go to ``out``."""
    if isinstance(x, Tensor):
        out.append(x)
        return Tensor
    if isinstance(x, (list, tuple)):
        items = [_flattened(i, out) for i in x]
        return items if isinstance(x, list) else type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, dict):
        return {k: _flattened(v, out) for k, v in x.items()}
    raise CallError(f"a traced function returns tensors, or tuples, lists and dicts of them, got {type(x).__name__}")


def _rebuilt(shape: Any, results: Any) -> Any:
    if shape is Tensor:
        return next(results)
    if isinstance(shape, dict):
        return {k: _rebuilt(v, results) for k, v in shape.items()}
    items = [_rebuilt(i, results) for i in shape]
    return items if isinstance(shape, list) else type(shape)(*items) if hasattr(shape, "_fields") else tuple(items)


class _Module(types.ModuleType):
    """``tinyhost.function`` is this module and, for users, the decorator: calling the module decorates."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


sys.modules[__name__].__class__ = _Module
