"""Ways to build nodes: ranges, memory accesses, control, gates, calls.

Methods of the node class that only construct. Each checks what the node's grammar cannot say (``spec/`` checks the
rest); none looks below its operands. What concerns storage is in ``storage.py``.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Self

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.uop.fields import UNSET, NodeFields, sint
from tinyhost.uop.info import BufferizeOpts, CallInfo


def _strong(dtype: DType) -> DType | None:
    return None if dtype in dtypes.weaks else dtype


class StructureMixin(NodeFields):
    """Constructors of nodes over nodes."""

    __slots__ = ()

    # *** ranges and launch indices ***
    @classmethod
    def range(cls, end: sint, axis_id: Any, axis_type: AxisType = AxisType.WEAK, *arg: Any,
              dtype: DType = dtypes.weakint, src: tuple[Self, ...] = (), **kwargs: Any) -> Self:
        """A loop variable from 0 to ``end`` - 1; its arg is (axis id, sub ids ..., kind)."""
        ids = axis_id if isinstance(axis_id, tuple) else (axis_id,)
        return cls(Ops.RANGE, (cls._const(end, _strong(dtype)), *src), (*ids, axis_type, *arg), **kwargs)

    @classmethod
    def loop(cls, axis_id: int, *arg: Any) -> Self:
        """An unbounded loop, closed by END(body, loop, condition)."""
        return cls(Ops.RANGE, (cls(Ops.NOOP),), (axis_id, AxisType.WEAK, *arg))

    @classmethod
    def special(cls, end: sint, name: str, dtype: DType = dtypes.weakint) -> Self:
        """A hardware launch index below ``end``."""
        return cls(Ops.SPECIAL, (cls._const(end, _strong(dtype)),), name)

    # *** memory and structure ***
    def index(self, *srcs: Any, **kwargs: Any) -> Self:
        """Element or gather along the leading axes; Python ints become literals, None is skipped."""
        idx = tuple(self._const(s) for s in srcs if s is not None)
        if self.op is Ops.STACK and len(idx) == 1 and idx[0].op is Ops.CONST and isinstance(idx[0].arg, int):
            return self.src[idx[0].arg]
        return type(self)(Ops.INDEX, (self, *idx), **kwargs)

    def load(self, *src: Self, **kwargs: Any) -> Self:
        """Read this place; ``src`` is () or (value where the gate is false, gate)."""
        return type(self)(Ops.LOAD, (self, *src), **kwargs)

    def store(self, src: Any, gate: Self | None = None, **kwargs: Any) -> Self:
        """Write to this place."""
        value = src if isinstance(src, StructureMixin) else self.const_like(src)
        return type(self)(Ops.STORE, (self, value) if gate is None else (self, value, gate), **kwargs)

    def end(self, *src: Self) -> Self:
        """Close the ranges ``src`` around this effect."""
        return type(self)(Ops.END, (self, *src)) if src else self

    def after(self, *src: Self, **kwargs: Any) -> Self:
        """This value as of after ``src``."""
        return type(self)(Ops.AFTER, (self, *src), **kwargs) if src else self

    def barrier(self, *src: Self) -> Self:
        """A workgroup barrier after this and ``src``."""
        return type(self)(Ops.BARRIER, (self, *src))

    def reduce(self, *src: Self, arg: Any, **kwargs: Any) -> Self:
        """Combine over the ranges ``src``; a bare op means the ranged form."""
        return type(self)(Ops.REDUCE, (self, *src), arg if isinstance(arg, tuple) else (arg, 0), **kwargs)

    def gettuple(self, idx: int) -> Self:
        """One value of a FUNCTION or TUPLE."""
        return type(self)(Ops.GETTUPLE, (self,), idx)

    def f(self, op: Ops, **kwargs: Any) -> Self:
        """``op`` with this node as only source."""
        return type(self)(op, (self, *kwargs.pop("src", ())), **kwargs)

    def contiguous(self, arg: Any = None) -> Self:
        """Materialise here; ``arg`` may hold optimiser actions for the kernel that does."""
        if arg is None and (self.op is Ops.CONTIGUOUS or self.has_buffer_identity()):
            return self
        return type(self)(Ops.CONTIGUOUS, (self,), arg)

    def contiguous_backward(self) -> Self:
        """The same value; its gradient is materialised."""
        return type(self)(Ops.CONTIGUOUS_BACKWARD, (self,))

    def detach(self) -> Self:
        """The same value; no gradient flows."""
        return type(self)(Ops.DETACH, (self,))

    def bufferize(self, *ranges: Self, arg: BufferizeOpts) -> Self:
        """Make storage for this value over ``ranges``."""
        return type(self)(Ops.STAGE, (self, *ranges), arg)

    def copy_to_device(self, device: str | tuple[str, ...]) -> Self:
        """The value on another device.

        Raises:
            RuntimeError: the dtype is weak, so the value has no storage form.
        """
        if self.dtype in dtypes.weaks:
            raise RuntimeError(f"cannot create storage for weak dtype {self.dtype}: cast to a concrete dtype first")
        return type(self)(Ops.COPY, (self,), device)

    def set(self, val: Any, end: Any = ()) -> Self:
        """The storage under this place, after ``val`` is written to it."""
        return self.src[0].after(self.store(val).end(*(end if isinstance(end, (tuple, list)) else (end,))))

    def ins(self, arg: Any, dtype: DType | None = None, src: tuple[Self, ...] | None = None, tag: Any = UNSET) -> Self:
        """A machine instruction in place of this node."""
        operands, tag = self.src if src is None else src, self.tag if tag is UNSET else tag
        return type(self)(Ops.INS, operands, (arg, dtype or self.dtype), tag)

    def contract(self, *rngs: Self) -> Self:
        """A STACK of the value at every index of the literal ``rngs``, the last one running fastest."""
        places = itertools.product(*[range(int(r.bounds[1]) + 1) for r in rngs])
        lanes = [self.substitute({r: self._const(i) for r, i in zip(rngs, at, strict=True)}) for at in places]
        return type(self)(Ops.STACK, tuple(lanes))

    def broadcast(self, count: int) -> Self:
        """A STACK of ``count`` times this value; the value itself for one."""
        return self if count == 1 else type(self)(Ops.STACK, (self,) * count)

    @classmethod
    def wmma(cls, a: Self, b: Self, acc: Self, dims: tuple[int, int, int], device: str, threads: int,
             tc_upcast_axes: Any = None) -> Self:
        """A matrix multiply-accumulate of ``dims`` (N, M, K) on the tensor cores of ``device``."""
        return cls(Ops.WMMA, (a, b, acc), (dims, a.dtype, device, threads, tc_upcast_axes))

    @classmethod
    def custom_function(cls, name: str, *src: Self) -> Self:
        """The body of a call that the engine runs by name."""
        return cls(Ops.CUSTOM_FUNCTION, src, name)

    # *** gates ***
    def valid(self, cond: Self) -> Self:
        """This index where ``cond`` holds, nowhere otherwise."""
        return type(self)(Ops.WHERE, (cond, self, self.invalid()))

    @property
    def _gated(self) -> bool:
        return self.op is Ops.WHERE and self.src[2].is_invalid

    def get_idx(self) -> Self:
        """The index without its gate."""
        if self.op is Ops.STACK:
            return type(self)(Ops.STACK, tuple(s.get_idx() for s in self.src))
        return self.src[1] if self._gated else self

    def get_valid(self) -> Self:
        """The gate of the index, true if there is none."""
        if self.op is Ops.STACK:
            return type(self)(Ops.STACK, tuple(s.get_valid() for s in self.src))
        if self._gated:
            return self.src[0]
        return self._const(not self.is_invalid)

    # *** calls ***
    def call(self, *args: Self, ret_dtype: DType | None = None, grad_fxn: Callable[..., Any] | None = None,
             name: str | None = None, precompile: bool = False, precompile_backward: bool = False,
             aux: Any = None) -> Self:
        """Call this body (or address, with ``ret_dtype``) with ``args``; a value becomes a FUNCTION over a TUPLE."""
        if ret_dtype is not None:
            return type(self)(Ops.CALL, (self, *args), ret_dtype)
        info = CallInfo(grad_fxn, name, precompile, precompile_backward, aux)
        if self.op in GroupOp.OpaqueBody:
            return type(self)(Ops.CALL, (self, *args), info)
        body = self if self.op is Ops.TUPLE else type(self)(Ops.TUPLE, (self,))
        return type(self)(Ops.FUNCTION, (body, *args), info)
