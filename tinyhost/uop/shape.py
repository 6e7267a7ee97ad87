"""Shapes: what each op makes of the shapes of its sources, and along which axis a value is split over devices.

A rule sees one node whose sources already have the property; the walk that guarantees it is in ``node.py``. Dimensions
are ints or symbolic nodes, and a comparison that their bounds do not decide counts as fitting.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import DType, dtypes
from tinyhost.helpers import all_same, ceildiv, prod
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop.derive import element_of, is_image

if TYPE_CHECKING:
    from tinyhost.uop.node import UOp

Shape = tuple[Any, ...]  # of int or symbolic UOp
_NO_SHAPE = frozenset({
    Ops.REWRITE_ERROR, Ops.FUNCTION, Ops.PROGRAM, Ops.LINEAR, Ops.SOURCE, Ops.SINK, Ops.GROUP, Ops.TUPLE, Ops.BARRIER,
    Ops.IF, Ops.ENDIF, Ops.WAIT, Ops.CUSTOM_FUNCTION, Ops.PYLITERAL})
_SCALAR = frozenset({Ops.SPECIAL, Ops.GETADDR, Ops.CONST})


def dim(u: "UOp") -> Any:
    """A shape entry from its node: an int where it is a literal, else the node."""
    return u.arg if u.op is Ops.CONST else u


def shape_of_operand(u: "UOp") -> Shape:
    """The dimensions that a shape operand spells: one scalar, or a STACK of scalars."""
    return tuple(dim(s) for s in u.src) if u.op is Ops.STACK else (dim(u),)


def _differ(a: Any, b: Any) -> bool:
    """Whether two dimensions are certainly different; undecidable symbolic comparisons count as equal."""
    if a is b:
        return False
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    lo_a, hi_a = (a, a) if isinstance(a, int) else (a.vmin, a.vmax)
    lo_b, hi_b = (b, b) if isinstance(b, int) else (b.vmin, b.vmax)
    return bool(hi_a < lo_b or hi_b < lo_a)


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """Right-aligned broadcast of ``shapes``; dimensions of 1 stretch.

    Raises:
        IndexError: two dimensions differ and neither is 1.
    """
    distinct = list(dict.fromkeys(shapes))
    if len(distinct) == 1:
        return distinct[0]
    rank = max(map(len, distinct))
    out: list[Any] = []
    for axis in range(rank):
        best: Any = 1
        for s in distinct:
            d = s[axis - rank + len(s)] if axis >= rank - len(s) else 1
            if isinstance(d, int) and d == 1:
                continue
            if isinstance(best, int) and best == 1:
                best = d
            elif _differ(best, d):
                raise IndexError(f"cannot broadcast {' and '.join(map(str, distinct))}: axis {axis - rank} is {best} "
                                 f"and {d}; make them equal or one of them 1")
        out.append(best)
    return tuple(out)


def _shape_reshape(u: "UOp", s: Shape) -> Shape:
    new = shape_of_operand(u.src[1])
    if any(isinstance(d, int) and d < 0 for d in new):
        raise ValueError(f"reshape to {new}: a dimension is negative")
    if _differ(prod(s), prod(new)):
        raise ValueError(f"size mismatch, can't reshape {s} to {new}: {prod(s)} and {prod(new)} elements")
    return new


def _shape_permute(u: "UOp", s: Shape) -> Shape:
    if sorted(u.arg) != list(range(len(s))):
        raise ValueError(f"permute order {u.arg} is not a permutation of the {len(s)} axes of shape {s}")
    return tuple(s[i] for i in u.arg)


def _boxes(u: "UOp") -> tuple[Shape, Shape]:
    return shape_of_operand(u.src[1]), shape_of_operand(u.src[2])


def _certainly_less(a: Any, b: Any) -> bool:
    hi = a if isinstance(a, int) else a.vmax
    lo = b if isinstance(b, int) else b.vmin
    return bool(hi < lo)


def _shape_pad(u: "UOp", s: Shape) -> Shape:
    off, size = _boxes(u)
    if len(off) != len(s) or len(size) != len(s):
        raise ValueError(f"pad offsets {off} and sizes {size} do not fit the {len(s)} axes of shape {s}")
    for o, n, d in zip(off, size, s):
        if _certainly_less(o, 0) or _certainly_less(n, o + d):
            raise ValueError(f"pad places {d} elements at offset {o} of {n}: the box is too small (shape {s})")
    return size


_STRONG_INDEX = frozenset(dtypes.ints)


def _shape_shrink(u: "UOp", s: Shape) -> Shape:
    off, size = _boxes(u)
    if len(off) != len(s) or len(size) != len(s):
        raise ValueError(f"shrink offsets {off} and sizes {size} do not fit the {len(s)} axes of shape {s}")
    if u.src[1].dtype in _STRONG_INDEX:
        return size  # a vector access of a program; a masked one may reach beyond its storage
    for o, n, d in zip(off, size, s):
        if _certainly_less(o, 0) or _certainly_less(n, 0) or _certainly_less(d, o + n):
            raise ValueError(f"invalid shrink of shape {s}: {n} elements from {o} leave an axis of {d}")
    return size


def _shape_flip(u: "UOp", s: Shape) -> Shape:
    if len(u.arg) != len(s) or not all(isinstance(x, bool) for x in u.arg):
        raise ValueError(f"flip needs one bool for each axis of shape {s}, got {u.arg}")
    return s


def _shape_reduce(u: "UOp", s: Shape) -> Shape:
    n = u.arg[1]
    if not 0 <= n <= len(s):
        raise ValueError(f"reduce of {n} leading axes of shape {s}")
    return s[n:]


def _shape_bitcast(u: "UOp", s: Shape) -> Shape:
    old, new = u.src[0].dtype.itemsize, u.arg.itemsize
    if old == new or not s:
        if old != new:
            raise RuntimeError(f"cannot bitcast a scalar of {u.src[0].dtype} to {u.arg}: sizes {old} and {new} differ")
        return s
    if not isinstance(s[-1], int) or (s[-1] * old) % new:
        raise RuntimeError(f"unsupported size in bitcast: {s[-1]} elements of {old} bytes are no multiple of {new}")
    return (*s[:-1], s[-1] * old // new)


def _shape_index(u: "UOp") -> Shape:
    base, out = u.src[0]._shape, []  # type: Shape | None, list[Any]
    if base is None:
        raise RuntimeError(f"INDEX needs a source with a shape, got {u.src[0].op}")
    if is_image(u.src[0]) and len(u.src) == 3:
        return (4,)
    for i in u.src[1:]:
        out.extend(i._shape or ())
    if len(u.src) - 1 > len(base):
        raise IndexError(f"{len(u.src) - 1} indices for a value of shape {base}")
    return (*out, *base[len(u.src) - 1:])


def _shape_stack(u: "UOp") -> Shape:
    if not u.src:
        return ()
    shapes = [s._shape for s in u.src]
    if not all_same(shapes):
        raise ValueError(f"STACK needs equal shapes, got {shapes}")
    return (len(u.src), *(shapes[0] or ()))


def _shape_wmma(u: "UOp") -> Shape:
    lead = broadcast_shape([(s._shape or ())[:-1] for s in u.src[:3]])
    return (*lead, *(u.src[2]._shape or ())[-1:])


def _shape_gettuple(u: "UOp") -> Shape | None:
    fn = u.src[0]
    shape = element_of(fn, u.arg)._shape
    if fn.op is Ops.TUPLE or shape is None or all(isinstance(d, int) for d in shape):
        return shape
    args = {p: a for p in fn.src[0].toposort() if p.op is Ops.PARAM and p.arg.addrspace is AddrSpace.ALU
            and 0 <= p.arg.slot < len(fn.src) - 1 for a in (fn.src[1 + p.arg.slot],)}
    return tuple(d if isinstance(d, int) else d.substitute(args) for d in shape)


def _shape_unshard(u: "UOp") -> Shape:
    out = list(u.src[0]._shape or ())
    for axis, rng in zip(u.arg, u.src[1:]):
        out[axis] = out[axis] * (rng.vmax + 1)
    return tuple(out)


def _shape_void_or_bc(u: "UOp") -> Shape | None:
    if u.arg[1] is dtypes.void:
        return None
    shapes = [s._shape for s in u.src if s._shape is not None]
    return broadcast_shape(shapes) if shapes else ()


def _over_src0(rule: Callable[["UOp", Shape], Shape]) -> Callable[["UOp"], Shape | None]:
    def checked(u: "UOp") -> Shape | None:
        s = u.src[0]._shape
        if s is None:
            raise RuntimeError(f"{u.op} needs a source with a shape, got {u.src[0].op}")
        return rule(u, s)
    return checked


def _shape_alu(u: "UOp") -> Shape | None:
    first = u.src[0]._shape
    for s in u.src:
        if s._shape != first:
            return _shape_of_unequal([s._shape for s in u.src], u)
    return first


def _shape_of_unequal(shapes: list[Shape | None], u: "UOp") -> Shape:
    if None in shapes:
        raise RuntimeError(f"{u.op} needs sources with shapes, got {[s.op for s in u.src]}")
    return broadcast_shape([s for s in shapes if s])  # a scalar fits every shape


def _shape_ins(u: "UOp") -> Shape | None:
    if not isinstance(u.arg, tuple) or u.arg[1] is dtypes.void:
        return None
    return () if len(u.arg) < 3 or u.arg[2] == 1 else (u.arg[2],)


_SHAPE: dict[Ops, Callable[["UOp"], Shape | None]] = {
    **dict.fromkeys(_NO_SHAPE, lambda u: None),
    **dict.fromkeys(_SCALAR, lambda u: ()),
    **dict.fromkeys(GroupOp.Broadcastable, _shape_alu),
    **dict.fromkeys(GroupOp.Unary | {
        Ops.CAST, Ops.AFTER, Ops.LOAD, Ops.STORE, Ops.END, Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH,
        Ops.COPY, Ops.MSELECT, Ops.MSTACK, Ops.ALLREDUCE}, lambda u: u.src[0]._shape),
    **dict.fromkeys({Ops.PARAM, Ops.BUFFER}, lambda u: u.arg.shape),
    **dict.fromkeys({Ops.CUSTOM, Ops.CUSTOMI}, _shape_void_or_bc),
    Ops.NOOP: lambda u: u.src[0]._shape if u.src else None,
    Ops.RANGE: lambda u: (),
    Ops.CALL: lambda u: () if isinstance(u.arg, DType) else None,
    Ops.BINARY: lambda u: (len(u.arg),),
    Ops.STACK: _shape_stack,
    Ops.GETTUPLE: _shape_gettuple,
    Ops.INDEX: _shape_index,
    Ops.WMMA: _shape_wmma,
    Ops.INS: _shape_ins,
    Ops.STAGE: lambda u: (*(dim(r.src[0]) if r.op is Ops.RANGE else 1 for r in u.src[1:]), *(u.src[0]._shape or ())),
    Ops.UNSHARD: _shape_unshard,
    Ops.RESHAPE: _over_src0(_shape_reshape),
    Ops.EXPAND: _over_src0(lambda u, s: (*shape_of_operand(u.src[1]), *s)),
    Ops.PERMUTE: _over_src0(_shape_permute),
    Ops.PAD: _over_src0(_shape_pad),
    Ops.SHRINK: _over_src0(_shape_shrink),
    Ops.FLIP: _over_src0(_shape_flip),
    Ops.REDUCE: _over_src0(_shape_reduce),
    Ops.BITCAST: lambda u: _shape_bitcast(u, u.src[0]._shape) if u.src[0]._shape is not None else None,
}


def shape_from_uop(u: "UOp") -> Shape | None:
    """The shape of a node, None where the op has none.

    Raises:
        ValueError, IndexError, RuntimeError: the sources' shapes do not fit the op.
    """
    rule = _SHAPE.get(u.op)
    if rule is None:
        raise RuntimeError(f"no shape for {u.op} with arg {u.arg}")
    return rule(u)


# *** sharded axis ***
_AXIS_OF_SRC0 = frozenset({
    Ops.AFTER, Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.CAST, Ops.BITCAST, Ops.STORE, Ops.LOAD,
    Ops.MSELECT, Ops.END, Ops.PAD, Ops.FLIP, Ops.RESHAPE, Ops.SHRINK})


def axis_from_uop(u: "UOp") -> int | None:
    """The axis along which the value is split over devices, None where it is whole.

    Raises:
        RuntimeError: a reshape moved items between shards.
    """
    op = u.op
    if not isinstance(u._device, tuple):
        return None
    if op is Ops.UNSHARD:
        if len(u.arg) != 1:
            raise RuntimeError(f"value is sharded on several axes {u.arg}: ask for its (axis, range) pairs")
        return u.arg[0]  # type: ignore[no-any-return]
    if op in GroupOp.Broadcastable or op is Ops.STACK:
        return _axis_alu(u)
    if op is Ops.INDEX:
        return _axis_index(u)
    if op is Ops.GETTUPLE:
        return element_of(u.src[0], u.arg)._axis
    if not u.src or (axis := u.src[0]._axis) is None:
        return None
    if op is Ops.RESHAPE:
        return _axis_reshape(u, axis)
    if op is Ops.PERMUTE:
        return int(u.arg.index(axis))
    if op is Ops.EXPAND:
        return axis + len(shape_of_operand(u.src[1]))
    if op is Ops.REDUCE:
        return None if axis < u.arg[1] else axis - u.arg[1]
    if op is Ops.SHRINK:
        return axis if _keeps_shards(u, axis) else None
    return axis if op in _AXIS_OF_SRC0 or op in GroupOp.Unary else None


def _axis_alu(u: "UOp") -> int | None:
    rank = len(u._shape or ())
    found = [s._axis + rank - len(s._shape or ()) for s in u.src if s._axis is not None]
    return found[-1] if found else None


def _keeps_shards(u: "UOp", axis: int) -> bool:
    """Whether a SHRINK leaves the elements of the split axis in the shards they would be in: it cuts only the end."""
    first, new = shape_of_operand(u.src[1])[axis], shape_of_operand(u.src[2])[axis]
    old = (u.src[0]._shape or ())[axis]
    if new == old:
        return True
    count = len(u._device) if isinstance(u._device, tuple) else 1
    return first == 0 and isinstance(new, int) and isinstance(old, int) and ceildiv(new, count) == ceildiv(old, count)


def _axis_index(u: "UOp") -> int | None:
    """That of the axes which are not indexed, else that of an index."""
    picked, at, found = len(u.src) - 1, 0, None
    for i in u.src[1:]:
        found = found if i._axis is None else at + i._axis
        at += len(i._shape or ())
    axis = u.src[0]._axis
    return found if axis is None or axis < picked else axis - picked + at


def _axis_reshape(u: "UOp", axis: int) -> int | None:
    old, new = u.src[0]._shape or (), shape_of_operand(u.src[1])
    lead = prod(old[:axis])
    fits = [i for i in range(len(new)) if not _differ(prod(new[:i]), lead)]
    shards = len(u._device) if isinstance(u._device, tuple) else 1
    if not fits or (isinstance(new[fits[-1]], int) and new[fits[-1]] % shards and new[fits[-1]] != old[axis]):
        raise RuntimeError(f"reshape {old} -> {new} moved items between shards of axis {axis}")
    return fits[-1]
