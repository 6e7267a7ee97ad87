"""Inlining of FUNCTION calls: the body's parameters are replaced by the call's arguments.

Takes a graph with GETTUPLE(FUNCTION(TUPLE body, args...)); gives the same graph without them. Parameters are flat
storage, so each argument enters as a flat view of its largest shape. Calls nested in bodies are inlined by
repeating the pass, once for each level of nesting.
"""
from __future__ import annotations

from tinyhost.errors import DTypeError, ScheduleError
from tinyhost.helpers import ceildiv, prod
from tinyhost.uop import Ops, UOp
from tinyhost.uop.sharding import stored_axis


class ArgumentError(ScheduleError, TypeError):
    """A call whose arguments do not fit the body's parameters in number or shape."""


def flat_storage(arg: UOp) -> UOp:
    """``arg`` padded to its largest shape and flattened: the form in which a body's PARAM sees it.

    Of a value that is split over devices, that is what each device holds.
    """
    axis = stored_axis(arg)
    arg = arg if axis is None else arg.own_shard(axis)
    shape, most = arg.shape, arg.max_shape
    padded = arg if shape == most else arg._mop(Ops.PAD, tuple((0, d) for d in most))
    return padded._mop(Ops.RESHAPE, (prod(most),))


def _held(arg: UOp) -> tuple[int, ...]:
    """The largest shape of what one device holds."""
    axis = stored_axis(arg)
    count = len(arg.device) if axis is not None and arg.device is not None else 1
    return tuple(ceildiv(d, count) if i == axis else d for i, d in enumerate(arg.max_shape))


def _checked(i: int, param: UOp, arg: UOp) -> UOp:
    if param.arg.size is None:
        if arg.shape != ():
            raise ArgumentError(f"arg {i} shape mismatch: expected scalar, got {arg.shape}")
    elif prod(_held(arg)) != param.arg.size or (arg.shape == () and param.arg.size != 1):
        raise ArgumentError(f"arg {i} shape mismatch: expected size {param.arg.size}, got {arg.shape}")
    if param.dtype is not arg.dtype:
        raise DTypeError(f"arg {i} dtype mismatch: expected {param.dtype}, got {arg.dtype}")
    return arg if param.arg.size is None else flat_storage(arg)


def resolve_function(call: UOp) -> UOp:
    """The TUPLE of a FUNCTION's results with its arguments in place of the parameters.

    Raises:
        RuntimeError: the body's parameters are not numbered 0, 1, ...
        TypeError: number, shape or dtype of the arguments differ from the parameters.
    """
    body, args = call.src[0], call.src[1:]
    params = sorted((u for u in body.toposort(enter_calls=False) if u.op is Ops.PARAM and u.arg.slot >= 0),
                    key=lambda p: p.arg.slot)
    slots = [p.arg.slot for p in params]
    if slots != list(range(len(params))):
        raise ScheduleError(f"params not in order: {slots}")
    if len(params) != len(args):
        raise ArgumentError(f"expected {len(params)} args, got {len(args)}")
    return body.substitute({p: _checked(i, p, a) for i, (p, a) in enumerate(zip(params, args))}, walk=True)


def inline_functions(sink: UOp) -> UOp:
    """``sink`` without FUNCTION calls."""
    while True:
        calls = [u for u in sink.toposort(enter_calls=False) if u.op is Ops.GETTUPLE and u.src[0].op is Ops.FUNCTION]
        if not calls:
            return sink
        sink = _inline_level(sink)


def _inline_level(sink: UOp) -> UOp:
    """One pass: calls are resolved from the arguments up, results of one call feed the next."""
    new: dict[UOp, UOp] = {}
    for u in sink.toposort(enter_calls=False):
        src = tuple([new.get(s, s) for s in u.src])
        node = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        if u.op is Ops.FUNCTION:
            node = resolve_function(node)
        elif u.op is Ops.GETTUPLE and node.src[0].op is Ops.TUPLE:
            node = node.src[0].src[u.arg]
        if node is not u:
            new[u] = node
    return new.get(sink, sink)
