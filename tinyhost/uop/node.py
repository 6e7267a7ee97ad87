"""UOp: the one immutable, interned node type for everything that is computed.

Takes (op, src, arg, tag); gives the single node with that identity in this process, so ``is`` and ``==`` mean
structural equality. Properties (dtype, shape, device, bounds, ranges, key ...) are derived on demand, cached in
slots and filled by an explicit stack, so graphs of any depth work. Threads may build the same nodes at once: each
gets the same object. What an op means is in ``semantics.py``; the tables behind the properties are in ``derive.py``
and ``shape.py``; constructors, storage, shards, symbolic integers and walks are mixins, each in a file of its own.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from tinyhost.dtype import ConstFloat, DType, Invalid, to_dtype
from tinyhost.env import SPEC
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop.derive import (
    addrspace_from_uop,
    device_from_uop,
    dtype_of,
    element_of,
    ended_by,
    ranges_from_uop,
)
from tinyhost.uop.fields import UNSET, sint
from tinyhost.uop.info import BufferizeOpts, ParamArg
from tinyhost.uop.integer import IntegerMixin
from tinyhost.uop.services import service
from tinyhost.uop.shape import axis_from_uop, shape_from_uop, shape_of_operand
from tinyhost.uop.sharding import ShardingMixin
from tinyhost.uop.storage import StorageMixin
from tinyhost.uop.structure import StructureMixin
from tinyhost.uop.walks import WalkMixin

_lock = threading.RLock()  # re-entrant: a weak-reference callback may run inside the critical section
_table: dict[Any, _NodeRef] = {}


class _NodeRef(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("key",)
    key: Any


def _drop(ref: _NodeRef) -> None:
    """Remove a dead node's entry, unless a new node already took its place."""
    with _lock:
        if _table.get(ref.key) is ref:
            del _table[ref.key]


def _enter_late(key: Any, new: _NodeRef, node: UOp) -> UOp:
    """The node of ``key`` where an entry already stands: another thread's, or a dead one that is replaced."""
    with _lock:
        ref = _table.get(key)
        if ref is not None and (theirs := ref()) is not None:
            return theirs  # type: ignore[no-any-return]
        _table[key] = new
    return node


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


