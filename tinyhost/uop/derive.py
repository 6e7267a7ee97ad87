"""Properties of one node from its op, sources and argument: dtype, device, address space, ranges.

Each table is the only place its property comes from. A rule sees one node whose sources already have the property; the
walk that guarantees it (and never recurses) is in ``node.py``. Shapes are in ``shape.py``, bounds in ``bounds.py``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import ConstFloat, DType, Invalid, dtypes, least_upper_dtype, least_upper_float
from tinyhost.ops import AddrSpace, GroupOp, Ops

if TYPE_CHECKING:
    from tinyhost.uop.node import UOp

# *** dtype ***
_VOID_OPS = frozenset({
    Ops.STORE, Ops.LINEAR, Ops.SINK, Ops.PROGRAM, Ops.SOURCE, Ops.END, Ops.BARRIER, Ops.GROUP, Ops.IF, Ops.ENDIF,
    Ops.NOOP, Ops.TUPLE, Ops.FUNCTION, Ops.CUSTOM_FUNCTION, Ops.REWRITE_ERROR, Ops.PYLITERAL})
_FLOAT_UNARY = frozenset({Ops.SIN, Ops.LOG2, Ops.EXP2, Ops.SQRT, Ops.RECIPROCAL})
_SHIFTS = frozenset({Ops.SHL, Ops.SHR})


def _src0(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    return src[0].dtype


def _promote(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    first = src[0].dtype
    for s in src:
        if s.dtype is not first:
            return least_upper_dtype(*[s.dtype for s in src])
    return first


def is_image(u: "UOp") -> bool:
    """Whether a node is an image argument."""
    return u.op is Ops.PARAM and u.arg.image is not None


def _dtype_shift(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    for s in src:
        if not dtypes.is_int(s.dtype) and not (s.op is Ops.CONST and s.arg is Invalid):
            raise TypeError(f"shift operands must be int, got {[x.dtype for x in src]}")
    return src[0].dtype


def _dtype_where(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    if src[0].dtype is not dtypes.bool:
        raise TypeError(f"where cond must be bool, got {src[0].dtype}: compare with 0 or cast to bool first")
    return src[1].dtype if src[1].dtype is src[2].dtype else least_upper_dtype(src[1].dtype, src[2].dtype)


def _dtype_const(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    kind = type(arg)
    if kind is int:
        return dtypes.weakint
    if kind is ConstFloat:
        return dtypes.weakfloat
    if kind is bool or arg is Invalid:
        return dtypes.bool
    raise TypeError(f"a CONST holds an int, float, bool or Invalid, got {arg!r} of type {kind.__name__}")


def _dtype_gettuple(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    return element_of(src[0], arg).dtype


def element_of(x: "UOp", i: int) -> "UOp":
    """Value ``i`` of a FUNCTION or TUPLE."""
    return (x.src[0] if x.op is Ops.FUNCTION else x).src[i]


_DTYPE: dict[Ops, Callable[[Ops, tuple["UOp", ...], Any], DType]] = {
    **dict.fromkeys(_VOID_OPS, lambda op, src, arg: dtypes.void),
    **dict.fromkeys(GroupOp.Binary | {Ops.MULACC}, _promote),
    **dict.fromkeys(GroupOp.Comparison, lambda op, src, arg: dtypes.bool),
    **dict.fromkeys(GroupOp.Movement | {
        Ops.LOAD, Ops.REDUCE, Ops.AFTER, Ops.RANGE, Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.COPY, Ops.STAGE,
        Ops.DETACH, Ops.MSTACK, Ops.MSELECT, Ops.ALLREDUCE, Ops.SPECIAL, Ops.UNSHARD, Ops.NEG, Ops.TRUNC}, _src0),
    **dict.fromkeys(_FLOAT_UNARY, lambda op, src, arg: dtypes.bool if src[0].arg is Invalid and src[0].op is Ops.CONST
                    else least_upper_float(src[0].dtype)),
    **dict.fromkeys(_SHIFTS, _dtype_shift),
    **dict.fromkeys({Ops.PARAM, Ops.BUFFER}, lambda op, src, arg: arg.dtype),
    **dict.fromkeys({Ops.CAST, Ops.BITCAST}, lambda op, src, arg: arg),
    **dict.fromkeys({Ops.CUSTOM, Ops.CUSTOMI}, lambda op, src, arg: arg[1]),
    Ops.CALL: lambda op, src, arg: arg if isinstance(arg, DType) else dtypes.void,
    Ops.INS: lambda op, src, arg: arg[1] if isinstance(arg, tuple) else dtypes.void,
    Ops.INDEX: lambda op, src, arg: dtypes.float32 if is_image(src[0]) else src[0].dtype,
    Ops.WHERE: _dtype_where,
    Ops.STACK: lambda op, src, arg: _promote(op, src, arg) if src else dtypes.void,
    Ops.WMMA: lambda op, src, arg: src[2].dtype,
    Ops.GETTUPLE: _dtype_gettuple,
    Ops.GETADDR: lambda op, src, arg: dtypes.uint64,
    Ops.BINARY: lambda op, src, arg: dtypes.uint8,
    Ops.CONST: _dtype_const,
}


def dtype_from_uop(op: Ops, src: tuple["UOp", ...], arg: Any) -> DType:
    """The dtype of a node.

    Raises:
        RuntimeError: the op has no dtype.
        TypeError: an operand's dtype is impossible for the op.
    """
    rule = _DTYPE.get(op)
    if rule is None:
        raise RuntimeError(f"no dtype for {op} with arg {arg}")
    return rule(op, src, arg)


def dtype_of(u: "UOp") -> DType:
    """``dtype_from_uop`` of a node whose sources have theirs."""
    rule = _DTYPE.get(u.op)
    return dtype_from_uop(u.op, u.src, u.arg) if rule is None else rule(u.op, u.src, u.arg)


# *** device ***
def device_from_uop(u: "UOp") -> str | tuple[str, ...] | None:
    """Where the value is computed or stored: the first source's that has one, unless the op says it itself."""
    op = u.op
    if op is Ops.BUFFER or op is Ops.PARAM:
        return u.arg.device  # type: ignore[no-any-return]
    if op is Ops.COPY:
        return u.arg  # type: ignore[no-any-return]
    if op is Ops.STAGE:
        return u.arg.device  # type: ignore[no-any-return]
    if op is Ops.ALLREDUCE:
        return u.arg[1]  # type: ignore[no-any-return]
    if op is Ops.MSELECT:
        return u.src[0]._device[u.arg]  # type: ignore[index]
    if op is Ops.MSTACK:
        devices = tuple(s._device for s in u.src)
        return None if None in devices else devices  # type: ignore[return-value]
    for s in u.src:
        if s._device is not None:
            return s._device
    return None


