"""Values on several devices become one graph a device: UNSHARD, MSTACK, MSELECT, ALLREDUCE and device tuples go.

Takes a SINK without FUNCTION calls; gives an equal one in which every node is on one device, and transfers are COPYs.
One walk, sources first; each node on several devices becomes ``Lanes``. An op stays on the devices its operands are on
wherever it can: element-wise ops keep the split of their operands, movement ops along other axes too. Data moves where
a split axis is reduced, where operands are split differently, and where a reshape does not keep the borders of shards.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tinyhost.dtype import dtypes
from tinyhost.env import ALLREDUCE_CAST
from tinyhost.errors import ScheduleError
from tinyhost.helpers import prod
from tinyhost.schedule.allreduce import allreduce, combine
from tinyhost.schedule.demand import narrow_copies
from tinyhost.schedule.indexing import is_static
from tinyhost.schedule.lanes import Lanes, Span, covered, cut, everywhere, moved, on_lane, part, shard_spans, whole
from tinyhost.schedule.storage import is_storage, storage_root
from tinyhost.uop import AddrSpace, GroupOp, Ops, ParamArg, UOp

Value: TypeAlias = UOp | Lanes
Values: TypeAlias = tuple[Value, ...]


def lower_devices(sink: UOp) -> UOp:
    """``sink`` with every node on one device.

    Raises:
        ScheduleError: an operand is on one device while others are on several, or a value is split along two axes.
    """
    if not any(type(u.device) is tuple for u in sink.toposort(enter_calls=False)):
        return sink
    new: dict[UOp, Value] = {}
    for u in sink.toposort(enter_calls=False):
        src = tuple([new.get(s, s) for s in u.src])
        if type(u.device) is tuple or any(type(s) is Lanes for s in src):
            rule = _RULES.get(u.op)
            if rule is None:
                raise ScheduleError(f"{u.op} cannot be computed on several devices {u.device}")
            new[u] = rule(u, src)
        elif src != u.src:
            new[u] = UOp(u.op, src, u.arg, u.tag)  # type: ignore[arg-type]
    out = new.get(sink, sink)
    assert isinstance(out, UOp)
    return combine(narrow_copies(out))


# *** operands ***
def _names(u: UOp) -> tuple[str, ...]:
    device = u.device
    assert isinstance(device, tuple)
    return device


def _checked(u: UOp, devices: tuple[str, ...], operand: UOp, value: Value) -> Value:
    """An operand of a value on ``devices``: it is there too, or nowhere."""
    device = value.devices if isinstance(value, Lanes) else value.device
    if device not in (None, devices):
        raise ScheduleError(f"{u.op} over {devices} has an operand of shape {operand._shape} on {device}: it was not "
                            f"moved with the others; move it with .shard({devices}, axis) or .to({devices})")
    return value


def _here(value: Value, i: int, device: str) -> UOp:
    """All of a value on lane ``i``."""
    return whole(value, device) if isinstance(value, Lanes) else on_lane(value, i)


def _part(value: Value, i: int, device: str, axis: int, span: Span) -> UOp:
    return part(value, device, axis, span) if isinstance(value, Lanes) else cut(on_lane(value, i), axis, span)


def _each(u: UOp, src: Values) -> Lanes:
    """``u`` on each lane of its first source, which keeps its split; other sources lane by lane too."""
    x = _lanes(src[0])
    nodes = []
    for i, n in enumerate(x.nodes):
        rest = [s.nodes[i] if isinstance(s, Lanes) else on_lane(s, i) for s in src[1:]]
        nodes.append(None if n is None else UOp(u.op, (n, *[r for r in rest if r is not None]), u.arg))
    return Lanes(x.devices, tuple(nodes), x.axis, x.spans, x.extent)


def _lanes(value: Value) -> Lanes:
    assert isinstance(value, Lanes)
    return value


def _stored(u: UOp, src: Values) -> Value:
    """What is computed or stored as it is, padding included."""
    return _each(u, (covered(_lanes(src[0])), *src[1:]))


# *** leaves ***
def _storage(u: UOp, src: Values) -> Value:
    """Storage on several devices is storage of that number on each."""
    a: ParamArg = u.arg
    if a.addrspace is AddrSpace.ALU:
        return u
    return Lanes(_names(u), tuple(UOp(u.op, (), ParamArg(a.slot, a.dtype, a.size, device=d)) for d in _names(u)))


def _mstack(u: UOp, src: Values) -> Value:
    devices = _names(u)
    if len(set(devices)) != len(devices):
        raise ScheduleError(f"a value on several devices needs different ones, got {devices}")
    return Lanes(devices, tuple(_here(s, i, d) for i, (s, d) in enumerate(zip(src, devices))))


def _mselect(u: UOp, src: Values) -> Value:
    x = _lanes(src[0])
    return whole(x, x.devices[u.arg])


def _unshard(u: UOp, src: Values) -> Value:
    if len(u.arg) != 1:
        raise ScheduleError(f"a value of shape {u.shape} is split along the axes {u.arg}: split it along one")
    devices, axis = _names(u.src[0]) if isinstance(src[0], Lanes) else _names(u), u.arg[0]
    nodes = tuple(_here(src[0], i, d) for i, d in enumerate(devices))
    return Lanes(devices, nodes, axis, shard_spans(u.shape[axis], len(devices)), u.shape[axis])


def _copy(u: UOp, src: Values) -> Value:
    x = src[0]
    if isinstance(u.arg, str):
        return whole(x, u.arg) if isinstance(x, Lanes) else moved(x, u.arg)
    if len(set(u.arg)) != len(u.arg):
        raise ScheduleError(f"a value on several devices needs different ones, got {u.arg}")
    return Lanes(u.arg, tuple(whole(x, d) if isinstance(x, Lanes) else moved(x, d) for d in u.arg))


def _allreduce(u: UOp, src: Values) -> Value:
    x, (op, onto) = src[0], u.arg
    assert isinstance(x, Lanes)
    names = (onto,) if isinstance(onto, str) else onto
    filled = x.filled()
    out = allreduce(op, [x.node(i) for i in filled], [x.devices[i] for i in filled], names)
    return out[0] if isinstance(onto, str) else Lanes(names, tuple(out))


# *** element-wise ***
def _extent(u: UOp, operand: UOp, value: Lanes) -> Any:
    """Elements of the result along the axis that an operand is split along."""
    assert value.axis is not None
    return u.shape[value.axis + len(u.shape) - len(operand.shape)]


def _split(u: UOp, src: Values, shift: int = 0) -> tuple[Lanes, int] | None:
    """The operand whose split the result takes, and the axis of it in the result: the last one, evenly split if any."""
    rank = len(u.shape) - shift
    found = [(covered(s), s.axis + rank - len(n.shape) + shift) for s, n in zip(src, u.src)
             if isinstance(s, Lanes) and s.axis is not None and (n.shape[s.axis] != 1 or s.extent == _extent(u, n, s))]
    even = [f for f in found if f[0].is_even()]
    return (even or found)[-1] if found else None


def _alu(u: UOp, src: Values) -> Value:
    devices = _names(u)
    src = tuple(_checked(u, devices, n, s) for n, s in zip(u.src, src))
    if (split := _split(u, src)) is None:
        return Lanes(devices, tuple(UOp(u.op, tuple(_here(s, i, d) for s in src), u.arg)
                                    for i, d in enumerate(devices)))
    like, axis = split
    rank = len(u.shape)
    nodes: list[UOp | None] = []
    for i, d in enumerate(devices):
        if like.nodes[i] is None:
            nodes.append(None)
            continue
        operands = []
        for n, s in zip(u.src, src):
            own = axis - rank + len(n.shape)
            stretched = own < 0 or n.shape[own] == 1
            operands.append(_here(s, i, d) if stretched else _part(s, i, d, own, like.spans[i]))
        nodes.append(UOp(u.op, tuple(operands), u.arg))
    return like.split(axis, like.spans, like.extent, nodes)


def _stack(u: UOp, src: Values) -> Value:
    devices = _names(u)
    src = tuple(_checked(u, devices, n, s) for n, s in zip(u.src, src))
    if (split := _split(u, src, 1)) is None:
        return Lanes(devices, tuple(UOp(u.op, tuple(_here(s, i, d) for s in src), u.arg)
                                    for i, d in enumerate(devices)))
    like, axis = split
    nodes = tuple(None if like.nodes[i] is None else
                  UOp(u.op, tuple(_part(s, i, d, axis - 1, like.spans[i]) for s in src), u.arg)
                  for i, d in enumerate(devices))
    return like.split(axis, like.spans, like.extent, nodes)


def _bitcast(u: UOp, src: Values) -> Value:
    """A change of size along a split axis needs shards of whole elements."""
    x = _lanes(src[0])
    old, new = u.src[0].dtype.itemsize, u.dtype.itemsize
    if x.axis is None or old == new or x.axis != len(u.shape) - 1:
        return _each(u, src)
    if any(edge * old % new for span in x.spans for edge in span):
        return _each(u, (everywhere(x),))
    spans = tuple((a * old // new, b * old // new) for a, b in x.spans)
    return x.split(x.axis, spans, x.extent * old // new, _each(u, src).nodes)


# *** movement ***
def _reshape(u: UOp, src: Values) -> Value:
    x = _lanes(src[0])
    new = u.marg
    if x.axis is not None:
        if (found := _reshaped_split(u.src[0].shape, new, x)) is not None:
            axis, spans = found
            each = tuple(None if n is None else n._mop(Ops.RESHAPE, (*new[:axis], b - a, *new[axis + 1:]))
                         for n, (a, b) in zip(x.nodes, spans))
            return x.split(axis, spans, new[axis], each)
        x = everywhere(x)
    return Lanes(x.devices, tuple(x.node(i)._mop(Ops.RESHAPE, new) for i in range(len(x.nodes))))


def _reshaped_split(old: tuple[Any, ...], new: tuple[Any, ...], x: Lanes) -> tuple[int, tuple[Span, ...]] | None:
    """The axis along which the same shards split the new shape, and their spans; None if none does."""
    assert x.axis is not None
    lead, inner = prod(old[:x.axis]), prod(old[x.axis + 1:])
    for axis in reversed(range(len(new))):
        if not _same(prod(new[:axis]), lead):
            continue
        rest = prod(new[axis + 1:])
        if _same(rest, inner):
            return axis, x.spans
        if isinstance(rest, int) and isinstance(inner, int) and rest and \
                all(edge * inner % rest == 0 for i in x.filled() for edge in x.spans[i]):
            return axis, tuple((a * inner // rest, b * inner // rest) for a, b in x.spans)
    return None


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _expand(u: UOp, src: Values) -> Value:
    x = _each(u, src)
    return x if x.axis is None else x.split(x.axis + len(u.marg), x.spans, x.extent)


def _permute(u: UOp, src: Values) -> Value:
    x = _each(u, src)
    return x if x.axis is None else x.split(u.arg.index(x.axis), x.spans, x.extent)


def _flip(u: UOp, src: Values) -> Value:
    """Each lane flips what it has; on the other side of the axis if that is split."""
    x = _each(u, src)
    if x.axis is None or not u.arg[x.axis]:
        return x
    return x.split(x.axis, tuple((x.extent - b, x.extent - a) for a, b in x.spans), x.extent)


def _boxes(u: UOp, src: Values, count: int) -> list[tuple[tuple[Any, Any], ...]]:
    """(offset, size) of each axis, as each lane sees them."""
    off, size = src[1], src[2]
    assert isinstance(off, UOp) and isinstance(size, UOp)
    x = u.src[0]
    return [UOp(u.op, (x, on_lane(off, i), size)).marg for i in range(count)]


def _shrink(u: UOp, src: Values) -> Value:
    x = _lanes(src[0])
    boxes = _boxes(u, src, len(x.devices))
    if u.is_own_shard:
        return Lanes(x.devices, tuple(_own_part(x, i, box) for i, box in enumerate(boxes)))
    box = boxes[0]
    if x.axis is None:
        return Lanes(x.devices, tuple(x.node(i)._mop(Ops.SHRINK, box) for i in range(len(x.nodes))))
    first, count = box[x.axis]
    if not (isinstance(first, int) and isinstance(count, int)):
        return Lanes(x.devices, tuple(whole(x, d)._mop(Ops.SHRINK, box) for d in x.devices))
    nodes: list[UOp | None] = []
    spans = []
    for n, (a, b) in zip(x.nodes, x.spans):
        start, stop = max(a, first), min(b, first + count)
        empty = n is None or start >= stop
        nodes.append(None if n is None or empty else n._mop(
            Ops.SHRINK, tuple((start - a, stop - start) if k == x.axis else o for k, o in enumerate(box))))
        spans.append((0, 0) if empty else (start - first, stop - first))
    if not any(n is not None for n in nodes):  # nothing but padding
        return Lanes(x.devices, (UOp.const(0, u.dtype).expand(u.shape),) * len(x.devices))
    return x.split(x.axis, tuple(spans), count, nodes)


def _own_part(x: Lanes, i: int, box: tuple[tuple[Any, Any], ...]) -> UOp:
    """The lane's own part of a value."""
    if x.axis is None:
        return x.node(i)._mop(Ops.SHRINK, box)
    shape = x.node(x.filled()[0]).shape
    axis = next((k for k, (o, n) in enumerate(box) if k != x.axis and n != shape[k]), x.axis)
    return part(x, x.devices[i], axis, (box[axis][0], sum(box[axis])))