class UOp(StructureMixin, StorageMixin, ShardingMixin, IntegerMixin, WalkMixin):
    """One node: ``op`` over ``src`` with the literal ``arg``; ``tag`` only separates otherwise equal nodes."""

    __slots__ = ("op", "src", "arg", "tag", "_dtype_", "_shape_", "_device_", "_addrspace_", "_ranges_", "_bounds_",
                 "_key_", "_axis_", "_line_", "__weakref__")
    op: Ops
    src: tuple[UOp, ...]
    arg: Any
    tag: Any
    _dtype_: DType
    _shape_: tuple[sint, ...] | None
    _device_: str | tuple[str, ...] | None
    _addrspace_: AddrSpace | None
    _ranges_: dict[UOp, None]
    _bounds_: tuple[Any, Any]
    _key_: bytes
    _axis_: int | None
    _line_: Any  # where a program built it (``lines.py``): no part of its identity

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
        self._dtype_ = self._shape_ = self._device_ = self._addrspace_ = UNSET
        self._ranges_ = self._bounds_ = self._key_ = self._axis_ = self._line_ = UNSET
        new = _NodeRef(self, _drop)
        new.key = key
        ref = _table.setdefault(key, new)
        return self if ref is new else _enter_late(key, new, self)

    # identity is equality: mixins leave __eq__ alone, and so does this class
    __hash__ = object.__hash__

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: Any) -> UOp:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return service("unflatten"), (service("flatten")(self),)

    def __repr__(self) -> str:
        return str(service("repr")(self))

    def argstr(self) -> str:
        """The arg as listings show it."""
        return str(service("argstr")(self))

    def tagstr(self) -> str:
        """``, tag=...`` as listings show it, "" without a tag."""
        return str(service("tagstr")(self))

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
    def _fill(self, slot: str, rule: Callable[[UOp], Any],
              data_src: Callable[[UOp], tuple[UOp, ...]] | None = None) -> Any:
        """Compute ``slot`` for this node and whatever below lacks it, sources first, without recursion."""
        read = _READ[slot]
        users: list[tuple[UOp, Any]] = []  # nodes that wait, each with the rest of its sources
        node, rest = self, iter(self.src if data_src is None else data_src(self))
        while True:
            for s in rest:
                if read(s) is UNSET:
                    users.append((node, rest))
                    node, rest = s, iter(s.src if data_src is None else data_src(s))
                    break
            else:
                value = rule(node)
                setattr(node, slot, value)
                if not users:
                    return value
                node, rest = users.pop()

    @property
    def dtype(self) -> DType:
        """Element type of the value."""
        d = self._dtype_
        if d is UNSET:
            for s in self.src:
                if s._dtype_ is UNSET:
                    filled: DType = self._fill("_dtype_", dtype_of)
                    return filled
            d = self._dtype_ = dtype_of(self)
        return d

    @property
    def _shape(self) -> tuple[sint, ...] | None:
        s = self._shape_
        return self._fill("_shape_", shape_from_uop, _without_body) if s is UNSET else s

    @property
    def shape(self) -> tuple[sint, ...]:
        """Dimensions, each an int or a symbolic node.

        Raises:
            RuntimeError: the op has no shape.
        """
        s = self._shape_
        if s is UNSET:
            s = self._shape
        if s is None:
            raise RuntimeError(f"{self.op} has no shape")
        return s

    @property
    def _device(self) -> str | tuple[str, ...] | None:
        d = self._device_
        return self._fill("_device_", device_from_uop, _without_body) if d is UNSET else d

    @property
    def device(self) -> str | tuple[str, ...] | None:
        """Device of the value, a tuple when it lies on several, None when nothing fixes it."""
        d = self._device_
        return self._device if d is UNSET else d

    @property
    def _addrspace(self) -> AddrSpace | None:
        a = self._addrspace_
        return self._fill("_addrspace_", addrspace_from_uop, _without_body) if a is UNSET else a

    @property
    def addrspace(self) -> AddrSpace | None:
        """Address space of a value or place."""
        return self._addrspace

    @property
    def _ranges(self) -> dict[UOp, None]:
        r = self._ranges_
        return self._fill("_ranges_", ranges_from_uop) if r is UNSET else r

    @property
    def ranges(self) -> dict[UOp, None]:
        """Open RANGEs the value depends on, in order of first use (shared: do not change it)."""
        r = self._ranges_
        return self._ranges if r is UNSET else r

    @property
    def ended_ranges(self) -> tuple[UOp, ...]:
        """Sources whose ranges stop here."""
        return ended_by(self)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Sound (smallest, largest) value."""
        b = self._bounds_
        return self._fill("_bounds_", service("min_max"), _without_body) if b is UNSET else b

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
        return self._fill("_key_", _key_rule) if k is UNSET else k

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
        return self._axis if isinstance(self._device, tuple) else None

    @property
    def _axis(self) -> int | None:
        a = self._axis_
        return self._fill("_axis_", axis_from_uop, _splits) if a is UNSET else a

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
        if type(b) is int:
            return _strong_integer(b, dtype)
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
            return tuple(zip(shape_of_operand(self.src[1]), shape_of_operand(self.src[2])))
        if self.op in (Ops.RESHAPE, Ops.EXPAND):
            return shape_of_operand(self.src[1])
        raise ValueError(f"{self.op} is not a movement op")

    @property
    def as_shape(self) -> tuple[sint, ...]:
        """The dimensions this shape operand spells."""
        return shape_of_operand(self)

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

    def sink(*srcs: UOp | None, arg: Any = None, tag: Any = None) -> UOp:
        """A root over effects."""
        return UOp(Ops.SINK, tuple(s for s in srcs if s is not None), arg, tag)

    def group(*srcs: UOp | None, **kwargs: Any) -> UOp:
        """An unordered merge of effects; a single one is itself unless ``arg`` or ``tag`` is given."""
        real = tuple(s for s in srcs if s is not None)
        return real[0] if len(real) == 1 and not kwargs else UOp(Ops.GROUP, real, **kwargs)

    def maketuple(*srcs: UOp) -> UOp:
        """Several values as one body."""
        return UOp(Ops.TUPLE, srcs)

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


Variable = UOp.variable
_READ = {slot: attrgetter(slot) for slot in UOp.__slots__}


@lru_cache(maxsize=4096)
def _strong_integer(b: int, dtype: DType) -> UOp:
    """A strong literal of an integer: an offset or a stride, of which code generation asks for the same few."""
    lit = UOp(Ops.CONST, (), dtype.const(b))
    return lit if lit.dtype is dtype else UOp(Ops.CAST, (lit,), dtype)


def _without_body(u: UOp) -> tuple[UOp, ...]:
    return u.src[1:] if u.op is Ops.CALL else u.src


def _splits(u: UOp) -> tuple[UOp, ...]:
    """The sources that can decide how a node is split: none where it says so itself, or is on one device."""
    if u.op is Ops.GETTUPLE:
        return (element_of(u.src[0], u.arg),)
    return _without_body(u) if u.op is not Ops.UNSHARD and isinstance(u._device, tuple) else ()


def _key_rule(u: UOp) -> bytes:
    from hashlib import sha256  # OpenSSL, at the first key
    head = f"{u.op.value}|{type(u.arg).__name__}|{u.arg!r}|{u.tag!r}".encode()
    return sha256(b"".join([head, *[s._key_ for s in u.src]])).digest()


def resolve(x: Any, default: bool = True) -> bool:
    """Truth of ``x`` when it is decided, else ``default``."""
    if isinstance(x, bool):
        return x
    lo, hi = x.simplify().bounds
    return bool(lo) if lo == hi else default


# *** SPEC=2 ***
_plain_new = UOp.__new__


def _checked_new(cls: type[UOp], op: Ops, src: tuple[UOp, ...] = (), arg: Any = None, tag: Any = None) -> UOp:
    node = _plain_new(cls, op, src, arg, tag)
    if SPEC.value >= 2:
        service("verify_node")(node)
    return node


def _check_nodes(level: int) -> None:
    """Exchange the constructor when a program asks for SPEC=2 for the first time; until then nodes cost no more."""
    if level >= 2:
        UOp.__new__ = _checked_new  # type: ignore[method-assign]


SPEC.watch(_check_nodes)
