"""The arguments of a call: which buffers they are, and what a replay demands of them.

Takes arguments in any nesting of containers; gives one buffer for each tensor and one comparable demand for each leaf
and for the settings that decide what a program of tensors means. Tensors of symbolic shape are views of a buffer in
which variables stand for numbers, so the same view with other values is the same demand. Nothing is captured here.
"""
from __future__ import annotations

from typing import Any, TypeAlias

from tinyhost.device import Buffer, Device
from tinyhost.device.buffer import buffer_of
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.hazards import is_storage, under_views
from tinyhost.env import DEFAULT_FLOAT, DEFAULT_INT, DEV, SUM_DTYPE, TINYHOST_PLUGINS, TRAINING
from tinyhost.errors import JitError
from tinyhost.jit.leaves import key_of, leaves, text_of
from tinyhost.ops import AddrSpace, Ops
from tinyhost.realization import realize
from tinyhost.schedule.storage import region_of
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.sharding import stored_axis

Demands: TypeAlias = "list[tuple[str, Any]]"  # (name, key) of each leaf

_NAMES = [f"arg {i}" for i in range(64)]
_LEAVES = frozenset({Tensor, bool, int, float, str, type(None)})  # what surely is no container
_SETTINGS = ("TRAINING", "DEFAULT_FLOAT", "DEFAULT_INT", "SUM_DTYPE", "the default device")
_raw = [v._var.get for v in (TRAINING, DEFAULT_FLOAT, DEFAULT_INT, SUM_DTYPE, DEV, TINYHOST_PLUGINS)]
_last: tuple[tuple[Any, ...], tuple[Any, ...]] = (), ()


def settings() -> tuple[Any, ...]:
    """The settings that decide what a program of tensors means."""
    global _last
    training, floats, ints, sums, devices, plugins = _raw
    raw = training(), floats(), ints(), sums(), devices(), plugins()
    known, values = _last
    if raw != known:
        values = (*raw[:4], Device.DEFAULT)  # which device that is follows from the last two
        _last = raw, values
    return values


def check(captured: Demands, texts: list[str], now: Inputs) -> None:
    """Compare the arguments of a call with those of the capture, which were ``texts`` in words.

    Raises:
        JitError: they differ in number, name or value.
    """
    if captured == now.demands:
        return
    was, names = [p for p, _ in captured[:-1]], [p for p, _ in now.demands[:-1]]
    if was != names:
        raise JitError(f"args mismatch in JIT: captured with {', '.join(was) or 'none'}, called with "
                       f"{', '.join(names) or 'none'}; call with the same arguments, or use a second TinyJit")
    wrong = [f"{name} was {old} at capture and is {new if new != old else _another(a)} now"
             for (name, a), (_, b), old, new in zip(captured, now.demands, texts, now.texts()) if a != b]
    wrong += [f"{name} was {old} at capture and is {new} now"
              for name, old, new in zip(_SETTINGS, captured[-1][1], now.demands[-1][1]) if old != new]
    raise JitError(f"args mismatch in JIT: {'; '.join(wrong)}: call with the same, or use a second TinyJit")


def _another(key: Any) -> str:
    """What a value is whose text did not change."""
    return "another view" if isinstance(key, tuple) and key[0] is Tensor else "another one"


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """(path, value) of all leaves."""
    found: list[tuple[str, Any]] = []
    for i, a in enumerate(args):
        name = _NAMES[i] if i < len(_NAMES) else f"arg {i}"
        if a.__class__ in _LEAVES:
            found.append((name, a))
        else:
            found.extend(leaves(name, a))
    if kwargs:
        for name in sorted(kwargs):
            found.extend(leaves(name, kwargs[name]))
    return found


# *** tensors ***
def _plain(u: UOp) -> UOp | None:
    """The BUFFER on one device that a tensor shows all of in order, None for everything else."""
    b = u
    while b.op is Ops.RESHAPE:
        b = b.src[0]
    if b.op is not Ops.BUFFER or b.arg.addrspace is not AddrSpace.GLOBAL or b.arg.device.__class__ is not str:
        return None
    for d in u.shape:
        if d.__class__ is not int:
            return None
    return b


def _key(u: UOp, plain: UOp | None) -> Any:
    """The demand on a tensor: shape, dtype, device, split, and where these do not tell all of the view, the view."""
    if plain is not None:
        return Tensor, u.shape, plain.arg.dtype, plain.arg.device, None, None
    shape = tuple([d if isinstance(d, int) else d.unbind_all()[0] for d in u.shape])
    axis = stored_axis(u)
    view = _pattern(u) if axis is not None or _is_symbolic(u) else None
    return Tensor, shape, u.dtype, u.device, axis, view