def _pad(u: UOp, src: Values) -> Value:
    x = _lanes(src[0])
    boxes = _boxes(u, src, len(x.devices))
    moving = [k for k in range(len(u.shape)) if len({box[k][0] for box in boxes}) > 1]
    if moving and x.axis is None:  # each lane at a place of its own: shards side by side
        spans = tuple((box[moving[0]][0], box[moving[0]][0] + n.shape[moving[0]]) for box, n in
                      ((box, x.node(i)) for i, box in enumerate(boxes)))
        return x.split(moving[0], spans, u.shape[moving[0]])
    box = boxes[0]
    if x.axis is None:
        return Lanes(x.devices, tuple(x.node(i)._mop(Ops.PAD, box) for i in range(len(x.nodes))))
    first, total = box[x.axis]  # padding along the split axis belongs to no lane
    each = [None if n is None else n._mop(Ops.PAD, tuple((0, b - a) if k == x.axis else o for k, o in enumerate(box)))
             for n, (a, b) in zip(x.nodes, x.spans)]
    spans = tuple((a + first, b + first) if n is not None else (0, 0) for n, (a, b) in zip(x.nodes, x.spans))
    return x.split(x.axis, spans, total, each)


# *** reductions and gathers ***
def _reduce(u: UOp, src: Values) -> Value:
    x, (op, n) = covered(_lanes(src[0])), u.arg
    if x.axis is None or x.axis >= n:
        out = _each(u, (x,))
        return out if out.axis is None else out.split(out.axis - n, out.spans, out.extent)
    filled = x.filled()
    terms = [UOp(u.op, (x.node(i),), u.arg) for i in filled]
    narrow = _narrow_dtype(u)
    if narrow is not None:
        terms = [t.cast(narrow) for t in terms]
    out_nodes = allreduce(op, terms, [x.devices[i] for i in filled], x.devices)
    return Lanes(x.devices, tuple(o.cast(u.dtype) for o in out_nodes))