# *** address space ***
_SPACE_OF_SRC0 = GroupOp.Movement | {Ops.AFTER, Ops.INDEX, Ops.STORE, Ops.END, Ops.MSELECT, Ops.MSTACK, Ops.UNSHARD}
_SPACE_ALU = frozenset({Ops.SPECIAL, Ops.RANGE, Ops.STACK, Ops.LOAD, Ops.CONST})


def addrspace_from_uop(u: "UOp") -> AddrSpace | None:
    """The address space a value or place belongs to, None where the question has no answer."""
    op = u.op
    if op is Ops.BUFFER or op is Ops.PARAM:
        return u.arg.addrspace  # type: ignore[no-any-return]
    if op in _SPACE_ALU:
        return AddrSpace.ALU
    if op in _SPACE_OF_SRC0 or op is Ops.CAST:
        return u.src[0]._addrspace
    if op in GroupOp.ALU or op is Ops.BITCAST or op is Ops.GROUP or op is Ops.WMMA:
        spaces = {s._addrspace for s in u.src} - {None}
        return spaces.pop() if len(spaces) == 1 else None
    return None


# *** ranges ***
_ENDS_FROM_1 = frozenset({Ops.STAGE, Ops.REDUCE, Ops.END, Ops.CALL, Ops.FUNCTION, Ops.UNSHARD})


def ended_by(u: "UOp") -> tuple["UOp", ...]:
    """The sources whose ranges stop at this node."""
    op = u.op
    if op in _ENDS_FROM_1:
        return u.src[1:]
    if op is Ops.WMMA:
        return u.src[3:]
    if op is Ops.LINEAR:
        return u.src
    return _ended_by_deps(u) if op is Ops.AFTER else ()


def _ended_by_deps(after: "UOp") -> tuple["UOp", ...]:
    """What the dependencies of an AFTER end, those of AFTERs among them included."""
    out: tuple[UOp, ...] = ()
    stack = list(after.src[:0:-1])
    while stack:
        d = stack.pop()
        if d.op is Ops.AFTER:
            stack += d.src[:0:-1]
        else:
            out += ended_by(d)
    return out


def ranges_from_uop(u: "UOp") -> dict["UOp", None]:
    """Ranges a value depends on that are still open, in order of first use. The dict is shared: do not change it."""
    out: dict[UOp, None] | None = None
    copied = False
    for s in u.src:
        theirs: dict[UOp, None] = s._ranges
        if not theirs or theirs is out:
            continue
        if out is None:
            out = theirs
        elif not theirs.keys() <= out.keys():
            if not copied:
                out, copied = dict(out), True
            out.update(theirs)
    ended = ended_by(u)
    if ended and out:
        gone: set[UOp] = set()
        for e in ended:
            gone.update((e,) if e.op is Ops.RANGE else e._ranges)
        out = {r: None for r in out if r not in gone}
        copied = True
    if u.op is Ops.RANGE:
        out = {**(out or {}), u: None}
    return out if out is not None else _EMPTY


_EMPTY: dict[Any, None] = {}
