"""Gradients of calls: the backward function of a FUNCTION, and custom gradients.

A FUNCTION's results are read by GETTUPLE; their gradients meet in one TUPLE (NOOP marks a result nobody used), from
which one backward FUNCTION is built. Its arguments are the forward arguments it needs, then the gradients.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyhost.errors import GradientError
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.sharding import stored_axis

SrcGradients = tuple["UOp | None", ...]
Compute = Callable[[UOp, UOp, "set[UOp]"], "dict[UOp, UOp]"]  # gradient.compute_gradient, handed down


def gettuple_gradient(u: UOp, g: UOp) -> SrcGradients:
    """The gradient as one element of the TUPLE of all results."""
    fn = u.src[0]
    count = len((fn.src[0] if fn.op is Ops.FUNCTION else fn).src)
    return (UOp.maketuple(*(g if i == u.arg else UOp(Ops.NOOP) for i in range(count))),)


def _custom(call: UOp, grads: tuple[UOp, ...]) -> SrcGradients:
    given = [g for g in grads if g.op is not Ops.NOOP]
    got = call.arg.grad_fxn(*given, call=call)
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != len(call.src) - 1:
        raise GradientError(f"grad_fxn of {call.arg.name or 'a call'} returned {len(got)} gradients for "
                            f"{len(call.src) - 1} arguments: return one for each, None where there is none")
    return (None, *got)


def function_gradient(call: UOp, g: UOp, compute: Compute) -> SrcGradients:
    """Gradients of the arguments of a FUNCTION or CALL, from the TUPLE of gradients of its results.

    Raises:
        GradientError: the body is opaque and the call has no ``grad_fxn``.
    """
    grads = g.src
    info = call.arg
    if info.grad_fxn is not None:
        return _custom(call, grads)
    if call.op is Ops.CALL:
        raise GradientError(f"call {info.name or ''} has an opaque body and no grad_fxn: give one, or detach its "
                            "inputs")
    return _backward_function(call, grads, compute)


def _backward_function(call: UOp, grads: tuple[UOp, ...], compute: Compute) -> SrcGradients:
    body, args, info = call.src[0], call.src[1:], call.arg
    params = _float_params(body, len(args))
    used = [i for i, gr in enumerate(grads) if gr.op is not Ops.NOOP]
    grad_params = [grads[i].param_like(len(args) + k) for k, i in enumerate(used)]
    totals: dict[UOp, UOp] = {}
    for i, p in zip(used, grad_params):
        for t, gr in compute(body.src[i], p, set(params)).items():
            totals[t] = totals[t] + gr if t in totals else gr
    wanted = [p for p in params if p in totals]
    if not wanted:
        return (None,) * len(call.src)
    results = UOp.maketuple(*(_shaped(totals[p], args[p.arg.slot]) for p in wanted))
    results, outer = _reuse_forward(call, results) if info.precompile else (results, ())
    results, kept = _compacted(results, (*args, *(grads[i] for i in used), *outer))
    name = None if info.name is None else f"{info.name}_backward"
    backward = results.call(*kept, name=name, precompile=info.precompile_backward)
    out: list[UOp | None] = [None] * len(call.src)
    for k, p in enumerate(wanted):
        out[1 + p.arg.slot] = backward.gettuple(k)
    return tuple(out)


def _shaped(flat: UOp, arg: UOp) -> UOp:
    """A gradient of flat storage as one of the argument that it holds, of a split one on all devices together."""
    axis = stored_axis(arg)
    if axis is None:
        return flat.view_as(arg.shape)
    return flat.view_as(arg.shard_shape, axis).only(axis, arg.shape[axis])


def _float_params(body: UOp, count: int) -> list[UOp]:
    """Flat PARAMs of the body that carry gradients, by slot; views of them inside the body pass theirs on."""
    params = (u for u in body.toposort(enter_calls=False) if u.op is Ops.PARAM and 0 <= u.arg.slot < count)
    return sorted((u for u in params if u.dtype.is_float), key=lambda u: int(u.arg.slot))


def _reuse_forward(call: UOp, results: UOp) -> tuple[UOp, tuple[UOp, ...]]:
    """Let the backward body read the forward results instead of computing them again."""
    body = call.src[0]
    first = 1 + max((u.arg.slot for u in results.toposort(enter_calls=False) if u.op is Ops.PARAM), default=-1)
    outputs = {o: call.gettuple(i) for i, o in enumerate(body.src) if o.op is not Ops.PARAM}
    params = {o: out.param_like(first + k) for k, (o, out) in enumerate(outputs.items())}
    return results.substitute(params, walk=True), tuple(outputs.values())


def _compacted(results: UOp, args: tuple[UOp, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    """The body with its parameters numbered 0, 1 ... and only the arguments it uses."""
    params = sorted((u for u in results.toposort(enter_calls=False) if u.op is Ops.PARAM and u.arg.slot >= 0),
                    key=lambda u: u.arg.slot)
    slots = list(dict.fromkeys(u.arg.slot for u in params))
    place = {slot: k for k, slot in enumerate(slots)}
    renamed = {u: _renumbered(u, place[u.arg.slot]) for u in params if place[u.arg.slot] != u.arg.slot}
    return results.substitute(renamed, walk=True), tuple(args[slot] for slot in slots)


def _renumbered(param: UOp, slot: int) -> UOp:
    name = f"p{slot}" if param.arg.name == f"p{param.arg.slot}" else param.arg.name
    return param.replace(arg=replace(param.arg, slot=slot, name=name))