def _narrow_dtype(u: UOp) -> Any:
    """The dtype in which sums of narrow floats are combined, None for that of the sum."""
    x = u.src[0]
    while x.op in GroupOp.Movement:
        x = x.src[0]
    if ALLREDUCE_CAST.value and u.arg[0] is Ops.ADD and x.op is Ops.CAST and \
            x.src[0].dtype in (dtypes.float16, dtypes.bfloat16):
        return x.src[0].dtype
    return None


def _index(u: UOp, src: Values) -> Value:
    """Split like the axes that are not indexed, else like an index; whatever is looked up in is whole then."""
    devices = _names(u)
    src = tuple(_checked(u, devices, n, s) for n, s in zip(u.src, src))
    picked, at = len(u.src) - 1, 0
    like: Lanes | None = None
    which = axis = 0
    for k, (n, s) in enumerate(zip(u.src[1:], src[1:]), 1):
        if isinstance(s, Lanes) and s.axis is not None:
            like, which, axis = covered(s), k, at + s.axis
        at += len(n.shape)
    x = src[0]
    if isinstance(x, Lanes) and x.axis is not None and x.axis >= picked:
        like, which, axis = covered(x), 0, x.axis - picked + at
    if like is None:
        return Lanes(devices, tuple(UOp(u.op, tuple(_here(s, i, d) for s in src), u.arg)
                                    for i, d in enumerate(devices)))
    nodes = tuple(None if like.nodes[i] is None else
                  UOp(u.op, tuple(like.node(i) if k == which else _here(s, i, d) for k, s in enumerate(src)), u.arg)
                  for i, d in enumerate(devices))
    return like.split(axis, like.spans, like.extent, nodes)