def _text(u: UOp) -> str:
    dims = [d.unbind_all()[0].render() if isinstance(d, UOp) else str(d) for d in u.shape]
    axis = stored_axis(u)
    split = "" if axis is None else f", split along axis {axis}"
    return f"a tensor ({', '.join(dims)}{',' * (len(dims) == 1)}) {u.dtype} on {u.device}{split}"


def _is_symbolic(view: UOp) -> bool:
    """Whether variables stand in a view: in its shape, or only in an offset."""
    return any(u.is_variable for u in view.toposort())


def _pattern(view: UOp) -> UOp:
    """A view with free variables, over any buffer of the size."""
    storage = under_views(view)
    free = view.unbind_all()[0]
    any_buffer = UOp.param(0, storage.dtype, (storage.max_numel(),), storage.device)
    return free.substitute({storage: any_buffer}, walk=True)


class Inputs:
    """The arguments of one call, made real, and what a replay demands of them.

    ``buffers`` are those of the tensors: the block that a tensor is, the storage under a symbolic view. ``bound`` are
    the bound variables among them by name.
    """

    __slots__ = ("found", "tensors", "buffers", "bound", "var_vals", "demands", "_plain")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.found = found = _named(args, kwargs)
        self.tensors: list[tuple[str, Tensor]] = [leaf for leaf in found if isinstance(leaf[1], Tensor)]
        self._plain = plain = [_plain(t.uop) for _, t in self.tensors]
        self.bound: dict[str, UOp] = {}
        if None in plain:
            realize(*[t for _, t in self.tensors])
            self._plain = plain = [_plain(t.uop) for _, t in self.tensors]
        self.buffers = [_input_buffer(p, t) if u is None else buffer_of(u).ensure_allocated()
                        for (p, t), u in zip(self.tensors, plain)]
        if len(plain) > 1:
            self._check_overlap()
        if len(found) > len(plain) or None in plain:
            self._bind()
        self.var_vals = {name: v.val for name, v in self.bound.items()} if self.bound else {}
        at = iter(plain)
        self.demands: Demands = [(p, _key(v.uop, next(at)) if isinstance(v, Tensor) else key_of(p, v))
                                 for p, v in found]
        self.demands.append(("", settings()))

    def texts(self) -> list[str]:
        """Each leaf in words."""
        return [_text(v.uop) if isinstance(v, Tensor) else text_of(v) for _, v in self.found]

    def _bind(self) -> None:
        """Note bound variables, those in shapes included."""
        over = [v.uop if isinstance(v, Tensor) else v for _, v in self.found if isinstance(v, (Tensor, UOp))]
        for v in [u for root in over for u in root.toposort() if u.is_bound_var]:
            if self.bound.setdefault(v.expr, v) is not v:
                raise JitError(f"bind mismatch on {v.expr!r}: the arguments bind it to {self.bound[v.expr].val} and "
                               f"{v.val}; one call uses one value of a variable")

    def _check_overlap(self) -> None:
        bases = [b.base for b in self.buffers]
        if len({*map(id, bases)}) == len(bases) and all([b.__class__ is Buffer for b in bases]):
            return
        spans = sorted((id(b.base), b.offset, b.offset + b.nbytes, p)
                       for buffer, (p, _) in zip(self.buffers, self.tensors) for b in parts_of(buffer))
        for (base, _, end, first), (other, start, _, second) in zip(spans, spans[1:]):
            if base == other and start < end:
                raise JitError(f"duplicate inputs to JIT: {first} and {second} share memory, so a replay could not "
                               "tell them apart; pass a .clone() of one")

    def is_part(self, i: int) -> bool:
        """Whether one tensor is a part of its buffer."""
        return self.buffers[i].base is not self.buffers[i]

    def flat(self, i: int) -> UOp:
        """The elements of one tensor in order: its whole buffer, or a part of one."""
        plain = self._plain[i]
        if plain is not None:
            return plain
        u = self.tensors[i][1].uop
        return u.reshape((self.buffers[i].size,)) if self.is_part(i) else under_views(u)


def _input_buffer(path: str, t: Tensor) -> Buffer | MultiBuffer:
    storage = under_views(t.uop)
    if is_storage(storage) and (stored_axis(t.uop) is not None or _is_symbolic(t.uop)):
        return buffer_of(storage).ensure_allocated()
    region = region_of(t.uop) if t.uop.device is not None else None
    if region is None or not is_storage(region.root):
        what = "a constant" if t.uop.device is None else "a view that is no single block of its buffer"
        raise JitError(f"JIT inputs must be real buffers; use .clone(): {path} of shape {t.shape} is {what}")
    buffer = buffer_of(region.root).ensure_allocated()
    return buffer if region.whole else buffer.view(region.size, region.dtype, region.start)
