"""Two small numpy interpreters for scheduling tests: tensor graphs evaluated op by op, and the LINEAR that
scheduling gives.

``evaluate`` defines what a tensor graph means (states of storage are values); ``run_linear`` executes each kernel
AST with its ranges as numpy axes. Outside a PAD the first one puts garbage and the second one reads 0, so a "don't
care" value that reaches a result shows as a difference.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes, least_upper_dtype
from tinyhost.uop import AddrSpace, GroupOp, Ops, UOp

NP: dict[DType, Any] = {
    dtypes.bool: np.bool_, dtypes.int8: np.int8, dtypes.uint8: np.uint8, dtypes.int16: np.int16,
    dtypes.uint16: np.uint16, dtypes.int32: np.int32, dtypes.uint32: np.uint32, dtypes.int64: np.int64,
    dtypes.uint64: np.uint64, dtypes.float16: np.float16, dtypes.float32: np.float32, dtypes.float64: np.float64,
    dtypes.weakint: np.int64, dtypes.weakfloat: np.float64}
GARBAGE = 77

_ALU: dict[Ops, Any] = {
    Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.SQRT: np.sqrt, Ops.RECIPROCAL: lambda x: 1 / x,
    Ops.NEG: np.negative, Ops.TRUNC: np.trunc, Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift, Ops.MAX: np.maximum, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
    Ops.XOR: np.bitwise_xor, Ops.OR: np.bitwise_or, Ops.AND: np.bitwise_and, Ops.SUB: np.subtract,
    Ops.FDIV: np.divide, Ops.FLOORDIV: np.floor_divide, Ops.FLOORMOD: np.mod,
    Ops.WHERE: np.where, Ops.POW: np.power, Ops.CDIV: lambda x, y: np.trunc(x / y).astype(x.dtype)}
_REDUCE = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


def alu(u: UOp, src: list[Any]) -> Any:
    """One element-wise op on arrays, at the dtype of the node."""
    if u.op is Ops.CAST:
        with np.errstate(all="ignore"):
            return np.asarray(src[0]).astype(NP[u.arg])
    if u.op is Ops.BITCAST:
        x = np.ascontiguousarray(src[0])
        return x.view(NP[u.arg]) if x.shape else np.frombuffer(x.tobytes(), NP[u.arg])[0]
    dtype = u.dtype
    if u.op in GroupOp.Comparison:
        dtype = least_upper_dtype(*(s.dtype for s in u.src))
    first = 1 if u.op is Ops.WHERE else 0
    args = [np.asarray(s) for s in src[:first]] + [np.asarray(s).astype(NP[dtype]) for s in src[first:]]
    with np.errstate(all="ignore"):
        return _ALU[u.op](*args)


# *** tensor graphs ***
class Evaluator:
    """Values of tensor nodes; ``inputs`` maps storage nodes to flat arrays, ``binds`` variable names to ints."""

    def __init__(self, inputs: dict[UOp, np.ndarray], binds: dict[str, int] | None = None) -> None:
        self.inputs, self.binds = inputs, binds or {}
        self.values: dict[UOp, Any] = {}
        self.contents: dict[UOp, np.ndarray] = {}

    def dim(self, d: Any) -> int:
        return d if isinstance(d, int) else d.sym_infer(self.binds)

    def dims(self, shape: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(self.dim(d) for d in shape)

    def __call__(self, root: UOp) -> Any:
        for u in root.toposort(gate=lambda u: u not in self.values, enter_calls=False):
            self.values[u] = self.step(u)
        return self.values[root]

    def step(self, u: UOp) -> Any:
        op = u.op
        if op in (Ops.STORE, Ops.SINK, Ops.CALL, Ops.RANGE, Ops.NOOP, Ops.GROUP, Ops.FUNCTION):
            return None
        if op in GroupOp.Defines:
            return np.array(self.binds.get(u.arg.name, 0)) if u.arg.addrspace is AddrSpace.ALU else self.inputs[u]
        if op is Ops.CONST:
            return np.array(GARBAGE if u.is_invalid else u.arg)
        if op is Ops.STAGE:
            return np.arange(self.dim(u.shape[0]), dtype=np.int64)
        if op is Ops.AFTER:
            return self.after(u)
        if op is Ops.STACK:
            return np.stack([self.values[s] for s in u.src]) if u.src else np.array([])
        if op is Ops.REDUCE:
            x = self.values[u.src[0]]
            return _REDUCE[u.arg[0]].reduce(x, axis=tuple(range(u.arg[1])), dtype=x.dtype)
        if op is Ops.INDEX:
            return gather(self.values[u.src[0]], self.values[u.src[1]])
        if op in GroupOp.Movement:
            return self.move(u, self.values[u.src[0]], GARBAGE)
        if op is Ops.BITCAST:
            return np.ascontiguousarray(self.values[u.src[0]]).view(NP[u.arg])
        if op in GroupOp.ALU or op is Ops.CAST:
            return np.broadcast_to(alu(u, [self.values[s] for s in u.src]), self.dims(u.shape))
        if op in (Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.COPY):
            return self.values[u.src[0]]
        raise AssertionError(f"no evaluation of {op}")

    def move(self, u: UOp, x: Any, fill: Any) -> Any:
        if u.op is Ops.RESHAPE:
            return x.reshape(self.dims(u.marg))
        if u.op is Ops.PERMUTE:
            return x.transpose(u.arg)
        if u.op is Ops.EXPAND:
            return np.broadcast_to(x, self.dims(u.marg) + x.shape)
        if u.op is Ops.FLIP:
            return x[tuple(slice(None, None, -1) if f else slice(None) for f in u.arg)]
        box = tuple(slice(self.dim(o), self.dim(o) + (self.dim(n) if u.op is Ops.SHRINK else d))
                    for (o, n), d in zip(u.marg, x.shape))
        if u.op is Ops.SHRINK:
            return x[box]
        out = np.full(self.dims(u.shape), False if u.dtype is dtypes.bool else fill, x.dtype)
        out[box] = x
        return out

    def flat_indices(self, place: UOp, size: int) -> Any:
        chain = []
        while place.op in GroupOp.Movement or place.op is Ops.AFTER:
            chain.append(place)
            place = place.src[0]
        idx = np.arange(size).reshape(self.dims(place.shape))
        for v in reversed(chain):
            if v.op is not Ops.AFTER:
                idx = self.move(v, idx, -1)
        return idx

    def storage(self, place: UOp) -> tuple[UOp, np.ndarray]:
        """The innermost state of a place and what its whole storage holds."""
        while place.op in GroupOp.Movement:
            place = place.src[0]
        if place.op is Ops.AFTER:
            return place, self.contents[place]
        return place, np.asarray(self.values[place]).reshape(-1)

    def after(self, u: UOp) -> Any:
        if u.src[0].is_variable:
            return np.array(u.src[1].src[1].const_value)
        state, old = self.storage(u.src[0])
        new = old.copy()
        for dep in u.src[1:]:
            for store in dep.src if dep.op is Ops.GROUP else (dep,):
                idx = self.flat_indices(store.src[0], new.size)
                new[idx] = np.broadcast_to(self.values[store.src[1]], idx.shape)
        self.contents[u] = new
        return new[self.flat_indices(u.src[0], new.size)]


def gather(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    """x[i], 0 where i is out of range."""
    ok = (i >= 0) & (i < x.shape[0])
    out = x[np.where(ok, i, 0)]
    return np.where(ok.reshape(ok.shape + (1,) * (x.ndim - 1)), out, np.zeros((), x.dtype))


# *** kernels ***
class KernelRun:
    """One kernel AST on flat arrays; each RANGE is an axis."""

    def __init__(self, ast: UOp, buffers: list[np.ndarray], binds: dict[str, int]) -> None:
        self.buffers, self.binds = buffers, binds
        nodes = ast.toposort()
        self.ranges = [u for u in nodes if u.op is Ops.RANGE]
        self.values: dict[UOp, Any] = {}
        self.outs: dict[UOp, tuple[UOp, ...]] = {}  # RANGEs that each store runs over
        for e in nodes:
            if e.op is Ops.END:
                self.outs.update(dict.fromkeys(e.src[0].src if e.src[0].op is Ops.GROUP else e.src[:1], e.src[1:]))
        for u in nodes:
            self.values[u] = self.step(u)

    def size(self, r: UOp) -> int:
        return int(np.asarray(self.values[r.src[0]]))

    def step(self, u: UOp) -> Any:
        v, op = self.values, u.op
        if op is Ops.RANGE:
            shape = [1] * len(self.ranges)
            shape[self.ranges.index(u)] = -1
            return np.arange(self.size(u), dtype=np.int64).reshape(shape)
        if op is Ops.PARAM:
            return self.buffers[u.arg.slot] if u.arg.size is not None else np.array(self.binds[u.arg.name])
        if op is Ops.CONST:
            return np.array(0 if u.is_invalid else u.arg)
        if op is Ops.INDEX:
            return self.load(v[u.src[0]], u.src[1])
        if op is Ops.REDUCE:
            x = np.asarray(v[u.src[0]])
            if x.ndim == 0:
                x = x.reshape([1] * len(self.ranges))
            for r in u.src[1:]:
                axis = self.ranges.index(r)
                shape = list(x.shape)
                shape[axis] = self.size(r)
                x = _REDUCE[u.arg[0]].reduce(np.broadcast_to(x, shape), axis=axis, dtype=x.dtype, keepdims=True)
            return x
        if op is Ops.STORE:
            return self.store(u)
        if op in (Ops.END, Ops.SINK, Ops.GROUP):
            return None
        return alu(u, [v[s] for s in u.src])

    def gate_and_index(self, i: UOp) -> tuple[Any, Any]:
        if i._gated:
            return np.asarray(self.values[i.src[0]]), np.asarray(self.values[i.src[1]])
        return np.array(True), np.asarray(self.values[i])

    def load(self, buf: np.ndarray, i: UOp) -> Any:
        gate, idx = np.broadcast_arrays(*self.gate_and_index(i))
        assert ((idx >= 0) & (idx < buf.size))[gate].all(), f"{idx[gate].min()}..{idx[gate].max()} of {buf.size} loaded"
        return np.where(gate, buf[np.where(gate, idx, 0)], np.zeros((), buf.dtype))

    def store(self, u: UOp) -> None:
        place, value = u.src
        buf = self.buffers[place.src[0].arg.slot]
        gate, idx = self.gate_and_index(place.src[1])
        outs = self.outs.get(u, ())
        full = tuple(self.size(r) if r in outs else 1 for r in self.ranges)
        idx, value = np.broadcast_to(idx, full).reshape(-1), np.broadcast_to(self.values[value], full).reshape(-1)
        assert gate.all() and len(set(idx.tolist())) == idx.size, "an element is written twice"
        assert idx.min(initial=0) >= 0 and idx.max(initial=-1) < buf.size, "store out of bounds"
        buf[idx] = value.astype(buf.dtype)


def run_linear(linear: UOp, inputs: dict[UOp, np.ndarray],
               binds: dict[str, int] | None = None) -> dict[UOp, np.ndarray]:
    """Execute a LINEAR; storage that is not in ``inputs`` starts as garbage. Returns all storage."""
    memory = {k: v.copy() for k, v in inputs.items()}

    def buffer(u: UOp) -> np.ndarray:
        if u.op is Ops.SHRINK:
            (start, size), = u.marg
            return buffer(u.src[0])[start:start + size]
        if u.op is Ops.BITCAST:
            return buffer(u.src[0]).view(NP[u.arg])
        if u not in memory:
            memory[u] = np.full(u.arg.size, GARBAGE, NP[u.dtype])
        return memory[u]

    assert linear.op is Ops.LINEAR
    for call in linear.src:
        body, args = call.src[0], call.src[1:]
        if body.op is Ops.COPY:
            buffer(args[0])[:] = buffer(args[1])
            continue
        slots = sorted(u.arg.slot for u in body.toposort() if u.op is Ops.PARAM and u.arg.size is not None)
        assert slots == list(range(len(slots))), f"slots {slots}"
        values = dict(binds or {})
        for a in args[len(slots):]:
            if a.op is Ops.AFTER:
                values[a.src[0].arg.name] = a.src[1].src[1].const_value
        KernelRun(body, [buffer(a) for a in args[:len(slots)]], values)
    return memory