# *** effects ***
def _store(u: UOp, src: Values) -> Value:
    """Each lane of the target takes its part of the value."""
    target, value = src[0], src[1]
    if not isinstance(target, Lanes):
        raise ScheduleError(f"cannot store a value on {u.src[1].device} into storage on {u.src[0].device}: move the "
                            "value with .to()")
    _checked(u, target.devices, u.src[1], value)
    shape, rank = u.src[1].shape, len(u.src[0].shape)
    nodes: list[UOp | None] = []
    for i, (n, d) in enumerate(zip(target.nodes, target.devices)):
        own = -1 if target.axis is None else target.axis - rank + len(shape)
        if n is None:
            nodes.append(None)
            continue
        if not is_storage(storage_root(n)):
            raise ScheduleError(f"cannot store into a view of shape {u.src[0].shape} of a value that is split over "
                                f"{target.devices}: {_why_nowhere(u.src[0])}")
        new = _here(value, i, d) if own < 0 or shape[own] == 1 else _part(value, i, d, own, target.spans[i])
        nodes.append(UOp(u.op, (n, new), u.arg))
    return Lanes(target.devices, tuple(nodes))


def _why_nowhere(place: UOp) -> str:
    """Why a view of a split value has no storage on the lanes."""
    while place.op in GroupOp.Movement:
        if place.op is Ops.SHRINK and not is_static(place.src[1].as_shape):
            return "its place along the split axis is a variable; split the value along another axis"
        place = place.src[0]
    return "a reshape in it moved items between shards; assign to the whole value"


