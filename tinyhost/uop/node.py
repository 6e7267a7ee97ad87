"""UOp: the one immutable, interned node type for everything that is computed.

Takes (op, src, arg, tag); gives the single node with that identity in this process, so ``is`` and ``==`` mean structural
equality. Properties (dtype, shape, device, bounds, ranges, key ...) are derived on demand, cached in slots and filled by
an explicit stack, so graphs of any depth work. Threads may build the same nodes at once: each gets the same object.
What an op means is in ``semantics.py``; the tables behind the properties are in ``derive.py``.
"""
from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, Iterator, Sequence, TypeVar

from tinyhost.dtype import ConstFloat, DType, Invalid, dtypes, strong_dtype, to_dtype
from tinyhost.helpers import prod
from tinyhost.mixin import OpMixin
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop import derive
from tinyhost.uop.info import BufferizeOpts, CallInfo, ParamArg
from tinyhost.uop.services import registered, service

T = TypeVar("T")
sint = Any  # int or symbolic UOp: a shape entry, a bound, an offset

_UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()
_lock = threading.RLock()  # re-entrant: a weak-reference callback may run inside the critical section
_table: dict[Any, "_NodeRef"] = {}


class _NodeRef(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("key",)
    key: Any


def _drop(ref: _NodeRef) -> None:
    """Remove a dead node's entry, unless a new node already took its place."""
    with _lock:
        if _table.get(ref.key) is ref:
            del _table[ref.key]


def interned_count() -> int:
    """How many nodes are alive in this process."""
    return len(_table)


def _normal_arg(arg: Any) -> Any:
    """Floats intern by bits (nan equals nan, -0.0 differs from 0.0); numpy scalars become Python numbers."""
    kind = type(arg)
    if kind is float:
        return ConstFloat(arg)
    if kind in _PLAIN or kind is ConstFloat:
        return arg
    if hasattr(arg, "dtype") and hasattr(arg, "item") and getattr(arg, "shape", None) == ():
        return _normal_arg(arg.item())
    return arg


_PLAIN = frozenset({int, bool, str, tuple, type(None), DType, ParamArg, bytes})


class UOp(OpMixin):
    """One node: ``op`` over ``src`` with the literal ``arg``; ``tag`` only separates otherwise equal nodes."""

    __slots__ = ("op", "src", "arg", "tag", "_dtype_", "_shape_", "_device_", "_addrspace_", "_ranges_", "_bounds_",
                 "_key_", "__weakref__")
    op: Ops
    src: tuple[UOp, ...]
    arg: Any
    tag: Any

    def __new__(cls, op: Ops, src: tuple[UOp, ...] = (), arg: Any = None, tag: Any = None) -> UOp:
        kind = type(arg)
        if kind not in _PLAIN:
            arg = _normal_arg(arg)
            kind = type(arg)
        key = (op, src, arg, tag, kind)
        ref = _table.get(key)
        if ref is not None and (node := ref()) is not None:
            return node  # type: ignore[no-any-return]
        self = object.__new__(cls)
        self.op, self.src, self.arg, self.tag = op, src, arg, tag
        self._dtype_ = self._shape_ = self._device_ = self._addrspace_ = _UNSET
        self._ranges_ = self._bounds_ = self._key_ = _UNSET
        new = _NodeRef(self, _drop)
        new.key = key
        with _lock:
            ref = _table.get(key)
            if ref is not None and (node := ref()) is not None:
                return node  # type: ignore[no-any-return]
            _table[key] = new
        return self

    # identity is equality: mixins leave __eq__ alone, and so does this class
    __hash__ = object.__hash__

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: Any) -> UOp:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_flat, (_to_flat(self),)

    def __repr__(self) -> str:
        return str(service("repr")(self))

    def replace(self, **kwargs: Any) -> UOp:
        """The node with op, src, arg or tag exchanged."""
        new = UOp(kwargs.pop("op", self.op), kwargs.pop("src", self.src), kwargs.pop("arg", self.arg),
                  kwargs.pop("tag", self.tag))
        if kwargs:
            raise TypeError(f"unused kwargs in replace {sorted(kwargs)}: only op, src, arg and tag can be replaced")
        return new

    def rtag(self, tag: Any = True) -> UOp:
        """The node with another tag."""
        return UOp(self.op, self.src, self.arg, tag)

    # *** derived properties ***
    def _fill(self, slot: str, rule: Callable[[UOp], Any], data_src: Callable[[UOp], tuple[UOp, ...]] | None = None) -> Any:
        """Compute ``slot`` for this node and whatever below lacks it, sources first, without recursion."""
        for s in self.src if data_src is None else data_src(self):
            if getattr(s, slot) is _UNSET:
                break
        else:  # the common case: everything below is known
            value = rule(self)
            setattr(self, slot, value)
            return value
        stack = [self]
        while stack:
            u = stack[-1]
            if getattr(u, slot) is not _UNSET:
                stack.pop()
                continue
            missing = [s for s in (u.src if data_src is None else data_src(u)) if getattr(s, slot) is _UNSET]
            if missing:
                stack += missing
            else:
                setattr(u, slot, rule(u))
                stack.pop()
        return getattr(self, slot)

    @property
    def dtype(self) -> DType:
        """Element type of the value."""
        d = self._dtype_
        return self._fill("_dtype_", _dtype_rule) if d is _UNSET else d

    @property
    def _shape(self) -> tuple[sint, ...] | None:
        s = self._shape_
        return self._fill("_shape_", derive.shape_from_uop, _without_body) if s is _UNSET else s

    @property
    def shape(self) -> tuple[sint, ...]:
        """Dimensions, each an int or a symbolic node.

        Raises:
            RuntimeError: the op has no shape.
        """
        if (s := self._shape) is None:
            raise RuntimeError(f"{self.op} has no shape")
        return s

    @property
    def _device(self) -> str | tuple[str, ...] | None:
        d = self._device_
        return self._fill("_device_", derive.device_from_uop, _without_body) if d is _UNSET else d

    @property
    def device(self) -> str | tuple[str, ...] | None:
        """Device of the value, a tuple when it lies on several, None when nothing fixes it."""
        return self._device

    @property
    def _addrspace(self) -> AddrSpace | None:
        a = self._addrspace_
        return self._fill("_addrspace_", derive.addrspace_from_uop, _without_body) if a is _UNSET else a

    @property
    def addrspace(self) -> AddrSpace | None:
        """Address space of a value or place."""
        return self._addrspace

    @property
    def _ranges(self) -> dict[UOp, None]:
        r = self._ranges_
        return self._fill("_ranges_", derive.ranges_from_uop) if r is _UNSET else r

    @property
    def ranges(self) -> dict[UOp, None]:
        """Open RANGEs the value depends on, in order of first use (shared: do not change it)."""
        return self._ranges

    @property
    def ended_ranges(self) -> tuple[UOp, ...]:
        """Sources whose ranges stop here."""
        return derive.ended_by(self)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Sound (smallest, largest) value."""
        b = self._bounds_
        return self._fill("_bounds_", service("min_max"), _without_body) if b is _UNSET else b

    @property
    def vmin(self) -> Any:
        """Lower bound of the value."""
        return self.bounds[0]

    @property
    def vmax(self) -> Any:
        """Upper bound of the value."""
        return self.bounds[1]

    @property
    def key(self) -> bytes:
        """Hash of the whole graph below: equal in every process, whatever the order of construction."""
        k = self._key_
        return self._fill("_key_", _key_rule) if k is _UNSET else k

    @property
    def tuplize(self) -> tuple[Any, ...]:
        """A total order of nodes that does not depend on the process: op, then small arguments, then key."""
        op = self.op
        if op is Ops.RANGE:
            return op.value, self.arg[:-1], self.key
        if op is Ops.PARAM or op is Ops.BUFFER:
            return op.value, (self.arg.slot,), self.key
        return op.value, (), self.key

    @property
    def axis(self) -> int | None:
        """Axis along which the value is split over devices."""
        return derive.axis_from_uop(self) if isinstance(self._device, tuple) else None

    # *** literals ***
    @staticmethod
    def const(b: Any, dtype: DType | None = None) -> UOp:
        """A literal: bare (weak) without ``dtype``, else CAST over the literal. A tuple becomes a STACK."""
        if isinstance(b, UOp):
            return b if dtype is None or b.dtype is dtype else b.cast(dtype)
        if isinstance(b, tuple):
            return UOp(Ops.STACK, tuple(UOp.const(x, dtype) for x in b))
        if b is Invalid or dtype is None:
            return UOp(Ops.CONST, (), b)
        return UOp.cconst(b, dtype)

    @staticmethod
    def cconst(b: Any, dtype: DType) -> UOp:
        """A strong literal: CAST(dtype) over CONST; a weak dtype or bool gives the bare literal of that kind."""
        lit = UOp(Ops.CONST, (), dtype.const(b))
        return lit if lit.dtype is dtype else UOp(Ops.CAST, (lit,), dtype)

    def const_like(self, b: Any, dtype: DType | None = None) -> UOp:
        """The literal ``b`` with this value's dtype and shape."""
        c = UOp.const(b, dtype or self.dtype)
        return c.expand(self.shape) if self._shape else c

    def vconst_like(self, b: Any) -> UOp:
        """The literal ``b`` as a STACK of this value's lanes."""
        c = UOp.const(b, self.dtype)
        return UOp(Ops.STACK, (c,) * self.shape[0]) if self._shape else c

    @staticmethod
    def invalid() -> UOp:
        """The value of nowhere: gates a load or store off."""
        return UOp(Ops.CONST, (), Invalid)

    @property
    def is_const(self) -> bool:
        """Whether this is a literal, bare or under its CAST."""
        return self.op is Ops.CONST or (self.op is Ops.CAST and self.src[0].op is Ops.CONST)

    @property
    def const_value(self) -> Any:
        """The Python value of a literal (at its dtype's kind, not wrapped).

        Raises:
            ValueError: the node is not a literal.
        """
        if self.op is Ops.CONST:
            return self.arg
        if self.op is Ops.CAST and self.src[0].op is Ops.CONST:
            return self.src[0].arg if self.src[0].arg is Invalid else self.arg.const(self.src[0].arg)
        raise ValueError(f"{self.op} is not a literal")

    @property
    def is_invalid(self) -> bool:
        """Whether this is the literal Invalid."""
        return self.op is Ops.CONST and self.arg is Invalid

    # *** hooks of the mixins ***
    def alu(self, op: Ops, *src: UOp) -> UOp:
        """``op`` over this value and ``src``."""
        return UOp(op, (self, *src))

    def ufix(self, x: Any) -> UOp:
        """A node from ``x``; Python numbers become weak literals."""
        return x if isinstance(x, UOp) else UOp.const(x)

    @classmethod
    def _const(cls, b: Any, dtype: DType | None = None, device: Any = None) -> UOp:
        return UOp.const(b, dtype)

    def cast(self, dtype: Any) -> UOp:
        """Value conversion; the same dtype is the value itself."""
        dt = dtype if type(dtype) is DType else to_dtype(dtype)
        return self if self.dtype is dt else UOp(Ops.CAST, (self,), dt)

    def bitcast(self, dtype: Any) -> UOp:
        """The same bytes read as another dtype."""
        dt = dtype if type(dtype) is DType else to_dtype(dtype)
        return self if self.dtype is dt else UOp(Ops.BITCAST, (self,), dt)

    @staticmethod
    def shape_operand(dims: tuple[sint, ...]) -> UOp:
        """The node that spells ``dims``: a scalar for one dimension, a STACK otherwise."""
        nodes = tuple(UOp(Ops.CONST, (), d) if isinstance(d, int) else d.simplify() for d in dims)
        return nodes[0] if len(nodes) == 1 else UOp(Ops.STACK, nodes)

    def _mop(self, op: Ops, arg: Any) -> UOp:
        """A movement op from Python tuples: shape, order, flags, or (offset, size) pairs."""
        if op is Ops.PERMUTE or op is Ops.FLIP:
            return UOp(op, (self,), tuple(arg))
        if op is Ops.PAD or op is Ops.SHRINK:
            offsets, sizes = tuple(o for o, _ in arg), tuple(n for _, n in arg)
            return UOp(op, (self, self.shape_operand(offsets), self.shape_operand(sizes)))
        return UOp(op, (self, self.shape_operand(tuple(arg))))

    @property
    def marg(self) -> Any:
        """The argument of a movement op as Python tuples, as ``_mop`` takes it."""
        if self.op in (Ops.PERMUTE, Ops.FLIP):
            return self.arg
        if self.op in (Ops.PAD, Ops.SHRINK):
            return tuple(zip(derive.shape_of_operand(self.src[1]), derive.shape_of_operand(self.src[2])))
        if self.op in (Ops.RESHAPE, Ops.EXPAND):
            return derive.shape_of_operand(self.src[1])
        raise ValueError(f"{self.op} is not a movement op")

    @property
    def as_shape(self) -> tuple[sint, ...]:
        """The dimensions this shape operand spells."""
        return derive.shape_of_operand(self)

    def _rop(self, op: Ops, axes: tuple[int, ...]) -> UOp:
        """Reduce the leading ``axes`` with ``op``; they leave the shape."""
        return UOp(Ops.REDUCE, (self,), (op, len(axes)))

    @classmethod
    def _stack(cls, items: Sequence[UOp]) -> UOp:
        return UOp(Ops.STACK, tuple(items))

    @classmethod
    def _iota(cls, size: sint) -> UOp:
        """0, 1 ... size - 1: a stage whose value is its own index, so it never needs storage."""
        r = UOp.range(size, 0, AxisType.PLACEHOLDER)
        return UOp(Ops.STAGE, (r, r), BufferizeOpts(device=None))

    def _literal(self) -> Any:
        return self.arg if self.op is Ops.CONST else None

    # *** ranges and launch indices ***
    @staticmethod
    def range(end: sint, axis_id: Any, axis_type: AxisType = AxisType.WEAK, *more: Any, src: tuple[UOp, ...] = ()) -> UOp:
        """A loop variable from 0 to ``end`` - 1; its arg is (axis id, sub ids ..., kind)."""
        arg = (*axis_id, axis_type, *more) if isinstance(axis_id, tuple) else (axis_id, axis_type, *more)
        return UOp(Ops.RANGE, (UOp.const(end), *src), arg)

    @staticmethod
    def loop(axis_id: int, *arg: Any) -> UOp:
        """An unbounded loop, closed by END(body, loop, condition)."""
        return UOp(Ops.RANGE, (UOp(Ops.NOOP),), (axis_id, AxisType.WEAK, *arg))

    @staticmethod
    def special(end: sint, name: str) -> UOp:
        """A hardware launch index below ``end``."""
        return UOp(Ops.SPECIAL, (UOp.const(end),), name)

    # *** memory and structure ***
    def index(self, *srcs: Any) -> UOp:
        """Element or gather along the leading axes; Python ints become literals, None is skipped."""
        idx = tuple(UOp.const(s) for s in srcs if s is not None)
        if self.op is Ops.STACK and len(idx) == 1 and idx[0].op is Ops.CONST and isinstance(idx[0].arg, int):
            return self.src[idx[0].arg]
        return UOp(Ops.INDEX, (self, *idx))

    def load(self, *src: UOp) -> UOp:
        """Read this place; ``src`` is () or (value where the gate is false, gate)."""
        return UOp(Ops.LOAD, (self, *src))

    def store(self, src: Any, gate: UOp | None = None) -> UOp:
        """Write to this place."""
        value = src if isinstance(src, UOp) else self.const_like(src)
        return UOp(Ops.STORE, (self, value) if gate is None else (self, value, gate))

    def end(self, *src: UOp) -> UOp:
        """Close the ranges ``src`` around this effect."""
        return UOp(Ops.END, (self, *src)) if src else self

    def after(self, *src: UOp) -> UOp:
        """This value as of after ``src``."""
        return UOp(Ops.AFTER, (self, *src)) if src else self

    def barrier(self, *src: UOp) -> UOp:
        """A workgroup barrier after this and ``src``."""
        return UOp(Ops.BARRIER, (self, *src))

    def reduce(self, *src: UOp, arg: Any) -> UOp:
        """Combine over the ranges ``src``; a bare op means the ranged form."""
        return UOp(Ops.REDUCE, (self, *src), arg if isinstance(arg, tuple) else (arg, 0))

    def sink(*srcs: UOp | None, arg: Any = None, tag: Any = None) -> UOp:
        """A root over effects."""
        return UOp(Ops.SINK, tuple(s for s in srcs if s is not None), arg, tag)

    def group(*srcs: UOp | None) -> UOp:
        """An unordered merge of effects."""
        real = tuple(s for s in srcs if s is not None)
        return real[0] if len(real) == 1 else UOp(Ops.GROUP, real)

    def maketuple(*srcs: UOp) -> UOp:
        """Several values as one body."""
        return UOp(Ops.TUPLE, srcs)

    def gettuple(self, idx: int) -> UOp:
        """One value of a FUNCTION or TUPLE."""
        return UOp(Ops.GETTUPLE, (self,), idx)

    def f(self, op: Ops, **kwargs: Any) -> UOp:
        """``op`` with this node as only source."""
        return UOp(op, (self, *kwargs.pop("src", ())), **kwargs)

    def contiguous(self, arg: Any = None) -> UOp:
        """Materialise here; ``arg`` may hold optimiser actions for the kernel that does."""
        if arg is None and (self.op is Ops.CONTIGUOUS or self.has_buffer_identity()):
            return self
        return UOp(Ops.CONTIGUOUS, (self,), arg)

    def contiguous_backward(self) -> UOp:
        """The same value; its gradient is materialised."""
        return UOp(Ops.CONTIGUOUS_BACKWARD, (self,))

    def detach(self) -> UOp:
        """The same value; no gradient flows."""
        return UOp(Ops.DETACH, (self,))

    def bufferize(self, *ranges: UOp, arg: BufferizeOpts) -> UOp:
        """Make storage for this value over ``ranges``."""
        return UOp(Ops.STAGE, (self, *ranges), arg)

    def copy_to_device(self, device: str | tuple[str, ...]) -> UOp:
        """The value on another device.

        Raises:
            RuntimeError: the dtype is weak, so the value has no storage form.
        """
        if self.dtype in dtypes.weaks:
            raise RuntimeError(f"cannot create storage for weak dtype {self.dtype}: cast to a concrete dtype first")
        return UOp(Ops.COPY, (self,), device)

    def set(self, val: Any, end: Any = ()) -> UOp:
        """The storage under this place, after ``val`` is written to it."""
        return self.src[0].after(self.store(val).end(*(end if isinstance(end, (tuple, list)) else (end,))))

    def ins(self, arg: Any, dtype: DType | None = None, src: tuple[UOp, ...] | None = None, tag: Any = _UNSET) -> UOp:
        """A machine instruction in place of this node."""
        return UOp(Ops.INS, self.src if src is None else src, (arg, dtype or self.dtype), self.tag if tag is _UNSET else tag)

    # *** gates ***
    def valid(self, cond: UOp) -> UOp:
        """This index where ``cond`` holds, nowhere otherwise."""
        return UOp(Ops.WHERE, (cond, self, UOp.invalid()))

    @property
    def _gated(self) -> bool:
        return self.op is Ops.WHERE and self.src[2].is_invalid

    def get_idx(self) -> UOp:
        """The index without its gate."""
        if self.op is Ops.STACK:
            return UOp(Ops.STACK, tuple(s.get_idx() for s in self.src))
        return self.src[1] if self._gated else self

    def get_valid(self) -> UOp:
        """The gate of the index, true if there is none."""
        if self.op is Ops.STACK:
            return UOp(Ops.STACK, tuple(s.get_valid() for s in self.src))
        if self._gated:
            return self.src[0]
        return UOp.const(not self.is_invalid)

    # *** storage ***
    @staticmethod
    def new_buffer(device: str | tuple[str, ...], size: int, dtype: DType, num: int | None = None) -> UOp:
        """A new buffer of ``size`` elements on ``device``."""
        if not isinstance(size, int):
            raise TypeError(f"new_buffer size must be a concrete int, got {size}")
        if dtype in dtypes.weaks:
            raise RuntimeError(f"cannot create storage for weak dtype {dtype}: cast to a concrete dtype first")
        slot = _next_buffer_slot() if num is None else num
        return UOp(Ops.BUFFER, (), ParamArg(slot, dtype, size, device=device))

    @staticmethod
    def param(slot: int, dtype: DType, shape: Any = None, device: Any = None, vmin_vmax: tuple[Any, Any] | None = None,
              multiple_of: int | None = None, name: str | None = None, addrspace: AddrSpace = AddrSpace.GLOBAL,
              volatile: bool = False) -> UOp:
        """A call argument: a scalar without ``shape``, else flat storage of the largest shape viewed as ``shape``."""
        if dtype in dtypes.weaks and addrspace is not AddrSpace.ALU:
            raise RuntimeError(f"cannot create param for weak dtype {dtype}: cast to a concrete dtype first")
        dims = () if shape is None else shape if isinstance(shape, tuple) else (shape,)
        size = int(prod(d if isinstance(d, int) else d.vmax for d in dims)) if dims else None
        p = UOp(Ops.PARAM, (), ParamArg(slot, dtype, size, vmin_vmax, multiple_of, name, addrspace, device, volatile))
        return p.view_as(dims) if dims else p

    def view_as(self, shape: tuple[sint, ...]) -> UOp:
        """This flat storage seen as ``shape``: the largest shape, then the symbolic part of it."""
        most = tuple(d if isinstance(d, int) else int(d.vmax) for d in shape)
        u = self if most == self.shape else self._mop(Ops.RESHAPE, most)
        return u if most == tuple(shape) else u._mop(Ops.SHRINK, tuple((0, d) for d in shape))

    def param_like(self, slot: int) -> UOp:
        """A PARAM that takes a value like this one."""
        if self.is_variable or self.is_bound_var:
            var = self.src[0] if self.op is Ops.AFTER else self
            a = var.arg
            return UOp(Ops.PARAM, (), ParamArg(slot, a.dtype, a.size, a.vmin_vmax, a.multiple_of, f"p{slot}", a.addrspace))
        return UOp.param(slot, self.dtype, self.shape or None, self.device)

    @staticmethod
    def placeholder(shape: tuple[int, ...], dtype: DType, slot: int | None = None,
                    addrspace: AddrSpace = AddrSpace.GLOBAL, device: Any = None, volatile: bool = False) -> UOp:
        """Storage inside a kernel: a PARAM in global memory, a BUFFER in workgroup memory or registers."""
        if addrspace is not AddrSpace.GLOBAL and device is not None:
            raise ValueError(f"{addrspace} storage belongs to its kernel and has no device, got {device!r}")
        arg = ParamArg(_next_buffer_slot() if slot is None else slot, strong_dtype(dtype), int(prod(shape)),
                       addrspace=addrspace, device=device, volatile=volatile)
        u = UOp(Ops.PARAM if addrspace is AddrSpace.GLOBAL else Ops.BUFFER, (), arg)
        return u._mop(Ops.RESHAPE, shape) if len(shape) > 1 else u

    def placeholder_like(self, slot: int, addrspace: AddrSpace = AddrSpace.GLOBAL) -> UOp:
        """A placeholder of this value's largest shape and dtype."""
        return UOp.placeholder(self.max_shape, self.dtype, slot, addrspace)

    @property
    def base(self) -> UOp:
        """The value under movement ops and DETACH."""
        u = self
        while u.op in _VIEWS:
            u = u.src[0]
        return u

    @property
    def without_after(self) -> UOp:
        """The value under one AFTER."""
        return self.src[0] if self.op is Ops.AFTER else self

    @property
    def buf_uop(self) -> UOp:
        """The storage a place or view belongs to."""
        u = self
        while u.op not in _STORAGE:
            if not u.src:
                raise RuntimeError(f"no storage under {self.op}: reached {u.op}")
            u = u.src[0]
        return u

    def has_buffer_identity(self, after_ok: bool = False) -> bool:
        """Whether the value is a whole buffer, at most reshaped."""
        u = self
        while u.op in (Ops.RESHAPE, Ops.UNSHARD, Ops.MSELECT) or (after_ok and u.op is Ops.AFTER):
            u = u.src[0]
        return u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.GLOBAL or (u.op is Ops.PARAM and u.arg.size is not None)

    @property
    def buffer(self) -> Any:
        """The storage behind a BUFFER or a contiguous view of one."""
        return service("buffer")(self)

    @property
    def realized(self) -> Any:
        """The allocated storage of this value, None when there is none yet."""
        fn = registered("buffer")
        if fn is None or not self.has_buffer_identity():
            return None
        buf = fn(self)
        return buf if buf is not None and buf.is_allocated() else None

    @property
    def is_realized(self) -> bool:
        """Whether this value's bytes exist."""
        return self.realized is not None

    @staticmethod
    def from_buffer(opaque: Any, device: Any = None) -> UOp:
        """The BUFFER node of existing storage."""
        return service("from_buffer")(opaque, device)  # type: ignore[no-any-return]

    # *** variables ***
    @staticmethod
    def variable(name: str, min_val: Any, max_val: Any, dtype: DType = dtypes.weakint, multiple_of: int = 1,
                 param: bool = False) -> UOp:
        """A symbolic integer between ``min_val`` and ``max_val``."""
        if min_val > max_val:
            raise ValueError(f"variable {name!r} has an empty range {min_val} to {max_val}")
        arg = ParamArg(-1, dtype, None, (min_val, max_val), None if multiple_of == 1 else multiple_of, name, AddrSpace.ALU)
        return UOp(Ops.PARAM if param else Ops.BUFFER, (), arg)

    @property
    def is_variable(self) -> bool:
        """Whether this is an unbound symbolic integer."""
        return self.op in GroupOp.Defines and self.arg.addrspace is AddrSpace.ALU

    @property
    def is_bound_var(self) -> bool:
        """Whether this is a symbolic integer with its value."""
        return self.op is Ops.AFTER and len(self.src) == 2 and self.src[0].is_variable and self.src[1].op is Ops.STORE

    @property
    def expr(self) -> str:
        """Name of a variable."""
        return str((self.src[0] if self.op is Ops.AFTER else self).arg.name)

    def bind(self, val: Any) -> UOp:
        """This variable with a value."""
        if not self.is_variable:
            raise ValueError(f"only a variable can be bound, got {self.op}")
        if isinstance(val, UOp):
            return self.after(self.store(val))
        lo, hi = self.arg.vmin_vmax
        assert lo <= val <= hi, f"bind {val} not in range [{lo}, {hi}] of variable {self.arg.name!r}"
        assert val % (self.arg.multiple_of or 1) == 0, \
            f"bind {val} is no multiple of {self.arg.multiple_of} as variable {self.arg.name!r} demands"
        return self.after(self.store(UOp.const(val)))

    def unbind(self) -> tuple[UOp, int]:
        """The variable and its value."""
        if not self.is_bound_var:
            raise ValueError(f"can't unbind {self.op}: it is not a bound variable")
        return self.src[0], self.src[1].src[1].const_value

    def unbind_all(self) -> tuple[UOp, dict[UOp, int]]:
        """The graph with bound variables made free, and their values."""
        found = {u: u.unbind() for u in self.toposort() if u.is_bound_var}
        return self.substitute({u: v for u, (v, _) in found.items()}), dict(found.values())

    def variables(self) -> list[UOp]:
        """Variables of the graph, sorted by name."""
        return sorted({u for u in self.toposort() if u.is_variable}, key=lambda v: v.arg.name)

    # *** calls ***
    def call(self, *args: UOp, ret_dtype: DType | None = None, grad_fxn: Callable[..., Any] | None = None,
             name: str | None = None, precompile: bool = False, precompile_backward: bool = False, aux: Any = None) -> UOp:
        """Call this body (or address, with ``ret_dtype``) with ``args``; a value body becomes a FUNCTION over a TUPLE."""
        if ret_dtype is not None:
            return UOp(Ops.CALL, (self, *args), ret_dtype)
        info = CallInfo(grad_fxn, name, precompile, precompile_backward, aux)
        if self.op in GroupOp.OpaqueBody:
            return UOp(Ops.CALL, (self, *args), info)
        body = self if self.op is Ops.TUPLE else UOp(Ops.TUPLE, (self,))
        return UOp(Ops.FUNCTION, (body, *args), info)

    # *** walks ***
    def toposort(self, gate: Callable[[UOp], bool] | None = None, enter_calls: bool = True) -> dict[UOp, None]:
        """Nodes below, sources first, left to right. A node whose gate is false is absent with what only it reaches."""
        out: dict[UOp, None] = {}
        stack: list[tuple[UOp, bool]] = [(self, False)]
        pop, push = stack.pop, stack.append
        while stack:
            u, done = pop()
            if done:
                out[u] = None
            elif u not in out and (gate is None or gate(u)):
                src = u.src
                if not src:
                    out[u] = None
                    continue
                push((u, True))
                if not enter_calls and u.op in _CALLS and not _is_address_call(u):
                    src = src[1:]
                for s in reversed(src):
                    if s not in out:
                        push((s, False))
        return out

    @property
    def backward_slice(self) -> dict[UOp, None]:
        """Everything below this node, without it."""
        out = self.toposort()
        del out[self]
        return out

    @property
    def backward_slice_with_self(self) -> dict[UOp, None]:
        """This node, then everything below it."""
        return {self: None, **self.backward_slice}

    def op_in_backward_slice_with_self(self, *ops: Ops) -> bool:
        """Whether any node from here down has one of ``ops``."""
        return any(u.op in ops for u in self.toposort())

    def topovisit(self, visitor: Callable[[UOp], T], cache: dict[UOp, T]) -> T:
        """``visitor`` over the nodes below, sources first, remembered in ``cache``."""
        for u in self.toposort(gate=lambda u: u not in cache):
            cache[u] = visitor(u)
        return cache[self]

    # *** services ***
    def simplify(self, tracked: bool = False) -> UOp:
        """The node after the symbolic rules."""
        return service("simplify")(self)  # type: ignore[no-any-return]

    def ssimplify(self) -> Any:
        """Simplified; a literal becomes a Python number."""
        s = self.simplify()
        return s.const_value if s.is_const else s

    def substitute(self, dvars: dict[UOp, UOp], name: str | None = None, extra_pm: Any = None, walk: bool = False,
                   enter_calls: bool = False) -> UOp:
        """The graph with nodes exchanged; ``walk`` never looks inside a replacement."""
        return service("substitute")(self, dvars, name, extra_pm, walk, enter_calls)  # type: ignore[no-any-return]

    def render(self, simplify: bool = True) -> str:
        """An index expression as text."""
        return str(service("render")(self.simplify() if simplify else self))

    def pyrender(self) -> str:
        """The graph as Python text, one line a node."""
        return str(service("pyrender")(self))

    def sym_infer(self, var_vals: dict[str, int]) -> int:
        """The integer value of the expression with variables given by name.

        Raises:
            RuntimeError: a variable has no value, or the expression is no integer arithmetic.
        """
        subs = {}
        for v in self.variables():
            if v.arg.name not in var_vals:
                raise RuntimeError(f"no value for variable {v.arg.name!r}, got only {sorted(var_vals)}")
            subs[v] = UOp.const(var_vals[v.arg.name])
        out = self.substitute(subs).simplify()
        if not out.is_const:
            raise RuntimeError(f"{self.render()} has no integer value with {var_vals}")
        return int(out.const_value)

    # *** symbolic integers ***
    def __bool__(self) -> bool:
        return self._decided(dtypes.bool, bool)

    def __int__(self) -> int:
        return self._decided(dtypes.ints + (dtypes.weakint,), int)

    def __index__(self) -> int:
        return self.__int__()

    def __float__(self) -> float:
        return self._decided(dtypes.floats + (dtypes.weakfloat,), float)

    def _decided(self, kind: Any, make: Callable[[Any], T]) -> T:
        allowed = kind if isinstance(kind, tuple) else (kind,)
        assert self.dtype in allowed, f"a node of dtype {self.dtype} has no value as {make.__name__}"  # type: ignore[attr-defined]
        lo, hi = self.simplify().bounds
        if lo != hi:
            raise ValueError(f"{self.render()} is not decided: it lies between {lo} and {hi}")
        return make(lo)

    def split_uop(self, sep: Ops) -> Iterator[UOp]:
        """Terms of nested ``sep``, left to right."""
        stack = [self]
        while stack:
            u = stack.pop()
            if u.op is sep:
                stack.extend(reversed(u.src))
            else:
                yield u

    def pop_const(self, op: Ops = Ops.ADD) -> tuple[UOp, Any]:
        """(rest, literal) of ``rest op literal``; the neutral literal where there is none."""
        if self.op is op and self.src[1].op is Ops.CONST:
            return self.src[0], self.src[1].arg
        return self, (0 if op is Ops.ADD else 1)

    def const_factor(self) -> int:
        """Largest known integer that divides the value."""
        import math
        cache: dict[UOp, int] = {}
        for u in self.toposort(gate=lambda u: u is self or u.op in (Ops.ADD, Ops.MUL, Ops.CONST)):
            if u.op is Ops.CONST and type(u.arg) is int:
                cache[u] = abs(u.arg)
            elif u.op is Ops.ADD:
                cache[u] = math.gcd(*(cache.get(s, _own_factor(s)) for s in u.src))
            elif u.op is Ops.MUL:
                cache[u] = cache.get(u.src[0], _own_factor(u.src[0])) * cache.get(u.src[1], _own_factor(u.src[1]))
            else:
                cache[u] = _own_factor(u)
        return cache[self]

    def divides(self, v: int) -> UOp | None:
        """The exact quotient by ``v``, None where it is not known to be exact."""
        if v == 1:
            return self
        if self.op is Ops.CONST:
            return UOp.const(self.arg // v) if self.arg % v == 0 else None
        if self.op is Ops.ADD:
            terms = list(self.split_uop(Ops.ADD))
            parts = [t.divides(v) if t.op is not Ops.ADD else None for t in terms]
            if any(p is None for p in parts):
                return None
            out = parts[0]
            for p in parts[1:]:
                out = out + p  # type: ignore[operator]
            return out
        if self.op is Ops.MUL:
            for i in (1, 0):
                if self.src[i].op is Ops.CONST and self.src[i].arg % v == 0:
                    q = self.src[i].arg // v
                    return self.src[1 - i] if q == 1 else self.src[1 - i] * q
        return None


def _own_factor(u: UOp) -> int:
    if u.op is Ops.CONST and type(u.arg) is int:
        return abs(u.arg)
    return u.arg.multiple_of or 1 if u.op in GroupOp.Defines else 1


_VIEWS = GroupOp.Movement | {Ops.DETACH}
_STORAGE = frozenset({Ops.BUFFER, Ops.PARAM, Ops.STAGE, Ops.MSELECT, Ops.MSTACK})
_CALLS = frozenset({Ops.CALL, Ops.FUNCTION})
Variable = UOp.variable


def _is_address_call(u: UOp) -> bool:
    return u.op is Ops.CALL and isinstance(u.arg, DType)


def _without_body(u: UOp) -> tuple[UOp, ...]:
    return u.src[1:] if u.op is Ops.CALL else u.src


def _dtype_rule(u: UOp) -> DType:
    return derive.dtype_from_uop(u.op, u.src, u.arg)


def _key_rule(u: UOp) -> bytes:
    from hashlib import sha256  # OpenSSL, at the first key
    h = sha256(f"{u.op.value}|{type(u.arg).__name__}|{u.arg!r}|{u.tag!r}".encode())
    for s in u.src:
        h.update(s._key_)
    return h.digest()


_buffer_slot = 0


def _next_buffer_slot() -> int:
    global _buffer_slot
    with _lock:
        _buffer_slot += 1
        return _buffer_slot


# *** pickling: one flat list, sources first ***
def _to_flat(root: UOp) -> list[tuple[Any, ...]]:
    index: dict[UOp, int] = {}
    out = []
    storage = registered("on_buffer_pickle")
    for i, u in enumerate(root.toposort()):
        index[u] = i
        kept = storage(u) if storage is not None and u.op is Ops.BUFFER else None
        out.append((u.op.value, tuple(index[s] for s in u.src), u.arg, u.tag, kept))
    return out


def _from_flat(flat: list[tuple[Any, ...]]) -> UOp:
    nodes: list[UOp] = []
    for op, src, arg, tag, kept in flat:
        if kept is not None:
            nodes.append(service("on_buffer_unpickle")(arg, tag, kept))
        else:
            nodes.append(UOp(Ops(op), tuple(nodes[i] for i in src), arg, tag))
    return nodes[-1]


def resolve(x: Any, default: bool = True) -> bool:
    """Truth of ``x`` when it is decided, else ``default``."""
    if isinstance(x, bool):
        return x
    lo, hi = x.simplify().bounds
    return bool(lo) if lo == hi else default
