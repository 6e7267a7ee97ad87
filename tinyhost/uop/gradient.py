"""Reverse-mode gradients of tensor graphs.

Takes a root, the gradient of a final value with respect to it, and target nodes; gives a graph for each target that
the root depends on. One rule for each op, in a table; integers, bools, comparisons and DETACH carry no gradient. The
walk is iterative and visits only nodes on a path to a target.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tinyhost.dtype import dtypes, sum_acc_dtype
from tinyhost.errors import GradientError
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.function_gradient import function_gradient, gettuple_gradient
from tinyhost.uop.gradient_branches import Branches
from tinyhost.uop.leaf import is_literal
from tinyhost.uop.lines import nearest_line
from tinyhost.uop.node import UOp

SrcGradients = tuple["UOp | None", ...]


# *** element-wise ***
def _reciprocal(u: UOp, g: UOp) -> SrcGradients:
    return (-g * u * u,)


def _is_number(u: UOp) -> bool:
    """Whether nobody can ask for the gradient of a source."""
    return u.op is Ops.CONST and u.tag is None


def _mul(u: UOp, g: UOp) -> SrcGradients:
    a, b = u.src
    return None if _is_number(a) else b * g, None if _is_number(b) else a * g


def _pow(u: UOp, g: UOp) -> SrcGradients:
    base, exponent = u.src
    by_base = exponent.eq(0).where(0, exponent * base.alu(Ops.POW, (exponent - 1)._at(base.dtype)))
    if _is_number(exponent):
        return g * by_base, None
    at_zero = (exponent < 0).where(-math.inf, exponent.const_like(0))
    by_exponent = base.eq(0).where(at_zero, u * base.log2() * math.log(2))
    return g * by_base, g * by_exponent


def _maximum(u: UOp, g: UOp) -> SrcGradients:
    a, b = u.src
    if is_literal(a) or is_literal(b):  # a literal takes the whole tie, so that relu has slope 0 at 0
        return None if _is_number(a) else (b < a).where(g, 0), None if _is_number(b) else (a < b).where(g, 0)
    shared = a.eq(b).where(g * 0.5, g)
    return (a < b).where(0, shared), (b < a).where(0, shared)


def _where(u: UOp, g: UOp) -> SrcGradients:
    return None, u.src[0].where(g, 0), u.src[0].where(0, g)


# *** reductions ***
def _over_leading(u: UOp, g: UOp) -> UOp:
    return g._mop(Ops.EXPAND, u.src[0].shape[:u.arg[1]])


def _reduce(u: UOp, g: UOp) -> SrcGradients:
    x, (op, n) = u.src[0], u.arg
    if op is Ops.ADD:
        return (_over_leading(u, g),)
    axes = tuple(range(n))
    if op is Ops.MAX:  # ties share the gradient
        hits = x.eq(u)
        return (hits.where(g / hits.cast(g.dtype).sum(axes), 0),)
    if op is Ops.MUL:  # exact with zeros: the product of the others
        zero = x.eq(0)
        others = zero.where(1, x)
        product = others._rop(Ops.MUL, axes)
        zeros = zero.cast(dtypes.int32).sum(axes)
        return (zero.where(zeros.eq(1).where(g * product, 0), zeros.eq(0).where(g * product / others, 0)),)
    raise GradientError(f"no gradient for a reduction by {op}: detach() its inputs, or give a grad_fxn")


# *** movement ***
def _expand(u: UOp, g: UOp) -> SrcGradients:
    axes = tuple(range(len(u.marg)))
    return (g.cast(sum_acc_dtype(g.dtype)).sum(axes),)


def _permute(u: UOp, g: UOp) -> SrcGradients:
    return (g.permute(tuple(sorted(range(len(u.arg)), key=u.arg.__getitem__))),)


def _pad(u: UOp, g: UOp) -> SrcGradients:
    return (g._mop(Ops.SHRINK, tuple((o, s) for (o, _), s in zip(u.marg, u.src[0].shape))),)


def _shrink(u: UOp, g: UOp) -> SrcGradients:
    return (_zero_pad(g, tuple((o, s) for (o, _), s in zip(u.marg, u.src[0].shape))),)


def _zero_pad(g: UOp, box: tuple[tuple[Any, Any], ...]) -> UOp:
    mask = UOp.const(True).expand(g.shape)._mop(Ops.PAD, box)
    return mask.where(g._mop(Ops.PAD, box), 0)


def _flip(u: UOp, g: UOp) -> SrcGradients:
    return (g._mop(Ops.FLIP, u.arg),)


def _stack(u: UOp, g: UOp) -> SrcGradients:
    rest = tuple((0, s) for s in g.shape[1:])
    return tuple(g._mop(Ops.SHRINK, ((i, 1), *rest)).reshape(g.shape[1:]) for i in range(len(u.src)))


def _index(u: UOp, g: UOp) -> SrcGradients:
    """Each element of the gradient goes to the row it was read from; rows read twice add up."""
    x, *indices = u.src
    if len(indices) != 1:
        raise GradientError(f"no gradient for INDEX with {len(indices)} indices: flatten the indexed axes first")
    index = indices[0].get_idx().flatten()
    rest, count = x.shape[1:], index.shape[0]
    ones = (1,) * len(rest)
    hit = index.reshape((count, 1)).eq(UOp._iota(x.shape[0])).reshape((count, x.shape[0], *ones))
    moved = hit.where(g.reshape((count, 1, *rest)).cast(sum_acc_dtype(g.dtype)), 0)
    return (moved.sum(0), None)


# *** memory ***
def _copy(u: UOp, g: UOp) -> SrcGradients:
    device = u.src[0].device
    return (g if device is None or g.device is None else g.copy_to_device(device),)


def _after(u: UOp, g: UOp) -> SrcGradients:
    """A store replaces what it covers: that part of the gradient is the value's, the rest the old content's."""
    x = u.src[0]
    out: list[UOp | None] = [g]
    for dep in u.src[1:]:
        if dep.op is Ops.STORE:
            place = dep.src[0]
            if place is x:
                out[0] = None
                out.append(g)
                continue
            base = place.base
            if _is_reshape(place, base):
                out[0] = None
                out.append(g.reshape(place.shape))
                continue
            whole = g.reshape(base.shape)
            out.append(place.substitute({base: whole}, walk=True))
            covered = compute_gradient(place, place.const_like(1), {base})[base].ne(0)
            if out[0] is not None:
                out[0] = covered.reshape(x.shape).where(0, out[0])
        elif dep.op is Ops.CALL:
            position = next(i for i, s in enumerate(dep.src[1:]) if s is x)
            holes = [UOp(Ops.NOOP)] * (len(dep.src) - 1)
            holes[position] = g
            out[0] = None
            out.append(UOp.maketuple(*holes))
        else:
            out.append(None)
    return tuple(out)


def _is_reshape(u: UOp, base: UOp) -> bool:
    while u.op is Ops.RESHAPE:
        u = u.src[0]
    return u is base


def _same(u: UOp, g: UOp) -> SrcGradients:
    return (g,)


def _nothing(u: UOp, g: UOp) -> SrcGradients:
    return (None,) * len(u.src)


RULES: dict[Ops, Callable[[UOp, UOp], SrcGradients]] = {
    **dict.fromkeys(GroupOp.Comparison | {
        Ops.BITCAST, Ops.XOR, Ops.OR, Ops.AND, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD,
        Ops.THREEFRY}, _nothing),
    Ops.CAST: _same,
    Ops.RECIPROCAL: _reciprocal,
    Ops.SIN: lambda u, g: (g * u.src[0].cos(),),
    Ops.LOG2: lambda u, g: (g / (u.src[0] * math.log(2)),),
    Ops.EXP2: lambda u, g: (g * u * math.log(2),),
    Ops.SQRT: lambda u, g: (g / (u * 2),),
    Ops.TRUNC: lambda u, g: (u.const_like(0),),
    Ops.NEG: lambda u, g: (-g,),
    Ops.ADD: lambda u, g: (g, g),
    Ops.SUB: lambda u, g: (g, -g),
    Ops.MUL: _mul,
    Ops.FDIV: lambda u, g: (g / u.src[1], -g * u / u.src[1]),
    Ops.POW: _pow,
    Ops.MAX: _maximum,
    Ops.WHERE: _where,
    Ops.MULACC: lambda u, g: (u.src[1] * g, u.src[0] * g, g),
    Ops.REDUCE: _reduce,
    Ops.RESHAPE: lambda u, g: (g.reshape(u.src[0].shape),),
    Ops.EXPAND: _expand,
    Ops.PERMUTE: _permute,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.STACK: _stack,
    Ops.INDEX: _index,
    Ops.CONTIGUOUS: _same,
    Ops.CONTIGUOUS_BACKWARD: lambda u, g: (g.contiguous(),),
    Ops.COPY: _copy,
    Ops.UNSHARD: lambda u, g: (g.own_shard(u.arg[0]), *[None] * (len(u.src) - 1)),
    Ops.AFTER: _after,
    Ops.STORE: lambda u, g: (None, g),
    **dict.fromkeys((Ops.FUNCTION, Ops.CALL), lambda u, g: function_gradient(u, g, compute_gradient)),
    Ops.GETTUPLE: gettuple_gradient,
    Ops.TUPLE: lambda u, g: tuple(None if x.op is Ops.NOOP else x for x in g.src),
}


# *** the walk ***
def _summed_to(g: UOp, like: UOp) -> UOp:
    """``g`` at the shape and dtype of ``like``, which ALU ops broadcast."""
    shape = like._shape
    if shape is not None and g.shape != shape:
        lead = len(g.shape) - len(shape)
        if lead < 0:
            return g.expand(shape).cast(like.dtype)
        axes = tuple(i for i, s in enumerate(g.shape) if i < lead or (s != shape[i - lead] and shape[i - lead] == 1))
        if axes:
            g = g.cast(sum_acc_dtype(g.dtype)).sum(axes).reshape(shape)
        g = g.expand(shape)
    return g.cast(like.dtype)


def _added(old: UOp | None, new: UOp) -> UOp:
    """Sum of two gradients of one node; those of calls are tuples with holes."""
    if old is None:
        return new
    if old.op is not Ops.TUPLE:
        return old + new
    return UOp.maketuple(*(b if a.op is Ops.NOOP else a if b.op is Ops.NOOP else a + b
                           for a, b in zip(old.src, new.src)))


_CARRIERS = frozenset({Ops.STORE, Ops.FUNCTION, Ops.CALL, Ops.TUPLE})  # no value of their own, but on the path


def _path(root: UOp, targets: Iterable[UOp]) -> tuple[list[UOp], set[UOp]]:
    """Nodes below the root, sources first, and which of them lead to a target."""
    wanted = set(targets)
    topo = list(root.toposort(gate=lambda u: u.op is not Ops.DETACH or u in wanted, enter_calls=False))
    on_path: set[UOp] = set()
    for u in topo:
        if u in wanted or (any(s in on_path for s in u.src) and (u.op in _CARRIERS or u.dtype.is_float)):
            on_path.add(u)
    return topo, on_path


def _without_rule(u: UOp, topo: Iterable[UOp]) -> GradientError:
    error = GradientError(f"no gradient for {u.op} with arg {u.arg}: detach() its inputs, or give a grad_fxn")
    if (line := nearest_line(u, topo)) is not None:
        error.add_note(f"built at {line}")
    return error


def compute_gradient(root: UOp, root_grad: UOp, targets: set[UOp]) -> dict[UOp, UOp]:
    """Gradients with respect to those of ``targets`` that ``root`` depends on.

    Args:
        root: the differentiated value.
        root_grad: gradient of a final value with respect to ``root``, of its shape.
        targets: nodes to differentiate by.

    Raises:
        GradientError: a node on the path has no gradient rule.
    """
    topo, on_path = _path(root, targets)
    branches = Branches(topo, on_path, RULES)
    grads: dict[UOp, UOp] = {root: root_grad} if root in on_path else {}
    for u in reversed(topo):
        g = grads.get(u)
        if g is None or u not in on_path or not any(s in on_path for s in u.src):
            continue
        rule = RULES.get(u.op)
        if rule is None:
            raise _without_rule(u, topo)
        for s, sg in zip(u.src, branches.guarded(u, rule(u, g))):
            if sg is not None and s in on_path:
                grads[s] = _added(grads.get(s), sg if s.op in _CARRIERS else _summed_to(sg, s))
    return {t: grads[t] for t in targets if t in grads}