def _after(u: UOp, src: Values) -> Value:
    """Each lane waits for its own effects."""
    x = src[0]
    if not isinstance(x, Lanes):
        deps = [n for s in src[1:] for n in (s.nodes if isinstance(s, Lanes) else (s,)) if n is not None]
        return UOp(u.op, (x, *deps), u.arg)
    nodes = []
    for i, n in enumerate(x.nodes):
        mine = [d for s in src[1:] if (d := s.nodes[i] if isinstance(s, Lanes) else s) is not None]
        nodes.append(n if n is None or not mine else UOp(u.op, (n, *mine), u.arg))
    return Lanes(x.devices, tuple(nodes), x.axis, x.spans, x.extent)


def _call(u: UOp, src: Values) -> Value:
    """The same call on each device, with what each argument has there."""
    args = src[1:]
    devices = next(a.devices for a in args if isinstance(a, Lanes))
    calls = []
    for i, d in enumerate(devices):
        own = [a.nodes[i] if isinstance(a, Lanes) else on_lane(a, i) for a in args]
        missing = [a for a, o in zip(u.src[1:], own) if o is None]
        if missing:
            raise ScheduleError(f"a call on {devices} has an argument of shape {missing[0].shape} that has no part on "
                                f"{d}")
        calls.append(UOp(u.op, (u.src[0], *own), u.arg))  # type: ignore[arg-type]
    return Lanes(devices, tuple(calls))


def _flat(u: UOp, src: Values) -> Value:
    """A list of effects holds those of all lanes."""
    nodes = [n for s in src for n in (s.nodes if isinstance(s, Lanes) else (s,)) if n is not None]
    return UOp(u.op, tuple(nodes), u.arg)


def _group(u: UOp, src: Values) -> Value:
    devices = next(s.devices for s in src if isinstance(s, Lanes))
    each = [[n for s in src if (n := s.nodes[i] if isinstance(s, Lanes) else s) is not None]
            for i in range(len(devices))]
    return Lanes(devices, tuple(UOp(u.op, tuple(e)) if e else None for e in each))


_RULES: dict[Ops, Callable[[UOp, Values], Value]] = {
    **dict.fromkeys(GroupOp.ALU | {Ops.CAST}, _alu),
    **dict.fromkeys({Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD}, _stored), Ops.DETACH: _each,
    **dict.fromkeys({Ops.PARAM, Ops.BUFFER}, _storage),
    Ops.BITCAST: _bitcast, Ops.MSTACK: _mstack, Ops.MSELECT: _mselect, Ops.UNSHARD: _unshard, Ops.COPY: _copy,
    Ops.ALLREDUCE: _allreduce, Ops.STACK: _stack, Ops.RESHAPE: _reshape, Ops.EXPAND: _expand, Ops.PERMUTE: _permute,
    Ops.FLIP: _flip, Ops.SHRINK: _shrink, Ops.PAD: _pad, Ops.REDUCE: _reduce, Ops.INDEX: _index, Ops.STORE: _store,
    Ops.AFTER: _after, Ops.CALL: _call, Ops.SINK: _flat, Ops.GROUP: _group}
