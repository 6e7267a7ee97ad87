"""The predicates that ``grammar.py`` names: kinds of sources, kinds of arguments, conditions over a whole node.

Takes nodes (duck-typed) and the stage, gives booleans. Looks at a node and its direct sources, never deeper than a
chain of views.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.dtype import ConstFloat, DType, Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop.info import BufferizeOpts, CallInfo, HostCommand, ParamArg
from tinyhost.uop.kernel_info import KernelInfo, Opt, ProgramInfo

Node = Any


def _is_invalid(s: Node) -> bool:
    return s.op is Ops.CONST and s.arg is Invalid


def _is_literal(s: Node) -> bool:
    return s.op is Ops.CONST or (s.op is Ops.CAST and s.src[0].op is Ops.CONST)


def _is_place(s: Node) -> bool:
    while s.op in (Ops.CAST, Ops.BITCAST, Ops.AFTER):
        s = s.src[0]
    return s.op is Ops.INDEX or s.op is Ops.SHRINK


def _is_dims(s: Node) -> bool:
    if s.op is Ops.STACK:
        return all(x.dtype.is_int for x in s.src)
    return bool(s.dtype.is_int)


# *** sources ***
SOURCE_KINDS: dict[str, tuple[Callable[[Node], bool], str]] = {
    "any": (lambda s: True, "any node"),
    "value": (lambda s: s.dtype is not dtypes.void, "a node with a dtype other than void"),
    "int": (lambda s: s.dtype.is_int or _is_invalid(s), "an integer, weak or strong"),
    "float": (lambda s: s.dtype.is_float, "a float"),
    "bits": (lambda s: not s.dtype.is_float and s.dtype is not dtypes.void, "an integer or a bool"),
    "bool": (lambda s: s.dtype is dtypes.bool, "a bool"),
    "weakint": (lambda s: s.dtype is dtypes.weakint, "a weakint"),
    "int32": (lambda s: s.dtype is dtypes.int32, "an int32"),
    "uint64": (lambda s: s.dtype is dtypes.uint64, "a uint64"),
    "index": (lambda s: s.dtype.is_int or _is_invalid(s), "an integer, perhaps gated: WHERE(cond, i, Invalid)"),
    "literal": (_is_literal, "CONST, or CAST of one"),
    "place": (_is_place, "INDEX or SHRINK of storage, perhaps under CAST, BITCAST or AFTER"),
    "dims": (_is_dims, "a shape operand: one integer, or a STACK of integers (empty for a 0-d shape)"),
    "closed": (lambda s: s.dtype.is_int or s.dtype is dtypes.void, "a RANGE, or what is left of one"),
}


def _ops_kind(kind: str) -> frozenset[Ops]:
    return frozenset(Ops[name] for name in kind.split("|"))


_OP_KINDS: dict[str, frozenset[Ops]] = {}


def source_ok(s: Node, kind: str) -> bool:
    """Whether ``s`` is of ``kind``: a name of ``SOURCE_KINDS``, or op names joined by ``|``."""
    if (known := SOURCE_KINDS.get(kind)) is not None:
        return known[0](s)
    if (ops := _OP_KINDS.get(kind)) is None:
        ops = _OP_KINDS[kind] = _ops_kind(kind)
    return s.op in ops


# *** arguments ***
def _is_ints(a: Any) -> bool:
    return isinstance(a, tuple) and all(isinstance(i, int) for i in a)


def _is_axis(a: Any) -> bool:
    return isinstance(a, tuple) and len(a) >= 2 and _is_ints(a[:-1]) and isinstance(a[-1], AxisType)


def _is_wmma(a: Any) -> bool:
    return (isinstance(a, tuple) and len(a) == 5 and _is_ints(a[0]) and len(a[0]) == 3 and isinstance(a[1], DType)
            and isinstance(a[2], str) and isinstance(a[3], int))


def _is_reduction(a: Any) -> bool:
    return isinstance(a, tuple) and len(a) == 2 and a[0] in GroupOp.Reduce and isinstance(a[1], int) and a[1] >= 0


def _is_device(a: Any) -> bool:
    return isinstance(a, str) or (isinstance(a, tuple) and bool(a) and all(isinstance(d, str) for d in a))


def _is_literal_arg(a: Any) -> bool:
    return type(a) in (int, bool, ConstFloat) or a is Invalid


def _is_opts(a: Any) -> bool:
    return a is None or (isinstance(a, tuple) and all(isinstance(o, Opt) for o in a))


def _is_instruction(a: Any) -> bool:
    return isinstance(a, (str, HostCommand)) or (isinstance(a, tuple) and len(a) >= 2 and isinstance(a[1], DType))


ARG_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "any": (lambda a: True, "anything"),
    "none": (lambda a: a is None, "None"),
    "literal": (_is_literal_arg, "Python int, bool, ConstFloat, or Invalid"),
    "int": (lambda a: type(a) is int, "int"),
    "str": (lambda a: isinstance(a, str), "str"),
    "bytes": (lambda a: isinstance(a, bytes), "bytes"),
    "tuple": (lambda a: isinstance(a, tuple), "tuple"),
    "DType": (lambda a: isinstance(a, DType), "dtype of the result"),
    "ParamArg": (lambda a: isinstance(a, ParamArg), "ParamArg"),
    "CallInfo": (lambda a: isinstance(a, CallInfo), "CallInfo"),
    "ProgramInfo": (lambda a: isinstance(a, ProgramInfo), "ProgramInfo"),
    "BufferizeOpts": (lambda a: isinstance(a, BufferizeOpts), "BufferizeOpts"),
    "kernel_info": (lambda a: a is None or isinstance(a, KernelInfo), "None or KernelInfo"),
    "hint": (lambda a: a is None or isinstance(a, str), "None or a hint such as `nontemporal`"),
    "axis": (_is_axis, "(id, sub ids .., AxisType)"),
    "axes": (_is_ints, "tuple of axis numbers"),
    "flags": (lambda a: isinstance(a, tuple) and all(isinstance(f, bool) for f in a), "tuple of bool per axis"),
    "reduction": (_is_reduction, "(ADD, MUL or MAX; number of leading axes, 0 with ranges)"),
    "device": (_is_device, "device name or tuple of them"),
    "opts": (_is_opts, "None or tuple of Opt"),
    "wmma": (_is_wmma, "((N, M, K), input dtype, device kind, threads, upcast axes)"),
    "custom": (lambda a: isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], str) and isinstance(a[1], DType),
               "(format string, dtype)"),
    "instruction": (_is_instruction, "(opcode, dtype[, lanes]), or the name of a host command"),
}


# *** conditions ***
def _strong(u: Node, stage: str) -> bool:
    return not u.dtype.is_weak


def _strong_in_program(u: Node, stage: str) -> bool:
    return stage != "P" or not (u.dtype.is_weak or any(s.dtype.is_weak for s in u.src))


def _agree(values: tuple[Node, ...], stage: str) -> bool:
    """One dtype; before lowering a weak operand or Invalid fits any."""
    first = None
    for s in values:
        d = s.dtype
        if stage == "P":
            if d.is_weak:
                return False
        elif d.is_weak or _is_invalid(s):
            continue
        if first is None:
            first = d
        elif d is not first:
            return False
    return True


def _local_buffer(u: Node, stage: str) -> bool:
    return u.arg.addrspace in (AddrSpace.LOCAL, AddrSpace.REG) and isinstance(u.arg.size, int) and u.arg.device is None


def _variable(u: Node, stage: str) -> bool:
    return u.arg.addrspace is AddrSpace.ALU and u.arg.device is None and u.arg.size is None


def _global_buffer(u: Node, stage: str) -> bool:
    return u.arg.addrspace is AddrSpace.GLOBAL and isinstance(u.arg.size, int) and _is_device(u.arg.device)


CONDITIONS: dict[str, tuple[Callable[[Node, str], bool], str]] = {
    "match": (lambda u, stage: _agree(u.src, stage), "operands have one dtype; before lowering some may be weak"),
    "match_arms": (lambda u, stage: _agree(u.src[1:], stage), "arms have one dtype; before lowering some may be weak"),
    "strong": (_strong, "the dtype is not weak"),
    "strong_in_program": (_strong_in_program, "no weak dtype in a program"),
    "not_invalid": (lambda u, stage: u.arg is not Invalid, "not Invalid"),
    "same_shape": (lambda u, stage: all(s._shape == u.src[0]._shape for s in u.src), "sources have one shape"),
    "global_buffer": (_global_buffer, "GLOBAL space, int size, a device"),
    "local_buffer": (_local_buffer, "LOCAL or REG space, int size, no device"),
    "variable": (_variable, "ALU space, no size, no device"),
    "device_axis": (lambda u, stage: u.arg[-1] is AxisType.DEVICE, "a DEVICE axis"),
    "closed_body": (lambda u, stage: all(r.arg[-1] is AxisType.DEVICE for r in u.src[0].ranges),
                    "only DEVICE ranges are open in the body"),
    "void_loop": (lambda u, stage: u.src[1].dtype is dtypes.void, "the loop has no bound"),
    "alt_dtype": (lambda u, stage: u.src[1].dtype is u.dtype or (stage == "T" and _agree((u, u.src[1]), stage)),
                  "alt has the dtype of the result"),
    "stored_dtype": (lambda u, stage: stage != "P" or u.src[1].dtype is u.src[0].dtype,
                     "in a program the value has the dtype of the place"),
}
