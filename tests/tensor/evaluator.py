"""Tensor graphs evaluated op by op with numpy: an oracle that shares no code with scheduling or code generation.

``evaluate(node)`` walks the graph once, sources first. Every op is written from its definition. What must not be looked
at (outside of a PAD, an Invalid literal, a gather out of range) is poisoned: NaN, or a large odd integer.
bfloat16 and fp8 are float32 arrays rounded after each op; weak types are float64 and int64.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import DType, Invalid, _to_np_dtype, dtypes, least_upper_dtype, truncate
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop import UOp

Array = np.ndarray[Any, Any]
POISON = -555555


def np_type(dtype: DType) -> Any:
    if dtype is dtypes.weakint:
        return np.int64
    if dtype is dtypes.weakfloat:
        return np.float64
    return _to_np_dtype(dtype) or np.float32


def fit(value: Any, dtype: DType) -> Array:
    """The array at a dtype: floats are rounded, integers wrap, floats to integers truncate and saturate."""
    array = np.asarray(value)
    if _to_np_dtype(dtype) is None and not dtype.is_weak:
        if dtype is dtypes.bfloat16:
            return round_bf16(array.astype(np.float32))
        return np.array([truncate[dtype](float(v)) for v in array.flat], np.float32).reshape(array.shape)
    if dtype is dtypes.bool:
        return array.astype(np.bool_)
    if dtype.is_int and array.dtype.kind == "f":
        clean = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0, posinf=2.0**70, neginf=-2.0**70)
        lo, hi = (-2**63, 2**63 - 1) if dtype.is_weak else (dtype.min, dtype.max)
        return np.array([min(max(int(v), lo), hi) for v in clean.flat], np_type(dtype)).reshape(array.shape)
    return array.astype(np_type(dtype))


def round_bf16(x: Array) -> Array:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).reshape(x.shape)
    return np.where(np.isfinite(x), rounded, x)


def threefry(counter: Array, key: Array) -> Array:
    mask = 0xFFFFFFFF
    x0, x1 = (counter & mask).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    k0, k1 = (key & mask).astype(np.uint32), (key >> np.uint64(32)).astype(np.uint32)
    ks = [k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)]
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0 = x0 + ks[(group + 1) % 3]
        x1 = x1 + ks[(group + 2) % 3] + np.uint32(group + 1)
    return (x1.astype(np.uint64) << np.uint64(32)) | x0.astype(np.uint64)


def _floordiv(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))


def _cdiv(a: Array, b: Array) -> Array:
    q = _floordiv(a, b)
    return q + ((q * b != a) & (q < 0) & (b != 0)).astype(q.dtype)


def _shift(left: bool, a: Array, b: Array, bits: int) -> Array:
    small = np.where((b < 0) | (b >= bits), 0, b).astype(a.dtype)
    out = a << small if left else a >> small
    gone = (b < 0) | (b >= bits)
    return np.where(gone, 0 if left or a.dtype.kind == "u" else np.where(a < 0, -1, 0), out)


def _power(a: Array, b: Array) -> Array:
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    # an exponent in one number of memory may be 0.5, of which numpy makes a square root
    return np.power(a, np.array(np.broadcast_to(b, shape), order="C"))


UNARY = {
    Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.SQRT: np.sqrt, Ops.RECIPROCAL: lambda a: 1 / a,
    Ops.NEG: lambda a: -a, Ops.TRUNC: np.trunc,
}
BINARY = {
    Ops.ADD: lambda a, b: a | b if a.dtype == np.bool_ else a + b,
    Ops.MUL: lambda a, b: a & b if a.dtype == np.bool_ else a * b,
    Ops.SUB: lambda a, b: a - b, Ops.FDIV: lambda a, b: a / b,
    Ops.MAX: lambda a, b: np.maximum(a, b), Ops.CMPLT: lambda a, b: a < b, Ops.CMPNE: lambda a, b: a != b,
    Ops.CMPEQ: lambda a, b: a == b, Ops.XOR: lambda a, b: a ^ b, Ops.OR: lambda a, b: a | b,
    Ops.AND: lambda a, b: a & b, Ops.POW: _power, Ops.THREEFRY: threefry,
    Ops.CDIV: _cdiv, Ops.CMOD: lambda a, b: np.where(b == 0, 0, a - _cdiv(a, b) * b),
    Ops.FLOORDIV: _floordiv, Ops.FLOORMOD: lambda a, b: np.where(b == 0, 0, a - _floordiv(a, b) * b),
}


def poison(shape: Any, dtype: DType) -> Array:
    if dtype is dtypes.bool:
        return np.zeros(shape, np.bool_)
    if dtype.is_float:
        return np.full(shape, np.nan, np_type(dtype))
    return np.full(shape, np.int64(POISON)).astype(np_type(dtype))


def _operands(u: UOp, values: list[Array]) -> list[Array]:
    joint = least_upper_dtype(*[s.dtype for s in u.src])
    return [fit(v, joint) for v in values]


def _where(u: UOp, v: list[Array]) -> Array:
    shape = np.broadcast_shapes(*[x.shape for x in v])
    arms = [poison(shape, u.dtype) if s.is_invalid else fit(x, u.dtype) for s, x in zip(u.src[1:], v[1:])]
    return np.where(v[0], *arms)


def _movement(op: Ops, x: Array, arg: Any, dtype: DType) -> Array:
    if op is Ops.RESHAPE:
        return x.reshape(arg)
    if op is Ops.PERMUTE:
        return x.transpose(arg)
    if op is Ops.EXPAND:
        return np.broadcast_to(x, (*arg, *x.shape))
    if op is Ops.FLIP:
        return x[tuple(slice(None, None, -1) if f else slice(None) for f in arg)]
    if op is Ops.SHRINK:
        assert all(o >= 0 and n >= 0 and o + n <= s for (o, n), s in zip(arg, x.shape)), f"shrink {arg} of {x.shape}"
        return x[tuple(slice(o, o + n) for o, n in arg)]
    out = poison(tuple(n for _, n in arg), dtype)
    out[tuple(slice(o, o + s) for (o, _), s in zip(arg, x.shape))] = x
    return out


def _moved(u: UOp, x: Array, values: dict[UOp, Array], dtype: DType) -> Array:
    def ints(s: UOp) -> tuple[int, ...]:
        return tuple(int(i) for i in np.atleast_1d(values[s]))
    if u.op in (Ops.PERMUTE, Ops.FLIP):
        arg: Any = u.arg
    elif u.op in (Ops.RESHAPE, Ops.EXPAND):
        arg = ints(u.src[1])
    else:
        arg = tuple(zip(ints(u.src[1]), ints(u.src[2])))
    return _movement(u.op, x, arg, dtype)


def _view(u: UOp, base: UOp, content: Array, values: dict[UOp, Array]) -> Array:
    """The view ``u`` of ``base`` over other content."""
    chain = []
    while u is not base:
        assert u.op in GroupOp.Movement or u.op is Ops.DETACH, f"{u.op} in a place"
        chain.append(u)
        u = u.src[0]
    for m in reversed(chain):
        content = content if m.op is Ops.DETACH else _moved(m, content, values, dtypes.int64)
    return content


def _after(u: UOp, values: dict[UOp, Array]) -> Array:
    x = u.src[0]
    base = x.base
    content = values[base].copy()
    numbers = np.arange(content.size).reshape(content.shape)
    for store in u.src[1:]:
        if store.op is Ops.STORE:
            where = _view(store.src[0], base, numbers, values)
            content.reshape(-1)[where] = fit(values[store.src[1]], u.dtype)
    return _view(x, base, content, values)


def _index(u: UOp, v: list[Array]) -> Array:
    x, indices = v[0], v[1:]
    out = x
    for k, i in enumerate(indices):
        axis = sum(j.ndim for j in indices[:k])
        bad = (i < 0) | (i >= out.shape[axis])
        assert out.shape[axis] > 0 or bad.all()
        taken = np.take(out, np.where(bad, 0, i), axis=axis)
        shape = (*(1,) * axis, *i.shape, *(1,) * (taken.ndim - axis - i.ndim))
        out = np.where(bad.reshape(shape), poison(taken.shape, u.dtype), taken)
    return out


def _reduce(u: UOp, x: Array) -> Array:
    op, n = u.arg
    axes = tuple(range(n))
    if op is Ops.MAX:
        return np.max(x, axis=axes) if x.size else np.full(x.shape[n:], u.dtype.min, x.dtype)
    if x.dtype == np.bool_:
        return np.any(x, axis=axes) if op is Ops.ADD else np.all(x, axis=axes)
    fn = np.add if op is Ops.ADD else np.multiply
    return fn.reduce(x, axis=axes, dtype=x.dtype) if len(axes) else x


def _bitcast(x: Array, src: DType, dst: DType) -> Array:
    if src is dtypes.bfloat16:
        x = (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dst is dtypes.bfloat16:
        return (np.ascontiguousarray(x).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(x).view(np_type(dst)) if x.ndim else x.reshape(1).view(np_type(dst)).reshape(())


def _buffer(u: UOp) -> Array:
    if u.arg.addrspace is AddrSpace.ALU:
        return np.array(POISON)  # an unbound variable: only its bound form is read
    buf = u.buffer
    if u.arg.device == "NPY" or buf.is_allocated():
        return np.frombuffer(buf.as_memoryview(), np_type(u.dtype))
    return poison((u.arg.size,), u.dtype)


def _filled(x: Array, like: UOp) -> Array:
    """A value of symbolic shape in storage of its largest shape."""
    out = poison(like.max_shape, like.dtype)
    out[tuple(slice(0, n) for n in x.shape)] = x
    return out


def _value(u: UOp, values: dict[UOp, Array], args: tuple[Array, ...]) -> Any:
    op = u.op
    v = [values[s] for s in u.src] if op not in (Ops.FUNCTION,) else []
    if op is Ops.CONST:
        return np.array(POISON) if u.arg is Invalid else np.array(u.arg)
    if op is Ops.BUFFER:
        return _buffer(u)
    if op is Ops.PARAM:
        return args[u.arg.slot].reshape(-1) if u.arg.size is not None else args[u.arg.slot]
    if op in UNARY:
        return UNARY[op](fit(v[0], u.dtype)) if op is not Ops.TRUNC or u.dtype.is_float else v[0]
    if op in (Ops.SHL, Ops.SHR):
        return _shift(op is Ops.SHL, fit(v[0], u.dtype), v[1], 64 if u.dtype.is_weak else u.dtype.bitsize)
    if op in BINARY:
        return BINARY[op](*_operands(u, v))
    if op is Ops.MULACC:
        a, b, c = (fit(x, u.dtype) for x in v)
        return a * b + c
    if op is Ops.WHERE:
        return _where(u, v)
    if op is Ops.CAST:
        return fit(v[0], u.dtype)
    if op is Ops.BITCAST:
        return _bitcast(v[0], u.src[0].dtype, u.dtype)
    if op in GroupOp.Movement:
        return _moved(u, v[0], values, u.dtype)
    if op is Ops.REDUCE:
        return _reduce(u, v[0])
    if op is Ops.STACK:
        return np.stack([fit(x, u.dtype) for x in v]) if v else np.zeros((0,), np.int64)
    if op is Ops.INDEX:
        return _index(u, v)
    if op is Ops.AFTER:
        return values[u.src[1].src[1]] if u.is_bound_var else _after(u, values)
    if op is Ops.STAGE:
        assert u.src[0] is u.src[1]
        return np.arange(int(values[u.src[0].src[0]]))
    if op in (Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.COPY):
        return v[0]
    if op is Ops.FUNCTION:
        args = tuple(_filled(values[s], s) for s in u.src[1:])
        return tuple(evaluate(b, args) for b in u.src[0].src)
    if op is Ops.TUPLE:
        return tuple(v)
    if op is Ops.GETTUPLE:
        return v[0][u.arg]
    if op in (Ops.STORE, Ops.RANGE, Ops.NOOP):
        return None
    raise AssertionError(f"the evaluator does not know {op}")


def evaluate(root: UOp, args: tuple[Array, ...] = ()) -> Array:
    """The value of a tensor graph; ``args`` are the values of its PARAMs."""
    values: dict[UOp, Any] = {}
    with np.errstate(all="ignore"):
        for u in root.toposort(enter_calls=False):
            out = _value(u, values, args)
            if isinstance(out, np.ndarray | np.generic) and u.op is not Ops.CONST and u.dtype is not dtypes.void:
                shape = out.shape
                out = fit(out, u.dtype)
                assert u._shape is None or len(u._shape) == len(shape), f"{u.op}: shape {u._shape}, value {shape}"
                if u._shape is not None:
                    for want, got in zip(u._shape, shape):
                        assert not isinstance(want, int) or want == got, f"{u.op}: shape {u._shape}, value {shape}"
            values[u] = out
    return values[root]
