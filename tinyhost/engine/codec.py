"""Graphs and their arguments as flat bytes (JSON), for the disk cache. Never pickles: decoding builds known types only.

``encode(obj)`` takes nodes, plain Python values, dtypes, enumerations and the records of ``uop/*info.py``, in any
nesting of tuples; ``decode`` gives an equal object, nodes interned. A value of another type is an error at encoding,
and damaged bytes are a ValueError at decoding.
"""
from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from tinyhost.dtype import DTYPES_DICT, ConstFloat, DType, Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost.uop.info import BufferizeOpts, CallInfo, ParamArg
from tinyhost.uop.kernel_info import Estimates, KernelInfo, Opt, OptOps, ProgramInfo

_RECORDS = {c.__name__: c for c in (BufferizeOpts, CallInfo, Estimates, KernelInfo, Opt, ParamArg, ProgramInfo, Target)}
_ENUMS = {c.__name__: c for c in (AddrSpace, AxisType, Ops, OptOps)}
_DTYPES = {**DTYPES_DICT, "void": dtypes.void, "weakint": dtypes.weakint, "weakfloat": dtypes.weakfloat}
_DTYPE_NAMES = {d: name for name, d in _DTYPES.items()}


def _children(arg: Any) -> list[UOp]:
    """Nodes inside an argument."""
    out, stack = [], [arg]
    while stack:
        x = stack.pop()
        if isinstance(x, UOp):
            out.append(x)
        elif isinstance(x, tuple):
            stack.extend(x)
        elif type(x).__name__ in _RECORDS:
            stack.extend(getattr(x, f.name) for f in fields(x))
    return out


def _order(roots: list[UOp]) -> dict[UOp, int]:
    """Numbers of all nodes needed, those in sources and arguments before their users."""
    index: dict[UOp, int] = {}
    stack = [(u, False) for u in reversed(roots)]
    while stack:
        u, done = stack.pop()
        if u in index:
            continue
        if done:
            index[u] = len(index)
            continue
        stack.append((u, True))
        below = (*u.src, *_children(u.arg)) if type(u.arg) not in _FLAT else u.src
        stack.extend((s, False) for s in reversed(below) if s not in index)
    return index


_FLAT = frozenset({type(None), int, str, bool, bytes, DType, ConstFloat, ParamArg})


def _value(x: Any, index: dict[UOp, int]) -> Any:
    kind = type(x)
    if x is None or kind in (bool, int, str):
        return x
    if kind is ConstFloat or kind is float:
        return {"f": float(x).hex()}
    if kind is tuple:
        return [_value(i, index) for i in x]
    if kind is UOp:
        return {"u": index[x]}
    if kind is DType:
        return {"d": _DTYPE_NAMES[x]}
    if kind is bytes:
        return {"b": x.decode("latin-1")}
    if x is Invalid:
        return {"i": 0}
    name = kind.__name__
    if _ENUMS.get(name) is kind:
        return {"e": name, "v": x.value}
    if _RECORDS.get(name) is kind:
        if name == "CallInfo" and x.grad_fxn is not None:
            raise TypeError("a call with a Python gradient function has no flat form")
        return {"r": name, "v": [_value(getattr(x, f.name), index) for f in fields(x)]}
    raise TypeError(f"{kind.__name__} {x!r} has no flat form, so the graph that holds it cannot go to the disk cache")


def encode(obj: Any) -> bytes:
    """``obj`` as bytes.

    Raises:
        TypeError: something inside has no flat form.
    """
    index = _order(_children(obj))
    nodes = [[u.op.value, [index[s] for s in u.src], _value(u.arg, index), _value(u.tag, index)] for u in index]
    return json.dumps([nodes, _value(obj, index)], separators=(",", ":")).encode()


def _object(x: Any, nodes: list[UOp]) -> Any:
    if isinstance(x, list):
        return tuple([_object(i, nodes) for i in x])
    if not isinstance(x, dict):
        return x
    if "u" in x:
        return nodes[x["u"]]
    if "f" in x:
        return float.fromhex(x["f"])
    if "d" in x:
        return _DTYPES[x["d"]]
    if "b" in x:
        return x["b"].encode("latin-1")
    if "e" in x:
        return _ENUMS[x["e"]](x["v"])
    if "r" in x:
        return _RECORDS[x["r"]](*[_object(i, nodes) for i in x["v"]])
    return Invalid


def decode(data: bytes) -> Any:
    """The object that ``encode`` made bytes of.

    Raises:
        ValueError: the bytes are not of that form.
    """
    try:
        flat, obj = json.loads(data)
        nodes: list[UOp] = []
        for op, src, arg, tag in flat:
            nodes.append(UOp(Ops(op), tuple([nodes[i] for i in src]), _object(arg, nodes), _object(tag, nodes)))
        return _object(obj, nodes)
    except (KeyError, IndexError, TypeError, UnicodeError, json.JSONDecodeError) as e:
        raise ValueError(f"damaged cache entry: {e}") from e
